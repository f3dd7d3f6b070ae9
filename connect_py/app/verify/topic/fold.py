"""What the records of a topic have left of each key: digests, in a file that is gone with the process.

A key takes some 40 bytes of disk and 8 more for each compared column, so memory does not grow with the topic. Of several partitions, as
when a topic has got more of them, the record with the later time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from connect_py.app.verify.index import Scratch
from connect_py.app.verify.topic.form import filled, has_unknown

_APPLY = """
    INSERT INTO state (k, place, offset, ts, row, raw) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (k) DO UPDATE SET
      place = excluded.place, offset = excluded.offset, ts = excluded.ts, row = excluded.row"""


class Change(NamedTuple):
    """A record.

    Attributes:
        key: the key's digest.
        place: stands for the partition.
        ts: of the record, in milliseconds.
        row: the state after it; None for no row.
        raw: the key's bytes, where they are to be kept.
    """

    key: bytes
    place: int
    offset: int
    ts: int
    row: bytes | None
    raw: bytes | None = None


class Last(NamedTuple):
    """A key's last record, and the state that it has left."""

    place: int
    offset: int
    ts: int
    row: bytes | None


class Fold(Scratch):
    """Takes records in their order; used by one thread."""

    def __init__(self) -> None:
        super().__init__(
            "CREATE TABLE state (k BLOB PRIMARY KEY, place INT, offset INT, ts INT, row BLOB, raw BLOB, seen INT DEFAULT 0) WITHOUT ROWID",
            "CREATE TEMP TABLE range (k BLOB PRIMARY KEY) WITHOUT ROWID",
        )

    def add(self, changes: Iterable[Change], told: Callable[[bytes, bytes | None], None] | None = None) -> None:
        """Apply records, of each partition in its order.

        Args:
            told: called with each record's key and the state that it has left.
        """
        fresh: dict[bytes, Change] = {}
        for change in changes:
            known = fresh.get(change.key)
            before = Last(known.place, known.offset, known.ts, known.row) if known is not None else self.last(change.key)
            if before is not None and before.place != change.place and change.ts < before.ts:
                continue
            row = change.row if change.row is None else filled(change.row, None if before is None else before.row)
            fresh[change.key] = change._replace(row=row)
            if told is not None:
                told(change.key, row)
        self.db.execute("BEGIN")
        self.db.executemany(_APPLY, fresh.values())
        self.db.execute("COMMIT")

    def truncate(self) -> None:
        """Remove all rows."""
        self.db.execute("UPDATE state SET row = NULL")

    def last(self, key: bytes) -> Last | None:
        """Return what is known of a key; None: nothing."""
        found = self.db.execute("SELECT place, offset, ts, row FROM state WHERE k = ?", (key,)).fetchone()
        return None if found is None else Last(*found)

    def seen(self, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """Return the states of those keys that have one; all of them count as seen."""
        self.db.execute("BEGIN")
        self.db.execute("DELETE FROM range")
        self.db.executemany("INSERT OR IGNORE INTO range (k) VALUES (?)", [(key,) for key in keys])
        found: dict[bytes, bytes | None] = dict(self.db.execute("SELECT k, row FROM state WHERE k IN (SELECT k FROM range)").fetchall())
        self.db.execute("UPDATE state SET seen = 1 WHERE k IN (SELECT k FROM range)")
        self.db.execute("COMMIT")
        return found

    def unseen(self) -> Iterator[bytes]:
        """Yield keys of rows that the source did not have."""
        for (key,) in self.db.execute("SELECT k FROM state WHERE seen = 0 AND row IS NOT NULL"):
            yield key

    def rows(self) -> int:
        """Return how many rows there are."""
        return int(self.db.execute("SELECT count(*) FROM state WHERE row IS NOT NULL").fetchone()[0])

    def unknown(self) -> int:
        """Return how many rows have values that are not known."""
        return sum(has_unknown(row) for (row,) in self.db.execute("SELECT row FROM state WHERE row IS NOT NULL"))

    def raw_keys(self) -> Iterator[bytes]:
        """Yield the keys' bytes, where they were kept."""
        for (raw,) in self.db.execute("SELECT raw FROM state WHERE raw IS NOT NULL"):
            yield raw
