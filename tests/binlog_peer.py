"""What python-mysql-replication reads from the same log, in one form with ours, and where it is known to be wrong."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from connect_py.app.services.mysql import MySqlAddress
from tests.binlog_tables import Kind

#: (table, kind of the change, image before, image after); images by column.
Change = tuple[str, str, dict[str, Any] | None, dict[str, Any] | None]


def peer_changes(server: MySqlAddress, database: str, start: tuple[str, int], end: int, tables: list[str]) -> Iterator[Change]:
    """Changes of some tables between two places of one file of the log."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    stream = BinLogStreamReader(
        connection_settings=login,
        server_id=987_654,
        log_file=start[0],
        log_pos=start[1],
        end_log_pos=end,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        only_schemas=[database],
        only_tables=tables,
        ignore_decode_errors=True,
        enable_logging=False,
    )
    try:
        for event in stream:
            for row in event.rows:
                if isinstance(event, UpdateRowsEvent):
                    yield event.table, "u", row["before_values"], row["after_values"]
                elif isinstance(event, WriteRowsEvent):
                    yield event.table, "c", None, row["values"]
                else:
                    yield event.table, "d", row["values"], None
    finally:
        stream.close()


def value_of(kind: Kind, text: str | None) -> Any:
    """The Python value for one of our texts that the other reader should give."""
    if text is None:
        return None
    match kind.family:
        case "integer" | "YEAR":
            return int(text)
        case "DECIMAL":
            return Decimal(text)
        case "FLOAT":
            return struct.unpack("<f", struct.pack("<f", float(text)))[0]
        case "DOUBLE":
            return float(text)
        case "BIT":
            return f"{int.from_bytes(text.encode('latin-1'), 'big'):0{kind.digits}b}"
        case "DATE" | "DATETIME" | "TIMESTAMP":
            try:
                return date.fromisoformat(text) if kind.family == "DATE" else datetime.fromisoformat(text)
            except ValueError:
                return text  # Python has no such day
        case "TIME":
            hours, minutes, seconds = text.lstrip("-").split(":")
            found = timedelta(hours=int(hours), minutes=int(minutes)) + timedelta(microseconds=int(Decimal(seconds) * 1_000_000))
            return -found if text.startswith("-") else found
        case "bytes" | "BINARY":
            return text.encode("latin-1")
        case "SET":
            return set(text.split(",")) if text else set()
        case "JSON":
            return json.loads(text, parse_int=Decimal, parse_float=Decimal)
    return text


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether values are the same: floats to their last bit, and no truth value is a number."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return struct.pack("<d", ours) == struct.pack("<d", theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def is_same_document(ours: Any, theirs: Any) -> bool:
    """The same of documents, of which ours has decimals for all numbers."""
    if isinstance(ours, Decimal):
        if isinstance(theirs, float):
            return float(ours) == theirs
        return isinstance(theirs, int | Decimal) and not isinstance(theirs, bool) and ours == theirs
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(is_same_document, ours, theirs))
    if isinstance(ours, dict):
        found = {_str(key): value for key, value in theirs.items()} if isinstance(theirs, dict) else {}
        return ours.keys() == found.keys() and all(is_same_document(value, found[key]) for key, value in ours.items())
    if isinstance(theirs, datetime):
        return ours in (f"{theirs:%Y-%m-%d %H:%M:%S.%f}", f"{theirs:%Y-%m-%d}")
    if isinstance(theirs, time):
        return bool(ours == f"{theirs:%H:%M:%S.%f}")
    return is_same(ours, _str(theirs))


def _str(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


#: What the other reader is known to get wrong. The server is asked instead, where the row is still there.
KNOWN = {
    "DATE, DATETIME: Python has no day, month or year 0, and it gives None": lambda kind, text, theirs: (
        kind.family in ("DATE", "DATETIME") and theirs is None and re.search(r"^0000|-00", text)
    ),
    "TIMESTAMP: the zero moment is 1970 to it": lambda kind, text, theirs: (
        kind.family == "TIMESTAMP" and text.startswith("0000-00-00") and theirs.year == 1970
    ),
    "TIME: of a negative one it takes the fraction as it is stored, which is turned over": lambda kind, text, theirs: (
        kind.family == "TIME" and text.startswith("-") and kind.digits and abs(value_of(kind, text) - theirs) < timedelta(seconds=2)
    ),
    "YEAR: the year 0 is 1900 to it": lambda kind, text, theirs: kind.family == "YEAR" and text == "0000" and theirs == 1900,
    "SET: the empty one is None": lambda kind, text, theirs: kind.family == "SET" and text == "" and theirs is None,
    "bytes: none at all are an empty text": lambda kind, text, theirs: kind.family in ("bytes", "BINARY") and text == theirs == "",
    "ENUM, SET: labels are UTF-8 to it": lambda kind, text, theirs: (
        kind.family in ("ENUM", "SET") and not kind.charset.startswith("utf8") and not text.isascii()
    ),
    "characters: Python knows no character set of this name, and it leaves the bytes": lambda kind, text, theirs: (
        kind.family == "text" and isinstance(theirs, bytes)
    ),
    "characters: utf16 and utf32 are little-endian to it, and MySQL's are big-endian": lambda kind, text, theirs: (
        kind.charset in ("utf16", "utf32")
    ),
    "characters: Python's cp1252 has no character where MySQL's latin1 has one": lambda kind, text, theirs: (
        kind.charset == "latin1" and kind.family == "text" and text.replace("\x81", "") == theirs
    ),
}


def known(kind: Kind, text: str | None, theirs: Any) -> str | None:
    """Why a value differs; None for no known reason."""
    if text is None:
        return None
    return next((reason for reason, holds in KNOWN.items() if holds(kind, text, theirs)), None)


def is_what_the_server_has(kind: Kind, text: str | None, shown: str | None) -> bool:
    """Whether our text is the server's of the same value; FLOATs are shown as DOUBLEs."""
    if text is None or shown is None:
        return text is shown
    if kind.family == "FLOAT":
        return is_same(value_of(kind, text), float(shown))
    if kind.family == "DOUBLE":
        return float(text) == float(shown)
    if kind.family == "JSON":
        return is_same_document(value_of(kind, text), json.loads(shown))
    if kind.family == "BINARY":
        return text.rstrip("\0") == shown.rstrip("\0")  # the log leaves out what fills a value up
    return text == shown
