"""Which row of an initial snapshot is the first one and which the last, and what of it is done (debezium-common §1.5, §13.4).

Whether a row is the last one, of its table or of everything, shows only when the next one comes or none does. So of each table one raw row
is held back, and behind the end of a table until anything else comes: when only empty tables follow, the row that was sent last in fact is
the one that says `last`. A chunk counts as done only once no row of it is held.

`first` is the first row of the first table. Where that table is empty no row says it: the reference's counts tables, not rows.

Tables may be read beside each other and in several chunks at a time. Then nothing of a table is sent before its first row, nor of the
snapshot before the first row of all, and the last row of either follows all others: what the reference does too, with threads that wait for
each other (`snapshot.max.threads`). Pure; used by the task's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from connect_py.api.record import EncodedRow
from connectors.engine.snapshot.initial.markers import Marker, marker_of
from connectors.engine.snapshot.initial.progress import WHOLE, Chunk, SnapshotProgress

#: A raw row, as a connector reads it.
R = TypeVar("R")
Encode = Callable[[Sequence[R], Marker], list[EncodedRow]]


class OpenChunk(Generic[R]):
    """A chunk that is being read.

    Args:
        encode: makes records of raw rows of its table.
    """

    def __init__(self, table: str, chunk: Chunk[Any], encode: Encode[R]) -> None:
        self.table = table
        self.chunk = chunk
        self.encode = encode
        self.rows = 0
        self.has_ended = False


@dataclass(slots=True)
class _Held(Generic[R]):
    source: OpenChunk[R]
    row: R
    first: bool
    first_in_table: bool


class _Table(Generic[R]):
    def __init__(self, *, anything_sent: bool) -> None:
        self.anything_sent = anything_sent
        self.held: _Held[R] | None = None
        self.open = 0
        self.is_planned = False


class MarkedRows(Generic[R]):
    """Turns what is read into records with markers.

    Args:
        progress: is told what is done; what it knows already was sent before.
        table_ended: told of a table of which everything was read.
    """

    def __init__(self, progress: SnapshotProgress, table_ended: Callable[[str], None] = lambda _: None) -> None:
        self._progress = progress
        self._table_ended = table_ended
        self._is_begun = not progress.is_empty
        self._first: str | None = None
        self._tables: dict[str, _Table[R]] = {}
        self._last: _Held[R] | None = None

    def open(self, chunk: OpenChunk[R]) -> None:
        """A chunk begins to be read."""
        table = self._tables.get(chunk.table)
        if not self._tables and not self._is_begun:
            self._first = chunk.table
        if table is None:
            table = self._tables[chunk.table] = _Table(anything_sent=self._progress.is_begun(chunk.table))
        if chunk.chunk.range != WHOLE:
            self._progress.planned(chunk.table, chunk.chunk.range)
        table.open += 1
        table.is_planned = table.is_planned or chunk.chunk.is_last

    @property
    def awaited(self) -> str | None:
        """The table whose first row has to come before those of others; None when it has come, or cannot."""
        return self._first

    def take(self, chunk: OpenChunk[R], raw: list[R]) -> list[EncodedRow]:
        """Rows that were read, in order, never none. The last one of them may be held back."""
        table = self._tables[chunk.table]
        head = raw[:1] if len(raw) > 1 and not table.anything_sent else []
        middle = raw[len(head) : -1]
        held = table.held
        if held is not None and held.source is chunk and not (held.first or held.first_in_table) and self._last is None:
            middle.insert(0, held.row)
            out: list[EncodedRow] = []
        else:
            out = self._release(chunk)
        if head:
            out += self._head(chunk, head[0])
        if middle:
            out += chunk.encode(middle, Marker.MIDDLE)
        self._hold(chunk, raw[-1])
        chunk.rows += len(raw)
        return out

    def take_first(self, chunk: OpenChunk[R], row: R) -> list[EncodedRow]:
        """The first row of a chunk that has more of them."""
        chunk.rows += 1
        return [*self._release(chunk), *self._head(chunk, row)]

    def take_encoded(self, chunk: OpenChunk[R], rows: Sequence[EncodedRow]) -> list[EncodedRow]:
        """Records of rows between the first one of their chunk and the last one."""
        chunk.rows += len(rows)
        out = self._release(chunk)
        out += rows
        return out

    def take_last(self, chunk: OpenChunk[R], row: R) -> list[EncodedRow]:
        """The last row of a chunk, or its only one. It is held back."""
        chunk.rows += 1
        out = self._release(chunk)
        self._hold(chunk, row)
        return out

    def end(self, chunk: OpenChunk[R]) -> list[EncodedRow]:
        """Everything of a chunk was read."""
        table = self._tables[chunk.table]
        chunk.has_ended = True
        if table.held is None or table.held.source is not chunk:
            self._done(chunk)
        table.open -= 1
        if table.open or not table.is_planned:
            return []
        if chunk.table == self._first:
            self._first = None
        out: list[EncodedRow] = []
        if table.held is not None:
            out = self._release_last(last=False)
            self._last, table.held = table.held, None
        else:
            self._progress.table_done(chunk.table)
        self._table_ended(chunk.table)
        return out

    def finish(self) -> list[EncodedRow]:
        """No chunk is left."""
        return self._release_last(last=True)

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _release(self, chunk: OpenChunk[R]) -> list[EncodedRow]:
        """What was held back and is not the last row after all, since others follow."""
        out = self._release_last(last=False) if self._last is not None else []
        table = self._tables[chunk.table]
        held, table.held = table.held, None
        if held is not None:
            out += self._encode(held, last_in_table=False, last=False)
            if held.source.has_ended:
                self._done(held.source)
        return out

    def _release_last(self, *, last: bool) -> list[EncodedRow]:
        held, self._last = self._last, None
        if held is None:
            return []
        out = self._encode(held, last_in_table=True, last=last)
        self._done(held.source)
        self._progress.table_done(held.source.table)
        return out

    def _encode(self, held: _Held[R], *, last_in_table: bool, last: bool) -> list[EncodedRow]:
        marker = marker_of(first=held.first, first_in_table=held.first_in_table, last_in_table=last_in_table, last=last)
        return held.source.encode([held.row], marker)

    def _head(self, chunk: OpenChunk[R], row: R) -> list[EncodedRow]:
        first, first_in_table = self._place(chunk)
        return chunk.encode([row], marker_of(first=first, first_in_table=first_in_table, last_in_table=False, last=False))

    def _hold(self, chunk: OpenChunk[R], row: R) -> None:
        first, first_in_table = self._place(chunk)
        self._tables[chunk.table].held = _Held(chunk, row, first, first_in_table)

    def _place(self, chunk: OpenChunk[R]) -> tuple[bool, bool]:
        """Whether the next row is the first one of all, and of its table."""
        table = self._tables[chunk.table]
        place = chunk.table == self._first, not table.anything_sent
        table.anything_sent = True
        if place[0]:
            self._first = None
        return place

    def _done(self, chunk: OpenChunk[R]) -> None:
        if chunk.chunk.range != WHOLE:
            self._progress.chunk_done(chunk.table, chunk.chunk.range, chunk.rows)
        else:
            self._progress.table_done(chunk.table, chunk.rows)
