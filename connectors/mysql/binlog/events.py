"""Events of a binlog, from bytes to values. No I/O (MySQL internals, `libbinlogevents`; MariaDB knowledge base, "Replication protocol").

`decode_event` decodes one event as the dump protocol sends it, without the packet's status byte. Row images stay bytes, because what they
mean depends on the table's model (`rows.py`). Events that name transactions are MySQL's `Gtid_event`, with the fields that 8.0 and 8.3
added, and MariaDB's `Gtid_log_event`. A `Query` carries the part of the session's state that is needed to understand its statement.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from connectors.mysql.binlog.codes import EventType, MalformedEventError
from connectors.mysql.binlog.cursor import Cursor, unpacked
from connectors.mysql.binlog.table_map import TableMap, table_map

_LOGICAL_TIMESTAMP = 2
_HAS_ORIGINAL_COMMIT = 1 << 55
_STANDALONE = 1


@dataclass(frozen=True, slots=True)
class Gtid:
    """The transaction that follows.

    Attributes:
        source: the server's UUID as text, followed by `:tag` where there is one.
        number: of the transaction.
        commit_micros: microseconds since 1970 of its commit on the server where it began; 0 for unknown.
        mark: between source and number.
    """

    source: str
    number: int
    commit_micros: int
    mark: str = ":"

    def __str__(self) -> str:
        return f"{self.source}{self.mark}{self.number}"


@dataclass(frozen=True, slots=True)
class AnonymousGtid:
    """A transaction without a GTID."""

    commit_micros: int


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """The transaction that follows, and its BEGIN; the server's id is in the event's header. `standalone` ones have no COMMIT."""

    domain: int
    sequence: int
    standalone: bool

    def of_server(self, server_id: int) -> Gtid:
        """Return it as a transaction's name, given the server's id."""
        return Gtid(f"{self.domain}-{server_id}", self.sequence, 0, "-")


@lru_cache(maxsize=64)
def _uuid_text(octets: bytes) -> str:
    return str(uuid.UUID(bytes=octets))


def read_gtid(cursor: Cursor) -> Gtid:
    """Read flags, UUID and number; a pair of logical timestamps; then, since 8.0.1, when it was committed."""
    cursor.take(1)
    source = _uuid_text(cursor.take(16))
    number = cursor.number(8)
    micros = 0
    if cursor.end - cursor.at >= 1 + 16 + 7 and cursor.number(1) == _LOGICAL_TIMESTAMP:
        cursor.take(16)
        micros = _commit_micros(cursor)
    return Gtid(source, number, micros)


def _commit_micros(cursor: Cursor) -> int:
    """Read commit times of seven bytes each; the flag in the first says that the original one follows."""
    immediate = cursor.number(7)
    if immediate & _HAS_ORIGINAL_COMMIT and cursor.end - cursor.at >= 7:
        return cursor.number(7)
    return immediate & ~_HAS_ORIGINAL_COMMIT


def read_mariadb_gtid(cursor: Cursor) -> MariadbGtid:
    """Read sequence, domain and flags."""
    sequence = cursor.number(8)
    domain = cursor.number(4)
    return MariadbGtid(domain, sequence, bool(cursor.number(1) & _STANDALONE))


def read_tagged_gtid(cursor: Cursor) -> Gtid:
    """Read MySQL 8.3's form: fields with numbers in MySQL's `serialization` format, variable-length integers throughout.

    Fields: 0 flags, 1 UUID (16 integers), 2 number, 3 tag (length and characters), 4 and 5 logical timestamps, 6 immediate and 7 original
    commit time in microseconds; what follows is not needed.
    """
    _varlen(cursor)  # version of the format
    _varlen(cursor)  # size of the whole
    _varlen(cursor)  # last field that may not be ignored
    octets, number, tag, immediate, original = b"", 0, "", 0, 0
    while cursor.at < cursor.end:
        field = _varlen(cursor)
        if field == 1:
            octets = bytes(_octet(cursor) for _ in range(16))
        elif field == 2:
            number = _signed(_varlen(cursor))
        elif field == 3:
            tag = cursor.text(_varlen(cursor))
        elif field == 6:
            immediate = _varlen(cursor)
        elif field == 7:
            original = _varlen(cursor)
            break
        elif field in (0, 4, 5):
            _varlen(cursor)
        else:
            break
    if len(octets) != 16 or number <= 0:
        raise MalformedEventError("a tagged GTID event holds no GTID")
    source = str(uuid.UUID(bytes=octets))
    return Gtid(f"{source}:{tag}" if tag else source, number, original or immediate)


def _octet(cursor: Cursor) -> int:
    value = _varlen(cursor)
    if value > 255:
        raise MalformedEventError(f"{value} is no byte of a UUID")
    return value


def _varlen(cursor: Cursor) -> int:
    """Read an integer: as many bytes follow the first as it has trailing one bits; the value is above those
    (variable_length_integers.h)."""
    first = cursor.number(1)
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    rest = cursor.number(more) if more else 0
    return rest if more == 8 else (rest << (7 - more)) | (first >> (more + 1))


def _signed(value: int) -> int:
    """Decode zig-zag: the sign is the lowest bit."""
    return -(value >> 1) - 1 if value & 1 else value >> 1


@dataclass(frozen=True, slots=True)
class Header:
    """What every event begins with.

    Attributes:
        timestamp: seconds since 1970, 0 for events that the server makes up.
        type: an `EventType`, or a number that is none.
        length: of the event in the log, in bytes.
        end: the position in the log after the event; 0 for events that are not in it.
    """

    timestamp: int
    type: int
    server_id: int
    length: int
    end: int
    flags: int


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """First event of a log. `checksum` says whether the events that follow end with a CRC32."""

    server_version: str
    checksum: bool


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log continues in another file."""

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

    @property
    def text(self) -> str:
        """The statement, with U+FFFD for bytes that are no UTF-8."""
        return self.sql.decode("utf-8", "replace")


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
    """The statement that made the rows that follow."""

    sql: bytes

    @property
    def text(self) -> str:
        """The statement, as `Query.text`."""
        return self.sql.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The server is alive and the log ends at this position."""

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
class PreviousGtids:
    """The transactions of all files before this one, as the server encodes them (`GtidSet.decode`)."""

    encoded: bytes


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
    | PreviousGtids
    | Other
)


_STATUS_SIZES = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 18: 2, 19: 1, 20: 1, 21: 1, 128: 3, 129: 8}


def read_query(cursor: Cursor, *, compressed: bool) -> Query:
    """Return a statement's body."""
    thread_id = cursor.number(4)
    cursor.take(4)
    schema_length = cursor.number(1)
    cursor.take(2)
    sql_mode, charset = _status(cursor.take(cursor.number(2)))
    schema = cursor.text(schema_length)
    cursor.take(1)
    sql = unpacked(cursor) if compressed else cursor.rest()
    return Query(thread_id, schema, sql, sql_mode, charset)


