"""Bring values of both sides of a comparison into one normal form, so that they can be counted, hashed and compared.

The normal form is made of None, bool, int, float, str, bytes, Decimal and tuples of these: dates are days and timestamps microseconds
since 1970, structs are pairs of names and values, maps are pairs in order. Two values are equal if their `repr` is.

A source's values get the form of the columns that the sink writes them to. The table's own types say which of the sink's settings were in
force (times as texts or numbers, timestamps with or without a zone), so none of them is asked here. Nothing of this shares code with the
sink, so that a mistake there shows. Texts of dates, times and timestamps become numbers for any year: Python's own types end at 9999 and
begin at 1.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP

#: What a plain Python value becomes; None: it stays.
Finish = Callable[[Any], Any]

_EXACT = decimal.Context(prec=100)
_FLOAT = struct.Struct("f")


def digest(values: tuple[Any, ...]) -> bytes:
    """Sixteen bytes that stand for values in normal form."""
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def of_column(column: pa.Array | pa.ChunkedArray) -> Sequence[Any]:
    """Return a column's values in normal form."""
    plain, finish = _form(column.type)
    values = (column if plain == column.type else column.cast(plain)).to_pylist()
    return values if finish is None else [None if value is None else finish(value) for value in values]


def of_float(value: float, *, single: bool = False) -> Any:
    """Return a float; not-a-number is a text, since it equals nothing, and `single` is rounded as 32 bits hold it."""
    if math.isnan(value):
        return "NaN"
    if not single or math.isinf(value):
        return value
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def of_decimal(value: decimal.Decimal) -> decimal.Decimal:
    """A decimal without zeros at its end: its scale is the column's, not the value's."""
    return decimal.Decimal(0) if value.is_zero() else value.normalize(_EXACT)


def of_pairs(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
    """Return a map, in an order that its values decide."""
    return tuple(sorted(pairs, key=repr))


def _form(type_: pa.DataType) -> tuple[pa.DataType, Finish | None]:
    """Return the type to cast to, which Python's values are read from, and what they become then."""
    if kinds.is_timestamp(type_):
        divisor = {"us": 1, "ns": 1000}[type_.unit]  # the two that tables of both formats can have
        return pa.int64(), None if divisor == 1 else lambda value: value // divisor
    if kinds.is_date32(type_):
        return pa.int32(), None
    if kinds.is_time64(type_):
        return pa.int64(), None
    if kinds.is_floating(type_):
        return type_, of_float
    if kinds.is_decimal(type_):
        return type_, of_decimal
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        return _list(type_)
    if kinds.is_map(type_):
        return _map(type_)
    if kinds.is_struct(type_):
        return _struct(type_)
    return type_, None


def _list(type_: Any) -> tuple[pa.DataType, Finish]:
    item, finish = _form(type_.value_type)
    if finish is None:
        return pa.list_(item), tuple
    return pa.list_(item), lambda value: tuple(None if entry is None else finish(entry) for entry in value)


def _map(type_: Any) -> tuple[pa.DataType, Finish]:
    (key, of_key), (item, of_item) = _form(type_.key_type), _form(type_.item_type)

    def finish(value: Any) -> Any:
        return of_pairs([(_done(of_key, name), _done(of_item, entry)) for name, entry in value])

    return pa.map_(key, item), finish


def _struct(type_: Any) -> tuple[pa.DataType, Finish]:
    fields = [type_.field(place) for place in range(type_.num_fields)]
    forms = {field.name: _form(field.type) for field in fields}

    def finish(value: Any) -> Any:
        return tuple((name, _done(forms[name][1], value[name])) for name in sorted(forms))

    return pa.struct([(name, form[0]) for name, form in forms.items()]), finish


def _done(finish: Finish | None, value: Any) -> Any:
    return value if finish is None or value is None else finish(value)


_MOMENT = re.compile(
    r"(?P<year>[+-]?\d+)-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?"
)
_DAY_SECONDS = 86_400


def days_of(text: str) -> int:
    """Return days since 1970 of an ISO date. Raises ValueError."""
    return _parsed(text)[0]


def micros_of(text: str) -> int:
    """Return microseconds since 1970 of an ISO date and time; without an offset, as if it were UTC. Raises ValueError."""
    days, seconds, fraction = _parsed(text)
    return (days * _DAY_SECONDS + seconds) * 1_000_000 + fraction


def time_text(micros: int) -> str:
    """Return a time of day, or a longer or negative span, as text: ``13:05:01.123456``; no fraction where it is zero."""
    rest, fraction = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    shown = f".{fraction:06d}" if fraction else ""
    return f"{'-' if micros < 0 else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{shown}"


def date_text(days: int) -> str:
    """Return an ISO date."""
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day:02d}"


