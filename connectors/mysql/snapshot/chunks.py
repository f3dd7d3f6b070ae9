"""Chunks of MySQL tables: where those of an initial snapshot begin and end, and the rows of those of an incremental one.

Initial snapshot (`TableCuts`). A table is cut by its primary key, otherwise by the unique index that stands for one, where InnoDB keeps its
rows in that order. Both the lookup of a boundary and the reading of a range are bound to that index: by itself, the server reads a whole
table for a range that it estimates to be large. A key is not used if its boundaries could not be compared as they are sorted
(`types.keys.cut_key`), or if the index has only prefixes of texts. What a key's order depends on, types and collations, is part of its
name: under another collation completed ranges would not be the same rows.

Incremental snapshot (`MySqlChunks`). A chunk is read in a transaction, which keeps the table's structure until its end; then the structure
is compared with the stream's (`StructureCheck`).

A transaction's changes are in the log, and so in the stream, before other sessions see them. A chunk must not be older than what the stream
has already shown, so reading waits until all transactions that the stream has shown are executed (GTIDs; without them the server must
commit in the order of its log, as it does by default, and the low watermark waits).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError, DataError
from connectors.engine.encode.plan import Text
from connectors.engine.envelope import tail
from connectors.engine.java_object import StoredKey
from connectors.engine.relational.tables import Table, TableId
from connectors.engine.snapshot.chunks import ChunkQuery, Key, KeyColumn, SqlDialect, order_sql, range_sql, where_sql
from connectors.engine.snapshot.incremental.contract import BusyError, Chunk, NoKeyError, UnknownCollectionError
from connectors.engine.snapshot.incremental.offset import WantedCollection
from connectors.engine.snapshot.initial.progress import WHOLE, KeyRange
from connectors.mysql import errors
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import MyTable, quote_name
from connectors.mysql.position.gtid import GtidSet
from connectors.mysql.position.offset import EventPosition
from connectors.mysql.schema.captured import CapturedTable, CapturedTables
from connectors.mysql.schema.structure import StructureCheck
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_literal
from connectors.mysql.server.queries import row_estimates
from connectors.mysql.snapshot.locks import retry_altered_table
from connectors.mysql.snapshot.rows import PacketRows
from connectors.mysql.types.columns import is_text
from connectors.mysql.types.keys import ChunkKey, chunk_key, cut_key, is_zero_date

log = logging.getLogger(__name__)

#: How long a chunk waits for a streamed transaction to become visible before streaming continues in between.
VISIBLE_WAIT_SECONDS = 1

#: A row, as a statement's answer is read.
R = TypeVar("R")


class ChunkRow(NamedTuple):
    """A row that waits for its position in the stream.

    Attributes:
        image: JSON text of the row.
    """

    table: CapturedTable
    key: bytes | None
    image: bytes


class MySqlChunks:
    """`ChunkReader` on the general connection; used by the task's thread.

    Args:
        general: returns the task's open session, which may be a new one after a reconnect.
        tables: captured tables in the stream's structures.
        models: the names of the captured tables that the stream knows.
        check: compares structures.
        shown: the transactions that the stream has shown; None where they have no names.
    """

    accepts_surrogate_keys = True

    def __init__(
        self,
        general: Callable[[], Connection],
        config: MySqlConfig,
        tables: Callable[[], CapturedTables],
        models: Callable[[], Sequence[TableId]],
        check: StructureCheck,
        shown: Callable[[], GtidSet | None],
    ) -> None:
        self._general = general
        self._config = config
        self._tables = tables
        self._models = models
        self._check = check
        self._shown = shown
        self._visible = GtidSet()
        self._structure: MyTable | None = None
        self._packets: tuple[CapturedTable, list[str], PacketRows] | None = None
        self._expressions: set[tuple[TableId, str]] = set()

    @property
    def structure(self) -> object:
        return self._structure

    def stream_begins(self) -> None:
        """Note that a new stream has shown nothing yet."""
        self._visible = GtidSet()

    def table(self, name: str) -> TableId | None:
        """Return the captured table that a signal names; None without one."""
        wanted = name.replace("`", "").replace('"', "")
        return next((id_ for id_ in self._models() if str(id_) in (name, wanted)), None)

    def names(self) -> Sequence[str]:
        return [str(id_) for id_ in self._models()]

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        captured = self._find(wanted)
        key = self._key(captured, wanted)
        query = ChunkQuery(_key_columns(key), condition=wanted.condition, descending=True)
        sql = f"SELECT {', '.join(part.shown for part in key)} FROM {_name(captured.id)}{_where(query, key)}{_order(query)}"  # noqa: S608  # quoted names; a condition is the user's own
        rows = self._run(captured, wanted, lambda connection: connection.query(sql))
        if not rows:
            return None
        charsets = ["utf-8" if is_text(part.column) else "latin-1" for part in key]
        return _stored(
            key, [None if octets is None else octets.decode(charset, "replace") for octets, charset in zip(rows[0], charsets, strict=True)]
        )

    def estimate(self, wanted: WantedCollection) -> int | None:
        table = self._find(wanted).id
        return row_estimates(self._general(), [table]).get(table)

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[ChunkRow]:
        self.await_streamed()
        captured = self._find(wanted)
        key = self._key(captured, wanted)
        query = ChunkQuery(
            _key_columns(key),
            None if after is None else _literals(key, after),
            None if after is None else _literals(key, until),
            wanted.condition,
            limit,
        )
        chosen = ", ".join([*captured.selected, *(part.shown for part in key)])
        sql = f"SELECT {chosen} FROM {_name(captured.id)}{_where(query, key)}{_order(query)}"  # noqa: S608  # as above
        rows = self._run(captured, wanted, lambda connection: connection.packets(sql))
        self._structure = captured.model
        if not rows:
            return Chunk([], None)
        packets = self._packet_rows(captured, key)
        last = packets.texts(rows[-1:])[0][len(captured.indexes) :]
        return Chunk([(key, ChunkRow(captured, key, image)) for key, image in packets.images(rows)], _stored(key, last))

    def records(self, rows: Sequence[ChunkRow], position: EventPosition) -> list[EncodedRow]:
        """Return records of rows that follow an event of the stream."""
        if not rows:
            return []
        table, now_ns = rows[0].table, time.time_ns()
        source = table.block.render(
            now_ns // 1000,
            "incremental",
            position.file,
            position.pos,
            server_id=position.server_id,
            gtid=position.gtid,
            thread=position.thread,
        )
        route, head = table.route, table.encoder.row_head
        end = table.encoder.end(source, tail("r", now_ns))
        return [(route, key, b"".join((head, image, end))) for _, key, image in rows]

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _find(self, wanted: WantedCollection) -> CapturedTable:
        id_ = self.table(wanted.id)
        found = None if id_ is None else self._tables().get(id_)
        if found is None:
            raise UnknownCollectionError(
                f"There is no table '{wanted.id}', or it is not captured (database.include.list, table.include.list and the other filters)"
            )
        return found

    def _key(self, captured: CapturedTable, wanted: WantedCollection) -> list[ChunkKey]:
        model = captured.model
        names = (wanted.surrogate_key,) if wanted.surrogate_key else self._config.keys.columns(Table(model.id, model.columns, model.key))
        indexes = [model.index_of(name) for name in names]
        if wanted.surrogate_key and indexes == [-1]:
            raise ConfigError(f"The table '{model.id}' has no column '{wanted.surrogate_key}', which the signal names as surrogate key")
        if not indexes:
            raise NoKeyError(f"Incremental snapshot for table '{model.id}' skipped because the table has no primary keys")
        found = []
        for index in indexes:
            part = chunk_key(model.columns[index])
            if part is None:
                raise NoKeyError(f"The column {model.id}.{model.columns[index].name} has a type by which no chunks can be cut")
            found.append(part)
        return found

    def _packet_rows(self, captured: CapturedTable, key: Sequence[ChunkKey]) -> PacketRows:
        """Return what makes records of a chunk's rows; its functions serve all chunks of a table."""
        names = [part.column.name for part in key]
        if self._packets is None or self._packets[0] is not captured or self._packets[1] != names:
            self._packets = captured, names, PacketRows(captured, [is_text(part.column) for part in key])
        return self._packets[2]

    def _run(self, captured: CapturedTable, wanted: WantedCollection, ask: Callable[[Connection], list[R]]) -> list[R]:
        """Return rows of one transaction, in the stream's structure."""
        connection = self._general()
        try:
            connection.execute("START TRANSACTION READ ONLY")
            try:
                self._require_expression(connection, captured, wanted.condition)
                rows = ask(connection)
            except LostConnectionError as error:
                if error.code != errors.LOCK_WAIT_TIMEOUT:
                    raise
                raise BusyError(f"the table {captured.id} is locked by another session: {error.reason}") from None
            except ServerError:
                # a column may just have been dropped
                self._check(connection, captured.model)
                raise
            self._check(connection, captured.model)
            connection.execute("COMMIT")
        except LostConnectionError:
            raise
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return rows

    def _require_expression(self, connection: Connection, captured: CapturedTable, condition: str | None) -> None:
        """Let the server parse a condition where only an expression fits: one that closes the parentheses around it would be more than a
        condition (`INTO OUTFILE`, `UNION`). In the query itself stands `(condition)`, and no text fits into both but an expression.

        Raises:
            ServerError: it is none.
        """
        if condition and (captured.id, condition) not in self._expressions:
            connection.parse(f"SELECT 1 FROM {_name(captured.id)} WHERE CASE WHEN {condition}\nTHEN 1 END")  # noqa: S608  # not run
            self._expressions = {(captured.id, condition)}

    def await_streamed(self) -> None:
        """Wait until all transactions that the stream has shown are visible. Raises BusyError when it takes long."""
        shown = self._shown()
        if shown is None:
            return
        new = shown.minus(self._visible)
        if new and not queries.await_executed(self._general(), str(new), VISIBLE_WAIT_SECONDS):
            raise BusyError("a transaction that the stream has shown is not yet visible (a synchronous replica is slow?)")
        self._visible = shown


