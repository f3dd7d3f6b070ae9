"""Turn documents of an outbox collection into messages (`io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.schema import OPTIONAL_STRING
from connect_py.errors import DataError
from connect_py.transforms import tracing
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.bson_schema import Builder, DocumentSchemas
from connect_py.transforms.bson_text import Document, indented_text, kind_of, parse_document
from connect_py.transforms.debezium import DebeziumTransform, option
from connect_py.transforms.outbox import EventRouter
from connect_py.transforms.outbox_keys import KEYS as TABLE_KEYS

log = logging.getLogger(__name__)

_TIMESTAMP = Schema(Type.INT64, name="io.debezium.time.Timestamp", version=1)
_S, _L, _B = ConfigType.STRING, ConfigType.LIST, ConfigType.BOOLEAN
_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH

#: Properties → those of the outbox table's router, which does the rest. Others of the same names are taken over.
_NAMES = {
    "collection.field.event.id": "table.field.event.id",
    "collection.field.event.key": "table.field.event.key",
    "collection.field.event.type": "table.field.event.type",
    "collection.field.event.timestamp": "table.field.event.timestamp",
    "collection.field.event.payload": "table.field.event.payload",
    "collection.field.event.schema.version": "table.field.event.schema.version",
    "collection.fields.additional.placement": "table.fields.additional.placement",
    "collection.field.additional.missing": "table.field.additional.missing",
}
_TAKEN_OVER = (
    "table.op.invalid.behavior",
    "route.by.field",
    "route.topic.regex",
    "route.topic.replacement",
    "route.tombstone.on.empty.payload",
    *(row[0] for row in tracing.ROWS),
)
_COLLECTION: tuple[tuple[str, ConfigType, Any, Importance, str, str], ...] = (
    ("collection.field.event.id", _S, "_id", _LOW, "Event ID Field", "The field with the event's id; it becomes the header id."),
    ("collection.field.event.key", _S, None, _LOW, "Event Key Field", "The field with the message's key; aggregateid without it."),
    ("collection.field.event.type", _S, "type", _LOW, "Event Type Field", "The field with the event's type."),
    ("collection.field.event.payload", _S, "payload", _LOW, "Event Payload Field", "The field with the message's value."),
    (
        "collection.field.event.timestamp",
        _S,
        None,
        _MEDIUM,
        "Event Timestamp Field",
        "The field with the message's time, a 64-bit number of milliseconds; without it the time at which the connector read it counts.",
    ),
    (
        "collection.fields.additional.placement",
        _L,
        None,
        _HIGH,
        "Settings for each additional column in the outbox table",
        "What becomes of other fields, as field:header, field:envelope or field:partition, and :alias for another name.",
    ),
    (
        "collection.field.additional.missing",
        _S,
        "error",
        _MEDIUM,
        "Behavior when an additional field is missing in the change data",
        "What a missing additional field means: error fails, ignore goes on without it.",
    ),
    (
        "collection.field.event.schema.version",
        _S,
        None,
        _LOW,
        "Event Schema Version Field",
        "The field with the version of the schema that enveloped messages get, a 32-bit number.",
    ),
    (
        "table.op.invalid.behavior",
        _S,
        "warn",
        _MEDIUM,
        "Behavior when capturing an unexpected outbox event",
        "What an update of a document means, which an outbox collection never sees: warn and error log it, fatal fails.",
    ),
    (
        "collection.expand.json.payload",
        _B,
        False,
        _MEDIUM,
        "Expand Payload escaped string as real JSON",
        "Whether a payload that is a document becomes a struct; otherwise it becomes canonical extended JSON.",
    ),
)


class MongoEventRouter(DebeziumTransform):
    """Makes messages of documents that an outbox collection receives; see `EventRouter` for what becomes of their fields."""

    java_name = "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter"
    KEYS = (
        *(
            option(name, type_, default, importance, Width.MEDIUM, title, text, group="Collection", order=order)
            for order, (name, type_, default, importance, title, text) in enumerate(_COLLECTION, 1)
        ),
        *(key for key in TABLE_KEYS if key.group in ("Router", "Tracing")),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        parsed = self.config_def().parse(config)
        table = {_NAMES[name]: text for name, text in config.items() if name in _NAMES}
        table |= {name: text for name, text in config.items() if name in _TAKEN_OVER}
        table.setdefault("table.field.event.id", "_id")
        self._router = _Documents(
            parsed["collection.field.event.timestamp"],
            parsed["collection.field.event.payload"],
            expands=parsed["collection.expand.json.payload"],
        )
        self._router.configure(table)

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return the message; None for deletes, tombstones and updates; what is no change event is left alone.

        Raises:
            DataError: a field is missing or of the wrong type, `after` is no document, or an update came and they are fatal.
        """
        return self._router.apply(record)

    def close(self) -> None:
        self._router.close()


class _Documents(EventRouter):
    """The router of an outbox table, for rows that are documents."""

    def __init__(self, timestamp: str | None, payload: str, *, expands: bool) -> None:
        self._timestamp_field = timestamp
        self._payload = payload
        self._expands_documents = expands
        self._schemas_of_documents = DocumentSchemas()

    def converted(self, record: AnyRecord) -> AnyRecord:
        """Return the change event with `after` as a struct; as it was, with a warning, where that cannot be had."""
        try:
            return self._with_struct(record)
        except DataError as error:
            log.warning("Failed to expand after field: %s", error)
            return record

    def _with_struct(self, record: AnyRecord) -> AnyRecord:
        envelope: Struct = record.value
        index = envelope.schema.index_of("after")
        after = envelope.values[index]
        if not isinstance(after, str):
            raise DataError("Unable to expand non-String after field")
        row = self._row(parse_document(after), envelope.schema.fields[index].schema.name)
        fields = tuple(Field("after", row.schema) if field.name == "after" else field for field in envelope.schema.fields)
        schema = Schema(Type.STRUCT, name=envelope.schema.name, fields=fields)
        values = [row if place == index else value for place, value in enumerate(envelope.values)]
        return replace(record, value_schema=schema, value=Struct(schema, values))

    def _row(self, document: Document, name: str | None) -> Struct:
        schemas = self._schemas_of_documents
        builder = Builder(name, optional=False)
        as_text = not self._expands_documents and isinstance(document.get(self._payload), dict)
        timed = self._timestamp_field if self._timestamp_field in document else None
        for field in document:
            if field == timed:
                builder.field(field, _TIMESTAMP)
            elif field == self._payload and as_text:
                builder.field(field, OPTIONAL_STRING)
        schemas.add_fields(document, builder)
        row = Struct(builder.build())
        rest = dict(document)
        if timed is not None:
            moment = rest.pop(timed)
            if kind_of(moment) != "INT64":
                raise DataError(f"Value expected to be of type INT64 is of unexpected type {kind_of(moment)}")
            row[timed] = moment.value
        if as_text and self._payload != timed:
            row[self._payload] = indented_text(rest.pop(self._payload))
        schemas.fill(rest, row)
        return row
