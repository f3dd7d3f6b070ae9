"""What a table that keeps every change (`write-mode=append`) says that there is: the last change of each key, unless it is a delete.

The last change is the one with the highest offset of its partition; of a key that is in several partitions, the one that the source
connector made last. A value that the source did not send with the last change is that of the change before. Changes before a truncate do
not count.

What is known of keys and events is in a file that is gone with the process, some 60 bytes a key and 15 an event, so memory does not grow
with the table. Whole rows are in that file only where values are unsent.
"""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from connect_py.app.verify.index import Scratch
from connect_py.app.verify.lake import LakeTable
from connect_py.app.verify.layout import Layout, Normal, NotComparableError
from connect_py.app.verify.normal import digest

UNSENT = "__unavailable"
_META = ("__op", "__topic", "__partition", "__offset", "__ts_ms")

_TABLES = (
    "CREATE TABLE last (k BLOB PRIMARY KEY, place INT, offset INT, ts INT, unsent BLOB, gone INT DEFAULT 0) WITHOUT ROWID",
    "CREATE TABLE events (place INT, offset INT, PRIMARY KEY (place, offset)) WITHOUT ROWID",
    "CREATE TABLE held (k BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID",
    "CREATE TABLE sent (k BLOB, name TEXT, place INT, offset INT, ts INT, value BLOB, PRIMARY KEY (k, name)) WITHOUT ROWID",
)
_LAST = """
    INSERT INTO last (k, place, offset, ts, unsent) VALUES (?, ?, ?, ?, ?) ON CONFLICT (k) DO UPDATE SET
      place = excluded.place, offset = excluded.offset, ts = excluded.ts, unsent = excluded.unsent
    WHERE CASE WHEN excluded.place = last.place THEN excluded.offset > last.offset ELSE excluded.ts >= last.ts END"""
_SENT = """
    INSERT INTO sent VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (k, name) DO UPDATE SET
      place = excluded.place, offset = excluded.offset, ts = excluded.ts, value = excluded.value
    WHERE CASE WHEN excluded.place = sent.place THEN excluded.offset > sent.offset ELSE excluded.ts >= sent.ts END"""


class Change(NamedTuple):
    """What a row says of itself. `place` stands for topic and partition, `unsent` names columns."""

    op: str
    place: int
    offset: int
    ts: int
    unsent: frozenset[str]


