"""From the server's and the driver's errors to ours: the class is the decision (mysql.md §18)."""

from __future__ import annotations

import pymysql

from connect_py.errors import ConnectError, RetriableError
from connectors.mysql import error_codes as codes


class ServerError(ConnectError):
    """The server refused. `code` is its number, 0 where the driver failed; `reason` its own text."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or message


class LostConnectionError(ServerError, RetriableError):
    """The connection broke, or the server is not there: worth another attempt."""


class PurgedPositionError(ServerError):
    """The log no longer holds the place from which the connector must go on."""


def server_error(error: Exception, what: str) -> ServerError:
    """The error to raise for one of the driver's."""
    code, text = _code_and_text(error)
    message = f"{what}: {text}" + (f" (error {code})" if code else "")
    if code == codes.SOURCE_FATAL_ERROR_READING_BINLOG:
        return PurgedPositionError(message, code, text)
    if code in codes.LOST or isinstance(error, (OSError, EOFError)):
        return LostConnectionError(message, code, text)
    return ServerError(message, code, text)


def server_error_of_packet(packet: bytes, what: str) -> ServerError:
    """The error to raise for an error packet (page_protocol_basic_err_packet.html)."""
    code, text = int.from_bytes(packet[1:3], "little"), packet[3:].decode("utf-8", "replace")
    return server_error(pymysql.OperationalError(code, text[6:] if text.startswith("#") else text), what)


def _code_and_text(error: Exception) -> tuple[int, str]:
    if isinstance(error, pymysql.MySQLError) and error.args and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1] if len(error.args) > 1 else type(error).__name__)
    return 0, str(error) or type(error).__name__
