"""Binary JSON as text, and partial updates of JSON documents.

The text of a binary document (`sql-common/json_binary.cc` of MySQL) is the one that Debezium streams (`JsonStringFormatter`): no spaces,
keys in stored order, doubles without exponent, decimals as numbers, dates as texts, other values of SQL types as base64 texts.

Under ``binlog_row_value_options=PARTIAL_JSON`` the log holds differences (MySQL's `Json_diff`): an operation, a path, and the new value in
binary form. They are applied to the previous text; numbers keep the digits with which they were printed.
"""

from __future__ import annotations

import json
import re
import struct
from binascii import b2a_base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from connect_py.converters.json_write import quote_characters
from connect_py.data.java_text import double_text
from connectors.mysql.binlog.codes import ColumnType, MalformedEventError
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.values import decimal_reader, stored_size

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_NUMBERS = {
    5: struct.Struct("<h"),
    6: struct.Struct("<H"),
    7: struct.Struct("<i"),
    8: struct.Struct("<I"),
    9: struct.Struct("<q"),
    10: struct.Struct("<Q"),
}
_DOUBLE, _STRING, _OPAQUE = 11, 12, 15
_DOUBLE_FORM = struct.Struct("<d")
_LITERALS = {0: "null", 1: "true", 2: "false"}
#: MySQL's own limit (`JSON_DOCUMENT_MAX_DEPTH`).
_MAX_DEPTH = 100


def json_text(data: bytes, opaque: Callable[[int, bytes], str] | None = None) -> str:
    """Return a stored JSON document.

    Args:
        opaque: prints values of SQL types; `opaque_text` without it.

    Raises:
        MalformedEventError: offsets or lengths point outside of the document, or back into it.
    """
    if not data:
        return "null"
    try:
        return _Document(data, opaque or opaque_text).value(data[0], 1, len(data), 0)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise MalformedEventError(f"a JSON document could not be decoded: {error}") from error


class _Document:
    """Decodes one document. Every value takes at least a byte of it, which bounds the work that wrong offsets can cause."""

    __slots__ = ("data", "left", "opaque")

    def __init__(self, data: bytes, opaque: Callable[[int, bytes], str]) -> None:
        self.data, self.left, self.opaque = data, len(data) + 1, opaque

    def value(self, kind: int, at: int, end: int, depth: int) -> str:
        self.left -= 1
        if self.left < 0 or depth > _MAX_DEPTH or not 0 <= at <= end <= len(self.data):
            raise MalformedEventError("a JSON document contradicts itself")
        if kind <= _LARGE_ARRAY:
            return self._container(kind, at, end, depth)
        if kind == _LITERAL:
            return _literal(self.data[at])
        if kind in _NUMBERS:
            return str(_NUMBERS[kind].unpack_from(self.data, at)[0])
        if kind == _DOUBLE:
            return json_double(_DOUBLE_FORM.unpack_from(self.data, at)[0])
        if kind == _STRING:
            length, at = self._length(at)
            return quote_characters(self._slice(at, length, end).decode())
        if kind == _OPAQUE:
            length, start = self._length(at + 1)
            return self.opaque(self.data[at], self._slice(start, length, end))
        raise MalformedEventError(f"{kind} is no known type of a JSON value")

    def _container(self, kind: int, at: int, end: int, depth: int) -> str:
        """Decode counts, then entries of keys and of values; offsets count from the container's first byte."""
        large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
        width = 4 if large else 2
        count, size = self._number(at, width), self._number(at + width, width)
        stop = at + size
        keyed = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
        keys_at = at + 2 * width
        values_at = keys_at + (count * (width + 2) if keyed else 0)
        if stop > end or values_at + count * (width + 1) > stop:
            raise MalformedEventError("a JSON container is longer than what holds it")
        parts = []
        for index in range(count):
            entry = values_at + index * (width + 1)
            inner = self.data[entry]
            if _is_inlined(inner, large):
                text = self.value(inner, entry + 1, stop, depth + 1)
            else:
                text = self.value(inner, at + self._number(entry + 1, width), stop, depth + 1)
            if keyed:
                key_entry = keys_at + index * (width + 2)
                key = self._slice(at + self._number(key_entry, width), self._number(key_entry + width, 2), stop)
                text = f"{quote_characters(key.decode())}:{text}"
            parts.append(text)
        return "{" + ",".join(parts) + "}" if keyed else "[" + ",".join(parts) + "]"

    def _number(self, at: int, width: int) -> int:
        return int.from_bytes(self._slice(at, width, len(self.data)), "little")

    def _length(self, at: int) -> tuple[int, int]:
        """Return a number of seven bits a byte, the lowest first, and the position after it."""
        value = 0
        for index in range(5):
            octet = self.data[at + index]
            value |= (octet & 0x7F) << 7 * index
            if not octet & 0x80:
                return value, at + index + 1
        raise MalformedEventError("a length in a JSON document does not end")

    def _slice(self, at: int, length: int, end: int) -> bytes:
        if at < 0 or at + length > end:
            raise MalformedEventError("a JSON value is longer than what holds it")
        return self.data[at : at + length]


def _is_inlined(kind: int, large: bool) -> bool:
    """Return whether a value is in the entry itself, as literals and short integers are."""
    return kind in (_LITERAL, 5, 6) or (large and kind in (7, 8))


def _literal(code: int) -> str:
    if code not in _LITERALS:
        raise MalformedEventError(f"{code} is no JSON literal")
    return _LITERALS[code]


def json_double(value: float) -> str:
    """Print as Java does, or all digits where that has an exponent."""
    text = double_text(value)
    return f"{Decimal(value):f}" if "E" in text else text


