"""A value with named fields (`org.apache.kafka.connect.data.Struct`).

Python types of values, by schema: integers int; FLOAT32/64 float; BOOLEAN bool; STRING str; BYTES bytes; ARRAY list; MAP dict;
STRUCT Struct; and by logical name: Decimal decimal.Decimal; Date datetime.date; Time datetime.time; Timestamp datetime.datetime (UTC).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connect_py.data.schema import Schema, Type
from connect_py.errors import DataError


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
        """The field's value, or its default when the value is None. Raises DataError for an unknown field."""
        index = self.schema.index_of(name)
        value = self.values[index]
        return self.schema.fields[index].schema.default if value is None else value

    def without_default(self, name: str) -> Any:
        """The field's value as it was put. Raises DataError for an unknown field."""
        return self.values[self.schema.index_of(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        self.values[self.schema.index_of(name)] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        parts = (f"{f.name}={v}" for f, v in zip(self.schema.fields, self.values, strict=True) if v is not None)
        return "Struct{" + ",".join(parts) + "}"
