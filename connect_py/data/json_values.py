"""Read and write plain values of rows that a connector serialised: JSON text to what a Connect record holds, and back.

What is read and written is what the JSON converter would (tests/unit/connect_py/task/test_row_chain.py). Whatever is not the usual value of
its schema raises NeedsRecord, or another ValueError or DataError: the row is then decoded as a whole, and the error is that of its record.
"""

from __future__ import annotations

import datetime
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import orjson

from connect_py.data import Schema, Type
from connect_py.data.java_text import double_text, float_text
from connect_py.data.json_rows import NULL, NeedsRecord, quoted
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, bytes_to_decimal, decimal_to_bytes, sized
from connect_py.data.times import date_to_days, days_to_date, millis_to_time, millis_to_timestamp, time_to_millis, timestamp_to_millis
from connect_py.data.values import to_float32

#: One value's JSON text, to another.
TextChange = Callable[[bytes], bytes]

#: Names that decide how a value is read and written, whatever its type.
LOGICAL_NAMES = frozenset((DECIMAL, DATE, TIME, TIMESTAMP))

_LIMITS = {Type.INT8: 1 << 7, Type.INT16: 1 << 15, Type.INT32: 1 << 31, Type.INT64: 1 << 63}
_BOOLEANS = {b"true": True, b"false": False}
_CONSTANTS = {b'"NaN"': float("nan"), b'"Infinity"': float("inf"), b'"-Infinity"': float("-inf")}


def value_changer(source: Schema, target: Schema, convert: Callable[[Any], Any]) -> TextChange:
    """Return a function of the JSON texts of one schema's values that makes those of another schema.

    Args:
        convert: makes the one value of the other; it sees no null. A null stays null.

    Raises:
        NeedsRecord: values of a schema are not plain. The function raises what `value_reader`, `value_writer`, `keeping_null` and
            `convert` raise.
    """
    read, write = value_reader(source), value_writer(target)
    return keeping_null(source, lambda text: write(convert(read(text))))


def keeping_null(schema: Schema, change: TextChange) -> TextChange:
    """Return a function that keeps a null of a schema, and changes other values. It raises NeedsRecord for a null that rows do not have."""
    may_be_null = schema.optional and schema.default is None

    def change_or_keep(text: bytes) -> bytes:
        if text != NULL:
            return change(text)
        if not may_be_null:
            raise NeedsRecord("A null without a meaning")
        return NULL

    return change_or_keep


# -- reading -----------------------------------------------------------------------------------------------------------------------


def value_reader(schema: Schema) -> Callable[[bytes], Any]:
    """Return the function that reads values of a plain schema, which are not null.

    Raises:
        NeedsRecord: the schema is not plain. The function raises ValueError or DataError for what is no value of the schema.
    """
    name = schema.name
    if name in _NUMBERED:
        number_to = _NUMBERED[name]
        return lambda text: number_to(int(text))
    if name == DECIMAL:
        return _decimal_reader(schema)
    read = _float32 if schema.type is Type.FLOAT32 else _READERS.get(schema.type)
    if read is None:
        raise NeedsRecord("Not a plain value")
    return read


def _text(text: bytes) -> str:
    found = orjson.loads(text)
    if type(found) is not str:
        raise NeedsRecord("Not a text")
    return found


def _bytes(text: bytes) -> bytes:
    return a2b_base64(_text(text), strict_mode=True)


def _boolean(text: bytes) -> bool:
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise NeedsRecord("Not a boolean") from None


def _float(text: bytes) -> float:
    return _CONSTANTS[text] if text in _CONSTANTS else float(text)


def _float32(text: bytes) -> float:
    return to_float32(_float(text))


def _decimal_reader(schema: Schema) -> Callable[[bytes], Decimal]:
    scale = _scale(schema)

    def read(text: bytes) -> Decimal:
        if text.startswith(b'"'):
            return bytes_to_decimal(_bytes(text), scale)
        return sized(Decimal(text.decode()))

    return read


def _scale(schema: Schema) -> int:
    return int(schema.parameter("scale") or "")  # a ValueError for what is no number


_NUMBERED: Mapping[str | None, Callable[[int], Any]] = {DATE: days_to_date, TIME: millis_to_time, TIMESTAMP: millis_to_timestamp}
_READERS: Mapping[Type, Callable[[bytes], Any]] = {
    **dict.fromkeys(_LIMITS, int),
    Type.FLOAT64: _float,
    Type.BOOLEAN: _boolean,
    Type.STRING: _text,
    Type.BYTES: _bytes,
}


# -- writing -----------------------------------------------------------------------------------------------------------------------


def value_writer(schema: Schema) -> Callable[[Any], bytes]:
    """Return the function that writes values of a plain schema, which are not null. Decimals are not written: see `decimal_writer`.

    Raises:
        NeedsRecord: the schema is not plain, or one of decimals. The function raises it for a value that is none of the schema, and for a
            text that needs an escape.
    """
    if schema.name in _NUMBERS:
        kind, number = _NUMBERS[schema.name]
        return lambda value: b"%d" % number(value) if isinstance(value, kind) else _refuse()
    if schema.name != DECIMAL:
        if schema.type in _LIMITS:
            return _integer_writer(_LIMITS[schema.type])
        if schema.type in _WRITERS:
            kind, write = _WRITERS[schema.type]
            return lambda value: write(value) if type(value) is kind else _refuse()
    raise NeedsRecord("Not a plain value")


def decimal_writer(schema: Schema, example: bytes) -> Callable[[Any], bytes]:
    """Return the function that writes decimals of a schema as a given one is written, in base64 or as a number.

    Raises:
        ValueError: the schema has no scale. The function raises DataError for a decimal that the schema does not hold.
    """
    if not example.startswith(b'"'):
        return lambda value: str(sized(value)).encode()
    scale = _scale(schema)
    return lambda value: b'"%b"' % b2a_base64(decimal_to_bytes(value, scale), newline=False)


def _refuse() -> bytes:
    raise NeedsRecord("Not a value of its schema")


def _integer_writer(limit: int) -> Callable[[Any], bytes]:
    return lambda value: b"%d" % value if type(value) is int and -limit <= value < limit else _refuse()


def _number_text(text: str) -> bytes:
    return text.encode() if text[-1].isdigit() else b'"%b"' % text.encode()


_NUMBERS: Mapping[str | None, tuple[type, Callable[[Any], int]]] = {
    DATE: (datetime.date, date_to_days),
    TIME: (datetime.time, time_to_millis),
    TIMESTAMP: (datetime.datetime, timestamp_to_millis),
}
_WRITERS: Mapping[Type, tuple[type, Callable[[Any], bytes]]] = {
    Type.FLOAT32: (float, lambda value: _number_text(float_text(value))),
    Type.FLOAT64: (float, lambda value: _number_text(double_text(value))),
    Type.BOOLEAN: (bool, lambda value: b"true" if value else b"false"),
    Type.STRING: (str, quoted),
}
