"""Keys and JSON texts of the internal topics, byte for byte as Connect writes them. Pure.

Compaction and look-ups go by the bytes of the key, so JSON must come out as Jackson writes it: no blanks, fields in the given order,
control characters as `\\b \\f \\n \\r \\t` or `\\u001F` with capital digits, characters beyond U+FFFF as two escaped surrogates, all
others as UTF-8, floats as `Double.toString` (`JsonConverter.java` with `schemas.enable=false`, `OffsetStorageWriter.java`,
`OffsetUtils.java`; checked against a running 4.3.1).
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.data.java_text import double_text
from connect_py.errors import DataError

_ESCAPED = re.compile('["\\\\\x00-\x1f\U00010000-\U0010ffff]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def encode_json(value: Any) -> bytes:
    """Return a value as Jackson writes it.

    Raises:
        DataError: a type that an internal topic cannot hold.
    """
    try:
        return _text(value).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"A text for an internal topic has half a surrogate pair at index {error.start}") from None


def decode_json(data: bytes) -> Any:
    """Return a value from JSON bytes: integers as int, decimals as float.

    Raises:
        DataError: no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(f"Not JSON: {error}") from None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # Jackson quotes what JSON has no number for
        return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_string(_key(name))}:{_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(_text, value)) + "]"
    raise DataError(f"A value of type {type(value).__name__} cannot be kept in an internal topic")


def _key(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"Keys of a map in an internal topic must be strings, not {type(name).__name__}")
    return name


def _string(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    if found in _ESCAPES:
        return _ESCAPES[found]
    units = found.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


# -- the offsets topic


def offset_key(connector: str, partition: SourcePartition) -> bytes:
    """Key of a source partition: `["C",{"a":1,"b":2}]`, in the order in which the connector built the map."""
    return encode_json([connector, partition])


def offset_value(offset: SourceOffset | None) -> bytes | None:
    """Value of a source offset; None is the tombstone that forgets it."""
    return None if offset is None else encode_json(offset)


def parse_offset_key(key: bytes | None) -> tuple[str, SourcePartition] | None:
    """Connector and source partition of a key; None for one that has no partition (`["C",null]`), which no look-up finds.

    Raises:
        DataError: no pair of a string and an object.
    """
    found = decode_json(key or b"")
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)):
        raise DataError("The key of an offset is no [connector, partition] pair")
    if found[1] is None:
        return None
    if not isinstance(found[1], dict):
        raise DataError("The partition in the key of an offset is no object")
    return found[0], found[1]


def parse_offset_value(value: bytes) -> SourceOffset:
    """Source offset of a value. Raises DataError when it is no object."""
    found = decode_json(value)
    if not isinstance(found, dict):
        raise DataError("An offset is no object")
    return found
