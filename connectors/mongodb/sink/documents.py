"""Connect's values as BSON's (`sink/converters/*.java`): structs, maps, JSON texts and BSON bytes become documents. Pure.

The driver takes a Python int for 32 and for 64 bits by its size; a column's type decides here, as in the reference.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

import bson
from bson import Binary, Decimal128, Int64, json_util
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError

from connect_py.data import Schema, Struct, Type
from connect_py.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from connect_py.errors import DataError

Document = dict[str, Any]

_JSON = json_util.JSONOptions(
    uuid_representation=UuidRepresentation.UNSPECIFIED, datetime_conversion=DatetimeConversion.DATETIME_MS, tz_aware=False
)
_CODEC: CodecOptions[Document] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
_EPOCH = datetime.date(1970, 1, 1)
_UTC = datetime.UTC


def document_of(schema: Schema | None, value: Any, what: str) -> Document:
    """A whole key or value as a document; `what` names it in messages. Raises DataError: it is none."""
    if isinstance(value, Struct):
        return {field.name: bson_value(field.schema, value[field.name]) for field in value.schema.fields}
    if isinstance(value, dict):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, str):
        return parse_json(value)
    if isinstance(value, bytes):
        try:
            return bson.decode(value, _CODEC)
        except BSONError as error:
            raise DataError(f"Could not convert {what} into a BsonDocument: {error}") from error
    raise DataError(f"Could not convert {what} into a BsonDocument: No converter found for unexpected object type: {type(value).__name__}")


def parse_json(text: str) -> Document:
    """A document of extended JSON in any of its forms. Raises DataError: it is none."""
    found = parse_json_value(text)
    if not isinstance(found, dict):
        raise DataError("Could not convert a JSON text into a BsonDocument: it holds no document")
    return found


def parse_json_value(text: str) -> Any:
    """A value of extended JSON. Raises DataError: it is none."""
    try:
        return json_util.loads(text, json_options=_JSON)
    except (ValueError, TypeError, KeyError, ArithmeticError, BSONError, RecursionError) as error:
        raise DataError(f"Could not convert a JSON text into a BsonDocument: {error}") from error


def bson_value(schema: Schema, value: Any) -> Any:
    """A value by its schema. Raises DataError: there is no BSON for it."""
    if value is None:
        return schema.default if schema.default is None else bson_value(schema, schema.default)
    convert = _LOGICAL.get(schema.name or "") or _BY_TYPE.get(schema.type)
    if convert is not None:
        return convert(value)
    if schema.type is Type.STRUCT:
        return document_of(schema, value, "a struct")
    element = schema.value_schema
    assert element is not None, "arrays and maps have one"
    if schema.type is Type.ARRAY:
        return [bson_value(element, item) for item in value]
    return {str(name): bson_value(element, item) for name, item in value.items()}


def plain_value(value: Any) -> Any:
    """A value without a schema: JSON's own types, whose numbers have 64 bits."""
    if isinstance(value, dict):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    return _int64(value) if type(value) is int else value


def _int64(value: int) -> Int64:
    if not -(2**63) <= value < 2**63:
        raise DataError(f"{value} has more than the 64 bits of a BSON number")
    return Int64(value)


def _decimal(value: decimal.Decimal) -> Decimal128:
    try:
        with decimal.localcontext(decimal.Context(prec=34, Emin=-6143, Emax=6144, traps=[decimal.Inexact, decimal.InvalidOperation])):
            return Decimal128(value)
    except (ArithmeticError, ValueError) as error:
        raise DataError(f"{value} has more than the 34 digits of a BSON decimal") from error


def _time(value: datetime.time) -> datetime.datetime:
    return datetime.datetime.combine(_EPOCH, value, _UTC)


def _date(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day, tzinfo=_UTC)


_LOGICAL: Mapping[str, Callable[[Any], Any]] = {DECIMAL: _decimal, DATE: _date, TIME: _time, TIMESTAMP: lambda value: value}
_BY_TYPE: Mapping[Type, Callable[[Any], Any]] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32), int),
    Type.INT64: _int64,
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), float),
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: lambda value: Binary(value, 0),
}
