"""What the MongoDB sink writes for an event (`writes.py`, `documents.py`, `naming.py`)."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import bson
import pytest
from bson import Binary, Decimal128, Int64, ObjectId

from connect_py.api import SinkRecord
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, INT64, OPTIONAL_STRING, STRING, TIME, TIMESTAMP, array, decimal_schema, map_of, struct
from connect_py.errors import ConfigError, DataError
from connectors.engine.sink_records import TargetNames
from connectors.mongodb.sink.config import parse_config
from connectors.mongodb.sink.writes import Delete, Replace, Truncate, Update, bson_value, writes_of

INT32 = Schema(Type.INT32)
ROW = struct([("id", INT32), ("big", INT64), ("name", OPTIONAL_STRING)], optional=True, name="row")
ENVELOPE = struct([("before", ROW), ("after", ROW), ("op", STRING)], name="srv.db.t.Envelope")
KEY = struct([("id", INT32)], name="srv.db.t.Key")
JSON = Schema(Type.STRING, optional=True, name="io.debezium.data.Json", version=1)
DESCRIPTION = struct(
    [
        ("removedFields", array(STRING, optional=True)),
        ("updatedFields", JSON),
        ("truncatedArrays", array(struct([("field", STRING), ("size", INT32)]), optional=True)),
    ],
    optional=True,
)
DOCUMENT = struct([("before", JSON), ("after", JSON), ("updateDescription", DESCRIPTION), ("op", STRING)], name="m.db.t.Envelope")
DOCUMENT_KEY = struct([("id", STRING)], name="m.db.t.Key")


def row_event(op: str, after: tuple[Any, ...] | None = None, before: tuple[Any, ...] | None = None, key: int | None = 1) -> SinkRecord:
    value = Struct(ENVELOPE, [None if row is None else Struct(ROW, row) for row in (before, after)] + [op])
    key_struct = None if key is None else Struct(KEY, [key])
    return SinkRecord("srv.db.t", 0, 7, None if key is None else KEY, key_struct, ENVELOPE, value)


def document_event(op: str, after: str | None = None, description: tuple[Any, ...] | None = None, key: str = "1") -> SinkRecord:
    value = Struct(DOCUMENT, [None, after, None if description is None else Struct(DESCRIPTION, description), op])
    return SinkRecord("m.db.t", 0, 7, DOCUMENT_KEY, Struct(DOCUMENT_KEY, [key]), DOCUMENT, value)


@pytest.mark.parametrize("op", ["c", "r", "u"])
def test_a_row_is_kept_under_the_document_of_its_key(op: str) -> None:
    assert writes_of(row_event(op, (1, 5, "a"))) == [Replace({"_id": {"id": 1}}, {"_id": {"id": 1}, "big": 5, "name": "a"})]


def test_a_bigint_has_64_bits_though_it_is_small() -> None:
    (write,) = writes_of(row_event("c", (1, 5, None)))
    assert isinstance(write, Replace)
    assert type(write.document["big"]) is Int64
    assert bson.encode(write.document)[4:].count(b"\x12big\0") == 1


def test_a_delete_names_the_row_by_its_key() -> None:
    assert writes_of(row_event("d", before=(1, 5, None))) == [Delete({"_id": {"id": 1}})]


def test_without_a_key_a_delete_names_the_whole_row_and_an_insert_gets_an_id_of_its_place() -> None:
    assert writes_of(row_event("d", before=(1, 5, None), key=None)) == [Delete({"id": 1, "big": 5, "name": None})]
    first, second = (writes_of(row_event("c", (1, 5, None), key=None)) for _ in range(2))
    assert first == second
    assert isinstance(first[0], Replace)
    assert isinstance(first[0].document["_id"], ObjectId)


def test_tombstones_and_events_about_schemas_ask_for_nothing() -> None:
    assert writes_of(SinkRecord("t", 0, 0, KEY, Struct(KEY, [1]))) == []
    assert writes_of(SinkRecord("t", 0, 0, None, None, None, {"ddl": "CREATE TABLE t"})) == []


def test_a_truncate_asks_for_all_documents() -> None:
    assert writes_of(row_event("t", key=None)) == [Truncate()]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (row_event("x", (1, 5, None)), "No CDC operation found in mapping for op=x"),
        (row_event("c"), "non-empty 'after' field"),
        (row_event("d", key=None), "'before' field is empty"),
        (SinkRecord("t", 0, 0, None, None, None, {"n": 1}), "CDC operation is not a string"),
        (SinkRecord("t", 0, 0, INT32, 7, ENVELOPE, Struct(ENVELOPE, [None, Struct(ROW, [1, 5]), "c"])), "No converter found"),
        (SinkRecord("t", 0, 0, None, None, STRING, "{no json"), "JSON text"),
        (SinkRecord("t", 0, 0, None, None, None, b"\x05\0"), "Could not convert the value"),
        (document_event("u", key='"x'), "JSON text"),
        (document_event("u"), "neither a document nor a description"),
    ],
)
def test_what_is_no_change_event_is_refused(record: SinkRecord, message: str) -> None:
    with pytest.raises(DataError, match=message):
        writes_of(record)


def test_a_document_of_mongodb_keeps_its_own_id_with_its_type() -> None:
    (write,) = writes_of(document_event("c", '{"_id": {"$numberLong": "1"},"at": {"$date": 5},"x": [1,{"$numberDecimal": "1.5"}]}'))
    assert isinstance(write, Replace)
    assert write.filter == {"_id": Int64(1)}
    assert type(write.filter["_id"]) is Int64
    assert write.document["x"] == [1, Decimal128("1.5")]


def test_an_update_without_its_document_changes_what_it_says() -> None:
    description = (
        ["gone", "a.b"],
        '{"name": "x", "l.0": {"$numberLong": "5"}}',
        [Struct(DESCRIPTION.fields[2].schema.value_schema, ["tags", 2])],
    )  # type: ignore[arg-type]
    assert writes_of(document_event("u", None, description, '{"$oid": "596e275826f08b2730779e1f"}')) == [
        Update({"_id": ObjectId("596e275826f08b2730779e1f")}, {"$push": {"tags": {"$each": [], "$slice": 2}}}),
        Update({"_id": ObjectId("596e275826f08b2730779e1f")}, {"$set": {"name": "x", "l.0": Int64(5)}, "$unset": {"gone": "", "a.b": ""}}),
    ]


def test_a_delete_of_a_document_names_it_by_the_id_in_its_key() -> None:
    assert writes_of(document_event("d", key='{"region": "eu","n": 1}')) == [Delete({"_id": {"region": "eu", "n": 1}})]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (decimal_schema(2), decimal.Decimal("12.30"), Decimal128("12.30")),
        (Schema(Type.INT32, name=DATE, version=1), datetime.date(2024, 5, 17), datetime.datetime(2024, 5, 17, tzinfo=datetime.UTC)),
        (
            Schema(Type.INT32, name=TIME, version=1),
            datetime.time(12, 30, 15),
            datetime.datetime(1970, 1, 1, 12, 30, 15, tzinfo=datetime.UTC),
        ),
        (
            Schema(Type.INT64, name=TIMESTAMP, version=1),
            datetime.datetime(2024, 5, 17, 1, tzinfo=datetime.UTC),
            datetime.datetime(2024, 5, 17, 1, tzinfo=datetime.UTC),
        ),
        (map_of(STRING, Schema(Type.INT64, optional=True)), {"a": 1, "b": None}, {"a": Int64(1), "b": None}),
        (array(Schema(Type.BYTES)), [b"a"], [Binary(b"a", 0)]),
        (Schema(Type.STRING, optional=True, default="given"), None, "given"),
    ],
)
def test_values_become_what_their_schema_says(schema: Schema, value: Any, expected: Any) -> None:
    assert bson_value(schema, value) == expected


def test_a_decimal_of_more_than_34_digits_is_refused() -> None:
    with pytest.raises(DataError, match="34 digits"):
        bson_value(decimal_schema(0), decimal.Decimal("1" * 35))


def test_collections_are_named_by_topic_and_source() -> None:
    record = SinkRecord("srv.db.t", 0, 0, None, None, None, {"source": {"db": "d", "n": 5}})
    assert TargetNames("collection", "${topic}").of(record.topic, record.value) == "srv_db_t"
    assert TargetNames("collection", "x_${topic}_${source.db}").of(record.topic, record.value) == "x_srv_db_t_d"
    assert TargetNames("collection", "${topic}", is_passthrough=True).of(record.topic, record.value) == "srv.db.t"
    assert TargetNames("collection", "${source.db}").of("t", None) is None
    with pytest.raises(DataError, match="no text n"):
        TargetNames("collection", "${source.n}").of(record.topic, record.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sink.database": "d"}, "Missing connection string"),
        ({"sink.database": "d", "mongodb.connection.string": "nope"}, "Invalid connection string"),
        ({"mongodb.connection.string": "mongodb://h"}, "A value is required"),
        ({"sink.database": "d", "mongodb.connection.string": "mongodb://h", "column.naming.strategy": "x.Y"}, "could not be found"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(config)
