"""Filters and pipelines that users write: extended JSON, or the notation of the database's shell, as the Java driver reads both
(`org.bson.json.JsonReader`). Pure."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from typing import Any

from bson import json_util
from bson.errors import BSONError

from connect_py.errors import ConfigError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<double>"(?:[^"\\]|\\.)*")
      | (?P<single>'(?:[^'\\]|\\.)*')
      | (?P<regex>/(?:[^/\\\n]|\\.)+/[imsxu]*)
      | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>-?[A-Za-z_$][\w$]*)
      | (?P<mark>[\[\]{}:,()])
    )""",
    re.VERBOSE | re.DOTALL,
)
_JSON_WORDS = frozenset(("true", "false", "null"))
#: Values without arguments, and what extended JSON has for them.
_WORDS: dict[str, object] = {
    "NaN": {"$numberDouble": "NaN"},
    "Infinity": {"$numberDouble": "Infinity"},
    "-Infinity": {"$numberDouble": "-Infinity"},
    "MinKey": {"$minKey": 1},
    "MaxKey": {"$maxKey": 1},
    "undefined": {"$undefined": True},
}


def _one(key: str) -> Callable[..., object]:
    return lambda text: {key: text}


def _date(text: str) -> object:
    """A day, a time of ISO 8601 in its zone or UTC, or milliseconds since 1970."""
    if re.fullmatch(r"-?\d+", text) and not re.fullmatch(r"\d{4}", text):
        return {"$date": {"$numberLong": text}}
    found = datetime.datetime.fromisoformat(text)
    at = found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
    since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return {"$date": {"$numberLong": str(since // datetime.timedelta(milliseconds=1))}}


def _regex(pattern: str, options: str = "") -> object:
    return {"$regularExpression": {"pattern": pattern, "options": "".join(sorted(options))}}


#: Constructors of the shell: their arguments' texts → extended JSON. TypeError stands for a wrong number of arguments.
_CONSTRUCTORS: dict[str, Callable[..., object]] = {
    "ObjectId": _one("$oid"),
    "ISODate": _date,
    "Date": _date,
    **dict.fromkeys(("NumberLong", "Long"), _one("$numberLong")),
    **dict.fromkeys(("NumberInt", "Int32"), _one("$numberInt")),
    **dict.fromkeys(("NumberDecimal", "Decimal128"), _one("$numberDecimal")),
    "Double": _one("$numberDouble"),
    "UUID": _one("$uuid"),
    "Timestamp": lambda seconds, increment: {"$timestamp": {"t": int(seconds), "i": int(increment)}},
    "BinData": lambda subtype, data: {"$binary": {"base64": data, "subType": f"{int(subtype):02x}"}},
    "RegExp": _regex,
    "MinKey": lambda: _WORDS["MinKey"],
    "MaxKey": lambda: _WORDS["MaxKey"],
}


def parse_query(text: str, what: str) -> dict[str, Any]:
    """Return a filter from a signal or a property.

    Args:
        what: names it in errors.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = parse_notation(text)
    except ValueError as error:
        raise ConfigError(f"{what} is no filter ({error}): {text[:200]}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{what} is no document: {text[:200]}")
    return found


def parse_notation(text: str) -> Any:
    """Return the value that a text of either notation says. Raises ValueError: it is none."""
    try:
        return json_util.loads(_as_json(text), json_options=json_util.RELAXED_JSON_OPTIONS)
    except (TypeError, KeyError, BSONError) as error:
        raise ValueError(str(error)) from error


def _as_json(text: str) -> str:
    """Return shell notation as extended JSON: names without quotes, single quotes, constructors, regular expressions.

    Raises:
        ValueError: a character is not allowed there.
    """
    out: list[str] = []
    at, length = 0, len(text.rstrip())
    while at < length:
        kind, value, at = _next(text, at)
        if kind == "single":
            value = json.dumps(_unquoted(value))
        elif kind == "regex":
            pattern, _, options = value[1:].rpartition("/")
            value = json.dumps(_regex(pattern.replace("\\/", "/"), options))
        elif kind == "name":
            following = text[at:].lstrip()[:1]
            if value == "new" and following not in (":", ""):
                continue
            if following == "(":
                value, at = _constructed(value, text, at)
            elif following == ":" or value not in _JSON_WORDS:
                value = json.dumps(value if following == ":" else _WORDS.get(value, value))
        elif kind == "mark" and value in "()":
            raise ValueError(f"unexpected '{value}' at character {at}")
        out.append(value)
    return "".join(out)


def _next(text: str, at: int) -> tuple[str, str, int]:
    """Return the next token's kind and text, and the position after it."""
    token = _TOKEN.match(text, at)
    if token is None:
        raise ValueError(f"unexpected text at character {at + 1}")
    kind = token.lastgroup or ""
    return kind, token[kind], token.end()


def _constructed(name: str, text: str, at: int) -> tuple[str, int]:
    """Return a constructor's value as JSON, and the position after its parenthesis."""
    arguments: list[str] = []
    _, _, at = _next(text, at)
    begin = at
    while True:
        if not text[at:].strip():
            raise ValueError("a constructor has no end")
        kind, value, at = _next(text, at)
        if value == ")" and kind == "mark":
            break
        if kind in ("single", "double"):
            arguments.append(_unquoted(value))
        elif kind == "number":
            arguments.append(value)
        elif value != ",":
            raise ValueError(f"unexpected '{value}' at character {at}")
    make = _CONSTRUCTORS.get(name)
    if make is None:
        raise ValueError(f"{name}() is not known")
    try:
        return json.dumps(make(*arguments)), at
    except TypeError:
        raise ValueError(f"{name}({text[begin : at - 1]}) has too few or too many arguments") from None


def _unquoted(literal: str) -> str:
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, literal[1:-1], flags=re.DOTALL)


def _unescaped(found: re.Match[str]) -> str:
    if len(found[1]) == 5:
        return chr(int(found[1][1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(found[1], found[1])
