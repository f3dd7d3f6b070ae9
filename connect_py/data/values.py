"""Turn texts into values and back where no schema travels along (`org.apache.kafka.connect.data.Values`): headers, literals of transforms.

`parse` infers a type: booleans, numbers in the smallest type that holds them, dates and times, arrays and maps; what is none of these
is a string. Its corners are the reference's: `1,2` is the number 1, `[1,"a"]` an array without an element schema, `[1,null]` a string.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from connect_py.data.java_text import double_text, float_text
from connect_py.data.schema import (
    BOOLEAN,
    DATE,
    EXACT,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    array,
    decimal_schema,
)
from connect_py.data.times import (
    MILLIS_OF_DAY,
    date_to_days,
    days_to_date,
    millis_to_time,
    millis_to_timestamp,
    time_to_millis,
    timestamp_to_millis,
)
from connect_py.errors import DataError


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
    """Return the nearest float of 32 bits, as a double; infinite where there is none."""
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


NULL = Parsed(None, None)
_TEMPORAL = (TIME, DATE, TIMESTAMP)
_FROM_NUMBER: Mapping[str | None, Callable[[int], Any]] = {TIME: millis_to_time, DATE: days_to_date, TIMESTAMP: millis_to_timestamp}

_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"]|\\\Z)+', re.DOTALL)
#: Characters that java.lang.String.trim removes.
_BLANK = "".join(map(chr, range(33)))
#: Arrays and maps inside one another; deeper ones are strings, where the reference's recursion would end in a stack overflow.
_MAX_DEPTH = 100


def parse(text: str) -> Parsed:
    """Return a text's value. Never fails: what is nothing else is a string."""
    return _Parser(text).value() if text else Parsed(STRING, text)


class _Parser:
    """Recursive descent over the tokens; a position is an index of a token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._depth = 0

    def _has_next(self) -> bool:
        return self._at < len(self._tokens)

    def _next(self) -> str:
        self._at += 1
        token: str = self._tokens[self._at - 1]
        return token

    def _consume(self, expected: str) -> bool:
        """Step over the token if it is the next one that is not blank; blank ones are gone even if it is not."""
        if not self._has_next():
            return False
        while self._at < len(self._tokens) - 1 and not self._tokens[self._at].strip(_BLANK):
            self._at += 1
        if self._tokens[self._at].strip(_BLANK) != expected:
            return False
        self._at += 1
        return True

    def _consume_literal(self, literal: str, embedded: bool) -> bool:
        start = self._at
        if self._consume(literal) and (embedded or not self._has_next()):
            return True
        self._at = start
        return False

    def value(self, embedded: bool = False) -> Parsed:
        """Raises DataError inside an array or map whose elements are no values; the caller then takes the whole as a string."""
        if not self._has_next():
            return NULL
        if embedded and self._consume('"'):
            return self._quoted()
        if self._consume_literal("null", embedded):
            return NULL
        for literal, truth in (("true", True), ("false", False)):
            if self._consume_literal(literal, embedded):
                return Parsed(BOOLEAN, truth)
        start = self._at
        try:
            if self._consume("["):
                return self._nested(self._array)
            if self._consume("{"):
                return self._nested(self._map)
        except DataError:
            self._at = start
        return self._scalar(embedded)

    def _nested(self, part: Callable[[], Parsed]) -> Parsed:
        if self._depth == _MAX_DEPTH:
            raise DataError("nested too deeply")
        self._depth += 1
        try:
            return part()
        finally:
            self._depth -= 1

    def _quoted(self) -> Parsed:
        parts = []
        while self._has_next() and not self._consume('"'):
            parts.append(self._next())
        content = "".join(parts)
        found = parse(content)
        return found if found.schema is not None and found.schema.name in _TEMPORAL else Parsed(STRING, content)

    def _array(self) -> Parsed:
        items: list[Parsed] = []
        common = _Common()
        while self._has_next():
            if self._consume("]"):
                schema = common.schema
                return Parsed(array(schema) if schema else Schema(Type.ARRAY), [_aligned(schema, item) for item in items])
            if self._consume(","):
                raise DataError("an element is empty")
            element = self.value(embedded=True)
            common.add(element)
            items.append(element)
            here = self._at
            if self._consume("]"):
                self._at = here
            elif not self._consume(","):
                raise DataError("elements need a comma between them")
        raise DataError("the array does not end")

    def _map(self) -> Parsed:
        items: dict[Any, tuple[Parsed, Parsed]] = {}
        keys, values = _Common(), _Common()
        while self._has_next():
            if self._consume("}"):
                if keys.schema is None:
                    return Parsed(Schema(Type.MAP), {_aligned(None, k): _aligned(None, v) for k, v in items.values()})
                schema = Schema(Type.MAP, key_schema=keys.schema, value_schema=values.schema)
                return Parsed(schema, {_aligned(keys.schema, k): _aligned(values.schema, v) for k, v in items.values()})
            if self._consume(","):
                raise DataError("an entry is empty")
            key = self.value(embedded=True)
            if key.value is None or isinstance(key.value, list | dict):
                raise DataError("no key of a map")
            if not self._consume(":"):
                raise DataError("an entry needs a colon")
            value = self.value(embedded=True)
            items[key.value] = key, value
            self._consume(",")
            keys.add(key)
            values.add(value)
        raise DataError("the map does not end")

    def _scalar(self, embedded: bool) -> Parsed:
        if not self._has_next():
            return Parsed(STRING, self._text)
        token = self._next()
        trimmed = token.strip(_BLANK)
        if not trimmed:
            return Parsed(STRING, token)
        found = self._temporal(trimmed) if trimmed[0].isdigit() else None
        if found is None and (trimmed[0].isdigit() or trimmed[0] in "+-"):
            found = parse_number(trimmed)
        if found is not None:
            return found
        if embedded:
            raise DataError("an element is no value")
        return Parsed(STRING, self._text)

    def _temporal(self, token: str) -> Parsed | None:
        rest = self._tokens[self._at : self._at + 4]  # a colon is a token, so a time of day has five
        if len(rest) == 4:
            found = parse_temporal(token + "".join(rest))
            if found is not None:
                self._at += 4
                return found
        return parse_temporal(token)


# -- one schema for several values -------------------------------------------------------------------------------------------------

_WIDER = {type_: rank for rank, type_ in enumerate((Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64))}


class _Common:
    """The schema of all values so far: the wider of two numbers, and none for good once two types differ. Nulls do not count."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._mixed = False

    def add(self, latest: Parsed) -> None:
        """Take one more value into account."""
        if latest.schema is None or self._mixed:
            return
        if self.schema is None or self.schema.type is latest.schema.type:
            self.schema = latest.schema
        elif self.schema.type in _WIDER and latest.schema.type in _WIDER:
            self.schema = max(self.schema, latest.schema, key=lambda schema: _WIDER[schema.type])
        else:
            self.schema, self._mixed = None, True


