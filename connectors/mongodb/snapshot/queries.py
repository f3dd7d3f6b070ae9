"""Filters that users write: extended JSON, or the notation of the database's shell, as the Java driver reads both (`JsonReader`). Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from bson import json_util
from bson.errors import BSONError

from connect_py.errors import ConfigError

#: Constructors of the shell, and what extended JSON has for them.
_CONSTRUCTORS = {
    "ObjectId": "$oid",
    "ISODate": "$date",
    "Date": "$date",
    "NumberLong": "$numberLong",
    "Long": "$numberLong",
    "NumberInt": "$numberInt",
    "Int32": "$numberInt",
    "NumberDecimal": "$numberDecimal",
    "Decimal128": "$numberDecimal",
    "Double": "$numberDouble",
    "UUID": "$uuid",
}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<double>"(?:[^"\\]|\\.)*")
      | (?P<single>'(?:[^'\\]|\\.)*')
      | (?P<regex>/(?:[^/\\\n]|\\.)+/[imsxu]*)
      | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_$][\w$]*)
      | (?P<mark>[\[\]{}:,()])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true", "false", "null"}


def parse_query(text: str, what: str) -> dict[str, Any]:
    """A filter from a signal or a property.

    Args:
        what: names it in errors.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = json_util.loads(as_json(text), json_options=json_util.RELAXED_JSON_OPTIONS)
    except (ValueError, TypeError, KeyError, BSONError) as error:
        raise ConfigError(f"{what} is no filter ({error}): {text[:200]}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{what} is no document: {text[:200]}")
    return found


def as_json(text: str) -> str:
    """Shell notation as extended JSON: names without quotes, single quotes, constructors, regular expressions.

    Raises:
        ValueError: a character has no place in it.
    """
    out: list[str] = []
    at, length = 0, len(text.rstrip())
    while at < length:
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"unexpected text at character {at + 1}")
        at = token.end()
        kind, value = token.lastgroup, token[token.lastgroup or 0]
        if kind == "single":
            value = json.dumps(re.sub(r"\\(.)", _unescaped, value[1:-1]))
        elif kind == "regex":
            pattern, _, options = value[1:].rpartition("/")
            regex = {"pattern": pattern.replace("\\/", "/"), "options": "".join(sorted(options))}
            value = json.dumps({"$regularExpression": regex})
        elif kind == "name" and value not in _WORDS:
            if value == "new":
                continue
            if value in _CONSTRUCTORS and text[at:].lstrip().startswith("("):
                at = text.index("(", at) + 1
                argument, at = _argument(text, at)
                value = json.dumps({_CONSTRUCTORS[value]: argument})
            else:
                value = json.dumps(value)
        elif value in "()":
            raise ValueError(f"unexpected '{value}' at character {at}")
        out.append(value)
    return "".join(out)


def _argument(text: str, at: int) -> tuple[str, int]:
    """The text of a constructor's one argument, and the place behind its parenthesis."""
    end = text.find(")", at)
    if end < 0:
        raise ValueError("a constructor has no end")
    return text[at:end].strip().strip("'\""), end + 1


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1])