def _name(id_: TableId) -> str:
    return quote_name(id_.schema, id_.table)


def _key_columns(key: Sequence[ChunkKey]) -> list[KeyColumn]:
    return [KeyColumn(part.column.name, part.column.nullable) for part in key]


def _where(query: ChunkQuery, key: Sequence[ChunkKey]) -> str:
    """Return the WHERE clause. Boundaries are literals already: their form depends on their columns."""
    compared = {part.column.name: part.compared for part in key}
    return where_sql(query, SqlDialect(compared.__getitem__, lambda literal: literal, row_values=False, nulls_last=False))


def _order(query: ChunkQuery) -> str:
    return order_sql(query, SqlDialect(quote_name, lambda literal: literal, row_values=False, nulls_last=False))


def _literals(key: Sequence[ChunkKey], values: StoredKey) -> tuple[str | None, ...]:
    return tuple(None if value is None else part.literal(value.text) for part, value in zip(key, values, strict=True))


def _stored(key: Sequence[ChunkKey], values: Sequence[Text]) -> StoredKey:
    return tuple(part.stored(text) if isinstance(text, str) else None for part, text in zip(key, values, strict=True))


_DATES = frozenset(("DATE", "DATETIME", "TIMESTAMP"))


@dataclass(frozen=True, slots=True)
class _Cut:
    """By what a table is cut. `names` are the columns with what their order depends on."""

    index: str
    key: tuple[ChunkKey, ...]
    names: tuple[str, ...]


