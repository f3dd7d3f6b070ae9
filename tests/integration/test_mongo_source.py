"""The MongoDB connector on a replica set: what its records and offsets do beyond the reference's recorded scenarios."""

from __future__ import annotations

import datetime
import logging
import uuid
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp
from pymongo.database import Database

from connect_py.app.services.mongo import MongoAddress
from connect_py.errors import FatalTaskError
from tests.mongo_task import MongoTask, config, database, signal

pytestmark = pytest.mark.services

Db = Database[dict[str, Any]]
LISTED = "incremental_snapshot_collections"
#: An id of every type that documents can have, NaN among the numbers.
IDS = [
    MinKey(),
    None,
    float("nan"),
    float("-inf"),
    -1,
    Int64(2**40),
    2.5,
    Decimal128("3.10"),
    "",
    "a",
    "ejson:a",
    {"region": "eu", "n": 1},
    {"region": "us"},
    Binary.from_uuid(uuid.UUID(int=7)),
    ObjectId("5f1b2c3d4e5f6a7b8c9d0e1f"),
    ObjectId("5f1b2c3d4e5f6a7b8c9d0e20"),
    False,
    True,
    datetime.datetime(1969, 1, 1),
    datetime.datetime(2024, 5, 17),
    Timestamp(5, 6),
    MaxKey(),
]


@pytest.fixture
def db(mongo: MongoAddress) -> Any:
    with database(mongo) as found:
        yield found


def test_an_incremental_snapshot_reads_ids_of_every_type_though_the_largest_is_of_one(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": id_} for id_ in IDS])
    for size in ("1", "3", "1024"):
        settings = config(
            mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data", incremental_snapshot_chunk_size=size
        )
        with MongoTask(settings) as task:
            task.stream()
            signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"])
            task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= len(IDS), what=f"chunks of {size}")
            keys = [key["id"] for key, _ in task.of(f"m.{db.name}.items")]
            assert len(set(keys)) == len(IDS), f"chunks of {size}: {keys}"


def test_a_document_that_changes_between_the_watermarks_is_not_overwritten_by_its_chunk(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n, "v": 0} for n in range(6)])

    class Race:
        def reached(self, phase: str) -> None:
            if phase == "before_high":
                db["items"].update_one({"_id": 2}, {"$inc": {"v": 1}})
                db["items"].delete_one({"_id": 5})

    for strategy in ("insert_insert", "insert_delete"):
        settings = config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data")
        settings["incremental.snapshot.watermarking.strategy"] = strategy
        with MongoTask(settings, hooks=Race()) as task:  # type: ignore[arg-type]
            task.stream()
            signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"])
            task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= 5, what=strategy)
            task.poll_until(lambda: not task.task.incremental.is_running, what="the snapshot to end")
            db["items"].insert_one({"_id": "last"})
            task.poll_until(lambda: ("c", '"last"') in task.operations(f"m.{db.name}.items"), what="what follows")
            found = {f'"{id_}"' if isinstance(id_, str) else str(id_): d for d in db["items"].find() for id_ in [d["_id"]]}
            assert task.documents(f"m.{db.name}.items") == found
            db["items"].delete_one({"_id": "last"})
        db["items"].insert_one({"_id": 5, "v": 0})


def test_an_incremental_snapshot_goes_on_behind_the_last_sent_id_after_a_restart(mongo: MongoAddress, db: Db) -> None:
    ids = [ObjectId() for _ in range(8)]
    db["items"].insert_many([{"_id": id_} for id_ in ids])
    settings = config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data", incremental_snapshot_chunk_size="2")
    with MongoTask(settings) as task:
        task.stream()
        signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"])
        task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= 2, what="a chunk")
        offset, sent = task.offset, len(task.of(f"m.{db.name}.items"))
        assert offset is not None and "incremental_snapshot_primary_key" in offset
        # as the reference stores it
        listed = f'[{{"{LISTED}_id":"{db.name}.items","{LISTED}_additional_condition":null}}]'
        assert offset[LISTED] == listed
    with MongoTask(settings, offset) as again:
        again.poll_until(lambda: len(again.of(f"m.{db.name}.items")) >= 8 - sent, what="the other chunks")
        keys = [key["id"] for key, _ in again.of(f"m.{db.name}.items")]
        assert keys == [f'{{"$oid": "{id_}"}}' for id_ in ids[sent:]]


def test_a_condition_in_the_shells_notation_chooses_documents(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n, "city": "Perth" if n % 2 else "Brno"} for n in range(6)])
    with MongoTask(config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data")) as task:
        task.stream()
        conditions = [{"data-collection": f"{db.name}.items", "filter": "{ city: 'Perth', _id: {$gt: 1} }"}]
        signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"], additional_conditions=conditions)
        task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= 2)
        task.poll_until(lambda: not task.task.incremental.is_running)
        assert task.operations(f"m.{db.name}.items") == [("r", "3"), ("r", "5")]


