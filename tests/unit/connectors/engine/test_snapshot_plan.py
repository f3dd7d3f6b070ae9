"""How an initial snapshot is cut into chunks, and that they hold every row once, whatever interrupts them."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right

import pytest

from connect_py.errors import FatalTaskError
from connectors.engine.snapshot.chunks import Key
from connectors.engine.snapshot.initial.plan import CHUNK_ROWS, ChunkPlan, chunk_rows
from connectors.engine.snapshot.initial.progress import WHOLE, Chunk, KeyRange, SnapshotProgress


class Rows:
    """Tables of numbers, cut as a database would."""

    def __init__(self, tables: dict[str, list[int]], *, estimate: float = 1.0, is_ordered: bool = True) -> None:
        self.tables = {name: sorted(rows) for name, rows in tables.items()}
        self.estimate, self.is_ordered = estimate, is_ordered
        self.keyed = "id int"

    def rows(self, table: str) -> int:
        return int(len(self.tables[table]) * self.estimate)

    def key(self, table: str) -> tuple[str, ...]:
        return (self.keyed,) if self.keyed else ()

    def is_worth_cutting(self, table: str) -> bool:
        return self.is_ordered

    def of(self, table: str, span: KeyRange) -> list[int]:
        rows = self.tables[table]
        low = 0 if span.after is None else bisect_right(rows, int(span.after[0] or 0))
        high = len(rows) if span.until is None else bisect_right(rows, int(span.until[0] or 0))
        return rows[low:high]

    def boundary(self, table: str, span: KeyRange, rows: int) -> Key | None:
        found = self.of(table, span)
        return (str(found[rows - 1]),) if len(found) >= rows else None


def chunks(rows: Rows, progress: SnapshotProgress, **more: int) -> list[Chunk[str]]:
    return list(ChunkPlan(list(rows.tables), rows, progress, **{"chunk_rows": 10, **more}).chunks())  # type: ignore[arg-type]


def test_small_tables_and_those_without_a_usable_key_are_read_in_one_go() -> None:
    assert [chunk.range for chunk in chunks(Rows({"a": list(range(19))}), SnapshotProgress())] == [WHOLE]
    assert len(chunks(Rows({"a": list(range(20))}), SnapshotProgress())) > 1
    assert [chunk.range for chunk in chunks(Rows({"a": list(range(99))}, is_ordered=False), SnapshotProgress())] == [WHOLE]
    keyless = Rows({"a": list(range(99))})
    keyless.keyed = ""
    assert [chunk.range for chunk in chunks(keyless, SnapshotProgress())] == [WHOLE]


def test_a_table_that_a_statement_stands_for_is_one_chunk() -> None:
    plan = ChunkPlan(["a", "b"], Rows({"a": list(range(99)), "b": list(range(99))}), SnapshotProgress(), whole={"a"}, chunk_rows=49)
    assert [(chunk.table, chunk.range == WHOLE) for chunk in plan.chunks()] == [("a", True), ("b", False), ("b", False), ("b", False)]


def test_several_readers_get_smaller_chunks_of_a_large_table() -> None:
    rows = Rows({"a": list(range(80))})
    plan = ChunkPlan(["a"], rows, SnapshotProgress(), chunk_rows=50, readers=4, chunks_each=2, min_chunk_rows=5)
    assert plan.rows_of_chunk("a") == 10
    assert [len(rows.of("a", chunk.range)) for chunk in plan.chunks()] == [10] * 8 + [0]
    assert plan.count() == 9
    assert ChunkPlan(["a"], rows, SnapshotProgress(), whole={"a"}, chunk_rows=50, readers=4).count() == 1


@pytest.mark.parametrize("seed", range(40))
def test_chunks_that_are_done_or_left_hold_every_row_that_stays_once(seed: int) -> None:
    """Interrupted after any number of chunks, while rows come and go; the next attempt knows only the text of the one before."""
    dice = random.Random(seed)
    rows = Rows({name: dice.sample(range(1000), dice.randrange(200)) for name in "abc"}, estimate=dice.choice((0.5, 1, 3)))
    staying = {name: set(kept) for name, kept in rows.tables.items()}
    read: dict[str, list[int]] = {name: [] for name in rows.tables}
    text: str | None = None
    for _ in range(100):
        progress = SnapshotProgress(text)
        interrupted = dice.randrange(8)
        for chunk in ChunkPlan(list(rows.tables), rows, progress, chunk_rows=dice.choice((7, 7, 20))).chunks():
            if not interrupted:
                break
            interrupted -= 1
            found = rows.of(chunk.table, chunk.range)
            if chunk.range == WHOLE:
                progress.table_done(chunk.table, len(found))
            else:
                progress.planned(chunk.table, chunk.range)
                progress.chunk_done(chunk.table, chunk.range, len(found))
                if chunk.is_last:
                    progress.table_done(chunk.table)
            read[chunk.table] += found
        text = progress.text
        if all(progress.is_done(name) for name in rows.tables):
            break
        for name in rows.tables:
            for key in dice.sample(range(1000), 5):
                place = bisect_left(rows.tables[name], key)
                if rows.tables[name][place : place + 1] == [key]:
                    staying[name].discard(key)
                    del rows.tables[name][place]
                else:
                    rows.tables[name].insert(place, key)
    else:
        pytest.fail("it never ends")
    for name, keys in staying.items():
        assert keys <= set(read[name])
        assert all(read[name].count(key) == 1 for key in keys)


def test_the_size_of_a_chunk_is_a_number_of_rows() -> None:
    assert (chunk_rows({}), chunk_rows({"internal.snapshot.chunk.rows": " 5 "})) == (CHUNK_ROWS, 5)
    for text in ("0", "-1", "many"):
        with pytest.raises(FatalTaskError, match=r"internal.snapshot.chunk.rows"):
            chunk_rows({"internal.snapshot.chunk.rows": text})
