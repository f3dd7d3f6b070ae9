"""Dates and times as the ISO texts of Java's formatters (IsoDate.java, IsoTime.java, IsoTimestamp.java)."""

from __future__ import annotations

from connectors.engine.encode.temporal import civil_from_days

_DAY_MICROS = 86_400_000_000


def iso_date(days: int) -> str:
    """A day since 1970-01-01; years outside of 0 to 9999 carry a sign."""
    return f"{_civil(days)}Z"


def iso_time(micros: int) -> str:
    """A moment of the day, as many fractional digits as are needed."""
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}Z"


def iso_timestamp(micros: int) -> str:
    """A moment since 1970-01-01 00:00."""
    days, rest = divmod(micros, _DAY_MICROS)
    return f"{_civil(days)}T{iso_time(rest)}"


def _civil(days: int) -> str:
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"