def test_a_stopped_incremental_snapshot_sends_no_further_chunk(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n} for n in range(20)])
    settings = config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data", incremental_snapshot_chunk_size="2")
    with MongoTask(settings) as task:
        task.stream()
        signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"])
        signal(db, "stop-snapshot", type="incremental")
        task.poll_until(lambda: task.task.incremental.is_running, what="the snapshot to begin")
        assert list(task.task.incremental.progress.estimates.values()) == [db.items.count_documents({})]
        task.poll_until(lambda: not task.task.incremental.is_running, what="the snapshot to stop")
        assert 0 < len(task.of(f"m.{db.name}.items")) < 20
        assert not any(name.startswith("incremental_snapshot") for name in task.offset or {})


def test_a_blocking_snapshot_reads_what_its_filter_chooses_and_streaming_goes_on(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n} for n in range(4)])
    with MongoTask(config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data")) as task:
        task.stream()
        conditions = [{"data-collection": f"{db.name}.items", "filter": '{"_id": {"$gte": 2}}'}]
        signal(db, "execute-snapshot", type="blocking", data_collections=[f"{db.name}.items"], additional_conditions=conditions)
        task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= 2, what="the blocking snapshot")
        db["items"].insert_one({"_id": 9})
        task.poll_until(lambda: len(task.of(f"m.{db.name}.items")) >= 3, what="the stream")
        assert task.operations(f"m.{db.name}.items") == [("r", "2"), ("r", "3"), ("c", "9")]
        shown = [value["source"]["snapshot"] for _, value in task.of(f"m.{db.name}.items")]
        assert shown == ["true", "last", "false"]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_snapshot_in_ranges_of_ids_has_every_document_once_and_one_last(mongo: MongoAddress, db: Db, threads: str) -> None:
    db["items"].insert_many([{"_id": id_} for id_ in IDS])
    db.more.insert_many([{"_id": n} for n in range(50)])
    with MongoTask({**config(mongo, db, snapshot_max_threads=threads), "internal.snapshot.chunk.rows": "5"}) as task:
        task.stream()
        keys = [key["id"] for key, _ in task.of(f"m.{db.name}.items")]
        assert len(keys) == len(set(keys)) == len(IDS)
        assert sorted(int(key["id"]) for key, _ in task.of(f"m.{db.name}.more")) == list(range(50))
        shown = [value["source"]["snapshot"] for _, _, value in task.events]
        assert shown == ["true"] * (len(IDS) + 49) + ["last"]


def test_an_interrupted_snapshot_goes_on_behind_its_last_finished_range(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n, "v": 0} for n in range(100)])
    settings = {**config(mongo, db), "internal.snapshot.chunk.rows": "10", "snapshot.fetch.size": "10"}
    with MongoTask(settings) as task:
        task.poll_until(lambda: len(task.events) >= 40, what="some ranges")
        offset, sent = task.offset, len(task.events)
        assert offset is not None and offset["initsync"] is True
    db["items"].update_one({"_id": 3}, {"$set": {"v": 1}})
    db["items"].delete_one({"_id": 5})
    db["items"].delete_one({"_id": 95})
    with MongoTask(settings, offset) as again:
        again.poll_until(lambda: ("d", "95") in again.operations(f"m.{db.name}.items"), what="the changes")
        reads = [int(key) for op, key in again.operations(f"m.{db.name}.items") if op == "r"]
        assert 100 - sent - 10 <= len(reads) <= 100 - sent + 10 and min(reads) >= sent - 20
        task.events += again.events
        assert task.documents(f"m.{db.name}.items") == {str(d["_id"]): d for d in db["items"].find()}


