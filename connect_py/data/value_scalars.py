"""Numbers, dates and times as `connect_py.data.values` finds them in texts (`org.apache.kafka.connect.data.Values`)."""

from __future__ import annotations

import datetime
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from connect_py.data.logical import DATE, EXACT, TIME, TIMESTAMP, decimal_schema
from connect_py.data.schema import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, Schema, Type
from connect_py.data.times import MILLIS_OF_DAY, millis_to_time


class Parsed(NamedTuple):
    """A value with the schema that was inferred for it; (None, None) is null."""

    schema: Schema | None
    value: Any


_TIME_SCHEMA = Schema(Type.INT32, name=TIME, version=1)
_DATE_SCHEMA = Schema(Type.INT32, name=DATE, version=1)
_TIMESTAMP_SCHEMA = Schema(Type.INT64, name=TIMESTAMP, version=1)

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_INTEGERS = ((INT8, 8), (INT16, 16), (INT32, 32), (INT64, 64))


def parse_number(text: str) -> Parsed | None:
    """A number in the smallest type that holds it: an integer, else a float that is finite, else a decimal. None when it is no number."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = EXACT.create_decimal(text)
    except InvalidOperation:
        return None
    scale = -int(number.as_tuple().exponent)
    if -25 < scale <= 0 or number == number.to_integral_value(context=EXACT):
        whole = int(number) if number.adjusted() < 20 else 1 << 64
        for schema, bits in _INTEGERS:
            if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
                return Parsed(schema, whole)
    if scale != 0:
        single, double = to_float32(number), float(number)
        if math.isfinite(single):
            return Parsed(FLOAT32, single)
        if math.isfinite(double):
            return Parsed(FLOAT64, double)
    return Parsed(decimal_schema(scale), number)


_FLOAT32 = struct.Struct(">f")


def to_float32(number: float | Decimal) -> float:
    """The nearest float of 32 bits, as a double; infinite where there is none."""
    value = float(number)
    try:
        nearest: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


_DATE_TEXT = re.compile(r"\s*(\d+)-\s*(-?\d+)-\s*(-?\d+)")
_TIME_TEXT = re.compile(r"\s*(\d+):\s*(-?\d+):\s*(-?\d+)\.\s*(-?\d+)Z")


def parse_temporal(text: str) -> Parsed | None:
    """By length, as the reference does: 10 a date, 13 a time of day, 24 a timestamp; in UTC. Java's parser is lenient: month 13 is the
    next January."""
    text = text.replace("\\:", ":")
    match len(text):
        case 10:
            day = _day(text)
            return None if day is None else Parsed(_DATE_SCHEMA, day[0])
        case 13:
            millis = _millis(text)
            return None if millis is None or not 0 <= millis < MILLIS_OF_DAY else Parsed(_TIME_SCHEMA, millis_to_time(millis))
        case 24:
            day = _day(text)
            if day is None or text[day[1] : day[1] + 1] != "T":
                return None
            millis = _millis(text[day[1] + 1 :])
            if millis is None:
                return None
            midnight = datetime.datetime.combine(day[0], datetime.time(), datetime.UTC)
            return Parsed(_TIMESTAMP_SCHEMA, midnight + datetime.timedelta(milliseconds=millis))
        case _:
            return None


def _day(text: str) -> tuple[datetime.date, int] | None:
    found = _DATE_TEXT.match(text)
    if not found:
        return None
    year, month, day = map(int, found.groups())
    try:
        first = datetime.date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
        return first + datetime.timedelta(days=day - 1), found.end()
    except (ValueError, OverflowError):
        return None  # outside the years 1 to 9999


def _millis(text: str) -> int | None:
    found = _TIME_TEXT.match(text)
    if not found:
        return None
    hours, minutes, seconds, millis = map(int, found.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis
