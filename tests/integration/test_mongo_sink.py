"""The MongoDB sink on a server: what it does beyond the reference's recorded scenarios (`mongo_sink`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from bson import Int64
from pymongo.database import Database

from connect_py.api import SinkRecord
from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.process import free_port
from connect_py.errors import DataError, RetriableError
from connectors.mongodb.sink.task import MongoDbSinkTask
from tests.mongo_task import MongoTask, config, database

pytestmark = pytest.mark.services

Db = Database[dict[str, Any]]


@pytest.fixture
def db(mongo: MongoAddress) -> Any:
    with database(mongo) as found:
        yield found


class Context(SimpleNamespace):
    """What the runtime gives a task; `refused` has the records that it was told of."""

    def __init__(self, *, reports: bool) -> None:
        self.refused: list[tuple[int, str]] = []
        self.waits: list[float] = []
        super().__init__(connector="sink", task=0, report_errant_record=self.refuse if reports else None, retry_after=self.waits.append)

    def refuse(self, record: SinkRecord, error: Exception) -> None:
        self.refused.append((record.offset, str(error)))


def started(uri: str, db: Db, *, reports: bool = False, **more: str) -> tuple[MongoDbSinkTask, Context]:
    task, context = MongoDbSinkTask(), Context(reports=reports)
    settings = {"mongodb.connection.string": uri, "sink.database": db.name, "collection.name.format": "out"}
    task.start({**settings, **{name.replace("_", "."): value for name, value in more.items()}}, context)  # type: ignore[arg-type]
    return task, context


@pytest.fixture
def sink(mongo: MongoAddress, db: Db) -> Iterator[tuple[MongoDbSinkTask, Context]]:
    task, context = started(mongo.uri, db, reports=True, truncate_enabled="true")
    yield task, context
    task.stop()


def event(offset: int, op: str, number: int | None, **row: Any) -> SinkRecord:
    after = {"id": number, **row} if op != "d" else None
    key = None if number is None else {"id": number}
    return SinkRecord("t", 0, offset, None, key, None, {"before": None, "after": after, "op": op})


def test_a_poll_with_tombstones_and_a_delete_at_its_beginning_is_written_whole(sink: Any, db: Db) -> None:
    task, context = sink
    task.put([event(0, "d", 1), SinkRecord("t", 0, 1, None, {"id": 1}), event(2, "c", 2), event(3, "c", None, x=1), event(4, "c", 3)])
    assert sorted(str(d["_id"]) for d in db["out"].find() if isinstance(d["_id"], dict)) == ["{'id': 2}", "{'id': 3}"]
    assert db["out"].count_documents({}) == 3
    assert not context.refused


def test_records_that_come_again_change_nothing(sink: Any, db: Db) -> None:
    task, _ = sink
    records = [event(0, "c", None, x=1), event(1, "c", 1, x=1), event(2, "u", 1, x=2), event(3, "c", 2), event(4, "d", 2)]
    task.put(records)
    once = list(db["out"].find().sort("x"))
    task.put(records)
    assert list(db["out"].find().sort("x")) == once
    assert len(once) == 2


def test_a_record_that_the_server_refuses_is_reported_and_the_others_are_written(sink: Any, db: Db) -> None:
    task, context = sink
    db["out"].create_index("u", unique=True)
    task.put([event(0, "c", 1, u=1), event(1, "c", 2, u=1), event(2, "c", 3, u=3)])
    assert sorted(d["u"] for d in db["out"].find()) == [1, 3]
    assert [offset for offset, _ in context.refused] == [1]
    assert "refused a write into out" in context.refused[0][1]


def test_without_tolerance_a_refused_record_fails_the_task(mongo: MongoAddress, db: Db) -> None:
    task, _ = started(mongo.uri, db)
    try:
        with pytest.raises(DataError, match="CDC operation is not a string"):
            task.put([SinkRecord("t", 0, 0, None, None, None, {"n": 1})])
    finally:
        task.stop()


def test_a_truncate_empties_its_collection_in_its_place_in_the_order(sink: Any, db: Db) -> None:
    task, _ = sink
    task.put([event(0, "c", 1), SinkRecord("t", 0, 1, None, None, None, {"op": "t"}), event(2, "c", 2)])
    assert [d["_id"] for d in db["out"].find()] == [{"id": 2}]


def test_a_server_that_is_away_makes_the_runtime_bring_the_records_again(db: Db) -> None:
    task, context = started(f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=200", db)
    try:
        with pytest.raises(RetriableError, match="cannot be written to"):
            task.put([event(0, "c", 1)])
        assert context.waits
    finally:
        task.stop()


def test_events_of_mongodbs_own_connector_rebuild_the_collection(mongo: MongoAddress, db: Db) -> None:
    """Six documents, changed, deleted and read again by a second snapshot: the copy is the collection."""
    source = db["customers"]
    source.insert_many([{"_id": Int64(n), "name": f"n{n}", "tags": ["a", "b", "c"]} for n in range(1000, 1006)])
    with MongoTask(config(mongo, db, collection_include_list=f"{db.name}.customers")) as task:
        topic = f"m.{db.name}.customers"
        task.stream()
        source.update_one({"_id": 1000}, {"$set": {"name": "new", "deep": {"x": Int64(1)}}})
        source.delete_one({"_id": 1001})
        source.replace_one({"_id": 1002}, {"only": 1.5})
        source.insert_one({"_id": "text", "n": None})
        task.poll_until(lambda: len(task.of(topic)) >= 11, what="the changes")
        records = [
            SinkRecord(topic, 0, offset, None, key, None, None if value is None else json.loads(json.dumps(value)))
            for offset, (key, value) in enumerate(task.of(topic))
        ]
    sink, _ = started(mongo.uri, db)
    try:
        sink.put(records)
        assert list(db["out"].find().sort("_id")) == list(source.find().sort("_id"))
        assert db["out"].count_documents({}) == 6
        sink.put(records)
        assert db["out"].count_documents({}) == 6
    finally:
        sink.stop()
