"""interval, as the session's IntervalStyle `postgres` prints it (postgres.md §14; MicroDuration.java, Interval.java)."""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from connect_py.data import Schema, Type
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions

MICRO_DURATION = Schema(Type.INT64, name="io.debezium.time.MicroDuration", version=1)
ISO_INTERVAL = Schema(Type.STRING, name="io.debezium.time.Interval", version=1)
#: MicroDuration.DAYS_PER_MONTH_AVG.
_DAYS_PER_MONTH = 365.25 / 12
_NANO = Decimal("1e-9")
_MAX_LONG = (1 << 63) - 1
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
    """Microseconds, or an ISO text, by `interval.handling.mode`."""
    if options.interval_mode == "string":
        return ColumnPlan(name, ISO_INTERVAL, lambda text: f'"{iso_text(text)}"', fallback='"P0Y0M0DT0H0M0S"')
    return ColumnPlan(name, MICRO_DURATION, lambda text: str(micros_of_interval(text)), fallback="0")


def parts_of(text: str) -> Parts:
    """`-1 years -2 mons +3 days -04:05:06.789`. Raises ValueError, also for the infinities of PostgreSQL 17."""
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
    """Microseconds, a month being a twelfth of 365.25 days; computed in doubles and cut to 64 bits as Java does."""
    part = parts_of(text)
    days = (part.years * 12 + part.months) * _DAYS_PER_MONTH + part.days
    seconds = ((days * 24 + part.hours) * 60 + part.minutes) * 60 + part.seconds
    return max(min(int(seconds * 1e6), _MAX_LONG), -_MAX_LONG - 1)


def iso_text(text: str) -> str:
    """`P1Y2M3DT4H5M6.78S`: every part, trailing zeros of the seconds removed."""
    part = parts_of(text)
    exact = Decimal(repr(part.seconds)).quantize(_NANO, ROUND_DOWN)
    seconds = f"{exact.normalize():f}" if exact else "0"
    return f"P{part.years}Y{part.months}M{part.days}DT{part.hours}H{part.minutes}M{seconds}S"


FAMILIES: dict[str, Family] = {"interval": interval}
