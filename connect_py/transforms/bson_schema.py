"""Infer schemas and make structs of MongoDB's documents (`io.debezium.connector.mongodb.transforms.MongoDataConverter`).

A document names its fields itself, so each has a schema of its own. What counts as one type in an array, and which of several nested
documents gives the schema, is decided as in the reference, whose ways show in the schemas that consumers have registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.java_text import java_class
from connect_py.data.schema import OPTIONAL_BYTES, OPTIONAL_INT64, OPTIONAL_STRING, array
from connect_py.errors import DataError
from connect_py.transforms.bson_text import Bson, Document, java_shown, kind_of

REGEX = "io.debezium.mongodb.regex"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = Schema(Type.INT64, optional=True, name="org.apache.kafka.connect.data.Timestamp", version=1)
_REGEX = Schema(Type.STRUCT, optional=True, name=REGEX, fields=(Field("regex", OPTIONAL_STRING), Field("options", OPTIONAL_STRING)))
_EMPTY = Schema(Type.STRUCT, optional=True)
_STRINGS = array(OPTIONAL_STRING, optional=True)
_SCALARS = {
    **dict.fromkeys(("NULL", "STRING", "JAVASCRIPT", "OBJECT_ID", "DECIMAL128"), OPTIONAL_STRING),
    "DOUBLE": Schema(Type.FLOAT64, optional=True),
    "BINARY": OPTIONAL_BYTES,
    "INT32": Schema(Type.INT32, optional=True),
    "INT64": OPTIONAL_INT64,
    "DATE_TIME": _TIMESTAMP,
    "TIMESTAMP": _TIMESTAMP,
    "BOOLEAN": Schema(Type.BOOLEAN, optional=True),
}


class Entries(list[tuple[Any, str]]):
    """What an array, or a field, holds: parts and their types. A part that is equal to one before takes its place."""

    def put(self, part: Any, kind: str) -> None:
        for index, (known, _) in enumerate(self):
            if known == part:
                self[index] = part, kind
                return
        self.append((part, kind))


class Indexed(NamedTuple):
    """A document of an array that is encoded as a document: its place among the array's documents, and its fields."""

    place: int
    fields: dict[str, Entries]


class Builder:
    """A struct schema in the making."""

    def __init__(self, name: str | None = None, *, optional: bool = True) -> None:
        self.name = name
        self.fields: dict[str, Schema] = {}
        self._optional = optional

    def field(self, name: str, schema: Schema) -> None:
        """Add a field. Raises DataError: there is one of that name, or it has no name."""
        if not name:
            raise DataError("fieldName cannot be null.")
        if name in self.fields:
            raise DataError(f"Cannot create field because of field name duplication {name}")
        self.fields[name] = schema

    def below(self, name: str) -> str:
        """Return the full name of a struct in this one."""
        return f"{'null' if self.name is None else self.name}.{name}"

    def build(self) -> Schema:
        """Return the schema."""
        fields = tuple(Field(name, schema) for name, schema in self.fields.items())
        return Schema(Type.STRUCT, optional=self._optional, name=self.name, fields=fields)


