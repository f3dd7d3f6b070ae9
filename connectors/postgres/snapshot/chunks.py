"""Chunks of PostgreSQL tables: where those of an initial snapshot begin and end, and the rows of those of an incremental one.

Initial snapshot (`TableCuts`). A table is cut by its primary key, else by a usable unique index. Boundaries are looked up in the
snapshot's own transaction, in the index alone. A range is read by the index, so its rows should lie together. Where statistics say that a
table's order is not its key's (random UUIDs) and the table is larger than the server's cache, every range would read most of the table's
pages: such a table is read in one go, whatever its size.

Incremental snapshot (`PostgresChunks`). Structure and rows are read together, the rows by COPY, in a READ COMMITTED transaction that
first locks the table in ACCESS SHARE mode, as any SELECT does. With the lock, the structure that was read is the structure of the rows. And
a COPY that had to wait for the lock itself would read with a snapshot taken before the wait: after a TRUNCATE or a rewriting ALTER TABLE it
would find the table empty, and take it for finished.

A transaction's changes can be in the stream shortly before others see them (with synchronous replication, long before). A chunk must not
be older than what the stream has already shown, so reading waits until all streamed transactions are visible.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError, ConnectError
from connectors.engine.envelope import tail
from connectors.engine.java_object import STRING, JavaValue, StoredKey
from connectors.engine.relational.tables import Table, TableId
from connectors.engine.signal.records import DEFECTS
from connectors.engine.snapshot.chunks import ChunkQuery, Key, KeyColumn, SqlDialect, order_sql, range_sql, where_sql
from connectors.engine.snapshot.incremental.contract import BusyError, Chunk, NoKeyError, UnknownCollectionError
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.snapshot.initial.plan import by_rows
from connectors.engine.snapshot.initial.progress import KeyRange
from connectors.postgres.config import PostgresConfig
from connectors.postgres.encode.tuples import read_copy_line
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.server import catalog
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.server.visibility import await_visible
from connectors.postgres.tables import CapturedTable, TableFactory
from connectors.postgres.types.base import PgColumn

log = logging.getLogger(__name__)


DIALECT = SqlDialect(quote_name, quote_literal, row_values=True, nulls_last=True)

#: A chunk is read in the order of its index. A table without statistics is taken for one of which a range holds few rows: the planner then
#: collects all rows that are left and sorts them, again for each chunk (18 ms a chunk of 1024 rows of a table of 100,000, instead of 4).
#: Where something has to be sorted nevertheless, a plan without sorts is so costly on paper that the server compiles it: 1.2 s a statement.
PLAN = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;"
NO_COMPILER, COMPILER_VERSION = "SET LOCAL jit = off;", 110000
#: How long a chunk waits for a table that another session holds exclusively; streaming continues in between.
LOCK_WAIT_MS = 500
#: How long it waits for a streamed transaction to become visible before streaming continues in between.
VISIBLE_WAIT_SECONDS = 1.0

#: What a Java number, UUID or date can hold: no infinity, no NaN, no date before Christ.
_PLAIN = re.compile(r"[0-9A-Za-z.+-]+")
#: Types whose values pgjdbc gives as these classes (`PostgresConnection.getColumnValue`); all others become texts.
JAVA_CLASSES = {
    "int2": "java.lang.Integer",
    "int4": "java.lang.Integer",
    "int8": "java.lang.Long",
    "oid": "java.lang.Long",
    "numeric": "java.math.BigDecimal",
    "bool": "java.lang.Boolean",
    "bytea": "[B",
    "uuid": "java.util.UUID",
    "date": "java.sql.Date",
    "float4": "java.lang.Float",
    "float8": "java.lang.Double",
}


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A row that waits for its position in the stream: its value lacks source block and tail."""

    table: CapturedTable
    key: bytes | None
    value: bytes


