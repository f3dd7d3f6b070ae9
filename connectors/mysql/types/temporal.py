"""Dates and times from the server's texts. Dates of zeros stand for NULL."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date as calendar_date
from datetime import timedelta
from functools import partial
from typing import Final

from connect_py.data import Schema, Type
from connect_py.data.schema import DATE, TIME, TIMESTAMP
from connectors.engine.encode.plan import ColumnPlan, StandsForNull, Stored, Unrepresentable
from connectors.engine.encode.values import days_from_civil, iso_date, iso_time, iso_timestamp
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn
from connectors.mysql.types.base import BoundedCache, Family

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)").fullmatch
_DATETIME = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?").fullmatch
_TIME = re.compile(r"(-?)(\d{2,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?").fullmatch
_CLOCK = re.compile(r"(\d\d):(\d\d):").fullmatch
_SECOND = re.compile(r"\d\d").fullmatch
_DAY_SECONDS = 86_400
_DAY_MICROS = _DAY_SECONDS * 1_000_000
_MAX_LONG = (1 << 63) - 1
_LAST_YEAR = 9999
_EPOCH = calendar_date(1970, 1, 1)
_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of(year: int, month: int, day: int, *, adjusts: bool = False) -> int:
    """Return days since 1970-01-01. Raises StandsForNull for parts that are zero, Unrepresentable for days that no calendar has.

    Args:
        adjusts: whether years of two digits are of 1970 to 2069 (``enable.time.adjuster``).
    """
    if year == 0 or month == 0 or day == 0:
        raise StandsForNull("a date with zeros")
    if adjusts and year < 100:
        year += 2000 if year < 70 else 1900
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month > 12 or day > _DAYS_OF_MONTH[month - 1] or (month == 2 and day == 29 and not leap):
        raise Unrepresentable(f"{year:04}-{month:02}-{day:02} is in no calendar")
    return days_from_civil(year, month, day)


def days_of_date(text: str, *, adjusts: bool = False) -> int:
    """Return the days of `1999-12-31`. Raises ValueError."""
    found = _DATE(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a date")
    return days_of(int(found[1]), int(found[2]), int(found[3]), adjusts=adjusts)


def micros_of_datetime(text: str, *, adjusts: bool = False) -> int:
    """Return `1999-12-31 23:59:59.123456` as microseconds since 1970-01-01 00:00. Raises ValueError."""
    found = _DATETIME(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a date and time")
    days = days_of(int(found[1]), int(found[2]), int(found[3]), adjusts=adjusts)
    seconds = (int(found[4]) * 60 + int(found[5])) * 60 + int(found[6])
    return days * _DAY_MICROS + seconds * 1_000_000 + int((found[7] or "").ljust(6, "0"))


def micros_of_time(text: str) -> int:
    """Return `-838:59:59.5` as microseconds. Raises ValueError."""
    found = _TIME(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a time")
    seconds = (int(found[2]) * 60 + int(found[3])) * 60 + int(found[4])
    micros = seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))
    return -micros if found[1] else micros


def _minute_of_day(text: str) -> int:
    found = _CLOCK(text)
    if found is None:
        raise Unrepresentable(f"{text!r} are no hour and minute of a day")
    return int(found[1]) * 60 + int(found[2])


def _second_of_minute(text: str) -> int:
    if _SECOND(text) is None:
        raise Unrepresentable(f"{text!r} is no second of a minute")
    return int(text)


def _checked_date(text: str) -> str:
    days_of_date(text)
    return text


def _days_of_packed(value: int, *, adjusts: bool = False) -> int:
    """Return the days of a DATE as it is stored."""
    return days_of(value >> 9, value >> 5 & 15, value & 31, adjusts=adjusts)


def _seconds_of_packed(value: bytes, *, adjusts: bool = False) -> int:
    """Return the seconds of a DATETIME's first three bytes: months of 13 a year, days of 32 a month, and the upper bit of the hour."""
    packed = int.from_bytes(value, "big") - 0x800000
    year, month = divmod(packed >> 6, 13)
    if not 0 <= year <= _LAST_YEAR:
        raise Unrepresentable(f"the year {year} is none of a date and time")
    return days_of(year, month, packed >> 1 & 31, adjusts=adjusts) * _DAY_SECONDS + (packed & 1) * 16 * 3600


def _zero_timestamp() -> str:
    raise StandsForNull("a time stamp of zeros")


def _sized_date(text: str, digits: int) -> str:
    """Check `1999-12-31` between the length of a time stamp, given its digits of fraction, and a space. Raises ValueError."""
    if text[:1] != chr(20 + digits if digits else 19) or text[-1:] != " ":
        raise Unrepresentable(f"{text!r} is not a date, its length before it and a space behind")
    return text[1:-1]


