"""Defaults between Connect data, the JSON that Avro schemas hold, and Avro's binary form."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any

from connect_py.converters.avro.binary import DOUBLE, FLOAT, block_bytes, long_bytes, symbol_writer, text_bytes
from connect_py.converters.avro.options import AvroOptions, has_string_keys, is_union, member_field, nullable_member
from connect_py.converters.avro.schema import AvroSchema, JavaFloat, json_text
from connect_py.converters.json_write import scale_of
from connect_py.data import Schema, Struct, Type
from connect_py.data.avro_names import scrub_name
from connect_py.data.schema import bytes_to_decimal, decimal_to_bytes
from connect_py.data.times import date_to_days, days_to_date, millis_to_time, millis_to_timestamp, time_to_millis, timestamp_to_millis
from connect_py.errors import DataError


def default_to_json(schema: Schema, value: Any, options: AvroOptions) -> Any:
    """Return a default as Avro's JSON has it: bytes are texts of the characters 0 to 255. Raises DataError."""
    if value is None:
        return None
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal" if isinstance(value, decimal.Decimal):
            return decimal_to_bytes(value, scale_of(schema)).decode("latin-1")
        case "org.apache.kafka.connect.data.Date":
            return date_to_days(value)
        case "org.apache.kafka.connect.data.Time":
            return time_to_millis(value)
        case "org.apache.kafka.connect.data.Timestamp":
            return timestamp_to_millis(value)
    match schema.type:
        case Type.FLOAT32:
            return JavaFloat(value)
        case Type.BYTES:
            return bytes(value).decode("latin-1")
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [default_to_json(schema.value_schema, item, options) for item in value]
        case Type.MAP:
            key, item = schema.key_schema, schema.value_schema
            assert key is not None
            assert item is not None
            if has_string_keys(schema, options):
                return {name: default_to_json(item, held, options) for name, held in value.items()}
            return [[default_to_json(key, name, options), default_to_json(item, held, options)] for name, held in value.items()]
        case Type.STRUCT:
            found = {
                scrub_name(f.name) if options.scrub else f.name: default_to_json(f.schema, value[f.name], options) for f in schema.fields
            }
            return next(iter(found.values()), None) if is_union(schema) else found
        case _:
            return value


_OF_JSON: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "bytes": str,
    "fixed": str,
    "enum": str,
    "float": (int, float),
    "double": (int, float),
}


def is_valid_default(schema: AvroSchema, default: Any) -> bool:
    """Return whether a JSON value can be the default of a field (`Schema.isValidDefault`)."""
    match schema.type:
        case "null":
            return default is None
        case "boolean":
            return isinstance(default, bool)
        case "int" | "long":
            return isinstance(default, int) and not isinstance(default, bool)
        case "array":
            return isinstance(default, list) and schema.items is not None and all(is_valid_default(schema.items, item) for item in default)
        case "map":
            return (
                isinstance(default, dict) and schema.items is not None and all(is_valid_default(schema.items, v) for v in default.values())
            )
        case "record":
            return isinstance(default, dict) and all(is_valid_default(f.schema, default.get(f.name, f.default)) for f in schema.fields)
        case "union":
            return any(is_valid_default(branch, default) for branch in schema.branches)
        case _:
            return isinstance(default, _OF_JSON[schema.type])


def default_from_json(schema: Schema, avro: AvroSchema, value: Any, options: AvroOptions) -> Any:
    """Return a default's JSON value as Connect data. Raises DataError and the errors of a value of another kind."""
    if value is None:
        return None
    if avro.type == "union":
        member = nullable_member(avro)
        first = avro.branches[0]
        if member is not None:
            return default_from_json(schema, member, value, options)
        if first.type == "null":
            return None
        at = schema.index_of(member_field(first, 0, options))
        values: list[Any] = [None] * len(schema.fields)
        values[at] = default_from_json(schema.fields[at].schema, first, value, options)
        return Struct(schema, values)
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal":
            return bytes_to_decimal(value.encode("latin-1"), int(schema.parameter("scale") or 0))
        case "org.apache.kafka.connect.data.Date":
            return days_to_date(value)
        case "org.apache.kafka.connect.data.Time":
            return millis_to_time(value)
        case "org.apache.kafka.connect.data.Timestamp":
            return millis_to_timestamp(value)
    match schema.type:
        case Type.FLOAT32 | Type.FLOAT64:
            return float(value)
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64 | Type.BOOLEAN | Type.STRING:
            expected = {Type.BOOLEAN: bool, Type.STRING: str}.get(schema.type, int)
            if type(value) is not expected:
                raise DataError(f"{json_text(value)} is no {schema.type.name}")
            return value
        case Type.BYTES:
            return value.encode("latin-1")
        case Type.ARRAY:
            assert avro.items is not None
            assert schema.value_schema is not None
            return [default_from_json(schema.value_schema, avro.items, item, options) for item in value]
        case Type.MAP:
            return _map_default(schema, avro, value, options)
        case Type.STRUCT:
            pairs = zip(schema.fields, avro.fields, strict=True)
            return Struct(schema, [default_from_json(f.schema, a.schema, value.get(a.name), options) for f, a in pairs])


def _map_default(schema: Schema, avro: AvroSchema, value: Any, options: AvroOptions) -> dict[Any, Any]:
    items, key, item = avro.items, schema.key_schema, schema.value_schema
    assert items is not None
    assert key is not None
    assert item is not None
    if avro.type == "map":
        return {name: default_from_json(item, items, held, options) for name, held in value.items()}
    raise DataError("a default of a map whose keys are no strings")


def json_bytes(avro: AvroSchema, value: Any) -> bytes:
    """Return a default's JSON value in binary form. Raises DataError."""
    match avro.type:
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return long_bytes(value)
        case "float" | "double":
            return (FLOAT if avro.type == "float" else DOUBLE).pack(float(value))
        case "string":
            return text_bytes(value)
        case "bytes":
            data: bytes = value.encode("latin-1")
            return long_bytes(len(data)) + data
        case "fixed":
            fixed: bytes = value.encode("latin-1")
            return fixed
        case "enum":
            return symbol_writer(avro)(value)
        case "array" | "map":
            assert avro.items is not None
            items = avro.items
            if avro.type == "array":
                return block_bytes([json_bytes(items, item) for item in value])
            return block_bytes([text_bytes(name) + json_bytes(items, item) for name, item in value.items()])
        case "record":
            return b"".join(json_bytes(f.schema, value.get(f.name, f.default)) for f in avro.fields)
        case _:
            index = next((at for at, branch in enumerate(avro.branches) if (branch.type == "null") == (value is None)), 0)
            return long_bytes(index) + json_bytes(avro.branches[index], value)