def moment_text(micros: int) -> str:
    """Return an ISO date and time."""
    days, rest = divmod(micros, _DAY_SECONDS * 1_000_000)
    return f"{date_text(days)}T{time_text(rest)}"


def _parsed(text: str) -> tuple[int, int, int]:
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no date or time of ISO 8601")
    seconds = int(found["hour"] or 0) * 3600 + int(found["minute"] or 0) * 60 + int(found["second"] or 0)
    seconds -= _offset(found["zone"] or "Z")
    return (
        _days_of_date(int(found["year"]), int(found["month"]), int(found["day"])),
        seconds,
        int((found["fraction"] or "0")[:6].ljust(6, "0")),
    )


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if zone[0] == "-" else seconds


def _days_of_date(year: int, month: int, day: int) -> int:
    """Of the proleptic Gregorian calendar (year 0 is 1 BC)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


Convert = Callable[[Any], Any]

#: What stands for infinity in PostgreSQL's events, by unit: the driver's constants, the ends of 64 bits, for dates what 32 bits hold of
#: them, and the texts of these moments. The sink's null.
_INFINITE_MILLIS = frozenset({9223372036825200, -9223372036832400})
_INFINITE_MICROS = frozenset({9223372036825200000, -9223372036832400000})
_INFINITE_NANOS = frozenset({2**63 - 1, -(2**63)})
_INFINITE_DAYS = frozenset({-2147472692, -2147472691, -622191234, -625821272})
_INFINITE_DATES = frozenset({"-5877611-06-21Z", "-5877611-06-22Z", "+292278994-08-16Z", "+292269055-12-02Z"})
_INFINITE_TEXTS = frozenset({"infinity", "-infinity", "+294247-01-10T04:00:25.2Z", "-290308-12-21T19:59:27.6Z"})
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def converter(schema: Schema, column: pa.DataType | None) -> Convert:
    """Return what makes values of a schema comparable with a column; None: the table lacks it."""
    convert = _convert(schema, column)
    return lambda value: None if value is None else convert(value)


def _convert(schema: Schema, column: pa.DataType | None) -> Convert:
    if build := LOGICAL.get(schema.name or ""):
        return _fitting(build(column), column)
    if schema.name == DECIMAL:
        return _decimal(column)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        item = converter(schema.value_schema, getattr(column, "value_type", None))
        return lambda value: tuple(item(entry) for entry in value)
    if schema.type is Type.MAP and schema.value_schema is not None and schema.key_schema is not None:
        key = converter(schema.key_schema, getattr(column, "key_type", None))
        item = converter(schema.value_schema, getattr(column, "item_type", None))
        return lambda value: of_pairs([(key(name), item(entry)) for name, entry in value.items()])
    if schema.type is Type.STRUCT:
        return _source_struct(schema, column)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        single = schema.type is Type.FLOAT32
        return _fitting(lambda value: of_float(value, single=single), column)
    return _fitting(_same, column)


def _same(value: Any) -> Any:
    return value


def _fitting(convert: Convert, column: pa.DataType | None) -> Convert:
    """Return the same in a column of a wider type, or in one that values are cast to."""
    if column is None:
        return convert
    if kinds.is_floating(column):
        single = bool(kinds.is_float32(column))
        return lambda value: of_float(float(found), single=single) if isinstance(found := convert(value), int) else found
    if kinds.is_decimal(column):
        return lambda value: of_decimal(decimal.Decimal(found)) if isinstance(found := convert(value), int) else found
    if kinds.is_string(column) or kinds.is_large_string(column):
        return lambda value: found if isinstance(found := convert(value), str | bytes) else text_of(found)
    return convert


def text_of(value: Any) -> str:
    """Return a value in normal form as Spark casts it to text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, decimal.Decimal) else str(value)


