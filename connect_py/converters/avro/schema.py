"""Avro schemas as a tree (`org.apache.avro.Schema`): read from a registry's text, and written as Avro's Java library prints them.

The printed text matters: a registry finds an id by it, so a worker that took over from a Java worker keeps the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_py.converters import json_write
from connect_py.data.java_text import double_text, float_text
from connect_py.errors import DataError

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = ("record", "enum", "fixed")
#: No default; None is one.
NO_DEFAULT: Any = object()


class JavaFloat(float):
    """A default of type float, which prints with fewer digits than a double."""


@dataclass(eq=False)
class AvroField:
    """A record's field; `default` is a JSON value."""

    name: str
    schema: AvroSchema
    doc: str | None = None
    default: Any = NO_DEFAULT
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class AvroSchema:
    """One node. It is compared by identity, since a record can contain itself.

    Attributes:
        type: an Avro type's name; `error` records are records.
        name: a named type's full name.
        items: of an array, or the values of a map.
        props: everything that Avro itself gives no meaning to, and logical types.
    """

    type: str
    name: str | None = None
    doc: str | None = None
    fields: list[AvroField] = field(default_factory=list)
    items: AvroSchema | None = None
    symbols: list[str] = field(default_factory=list)
    enum_default: str | None = None
    size: int = 0
    branches: list[AvroSchema] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """A named type's full name, another type's own."""
        return self.name or self.type

    @property
    def logical_type(self) -> str | None:
        """The logical type's name."""
        found = self.props.get("logicalType")
        return found if isinstance(found, str) else None

    def field_named(self, name: str) -> AvroField | None:
        """Return a record's field."""
        return next((found for found in self.fields if found.name == name), None)


# -- from text ---------------------------------------------------------------------------------------------------------------------

_OWN = frozenset(("type", "name", "namespace", "doc", "fields", "items", "values", "symbols", "size", "aliases"))
_OWN_OF_FIELD = frozenset(("name", "type", "doc", "default", "order", "aliases"))


def parse_avro(text: str, references: Mapping[str, str] = {}) -> AvroSchema:
    """Return a schema's tree.

    Args:
        text: JSON, or a bare type's name.
        references: texts of schemas whose types this one uses; those that others use come first.

    Raises:
        DataError: it is no Avro schema.
    """
    known: dict[str, AvroSchema] = {}
    for used in references.values():
        _Parser(known).parse(_load(used), None)
    return _Parser(known).parse(_load(text), None)


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


