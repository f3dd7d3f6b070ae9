"""Rows in the log (`Rows_event`), of which the images stay bytes: what they mean depends on the table's model (`rows.py`)."""

from __future__ import annotations

import struct

from connectors.mysql.binlog.bodies import Rows
from connectors.mysql.binlog.codes import EventType
from connectors.mysql.binlog.compression import unpacked
from connectors.mysql.binlog.cursor import Cursor

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
    """A body of one of the types in `KINDS`."""
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