def opaque_text(type_: int, data: bytes) -> str:
    """Return a value of an SQL type inside JSON."""
    if type_ == ColumnType.NEWDECIMAL:
        precision, scale = data[0], data[1]
        if not scale <= precision <= 65 or len(data) != 2 + stored_size(precision, scale):
            raise MalformedEventError("a decimal in a JSON document contradicts itself")
        return decimal_reader(precision, scale)(data[2:])
    if type_ in (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.TIME):
        return f'"{_packed_time(type_, data)}"'
    return f'"{b2a_base64(data, newline=False).decode()}"'


def server_json_text(data: bytes) -> str:
    """Return a stored document with dates and times as the server prints them; all else as in `json_text`."""
    return json_text(data, _server_opaque_text)


def _server_opaque_text(type_: int, data: bytes) -> str:
    if type_ in (ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.TIME):
        return f'"{_packed_time(type_, data, six=True)}"'
    return opaque_text(type_, data)


def _packed_time(type_: int, data: bytes, *, six: bool = False) -> str:
    """Read eight bytes: date and time in all but the lowest three, microseconds there. The sign of a time is that of the whole.

    Args:
        six: whether a fraction always has six digits.
    """
    if len(data) != 8:
        raise MalformedEventError("a time in a JSON document has eight bytes")
    value = int.from_bytes(data, "little", signed=True)
    sign = "-" if value < 0 else ""
    value = abs(value)
    micros, whole = value & 0xFFFFFF, value >> 24
    fraction = f".{micros:06}" if six else f".{micros:06}".rstrip("0") if micros else ""
    clock = f"{whole >> 12 & 31:02}:{whole >> 6 & 63:02}:{whole & 63:02}{fraction}"
    if type_ == ColumnType.TIME:
        return f"{sign}{whole >> 12 & 0x3FF:02}{clock[2:]}"
    days = whole >> 17
    year_month, day = days >> 5, days & 31
    date = f"{year_month // 13:04}-{year_month % 13:02}-{day:02}"
    return date if type_ == ColumnType.DATE else f"{date} {clock}"


_REPLACE, _INSERT, _REMOVE = range(3)
#: `.name`, `."quoted name"`, `[3]`, `[last]` and `[last-3]`.
_LEG = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\["]+))|\[(?:(\d+)|last(?:-(\d+))?)\]')


class _Number(str):
    """A number as it was printed."""

    __slots__ = ()


def patched(before: str, data: bytes, read: Callable[[bytes], str] = json_text) -> str:
    """Return a document after its differences.

    Args:
        before: as `read` prints it.
        read: prints the values of differences.
        data: the differences, one after the other.

    Raises:
        MalformedEventError: they are none, or do not fit the document.
    """
    root: list[Any] = [_parsed(before)]
    cursor = Cursor(data)
    while cursor.at < cursor.end:
        operation = cursor.number(1)
        legs = _legs(cursor.text(cursor.packed()))
        value = None if operation == _REMOVE else _parsed(read(cursor.take(cursor.packed())))
        _apply(root, operation, legs, value)
    return _printed(root[0])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        raise MalformedEventError(f"a JSON document is none: {error}") from error


def _legs(path: str) -> list[str | int]:
    """Return names of members and numbers of elements; -1 is the last element, -2 the one before."""
    if not path.startswith("$"):
        raise MalformedEventError(f"{path!r} is no path in a JSON document")
    found: list[str | int] = []
    at = 1
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise MalformedEventError(f"{path!r} is no path in a JSON document")
        quoted, name, number, from_end = leg.groups()
        if quoted is not None:
            found.append(_parsed(f'"{quoted}"'))
        elif name is not None:
            found.append(name)
        else:
            found.append(int(number) if number is not None else -1 - int(from_end or 0))
        at = leg.end()
    return found


def _apply(root: list[Any], operation: int, legs: list[str | int], value: Any) -> None:
    holder, leg = _holder(root, legs)
    if operation == _REPLACE and leg in _places(holder):
        holder[leg] = value
    elif operation == _REMOVE and legs and leg in _places(holder):
        del holder[leg]
    elif operation == _INSERT and legs and isinstance(holder, dict) and leg not in holder:
        holder[leg] = value
    elif operation == _INSERT and legs and isinstance(holder, list) and isinstance(leg, int):
        holder.insert(len(holder) if leg >= len(holder) or leg == -1 else leg, value)
    else:
        raise MalformedEventError(f"a difference of a JSON document does not fit it: operation {operation} at {legs}")


def _holder(root: list[Any], legs: list[str | int]) -> tuple[Any, Any]:
    """Return what holds the value at a path, and the value's key in it."""
    holder: Any = root
    leg: str | int = 0
    for following in legs:
        if leg not in _places(holder):
            raise MalformedEventError(f"a difference of a JSON document does not fit it: {legs} is not in it")
        holder, leg = holder[leg], following
    return holder, leg


def _places(holder: Any) -> Any:
    """Return keys under which a container holds values; none of a scalar."""
    if isinstance(holder, dict):
        return holder
    return range(-len(holder), len(holder)) if isinstance(holder, list) else ()


def _printed(value: Any) -> str:
    """Print as Debezium does; members in MySQL's order, shorter names first."""
    match value:
        case dict():
            members = sorted(value.items(), key=lambda member: (len(octets := member[0].encode()), octets))
            return "{" + ",".join(f"{quote_characters(name)}:{_printed(inner)}" for name, inner in members) + "}"
        case list():
            return "[" + ",".join(map(_printed, value)) + "]"
        case _Number():
            return str(value)
        case str():
            return quote_characters(value)
        case None:
            return "null"
    return "true" if value else "false"
