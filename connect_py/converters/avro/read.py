"""Avro's binary form to Connect values (Avro's `GenericDatumReader` and `AvroData.toConnectData` in one step).

An Avro schema and the Connect schema that was made of it become a chain of small functions once. Each takes the bytes and an offset and
gives the value and the next offset. Bytes after the value are ignored, as in the reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from connect_py.converters.avro.binary import (
    DOUBLE,
    FLOAT,
    Reader,
    array_reader,
    map_reader,
    read_anything,
    read_bytes,
    read_fixed,
    read_long,
    read_string,
)
from connect_py.converters.avro.options import AvroOptions, is_map_entry, nullable_member
from connect_py.converters.avro.schema import AvroSchema
from connect_py.converters.json_write import scale_of
from connect_py.converters.registry.converter import Decode
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, bytes_to_decimal
from connect_py.data.times import days_to_date, millis_to_time, millis_to_timestamp
from connect_py.errors import DataError


def decoder(schema: Schema | None, avro: AvroSchema, options: AvroOptions) -> Decode:
    """Return the function that reads values of an Avro schema from an offset on.

    Args:
        schema: what `ToConnect` made of the Avro schema; None for values without a schema.

    The function raises DataError for bytes that end too early or hold what the schema cannot.
    """
    if avro.type == "bytes" and schema is not None and schema.name != DECIMAL:
        return lambda data, at: data[at:]  # the registry's serializer writes no length where the whole value is bytes
    if avro.type == "bytes" and schema is not None:
        scale = scale_of(schema)
        return lambda data, at: bytes_to_decimal(data[at:], scale)
    read = read_anything if schema is None else _reader(schema, avro, options)

    def decode(data: bytes, at: int) -> Any:
        try:
            return read(data, at)[0]
        except (IndexError, struct.error, OverflowError, TypeError, RecursionError):
            raise DataError(
                f"The bytes are no value of the Avro schema {avro.full_name}: they end too early or hold a wrong index"
            ) from None

    return decode


def _reader(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Reader:
    if avro.type == "union":
        return _union(schema, avro, options)
    read = _plain(schema, avro, options)
    if schema.name == DECIMAL:
        scale = scale_of(schema)
        return _then(read, lambda value: bytes_to_decimal(value, scale))
    convert = _LOGICAL.get(schema.name)
    return read if convert is None else _then(read, convert)


_LOGICAL: dict[str | None, Callable[[Any], Any]] = {DATE: days_to_date, TIME: millis_to_time, TIMESTAMP: millis_to_timestamp}


def _then(read: Reader, convert: Callable[[Any], Any]) -> Reader:
    def read_and_convert(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return convert(value), at

    return read_and_convert


def _plain(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Reader:
    match avro.type:
        case "null":
            return lambda data, at: (None, at)
        case "boolean":
            return lambda data, at: (data[at] != 0, at + 1)
        case "int" | "long":
            return _narrow(schema)
        case "float":
            return lambda data, at: (FLOAT.unpack_from(data, at)[0], at + 4)
        case "double":
            return lambda data, at: (DOUBLE.unpack_from(data, at)[0], at + 8)
        case "string":
            return read_string
        case "bytes":
            return read_bytes
        case "fixed":
            return lambda data, at: read_fixed(data, at, avro.size)
        case "enum":
            return _then(read_long, lambda index: _symbol(avro, index))
        case "array":
            return _array(schema, avro, options)
        case "map":
            return map_reader(read_string, _inner(schema.value_schema, avro.items, options))
        case _:
            return _record(schema, avro, options)


_HALF = {Type.INT8: 1 << 7, Type.INT16: 1 << 15}


def _narrow(schema: Schema) -> Reader:
    half = _HALF.get(schema.type)
    return read_long if half is None else _then(read_long, lambda value: (value + half) % (2 * half) - half)


def _symbol(avro: AvroSchema, index: int) -> str:
    if index < 0:
        raise IndexError
    return avro.symbols[index]


def _inner(schema: Schema | None, avro: AvroSchema | None, options: AvroOptions) -> Reader:
    assert schema is not None
    assert avro is not None
    return _reader(schema, avro, options)


def _array(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Reader:
    assert avro.items is not None
    if is_map_entry(avro.items):
        by_name = {field.name: field.schema for field in avro.items.fields}
        key, value = _inner(schema.key_schema, by_name["key"], options), _inner(schema.value_schema, by_name["value"], options)
        return map_reader(key, value, value_first=[*by_name] != ["key", "value"])
    return array_reader(_inner(schema.value_schema, avro.items, options))


def _record(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Reader:
    parts = [_reader(field.schema, held.schema, options) for field, held in zip(schema.fields, avro.fields, strict=True)]

    def read(data: bytes, at: int) -> tuple[Struct, int]:
        values = []
        for part in parts:
            value, at = part(data, at)
            values.append(value)
        return Struct(schema, values), at

    return read


def _union(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Reader:
    flattened = len(avro.branches) == 1 and options.flatten_singletons
    if flattened or nullable_member(avro) is not None:
        choices = [None if branch.type == "null" else _reader(schema, branch, options) for branch in avro.branches]
    else:
        members = iter(range(len(schema.fields)))
        choices = [None if branch.type == "null" else _member(schema, next(members), branch, options) for branch in avro.branches]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = read_long(data, at)
        if index < 0:
            raise IndexError
        choice = choices[index]
        return (None, at) if choice is None else choice(data, at)

    return read


def _member(schema: Schema, index: int, avro: AvroSchema, options: AvroOptions) -> Reader:
    """Return a member of a union, as a struct of which one field has a value."""
    part, before, after = _reader(schema.fields[index].schema, avro, options), [None] * index, [None] * (len(schema.fields) - index - 1)
    return _then(part, lambda value: Struct(schema, [*before, value, *after]))
