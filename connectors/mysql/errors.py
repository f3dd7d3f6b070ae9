"""The server's and the driver's errors as ours: the class is the decision. The error numbers that decide something are named here."""

from __future__ import annotations

import pymysql

from connect_py.errors import ConnectError, RetriableError

ACCESS_DENIED = 1045
SPECIFIC_ACCESS_DENIED = 1227
SOURCE_FATAL_ERROR_READING_BINLOG = 1236
NO_SUCH_TABLE = 1146
UNKNOWN_DATABASE = 1049
UNKNOWN_COLUMN = 1054
LOCK_WAIT_TIMEOUT = 1205

#: A table does not exist, or its database either.
GONE = frozenset({NO_SUCH_TABLE, UNKNOWN_DATABASE})

#: A right is missing: to a database, at all, to a table, of an administrator.
DENIED = frozenset({1044, ACCESS_DENIED, 1142, SPECIFIC_ACCESS_DENIED})

#: Connection refused or lost, server shutting down, too many connections, killed, lock wait timeout, deadlock, a table that changed
#: under a transaction.
LOST = frozenset({2002, 2003, 2006, 2013, 2026, 2055, 1053, 1040, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1412, 1927, 4031})


class ServerError(ConnectError):
    """The server refused. `code` is its number, 0 where the driver failed; `reason` its own text."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or message


class LostConnectionError(ServerError, RetriableError):
    """The connection broke, or the server is not there: worth another attempt."""


class PurgedPositionError(ServerError):
    """The log no longer holds the position from which the connector must resume."""


def server_error(error: Exception, what: str) -> ServerError:
    """Return the error to raise for one of the driver's."""
    code, text = _code_and_text(error)
    message = f"{what}: {text}" + (f" (error {code})" if code else "")
    if code == SOURCE_FATAL_ERROR_READING_BINLOG:
        return PurgedPositionError(message, code, text)
    if code in LOST or isinstance(error, (OSError, EOFError)):
        return LostConnectionError(message, code, text)
    return ServerError(message, code, text)


def server_error_of_packet(packet: bytes, what: str) -> ServerError:
    """Return the error to raise for an error packet (page_protocol_basic_err_packet.html)."""
    code, text = int.from_bytes(packet[1:3], "little"), packet[3:].decode("utf-8", "replace")
    return server_error(pymysql.OperationalError(code, text[6:] if text.startswith("#") else text), what)


def _code_and_text(error: Exception) -> tuple[int, str]:
    if isinstance(error, pymysql.MySQLError) and error.args and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1] if len(error.args) > 1 else type(error).__name__)
    return 0, str(error) or type(error).__name__
