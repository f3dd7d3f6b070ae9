"""The JDBC sink's task on SQLite: which records become which rows, in which mode; what is refused, and what is tried again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from connect_py.api import Header, SinkRecord, permissions
from connect_py.app.services.process import free_port
from connect_py.data import INT32, INT64, OPTIONAL_STRING, STRING, Schema, Struct
from connect_py.data.schema import struct
from connect_py.errors import DataError, FatalTaskError, RetriableError
from connectors.jdbc.config import parse_config
from connectors.jdbc.records import Change, ChangeReader
from tests.jdbc_task import started

KEY = struct([("id", INT64)], name="Key")
ROW = struct([("id", INT64), ("name", OPTIONAL_STRING)], optional=True, name="Value")
WIDE = struct([("id", INT64), ("name", OPTIONAL_STRING), ("more", OPTIONAL_STRING.with_default("d"))], optional=True, name="Value")
SOURCE = struct([("db", STRING), ("table", STRING)], name="Source")
UPSERT = {"insert_mode": "upsert", "primary_key_mode": "record_key", "delete_enabled": "true"}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    permissions.permit({permissions.FILE_PATHS: str(tmp_path)})
    connection = sqlite3.connect(tmp_path / "x.db", autocommit=True) if hasattr(sqlite3, "LEGACY_TRANSACTION_CONTROL") else None
    connection = connection or sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    yield connection
    connection.close()
    permissions.permit({})


@pytest.fixture
def url(tmp_path: Path, db: sqlite3.Connection) -> str:
    return f"jdbc:sqlite:{tmp_path}/x.db"


def envelope(row: Schema) -> Schema:
    return struct([("before", row), ("after", row), ("source", SOURCE), ("op", STRING)], name="t.Envelope")


EVENTS = {id(ROW): envelope(ROW), id(WIDE): envelope(WIDE)}


def event(offset: int, op: str, number: int, name: str | None = None, *, row: Schema = ROW, topic: str = "s.t", **more: Any) -> SinkRecord:
    made = Struct(row, [number, name, *more.values()])
    before, after = (made, None) if op == "d" else (None, made)
    value = Struct(EVENTS[id(row)], [before, after, Struct(SOURCE, ["shop", "items"]), op])
    return SinkRecord(topic, 0, offset, KEY, Struct(KEY, [number]), value.schema, value)


def tombstone(offset: int, number: int) -> SinkRecord:
    return SinkRecord("s.t", 0, offset, KEY, Struct(KEY, [number]), None, None)


def rows(db: sqlite3.Connection, table: str = "s_t") -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def put(url: str, records: Sequence[SinkRecord], **more: str) -> None:
    with started(url, **more) as (task, _):
        task.put(records)


def test_upserts_and_deletes_leave_the_rows_of_the_source(url: str, db: sqlite3.Connection) -> None:
    changes = [
        event(0, "r", 1, "a"),
        event(1, "c", 2, "b"),
        event(2, "u", 1, "c"),
        event(3, "d", 2),
        tombstone(4, 2),
        event(5, "c", 2, "z"),
    ]
    put(url, changes, **UPSERT)
    assert rows(db) == [(1, "c"), (2, "z")]
    put(url, changes, **UPSERT)  # delivered again after a crash
    assert rows(db) == [(1, "c"), (2, "z")]


@pytest.mark.parametrize("size", ["1", "2", "500"])
@pytest.mark.parametrize("reduces", ["true", "false"])
def test_the_order_of_a_rows_changes_is_kept_in_every_batch(url: str, db: sqlite3.Connection, size: str, reduces: str) -> None:
    changes: list[SinkRecord] = []
    for number in range(20):
        op = "cud"[number % 3]
        changes.append(
            event(number, op, number % 4, str(number), row=WIDE if number % 5 == 0 else ROW, **({"more": "m"} if number % 5 == 0 else {}))
        )
    put(url, changes, batch_size=size, use_reduction_buffer=reduces, **UPSERT)
    state: dict[int, str] = {}
    for number in range(20):
        if number % 3 == 2:
            state.pop(number % 4, None)
        else:
            state[number % 4] = str(number)
    assert {row[0]: row[1] for row in rows(db)} == state


def test_inserts_of_the_default_mode_have_no_key(url: str, db: sqlite3.Connection) -> None:
    put(url, [event(0, "r", 1, "a"), event(1, "u", 1, "b"), event(2, "d", 1), tombstone(3, 1)])
    assert rows(db) == [(1, "a"), (1, "b")]


def test_updates_change_rows_that_are_there(url: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE s_t (id integer PRIMARY KEY, name text)")
    db.execute("INSERT INTO s_t VALUES (1, 'old')")
    put(url, [event(0, "u", 1, "new"), event(1, "u", 2, "none")], insert_mode="update", primary_key_mode="record_key")
    assert rows(db) == [(1, "new")]


def test_keys_of_kafka_make_a_repeated_record_one_row(url: str, db: sqlite3.Connection) -> None:
    for _ in range(2):
        put(url, [event(0, "c", 1, "a"), event(1, "c", 1, "a")], insert_mode="upsert", primary_key_mode="kafka")
    assert rows(db) == [("s.t", 0, 0, 1, "a"), ("s.t", 0, 1, 1, "a")]


def test_keys_of_values_headers_and_primitives(url: str, db: sqlite3.Connection) -> None:
    flat = Struct(ROW, [1, "a"])
    put(url, [SinkRecord("v", 0, 0, None, None, ROW, flat)], insert_mode="upsert", primary_key_mode="record_value", primary_key_fields="id")
    put(url, [SinkRecord("p", 0, 0, INT32, 5, ROW, flat)], insert_mode="upsert", primary_key_mode="record_key", primary_key_fields="pk")
    headed = SinkRecord("h", 0, 0, None, None, ROW, flat, headers=[Header("hid", 7, INT32)])
    put(url, [headed, headed], insert_mode="upsert", primary_key_mode="record_header")
    assert (rows(db, "v"), rows(db, "p"), rows(db, "h")) == ([(1, "a")], [(5, 1, "a")], [(7, 1, "a")])
    keys = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]] for table in "vph"}
    assert keys == {"v": ["id"], "p": ["pk"], "h": ["hid"]}


@pytest.mark.parametrize("mode", ["record_key", "record_value"])
def test_each_topic_has_those_of_the_named_key_fields_that_it_has(url: str, db: sqlite3.Connection, mode: str) -> None:
    settings = {"insert_mode": "upsert", "primary_key_mode": mode, "primary_key_fields": "id,order_id"}
    other = struct([("order_id", INT32), ("note", OPTIONAL_STRING)])
    for name, schema in (("a", ROW), ("b", other)):
        for note in "xy":
            value = Struct(schema, [1, note])
            put(url, [SinkRecord(name, 0, 0, schema, value, schema, value)], **settings)
    assert (rows(db, "a"), rows(db, "b")) == ([(1, "y")], [(1, "y")])
    neither = struct([("number", INT32)])
    record = SinkRecord("c", 0, 0, neither, Struct(neither, [1]), neither, Struct(neither, [1]))
    with pytest.raises(DataError, match="names id, order_id, and records of c have none of these"):
        put(url, [record], **settings)
    put(url, [record], **{**settings, "insert_mode": "insert"})
    assert rows(db, "c") == [(1,)]


def test_columns_are_added_with_their_defaults(url: str, db: sqlite3.Connection) -> None:
    with started(url, **UPSERT) as (task, _):
        task.put([event(0, "c", 1, "a"), event(1, "c", 2, "b", row=WIDE, more="m"), event(2, "c", 3, "c")])
    assert rows(db) == [(1, "a", "d"), (2, "b", "m"), (3, "c", "d")]


def test_without_evolution_a_missing_table_or_column_ends_the_task(url: str, db: sqlite3.Connection) -> None:
    none = {**UPSERT, "schema_evolution": "none"}
    with pytest.raises(FatalTaskError, match="Cannot create table s_t because schema evolution is disabled"):
        put(url, [event(0, "c", 1, "a")], **none)
    db.execute("CREATE TABLE s_t (id integer PRIMARY KEY)")
    with pytest.raises(FatalTaskError, match=r"Cannot alter table s_t because schema evolution is disabled.*name"):
        put(url, [event(0, "c", 1, "a")], **none)
    required = struct([("id", INT64), ("must", STRING)])
    with pytest.raises(FatalTaskError, match="Cannot ALTER table 's_t' because field 'must' is not optional but has no default value"):
        put(url, [SinkRecord("s.t", 0, 0, KEY, Struct(KEY, [1]), required, Struct(required, [1, "x"]))], **UPSERT)


def test_truncates_are_followed_where_that_is_enabled(url: str, db: sqlite3.Connection) -> None:
    empty = Struct(EVENTS[id(ROW)], [None, None, Struct(SOURCE, ["shop", "items"]), "t"])
    changes = [event(0, "c", 1, "a"), SinkRecord("s.t", 0, 1, None, None, empty.schema, empty), event(2, "c", 2, "b")]
    put(url, changes, **UPSERT)
    assert rows(db) == [(1, "a"), (2, "b")]
    put(url, changes, truncate_enabled="true", **UPSERT)
    assert rows(db) == [(2, "b")]


def test_deletes_of_a_table_that_is_not_there_are_passed_over(url: str, db: sqlite3.Connection) -> None:
    put(url, [tombstone(0, 1)], **UPSERT)
    assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_records_about_schemas_are_passed_over(url: str, db: sqlite3.Connection) -> None:
    schema = struct([("ddl", STRING)], name="io.debezium.connector.mysql.SchemaChangeValue")
    put(url, [SinkRecord("s", 0, 0, None, None, schema, Struct(schema, ["x"]))], **UPSERT)
    assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_cloud_events_are_unwrapped(url: str, db: sqlite3.Connection) -> None:
    data = struct([("op", STRING), ("before", ROW), ("after", ROW)])
    cloud = struct([("id", STRING), ("data", data)], name="s.d.CloudEvents.Envelope")
    value = Struct(cloud, ["1", Struct(data, ["c", None, Struct(ROW, [1, "a"])])])
    put(url, [SinkRecord("s.t", 0, 0, KEY, Struct(KEY, [1]), cloud, value)], **UPSERT)
    assert rows(db) == [(1, "a")]


WRONG = [
    (SinkRecord("s.t", 0, 7, None, {"id": 1}, None, {"id": 1}), "A record without a schema cannot be written into a table"),
    (SinkRecord("s.t", 0, 7, None, None, ROW, Struct(ROW, [1, "a"])), "Configured primary key mode 'record_key' cannot have null schema"),
    (SinkRecord("s.t", 0, 7, KEY, Struct(KEY, [1]), STRING, "text"), "its value is of type STRING"),
    (SinkRecord("s.t", 0, 7, STRING, "k", ROW, Struct(ROW, [1, "a"])), "needs one name in primary.key.fields"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_a_record_that_is_no_row_is_refused_or_reported(url: str, db: sqlite3.Connection, record: SinkRecord, message: str) -> None:
    with started(url, **UPSERT) as (task, _), pytest.raises(DataError, match=message):
        task.put([record])
    with started(url, reports=True, **UPSERT) as (task, context):
        task.put([event(0, "c", 1, "a"), record, event(8, "c", 2, "b")])
    assert rows(db) == [(1, "a"), (2, "b")]
    ((offset, said),) = context.refused
    assert offset == 7
    assert message in said


def test_a_row_that_the_database_refuses_is_reported_alone(url: str, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE s_t (id integer PRIMARY KEY, name text CHECK (name <> 'bad'))")
    changes = [event(0, "c", 1, "a"), event(1, "c", 2, "bad"), event(2, "c", 3, "c")]
    with started(url, **UPSERT) as (task, _), pytest.raises(DataError, match="CHECK constraint failed"):
        task.put(changes)
    assert rows(db) == []  # all or nothing
    with started(url, reports=True, **UPSERT) as (task, context):
        task.put(changes)
    assert rows(db) == [(1, "a"), (3, "c")]
    assert [offset for offset, _ in context.refused] == [1]


def test_a_locked_database_is_tried_again_and_no_record_is_lost(url: str, db: sqlite3.Connection) -> None:
    put(url, [event(0, "c", 1, "a")], **UPSERT)
    with started(url, lock_seconds=0.05, flush_max_retries="1", flush_retry_delay_ms="1500", **UPSERT) as (task, context):
        db.execute("BEGIN EXCLUSIVE")
        changes = [event(1, "c", 2, "b")]
        with pytest.raises(RetriableError, match="database is locked"):
            task.put(changes)
        assert context.waits == [1.5]
        with pytest.raises(FatalTaskError, match="Exceeded max retries 1 times"):
            task.put(changes)
        db.execute("ROLLBACK")
        task.put(changes)
    assert rows(db) == [(1, "a"), (2, "b")]


def test_a_table_that_was_dropped_is_made_again(url: str, db: sqlite3.Connection) -> None:
    with started(url, **UPSERT) as (task, _):
        task.put([event(0, "c", 1, "a")])
        db.execute("DROP TABLE s_t")
        changes = [event(1, "c", 2, "b")]
        with pytest.raises(RetriableError, match="no such table"):
            task.put(changes)
        task.put(changes)
    assert rows(db) == [(2, "b")]


def test_what_was_committed_before_a_failure_is_not_inserted_again(url: str, db: sqlite3.Connection) -> None:
    """A new column ends the transaction; the rest of the records fails and comes again."""
    with started(url) as (task, _):
        task.put([event(0, "c", 1, "a")])
        db.execute("CREATE TABLE u_t (id integer, name text)")
        changes = [event(1, "c", 2, "b"), event(2, "c", 3, "c", row=WIDE, more="m"), event(0, "c", 9, "u", topic="u.t")]
        task.put([event(5, "c", 0, "u", topic="u.t")])
        db.execute("DROP TABLE u_t")
        with pytest.raises(RetriableError):
            task.put(changes)
        task.put(changes)
    assert rows(db) == [(1, "a", "d"), (2, "b", "d"), (3, "c", "m")]


def test_columns_keep_their_case_where_identifiers_are_quoted(url: str, db: sqlite3.Connection) -> None:
    upper = struct([("Id", INT64), ("Name %s", OPTIONAL_STRING)])
    record = SinkRecord("Top", 0, 0, None, None, upper, Struct(upper, [1, "a"]))
    put(url, [record], quote_identifiers="true")
    assert [row[1] for row in db.execute("PRAGMA table_info(Top)")] == ["Id", "Name %s"]
    put(url, [record], collection_name_format="small")
    assert [row[1] for row in db.execute("PRAGMA table_info(small)")] == ["id", "name %s"]


@pytest.mark.parametrize("kind", ["postgresql", "mysql", "mariadb"])
def test_a_server_that_is_away_makes_the_records_come_again(kind: str) -> None:
    url = f"jdbc:{kind}://127.0.0.1:{free_port()}/d"
    with started(url, connection_username="u", connection_password="hidden", **UPSERT) as (task, context):
        for _ in range(7):  # more often than flush.max.retries, which is about locks
            with pytest.raises(RetriableError, match="cannot be reached") as raised:
                task.put([event(0, "c", 1, "a")])
            assert "hidden" not in str(raised.value)
    assert context.waits == [1.0] * 7


def test_records_of_two_topics_that_a_transform_makes_one_are_all_written(url: str, db: sqlite3.Connection) -> None:
    """Their offsets say nothing of one another: what is committed is known by the record itself."""
    with started(url, **UPSERT) as (task, _):
        task.put([event(9, "c", 1, "a"), event(0, "c", 0, "u", topic="u.t")])
        db.execute("DROP TABLE u_t")
        changes = [
            event(10, "c", 2, "b"),
            event(11, "c", 3, "c", row=WIDE, more="m"),
            event(5, "c", 4, "other topic"),
            event(1, "c", 1, "u", topic="u.t"),
        ]
        with pytest.raises(RetriableError):
            task.put(changes)
        task.put(changes)
    assert [row[:2] for row in rows(db)] == [(1, "a"), (2, "b"), (3, "c"), (4, "other topic")]


def test_equal_schemas_that_are_not_one_object_share_their_statements(url: str) -> None:
    """A producer that is no JsonConverter writes JSON of which each record gives a schema of its own."""
    reader = ChangeReader(parse_config({"connection.url": url, "insert.mode": "upsert", "primary.key.mode": "record_key"}))

    def read(number: int) -> Change | None:
        key, value = struct([("id", INT64)]), struct([("id", INT64), ("name", OPTIONAL_STRING.with_default("d"))])
        return reader.read(SinkRecord("t", 0, number, key, Struct(key, [1]), value, Struct(value, [1, "a"])))

    first, second = read(0), read(1)
    assert first is not None
    assert second is not None
    assert first.shape is second.shape
