"""What the connector asks a server apart from rows: its log, its settings, its tables. Reads only.

`GeneralSession` is the session for everything outside the stream: chunks, watermarks, the user's statements, and blocking snapshots.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from connect_py.errors import FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.mysql.config.config import SYSTEM_DATABASES, MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import quote_name
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet, Transactions, covers, parse_transactions, read_sources, starting_set
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.server.connection import Connection, quote_literal

log = logging.getLogger(__name__)

#: The first version whose statement is SHOW BINARY LOG STATUS (8.2) according to Debezium: older ones may lack it.
_NEW_STATEMENT = (8, 4)
#: How often a busy MariaDB is asked for a position and GTIDs that belong together.
_STATUS_ATTEMPTS = 10
#: The first event follows the magic number of a log file.
_FIRST_EVENT = 4

#: A general session that was idle for longer is tested before it is used.
_IDLE_SECONDS = 20.0
#: How long a chunk waits for a table that another session holds exclusively; the server counts in seconds.
_LOCK_WAIT_SECONDS = 1


@dataclass(frozen=True, slots=True)
class LogStatus:
    """Where the log ends. `gtids` is None where the server gives its transactions none."""

    file: str
    position: int
    gtids: Transactions | None


def open_connection(config: MySqlConfig) -> Connection:
    """Return a session for statements, after `database.initial.statements`. Raises ServerError."""
    connection = Connection(config.connection)
    text = config.raw.get("database.initial.statements", "")
    for statement in re.split(r"(?<!;);(?!;)", text):
        if statement.strip():
            connection.execute(statement.replace(";;", ";"))
    return connection


class GeneralSession:
    """Opens the session on first use, and again when the server or a firewall cut it while it was idle. Used by the task's thread."""

    def __init__(self, config: MySqlConfig) -> None:
        self._config = config
        self._connection: Connection | None = None
        self._used = 0.0

    def __call__(self) -> Connection:
        """Return the open session. Raises ServerError."""
        now = time.monotonic()
        if self._connection is not None and now - self._used > _IDLE_SECONDS:
            try:
                self._connection.execute("DO 0")
            except LostConnectionError as error:
                log.debug("The idle session is gone: %s", error)
                self.close()
        if self._connection is None:
            self._connection = open_connection(self._config)
            self._connection.execute(f"SET SESSION lock_wait_timeout = {_LOCK_WAIT_SECONDS}")
            # names come back in backticks, whatever the server's own mode is
            self._connection.execute("SET SESSION sql_mode = REPLACE(@@sql_mode, 'ANSI_QUOTES', '')")
        self._used = now
        return self._connection

    def close(self) -> None:
        """End the session; never fails."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def variable(connection: Connection, name: str) -> str:
    """Return a global variable's text, empty for one that the server does not know. Raises ServerError."""
    rows = connection.texts(f"SHOW GLOBAL VARIABLES LIKE {quote_literal(name)}")
    return rows[0][1] if rows else ""


