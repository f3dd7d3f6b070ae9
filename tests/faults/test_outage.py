"""A worker whose broker goes away: its tasks wait and go on, nothing is lost or sent twice, and the worker can be stopped meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note
from tests.fix_kafka import Kafka
from tests.killable_broker import KillableBroker
from tests.waiting import wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    found = KillableBroker(tmp_path / "kafka")
    yield found
    found.stop()


def values(kafka: Kafka, topic: str) -> list[str]:
    try:
        return [json.loads(message.value())["payload"] for message in kafka.read(topic)]
    except KafkaException:  # a broker that has just come back leads no partition yet
        return []


def test_a_task_waits_for_its_broker_and_a_worker_stops_in_order_without_one(broker: KillableBroker, tmp_path: Path, tag: str) -> None:
    kafka = Kafka(broker.bootstrap)
    worker = Worker(tmp_path / "worker", broker.bootstrap)
    try:
        lines = tmp_path / "lines.txt"
        lines.write_text("one\n")
        worker.create(tag, {"connector.class": "FileStreamSource", "file": str(lines), "topic": tag})
        wait_until(lambda: values(kafka, tag) == ["one"], 60, "the first line")
        broker.kill()
        note(Fault.KILLED_BROKER, "one worker")
        with lines.open("a") as file:
            file.write("two\n")
        wait_until(lambda: "Connection refused" in worker.log.read_text(), 60, "a line about the broker")
        with lines.open("a") as file:
            file.write("three\n")
        broker.bring_back()
        wait_until(lambda: values(kafka, tag) == ["one", "two", "three"], 60, "the lines written meanwhile, once each")
        assert [task["state"] for task in worker.status(tag)["tasks"]] == ["RUNNING"]
        wait_until(lambda: "answers again after" in worker.log.read_text(), 30, "a line that says that the broker is back")

        broker.kill()
        note(Fault.KILLED_BROKER, "one worker")
    finally:
        worker.stop()
    said = worker.log.read_text()
    assert re.search(r" INFO Kafka Connect stopped \(connect_py\.worker:\d+\)\n$", said)
    assert "The last states could not be written" in said
    assert "ERROR" not in said