class PostgresChunks:
    """`ChunkReader` on the general connection; used by the task's thread.

    Args:
        general: returns the task's open connection, which is replaced after a reconnect.
        while_waiting: called a few times a second while the server works.
        streamed: transactions that the stream has shown lately (32-bit numbers).

    Attributes:
        structure: the structure of the rows that were read last; None before the first.
    """

    accepts_surrogate_keys = True

    def __init__(
        self,
        general: Callable[[], Connection],
        config: PostgresConfig,
        factory: TableFactory,
        *,
        while_waiting: Callable[[], None],
        streamed: Callable[[], Collection[int]],
    ) -> None:
        self._general = general
        self._config = config
        self._factory = factory
        self._while_waiting = while_waiting
        self._streamed = streamed
        self._known: CapturedTable | None = None
        self._names: dict[str, TableId] = {}
        self._expressions: set[tuple[TableId, str]] = set()

    @property
    def structure(self) -> object:
        return self._known.structure if self._known else None

    def table(self, name: str) -> TableId | None:
        """Return the table of a name that was read before."""
        return self._names.get(name) or self._names.get(name.replace('"', ""))

    def names(self) -> Sequence[str]:
        """Return the captured tables that exist now."""
        try:
            found = catalog.read_table_ids(self._general())
        except ServerError as error:
            raise translate(error, "Cannot list the tables", user=self._config.user, database=self._config.database) from None
        self._names = {str(id_): id_ for id_, _ in found if self._config.filters.is_captured(id_)}
        return list(self._names)

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        connection = self._general()
        try:
            table = self._structure(self._find(wanted))
            key = self._key(table, wanted)
            query = ChunkQuery(_key_columns(key), condition=wanted.condition, descending=True)
            with _reading(connection, "", self._while_waiting):
                self._require_expression(connection, table.id, wanted.condition)
                rows = connection.query_one(self._select(table.id, [column.name for column in key], query), self._while_waiting)
        except ServerError as error:
            raise self._translated(error, wanted) from None
        return _stored(key, rows[0]) if rows else None

    def estimate(self, wanted: WantedCollection) -> int | None:
        try:
            sizes = read_sizes(self._general(), [self._find(wanted)])
        except ServerError as error:
            raise self._translated(error, wanted) from None
        return next((size.rows for size in sizes.values()), None)

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[ChunkRow]:
        connection = self._general()
        try:
            id_ = self._find(wanted)
            plan = PLAN + (NO_COMPILER if connection.server_version >= COMPILER_VERSION else "")
            lock = f"{plan} SET LOCAL lock_timeout = {LOCK_WAIT_MS}; LOCK TABLE {_name(id_)} IN ACCESS SHARE MODE"
            with _reading(connection, lock, self._while_waiting):
                self.await_streamed(connection)
                table = self._structure(id_)
                captured = self._known = self._factory.build(table, self._known if self._known and self._known.id == id_ else None)
                key = self._key(table, wanted)
                query = ChunkQuery(
                    _key_columns(key),
                    None if after is None else _texts(after),
                    None if after is None else _texts(until),
                    wanted.condition,
                    limit,
                )
                shown = [plan.name for plan in captured.encoder.columns]
                hidden = [column.name for column in key if column.name not in shown]
                self._require_expression(connection, id_, wanted.condition)
                lines = connection.copy_lines(f"COPY ({self._select(id_, shown + hidden, query)}) TO STDOUT", self._while_waiting)
        except ServerError as error:
            if error.sqlstate == "55P03":
                raise BusyError(f"the table {wanted.id} is locked by another session: {error.message}") from None
            raise self._translated(error, wanted) from None
        return self._chunk(captured, key, shown, hidden, lines)

    def rows(self, rows: Sequence[ChunkRow], last_commit: int | None, lsn: int | None) -> list[EncodedRow]:
        """Return the records of rows whose position in the stream is after a given event."""
        if not rows:
            return []
        table, now_ns = rows[0].table, time.time_ns()
        cut = -len(table.encoder.end(b"", b""))
        end = table.encoder.end(table.block.incremental(now_ns, last_commit, lsn), tail("r", now_ns))
        return [(table.route, row.key, row.value[:cut] + end) for row in rows]

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _find(self, wanted: WantedCollection) -> TableId:
        name = wanted.id if wanted.id in self._names else wanted.id.replace('"', "")
        if name not in self._names:
            self.names()
        found = self._names.get(name)
        if found is None:
            raise UnknownCollectionError(
                f"There is no table '{wanted.id}', or it is not captured (table.include.list and the other filters), or not readable"
            )
        return found

    def _structure(self, id_: TableId) -> Table[PgColumn]:
        table = catalog.read_tables(self._general(), [id_], with_generated=False).get(id_)
        if table is None:
            raise UnknownCollectionError(f"The table '{id_}' is gone")
        return table

    def _key(self, table: Table[PgColumn], wanted: WantedCollection) -> list[PgColumn]:
        names = (wanted.surrogate_key,) if wanted.surrogate_key else self._config.keys.columns(table)
        found = [column for name in names if (column := table.column(name)) is not None]
        if wanted.surrogate_key and not found:
            raise ConfigError(f"The table '{table.id}' has no column '{wanted.surrogate_key}', which the signal names as surrogate key")
        if not found:
            raise NoKeyError(f"Incremental snapshot for table '{table.id}' skipped because the table has no primary keys")
        return found

    def _select(self, id_: TableId, columns: Sequence[str], query: ChunkQuery) -> str:
        listed = ", ".join(quote_name(name) for name in columns)
        return f"SELECT {listed} FROM {_name(id_)}{where_sql(query, DIALECT)}{order_sql(query, DIALECT)}"

    def _require_expression(self, connection: Connection, id_: TableId, condition: str | None) -> None:
        """Let the server parse a condition where only an expression fits: one that closes the parentheses around it would be more than a
        condition (`COPY … TO PROGRAM`, `UNION`). In the query itself stands `(condition)`, and no text fits into both but an expression.

        Raises:
            ServerError: it is none.
        """
        if condition and (id_, condition) not in self._expressions:
            connection.parse(f"SELECT 1 FROM {_name(id_)} WHERE CASE WHEN {condition}\nTHEN true END")
            self._expressions = {(id_, condition)}

    def await_streamed(self, connection: Connection) -> None:
        """Wait until all streamed transactions are visible. Raises BusyError when it takes long."""
        if not await_visible(connection, self._streamed(), VISIBLE_WAIT_SECONDS, self._while_waiting):
            raise BusyError("a transaction that the stream has shown is not yet visible (a synchronous standby is slow?)")

    def _chunk(
        self, table: CapturedTable, key: Sequence[PgColumn], shown: Sequence[str], hidden: Sequence[str], lines: list[bytes]
    ) -> Chunk[ChunkRow]:
        if not lines:
            return Chunk([], None)
        last = dict(zip([*shown, *hidden], read_copy_line(lines[-1].decode().removesuffix("\n")), strict=True))
        if hidden:
            lines = [b"\t".join(line.split(b"\t")[: len(shown)]) + b"\n" for line in lines]
        rows = [
            (encoded, ChunkRow(table, encoded, value or b"")) for _, encoded, value in table.encoder.copy_rows(lines, table.route, b"", b"")
        ]
        return Chunk(rows, _stored(key, [_text(last[column.name]) for column in key]))

    def _translated(self, error: ServerError, wanted: WantedCollection) -> Exception:
        if error.sqlstate == "25006":  # the transaction is one, and only a condition can try
            return ConfigError(f"Cannot read a chunk of {wanted.id}: its condition may not write: {error.message}")
        return translate(error, f"Cannot read a chunk of {wanted.id}", user=self._config.user, database=self._config.database)


