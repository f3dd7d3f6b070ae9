"""JSON without schemas: the table's types decide, then what was configured, then the batch."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.fix_spark import Lake

pytestmark = [pytest.mark.services, pytest.mark.spark]


def without_schemas(op: str, key: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> tuple[bytes, bytes]:
    source = {"db": "d", "schema": "public", "table": "t", "ts_ms": 1}
    value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2}
    return json.dumps({"id": key}).encode(), json.dumps(value).encode()


def test_a_batch_tells_types_the_table_keeps_them_and_what_does_not_fit_is_a_bad_record(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic) | {
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "lakehouse.table.public.t.column-types": "seen:timestamp,price:decimal(10,2)",
        "errors.tolerance": "all",
    }
    row = {"id": 1, "n": 5, "x": 1.5, "s": "a", "z": None, "seen": 1700000000000, "price": "MDk=", "o": {"h": True}, "l": [1, 2]}
    lake.produce(
        topic,
        [
            without_schemas("c", 1, row),
            without_schemas("c", 2, {**row, "id": 2, "n": None, "x": 2, "seen": None, "price": None, "o": None, "l": []}),
            without_schemas("u", 1, {**row, "n": 6, "s": None}),
            without_schemas("c", 3, {"id": 3, "n": 1}),
            without_schemas("d", 3, None, {"id": 3, "n": 1}),
            (b'{"id":3}', None),
        ],
    )
    task = lake.start(config)
    lake.drain(task)
    first = {
        "id": 1,
        "n": 6,
        "x": 1.5,
        "s": None,
        "seen": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC),
        "price": Decimal("123.45"),
        "o": {"h": True},
        "l": [1, 2],
    }
    second = {**first, "id": 2, "n": None, "x": 2.0, "s": "a", "seen": None, "price": None, "o": None, "l": []}
    assert sorted(lake.rows("t"), key=lambda found: found["id"]) == [first, second]
    assert lake.types("t")["n"] == "bigint" and lake.types("t")["x"] == "double"
    lake.produce(
        topic, [without_schemas("c", 4, {"id": 4, "n": "no number"}), without_schemas("u", 2, {"id": 2, "z": "now"}), (b"{", b'{"op":"c"}')]
    )
    lake.drain(task)
    assert sorted(bad.offset for bad in lake.context.rejected) == [6, 8]
    rows = {found["id"]: found for found in lake.rows("t")}
    assert (rows.keys(), rows[2]["z"], rows[1]["z"]) == ({1, 2}, "now", None)
