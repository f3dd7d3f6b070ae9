"""Documents and change events: the fields of an event as the server sends it, and the texts that records show. Bytes in, bytes out.

An event's fields are read from its one BSON document, with the documents inside as bytes: the driver's raw documents would make an object
for each document inside of an event, which takes longer than writing the record. Records show documents as text (`before`, `after` and
`updatedFields`), and have keys made of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from connect_py.api.record import EncodedRow
from connect_py.converters.json_write import quote
from connectors.engine.encode.columnwise import quick_quote
from connectors.mongodb.collection import Collection
from connectors.mongodb.field_rules import FieldChanges
from connectors.mongodb.values.bson_forms import Form, MalformedBsonError
from connectors.mongodb.values.bson_json import bson_json, decode_tree, encode_tree

#: Values by name: text, whole numbers, milliseconds since 1970 for dates, (seconds, increment) for timestamps, bytes for documents and
#: arrays. A field that is null is not there.
Event = Mapping[str, Any]

_INT32 = Struct("<i").unpack_from
_INT64 = Struct("<q").unpack_from
_PAIR = Struct("<II").unpack_from
#: Sizes of fields that events hold and that are not read.
_FIXED: Final = {1: 8, 7: 12, 8: 1, 19: 16, 6: 0, 127: 0, 255: 0}
_names: dict[bytes, str] = {}


def fields_of(raw: bytes) -> dict[str, Any]:
    """Return the fields of a document. Raises MalformedBsonError: its bytes are no BSON."""
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
    """Return the elements of an array, decoded; none for None. Raises MalformedBsonError."""
    try:
        return [] if raw is None else list(bson.decode(raw).values())
    except BSONError as error:
        raise MalformedBsonError(f"An array of a change event cannot be read: {error}") from error


#: Nested documents stay bytes, and a date of any year can be read.
RAW: Final = CodecOptions(document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS)
_ID = b"_id\0"

#: Forms of documents and of updated fields, and the comma of the latter, by `json.serialization.mode`.
_MODES: Final = {
    "legacy": (Form.STRICT, Form.RELAXED, ", "),
    "strict": (Form.STRICT, Form.STRICT, ","),
    "extended": (Form.CANONICAL, Form.CANONICAL, ","),
    "relaxed": (Form.RELAXED, Form.RELAXED, ","),
}


class Documents:
    """Writes documents in one mode.

    Args:
        mode: `json.serialization.mode`.

    Attributes:
        text: extended JSON of a document.
    """

    def __init__(self, mode: str) -> None:
        form, updated, comma = _MODES[mode]
        self.text: Callable[[bytes], str] = bson_json(form).document
        self._updated = bson_json(updated, comma).document
        self._id = bson_json(Form.RELAXED).value
        # the session of a transaction is strict in every mode
        self._session = bson_json(Form.STRICT).document

    def quoted(self, raw: bytes, changes: FieldChanges | None = None) -> bytes:
        """Return a whole document as a JSON string. Raises MalformedBsonError; DataError where the rules cannot be applied."""
        if changes is not None:
            raw = encode_tree(changes.document(decode_tree(raw)))
        return quick_quote(self.text(raw)).encode()

    def key(self, raw: bytes, collection: Collection) -> bytes:
        """Return the key of a document, or of a `documentKey`. Raises MalformedBsonError."""
        if raw[5:9] != _ID:
            try:
                raw = bson.encode({"_id": bson.decode(raw, RAW).get("_id")})
            except BSONError as error:
                raise MalformedBsonError(f"The key of a document cannot be read: {error}") from error
        return collection.key_start + quick_quote(self._id(raw[4], raw, 9, len(raw) - 1)).encode() + collection.key_end

    def session(self, raw: bytes) -> str:
        """Return the text of an event's `lsid`."""
        return self._session(raw)

    def reads(self, raws: Iterable[bytes], collection: Collection, end: bytes) -> list[EncodedRow]:
        """Return the records of documents that were read; `end` is `Collection.read_end`. Raises as `quoted`."""
        route, start, changes = collection.route, collection.read_start, collection.changes
        key, quoted = self.key, self.quoted
        return [(route, key(raw, collection), b"".join((start, quoted(raw, changes), end))) for raw in raws]

    def update(self, description: bytes, changes: FieldChanges | None) -> bytes:
        """Return the JSON text of an `updateDescription`. Raises as `quoted`."""
        parts = fields_of(description)
        updated: bytes | None = parts.get("updatedFields")
        try:
            removed: list[str] = elements_of(parts.get("removedFields"))
            truncated = [(entry["field"], int(entry["newSize"])) for entry in elements_of(parts.get("truncatedArrays"))]
        except (TypeError, KeyError, ValueError) as error:
            raise MalformedBsonError(f"The description of an update cannot be read: {error!r}") from error
        if not all(isinstance(name, str) for name in (*removed, *(name for name, _ in truncated))) or not isinstance(updated, bytes | None):
            raise MalformedBsonError("The description of an update has names that are no texts, or fields that are no document")
        if changes is not None:
            if updated is not None:
                updated = encode_tree(changes.updated_fields(decode_tree(bytes(updated))))
            removed = changes.names(removed)
            truncated = [(kept, size) for name, size in truncated if (kept := changes.kept(name)) is not None]
        fields = "null" if updated is None else quick_quote(self._updated(updated))
        names = f"[{','.join(map(quote, removed))}]" if removed else "null"
        arrays = ",".join(f'{{"field":{quote(name)},"size":{size}}}' for name, size in truncated)
        return f'{{"removedFields":{names},"updatedFields":{fields},"truncatedArrays":{f"[{arrays}]" if arrays else "null"}}}'.encode()
