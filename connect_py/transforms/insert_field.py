"""Insert fields with the record's metadata or a fixed text (`org.apache.kafka.connect.transforms.InsertField`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from connect_py.api import ConfigType, Importance, Route, SinkRecord, SourceRecord
from connect_py.api.config import invalid
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.json_rows import NULL, NeedsRecord, appendix, label, quoted
from connect_py.data.schema import TIMESTAMP, SchemaCache
from connect_py.data.times import millis_to_timestamp
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import (
    KAFKA,
    REPLACE_NULL,
    AnyRecord,
    OneSide,
    field_values,
    key,
    like,
    require_map,
    require_schema,
    require_struct,
    require_struct_schema,
)

_SUFFIX = "Suffix with <code>!</code> to make this a required field, or <code>?</code> to keep it optional (the default)."
#: Property → schema of the field, in the order in which fields are added.
_SCHEMAS = {
    "topic.field": Schema(Type.STRING),
    "partition.field": Schema(Type.INT32),
    "offset.field": Schema(Type.INT64),
    "timestamp.field": Schema(Type.INT64, name=TIMESTAMP, version=1),
    "static.field": Schema(Type.STRING),
}


class _Insertion(NamedTuple):
    field: Field
    value: Callable[[AnyRecord], Any]
    is_timestamp: bool


def _text(insertion: _Insertion, value: Any) -> bytes:
    if value is None and not insertion.field.schema.optional:
        raise NeedsRecord(f"There is no value for the required field {insertion.field.name}")
    return NULL if value is None else b"%d" % value if isinstance(value, int) else quoted(value)


class InsertField(OneSide):
    """Adds fields to a struct or map; a null passes. A partition, offset or timestamp that the record does not have yet is left out."""

    PURPOSE = "field insertion"
    handles_rows = True
    KEYS = (
        key("topic.field", ConfigType.STRING, None, Importance.MEDIUM, f"Field name for Kafka topic. {_SUFFIX}"),
        key("partition.field", ConfigType.STRING, None, Importance.MEDIUM, f"Field name for Kafka partition. {_SUFFIX}"),
        key(
            "offset.field",
            ConfigType.STRING,
            None,
            Importance.MEDIUM,
            f"Field name for Kafka offset - only applicable to sink connectors.<br/>{_SUFFIX}",
        ),
        key("timestamp.field", ConfigType.STRING, None, Importance.MEDIUM, f"Field name for record timestamp. {_SUFFIX}"),
        key("static.field", ConfigType.STRING, None, Importance.MEDIUM, f"Field name for static data field. {_SUFFIX}"),
        key("static.value", ConfigType.STRING, None, Importance.MEDIUM, "Static field value, if field name configured."),
        REPLACE_NULL,
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._static = config["static.value"]
        sources: dict[str, Callable[[AnyRecord], Any]] = {
            "topic.field": lambda record: record.topic,
            "partition.field": lambda record: record.partition,
            "offset.field": self._offset,
            "timestamp.field": lambda record: record.timestamp,
            "static.field": lambda _: self._static,
        }
        self._insertions = [
            _Insertion(_parse(config[name], schema), sources[name], name == "timestamp.field")
            for name, schema in _SCHEMAS.items()
            if config[name] is not None
        ]
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        if config["static.field"] is not None and self._static is None:
            raise invalid("static.value", None, f"No value specified for static field: {config['static.field'].rstrip('!?')}")
        self._with_defaults: bool = config["replace.null.with.default"]
        self._schemas: SchemaCache[Schema] = SchemaCache(self._updated, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the fields.

        Raises:
            DataError: the value is neither a struct nor a map, has a field of that name already, or an offset is wanted of a source.
        """
        value = self.value_of(record)
        if value is None:
            return record
        if self.schema_of(record) is None:
            inserted = {i.field.name: found for i in self._insertions if (found := i.value(record)) is not None}
            return self.changed(record, None, {**require_map(value, self.PURPOSE), **inserted})
        struct = require_struct(value, self.PURPOSE, self.schema_of(record))
        schema = self._schemas(struct.schema)
        values = field_values(struct, self._with_defaults)
        for insertion in self._insertions:
            found = insertion.value(record)
            values.append(millis_to_timestamp(found) if insertion.is_timestamp and found is not None else found)
        return self.changed(record, schema, Struct(schema, values))

    def row_change(self, route: Route) -> RowChange:
        """Return what adds the fields to rows, whose time is never known. Raises DataError and NeedsRecord where only `apply` can tell."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        changed = self._schemas(require_struct_schema(schema, self.PURPOSE))
        record = SourceRecord({}, {}, route.topic, partition=route.partition)
        added = [label(insertion.field.name) + _text(insertion, insertion.value(record)) for insertion in self._insertions]
        end = appendix(added, is_first=not schema.fields)
        return self.changing(route, changed, lambda row: row[:-1] + end)

    def _updated(self, schema: Schema | None) -> Schema:
        source = require_schema(schema, self.PURPOSE)
        return like(source, [*source.fields, *(insertion.field for insertion in self._insertions)])

    def _offset(self, record: AnyRecord) -> int:
        if not isinstance(record, SinkRecord):
            raise DataError(f"Only SinkRecord supported for [{self.PURPOSE}], found: org.apache.kafka.connect.source.SourceRecord")
        return record.offset


def _parse(text: str, schema: Schema) -> Field:
    """Return a field's name with its suffix."""
    name = text[:-1] if text.endswith(("!", "?")) else text
    return Field(name, schema if text.endswith("!") else schema.as_optional())


class InsertFieldKey(InsertField):
    """Into keys."""

    java_name, on_key = f"{KAFKA}InsertField$Key", True


class InsertFieldValue(InsertField):
    """Into values."""

    java_name = f"{KAFKA}InsertField$Value"
