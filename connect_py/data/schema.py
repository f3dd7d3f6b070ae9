"""Describe records: schemas, structs and logical types, as Kafka Connect has them (`org.apache.kafka.connect.data`).

A schema is an immutable value (`Schema`, `ConnectSchema`): two schemas with equal parts are equal and hash alike, so a schema can key a
cache. `Struct` is a value with named fields. Python types of values, by schema: integers int; FLOAT32/64 float; BOOLEAN bool; STRING str;
BYTES bytes; ARRAY list; MAP dict; STRUCT Struct; and by logical name: Decimal decimal.Decimal; Date datetime.date; Time datetime.time;
Timestamp datetime.datetime (UTC). Logical types are schemas with a well-known name.

`SchemaCache` keeps what was computed of a schema while the schema lives. It looks schemas up by identity: hashing a deep schema for every
record would cost more than writing the record, and records of one table share one object. Used from the thread of the converter that owns
it; a lost race between two threads only computes twice.
"""

from __future__ import annotations

import decimal
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

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
        """Return whether values have no parts."""
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
        """Return the position of a struct's field.

        Raises:
            DataError: the struct has no field of that name.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise DataError(f"{name} is not a valid field name") from None

    def field(self, name: str) -> Field | None:
        """Return a struct's field by name, or None."""
        index = self._by_name.get(name)
        return None if index is None else self.fields[index]

    def parameter(self, name: str) -> str | None:
        """Return the value of one parameter, or None."""
        return dict(self.parameters).get(name)

    def as_optional(self) -> Schema:
        """Return the same schema, with None allowed."""
        return self if self.optional else replace(self, optional=True)

    def with_default(self, default: Any) -> Schema:
        """Return the same schema with a default value."""
        return replace(self, default=default)


def struct(fields: Iterable[tuple[str, Schema]], **more: Any) -> Schema:
    """Return a struct schema from (name, schema) pairs; `more` are further attributes of `Schema`."""
    return Schema(Type.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields), **more)


def array(element: Schema, **more: Any) -> Schema:
    """Return an array schema."""
    return Schema(Type.ARRAY, value_schema=element, **more)


def map_of(key: Schema, value: Schema, **more: Any) -> Schema:
    """Return a map schema."""
    return Schema(Type.MAP, key_schema=key, value_schema=value, **more)


def parameters(pairs: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return a mapping in the form that `Schema.parameters` holds."""
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


class Struct:
    """Values of a struct schema's fields, by position.

    Args:
        schema: a schema of type STRUCT.
        values: one value a field, in the schema's order; missing ones are None.

    Raises:
        DataError: the schema is not a struct, or there are more values than fields.
    """

    __slots__ = ("schema", "values")

    def __init__(self, schema: Schema, values: Iterable[Any] = ()) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema.type.value}")
        self.schema = schema
        self.values = list(values)
        missing = len(schema.fields) - len(self.values)
        if missing < 0:
            raise DataError(f"{len(self.values)} values for the {len(schema.fields)} fields of {schema.name}")
        self.values += [None] * missing

    def __getitem__(self, name: str) -> Any:
        """Return the field's value, or its default when the value is None. Raises DataError for an unknown field."""
        index = self.schema.index_of(name)
        value = self.values[index]
        return self.schema.fields[index].schema.default if value is None else value

    def without_default(self, name: str) -> Any:
        """Return the field's value as it was put. Raises DataError for an unknown field."""
        return self.values[self.schema.index_of(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        self.values[self.schema.index_of(name)] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        parts = (f"{f.name}={v}" for f, v in zip(self.schema.fields, self.values, strict=True) if v is not None)
        return "Struct{" + ",".join(parts) + "}"


DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"

#: Wide enough for any numeric of PostgreSQL (131072 digits before the point, 16383 after).
EXACT = decimal.Context(prec=150_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def decimal_schema(scale: int, precision: int | None = None, *, optional: bool = False) -> Schema:
    """Return decimal of a fixed scale; the precision parameter is Debezium's (`connect.decimal.precision`)."""
    parameters: tuple[tuple[str, str], ...] = (("scale", str(scale)),)
    if precision is not None:
        parameters += (("connect.decimal.precision", str(precision)),)
    return Schema(Type.BYTES, optional=optional, name=DECIMAL, version=1, parameters=parameters)


def int_to_bytes(value: int) -> bytes:
    """Return shortest big-endian two's complement of an integer, as java.math.BigInteger.toByteArray gives it."""
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def sized(value: decimal.Decimal) -> decimal.Decimal:
    """Return a decimal that can be written out: `1E+999999999` is twelve characters, and its digits are a gigabyte.

    Raises:
        DataError: it is not finite, or has more digits than any database stores.
    """
    if not value.is_finite() or abs(value.adjusted()) >= EXACT.prec:
        raise DataError(f"{value} has no exact decimal form")
    return value


def whole(value: decimal.Decimal) -> int:
    """Return a decimal without its fraction. Raises DataError: see `sized`."""
    return int(sized(value))


def decimal_to_bytes(value: decimal.Decimal, scale: int) -> bytes:
    """Return unscaled value of a decimal at a scale.

    Raises:
        DataError: the value has more fractional digits than the scale, or no exact form.
    """
    try:
        shifted = value.scaleb(scale, EXACT)
    except decimal.DecimalException:
        raise DataError(f"{value} has no exact decimal form") from None
    unscaled = whole(shifted)
    if unscaled != shifted:
        raise DataError(f"Decimal value has mismatching scale for given Decimal schema: {value} at scale {scale}")
    return int_to_bytes(unscaled)


def bytes_to_decimal(data: bytes, scale: int) -> decimal.Decimal:
    """Return the inverse of `decimal_to_bytes`."""
    return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, EXACT)


T = TypeVar("T")


class SchemaCache(Generic[T]):
    """A bounded memo of a function of schemas.

    Args:
        compute: the function.
        size: how many schemas are kept; when there are more, all are forgotten (a stream with that many live schemas gains nothing
            from a finer rule).
    """

    def __init__(self, compute: Callable[[Schema | None], T], size: int = 1000) -> None:
        self._compute = compute
        self._size = max(size, 1)
        self._known: dict[int, tuple[Schema | None, T]] = {}

    def __call__(self, schema: Schema | None) -> T:
        found = self._known.get(id(schema))
        if found is not None:
            return found[1]
        value = self._compute(schema)
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[id(schema)] = (schema, value)  # the reference keeps the id from being given to another schema
        return value
