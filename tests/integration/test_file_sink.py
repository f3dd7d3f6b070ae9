"""FileStreamSink in a worker over a real broker: lines and offsets, crashes, rebalances, records that cannot be read."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.waiting import let_time_pass, wait_until

pytestmark = pytest.mark.services

TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"

#: A member that died is missed after its session; six seconds are the least that a broker allows.
SHORT_SESSION = {"consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "1000"}


def file_sink(path: Path, topics: str, tasks: int = 1, **more: str) -> dict[str, str]:
    config = {"connector.class": "FileStreamSink", "file": str(path), "topics": topics, "tasks.max": str(tasks)}
    return config | {"key.converter": TEXT, "value.converter": TEXT} | more


def create_topic(kafka: Kafka, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(20)


def produce(kafka: Kafka, topic: str, values: Sequence[str], partitions: int = 1, headers: Sequence[tuple[str, bytes]] = ()) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), key=b"k", partition=number % partitions, headers=list(headers), timestamp=1_700_000_000_000)
    assert producer.flush(20) == 0


def contents(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def await_lines(path: Path, expected: Sequence[str], seconds: float = 60) -> None:
    """Every line is there; one that was written again counts once."""
    wait_until(lambda: set(contents(path)) >= set(expected), seconds, f"{len(expected)} lines")
    assert set(contents(path)) == set(expected)


def offsets(worker: Worker, name: str) -> dict[int, int]:
    found: list[dict[str, Any]] = worker.request("GET", f"/connectors/{name}/offsets")["offsets"]
    return {entry["partition"]["kafka_partition"]: entry["offset"]["kafka_offset"] for entry in found}


def await_offsets(worker: Worker, name: str, expected: Mapping[int, int]) -> None:
    wait_until(lambda: offsets(worker, name) == expected, 60, f"offsets {expected}")


def test_a_pause_keeps_lines_back_and_a_stop_commits_what_is_written(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    create_topic(kafka, tag)
    produce(kafka, tag, ["a", "b"])
    worker.create(tag, file_sink(out, tag))
    try:
        await_lines(out, ["a", "b"])
        used = {tag: {"topics": [tag]}}
        wait_until(lambda: worker.request("GET", f"/connectors/{tag}/topics") == used, 60, "the topic in use")
        worker.request("PUT", f"/connectors/{tag}/pause")
        worker.wait_for(tag, "PAUSED")
        produce(kafka, tag, ["c"])
        await_offsets(worker, tag, {0: 2})
        assert contents(out) == ["a", "b"]
        worker.request("PUT", f"/connectors/{tag}/resume")
        worker.wait_for(tag, "RUNNING")
        await_lines(out, ["a", "b", "c"])
        worker.request("PUT", f"/connectors/{tag}/stop")
        wait_until(lambda: worker.status(tag)["connector"]["state"] == "STOPPED" and not worker.status(tag)["tasks"], 60, "the stop")
        assert offsets(worker, tag) == {0: 3}
        assert contents(out) == ["a", "b", "c"], "nothing was lost and nothing written twice"
    finally:
        worker.delete(tag)


def test_a_task_that_is_killed_loses_no_record(make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    worker = make_worker()
    create_topic(kafka, tag)
    first, second, third = ([f"{part}-{n}" for n in range(200)] for part in "abc")
    produce(kafka, tag, first)
    worker.create(tag, file_sink(out, tag, **SHORT_SESSION))
    await_lines(out, first)
    await_offsets(worker, tag, {0: 200})
    produce(kafka, tag, second)
    [task] = worker.children()
    os.kill(task, signal.SIGKILL)
    produce(kafka, tag, third)
    await_lines(out, [*first, *second, *third], 60)
    worker.wait_for(tag, "RUNNING")
    await_offsets(worker, tag, {0: 600})
    assert contents(out).count("a-0") == 1, "what was committed is not written again"


def test_partitions_of_a_task_that_dies_or_comes_are_shared_anew(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    worker = make_worker()
    create_topic(kafka, tag, 4)
    worker.create(tag, file_sink(out, tag, **SHORT_SESSION))
    first = [f"a-{n}" for n in range(40)]
    produce(kafka, tag, first, 4)
    await_lines(out, first)
    worker.request("PUT", f"/connectors/{tag}/config", file_sink(out, tag, 2, **SHORT_SESSION))
    worker.wait_for(tag, "RUNNING", tasks=2)
    second = [f"b-{n}" for n in range(40)]
    produce(kafka, tag, second, 4)
    await_lines(out, first + second)
    os.kill(worker.children()[0], signal.SIGKILL)
    third = [f"c-{n}" for n in range(40)]
    produce(kafka, tag, third, 4)
    await_lines(out, first + second + third, 60)
    await_offsets(worker, tag, dict.fromkeys(range(4), 30))
    assert sorted(line for line in contents(out) if line[0] == "a") == sorted(first), "a clean rebalance writes nothing twice"


def test_a_record_that_cannot_be_read_fails_the_task_and_stays_in_the_topic(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    create_topic(kafka, tag)
    produce(kafka, tag, ['{"n":1}'])
    json_values = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    worker.create(tag, file_sink(out, tag, **json_values))
    try:
        await_lines(out, ["{n=1}"])
        produce(kafka, tag, ["{broken", '{"n":2}'])
        [task] = worker.wait_for(tag, "FAILED")["tasks"]
        assert task["trace"].startswith(
            "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n\tStage VALUE_CONVERTER, class "
        )
        await_offsets(worker, tag, {0: 1})
        worker.request("PUT", f"/connectors/{tag}/config", file_sink(out, tag, **json_values, **{"errors.tolerance": "all"}))
        await_lines(out, ["{n=1}", "{n=2}"])
        await_offsets(worker, tag, {0: 3})
    finally:
        worker.delete(tag)


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_the_dead_letter_queue_gets_the_record_as_it_was(tolerance: str, worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out, dead = tmp_path / "out", f"{tag}-dead"
    create_topic(kafka, tag)
    produce(kafka, tag, ["{broken"], headers=[("own", b"header")])
    queue = "errors.deadletterqueue"
    errors = {"errors.tolerance": tolerance, f"{queue}.topic.name": dead}
    errors |= {f"{queue}.topic.replication.factor": "1", f"{queue}.context.headers.enable": "true"}
    worker.create(tag, file_sink(out, tag, **{"value.converter": JSON}, **errors)) if tolerance == "all" else worker.request(
        "POST", "/connectors", {"name": tag, "config": file_sink(out, tag, **{"value.converter": JSON}, **errors)}
    )
    try:
        wait_until(lambda: kafka.count(dead) == 1, 30, "the dead letter")
        worker.wait_for(tag, "FAILED" if tolerance == "none" else "RUNNING")
        if tolerance == "all":
            await_offsets(worker, tag, {0: 1})
        [letter] = kafka.read(dead)
        assert (letter.key(), letter.value(), letter.timestamp()[1]) == (b"k", b"{broken", 1_700_000_000_000)
        headers = letter.headers()
        assert headers[:9] == [
            ("own", b"header"),
            ("__connect.errors.topic", tag.encode()),
            ("__connect.errors.partition", b"0"),
            ("__connect.errors.offset", b"0"),
            ("__connect.errors.connector.name", tag.encode()),
            ("__connect.errors.task.id", b"0"),
            ("__connect.errors.stage", b"VALUE_CONVERTER"),
            ("__connect.errors.class.name", JSON.encode()),
            ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        ]
        assert headers[9] == (
            "__connect.errors.exception.message",
            b"Converting byte[] to Kafka Connect data failed due to serialization error: ",
        )
        assert headers[10][0] == "__connect.errors.exception.stacktrace" and len(headers) == 11
    finally:
        worker.delete(tag)


def test_topics_that_match_a_java_regex_are_found_while_the_task_runs(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    create_topic(kafka, f"{tag}.1")
    create_topic(kafka, f"{tag}.1.not")
    produce(kafka, f"{tag}.1", ["one"])
    produce(kafka, f"{tag}.1.not", ["no"])
    config = file_sink(out, "", **{"topics.regex": rf"{tag}\.\d+", "consumer.override.metadata.max.age.ms": "1000"})
    del config["topics"]
    worker.create(tag, config)
    try:
        await_lines(out, ["one"])
        create_topic(kafka, f"{tag}.22")
        produce(kafka, f"{tag}.22", ["two"])
        await_lines(out, ["one", "two"])
    finally:
        worker.delete(tag)


def test_a_dead_letter_queue_that_cannot_be_made_fails_the_task_with_what_to_do(
    worker: Worker, kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    create_topic(kafka, tag)
    config = file_sink(tmp_path / "out", tag, **{"errors.deadletterqueue.topic.name": f"{tag}-dead"})
    worker.request("POST", "/connectors", {"name": tag, "config": config})
    try:
        [task] = worker.wait_for(tag, "FAILED")["tasks"]
        assert f"Could not initialize dead letter queue with topic={tag}-dead" in task["trace"]
        assert "errors.deadletterqueue.topic.replication.factor" in task["trace"]
    finally:
        worker.delete(tag)


def test_an_idle_sink_task_costs_almost_nothing(make_worker: Callable[..., Worker], kafka: Kafka, tag: str, tmp_path: Path) -> None:
    worker = make_worker()
    create_topic(kafka, tag)
    worker.create(tag, file_sink(tmp_path / "out", tag))
    await_offsets(worker, tag, {})
    [task] = worker.children()

    def used() -> int:
        fields = Path(f"/proc/{task}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    before = used()
    let_time_pass(5, "what an idle task uses is its subject")
    assert (used() - before) / os.sysconf("SC_CLK_TCK") / 5 < 0.05, json.dumps({"before": before, "after": used()})


def test_a_topic_of_several_that_is_made_late_is_read_within_seconds(worker: Worker, kafka: Kafka, tag: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    create_topic(kafka, f"{tag}.1")
    produce(kafka, f"{tag}.1", ["one"])
    worker.create(tag, file_sink(out, f"{tag}.1,{tag}.2", **{"consumer.override.allow.auto.create.topics": "false"}))
    try:
        await_lines(out, ["one"])
        create_topic(kafka, f"{tag}.2")
        produce(kafka, f"{tag}.2", ["two"])
        await_lines(out, ["one", "two"])
    finally:
        worker.delete(tag)
