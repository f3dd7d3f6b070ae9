"""An initial or blocking snapshot: chunks of tables in, records with their markers out. Knows no database.

    chunks ──read──> pieces ──mark──> rows with markers ──encode──> records ──report──> the task's batch

`SnapshotPipeline._batches` is that line, and the place to read it. A chunk is a table, or a range of its keys where the table is large and
has a key. One connection reads chunks in order (`in_order`), or several processes read them at the same time (`parallel/pool.py`); the
rest is the same for both. A database provides a `SnapshotSource`, which owns the connection, and the rows of a chunk with their encoder.
What has been read is kept in a `SnapshotProgress`, whose text travels in the source offset.

Markers (`SnapshotRecord.java`): whether a row is the last one, of its table or of everything, shows only when the next one comes or none
does. So one raw row of each table is held back, also after the end of the table until anything else comes: when only empty tables follow,
the row that was in fact sent last is the one that says `last`. A chunk counts as done only when no row of it is held. `first` is the first
row of the first table; where that table is empty no row says it, because the reference counts tables, not rows.

Several tables, and several chunks of a table, may be read at a time. Then nothing of a table is sent before its first row, nor of the
snapshot before the first row of all, and the last row of either follows all others: the reference's threads (`snapshot.max.threads`) wait
for each other to the same effect.

The task's thread drives the snapshot, which holds one batch at a time. Between two batches the task may stop, or a failure may end the
snapshot: what is not done is then read again, from the stored progress.
"""

from __future__ import annotations

import enum
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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


T = TypeVar("T")
#: A raw row, as a connector reads it.
R = TypeVar("R")
#: Makes records of raw rows that have the same marker. Raises DataError.
Encode = Callable[[Sequence[R], Marker], list[EncodedRow]]
#: The raw rows of a chunk, an empty list when none came in the time of a poll, and what makes records of them. Reading raises ConnectError.
ChunkRows = tuple[Iterator[list[R]], Encode[R]]


# -- read ------------------------------------------------------------------------------------------------------------------------------


class OpenChunk(Generic[R]):
    """A chunk that is being read.

    Attributes:
        encode: makes records of raw rows of its table; set before the first row comes.
    """

    encode: Encode[R]

    def __init__(self, table: str, chunk: Chunk[Any]) -> None:
        self.table = table
        self.chunk = chunk
        self.rows = 0
        self.has_ended = False


class Part(enum.Enum):
    """What a piece is of its chunk."""

    #: nothing was read yet
    BEGIN = enum.auto()
    #: raw rows; the last of them may be the chunk's last one
    ROWS = enum.auto()
    #: the raw first row of a chunk that has more of them
    FIRST = enum.auto()
    #: records of rows between the first one and the last one
    RECORDS = enum.auto()
    #: everything was read
    END = enum.auto()


class Piece(NamedTuple, Generic[R]):
    """What a reader gives at a time; `rows` are raw, or records, as `part` says."""

    chunk: OpenChunk[R]
    part: Part
    rows: Sequence[Any] = ()


class Reader(Protocol[T, R]):
    """Reads chunks."""

    def __call__(self, chunks: Iterator[Chunk[T]], marks: MarkedRows[R]) -> Iterator[Piece[R] | None]:
        """Yield the pieces of chunks, None when nothing came in the time of a poll.

        Args:
            chunks: the next one is asked for when there is somebody to read it.
            marks: says which table's first row has to come before those of others.

        Raises:
            ConnectError: reading failed; what is not done has to be read again.
        """
        ...


def in_order(open_chunk: Callable[[Chunk[T]], ChunkRows[R]]) -> Reader[T, R]:
    """Return a reader by one connection: one chunk after the other, each to its end."""

    def read(chunks: Iterator[Chunk[T]], marks: MarkedRows[R]) -> Iterator[Piece[R] | None]:
        for chunk in chunks:
            opened: OpenChunk[R] = OpenChunk(str(chunk.table), chunk)
            yield Piece(opened, Part.BEGIN)
            batches, opened.encode = open_chunk(chunk)
            for rows in batches:
                yield Piece(opened, Part.ROWS, rows) if rows else None
                del rows
            yield Piece(opened, Part.END)

    return read


