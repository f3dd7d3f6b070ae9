"""The rules of `connect-py verify` for tables that keep every event, and for MongoDB's documents: without servers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from connect_py.app.verify.changelog import Changelog
from connect_py.app.verify.compare import Comparison, KeylessComparison
from connect_py.app.verify.layout import Layout, NotComparableError
from connect_py.app.verify.report import Outcome, Patience, as_json, as_text
from connect_py.app.verify.source import KeyRange, SourceRow, id_of
from connect_py.data import Struct
from connect_py.data.schema import INT32, OPTIONAL_STRING, STRING, struct
from spark_sink.config.sink_config import parse
from tests.seeds import seeds

SINK = parse(
    {
        "topics": "t",
        "lakehouse.catalog.type": "hadoop",
        "lakehouse.catalog.warehouse": "/w",
        "lakehouse.tables.write-mode": "append",
    }
)
KEY, ROW = struct([("id", INT32)]), struct([("id", INT32), ("a", OPTIONAL_STRING), ("b", OPTIONAL_STRING)])
COLUMNS = pa.schema(
    [
        ("id", pa.int32()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("__op", pa.string()),
        ("__topic", pa.string()),
        ("__partition", pa.int32()),
        ("__offset", pa.int64()),
        ("__ts_ms", pa.int64()),
        ("__unavailable", pa.list_(pa.string())),
    ]
)


class Table:
    """A table of events that the test changes; what is read comes in batches of three rows, in an order of the seed."""

    def __init__(self, rows: Sequence[dict[str, Any]] = (), columns: pa.Schema = COLUMNS, seed: int = 0) -> None:
        self.rows = list(rows)
        self._columns = columns
        self._chance = random.Random(seed)

    def refresh(self) -> bool:
        return True

    def columns(self) -> pa.Schema:
        return self._columns

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        shuffled = self._chance.sample(self.rows, len(self.rows))
        for first in range(0, len(shuffled), 3):
            part = shuffled[first : first + 3]
            yield pa.record_batch({name: pa.array([row[name] for row in part], COLUMNS.field(name).type) for name in columns})


class Log:
    """Writes events of one partition or more as rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._next: Counter[int] = Counter()

    def write(
        self, op: str, id_: int | None, a: str | None = None, b: str | None = None, *, unsent: tuple[str, ...] = (), **at: int
    ) -> None:
        partition = at.get("partition", 0)
        place = {"__topic": "t", "__partition": partition, "__offset": self._next[partition], "__ts_ms": at.get("ts", len(self.rows))}
        self._next[partition] += 1
        self.rows.append({"id": id_, "a": a, "b": b, "__op": op, "__unavailable": list(unsent) or None} | place)


def source_row(id_: int, a: str | None, b: str | None, *, keyed: bool = True) -> SourceRow:
    return SourceRow("t", Struct(KEY, [id_]) if keyed else None, Struct(ROW, [id_, a, b]))


class Keyed:
    """A source with two rows."""

    def ranges(self, name: str) -> Iterator[tuple[KeyRange, list[SourceRow]]]:
        yield KeyRange(name, None, ()), [source_row(1, "x", "y"), source_row(2, "z", "y")]


def left(table: Table, doubled: int = 0) -> list[tuple[Any, ...]]:
    """What a table's changes have left."""
    layout = Layout(COLUMNS, source_row(0, "", ""), SINK, fills_nulls=True, every_row=True)
    columns = [column.name for column in layout.columns]
    changelog = Changelog(table, layout)
    found = [row for rows in changelog.rows() for _, row in rows]
    assert changelog.doubled == doubled
    return sorted(tuple(row[columns.index(name)] for name in ("id", "a", "b")) for row in found)


# -- changelogs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(20), ids=str)
def test_what_any_history_leaves_is_what_the_source_has(seed: int) -> None:
    rng, log, rows = random.Random(seed), Log(), dict[int, list[str]]()
    for number in range(rng.randrange(1, 60)):
        id_ = rng.randrange(6)
        if rng.random() < 0.03:
            log.write("t", None)
            rows.clear()
        elif id_ not in rows:
            rows[id_] = [f"a{number}", f"b{number}"]
            log.write(rng.choice("cr"), id_, *rows[id_])
        elif rng.random() < 0.3:
            log.write("d", id_, *(rows.pop(id_) if rng.random() < 0.5 else (rows.pop(id_) and None, None)))
        else:
            unsent = rng.choice([(), ("a",), ("b",), ("a", "b")])
            rows[id_] = [rows[id_][place] if name in unsent else f"{name}{number}" for place, name in enumerate("ab")]
            log.write("u", id_, *(None if name in unsent else rows[id_][place] for place, name in enumerate("ab")), unsent=unsent)
    assert left(Table(log.rows, seed=seed)) == [(id_, *rows[id_]) for id_ in sorted(rows)]


