"""What the connector asks of a server besides rows: its log, its settings, its tables (mysql.md §2, §5, §6.1). Reads only."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from connect_py.errors import FatalTaskError
from connectors.engine.relational.table import TableId
from connectors.mysql.config import SYSTEM_DATABASES, MySqlConfig
from connectors.mysql.connection import Connection, quote_literal, quote_name
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.gtid import GtidSet
from connectors.mysql.offset import MySqlOffset

log = logging.getLogger(__name__)

#: The first version whose statement is SHOW BINARY LOG STATUS (8.2) by the reference's reckoning: older ones may lack it.
_NEW_STATEMENT = (8, 4)


@dataclass(frozen=True, slots=True)
class LogStatus:
    """Where the log ends. `gtids` is None where the server gives its transactions none."""

    file: str
    position: int
    gtids: GtidSet | None


def open_connection(config: MySqlConfig) -> Connection:
    """A session for statements, after `database.initial.statements`. Raises ServerError."""
    connection = Connection(config.connection)
    text = config.raw.get("database.initial.statements", "")
    for statement in re.split(r"(?<!;);(?!;)", text):
        if statement.strip():
            connection.execute(statement.replace(";;", ";"))
    return connection


def variable(connection: Connection, name: str) -> str:
    """A global variable's text, empty for one that the server does not know. Raises ServerError."""
    rows = connection.texts(f"SHOW GLOBAL VARIABLES LIKE {quote_literal(name)}")
    return rows[0][1] if rows else ""


def has_gtids(connection: Connection) -> bool:
    """Whether every transaction has a GTID. Raises ServerError."""
    return variable(connection, "GTID_MODE").upper() == "ON"


def status_statement(connection: Connection) -> str:
    """The statement that shows where the log ends.

    Raises:
        ServerError: the connection broke, or a server that must know the statement refused it.
    """
    try:
        connection.query("SHOW BINARY LOG STATUS")
        return "SHOW BINARY LOG STATUS"
    except LostConnectionError:
        raise
    except ServerError:
        version = connection.texts("SELECT VERSION()")[0][0]
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers and (int(numbers[1]), int(numbers[2])) >= _NEW_STATEMENT and "mariadb" not in version.lower():
            raise FatalTaskError(
                f"MySQL version {version} should support SHOW BINARY LOG STATUS but it failed. Check database permissions or connectivity."
            ) from None
        return "SHOW MASTER STATUS"


def log_status(connection: Connection) -> LogStatus:
    """Where the log ends.

    Raises:
        FatalTaskError: the server keeps no log, or does not show it.
        ServerError: it cannot be asked.
    """
    statement = status_statement(connection)
    rows = connection.texts(statement)
    if not rows:
        raise FatalTaskError(
            f"Cannot read the binlog filename and position via '{statement}'. Make sure your server is correctly configured"
        )
    gtids = GtidSet.parse(rows[0][4]) if len(rows[0]) > 4 and rows[0][4] else None
    return LogStatus(rows[0][0], int(rows[0][1]), gtids)


def purged_gtids(connection: Connection) -> GtidSet:
    """Transactions whose log the server has thrown away. Raises ServerError."""
    return GtidSet.parse(connection.texts("SELECT @@global.gtid_purged")[0][0])


def check_log_format(connection: Connection) -> None:
    """Whether the log holds whole rows.

    Raises:
        FatalTaskError: it does not.
        ServerError: the server cannot be asked.
    """
    if variable(connection, "binlog_format").upper() != "ROW":
        raise FatalTaskError(
            "The database server is not configured to use a ROW binlog_format, which is required for this connector to work properly. "
            "Change the database configuration to use a binlog_format=ROW and restart the connector."
        )
    if (variable(connection, "binlog_row_image") or "FULL").upper() not in ("FULL", "NOBLOB"):
        raise FatalTaskError(
            "The database server is not configured to use a FULL binlog_row_image, which is required for this connector to work properly. "
            "Change the database configuration to use a binlog_row_image=FULL|NOBLOB and restart the connector."
        )


def is_available(connection: Connection, config: MySqlConfig, position: MySqlOffset) -> bool:
    """Whether the server's log still holds everything from a position on (mysql.md §5). Raises ServerError."""
    if position.gtids is not None and not config.flag("gtid.ignore.on.recovery"):
        stored = GtidSet.parse(position.gtids).filtered(config.gtid_sources)
        if not position.gtids.strip():
            return True
        executed = log_status(connection).gtids
        if executed is None:
            return False
        executed = executed.filtered(config.gtid_sources)
        missing = executed.minus(stored)
        return executed.contains(stored) and missing.minus(purged_gtids(connection)).contains(missing)
    if not position.file:
        return True
    return any(row[0] == position.file for row in connection.texts("SHOW BINARY LOGS"))


def all_tables(connection: Connection, *, with_system: bool) -> list[TableId]:
    """Base tables of every database that can be looked into, in order. Raises ServerError."""
    found: list[TableId] = []
    for (database,) in connection.texts("SHOW DATABASES"):
        if database.lower() in SYSTEM_DATABASES and not with_system:
            continue
        try:
            rows = connection.texts(f"SHOW FULL TABLES IN {quote_name(database)} WHERE Table_Type = 'BASE TABLE'")
        except LostConnectionError:
            raise
        except ServerError as error:
            log.warning("The tables of the database '%s' cannot be read and are left out: %s", database, error)
            continue
        found += [TableId(database, row[0]) for row in rows]
    return sorted(found)


def charset_statement(connection: Connection) -> str:
    """The server's defaults as the statement that begins a schema history. Raises ServerError."""
    names = "'character_set_server', 'collation_server'"
    rows = connection.texts(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
    parts = [f"{name}='{value}'" if "," in value or ";" in value else f"{name}={value}" for name, value in sorted(rows)]
    return f"SET {', '.join(parts)}"


def database_statements(connection: Connection, databases: Sequence[str]) -> dict[str, list[str]]:
    """For each database the statements that make it anew. Raises ServerError."""
    rows = connection.texts("SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata")
    known = {name: (charset, collation) for name, charset, collation in rows}
    found = {}
    for database in databases:
        name = quote_name(database)
        charset, collation = known.get(database, ("", ""))
        options = (f" CHARSET {charset}" if charset else "") + (f" COLLATE {collation}" if collation else "")
        found[database] = [f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}{options}", f"USE {name}"]
    return found
