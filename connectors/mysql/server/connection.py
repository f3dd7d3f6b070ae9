"""A connection for statements: the login, statements, and large results. Only this module uses the driver, except for `binlog/client.py`,
which takes over a connection's socket.

The login does not disclose the password: by default, the driver answers whatever a server asks for. A machine between us and the server, or
in its place, may ask for the password as it is (`mysql_clear_password`, `dialog`), for a hash that can be inverted (`mysql_old_password`),
or for the password encrypted with its own public key (`sha256_password`, `caching_sha2_password`). Over a connection without TLS these are
refused, as Connector/J and libmysqlclient do; the last is allowed by Connector/J's property `allowPublicKeyRetrieval`. TLS that verifies no
certificate protects from listeners, but not from a machine in the server's place.

A large result (`TextResult`) is read from the socket on demand. It owns the driver's connection until its last row was read.
"""

from __future__ import annotations

import logging
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pymysql
from pymysql.constants import CLIENT, CR
from pymysql.converters import escape_string
from pymysql.protocol import MysqlPacket

from connect_py.errors import ConfigError
from connect_py.tls import pem_file, verifying_context
from connectors.mysql.config.config import ConnectionSettings
from connectors.mysql.errors import LostConnectionError, ServerError, server_error, server_error_of_packet
from connectors.mysql.server.text_rows import MalformedRowError, ReadRows, TextRow, large_row, packet_size, rows_function, split_packets

log = logging.getLogger(__name__)


_RECEIVE_BYTES = 1 << 18
_UNLIMITED = sys.maxsize
_ERROR = 0xFF


class TextResult:
    """The rows of one statement.

    Args:
        receive: returns some of the next bytes, up to a number, and none when the connection ended. Raises ServerError.
        ended: called when the last row was read.
        characters: of each column, whether its values are characters.
        where: for messages.
    """

    def __init__(self, receive: Callable[[int], bytes], ended: Callable[[], None], characters: Sequence[bool], where: str) -> None:
        self._receive = receive
        self._ended = ended
        self._where = where
        self._characters = characters
        self._read_rows: ReadRows | None = None
        self._data = b""
        self._at = 0
        self._done = False

    def read(self, rows: int, size: int) -> tuple[list[TextRow], int]:
        """Return rows as `packets` does, but as texts."""
        found, total = self.packets(rows, size)
        if self._read_rows is None:
            self._read_rows = rows_function(self._characters)
        try:
            return self._read_rows(found), total
        except MalformedRowError as error:
            raise LostConnectionError(f"{self._where} sent a row that cannot be read: {error}") from None

    def packets(self, rows: int, size: int) -> tuple[list[bytes], int]:
        """Return up to `rows` rows, of about `size` bytes.

        Returns:
            The rows as they came, none after the last one, and their bytes.

        Raises:
            ServerError: the statement failed, or the connection broke.
        """
        found: list[bytes] = []
        total = 0
        while not self._done and len(found) < rows and total < size:
            before = self._at
            self._at, special = split_packets(self._data, before, found.append, rows - len(found))
            more = not special or not self._special(found)
            total += self._at - before
            if more and len(found) < rows:
                self._fill()
        return found, total

    def _special(self, found: list[bytes]) -> bool:
        """Handle a packet that is no usual row. Returns whether all of it was there."""
        data, at = self._data, self._at
        size = packet_size(data, at) or 0
        if size - 4 == 0xFFFFFF:
            whole = large_row(data, at)
            if whole is None:
                return False
            found.append(whole[0])
            self._at = whole[1]
            return True
        if data[at + 4] == _ERROR:
            # nothing follows it: the next statement must not look for the rest
            self._done = True
            self._ended()
            raise server_error_of_packet(data[at + 4 : at + size], f"A statement failed on {self._where}")
        self._done = True
        self._ended()
        return True

    def _fill(self) -> None:
        """Receive more bytes; of a packet that is larger than what is there, all."""
        rest = self._data[self._at :]
        missing = (packet_size(rest, 0) or 4) - len(rest)
        parts = [rest]
        while True:
            data = self._receive(max(_RECEIVE_BYTES, missing))
            if not data:
                raise LostConnectionError(f"{self._where} closed the connection in the middle of a result")
            parts.append(data)
            missing -= len(data)
            if missing <= 0:
                break
        self._data = b"".join(parts)
        self._at = 0


