"""Records beside the rows: heartbeats, notifications, transaction boundaries. Few, so they take JsonConverter's own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api import JsonEncoding, Route
from connect_py.api.record import EncodedRow
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import WriteOptions, payload_writer
from connect_py.data import Schema
from connect_py.data.schema import Struct


class SideRecords:
    """Makes the records of one topic.

    Args:
        key_schema: a struct of plain fields; value_schema as well, also of lists of structs and maps.
        partition: None leaves it to the key.
    """

    def __init__(self, topic: str, key_schema: Schema, value_schema: Schema, encoding: JsonEncoding, partition: int | None = None) -> None:
        self._route = Route(topic, key_schema, value_schema, partition=partition)
        self._key_schema, self._value_schema = key_schema, value_schema
        self._key = _Frame(key_schema, encoding.key_schemas)
        self._value = _Frame(value_schema, encoding.value_schemas)

    def row(self, key: Mapping[str, Any], value: Mapping[str, Any]) -> EncodedRow:
        """One record; fields that are not given are null."""
        return self._route, self._key(_struct(self._key_schema, key)), self._value(_struct(self._value_schema, value))


class _Frame:
    def __init__(self, schema: Schema, with_schema: bool) -> None:
        self._write = payload_writer(schema, WriteOptions())
        self._head, self._end = (b'{"schema":' + schema_to_json(schema) + b',"payload":', b"}") if with_schema else (b"", b"")

    def __call__(self, value: Struct) -> bytes:
        return self._head + self._write(value).encode() + self._end


def _struct(schema: Schema, fields: Mapping[str, Any]) -> Struct:
    return Struct(schema, [_value(field.schema, fields.get(field.name)) for field in schema.fields])


def _value(schema: Schema, value: Any) -> Any:
    if isinstance(value, Mapping) and schema.fields:
        return _struct(schema, value)
    if isinstance(value, list) and schema.value_schema is not None:
        return [_value(schema.value_schema, item) for item in value]
    return value
