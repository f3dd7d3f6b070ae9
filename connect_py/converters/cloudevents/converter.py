"""Change events as CloudEvents, in structured mode (`io.debezium.converters.CloudEventsConverter`).

The envelope is JSON or Avro, and so are the data in it; ``json.`` and ``avro.`` prefix the properties of the converters that write them.
What is no change event (schema changes, heartbeats, transaction boundaries) becomes a null, as in Debezium. One thread uses an instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from connect_py.api.config import ConfigDef
from connect_py.converters.cloudevents import event
from connect_py.converters.cloudevents.config import CloudEventsOptions, Origin, cloud_events_options, config_def
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.json_read import Reader, has_decimals, parse_json, payload_reader
from connect_py.converters.json_schema import schema_from_json
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import struct
from connect_py.errors import ConfigError, DataError

#: Appended to a topic in the subject of the data's schema where the envelope is Avro too.
DATA_SUFFIX = "-data"
_SIZE = 1000
_EMPTY = struct([])


class _Plan(NamedTuple):
    """What events of one record schema, source schema and pair of names share."""

    data: Schema
    envelope: Schema
    held: tuple[Schema, Schema]  # keeps the ids of the cache's key from being given to other schemas


class CloudEventsConverter:
    """Converts values; keys are given another converter."""

    java_name = "io.debezium.converters.CloudEventsConverter"
    version = "3.6.1.Final"
    open_prefixes = ("json.", "avro.")

    def __init__(self) -> None:
        self._json_event = JsonConverter()
        self._json_data = JsonConverter()
        self._json_header = JsonConverter()
        self._avro: Any = None
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._readers: dict[bytes, tuple[Schema | None, Reader, bool]] = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the converter's own properties."""
        return config_def()

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        self._options: CloudEventsOptions = cloud_events_options(config)
        json = _below(config, "json.")
        if not self._options.is_avro:
            self._json_event.configure({**json, "schemas.enable": "false"}, is_key=is_key)
        if not self._options.is_data_avro:
            self._json_data.configure(json, is_key=True)
        if self._options.is_avro or self._options.is_data_avro:
            self._configure_avro(_below(config, "avro."))
        metadata = self._options.metadata
        origins = {
            "everything": metadata.everything,
            "id": metadata.id,
            "type": metadata.type,
            "traceparent": metadata.trace_parent,
            "dataSchemaName": metadata.data_schema_name,
        }
        self._from_headers = tuple(name for name, origin in origins.items() if origin is Origin.HEADER)

    def _configure_avro(self, config: dict[str, str]) -> None:
        if config.get("apicurio.registry.url"):
            raise ConfigError(
                "Apicurio's Avro converter is not available. Set avro.schema.registry.url to a registry with Confluent's protocol."
            )
        url = config.get("schema.registry.url", "")
        if not url.strip(" ,"):
            raise ConfigError("Need URL(s) for schema registry instances for CloudEvents when using Apache Avro")
        self._registry = ",".join(part.strip() for part in url.split(","))
        from connect_py.converters.avro.converter import AvroConverter  # needs packages of the extra `registry`

        self._avro = AvroConverter()
        self._avro.configure(config, is_key=False)

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect_data_with_headers`, of a record without headers."""
        return self.from_connect_data_with_headers(topic, (), schema, value)

    def from_connect_data_with_headers(
        self, topic: str, headers: Sequence[tuple[str, bytes | None]], schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the CloudEvent's bytes; None for what is no change event.

        Args:
            headers: of the record, converted.

        Raises:
            DataError: the record lacks what an event must have.
            RetriableError: the schema registry does not answer.
        """
        if schema is None or value is None:
            return None
        given = dict(headers)  # of several with one name, the last counts
        if self._options.metadata.everything is Origin.VALUE:
            if not (schema.name or "").endswith(".Envelope"):
                return None
        elif "source" not in given or "op" not in given:
            return None
        if schema.type is not Type.STRUCT or not isinstance(value, Struct):
            raise DataError("Mismatching schema")
        metadata = event.RecordMetadata(value, lambda name, is_optional: self._header(given, name, is_optional), self._from_headers)
        return self._written(topic, schema, value, metadata)

    def _header(self, headers: Mapping[str, bytes | None], name: str, is_optional: bool) -> Any:
        if name not in headers:
            if is_optional:
                return None
            error = DataError(f"Header `{name}` was not provided")
            error.java_name = "io.debezium.DebeziumException"
            raise error
        return self._json_header.to_connect_data("", headers[name])[1]

    def _written(self, topic: str, schema: Schema, record: Struct, metadata: event.RecordMetadata) -> bytes | None:
        options, source = self._options, metadata.source
        event.connector_of(source)
        content = "application/avro" if options.is_data_avro else "application/json"
        attributes = [
            event.generated_id(source) if options.metadata.id is Origin.GENERATE else metadata.id,
            f"/debezium/{source['connector']}/{source['name']}",
            event.SPEC_VERSION,
            event.generated_type(source) if options.metadata.type is Origin.GENERATE else metadata.type,
            event.time_text(source["ts_ms"]),
            content,
        ]
        plan = self._plan(schema, metadata, source)
        data: Any = event.data_value(plan.data, record)
        if options.is_data_avro:
            data = self._avro.from_connect_data(topic + DATA_SUFFIX if options.is_avro else topic, plan.data, data)
            attributes.append(f"{self._registry}/schemas/ids/{int.from_bytes(data[1:5], 'big')}")
        if options.has_tracing:
            attributes.append(metadata.trace_parent)
        if options.has_extensions:
            attributes += event.extension_values(metadata)
        _require(plan.envelope, attributes)
        if options.is_avro:
            written: bytes | None = self._avro.from_connect_data(topic, plan.envelope, Struct(plan.envelope, [*attributes, data]))
            return written
        if options.is_data_avro or not self._json_data.schemas_enabled:
            return self._json_event.from_connect_data(topic, plan.envelope, Struct(plan.envelope, [*attributes, data]))
        # the data's own schema goes with them, the envelope has none: its placeholder {} gives way
        outer = self._json_event.from_connect_data(topic, plan.envelope, Struct(plan.envelope, [*attributes, Struct(_EMPTY)])) or b""
        return outer[:-3] + (self._json_data.from_connect_data(topic, plan.data, data) or b"null") + b"}"

    def _plan(self, schema: Schema, metadata: event.RecordMetadata, source: Struct) -> _Plan:
        options = self._options
        connector = event.connector_of(source)
        data_name = metadata.data_schema_name
        if not isinstance(data_name, str):
            raise DataError(f"The name of the data's schema must be a text, not {data_name}")
        name = options.adjust(options.envelope_name if options.envelope_name is not None else event.envelope_name(source))
        key = (id(schema), id(source.schema), data_name, name)
        found = self._plans.get(key)
        if found is None:
            data = event.data_schema(schema, data_name, connector, is_whole=metadata.is_whole_record_data)
            has_own_schema = not options.is_data_avro and self._json_data.schemas_enabled
            envelope = event.event_schema(
                name,
                source.schema,
                None if options.is_data_avro else _EMPTY if has_own_schema else data,
                has_dataschema=options.is_data_avro,
                has_tracing=options.has_tracing,
                has_extensions=options.has_extensions,
            )
            if len(self._plans) >= _SIZE:
                self._plans.clear()
            found = self._plans[key] = _Plan(data, envelope, (schema, source.schema))
        return found

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return the event: a dict without a schema for JSON, a struct for Avro; `data` in it are read too.

        Raises:
            DataError: the bytes are no CloudEvent.
            RetriableError: the schema registry does not answer.
        """
        return self._from_avro(topic, data) if self._options.is_avro else self._from_json(topic, data)

    def _from_json(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        _, found = self._json_event.to_connect_data(topic, data)
        if not isinstance(found, dict) or not all(name in found for name in event.REQUIRED):
            raise _no_event(found)
        assert data is not None
        if "data" not in found:
            raise DataError("The CloudEvent has no data")
        if self._options.is_data_avro:
            found["data"] = self._avro.to_connect_data(topic, _decoded(found["data"]))[1]
        elif self._json_data.schemas_enabled:
            found["data"] = self._payload(found["data"], data)
        return None, found

    def _payload(self, node: Any, data: bytes) -> Any:
        if not isinstance(node, dict) or node.keys() != {"schema", "payload"}:
            raise DataError("The data of the CloudEvent are not schema and payload. If they are plain JSON, set json.schemas.enable=false.")
        key = orjson.dumps(node["schema"])
        known = self._readers.get(key)
        if known is None:
            schema = schema_from_json(node["schema"])
            known = schema, payload_reader(schema), has_decimals(schema)
            if len(self._readers) >= _SIZE:
                self._readers.clear()
            self._readers[key] = known
        _, read, is_exact = known
        return read(parse_json(data, exact=True)["data"]["payload"] if is_exact else node["payload"])

    def _from_avro(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        schema, found = self._avro.to_connect_data(topic, data)
        wanted = self._options.envelope_name
        name = (schema.name or "") if schema is not None else ""
        is_named = name == wanted if wanted is not None else name.endswith(event.ENVELOPE_SUFFIX)
        if not isinstance(found, Struct) or not is_named or any(found.schema.field(each) is None for each in event.REQUIRED):
            raise _no_event(found)
        data_schema, value = self._avro.to_connect_data(topic + DATA_SUFFIX, found["data"])
        fields = [(f.name, data_schema if f.name == "data" else f.schema) for f in found.schema.fields]
        outer = found.schema
        made = struct(fields, name=outer.name, version=outer.version, doc=outer.doc, parameters=outer.parameters)
        return made, Struct(made, [value if f.name == "data" else found[f.name] for f in outer.fields])


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def _require(envelope: Schema, attributes: Sequence[Any]) -> None:
    """Refuse a null where the envelope has none, in the words of `ConnectSchema.validateValue`."""
    for field, value in zip(envelope.fields, attributes, strict=False):
        if value is None and not field.schema.optional:
            raise DataError(f'Invalid value: null used for required field: "{field.name}", schema type: {field.schema.type.name}')


def _no_event(found: Any) -> DataError:
    return DataError(f"A deserialized record's value is not a CloudEvent: value={'null' if found is None else found}")


def _decoded(text: Any) -> bytes | None:
    from base64 import b64decode

    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise DataError("The data of the CloudEvent are not base64, as Avro in JSON is") from None
