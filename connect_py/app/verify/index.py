"""What the table has, as digests by key or as numbers of copies, in a file that is gone with the process: so memory does not grow with the
table.

A row takes some 60 bytes of disk. The file is SQLite's, without journal; a process that dies leaves nothing to repair.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

#: Of a file: keys come in no order, so each lies on another page than the one before.
_CACHE_KIB = 32_768


class Scratch:
    """Tables of SQLite in a directory of their own; used by one thread, and closed by its owner.

    Args:
        tables: statements that create them.
    """

    def __init__(self, *tables: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="connect-py-verify-")
        self.db = sqlite3.connect(Path(self._directory.name) / "scratch", isolation_level=None)
        for statement in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", f"PRAGMA cache_size=-{_CACHE_KIB}", *tables):
            self.db.execute(statement)

    def close(self) -> None:
        """Remove the file."""
        self.db.close()
        self._directory.cleanup()


class Found(NamedTuple):
    """What the table has under a key of the source. `row` is None where it has nothing."""

    key: bytes
    row: bytes | None


class DigestIndex(Scratch):
    """Digests of rows by digests of keys."""

    def __init__(self) -> None:
        super().__init__(
            "CREATE TABLE lake (k BLOB PRIMARY KEY, d BLOB, n INT DEFAULT 1, seen INT DEFAULT 0) WITHOUT ROWID",
            "CREATE TEMP TABLE range (k BLOB PRIMARY KEY, d BLOB) WITHOUT ROWID",
        )

    def add(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Rows of the table: digests of key and row."""
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO lake (k, d) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET n = n + 1", rows)
        self.db.execute("COMMIT")

    def differing(self, rows: Sequence[tuple[bytes, bytes]]) -> list[Found]:
        """Return the keys of a range of the source whose rows the table has not, or has otherwise; all of them count as seen."""
        self.db.execute("BEGIN")
        self.db.execute("DELETE FROM range")
        self.db.executemany("INSERT OR REPLACE INTO range (k, d) VALUES (?, ?)", rows)
        found = self.db.execute("SELECT r.k, l.d FROM range r LEFT JOIN lake l ON l.k = r.k WHERE l.d IS NOT r.d OR l.n > 1").fetchall()
        self.db.execute("UPDATE lake SET seen = 1 WHERE k IN (SELECT k FROM range)")
        self.db.execute("COMMIT")
        return [Found(key, row) for key, row in found]

    def unseen(self) -> Iterator[bytes]:
        """Yield keys that the source did not have."""
        for (key,) in self.db.execute("SELECT k FROM lake WHERE seen = 0"):
            yield key

    def count(self, what: str) -> int:
        """Return how many `rows`, keys that are there `twice` or more often, or `unseen` keys there are."""
        sql = {
            "rows": "SELECT sum(n) FROM lake",
            "twice": "SELECT count(*) FROM lake WHERE n > 1",
            "unseen": "SELECT count(*) FROM lake WHERE seen = 0",
        }
        return int(self.db.execute(sql[what]).fetchone()[0] or 0)


class CountIndex(Scratch):
    """How often the table and the source have each row, by digests of rows."""

    def __init__(self) -> None:
        super().__init__("CREATE TABLE rows (k BLOB PRIMARY KEY, there INT DEFAULT 0, here INT DEFAULT 0) WITHOUT ROWID")

    def add_to_table(self, rows: Iterable[tuple[bytes, int]]) -> None:
        """Digests of rows of which the table has more copies, by the number of them."""
        self._add("INSERT INTO rows (k, here) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET here = here + excluded.here", rows)

    def add_to_source(self, rows: Iterable[tuple[bytes, int]]) -> None:
        """The same of the source."""
        self._add("INSERT INTO rows (k, there) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET there = there + excluded.there", rows)

    def differing(self, *, extras: bool) -> Iterator[tuple[bytes, int, int]]:
        """Rows that the table has less often than the source, or with `extras` more often; how often the source has each, and the table."""
        yield from self.db.execute("SELECT k, there, here FROM rows WHERE here < there OR (here > there AND ?)", (extras,))

    def _add(self, statement: str, rows: Iterable[tuple[bytes, int]]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(statement, rows)
        self.db.execute("COMMIT")
