"""A connection for statements. The only home of the driver, besides `binlog_client.py`, which takes over a connection's socket."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from pymysql.converters import escape_string

from connect_py.errors import ConfigError
from connectors.engine.certificates import pem_file
from connectors.mysql.errors import LostConnectionError, server_error
from connectors.mysql.server.login import GuardedConnection
from connectors.mysql.server.result import TextResult
from connectors.mysql.settings import ConnectionSettings

log = logging.getLogger(__name__)

Row = tuple[bytes | None, ...]
#: Seconds of silence before the first probe, and between two; milliseconds that bytes or probes may stay without an answer.
_PROBES = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 120_000}


class Connection:
    """A session in autocommit mode with UTC as its time zone. Values are bytes as the server sent them.

    A statement whose answer does not begin within `ConnectionSettings.query_timeout` is given up, on the server too, and the session with
    it; large results are not limited.

    Raises:
        ServerError: the server cannot be reached, or refuses the login.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        try:
            self._driver = _connect(settings)
            self._driver._read_timeout = settings.query_timeout or None
        except (pymysql.MySQLError, OSError) as error:
            raise server_error(error, f"Unable to connect to {settings.host}:{settings.port}") from error

    def close(self) -> None:
        """End the session; never fails. What is left of a result that was being streamed is not read."""
        result = self._driver._result
        if result is not None and result.unbuffered_active:
            # the driver would read it to its end, also when it is collected
            result.unbuffered_active = False
            self._driver._result = None
            self._driver._force_close()
            return
        try:
            self._driver.close()
        except (pymysql.MySQLError, OSError):
            self._driver._force_close()

    def execute(self, statement: str) -> None:
        """Run a statement without looking at rows. Raises ServerError."""
        self.query(statement)

    def query(self, statement: str) -> list[Row]:
        """All rows of a statement. Raises ServerError."""
        try:
            with self._driver.cursor(pymysql.cursors.Cursor) as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            if _is_timeout(error) and self._settings.query_timeout:
                self._kill()
                raise LostConnectionError(
                    f"A statement took longer than database.query.timeout.ms={self._settings.query_timeout * 1000:.0f} on "
                    f"{self._settings.host}:{self._settings.port} and was given up: {statement[:100]}"
                ) from error
            raise server_error(error, f"A statement failed on {self._settings.host}:{self._settings.port}") from error

    def _kill(self) -> None:
        """Make the server give up what the session was asked for; whatever fails, the session itself is gone."""
        thread = self.thread_id
        try:
            other = _connect(self._settings)
            with other.cursor() as cursor:
                cursor.execute(f"KILL {thread}")
            other.close()
        except (pymysql.MySQLError, OSError) as error:
            log.debug("The statement of the session %d may go on: %s", thread, error)

    def sql_state(self) -> str:
        """The SQLSTATE of the last statement, which the driver does not keep. Raises ServerError."""
        self.execute("GET DIAGNOSTICS CONDITION 1 @connect_py_state = RETURNED_SQLSTATE")
        return self.texts("SELECT @connect_py_state")[0][0]

    def parse(self, statement: str) -> None:
        """Let the server parse one statement, which is not run. Raises ServerError: it is none."""
        self.execute(f"PREPARE connect_py FROM {quote_literal(statement)}")
        self.execute("DEALLOCATE PREPARE connect_py")

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        """All rows as texts, NULL as an empty one. Raises ServerError."""
        return [tuple("" if value is None else value.decode("utf-8", "replace") for value in row) for row in self.query(statement)]

    def result(self, statement: str, characters: Sequence[bool]) -> TextResult:
        """Begin to read a large result; nothing else can be asked for before its last row was read. Raises ServerError.

        Args:
            characters: of each column, whether its values are characters.
        """
        driver, where = self._driver, f"{self._settings.host}:{self._settings.port}"
        driver._read_timeout = None
        try:
            driver.query(statement, unbuffered=True)
        except (pymysql.MySQLError, OSError) as error:
            raise server_error(error, f"A statement failed on {where}") from error

        def receive(size: int) -> bytes:
            try:
                return bytes(driver._rfile.read1(size))
            except OSError as error:
                raise server_error(error, f"The connection to {where} broke") from error

        def ended() -> None:
            result = driver._result
            if result is not None:
                result.unbuffered_active = False
                result.connection = None
            driver._result = None
            driver._read_timeout = self._settings.query_timeout or None

        return TextResult(receive, ended, characters, where)

    @property
    def thread_id(self) -> int:
        """The session's number on the server."""
        return int(self._driver.thread_id())

    @property
    def driver(self) -> pymysql.connections.Connection[Any]:
        """For `binlog_client.py`."""
        return self._driver


def _is_timeout(error: Exception) -> bool:
    """Whether the driver waited for an answer for too long."""
    return isinstance(error, TimeoutError) or (isinstance(error, pymysql.OperationalError) and "timed out" in str(error))


def quote_name(*parts: str) -> str:
    """`` `db`.`table` ``."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_literal(text: str) -> str:
    """`'text'`."""
    return f"'{escape_string(text)}'"


def _connect(settings: ConnectionSettings) -> pymysql.connections.Connection[Any]:
    driver = GuardedConnection(
        allows_public_key=settings.allows_public_key,
        host=settings.host,
        port=settings.port,
        user=settings.user,
        # the driver would take characters for Latin-1
        password=settings.password.reveal().encode() if settings.password else b"",
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=max(1, round(settings.connect_timeout)),
        # of the login too: a server that takes connections and says nothing is none
        read_timeout=settings.connect_timeout,
        conv={},
        use_unicode=False,
        # structures are to be shown in one way of quoting names, whatever the server's own
        init_command=(
            "SET time_zone = '+00:00', net_write_timeout = 600, sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), 'ANSI', '')"
        ),
        ssl=_tls(settings),
        ssl_disabled=settings.ssl_mode == "disabled",
        defer_connect=True,
    )
    if settings.ssl_mode == "preferred":
        # a context of our own makes the driver insist on TLS
        driver._ssl_required = False
        driver.client_flag &= ~CLIENT.SSL
    driver.connect()
    notice_silence(driver._sock)
    return driver


def notice_silence(connected: socket.socket) -> None:
    """Let the system notice a peer that is gone without a word, in about two minutes in place of two hours: while an answer is awaited,
    and while one is sent."""
    for name, value in _PROBES.items():
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _tls(settings: ConnectionSettings) -> ssl.SSLContext | None:
    """By ``database.ssl.mode``; `preferred` takes TLS where the server has it. Where a trust store is given, the server's certificate is
    held to it, as the reference does of its connection to the log. Raises ConfigError: a store cannot be read."""
    if settings.ssl_mode == "disabled":
        return None
    if settings.ssl_mode in ("preferred", "required") and not settings.ssl_ca:
        # the system's authorities, which nothing is held to, take 27 ms to load: at every connection, if the driver makes the context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        password = settings.ssl_ca_password.reveal() if settings.ssl_ca_password else None
        context = ssl.create_default_context(cafile=pem_file(settings.ssl_ca, password) if settings.ssl_ca else None)
        # certificates that a server makes for itself lack what Python 3.13 asks for
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = settings.ssl_mode == "verify_identity"
    if settings.ssl_cert:
        key_password = settings.ssl_cert_password.reveal() if settings.ssl_cert_password else None
        try:
            context.load_cert_chain(pem_file(settings.ssl_cert, key_password), password=key_password or "")
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"The key store {settings.ssl_cert} holds no key with its certificate that its password opens: {error}"
            ) from None
    return context
