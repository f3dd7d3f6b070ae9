"""What each way of writing makes of the same events: upsert with its three kinds of deletes, changelog, truncates."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import INT, TEXT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

COLUMNS = {"n": INT, "body": TEXT}
PLACEHOLDER = "__debezium_unavailable_value"


def change(op: str, key: int | None, n: int | None = None, body: str | None = None) -> tuple[bytes | None, bytes]:
    return event(op, key, {"n": n, "body": body}, COLUMNS)


def truncate() -> tuple[bytes | None, bytes]:
    """As Debezium writes it: no key, neither before nor after."""
    key, value = event("t", None, None, COLUMNS)
    return key, value


def changed_key() -> list[tuple[bytes | None, bytes | None]]:
    """Row 2 becomes row 9: a delete, a tombstone, a create."""
    delete = change("d", 2, 2, "b")
    return [delete, (delete[0], None), change("c", 9, 2, "b")]


STREAM = [change("c", 1, 1, "a"), change("c", 2, 2, "b"), change("u", 1, 10, PLACEHOLDER), *changed_key()]


def whole(lake: Lake) -> list[dict[str, Any]]:
    """All rows with all columns, by id."""
    return sorted(lake.table("t").scan().to_arrow().to_pylist(), key=lambda row: (row["id"] or 0, row.get("__offset", 0)))


@pytest.mark.parametrize("bound", [100, pytest.param(1, marks=pytest.mark.long)], ids=["one batch", "an event a batch"])
def test_deletes_remove_mark_or_leave_the_row(lake: Lake, bound: int) -> None:
    topic = lake.topic("t")
    lake.produce(topic, STREAM)
    found = {}
    for mode in ("hard", "soft", "ignore"):
        more = {"tables_delete__mode": mode, "tables_namespace": mode, "tables_route__pattern": "t"}
        lake.context.rewind()
        lake.drain(lake.start(lake.config(topic, max__offsets__per__trigger=str(bound), **more)))
        rows = lake.table(f"../{mode}/t").scan().to_arrow().to_pylist()
        found[mode] = sorted((row["id"], row["n"], row["body"], row.get("__deleted")) for row in rows)
    assert found["hard"] == [(1, 10, "a", None), (9, 2, "b", None)]
    assert found["soft"] == [(1, 10, "a", False), (2, 2, "b", True), (9, 2, "b", False)]
    assert found["ignore"] == [(1, 10, "a", None), (2, 2, "b", None), (9, 2, "b", None)]


@pytest.mark.long
def test_a_row_that_comes_back_is_no_longer_marked_as_deleted(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, tables_delete__mode="soft"))
    lake.produce(topic, [change("c", 1, 1, "a"), change("d", 1), change("c", 2, 2, "b"), change("d", 2)])
    lake.drain(task)
    assert [(row["id"], row["n"], row["body"], row["__op"], row["__deleted"]) for row in whole(lake)] == [
        (1, 1, "a", "d", True),
        (2, 2, "b", "d", True),
    ]
    lake.produce(topic, [change("c", 1, 5, None)])
    lake.drain(task)
    assert [(row["id"], row["n"], row["body"], row["__deleted"]) for row in whole(lake)] == [(1, 5, None, False), (2, 2, "b", True)]


def test_a_changelog_has_every_event_once_with_its_place(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, tables_write__mode="append")
    lake.produce(topic, [*STREAM, truncate()])
    task = lake.start(config)
    lake.drain(task)
    lake.context.rewind()
    lake.drain(lake.start(config))
    rows = sorted(whole(lake), key=lambda row: row["__offset"])
    assert [(row["__offset"], row["__op"], row["id"], row["n"], row["body"]) for row in rows] == [
        (0, "c", 1, 1, "a"),
        (1, "c", 2, 2, "b"),
        (2, "u", 1, 10, None),
        (3, "d", 2, 2, "b"),
        (5, "c", 9, 2, "b"),
        (6, "t", None, None, None),
    ]
    assert [row["__unavailable"] for row in rows] == [None, None, ["body"], None, None, None]
    assert {(row["__topic"], row["__partition"], row["__ts_ms"], row["__source_ts_ms"]) for row in rows} == {(topic, 0, 2, 1)}


def test_a_truncate_takes_what_came_before_it_and_nothing_after(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [change("c", 1, 1, "a")])
    lake.drain(task)
    lake.produce(topic, [change("c", 2, 2, "b"), truncate(), change("c", 3, 3, '"op":"t"')])
    lake.drain(task)
    assert lake.rows("t") == [{"id": 3, "n": 3, "body": '"op":"t"'}]
    lake.produce(topic, [truncate()])
    lake.drain(task)
    assert lake.rows("t") == []
    assert lake.watermark("t") == {topic: {"0": 5}}


@pytest.mark.parametrize("mode", ["soft", pytest.param("ignore", marks=pytest.mark.long), "fail"])
def test_a_truncate_can_mark_be_ignored_or_stop_the_task(lake: Lake, mode: str) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic, tables_truncate__mode=mode))
    lake.produce(topic, [change("c", 1, 1, "a")])
    lake.drain(task)
    lake.produce(topic, [truncate(), change("c", 2, 2, "b")])
    if mode == "fail":
        with pytest.raises(FatalTaskError, match=r"was truncated.*lakehouse\.tables\.truncate-mode=fail"):
            task.step()
        return
    lake.drain(task)
    assert [(row["id"], row.get("__deleted")) for row in whole(lake)] == (
        [(1, True), (2, False)] if mode == "soft" else [(1, None), (2, None)]
    )