@lru_cache(maxsize=64)
def _status(octets: bytes) -> tuple[int | None, tuple[int, int, int] | None]:
    """Read status variables (Query_event_post_header), up to one of unknown size. A session's are always the same."""
    cursor = Cursor(octets)
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


KINDS = {
    EventType.WRITE_ROWS_V1: "c",
    EventType.UPDATE_ROWS_V1: "u",
    EventType.DELETE_ROWS_V1: "d",
    EventType.WRITE_ROWS: "c",
    EventType.UPDATE_ROWS: "u",
    EventType.DELETE_ROWS: "d",
    EventType.PARTIAL_UPDATE_ROWS: "u",
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: "c",
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: "u",
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: "d",
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: "c",
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: "u",
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: "d",
}
_COMPRESSED_V2 = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED,
}
_COMPRESSED = {
    *_COMPRESSED_V2,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1,
}
_WITH_EXTRA_DATA = {
    *_COMPRESSED_V2,
    EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS,
    EventType.PARTIAL_UPDATE_ROWS,
}
_STATEMENT_END = 1
#: The table's number, of six bytes, and flags.
_HEAD = struct.Struct("<IHH")


def read_rows(type_: EventType, cursor: Cursor) -> Rows:
    """Return a body of one of the types in `KINDS`."""
    low, high, flags = _HEAD.unpack(cursor.take(_HEAD.size))
    if type_ in _WITH_EXTRA_DATA:
        cursor.take(cursor.number(2) - 2)
    width = cursor.packed()
    size = (width + 7) // 8
    present = cursor.take(size)
    kind = KINDS[type_]
    after = cursor.take(size) if kind == "u" else present
    body = unpacked(cursor) if type_ in _COMPRESSED else cursor.rest()
    return Rows(kind, low | high << 32, width, present, after, body, type_ == EventType.PARTIAL_UPDATE_ROWS, bool(flags & _STATEMENT_END))


