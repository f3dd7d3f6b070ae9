"""date, time, timetz, timestamp and timestamptz by `time.precision.mode`, and interval by `interval.handling.mode`.

Texts are those of DateStyle ISO, TimeZone UTC and IntervalStyle postgres. Sentinels and overflows are the reference's own, seen in its
bytes: beyond the year 294247 microseconds no longer fit 64 bits, and Java saturates the seconds, then adds the fraction and wraps around.
With `time.precision.mode=isostring` dates and times are ISO texts (`IsoDate`, `IsoTime`, `IsoTimestamp`).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from functools import cache
from typing import NamedTuple

from connect_py.data import Schema, Type
from connect_py.data.schema import DATE, TIME, TIMESTAMP
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.encode.values import civil_from_days, days_from_civil, iso_date, iso_time, iso_timestamp
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

_EPOCH = datetime.datetime(1970, 1, 1)
#: What the quick expressions use. `fromisoformat` refuses the sentinels, eras and years of five digits, which so go the slow way.
_HELPERS = {"EPOCH": _EPOCH, "date_of": datetime.date.fromisoformat, "datetime_of": datetime.datetime.fromisoformat}
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
    """Return the days since 1970-01-01. Raises ValueError."""
    if text in DATE_INFINITY:
        return DATE_INFINITY[text]
    return _days(_match(_FULL_DATE, text))


def _snapshot_days(text: str) -> str:
    return str(SNAPSHOT_DATE_INFINITY[text] if text in SNAPSHOT_DATE_INFINITY else days_of_date(text))


def date(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Return the days since 1970-01-01."""
    return ColumnPlan(
        name,
        _schema(Type.INT32, DATE if options.time_mode == "connect" else "io.debezium.time.Date"),
        lambda text: str(days_of_date(text)),
        f"date_of($).toordinal() - {_EPOCH.toordinal()}",
        helpers=_HELPERS,
        snapshot=_snapshot_days,
        fallback="0",
    )


# -- time --------------------------------------------------------------------------------------------------------------------------


def micros_of_time(text: str) -> int:
    """Return the microseconds of the day; 24:00:00 is a whole day. Raises ValueError."""
    return _micros_of_day(_match(_FULL_TIME, text))


def time(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of time: milliseconds, microseconds or nanoseconds of the day."""
    mode = options.time_mode
    if mode == "nanoseconds":
        return ColumnPlan(
            name, _schema(Type.INT64, "io.debezium.time.NanoTime"), lambda text: str(micros_of_time(text) * 1000), fallback="0"
        )
    # Python 3.14 reads 24:00:00 as the next day; older ones leave it to the slow way
    since = "((d$ := datetime_of('1970-01-01 ' + $) - EPOCH).days * 86400 + d$.seconds)"
    if mode == "connect" or (mode == "adaptive" and 0 <= root.typmod <= 3):
        return ColumnPlan(
            name,
            _schema(Type.INT32, TIME if mode == "connect" else "io.debezium.time.Time"),
            lambda text: str(micros_of_time(text) // 1000),
            f"{since} * 1000 + d$.microseconds // 1000",
            helpers=_HELPERS,
            fallback="0",
        )
    return ColumnPlan(
        name,
        _schema(Type.INT64, "io.debezium.time.MicroTime"),
        lambda text: str(micros_of_time(text)),
        f"{since} * 1000000 + d$.microseconds",
        helpers=_HELPERS,
        fallback="0",
    )


def timetz(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of timetz: a time of day in UTC, as text."""
    return ColumnPlan(
        name, _schema(Type.STRING, "io.debezium.time.ZonedTime"), lambda text: f'"{zoned_time(text)}"', fallback='"00:00:00Z"'
    )


def zoned_time(text: str) -> str:
    """Return a time such as `11:51:30.123Z`.

    Shifted to UTC, round the clock, as many fractional digits as are needed. Raises ValueError.
    """
    match = _match(_FULL_TIMETZ, text)
    seconds, micros = divmod((_micros_of_day(match) - _offset_micros(match)) % _DAY_MICROS, 1_000_000)
    fraction = f".{micros:06}".rstrip("0").rstrip(".")
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}Z"


# -- timestamp ---------------------------------------------------------------------------------------------------------------------


def micros_of_timestamp(text: str) -> int:
    """Return the microseconds since 1970-01-01 00:00, as a 64-bit number. Raises ValueError."""
    if text in TIMESTAMP_INFINITY_MICROS:
        return TIMESTAMP_INFINITY_MICROS[text]
    seconds, micros = divmod(_exact_micros(text), 1_000_000)
    value = max(min(seconds * 1_000_000, _MAX_LONG), -_MAX_LONG - 1) + micros
    return value - (1 << 64) if value > _MAX_LONG else value