class TableCuts:
    """`Cuts` of the snapshot engine.

    Args:
        connection: on which nothing else runs between two chunks.
        model: the structure in which a table is read.
        estimates: rows by the server's statistics.
    """

    def __init__(self, connection: Connection, model: Callable[[TableId], MyTable], estimates: Mapping[TableId, int]) -> None:
        self._connection = connection
        self._model = model
        self._estimates = estimates
        self._cuts: dict[TableId, _Cut | None] = {}

    def rows(self, table: TableId) -> int:
        return self._estimates.get(table, 0)

    def key(self, table: TableId) -> tuple[str, ...]:
        cut = self._cut(table)
        return () if cut is None else cut.names

    def is_worth_cutting(self, table: TableId) -> bool:
        # a table's rows lie in the order of its key, or it has none to be cut by
        return True

    def boundary(self, table: TableId, span: KeyRange, rows: int) -> Key | None:
        cut = self._cut(table)
        assert cut is not None
        shown = ", ".join(part.shown for part in cut.key)
        order = ", ".join(quote_name(part.column.name) for part in cut.key)
        source = f"{quote_name(table.schema, table.table)}{_part(cut, span)}"
        with retry_altered_table(table):
            found = self._connection.texts(f"SELECT {shown} FROM {source} ORDER BY {order} LIMIT 1 OFFSET {rows - 1}")  # noqa: S608  # quoted
        return found[0] if found and found[0] != span.after and _is_usable(cut, found[0]) else None

    def part(self, table: TableId, span: KeyRange) -> str:
        """Return SQL to follow the table's name that selects a range's rows."""
        cut = self._cut(table) if span != WHOLE else None
        return "" if cut is None else _part(cut, span)

    def _cut(self, table: TableId) -> _Cut | None:
        if table not in self._cuts:
            self._cuts[table] = self._find(self._model(table))
        return self._cuts[table]

    def _find(self, model: MyTable) -> _Cut | None:
        if not model.key:
            return None
        indexes: dict[str, list[tuple[str, ...]]] = {}
        for index, *column in self._connection.texts(_indexes_sql(model.id)):
            indexes.setdefault(index, []).append(tuple(column))
        wanted = [name.lower() for name in model.key]
        for index, columns in indexes.items():
            if [name.lower() for name, *_ in columns] == wanted and all(way == "A" and not cut for _, way, cut, *_ in columns):
                numbers = [model.index_of(name) for name in model.key]
                key = [cut_key(model.columns[number], charset) for number, (*_, charset) in zip(numbers, columns, strict=True)]
                names = tuple(f"{name} {kind} {collation}".rstrip() for name, _, _, kind, collation, _ in columns)
                found = tuple(part for part in key if part is not None)
                return _Cut(index, found, names) if len(found) == len(key) else None
        return None


