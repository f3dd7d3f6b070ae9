"""SQLite, which Debezium's connector has no dialect for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine

from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Column
from connectors.jdbc.types.sqlite import sqlite_kinds


class SqliteDialect(Dialect):
    """Columns have no case; a table is in the connection's only database."""

    placeholder = "?"
    ignores_case = True

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        self.kinds = sqlite_kinds()

    def table_name(self, table: TableId) -> TableId:
        """As `Dialect.table_name`."""
        return TableId("", table.name)

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        """As `Dialect.columns_of`."""
        found = connection.exec_driver_sql("SELECT name FROM pragma_table_info(?)", (self.table_name(table).name,)).scalars()
        return frozenset(self.same_name(name) for name in found) or None

    def add_columns(self, table: TableId, columns: Sequence[Column]) -> list[str]:
        """As `Dialect.add_columns`, one column a statement."""
        return [statement for column in columns for statement in super(SqliteDialect, self).add_columns(table, [column])]

    def truncate(self, table: TableId) -> str:
        """As `Dialect.truncate`; SQLite deletes."""
        return f"DELETE FROM {self.quoted_table(table)}"
