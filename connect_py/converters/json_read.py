"""Turn JSON into Connect data (`JsonConverter.convertToConnect`).

Stricter than the reference in three points, since it would store something wrong in silence: a JSON value of the wrong kind (a text in an
integer field; read there as 0, false or null), an integer of more than 64 bits without a schema (cut off there), and text after the JSON
value (ignored there) raise DataError. As in the reference, numbers beyond an integer type's range are narrowed. `"NaN"` and the
infinities, which the reference writes as texts and reads back as 0.0, are read as what they were; objects without a schema keep their
order, which a Java map loses.

`row_reader` is the short way for rows that a connector of this project serialised, from `EncodedBatch` to `SourceRecord`. `payload_reader`
judges every value, since anybody may have written it. What our own encoders wrote needs no judge: numbers, texts and booleans are what the
schema says and pass as they are, and a struct has all of its fields. That takes a third of the time.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Any

import orjson

from connect_py.converters.json_write import scale_of
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, DECIMAL, EXACT, TIME, TIMESTAMP, bytes_to_decimal, sized
from connect_py.data.times import days_to_date, millis_to_time, millis_to_timestamp
from connect_py.errors import DataError

#: One parsed JSON value to Connect data; raises DataError.
Reader = Callable[[Any], Any]

_FAILED = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_STRING_OR_PADDED = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.eE+])(-?)0+(?=\d)', re.DOTALL)


def parse_json(data: bytes, *, exact: bool = False) -> Any:
    """JSON text to Python values.

    Args:
        data: UTF-8. Leading zeros of numbers are accepted, as in the reference.
        exact: numbers with a fraction or an exponent become Decimal with every digit, instead of float.

    Raises:
        DataError: it is not JSON.
    """
    if not exact:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass  # leading zeros, and the error's text, are left to the parser below
    parse_float: Callable[[str], Any] = Decimal if exact else float
    try:
        text = data.decode()
        try:
            return json.loads(text, parse_float=parse_float, parse_constant=_no_constant)
        except ValueError:
            plain = _STRING_OR_PADDED.sub(lambda m: m[0] if m[0][0] == '"' else m[1], text)
            if plain == text:
                raise
            return json.loads(plain, parse_float=parse_float, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{_FAILED}{error}") from error


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def decode_payload(schema: Schema | None, parsed: Any, *, replace_null_with_default: bool = True) -> Any:
    """Return one parsed JSON value as Connect data: Struct, list, dict, Decimal, date and so on.

    Args:
        schema: what the value is; None goes by its JSON type (objects are dicts).
        parsed: from `parse_json`; exact where the schema has decimals that may have been written as numbers.

    Raises:
        DataError: the value does not fit the schema.
    """
    return payload_reader(schema, replace_null_with_default)(parsed)


def payload_reader(schema: Schema | None, replace_null_with_default: bool | None = True) -> Reader:
    """Return the function that reads values of a schema.

    Args:
        replace_null_with_default: as of JsonConverter; None leaves nulls as they are, also where the schema requires a value.
    """
    if schema is None:
        return _schemaless
    read = _plain(schema, replace_null_with_default)
    default = schema.default if replace_null_with_default else None
    refuses_null = default is None and not schema.optional and replace_null_with_default is not None

    def read_or_null(value: Any) -> Any:
        if value is not None:
            return read(value)
        if refuses_null:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return default

    return read_or_null


def has_decimals(schema: Schema | None) -> bool:
    """Return whether a value of the schema can hold a decimal."""
    if schema is None:
        return False
    parts = [field.schema for field in schema.fields] + [schema.key_schema, schema.value_schema]
    return schema.name == DECIMAL or any(map(has_decimals, parts))


def _schemaless(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _plain(schema: Schema, replace: bool | None) -> Reader:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name](schema)
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return _integer(schema)
        case Type.FLOAT32:
            return lambda value: _as_float32(_number(schema, value))
        case Type.FLOAT64:
            return lambda value: _number(schema, value)
        case Type.BOOLEAN:
            return lambda value: _of_type(schema, value, bool)
        case Type.STRING:
            return lambda value: _of_type(schema, value, str)
        case Type.BYTES:
            return lambda value: _bytes(schema, value)
        case Type.ARRAY:
            return _array(schema, replace)
        case Type.MAP:
            return _map(schema, replace)
        case Type.STRUCT:
            return _struct(schema, replace)


def node_type(value: Any) -> str:
    """Return what Jackson calls a JSON value's kind, for messages."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | float() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"


def _of_type(schema: Schema, value: Any, type_: type) -> Any:
    if not isinstance(value, type_):
        raise DataError(f"A JSON {node_type(value)} is no {schema.type.name}")
    return value


_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def _integer(schema: Schema) -> Reader:
    half = 1 << (_BITS[schema.type] - 1)

    def read(value: Any) -> Any:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, float | Decimal) or not math.isfinite(value):
                raise DataError(f"A JSON {node_type(value)} is no {schema.type.name}")
            value = int(value)
        return value if -half <= value < half else (value + half) % (2 * half) - half

    return read


_CONSTANTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT32 = struct.Struct(">f")


