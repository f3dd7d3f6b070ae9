"""What every store of source offsets does, and every writer that a task has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_py.api.storage import OffsetStore, OffsetWriter
from connect_py.errors import DataError
from offsets.local_stores import DirectOffsetWriter, FileOffsetStore, MemoryOffsetStore
from offsets.offset_store import KafkaOffsetStore, TaskOffsetWriter
from tests.fix_kafka import Kafka


@dataclass
class Place:
    """A store, its writer's maker and, where it outlives its process, a second look at it."""

    store: OffsetStore
    writer: Callable[[str], OffsetWriter]
    again: Callable[[], OffsetStore] | None
    config: dict[str, str]

    def put(self, connector: str, offsets: Any) -> None:
        self.store.put(connector, offsets, self.config)

    def contents(self, connector: str, store: OffsetStore | None = None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        found = (store or self.store).read(connector, self.config, 10)
        return sorted(((dict(partition), dict(offset)) for partition, offset in found), key=repr)


#: On a broker: plainly, in transactions, and both with a topic of the connector's own.
KAFKA = ("kafka", "transactions", "own topic", "own topic, transactions")


@pytest.fixture(params=["memory", "file", *(pytest.param(kind, marks=pytest.mark.services) for kind in KAFKA)])
def place(request: pytest.FixtureRequest, tag: str, tmp_path: Path) -> Iterator[Place]:
    opened: list[Any] = []

    def keep(thing: Any) -> Any:
        opened.append(thing)
        return thing

    if request.param in KAFKA:
        kafka: Kafka = request.getfixturevalue("kafka")
        worker = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": tag,
            "offset.storage.topic": f"{tag}-offsets",
            "offset.storage.partitions": "3",
            "offset.storage.replication.factor": "1",
            "exactly.once.source.support": "enabled" if "transactions" in request.param else "disabled",
        }
        config = {"offsets.storage.topic": f"{tag}-own"} if "own" in request.param else {}
        found = Place(
            keep(KafkaOffsetStore(worker)),
            lambda connector: TaskOffsetWriter(worker, connector, 0, config),
            lambda: keep(KafkaOffsetStore(worker)),
            config,
        )
    else:
        worker = {"offset.storage.file.filename": str(tmp_path / "offsets")}
        store = MemoryOffsetStore() if request.param == "memory" else FileOffsetStore(worker)
        again = None if request.param == "memory" else lambda: FileOffsetStore(worker)
        found = Place(store, lambda connector: DirectOffsetWriter(store, connector), again, {})
    found.store.start()
    if found.config:
        assert found.contents("c") == []  # creates the topic, as a worker does that reads before a task writes
    yield found
    for thing in opened:
        thing.stop()


def test_what_was_put_is_found_by_its_connector(place: Place) -> None:
    place.put("c", [({"file": "a"}, {"position": 1}), ({"file": "b"}, {"position": 2})])
    place.put("d", [({"file": "a"}, {"position": 3})])
    assert place.contents("c") == [({"file": "a"}, {"position": 1}), ({"file": "b"}, {"position": 2})]
    assert place.contents("d") == [({"file": "a"}, {"position": 3})]
    assert place.contents("e") == []


def test_the_last_offset_counts_and_none_forgets(place: Place) -> None:
    place.put("c", [({"file": "a"}, {"position": 1}), ({"file": "a"}, {"position": 2})])
    assert place.contents("c") == [({"file": "a"}, {"position": 2})]
    place.put("c", [({"file": "a"}, None)])
    assert place.contents("c") == []
    place.put("c", [])


def test_a_map_in_another_order_is_another_partition(place: Place) -> None:
    place.put("c", [({"a": 1, "b": 2}, {"position": 1}), ({"b": 2, "a": 1}, {"position": 2})])
    assert len(place.contents("c")) == 2


def test_primitives_come_back_as_they_were(place: Place) -> None:
    offset = {"n": None, "t": True, "i": 2**63 - 1, "f": 1e10, "one": 1.0, "s": "é\t\n😀\x01"}
    place.put("c", [({"server": "s"}, offset)])
    ((_, found),) = place.contents("c")
    assert found == offset
    assert [type(value) for value in found.values()] == [type(value) for value in offset.values()]


def test_what_cannot_be_kept_is_refused_and_nothing_is_written(place: Place) -> None:
    wrong: Any = {"x": {1, 2}}
    with pytest.raises(DataError):
        place.put("c", [({"file": "a"}, {"position": 1}), ({"file": "b"}, wrong)])
    assert place.contents("c") == []


def test_offsets_outlive_their_store(place: Place) -> None:
    if place.again is None:
        pytest.skip("memory forgets")
    place.put("c", [({"file": "a\tb\n"}, {"position": 1}), ({"file": "gone"}, {"position": 1}), ({"file": "gone"}, None)])
    other = place.again()
    other.start()
    assert place.contents("c", other) == [({"file": "a\tb\n"}, {"position": 1})]


def test_a_writer_says_when_each_of_its_writes_is_done_and_keeps_their_order(place: Place) -> None:
    writer = place.writer("c")
    finished: list[tuple[int, Exception | None]] = []
    for number in range(50):
        writer.write(
            [({"file": "a"}, {"position": number}), ({"file": "b"}, {"position": -number})],
            lambda error, number=number: finished.append((number, error)),
        )
    assert finished == [], "done is called from serve only"
    deadline = time.monotonic() + 60
    while len(finished) < 50:
        assert time.monotonic() < deadline
        writer.serve(0.05)
    assert sorted(finished) == [(number, None) for number in range(50)]
    assert place.contents("c") == [({"file": "a"}, {"position": 49}), ({"file": "b"}, {"position": -49})]
    writer.close(5)


def test_closing_a_writer_finishes_what_is_under_way(place: Place) -> None:
    writer = place.writer("c")
    finished: list[Exception | None] = []
    writer.write([({"file": "a"}, {"position": 1})], finished.append)
    writer.close(10)
    assert finished == [None]
    assert place.contents("c") == [({"file": "a"}, {"position": 1})]
