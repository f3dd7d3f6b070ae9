"""Offsets that a client alters or resets on a worker with exactly-once sources: in transactions that nothing else can follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from connect_py.errors import FatalTaskError
from connect_py.kafka.client import transactional_producer_properties
from connect_py.kafka.transactions import TransactionalProducer
from offsets.cache import offset_records
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services

ENABLED = {"exactly.once.source.support": "enabled", "offset.storage.partitions": "1"}


class Zombie:
    """A task that was cut off: its producer is initialised and, if it `sends`, has offsets in an open transaction."""

    def __init__(self, worker: Worker, connector: str, offset: tuple[Any, Any], *, sends: bool) -> None:
        self._producer = TransactionalProducer(transactional_producer_properties(worker.properties, connector, 0))
        self._topic = worker.topic("offset")
        ((self._key, self._value),) = offset_records(connector, [offset])
        self._producer.begin()
        if sends:
            self._producer.produce(self._topic, self._value, self._key)
            assert self._producer.flush(30) == 0

    def commit(self) -> None:
        """Come back."""
        self._producer.produce(self._topic, self._value, self._key)
        self._producer.commit(float("inf"))


def test_offsets_are_altered_and_reset_in_transactions_that_end_those_of_a_zombie(
    make_worker: Callable[..., Worker], kafka: Kafka, tmp_path: Path, tag: str
) -> None:
    source = tmp_path / "lines.txt"
    source.write_text("one\ntwo\nthree\n")
    worker = make_worker(properties=ENABLED)
    path, partition = f"/connectors/{tag}/offsets", {"filename": str(source)}

    def offsets() -> Any:
        return worker.request("GET", path)["offsets"]

    def alter(position: int) -> None:
        worker.request("PATCH", path, {"offsets": [{"partition": partition, "offset": {"position": position}}]})
        assert offsets() == [{"partition": partition, "offset": {"position": position}}]

    worker.create(tag, {"connector.class": "FileStreamSource", "file": str(source), "topic": tag, "batch.size": "100"})
    wait_until(lambda: [each["offset"]["position"] for each in offsets()] == [14], 60, "the file's end")
    worker.request("PUT", f"/connectors/{tag}/stop")
    wait_until(lambda: worker.status(tag)["tasks"] == [], 60, "the stop")

    # the round of fencing is done once for a set of tasks; the second and third zombie are later than it
    for change, sends in ((lambda: alter(4), True), (lambda: alter(8), True), (lambda: worker.request("DELETE", path), False)):
        zombie = Zombie(worker, tag, (partition, {"position": 999}), sends=sends)
        change()
        with pytest.raises(FatalTaskError, match="Another producer has this transactional id"):
            zombie.commit()
    assert offsets() == []

    alter(8)
    worker.request("PUT", f"/connectors/{tag}/resume")
    worker.wait_for(tag, "RUNNING")
    wait_until(lambda: [each["offset"]["position"] for each in offsets()] == [14], 60, "the file's end")
    assert [record.value() for record in kafka.read(tag)][3:] == [b'{"schema":{"type":"string","optional":false},"payload":"three"}']
    worker.delete(tag)
