"""Documents as records show them: text of `before`, `after` and `updatedFields`, and keys (mongodb.md §3, §4.3). Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

from connect_py.api.record import EncodedRow
from connect_py.converters.json_write import quote
from connectors.engine.encode.slow import quick_quote
from connectors.mongodb.collection import Collection
from connectors.mongodb.values.bson_forms import Form
from connectors.mongodb.values.bson_json import bson_json
from connectors.mongodb.values.bson_tree import decode_tree, encode_tree
from connectors.mongodb.values.change_event import elements_of, fields_of
from connectors.mongodb.values.field_rules import FieldChanges

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
        """A whole document as a JSON string. Raises MalformedBsonError; DataError where the rules cannot be applied."""
        if changes is not None:
            raw = encode_tree(changes.document(decode_tree(raw)))
        return quick_quote(self.text(raw)).encode()

    def key(self, raw: bytes, collection: Collection) -> bytes:
        """The key of a document, or of a `documentKey`. Raises MalformedBsonError."""
        if raw[5:9] != _ID:
            raw = bson.encode({"_id": bson.decode(raw, RAW).get("_id")})
        return collection.key_start + quick_quote(self._id(raw[4], raw, 9, len(raw) - 1)).encode() + collection.key_end

    def session(self, raw: bytes) -> str:
        """Text of an event's `lsid`."""
        return self._session(raw)

    def reads(self, raws: Iterable[bytes], collection: Collection, end: bytes) -> list[EncodedRow]:
        """Records of documents that were read; `end` is `Collection.read_end`. Raises as `quoted`."""
        route, start, changes = collection.route, collection.read_start, collection.changes
        key, quoted = self.key, self.quoted
        return [(route, key(raw, collection), b"".join((start, quoted(raw, changes), end))) for raw in raws]

    def update(self, description: bytes, changes: FieldChanges | None) -> bytes:
        """The JSON text of an `updateDescription`. Raises as `quoted`."""
        told = fields_of(description)
        updated: bytes | None = told.get("updatedFields")
        removed: list[str] = elements_of(told.get("removedFields"))
        truncated = [(entry["field"], int(entry["newSize"])) for entry in elements_of(told.get("truncatedArrays"))]
        if changes is not None:
            if updated is not None:
                updated = encode_tree(changes.updated_fields(decode_tree(bytes(updated))))
            removed = changes.names(removed)
            truncated = [(kept, size) for name, size in truncated if (kept := changes.kept(name)) is not None]
        fields = "null" if updated is None else quick_quote(self._updated(updated))
        names = f"[{','.join(map(quote, removed))}]" if removed else "null"
        arrays = ",".join(f'{{"field":{quote(name)},"size":{size}}}' for name, size in truncated)
        return f'{{"removedFields":{names},"updatedFields":{fields},"truncatedArrays":{f"[{arrays}]" if arrays else "null"}}}'.encode()