def _aligned(schema: Schema | None, found: Parsed) -> Any:
    """Return a part's value in the common type; without one, a float of 32 bits is the double that looks like it."""
    if schema is None and found.schema is not None and found.schema.type is Type.FLOAT32:
        return float(float_text(found.value))
    return _align(schema, found.value)


def _align(schema: Schema | None, value: Any) -> Any:
    """Return a value in the common type. Raises DataError when it cannot be: the whole is then a string."""
    if schema is None:
        return value
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    match schema.type:
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64 | Type.FLOAT32 | Type.FLOAT64:
            return _aligned_number(schema, value)
        case Type.STRING:
            return value if isinstance(value, str) else to_text(None, value)
        case Type.ARRAY if not isinstance(value, list):
            raise DataError("not an array")
        case Type.MAP if not isinstance(value, dict):
            raise DataError("not a map")
        case _:
            return value


def _aligned_number(schema: Schema, value: Any) -> Any:
    if schema.name in _FROM_NUMBER:
        return _FROM_NUMBER[schema.name](value) if isinstance(value, int) else value
    if not isinstance(value, int | float):
        raise DataError("not a number")
    if schema.type is Type.FLOAT32:
        return to_float32(value)
    return float(value) if schema.type is Type.FLOAT64 else value


# -- values to texts ---------------------------------------------------------------------------------------------------------------


def to_text(schema: Schema | None, value: Any, embedded: bool = False) -> str:
    """A value as `Values.convertToString` writes it: strings bare at the top and quoted inside, `[1,"a"]`, `{"k":1}`, bytes in base64.

    Raises:
        DataError: a value of a type that Connect does not have.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
        case int() | Decimal():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if embedded else value
        case bytes() | bytearray() | memoryview():
            return to_text(None, base64.b64encode(value).decode(), embedded)
        case list() | tuple():
            element = schema.value_schema if schema is not None else None
            return "[" + ",".join(to_text(element, item, True) for item in value) + "]"
        case Mapping():
            keys, values = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
            return "{" + ",".join(f"{to_text(keys, k, True)}:{to_text(values, v, True)}" for k, v in value.items()) + "}"
        case Struct():
            pairs = ((field, value[field.name]) for field in value.schema.fields)
            return "{" + ",".join(f"{to_text(None, f.name, True)}:{to_text(f.schema, v, True)}" for f, v in pairs) + "}"
        case datetime.datetime():
            return _instant_text(timestamp_to_millis(value))
        case datetime.date():
            return _instant_text(date_to_days(value) * MILLIS_OF_DAY)
        case datetime.time():
            return _instant_text(time_to_millis(value))
        case _:
            raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}: {value}")


def _instant_text(millis: int) -> str:
    """The reference knows instants only and goes by their size: before 1970-01-02 a time of day, at midnight a date, else both."""
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    clock = f"{when:%H:%M:%S}.{when.microsecond // 1000:03d}Z"
    if millis < MILLIS_OF_DAY:
        return clock
    day = f"{when.year:04d}-{when:%m-%d}"
    return day if millis % MILLIS_OF_DAY == 0 else f"{day}T{clock}"
