"""date, time, timetz, timestamp and timestamptz (postgres.md §14; debezium-common.md §6.2).

Texts are those of DateStyle ISO and TimeZone UTC. Sentinels and overflows are the reference's own, seen in its bytes: beyond the year
294247 microseconds no longer fit 64 bits, and Java saturates the seconds, then adds the fraction and wraps around.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from connect_py.data import Schema, Type
from connect_py.data.logical import DATE, TIME, TIMESTAMP
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.encode.temporal import (
    DATE_MICROS,
    DATE_MILLIS,
    DAYS,
    MINUTE_MICROS,
    MINUTE_MILLIS,
    SECOND_MICROS,
    SECOND_MILLIS,
    days_from_civil,
)
from connectors.postgres.types.base import Family, RootType, ValueOptions

DATE_INFINITY = {"infinity": -2147472692, "-infinity": -2147472691}
#: What pgjdbc's dates of the sentinels come to as days, so what the reference's snapshots show.
SNAPSHOT_DATE_INFINITY = {"infinity": -622191234, "-infinity": -625821272}
TIMESTAMP_INFINITY_MICROS = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}

_DATE = r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6}))?"
_OFFSET = r"(?P<sign>[+-])(?P<oh>\d\d)(?::(?P<om>\d\d)(?::(?P<os>\d\d))?)?"
_ERA = r"(?P<era> BC)?"
_FULL_DATE = re.compile(_DATE + _ERA).fullmatch
_FULL_TIME = re.compile(_TIME).fullmatch
_FULL_TIMETZ = re.compile(_TIME + _OFFSET).fullmatch
_FULL_TIMESTAMP = re.compile(f"{_DATE} {_TIME}{_ERA}").fullmatch
_FULL_TIMESTAMPTZ = re.compile(f"{_DATE} {_TIME}{_OFFSET}{_ERA}").fullmatch

_DAY_MICROS = 86_400_000_000
_MAX_LONG = (1 << 63) - 1


def _match(pattern: Callable[[str], re.Match[str] | None], text: str) -> re.Match[str]:
    match = pattern(text)
    if match is None:
        raise Unrepresentable(f"{text!r} is not in the ISO form that the session asked for")
    return match


def _days(match: re.Match[str]) -> int:
    year = int(match["year"])
    return days_from_civil(1 - year if match["era"] else year, int(match["month"]), int(match["day"]))


def _micros_of_day(match: re.Match[str]) -> int:
    seconds = (int(match["hour"]) * 60 + int(match["minute"])) * 60 + int(match["second"])
    return seconds * 1_000_000 + int((match["fraction"] or "").ljust(6, "0"))


def _offset_micros(match: re.Match[str]) -> int:
    seconds = (int(match["oh"]) * 60 + int(match["om"] or 0)) * 60 + int(match["os"] or 0)
    return (-seconds if match["sign"] == "-" else seconds) * 1_000_000


# -- date --------------------------------------------------------------------------------------------------------------------------


def days_of_date(text: str) -> int:
    """Days since 1970-01-01. Raises ValueError."""
    if text in DATE_INFINITY:
        return DATE_INFINITY[text]
    return _days(_match(_FULL_DATE, text))


def _snapshot_days(text: str) -> str:
    return str(SNAPSHOT_DATE_INFINITY[text] if text in SNAPSHOT_DATE_INFINITY else days_of_date(text))


def date(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Days since 1970-01-01."""
    schema = _schema(Type.INT32, DATE if options.time_mode == "connect" else "io.debezium.time.Date")
    return ColumnPlan(
        name, schema, lambda text: str(days_of_date(text)), "DAYS[$]", helpers={"DAYS": DAYS}, snapshot=_snapshot_days, fallback="0"
    )


# -- time --------------------------------------------------------------------------------------------------------------------------


def micros_of_time(text: str) -> int:
    """Microseconds of the day; 24:00:00 is a whole day. Raises ValueError."""
    return _micros_of_day(_match(_FULL_TIME, text))


