"""What every status store does. Reports show up when they have been read back, so each test refreshes before it looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_py.api.storage import Status
from offsets.local_stores import MemoryStatusStore
from offsets.status_store import KafkaStatusStore
from tests.fix_kafka import Kafka

Store = MemoryStatusStore | KafkaStatusStore


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest, tag: str) -> Iterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStatusStore()
    else:
        kafka: Kafka = request.getfixturevalue("kafka")
        worker = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": tag,
            "status.storage.topic": f"{tag}-status",
            "status.storage.replication.factor": "1",
        }
        made = KafkaStatusStore(worker)
    made.start()
    yield made
    made.stop()


def settle(store: Store) -> None:
    store.flush(10)
    store.refresh(10)


def test_a_new_store_knows_nothing(store: Store) -> None:
    assert (store.connector("c"), store.task("c", 0), store.tasks("c"), list(store.topics("c"))) == (None, None, {}, [])


def test_the_last_report_counts(store: Store) -> None:
    store.put_connector("c", Status("RUNNING", "w:1", 1, version="2.0"))
    store.put_task("c", 1, Status("RUNNING", "w:1", 1))
    store.put_task("c", 0, Status("RUNNING", "w:1", 1))
    store.put_task("c", 1, Status("FAILED", "w:1", 1, trace="é\n\tat x"))
    settle(store)
    assert store.connector("c") == Status("RUNNING", "w:1", 1, version="2.0")
    assert store.tasks("c") == {0: Status("RUNNING", "w:1", 1), 1: Status("FAILED", "w:1", 1, trace="é\n\tat x")}
    assert list(store.tasks("c")) == [0, 1]
    assert store.task("c", 1) == Status("FAILED", "w:1", 1, trace="é\n\tat x")
    assert store.connectors() == ["c"]


def test_connectors_with_dashes_are_kept_apart(store: Store) -> None:
    store.put_task("a", 1, Status("RUNNING", "w:1"))
    store.put_task("a-1", 1, Status("PAUSED", "w:1"))
    settle(store)
    assert (store.tasks("a"), store.tasks("a-1")) == ({1: Status("RUNNING", "w:1")}, {1: Status("PAUSED", "w:1")})


def test_a_safe_report_gives_way_to_a_newer_one_of_another_worker(store: Store) -> None:
    store.put_connector("c", Status("RUNNING", "new:1", 5))
    settle(store)
    store.put_connector("c", Status("FAILED", "old:1", 4), safe=True)
    settle(store)
    assert store.connector("c") == Status("RUNNING", "new:1", 5)
    store.put_connector("c", Status("FAILED", "new:1", 4), safe=True)
    settle(store)
    assert store.connector("c") == Status("FAILED", "new:1", 4)


def test_unassigned_of_an_older_generation_does_not_hide_a_running_task(store: Store) -> None:
    store.put_task("c", 0, Status("RUNNING", "new:1", 5))
    store.put_task("c", 0, Status("UNASSIGNED", "old:1", 5))
    settle(store)
    assert store.task("c", 0) == Status("RUNNING", "new:1", 5)
    store.put_task("c", 0, Status("UNASSIGNED", "old:1", 6))
    settle(store)
    assert store.task("c", 0) == Status("UNASSIGNED", "old:1", 6)


def test_deleted_states_are_gone(store: Store) -> None:
    store.put_connector("c", Status("RUNNING", "w:1"))
    store.put_task("c", 0, Status("RUNNING", "w:1"))
    store.put_task("c", 1, Status("RUNNING", "w:1"))
    store.delete_task("c", 1)
    settle(store)
    assert list(store.tasks("c")) == [0]
    store.delete_task("c", 0)
    store.delete_connector("c")
    settle(store)
    assert (store.connector("c"), store.tasks("c")) == (None, {})


def test_a_destroyed_one_is_gone(store: Store) -> None:
    store.put_connector("c", Status("RUNNING", "w:1"))
    store.put_connector("c", Status("DESTROYED", "w:1"))
    settle(store)
    assert store.connector("c") is None


def test_topics_are_known_until_they_are_reset(store: Store) -> None:
    for topic in ("t1", "t.2", "t1"):
        store.put_topic("c", 0, topic)
    store.put_topic("d", 0, "t1")
    settle(store)
    assert sorted(store.topics("c")) == ["t.2", "t1"]
    store.delete_topics("c")
    settle(store)
    assert (list(store.topics("c")), list(store.topics("d"))) == ([], ["t1"])
    store.put_topic("c", 0, "t1")
    settle(store)
    assert list(store.topics("c")) == ["t1"]