def millis_of_timestamp(text: str) -> int:
    """Return the milliseconds since 1970-01-01 00:00. Raises ValueError."""
    if text in TIMESTAMP_INFINITY_MICROS:
        return TIMESTAMP_INFINITY_MICROS[text] // 1000
    return _exact_micros(text) // 1000


def wide_micros_of_timestamp(text: str) -> int:
    """Convert as `micros_of_timestamp`, without the limits of 64 bits. Raises ValueError."""
    return TIMESTAMP_INFINITY_MICROS[text] if text in TIMESTAMP_INFINITY_MICROS else _exact_micros(text)


def nanos_of_timestamp(text: str) -> int:
    """Return the nanoseconds since 1970-01-01 00:00.

    The sentinels are the ends of 64 bits. Raises ValueError, also for times outside of that range.
    """
    if text in TIMESTAMP_INFINITY_MICROS:
        return _MAX_LONG if text == "infinity" else -_MAX_LONG - 1
    nanos = _exact_micros(text) * 1000
    if not -_MAX_LONG <= nanos <= _MAX_LONG:
        raise Unrepresentable(f"{text} lies outside of what 64 bits of nanoseconds hold; use time.precision.mode=microseconds or isostring")
    return nanos


def _exact_micros(text: str) -> int:
    match = _match(_FULL_TIMESTAMP, text)
    return _days(match) * _DAY_MICROS + _micros_of_day(match)


def timestamp(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of timestamp: milliseconds, microseconds or nanoseconds since 1970-01-01 00:00, in no zone."""
    mode = options.time_mode
    if mode == "nanoseconds":
        return ColumnPlan(
            name, _schema(Type.INT64, "io.debezium.time.NanoTimestamp"), lambda text: str(nanos_of_timestamp(text)), fallback="0"
        )
    since = "(d$ := datetime_of($) - EPOCH)"
    if mode == "connect" or (0 <= root.typmod <= 3 and mode != "microseconds"):
        return ColumnPlan(
            name,
            _schema(Type.INT64, TIMESTAMP if mode == "connect" else "io.debezium.time.Timestamp"),
            lambda text: str(millis_of_timestamp(text)),
            f"{since}.days * 86400000 + d$.seconds * 1000 + d$.microseconds // 1000",
            helpers=_HELPERS,
            fallback="0",
        )
    return ColumnPlan(
        name,
        _schema(Type.INT64, "io.debezium.time.MicroTimestamp"),
        lambda text: str(micros_of_timestamp(text)),
        f"{since}.days * 86400000000 + d$.seconds * 1000000 + d$.microseconds",
        helpers=_HELPERS,
        fallback="0",
    )


def timestamptz(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of timestamptz: text in UTC, with as many fractional digits as the type has."""
    precision = root.typmod if 0 <= root.typmod <= 6 else 6
    zeros = "." + "0" * precision if precision else ""
    whole = f"f'{{$[:10]}}T{{$[11:19]}}{zeros}Z' if $[19:] == '+00' else "
    digits = f"f'{{$[:10]}}T{{$[11:-3]}}Z' if $[{20 + precision}:] == '+00' and $[19] == '.' else " if precision else ""

    zoned = _zoned(precision)
    return ColumnPlan(
        name,
        _schema(Type.STRING, "io.debezium.time.ZonedTimestamp"),
        lambda text: f'"{zoned(text)}"',
        f"{whole}{digits}zoned_{precision}($)",
        quoted=True,
        helpers={f"zoned_{precision}": zoned},
        fallback='"1970-01-01T00:00:00Z"',
    )


@cache
def _zoned(precision: int) -> Callable[[str], str]:
    """Return one function for each precision, since the columns of a table share its name."""

    def zoned(text: str) -> str:
        return zoned_timestamp(text, precision)

    return zoned


def zoned_timestamp(text: str, precision: int) -> str:
    """Return a text such as `2016-11-04T11:51:30.123456Z`.

    Sentinels stay words; years outside of 0 to 9999 carry a sign. Raises ValueError.
    """
    if len(text) > 22 and text[10] == " " and text[-3:] == "+00" and text[19] == "." and len(text) <= 29:
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<{precision}}Z"
    if text in TIMESTAMP_INFINITY_MICROS:
        return text
    match = _match(_FULL_TIMESTAMPTZ, text)
    days, micros = divmod(_days(match) * _DAY_MICROS + _micros_of_day(match) - _offset_micros(match), _DAY_MICROS)
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    seconds, micros = divmod(micros, 1_000_000)
    fraction = f".{micros:06}"[: precision + 1] if precision else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}Z"


def _schema(type_: Type, name: str) -> Schema:
    return Schema(type_, name=name, version=1)


TEMPORAL: dict[str, Family] = {"date": date, "time": time, "timetz": timetz, "timestamp": timestamp, "timestamptz": timestamptz}


