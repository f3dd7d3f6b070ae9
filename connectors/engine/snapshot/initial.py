"""The initial snapshot: tables one after the other, each row with its marker. Knows no database; a connector gives it `TableRows`.

Whether a row is the last one, of its table or of everything, shows only when the next one comes or none does. So one raw row is held back,
across tables too: when the tables that follow are empty, the row that was sent last in fact is the one that says `last`. The snapshot is
driven by the task's thread and holds one chunk at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connect_py.api.record import EncodedRow
from connectors.engine.snapshot.markers import Marker, marker_of

T = TypeVar("T")
#: A raw row, as a connector reads it.
R = TypeVar("R")


class TableRows(Protocol[R]):
    """One table that is being read."""

    def read(self) -> list[R] | None:
        """The next raw rows; an empty list when none came in the time of a poll, None after the last one. Raises ConnectError."""
        ...

    def encode(self, rows: Sequence[R], marker: Marker) -> list[EncodedRow]:
        """Raw rows as records. Raises DataError."""
        ...


@dataclass(slots=True)
class _Held(Generic[R]):
    table: TableRows[R]
    row: R
    first: bool
    first_in_table: bool

    def release(self, *, last_in_table: bool, last: bool) -> list[EncodedRow]:
        marker = marker_of(first=self.first, first_in_table=self.first_in_table, last_in_table=last_in_table, last=last)
        return self.table.encode([self.row], marker)


class InitialSnapshot(Generic[T, R]):
    """Reads tables in order.

    Args:
        tables: what is read.
        open_table: starts reading one.

    Attributes:
        finished: whether the last row has been given out.
        rows_sent: so far.
    """

    def __init__(self, tables: Iterable[T], open_table: Callable[[T], TableRows[R]]) -> None:
        self._left = deque(tables)
        self._open = open_table
        self._current: TableRows[R] | None = None
        self._at_table_start = True
        self._held: _Held[R] | None = None
        self._anything_sent = False
        self.finished = False
        self.rows_sent = 0

    def next_rows(self) -> list[EncodedRow]:
        """The next records; an empty list when none came in the time of a poll, or when the snapshot ended without a row.

        Raises:
            ConnectError: reading failed; the snapshot has to be taken again.
        """
        rows: list[EncodedRow] = []
        while not rows and not self.finished:
            if self._current is None:
                if not self._left:
                    rows = self._held.release(last_in_table=True, last=True) if self._held else []
                    self._held = None
                    self.finished = True
                    break
                self._current = self._open(self._left.popleft())
                self._at_table_start = True
            raw = self._current.read()
            if raw is None:
                self._current = None
            elif not raw:
                break
            else:
                rows = self._encode(self._current, raw)
        self.rows_sent += len(rows)
        return rows

    def _encode(self, table: TableRows[R], raw: list[R]) -> list[EncodedRow]:
        out: list[EncodedRow] = []
        if self._held is not None:
            out += self._held.release(last_in_table=self._held.table is not table, last=False)
        first_in_table, self._at_table_start = self._at_table_start, False
        first, self._anything_sent = not self._anything_sent, True
        held = raw.pop()
        if first_in_table and raw:
            out += table.encode(raw[:1], marker_of(first=first, first_in_table=True, last_in_table=False, last=False))
            del raw[0]
            first = first_in_table = False
        elif not first_in_table:
            first = False
        if raw:
            out += table.encode(raw, Marker.MIDDLE)
        self._held = _Held(table, held, first, first_in_table)
        return out
