"""The initial snapshot read by one connection: chunks one after the other, each row with its marker. Knows no database; a connector gives
it chunks and `TableRows`.

A chunk is a table, or a range of its keys where the table is large and has a key. What is done is kept in a `SnapshotProgress`, whose text
travels in the source offset. The snapshot is driven by the task's thread and holds one batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from connect_py.api.record import EncodedRow
from connectors.engine.snapshot.initial.markers import Marker
from connectors.engine.snapshot.initial.marking import MarkedRows, OpenChunk
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress

T = TypeVar("T")
#: A raw row, as a connector reads it.
R = TypeVar("R")


class TableRows(Protocol[R]):
    """One chunk that is being read."""

    def read(self) -> list[R] | None:
        """The next raw rows; an empty list when none came in the time of a poll, None after the last one. Raises ConnectError."""
        ...

    def encode(self, rows: Sequence[R], marker: Marker) -> list[EncodedRow]:
        """Raw rows as records. Raises DataError."""
        ...


class SnapshotRun(Protocol):
    """A snapshot that is being read, in whatever way.

    Attributes:
        finished: whether the last row has been given out.
        rows_sent: so far.
    """

    finished: bool
    rows_sent: int

    def next_rows(self) -> list[EncodedRow]:
        """The next records; an empty list when none came in the time of a poll, or when the snapshot ended without a row.

        Raises:
            ConnectError: reading failed; what is not done has to be read again.
        """
        ...

    def close(self) -> None:
        """End the reading, wherever it is."""
        ...


def whole_tables(tables: Iterable[T]) -> Iterator[Chunk[T]]:
    """Each table in one go."""
    return (Chunk(table) for table in tables)


class ChunkedSnapshot(Generic[T, R]):
    """Reads chunks in order; a `SnapshotRun`.

    Args:
        chunks: what is read; the next one is asked for when the one before it has been read. Those of a table follow each other.
        open_chunk: starts reading one.
        progress: of an earlier attempt.
        table_ended: told of a table of which everything was read.
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
        """See `SnapshotRun`."""
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
        """See `SnapshotRun`; the connection is the caller's."""


class InitialSnapshot(ChunkedSnapshot[T, R]):
    """Reads tables in order, each in one go."""

    def __init__(self, tables: Iterable[T], open_table: Callable[[T], TableRows[R]]) -> None:
        super().__init__(whole_tables(tables), lambda chunk: open_table(chunk.table))