def test_of_two_truncates_the_later_counts_in_whatever_order_they_are_read() -> None:
    log = Log()
    for op, id_ in [("t", None), ("c", 1), ("t", None)]:
        log.write(op, id_)
    for seed in range(20):
        assert left(Table(log.rows, seed=seed)) == [], seed


def test_of_a_key_in_several_partitions_the_change_made_last_counts() -> None:
    log = Log()
    log.write("c", 1, "old", partition=0, ts=5)
    log.write("u", 1, "new", partition=1, ts=7)
    assert left(Table(log.rows)) == [(1, "new", None)]


def test_events_that_the_table_has_twice_are_counted_and_leave_their_rows_once() -> None:
    log = Log()
    log.write("c", 1, "x", "y")
    log.write("c", 2, "x", "y")
    log.write("u", 2, "z", unsent=("b",))
    assert left(Table(log.rows * 2), doubled=3) == [(1, "x", "y"), (2, "z", "y")]
    layout = Layout(COLUMNS, source_row(0, "", ""), SINK, fills_nulls=True, every_row=True)
    outcome = Outcome("t", ["s"])
    table = Table([*log.rows, log.rows[0]])
    Comparison(outcome, Keyed(), table, layout, Patience(wait=0), changes=Changelog(table, layout)).run()  # type: ignore[arg-type]
    assert (outcome.counts["different"], outcome.doubled, outcome.equal) == (0, 1, False)
    assert "what 4 changes have left\n  1 of them are the same event as another one" in as_text(outcome)


def test_a_truncate_among_several_partitions_cannot_be_placed() -> None:
    log = Log()
    log.write("c", 1, "x", partition=0)
    log.write("t", None, partition=1)
    with pytest.raises(NotComparableError, match="several partitions and a truncate"):
        left(Table(log.rows))


def test_a_table_without_the_changes_places_is_not_guessed_at() -> None:
    with pytest.raises(NotComparableError, match="no column __offset"):
        left(Table(columns=COLUMNS.remove(COLUMNS.get_field_index("__offset"))))


# -- tables without a key --------------------------------------------------------------------------------------------------------------


class Sources:
    """A source without a key that the test changes."""

    def __init__(self, *rows: tuple[int, str]) -> None:
        self.rows = list(rows)

    def whole(self, name: str) -> Iterator[list[SourceRow]]:
        yield [source_row(id_, a, None, keyed=False) for id_, a in self.rows]


def compared(
    sources: Sources, table: Table, meanwhile: Callable[[], None] = lambda: None, rounds: int = 0, *, extras_count: bool = True
) -> Outcome:
    """`meanwhile` is called before each further look."""
    outcome = Outcome("t", ["s"])
    layout = Layout(COLUMNS, source_row(0, "", "", keyed=False), SINK, fills_nulls=True, every_row=True)
    looked = 0

    def sleep(_: float) -> None:
        nonlocal looked
        looked += 1
        meanwhile()

    KeylessComparison(
        outcome,
        sources,  # type: ignore[arg-type]
        table,
        layout,
        Patience(wait=rounds, pause=0),  # the time is up after this number of looks
        keeps_truncates=True,
        extras_count=extras_count,
        sleep=sleep,
        clock=lambda: looked,
    ).run()
    return outcome


