"""Turn JSON texts into structs of inferred schemas (`io.debezium.transforms.outbox.JsonSchemaData`).

Everything is optional; whole numbers are INT32 or INT64 by their size, others FLOAT64; objects are structs named by their path; an
array has one kind of element, and objects inside one array share a struct with the fields of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.schema import OPTIONAL_BYTES, OPTIONAL_STRING, array
from connect_py.errors import DataError
from connect_py.transforms.base import like

_INT32, _INT64 = Schema(Type.INT32, optional=True), Schema(Type.INT64, optional=True)
_FLOAT64, _BOOLEAN = Schema(Type.FLOAT64, optional=True), Schema(Type.BOOLEAN, optional=True)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def parse(text: str) -> Any:
    """Return the object or array that a text begins with. Raises DataError for other texts."""
    if not text.startswith(("{", "[")):
        raise DataError(f"Unable to parse payload starting with '{text[:1]}'")
    try:
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise DataError(f"Unable to parse the payload: {error}") from None


class JsonStructs:
    """Schemas and structs of JSON values.

    Args:
        null_as_bytes: whether a null is a field of optional bytes; without it a null is no field at all.
        field_name: what a key is called in structs.
    """

    def __init__(self, *, null_as_bytes: bool, field_name: Callable[[str], str]) -> None:
        self._null = OPTIONAL_BYTES if null_as_bytes else None
        self._name = field_name

    def schema(self, path: str | None, node: Any) -> Schema | None:
        """Return the schema of a value; None for a null and an empty array, of which nothing is known.

        Raises:
            DataError: an array has elements of several kinds, or none that tell anything.
        """
        match node:
            case None:
                return self._null
            case bool():
                return _BOOLEAN
            case int():
                return _INT32 if -(2**31) <= node < 2**31 else _INT64 if -(2**63) <= node < 2**63 else _FLOAT64
            case float():
                return _FLOAT64
            case str():
                return OPTIONAL_STRING
            case list():
                return array(self._element(path, node), optional=True) if node else None
            case _:
                return self._object(path, node)

    def struct(self, node: Any, schema: Schema) -> Struct:
        """Return the struct of an object. Raises DataError for anything else, and for a number that no schema holds."""
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema.type.value}")
        return Struct(schema, [self._value(node.get(field.name), field.schema) for field in schema.fields])

    def _object(self, path: str | None, node: dict[str, Any]) -> Schema:
        fields: dict[str, Field] = {}
        for key, value in node.items():
            name = self._name(key)
            schema = self.schema(f"{path}.{name}" if path and path.strip() else name, value)
            if schema is not None:
                fields.setdefault(name, Field(name, schema))
        return Schema(Type.STRUCT, optional=True, name=path, fields=tuple(fields.values()))

    def _element(self, path: str | None, items: list[Any]) -> Schema:
        sample = self._sample(items)
        if isinstance(sample, dict):
            merged: Schema | None = None
            for schema in dict.fromkeys(self._object(path, item) for item in items if isinstance(item, dict)):
                merged = schema if merged is None else _merged(merged, schema)
            assert merged is not None
            return merged
        found = self.schema(None, sample)
        if found is None:
            raise DataError(f"Array '{path}' has unrecognized member schema.")
        return found

    def _sample(self, items: list[Any]) -> Any:
        """Return the first element that is not null, of which all others must be."""
        known = [item for item in items if item is not None]
        sample = known[0] if known else None
        for item in known:
            if _kind(item) != _kind(sample):
                raise DataError(f"Field is not a homogenous array ({sample} x {_kind(item)}).")
            if _kind(item) == "NUMBER" and self.schema(None, item) != self.schema(None, sample):
                raise DataError(f"Field is not a homogenous array ({sample} x {item}), different number types")
        return sample

    def _value(self, node: Any, schema: Schema) -> Any:
        if isinstance(node, list):
            element = schema.value_schema
            assert element is not None
            if not element.optional and None in node:
                raise DataError("null used for required element of an array")
            return [self._value(item, element) for item in node]
        if isinstance(node, dict):
            return self.struct(node, schema)
        if type(node) is int and schema.type is Type.FLOAT64:
            raise DataError(f"Invalid Java object for schema with type FLOAT64: {node} is larger than 64 bits")
        return node


def _kind(node: Any) -> str:
    match node:
        case bool():
            return "BOOLEAN"
        case int() | float():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"


def _merged(left: Schema, right: Schema) -> Schema:
    """Return the fields of both; bytes, which stand for a null, give way to anything else. Being optional is lost, as in Debezium."""
    fields = {field.name: field for field in left.fields}
    for field in right.fields:
        old = fields.get(field.name)
        if old is None or (old.schema.type is Type.BYTES and field.schema.type is not Type.BYTES):
            fields[field.name] = field
    return like(left, list(fields.values()))
