"""Events of a binlog, from bytes to values. No I/O (MySQL internals, `libbinlogevents`; MariaDB knowledge base, "Replication protocol").

`decode_event` takes one event as the dump protocol sends it, without the packet's status byte. What events say is in `bodies.py`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial

from connectors.mysql.binlog.bodies import (
    Body,
    FormatDescription,
    Header,
    Heartbeat,
    Incident,
    Other,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    TransactionPayload,
    Xid,
)
from connectors.mysql.binlog.codes import EventType
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.gtid_events import AnonymousGtid, read_gtid, read_mariadb_gtid, read_tagged_gtid
from connectors.mysql.binlog.query_events import read_query
from connectors.mysql.binlog.row_events import KINDS, read_rows
from connectors.mysql.binlog.table_map import table_map

HEADER = struct.Struct("<IBIIIH")
#: Events that one compressed transaction may unpack to: MySQL refuses larger ones itself.
MAX_PAYLOAD = (1 << 31) - 1
CHECKSUM_SIZE = 4


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
        read = _BODIES.get(header.type)
        return header, Other() if read is None else read(Cursor(data, HEADER.size, end))
    except MalformedEventError:
        raise
    except (struct.error, ValueError, IndexError, OverflowError, zlib.error) as error:
        raise MalformedEventError(f"an event could not be decoded: {error}") from error


def _format_description(cursor: Cursor) -> FormatDescription:
    """The checksum's algorithm stands behind the post-header lengths since MySQL 5.6; the event itself then ends with a CRC32."""
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
    cursor.take(1)  # a length that is too short for most statements
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
}


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


__all__ = [
    "Body",
    "FormatDescription",
    "Header",
    "Heartbeat",
    "Incident",
    "Other",
    "Query",
    "Rotate",
    "Rows",
    "RowsQuery",
    "TransactionPayload",
    "Xid",
    "decode_event",
    "inner_events",
]
