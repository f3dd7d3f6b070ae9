"""PostgreSQL (`PostgresDatabaseDialect.java`)."""

from __future__ import annotations

from sqlalchemy import Connection, Engine

from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.naming import TableId
from connectors.jdbc.types.postgres import postgres_kinds

_COLUMNS = (
    "SELECT a.attname FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)


class PostgresDialect(Dialect):
    """Without ``quote.identifiers`` names have small letters, as PostgreSQL makes them of names without quotes."""

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        self.kinds = postgres_kinds('"' + config.postgis_schema.replace('"', '""') + '"')

    def table_name(self, table: TableId) -> TableId:
        """As `Dialect.table_name`."""
        return table if self._config.quotes else TableId(table.space.lower(), table.name.lower())

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        """As `Dialect.columns_of`, by the connection's search path where the table's name has no schema."""
        name = self.quoted_table(table).replace("%%", "%")  # a parameter here, no statement
        if connection.exec_driver_sql("SELECT to_regclass(%s)", (name,)).scalar() is None:
            return None
        return frozenset(connection.exec_driver_sql(_COLUMNS, (name,)).scalars())