def test_a_finished_offset_goes_on_behind_its_token_and_shows_nothing_twice(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_one({"_id": 1})
    with MongoTask(config(mongo, db)) as task:
        task.stream()
        db["items"].insert_one({"_id": 2})
        task.poll_until(lambda: len(task.events) >= 2)
    db["items"].insert_one({"_id": 3})
    for mode in ("initial", "always"):
        with MongoTask(config(mongo, db, snapshot_mode=mode), task.offset) as again:
            again.stream()
            again.poll_until(lambda: len(again.events) >= (1 if mode == "initial" else 3))  # noqa: B023
            expected = [("c", "3")] if mode == "initial" else [("r", "1"), ("r", "2"), ("r", "3")]
            assert again.operations(f"m.{db.name}.items") == expected


def test_a_token_that_no_server_knows_fails_the_task_or_begins_a_snapshot_when_needed(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_one({"_id": 1})
    # a time before any log; a server's own tokens begin the same way
    lost = {"sec": 1, "ord": 1, "resume_token": "8200000001000000012B0229296E04"}
    with MongoTask(config(mongo, db), lost) as task, pytest.raises(FatalTaskError, match="no longer available on the server"):
        task.poll_until(lambda: False, 10)
    with MongoTask(config(mongo, db, snapshot_mode="when_needed"), lost) as task:
        task.stream()
        assert task.operations(f"m.{db.name}.items") == [("r", "1")]


def test_a_log_that_is_lost_while_streaming_is_a_named_error(mongo: MongoAddress, db: Db, caplog: pytest.LogCaptureFixture) -> None:
    if mongo.is_real:
        pytest.skip("a real server's log cannot be lost at will")
    with MongoTask(config(mongo, db, retriable_restart_connector_wait_ms="1")) as task:
        task.stream()
        db["items"].insert_one({"_id": 1})
        task.poll_until(lambda: len(task.events) >= 1)
        db.client.admin.command("forgetLog")
        # the cursor is gone too, as after a failover
        task.task.disconnect()
        with caplog.at_level(logging.WARNING), pytest.raises(FatalTaskError, match="no longer available on the server"):
            task.poll_until(lambda: False, 10)
        assert "ChangeStreamHistoryLost" in caplog.text


def test_scopes_show_changes_of_their_target_only(mongo: MongoAddress, db: Db) -> None:
    with database(mongo) as other:
        targets = {"database": db.name, "collection": f"{db.name}.items", "deployment": ""}
        for scope, target in targets.items():
            settings = config(mongo, db, snapshot_mode="no_data", capture_scope=scope, capture_target=target)
            settings["database.include.list"] = f"{db.name},{other.name}"
            with MongoTask(settings) as task:
                task.stream()
                other["items"].insert_one({})
                db.more.insert_one({})
                db["items"].insert_one({})
                task.poll_until(lambda: task.of(f"m.{db.name}.items"), what=scope)
                topics = {topic for topic, _, _ in task.events}
            expected = {f"m.{db.name}.items"} | ({f"m.{db.name}.more"} if scope != "collection" else set())
            assert topics == expected | ({f"m.{other.name}.items"} if scope == "deployment" else set()), scope


def test_heartbeats_carry_the_newest_place_though_nothing_captured_changes(mongo: MongoAddress, db: Db) -> None:
    with database(mongo) as other, MongoTask(config(mongo, db, snapshot_mode="no_data", heartbeat_interval_ms="100")) as task:
        task.stream()
        seen = set()
        for _ in range(2):
            other["items"].insert_one({})
            before = len(task.batches)
            task.poll_until(lambda: len(task.batches) > before)  # noqa: B023
            assert task.offset is not None
            assert (task.offset["sec"], task.offset["ord"]) == (-1, -1)
            seen.add(task.offset["resume_token"])
        assert len(seen) == 2
        assert {topic for topic, _, _ in task.events} == {"__debezium-heartbeat.m"}


def test_a_pipeline_of_the_users_can_replace_the_connectors_own_and_the_exact_filter_still_holds(mongo: MongoAddress, db: Db) -> None:
    settings = config(mongo, db, snapshot_mode="no_data", collection_include_list=f"{db.name}.items")
    settings |= {"cursor.pipeline": '[{"$match": {"fullDocument.keep": true}}]', "cursor.pipeline.order": "user_only"}
    with MongoTask(settings) as task:
        task.stream()
        db.others.insert_one({"_id": 0, "keep": True})
        db["items"].insert_many([{"_id": 1}, {"_id": 2, "keep": True}])
        task.poll_until(lambda: task.events)
        assert task.operations(f"m.{db.name}.items") == [("c", "2")]
        assert len(task.events) == 1


def test_a_connector_starts_at_a_configured_time_when_nothing_is_stored(mongo: MongoAddress, db: Db) -> None:
    begin = db.client.admin.command("hello")["operationTime"]
    db["items"].insert_one({"_id": 1})
    settings = {**config(mongo, db, snapshot_mode="no_data"), "capture.start.op.time": str(begin.time << 32 | begin.inc)}
    with MongoTask(settings) as task:
        task.poll_until(lambda: task.events)
        assert task.operations(f"m.{db.name}.items") == [("c", "1")]


def test_a_stream_without_a_snapshot_stores_its_place_before_anything_happens(mongo: MongoAddress, db: Db) -> None:
    with MongoTask(config(mongo, db, snapshot_mode="no_data")) as task:
        task.stream()
        task.poll_until(lambda: task.offset is not None, what="an offset")
        assert task.events == []
    db["items"].insert_one({"_id": 1})
    with MongoTask(config(mongo, db, snapshot_mode="no_data"), task.offset) as again:
        again.poll_until(lambda: again.events, what="what happened while nothing ran")
        assert again.operations(f"m.{db.name}.items") == [("c", "1")]


def test_signals_arrive_although_inserts_are_skipped(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_many([{"_id": n} for n in range(3)])
    settings = config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_mode="no_data", skipped_operations="c")
    settings["collection.include.list"] = f"{db.name}.items"
    with MongoTask(settings) as task:
        task.stream()
        db["items"].insert_one({"_id": 3})
        signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"])
        task.poll_until(lambda: len(task.events) >= 4)
        assert task.operations(f"m.{db.name}.items") == [("r", str(n)) for n in range(4)]
        assert task.of(f"m.{db.name}.signals") == []
