"""Events of a binlog, from bytes to values. No I/O (MySQL internals, `libbinlogevents`; MariaDB knowledge base, "Replication protocol").

`decode_event` takes one event as the dump protocol sends it, without the packet's status byte. Rows stay bytes here: what a column's bytes
mean depends on the table's model (`rows.py`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from connectors.mysql.binlog.codes import EventType
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.gtid_events import AnonymousGtid, Gtid, MariadbGtid, read_gtid, read_mariadb_gtid, read_tagged_gtid
from connectors.mysql.binlog.table_map import TableMap, read_table_map

HEADER = struct.Struct("<IBIIIH")
#: Events that one compressed transaction may unpack to: MySQL refuses larger ones itself.
MAX_PAYLOAD = (1 << 31) - 1
CHECKSUM_SIZE = 4


@dataclass(frozen=True, slots=True)
class Header:
    """What every event begins with.

    Attributes:
        timestamp: seconds since 1970, 0 for events that the server makes up.
        type: an `EventType`, or a number that is none.
        length: of the event in the log, in bytes.
        end: the place in the log behind the event; 0 for events that are not in it.
    """

    timestamp: int
    type: int
    server_id: int
    length: int
    end: int
    flags: int


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """First event of a log. `checksum` tells whether the events that follow end with a CRC32."""

    server_version: str
    checksum: bool


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log goes on in another file."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class Query:
    """A statement: BEGIN, COMMIT, DDL, and rows in statement format.

    Attributes:
        schema: the default database.
        sql_mode: the session's bits, None when the event does not say.
        charset: numbers of the client's character set and of the connection's and server's collations.
    """

    thread_id: int
    schema: str
    sql: bytes
    sql_mode: int | None
    charset: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Xid:
    """A transaction's commit."""

    number: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table.

    Attributes:
        kind: c, u or d.
        present: bit map of the columns that the rows hold; `present_after` of the second image of updates.
        body: the rows.
        partial: updates whose JSON columns may be differences (PARTIAL_UPDATE_ROWS).
        ends_statement: whether the statement's table numbers end here.
    """

    kind: str
    table_id: int
    width: int
    present: bytes
    present_after: bytes
    body: bytes
    partial: bool
    ends_statement: bool


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The statement behind the rows that follow."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The server is alive and the log ends at this place."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """A compressed transaction; `payload` holds whole events without checksums."""

    compressed: bool
    size: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Incident:
    """The log lacks something that happened."""

    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Other:
    """An event without a meaning for changes."""


Body = (
    FormatDescription
    | Rotate
    | Query
    | Xid
    | TableMap
    | Rows
    | RowsQuery
    | Gtid
    | AnonymousGtid
    | MariadbGtid
    | Heartbeat
    | TransactionPayload
    | Incident
    | Other
)

_KINDS = {
    EventType.WRITE_ROWS_V1: "c",
    EventType.UPDATE_ROWS_V1: "u",
    EventType.DELETE_ROWS_V1: "d",
    EventType.WRITE_ROWS: "c",
    EventType.UPDATE_ROWS: "u",
    EventType.DELETE_ROWS: "d",
    EventType.PARTIAL_UPDATE_ROWS: "u",
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: "c",
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: "u",
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: "d",
}
_WITH_EXTRA_DATA = {EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS, EventType.PARTIAL_UPDATE_ROWS}
_COMPRESSED_ROWS = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED,
}
_STATEMENT_END = 1


def decode_event(data: bytes, *, checksum: bool) -> tuple[Header, Body]:
    """One event.

    Args:
        checksum: whether events end with a CRC32, as the log's format description says; its own event always knows better.

    Raises:
        MalformedEventError: lengths, the checksum or a field contradict each other.
    """
    try:
        header = Header(*HEADER.unpack_from(data))
        if header.length != len(data):
            raise MalformedEventError(f"an event of {header.length} bytes came as {len(data)}")
        if header.type == EventType.FORMAT_DESCRIPTION:
            return header, _format_description(Cursor(data, HEADER.size))
        end = len(data)
        if checksum:
            end -= CHECKSUM_SIZE
            if end < HEADER.size or zlib.crc32(data[:end]) != int.from_bytes(data[end:], "little"):
                raise MalformedEventError(f"the checksum of an event of type {header.type} is wrong")
        return header, _body(header.type, Cursor(data, HEADER.size, end))
    except MalformedEventError:
        raise
    except (struct.error, ValueError, IndexError, OverflowError, zlib.error) as error:
        raise MalformedEventError(f"an event could not be decoded: {error}") from error


def _body(type_: int, cursor: Cursor) -> Body:
    if type_ in _KINDS:
        return _rows(EventType(type_), cursor)
    match type_:
        case EventType.TABLE_MAP:
            return read_table_map(cursor)
        case EventType.QUERY:
            return _query(cursor, compressed=False)
        case EventType.MARIADB_QUERY_COMPRESSED:
            return _query(cursor, compressed=True)
        case EventType.XID:
            return Xid(cursor.number(8))
        case EventType.GTID:
            return read_gtid(cursor)
        case EventType.GTID_TAGGED:
            return read_tagged_gtid(cursor)
        case EventType.ANONYMOUS_GTID:
            return AnonymousGtid(read_gtid(cursor).commit_micros)
        case EventType.MARIADB_GTID:
            return read_mariadb_gtid(cursor)
        case EventType.ROTATE:
            position = cursor.number(8)
            return Rotate(cursor.rest().decode(), position)
        case EventType.ROWS_QUERY:
            cursor.take(1)  # a length that is too short for most statements
            return RowsQuery(cursor.rest())
        case EventType.MARIADB_ANNOTATE_ROWS:
            return RowsQuery(cursor.rest())
        case EventType.HEARTBEAT:
            return Heartbeat(cursor.rest().decode(), 0)
        case EventType.HEARTBEAT_V2:
            return _heartbeat_v2(cursor)
        case EventType.TRANSACTION_PAYLOAD:
            return _transaction_payload(cursor)
        case EventType.INCIDENT:
            number = cursor.number(2)
            return Incident(number, cursor.text(cursor.number(1)))
    return Other()


def _format_description(cursor: Cursor) -> FormatDescription:
    """The checksum's algorithm stands behind the post-header lengths since MySQL 5.6; the event itself then ends with a CRC32."""
    cursor.take(2)
    version = cursor.take(50).rstrip(b"\0").decode("ascii", "backslashreplace")
    cursor.take(5)
    lengths = cursor.rest()
    algorithm = lengths[-CHECKSUM_SIZE - 1] if len(lengths) > CHECKSUM_SIZE else 0
    return FormatDescription(version, algorithm == 1)


