"""The tables of a PostgreSQL database, for somebody who chooses from them (`SourceConnector.list_tables`). It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api.tables import SourceTables
from connectors.engine.table_lists import described_tables
from connectors.postgres.config import parse_config
from connectors.postgres.doctor import open_session
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.server import catalog


def list_tables(config: Mapping[str, str]) -> SourceTables:
    """Return every table outside of the system's schemas, partitions included. Raises ConnectError."""
    parsed = parse_config(config)
    settings, filters = parsed.connection, parsed.filters
    what = f"Cannot connect to the database '{settings.database}' at {settings.host}:{settings.port}"
    try:
        connection = open_session(parsed)
        try:
            what = f"Cannot list the tables of the database '{settings.database}'"
            found = [table for table, _ in catalog.read_table_ids(connection)]
            rows = catalog.row_estimates(connection)
        finally:
            connection.close()
    except ServerError as error:
        raise translate(error, what, user=settings.user, database=settings.database) from error
    return described_tables(config, filters, "schema", found, rows)