def _source_struct(schema: Schema, column: pa.DataType | None) -> Convert:
    types: dict[str, pa.DataType] = {}
    if column is not None and kinds.is_struct(column):
        types = {column.field(place).name: column.field(place).type for place in range(column.num_fields)}
    fields = {field.name: converter(field.schema, types.get(field.name)) for field in schema.fields}
    names = sorted({*types} or {*fields})

    def convert(value: Struct) -> Any:
        return tuple((name, fields[name](value.without_default(name)) if name in fields else None) for name in names)

    return convert


# -- decimals -----------------------------------------------------------------------------------------------------------------------


def _decimal(column: pa.DataType | None) -> Convert:
    if column is not None and kinds.is_floating(column):
        return lambda value: of_float(float(value))
    if column is not None and (kinds.is_string(column) or kinds.is_large_string(column)):
        return lambda value: format(value, "f")
    return of_decimal


def _variable_scale(column: pa.DataType | None) -> Convert:
    of_column = _decimal(column)

    def convert(value: Struct) -> Any:
        unscaled = int.from_bytes(value.without_default("value"), "big", signed=True)
        digits = tuple(map(int, str(abs(unscaled))))
        return of_column(decimal.Decimal((int(unscaled < 0), digits, -value.without_default("scale"))))

    return convert


# -- dates and times -----------------------------------------------------------------------------------------------------------------


def _is_text(column: pa.DataType | None) -> bool:
    return column is not None and bool(kinds.is_string(column) or kinds.is_large_string(column))


def _days(to_days: Convert, infinite: frozenset[Any]) -> Callable[[pa.DataType | None], Convert]:
    def build(column: pa.DataType | None) -> Convert:
        shown = date_text if _is_text(column) else _same
        return lambda value: None if value in infinite else shown(to_days(value))

    return build


def _moments(to_micros: Convert, infinite: frozenset[Any]) -> Callable[[pa.DataType | None], Convert]:
    def build(column: pa.DataType | None) -> Convert:
        shown = moment_text if _is_text(column) else _same
        return lambda value: None if value in infinite else shown(to_micros(value))

    return build


def _times(to_micros: Convert) -> Callable[[pa.DataType | None], Convert]:
    def build(column: pa.DataType | None) -> Convert:
        return (lambda value: time_text(to_micros(value))) if _is_text(column) else to_micros

    return build


def _truncated(divisor: int) -> Convert:
    """Division that drops the rest, as Java's and Spark's does."""
    return lambda value: abs(value) // divisor * (-1 if value < 0 else 1)


def _connect_moment(value: datetime.datetime) -> int:
    since = value - datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _connect_time(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _iso_date(value: str) -> int:
    return days_of(value.removesuffix("Z"))


def _bits(column: pa.DataType | None) -> Convert:
    if column is not None and kinds.is_integer(column):
        return lambda value: int.from_bytes(value, "little")
    return bytes


def _as_is(_: pa.DataType | None) -> Convert:
    return _same


#: How values of a logical type are compared; of others as they are. `spark_sink.types.columns.LOGICAL` is what the sink makes of them.
LOGICAL: Mapping[str, Callable[[pa.DataType | None], Convert]] = {
    DATE: _days(lambda value: value.toordinal() - _EPOCH, frozenset()),
    TIME: _times(_connect_time),
    TIMESTAMP: _moments(_connect_moment, frozenset()),
    "io.debezium.time.Date": _days(_same, _INFINITE_DAYS),
    "io.debezium.time.IsoDate": _days(_iso_date, _INFINITE_DATES),
    "io.debezium.time.Time": _times(lambda value: value * 1000),
    "io.debezium.time.MicroTime": _times(_same),
    "io.debezium.time.NanoTime": _times(_truncated(1000)),
    "io.debezium.time.Timestamp": _moments(lambda value: value * 1000, _INFINITE_MILLIS),
    "io.debezium.time.MicroTimestamp": _moments(_same, _INFINITE_MICROS),
    "io.debezium.time.NanoTimestamp": _moments(lambda value: value // 1000, _INFINITE_NANOS),
    "io.debezium.time.IsoTimestamp": _moments(micros_of, _INFINITE_TEXTS),
    "io.debezium.time.ZonedTimestamp": _moments(micros_of, _INFINITE_TEXTS),
    "io.debezium.time.NanoDuration": lambda _: _truncated(1000),
    "io.debezium.data.VariableScaleDecimal": _variable_scale,
    "io.debezium.data.Bits": _bits,
    **dict.fromkeys(("io.debezium.time.IsoTime", "io.debezium.time.ZonedTime", "io.debezium.time.Year"), _as_is),
}
