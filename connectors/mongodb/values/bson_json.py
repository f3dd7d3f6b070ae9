"""BSON bytes as extended JSON text, without an object for each value: the hot path of snapshots and change streams.

The text is byte for byte what Debezium's `JsonSerialization` makes with the Java driver's `JsonWriter`: one space after a colon; none
after a comma (but for `updatedFields` in the mode `legacy`); of two fields with one name the last value in the first one's position, since
the reference reads documents into a map; malformed UTF-8 becomes U+FFFD. No I/O, no state but caches of names and shapes.

There are three ways, tried in this order. Documents of a shape that was seen before have a function of their own (`bson_shapes`, with
`bson_lists` for lists of one scalar type). Others are decoded by the driver and written by orjson if they hold nothing of which those two
make something else (`bson_driver`): lists of documents, and shapes that never repeat. The slow way, `walk`, is here: it writes everything,
and only it says what is wrong with a document. `tests/bench/bench_bson.py` compares them with `bson.json_util`.

`decode_tree` gives a document as dicts and lists whose leaves are bytes, and `encode_tree` makes one of them: fields can be taken out and
renamed without loss. The driver's own objects lose what it no longer writes (symbols, undefined, the order of a regular expression's
options), and a record must show those. Field names are the keys; of two fields with one name the last value is kept, in the first one's
position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring
from struct import Struct
from struct import error as struct_error
from typing import Any, Protocol

from orjson import dumps

from connect_py.data.java_text import escaped
from connectors.mongodb.values.bson_driver import driver_texts, while_it_pays
from connectors.mongodb.values.bson_forms import CONSTANTS, Form, MalformedBsonError, ScalarTexts, decimal_text, decode_text, scalar_texts
from connectors.mongodb.values.bson_shapes import LONG_TEXT, Shape, Shapes, ValueWriter, shape_of

#: The server refuses documents nested deeper than 200 levels (`BSONDepth`); more than that is a broken length.
MAX_DEPTH = 220
#: Names of fields are cached with their type; documents that use values as names would fill the memory otherwise.
MAX_CACHED_NAMES = 20_000

#: Documents in arrays are written in the quick way too, but not below one that was: the count of levels would begin again each time.
ELEMENTS_DEPTH = MAX_DEPTH // 2
#: Arrays are given to the driver if they are not deeper, for the same reason.
DRIVER_DEPTH = 20


_INT32 = Struct("<i").unpack_from
_INT64 = Struct("<q").unpack_from
_DOUBLE = Struct("<d").unpack_from
_UINT32_PAIR = Struct("<II").unpack_from
_UINT64_PAIR = Struct("<QQ").unpack_from
_SIZE_AND_SUBTYPE = Struct("<iB").unpack_from
_quoted: Callable[[str], str] = encode_basestring


class Walker(Protocol):
    """Text of the document, or array, that occupies a part of some bytes."""

    def __call__(self, data: bytes, start: int, limit: int, depth: int) -> str: ...


@dataclass(frozen=True, slots=True)
class BsonJson:
    """One way to write BSON as text. Every method raises MalformedBsonError where the bytes are no BSON.

    Attributes:
        form: the form of the values.
        comma: between members and elements: ``,`` or ``, ``.
        walk: writes any document; raises struct.error, IndexError or ValueError where one is cut short.
        write_value: the same for a value.
        shapes: write documents of a shape that was seen before.
        driver: writes documents that need nothing special, and returns None for others.
    """

    form: Form
    comma: str
    walk: Walker
    write_value: ValueWriter
    shapes: Shapes
    driver: Callable[[bytes], str | None]

    def document(self, data: bytes, start: int = 0) -> str:
        """Return the document that begins at `start`; what follows it in `data` is not looked at."""
        if start == 0:
            if (text := self.shapes.text(data)) is not None:
                return text
            if (text := self.driver(data)) is not None:
                self.shapes.missed(data)
                return escaped(text)
        try:
            found = escaped(self.walk(data, start, len(data), 0))
            if start == 0:
                self.shapes.missed(data)
            return found
        except (struct_error, IndexError, ValueError) as error:
            raise MalformedBsonError(f"A BSON document is cut short: {error}") from error

    def value(self, kind: int, data: bytes, start: int = 0, end: int | None = None) -> str:
        """Return one value of type `kind` (BSON's type byte), at `start`; `end` (default: that of `data`) is its limit."""
        try:
            stop = len(data) if end is None else end
            text, at = self.write_value(kind, data, start, stop, 0)
        except (struct_error, IndexError, ValueError) as error:
            raise MalformedBsonError(f"A BSON value is cut short: {error}") from error
        if at > stop:
            raise MalformedBsonError(f"A BSON value goes {at - stop} bytes beyond its end")
        return escaped(text)


def bson_json(form: Form, comma: str = ",", *, elements_depth: int = ELEMENTS_DEPTH) -> BsonJson:
    """Return the writer for a form. Costly: make one for a connector, not one for a document.

    Args:
        elements_depth: how deep arrays are at most whose documents are written by shapes.
    """
    texts = scalar_texts(form, comma)
    document, value = _walkers(form, texts, comma, elements_depth)
    driver = driver_texts(form, texts, comma)
    array_text = while_it_pays(driver.array)

    def quick_value(kind: int, data: bytes, at: int, stop: int, depth: int) -> tuple[str, int]:
        if kind == 4 and depth < DRIVER_DEPTH:
            size = _INT32(data, at)[0]
            if 5 <= size <= stop - at and (text := array_text(data[at : at + size])) is not None:
                return text, at + size
        return value(kind, data, at, stop, depth)

    def shape(data: bytes) -> Shape | None:
        # the driver is quicker with documents that have lists of documents
        return shape_of(data, texts, comma, _quoted, quick_value, mixed_lists=driver.document(data) is None)

    return BsonJson(form, comma, document, value, Shapes(shape), while_it_pays(driver.document))


def _walkers(form: Form, texts: ScalarTexts, comma: str, elements_depth: int) -> tuple[Walker, ValueWriter]:
    """Return the functions of one form: closures, since locals and cells are the fastest names Python has."""
    names: dict[bytes, tuple[int, str]] = {}
    int32_text, int64_text, double, date, binary, regex = texts
    joined = comma.join

    def document(data: bytes, start: int, limit: int, depth: int) -> str:
        stop = _end(data, start, limit, depth)
        members: dict[str, str] = {}
        index = data.index  # raises where the name has no end; find would begin again at 0
        at = start + 4
        while at < stop:
            zero = index(0, at, stop)
            head = data[at:zero]
            try:
                kind, label = names[head]
            except KeyError:
                kind, label = name_of(head)
            at = zero + 1
            if kind == 2:
                size = _INT32(data, at)[0]
                at += 4 + size
                if size < 1 or data[at - 1]:
                    raise _bad_text(size)
                if size > LONG_TEXT:
                    members[label] = label + _long_text(data[at - size : at - 1])
                    continue
                try:
                    members[label] = label + _quoted(data[at - size : at - 1].decode())
                except UnicodeDecodeError:
                    members[label] = label + _quoted(decode_text(data[at - size : at - 1]))
            elif kind == 16:
                members[label] = label + int32_text(_INT32(data, at)[0])
                at += 4
            elif kind == 1:
                members[label] = label + double(_DOUBLE(data, at)[0])
                at += 8
            elif kind == 18:
                members[label] = label + int64_text(_INT64(data, at)[0])
                at += 8
            elif kind == 7:
                members[label] = f'{label}{{"$oid": "{data[at : at + 12].hex()}"}}'
                at += 12
            elif kind == 3:
                members[label] = label + document(data, at, stop, depth + 1)
                at += _INT32(data, at)[0]
            elif kind == 4:
                members[label] = label + array(data, at, stop, depth + 1)
                at += _INT32(data, at)[0]
            elif kind == 9:
                members[label] = label + date(_INT64(data, at)[0])
                at += 8
            elif kind == 10:
                members[label] = label + "null"
            elif kind == 8:
                members[label] = label + _boolean(data[at])
                at += 1
            else:
                text, at = other(kind, data, at, stop, depth)
                members[label] = label + text
        if at != stop:
            raise MalformedBsonError(f"A value of a BSON document goes {at - stop} bytes beyond its end")
        return f"{{{joined(members.values())}}}"

    def array(data: bytes, start: int, limit: int, depth: int) -> str:
        stop = _end(data, start, limit, depth)
        elements: list[str] = []
        append = elements.append
        find = data.find
        at = start + 4
        while at < stop:
            kind = data[at]
            zero = find(0, at + 1, stop)
            if zero < 0:
                raise MalformedBsonError("The index of an element of a BSON array has no end")
            at = zero + 1
            if kind == 2:
                size = _INT32(data, at)[0]
                at += 4 + size
                if size < 1 or data[at - 1]:
                    raise _bad_text(size)
                append(_quoted(decode_text(data[at - size : at - 1])) if size <= LONG_TEXT else _long_text(data[at - size : at - 1]))
            elif kind == 16:
                append(int32_text(_INT32(data, at)[0]))
                at += 4
            elif kind == 1:
                append(double(_DOUBLE(data, at)[0]))
                at += 8
            elif kind == 3:
                size = _INT32(data, at)[0]
                element = data[at : at + size] if depth < elements_depth and 0 < size <= stop - at else b""
                found = elements_alike.text(element) if element else None
                if found is None:
                    found = document(data, at, stop, depth + 1)
                    if element:
                        elements_alike.missed(element)
                append(found)
                at += size
            else:
                text, at = other(kind, data, at, stop, depth)
                append(text)
        if at != stop:
            raise MalformedBsonError(f"An element of a BSON array goes {at - stop} bytes beyond its end")
        return f"[{joined(elements)}]"

    def name_of(head: bytes) -> tuple[int, str]:
        if not head:
            raise MalformedBsonError("A field of a BSON document has no type")
        if len(names) >= MAX_CACHED_NAMES:
            names.clear()
        found = names[head] = head[0], f"{_quoted(decode_text(head[1:]))}: "
        return found

    def other(kind: int, data: bytes, at: int, stop: int, depth: int) -> tuple[str, int]:
        """Return the text of a value of any type, and where it ends."""
        if kind == 5:
            size, subtype = _SIZE_AND_SUBTYPE(data, at)
            at += 5 + size
            if size < 0 or at > stop:
                raise MalformedBsonError(f"A BSON binary has a length of {size} bytes, which goes beyond its document")
            content = data[at - size : at]
            if subtype == 2:  # the old form repeats the length in front of the content
                if _INT32(data, at - size)[0] != size - 4:
                    raise MalformedBsonError("A BSON binary of subtype 2 has two different lengths")
                content = content[4:]
            return binary(content, subtype), at
        if kind == 17:
            increment, seconds = _UINT32_PAIR(data, at)
            return f'{{"$timestamp": {{"t": {seconds}{comma}"i": {increment}}}}}', at + 8
        if kind == 19:
            return f'{{"$numberDecimal": "{decimal_text(*_UINT64_PAIR(data, at))}"}}', at + 16
        if kind in (2, 13, 14):
            text, at = _text(data, at)
            return (text if kind == 2 else f'{{"${"code" if kind == 13 else "symbol"}": {text}}}'), at
        if kind in CONSTANTS:
            return CONSTANTS[kind], at
        if kind == 11:
            pattern, at = _cstring(data, at, stop)
            options, at = _cstring(data, at, stop)
            return regex(_quoted(pattern), _quoted("".join(sorted(options)))), at
        if kind == 16:
            return int32_text(_INT32(data, at)[0]), at + 4
        if kind == 18:
            return int64_text(_INT64(data, at)[0]), at + 8
        if kind == 1:
            return double(_DOUBLE(data, at)[0]), at + 8
        if kind == 9:
            return date(_INT64(data, at)[0]), at + 8
        if kind == 8:
            return _boolean(data[at]), at + 1
        if kind == 7:
            if at + 12 > stop:
                raise IndexError("an ObjectId has 12 bytes")
            return f'{{"$oid": "{data[at : at + 12].hex()}"}}', at + 12
        if kind == 3:
            return document(data, at, stop, depth + 1), at + _INT32(data, at)[0]
        if kind == 4:
            return array(data, at, stop, depth + 1), at + _INT32(data, at)[0]
        if kind == 15:
            end = at + _INT32(data, at)[0]
            code, at = _text(data, at + 4)
            scope = document(data, at, stop, depth + 1)
            if at + _INT32(data, at)[0] != end:
                raise MalformedBsonError("A BSON code with scope has a length that its parts do not have")
            return f'{{"$code": {code}{comma}"$scope": {scope}}}', end
        if kind == 12:
            namespace, at = _text(data, at)
            pointer = f'{{"$ref": {namespace}{comma}"$id": {{"$oid": "{data[at : at + 12].hex()}"}}}}'
            return f'{{"$dbPointer": {pointer}}}' if form is Form.CANONICAL else pointer, at + 12
        raise MalformedBsonError(f"A BSON document has a value of type {kind:#04x}, which does not exist")

    elements_alike = Shapes(lambda data: shape_of(data, texts, comma, _quoted, other, ELEMENTS_DEPTH))
    return document, other


def _end(data: bytes, start: int, limit: int, depth: int) -> int:
    """Return where the last byte, a zero, of the document at `start` is."""
    size: int = _INT32(data, start)[0]
    stop = start + size - 1
    if size < 5 or stop >= limit or data[stop]:
        raise MalformedBsonError(f"A BSON document has a length of {size} bytes, which is not where it ends")
    if depth > MAX_DEPTH:
        raise MalformedBsonError(f"A BSON document is nested more than {MAX_DEPTH} levels deep")
    return stop


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return a string as JSON, and where it ends."""
    size = _INT32(data, at)[0]
    at += 4 + size
    if size < 1 or data[at - 1]:
        raise _bad_text(size)
    if size > LONG_TEXT:
        return _long_text(data[at - size : at - 1]), at
    return _quoted(decode_text(data[at - size : at - 1])), at


def _long_text(content: bytes) -> str:
    """Return a text as JSON, as `_quoted` does: orjson escapes the same characters in the same way, and needs a tenth of the time."""
    return dumps(decode_text(content)).decode()


def _bad_text(size: int) -> MalformedBsonError:
    return MalformedBsonError(f"A BSON string has a length of {size} bytes, which is not where it ends")


def _cstring(data: bytes, at: int, stop: int) -> tuple[str, int]:
    zero = data.find(0, at, stop)
    if zero < 0:
        raise MalformedBsonError("A BSON regular expression has no end")
    return decode_text(data[at:zero]), zero + 1


def _boolean(byte: int) -> str:
    if byte > 1:
        raise MalformedBsonError(f"A BSON boolean is {byte}; it must be 0 or 1")
    return "true" if byte else "false"


_LENGTH = Struct("<i")
#: How many bytes a value of a type has.
_SIZES = {0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
#: Types whose length is an int32 in front, and how many bytes that length does not count.
_COUNTED = {0x02: 4, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}
_DOCUMENT, _ARRAY, _REGEX = 0x03, 0x04, 0x0B


def decode_tree(data: bytes) -> dict[str, Any]:
    """Return a document: dicts, lists, and for every other value its type byte and its bytes.

    Raises:
        MalformedBsonError: lengths or types are wrong. Texts are not looked at.
    """
    try:
        return dict(_members(data, 0, len(data), 0))
    except (struct_error, IndexError, ValueError) as error:
        raise MalformedBsonError(f"A BSON document is cut short: {error}") from error


def encode_tree(tree: dict[str, Any]) -> bytes:
    """Return the document of a tree."""
    return _framed(b"".join(_element(name, value) for name, value in tree.items()))


def _members(data: bytes, start: int, limit: int, depth: int) -> list[tuple[str, Any]]:
    size = _LENGTH.unpack_from(data, start)[0]
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
        end = zero + 1 + _size_of(kind, data, zero + 1, stop)
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


def _size_of(kind: int, data: bytes, at: int, stop: int) -> int:
    if (fixed := _SIZES.get(kind)) is not None:
        return fixed
    if kind == _REGEX:
        return data.index(0, data.index(0, at, stop) + 1, stop) + 1 - at
    if kind not in _COUNTED and kind not in (_DOCUMENT, _ARRAY):
        raise MalformedBsonError(f"A BSON document has a value of type {kind:#04x}, which does not exist")
    size: int = _LENGTH.unpack_from(data, at)[0]
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
    return _LENGTH.pack(len(content) + 5) + content + b"\0"