def _indexes_sql(table: TableId) -> str:
    """Return unique indexes: names, and of each column its name, direction, how much of it, type, collation and character set."""
    return (
        "SELECT s.index_name, s.column_name, s.collation, s.sub_part, c.column_type, c.collation_name, c.character_set_name "  # noqa: S608  # quoted
        "FROM information_schema.statistics s JOIN information_schema.columns c ON c.table_schema = s.table_schema "
        "AND c.table_name = s.table_name AND c.column_name = s.column_name JOIN information_schema.tables t "
        "ON t.table_schema = s.table_schema AND t.table_name = s.table_name "
        f"WHERE s.table_schema = {quote_literal(table.schema)} AND s.table_name = {quote_literal(table.table)} "
        "AND s.non_unique = 0 AND t.engine = 'InnoDB' ORDER BY s.index_name <> 'PRIMARY', s.index_name, s.seq_in_index"
    )


def _part(cut: _Cut, span: KeyRange) -> str:
    columns = [KeyColumn(part.column.name, part.column.nullable) for part in cut.key]
    dialect = SqlDialect(quote_name, lambda literal: literal, row_values=False, nulls_last=False)
    after, until = _cut_literals(cut, span.after), _cut_literals(cut, span.until)
    return f" FORCE INDEX ({quote_name(cut.index)}){range_sql(columns, after, until, dialect)}"


def _cut_literals(cut: _Cut, values: Key | None) -> Key | None:
    """Return values as literals, whose form depends on their columns."""
    if values is None:
        return None
    return tuple(None if value is None else part.literal(value) for part, value in zip(cut.key, values, strict=True))


def _is_usable(cut: _Cut, values: Key) -> bool:
    """Return whether rows can be compared with a boundary; the rest of the table is one chunk where they cannot."""
    try:
        _cut_literals(cut, values)
    except (DataError, ValueError):
        return False
    return not any(part.column.base_type in _DATES and is_zero_date(value or "") for part, value in zip(cut.key, values, strict=True))
