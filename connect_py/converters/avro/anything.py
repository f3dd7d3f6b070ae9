"""Values without a schema: a record of nine optional fields, of which at most one has a value (`AvroData.ANYTHING_SCHEMA`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.converters.avro.binary import (
    DOUBLE,
    FLOAT,
    Reader,
    block_bytes,
    long_bytes,
    read_block,
    read_bytes,
    read_long,
    read_string,
    text_bytes,
)
from connect_py.converters.avro.options import MAP_ENTRY, NAMESPACE
from connect_py.converters.avro.schema import AvroField, AvroSchema
from connect_py.data.java_classes import java_class
from connect_py.errors import DataError


def _anything() -> AvroSchema:
    """What values without a schema are written with: a record of which at most one field is not null."""
    null = AvroSchema("null")
    made = AvroSchema("record", name=f"{NAMESPACE}.Anything")
    entry = AvroSchema("record", name=f"{NAMESPACE}.{MAP_ENTRY}", fields=[AvroField("key", made), AvroField("value", made)])
    for name in ("boolean", "bytes", "double", "float", "int", "long", "string"):
        made.fields.append(AvroField(name, AvroSchema("union", branches=[null, AvroSchema(name)]), default=None))
    for name, item in (("array", made), ("map", entry)):
        made.fields.append(AvroField(name, AvroSchema("union", branches=[null, AvroSchema("array", items=item)]), default=None))
    return made


ANYTHING = _anything()


_FIELDS = [field.name for field in ANYTHING.fields]


def anything_bytes(value: Any) -> bytes:
    """A record of nine optional fields, of which one has the value."""
    match value:
        case None:
            return b"\0" * len(_FIELDS)
        case bool():
            return _one_of("boolean", b"\1" if value else b"\0")
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise DataError(f"{value} is not in the range of INT64")
            return _one_of("long", long_bytes(value))
        case float():
            return _one_of("double", DOUBLE.pack(value))
        case str():
            return _one_of("string", text_bytes(value))
        case list() | tuple():
            return _one_of("array", block_bytes([anything_bytes(item) for item in value]))
        case Mapping():
            return _one_of("map", block_bytes([anything_bytes(key) + anything_bytes(item) for key, item in value.items()]))
        case _:
            raise DataError(f"Unknown Java type for schemaless data: {java_class(value)}")


def _one_of(name: str, data: bytes) -> bytes:
    at = _FIELDS.index(name)
    return b"\0" * at + b"\2" + data + b"\0" * (len(_FIELDS) - at - 1)


def read_anything(data: bytes, at: int) -> tuple[Any, int]:
    """A record of nine optional fields; the first that has a value is the value."""
    found = None
    for read in _ANYTHING:
        index, at = read_long(data, at)
        if index:
            value, at = read(data, at)
            found = value if found is None else found
    return found, at


def _anythings(data: bytes, at: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    count, at = read_block(data, at)
    while count:
        for _ in range(count):
            one, at = read_anything(data, at)
            found.append(one)
        count, at = read_block(data, at)
    return found, at


def _entries(data: bytes, at: int) -> tuple[dict[Any, Any], int]:
    found: dict[Any, Any] = {}
    count, at = read_block(data, at)
    while count:
        for _ in range(count):
            key, at = read_anything(data, at)
            found[key], at = read_anything(data, at)
        count, at = read_block(data, at)
    return found, at


#: In the order of the record's fields: boolean, bytes, double, float, int, long, string, array, map.
_ANYTHING: tuple[Reader, ...] = (
    lambda data, at: (data[at] != 0, at + 1),
    read_bytes,
    lambda data, at: (DOUBLE.unpack_from(data, at)[0], at + 8),
    lambda data, at: (FLOAT.unpack_from(data, at)[0], at + 4),
    read_long,
    read_long,
    read_string,
    _anythings,
    _entries,
)