class Changelog:
    """Reads the table at the commit where `lake` is; used by one thread.

    Attributes:
        changes: rows that were read last.
        doubled: how many of them have the place of another one.
    """

    def __init__(self, lake: LakeTable, layout: Layout) -> None:
        self._lake = lake
        self._layout = layout
        self._places: dict[tuple[str, int], int] = {}
        self.changes = self.doubled = 0

    def rows(self) -> Iterator[list[Normal]]:
        """Yield the rows that there are by the changes.

        Raises:
            NotComparableError: the table does not say enough.
            ConnectError: it cannot be read.
        """
        scratch = Scratch(*_TABLES)
        try:
            self._find_last(scratch.db)
            yield from self._last_rows(scratch.db)
            yield from self._completed(scratch.db)
        finally:
            scratch.close()

    def _find_last(self, db: sqlite3.Connection) -> None:
        self.changes = 0
        cuts: dict[int, int] = {}
        for batch, changes in self._read(self._layout.read_for_key):
            self.changes += len(changes)
            for change in changes:
                if change.op == "t":
                    cuts[change.place] = max(change.offset, cuts.get(change.place, -1))
            db.execute("BEGIN")
            db.executemany("INSERT OR IGNORE INTO events VALUES (?, ?)", ((c.place, c.offset) for c in changes))
            db.executemany(
                _LAST,
                (
                    (digest(key), c.place, c.offset, c.ts, pickle.dumps(c.unsent) if c.unsent else None)
                    for key, c in zip(self._layout.keys(batch), changes, strict=True)
                    if c.op != "t"
                ),
            )
            db.execute("COMMIT")
        self.doubled = self.changes - int(db.execute("SELECT count(*) FROM events").fetchone()[0])
        self._cut(db, cuts)

    def _cut(self, db: sqlite3.Connection, cuts: dict[int, int]) -> None:
        """Forget what was before a truncate."""
        topics = {place: topic for (topic, _), place in self._places.items()}
        partitions: dict[str, set[int]] = {}
        for topic, partition in self._places:
            partitions.setdefault(topic, set()).add(partition)
        check_truncated({topics[place] for place in cuts}, partitions)
        for place, offset in cuts.items():
            db.execute("UPDATE last SET gone = 1 WHERE place = ? AND offset < ?", (place, offset))

    def _last_rows(self, db: sqlite3.Connection) -> Iterator[list[Normal]]:
        """Yield those that are whole; the others, and what they lack, are kept."""
        for batch, changes in self._read(self._layout.read):
            found: list[Normal] = []
            db.execute("BEGIN")
            for (key, row), change in zip(self._layout.of_table(batch.select(self._layout.read)), changes, strict=True):
                if change.op in "dt":
                    continue
                hashed = digest(key)
                place, offset, gone, unsent = db.execute("SELECT place, offset, gone, unsent FROM last WHERE k = ?", (hashed,)).fetchone()
                if gone:
                    continue
                is_last = (place, offset) == (change.place, change.offset)
                if unsent is None:
                    if is_last:
                        found.append((key, row))
                        if self.doubled:  # once is enough
                            db.execute("UPDATE last SET gone = 1 WHERE k = ?", (hashed,))
                    continue
                if is_last:
                    db.execute("INSERT OR REPLACE INTO held VALUES (?, ?)", (hashed, pickle.dumps((row, change.unsent))))
                for name in pickle.loads(unsent) - change.unsent:  # noqa: S301  # of our own file
                    place_of = self._place_of(name)
                    if place_of is not None:
                        value = pickle.dumps(row[place_of])
                        db.execute(_SENT, (hashed, name, change.place, change.offset, change.ts, value))
            db.execute("COMMIT")
            yield found

    def _completed(self, db: sqlite3.Connection) -> Iterator[list[Normal]]:
        """Yield rows with the values that came before."""
        for hashed, held in db.execute("SELECT k, row FROM held"):
            row, unsent = pickle.loads(held)  # noqa: S301  # as above
            values = list(row)
            for name, value in db.execute("SELECT name, value FROM sent WHERE k = ?", (hashed,)):
                if name in unsent and (place := self._place_of(name)) is not None:
                    values[place] = pickle.loads(value)  # noqa: S301  # as above
            whole = tuple(values)
            yield [(self._layout.key_of(whole), whole)]

    def _place_of(self, name: str) -> int | None:
        return next((place for place, column in enumerate(self._layout.columns) if name == column.name or name in column.places), None)

    def _read(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, list[Change]]]:
        there = set(self._lake.columns().names)
        if lacking := [name for name in _META if name not in there]:
            raise NotComparableError(f"it has no column {', '.join(lacking)}, so its last changes cannot be told from the others")
        meta = [*_META, *([UNSENT] if UNSENT in there else [])]
        for batch in self._lake.batches([*columns, *meta]):
            said = zip(*[batch.column(name).to_pylist() for name in meta], strict=True)
            yield batch, [self._change(*values) for values in said]

    def _change(self, op: str, topic: str, partition: int, offset: int, ts: int | None, unsent: Sequence[str] | None = None) -> Change:
        place = self._places.setdefault((topic, partition), len(self._places))
        return Change(op, place, offset, ts or 0, frozenset(unsent or ()))


def check_truncated(truncated: Collection[str], partitions: Mapping[str, set[int]]) -> None:
    """Raises NotComparableError: a topic that has a truncate has several partitions."""
    for topic in truncated:
        if len(partitions[topic]) > 1:
            raise NotComparableError(
                f"topic {topic} has several partitions and a truncate, and which events of the others were before it is not known"
            )
