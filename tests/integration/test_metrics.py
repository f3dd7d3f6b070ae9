"""`/metrics` of a real worker: what connectors do shows there, and goes with them."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import command_of, free_port
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.waiting import eventually, wait_until

pytestmark = pytest.mark.services


#: A scrape is long, and shows something else when a task has reported.
TASKS_REPORT_SECONDS = 2


class Scrape:
    """What Prometheus would see, of the series that have all of some labels."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, name: str, /, **labels: str) -> float | None:
        """The value of the one series; None when there is none."""
        found = self.all(name, **labels)
        assert len(found) <= 1, found
        return found[0] if found else None

    def all(self, name: str, /, **labels: str) -> list[float]:
        return [
            sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def text(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/plain; version=")
            return answer.read().decode()

    def until(self, expected: float | None, name: str, /, **labels: str) -> None:
        eventually(lambda: self(name, **labels) == expected, f"{name}{labels} of {expected}", 30, pause=TASKS_REPORT_SECONDS / 8)


def test_a_source_shows_its_snapshot_and_its_stream(worker: Worker, postgres: PostgresAddress, database: str, tag: str) -> None:
    scrape = Scrape(worker.url)
    with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
        session.execute("CREATE TABLE a (id int PRIMARY KEY, t text)")
        session.execute("CREATE TABLE b (id int PRIMARY KEY)")
        session.execute("INSERT INTO a SELECT n, 'x' FROM generate_series(1, 300) n")
        worker.create(tag, postgres_source(postgres, database, tag))
        try:
            where = {"connector": tag, "task": "0"}
            snapshot, streaming = (
                {**where, "context": each, "plugin": "postgres", "name": f"pg_{tag}"} for each in ("snapshot", "streaming")
            )
            scrape.until(1, "debezium_metrics_Connected", **streaming)
            assert scrape("debezium_metrics_SnapshotCompleted", **snapshot) == 1
            assert scrape("debezium_metrics_TotalTableCount", **snapshot) == 2
            assert scrape("debezium_metrics_RowsScanned", table="public.a", **snapshot) == 300
            session.execute("INSERT INTO b SELECT n FROM generate_series(1, 20) n")
            session.execute("UPDATE a SET t = 'y' WHERE id <= 3")
            session.execute("DELETE FROM a WHERE id > 298")
            scrape.until(25, "debezium_metrics_TotalNumberOfEventsSeen", **streaming)
            for name, count in (("Create", 20), ("Update", 3), ("Delete", 2)):
                assert scrape(f"debezium_metrics_TotalNumberOf{name}EventsSeen", **streaming) == count
            assert 0 <= scrape("debezium_metrics_MilliSecondsBehindSource", **streaming) < 60_000
            # a delete is an event and its tombstone
            scrape.until(327, "kafka_connect_source_task_metrics_source_record_write_total", **where)
            assert scrape("kafka_connect_source_task_metrics_source_record_write_rate", **where) > 0
            assert scrape("kafka_connect_connector_metrics", connector=tag, status="running", connector_type="source") == 1
            client = f"connector-producer-{tag}-0"
            # as in Java, a record counts once more each time that it is sent again
            wait_until(
                lambda: (scrape("kafka_producer_producer_metrics_record_send_total", client_id=client) or 0) >= 327, 30, "327 sent records"
            )
            scrape.until(0, "kafka_connect_source_task_metrics_source_record_active_count", **where)
            wait_until(
                lambda: scrape("kafka_connect_connector_task_metrics_offset_commit_success_percentage", **where) == 1,
                20,
                "a commit to be counted",
            )
        finally:
            worker.delete(tag)
    wait_until(lambda: tag not in scrape.text(), 60, "the figures of a deleted connector to vanish")


def test_a_sink_shows_what_it_reads_skips_and_sends_to_the_dead_letter_queue(
    worker: Worker, kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    scrape = Scrape(worker.url)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(10):
        producer.produce(tag, b"{not json" if number % 5 == 4 else json.dumps({"n": number}).encode())
    producer.flush(20)
    worker.create(
        tag,
        {
            "connector.class": "FileStreamSink",
            "file": str(tmp_path / "out.txt"),
            "topics": tag,
            "value.converter.schemas.enable": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{tag}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        },
    )
    try:
        where = {"connector": tag, "task": "0"}
        scrape.until(10, "kafka_connect_sink_task_metrics_sink_record_read_total", **where)
        scrape.until(8, "kafka_connect_sink_task_metrics_sink_record_send_total", **where)
        assert scrape("kafka_connect_task_error_metrics_total_records_skipped", **where) == 2
        assert scrape("kafka_connect_task_error_metrics_deadletterqueue_produce_requests", **where) == 2
        assert scrape("kafka_connect_sink_task_metrics_partition_count", **where) == 1
        scrape.until(0, "kafka_connect_sink_task_metrics_sink_record_active_count", **where)
        assert scrape("kafka_connect_sink_task_metrics_offset_commit_completion_total", **where) >= 1
        client = f"connector-consumer-{tag}-0"
        scrape.until(10, "kafka_consumer_consumer_fetch_manager_metrics_records_consumed_total", client_id=client, topic=tag)
        worker.request("PUT", f"/connectors/{tag}/pause")
        worker.wait_for(tag, "PAUSED")
        scrape.until(1, "kafka_connect_connector_task_metrics_status", status="paused", **where)
        wait_until(
            lambda: (scrape("kafka_connect_connector_task_metrics_pause_ratio", **where) or 0) > 0, 20, "time to be counted as paused"
        )
    finally:
        worker.delete(tag)


def test_the_figures_of_a_killed_task_vanish_and_its_successor_begins_anew(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    scrape = Scrape(worker.url)
    lines = tmp_path / "in.txt"
    lines.write_text("a\nb\nc\n")
    worker.create(tag, {"connector.class": "FileStreamSource", "file": str(lines), "topic": tag})
    try:
        name = "kafka_connect_source_task_metrics_source_record_poll_total"
        scrape.until(3, name, connector=tag)
        wait_until(lambda: len(kafka.read(worker.topic("offset"))) > 0, 60, "the offset to be stored")
        started = scrape("kafka_connect_worker_metrics_task_startup_success_total")
        (task,) = [pid for pid in worker.children() if any(f"{tag}-0" in word for word in command_of(pid))]
        os.kill(task, signal.SIGKILL)
        wait_until(lambda: scrape(name, connector=tag) in (None, 0), 60, "the dead task's figures to vanish")
        worker.wait_for(tag, "RUNNING")
        wait_until(
            lambda: scrape("kafka_connect_worker_metrics_task_startup_success_total") == started + 1, 20, "the new start to be counted"
        )
    finally:
        worker.delete(tag)


def test_metrics_may_have_a_listener_of_their_own_or_none(make_worker: Callable[..., Worker]) -> None:
    port = free_port()
    apart = make_worker(properties={"metrics.listeners": f"http://127.0.0.1:{port}"})
    assert "kafka_connect_worker_metrics_connector_count 0.0" in Scrape(f"http://127.0.0.1:{port}").text()
    for url in (f"{apart.url}/metrics", f"http://127.0.0.1:{port}/connectors"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url, timeout=60)
    apart.stop()
    assert re.search(rf"INFO Metrics: http://127\.0\.0\.1:{port}/metrics ", apart.log.read_text())


def test_a_level_set_by_rest_reaches_running_tasks(worker: Worker, postgres: PostgresAddress, database: str, tag: str) -> None:
    """The task says at INFO that it streams; told to be quiet, it says nothing of a second time."""
    scrape = Scrape(worker.url)
    slot = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
    worker.create(tag, postgres_source(postgres, database, tag))
    try:
        scrape.until(1, "debezium_metrics_Connected", connector=tag)
        worker.request("PUT", "/admin/loggers/io.debezium", {"level": "OFF"})
        with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
            (first,) = session.execute(slot, (f"slot_{tag}",)).fetchone()
            session.execute("SELECT pg_terminate_backend(%s)", (first,))
            wait_until(lambda: session.execute(slot, (f"slot_{tag}",)).fetchone()[0] not in (None, first), 30, "the source to come back")
        scrape.until(1, "debezium_metrics_Connected", connector=tag)
        said = worker.log.read_text()
        assert said.count(f"Streaming from slot 'slot_{tag}'") == 1
        assert f"[{tag}|task-0] Streaming from slot" in said
    finally:
        worker.request("PUT", "/admin/loggers/io.debezium", {"level": "INFO"})
        worker.delete(tag)
