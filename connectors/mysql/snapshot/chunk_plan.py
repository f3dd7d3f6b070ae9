"""Where chunks of MySQL tables begin and end, for an initial snapshot's `ChunkPlan`.

A table is cut by its primary key, otherwise by the unique index that stands for one, where InnoDB keeps its rows in that order. Both the
lookup of a boundary and the reading of a range are bound to that index: by itself, the server reads a whole table for a range that it
estimates to be large. A key is not used if its boundaries could not be compared as they are sorted (`types.keys.cut_key`), or if the index
has only prefixes of texts. What a key's order depends on, types and collations, is part of its name: under another collation completed
ranges would not be the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.errors import DataError
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.chunks import Key, KeyColumn, SqlDialect, range_sql
from connectors.engine.snapshot.initial.progress import WHOLE, Chunk, KeyRange
from connectors.mysql.model import MyTable, quote_name
from connectors.mysql.server.connection import Connection, quote_literal
from connectors.mysql.server.locks import retry_altered_table
from connectors.mysql.types.keys import ChunkKey, cut_key, is_zero_date

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

    def part(self, chunk: Chunk[TableId]) -> str:
        """Return SQL to follow the table's name that selects a chunk's rows."""
        cut = self._cut(chunk.table) if chunk.range != WHOLE else None
        return "" if cut is None else _part(cut, chunk.range)

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
    return f" FORCE INDEX ({quote_name(cut.index)}){range_sql(columns, _literals(cut, span.after), _literals(cut, span.until), dialect)}"


def _literals(cut: _Cut, values: Key | None) -> Key | None:
    """Return values as literals, whose form depends on their columns."""
    if values is None:
        return None
    return tuple(None if value is None else part.literal(value) for part, value in zip(cut.key, values, strict=True))


def _is_usable(cut: _Cut, values: Key) -> bool:
    """Return whether rows can be compared with a boundary; the rest of the table is one chunk where they cannot."""
    try:
        _literals(cut, values)
    except (DataError, ValueError):
        return False
    return not any(part.column.base_type in _DATES and is_zero_date(value or "") for part, value in zip(cut.key, values, strict=True))
