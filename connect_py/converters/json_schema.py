"""Schemas as JSON and back (`JsonConverter.asJsonSchema`, `asConnectSchema`; field names in `JsonSchema.java`)."""

from __future__ import annotations

from typing import Any

from connect_py.converters.json_read import decode_payload
from connect_py.converters.json_write import WriteOptions, encode_value, quote
from connect_py.data.schema import Field, Schema, SchemaCache, Type
from connect_py.errors import DataError

_TYPES = {type_.value: type_ for type_ in Type}


def schema_to_json(schema: Schema | None, *, numeric_decimals: bool = False) -> bytes:
    """Return a schema as the `schema` part of an envelope, compact, fields in the reference's order.

    Args:
        numeric_decimals: defaults of decimals are JSON numbers (``decimal.format=NUMERIC``).
    """
    return (_NUMERIC if numeric_decimals else _BASE64)(schema)


def _object(schema: Schema, options: WriteOptions, field: str | None = None) -> str:
    parts = [f'"type":"{schema.type.value}"']
    if schema.type is Type.ARRAY:
        parts.append(f'"items":{_part(schema.value_schema, options)}')
    elif schema.type is Type.MAP:
        parts.append(f'"keys":{_part(schema.key_schema, options)},"values":{_part(schema.value_schema, options)}')
    elif schema.type is Type.STRUCT:
        parts.append('"fields":[' + ",".join(_object(f.schema, options, f.name) for f in schema.fields) + "]")
    parts.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        parts.append(f'"name":{quote(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{quote(schema.doc)}')
    if schema.parameters:
        parts.append('"parameters":{' + ",".join(f"{quote(k)}:{quote(v)}" for k, v in schema.parameters) + "}")
    if schema.default is not None:
        parts.append(f'"default":{encode_value(schema, schema.default, options).decode()}')
    if field is not None:
        parts.append(f'"field":{quote(field)}')
    return "{" + ",".join(parts) + "}"


def _cache(options: WriteOptions) -> SchemaCache[bytes]:
    return SchemaCache(lambda schema: _part(schema, options).encode())


_BASE64, _NUMERIC = _cache(WriteOptions(numeric_decimals=False)), _cache(WriteOptions(numeric_decimals=True))


def _part(schema: Schema | None, options: WriteOptions) -> str:
    return "null" if schema is None else _object(schema, options)


def schema_from_json(node: Any) -> Schema | None:
    """Return a parsed `schema` part as a schema; None stands for schemaless.

    Raises:
        DataError: it describes no schema.
    """
    if node is None:
        return None
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    type_ = _TYPES.get(node["type"])
    if type_ is None:
        raise DataError(f"Unknown schema type: {node['type']}")
    version = node.get("version")
    plain = Schema(
        type_,
        optional=node.get("optional") is True,
        name=_text(node.get("name")),
        version=version if type(version) is int else None,
        doc=_text(node.get("doc")),
        parameters=_parameters(node.get("parameters")),
        fields=_fields(node) if type_ is Type.STRUCT else (),
        key_schema=_named_part(node, "keys", "Map schema did not specify the key type") if type_ is Type.MAP else None,
        value_schema=_value_schema(node, type_),
    )
    default = node.get("default")
    return plain if default is None else plain.with_default(decode_payload(plain, default))


def _value_schema(node: dict[str, Any], type_: Type) -> Schema | None:
    if type_ is Type.ARRAY:
        if node.get("items") is None:
            raise DataError("Array schema did not specify the element type")
        return schema_from_json(node["items"])
    if type_ is Type.MAP:
        return _named_part(node, "values", "Map schema did not specify the value type")
    return None


def _named_part(node: dict[str, Any], name: str, missing: str) -> Schema | None:
    if name not in node:
        raise DataError(missing)
    return schema_from_json(node[name])


def _fields(node: dict[str, Any]) -> tuple[Field, ...]:
    nodes = node.get("fields")
    if not isinstance(nodes, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: list[Field] = []
    for part in nodes:
        name = part.get("field") if isinstance(part, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        if any(field.name == name for field in fields):
            raise DataError(f"Cannot create field because of field name duplication {name}")
        schema = schema_from_json(part)
        assert schema is not None  # a dict is never schemaless
        fields.append(Field(name, schema))
    return tuple(fields)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _parameters(node: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, dict):
        return ()
    if not all(isinstance(value, str) for value in node.values()):
        raise DataError("Schema parameters must have string values.")
    return tuple(node.items())
