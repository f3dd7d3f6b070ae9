"""The properties of `io.debezium.converters.CloudEventsConverter` (`CloudEventsConverterConfig.java`)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from connect_py.converters.base import CONVERTER_TYPE
from connect_py.data.avro_names import ADJUSTMENTS
from connect_py.errors import ConfigError

DEFAULT_METADATA = "value,id:generate,type:generate,traceparent:header,dataSchemaName:generate"


def _key(name: str, type_: ConfigType, default: Any, importance: Importance, text: str) -> ConfigKey:
    return ConfigKey(name, type_, default, importance, text, display_name=name)


_HIGH, _LOW = Importance.HIGH, Importance.LOW

KEYS = (
    CONVERTER_TYPE,
    _key("serializer.type", ConfigType.STRING, "json", _HIGH, "Specify a serializer to serialize CloudEvents values"),
    _key(
        "data.serializer.type", ConfigType.STRING, "json", _HIGH, "Specify a serializer to serialize the data field of CloudEvents values"
    ),
    _key(
        "opentelemetry.tracing.attributes.enable",
        ConfigType.BOOLEAN,
        False,
        _HIGH,
        "Specify whether to include OpenTelemetry tracing attributes to a cloud event",
    ),
    _key(
        "extension.attributes.enable",
        ConfigType.BOOLEAN,
        True,
        _HIGH,
        "Specify whether to include extension attributes to a cloud event",
    ),
    _key(
        "schema.name.adjustment.mode",
        ConfigType.STRING,
        "avro",
        _LOW,
        "Specify how schema names should be adjusted for compatibility with the message converter used by the connector, including:'avro' "
        "replaces the characters that cannot be used in the Avro type name with underscore (default)'none' does not apply any adjustment",
    ),
    _key(
        "schema.cloudevents.name",
        ConfigType.STRING,
        None,
        _LOW,
        "Specify CloudEvents schema name under which the schema is registered in a Schema Registry",
    ),
    _key(
        "schema.data.name.source.header.enable",
        ConfigType.BOOLEAN,
        False,
        _LOW,
        "Specify whether CloudEvents.data schema name can be retrieved from the header",
    ),
    _key("metadata.source", ConfigType.LIST, DEFAULT_METADATA, _HIGH, "Specify from where to retrieve metadata"),
)


class Origin(enum.Enum):
    """Where a piece of metadata comes from."""

    VALUE = "value"
    HEADER = "header"
    GENERATE = "generate"


@dataclass(frozen=True)
class MetadataSource:
    """``metadata.source``, read: one origin for all, and those of the attributes that may have their own."""

    everything: Origin
    id: Origin
    type: Origin
    trace_parent: Origin
    data_schema_name: Origin

    @property
    def reads_headers(self) -> bool:
        """Whether anything is read from a header."""
        return Origin.HEADER in (self.everything, self.id, self.type, self.trace_parent, self.data_schema_name)


@dataclass(frozen=True)
class CloudEventsOptions:
    """The converter's own properties, read.

    Attributes:
        is_avro: whether the envelope is Avro, else JSON.
        is_data_avro: the same of the data in it.
        adjust: makes a schema's name fit (``schema.name.adjustment.mode``).
        envelope_name: of the envelope's schema, None where it follows from server and database.
    """

    is_avro: bool
    is_data_avro: bool
    has_tracing: bool
    has_extensions: bool
    adjust: Callable[[str], str]
    envelope_name: str | None
    metadata: MetadataSource


def config_def() -> ConfigDef:
    """Return every property but those below ``json.`` and ``avro.``, which are the other converters'."""
    return ConfigDef(KEYS)


def cloud_events_options(config: Mapping[str, str]) -> CloudEventsOptions:
    """Read the converter's own properties.

    Raises:
        ConfigError: a value is none of those allowed, or JSON data are asked for in an Avro envelope.
    """
    values = config_def().parse({**{name: config[name] for name in config if name != "converter.type"}, "converter.type": "value"})
    is_avro = _is_avro("serializer.type", values["serializer.type"])
    is_data_avro = _is_avro("data.serializer.type", values["data.serializer.type"])
    if is_avro and not is_data_avro:
        raise ConfigError("Cannot use 'application/json' data content type within Avro events")
    mode = (values["schema.name.adjustment.mode"] or "").strip().lower()
    if mode not in ADJUSTMENTS:
        allowed = ", ".join(ADJUSTMENTS)
        raise ConfigError(f"Invalid value {mode} for configuration schema.name.adjustment.mode: it must be one of {allowed}")
    metadata = metadata_source(
        values["metadata.source"],
        has_tracing=values["opentelemetry.tracing.attributes.enable"],
        has_data_name=values["schema.data.name.source.header.enable"],
    )
    return CloudEventsOptions(
        is_avro,
        is_data_avro,
        values["opentelemetry.tracing.attributes.enable"],
        values["extension.attributes.enable"],
        lambda name: ADJUSTMENTS[mode](name, "."),
        values["schema.cloudevents.name"],
        metadata,
    )


def _is_avro(name: str, value: str | None) -> bool:
    wanted = (value or "").strip().lower()
    if wanted not in ("json", "avro"):
        raise ConfigError(f"Invalid value {value} for configuration {name}: it must be json or avro")
    return wanted == "avro"


def metadata_source(parts: Sequence[str], *, has_tracing: bool, has_data_name: bool) -> MetadataSource:
    """Read ``metadata.source``.

    Args:
        parts: the origin of everything, then ``attribute:origin`` pairs.
        has_tracing: without tracing attributes, ``traceparent:header`` has no effect (it is in the default).
        has_data_name: the same of ``dataSchemaName:header``.

    Raises:
        ConfigError: an origin or attribute is not allowed.
    """
    everything = _origin(parts[0]) if parts else None
    if everything is None:
        raise ConfigError(f"Global metadata source `{parts[0] if parts else ''}` is not valid. Set metadata.source to value or header.")
    if everything is Origin.GENERATE:
        raise ConfigError("Global metadata source can't be GENERATE")
    own: dict[str, Origin] = {}
    for part in parts[1:]:
        attribute, _, text = part.partition(":")
        origin = _origin(text)
        if origin is None:
            raise ConfigError(f"Field source `{text}` is not valid")
        if origin is Origin.VALUE:
            raise ConfigError("Field metadata source can't be VALUE")
        if attribute not in ("id", "type", "traceparent", "dataSchemaName"):
            raise ConfigError(f"Field `{attribute}` is not allowed to set custom source")
        own[attribute] = origin
    trace_parent = own.get("traceparent", everything)
    data_name = own.get("dataSchemaName", everything)
    return MetadataSource(
        everything,
        own.get("id", everything),
        own.get("type", everything),
        Origin.GENERATE if trace_parent is Origin.HEADER and not has_tracing else trace_parent,
        Origin.GENERATE if data_name is Origin.HEADER and not has_data_name else data_name,
    )


def _origin(text: str) -> Origin | None:
    wanted = text.strip().lower()
    return next((origin for origin in Origin if origin.value == wanted), None)