def _seconds_of_sized(text: str, *, digits: int, adjusts: bool) -> int:
    return days_of_date(_sized_date(text, digits), adjusts=adjusts) * _DAY_SECONDS


def _seconds_of_minute(text: str) -> int:
    return _minute_of_day(text) * 60


def _date_names(*, adjusts: bool) -> dict[str, object]:
    return {
        "DAYS": BoundedCache(partial(days_of_date, adjusts=adjusts)),
        "PACKED_DATES": BoundedCache(partial(_days_of_packed, adjusts=adjusts)),
        "PACKED_SECONDS": BoundedCache(partial(_seconds_of_packed, adjusts=adjusts)),
        **{f"DATE_SECONDS{digits}": BoundedCache(partial(_seconds_of_sized, digits=digits, adjusts=adjusts)) for digits in range(7)},
    }


#: For the quick ways: `1999-12-31` to days, `23:59:` to minutes, `59` to seconds, and a whole TIME to microseconds; pieces that are read
#: apart, and stored values, to seconds. Clocks are looked up in two parts, since a table of all seconds of a day does not fit into a
#: processor's nearest memory.
_CLOCK_NAMES: Final[dict[str, object]] = {
    "MINUTES": BoundedCache(_minute_of_day),
    "MINUTE_SECONDS": BoundedCache(_seconds_of_minute),
    "SECONDS": BoundedCache(_second_of_minute),
    "TIMES": BoundedCache(micros_of_time),
}
#: The same with those of dates, by whether years are adjusted. Columns that show no date have only the others: all columns of a table share
#: their names.
_NAMES: Final = {adjusts: _CLOCK_NAMES | _date_names(adjusts=adjusts) for adjusts in (False, True)}
_DATES: Final = BoundedCache(_checked_date)
_SIZED_DATES: Final[BoundedCache[str, str]] = BoundedCache(lambda text: _checked_date(_sized_date(text, 0)) + "T")
_ISO_DAYS: Final[BoundedCache[int, str]] = BoundedCache(lambda day: str(_EPOCH + timedelta(days=day)) + "T")
_ISO_MINUTES: Final[BoundedCache[int, str]] = BoundedCache(lambda minute: f"{minute // 60:02}:{minute % 60:02}:")
_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))


