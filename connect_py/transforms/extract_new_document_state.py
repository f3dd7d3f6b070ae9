"""Turn MongoDB's change events into plain documents (`io.debezium.connector.mongodb.transforms.ExtractNewDocumentState`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Header, Importance, Width
from connect_py.api.config import parse_value
from connect_py.data import Schema, Struct
from connect_py.data.avro_names import ADJUSTMENTS
from connect_py.data.schema import STRING
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, Plugin, require_struct
from connect_py.transforms.bson_schema import Builder, DocumentSchemas
from connect_py.transforms.bson_text import Bson, Document, parse_document
from connect_py.transforms.bson_text import parse_value as parse_bson
from connect_py.transforms.debezium import SharedHeaders, is_envelope, option
from connect_py.transforms.extract_new_record_state import ExtractNewRecordState, added_names, parse_references
from connect_py.transforms.flatten import FlattenValue

_PURPOSE = "source field insertion"
_ENCODINGS = ("array", "document")
_WITH_ID = "delete.tombstone.handling.mode.rewrite-with-id"
_ADJUSTMENT = "field.name.adjustment.mode"


class ExtractNewDocumentState(Plugin):
    """Leaves the document after a change, with a schema of its own; of an update without the document, what it changed.

    The key becomes a struct with the document's `_id` in its own type. Records that are no change events pass.
    """

    java_name = "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState"
    version = "3.6.1.Final"
    KEYS = (
        *ExtractNewRecordState.KEYS[:6],
        option(
            "array.encoding",
            ConfigType.STRING,
            "array",
            Importance.MEDIUM,
            Width.SHORT,
            "Array encoding",
            "array (default) - arrays stay arrays, whose elements must be of one type. document - an array becomes a struct with the "
            "fields _0, _1 and so on, so its elements may be of any types.",
        ),
        option(
            "flatten.struct",
            ConfigType.BOOLEAN,
            False,
            Importance.LOW,
            Width.SHORT,
            "Flatten struct",
            "Whether nested documents become fields of the outer one, their names joined.",
        ),
        option(
            "flatten.struct.delimiter",
            ConfigType.STRING,
            "_",
            Importance.LOW,
            Width.SHORT,
            "Delimiter for flattened struct",
            "What joins the names of a flattened document.",
        ),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        # understood, though Debezium does not list them
        self._with_id = bool(parse_value(_WITH_ID, config.get(_WITH_ID, "false"), ConfigType.BOOLEAN))
        self._adjustment = config.get(_ADJUSTMENT, "none").strip().lower()
        super().configure(config)

    def use(self, config: Mapping[str, Any]) -> None:
        if config["array.encoding"].strip().lower() not in _ENCODINGS:
            raise ConfigError("Unable to validate config.")
        if self._adjustment not in ADJUSTMENTS:
            raise ConfigError(f"{_ADJUSTMENT} is {self._adjustment}; it must be one of {', '.join(ADJUSTMENTS)}")
        self._mode: str = config["delete.tombstone.handling.mode"].lower()
        self._rewrites = self._mode in ("rewrite", "rewrite-with-tombstone")
        self._fields = parse_references(config["add.fields.prefix"], config["add.fields"])
        self._headers = parse_references(config["add.headers.prefix"], config["add.headers"])
        self._shared = SharedHeaders()
        self._delimiter: str = config["flatten.struct.delimiter"]
        self._flatten: FlattenValue | None = None
        if config["flatten.struct"]:
            self._flatten = FlattenValue()
            self._flatten.configure({"delimiter": self._delimiter})
        self._adjust = ADJUSTMENTS[self._adjustment]
        adjusts = self._adjustment != "none"
        self._schemas = DocumentSchemas(
            as_documents=config["array.encoding"].strip().lower() == "document",
            field_name=(lambda name: self._adjust(name, "")) if adjusts else str,
            leaves_out_empty_arrays=adjusts,
        )

    @property
    def added_fields(self) -> frozenset[str]:
        """Names of the fields that documents get in addition to their own."""
        return added_names(self._fields, rewrites=self._rewrites)

    @property
    def drops_deletes(self) -> bool:
        """Whether nothing is left of a delete."""
        return self._mode == "drop"

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return the document, what is left of a delete, or None.

        Raises:
            DataError: a text is no extended JSON, or a document has no schema: an array of several types, say.
        """
        name = None if record.key_schema is None else record.key_schema.name
        if name is None or not name.endswith(".Key"):
            return record
        record = self._with_headers(record)
        key = {"id": parse_bson(_id_of(record))}
        if record.value is None:
            return self._made(record, key, {}) if self._mode == "rewrite-with-tombstone" else None
        if not is_envelope(record.value_schema):
            return record
        envelope = require_struct(record.value, _PURPOSE)
        after, description = _part(envelope, "after"), _part(envelope, "updateDescription")
        is_deletion = after is None and description is None
        if is_deletion and self._mode == "drop":
            return None
        document: Document = {}
        if is_deletion:
            before = _part(envelope, "before")
            if self._rewrites and before is not None:
                document = parse_document(before)
        elif after is not None:
            document = parse_document(after)
        else:
            document = self._changes(require_struct(description, "updateDescription"), key)
        if self._rewrites:
            document["__deleted"] = Bson("BOOLEAN", is_deletion)
            if self._with_id and "_id" not in document:
                document["_id"] = key["id"]
        return self._made(record, key, document)

    def _with_headers(self, record: AnyRecord) -> AnyRecord:
        if not self._headers:
            return record
        if record.value is None:
            added = self._shared.before(record) + [Header(item.name, "d", STRING) for item in self._headers if item.field == "op"]
        else:
            envelope = require_struct(record.value, _PURPOSE)
            schemas = ((reference, reference.schema(envelope.schema)) for reference in self._headers)
            added = [Header(reference.name, reference.value(envelope), schema) for reference, schema in schemas if schema is not None]
            self._shared.remember(record, envelope["op"] if envelope.schema.field("op") else None, added)
        return replace(record, headers=[*record.headers, *added])

    def _changes(self, description: Struct, key: Document) -> Document:
        """Return what an update changed: paths stay names, but for the delimiter of flattened documents."""
        updated = description["updatedFields"]
        document = {} if updated is None else parse_document(updated)
        for name in description["removedFields"] or ():
            document.pop(name, None)
        document.setdefault("_id", key["id"])
        if self._flatten is None:
            return document
        return {name.replace(".", self._delimiter): value for name, value in document.items()}

    def _made(self, record: AnyRecord, key: Document, document: Document) -> AnyRecord:
        key_builder = Builder(optional=False)
        self._schemas.add_fields(key, key_builder)
        key_struct = Struct(key_builder.build())
        self._schemas.fill(key, key_struct)
        schema: Schema | None = None
        value: Struct | None = None
        if document:
            value = self._value(record, document)
            schema = value.schema
        made = replace(record, key_schema=key_struct.schema, key=key_struct, value_schema=schema, value=value)
        return made if self._flatten is None else self._flatten.apply(made)

    def _value(self, record: AnyRecord, document: Document) -> Struct:
        envelope_schema = record.value_schema
        assert envelope_schema is not None, "a document comes from a change event"
        name = (envelope_schema.name or "").removesuffix(".Envelope")
        builder = Builder(".".join(self._adjust(part, ".") for part in name.split(".")), optional=False)
        self._schemas.add_fields(document, builder)
        for reference in self._fields:
            wanted = reference.schema(envelope_schema)
            if wanted is not None:
                builder.field(reference.name, replace(wanted, fields=()))
        value = Struct(builder.build())
        self._schemas.fill(document, value)
        for reference in self._fields:
            found = reference.value(record.value)
            if isinstance(found, Struct):  # the reference copies the basics of a schema, which fields are not
                raise DataError("Struct schemas do not match.")
            value[reference.name] = found
        return value


def _id_of(record: AnyRecord) -> str:
    found = require_struct(record.key, "field extraction")
    if found.schema.field("id") is None:
        raise DataError("Unknown field: id")
    return str(found["id"])


def _part(envelope: Struct, name: str) -> Any:
    """Return a part of a change event; None where an event has no such part."""
    if envelope.schema.field(name) is None:
        raise DataError(f"Unknown field: {name}")
    return envelope[name]
