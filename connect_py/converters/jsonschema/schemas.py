"""Map JSON Schemas to Connect schemas and back (`JsonSchemaData.toConnectSchema`, `JsonSchemaData.fromConnectSchema`).

Drafts 4 to 7 are read, and what later drafts share with them. Schemas that contain themselves, schemas that say nothing (`{}`) and keywords
of later drafts are refused or ignored (docs/converters.md).

The text that is written is the one that the reference registers, byte for byte, since a registry finds an id by it: keywords stand in the
order in which its library prints them, and properties in the order of the Java map that it keeps them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from connect_py.converters.json_read import parse_json
from connect_py.converters.json_write import json_text
from connect_py.converters.jsonschema.values import (
    CONNECT_INDEX,
    CONNECT_PARAMETERS,
    CONNECT_TYPE,
    CONNECT_VERSION,
    ENUM,
    NAMESPACE,
    NULL_SYMBOL,
    ONE_OF,
    JsonSchemaOptions,
    reader,
    writer,
)
from connect_py.converters.registry.config import GENERAL_ENUM, GENERAL_UNION, GENERAL_UNION_PREFIX
from connect_py.data import Field, Schema, Type
from connect_py.data.java_map import in_fitted_order, in_java_order
from connect_py.data.schema import DECIMAL
from connect_py.errors import DataError

_CONNECT_TYPES: Mapping[str, Type] = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "bytes": Type.BYTES,
}
#: Keywords that tell a type where `type` does not.
_TELLING: Mapping[str, tuple[str, ...]] = {
    "object": ("properties", "additionalProperties", "required", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
_Node = dict[str, Any]


class ToConnect:
    """Makes the Connect schema of one JSON Schema.

    Args:
        text: the schema's JSON.
        references: texts of the schemas that it uses, by the names in its ``$ref``.

    Raises (also on call):
        DataError: it is no JSON Schema, or has something that Connect has not.
    """

    def __init__(self, options: JsonSchemaOptions, text: str, references: Mapping[str, str] = {}) -> None:
        self._options = options
        self._root = parse_json(text.encode(), exact=True)
        self._others = {name: parse_json(used.encode(), exact=True) for name, used in references.items()}
        self._document = self._root
        self._open: list[Any] = []
        self._unions = 0

    @property
    def title(self) -> str | None:
        """The schema's name, for subject names."""
        found = self._root.get("title") if isinstance(self._root, dict) else None
        return found if isinstance(found, str) else None

    def __call__(self, version: int | None = None) -> Schema:
        return self._schema(self._root, version)

    def _schema(self, node: Any, version: int | None = None, optional: bool = False) -> Schema:
        if not isinstance(node, dict):
            raise DataError(f"No JSON Schema that says a type: {node!r}")
        if "$ref" in node:
            return self._referred(node["$ref"], version, optional)
        for keyword in ("oneOf", "anyOf"):
            if keyword in node and "properties" not in node:
                return self._choice(node, node[keyword], version, optional)
        if "allOf" in node:
            return self._all_of(node, version, optional)
        if isinstance(node.get("type"), list):
            rest = {name: value for name, value in node.items() if name != "type"}
            return self._choice({}, [{"type": "null"} if t == "null" else rest | {"type": t} for t in node["type"]], version, optional)
        return self._finished(node, self._by_type(node), version, optional)

    def _by_type(self, node: _Node) -> Schema:
        kind = node.get("type")
        if ("enum" in node or "const" in node) and kind in (None, "string"):
            return (
                self._enum(node["enum"] if "enum" in node else [node["const"]]) if kind is None or "enum" in node else Schema(Type.STRING)
            )
        if kind is None:
            kind = next((told for told, keywords in _TELLING.items() if any(word in node for word in keywords)), None)
        connect = node.get(CONNECT_TYPE)
        match kind:
            case "boolean":
                return Schema(Type.BOOLEAN)
            case "integer" | "number":
                plain = Type.INT64 if kind == "integer" else Type.FLOAT64
                if connect is not None and connect not in _CONNECT_TYPES:
                    raise DataError(f"Unsupported type {connect}")
                return Schema(plain if connect is None else _CONNECT_TYPES[connect])
            case "string":
                return Schema(Type.BYTES if connect == "bytes" else Type.STRING)
            case "array":
                return self._array(node, connect)
            case "object":
                return self._object(node, connect)
            case _:
                raise DataError(f"Unsupported JSON Schema: type {kind!r} with the keywords {', '.join(node) or 'none'}")

    def _enum(self, values: Iterable[Any]) -> Schema:
        name = GENERAL_ENUM if self._options.generalized else ENUM
        symbols = [NULL_SYMBOL if value is None else str(value) for value in values]
        told = [(f"{name}.{symbol}", str(at) if self._options.generalized else symbol) for at, symbol in enumerate(symbols)]
        return Schema(Type.STRING, parameters=((name, ""), *told))

    def _array(self, node: _Node, connect: Any) -> Schema:
        items = node.get("items")
        if not isinstance(items, dict):
            raise DataError("Array schema did not specify the items type")
        if connect == "map" and items.get("type") == "object":
            entry = items.get("properties", {})
            return Schema(Type.MAP, key_schema=self._schema(entry.get("key")), value_schema=self._schema(entry.get("value")))
        return Schema(Type.ARRAY, value_schema=self._schema(items))

    def _object(self, node: _Node, connect: Any) -> Schema:
        if connect == "map":
            return Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=self._schema(node.get("additionalProperties")))
        properties = node.get("properties") or {}
        required = node.get("required") or ()
        return self._struct(in_java_order(properties), {name: name in required for name in properties}, node, sort=True)

    def _struct(self, properties: Mapping[str, Any], required: Mapping[str, bool], node: _Node, sort: bool) -> Schema:
        if any(known is node for known in self._open):
            raise DataError("The JSON Schema contains itself, which is not supported")
        self._open.append(node)
        pairs = list(properties.items())
        if sort:
            indexes = {name: _index(part, at) for at, (name, part) in enumerate(pairs)}
            pairs.sort(key=lambda pair: indexes[pair[0]])
        nonrequired = self._options.optional_for_nonrequired
        fields = [Field(name, self._schema(part, optional=nonrequired and not required[name])) for name, part in pairs]
        self._open.pop()
        return Schema(Type.STRUCT, fields=tuple(fields))

    def _choice(self, node: _Node, members: list[Any], version: int | None, optional: bool) -> Schema:
        if len(members) == 1 and self._options.flatten_singletons:
            return self._schema(members[0])
        number = self._unions
        self._unions += 1
        others = [member for member in members if not (isinstance(member, dict) and member.get("type") == "null")]
        if len(members) == 2 and len(others) == 1:
            return self._schema(others[0], version, True)
        name = ONE_OF
        parameters: tuple[tuple[str, str], ...] = ()
        prefix = f"{name}.field."
        if self._options.generalized:
            name = f"{GENERAL_UNION_PREFIX}{number}"
            parameters, prefix = ((GENERAL_UNION, name),), f"{GENERAL_UNION_PREFIX}field_"
        fields = tuple(Field(f"{prefix}{at}", self._schema(member, optional=True)) for at, member in enumerate(others))
        made = Schema(Type.STRUCT, len(others) < len(members), name, parameters=parameters, fields=fields)
        return self._finished(node, made, version, optional)

    def _all_of(self, node: _Node, version: int | None, optional: bool) -> Schema:
        """Several schemas that all hold: the properties of all of them, or the one that says most of a simple type."""
        rest = {name: value for name, value in node.items() if name != "allOf"}
        parts = [self._resolved(part)[0] for part in node["allOf"]] + ([rest] if "type" in rest or "properties" in rest else [])
        properties: dict[str, Any] = {}
        required: dict[str, bool] = {}
        for part in parts:
            for name, schema in in_java_order(part.get("properties") or {}).items():
                properties[name], required[name] = schema, name in (part.get("required") or ())
        if properties:
            made = self._struct(properties, required, node, sort=False)
            return made.as_optional() if optional else made
        for keywords in (("oneOf", "anyOf", "allOf"), ("enum",), ("type",)):
            for part in parts:
                if any(keyword in part for keyword in keywords):
                    return self._schema(part, version, optional)
        raise DataError("Unsupported criterion allOf: none of the schemas says a type")

    def _referred(self, reference: str, version: int | None, optional: bool) -> Schema:
        found, document = self._resolved({"$ref": reference})
        if any(known is found for known in self._open):
            raise DataError("The JSON Schema contains itself, which is not supported")
        before, self._document = self._document, document
        try:
            return self._schema(found, version, optional)
        finally:
            self._document = before

    def _resolved(self, node: Any) -> tuple[Any, Any]:
        """Return what a reference leads to, and the document that holds it."""
        seen = 0
        document = self._document
        while isinstance(node, dict) and "$ref" in node:
            seen += 1
            name, _, path = str(node["$ref"]).partition("#")
            if seen > 100 or (name and name not in self._others):
                raise DataError(f"The JSON Schema's $ref leads nowhere: {node['$ref']}")
            document = self._others[name] if name else document
            node = document
            for step in filter(None, path.split("/")):
                step = step.replace("~1", "/").replace("~0", "~")
                node = node.get(step) if isinstance(node, dict) else None
        return node, document

    def _finished(self, node: _Node, made: Schema, version: int | None, optional: bool) -> Schema:
        parameters = node.get(CONNECT_PARAMETERS)
        if isinstance(parameters, dict):
            merged = dict(made.parameters) | {name: str(value) for name, value in parameters.items()}
            made = replace(made, parameters=tuple(merged.items()))
        own = node.get(CONNECT_VERSION)
        made = replace(
            made,
            name=made.name or node.get("title"),
            version=own if isinstance(own, int) else version,
            doc=node.get("description"),
            optional=made.optional or optional,
        )
        if node.get("default") is None:
            return made
        return made.with_default(reader(made, self._options)(node["default"]))


def _index(node: Any, otherwise: int) -> int:
    found = node.get(CONNECT_INDEX) if isinstance(node, dict) else None
    return found if isinstance(found, int) else otherwise


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
    """Return whether a struct stands for one value of several types."""
    return schema.type is Type.STRUCT and (schema.name == ONE_OF or schema.parameter(GENERAL_UNION) is not None)


def json_schema(schema: Schema, options: JsonSchemaOptions) -> str:
    """Return the text of the JSON Schema. Raises DataError for a default that is not of its schema."""
    return json_text(_node(schema, options), _number)


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
    """Return what comes first, Connect's own keywords, and what comes last."""
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


def _number(value: Any) -> str:
    """Return a number as the reference's library prints it: without trailing zeros."""
    text = str(value)
    return text.rstrip("0").rstrip(".") if isinstance(value, Decimal) and "." in text and "E" not in text else text