def date(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of DATE."""
    days = partial(days_of_date, adjusts=options.adjusts_years)
    if options.time_mode == "isostring":
        return _text(column, "IsoDate", lambda text: iso_date(days(text)), "1970-01-01Z")
    name = DATE if options.time_mode == "connect" else "io.debezium.time.Date"
    return _number(column, Type.INT32, name, days, "DAYS[$]", options, Stored("date", "PACKED_DATES[$]"))


def datetime(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of DATETIME(p)."""
    micros = partial(micros_of_datetime, adjusts=options.adjusts_years)
    match options.time_mode:
        case "isostring":
            return _text(column, "IsoTimestamp", lambda text: iso_timestamp(micros(text)), "1970-01-01T00:00:00Z")
        case "connect":
            return _datetime_plan(column, TIMESTAMP, lambda text: micros(text) // 1000, 1000, options)
        case "nanoseconds":
            return _number(column, Type.INT64, "io.debezium.time.NanoTimestamp", lambda text: _nanos(micros(text), text))
        case "adaptive_time_microseconds" if (column.length or 0) <= 3:
            return _datetime_plan(column, "io.debezium.time.Timestamp", lambda text: micros(text) // 1000, 1000, options)
    return _datetime_plan(column, "io.debezium.time.MicroTimestamp", micros, 1_000_000, options)


def _datetime_plan(column: MyColumn, name: str, read: Callable[[str], int], unit: int, options: ValueOptions) -> ColumnPlan:
    """Return the plan of a DATETIME(n) in units of a second; server and log show all of its digits, which must not be more than the unit
    has."""
    digits = column.length or 0
    whole = f"(DAYS[$[:10]] * 1440 + MINUTES[$[11:17]]) * {60 * unit} + SECONDS[$[17:{19 if digits else ''}]] * {unit}"
    packed = f"(PACKED_SECONDS[$] + $clock) * {unit}"
    pieces = f"(DATE_SECONDS{digits}[$] + MINUTE_SECONDS[$clock] + SECONDS[$second]) * {unit}"
    if digits:
        scale = unit // 10**digits
        scaled = f"* {scale}" if scale else f"// {10**digits // unit}"
        whole, packed, pieces = f"{whole} + int($[20:]) {scaled}", f"{packed} + $fraction {scaled}", f"{pieces} + int($fraction) {scaled}"
    ways = Stored(f"datetime.{digits}", packed), Stored(f"datetime texts.{digits}", pieces)
    return _number(column, Type.INT64, name, read, whole, options, *ways)


def _nanos(micros: int, text: str) -> int:
    nanos = micros * 1000
    if not -_MAX_LONG <= nanos <= _MAX_LONG:
        raise Unrepresentable(f"{text} lies outside of what 64 bits of nanoseconds hold; use time.precision.mode=microseconds or isostring")
    return nanos


def time(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of TIME(p): a duration, which may be negative and longer than a day where the mode has room for it."""
    match options.time_mode:
        case "isostring":
            return _text(column, "IsoTime", lambda text: iso_time(_within_a_day(text)), "00:00:00Z")
        case "connect":
            return _number(column, Type.INT32, TIME, lambda text: _within_a_day(text) // 1000)
        case "nanoseconds":
            return _number(column, Type.INT64, "io.debezium.time.NanoTime", lambda text: micros_of_time(text) * 1000, "TIMES[$] * 1000")
    return _number(column, Type.INT64, "io.debezium.time.MicroTime", micros_of_time, "TIMES[$]")


def _within_a_day(text: str) -> int:
    micros = micros_of_time(text)
    if not 0 <= micros <= _DAY_MICROS:
        raise Unrepresentable(f"the time {text} is not between 00:00:00 and 24:00:00")
    return micros


def timestamp(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of TIMESTAMP(p): the text is in UTC. Streams show all digits of the fraction, snapshots those that are needed."""
    digits = column.length or 0

    def streamed(text: str) -> str:
        micros_of_datetime(text)
        fraction = text[19:].ljust(digits + 1, "0") if digits else ""
        return f'"{text[:10]}T{text[11:19]}{fraction}Z"'

    def read(text: str) -> str:
        micros_of_datetime(text)
        fraction = text[19:].rstrip("0").rstrip(".")
        return f'"{text[:10]}T{text[11:19]}{fraction}Z"'

    schema = Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp", version=1)
    whole = "f'{DATES[$[:10]]}T{$[11:]}Z'"
    fraction = f".{{$fraction:0{digits}}}" if digits else ""
    stored = f"f'{{ISO_DAYS[$ // 86400]}}{{ISO_MINUTES[$ // 60 % 1440]}}{{TWO_DIGITS[$ % 60]}}{fraction}Z' if $ else no_moment()"
    ways = [Stored(f"timestamp.{digits}", stored)]
    helpers = {"DATES": _DATES, "ISO_DAYS": _ISO_DAYS, "ISO_MINUTES": _ISO_MINUTES, "TWO_DIGITS": _TWO_DIGITS, "no_moment": _zero_timestamp}
    if not digits:
        ways.append(Stored("timestamp texts.0", "f'{SIZED_DATES[$]}{$clock}Z'"))
        helpers["SIZED_DATES"] = _SIZED_DATES
    trimmed = "DATES[$[:10]] + 'T' + $[11:19] + $[19:].rstrip('0').rstrip('.') + 'Z'"
    return ColumnPlan(
        column.name,
        schema,
        streamed,
        whole,
        quoted=True,
        helpers=helpers,
        stored=tuple(ways),
        snapshot=None if options.unified else read,
        quick_copy=None if options.unified or not digits else trimmed,
        fallback='"1970-01-01T00:00:00Z"',
    )


def _number(
    column: MyColumn,
    type_: Type,
    name: str,
    read: Callable[[str], int],
    quick: str = "",
    options: ValueOptions | None = None,
    *stored: Stored,
) -> ColumnPlan:
    helpers = _CLOCK_NAMES if options is None else _NAMES[options.adjusts_years]
    return ColumnPlan(
        column.name,
        Schema(type_, name=name, version=1),
        lambda text: str(read(text)),
        quick,
        helpers=helpers if quick else {},
        stored=stored,
        fallback="0",
    )


def _text(column: MyColumn, name: str, read: Callable[[str], str], fallback: str) -> ColumnPlan:
    schema = Schema(Type.STRING, name=f"io.debezium.time.{name}", version=1)
    return ColumnPlan(column.name, schema, lambda text: f'"{read(text)}"', fallback=f'"{fallback}"')


FAMILIES: dict[str, Family] = {"DATE": date, "DATETIME": datetime, "TIME": time, "TIMESTAMP": timestamp}
