"""Which event of a key is the last, when the log is not in the source's order."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from spark_sink.config.sink_config import parse
from spark_sink.sql.decode import decode_sql
from spark_sink.sql.record_schema import read_schemas
from spark_sink.types.columns import TypeOptions
from tests.fix_spark import BIGINT, ID, TEXT, Lake, iceberg_and_long_delta, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]


def positioned(
    op: str,
    key: int,
    value: str | None,
    commit: int | None,
    lsn: int,
    changed: int | None = None,
    *,
    type_: dict[str, Any] = BIGINT,
) -> tuple[bytes, bytes]:
    """An event of PostgreSQL's at a position. A delete holds what the old row had in `changed`, a column of the type given."""
    of_row = {**struct({"id": ID, "v": TEXT, "changed": type_}), "optional": True}
    source = struct({"db": TEXT, "schema": TEXT, "table": TEXT, "ts_ms": BIGINT, "sequence": TEXT, "lsn": BIGINT})
    envelope = struct({"before": of_row, "after": of_row, "source": source, "op": TEXT, "ts_ms": BIGINT}, name="x.Envelope")
    row = {"id": key, "v": value, "changed": changed}
    before, after = (row, None) if op == "d" else (None, row)
    sequence = json.dumps([None if number is None else str(number) for number in (commit, lsn)])
    place = {"db": "d", "schema": "public", "table": "t", "ts_ms": 1, "sequence": sequence, "lsn": lsn}
    payload = {"before": before, "after": after, "source": place, "op": op, "ts_ms": 2}
    return with_schema(struct({"id": ID}), {"id": key}), with_schema(envelope, payload)


def rows(lake: Lake) -> dict[int, str | None]:
    return {row["id"]: row["v"] for row in lake.rows("t")}


#: The source's history: what is left of it is {1: "c", 3: "y"}. Key 2 ends deleted; 9999 and 10000 differ in their number of digits.
HISTORY = [
    positioned("r", 1, "a", 0, 90),
    positioned("c", 2, "x", 100, 110),
    positioned("u", 1, "b", 9999, 10000),
    positioned("d", 2, None, 10010, 9000),
    positioned("u", 1, "c", 10010, 20000),
    positioned("c", 3, "y", 10010, 20001),
]


@iceberg_and_long_delta
def test_by_the_sources_positions_every_order_and_division_of_the_log_leaves_the_same(lake: Lake) -> None:
    seed = random.randrange(1_000_000)
    rng = random.Random(seed)
    topic = lake.topic("t", partitions=2)
    events = [*HISTORY, *HISTORY[:4]]
    rng.shuffle(events)
    task = lake.start(lake.config(topic, tables_ordering="source", max__offsets__per__trigger="5"))
    for each in events:
        lake.produce(topic, [each], partition=rng.randrange(2))
    lake.drain(task)
    assert rows(lake) == {1: "c", 3: "y"}, f"seed {seed}"
    lake.produce(topic, [HISTORY[1]])
    lake.drain(task)
    assert rows(lake) == {1: "c", 3: "y"}, f"a deleted row has come back; seed {seed}"
    lake.context.rewind()
    lake.drain(lake.start(lake.config(topic, tables_ordering="source")))
    assert rows(lake) == {1: "c", 3: "y"}, f"seed {seed}"


@pytest.mark.long
def test_a_higher_epoch_wins_over_the_positions_before_a_restore(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, HISTORY)
    lake.drain(lake.start(lake.config(topic, tables_ordering="source")))
    lake.produce(topic, [positioned("u", 1, "restored", 1, 2), positioned("c", 2, "restored", 1, 3)])
    lake.drain(lake.start(lake.config(topic, tables_ordering="source", tables_position__epoch="1")))
    assert rows(lake) == {1: "restored", 2: "restored", 3: "y"}


