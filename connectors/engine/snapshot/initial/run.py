"""The run of an initial snapshot: chunks of tables in, records with their markers out. Knows no database.

A connector provides chunks and `TableRows`. A chunk is a table, or a range of its keys where the table is large and has a key. The way of a
row: `TableRows.read` → `MarkedRows` (which row is the first and which the last) → `TableRows.encode` → `SnapshotReading` (metrics,
notifications, progress) → the task's batch. `ChunkedSnapshot` reads by one connection, `ParallelSnapshot` (`snapshot.parallel.pool`) by
several processes. What has been read is kept in a `SnapshotProgress`, whose text travels in the source offset.

Markers (`SnapshotRecord.java`): whether a row is the last one, of its table or of everything, shows only when the next one comes or none
does. So one raw row of each table is held back, also after the end of the table until anything else comes: when only empty tables follow,
the row that was in fact sent last is the one that says `last`. A chunk counts as done only when no row of it is held. `first` is the first
row of the first table; where that table is empty no row says it, because the reference counts tables, not rows.

Several tables, and several chunks of a table, may be read at a time. Then nothing of a table is sent before its first row, nor of the
snapshot before the first row of all, and the last row of either follows all others: the reference's threads (`snapshot.max.threads`) wait
for each other to the same effect.

The task's thread drives the snapshot, which holds one batch at a time.
"""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.snapshot.initial.progress import WHOLE, Chunk, SnapshotProgress

log = logging.getLogger(__name__)


class Marker(enum.Enum):
    """The value of `source.snapshot`."""

    FIRST = "first"
    FIRST_IN_DATA_COLLECTION = "first_in_data_collection"
    MIDDLE = "true"
    LAST_IN_DATA_COLLECTION = "last_in_data_collection"
    LAST = "last"
    INCREMENTAL = "incremental"


def marker_of(*, first: bool, first_in_table: bool, last_in_table: bool, last: bool) -> Marker:
    """Return the marker of a row to which several apply."""
    if last:
        return Marker.LAST
    if first:
        return Marker.FIRST
    if last_in_table:
        return Marker.LAST_IN_DATA_COLLECTION
    return Marker.FIRST_IN_DATA_COLLECTION if first_in_table else Marker.MIDDLE


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
        progress: notes what is done; what it knows already was sent before.
        table_ended: called with a table of which everything was read.
    """

    def __init__(self, progress: SnapshotProgress, table_ended: Callable[[str], None] = lambda _: None) -> None:
        self._progress = progress
        self._table_ended = table_ended
        self._is_begun = not progress.is_empty
        self._first: str | None = None
        self._tables: dict[str, _Table[R]] = {}
        self._last: _Held[R] | None = None

    def open(self, chunk: OpenChunk[R]) -> None:
        """Note that reading a chunk starts."""
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
        """Return records of rows that were read, in order, never none. The last one of them may be held back."""
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
        """Return records for the first row of a chunk that has more of them."""
        chunk.rows += 1
        return [*self._release(chunk), *self._head(chunk, row)]

    def take_encoded(self, chunk: OpenChunk[R], rows: Sequence[EncodedRow]) -> list[EncodedRow]:
        """Pass on records of rows between the first one of their chunk and the last one."""
        chunk.rows += len(rows)
        out = self._release(chunk)
        out += rows
        return out

    def take_last(self, chunk: OpenChunk[R], row: R) -> list[EncodedRow]:
        """Hold back the last row of a chunk, or its only one. Returns what was held before."""
        chunk.rows += 1
        out = self._release(chunk)
        self._hold(chunk, row)
        return out

    def end(self, chunk: OpenChunk[R]) -> list[EncodedRow]:
        """Note that everything of a chunk was read. Returns what was held and can be sent."""
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
        """Return the row that was held last: no chunk is left."""
        return self._release_last(last=True)

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _release(self, chunk: OpenChunk[R]) -> list[EncodedRow]:
        """Return what was held back and is not the last row after all, since others follow."""
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
        """Return whether the next row is the first one of all, and of its table."""
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


T = TypeVar("T")


class TableRows(Protocol[R]):
    """One chunk that is being read."""

    def read(self) -> list[R] | None:
        """Return the next raw rows; an empty list when none came in the time of a poll, None after the last one. Raises ConnectError."""
        ...

    def encode(self, rows: Sequence[R], marker: Marker) -> list[EncodedRow]:
        """Return raw rows as records. Raises DataError."""
        ...


class SnapshotRun(Protocol):
    """A snapshot that is being read, by one connection or several.

    Attributes:
        finished: whether the last row has been given out.
        rows_sent: so far.
    """

    finished: bool
    rows_sent: int

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; an empty list when none came in the time of a poll, or when the snapshot ended without a row.

        Raises:
            ConnectError: reading failed; what is not done has to be read again.
        """
        ...

    def close(self) -> None:
        """Stop reading, at any point."""
        ...


def whole_tables(tables: Iterable[T]) -> Iterator[Chunk[T]]:
    """Return a chunk for each whole table."""
    return (Chunk(table) for table in tables)


