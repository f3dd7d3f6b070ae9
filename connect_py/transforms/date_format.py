"""Read and write date and time patterns (`java.text.SimpleDateFormat`), in UTC and in English, on the proleptic Gregorian calendar.

Parsing is lenient, as Java's default is: month 13 is the next January, a number takes all digits that follow unless the next field is a
number too, and a text may continue after what the pattern describes. Week years, weeks and days of a week can be written, not read; zones
are read as offsets, UTC, GMT or Z, not by other names.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from connect_py.data.times import MILLIS_OF_DAY, date_to_days, millis_to_timestamp
from connect_py.errors import ConfigError, DataError

_LETTERS = "GyYMLwWDdFEuaHkKhmsSzZX"
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = re.compile(r"[ \t]*(-?\d+)")
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d\d)?|GMT|UTC|Z")
#: Letters that are read as plain numbers: the part of the moment that they set.
_NUMERIC = {"D": "yday", "d": "day", "H": "hour", "k": "hour", "K": "hour12", "h": "hour12", "m": "minute", "s": "second", "S": "milli"}


class _Token(NamedTuple):
    """A run of one pattern letter, or (letter empty) a literal text."""

    letter: str
    width: int
    text: str = ""


class DateFormat:
    """One pattern.

    Args:
        pattern: such as ``yyyy-MM-dd'T'HH:mm:ss.SSS``.

    Raises:
        ConfigError: a letter means nothing, or a quote is not closed.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tokens = _tokens(pattern)
        self._layout = _layout(self._tokens)

    def format(self, millis: int) -> str:
        """Return milliseconds since 1970-01-01 UTC as a text. Raises DataError outside the years 1 to 9999."""
        when = millis_to_timestamp(millis)
        if self._layout is not None:
            return self._layout.format(when, millis % 1000)
        return "".join(token.text if not token.letter else _WRITERS[token.letter](when, token.width) for token in self._tokens)

    def parse(self, text: str) -> int:
        """Return a text as milliseconds since 1970-01-01 UTC. Raises DataError when it does not match."""
        parts: dict[str, int] = {}
        at = 0
        for i, token in enumerate(self._tokens):
            if not token.letter:
                if not text.startswith(token.text, at):
                    raise self._mismatch(text)
                at += len(token.text)
                continue
            following = self._tokens[i + 1].letter if i + 1 < len(self._tokens) else ""
            is_abutting = following in _NUMERIC or following in tuple("yML")
            end = self._read(token, text, at, parts, is_abutting)
            if end is None:
                raise self._mismatch(text)
            at = end
        try:
            return _moment(parts)
        except (ValueError, OverflowError):
            raise DataError(f"The timestamp {text} lies outside the years 1 to 9999") from None

    def _mismatch(self, text: str) -> DataError:
        return DataError(f"Could not parse timestamp: value ({text}) does not match pattern ({self.pattern})")

    def _read(self, token: _Token, text: str, at: int, parts: dict[str, int], is_abutting: bool) -> int | None:
        """Read one field into `parts`; return the position after it, or None when it is not there."""
        letter, width = token.letter, token.width
        if letter in "ML" and width >= 3:
            return _read_name(_MONTHS, text, at, lambda index: parts.__setitem__("month", index + 1))
        if letter == "E":
            return _read_name(_DAYS, text, at, lambda _: None)
        if letter == "a":
            return _read_name(("AM", "PM"), text, at, lambda index: parts.__setitem__("half", index))
        if letter == "G":
            return _read_name(("BC", "AD"), text, at, lambda index: parts.__setitem__("era", index))
        if letter in "zZX":
            return _read_offset(text, at, parts, needs_colon=letter == "X" and width == 3)
        if letter in "YwWFu":
            raise DataError(f"The letter {letter} of the pattern {self.pattern} can only be written, not read")
        number = re.compile(rf"[ \t]*(-?\d{{1,{width}}})") if is_abutting else _NUMBER
        found = number.match(text, at)
        if not found:
            return None
        value = int(found[1])
        if letter == "y":
            parts["year"] = _full_year(value) if width <= 2 and len(found[1]) == 2 and value >= 0 else value
        elif letter in "ML":
            parts["month"] = value
        else:
            parts[_NUMERIC[letter]] = 0 if (letter == "k" and value == 24) or (letter == "h" and value == 12) else value
        return found.end()


def _tokens(pattern: str) -> list[_Token]:
    tokens: list[_Token] = []
    literal = ""
    at = 0

    def end_literal() -> None:
        nonlocal literal
        if literal:
            tokens.append(_Token("", 0, literal))
        literal = ""

    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            quoted, at = _quoted(pattern, at)
            literal += quoted
        elif char.isascii() and char.isalpha():
            if char not in _LETTERS:
                raise ConfigError(f"Illegal pattern character '{char}'")
            end_literal()
            start = at
            while at < len(pattern) and pattern[at] == char:
                at += 1
            tokens.append(_Token(char, at - start))
        else:
            literal += char
            at += 1
    end_literal()
    return tokens


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """Return a quoted literal and the position after it; two quotes are one."""
    if pattern.startswith("''", at):
        return "'", at + 2
    text = ""
    at += 1
    while at < len(pattern):
        if pattern.startswith("''", at):
            text += "'"
            at += 2
        elif pattern[at] == "'":
            return text, at + 1
        else:
            text += pattern[at]
            at += 1
    raise ConfigError("Unterminated quote")