class _Parser:
    def __init__(self, known: dict[str, AvroSchema]) -> None:
        self._known = known

    def parse(self, node: Any, namespace: str | None) -> AvroSchema:
        if isinstance(node, str):
            return self._reference(node, namespace)
        if isinstance(node, list):
            return AvroSchema("union", branches=[self.parse(branch, namespace) for branch in node])
        if not isinstance(node, dict) or "type" not in node:
            raise DataError(f"No Avro schema: {json.dumps(node)[:200]}")
        kind = node["type"]
        if not isinstance(kind, str):
            return self.parse(kind, namespace)
        kind = "record" if kind == "error" else kind
        own = _OWN | {"default"} if kind == "enum" else _OWN
        props = {name: value for name, value in node.items() if name not in own}
        if kind in PRIMITIVES:
            return AvroSchema(kind, props=props)
        if kind in ("array", "map"):
            inner = self.parse(node.get("items" if kind == "array" else "values"), namespace)
            return AvroSchema(kind, items=inner, props=props)
        if kind in NAMED:
            return self._named(kind, node, namespace, props)
        return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str | None) -> AvroSchema:
        if name in PRIMITIVES:
            return AvroSchema(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._known.get(full) or self._known.get(name)
        if found is None:
            raise DataError(f"The Avro schema uses a type that is not defined: {full}")
        return found

    def _named(self, kind: str, node: dict[str, Any], namespace: str | None, props: dict[str, Any]) -> AvroSchema:
        name = node.get("name")
        if not isinstance(name, str) or not name:
            raise DataError(f"An Avro {kind} has no name")
        if "." not in name:
            given = node.get("namespace", namespace)
            name = f"{given}.{name}" if given else name
        doc = node.get("doc")
        made = AvroSchema(kind, name=name, doc=doc if isinstance(doc, str) else None, props=props)
        self._known[name] = made
        inner = name.rpartition(".")[0] or None
        if kind == "record":
            made.fields = [self._field(part, inner) for part in node.get("fields", ())]
        elif kind == "enum":
            made.symbols, made.enum_default = list(node.get("symbols", ())), node.get("default")
        else:
            made.size = int(node.get("size", 0))
        return made

    def _field(self, node: Any, namespace: str | None) -> AvroField:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or "type" not in node:
            raise DataError("A field of an Avro record has no name or no type")
        props = {name: value for name, value in node.items() if name not in _OWN_OF_FIELD}
        schema = self.parse(node["type"], namespace)
        return AvroField(node["name"], schema, node.get("doc"), node.get("default", NO_DEFAULT), props)


# -- to text -----------------------------------------------------------------------------------------------------------------------


def avro_text(schema: AvroSchema) -> str:
    """Return the schema as `Schema.toString()` prints it. Raises DataError for two unlike types of one name."""
    return _text(schema, None, _Known())


class _Known(dict[str, AvroSchema]):
    """Types that were printed in full, by name: they are printed as their names from then on. `open` are those around the current one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def is_known(self, schema: AvroSchema) -> bool:
        """Return whether the name alone says it. Raises DataError when the name says something else."""
        assert schema.name is not None
        earlier = self.get(schema.name)
        if earlier is None or earlier is schema:
            return earlier is schema
        if schema.name in self.open or avro_text(earlier) != avro_text(schema):
            raise DataError(f"Two unlike schemas would both be the Avro type {schema.name}; give one of them another name")
        return True


def _text(schema: AvroSchema, namespace: str | None, known: _Known) -> str:
    if schema.type == "union":
        return "[" + ",".join(_text(branch, namespace, known) for branch in schema.branches) + "]"
    if schema.name is not None:
        space, _, simple = schema.name.rpartition(".")
        if known.is_known(schema):
            return json_text(simple if space == (namespace or "") else schema.name)
        known[schema.name] = schema
        known.open.append(schema.name)
        text = _named_text(schema, space, simple, namespace, known)
        known.open.pop()
        return text
    if schema.type in PRIMITIVES and not schema.props:
        return json_text(schema.type)
    parts = [f'"type":{json_text(schema.type)}']
    if schema.items is not None:
        parts.append(f'"{"items" if schema.type == "array" else "values"}":{_text(schema.items, namespace, known)}')
    return "{" + ",".join(parts + _props(schema.props)) + "}"


def _named_text(schema: AvroSchema, space: str, simple: str, namespace: str | None, known: _Known) -> str:
    parts = [f'"type":{json_text(schema.type)}', f'"name":{json_text(simple)}']
    if space != (namespace or ""):
        parts.append(f'"namespace":{json_text(space)}')
    if schema.doc is not None:
        parts.append(f'"doc":{json_text(schema.doc)}')
    if schema.type == "record":
        parts.append('"fields":[' + ",".join(_field_text(part, space, known) for part in schema.fields) + "]")
    elif schema.type == "enum":
        parts.append(f'"symbols":{json_text(schema.symbols)}')
        if schema.enum_default is not None:
            parts.append(f'"default":{json_text(schema.enum_default)}')
    else:
        parts.append(f'"size":{schema.size}')
    return "{" + ",".join(parts + _props(schema.props)) + "}"


def _field_text(part: AvroField, namespace: str, known: _Known) -> str:
    parts = [f'"name":{json_text(part.name)}', f'"type":{_text(part.schema, namespace, known)}']
    if part.doc is not None:
        parts.append(f'"doc":{json_text(part.doc)}')
    if part.default is not NO_DEFAULT:
        parts.append(f'"default":{json_text(part.default)}')
    return "{" + ",".join(parts + _props(part.props)) + "}"


def _props(props: Mapping[str, Any]) -> list[str]:
    return [f"{json_text(name)}:{json_text(value)}" for name, value in props.items()]


def json_text(value: Any) -> str:
    """Return a JSON value, compact, numbers as Java prints them."""
    return json_write.json_text(value, _number_text)


def _number_text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    text = float_text(value) if isinstance(value, JavaFloat) else double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'
