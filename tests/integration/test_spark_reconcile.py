"""Rows that a snapshot did not show leave the table when it has ended, and no other row does. Real broker, real tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import FatalTaskError
from spark_sink.offsets import alter_tables
from spark_sink.routing import TableName
from tests.fix_spark import BIGINT, ID, INT, TEXT, Lake, Watched, iceberg_and_long_delta, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]

FIRST, LAST = "first_in_data_collection", "last_in_data_collection"

Records = list[tuple[bytes | None, bytes | None]]


def event(op: str, key: int, n: int, snapshot: str = "false", *, schema: str = "public") -> tuple[bytes, bytes]:
    """A change event, or a row of a snapshot, with its marker."""
    row = {**struct({"id": ID, "n": INT}), "optional": True}
    source = struct({"db": TEXT, "schema": TEXT, "table": TEXT, "ts_ms": BIGINT, "snapshot": TEXT})
    value = {
        "before": {"id": key, "n": n} if op == "d" else None,
        "after": None if op == "d" else {"id": key, "n": n},
        "source": {"db": "d", "schema": schema, "table": "t", "ts_ms": 1, "snapshot": snapshot},
        "op": op,
        "ts_ms": 2,
    }
    envelope = struct({"before": row, "after": row, "source": source, "op": TEXT, "ts_ms": BIGINT}, name=f"{schema}.Envelope")
    return with_schema(struct({"id": ID}), {"id": key}), with_schema(envelope, value)


def snapshot(rows: dict[int, int], first: str | None = FIRST, last: str | None = LAST) -> Records:
    """Rows as a source sends them."""
    markers = [first or "true", *["true"] * (len(rows) - 2), last or "true"] if len(rows) > 1 else [last or "true"]
    return [event("r", key, n, marker) for (key, n), marker in zip(rows.items(), markers, strict=True)]


def rows(lake: Lake) -> dict[int, int]:
    return {row["id"]: row["n"] for row in lake.rows("t")}


def alive(lake: Lake) -> set[int]:
    return {row["id"] for row in lake.whole_rows("t") if not row.get("__deleted")}


@iceberg_and_long_delta
def test_rows_that_went_unseen_leave_with_the_next_snapshot_whatever_the_batches_and_restarts(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, snapshot_reconcile="true", max__offsets__per__trigger="4")
    lake.produce(topic, [event("c", key, 0) for key in range(1, 9)])
    lake.produce(topic, [event("u", 8, 1), event("d", 7, 0)])
    # 2, 3 and 8 were deleted unseen; 4 is changed, and 20 comes and 5 goes, while the snapshot is read
    seen = snapshot({1: 0, 4: 0, 5: 0, 6: 5, 9: 0})
    lake.produce(topic, [*seen[:2], event("c", 20, 0), event("u", 4, 7), *seen[2:4], event("d", 5, 0), *seen[4:], event("c", 2, 9)])
    batches = 0
    while True:  # a task for each batch: what it knows of the snapshot is in the table
        task = lake.start(config)
        reached = task.step()
        task.close()
        if reached is None:
            break
        lake.context.group.update(reached)
        batches += 1
    assert batches > 4
    assert rows(lake) == {1: 0, 4: 7, 6: 5, 9: 0, 20: 0, 2: 9}

    lake.context.group = {TopicPartition(topic, 0): 0}
    commits = lake.snapshots("t")
    lake.drain(lake.start(config))
    assert lake.snapshots("t") == commits, "the log again changes nothing"

    lake.produce(topic, snapshot({1: 0, 9: 0}, "first", "last"))
    lake.drain(lake.start(config))
    assert rows(lake) == {1: 0, 9: 0}


@pytest.mark.long
@iceberg_and_long_delta
def test_rows_that_came_and_went_in_the_snapshots_own_batch_do_not_come_back(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, 0), event("c", 2, 0), *snapshot({1: 1, 3: 1}), event("u", 1, 2), *snapshot({1: 2, 4: 1})])
    lake.drain(lake.start(lake.config(topic, snapshot_reconcile="true")))
    assert rows(lake) == {1: 2, 4: 1}


@pytest.mark.long
@iceberg_and_long_delta
def test_under_soft_deletes_rows_that_were_not_seen_are_marked(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, snapshot_reconcile="true", tables_delete__mode="soft")
    task = lake.start(config)
    lake.produce(topic, [event("c", key, 0) for key in range(1, 5)])
    lake.drain(task)
    lake.produce(topic, snapshot({1: 0, 4: 1}))
    lake.drain(task)
    assert rows(lake) == {1: 0, 2: 0, 3: 0, 4: 1}
    assert alive(lake) == {1, 4}
    lake.produce(topic, [event("c", 2, 5)])
    lake.drain(task)
    assert alive(lake) == {1, 2, 4}


@iceberg_and_long_delta
@pytest.mark.parametrize(
    "records",
    [
        snapshot({1: 1, 4: 1}, first=None),  # its beginning was not seen
        snapshot({1: 1, 4: 1}, last=None),  # it was broken off
        pytest.param(snapshot({1: 1}), marks=pytest.mark.long),  # one row, or a source's that sends its last row again
        pytest.param([event("r", 1, 1, "incremental"), event("r", 4, 1, "incremental")], marks=pytest.mark.long),
        pytest.param([event("c", 1, 1, "first"), event("c", 4, 1, "last")], marks=pytest.mark.long),
    ],
    ids=["headless", "endless", "lone", "incremental", "changes"],
)
def test_what_is_no_whole_snapshot_deletes_nothing(lake: Lake, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", key, 0) for key in range(1, 5)])
    task = lake.start(lake.config(topic, snapshot_reconcile="true"))
    lake.drain(task)
    lake.produce(topic, records)
    lake.drain(task)
    assert set(rows(lake)) == {1, 2, 3, 4}


@pytest.mark.long
def test_without_the_property_nothing_is_deleted_and_nothing_is_kept_of_it(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", key, 0) for key in range(1, 5)] + snapshot({1: 1, 4: 1}))
    lake.drain(lake.start(lake.config(topic)))
    assert set(rows(lake)) == {1, 2, 3, 4}
    assert not any("snapshots-begun" in name for name in lake.table("t").properties)
    assert "__offset" not in lake.whole_rows("t")[0]


@pytest.mark.long
@iceberg_and_long_delta
def test_offsets_that_were_altered_within_a_snapshot_end_it(lake: Lake) -> None:
    topic = lake.topic("t")
    config, tp = lake.config(topic, snapshot_reconcile="true"), TopicPartition(topic, 0)
    lake.produce(topic, [event("c", key, 0) for key in range(1, 5)] + snapshot({1: 1, 2: 1, 3: 1, 4: 1})[:2])
    watched = Watched()
    task = lake.start(config, make_tables=watched)
    lake.drain(task)
    lake.produce(topic, snapshot({1: 1, 2: 1, 3: 1, 4: 1})[2:])
    alter_tables(watched.tables, {topic: [TableName(("public", "t"))]}, {tp: 7}, ())  # row 3 of the snapshot is left out
    task.close()
    lake.context.group = {tp: 7}
    lake.drain(lake.start(config))
    assert set(rows(lake)) == {1, 2, 3, 4}


@pytest.mark.long
@iceberg_and_long_delta
def test_a_rolled_back_table_knows_the_snapshot_that_was_under_way(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, snapshot_reconcile="true")
    begun = snapshot({1: 1, 3: 1, 4: 1})
    lake.produce(topic, [*[event("c", key, 0) for key in range(1, 5)], *begun[:1]])
    task = lake.start(config)
    lake.drain(task)
    lake.produce(topic, begun[1:2])
    lake.drain(task)
    lake.roll_back(task, "t")
    lake.produce(topic, begun[2:])
    task.close()
    lake.drain(lake.start(config))
    assert rows(lake) == {1: 1, 3: 1, 4: 1}


def test_a_snapshot_that_does_not_show_which_rows_are_gone_is_refused(lake: Lake) -> None:
    two, mixed = lake.topic("two", partitions=2), lake.topic("mixed")
    lake.produce(two, [event("c", 1, 0)], partition=1)
    lake.produce(two, snapshot({2: 0, 3: 0}))
    with pytest.raises(FatalTaskError, match=r"has 2 partitions.*lakehouse\.table\.public\.t\.snapshot\.reconcile=false"):
        lake.drain(lake.start(lake.config(two, snapshot_reconcile="true", tables_route__pattern="public.t")))
    records = [event("r", 1, 0, FIRST), event("r", 2, 0, LAST), event("r", 3, 0, FIRST, schema="x"), event("r", 4, 0, LAST, schema="x")]
    lake.produce(mixed, records)
    with pytest.raises(FatalTaskError, match="carries several tables"):
        lake.drain(lake.start(lake.config(mixed, snapshot_reconcile="true", tables_route__pattern="public.u")))
    off = {"lakehouse.table.public.u.snapshot.reconcile": "false"}
    lake.drain(lake.start(lake.config(mixed, snapshot_reconcile="true", tables_route__pattern="public.u") | off))
    assert len(lake.rows("u")) == 4
