"""JSON that a JSON Schema describes, to Connect values (`JsonSchemaData.toConnectData`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connect_py.converters.json_read import node_type, payload_reader
from connect_py.converters.jsonschema.options import GENERAL_UNION, ONE_OF, JsonSchemaOptions
from connect_py.data import Schema, Struct, Type
from connect_py.errors import DataError

#: One parsed JSON value to Connect data; raises DataError.
Reader = Callable[[Any], Any]
_MISSING = object()


def reader(schema: Schema, options: JsonSchemaOptions) -> Reader:
    """Return the function that reads values of a schema. A property that is missing is null even where the schema requires it."""
    read = _plain(schema, options)

    def read_or_null(value: Any) -> Any:
        if value is not None and value is not _MISSING:
            return read(value)
        if schema.default is None and not schema.optional and value is None:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return schema.default

    return read_or_null


def _plain(schema: Schema, options: JsonSchemaOptions) -> Reader:
    match schema.type:
        case Type.ARRAY:
            element = _inner(schema.value_schema, options)
            return lambda value: [element(item) for item in _of(value, list, "Arrays should be encoded as JSON arrays")]
        case Type.MAP:
            return _map(schema, options)
        case Type.STRUCT:
            union = schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None
            return _union(schema, options) if union else _struct(schema, options)
        case _:
            return payload_reader(schema)


def _inner(schema: Schema | None, options: JsonSchemaOptions) -> Reader:
    assert schema is not None
    return reader(schema, options)


def _of(value: Any, type_: type, rule: str) -> Any:
    if not isinstance(value, type_):
        raise DataError(f"{rule}, but found {node_type(value)}")
    return value


def _map(schema: Schema, options: JsonSchemaOptions) -> Reader:
    key, item = _inner(schema.key_schema, options), _inner(schema.value_schema, options)
    assert schema.key_schema is not None
    if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
        rule = "Maps with string fields should be encoded as JSON objects"
        return lambda value: {name: item(held) for name, held in _of(value, dict, rule).items()}

    def read(value: Any) -> dict[Any, Any]:
        found = {}
        for entry in _of(value, list, "Maps with non-string fields should be encoded as JSON array of objects"):
            if len(_of(entry, dict, "Found invalid map entry instead of object")) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
            found[key(entry.get("key", _MISSING))] = item(entry.get("value", _MISSING))
        return found

    return read


def _struct(schema: Schema, options: JsonSchemaOptions) -> Reader:
    parts = [(field.name, reader(field.schema, options)) for field in schema.fields]

    def read(value: Any) -> Struct:
        get = _of(value, dict, "Structs should be encoded as JSON objects").get
        return Struct(schema, [part(get(name, _MISSING)) for name, part in parts])

    return read


def _union(schema: Schema, options: JsonSchemaOptions) -> Reader:
    """Return the member whose simple type fits, else the struct that shares most properties with the value."""
    parts = [reader(field.schema, options) for field in schema.fields]

    def read(value: Any) -> Struct:
        best, most = None, 0
        for at, field in enumerate(schema.fields):
            if _is_simple(field.schema, value):
                best = at
                break
            shared = _shared(field.schema, value)
            if shared > most:
                best, most = at, shared
        if best is None:
            raise DataError("Did not find matching oneof field for data")
        values: list[Any] = [None] * len(parts)
        values[best] = parts[best](value)
        return Struct(schema, values)

    return read


_KINDS: dict[Type, tuple[str, ...]] = {
    Type.BOOLEAN: ("BOOLEAN",),
    Type.STRING: ("STRING",),
    Type.ARRAY: ("ARRAY",),
    Type.MAP: ("OBJECT", "ARRAY"),
    Type.FLOAT32: ("NUMBER",),
    Type.FLOAT64: ("NUMBER",),
}


def _is_simple(schema: Schema, value: Any) -> bool:
    if schema.type in (Type.INT8, Type.INT16, Type.INT32, Type.INT64):
        return type(value) is int
    return node_type(value) in _KINDS.get(schema.type, ())


def _shared(schema: Schema, value: Any) -> int:
    if schema.type is not Type.STRUCT or not isinstance(value, dict):
        return 0
    fields = [field for field in schema.fields if field.name in value]
    return len(fields) + sum(_shared(field.schema, value[field.name]) for field in fields)
