"""How `tail` writes records, by the converters that a connector uses: without a broker."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from connect_py.app.client.events import Event, event_of, is_wanted, plain, start_milliseconds, undecoded
from connect_py.converters.json_converter import JsonConverter
from connect_py.data import Schema, Type
from connect_py.data.schema import INT64, OPTIONAL_STRING, STRING, decimal_schema, struct
from connect_py.errors import ConfigError

#: 2026-01-31T10:04:07Z
AT = 1769853847000
SOURCE = {"schema": "inventory", "table": "customers", "db": "shop", "ts_ms": AT}


def line(value: Any, key: Any = None, topic: str = "t", **more: Any) -> str:
    return event_of(topic, 0, 1, AT, key, value, **more).line(datetime.UTC)


def envelope(op: str, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {**SOURCE, **source}, "ts_ms": AT + 5000}


KEY = {"id": 1001}
OLD = {"id": 1001, "email": "a", "name": "n"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (envelope("u", OLD, {**OLD, "email": "b"}), "10:04:07 u inventory.customers id=1001 email: a → b"),
        (envelope("u", None, {**OLD, "email": "b"}), "10:04:07 u inventory.customers id=1001 email=b name=n"),
        (envelope("u", OLD, OLD), "10:04:07 u inventory.customers id=1001"),
        (envelope("c", None, {**OLD, "name": None}), "10:04:07 c inventory.customers id=1001 email=a name=null"),
        (envelope("r", None, {**OLD, "name": ""}), '10:04:07 r inventory.customers id=1001 email=a name=""'),
        (envelope("d", OLD), "10:04:07 d inventory.customers id=1001 email=a name=n"),
        (envelope("t", schema=None), "10:04:07 t shop.customers id=1001"),
        ({**OLD, "__op": "u", "__deleted": "false"}, "10:04:07 u t id=1001 email=a name=n"),
        (OLD, "10:04:07 + t id=1001 email=a name=n"),
        ("a line", "10:04:07 + t id=1001 a line"),
    ],
)
def test_an_event_is_one_line(value: Any, text: str) -> None:
    assert line(value, KEY) == text


def test_what_is_no_row_has_an_op_of_its_own() -> None:
    assert line(None, KEY, is_tombstone=True) == "10:04:07 x t id=1001"
    ddl = {"databaseName": "shop", "ddl": "CREATE TABLE\n  a (id int)", "source": {}, "ts_ms": AT}
    assert line(ddl) == "10:04:07 ddl shop CREATE TABLE a (id int)"
    assert line({"status": "BEGIN", "id": "571:1", "event_count": None, "ts_ms": AT}) == "10:04:07 tx t id=571:1 status=BEGIN"
    assert line({"ts_ms": AT}, topic="__debezium-heartbeat.shop") == "10:04:07 hb __debezium-heartbeat.shop"
    assert line("x", "k") == "10:04:07 + t key=k x"


def test_documents_of_mongodb_are_read_from_their_strings() -> None:
    key = {"id": '{"$oid": "65a"}'}
    after = json.dumps({"_id": {"$oid": "65a"}, "n": 1})
    source = {"db": "shop", "collection": "orders", "ts_ms": AT}
    assert line({"op": "c", "after": after, "source": source}, key) == '10:04:07 c shop.orders id=65a _id={"$oid": "65a"} n=1'
    update = {"op": "u", "after": None, "updateDescription": {"updatedFields": '{"n": 2}'}, "source": source}
    assert line(update, key) == "10:04:07 u shop.orders id=65a n=2"


def test_long_values_are_cut_and_lines_stay_lines() -> None:
    text = line({"a": "x" * 100, "b": "two\nlines"})
    assert text == f"10:04:07 + t a={'x' * 59}… b=two lines"


def test_values_of_a_converter_become_plain() -> None:
    row = struct(
        [
            ("id", INT64),
            ("price", decimal_schema(2)),
            ("day", Schema(Type.INT32, name="io.debezium.time.Date")),
            ("at", Schema(Type.INT64, name="io.debezium.time.MicroTimestamp")),
            ("note", OPTIONAL_STRING),
        ],
        name="row",
    )
    converter = JsonConverter()
    converter.configure({"schemas.enable": "true"}, is_key=False)
    data = json.dumps(
        {
            "schema": {
                "type": "struct",
                "name": "row",
                "fields": [
                    {"field": "id", "type": "int64"},
                    {
                        "field": "price",
                        "type": "bytes",
                        "name": "org.apache.kafka.connect.data.Decimal",
                        "version": 1,
                        "parameters": {"scale": "2"},
                    },
                    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
                    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
                    {"field": "note", "type": "string", "optional": True},
                ],
            },
            "payload": {"id": 7, "price": "AMg=", "day": 20484, "at": 1769853847123456, "note": None},
        }
    ).encode()
    schema, value = converter.to_connect_data("t", data)
    assert schema is not None and schema.name == row.name
    assert plain(schema, value) == {"id": 7, "price": "2.00", "day": "2026-01-31", "at": "2026-01-31T10:04:07.123456Z", "note": None}


def test_years_beyond_pythons_stay_numbers_and_bytes_are_hex() -> None:
    assert plain(Schema(Type.INT32, name="io.debezium.time.Date"), 10**9) == 10**9
    assert plain(Schema(Type.INT64, name="io.debezium.time.Timestamp"), 10**17) == 10**17
    assert plain(None, b"\x00\xff") == "00ff"
    assert plain(STRING, "a") == "a"
    assert undecoded(b"text") == "text"
    assert undecoded(b"\xff\x00") == "ff00"


@pytest.mark.parametrize(
    ("text", "found"),
    [("now", AT), ("earliest", None), ("10m", AT - 600_000), ("2h", AT - 7_200_000), ("1d", AT - 86_400_000), ("2026-01-31T10:04:07Z", AT)],
)
def test_a_start_is_a_word_a_time_ago_or_a_moment(text: str, found: int | None) -> None:
    assert start_milliseconds(text, AT) == found


@pytest.mark.parametrize("text", ["", "10", "10 m", "yesterday", "2026-13-01"])
def test_any_other_start_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write now, earliest, 10m"):
        start_milliseconds(text, AT)


def test_filters_name_operations_and_tables() -> None:
    event = Event("u", "inventory.customers", "shop.inventory.customers", 0, 0, AT)
    assert is_wanted(event, [], [])
    assert is_wanted(event, ["u"], ["customers"]) and is_wanted(event, [], ["inventory.customers"])
    assert not is_wanted(event, ["c", "d"], []) and not is_wanted(event, [], ["orders", "stomers"])
    tombstone = Event("x", "t", "t", 0, 0, AT)
    assert not is_wanted(tombstone, [], []) and is_wanted(tombstone, ["x"], [])