class GuardedConnection(pymysql.connections.Connection):  # type: ignore[misc]  # the driver has no types
    """The driver's connection, with these rules.

    Args:
        allows_public_key: whether the password may be sent under a public key that the server sends over a connection without TLS.
    """

    def __init__(self, *args: Any, allows_public_key: bool, **more: Any) -> None:
        self._allows_public_key = allows_public_key
        self._public_key: bytes | None = None
        guards = {"mysql_clear_password": _Clear, "mysql_old_password": _Old, "dialog": _Dialog}
        super().__init__(*args, auth_plugin_map=guards, **more)

    @property
    def server_public_key(self) -> bytes | None:
        """The key under which a password is sent. The driver looks here before it asks the server, and puts here what it got.

        Raises:
            OperationalError: such a key is not wanted.
        """
        if self._public_key is None and self.password:
            self._refuse_key()
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        if key is not None:
            self._refuse_key()
        self._public_key = key

    def _refuse_key(self) -> None:
        if not self._allows_public_key:
            raise _refusal(
                "Public Key Retrieval is not allowed: the server wants the password under a key that it sends over a connection without "
                "TLS, where anybody can send one. Nothing was sent. Use database.ssl.mode=required, or allow it with "
                "driver.allowPublicKeyRetrieval=true"
            )


class _Driver(Protocol):
    _secure: bool
    password: bytes

    def write_packet(self, payload: bytes) -> None: ...
    def _read_packet(self) -> MysqlPacket: ...


class _Guard:
    """Answers nothing without TLS.

    Args:
        driver: the connection that logs in.
    """

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def _refuse_without_tls(self) -> None:
        if not self._driver._secure:
            raise _refusal(
                "The server asks for the password in a form that anybody on the way can read, over a connection without TLS. Nothing was "
                "sent. Use database.ssl.mode=required, or give the user another authentication plugin"
            )


class _Clear(_Guard):
    """`mysql_clear_password`: the password as it is."""

    def authenticate(self, packet: MysqlPacket) -> MysqlPacket:
        self._refuse_without_tls()
        self._driver.write_packet(self._driver.password + b"\0")
        return self._driver._read_packet()


class _Dialog(_Guard):
    """MariaDB's `dialog` (PAM): the driver answers a question for the password itself, where a plugin has no `authenticate`."""

    def __getattr__(self, name: str) -> Any:
        if name == "authenticate":
            self._refuse_without_tls()
        raise AttributeError(name)


class _Old:
    """`mysql_old_password`: a hash that is undone in no time, and that no server of this century needs."""

    def __init__(self, driver: _Driver) -> None:
        pass

    def authenticate(self, packet: MysqlPacket) -> MysqlPacket:
        raise _refusal("The server asks for the password in the form of MySQL 4.0, which is as good as clear. Nothing was sent")


