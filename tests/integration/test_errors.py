"""Failed records and failed tasks in a worker over a real broker: dead letters of a source, restarts of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.integration.test_file_sink import await_lines, create_topic, file_sink, produce
from tests.waiting import wait_until

pytestmark = pytest.mark.services

CAST = {"transforms": "c", "transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.c.spec": "int32"}


def test_a_sources_dead_letter_holds_the_record_and_where_it_is_and_the_offset_advances(
    worker: Worker, kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    path, dead = tmp_path / "in", f"{tag}-dead"
    path.write_text("12\ntwo\n" + "x" * 3000 + "\n")
    queue = {"topic.name": dead, "topic.replication.factor": "1", "context.headers.enable": "true"}
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(path),
        "topic": tag,
        "errors.tolerance": "all",
        **{f"errors.deadletterqueue.{name}": value for name, value in queue.items()},
        **CAST,
    }
    worker.create(tag, config)
    try:
        wait_until(lambda: kafka.count(dead) == 2 and kafka.count(tag) == 1, 30, "two letters and a record")
        assert [message.value() for message in kafka.read(tag)] == [b'{"schema":{"type":"int32","optional":false},"payload":12}']
        letter = kafka.read(dead)[0]
        assert letter.value() == b'{"schema":{"type":"string","optional":false},"payload":"two"}'
        headers = dict(letter.headers())
        assert headers["__connect.errors.stage"] == b"TRANSFORMATION"
        assert headers["__connect.errors.exception.message"] == b"Value (two) was out of range for requested data type"
        assert headers["__connect.errors.source.offset"] == b'{"position":7}'
        wait_until(
            lambda: [entry["offset"] for entry in worker.request("GET", f"/connectors/{tag}/offsets")["offsets"]] == [{"position": 3008}],
            20,
            "the offset behind the last letter",
        )
        assert worker.request("GET", f"/connectors/{tag}/topics") == {tag: {"topics": [tag]}}
    finally:
        worker.delete(tag)


def test_a_record_that_kafka_refuses_leaves_a_letter_without_its_value(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    path, dead = tmp_path / "in", f"{tag}-dead"
    path.write_text("x" * 3000 + "\nshort\n")
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(path),
        "topic": tag,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "producer.override.max.request.size": "2000",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    worker.create(tag, config)
    try:
        wait_until(lambda: kafka.count(dead) == 1 and kafka.count(tag) == 1, 30, "a letter and a record")
        [letter] = kafka.read(dead)
        assert (letter.value(), letter.headers()) == (None, [("__connect.errors.value.bytes", b"3000")])
        assert [message.value() for message in kafka.read(tag)] == [b"short"]
    finally:
        worker.delete(tag)


def test_a_failed_task_runs_again_by_itself_once_its_cause_is_gone(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "later" / "out"
    create_topic(kafka, tag)
    produce(kafka, tag, ["a"])
    policy = {"task.restart.policy": "on-failure", "task.restart.delay.ms": "200", "task.restart.delay.max.ms": "500"}
    worker.request("PUT", f"/connectors/{tag}/config", file_sink(out, tag, **policy))
    try:
        worker.wait_for(tag, "FAILED")
        wait_until(lambda: len(history(worker, tag)) >= 2, 30, "a restart that fails again")
        assert worker.status(tag)["tasks"][0]["restarts"]["attempts"] >= 2
        out.parent.mkdir()
        worker.wait_for(tag, "RUNNING")
        await_lines(out, ["a"])
        assert all(f"Couldn't find or create file '{out}'" in entry["failure"] for entry in history(worker, tag))
    finally:
        worker.delete(tag)


def history(worker: Worker, name: str) -> list[dict[str, str]]:
    tasks = worker.status(name)["tasks"]
    return list(tasks[0].get("restarts", {}).get("history", [])) if tasks else []
