"""Connect data to JSON text, byte for byte as `JsonConverter.convertToJson` and Jackson write it.

A schema becomes a chain of small functions once (`payload_writer`), and every value then passes through those. Differences that a Java
worker cannot have, because its values are typed: an integer outside its schema's range is refused.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import re
import struct
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring  # the C function where there is one
from typing import Any, NamedTuple

from connect_py.converters.base import BITS, wrong_logical, wrong_type
from connect_py.data.java_text import double_text, float_text, java_class
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct, Type, decimal_to_bytes
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis
from connect_py.errors import DataError

#: One value to JSON text; raises DataError.
Writer = Callable[[Any], str]


class WriteOptions(NamedTuple):
    """JsonConverter's settings that change how a value looks.

    Attributes:
        numeric_decimals: ``decimal.format=NUMERIC``.
        replace_null_with_default: whether a null is written as its schema's default.
    """

    numeric_decimals: bool = False
    replace_null_with_default: bool = True


_LOWER_HEX = re.compile(r"\\\\|\\u00[01][0-9a-f]")
_SURROGATES = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


def quote(text: str) -> str:
    """A JSON string as Jackson's byte generator writes it: as `quote_characters`, and what lies beyond U+FFFF as two escaped surrogates
    (UTF8JsonGenerator without COMBINE_UNICODE_SURROGATES_IN_UTF8; seen in the reference's bytes).
    """
    quoted = quote_characters(text)
    if not quoted.isascii():
        quoted = _SURROGATES.sub(_escaped, quoted)
    return quoted


def quote_characters(text: str) -> str:
    """A JSON string as Jackson's character generator writes it: `\\b \\f \\n \\r \\t`, `\\u00XX` in upper case, the rest as it is."""
    quoted: str = encode_basestring(text)
    if "\\u00" in quoted:
        quoted = _LOWER_HEX.sub(lambda m: m[0] if m[0] == "\\\\" else "\\u" + m[0][2:].upper(), quoted)
    return quoted


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{unit:04X}" for (unit,) in struct.iter_unpack(">H", units))


def json_text(value: Any, number: Callable[[Any], str]) -> str:
    """Return compact JSON of a parsed JSON value, whose numbers a function writes."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case list() | tuple():
            return "[" + ",".join([json_text(item, number) for item in value]) + "]"
        case Mapping():
            return "{" + ",".join([f"{quote(name)}:{json_text(item, number)}" for name, item in value.items()]) + "}"
        case _:
            return number(value)


def encode_value(schema: Schema | None, value: Any, options: WriteOptions = WriteOptions()) -> bytes:  # noqa: B008
    """Return one value as JSON bytes, without an envelope.

    Raises:
        DataError: the value is not what the schema says, or is null where neither null nor a default is allowed.
    """
    return payload_writer(schema, options)(value).encode()


def payload_writer(schema: Schema | None, options: WriteOptions = WriteOptions()) -> Writer:  # noqa: B008
    """Return the function that writes values of a schema; without one it goes by each value's own type."""
    if schema is None:
        return _without_schema
    write = _LOGICAL[schema.name](schema, options) if schema.name in _LOGICAL else _plain(schema, options)
    if schema.default is not None and options.replace_null_with_default:
        null: str | None = write(schema.default)
    else:
        null = "null" if schema.optional else None

    def write_or_null(value: Any) -> str:
        if value is not None:
            return write(value)
        if null is None:
            raise DataError("Conversion error: null value for field that is required and has no default value")
        return null

    return write_or_null


# -- by type -----------------------------------------------------------------------------------------------------------------------


def _plain(schema: Schema, options: WriteOptions) -> Writer:
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return _integer(schema)
        case Type.FLOAT32:
            return _floating(schema, float_text)
        case Type.FLOAT64:
            return _floating(schema, double_text)
        case Type.BOOLEAN:
            return lambda value: _boolean(schema, value)
        case Type.STRING:
            return lambda value: quote(value) if isinstance(value, str) else _raise(wrong_type(schema, value))
        case Type.BYTES:
            return _bytes
        case Type.ARRAY:
            return _array(schema, options)
        case Type.MAP:
            return _map(schema, options)
        case Type.STRUCT:
            return _struct(schema, options)


def _raise(error: DataError) -> str:
    raise error


def _integer(schema: Schema) -> Writer:
    bound = 1 << BITS[schema.type]

    def write(value: Any) -> str:
        if type(value) is not int:
            raise wrong_type(schema, value)
        if not -bound <= value < bound:
            raise DataError(f"{value} is not in the range of {schema.type.name}")
        return str(value)

    return write


def _floating(schema: Schema, text: Callable[[float], str]) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, float):
            raise wrong_type(schema, value)
        shown = text(value)
        return shown if shown[-1].isdigit() else f'"{shown}"'

    return write


