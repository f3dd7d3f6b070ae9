"""What every status store does. Reports show up when they have been read back, so each test refreshes before it looks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from connect_py.api.storage import Status
from offsets.local_stores import MemoryStatusStore
from offsets.status_store import ConnectorKey, KafkaStatusStore, OwnReports, TaskKey, encode_status
from tests.fix_kafka import Kafka
from tests.waiting import eventually

Store = MemoryStatusStore | KafkaStatusStore


def kafka_store(kafka: Kafka, tag: str) -> KafkaStatusStore:
    properties = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": tag,
        "status.storage.topic": f"{tag}-status",
        "status.storage.replication.factor": "1",
    }
    return KafkaStatusStore(properties)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest, tag: str) -> Iterator[Store]:
    made: Store = MemoryStatusStore() if request.param == "memory" else kafka_store(request.getfixturevalue("kafka"), tag)
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


@pytest.mark.services
def test_a_worker_that_runs_a_task_answers_an_old_report_of_another(kafka: Kafka, tag: str) -> None:
    owner, other = kafka_store(kafka, tag), kafka_store(kafka, tag)
    for store in (owner, other):
        store.start()
    try:
        running = Status("RUNNING", "new:1", 5)
        owner.put_task("c", 0, running)
        settle(owner)
        other.put_task("c", 0, Status("RESTARTING", "old:1", 4))
        other.flush(10)
        eventually(lambda: states(kafka, tag) == ["RUNNING", "RESTARTING", "RUNNING"], lambda: f"the reports are {states(kafka, tag)}")
        settle(other)
        assert other.task("c", 0) == running
    finally:
        for store in (owner, other):
            store.stop()


@pytest.mark.services
def test_a_worker_is_told_of_its_own_task_that_another_forgets_by_itself_or_with_its_connector(kafka: Kafka, tag: str) -> None:
    owner, other = kafka_store(kafka, tag), kafka_store(kafka, tag)
    for store in (owner, other):
        store.start()
    try:
        told: list[tuple[str, int | None]] = []
        owner.on_forgotten(lambda connector, task: told.append((connector, task)))
        for task in (0, 1, 2):
            owner.put_task("c", task, Status("RUNNING", "new:1", 5))
        other.put_task("c", 3, Status("RUNNING", "other:1", 5))
        other.put_connector("d", Status("RUNNING", "other:1", 5))
        owner.put_task("d", 0, Status("RUNNING", "new:1", 5))
        owner.put_connector("e", Status("RUNNING", "new:1", 5))
        settle(owner)
        settle(other)
        owner.delete_task("c", 1)
        for task in (0, 3):
            other.delete_task("c", task)
        other.delete_connector("d")
        owner.delete_connector("e")
        settle(other)
        settle(owner)
        assert (told, list(owner.tasks("c")), list(owner.tasks("d"))) == ([("c", 0), ("d", None)], [2], [])
    finally:
        for store in (owner, other):
            store.stop()


def states(kafka: Kafka, tag: str) -> list[str]:
    return [json.loads(message.value() or b"{}")["state"] for message in kafka.read(f"{tag}-status")]


KEY = TaskKey("c", 0)


def record(state: str, worker: str, generation: int) -> bytes:
    value = encode_status(Status(state, worker, generation))
    assert value is not None
    return value


@pytest.mark.parametrize(
    ("records", "is_answered"),
    [
        ([], False),
        ([record("RUNNING", "new:1", 5)], False),
        ([record("RESTARTING", "old:1", 4), record("RUNNING", "new:1", 5)], False),
        ([record("RUNNING", "new:1", 5), record("RESTARTING", "old:1", 4)], True),
        ([record("RUNNING", "new:1", 5), record("UNASSIGNED", "new:1", 4)], True),
        ([record("RUNNING", "new:1", 5), record("RUNNING", "newer:1", 6)], False),
        ([record("RUNNING", "new:1", 5), record("RUNNING", "newer:1", 6), record("RESTARTING", "old:1", 4)], False),
        ([record("RUNNING", "new:1", 5), None, record("RESTARTING", "old:1", 4)], False),
    ],
)
def test_only_what_is_older_and_comes_after_this_workers_report_is_answered(records: list[bytes | None], is_answered: bool) -> None:
    reports = OwnReports()
    reports.put(KEY, Status("RUNNING", "new:1", 5))
    answers = [reports.read(KEY, value) for value in records]
    assert any(answers) == is_answered
    assert answers[-1:] == [record("RUNNING", "new:1", 5)] or not is_answered


@pytest.mark.parametrize(
    ("records", "is_forgotten"),
    [
        ([None], False),
        ([record("RUNNING", "new:1", 5), None], True),
        ([record("RUNNING", "new:1", 5), None, None], False),
        ([record("RUNNING", "new:1", 5), record("RUNNING", "newer:1", 6), None], False),
        ([record("RUNNING", "new:1", 5), record("RESTARTING", "old:1", 4), None], False),
    ],
)
def test_a_task_is_forgotten_by_others_whose_tombstone_comes_after_this_workers_report(
    records: list[bytes | None], is_forgotten: bool
) -> None:
    reports = OwnReports()
    reports.put(KEY, Status("RUNNING", "new:1", 5))
    for value in records[:-1]:
        reports.read(KEY, value)
    assert reports.is_forgotten_by_others(KEY, records[-1]) == is_forgotten
    assert not reports.is_forgotten_by_others(KEY, record("RUNNING", "newer:1", 6))


@pytest.mark.parametrize("key", [KEY, ConnectorKey("c")])
def test_a_worker_that_forgets_what_it_has_reported_is_no_other(key: TaskKey | ConnectorKey) -> None:
    reports = OwnReports()
    reports.put(key, Status("RUNNING", "new:1", 5))
    reports.read(key, record("RUNNING", "new:1", 5))
    assert reports.is_forgotten_by_others(key, None)
    reports.forget(key)
    assert not reports.is_forgotten_by_others(key, None)


def test_what_a_worker_gave_up_is_not_answered() -> None:
    reports = OwnReports()
    reports.put(KEY, Status("RUNNING", "new:1", 5))
    reports.put(KEY, Status("UNASSIGNED", "new:1", 5))
    assert [reports.read(KEY, record("RUNNING", "new:1", 5)), reports.read(KEY, record("RUNNING", "old:1", 4))] == [None, None]
