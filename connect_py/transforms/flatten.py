"""Flatten nested fields into one struct (`org.apache.kafka.connect.transforms.Flatten`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.transform import RowChange
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.java_text import java_class
from connect_py.data.json_rows import NULL, NeedsRecord, leaves_reader, object_of
from connect_py.data.json_values import value_writer
from connect_py.data.schema import DECIMAL, SchemaCache
from connect_py.errors import DataError
from connect_py.transforms.base import (
    KAFKA,
    AnyRecord,
    OneSide,
    key,
    like,
    require_map,
    require_schema,
    require_struct,
    require_struct_schema,
)


class Flatten(OneSide):
    """Gives nested fields names made of all names above them. Arrays stay as they are; a null passes.

    A field below something optional is optional, and a default that only its parent has becomes its own.
    """

    PURPOSE = "flattening"
    handles_rows = True
    KEYS = (
        key(
            "delimiter",
            ConfigType.STRING,
            ".",
            Importance.MEDIUM,
            "Delimiter to insert between field names from the input record when generating field names for the output record",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._delimiter: str = config["delimiter"]
        self._schemas: SchemaCache[Schema] = SchemaCache(self._flat, 16)

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the flat record. Raises DataError for a map within a struct, or a struct within a map."""
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            return self.changed(record, None, dict(self._items(require_map(value, self.PURPOSE), "")))
        source = require_struct(value, self.PURPOSE, schema)
        flat = self._schemas(schema)
        return self.changed(record, flat, Struct(flat, _values(schema, source)))

    def row_change(self, route: Route) -> RowChange:
        """Return what makes rows flat. Raises DataError and NeedsRecord where only `apply` can tell, or fails."""
        schema = self.schema_in(route)
        if schema is None:
            return lambda key, value: (route, key, value)
        read = leaves_reader(require_struct_schema(schema, self.PURPOSE))
        flat = self._schemas(schema)
        template, below_null = object_of([field.name for field in flat.fields]), [_null_text(field.schema) for field in flat.fields]

        def flatten(row: bytes) -> bytes:
            texts = read(row)
            if None in texts:
                texts = tuple([null if text is None else text for text, null in zip(texts, below_null, strict=True)])
                if None in texts:
                    raise NeedsRecord("A default's text is not known")
            return template % texts

        return self.changing(route, flat, flatten)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _items(self, value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, item in value.items():
            full = self._name(prefix, name)
            if isinstance(item, dict):
                yield from self._items(item, full)
            elif isinstance(item, Struct):
                raise DataError(
                    f"Flatten transformation does not support {java_class(item)} for record without schemas (for field {full})."
                )
            else:
                yield full, item

    def _flat(self, schema: Schema | None) -> Schema:
        source = require_schema(schema, self.PURPOSE)
        return like(source, list(self._fields(source, "", source.optional, source.default)))

    def _fields(self, schema: Schema, prefix: str, optional: bool, default: Struct | None) -> Iterator[Field]:
        for field in schema.fields:
            full = self._name(prefix, field.name)
            below = field.schema
            is_optional = optional or below.optional
            own_default = below.default
            if own_default is None and default is not None:
                own_default = default[field.name]
            if below.type is Type.STRUCT:
                yield from self._fields(below, full, is_optional, own_default)
            elif below.type is Type.MAP:
                raise DataError(f"Flatten transformation does not support MAP for record with schemas (for field {full}).")
            else:
                yield Field(full, replace(below, optional=is_optional, default=own_default))


def _values(schema: Schema, value: Struct | None) -> Iterator[Any]:
    """Yield the values of the flat schema's fields; below a null all are null."""
    for field in schema.fields:
        if field.schema.type is Type.STRUCT:
            yield from _values(field.schema, None if value is None else value.without_default(field.name))
        else:
            yield None if value is None else value[field.name]


def _null_text(schema: Schema) -> bytes | None:
    """Return what rows show of a null, None for a default that this cannot write."""
    if schema.default is None:
        return NULL
    return None if schema.name == DECIMAL or schema.type is Type.BYTES else value_writer(schema)(schema.default)


class FlattenKey(Flatten):
    """Work on the record's key."""

    java_name, on_key = f"{KAFKA}Flatten$Key", True


class FlattenValue(Flatten):
    """Work on the record's value."""

    java_name = f"{KAFKA}Flatten$Value"