def _boolean(schema: Schema, value: Any) -> str:
    if not isinstance(value, bool):
        raise wrong_type(schema, value)
    return "true" if value else "false"


def _bytes(value: Any) -> str:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise DataError(f"Invalid type for bytes type: {java_class(value)}")
    return f'"{base64.b64encode(value).decode()}"'


def _array(schema: Schema, options: WriteOptions) -> Writer:
    element = payload_writer(schema.value_schema, options)

    def write(value: Any) -> str:
        if not isinstance(value, list | tuple):
            raise wrong_type(schema, value)
        return "[" + ",".join([element(item) for item in value]) + "]"

    return write


def _map(schema: Schema, options: WriteOptions) -> Writer:
    key, item = payload_writer(schema.key_schema, options), payload_writer(schema.value_schema, options)
    as_object = schema.key_schema is not None and schema.key_schema.type is Type.STRING

    def write(value: Any) -> str:
        if not isinstance(value, Mapping):
            raise wrong_type(schema, value)
        if as_object:
            return "{" + ",".join([f"{_key(key(k))}:{item(v)}" for k, v in value.items()]) + "}"
        return "[" + ",".join([f"[{key(k)},{item(v)}]" for k, v in value.items()]) + "]"

    return write


def _key(text: str) -> str:
    return text if text[0] == '"' else f'"{text}"'


def _struct(schema: Schema, options: WriteOptions) -> Writer:
    parts = [(quote(field.name) + ":", payload_writer(field.schema, options)) for field in schema.fields]

    def write(value: Any) -> str:
        if not isinstance(value, Struct):
            raise wrong_type(schema, value)
        if value.schema is not schema and value.schema != schema:
            raise DataError("Mismatching schema.")
        return "{" + ",".join([name + part(item) for (name, part), item in zip(parts, value.values, strict=True)]) + "}"

    return write


# -- by logical name ---------------------------------------------------------------------------------------------------------------


def scale_of(schema: Schema) -> int:
    """Return a decimal schema's scale, an int of Java's. Raises DataError when it has none."""
    text = schema.parameter("scale")
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        scale = int(text)
        struct.pack("i", scale)
    except (ValueError, struct.error):
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None
    return scale


def _decimal(schema: Schema, options: WriteOptions) -> Writer:
    scale: int | None = None

    def write(value: Any) -> str:
        if not isinstance(value, decimal.Decimal):
            raise wrong_logical("Decimal", value)
        if not options.numeric_decimals:
            nonlocal scale
            if scale is None:
                scale = scale_of(schema)
            return f'"{base64.b64encode(decimal_to_bytes(value, scale)).decode()}"'
        if not value.is_finite():
            raise DataError(f"{value} has no exact decimal form")
        return str(value)

    return write


def _temporal(name: str, number: Callable[[Any], int], *types: type) -> Callable[[Schema, WriteOptions], Writer]:
    def make(schema: Schema, options: WriteOptions) -> Writer:
        def write(value: Any) -> str:
            if not isinstance(value, types):
                raise wrong_logical(name, value)
            return str(number(value))

        return write

    return make


_LOGICAL: Mapping[str | None, Callable[[Schema, WriteOptions], Writer]] = {
    DECIMAL: _decimal,
    DATE: _temporal("Date", date_to_days, datetime.date),
    TIME: _temporal("Time", time_to_millis, datetime.time),
    TIMESTAMP: _temporal("Timestamp", timestamp_to_millis, datetime.datetime),
}


#: Logical names that decide how a value is written, whatever its type.
LOGICAL_NAMES = frozenset(name for name in _LOGICAL if name is not None)


# -- without a schema --------------------------------------------------------------------------------------------------------------

_NO_SCHEMA = WriteOptions()
_BARE = {type_: _plain(Schema(type_), _NO_SCHEMA) for type_ in (Type.INT64, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES)}


def _without_schema(value: Any) -> str:
    try:
        return _schemaless(value)
    except RecursionError:
        raise DataError("The value is nested too deeply to be written as JSON") from None


def _schemaless(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return _BARE[Type.BOOLEAN](value)
        case int():
            return _BARE[Type.INT64](value)
        case float():
            return _BARE[Type.FLOAT64](value)
        case str():
            return quote(value)
        case bytes() | bytearray() | memoryview():
            return _bytes(value)
        case list() | tuple():
            return "[" + ",".join(map(_schemaless, value)) + "]"
        case Mapping():
            if all(isinstance(key, str) for key in value):
                return "{" + ",".join(f"{quote(k)}:{_schemaless(v)}" for k, v in value.items()) + "}"
            return "[" + ",".join(f"[{_schemaless(k)},{_schemaless(v)}]" for k, v in value.items()) + "]"
        case Struct():
            raise DataError("Mismatching schema.")
        case _:
            raise DataError(f"Java class {java_class(value)} does not have corresponding schema type.")
