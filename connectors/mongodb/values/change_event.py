"""Change events as the server sends them: the fields of one BSON document, with the documents inside as bytes. Pure.

The driver's raw documents would make an object for each document inside of an event, which takes longer than writing the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

import bson
from bson.errors import BSONError

from connectors.mongodb.values.errors import MalformedBsonError

#: Values by name: text, whole numbers, milliseconds since 1970 for dates, (seconds, increment) for timestamps, bytes for documents and
#: arrays. A field that is null is not there.
Event = Mapping[str, Any]

_INT32 = Struct("<i").unpack_from
_INT64 = Struct("<q").unpack_from
_PAIR = Struct("<II").unpack_from
#: Sizes of what events hold and nobody looks at.
_FIXED: Final = {1: 8, 7: 12, 8: 1, 19: 16, 6: 0, 127: 0, 255: 0}
_names: dict[bytes, str] = {}


def fields_of(raw: bytes) -> dict[str, Any]:
    """The fields of a document. Raises MalformedBsonError: its bytes are no BSON."""
    try:
        return _fields(raw)
    except (ValueError, IndexError, struct_error) as error:
        raise MalformedBsonError(f"A change event cannot be read: {error}") from error


def _fields(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    end = _INT32(raw, 0)[0] - 1
    if end >= len(raw) or end < 4:
        raise ValueError(f"its length of {end + 1} bytes is not where it ends")
    at = 4
    while at < end:
        kind = raw[at]
        zero = raw.index(0, at + 1, end)
        label = raw[at + 1 : zero]
        name = _names.get(label) or _name(label)
        at = zero + 1
        if kind in (3, 4):
            size = _INT32(raw, at)[0]
            if size < 5 or at + size > end:
                raise ValueError(f"the field {name} goes beyond its end")
            found[name] = raw[at : at + size]
            at += size
        elif kind == 2:
            size = _INT32(raw, at)[0]
            at += 4 + size
            found[name] = raw[at - size : at - 1].decode()
        elif kind == 17:
            increment, seconds = _PAIR(raw, at)
            found[name] = seconds, increment
            at += 8
        elif kind in (9, 18):
            found[name] = _INT64(raw, at)[0]
            at += 8
        elif kind == 16:
            found[name] = _INT32(raw, at)[0]
            at += 4
        elif kind == 5:
            at += 5 + _INT32(raw, at)[0]
        elif kind != 10:
            at += _FIXED[kind] if kind in _FIXED else _unusual(kind)
    if at != end:
        raise ValueError("a field goes beyond its end")
    return found


def _name(label: bytes) -> str:
    name = label.decode()
    # servers have some twenty names; anything else is not worth keeping
    if len(_names) < 100:
        _names[label] = name
    return name


def _unusual(kind: int) -> int:
    raise ValueError(f"it has a value of the type {kind:#04x}")


def elements_of(raw: bytes | None) -> list[Any]:
    """The elements of an array, decoded; none for None. Raises MalformedBsonError."""
    try:
        return [] if raw is None else list(bson.decode(raw).values())
    except BSONError as error:
        raise MalformedBsonError(f"An array of a change event cannot be read: {error}") from error