def _number(schema: Schema, value: Any) -> float:
    if isinstance(value, str) and value in _CONSTANTS:
        return _CONSTANTS[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise DataError(f"A JSON {node_type(value)} is no {schema.type.name}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _as_float32(value: float) -> float:
    try:
        nearest: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _bytes(schema: Schema, value: Any) -> bytes:
    try:
        return base64.b64decode(_of_type(schema, value, str), validate=True)
    except (binascii.Error, ValueError):
        raise DataError("Invalid bytes field") from None


def _array(schema: Schema, replace: bool | None) -> Reader:
    element = payload_reader(schema.value_schema, replace)
    return lambda value: [element(item) for item in _of_type(schema, value, list)]


def _map(schema: Schema, replace: bool | None) -> Reader:
    key, item = payload_reader(schema.key_schema, replace), payload_reader(schema.value_schema, replace)
    by_text = schema.key_schema is not None and schema.key_schema.type is Type.STRING

    def read(value: Any) -> dict[Any, Any]:
        if by_text:
            if not isinstance(value, dict):
                raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {node_type(value)}")
            return {k: item(v) for k, v in value.items()}
        if not isinstance(value, list):
            raise DataError(f"Maps with non-string fields should be encoded as JSON array of tuples, but found {node_type(value)}")
        result = {}
        for entry in value:
            if not isinstance(entry, list):
                raise DataError(f"Found invalid map entry instead of array tuple: {node_type(entry)}")
            if len(entry) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
            result[key(entry[0])] = item(entry[1])
        return result

    return read


def _struct(schema: Schema, replace: bool | None) -> Reader:
    parts = [(field.name, payload_reader(field.schema, replace)) for field in schema.fields]

    def read(value: Any) -> Struct:
        if not isinstance(value, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(value)}")
        get = value.get
        return Struct(schema, [part(get(name)) for name, part in parts])

    return read


def _decimal(schema: Schema) -> Reader:
    scale = scale_of(schema)

    def read(value: Any) -> Decimal:
        match value:
            case bool():
                pass
            case int() | Decimal():
                return sized(Decimal(value))
            case float():
                return Decimal(repr(value))
            case str():
                return bytes_to_decimal(_bytes(schema, value), scale)
        raise DataError(f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {node_type(value)}")

    return read


def _temporal(name: str, kind: str, bits: int, convert: Callable[[int], Any]) -> Callable[[Schema], Reader]:
    half = 1 << (bits - 1)

    def read(value: Any) -> Any:
        if type(value) is not int or not -half <= value < half:
            raise DataError(f"Invalid type for {name}, underlying representation should be {kind} but was {node_type(value)}")
        return convert(value)

    return lambda schema: read


_LOGICAL: Mapping[str | None, Callable[[Schema], Reader]] = {
    DECIMAL: _decimal,
    DATE: _temporal("Date", "integer", 32, days_to_date),
    TIME: _temporal("Time", "integer", 32, millis_to_time),
    TIMESTAMP: _temporal("Timestamp", "integral", 64, millis_to_timestamp),
}


_PASSES = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING, Type.BOOLEAN)
_CONVERTED = (DATE, DECIMAL, TIME, TIMESTAMP)


def row_reader(schema: Schema | None) -> Reader:
    """Return the function that reads parsed rows of a schema; a null stays a null, whatever the schema's default.

    The function raises DataError for what no encoder writes: a struct without one of its fields, a text that is no base64.
    """
    careful = payload_reader(schema, None)
    if schema is None or schema.type is not Type.STRUCT or not schema.fields:
        return careful
    quick = _struct_reader(schema)

    def read(value: Any) -> Any:
        if type(value) is dict:
            try:
                return quick(value)
            except (KeyError, TypeError, ValueError):
                pass  # not what an encoder writes: let the careful reader say what is wrong
        return careful(value)

    return read


def _struct_reader(schema: Schema) -> Callable[[Any], Struct]:
    names = [field.name for field in schema.fields]
    fields_of = itemgetter(*names)
    is_single = len(names) == 1
    conversions = [(i, reader) for i, field in enumerate(schema.fields) if (reader := _converter(field.schema)) is not None]
    new = Struct.__new__

    def read(value: Any) -> Struct:
        values = [fields_of(value)] if is_single else list(fields_of(value))
        for index, convert in conversions:
            if values[index] is not None:
                values[index] = convert(values[index])
        made = new(Struct)
        made.schema = schema
        made.values = values
        return made

    return read


def _converter(schema: Schema) -> Callable[[Any], Any] | None:
    """Return what a field's value needs, None when it is the value already."""
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return _decimal_reader(schema)
    if schema.name not in _CONVERTED:
        if schema.type in _PASSES:
            return None
        if schema.type is Type.STRUCT and schema.fields:
            return _struct_reader(schema)
    return payload_reader(schema, None)


def _decimal_reader(schema: Schema) -> Callable[[Any], Any]:
    """Decimals of base64 texts. The function raises ValueError for a text that is none, and TypeError for what is no text."""
    exponent = -scale_of(schema)

    def read(value: Any) -> Decimal:
        return Decimal(int.from_bytes(a2b_base64(value, strict_mode=True), "big", signed=True)).scaleb(exponent, EXACT)

    return read