@pytest.mark.long
def test_a_column_can_decide_and_ties_and_deletes_go_by_the_log(lake: Lake) -> None:
    topic = lake.topic("t")
    events = [("c", 1, "new", 20), ("u", 1, "old", 10), ("c", 2, "first", 5), ("u", 2, "tie", 5), ("c", 3, "gone", 9), ("d", 3, None, None)]
    lake.produce(topic, [positioned(op, key, value, 1, 1, changed) for op, key, value, changed in events[:3]])
    task = lake.start(lake.config(topic, tables_ordering="column:changed"))
    lake.drain(task)
    lake.produce(topic, [positioned(op, key, value, 1, 1, changed) for op, key, value, changed in events[3:]])
    lake.produce(topic, [positioned("u", 1, "older", 1, 1, 19)])
    lake.drain(task)
    assert rows(lake) == {1: "new", 2: "tie"}


def test_a_new_snapshot_wins_over_what_was_streamed_before_it_and_over_nothing_else(lake: Lake) -> None:
    """At 500 a snapshot is taken, blocking or by a connector with a new slot, after the changes of keys 1 and 5 were missed."""
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, tables_ordering="source"))
    before = [
        positioned("u", 1, "streamed", 200, 210),
        positioned("d", 5, None, 210, 220),
        positioned("u", 2, "by a transaction that was open at 500", 510, 430),
        positioned("u", 3, "after 500", 490, 505),
        positioned("u", 4, "the first of another slot", None, 600),
    ]
    lake.produce(topic, before)
    lake.drain(task)
    lake.produce(topic, [positioned("r", key, "snapshot", None, 500) for key in range(1, 6)])
    lake.produce(topic, [positioned("u", 1, "repeated", 200, 210), positioned("r", 6, "blocking", 500, 500)])
    lake.drain(task)
    assert rows(lake) == {
        1: "snapshot",
        2: "by a transaction that was open at 500",
        3: "after 500",
        4: "the first of another slot",
        5: "snapshot",
        6: "blocking",
    }
    lake.produce(topic, [positioned("u", 6, "open while it was read", 500, 400), positioned("u", 5, "the first of a slot", None, 505)])
    lake.drain(task)
    assert (rows(lake)[5], rows(lake)[6]) == ("the first of a slot", "open while it was read")


#: By key, in the log's order: an operation, a value, and what the ordering column says. What is left: `LEFT`.
BY_COLUMN: dict[int, list[tuple[str, str, int | None]]] = {
    1: [("c", "old", 20), ("d", "", None), ("c", "inserted again", 10)],
    2: [("c", "old", 5), ("d", "", 5), ("c", "inserted again", 6)],
    3: [("c", "the row", 7), ("d", "", 3)],
    4: [("c", "old", 5), ("u", "without", None), ("u", "after it", 4)],
    5: [("c", "old", 5), ("u", "without", None)],
    6: [("c", "old", 5), ("u", "tie", 5)],
    7: [("c", "new", 8), ("u", "late", 7)],
    8: [("c", "gone", 8), ("u", "gone too", 9), ("d", "", None)],
    9: [("c", "gone", 8), ("d", "", 9)],
}
LEFT = {1: "inserted again", 2: "inserted again", 3: "the row", 4: "after it", 5: "without", 6: "tie", 7: "new"}


@pytest.mark.parametrize("mode", ["hard", pytest.param("soft", marks=pytest.mark.long)])
@pytest.mark.parametrize("bound", [100, pytest.param(1, marks=pytest.mark.long)], ids=["one batch", "an event a batch"])
def test_deletes_compete_by_the_column_and_events_without_a_value_are_taken_in_the_order_of_the_log(
    lake: Lake, mode: str, bound: int
) -> None:
    topic = lake.topic("t")
    more = {"tables_ordering": "column:changed", "tables_delete__mode": mode, "max__offsets__per__trigger": str(bound)}
    lake.produce(topic, [positioned(op, key, value, 1, 1, changed) for key, events in BY_COLUMN.items() for op, value, changed in events])
    task = lake.start(lake.config(topic, **more))
    lake.drain(task)
    gone = {1} if (mode, bound) == ("soft", 1) else set()  # the marked row keeps its value, to which a later batch compares its events

    def left() -> dict[int, str | None]:
        return {row["id"]: row["v"] for row in lake.whole_rows("t") if not row.get("__deleted")}

    assert left() == {key: value for key, value in LEFT.items() if key not in gone}
    lake.produce(topic, [positioned("d", 3, "", 1, 1, 6), positioned("d", 7, "", 1, 1, 8)])
    lake.drain(task)
    assert left() == {key: value for key, value in LEFT.items() if key not in gone | {7}}