class ChunkedSnapshot(Generic[T, R]):
    """Reads chunks in order; a `SnapshotRun`.

    Args:
        chunks: what is read; the next one is asked for when the one before it has been read. Those of a table follow each other.
        open_chunk: starts reading one.
        progress: of an earlier attempt.
        table_ended: called with a table of which everything was read.
    """

    def __init__(
        self,
        chunks: Iterator[Chunk[T]],
        open_chunk: Callable[[Chunk[T]], TableRows[R]],
        progress: SnapshotProgress | None = None,
        table_ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._chunks = chunks
        self._open = open_chunk
        self._marked: MarkedRows[R] = MarkedRows(progress or SnapshotProgress(), table_ended)
        self._rows: TableRows[R] | None = None
        self._chunk: OpenChunk[R] | None = None
        self.finished = False
        self.rows_sent = 0

    def next_rows(self) -> list[EncodedRow]:
        rows: list[EncodedRow] = []
        while not rows and not self.finished:
            if self._rows is None or self._chunk is None:
                chunk = next(self._chunks, None)
                if chunk is None:
                    rows = self._marked.finish()
                    self.finished = True
                    break
                self._rows = self._open(chunk)
                self._chunk = OpenChunk(str(chunk.table), chunk, self._rows.encode)
                self._marked.open(self._chunk)
            raw = self._rows.read()
            if raw is None:
                rows = self._marked.end(self._chunk)
                self._rows = self._chunk = None
            elif not raw:
                break
            else:
                rows = self._marked.take(self._chunk, raw)
        self.rows_sent += len(rows)
        return rows

    def close(self) -> None:
        """Do nothing: the connection is the caller's."""


class InitialSnapshot(ChunkedSnapshot[T, R]):
    """Reads tables in order, each in one go."""

    def __init__(self, tables: Iterable[T], open_table: Callable[[T], TableRows[R]]) -> None:
        super().__init__(whole_tables(tables), lambda chunk: open_table(chunk.table))


REPORT_SECONDS = 10.0


class SnapshotReading:
    """Reports a snapshot while its rows are read, to metrics, notifications and the log. The task's thread uses it.

    A connector makes the `run`, calls `begin_table`, `scanned` and `table_ended` as it reads, and puts `progress_text` into its offset
    after each `next_rows`.

    Args:
        names: of the tables, in the order in which they are read.
        captured: all that are captured, for notifications.
        progress: of earlier attempts; the run adds to it.
        estimates: rows of the tables; None where nothing is known.
        keeps_progress: whether offsets hold what is done: without a stream after it, chunks of different times would never become one
            state, and a blocking snapshot is not taken again.
        chunk_rows: rows of a chunk.

    Attributes:
        run: what reads; to be set before the first row is asked for.
        current: what is read now, for messages.
        is_milestone: whether the last rows that were returned ended a chunk, and half a chunk was read since the last time.
    """

    run: SnapshotRun

    def __init__(
        self,
        names: Sequence[str],
        captured: Sequence[str],
        progress: SnapshotProgress,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        *,
        estimates: Mapping[str, int | None],
        keeps_progress: bool,
        chunk_rows: int,
    ) -> None:
        self._names = names
        self._captured = captured
        self._progress = progress
        self._events = events
        self._metrics = metrics
        self._keeps = keeps_progress
        self._chunk_rows = chunk_rows
        self._counts: dict[str, int] = {}
        self._stored_rows = 0
        self._started = self._reported = time.monotonic()
        self.current = "the tables"
        self.is_milestone = False
        self.progress_text = progress.text if keeps_progress else None
        done = {name: rows for name in names if (rows := progress.rows(name))}
        ended = [name for name in names if progress.is_done(name)]
        metrics.begin(len(names) - len(ended), estimates, done, ended)

    def begin_table(self, name: str) -> None:
        """Note that reading a chunk of a table starts."""
        self.current = f"the table {name}"
        if name not in self._counts:
            self._counts[name] = self._progress.rows(name)
            self._events.in_progress(name, self._names)

    def scanned(self, name: str, rows: int) -> None:
        """Count further rows of a table that were read."""
        self._counts[name] += rows
        self._metrics.scanned(name, rows)

    def table_ended(self, name: str) -> None:
        """Note that everything of a table was read."""
        self._metrics.table_done(name)
        self._events.scan_completed(name, self._captured, self._counts.get(name, 0))

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records of the run; `is_milestone` and `progress_text` are theirs then. Raises ConnectError."""
        rows = self.run.next_rows()
        if rows:
            self._metrics.events(len(rows))
        text = self._progress.text if self._keeps else None
        self.is_milestone = text != self.progress_text and self.run.rows_sent - self._stored_rows >= self._chunk_rows // 2
        self.progress_text = text
        if self.is_milestone:
            self._stored_rows = self.run.rows_sent
        if time.monotonic() - self._reported > REPORT_SECONDS and not self.run.finished:
            self._reported = time.monotonic()
            log.info("Snapshot: %d rows so far, now reading %s", self.run.rows_sent, self.current)
        return rows

    def completed(self) -> None:
        """Note that the last row was returned, and that all that follows the rows has been done."""
        self._metrics.end("completed")
        self._events.completed()
        log.info("Snapshot finished: %d rows in %.1f s", self.run.rows_sent, time.monotonic() - self._started)
