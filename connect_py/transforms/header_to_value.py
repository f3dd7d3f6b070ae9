"""Put headers into fields of the value (`io.debezium.transforms.HeaderToValue`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Header, Importance, Width
from connect_py.data import Field, Schema, Struct, Type
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, like, require_struct
from connect_py.transforms.debezium import (
    DEBEZIUM,
    DebeziumTransform,
    listed,
    one_of,
    option,
    required,
    without_empty_items,
    without_spaces,
)

_PURPOSE = "Header field insertion"
#: A stream has few schemas; with more than this they are forgotten together.
_MAX_SCHEMAS = 64

#: Where a header goes, and its schema.
_Entry = tuple[tuple[str, ...], Schema | None]


class HeaderToValue(DebeziumTransform):
    """Copies or moves headers into fields, also into structs inside the value (`after.field`)."""

    java_name = f"{DEBEZIUM}HeaderToValue"
    KEYS = (
        option(
            "headers",
            ConfigType.LIST,
            None,
            Importance.HIGH,
            Width.NONE,
            "Header names list",
            "Required. The headers that become fields.",
        ),
        option(
            "fields",
            ConfigType.LIST,
            None,
            Importance.HIGH,
            Width.NONE,
            "Field names list",
            "Required. The names of the fields, in the order of the headers; dots lead into structs.",
        ),
        option(
            "operation",
            ConfigType.STRING,
            None,
            Importance.HIGH,
            Width.NONE,
            "Operation: mover or copy",
            "Required. copy keeps the headers, move removes them.",
        ),
    )
    RULES = (
        ("headers", required),
        ("headers", without_spaces),
        ("headers", without_empty_items),
        ("operation", required),
        ("operation", one_of("move", "copy")),
        ("fields", required),
        ("fields", without_spaces),
        ("fields", without_empty_items),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        fields, headers = listed(",".join(config["fields"])), listed(",".join(config["headers"]))
        if len(fields) != len(headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._paths = {header: tuple(field.split(".")) for header, field in reversed(list(zip(headers, fields, strict=True)))}
        self._moves = config["operation"].strip().lower() == "move"
        self._schemas: dict[tuple[int, tuple[_Entry, ...]], tuple[Schema, Schema]] = {}

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with the fields; one without any of the headers, or with a null value, is left alone.

        Raises:
            DataError: the value is not a struct, or a path leads through something that is none.
        """
        if record.value is None:
            return record
        value = require_struct(record.value, _PURPOSE, record.value_schema)
        found = [header for header in record.headers if header.name in self._paths]
        if not found:
            return record
        schema = self._schema(value.schema, tuple((self._paths[header.name], header.schema) for header in found))
        changed = _with_values(value, schema, [(self._paths[header.name], header) for header in found])
        left = [header for header in record.headers if header.name not in self._paths] if self._moves else record.headers
        return replace(record, value_schema=schema, value=changed, headers=left)

    def _schema(self, source: Schema, entries: tuple[_Entry, ...]) -> Schema:
        known = self._schemas.get((id(source), entries))
        if known is not None and known[0] is source:
            return known[1]
        if len(self._schemas) >= _MAX_SCHEMAS:
            self._schemas.clear()
        made = _with_fields(source, entries)
        self._schemas[id(source), entries] = (source, made)
        return made


def _with_fields(source: Schema, entries: Sequence[_Entry]) -> Schema:
    """Return the schema with fields at the paths. A struct on the way loses that it was optional, as in Debezium; a new one is optional."""
    inner: dict[str, list[_Entry]] = {}
    for path, schema in entries:
        if len(path) > 1:
            inner.setdefault(path[0], []).append((path[1:], schema))
    fields = []
    for field in source.fields:
        if field.name in inner:
            if field.schema.type is not Type.STRUCT:
                nested = ".".join((field.name, *inner[field.name][0][0]))
                raise DataError(f"Field '{field.name}' is a primitive type, not a struct. Cannot add nested field '{nested}'.")
            fields.append(Field(field.name, _with_fields(field.schema, inner.pop(field.name))))
        else:
            fields.append(field)
    names = {field.name for field in fields}
    for path, schema in entries:
        if len(path) == 1 and path[0] not in names:
            if schema is None:
                raise DataError(f"The header of field {path[0]} has no schema; a field needs one")
            names.add(path[0])
            fields.append(Field(path[0], schema))
    empty = Schema(Type.STRUCT)
    fields += [Field(name, _with_fields(empty, below).as_optional()) for name, below in inner.items()]
    return like(source, fields)


def _with_values(source: Struct | None, schema: Schema, entries: Sequence[tuple[tuple[str, ...], Header]]) -> Struct:
    changed = Struct(schema)
    inner: dict[str, list[tuple[tuple[str, ...], Header]]] = {}
    for path, header in entries:
        if len(path) > 1:
            inner.setdefault(path[0], []).append((path[1:], header))
    for field in source.schema.fields if source is not None else ():
        assert source is not None
        value = source[field.name]
        below = inner.pop(field.name, None)
        if value is not None:
            changed[field.name] = value if below is None else _with_values(value, schema.fields[schema.index_of(field.name)].schema, below)
    for path, header in entries:
        if len(path) == 1:
            changed[path[0]] = header.value
    for name, below in inner.items():
        changed[name] = _with_values(None, schema.fields[schema.index_of(name)].schema, below)
    return changed
