"""A source connector whose offsets are in a topic of its own (``offsets.storage.topic``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import RefusedError, Worker
from connect_py.kafka.admin import KafkaAdmin
from tests.fix_kafka import Kafka
from tests.folding import payload
from tests.waiting import eventually

pytestmark = pytest.mark.services


@pytest.fixture
def admin(kafka: Kafka) -> Iterator[KafkaAdmin]:
    made = KafkaAdmin({"bootstrap.servers": kafka.bootstrap})
    yield made
    made.close()


def lines(kafka: Kafka, topic: str) -> list[Any]:
    return [payload(record.value()) for record in kafka.read(topic)]


def positions(worker: Worker, name: str) -> list[int]:
    return [each["offset"]["position"] for each in worker.request("GET", f"/connectors/{name}/offsets")["offsets"]]


@pytest.mark.parametrize("support", [pytest.param("disabled", marks=pytest.mark.long), "enabled"])
def test_a_source_resumes_where_the_workers_topic_says_and_then_keeps_its_offsets_in_its_own(
    make_worker: Callable[..., Worker], kafka: Kafka, admin: KafkaAdmin, tmp_path: Path, tag: str, support: str
) -> None:
    source, own = tmp_path / "lines.txt", f"own-{tag}"
    source.write_text("one\ntwo\n")
    worker = make_worker(properties={"exactly.once.source.support": support, "offset.storage.partitions": "2"})
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": tag}
    worker.create(tag, config)
    eventually(lambda: positions(worker, tag) == [8], "the offset in the worker's topic")

    before = set(worker.children())
    worker.request("PUT", f"/connectors/{tag}/config", {**config, "offsets.storage.topic": own})
    eventually(lambda: own in admin.describe_topics([own]), "its own topic")
    eventually(lambda: before.isdisjoint(worker.children()), "the end of the task that has the worker's")
    with source.open("a") as file:
        file.write("three\n")
    eventually(lambda: positions(worker, tag) == [14], "the offset in its own topic")
    assert lines(kafka, tag) == ["one", "two", "three"], "it resumed"
    assert {record.value() for record in kafka.read(own)} == {b'{"position":14}'}, "only what was stored since"
    eventually(lambda: kafka.read(worker.topic("offset"))[-1].value() == b'{"position":14}', "the copy")

    worker.kill()
    worker.restart()
    worker.wait_for(tag, "RUNNING")
    worker.request("PUT", f"/connectors/{tag}/stop")
    eventually(lambda: worker.status(tag)["tasks"] == [], "the stop")
    assert positions(worker, tag) == [14]
    partition = {"filename": str(source)}
    worker.request("PATCH", f"/connectors/{tag}/offsets", {"offsets": [{"partition": partition, "offset": {"position": 8}}]})
    assert positions(worker, tag) == [8]
    assert kafka.read(own)[-1].value() == kafka.read(worker.topic("offset"))[-1].value() == b'{"position":8}'
    worker.request("DELETE", f"/connectors/{tag}/offsets")
    assert positions(worker, tag) == [], "none comes back from the worker's topic"
    assert kafka.read(own)[-1].value() is None
    worker.request("PUT", f"/connectors/{tag}/resume")
    eventually(lambda: positions(worker, tag) == [14], "the file from its beginning")
    assert lines(kafka, tag) == ["one", "two", "three"] * 2
    worker.delete(tag)


def is_failed(worker: Worker, name: str) -> bool:
    try:
        return bool(worker.status(name)["connector"]["state"] == "FAILED")
    except RefusedError:  # right after the request that made it, it has no status yet
        return False


def test_a_connector_whose_topic_forgets_fails_itself_until_it_names_a_better_one(
    worker: Worker, admin: KafkaAdmin, tmp_path: Path, tag: str
) -> None:
    admin.create_topic(f"own-{tag}", 1, 1, {})
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines.txt"), "topic": tag}
    worker.request("POST", "/connectors", {"name": tag, "config": {**config, "offsets.storage.topic": f"own-{tag}"}})
    eventually(lambda: is_failed(worker, tag), "the refusal")
    shown = worker.status(tag)
    assert shown["tasks"] == []
    assert (
        f"Topic 'own-{tag}' supplied via the 'offset.storage.topic' property is required to have 'cleanup.policy=compact'"
        in shown["connector"]["trace"]
    )
    worker.request("PUT", f"/connectors/{tag}/config", config)
    worker.wait_for(tag, "RUNNING")
    assert worker.status(tag)["connector"]["state"] == "RUNNING"
    worker.delete(tag)
