"""The tables of a MySQL or MariaDB server, for somebody who chooses from them (`SourceConnector.list_tables`). It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api.tables import SourceTables
from connectors.engine.table_lists import described_tables
from connectors.mysql.config.config import parse_config
from connectors.mysql.doctor import open_session
from connectors.mysql.server import queries


def list_tables(config: Mapping[str, str], connector: str) -> SourceTables:
    """Return the base tables of every database that the user may see.

    Args:
        connector: `mysql` or `mariadb`.

    Raises:
        ConnectError: the server does not say.
    """
    parsed = parse_config(config, connector)
    filters = parsed.filters
    connection = open_session(parsed)
    try:
        found = queries.all_tables(connection, with_system=not parsed.flag("table.ignore.builtin"))
        rows = queries.row_estimates(connection, found)
    finally:
        connection.close()
    return described_tables(config, filters, "database", found, rows)