HEADER = struct.Struct("<IBIIIH")
#: Events that one compressed transaction may unpack to: MySQL refuses larger ones itself.
MAX_PAYLOAD = (1 << 31) - 1
CHECKSUM_SIZE = 4


def decode_event(data: bytes, *, checksum: bool) -> tuple[Header, Body]:
    """Decode one event.

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
        read = _BODIES.get(header.type)
        return header, Other() if read is None else read(Cursor(data, HEADER.size, end))
    except MalformedEventError:
        raise
    except (struct.error, ValueError, IndexError, OverflowError, zlib.error) as error:
        raise MalformedEventError(f"an event could not be decoded: {error}") from error


def _format_description(cursor: Cursor) -> FormatDescription:
    """Decode a log's first event. The checksum's algorithm follows the post-header lengths since MySQL 5.6; the event itself then ends with
    a CRC32."""
    cursor.take(2)
    version = cursor.take(50).rstrip(b"\0").decode("ascii", "backslashreplace")
    cursor.take(5)
    lengths = cursor.rest()
    algorithm = lengths[-CHECKSUM_SIZE - 1] if len(lengths) > CHECKSUM_SIZE else 0
    return FormatDescription(version, algorithm == 1)


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


def _rotate(cursor: Cursor) -> Rotate:
    position = cursor.number(8)
    return Rotate(cursor.rest().decode(), position)


def _rows_query(cursor: Cursor) -> RowsQuery:
    cursor.take(1)  # a length that is too short for nearly all statements
    return RowsQuery(cursor.rest())


def _incident(cursor: Cursor) -> Incident:
    number = cursor.number(2)
    return Incident(number, cursor.text(cursor.number(1)))


#: How bodies are read, by the type's number; others say nothing.
_BODIES: dict[int, Callable[[Cursor], Body]] = {
    **{int(type_): partial(read_rows, type_) for type_ in KINDS},
    EventType.TABLE_MAP: lambda cursor: table_map(cursor.rest()),
    EventType.QUERY: partial(read_query, compressed=False),
    EventType.MARIADB_QUERY_COMPRESSED: partial(read_query, compressed=True),
    EventType.XID: lambda cursor: Xid(cursor.number(8)),
    EventType.GTID: read_gtid,
    EventType.GTID_TAGGED: read_tagged_gtid,
    EventType.ANONYMOUS_GTID: lambda cursor: AnonymousGtid(read_gtid(cursor).commit_micros),
    EventType.MARIADB_GTID: read_mariadb_gtid,
    EventType.ROTATE: _rotate,
    EventType.ROWS_QUERY: _rows_query,
    EventType.MARIADB_ANNOTATE_ROWS: lambda cursor: RowsQuery(cursor.rest()),
    EventType.HEARTBEAT: lambda cursor: Heartbeat(cursor.rest().decode(), 0),
    EventType.HEARTBEAT_V2: _heartbeat_v2,
    EventType.TRANSACTION_PAYLOAD: _transaction_payload,
    EventType.INCIDENT: _incident,
    EventType.PREVIOUS_GTIDS: lambda cursor: PreviousGtids(bytes(cursor.rest())),
}


def inner_events(events: bytes) -> Iterator[tuple[Header, Body]]:
    """Return events of an unpacked transaction. Raises MalformedEventError."""
    at = 0
    while at < len(events):
        if at + HEADER.size > len(events):
            raise MalformedEventError("a compressed transaction ends inside an event's header")
        length = HEADER.unpack_from(events, at)[3]
        if length < HEADER.size:
            raise MalformedEventError(f"an event inside a compressed transaction has a length of {length}")
        yield decode_event(events[at : at + length], checksum=False)
        at += length


__all__ = [
    "Body",
    "FormatDescription",
    "Header",
    "Heartbeat",
    "Incident",
    "Other",
    "PreviousGtids",
    "Query",
    "Rotate",
    "Rows",
    "RowsQuery",
    "TransactionPayload",
    "Xid",
    "decode_event",
    "inner_events",
]