@pytest.mark.parametrize("seed", seeds(20), ids=str)
def test_any_history_of_rows_without_a_key_is_equal_and_a_lost_or_doubled_event_is_not(seed: int) -> None:
    rng, log, rows = random.Random(seed), Log(), list[tuple[int, str]]()
    for _ in range(rng.randrange(5, 40)):
        row = (rng.randrange(3), rng.choice("xy"))
        what = rng.random()
        if rows and what < 0.25:
            gone = rows.pop(rng.randrange(len(rows)))
            log.write("d", *gone)
        elif rows and what < 0.5:
            rows[rng.randrange(len(rows))] = row
            log.write("u", *row)
        elif what > 0.97:
            rows.clear()
            log.write("t", None)
        else:
            rows.append(row)
            log.write("c", *row)
    outcome = compared(Sources(*rows), Table(log.rows))
    assert outcome.equal, outcome
    assert outcome.source_rows == len(rows)
    since = max((place for place, row in enumerate(log.rows) if row["__op"] == "t"), default=-1) + 1
    changes = [place for place in range(since, len(log.rows)) if log.rows[place]["__op"] in "cd"]
    if changes:
        one = rng.choice(changes)
        assert not compared(Sources(*rows), Table(log.rows[:one] + log.rows[one + 1 :])).equal
        assert not compared(Sources(*rows), Table([*log.rows, log.rows[one]])).equal


def test_rows_are_counted_and_each_difference_says_how_often_who_has_it() -> None:
    log = Log()
    for id_ in (1, 1, 2, 2, 3):
        log.write("c", id_, "x")
    outcome = compared(Sources((1, "x"), (1, "x"), (1, "x"), (2, "x"), (4, "x")), Table(log.rows))
    assert outcome.counts == {"missing": 2, "extra": 2, "different": 0}
    said = as_text(outcome)
    assert "missing   a='x', b=None, id=1: 3 times in the source, 2 in the table" in said
    assert "extra     a='x', b=None, id=2: 1 times in the source, 2 in the table" in said
    assert sorted(tuple(difference["copies"]) for difference in as_json(outcome)["differences"]) == [(0, 1), (1, 0), (1, 2), (3, 2)]


def test_rows_from_before_updates_are_no_difference_as_long_as_their_number_is_the_updates() -> None:
    log = Log()
    log.write("c", 1, "old")
    log.write("u", 1, "new")
    assert compared(Sources((1, "new")), Table(log.rows)).equal
    log.write("c", 7, "nobody's")
    outcome = compared(Sources((1, "new")), Table(log.rows))
    assert (outcome.unaccounted, outcome.updates, outcome.equal) == (1, 1, False)
    assert "1 rows more than the source's" in as_text(outcome)


def test_a_table_that_follows_without_ever_being_where_the_source_is_now_is_equal() -> None:
    log, sources = Log(), Sources((0, "v"))
    late = [0]

    def meanwhile() -> None:
        log.write("c", late[-1], "v")
        table.rows = log.rows
        late.append(late[-1] + 1)
        sources.rows.append((late[-1], "v"))

    table = Table()
    outcome = compared(sources, table, meanwhile, rounds=5)
    assert outcome.equal and outcome.settled == 1


def test_a_late_row_settles_that_an_update_has_left_in_the_table_once_more() -> None:
    log, sources = Log(), Sources((1, "new"), (2, "late"))
    log.write("c", 1, "old")
    log.write("u", 1, "new")

    def meanwhile() -> None:
        log.write("c", 2, "late")
        log.write("c", 2, "late")
        log.write("u", 3, "was late")
        table.rows = log.rows
        sources.rows.append((3, "was late"))

    table = Table(log.rows)
    outcome = compared(sources, table, meanwhile, rounds=1)
    assert outcome.equal and outcome.settled == 1


def test_where_deletes_are_ignored_rows_may_be_there_too_often_but_not_too_rarely() -> None:
    log = Log()
    log.write("c", 1, "x")
    log.write("c", 2, "x")
    assert compared(Sources((1, "x")), Table(log.rows), extras_count=False).equal
    assert not compared(Sources((1, "x"), (3, "x")), Table(log.rows), extras_count=False).equal


# -- documents -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id_", "column"),
    [
        ('{"$oid": "0123456789abcdef01234567"}', "0123456789abcdef01234567"),
        ('"0123456789abcdef01234567"', '"0123456789abcdef01234567"'),
        ('"plain"', "plain"),
        ('"with \\" and ž"', 'with " and ž'),
        ('"5"', '"5"'),
        ("5", "5"),
        ('{"$numberLong": "5"}', '{"$numberLong": "5"}'),
        ('""', '""'),
        ('"true"', '"true"'),
        ("true", "true"),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_ids_of_documents_are_what_the_sinks_column_says(id_: str, column: str) -> None:
    assert id_of(Struct(struct([("id", STRING)]), [id_])).without_default("_id") == column