class DocumentSchemas:
    """Schemas of documents, and documents as structs.

    Args:
        as_documents: whether arrays become structs with a field an element (`array.encoding=document`).
        field_name: what a field is called.
        leaves_out_empty_arrays: whether an empty array has no value, which goes with adjusted names.
    """

    def __init__(
        self, *, as_documents: bool = False, field_name: Callable[[str], str] = str, leaves_out_empty_arrays: bool = False
    ) -> None:
        self._as_documents = as_documents
        self._field_name = field_name
        self._leaves_out_empty = leaves_out_empty_arrays

    def add_fields(self, document: Document, builder: Builder) -> None:
        """The fields of a document, as fields of a struct. Raises DataError: the document has no schema."""
        for name, entries in self._parse(document).items():
            for part, kind in entries:
                self._add(self._field_name(name), part, kind, builder)

    # -- what a document holds ---------------------------------------------------------------------------------------------------

    def _parse(self, document: Document) -> dict[str, Entries]:
        found = {}
        for name, value in document.items():
            kind = kind_of(value)
            part = self._parse_array(value) if kind == "ARRAY" else self._parse(value) if kind == "DOCUMENT" else value
            found[name] = Entries([(part, kind)])
        return found

    def _parse_array(self, items: list[Any]) -> Entries:
        unified = Entries()
        merged: dict[str, Entries] = {}
        schemas: dict[str, list[Schema]] = {}
        scalars = []
        documents = 0
        for item in items:
            if isinstance(item, list):
                unified.put(self._parse_array(item), "ARRAY")
            elif not isinstance(item, dict):
                scalars.append(item)
            elif self._as_documents:
                unified.append((Indexed(documents, self._parse(item)), "DOCUMENT"))
                documents += 1
            else:
                self._merge(merged, self._parse(item), schemas)
        if merged:
            unified.put(merged, "DOCUMENT")
        if scalars:
            kinds = {kind_of(item) for item in scalars}
            unified.put(scalars, kinds.pop() if len(kinds) == 1 else "ARRAY")
        return unified

    def _merge(self, merged: dict[str, Entries], fields: dict[str, Entries], schemas: dict[str, list[Schema]]) -> None:
        """Take the fields of one more document of an array; of two nested documents the later one counts."""
        for name, entries in fields.items():
            part, kind = entries[0]
            schema = self._schema_of(kind)
            known = schemas.setdefault(name, [])
            if schema not in known:
                known.append(schema)
            if not (kind == "DOCUMENT" and part) and len(known) > 1:
                shown = ", ".join(f"{field}=[{', '.join(map(_shown, found))}]" for field, found in schemas.items())
                raise DataError(f"Array elements with different Bson types are not supported: {{{shown}}}")
            merged[name] = entries

    def _schema_of(self, kind: str) -> Schema:
        """Return the schema of an array's element, or of a document's field in it."""
        found = _SCALARS.get(kind)
        if found is not None:
            return found
        if kind == "ARRAY":
            return _EMPTY if self._as_documents else _STRINGS
        if kind == "DOCUMENT":
            return _EMPTY
        raise DataError(f"The value type {kind} is not supported for sub schema")

    # -- fields ------------------------------------------------------------------------------------------------------------------

    def _add(self, name: str, part: Any, kind: str, builder: Builder) -> None:
        if name in builder.fields:
            return
        if kind in _SCALARS:
            builder.field(name, _SCALARS[kind])
        elif kind == "REGULAR_EXPRESSION":
            builder.field(name, _REGEX)
        elif kind == "JAVASCRIPT_WITH_SCOPE":
            raise DataError(f"The field {name} is code with a scope, for which there is no schema")
        elif kind == "DOCUMENT":
            self._add_document(name, part, builder)
        elif kind == "ARRAY":
            if self._as_documents:
                self._add_array_as_document(name, part, builder)
            else:
                self._add_array(name, part, builder)

    def _add_document(self, name: str, fields: dict[str, Entries], builder: Builder) -> None:
        if not fields:
            builder.field(name, _EMPTY)
            return
        nested = Builder(builder.below(name))
        for field, entries in fields.items():
            for part, kind in entries:
                self._add(self._field_name(field), part, kind, nested)
        builder.field(name, nested.build())

    def _add_array(self, name: str, parts: Any, builder: Builder) -> None:
        if not isinstance(parts, Entries) or not parts:
            builder.field(name, _STRINGS)
            return
        for part, _ in parts:
            if isinstance(part, (dict, Entries)):
                self._add_nested(name, part, builder, Builder(builder.below(name)), nested=False)
            else:
                self._add_simple(name, part, builder, nested=False)

    def _add_nested(self, name: str, parts: dict[str, Entries] | Entries, builder: Builder, element: Builder, *, nested: bool) -> None:
        for part, kind in parts.items() if isinstance(parts, dict) else parts:
            if isinstance(part, dict):
                self._add_nested(name, part, builder, Builder(), nested=True)
            elif isinstance(part, Entries):
                raise DataError(f"The field {name} has arrays in arrays of arrays, for which there is no schema")
            elif isinstance(part, list):
                self._add_simple(name, part, builder, nested=True)
            elif isinstance(kind, Entries):
                for value, value_kind in kind:
                    self._schema_of(value_kind)
                    self._add(self._field_name(part), value, value_kind, element)
        if element.fields and name not in builder.fields:
            found = array(element.build(), optional=True)
            builder.field(name, array(found, optional=True) if nested else found)

    def _add_simple(self, name: str, items: list[Bson], builder: Builder, *, nested: bool) -> None:
        if name in builder.fields:
            return
        schemas = [self._schema_of(item.kind) for item in items]
        if any(schema != schemas[0] for schema in schemas):
            raise DataError(f"Array elements with different Bson types are not supported: {java_shown(items)}")
        found = array(schemas[0], optional=True)
        builder.field(name, array(found, optional=True) if nested else found)

    # -- arrays as documents -----------------------------------------------------------------------------------------------------

    def _add_array_as_document(self, name: str, parts: Any, builder: Builder) -> None:
        if not isinstance(parts, Entries) or not parts:
            builder.field(name, Schema(Type.STRUCT, optional=True, name=builder.below(name)))
            return
        own_name = builder.name if builder.name is not None and builder.name.endswith(name) else builder.below(name)
        elements = Builder(own_name)
        index = 0
        for part, _ in parts:
            if isinstance(part, Indexed):
                self._add_element(elements, part.place, part.fields)
            elif isinstance(part, Entries):
                if part:
                    index += self._add_element(elements, index, part)
            else:
                self._add_elements(elements, part)
        if own_name != builder.name:
            builder.field(name, elements.build())
        else:
            for field, schema in elements.fields.items():
                builder.field(field, schema)

    def _add_element(self, elements: Builder, index: int, parts: dict[str, Entries] | Entries) -> bool:
        element = Builder(elements.below(f"_{index}"))
        if isinstance(parts, Entries):
            for part, _ in parts:
                if isinstance(part, list) and not isinstance(part, Entries):
                    self._add_elements(element, part)
        else:
            for name, entries in parts.items():
                for part, kind in entries:
                    self._add_member(self._field_name(name), part, kind, element)
        if element.fields:
            elements.field(f"_{index}", element.build())
        return bool(element.fields)

    def _add_member(self, name: str, part: Any, kind: str, element: Builder) -> None:
        """A field of a document in an array."""
        if kind in ("ARRAY", "DOCUMENT") and not part:
            element.field(name, Schema(Type.STRUCT, optional=True, name=self._field_name(element.below(name))))
        elif kind == "ARRAY":
            nested = Builder(element.below(name))
            self._add(name, part, kind, nested)
            element.field(name, nested.build())
        elif kind == "DOCUMENT":
            self._add(name, part, kind, element)
        else:
            element.field(name, self._schema_of(kind))

    def _add_elements(self, builder: Builder, items: Iterable[Bson]) -> None:
        for index, item in enumerate(items):
            builder.field(f"_{index}", self._schema_of(item.kind))

    # -- values ------------------------------------------------------------------------------------------------------------------

    def fill(self, document: Document, struct: Struct) -> None:
        """A document's values into a struct. Raises DataError: a value has no field, or another type than its field."""
        for name, value in document.items():
            self._put(self._field_name(name), value, struct)

    def _put(self, name: str, value: Any, struct: Struct) -> None:
        found: Any
        if isinstance(value, dict):
            field = struct.schema.field(name)
            if field is None:
                raise DataError(f"Can't find field: {name} in schema {_shown(struct.schema)}")
            found = self._struct(value, field.schema)
        elif isinstance(value, list):
            if not value and self._leaves_out_empty:
                return
            field = struct.schema.field(name)
            if field is None:
                if not value and not self._as_documents:
                    raise DataError(f"{name} is not a valid field name")
                raise DataError(f"The array {name} has elements for which there is no schema")
            found = self._array(value, field.schema)
        elif value.kind == "REGULAR_EXPRESSION":
            found = Struct(_REGEX, value.value)
        elif value.kind == "UNDEFINED":
            return
        else:
            found = _plain(value)
        schema = struct.schema.fields[struct.schema.index_of(name)].schema
        _require(name, schema, found)
        struct[name] = found

    def _struct(self, document: Document, schema: Schema) -> Struct:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {_shown(schema)}")
        struct = Struct(schema)
        self.fill(document, struct)
        return struct

    def _array(self, items: list[Any], schema: Schema) -> Any:
        if self._as_documents:
            return self._struct({f"_{index}": item for index, item in enumerate(items)}, schema)
        return self._items(items, schema.value_schema if schema.value_schema is not None else schema)

    def _items(self, items: list[Any], schema: Schema) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, list):
                inner = [self._inner(part, schema) for part in item]
                if inner:
                    found.append(inner)
            else:
                found.append(self._struct(item, schema) if isinstance(item, dict) else _plain(item))
        return found

    def _inner(self, item: Any, schema: Schema) -> Any:
        if isinstance(item, list):
            return self._items(item, schema)
        if isinstance(item, dict):
            if schema.value_schema is None:
                raise DataError("Cannot look up value schema on non-array and non-map type")
            return self._struct(item, schema.value_schema)
        return _plain(item)


