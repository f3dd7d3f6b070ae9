"""Connect values to the JSON that a JSON Schema describes (`JsonSchemaData.fromConnectData`).

It differs from JsonConverter's in maps whose keys are no strings (objects with key and value), in unions, and in that a required field
without a value is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connect_py.converters.json_write import WriteOptions, payload_writer, quote
from connect_py.converters.jsonschema.options import GENERAL_UNION, ONE_OF, JsonSchemaOptions
from connect_py.data import Schema, Struct, Type
from connect_py.data.java_text import java_class
from connect_py.data.schema import STRING
from connect_py.errors import DataError

#: One value to JSON text, which is empty where a value is left out; raises DataError.
Writer = Callable[[Any], str]


def writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    """Return the function that writes values of a schema."""
    write = _plain(schema, options)
    if schema.default is not None and not options.ignore_default_for_nullables:
        null = write(schema.default)
    else:
        null = "null" if schema.optional else ""
    return lambda value: null if value is None else write(value)


def _plain(schema: Schema, options: JsonSchemaOptions) -> Writer:
    match schema.type:
        case Type.ARRAY:
            return _array(schema, options)
        case Type.MAP:
            return _map(schema, options)
        case Type.STRUCT:
            union = schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None
            return _union(schema, options) if union else _struct(schema, options)
        case _:
            return payload_writer(schema, WriteOptions(options.numeric_decimals))


def _wrong(schema: Schema, value: Any) -> DataError:
    return DataError(f"Invalid type for {schema.type.name}: {java_class(value)}")


def _array(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.value_schema is not None
    element = writer(schema.value_schema, options)

    def write(value: Any) -> str:
        if not isinstance(value, list | tuple):
            raise _wrong(schema, value)
        return "[" + ",".join([element(item) or "null" for item in value]) + "]"

    return write


def _map(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key, item = writer(schema.key_schema, options), writer(schema.value_schema, options)
    as_object = schema.key_schema.type is Type.STRING and not schema.key_schema.optional

    def write(value: Any) -> str:
        if not isinstance(value, Mapping):
            raise _wrong(schema, value)
        if as_object:
            return "{" + ",".join([f"{_name(k)}:{item(v) or 'null'}" for k, v in value.items()]) + "}"
        return "[" + ",".join([f'{{"key":{key(k) or "null"},"value":{item(v) or "null"}}}' for k, v in value.items()]) + "]"

    return write


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise _wrong(STRING, key)
    return quote(key)


def _values(schema: Schema, value: Any) -> list[Any]:
    if not isinstance(value, Struct):
        raise _wrong(schema, value)
    if value.schema is not schema and value.schema != schema:
        raise DataError("Mismatching schema.")
    return value.values


def _struct(schema: Schema, options: JsonSchemaOptions) -> Writer:
    parts = [(quote(field.name) + ":", writer(field.schema, options)) for field in schema.fields]

    def write(value: Any) -> str:
        texts = [(name, part(item)) for (name, part), item in zip(parts, _values(schema, value), strict=True)]
        return "{" + ",".join([name + text for name, text in texts if text]) + "}"

    return write


def _union(schema: Schema, options: JsonSchemaOptions) -> Writer:
    parts = [writer(field.schema, options) for field in schema.fields]

    def write(value: Any) -> str:
        for part, item in zip(parts, _values(schema, value), strict=True):
            if item is not None:
                return part(item)
        return "null" if schema.optional else ""

    return write
