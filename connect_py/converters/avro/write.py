"""Connect values to Avro's binary form (`AvroData.fromConnectData` and Avro's `GenericDatumWriter` in one step).

A pair of a Connect schema and an Avro schema becomes a chain of small functions once (`encoder`), and every value passes through those.
The Avro schema is the Connect schema's own, or one that somebody else registered (``use.latest.version``): records are matched by the
names of their fields, and a field that only Avro has is written as its default.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.converters.avro.binary import (
    ANYTHING,
    DOUBLE,
    FLOAT,
    SMALL,
    Writer,
    anything_bytes,
    block_bytes,
    long_bytes,
    symbol_writer,
    text_bytes,
)
from connect_py.converters.avro.defaults import json_bytes
from connect_py.converters.avro.options import AvroOptions, has_string_keys, is_enum, is_union
from connect_py.converters.avro.schema import NO_DEFAULT, AvroSchema
from connect_py.converters.base import BITS, struct_values, wrong_logical, wrong_type
from connect_py.converters.json_write import scale_of
from connect_py.data import Schema, Type
from connect_py.data.avro_names import full_name, scrub_name
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, decimal_to_bytes
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis
from connect_py.errors import DataError

#: The Avro types that can hold values of a type.
HOLDS: Mapping[Type, tuple[str, ...]] = {
    Type.INT8: ("int", "long"),
    Type.INT16: ("int", "long"),
    Type.INT32: ("int", "long"),
    Type.INT64: ("long",),
    Type.FLOAT32: ("float", "double"),
    Type.FLOAT64: ("double",),
    Type.BOOLEAN: ("boolean",),
    Type.STRING: ("string", "enum"),
    Type.BYTES: ("bytes", "fixed"),
    Type.ARRAY: ("array",),
    Type.MAP: ("map", "array"),
    Type.STRUCT: ("record",),
}


def encoder(schema: Schema | None, avro: AvroSchema, options: AvroOptions) -> Writer:
    """Return the function that writes values of a Connect schema with an Avro schema.

    Raises:
        DataError: the Avro schema has no place for such values.
    """
    if schema is None:
        if avro.full_name != ANYTHING.full_name:
            raise DataError(f"Values without a schema are written as {ANYTHING.full_name}, and the registered schema is {avro.full_name}")
        return anything_bytes
    if avro.type == "union":
        return _in_union(schema, avro, options)
    write = _part(schema, avro, options)
    if schema.default is not None and not options.ignore_default_for_nullables:
        default = write(schema.default)
        return lambda value: default if value is None else write(value)

    def write_value(value: Any) -> bytes:
        if value is None:
            raise DataError("Found null value for non-optional schema")
        return write(value)

    return write_value


def _in_union(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Writer:
    nulls = [index for index, branch in enumerate(avro.branches) if branch.type == "null"]
    null = long_bytes(nulls[0]) if nulls and schema.optional else None
    if is_union(schema):
        return _union_struct(schema, avro, null, options)
    index, branch = branch_of(schema, avro, options)
    mark, write = long_bytes(index), _part(schema, branch, options)
    if schema.default is not None and not options.ignore_default_for_nullables:
        null = mark + write(schema.default)

    def write_value(value: Any) -> bytes:
        if value is not None:
            return mark + write(value)
        if null is None:
            raise DataError("Found null value for non-optional schema")
        return null

    return write_value


def branch_of(schema: Schema, avro: AvroSchema, options: AvroOptions) -> tuple[int, AvroSchema]:
    """Return the member of a union that holds values of a schema: by name first, then the first type that fits."""
    fitting = [(index, branch) for index, branch in enumerate(avro.branches) if branch.type in HOLDS[schema.type]]
    if schema.name is not None:
        name = full_name(schema.name, scrub=options.scrub)
        for index, branch in fitting:
            if branch.name in (name, name.rpartition(".")[2]):
                return index, branch
    if not fitting:
        raise DataError(f"The registered Avro union has no member for {schema.type.name}")
    return fitting[0]


def _union_struct(schema: Schema, avro: AvroSchema, null: bytes | None, options: AvroOptions) -> Writer:
    """Return a struct of which one field has a value, that of the member's type."""
    members = [field.schema for field in schema.fields]
    others = [(index, branch) for index, branch in enumerate(avro.branches) if branch.type != "null"]
    same = len(others) == len(members)
    chosen = [others[at] if same else branch_of(member, avro, options) for at, member in enumerate(members)]
    writers = [(long_bytes(index), _part(member, branch, options)) for member, (index, branch) in zip(members, chosen, strict=True)]

    def write(value: Any) -> bytes:
        if value is not None:
            for item, (mark, part) in zip(struct_values(schema, value), writers, strict=True):
                if item is not None:
                    return mark + part(item)
        if null is None:
            raise DataError("Found null value for non-optional schema")
        return null

    return write


# -- by type -----------------------------------------------------------------------------------------------------------------------


