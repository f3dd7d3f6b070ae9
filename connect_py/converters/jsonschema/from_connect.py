"""The JSON Schema of a Connect schema (`JsonSchemaData.fromConnectSchema`).

The text is the one that the reference registers, byte for byte, since a registry finds an id by it: keywords stand in the order in which
its library prints them, and properties in the order of the Java map that it keeps them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from connect_py.converters.json_read import parse_json
from connect_py.converters.json_write import quote
from connect_py.converters.jsonschema.options import (
    CONNECT_INDEX,
    CONNECT_PARAMETERS,
    CONNECT_TYPE,
    CONNECT_VERSION,
    ENUM,
    GENERAL_ENUM,
    GENERAL_UNION,
    NAMESPACE,
    NULL_SYMBOL,
    ONE_OF,
    JsonSchemaOptions,
)
from connect_py.converters.jsonschema.write import writer
from connect_py.data import Schema, Type
from connect_py.data.java_map import in_fitted_order, in_java_order
from connect_py.data.logical import DECIMAL

_NUMBERS: Mapping[Type, tuple[str, str]] = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
}
#: Connect's own keywords, in the order in which they are printed.
_CONNECT = (CONNECT_INDEX, CONNECT_VERSION, CONNECT_TYPE, CONNECT_PARAMETERS)


def is_union(schema: Schema) -> bool:
    """Whether a struct stands for one value of several types."""
    return schema.type is Type.STRUCT and (schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None)


def json_schema(schema: Schema, options: JsonSchemaOptions) -> str:
    """The text of the JSON Schema. Raises DataError for a default that is not of its schema."""
    return _text(_node(schema, options))


def _node(schema: Schema, options: JsonSchemaOptions, index: int | None = None, ignore_optional: bool = False) -> dict[str, Any]:
    if is_union(schema):
        nulls: list[dict[str, Any]] = [{"type": "null"}] if schema.optional else []
        members = [_node(replace(f.schema, optional=False), options, at, True) for at, f in enumerate(schema.fields)]
        return _indexed({"oneOf": nulls + members}, index)
    if schema.type is Type.STRUCT and schema.optional:
        return _indexed({"oneOf": [{"type": "null"}, _node(replace(schema, optional=False), options)]}, index)
    first, own, last = _by_type(schema, options)
    if schema.version is not None:
        own[CONNECT_VERSION] = schema.version
    parameters = {name: value for name, value in schema.parameters if not name.startswith(NAMESPACE)}
    if parameters:
        own[CONNECT_PARAMETERS] = in_fitted_order(in_java_order(parameters))
    optional = schema.optional and not ignore_optional
    if index is not None and not optional:
        own[CONNECT_INDEX] = index
    described: dict[str, Any] = {"title": schema.name, "description": schema.doc}
    if schema.default is not None:
        described["default"] = parse_json(writer(replace(schema, optional=False), options)(schema.default).encode(), exact=True)
    common = {name: value for name, value in described.items() if value is not None}
    made = first | common | {name: own[name] for name in _CONNECT if name in own} | last
    return _indexed({"oneOf": [{"type": "null"}, made]}, index) if optional else made


def _indexed(node: dict[str, Any], index: int | None) -> dict[str, Any]:
    return node if index is None else {CONNECT_INDEX: index} | node


def _by_type(schema: Schema, options: JsonSchemaOptions) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What comes first, Connect's own keywords, and what comes last."""
    if schema.type in _NUMBERS:
        kind, connect = _NUMBERS[schema.type]
        return {"type": kind}, {CONNECT_TYPE: connect}, {}
    match schema.type:
        case Type.BOOLEAN:
            return {}, {}, {"type": "boolean"}
        case Type.STRING:
            return _string(schema, options), {}, {}
        case Type.BYTES:
            numeric = schema.name == DECIMAL and options.numeric_decimals
            return {"type": "number" if numeric else "string"}, {CONNECT_TYPE: "bytes"}, {}
        case Type.ARRAY:
            assert schema.value_schema is not None
            return {"type": "array"}, {}, {"items": _node(schema.value_schema, options)}
        case Type.MAP:
            return _map(schema, options)
        case _:
            fields = {field.name: _node(field.schema, options, at) for at, field in enumerate(schema.fields)}
            closed = {} if options.additional_properties else {"additionalProperties": False}
            return {"type": "object"} | closed, {}, {"properties": in_java_order(fields)} if fields else {}


def _string(schema: Schema, options: JsonSchemaOptions) -> dict[str, Any]:
    if schema.parameter(GENERAL_ENUM) is None and schema.parameter(ENUM) is None:
        return {"type": "string"}
    prefix = (GENERAL_ENUM if options.generalized else ENUM) + "."
    symbols = [name.removeprefix(prefix) for name, _ in schema.parameters if name.startswith(prefix)]
    return {"enum": [None if symbol == NULL_SYMBOL else symbol for symbol in symbols]}


def _map(schema: Schema, options: JsonSchemaOptions) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    key, value = schema.key_schema, schema.value_schema
    assert key is not None
    assert value is not None
    if key.type is Type.STRING and not key.optional:
        return {"type": "object"}, {CONNECT_TYPE: "map"}, {"additionalProperties": _node(value, options)}
    entry = {"type": "object", "properties": in_java_order({"key": _node(key, options, 0), "value": _node(value, options, 1)})}
    return {"type": "array"}, {CONNECT_TYPE: "map"}, {"items": entry}


def _text(value: Any) -> str:
    """Compact JSON, numbers as the reference's library prints them: without trailing zeros."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case Decimal():
            return _number(value)
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
        case Mapping():
            return "{" + ",".join(f"{quote(name)}:{_text(item)}" for name, item in value.items()) + "}"
        case _:
            return str(value)


def _number(value: Decimal) -> str:
    text = str(value)
    return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text
