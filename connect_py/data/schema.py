"""Schemas of records, as Kafka Connect has them (`org.apache.kafka.connect.data.Schema`, `ConnectSchema`).

A schema is an immutable value: two schemas with equal parts are equal and hash alike, so a schema can key a cache.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from connect_py.errors import DataError


class Type(enum.Enum):
    """The primitive and compound types; `value` is the lower-case name that schema JSON uses (JsonSchema.java)."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    def is_primitive(self) -> bool:
        """Whether values have no parts."""
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


@dataclass(frozen=True)
class Field:
    """One field of a struct: its name and the schema of its value. Its position is its index in `Schema.fields`."""

    name: str
    schema: Schema


@dataclass(frozen=True)
class Schema:
    """The shape of a value.

    Attributes:
        type: what values are made of.
        optional: whether None is a value.
        name: a logical type's or a struct's full name.
        version: of the named schema.
        doc: a comment for people.
        parameters: pairs in the order they were given (a dict's order is visible in schema JSON).
        default: used where a required value is missing; None means that there is no default.
        fields: of a struct, in order.
        key_schema: of a map.
        value_schema: of a map's values or an array's elements.
    """

    type: Type
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = None
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {field.name: index for index, field in enumerate(self.fields)}

    def index_of(self, name: str) -> int:
        """The position of a struct's field.

        Raises:
            DataError: the struct has no field of that name.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise DataError(f"{name} is not a valid field name") from None

    def field(self, name: str) -> Field | None:
        """A struct's field by name, or None."""
        index = self._by_name.get(name)
        return None if index is None else self.fields[index]

    def parameter(self, name: str) -> str | None:
        """The value of one parameter, or None."""
        return dict(self.parameters).get(name)

    def as_optional(self) -> Schema:
        """The same schema, with None allowed."""
        return self if self.optional else replace(self, optional=True)

    def with_default(self, default: Any) -> Schema:
        """The same schema with a default value."""
        return replace(self, default=default)


def struct(fields: Iterable[tuple[str, Schema]], **more: Any) -> Schema:
    """A struct schema from (name, schema) pairs; `more` are further attributes of `Schema`."""
    return Schema(Type.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields), **more)


def array(element: Schema, **more: Any) -> Schema:
    """An array schema."""
    return Schema(Type.ARRAY, value_schema=element, **more)


def map_of(key: Schema, value: Schema, **more: Any) -> Schema:
    """A map schema."""
    return Schema(Type.MAP, key_schema=key, value_schema=value, **more)


def parameters(pairs: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A mapping in the form that `Schema.parameters` holds."""
    return tuple(pairs.items())


INT8 = Schema(Type.INT8)
INT16 = Schema(Type.INT16)
INT32 = Schema(Type.INT32)
INT64 = Schema(Type.INT64)
FLOAT32 = Schema(Type.FLOAT32)
FLOAT64 = Schema(Type.FLOAT64)
BOOLEAN = Schema(Type.BOOLEAN)
STRING = Schema(Type.STRING)
BYTES = Schema(Type.BYTES)
OPTIONAL_INT64 = Schema(Type.INT64, optional=True)
OPTIONAL_STRING = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES = Schema(Type.BYTES, optional=True)