def _refusal(text: str) -> pymysql.OperationalError:
    return pymysql.OperationalError(CR.CR_AUTH_PLUGIN_ERR, text)


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
        """Return all rows of a statement. Raises ServerError."""
        try:
            with self._driver.cursor(pymysql.cursors.Cursor) as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            raise self._failure(error, statement) from error

    def _failure(self, error: Exception, statement: str) -> ServerError:
        """Return the error to raise for one of the driver's, when the server knows that nobody waits for the statement any more."""
        if _is_timeout(error) and self._settings.query_timeout:
            self._kill()
            return LostConnectionError(
                f"A statement took longer than database.query.timeout.ms={self._settings.query_timeout * 1000:.0f} on "
                f"{self._settings.host}:{self._settings.port} and was given up: {statement[:100]}"
            )
        return server_error(error, f"A statement failed on {self._settings.host}:{self._settings.port}")

    def column_names(self, statement: str) -> list[str]:
        """Return the names of a statement's columns, whose rows are not read. Raises ServerError."""
        self.query(statement)
        result = self._driver._result
        return [] if result is None or result.description is None else [column[0] for column in result.description]

    def _kill(self) -> None:
        """Make the server give up the session's statement; whatever fails, the session itself is lost."""
        thread = self.thread_id
        try:
            other = _connect(self._settings)
            with other.cursor() as cursor:
                cursor.execute(f"KILL {thread}")
            other.close()
        except (pymysql.MySQLError, OSError) as error:
            log.debug("The statement of the session %d may go on: %s", thread, error)

    def sql_state(self) -> str:
        """Return the SQLSTATE of the last statement, which the driver does not keep. Raises ServerError."""
        self.execute("GET DIAGNOSTICS CONDITION 1 @connect_py_state = RETURNED_SQLSTATE")
        return self.texts("SELECT @connect_py_state")[0][0]

    def parse(self, statement: str) -> None:
        """Let the server parse one statement, which is not run. Raises ServerError: it is none."""
        self.execute(f"PREPARE connect_py FROM {quote_literal(statement)}")
        self.execute("DEALLOCATE PREPARE connect_py")

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        """Return all rows as texts, NULL as an empty one. Raises ServerError."""
        return [tuple("" if value is None else value.decode("utf-8", "replace") for value in row) for row in self.query(statement)]

    def result(self, statement: str, characters: Sequence[bool]) -> TextResult:
        """Begin to read a large result; nothing else can be asked for before its last row was read. Raises ServerError.

        Args:
            characters: of each column, whether its values are characters.
        """
        where = f"{self._settings.host}:{self._settings.port}"
        self._driver._read_timeout = None
        try:
            self._driver.query(statement, unbuffered=True)
        except (pymysql.MySQLError, OSError) as error:
            raise server_error(error, f"A statement failed on {where}") from error
        return TextResult(
            self._receiver(lambda error: server_error(error, f"The connection to {where} broke")), self._ended, characters, where
        )

    def packets(self, statement: str) -> list[bytes]:
        """Return all rows of a statement as they came, for functions of `text_rows` to read. Raises ServerError."""
        try:
            self._driver.query(statement, unbuffered=True)
        except (pymysql.MySQLError, OSError) as error:
            raise self._failure(error, statement) from error
        where = f"{self._settings.host}:{self._settings.port}"
        result = TextResult(self._receiver(lambda error: self._failure(error, statement)), self._ended, (), where)
        rows: list[bytes] = []
        while found := result.packets(_UNLIMITED, _UNLIMITED)[0]:
            rows += found
        return rows

    def _receiver(self, failure: Callable[[OSError], ServerError]) -> Callable[[int], bytes]:
        read = self._driver._rfile.read1

        def receive(size: int) -> bytes:
            try:
                return bytes(read(size))
            except OSError as error:
                raise failure(error) from error

        return receive

    def _ended(self) -> None:
        """Let the driver send the next statement: the last row of a result was read."""
        driver = self._driver
        result = driver._result
        if result is not None:
            result.unbuffered_active = False
            result.connection = None
        driver._result = None
        driver._read_timeout = self._settings.query_timeout or None

    @property
    def thread_id(self) -> int:
        """The session's number on the server."""
        return int(self._driver.thread_id())

    @property
    def driver(self) -> pymysql.connections.Connection[Any]:
        """The driver's connection, for `binlog/client.py`."""
        return self._driver


def _is_timeout(error: Exception) -> bool:
    """Return whether the driver waited for an answer for too long."""
    return isinstance(error, TimeoutError) or (isinstance(error, pymysql.OperationalError) and "timed out" in str(error))


def quote_literal(text: str) -> str:
    """Return `'text'`, escaped."""
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
        # of the login too: a server may accept connections and answer nothing
        read_timeout=settings.connect_timeout,
        conv={},
        use_unicode=False,
        # structures are to be shown in one way of quoting names, whatever the server's own
        init_command=(
            "SET time_zone = '+00:00', net_write_timeout = 600, sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), 'ANSI', '')"
        ),
        ssl=tls_context(settings),
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
    """Let the system notice a peer that vanished, in about two minutes instead of two hours: while an answer is awaited, and while data is
    sent."""
    for name, value in _PROBES.items():
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext | None:
    """Make the context for ``database.ssl.mode``; `preferred` uses TLS where the server has it. With a trust store, the server's
    certificate is checked against it, as Debezium does on its connection to the log. Raises ConfigError: a store cannot be read."""
    if settings.ssl_mode == "disabled":
        return None
    if settings.ssl_mode in ("preferred", "required") and not settings.ssl_ca:
        # loading the system's authorities, which are not used here, takes 27 ms at every connection if the driver makes the context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        password = settings.ssl_ca_password.reveal() if settings.ssl_ca_password else None
        context = verifying_context(pem_file(settings.ssl_ca, password) if settings.ssl_ca else None)
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