# -- mark ------------------------------------------------------------------------------------------------------------------------------


class Marked(NamedTuple, Generic[R]):
    """Rows with one marker; None stands for rows that are records already."""

    chunk: OpenChunk[R]
    rows: Sequence[Any]
    marker: Marker | None


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
    """Finds the markers of what is read. Pure.

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

    @property
    def awaited(self) -> str | None:
        """The table whose first row has to come before those of others; None when it has come, or cannot."""
        return self._first

    def take(self, piece: Piece[R]) -> list[Marked[R]]:
        """Return what can be sent now, in order: of what was held back, and of a piece. The last raw row of a piece may be held back."""
        chunk = piece.chunk
        chunk.rows += len(piece.rows)
        match piece.part:
            case Part.BEGIN:
                return self._begin(chunk)
            case Part.ROWS:
                return self._take(chunk, piece.rows)
            case Part.FIRST:
                return [*self._release(chunk), self._head(chunk, piece.rows)]
            case Part.RECORDS:
                return [*self._release(chunk), Marked(chunk, piece.rows, None)]
            case Part.END:
                return self._end(chunk)

    def finish(self) -> list[Marked[R]]:
        """Return the row that was held last: no chunk is left."""
        return self._release_last(last=True)

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _begin(self, chunk: OpenChunk[R]) -> list[Marked[R]]:
        table = self._tables.get(chunk.table)
        if not self._tables and not self._is_begun:
            self._first = chunk.table
        if table is None:
            table = self._tables[chunk.table] = _Table(anything_sent=self._progress.is_begun(chunk.table))
        if chunk.chunk.range != WHOLE:
            self._progress.planned(chunk.table, chunk.chunk.range)
        table.open += 1
        table.is_planned = table.is_planned or chunk.chunk.is_last
        return []

    def _take(self, chunk: OpenChunk[R], raw: Sequence[R]) -> list[Marked[R]]:
        table = self._tables[chunk.table]
        head = raw[:1] if len(raw) > 1 and not table.anything_sent else []
        middle = raw[len(head) : -1]
        held = table.held
        if held is not None and held.source is chunk and not (held.first or held.first_in_table) and self._last is None:
            middle = [held.row, *middle]
            out: list[Marked[R]] = []
        else:
            out = self._release(chunk)
        if head:
            out.append(self._head(chunk, head))
        if middle:
            out.append(Marked(chunk, middle, Marker.MIDDLE))
        first, first_in_table = self._place(chunk)
        table.held = _Held(chunk, raw[-1], first, first_in_table)
        return out

    def _end(self, chunk: OpenChunk[R]) -> list[Marked[R]]:
        table = self._tables[chunk.table]
        chunk.has_ended = True
        if table.held is None or table.held.source is not chunk:
            self._done(chunk)
        table.open -= 1
        if table.open or not table.is_planned:
            return []
        if chunk.table == self._first:
            self._first = None
        out: list[Marked[R]] = []
        if table.held is not None:
            out = self._release_last(last=False)
            self._last, table.held = table.held, None
        else:
            self._progress.table_done(chunk.table)
        self._table_ended(chunk.table)
        return out

    def _release(self, chunk: OpenChunk[R]) -> list[Marked[R]]:
        """Return what was held back and is not the last row after all, since others follow."""
        out = self._release_last(last=False) if self._last is not None else []
        table = self._tables[chunk.table]
        held, table.held = table.held, None
        if held is not None:
            out.append(self._marked(held, last_in_table=False, last=False))
            if held.source.has_ended:
                self._done(held.source)
        return out

    def _release_last(self, *, last: bool) -> list[Marked[R]]:
        held, self._last = self._last, None
        if held is None:
            return []
        self._done(held.source)
        self._progress.table_done(held.source.table)
        return [self._marked(held, last_in_table=True, last=last)]

    def _marked(self, held: _Held[R], *, last_in_table: bool, last: bool) -> Marked[R]:
        marker = marker_of(first=held.first, first_in_table=held.first_in_table, last_in_table=last_in_table, last=last)
        return Marked(held.source, [held.row], marker)

    def _head(self, chunk: OpenChunk[R], rows: Sequence[R]) -> Marked[R]:
        first, first_in_table = self._place(chunk)
        return Marked(chunk, rows, marker_of(first=first, first_in_table=first_in_table, last_in_table=False, last=False))

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


# -- encode ----------------------------------------------------------------------------------------------------------------------------


def encoded(marked: Iterable[Marked[R]]) -> list[EncodedRow]:
    """Return records, each by the encoder of its chunk. Raises DataError."""
    out: list[EncodedRow] = []
    for chunk, rows, marker in marked:
        out += rows if marker is None else chunk.encode(rows, marker)
    return out


# -- the whole -------------------------------------------------------------------------------------------------------------------------


#: A connector's offset.
P = TypeVar("P")


class SnapshotSource(ABC, Generic[P]):
    """A database's part of a snapshot, and the only owner of what it is read by.

    Who opens: the constructor takes a connection that the task lends, or opens its own, and begins the transaction on it. If it raises, it
    leaves nothing behind: its own connections are closed, and the transaction of a blocking snapshot, whose lent connection the stream
    needs, is rolled back. Who ends the transaction: `finish`, after the last row; or `rollback`, where a blocking snapshot failed and the
    stream resumes. Who closes: `close`, which the task calls in every case, at any point, and perhaps again; it stops the readers and
    closes the source's own connections, whose transactions the server then rolls back. A lent connection stays open; after any other
    failure the task closes it, as it closes all of its connections.

    Attributes:
        is_blocking: whether a signal asked for it, so that it interrupts a stream.
        offset: where the source stands once all rows that were given out are in Kafka.
        pipeline: reads the rows; there when a stream that has to come first has been read.
    """

    is_blocking: bool = False
    offset: P
    pipeline: SnapshotPipeline[Any, Any]

    @property
    def has_schema_rows(self) -> bool:
        """Whether records of structures are left, which come before the first row."""
        return False

    @property
    @abstractmethod
    def after(self) -> P:
        """Where the source stands when the snapshot has ended, in whatever way."""

    def before_rows(self) -> Iterable[list[EncodedRow]]:
        """Return the records that go before the rows, in batches. Raises ConnectError."""
        return ()

    def stored(self, progress: str | None) -> None:
        """Put the progress into `offset`. Not called where offsets keep none."""

    @abstractmethod
    def finish(self) -> list[EncodedRow]:
        """End the transaction and set the last offset: every row was read. Returns the records that go after the rows.

        Raises:
            ConnectError: it did not end.
        """

    def rollback(self) -> None:
        """Release what a blocking snapshot that failed holds on the lent connection. Raises ConnectError."""

    @abstractmethod
    def close(self) -> None:
        """Stop reading, at any point."""


REPORT_SECONDS = 10.0


class SnapshotPipeline(Generic[T, R]):
    """Reads a snapshot's rows, and reports it to metrics, notifications and the log. The task's thread uses it.

    Args:
        chunks: what is read. Those of a table follow each other. Asking for the next one raises ConnectError.
        names: of the tables, in the order in which they are read.
        captured: all that are captured, for notifications.
        progress: of earlier attempts; what is done is added to it.
        estimates: rows of the tables; None where nothing is known.
        keeps_progress: whether offsets hold what is done: without a stream after it, chunks of different times would never become one
            state, and a blocking snapshot is not taken again.
        chunk_rows: rows of a chunk.
        clock: monotonic seconds, for reports.

    Attributes:
        names, reader: as given.
        current: what is read now, for messages.
        finished: whether the last row has been given out.
        is_milestone: whether the last rows that were returned ended a chunk, and half a chunk was read since the last time.
        progress_text: what the offset of the last rows that were returned says of the progress.
    """

    def __init__(
        self,
        source: SnapshotSource[Any],
        reader: Reader[T, R],
        chunks: Iterator[Chunk[T]],
        *,
        names: Sequence[str],
        captured: Sequence[str],
        progress: SnapshotProgress,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        estimates: Mapping[str, int | None],
        keeps_progress: bool,
        chunk_rows: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._source = source
        self.reader = reader
        self._chunks = chunks
        self.names = names
        self._captured = captured
        self._progress = progress
        self._events = events
        self._metrics = metrics
        self._keeps = keeps_progress
        self._chunk_rows = chunk_rows
        self._counts: dict[str, int] = {}
        self._rows_sent = self._stored_rows = 0
        self._started = self._reported = self._clock()
        self._next = self._batches()
        self.current = "the tables"
        self.finished = False
        self.is_milestone = False
        self.progress_text = progress.text if keeps_progress else None
        done = {name: rows for name in names if (rows := progress.rows(name))}
        ended = [name for name in names if progress.is_done(name)]
        metrics.begin(len(names) - len(ended), estimates, done, ended)

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; none when none came in the time of a poll, or when the snapshot ended without a row.

        Raises:
            ConnectError: the snapshot has to be taken again, or to resume, in another attempt.
        """
        return next(self._next, [])

    def _batches(self) -> Iterator[list[EncodedRow]]:
        """Yield batches of records: the way of every row, in order."""
        yield from self._source.before_rows()
        marks: MarkedRows[R] = MarkedRows(self._progress, self._table_ended)
        for piece in self.reader(self._chunks, marks):
            if piece is None:
                yield self._sent([])
                continue
            self._seen(piece)
            records = encoded(marks.take(piece))
            del piece
            if records:
                yield self._sent(records)
            # nothing of a batch is kept while the next one is read
            del records
        records = encoded(marks.finish())
        self.finished = True
        self._sent(records)
        records += self._source.finish()
        self._completed()
        yield records

    # -- report ------------------------------------------------------------------------------------------------------------------------

    def _seen(self, piece: Piece[R]) -> None:
        """Report what was read."""
        name = piece.chunk.table
        if piece.part is Part.BEGIN:
            self.current = f"the table {name}"
            if name not in self._counts:
                self._counts[name] = self._progress.rows(name)
                self._events.in_progress(name, self.names)
        else:
            self._counts[name] += len(piece.rows)
            self._metrics.scanned(name, len(piece.rows))

    def _table_ended(self, name: str) -> None:
        self._metrics.table_done(name)
        self._events.scan_completed(name, self._captured, self._counts.get(name, 0))

    def _sent(self, records: list[EncodedRow]) -> list[EncodedRow]:
        """Report records that go out, with what is done once they are in Kafka; returns them."""
        self._rows_sent += len(records)
        if records:
            self._metrics.events(len(records))
        text = self._progress.text if self._keeps else None
        self.is_milestone = text != self.progress_text and self._rows_sent - self._stored_rows >= self._chunk_rows // 2
        if text != self.progress_text:
            self.progress_text = text
            self._source.stored(text)
        if self.is_milestone:
            self._stored_rows = self._rows_sent
        if self._clock() - self._reported > REPORT_SECONDS and not self.finished:
            self._reported = self._clock()
            log.info("Snapshot: %d rows so far, now reading %s", self._rows_sent, self.current)
        return records

    def _completed(self) -> None:
        self._metrics.end("completed")
        self._events.completed()
        log.info("Snapshot finished: %d rows in %.1f s", self._rows_sent, self._clock() - self._started)
