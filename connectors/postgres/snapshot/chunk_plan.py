"""Where chunks of PostgreSQL tables begin and end, for an initial snapshot's `ChunkPlan`.

A table is cut by its primary key, else by a usable unique index. Boundaries are looked up in the snapshot's own transaction, by the index
alone.

A range is read by the index, so its rows should lie together. Where statistics say that a table's order is not its key's (random UUIDs) and
the table is larger than the server's cache, every range would read most of the table's pages: such a table is read in one go, whatever
its size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from connectors.engine.relational.table import Table, TableId
from connectors.engine.snapshot.chunks import Key, KeyColumn, range_sql
from connectors.engine.snapshot.initial.plan import by_rows
from connectors.engine.snapshot.initial.progress import KeyRange
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.snapshot.chunks import DIALECT
from connectors.postgres.types.base import PgColumn

log = logging.getLogger(__name__)

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


class TableCuts:
    """`Cuts` of the snapshot engine.

    Args:
        connection: of the snapshot's transaction; between two chunks nothing else runs on it.
        while_waiting: called some times a second while the server looks for a boundary.
    """

    def __init__(
        self,
        connection: Connection,
        tables: Mapping[TableId, Table[PgColumn]],
        sizes: Mapping[TableId, TableSize],
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._sizes = sizes
        self._while_waiting = while_waiting

    def rows(self, table: TableId) -> int:
        """See `Cuts`."""
        return self._sizes[table].rows if table in self._sizes else 0

    def key(self, table: TableId) -> tuple[str, ...]:
        """See `Cuts`."""
        return tuple(f"{column.name} {column.type_name}" for column in self._columns(table))

    def _columns(self, table: TableId) -> list[PgColumn]:
        known = self._tables[table]
        found = [column for name in known.key if (column := known.column(name)) is not None]
        return found if len(found) == len(known.key) else []

    def is_worth_cutting(self, table: TableId) -> bool:
        """See `Cuts`, and the module."""
        key = self._columns(table)
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

    def boundary(self, table: TableId, span: KeyRange, rows: int) -> Key | None:
        """See `Cuts`."""
        key = self._columns(table)
        names = ", ".join(quote_name(column.name) for column in key)
        columns = [KeyColumn(column.name, column.nullable) for column in key]
        found = self._connection.query(
            # the keys are to be found in their index, not by sorting what is left of the table
            f"SET LOCAL enable_sort = off; SELECT {names} FROM {quote_name(table.schema)}.{quote_name(table.table)}"
            f"{range_sql(columns, span.after, span.until, DIALECT)} ORDER BY {names} OFFSET {rows - 1} LIMIT 1; "
            "SET LOCAL enable_sort = on",
            self._while_waiting,
        )
        return found[0] if found else None
