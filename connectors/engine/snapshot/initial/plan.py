"""In which order an initial snapshot reads tables (`snapshot.tables.order.by.row.count`), and how it cuts them into chunks. Knows no
database; a connector provides `Cuts`.

A table is cut when it is estimated to have more rows than two chunks and has a key by which ranges can be read. Boundaries are looked up
one at a time, when a chunk is wanted: the n-th key after the last boundary, which a server finds in an index. Boundaries keep their values:
a restart reads the ranges that are left, with the rows that they hold then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from connect_py.errors import FatalTaskError
from connectors.engine.config import ParsedConfig
from connectors.engine.snapshot.chunks import Key
from connectors.engine.snapshot.initial.progress import Chunk, KeyRange, SnapshotProgress

#: Rows of a chunk: half a second of reading, so that little is read twice and looking for boundaries costs little.
CHUNK_ROWS = 100_000
#: No smaller ones are made for several readers: handing one out takes a few milliseconds.
MIN_CHUNK_ROWS = 10_000
#: Rows of a chunk of a blocking snapshot, which is not taken again, so that nothing is gained by cutting tables.
NEVER_CUT = 1 << 62

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Cuts(Protocol[T_contra]):
    """What a connector knows of its tables. Methods but `rows` may ask the server, and raise ConnectError."""

    def rows(self, table: T_contra) -> int:
        """Return an estimate; 0 where nothing is known."""
        ...

    def key(self, table: T_contra) -> tuple[str, ...]:
        """Return the columns by which the table can be cut, each with what its order depends on; empty where it is read in one go."""
        ...

    def is_worth_cutting(self, table: T_contra) -> bool:
        """Return whether a range of the key can be read without reading much of what lies outside of it."""
        ...

    def boundary(self, table: T_contra, span: KeyRange, rows: int) -> Key | None:
        """Return the key of the n-th row of a range; None when fewer rows are left, or the boundary is not known."""
        ...


class ChunkPlan(Generic[T]):
    """The chunks of a snapshot, in order.

    Args:
        tables: in the order in which they are read; known to `progress` by their names.
        progress: what is done already.
        whole: names of tables that are read in one go, such as those that a statement of the user's stands for.
        chunk_rows: as `CHUNK_ROWS`.
        readers: how many chunks are read at the same time; a table is cut into `chunks_each` for each reader where it is not larger.
        min_chunk_rows: as `MIN_CHUNK_ROWS`.

    Attributes:
        chunk_rows: as given.
    """

    def __init__(
        self,
        tables: Sequence[T],
        cuts: Cuts[T],
        progress: SnapshotProgress,
        *,
        whole: Collection[str] = (),
        chunk_rows: int = CHUNK_ROWS,
        readers: int = 1,
        chunks_each: int = 1,
        min_chunk_rows: int = MIN_CHUNK_ROWS,
    ) -> None:
        self._tables = tables
        self._cuts = cuts
        self._progress = progress
        self._whole = whole
        self.chunk_rows = chunk_rows
        self._readers = readers
        self._min_chunk_rows = min_chunk_rows
        self._parts = readers * chunks_each

    @classmethod
    def from_config(
        cls,
        config: ParsedConfig,
        tables: Sequence[T],
        cuts: Cuts[T],
        progress: SnapshotProgress,
        *,
        whole: Collection[str],
        is_blocking: bool = False,
    ) -> ChunkPlan[T]:
        """Return the plan that a configuration asks for; of a blocking snapshot, whole tables for one reader. Raises FatalTaskError."""
        return cls(
            tables,
            cuts,
            progress,
            whole=whole,
            chunk_rows=NEVER_CUT if is_blocking else chunk_rows(config.raw),
            readers=1 if is_blocking else config.number("snapshot.max.threads"),
            chunks_each=config.number("snapshot.max.threads.multiplier"),
        )

    def chunks(self) -> Iterator[Chunk[T]]:
        """Yield the chunks; each may ask the server. Raises ConnectError."""
        for table in self._tables:
            if not self._progress.is_done(str(table)):
                yield from self._chunks_of(table)

    def rows_of_chunk(self, table: T) -> int:
        """Return how many rows a chunk of the table should have."""
        if self._readers == 1:
            return self.chunk_rows
        return max(min(self._min_chunk_rows, self.chunk_rows), min(self.chunk_rows, self._cuts.rows(table) // self._parts))

    def count(self) -> int:
        """Estimate how many chunks there will be, as far as they could be read at the same time."""
        left = [table for table in self._tables if not self._progress.is_done(str(table))]
        return sum(1 if str(table) in self._whole else 1 + self._cuts.rows(table) // self.rows_of_chunk(table) for table in left)

    @property
    def readers(self) -> int:
        """How many of the wanted readers have something to read."""
        return min(self._readers, self.count())

    def _chunks_of(self, table: T) -> Iterator[Chunk[T]]:
        name = str(table)
        key = self._key(table)
        left = self._progress.left(name, key)
        if not left:
            self._progress.table_done(name)
        elif not key:
            yield Chunk(table)
        for span in left if key else ():
            after = span.after
            rows = self.rows_of_chunk(table)
            while (until := self._cuts.boundary(table, KeyRange(after, span.until), rows)) is not None and until != span.until:
                yield Chunk(table, KeyRange(after, until), key, is_last=False)
                after = until
            yield Chunk(table, KeyRange(after, span.until), key, is_last=span is left[-1])

    def _key(self, table: T) -> tuple[str, ...]:
        name = str(table)
        if name in self._whole:
            return ()
        is_begun = self._progress.is_begun(name)
        if not is_begun and self._cuts.rows(table) < self.rows_of_chunk(table) * (2 if self._readers == 1 else 1):
            return ()
        key = self._cuts.key(table)
        return key if is_begun or (key and self._cuts.is_worth_cutting(table)) else ()


def chunk_rows(raw: Mapping[str, str]) -> int:
    """Return `internal.snapshot.chunk.rows` of a configuration. Raises FatalTaskError: it is no number."""
    text = raw.get("internal.snapshot.chunk.rows", "").strip()
    if text and not (text.isdecimal() and int(text)):
        raise FatalTaskError(f"internal.snapshot.chunk.rows is '{text}', not a number of rows. Nothing was read")
    return int(text or CHUNK_ROWS)


def whole_names(config: ParsedConfig, tables: Iterable[object], statements: Collection[str]) -> Collection[str]:
    """Return the tables that are read in one go: those that a statement stands for, or all (`legacy.snapshot.max.threads`)."""
    is_legacy = config.number("snapshot.max.threads") > 1 and config.flag("legacy.snapshot.max.threads")
    return frozenset(map(str, tables) if is_legacy else statements)


def by_rows(tables: Sequence[T], rows: Mapping[T, int], order: str) -> list[T]:
    """Return tables in `ascending` or `descending` order of their rows, else as they are; one of which nothing is known counts as empty,
    and equal ones keep their order."""
    if order not in ("ascending", "descending"):
        return list(tables)
    return sorted(tables, key=lambda table: rows.get(table, 0), reverse=order == "descending")
