"""Zones, and values of time types in them (`io.debezium.time`, `java.time`).

A zone's offset is asked for in two ways: of an instant, and of a local time. A local time that a change of the clocks skips or repeats
has the offset before the change, as in `java.time.zone.ZoneRules#getOffset`. Years outside 1 to 9999, which Python's calendar does not
have, are moved there by whole cycles of 400 years: these have the same days of the week, so the same rules.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from connect_py.data.schema import TIMESTAMP
from connect_py.errors import ConfigError, DataError

_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_MOMENT = re.compile(
    r"(?:(?P<year>[+-]?\d{4,9})-(?P<day>\d{2}-\d{2})T)?(?P<time>\d{2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d{2}:\d{2}(?::\d{2})?)",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = datetime.datetime(1970, 1, 1)
_YEAR = 366 * 86400
#: Seconds of the years 1 and 9999, with a year's margin: a zone's offset must not leave the calendar.
_FIRST, _LAST = -62135596800 + _YEAR, 253402300799 - _YEAR
_CYCLE_YEARS, _CYCLE = 400, 146097 * 86400
#: The largest offset that java.time takes, 18 hours.
_LARGEST = 18 * 3600
_SECOND = datetime.timedelta(seconds=1)


class Zone:
    """A zone by its rules, or a fixed offset."""

    def __init__(self, name: str, rules: datetime.tzinfo) -> None:
        self.name = name
        self._rules = rules

    def offset_of_local(self, seconds: int) -> int:
        """Return seconds ahead of UTC when a clock there shows a time, given as if it were UTC, in seconds since 1970."""
        return self._offset(_at(seconds).replace(tzinfo=self._rules))

    def offset_at(self, seconds: int) -> int:
        """Return seconds ahead of UTC at an instant, in seconds since 1970."""
        return self._offset(_at(seconds).replace(tzinfo=datetime.UTC).astimezone(self._rules))

    def _offset(self, when: datetime.datetime) -> int:
        found = when.utcoffset()
        assert found is not None
        return found // _SECOND


def _at(seconds: int) -> datetime.datetime:
    if seconds > _LAST:
        seconds -= -((_LAST - seconds) // _CYCLE) * _CYCLE
    elif seconds < _FIRST:
        seconds += -((seconds - _FIRST) // _CYCLE) * _CYCLE
    return _EPOCH + datetime.timedelta(seconds=seconds)


def parse_zone(text: str) -> Zone:
    """Return a zone of `Europe/Berlin`, `UTC`, `+08:00`.

    Raises:
        ConfigError: there is no such zone, or the offset is larger than 18 hours.
    """
    fixed = _OFFSET.fullmatch(text)
    if fixed:
        seconds = _seconds(fixed)
        if abs(seconds) > _LARGEST:
            raise ConfigError(f"Zone offset not in valid range: {text} is not within -18:00 to +18:00")
        return Zone(text, datetime.timezone(datetime.timedelta(seconds=seconds)))
    try:
        return Zone(text, zoneinfo.ZoneInfo(text))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            "Invalid timezone format. Please specify either a geographic timezone (e.g. America/Los_Angeles) or a UTC offset in the format "
            "of +/-hh:mm, (e.g. +08:00)."
        ) from None


def _seconds(found: re.Match[str]) -> int:
    total = int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4] or 0)
    return -total if found[1] == "-" else total


# -- values ------------------------------------------------------------------------------------------------------------------------


def _number(units: int) -> Callable[[Zone, int], int]:
    """Return numbers of local times: the instant at which a clock in the zone shows that time."""
    return lambda zone, value: value - zone.offset_of_local(value // units) * units


def _timestamp(zone: Zone, value: datetime.datetime) -> datetime.datetime:
    naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    offset = zone.offset_of_local((naive - _EPOCH) // _SECOND)
    try:
        return value - datetime.timedelta(seconds=offset)
    except OverflowError:
        raise DataError(f"{value} in {zone.name} lies outside the years 1 to 9999") from None


class _Moment(NamedTuple):
    """A text's local time, `cycles` of 400 years before or after it; its fraction of a second, and its offset in seconds."""

    local: datetime.datetime
    cycles: int
    fraction: str
    offset: int


def _parsed(text: str, *, with_day: bool) -> _Moment:
    found = _MOMENT.fullmatch(text)
    if found is None or bool(found["day"]) != with_day:
        kind = "date and time" if with_day else "time"
        raise DataError(f"Text '{text}' could not be parsed: it is no {kind} with an offset (ISO 8601)")
    year, cycles = int(found["year"] or 1970), 0
    if not 1 < year < 9999:
        # the years 401 to 800 stand for those before, in which clocks showed the sun's time; 9201 to 9600 for those after
        base = 401 if year < 2 else 9201
        cycles = (year - base) // _CYCLE_YEARS
    time = found["time"] if len(found["time"]) > 5 else f"{found['time']}:00"
    try:
        local = datetime.datetime.fromisoformat(f"{year - cycles * _CYCLE_YEARS:04d}-{found['day'] or '01-01'}T{time}")
    except ValueError as error:
        raise DataError(f"Text '{text}' could not be parsed: {error}") from None
    fixed = _OFFSET.fullmatch(found["zone"])
    return _Moment(local, cycles, (found["fraction"] or "").rstrip("0"), _seconds(fixed) if fixed else 0)


def _zoned_timestamp(zone: Zone, text: str) -> str:
    moment = _parsed(text, with_day=True)
    new_offset = zone.offset_of_local((moment.local - _EPOCH) // _SECOND)
    moved = moment.local + datetime.timedelta(seconds=new_offset - moment.offset)
    year = moved.year + moment.cycles * _CYCLE_YEARS
    shown = f"+{year}" if year > 9999 else f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    return f"{shown}-{moved:%m-%d}T{moved:%H:%M:%S}{_fraction(moment.fraction)}{_offset_text(new_offset)}"


def _zoned_time(zone: Zone, text: str) -> str:
    """A time of day has no day whose rules could count: the zone's offset of today is taken."""
    moment = _parsed(text, with_day=False)
    today = zone.offset_at((datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - _EPOCH) // _SECOND)
    moved = moment.local + datetime.timedelta(seconds=today - moment.offset)
    return f"{moved:%H:%M:%S}{_fraction(moment.fraction)}{_offset_text(today)}"


def _fraction(digits: str) -> str:
    return f".{digits}" if digits else ""


def _offset_text(seconds: int) -> str:
    if not seconds:
        return "Z"
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    minutes, rest = divmod(seconds, 60)
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" + (f":{rest:02d}" if rest else "")


#: Name of a time type → its values in a zone.
CONVERTERS: Mapping[str, Callable[[Zone, Any], Any]] = {
    "io.debezium.time.ZonedTimestamp": _zoned_timestamp,
    "io.debezium.time.ZonedTime": _zoned_time,
    "io.debezium.time.Timestamp": _number(10**3),
    "io.debezium.time.MicroTimestamp": _number(10**6),
    "io.debezium.time.NanoTimestamp": _number(10**9),
    TIMESTAMP: _timestamp,
}
