"""Statements: text made of quoted names, of types, and of markers for values (`GeneralDatabaseDialect.java`).

A dialect is made for an engine that has connected once. Names are always quoted; what ``quote.identifiers=false`` means for their case is
done by folding them first. Nothing of a record stands in a statement but names, types and defaults, quoted by the dialect.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from connectors.jdbc.column_types import Kinds
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Column, Shape

#: Bytes of one statement of several rows, well below every server's `max_allowed_packet`.
MAX_STATEMENT = 1_000_000
Row = tuple[Any, ...]
_QUOTES = re.compile("'+")
Binder = Callable[[Row], Row]


class Dialect(ABC):
    """One database's statements. The task's thread owns it.

    Class attributes:
        placeholder: what stands for a parameter in the driver's statements.
        ignores_case: whether two columns' names differ in more than their case.
    """

    placeholder: str = "%s"
    ignores_case: bool = False
    kinds: Kinds

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        self._config = config
        self._quote = engine.dialect.identifier_preparer.quote_identifier  # doubles the percent signs where the driver reads them

    # -- names and literals --------------------------------------------------------------------------------------------------------

    def column_name(self, name: str) -> str:
        """Return a column's name as the database has it, not quoted."""
        return name if self._config.quotes else name.lower()

    def table_name(self, table: TableId) -> TableId:
        """Return a table's name as the database has it, not quoted."""
        return table

    def quoted(self, name: str) -> str:
        """Quote a name for a statement."""
        return self._quote(name)

    def quoted_column(self, column: Column) -> str:
        """Quote a column's name for a statement."""
        return self._quote(self.column_name(column.name))

    def quoted_table(self, table: TableId) -> str:
        """Quote a table's name for a statement."""
        found = self.table_name(table)
        return f"{self._quote(found.space)}.{self._quote(found.name)}" if found.space else self._quote(found.name)

    def literal(self, text: str) -> str:
        """Quote a text for a statement, its percent signs not doubled for the driver: `_ddl` does that.

        Two quotes are left as they are, since Debezium's sources give a default that has one quote with two (`AbstractType.java`).
        """
        return "'" + _QUOTES.sub(lambda run: run[0] if len(run[0]) % 2 == 0 else 2 * run[0], text) + "'"

    def _ddl(self, text: str) -> str:
        """Return a piece of a statement that is no quoted name, as the driver reads it."""
        return text if self.placeholder == "?" else text.replace("%", "%%")

    # -- tables --------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        """Return the names of a table's columns, folded by `same_name`; None when there is no such table."""

    def same_name(self, name: str) -> str:
        """Return a column's name for comparisons."""
        return name.lower() if self.ignores_case else name

    def missing(self, shape: Shape, columns: frozenset[str]) -> list[Column]:
        """Return the columns of a shape that a table does not have."""
        return [column for column in shape.columns if self.same_name(self.column_name(column.name)) not in columns]

    def create_table(self, table: TableId, shape: Shape) -> str:
        """Return the statement that makes a table for rows of a shape."""
        parts = [self._specification(column, is_nullable=column.schema.optional and not column.is_key) for column in shape.columns]
        if shape.keys:
            parts.append(f"PRIMARY KEY ({', '.join(map(self.quoted_column, shape.keys))})")
        return f"CREATE TABLE {self.quoted_table(table)} ({', '.join(parts)})"

    def add_columns(self, table: TableId, columns: Sequence[Column]) -> list[str]:
        """Return the statements that add columns."""
        added = ", ".join(f"ADD COLUMN {self._specification(column, is_nullable=column.schema.optional)}" for column in columns)
        return [f"ALTER TABLE {self.quoted_table(table)} {added}"]

    def _specification(self, column: Column, *, is_nullable: bool) -> str:
        kind = self.kinds.of(column.schema)
        text = self._ddl(kind.column(column.schema, column.is_key))
        if column.schema.default is not None:
            default = kind.default(column.schema, column.schema.default, self.literal)
            text += f" DEFAULT {self._ddl(default)}" if default is not None else ""
        return f"{self.quoted_column(column)} {text}{' NULL' if is_nullable else ' NOT NULL'}"

    # -- rows ----------------------------------------------------------------------------------------------------------------------

    def insert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        """Return an insertion: what stands before the rows, one row, and what stands after them."""
        if not shape.columns:
            return f"INSERT INTO {self.quoted_table(table)} DEFAULT VALUES", "", ""
        names = ", ".join(map(self.quoted_column, shape.columns))
        row = ", ".join(self.marker(column) for column in shape.columns)
        return f"INSERT INTO {self.quoted_table(table)} ({names}) VALUES ", f"({row})", ""

    def upsert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        """Return an insertion that changes the row which is there already."""
        before, row, _ = self.insert(table, shape)
        keys = ", ".join(map(self.quoted_column, shape.keys))
        if not shape.others:
            return before, row, f" ON CONFLICT ({keys}) DO NOTHING"
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in map(self.quoted_column, shape.others))
        return before, row, f" ON CONFLICT ({keys}) DO UPDATE SET {changes}"

    def update(self, table: TableId, shape: Shape) -> str:
        """Return a change of a row by its key; its parameters are the other columns', then the key's."""
        changes = ", ".join(map(self._equals, shape.others))
        where = f" WHERE {' AND '.join(map(self._equals, shape.keys))}" if shape.keys else ""
        return f"UPDATE {self.quoted_table(table)} SET {changes}{where}"

    def delete(self, table: TableId, shape: Shape) -> str:
        """Return a deletion of a row by its key."""
        return f"DELETE FROM {self.quoted_table(table)} WHERE {' AND '.join(map(self._equals, shape.keys))}"

    def truncate(self, table: TableId) -> str:
        """Return a deletion of all rows."""
        return f"TRUNCATE TABLE {self.quoted_table(table)}"

    def marker(self, column: Column) -> str:
        """Return what stands for a column's value."""
        return self.kinds.of(column.schema).marker.replace("?", self.placeholder)

    def _equals(self, column: Column) -> str:
        return f"{self.quoted_column(column)} = {self.marker(column)}"

    def binder(self, columns: Sequence[Column]) -> Binder:
        """Return the function that makes parameters of the columns' values. It raises DataError."""
        kinds = [self.kinds.of(column.schema) for column in columns]
        steps = [(kind.convert(column.schema), kind.width) for kind, column in zip(kinds, columns, strict=True)]

        def bind(values: Row) -> Row:
            found: list[Any] = []
            for (convert, width), value in zip(steps, values, strict=True):
                if width == 1:
                    found.append(None if value is None else convert(value))
                else:
                    found.extend((None,) * width if value is None else convert(value))
            return tuple(found)

        return bind

    def run(self, connection: Connection, statement: tuple[str, str, str], rows: Sequence[Row]) -> None:
        """Execute an insertion of rows."""
        connection.exec_driver_sql("".join(statement), list(rows))
