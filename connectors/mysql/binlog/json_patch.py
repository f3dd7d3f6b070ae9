"""Updates of parts of JSON documents (``binlog_row_value_options=PARTIAL_JSON``; MySQL's `Json_diff`), applied to the text before them.

The log holds differences: an operation, a path, and the new value in binary form. Numbers keep the digits that they were printed with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from connect_py.converters.json_write import quote_characters
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.json_text import json_text

_REPLACE, _INSERT, _REMOVE = range(3)
#: `.name`, `."quoted name"`, `[3]`, `[last]` and `[last-3]`.
_LEG = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\["]+))|\[(?:(\d+)|last(?:-(\d+))?)\]')


class _Number(str):
    """A number as it was printed."""

    __slots__ = ()


def patched(before: str, data: bytes, read: Callable[[bytes], str] = json_text) -> str:
    """A document after its differences.

    Args:
        before: as `read` prints it.
        read: prints the values of differences.
        data: the differences, one after the other.

    Raises:
        MalformedEventError: they are none, or do not fit the document.
    """
    root: list[Any] = [_parsed(before)]
    cursor = Cursor(data)
    while cursor.at < cursor.end:
        operation = cursor.number(1)
        legs = _legs(cursor.text(cursor.packed()))
        value = None if operation == _REMOVE else _parsed(read(cursor.take(cursor.packed())))
        _apply(root, operation, legs, value)
    return _printed(root[0])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        raise MalformedEventError(f"a JSON document is none: {error}") from error


def _legs(path: str) -> list[str | int]:
    """Names of members and numbers of elements; -1 is the last element, -2 the one before."""
    if not path.startswith("$"):
        raise MalformedEventError(f"{path!r} is no path in a JSON document")
    found: list[str | int] = []
    at = 1
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise MalformedEventError(f"{path!r} is no path in a JSON document")
        quoted, name, number, from_end = leg.groups()
        if quoted is not None:
            found.append(_parsed(f'"{quoted}"'))
        elif name is not None:
            found.append(name)
        else:
            found.append(int(number) if number is not None else -1 - int(from_end or 0))
        at = leg.end()
    return found


def _apply(root: list[Any], operation: int, legs: list[str | int], value: Any) -> None:
    holder, leg = _holder(root, legs)
    if operation == _REPLACE and leg in _places(holder):
        holder[leg] = value
    elif operation == _REMOVE and legs and leg in _places(holder):
        del holder[leg]
    elif operation == _INSERT and legs and isinstance(holder, dict) and leg not in holder:
        holder[leg] = value
    elif operation == _INSERT and legs and isinstance(holder, list) and isinstance(leg, int):
        holder.insert(len(holder) if leg >= len(holder) or leg == -1 else leg, value)
    else:
        raise MalformedEventError(f"a difference of a JSON document does not fit it: operation {operation} at {legs}")


def _holder(root: list[Any], legs: list[str | int]) -> tuple[Any, Any]:
    """What holds the value at a path, and the value's key in it."""
    holder: Any = root
    leg: str | int = 0
    for following in legs:
        if leg not in _places(holder):
            raise MalformedEventError(f"a difference of a JSON document does not fit it: {legs} is not in it")
        holder, leg = holder[leg], following
    return holder, leg


def _places(holder: Any) -> Any:
    """Keys under which a container holds values; none of a scalar."""
    if isinstance(holder, dict):
        return holder
    return range(-len(holder), len(holder)) if isinstance(holder, list) else ()


def _printed(value: Any) -> str:
    """As the reference prints; members in MySQL's order, shorter names first."""
    match value:
        case dict():
            members = sorted(value.items(), key=lambda member: (len(octets := member[0].encode()), octets))
            return "{" + ",".join(f"{quote_characters(name)}:{_printed(inner)}" for name, inner in members) + "}"
        case list():
            return "[" + ",".join(map(_printed, value)) + "]"
        case _Number():
            return str(value)
        case str():
            return quote_characters(value)
        case None:
            return "null"
    return "true" if value else "false"