def _part(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Writer:
    if avro.type not in HOLDS[schema.type]:
        raise DataError(f"The registered Avro schema has {avro.full_name} where the record has {schema.type.name}")
    if schema.name == DECIMAL:
        return _decimal(schema, avro)
    if schema.name in _TEMPORAL:
        return _temporal(schema.name)
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return _integer(schema)
        case Type.FLOAT32 | Type.FLOAT64:
            return _floating(schema, (FLOAT if avro.type == "float" else DOUBLE).pack)
        case Type.BOOLEAN:
            return lambda value: _boolean(schema, value)
        case Type.STRING:
            return symbol_writer(avro) if avro.type == "enum" or is_enum(schema, options) else _string(schema)
        case Type.BYTES:
            return lambda value: _sized(value, avro, schema)
        case Type.ARRAY:
            return _array(schema, avro, options)
        case Type.MAP:
            return _map(schema, avro, options)
        case Type.STRUCT:
            return _record(schema, avro, options)


def _integer(schema: Schema) -> Writer:
    bound = 1 << BITS[schema.type]

    def write(value: Any) -> bytes:
        if type(value) is not int:
            raise wrong_type(schema, value)
        if -64 <= value < 8192:
            return SMALL[value + 64]
        if not -bound <= value < bound:
            raise DataError(f"{value} is not in the range of {schema.type.name}")
        return long_bytes(value)

    return write


def _floating(schema: Schema, pack: Callable[[float], bytes]) -> Writer:
    def write(value: Any) -> bytes:
        if not isinstance(value, float):
            raise wrong_type(schema, value)
        try:
            return pack(value)
        except OverflowError:
            raise DataError(f"{value} is not in the range of {schema.type.name}") from None

    return write


def _boolean(schema: Schema, value: Any) -> bytes:
    if not isinstance(value, bool):
        raise wrong_type(schema, value)
    return b"\1" if value else b"\0"


def _string(schema: Schema) -> Writer:
    def write(value: Any) -> bytes:
        if not isinstance(value, str):
            raise wrong_type(schema, value)
        return text_bytes(value)

    return write


def _sized(value: Any, avro: AvroSchema, schema: Schema) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong_type(schema, value)
    data = bytes(value)
    if avro.type == "bytes":
        return long_bytes(len(data)) + data
    if len(data) != avro.size:
        raise DataError(f"{len(data)} bytes for {avro.full_name}, which has {avro.size}")
    return data


def _decimal(schema: Schema, avro: AvroSchema) -> Writer:
    scale = scale_of(schema)

    def write(value: Any) -> bytes:
        if not isinstance(value, decimal.Decimal):
            raise wrong_logical("Decimal", value)
        data = decimal_to_bytes(value, scale)
        if avro.type == "fixed":
            data = data.rjust(avro.size, b"\xff" if data[0] > 127 else b"\0")
        return _sized(data, avro, schema)

    return write


_TEMPORAL: Mapping[str | None, tuple[str, type, Callable[[Any], int]]] = {
    DATE: ("Date", datetime.date, date_to_days),
    TIME: ("Time", datetime.time, time_to_millis),
    TIMESTAMP: ("Timestamp", datetime.datetime, timestamp_to_millis),
}


def _temporal(name: str | None) -> Writer:
    what, type_, number = _TEMPORAL[name]

    def write(value: Any) -> bytes:
        if not isinstance(value, type_):
            raise wrong_logical(what, value)
        return long_bytes(number(value))

    return write


def _array(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Writer:
    assert avro.items is not None
    element = encoder(schema.value_schema, avro.items, options)

    def write(value: Any) -> bytes:
        if not isinstance(value, list | tuple):
            raise wrong_type(schema, value)
        return block_bytes([element(item) for item in value])

    return write


def _map(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Writer:
    assert avro.items is not None
    if has_string_keys(schema, options):
        if avro.type != "map":
            raise DataError("The registered Avro schema has an array where the record has a map with string keys")
        key, item = _string(Schema(Type.STRING)), encoder(schema.value_schema, avro.items, options)
    else:
        entry = avro.items
        held = [entry.field_named(name) for name in ("key", "value")] if avro.type == "array" else [None, None]
        if held[0] is None or held[1] is None:
            raise DataError("The registered Avro schema has no array of keys and values where the record has a map")
        key, item = encoder(schema.key_schema, held[0].schema, options), encoder(schema.value_schema, held[1].schema, options)

    def write(value: Any) -> bytes:
        if not isinstance(value, Mapping):
            raise wrong_type(schema, value)
        return block_bytes([key(k) + item(v) for k, v in value.items()])

    return write


def _record(schema: Schema, avro: AvroSchema, options: AvroOptions) -> Writer:
    own = {scrub_name(f.name) if options.scrub else f.name: (at, f.schema) for at, f in enumerate(schema.fields)}
    if [field.name for field in avro.fields] != list(own):
        return _by_name(schema, avro, own, options)
    parts = [encoder(field.schema, held.schema, options) for field, held in zip(schema.fields, avro.fields, strict=True)]

    def write(value: Any) -> bytes:
        values = struct_values(schema, value)
        return b"".join([part(item) for part, item in zip(parts, values, strict=True)])

    return write


def _by_name(schema: Schema, avro: AvroSchema, own: Mapping[str, tuple[int, Schema]], options: AvroOptions) -> Writer:
    lost = own.keys() - {field.name for field in avro.fields}
    if lost:
        raise DataError(f"The registered schema {avro.full_name} has no field for {', '.join(sorted(lost))}")
    parts: list[tuple[int, Writer]] = []
    for field in avro.fields:
        if field.name in own:
            at, held = own[field.name]
            parts.append((at, encoder(held, field.schema, options)))
        elif field.default is NO_DEFAULT:
            raise DataError(f"The registered schema {avro.full_name} requires the field {field.name}, which the record does not have")
        else:
            parts.append((-1, _constant(json_bytes(field.schema, field.default))))

    def write(value: Any) -> bytes:
        values = struct_values(schema, value)
        return b"".join([part(values[at]) if at >= 0 else part(None) for at, part in parts])

    return write


def _constant(data: bytes) -> Writer:
    return lambda value: data
