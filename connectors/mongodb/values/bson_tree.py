"""A document as dicts and lists whose leaves are bytes, and back: fields can be taken out and renamed without loss.

The driver's own objects lose what it no longer writes (symbols, undefined, the order of a regular expression's options), and a record
must show those. Field names are the keys; of two fields with one name the last value stays, at the first one's place.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Any

from connectors.mongodb.values.bson_json import MAX_DEPTH
from connectors.mongodb.values.bson_scalars import decode_text
from connectors.mongodb.values.errors import MalformedBsonError

_INT32 = Struct("<i")
#: How many bytes a value of a type has.
_SIZES = {0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
#: Types whose length is an int32 in front, and how many bytes that length does not count.
_COUNTED = {0x02: 4, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}
_DOCUMENT, _ARRAY, _REGEX = 0x03, 0x04, 0x0B


def decode_tree(data: bytes) -> dict[str, Any]:
    """A document: dicts, lists, and for every other value its type byte and its bytes.

    Raises:
        MalformedBsonError: lengths or types are wrong. Texts are not looked at.
    """
    try:
        return dict(_members(data, 0, len(data), 0))
    except (struct_error, IndexError, ValueError) as error:
        raise MalformedBsonError(f"A BSON document is cut short: {error}") from error


def encode_tree(tree: dict[str, Any]) -> bytes:
    """The document of a tree."""
    return _framed(b"".join(_element(name, value) for name, value in tree.items()))


def _members(data: bytes, start: int, limit: int, depth: int) -> list[tuple[str, Any]]:
    size = _INT32.unpack_from(data, start)[0]
    stop = start + size - 1
    if size < 5 or stop >= limit or data[stop]:
        raise MalformedBsonError(f"A BSON document has a length of {size} bytes, which is not where it ends")
    if depth > MAX_DEPTH:
        raise MalformedBsonError(f"A BSON document is nested more than {MAX_DEPTH} levels deep")
    members: list[tuple[str, Any]] = []
    at = start + 4
    while at < stop:
        kind = data[at]
        zero = data.index(0, at + 1, stop)
        name = decode_text(data[at + 1 : zero])
        end = zero + 1 + _size(kind, data, zero + 1, stop)
        if end > stop:
            raise MalformedBsonError(f"A value of a BSON document goes {end - stop} bytes beyond its end")
        value: Any
        if kind == _DOCUMENT:
            value = dict(_members(data, zero + 1, stop, depth + 1))
        elif kind == _ARRAY:
            value = [item for _, item in _members(data, zero + 1, stop, depth + 1)]
        else:
            value = data[at : at + 1] + data[zero + 1 : end]
        members.append((name, value))
        at = end
    return members


def _size(kind: int, data: bytes, at: int, stop: int) -> int:
    if (fixed := _SIZES.get(kind)) is not None:
        return fixed
    if kind == _REGEX:
        return data.index(0, data.index(0, at, stop) + 1, stop) + 1 - at
    if kind not in _COUNTED and kind not in (_DOCUMENT, _ARRAY):
        raise MalformedBsonError(f"A BSON document has a value of type {kind:#04x}, which does not exist")
    size: int = _INT32.unpack_from(data, at)[0]
    if size < 0:
        raise MalformedBsonError(f"A BSON value has a length of {size} bytes")
    return size + _COUNTED.get(kind, 0)


def _element(name: str, value: Any) -> bytes:
    label = name.encode() + b"\0"
    if isinstance(value, dict):
        return b"\x03" + label + encode_tree(value)
    if isinstance(value, list):
        return b"\x04" + label + _framed(b"".join(_element(str(index), item) for index, item in enumerate(value)))
    return bytes(value[:1] + label + value[1:])


def _framed(content: bytes) -> bytes:
    return _INT32.pack(len(content) + 5) + content + b"\0"
