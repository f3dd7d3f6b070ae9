"""The binlog as the server dumps it: a session's socket, read packet by packet. Used by one thread.

PyMySQL logs in. Once the dump has begun nothing more is sent, and packets are cut out of what the socket receives. Compressed transactions
(``binlog_transaction_compression``) are unpacked here.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pymysql
import zstandard
from pymysql.constants import COMMAND

from connect_py.wakeup import Wakeup
from connectors.mysql.binlog.codes import EventType, MalformedEventError
from connectors.mysql.binlog.events import (
    Body,
    FormatDescription,
    Header,
    Heartbeat,
    Rotate,
    TransactionPayload,
    decode_event,
    inner_events,
)
from connectors.mysql.config.config import USUAL_HEARTBEATS, ConnectionSettings, Heartbeats
from connectors.mysql.errors import LostConnectionError, server_error
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet
from connectors.mysql.server.connection import Connection, quote_literal


def unpack_transaction(payload: TransactionPayload) -> bytes:
    """Return the events inside. Raises MalformedEventError: the frame is damaged or unpacks to another size than it says."""
    if not payload.compressed:
        return payload.payload
    try:
        with zstandard.ZstdDecompressor().stream_reader(payload.payload) as reader:
            found = reader.read(payload.size + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise MalformedEventError(f"a compressed transaction cannot be unpacked: {error}") from error
    if len(found) != payload.size:
        raise MalformedEventError(f"a compressed transaction unpacks to other than {payload.size} bytes")
    return found


_RECEIVE_BYTES = 1 << 18
_WHOLE_PACKET = 0xFFFFFF
_OK, _END, _ERROR = 0, 0xFE, 0xFF
_THROUGH_GTID = 0x04
#: MariaDB: statements are sent before the rows that they changed, where the server logs them.
_ANNOTATE_ROWS = 0x02
#: The first event follows the magic number of a log file.
_FIRST_EVENT = 4
#: A header's flag: the server made the event up for the dump.
_ARTIFICIAL = 0x20
#: MariaDB: this client knows GTID events and annotated rows (`@mariadb_slave_capability`).
_MARIADB_CAPABILITY = 4


class BinlogClient:
    """One dump of the log.

    Args:
        server_id: ours; no other replica of the server may have it.
        heartbeats: which are asked for, and awaited.
        timeouts: of the server's side of the connection, as `net_write_timeout` and seconds; none leaves its own.
        clock: monotonic seconds.
        annotated: whether statements come before their rows from MariaDB: they count as events of their transaction.
        wakeup: ends waits for the server.

    Raises:
        ServerError: the login fails, or the server refuses to dump.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        server_id: int,
        *,
        mariadb: bool = False,
        annotated: bool = False,
        timeouts: Mapping[str, int] | None = None,
        heartbeats: Heartbeats = USUAL_HEARTBEATS,
        clock: Callable[[], float] = time.monotonic,
        wakeup: Wakeup | None = None,
    ) -> None:
        self._clock = clock
        self._wakeup = wakeup
        self._where = f"{settings.host}:{settings.port}"
        self._server_id = server_id
        # requested even if they are not used, because positions are counted from event to event
        self._flags = _ANNOTATE_ROWS if mariadb else 0
        self._drops = int(EventType.MARIADB_ANNOTATE_ROWS) if mariadb and not annotated else -1
        self._end = 0
        self._connection = Connection(settings)
        self._connection.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
        self._connection.execute("SET @source_binlog_checksum = @@global.binlog_checksum")
        self._connection.execute(f"SET @master_heartbeat_period = {round(heartbeats.period * 10**9)}")
        for name, seconds in (timeouts or {}).items():
            self._connection.execute(f"SET SESSION {name} = {seconds}")
        if mariadb:
            self._connection.execute(f"SET @mariadb_slave_capability = {_MARIADB_CAPABILITY}")
        checksum = self._connection.texts("SELECT @@global.binlog_checksum")[0][0]
        self._checksum = checksum.upper() == "CRC32"
        self._buffer = bytearray()
        self._socket: socket.socket | None = None
        self._heartbeats = heartbeats
        self._heard = self._read_at = self._clock()

    def dump(self, gtids: GtidSet | MariadbGtidSet | None, file: str, position: int) -> None:
        """Begin after transactions, or at a position where there are no GTIDs. Raises ServerError."""
        if isinstance(gtids, MariadbGtidSet):
            self.dump_mariadb(gtids.position())
        elif gtids is not None:
            self.dump_gtids(gtids.encode())
        else:
            self.dump_from(file, position)

    def dump_from(self, file: str, position: int) -> None:
        """Begin at a position. Raises ServerError."""
        self._register()
        self._send(COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", position, self._flags, self._server_id) + file.encode())

    def dump_mariadb(self, position: str) -> None:
        """Begin after the last transaction of each domain of MariaDB. Raises ServerError."""
        self._connection.execute(f"SET @slave_connect_state = {quote_literal(position)}")
        # other servers' transactions of the domain may be ahead of ours, and a replica of several masters may see one twice
        self._connection.execute("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")
        self.dump_from("", _FIRST_EVENT)

    def dump_gtids(self, gtids: bytes) -> None:
        """Begin with the first transaction that is not in a set, in its binary form. Raises ServerError."""
        self._register()
        head = struct.pack("<HIIQ", _THROUGH_GTID, self._server_id, 0, _FIRST_EVENT)
        self._send(COMMAND.COM_BINLOG_DUMP_GTID, head + struct.pack("<I", len(gtids)) + gtids)

    def _register(self) -> None:
        """Show up in SHOW REPLICAS, and make an older dump of the same id end."""
        self._send(COMMAND.COM_REGISTER_SLAVE, struct.pack("<I3sHII", self._server_id, b"\0\0\0", 0, 0, 0))
        try:
            self._connection.driver._read_packet()
        except (pymysql.MySQLError, OSError) as error:
            raise server_error(error, f"{self._where} does not accept a replica") from error

    def _send(self, command: int, body: bytes) -> None:
        try:
            self._connection.driver._execute_command(command, body)
        except (pymysql.MySQLError, OSError) as error:
            raise server_error(error, f"{self._where} does not dump its binlog") from error
        self._socket = self._connection.driver._sock
        self._heard = self._read_at = self._clock()

    def read(self, seconds: float) -> list[tuple[Header, Body]]:
        """Return the events that are there, after waiting for the first one; none after the time, or a `wake`.

        Compressed transactions are unpacked: their events have no position of their own in the log and carry that of the whole.

        Raises:
            ServerError: the server ended the dump, or the connection broke.
            LostConnectionError: not even heartbeats arrive.
            MalformedEventError: an event cannot be decoded.
        """
        events: list[tuple[Header, Body]] = []
        if not self._fill(seconds):
            return events
        for packet in self._packets():
            if packet[0] == _ERROR:
                code, text = struct.unpack_from("<H", packet, 1)[0], packet[9:].decode("utf-8", "replace")
                raise server_error(pymysql.OperationalError(code, text), f"{self._where} ended the dump of its binlog")
            if packet[0] == _END and len(packet) < 9:
                raise LostConnectionError(f"{self._where} ended the dump of its binlog without a reason")
            if packet[0] != _OK:
                raise MalformedEventError(f"a packet of the dump begins with {packet[0]}")
            header, body = decode_event(packet[1:], checksum=self._checksum)
            if isinstance(body, FormatDescription):
                self._checksum = body.checksum
            if not header.end:
                header = self._with_end(header, body)
            elif header.timestamp:
                self._end = header.end
            if header.type == self._drops:
                continue
            events.append((header, body))
            if isinstance(body, TransactionPayload):
                events.extend(_placed(header, unpack_transaction(body)))
        return events

    def _with_end(self, header: Header, body: Body) -> Header:
        """Add positions where MariaDB 11.8 leaves them out: in a transaction only the first and the last event have one, and events are
        adjacent."""
        if isinstance(body, Rotate):
            self._end = body.position
        if not self._end or not header.timestamp or header.flags & _ARTIFICIAL or isinstance(body, Rotate | FormatDescription | Heartbeat):
            return header
        self._end += header.length
        return replace(header, end=self._end)

    def _fill(self, seconds: float) -> bool:
        """Return whether a whole packet is in the buffer."""
        assert self._socket is not None
        now = self._clock()
        deadline = now + seconds
        if self._heartbeats.limit is not None and now - self._read_at > self._heartbeats.period:
            # reading paused for a while: packets may wait in the socket
            self._heard = max(self._heard, now - self._heartbeats.limit + self._heartbeats.period)
        while not self._holds_packet():
            try:
                data = self._receive(self._socket, max(deadline - self._clock(), 0.001))
            except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
                self._check_silence()
                return False
            except OSError as error:
                raise server_error(error, f"The connection to {self._where} broke") from error
            finally:
                self._read_at = self._clock()
            if not data:
                raise LostConnectionError(f"{self._where} closed the connection")
            self._buffer += data
            self._heard = self._read_at
        return True

    def _receive(self, from_server: socket.socket, seconds: float) -> bytes:
        """Return what the server has sent, after waiting for it. Raises TimeoutError, BlockingIOError, SSLWantReadError: nothing."""
        if self._wakeup is None:
            from_server.settimeout(seconds)
            return from_server.recv(_RECEIVE_BYTES)
        from_server.settimeout(0.0)
        try:
            return from_server.recv(_RECEIVE_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            if not self._wakeup.wait_readable(from_server.fileno(), seconds):
                raise
        return from_server.recv(_RECEIVE_BYTES)

    def _check_silence(self) -> None:
        silence = self._clock() - self._heard
        if self._heartbeats.limit is not None and silence > self._heartbeats.limit:
            raise LostConnectionError(
                f"{self._where} has sent nothing for {silence:.0f} s, not even the heartbeats that it was asked for: the connection is "
                "taken for lost and made again. What was read is kept. The limit is connect.keep.alive.interval.ms"
            )

    def _holds_packet(self) -> bool:
        at = 0
        while len(self._buffer) >= at + 4:
            size = int.from_bytes(self._buffer[at : at + 3], "little")
            at += 4 + size
            if len(self._buffer) < at:
                return False
            if size < _WHOLE_PACKET:
                return True
        return False

    def _packets(self) -> list[bytes]:
        """Return whole packets of the buffer, each joined from its parts; the rest stays there."""
        data, at, done = bytes(self._buffer), 0, 0
        found: list[bytes] = []
        parts: list[bytes] = []
        while len(data) >= at + 4:
            size = int.from_bytes(data[at : at + 3], "little")
            if len(data) < at + 4 + size:
                break
            parts.append(data[at + 4 : at + 4 + size])
            at += 4 + size
            if size < _WHOLE_PACKET:
                found.append(b"".join(parts))
                parts, done = [], at
        del self._buffer[:done]
        return [packet for packet in found if packet]

    def close(self) -> None:
        """End the dump; the server notices the closed connection."""
        self._connection.driver._force_close()


def _placed(header: Header, events: bytes) -> Iterator[tuple[Header, Body]]:
    for inner, body in inner_events(events):
        yield Header(inner.timestamp, inner.type, inner.server_id, header.length, header.end, inner.flags), body
