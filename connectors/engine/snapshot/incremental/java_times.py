"""Texts of moments and times, as databases show them, to and from the numbers that Java's classes hold. Pure."""

from __future__ import annotations

import datetime
import re

_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,9}))?").fullmatch


def seconds_of_moment(text: str) -> tuple[int, int]:
    """Seconds since 1970 and nanoseconds of a date and time of UTC."""
    moment, _, fraction = text.partition(".")
    since = datetime.datetime.fromisoformat(moment) - datetime.datetime(1970, 1, 1)
    return since // datetime.timedelta(seconds=1), int(fraction.ljust(9, "0")) if fraction else 0


def seconds_of_time(text: str) -> tuple[int, int]:
    """Whole seconds, rounded down, and nanoseconds of a time that may be negative, as `java.time.Duration` holds them.

    Raises:
        ValueError: it is no time.
    """
    if (found := _TIME(text)) is None:
        raise ValueError(f"{text} is no time")
    sign, hours, minutes, seconds, fraction = found.groups()
    nanos = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**9 + int((fraction or "").ljust(9, "0"))
    return divmod(-nanos if sign else nanos, 10**9)


def time_text(seconds: int, nanos: int) -> str:
    """The other way."""
    whole, part = divmod(abs(seconds * 10**9 + nanos), 10**9)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{fraction_text(part)}"


def fraction_text(nanos: int) -> str:
    """A point and the digits behind it; nothing for none."""
    return f".{nanos:09}".rstrip("0") if nanos else ""