def _plain(value: Bson) -> Any:
    kind, content = value
    if kind == "DATE_TIME" or kind == "TIMESTAMP":
        # the reference reads a timestamp's seconds as a signed number
        milliseconds = content if kind == "DATE_TIME" else 1000 * (content[0] - (content[0] >> 31 << 32))
        try:
            return _EPOCH + timedelta(milliseconds=milliseconds)
        except OverflowError:
            raise DataError(f"The date {milliseconds} ms is beyond the years 1 to 9999") from None
    if kind == "BINARY":
        return content[1]
    return content if kind in _SCALARS else None


_INT32 = range(-(2**31), 2**31)
_PYTHON: dict[Type, type | tuple[type, ...]] = {
    Type.INT32: int,
    Type.INT64: (int, datetime),
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.STRUCT: Struct,
    Type.ARRAY: list,
}


def _require(name: str, schema: Schema, value: Any, where: str = "field") -> None:
    """Arrays hold what their schema says (`ConnectSchema.validateValue`); scalars do by their making."""
    if value is None:
        return
    if not isinstance(value, _PYTHON[schema.type]):
        named = f' "{schema.name}"' if schema.name else ""
        found = "class java.lang.Integer" if type(value) is int and value in _INT32 else java_class(value)
        raise DataError(f'Invalid Java object for schema{named} with type {schema.type.name}: {found} for {where}: "{name}"')
    if isinstance(value, list) and schema.value_schema is not None:
        for item in value:
            _require(name, schema.value_schema, item, f"element of array {where}")


def _shown(schema: Schema) -> str:
    return f"Schema{{{schema.name}:{schema.type.name}}}" if schema.name else f"Schema{{{schema.type.name}}}"
