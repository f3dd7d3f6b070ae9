"""Slowly changing dimensions, type 2: every version of a row, with the times between which it was valid. Real broker, real tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import INT, TEXT, Lake, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]

PLACEHOLDER = "__debezium_unavailable_value"


def at(seconds: int, op: str, key: int | None, n: int = 0, body: str = "b") -> tuple[bytes | None, bytes]:
    """An event at a moment of the source."""
    of_key, value = event(op, key, {"n": n, "body": body}, {"n": INT, "body": TEXT})
    whole = json.loads(value)
    whole["payload"]["source"]["ts_ms"] = seconds * 1000
    return of_key, json.dumps(whole, separators=(",", ":")).encode()


def versions(lake: Lake) -> list[tuple[Any, ...]]:
    rows = [
        (
            row["id"],
            int(row["__valid_from"].timestamp()),
            None if row["__valid_to"] is None else int(row["__valid_to"].timestamp()),
            row["__is_current"],
            row["n"],
            row["body"],
        )
        for row in lake.whole_rows("t")
    ]
    return sorted(rows, key=lambda row: row[:2])


@iceberg_and_long_delta
def test_every_version_is_kept_with_its_times_and_unsent_values_are_those_before(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, tables_write__mode="scd2")
    lake.produce(topic, [at(1, "r", 1, 10, "long"), at(2, "u", 1, 11, PLACEHOLDER), at(3, "c", 2, 20), at(4, "d", 2)])
    task = lake.start(config)
    lake.drain(task)
    first = [(1, 1, 2, False, 10, "long"), (1, 2, None, True, 11, "long"), (2, 3, 4, False, 20, "b")]
    assert versions(lake) == first
    lake.produce(topic, [at(5, "u", 1, 12, PLACEHOLDER), at(6, "d", 1), at(7, "c", 1, 13, PLACEHOLDER), at(8, "c", 3, 30)])
    lake.drain(task)
    wanted = [
        first[0],
        (1, 2, 5, False, 11, "long"),
        (1, 5, 6, False, 12, "long"),
        (1, 7, None, True, 13, None),
        first[2],
        (3, 8, None, True, 30, "b"),
    ]
    assert versions(lake) == wanted
    lake.context.rewind()
    lake.drain(lake.start(config))
    assert versions(lake) == wanted
    assert lake.snapshots("t") == 2
    if lake.format == "iceberg":
        lake.produce(topic, [at(9, "c", None, 1)])
        with pytest.raises(FatalTaskError, match=r"The key of table public\.t changes|have no key"):
            task.step()