@pytest.mark.long
@pytest.mark.parametrize("default", [None, 3])
def test_what_a_source_writes_for_a_column_that_it_does_not_know_is_no_value(lake: Lake, default: int | None) -> None:
    """A table whose replica identity is its key: Debezium has zero, or the column's default, where NULL is not allowed."""
    topic = lake.topic("t")
    type_ = {"type": "int64", "optional": False, **({} if default is None else {"default": default})}
    task = lake.start(lake.config(topic, tables_ordering="column:changed"))
    lake.produce(topic, [positioned("c", key, "x", 1, 1, 9, type_=type_) for key in (1, 2)])
    lake.drain(task)
    lake.produce(topic, [positioned("d", 1, "", 1, 1, default or 0, type_=type_), positioned("d", 2, "", 1, 1, 4, type_=type_)])
    lake.drain(task)
    assert rows(lake) == {2: "x"}


@pytest.mark.long
def test_positions_of_each_connector_are_texts_in_the_order_of_the_source(held_spark: Any) -> None:
    base = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w", "lakehouse.tables.ordering": "source"}
    of_source: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
        "mysql": (
            {"file": TEXT, "pos": BIGINT, "row": BIGINT},
            [{"file": "bin.999", "pos": 9, "row": 0}, {"file": "bin.999", "pos": 9, "row": 1}, {"file": "bin.1000", "pos": 4, "row": 0}],
        ),
        "postgres": ({"lsn": BIGINT}, [{"lsn": None}, {"lsn": 9}, {"lsn": 10}]),
        "oracle": ({"scn": TEXT, "ssn": BIGINT}, [{"scn": "9", "ssn": 1}, {"scn": "10", "ssn": 0}]),
        "oracle with commits": (
            {"scn": TEXT, "ssn": BIGINT, "commit_scn": TEXT},
            [{"scn": "8", "ssn": 1, "commit_scn": "9"}, {"scn": "10", "ssn": 0}, {"scn": "7", "ssn": 1, "commit_scn": "11"}],
        ),
        "mongodb": (
            {"ts_ms": BIGINT, "ord": BIGINT, "collection": TEXT},
            [{"ts_ms": 1000, "ord": 9}, {"ts_ms": 1999, "ord": 10}, {"ts_ms": 2000, "ord": 1}],
        ),
        "other": ({"ts_ms": BIGINT, "ts_us": BIGINT}, [{"ts_us": 999}, {"ts_us": 1000}]),
    }
    for name, (fields, places) in of_source.items():
        of_row = {**struct({"id": ID}), "optional": True}
        envelope = struct({"before": of_row, "after": of_row, "source": struct(fields), "op": TEXT}, name="x.Envelope")
        schema = read_schemas(struct({"id": ID}), envelope, tombstone=False, options=TypeOptions())
        found = []
        for place, op in itertools.product(places, ("r", "u")):
            value = json.dumps({"after": {"id": 1}, "source": place, "op": op}).replace("'", "''")
            frame = held_spark.sql(
                f"SELECT 't' topic, 0 partition, 0L offset, timestamp '2024-01-01' timestamp, '{{\"id\":1}}' key, '{value}' value"
            )
            for step in decode_sql(schema, {}, parse(base)):
                frame = frame.selectExpr(*step)
            found.append(frame.collect()[0]["__position"])
        assert found == sorted(found), name
        assert len(set(found)) == len(found), name
