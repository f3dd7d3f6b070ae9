"""MySQL and MariaDB (`MySqlDatabaseDialect.java`, `MariaDbDatabaseDialect.java`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import MAX_STATEMENT, Dialect, Row
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Shape
from connectors.jdbc.types.mysql import mysql_kinds

#: Since then MySQL warns of `VALUES(column)` and has a name for the new row.
_HAS_ALIAS = (8, 0, 20)


class MySqlDialect(Dialect):
    """Columns have no case."""

    ignores_case = True

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        found: Any = engine.dialect
        self._is_mariadb = bool(getattr(found, "is_mariadb", False))
        version = () if self._is_mariadb else tuple(found.server_version_info or ())
        self._has_alias = version[:3] >= _HAS_ALIAS
        self.kinds = mysql_kinds(self.literal, config.zone, is_mariadb=self._is_mariadb, has_axes=version[:1] >= (8,))

    def literal(self, text: str) -> str:
        """A text, in which a backslash escapes too."""
        return super().literal(text.replace("\\", "\\\\"))

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        """As `Dialect.columns_of`."""
        wanted = self.table_name(table)
        query = "SELECT column_name FROM information_schema.columns WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s"
        found = connection.exec_driver_sql(query, (wanted.space or None, wanted.name)).scalars()
        return frozenset(self.same_name(name) for name in found) or None

    def insert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        """As `Dialect.insert`."""
        if not shape.columns:
            return f"INSERT INTO {self.quoted_table(table)} VALUES ", "()", ""
        return super().insert(table, shape)

    def upsert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        """As `Dialect.upsert`."""
        before, row, _ = self.insert(table, shape)
        names = map(self.quoted_column, shape.others or shape.keys)
        if self._has_alias:
            return before, row, f" AS new ON DUPLICATE KEY UPDATE {', '.join(f'{name} = new.{name}' for name in names)}"
        return before, row, f" ON DUPLICATE KEY UPDATE {', '.join(f'{name} = VALUES({name})' for name in names)}"

    def run(self, connection: Connection, statement: tuple[str, str, str], rows: Sequence[Row]) -> None:
        """Execute insertions of many rows a statement, which the server applies in order."""
        before, row, after = statement
        for part in _parts(rows):
            values = tuple(value for found in part for value in found)
            connection.exec_driver_sql(f"{before}{', '.join([row] * len(part))}{after}", values)


def _parts(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows in pieces that a statement may hold."""
    part: list[Row] = []
    size = 0
    for row in rows:
        added = sum(2 * len(value) if isinstance(value, str | bytes) else 24 for value in row)
        if part and size + added > MAX_STATEMENT:
            yield part
            part, size = [], 0
        part.append(row)
        size += added
    if part:
        yield part
