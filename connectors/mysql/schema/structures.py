"""The structures that a server has now, as the statements that would make them (mysql.md §6.1, 5a to 5d). Reads only, so that locks can go
before anything is made of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from connectors.engine.relational.table import TableId
from connectors.mysql import error_codes
from connectors.mysql.errors import ServerError
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_name

log = logging.getLogger(__name__)

#: The database that a statement is told for, and the statement.
Statement = tuple[str, str]


def read_statements(connection: Connection, tables: Sequence[TableId], *, anew: bool) -> list[Statement]:
    """Statements in the order in which they are told.

    Args:
        anew: with what comes before the tables: the server's character set, drops, and the databases.

    Raises:
        ServerError: the server cannot be asked.
    """
    found: list[Statement] = []
    if anew:
        found.append(("", queries.charset_statement(connection)))
        found += _drops(tables)
    databases = sorted({table.schema for table in tables})
    made = queries.database_statements(connection, databases)
    for database in databases:
        found += [(database, statement) for statement in (made[database] if anew else made[database][-1:])]
        found += _tables(connection, [table for table in tables if table.schema == database])
    return found


def tables_anew(connection: Connection, tables: Sequence[TableId]) -> list[Statement]:
    """Statements that drop tables and make them again as they are. Raises ServerError: the server cannot be asked."""
    return [*_drops(tables), *_tables(connection, sorted(tables, key=lambda table: table.schema))]


def _drops(tables: Sequence[TableId]) -> list[Statement]:
    return [(table.schema, f"DROP TABLE IF EXISTS {quote_name(table.schema, table.table)}") for table in tables]


def _tables(connection: Connection, tables: Sequence[TableId]) -> Iterator[Statement]:
    for table in tables:
        try:
            ((_, statement, *_),) = connection.texts(f"SHOW CREATE TABLE {quote_name(table.schema, table.table)}")
        except ServerError as error:
            if error.code not in error_codes.GONE:
                raise
            log.warning("The table %s was dropped before its structure could be read", table)
            continue
        yield table.schema, statement
