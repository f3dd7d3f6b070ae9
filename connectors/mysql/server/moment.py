"""The moment of a session: a transaction that sees the database as it was when it began, and what that does not keep."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from connect_py.errors import RetriableError
from connectors.engine.relational.table import TableId
from connectors.mysql import error_codes
from connectors.mysql.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.server.connection import Connection

log = logging.getLogger(__name__)

#: A session that holds a lock or a moment may have nothing to do for as long as the rows take.
_IDLE_SECONDS = 7 * 24 * 3600
#: The server's word that a table is not what it was.
_CHANGED = error_codes.GONE | {error_codes.UNKNOWN_COLUMN}


def prepare_session(connection: Connection, config: MySqlConfig) -> None:
    """How long a session waits for locks and may be idle, and what its transactions see. Raises ServerError."""
    seconds = max(1, config.number("snapshot.lock.timeout.ms") // 1000)
    connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute(f"SET SESSION lock_wait_timeout = {seconds}, wait_timeout = {_IDLE_SECONDS}")
    try:
        connection.execute(f"SET SESSION innodb_lock_wait_timeout = {seconds}")
    except LostConnectionError:
        raise
    except ServerError as error:
        log.warning("%s", error)


def take_moment(connection: Connection) -> None:
    """Begin a transaction that sees the database as it is now. Raises ServerError."""
    connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")


@contextmanager
def altered_tables_pass(table: TableId) -> Iterator[None]:
    """A table that was altered since the moment was taken, before it was first read, is read in another attempt, behind that change.

    InnoDB says so of its own accord where the columns are still there (`ER_TABLE_DEF_CHANGED`, which passes).
    """
    try:
        yield
    except ServerError as error:
        if error.code not in _CHANGED or isinstance(error, RetriableError):
            raise
        raise RetriableError(f"Cannot read the table {table} as it was when the snapshot began; {error}") from error
