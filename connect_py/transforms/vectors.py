"""Turn vectors into JSON texts (`io.debezium.transforms.VectorToJsonConverter`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.java_text import to_text
from connect_py.data.schema import SchemaCache
from connect_py.transforms.base import AnyRecord, require_struct
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform

_DENSE = ("io.debezium.data.DoubleVector", "io.debezium.data.FloatVector")
_SPARSE = "io.debezium.data.SparseDoubleVector"
_JSON = Schema(Type.STRING, name="io.debezium.data.Json", version=1)


class VectorToJsonConverter(DebeziumTransform):
    """Makes `{ "values": [1.0, 2.0] }` of vectors, `{ "dimensions": 3, "vector": { "1": 0.5 } }` of sparse ones."""

    java_name = f"{DEBEZIUM}VectorToJsonConverter"

    def configure(self, config: Any) -> None:
        """There is nothing to configure."""
        self._schemas: SchemaCache[Schema] = SchemaCache(_changed_schema, 64)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with texts for vectors; a null value passes. Raises DataError for a value that is no struct."""
        if record.value is None:
            return record
        value = require_struct(record.value, "Value should be a struct", record.value_schema)
        schema = self._schemas(value.schema)
        return replace(record, value_schema=schema, value=_changed(value, schema))


def _changed_schema(schema: Schema | None) -> Schema:
    assert schema is not None
    fields = []
    for field in schema.fields:
        if field.schema.name in (*_DENSE, _SPARSE):
            fields.append(Field(field.name, _JSON.as_optional() if field.schema.optional else _JSON))
        elif field.schema.type is Type.STRUCT:
            fields.append(Field(field.name, _changed_schema(field.schema)))
        else:
            fields.append(field)
    return replace(schema, fields=tuple(fields), default=None)


def _changed(value: Struct, schema: Schema) -> Struct:
    values: list[Any] = []
    for old, new in zip(value.schema.fields, schema.fields, strict=True):
        item = value[old.name]
        if item is None:
            values.append(None)
        elif old.schema.name in _DENSE:
            values.append('{ "values": [' + ", ".join(to_text(old.schema.value_schema, number) for number in item) + "] }")
        elif old.schema.name == _SPARSE:
            values.append(_sparse(item))
        else:
            values.append(_changed(item, new.schema) if old.schema.type is Type.STRUCT else item)
    return Struct(schema, values)


def _sparse(vector: Struct) -> str:
    pairs = ", ".join(f'"{index}": {to_text(None, number)}' for index, number in sorted(vector["vector"].items()))
    return f'{{ "dimensions": {vector["dimensions"]}, "vector": {{ {pairs} }} }}'
