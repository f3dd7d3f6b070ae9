"""A MERGE reads the part of a table that its keys can be in, and finds every row there: few keys, many, of each type, and null."""

from __future__ import annotations

import base64
import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from connect_py.data.schema import decimal_to_bytes
from spark_sink.tables.bounds import LISTED
from tests.fix_spark import INT, Lake, Watched, both_formats, struct, with_schema
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.spark]

EPOCH = datetime.date(1970, 1, 1)
DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1}
#: Name of a key column: its schema, and values at the edges of its type as the table has them.
KEYS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "n": ({"type": "int64"}, [-(2**63), -1, 0, 7, 2**63 - 1]),
    "s": ({"type": "string"}, ["", "a", "it's", 'a\\"b', "日\U0001f600", "%", "x" * 300]),
    "d": (
        {"type": "int32", "name": "io.debezium.time.Date"},
        [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)],
    ),
    "m": (
        {**DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "12"}},
        [Decimal("-12.50"), Decimal("0.00"), Decimal("7.01")],
    ),
    "o": ({"type": "int64", "optional": True}, [None, 0, 5]),
}
KEY = struct({name: schema for name, (schema, _) in KEYS.items()})
ROW = struct({**{name: schema for name, (schema, _) in KEYS.items()}, "v": INT})


def written(value: Any) -> Any:
    """A value as JsonConverter writes it."""
    match value:
        case datetime.date():
            return (value - EPOCH).days
        case Decimal():
            return base64.b64encode(decimal_to_bytes(value, 2)).decode()
    return value


def record(key: tuple[Any, ...], value: int | None) -> tuple[bytes, bytes | None]:
    """An upsert of a row, or the tombstone of its key."""
    fields = {name: written(part) for name, part in zip(KEYS, key, strict=True)}
    return with_schema(KEY, fields), None if value is None else with_schema(ROW, {**fields, "v": value})


@both_formats
@pytest.mark.rotates(keep=2)
@pytest.mark.parametrize("columns", [("n",), ("s",), ("d", "m"), tuple(KEYS)], ids="-".join)
def test_every_row_is_found_whatever_its_key(lake: Lake, columns: tuple[str, ...]) -> None:
    [seed] = seeds(1)
    print(f"seed {seed}")
    chance = random.Random(seed)
    said: list[str] = []
    topic = lake.topic("t")
    task = lake.start(lake.config(topic), make_tables=Watched(said.append, by_statements=True))
    rows: dict[tuple[Any, ...], int] = {}
    for number, count in enumerate((20, 15, 3 * LISTED, 1, 12)):
        records = []
        for _ in range(count):
            key = tuple(chance.choice(values) if name in columns else values[1] for name, (_, values) in KEYS.items())
            value = None if chance.random() < 0.3 else chance.randrange(1000)
            records.append(record(key, value))
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
        if number == 0:  # of tombstones alone no table is made
            records.append(record(key, 1))
            rows[key] = 1
        lake.produce(topic, records)
        lake.drain(task)
        assert {tuple(row[name] for name in KEYS): row["v"] for row in lake.rows("t")} == rows
    merges = [text for text in said if text.startswith("MERGE")]
    assert any("t.`n` IN (" in text for text in merges)
    assert any("t.`n` BETWEEN " in text for text in merges)
    assert not any("t.`o` IN" in text or "t.`o` BETWEEN" in text for text in merges), "a null is in no list"
