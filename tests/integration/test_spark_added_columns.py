"""A table that exists gains a column of every type that the sink knows, in both formats, by batches that either mode plans."""

from __future__ import annotations

import base64
import datetime
import os
import random
from decimal import Decimal
from typing import Any

import pytest

from spark_sink.types.columns import LOGICAL, PLAIN
from tests.fix_spark import Lake, event, struct
from tests.seeds import LONG as IN_LONG_TESTS
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.spark]


def named(name: str, type_: str, **parameters: str) -> dict[str, Any]:
    return {"type": type_, "name": name, "parameters": parameters, "optional": True}


DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 11, 5, 1)
MILLIS = 1_709_204_701_000
DATE = named("io.debezium.time.Date", "int32")
LOCAL = named("io.debezium.time.Timestamp", "int64")
JSON = named("io.debezium.data.Json", "string")
BINARY = base64.b64encode(b"\x05").decode()

VARIABLE = struct({"scale": {"type": "int32"}, "value": {"type": "bytes"}})["fields"]
PAIRS = {"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}}
SPARSE = struct({"dimensions": {"type": "int16"}, "vector": PAIRS})["fields"]
GEOMETRY = struct({"wkb": {"type": "bytes"}, "srid": {"type": "int32"}})["fields"]

#: Schema, value, and what the table has of it. The first two need a newer table than one of plain columns.
TYPES: list[tuple[dict[str, Any], Any, Any]] = [
    (LOCAL, MILLIS, MOMENT),
    (JSON, '{"a":[1]}', '{"a":[1]}'),
    ({"type": "boolean"}, True, True),
    ({"type": "int8"}, 8, 8),
    ({"type": "int16"}, 16, 16),
    ({"type": "int32"}, 32, 32),
    ({"type": "int64"}, 64, 64),
    ({"type": "float"}, 0.5, 0.5),
    ({"type": "double"}, 0.25, 0.25),
    ({"type": "string"}, "s", "s"),
    ({"type": "bytes"}, BINARY, b"\x05"),
    ({"type": "array", "items": {"type": "int32"}}, [1], [1]),
    ({"type": "array", "items": LOCAL}, [MILLIS], [MOMENT]),
    ({"type": "map", "keys": {"type": "string"}, "values": JSON}, {"k": "[2]"}, {"k": "[2]"}),
    (struct({"l": LOCAL, "j": JSON}), {"l": MILLIS, "j": "3"}, {"l": MOMENT, "j": "3"}),
    (named("org.apache.kafka.connect.data.Decimal", "bytes", scale="2", **{"connect.decimal.precision": "9"}), BINARY, Decimal("0.05")),
    (named("io.debezium.data.geometry.Geometry", "struct") | {"fields": GEOMETRY}, {"wkb": BINARY, "srid": 1}, {"wkb": b"\x05", "srid": 1}),
    (named("org.apache.kafka.connect.data.Date", "int32"), 19782, DAY),
    (named("org.apache.kafka.connect.data.Time", "int32"), 1000, "00:00:01"),
    (named("org.apache.kafka.connect.data.Timestamp", "int64"), MILLIS, MOMENT),
    (DATE, 19782, DAY),
    (named("io.debezium.time.IsoDate", "string"), "2024-02-29Z", DAY),
    (named("io.debezium.time.Time", "int32"), 1000, "00:00:01"),
    (named("io.debezium.time.MicroTime", "int64"), 1_000_000, "00:00:01"),
    (named("io.debezium.time.NanoTime", "int64"), 1_000_000_000, "00:00:01"),
    (named("io.debezium.time.IsoTime", "string"), "00:00:01Z", "00:00:01Z"),
    (named("io.debezium.time.ZonedTime", "string"), "00:00:01Z", "00:00:01Z"),
    (named("io.debezium.time.MicroTimestamp", "int64"), MILLIS * 1000, MOMENT),
    (named("io.debezium.time.NanoTimestamp", "int64"), MILLIS * 1_000_000, MOMENT),
    (named("io.debezium.time.IsoTimestamp", "string"), "2024-02-29T11:05:01Z", MOMENT),
    (named("io.debezium.time.ZonedTimestamp", "string"), "2024-02-29T11:05:01Z", MOMENT),
    (named("io.debezium.time.Year", "int32"), 2024, 2024),
    (named("io.debezium.time.Interval", "string"), "P1D", "P1D"),
    (named("io.debezium.time.MicroDuration", "int64"), 7, 7),
    (named("io.debezium.time.NanoDuration", "int64"), 7000, 7),
    (named("io.debezium.data.VariableScaleDecimal", "struct") | {"fields": VARIABLE}, {"scale": 1, "value": BINARY}, "0.5"),
    (named("io.debezium.data.Bits", "bytes", length="9"), BINARY, b"\x05"),
    (
        named("io.debezium.data.SparseDoubleVector", "struct") | {"fields": SPARSE},
        {"dimensions": 3, "vector": [[1, 0.5]]},
        {"dimensions": 3, "vector": {1: 0.5}},
    ),
    *((named(f"io.debezium.data.{name}", "string"), "x", "x") for name in ("Uuid", "Xml", "Enum", "EnumSet", "Ltree", "Tsvector")),
]  # fmt: skip


def test_the_walk_has_every_type_of_the_sinks_table() -> None:
    assert {schema["type"] for schema, _, _ in TYPES if "name" not in schema} >= PLAIN.keys()
    assert {schema["name"] for schema, _, _ in TYPES if "name" in schema} >= LOGICAL.keys()


LONG = pytest.mark.long


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("lake", "mode", "alone"),
    [
        ("delta", "loop", 2),
        pytest.param("iceberg", "loop", 2, marks=LONG),
        pytest.param("delta", "stream", 8, marks=LONG),
        pytest.param("iceberg", "stream", 8, marks=LONG),
    ],
    indirect=["lake"],
)
def test_a_table_gains_a_column_of_every_type(lake: Lake, mode: str, alone: int) -> None:
    """All types in the long tests; in each other run some, besides those that need a newer table.

    Args:
        alone: how many types come by a batch of their own; the others come by one.
    """
    [seed] = seeds(1)
    print(f"seed {seed}")
    types = TYPES if IN_LONG_TESTS in os.environ else [*TYPES[:2], *random.Random(seed).sample(TYPES[2:], 12)]
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, source_mode=mode, json_mode="variant"))
    lake.produce(topic, [event("c", 0, {"n": 0}, {"n": {"type": "int32"}})])
    lake.drain(task)
    columns: dict[str, Any] = {}
    row: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for number, (schema, value, stored) in enumerate(types):
        given = {**schema, "optional": True}
        name = f"c{number}"
        columns[name], row[name], expected[name] = given, value, stored
        if number < alone or number == len(types) - 1:
            lake.produce(topic, [event("c", number + 1, row, columns)])
            assert lake.drain(task) == 1, f"with {given}"
    rows = {found["id"]: found for found in lake.rows_by_spark(task, "t")}
    assert set(rows[0].values()) == {0, None}
    assert {name: plain(value) for name, value in rows[len(types)].items() if name in expected} == expected


@pytest.mark.long
def test_an_iceberg_table_with_a_variant_within_a_column_takes_the_next_batch_too(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, json_mode="variant"))
    columns: dict[str, Any] = {"m": {"type": "map", "keys": {"type": "string"}, "values": JSON, "optional": True}}
    for number in (1, 2):
        lake.produce(topic, [event("c", 1, {"m": {"k": str(number)}}, columns)])
        assert lake.drain(task) == 1
    assert [plain(row["m"]) for row in lake.rows_by_spark(task, "t")] == [{"k": "2"}]


def plain(value: Any) -> Any:
    """What Spark gives, in Python's own types; instants in UTC."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return str(value) if type(value).__name__ == "VariantVal" else value
