"""Turn rows of an outbox table into messages (`io.debezium.transforms.outbox.EventRouter`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import Header
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.avro_names import ADJUSTMENTS
from connect_py.data.java_text import to_text
from connect_py.data.schema import STRING
from connect_py.errors import DataError
from connect_py.transforms import json_payload, tracing
from connect_py.transforms.base import AnyRecord, require_struct
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, change_of, renaming, typed
from connect_py.transforms.json_payload import JsonStructs
from connect_py.transforms.outbox_keys import KEYS, RULES, Placement, parse_placements

log = logging.getLogger(__name__)

#: Envelope schemas remembered; there is one a payload schema.
_MAX_SCHEMAS = 10_000
#: Time types of the timestamp column, and how many of their units are a millisecond.
_TIMESTAMPS = {"io.debezium.time.Timestamp": 1, "io.debezium.time.MicroTimestamp": 1000, "io.debezium.time.NanoTimestamp": 1_000_000}


class _Columns(NamedTuple):
    """The columns that have a meaning."""

    id: str
    key: str | None
    payload: str
    timestamp: str | None
    version: str | None
    route: str


class EventRouter(DebeziumTransform):
    """Makes messages of rows that an outbox table receives: the payload column is the value, another the key, a third names the topic."""

    java_name = f"{DEBEZIUM}outbox.EventRouter"
    KEYS = KEYS
    RULES = RULES

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        mode = config.get("field.name.adjustment.mode", "none").strip().lower()
        adjust = ADJUSTMENTS.get(mode, ADJUSTMENTS["none"])
        self._structs = JsonStructs(
            null_as_bytes=config.get("table.json.payload.null.behavior", "").strip().lower() == "optional_bytes",
            field_name=lambda name: adjust(name, ""),
        )
        self._tracing = tracing.ActivateTracingSpan() if tracing.is_available() else None
        if self._tracing is not None:
            self._tracing.configure({tracing.REQUIRED: "true", **{k: v for k, v in config.items() if k.startswith("tracing.")}})
        super().configure(config)

    def use(self, config: Mapping[str, Any]) -> None:
        def column(name: str) -> str | None:
            text: str | None = config[f"table.field.event.{name}"]
            return text or None

        self._columns = _Columns(
            config["table.field.event.id"],
            column("key"),
            config["table.field.event.payload"],
            column("timestamp"),
            column("schema.version"),
            config["route.by.field"],
        )
        self._expands: bool = config["table.expand.json.payload"]
        self._behavior: str = config["table.op.invalid.behavior"].strip().lower()
        self._tombstones: bool = config["route.tombstone.on.empty.payload"]
        self._placements: list[Placement] = parse_placements(config["table.fields.additional.placement"])
        self._ignores_missing = config["table.field.additional.missing"].strip().lower() == "ignore"
        self._has_envelope = any(placement.where == "envelope" for placement in self._placements)
        self._topic = renaming(config["route.topic.regex"], config["route.topic.replacement"])
        self._schemas: dict[Any, Schema] = {}

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return the message; None for deletes, tombstones and updates; what is no change event is left alone.

        Raises:
            DataError: a column is missing or of the wrong type, or an update came and they are fatal.
        """
        if record.value is None:
            return None
        envelope = change_of(record)
        if envelope is None:
            return record
        operation = typed(envelope, "op", Type.STRING)
        if operation == "d":
            return None
        if operation == "u":
            self._refuse(record)
            return None
        record = self.converted(record)
        if self._tracing is not None:
            record = self._tracing.apply(record)
        return self._message(record, envelope, require_struct(record.value["after"], "Read Outbox Event"))

    def converted(self, record: AnyRecord) -> AnyRecord:
        """Return the change event with a struct for `after`, where a database's events have none."""
        return record

    def _refuse(self, record: AnyRecord) -> None:
        if self._behavior == "fatal":
            raise DataError(f"Unexpected update message received {to_text(record.key_schema, record.key)}, fail.")
        level = logging.ERROR if self._behavior == "error" else logging.WARNING
        log.log(level, "Unexpected update of a row in the outbox table, topic %s; it was ignored", record.topic)

    def _message(self, record: AnyRecord, envelope: Struct, row: Struct) -> AnyRecord:
        columns = self._columns
        field = row.schema.field(columns.payload)
        if field is None:
            raise DataError(f"Unable to find payload field {columns.payload} in event")
        payload_schema: Schema | None = field.schema
        timestamp = self._timestamp(envelope, row)
        headers = [*record.headers, Header("id", row[columns.id], row.schema.fields[row.schema.index_of(columns.id)].schema)]
        payload = row[columns.payload]
        if self._expands and payload is not None:
            payload_schema, payload = self._expanded(payload_schema, payload)
        route = typed(row, columns.route, Type.STRING)
        value_schema, value = payload_schema, payload
        if self._has_envelope:
            value_schema = self._envelope_schema(payload_schema, row, route)
            values = [payload, *[None] * (len(value_schema.fields) - 1)]
            for placement in self._placed(row, "envelope"):
                values[value_schema.index_of(placement.alias)] = row[placement.column]
            value = Struct(value_schema, values)
        for placement in self._placed(row, "header"):
            index = row.schema.index_of(placement.column)
            headers.append(Header(placement.alias, row[placement.column], row.schema.fields[index].schema))
        partition: Any = None
        for placement in self._placed(row, "partition"):
            partition = typed(row, placement.column, Type.INT32)
        if self._tombstones and (payload is None or not to_text(payload_schema, payload).strip()):
            value_schema, value = None, None
        key_schema, key = self._key(row)
        return replace(
            record,
            topic=self._routed(route),
            partition=partition,
            key_schema=key_schema,
            key=key,
            value_schema=value_schema,
            value=value,
            timestamp=timestamp,
            headers=headers,
        )

    def _placed(self, row: Struct, where: str) -> list[Placement]:
        """Return the additional columns of one kind; a missing one is left out where that is allowed, and found out later where not."""
        wanted = [placement for placement in self._placements if placement.where == where]
        return [p for p in wanted if row.schema.field(p.column)] if self._ignores_missing else wanted

    def _key(self, row: Struct) -> tuple[Schema, Any]:
        column = self._columns.key
        return (STRING, None) if column is None else (row.schema.fields[row.schema.index_of(column)].schema, row[column])

    def _routed(self, route: str | None) -> str:
        if route is None:
            raise DataError(f"The column {self._columns.route} is null in a row of the outbox table: nothing names the topic")
        renamed = self._topic(route)
        return route if renamed is None else renamed

    def _timestamp(self, envelope: Struct, row: Struct) -> int | None:
        column = self._columns.timestamp
        if column is not None:
            field = row.schema.field(column)
            if field is None:
                raise DataError(f"Unable to find timestamp field {column} in event")
            value = typed(row, column, Type.INT64)
            if value is not None:
                return _millis(field, value)
        found: int | None = typed(envelope, "ts_ms", Type.INT64)
        return found

    def _expanded(self, schema: Schema | None, payload: Any) -> tuple[Schema | None, Any]:
        """The payload as a struct; as it was when it is no JSON object, which is worth a warning. An empty array loses its schema."""
        if not isinstance(payload, str):
            log.warning("Expand JSON payload is turned on but the payload is not a string")
            return schema, payload
        try:
            node = json_payload.parse(payload)
            found = self._structs.schema(self._columns.payload, node)
            if found is None:
                log.warning("JSON expansion failed: an empty array tells nothing of its elements")
                return (schema if self._has_envelope else None), payload
            return found, self._structs.struct(node, found)
        except DataError as error:
            log.warning("JSON expansion failed: %s", error)
            return schema, payload

    def _envelope_schema(self, payload: Schema | None, row: Struct, route: str | None) -> Schema:
        """Return the schema of an enveloped value. One is made a payload schema or version, and named by the first route that had it."""
        assert payload is not None
        column = self._columns.version
        version = None if column is None else typed(row, column, Type.INT32)
        cached = payload if column is None else version
        found = self._schemas.get(cached)
        if found is None:
            fields = [Field("payload", payload)]
            for placement in self._placed(row, "envelope"):
                field = row.schema.field(placement.column)
                if field is None:
                    raise DataError(f"Unable to find field {placement.column} in event")
                fields.append(Field(placement.alias, field.schema))
            found = Schema(Type.STRUCT, name=_schema_name(row.schema.name, route), version=version, fields=tuple(fields))
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[cached] = found
        return found


def _millis(field: Field, value: int) -> int:
    name = field.schema.name
    if name is None:
        raise DataError(f"Unsupported field type {field.schema.type.name} (without logical schema name) for event timestamp")
    if name not in _TIMESTAMPS:
        raise DataError(f"Unsupported field type {name} for event timestamp")
    unit = _TIMESTAMPS[name]
    return value // unit if value >= 0 else -(-value // unit)  # Java's division goes towards zero


def _schema_name(row: str | None, route: str | None) -> str:
    """Return the route between the table and the last part of the row's schema name."""
    if row is None:
        return str(route)
    before, dot, last = row.rpartition(".")
    return f"{before}{dot}{route}.{last}"
