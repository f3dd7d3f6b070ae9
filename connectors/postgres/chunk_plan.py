"""How a snapshot of PostgreSQL is cut: which tables are read in one go, and the key ranges of the others.

A table is cut when it is estimated to have more rows than two chunks and has a primary key (else a usable unique index). Boundaries are
looked up one at a time, when a chunk is wanted, in the snapshot's own transaction: the n-th key behind the last boundary, which the server
finds in the index alone. They are values of the present moment and stay what they are: a restart reads the ranges that are left, with the
rows that they hold then.

A range is read by the index, so its rows should lie together. Where statistics say that a table's order is not its key's (random UUIDs) and
the table is larger than the server's cache, every range would read most of the table's pages: such a table is read in one go, whatever
its size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.engine.relational.table import Table, TableId
from connectors.engine.snapshot.chunks import Key, KeyColumn, range_sql
from connectors.engine.snapshot.order import by_rows
from connectors.engine.snapshot.progress import Chunk, KeyRange, SnapshotProgress
from connectors.postgres.chunk_reader import DIALECT
from connectors.postgres.connection import Connection, quote_literal, quote_name
from connectors.postgres.types.base import PgColumn

log = logging.getLogger(__name__)

#: Rows of a chunk: half a second of reading, so that little is read twice and looking for boundaries costs little.
CHUNK_ROWS = 100_000
#: No smaller ones are made for several readers: handing one out takes a few milliseconds.
LEAST_ROWS = 10_000
#: Bytes of a row of a table without statistics.
_ROW_BYTES = 100
#: A table whose order on disk follows its key less than this is scattered.
_ORDERED = 0.8


@dataclass(frozen=True, slots=True)
class TableSize:
    """An estimate: rows and bytes; `is_known` when it is from statistics, else it is guessed from the bytes."""

    rows: int
    octets: int
    is_known: bool = True


def read_sizes(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, TableSize]:
    """Estimates of tables, of a partitioned one with all its partitions, from the statistics. Raises ServerError."""
    wanted = ", ".join(f"({quote_literal(table.schema)}, {quote_literal(table.table)})" for table in tables)
    if not wanted:
        return {}
    leaves = "UNION SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf" if connection.server_version >= 120000 else ""
    rows = connection.query(
        "SELECT n.nspname, c.relname, sum(CASE WHEN p.reltuples > 0 THEN p.reltuples "
        f"ELSE pg_relation_size(p.oid) / {_ROW_BYTES} END)::bigint, sum(pg_relation_size(p.oid))::bigint, bool_and(p.reltuples > 0) "
        f"FROM (VALUES {wanted}) AS v (s, t) JOIN pg_namespace n ON n.nspname = v.s "
        "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = v.t "
        f"CROSS JOIN LATERAL (SELECT c.oid {leaves}) AS l (oid) JOIN pg_class p ON p.oid = l.oid AND p.relkind <> 'p' GROUP BY 1, 2"
    )
    return {
        TableId(str(schema), str(table)): TableSize(int(count or 0), int(octets or 0), known == "t")
        for schema, table, count, octets, known in rows
    }


def ordered(tables: Sequence[TableId], sizes: Mapping[TableId, TableSize], order: str) -> list[TableId]:
    """Tables by `snapshot.tables.order.by.row.count`, as far as there are statistics. (Debezium's connector for PostgreSQL takes the
    property and does not look at it.)"""
    return by_rows(tables, {table: size.rows for table, size in sizes.items() if size.is_known}, order)


class ChunkPlan:
    """Gives the chunks of a snapshot, in order.

    Args:
        connection: of the snapshot's transaction; between two chunks nothing else runs on it.
        progress: what is done already.
        whole: names of tables that a statement of the user's stands for.
        chunk_rows: as `CHUNK_ROWS`.
        readers: how many chunks are read beside each other, for `chunks_each` of a table each where it is not larger.
        while_waiting: called some times a second while the server looks for a boundary.
    """

    def __init__(
        self,
        connection: Connection,
        tables: Mapping[TableId, Table[PgColumn]],
        sizes: Mapping[TableId, TableSize],
        progress: SnapshotProgress,
        *,
        whole: frozenset[str] = frozenset(),
        chunk_rows: int = CHUNK_ROWS,
        readers: int = 1,
        chunks_each: int = 1,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._sizes = sizes
        self._progress = progress
        self._whole = whole
        self._most_rows = chunk_rows
        self._readers = readers
        self._parts = readers * chunks_each
        self._while_waiting = while_waiting

    def chunks(self) -> Iterator[Chunk[TableId]]:
        """The chunks; every one that follows asks the server. Raises ServerError."""
        for id_, table in self._tables.items():
            if not self._progress.is_done(str(id_)):
                yield from self._chunks_of(id_, table)

    def rows_of_chunk(self, table: TableId) -> int:
        """How many rows a chunk of the table should have."""
        if self._readers == 1:
            return self._most_rows
        return max(min(LEAST_ROWS, self._most_rows), min(self._most_rows, self._rows(table) // self._parts))

    def count(self) -> int:
        """About how many chunks there will be, as far as they could be read beside each other."""
        return sum(1 + self._rows(table) // self.rows_of_chunk(table) for table in self._tables if not self._progress.is_done(str(table)))

    def _rows(self, table: TableId) -> int:
        return self._sizes[table].rows if table in self._sizes else 0

    def _chunks_of(self, id_: TableId, table: Table[PgColumn]) -> Iterator[Chunk[TableId]]:
        name = str(id_)
        columns = self._key(id_, table)
        key = tuple(f"{column.name} {column.type_name}" for column in columns)
        left = self._progress.left(name, key)
        if not left:
            self._progress.table_done(name)
        elif not columns:
            yield Chunk(id_)
        names = [KeyColumn(column.name, column.nullable) for column in columns]
        for span in left if columns else ():
            after = span.after
            while (until := self._boundary(id_, names, after, span.until)) is not None and until != span.until:
                yield Chunk(id_, KeyRange(after, until), key, is_last=False)
                after = until
            yield Chunk(id_, KeyRange(after, span.until), key, is_last=span is left[-1])

    def _key(self, id_: TableId, table: Table[PgColumn]) -> list[PgColumn]:
        """By which columns the table is cut; none where it is read in one go."""
        found = [column for name in table.key if (column := table.column(name)) is not None]
        if not found or len(found) < len(table.key) or str(id_) in self._whole:
            return []
        if self._progress.is_begun(str(id_)):
            return found
        if self._rows(id_) < self.rows_of_chunk(id_) * (2 if self._readers == 1 else 1) or not self._is_worth_cutting(id_, found):
            return []
        return found

    def _is_worth_cutting(self, table: TableId, key: Sequence[PgColumn]) -> bool:
        """Whether ranges of the key can be read, and each without reading the whole table; see the module."""
        name = quote_literal(f"{quote_name(table.schema)}.{quote_name(table.table)}")
        readable = " AND ".join(f"has_column_privilege({name}, {quote_literal(column.name)}, 'SELECT')" for column in key)
        ((cache, correlation, may_read),) = self._connection.query(
            "SELECT pg_size_bytes(current_setting('effective_cache_size')), "
            f"(SELECT max(abs(correlation)) FROM pg_stats WHERE schemaname = {quote_literal(table.schema)} "
            f"AND tablename = {quote_literal(table.table)} AND attname = {quote_literal(key[0].name)}), {readable}"
        )
        if may_read != "t":
            why = "the user may not read its key"
        elif correlation is not None and float(correlation) < _ORDERED and self._sizes[table].octets > int(cache or 0):
            why = "its rows do not lie in the order of its key, and it is larger than the server's effective_cache_size"
        else:
            return True
        log.info("The table %s is read in one go, and from its beginning after an interruption: %s", table, why)
        return False

    def _boundary(self, table: TableId, key: Sequence[KeyColumn], after: Key | None, until: Key | None) -> Key | None:
        """The key of a chunk's last row; None when fewer rows are left."""
        names = ", ".join(quote_name(column.name) for column in key)
        rows = self._connection.query(
            # the keys are to be found in their index, not by sorting what is left of the table
            f"SET LOCAL enable_sort = off; SELECT {names} FROM {quote_name(table.schema)}.{quote_name(table.table)}"
            f"{range_sql(key, after, until, DIALECT)} ORDER BY {names} OFFSET {self.rows_of_chunk(table) - 1} LIMIT 1; "
            "SET LOCAL enable_sort = on",
            self._while_waiting,
        )
        return rows[0] if rows else None
