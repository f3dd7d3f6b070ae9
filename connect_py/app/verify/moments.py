"""Texts of dates, times and moments as numbers, for any year: Python's own types end at 9999 and begin at 1."""

from __future__ import annotations

import re

_MOMENT = re.compile(
    r"(?P<year>[+-]?\d+)-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?"
)
_DAY_SECONDS = 86_400


def days_of(text: str) -> int:
    """Days since 1970 of an ISO date. Raises ValueError."""
    return _parsed(text)[0]


def micros_of(text: str) -> int:
    """Microseconds since 1970 of an ISO date and time; without an offset, as if it were UTC. Raises ValueError."""
    days, seconds, fraction = _parsed(text)
    return (days * _DAY_SECONDS + seconds) * 1_000_000 + fraction


def time_text(micros: int) -> str:
    """A time of day, or a longer or negative span, as text: ``13:05:01.123456``; no fraction where it is zero."""
    rest, fraction = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    shown = f".{fraction:06d}" if fraction else ""
    return f"{'-' if micros < 0 else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{shown}"


def date_text(days: int) -> str:
    """An ISO date."""
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
    """An ISO date and time."""
    days, rest = divmod(micros, _DAY_SECONDS * 1_000_000)
    return f"{date_text(days)}T{time_text(rest)}"


def _parsed(text: str) -> tuple[int, int, int]:
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no date or time of ISO 8601")
    seconds = int(found["hour"] or 0) * 3600 + int(found["minute"] or 0) * 60 + int(found["second"] or 0)
    seconds -= _offset(found["zone"] or "Z")
    return _days(int(found["year"]), int(found["month"]), int(found["day"])), seconds, int((found["fraction"] or "0")[:6].ljust(6, "0"))


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if zone[0] == "-" else seconds


def _days(year: int, month: int, day: int) -> int:
    """Of the proleptic Gregorian calendar (year 0 is 1 BC)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