MICRO_DURATION = Schema(Type.INT64, name="io.debezium.time.MicroDuration", version=1)
ISO_INTERVAL = Schema(Type.STRING, name="io.debezium.time.Interval", version=1)
#: MicroDuration.DAYS_PER_MONTH_AVG.
_DAYS_PER_MONTH = 365.25 / 12
_NANO = Decimal("1e-9")

_FORM = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?))?"
).fullmatch


class Parts(NamedTuple):
    """An interval's fields, each with its own sign. Seconds are the double that the reference's driver makes of two whole numbers."""

    years: int
    months: int
    days: int
    hours: int
    minutes: int
    seconds: float


def interval(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of interval: microseconds, or an ISO text, by `interval.handling.mode`."""
    if options.interval_mode == "string":
        return ColumnPlan(name, ISO_INTERVAL, lambda text: f'"{iso_text(text)}"', fallback='"P0Y0M0DT0H0M0S"')
    return ColumnPlan(name, MICRO_DURATION, lambda text: str(micros_of_interval(text)), fallback="0")


def parts_of(text: str) -> Parts:
    """Parse `-1 years -2 mons +3 days -04:05:06.789`. Raises ValueError, also for the infinities of PostgreSQL 17."""
    found = _FORM(text)
    if found is None or not text:
        raise Unrepresentable(f"{text!r} is not an interval in the style postgres")
    years, months, days = (int(found[part] or 0) for part in ("years", "months", "days"))
    sign = -1 if found["sign"] == "-" else 1
    whole, _, fraction = (found["seconds"] or "0").partition(".")
    # 1.235 so becomes 1.2349999999999999 (`PGInterval.getSeconds`)
    seconds = int(whole) + int(fraction.ljust(6, "0")) / 1e6
    return Parts(years, months, days, sign * int(found["hours"] or 0), sign * int(found["minutes"] or 0), sign * seconds)


def micros_of_interval(text: str) -> int:
    """Return the microseconds, a month being a twelfth of 365.25 days; computed in doubles and cut to 64 bits as Java does."""
    part = parts_of(text)
    days = (part.years * 12 + part.months) * _DAYS_PER_MONTH + part.days
    seconds = ((days * 24 + part.hours) * 60 + part.minutes) * 60 + part.seconds
    return max(min(int(seconds * 1e6), _MAX_LONG), -_MAX_LONG - 1)


def iso_text(text: str) -> str:
    """Return a text such as `P1Y2M3DT4H5M6.78S`: every part, trailing zeros of the seconds removed."""
    part = parts_of(text)
    exact = Decimal(repr(part.seconds)).quantize(_NANO, ROUND_DOWN)
    seconds = f"{exact.normalize():f}" if exact else "0"
    return f"P{part.years}Y{part.months}M{part.days}DT{part.hours}H{part.minutes}M{seconds}S"


INTERVALS: dict[str, Family] = {"interval": interval}


#: What Java's calendars make of the sentinels (pg_types_iso.json); in streams, and of dates in snapshots.
_INFINITE_DATES = {"infinity": "-5877611-06-21Z", "-infinity": "-5877611-06-22Z"}
_SNAPSHOT_INFINITE_DATES = {"infinity": "+292278994-08-16Z", "-infinity": "+292269055-12-02Z"}


def date_as_iso(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of dates such as `2016-11-04Z`."""
    return ColumnPlan(
        name,
        _iso_schema("IsoDate"),
        lambda text: f'"{_INFINITE_DATES.get(text) or iso_date(days_of_date(text))}"',
        # the sentinels are converted in the slow way, in which rows of a snapshot have a form of their own
        "iso_of_finite($)",
        quoted=True,
        helpers={"iso_of_finite": _iso_of_finite},
        snapshot=lambda text: f'"{_SNAPSHOT_INFINITE_DATES.get(text) or iso_date(days_of_date(text))}"',
        fallback='"1970-01-01Z"',
    )


def time_as_iso(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of times such as `13:51:30.123Z`."""
    return ColumnPlan(name, _iso_schema("IsoTime"), lambda text: f'"{iso_time(micros_of_time(text))}"', fallback='"00:00:00Z"')


def timestamp_as_iso(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of timestamps such as `2016-11-04T13:51:30.123456Z`."""
    return ColumnPlan(
        name,
        _iso_schema("IsoTimestamp"),
        lambda text: f'"{iso_timestamp(wide_micros_of_timestamp(text))}"',
        fallback='"1970-01-01T00:00:00Z"',
    )


def _iso_of_finite(text: str) -> str:
    if text in _INFINITE_DATES:
        raise ValueError(text)
    return iso_date(days_of_date(text))


def _iso_schema(name: str) -> Schema:
    return Schema(Type.STRING, name=f"io.debezium.time.{name}", version=1)


ISO_TIMES: dict[str, Family] = {"date": date_as_iso, "time": time_as_iso, "timestamp": timestamp_as_iso}