def time(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Milliseconds or microseconds of the day."""
    mode = options.time_mode
    if mode == "connect" or (mode == "adaptive" and 0 <= root.typmod <= 3):
        schema = _schema(Type.INT32, TIME if mode == "connect" else "io.debezium.time.Time")
        return ColumnPlan(
            name,
            schema,
            lambda text: str(micros_of_time(text) // 1000),
            "MINUTE_MILLIS[$[:5]] + SECOND_MILLIS[$[6:]] if len($) == 8 else micros_of_time($) // 1000",
            helpers={"MINUTE_MILLIS": MINUTE_MILLIS, "SECOND_MILLIS": SECOND_MILLIS, "micros_of_time": micros_of_time},
            fallback="0",
        )
    return ColumnPlan(
        name,
        _schema(Type.INT64, "io.debezium.time.MicroTime"),
        lambda text: str(micros_of_time(text)),
        "MINUTE_MICROS[$[:5]] + SECOND_MICROS[$[6:]] if len($) == 8 else micros_of_time($)",
        helpers={"MINUTE_MICROS": MINUTE_MICROS, "SECOND_MICROS": SECOND_MICROS, "micros_of_time": micros_of_time},
        fallback="0",
    )


def timetz(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """A time of day in UTC, as text."""
    return ColumnPlan(
        name, _schema(Type.STRING, "io.debezium.time.ZonedTime"), lambda text: f'"{zoned_time(text)}"', fallback='"00:00:00Z"'
    )


def zoned_time(text: str) -> str:
    """`11:51:30.123Z`: shifted to UTC, round the clock, as many fractional digits as are needed. Raises ValueError."""
    match = _match(_FULL_TIMETZ, text)
    seconds, micros = divmod((_micros_of_day(match) - _offset_micros(match)) % _DAY_MICROS, 1_000_000)
    fraction = f".{micros:06}".rstrip("0").rstrip(".")
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}Z"


# -- timestamp ---------------------------------------------------------------------------------------------------------------------


def micros_of_timestamp(text: str) -> int:
    """Microseconds since 1970-01-01 00:00, as a 64-bit number. Raises ValueError."""
    if text in TIMESTAMP_INFINITY_MICROS:
        return TIMESTAMP_INFINITY_MICROS[text]
    seconds, micros = divmod(_exact_micros(text), 1_000_000)
    value = max(min(seconds * 1_000_000, _MAX_LONG), -_MAX_LONG - 1) + micros
    return value - (1 << 64) if value > _MAX_LONG else value


def millis_of_timestamp(text: str) -> int:
    """Milliseconds since 1970-01-01 00:00. Raises ValueError."""
    if text in TIMESTAMP_INFINITY_MICROS:
        return TIMESTAMP_INFINITY_MICROS[text] // 1000
    return _exact_micros(text) // 1000


def _exact_micros(text: str) -> int:
    match = _match(_FULL_TIMESTAMP, text)
    return _days(match) * _DAY_MICROS + _micros_of_day(match)


def timestamp(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Milliseconds or microseconds since 1970-01-01 00:00, in no zone."""
    mode = options.time_mode
    if mode == "connect" or (0 <= root.typmod <= 3 and mode != "microseconds"):
        return ColumnPlan(
            name,
            _schema(Type.INT64, TIMESTAMP if mode == "connect" else "io.debezium.time.Timestamp"),
            lambda text: str(millis_of_timestamp(text)),
            "DATE_MILLIS[$[:10]] + MINUTE_MILLIS[$[11:16]] + SECOND_MILLIS[$[17:]] if len($) == 19 else millis_of_timestamp($)",
            helpers={
                "DATE_MILLIS": DATE_MILLIS,
                "MINUTE_MILLIS": MINUTE_MILLIS,
                "SECOND_MILLIS": SECOND_MILLIS,
                "millis_of_timestamp": millis_of_timestamp,
            },
            fallback="0",
        )
    minute = "DATE_MICROS[$[:10]] + MINUTE_MICROS[$[11:16]]"
    second = f"{minute} + SECOND_MICROS[$[17:]]"
    fraction = f"{minute} + SECOND_MICROS[$[17:19]] + int($[20:])"
    return ColumnPlan(
        name,
        _schema(Type.INT64, "io.debezium.time.MicroTimestamp"),
        lambda text: str(micros_of_timestamp(text)),
        f"{second} if len($) == 19 else {fraction} if len($) == 26 else micros_of_timestamp($)",
        helpers={
            "DATE_MICROS": DATE_MICROS,
            "MINUTE_MICROS": MINUTE_MICROS,
            "SECOND_MICROS": SECOND_MICROS,
            "micros_of_timestamp": micros_of_timestamp,
        },
        fallback="0",
    )


def timestamptz(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """A point in time as text in UTC, with as many fractional digits as the type has."""
    precision = root.typmod if 0 <= root.typmod <= 6 else 6
    zeros = "." + "0" * precision if precision else ""
    length = 23 + precision
    fraction = f"f'{{$[:10]}}T{{$[11:-3]}}Z' if len($) == {length} and $[19] == '.' and $[-3:] == '+00' else " if precision else ""

    def convert(text: str) -> str:
        return f'"{zoned_timestamp(text, precision)}"'

    def quick(text: str) -> str:
        return zoned_timestamp(text, precision)

    return ColumnPlan(
        name,
        _schema(Type.STRING, "io.debezium.time.ZonedTimestamp"),
        convert,
        f"f'{{$[:10]}}T{{$[11:19]}}{zeros}Z' if len($) == 22 and $[19:] == '+00' else {fraction}zoned{precision}($)",
        quoted=True,
        helpers={f"zoned{precision}": quick},
        fallback='"1970-01-01T00:00:00Z"',
    )


def zoned_timestamp(text: str, precision: int) -> str:
    """`2016-11-04T11:51:30.123456Z`; the sentinels stay words; years outside of 0 to 9999 carry a sign. Raises ValueError."""
    if len(text) > 22 and text[10] == " " and text[-3:] == "+00" and text[19] == "." and len(text) <= 29:
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<{precision}}Z"
    if text in TIMESTAMP_INFINITY_MICROS:
        return text
    match = _match(_FULL_TIMESTAMPTZ, text)
    days, micros = divmod(_days(match) * _DAY_MICROS + _micros_of_day(match) - _offset_micros(match), _DAY_MICROS)
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    seconds, micros = divmod(micros, 1_000_000)
    fraction = f".{micros:06}"[: precision + 1] if precision else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}Z"


def _civil(days: int) -> tuple[int, int, int]:
    cycles, rest = divmod(days - days_from_civil(4, 1, 1), 146_097)
    inside = datetime.date.fromordinal(datetime.date(4, 1, 1).toordinal() + rest)
    return inside.year + cycles * 400, inside.month, inside.day


def _schema(type_: Type, name: str) -> Schema:
    return Schema(type_, name=name, version=1)


FAMILIES: dict[str, Family] = {"date": date, "time": time, "timetz": timetz, "timestamp": timestamp, "timestamptz": timestamptz}