@contextmanager
def _reading(connection: Connection, more: str, while_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a transaction open that can write nothing, whatever a condition calls.

    Args:
        more: statements after its begin.

    Raises:
        ServerError: the begin or the end failed.
    """
    try:
        connection.query(f"BEGIN READ ONLY; {more}", while_waiting)
        yield
        connection.query("COMMIT")
    except ServerError as error:
        if error.sqlstate[:2] not in ("08", "57"):
            connection.query("ROLLBACK")
        raise
    except (ConnectError, *DEFECTS):
        connection.query("ROLLBACK")
        raise


def _name(id_: TableId) -> str:
    return f"{quote_name(id_.schema)}.{quote_name(id_.table)}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _key_columns(key: Sequence[PgColumn]) -> list[KeyColumn]:
    return [KeyColumn(column.name, column.nullable) for column in key]


def _texts(key: StoredKey) -> Key:
    return tuple(None if part is None else part.text for part in key)


def _stored(key: Sequence[PgColumn], values: Sequence[str | None]) -> StoredKey:
    return tuple(None if value is None else _java_value(column, value) for column, value in zip(key, values, strict=True))


def _java_value(column: PgColumn, text: str) -> JavaValue:
    name = column.base_types[-1].name if column.base_types else column.type_name
    java_class = JAVA_CLASSES.get(name, STRING)
    if java_class == "[B" and text.startswith("\\x"):
        return JavaValue(java_class, text)
    if not _PLAIN.fullmatch(text) or text.lower().lstrip("-") in ("infinity", "nan"):
        java_class = STRING
    return JavaValue(java_class, text)


#: Bytes of a row of a table without statistics.
_ROW_BYTES = 100
#: A table whose order on disk follows its key less than this is scattered.
_ORDERED = 0.8


#: Pages that are read of a table without statistics: enough to know its rows to about 10 %.
_SAMPLED_PAGES = 128
#: The size of a page unless the server was compiled otherwise; then a few more or fewer are read.
_PAGE_BYTES = 8192
#: Smaller tables are read in less time than anybody asks for their estimate.
_SAMPLED_BYTES = 1 << 20
#: After a restore no table has statistics; a sample may take a second of a slow disk.
_SAMPLED_TABLES = 100


@dataclass(frozen=True, slots=True)
class TableSize:
    """An estimate: rows and bytes; `is_known` when it is from statistics, else it is from a sample or guessed from the bytes."""

    rows: int
    octets: int
    is_known: bool = True


def read_sizes(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, TableSize]:
    """Return estimates of tables, of a partitioned one with all its partitions. Raises ServerError.

    They are made as the server's planner makes them: the rows of a page at the last ANALYZE, times the pages that there are now. Of a large
    table that was never analyzed some pages are read.
    """
    wanted = ", ".join(f"({quote_literal(table.schema)}, {quote_literal(table.table)})" for table in tables)
    if not wanted:
        return {}
    leaves = "UNION SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf" if connection.server_version >= 120000 else ""
    size = "pg_relation_size(p.oid)"
    now = f"CASE WHEN p.relpages > 0 AND {size} > 0 THEN {size} / current_setting('block_size')::float / p.relpages ELSE 1 END"
    rows = connection.query(
        f"SELECT n.nspname, c.relname, sum(CASE WHEN p.reltuples > 0 THEN p.reltuples * {now} "
        f"ELSE {size} / {_ROW_BYTES} END)::bigint, sum({size})::bigint, bool_and(p.reltuples > 0), "
        "bool_and(p.relkind IN ('r', 'm')) AND has_any_column_privilege(c.oid, 'SELECT') "
        f"FROM (VALUES {wanted}) AS v (s, t) JOIN pg_namespace n ON n.nspname = v.s "
        "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = v.t "
        f"CROSS JOIN LATERAL (SELECT c.oid {leaves}) AS l (oid) JOIN pg_class p ON p.oid = l.oid AND p.relkind <> 'p' GROUP BY 1, 2, c.oid"
    )
    sizes, samples = {}, []
    for schema, table, count, octets, known, may_sample in rows:
        name = TableId(str(schema), str(table))
        sizes[name] = TableSize(int(count or 0), int(octets or 0), known == "t")
        if known != "t" and may_sample == "t" and sizes[name].octets >= _SAMPLED_BYTES:
            samples.append(name)
    for name in sorted(samples, key=lambda name: -sizes[name].octets)[:_SAMPLED_TABLES]:
        sizes[name] = replace(sizes[name], rows=_sampled_rows(connection, name, sizes[name].octets))
    return sizes


def _sampled_rows(connection: Connection, table: TableId, octets: int) -> int:
    """Return about how many rows a table has, from some of its pages."""
    share = min(1.0, _SAMPLED_PAGES * _PAGE_BYTES / octets)
    name = f"{quote_name(table.schema)}.{quote_name(table.table)}"
    ((count,),) = connection.query(f"SELECT count(*) FROM {name} TABLESAMPLE SYSTEM ({100 * share:.6f}) REPEATABLE (1)")
    return round(int(count or 0) / share)


def ordered(tables: Sequence[TableId], sizes: Mapping[TableId, TableSize], order: str) -> list[TableId]:
    """Order tables by `snapshot.tables.order.by.row.count`, as far as there are statistics.

    Debezium's connector for PostgreSQL accepts the property and ignores it.
    """
    return by_rows(tables, {table: size.rows for table, size in sizes.items() if size.is_known}, order)


class TableCuts:
    """`Cuts` of the snapshot engine.

    Args:
        connection: of the snapshot's transaction; between two chunks nothing else runs on it.
        while_waiting: called a few times a second while the server looks for a boundary.
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
        return self._sizes[table].rows if table in self._sizes else 0

    def key(self, table: TableId) -> tuple[str, ...]:
        return tuple(f"{column.name} {column.type_name}" for column in self._columns(table))

    def _columns(self, table: TableId) -> list[PgColumn]:
        known = self._tables[table]
        found = [column for name in known.key if (column := known.column(name)) is not None]
        return found if len(found) == len(known.key) else []

    def is_worth_cutting(self, table: TableId) -> bool:
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