def global_variables(connection: Connection, names: Sequence[str]) -> dict[str, str]:
    """Return those of these global variables that the server knows, by names in lower case. Raises ServerError."""
    listed = ", ".join(map(quote_literal, names))
    return {name.lower(): value for name, value in connection.texts(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")}


def current_account(connection: Connection) -> str:
    """Return the account by which the server knows the user, as statements name it: ``'app'@'%'``. Raises ServerError."""
    ((account,),) = connection.texts("SELECT CURRENT_USER()")
    name, _, host = account.rpartition("@")
    return f"{quote_literal(name)}@{quote_literal(host)}"


def lower_case_table_names(connection: Connection) -> int:
    """Return the server's ``lower_case_table_names``. Raises ServerError."""
    text = variable(connection, "lower_case_table_names")
    return int(text) if text.isdigit() else 0


def is_mariadb(config: MySqlConfig) -> bool:
    """Return whether the connector is MariaDB's, whose transactions all have GTIDs of another form."""
    return config.connector == "mariadb"


def has_gtids(connection: Connection, config: MySqlConfig) -> bool:
    """Return whether every transaction has a GTID. Raises ServerError."""
    return is_mariadb(config) or variable(connection, "GTID_MODE").upper() == "ON"


def status_statement(connection: Connection, config: MySqlConfig) -> str:
    """Return the statement that shows where the log ends.

    Raises:
        ServerError: the connection broke, or a server that must know the statement refused it.
    """
    if is_mariadb(config):
        return "SHOW MASTER STATUS"
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


def log_status(connection: Connection, config: MySqlConfig) -> LogStatus:
    """Return where the log ends.

    Raises:
        FatalTaskError: the server keeps no log, or does not show it.
        ServerError: it cannot be asked.
    """
    statement = status_statement(connection, config)
    row = _status(connection, statement)
    if is_mariadb(config):
        return _mariadb_status(connection, statement, row)
    gtids = GtidSet.parse(row[4]) if len(row) > 4 and row[4] else None
    return LogStatus(row[0], int(row[1]), gtids)


def _status(connection: Connection, statement: str) -> tuple[str, ...]:
    rows = connection.texts(statement)
    if not rows:
        raise FatalTaskError(
            f"Cannot read the binlog filename and position via '{statement}'. Make sure your server is correctly configured"
        )
    return rows[0]


def _mariadb_status(connection: Connection, statement: str, row: tuple[str, ...]) -> LogStatus:
    """Return MariaDB's log end. The statement shows no GTIDs: they are queried separately, and fit the position if the log did not grow
    meanwhile."""
    for _ in range(_STATUS_ATTEMPTS):
        gtids = connection.texts("SELECT @@global.gtid_binlog_pos")[0][0]
        again = _status(connection, statement)
        if again[:2] == row[:2]:
            return LogStatus(row[0], int(row[1]), MariadbGtidSet.parse(gtids))
        row = again
    # a log that never stands still: the server can count them from the file's beginning
    return LogStatus(row[0], int(row[1]), MariadbGtidSet.parse(gtids_at(connection, row[0], int(row[1]))))


def gtids_at(connection: Connection, file: str, position: int) -> str:
    """Return MariaDB's transactions before a position; the answer is NULL where they cannot be known. Raises ServerError."""
    return connection.texts(f"SELECT BINLOG_GTID_POS({quote_literal(file)}, {position})")[0][0]


def purged_gtids(connection: Connection, config: MySqlConfig) -> Transactions:
    """Return transactions whose log the server has purged. Raises ServerError."""
    if not is_mariadb(config):
        return GtidSet.parse(connection.texts("SELECT @@global.gtid_purged")[0][0])
    files = connection.texts("SHOW BINARY LOGS")
    if not files:
        return MariadbGtidSet()
    # what was before the first event of the oldest file
    return MariadbGtidSet.parse(gtids_at(connection, files[0][0], _FIRST_EVENT))


def await_executed(connection: Connection, gtids: str, seconds: float) -> bool:
    """Wait until transactions of MySQL have ended, and so show in tables, for a time at most. Returns whether they have. Raises
    ServerError."""
    return connection.texts(f"SELECT WAIT_FOR_EXECUTED_GTID_SET({quote_literal(gtids)}, {seconds})")[0][0] == "0"


def resumes_by_gtids(connection: Connection, config: MySqlConfig) -> bool:
    """Return whether streaming begins after the transactions that have ended, and not at a position of the log, which has some that have
    not. Raises ServerError."""
    return not is_mariadb(config) and not config.flag("gtid.ignore.on.recovery") and has_gtids(connection, config)


def gtids_to_skip(connection: Connection, config: MySqlConfig, position: MySqlOffset) -> Transactions | None:
    """Return the transactions that a dump from a stored position is to skip; None where it begins at a file's position.

    Raises:
        ServerError: the server cannot be asked.
        DataError: the stored position is none.
    """
    if position.gtids is None or config.flag("gtid.ignore.on.recovery") or not has_gtids(connection, config):
        return None
    executed, purged = log_status(connection, config).gtids, purged_gtids(connection, config)
    if isinstance(purged, MariadbGtidSet):
        read = MariadbGtidSet.parse(position.gtids)
        return read.filtered(read_sources(read, executed or MariadbGtidSet(), purged, config.gtid_sources))
    stored, executed = GtidSet.parse(position.gtids), executed if isinstance(executed, GtidSet) else GtidSet()
    return starting_set(stored, executed, purged, read_sources(stored, executed, purged, config.gtid_sources))


def log_beginning(connection: Connection, config: MySqlConfig) -> MySqlOffset:
    """Return where the log that the server still has begins.

    Raises:
        FatalTaskError: the server keeps no log.
        ServerError: it cannot be asked.
    """
    files = connection.texts("SHOW BINARY LOGS")
    if not files:
        raise FatalTaskError("The server keeps no binary log (log_bin=OFF)")
    gtids = str(purged_gtids(connection, config)) if has_gtids(connection, config) else None
    return MySqlOffset(files[0][0], _FIRST_EVENT, gtids)


def is_available(connection: Connection, config: MySqlConfig, position: MySqlOffset) -> bool:
    """Return whether the server's log still holds everything from a position on.

    Under ``gtid_mode`` ON_PERMISSIVE and OFF_PERMISSIVE transactions without GTIDs leave the set of an offset as it was: file and position
    decide there, by which the dump is made (`gtids_to_skip`).

    Raises:
        ServerError: the server cannot be asked.
    """
    if position.gtids is not None and not config.flag("gtid.ignore.on.recovery") and not _has_some_gtids(connection, config):
        stored = parse_transactions(position.gtids).filtered(config.gtid_sources)
        if not position.gtids.strip():
            return True
        executed = log_status(connection, config).gtids
        if not executed or not covers(executed.filtered(config.gtid_sources), stored):
            return False
        return _still_has(executed.filtered(config.gtid_sources), stored, purged_gtids(connection, config))
    if not position.file:
        return True
    return any(row[0] == position.file for row in connection.texts("SHOW BINARY LOGS"))


def _has_some_gtids(connection: Connection, config: MySqlConfig) -> bool:
    """Return whether transactions with GTIDs and without may follow each other."""
    return not is_mariadb(config) and variable(connection, "GTID_MODE").upper().endswith("_PERMISSIVE")


def _still_has(executed: Transactions, stored: Transactions, purged: Transactions) -> bool:
    """Return whether nothing of what is still to be read was purged."""
    if isinstance(executed, GtidSet) and isinstance(stored, GtidSet) and isinstance(purged, GtidSet):
        missing = executed.minus(stored)
        return missing.minus(purged).contains(missing)
    return not isinstance(purged, MariadbGtidSet) or covers(stored, purged)


def all_tables(connection: Connection, *, with_system: bool) -> list[TableId]:
    """Return the base tables of every accessible database, in order. Raises ServerError."""
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


def row_estimates(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, int]:
    """Return the tables' numbers of rows by the server's statistics, as far as it has some. Raises ServerError."""
    databases = ", ".join(quote_literal(database) for database in sorted({table.schema for table in tables}))
    if not databases:
        return {}
    rows = connection.texts(
        f"SELECT table_schema, table_name, table_rows FROM information_schema.tables WHERE table_schema IN ({databases})"  # noqa: S608  # quoted
    )
    found = {TableId(str(database), str(table)): int(count) for database, table, count in rows if count}
    return {table: found[table] for table in tables if table in found}


def charset_statement(connection: Connection) -> str:
    """Return the server's defaults as the statement that begins a schema history. Raises ServerError."""
    names = "'character_set_server', 'collation_server'"
    rows = connection.texts(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
    parts = [f"{name}='{value}'" if "," in value or ";" in value else f"{name}={value}" for name, value in sorted(rows)]
    return f"SET {', '.join(parts)}"


def database_statements(connection: Connection, databases: Sequence[str]) -> dict[str, list[str]]:
    """Return for each database the statements that recreate it. Raises ServerError."""
    rows = connection.texts("SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata")
    known = {name: (charset, collation) for name, charset, collation in rows}
    found = {}
    for database in databases:
        name = quote_name(database)
        charset, collation = known.get(database, ("", ""))
        options = (f" CHARSET {charset}" if charset else "") + (f" COLLATE {collation}" if collation else "")
        found[database] = [f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}{options}", f"USE {name}"]
    return found