# -- writing -----------------------------------------------------------------------------------------------------------------------


def _year(year: int, width: int) -> str:
    return f"{year % 100:02d}" if width == 2 else str(year).zfill(width)


def _month(when: datetime.datetime, width: int) -> str:
    name = _MONTHS[when.month - 1]
    return name if width >= 4 else name[:3] if width == 3 else str(when.month).zfill(width)


def _week_of_year(when: datetime.datetime) -> tuple[int, int]:
    """Week year and week of the US: a week begins on Sunday, and the one with January 1st is the first."""

    def start(year: int) -> datetime.date:
        first = datetime.date(year, 1, 1)
        return first - datetime.timedelta(days=first.isoweekday() % 7)

    day = when.date()
    year = day.year + 1 if day.year < datetime.MAXYEAR and day >= start(day.year + 1) else day.year
    return year, (day - start(year)).days // 7 + 1


def _week_of_month(when: datetime.datetime) -> int:
    return (when.day + when.replace(day=1).isoweekday() % 7 - 1) // 7 + 1


def _number(value: Callable[[datetime.datetime], int]) -> Callable[[datetime.datetime, int], str]:
    return lambda when, width: str(value(when)).zfill(width)


def _name_of_zone(_when: datetime.datetime, width: int) -> str:
    return "Coordinated Universal Time" if width >= 4 else "UTC"


_WRITERS: Mapping[str, Callable[[datetime.datetime, int], str]] = {
    "G": lambda _when, _width: "AD",
    "y": lambda when, width: _year(when.year, width),
    "Y": lambda when, width: _year(_week_of_year(when)[0], width),
    "M": _month,
    "L": _month,
    "w": _number(lambda when: _week_of_year(when)[1]),
    "W": _number(_week_of_month),
    "D": _number(lambda when: when.timetuple().tm_yday),
    "d": _number(lambda when: when.day),
    "F": _number(lambda when: (when.day - 1) // 7 + 1),
    "E": lambda when, width: _DAYS[when.weekday()] if width >= 4 else _DAYS[when.weekday()][:3],
    "u": _number(lambda when: when.isoweekday()),
    "a": lambda when, _width: "AM" if when.hour < 12 else "PM",
    "H": _number(lambda when: when.hour),
    "k": _number(lambda when: when.hour or 24),
    "K": _number(lambda when: when.hour % 12),
    "h": _number(lambda when: when.hour % 12 or 12),
    "m": _number(lambda when: when.minute),
    "s": _number(lambda when: when.second),
    "S": _number(lambda when: when.microsecond // 1000),
    "z": _name_of_zone,
    "Z": lambda _when, _width: "+0000",
    "X": lambda _when, _width: "Z",
}


#: Letters that are written as plain numbers: what `str.format` shows of a datetime and of its milliseconds.
_SHOWN = {"y": "0.year", "M": "0.month", "L": "0.month", "d": "0.day", "H": "0.hour", "m": "0.minute", "s": "0.second", "S": "1"}


def _layout(tokens: list[_Token]) -> str | None:
    """Return a template for `str.format`, which takes a fifth of the time; None if a letter is more than a number."""
    parts = []
    for letter, width, text in tokens:
        if not letter:
            parts.append(text.replace("{", "{{").replace("}", "}}"))
        elif letter not in _SHOWN or (letter == "y" and width == 2) or (letter in "ML" and width > 2):
            return None
        else:
            parts.append(f"{{{_SHOWN[letter]}:0{width}d}}")
    return "".join(parts)


# -- reading -----------------------------------------------------------------------------------------------------------------------


def _read_name(names: tuple[str, ...], text: str, at: int, take: Callable[[int], None]) -> int | None:
    """Match the longest name, or its first three characters, in any case."""
    rest = text[at:].lower()
    for index, name in enumerate(names):
        for form in (name, name[:3]):
            if rest.startswith(form.lower()):
                take(index)
                return at + len(form)
    return None


def _read_offset(text: str, at: int, parts: dict[str, int], *, needs_colon: bool) -> int | None:
    found = _OFFSET.match(text, at)
    if not found or (needs_colon and found[1] and ":" not in found[0]):
        return None
    if found[1]:
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        parts["offset"] = minutes if found[1] == "+" else -minutes
    return found.end()


def _full_year(two_digits: int) -> int:
    """Return the year within 80 years before and 20 years after today."""
    latest = datetime.datetime.now(datetime.UTC).year + 20
    year = latest - latest % 100 + two_digits
    return year if year <= latest else year - 100


def _moment(parts: Mapping[str, int]) -> int:
    """Return milliseconds of a moment whose parts may lie beyond their usual ranges; what is missing is that of 1970-01-01 00:00."""
    year = parts.get("year", 1970)
    if parts.get("era") == 0:
        year = 1 - year
    month = parts.get("month", 1) - 1 if "yday" not in parts or "month" in parts else 0
    first = datetime.date(year + month // 12, month % 12 + 1, 1)
    days = date_to_days(first) + (parts["day"] if "day" in parts else parts.get("yday", 1)) - 1
    hour = parts["hour"] if "hour" in parts else parts.get("hour12", 0) + 12 * parts.get("half", 0)
    minutes = hour * 60 + parts.get("minute", 0) - parts.get("offset", 0)
    return days * MILLIS_OF_DAY + (minutes * 60 + parts.get("second", 0)) * 1000 + parts.get("milli", 0)
