"""Character classes of java.util.regex as sets of characters: POSIX and Unicode properties, unions and intersections.

A set is a sorted tuple of ranges of code points, both ends included, that neither overlap nor touch.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Final

Ranges = tuple[tuple[int, int], ...]

#: The last code point.
LAST: Final = sys.maxunicode


class UnknownPropertyError(ValueError):
    """A property that java.util.regex does not know, or that is not translated."""


def _ranges(*parts: str | tuple[str, str]) -> Ranges:
    return union((ord(part), ord(part)) if isinstance(part, str) else (ord(part[0]), ord(part[1])) for part in parts)


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the set of the characters of any ranges."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """Return the set of all other characters."""
    found, low = [], 0
    for first, last in ranges:
        if low < first:
            found.append((low, first - 1))
        low = last + 1
    if low <= LAST:
        found.append((low, LAST))
    return tuple(found)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Return the set of what is in both."""
    return complement(union((*complement(left), *complement(right))))


_DIGIT = _ranges(("0", "9"))
_UPPER = _ranges(("A", "Z"))
_LOWER = _ranges(("a", "z"))
_ALPHA = union((*_UPPER, *_LOWER))
_ALNUM = union((*_ALPHA, *_DIGIT))
_SPACE = _ranges(" ", ("\t", "\r"))
_GRAPH = _ranges(("!", "~"))
#: The classes of one letter after a backslash (`java.util.regex.Pattern`, "Predefined character classes"): ASCII but for the spaces.
PREDEFINED: Final[dict[str, Ranges]] = {
    "d": _DIGIT,
    "w": union((*_ALNUM, (ord("_"), ord("_")))),
    "s": _SPACE,
    "h": _ranges(" ", "\t", "\xa0", "\u1680", "\u180e", ("\u2000", "\u200a"), "\u202f", "\u205f", "\u3000"),
    "v": _ranges(("\n", "\r"), "\x85", "\u2028", "\u2029"),
}
_POSIX: Final[dict[str, Ranges]] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": _ranges(("\0", "\x7f")),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": intersection(_GRAPH, complement(_ALNUM)),
    "Graph": _GRAPH,
    "Print": _ranges((" ", "~")),
    "Blank": _ranges(" ", "\t"),
    "Cntrl": _ranges(("\0", "\x1f"), "\x7f"),
    "XDigit": _ranges(("0", "9"), ("a", "f"), ("A", "F")),
    "Space": _SPACE,
}
#: Binary properties that general categories make up.
_BINARY: Final = {
    "ISLETTER": ("L",),
    "ISDIGIT": ("Nd",),
    "ISPUNCTUATION": ("P",),
    "ISCONTROL": ("Cc",),
    "ISTITLECASE": ("Lt",),
    "ISASSIGNED": None,
}
_CATEGORY_KEYS: Final = ("general_category", "gc")


def property_ranges(name: str) -> Ranges:
    """Return the characters of a property, as in ``\\p{name}``: a POSIX class, or a general category of Unicode, with or without `Is`.

    Raises:
        UnknownPropertyError: it is another.
    """
    if name in _POSIX:
        return _POSIX[name]
    if name.upper() in _BINARY:
        categories = _BINARY[name.upper()]
        return complement(_category("Cn")) if categories is None else union(part for each in categories for part in _category(each))
    key, equals, value = name.partition("=")
    if equals:
        if key.lower() not in _CATEGORY_KEYS:
            raise UnknownPropertyError(name)
        name = value
    elif name.startswith("Is"):
        name = name[2:]
    found = _category(name)
    if not found:
        raise UnknownPropertyError(name)
    return found


@cache
def _category(name: str) -> Ranges:
    """Return the characters whose general category begins with a name: `L`, `Lu`; `LC` are those with a case. Half a second at the most."""
    if not 1 <= len(name) <= 2:
        return ()
    wanted = ("Lu", "Ll", "Lt") if name == "LC" else (name,)
    category = unicodedata.category
    found: list[tuple[int, int]] = []
    begin = -1
    for code in range(LAST + 1):
        if category(chr(code)).startswith(wanted):
            begin = code if begin < 0 else begin
        elif begin >= 0:
            found.append((begin, code - 1))
            begin = -1
    if begin >= 0:
        found.append((begin, LAST))
    return tuple(found)


def written(ranges: Ranges) -> str:
    """Return a set as a class of Python's `re`; one without a character matches nothing."""
    if not ranges:
        return r"(?!)"
    return "[" + "".join(_escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}" for low, high in ranges) + "]"


def _escaped(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\U{code:08x}"