_STATUS_SIZES = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 18: 2, 19: 1, 20: 1, 21: 1, 128: 8, 129: 3}


def _query(cursor: Cursor, *, compressed: bool) -> Query:
    thread_id = cursor.number(4)
    cursor.take(4)
    schema_length = cursor.number(1)
    cursor.take(2)
    sql_mode, charset = _status(Cursor(cursor.take(cursor.number(2))))
    schema = cursor.text(schema_length)
    cursor.take(1)
    sql = _decompressed(cursor) if compressed else cursor.rest()
    return Query(thread_id, schema, sql, sql_mode, charset)


def _status(cursor: Cursor) -> tuple[int | None, tuple[int, int, int] | None]:
    """Status variables (Query_event_post_header); those behind one of unknown size are left."""
    sql_mode, charset = None, None
    while cursor.at < cursor.end:
        code = cursor.number(1)
        if code == 1:
            sql_mode = cursor.number(8)
        elif code == 4:
            charset = (cursor.number(2), cursor.number(2), cursor.number(2))
        elif code == 2:
            cursor.take(cursor.number(1) + 1)
        elif code in (5, 6):
            cursor.take(cursor.number(1))
        elif code == 11:
            cursor.take(cursor.number(1))
            cursor.take(cursor.number(1))
        elif code == 12:
            count = cursor.number(1)
            for _ in range(count if count < 254 else 0):
                while cursor.take(1) != b"\0":
                    pass
        elif code in _STATUS_SIZES:
            cursor.take(_STATUS_SIZES[code])
        else:
            break
    return sql_mode, charset


def _rows(type_: EventType, cursor: Cursor) -> Rows:
    table_id = cursor.number(6)
    flags = cursor.number(2)
    if type_ in _WITH_EXTRA_DATA:
        cursor.take(cursor.number(2) - 2)
    width = cursor.packed()
    size = (width + 7) // 8
    present = cursor.take(size)
    kind = _KINDS[type_]
    after = cursor.take(size) if kind == "u" else present
    body = _decompressed(cursor) if type_ in _COMPRESSED_ROWS else cursor.rest()
    return Rows(kind, table_id, width, present, after, body, type_ == EventType.PARTIAL_UPDATE_ROWS, bool(flags & _STATEMENT_END))


def _decompressed(cursor: Cursor) -> bytes:
    """MariaDB's `log_bin_compress`: a byte with the length's size and the algorithm, the length big-endian, zlib."""
    head = cursor.number(1)
    if head >> 4 & 7:
        raise MalformedEventError(f"{head >> 4 & 7} is no known compression")
    size = int.from_bytes(cursor.take(head & 7), "big")
    worker = zlib.decompressobj()
    found = worker.decompress(cursor.rest(), size)
    if len(found) != size or worker.unconsumed_tail:
        raise MalformedEventError(f"a compressed event unpacks to other than {size} bytes")
    return found


def _heartbeat_v2(cursor: Cursor) -> Heartbeat:
    file, position = "", 0
    while cursor.at < cursor.end:
        field = cursor.packed()
        value = Cursor(cursor.take(cursor.packed()))
        if field == 1:
            file = value.rest().decode()
        elif field == 2:
            position = value.packed()
    return Heartbeat(file, position)


def _transaction_payload(cursor: Cursor) -> TransactionPayload:
    kind, size, payload_size = 255, 0, None
    while True:
        field = cursor.packed()
        if field == 0:
            break
        value = Cursor(cursor.take(cursor.packed()))
        if field == 1:
            payload_size = value.packed()
        elif field == 2:
            kind = value.packed()
        elif field == 3:
            size = value.packed()
    payload = cursor.rest()
    if payload_size is not None and payload_size != len(payload):
        raise MalformedEventError(f"a transaction's payload of {payload_size} bytes came as {len(payload)}")
    if kind not in (0, 255):
        raise MalformedEventError(f"{kind} is no known compression of a transaction")
    if size > MAX_PAYLOAD:
        raise MalformedEventError(f"a transaction unpacks to {size} bytes, more than {MAX_PAYLOAD}")
    return TransactionPayload(kind == 0, size if kind == 0 else len(payload), payload)


def inner_events(events: bytes) -> Iterator[tuple[Header, Body]]:
    """Events of an unpacked transaction. Raises MalformedEventError."""
    at = 0
    while at < len(events):
        if at + HEADER.size > len(events):
            raise MalformedEventError("a compressed transaction ends inside an event's header")
        length = HEADER.unpack_from(events, at)[3]
        if length < HEADER.size:
            raise MalformedEventError(f"an event inside a compressed transaction has a length of {length}")
        yield decode_event(events[at : at + length], checksum=False)
        at += length
