"""Queries of snapshots: filters that users write, and the documents of a range of ids. Pure.

Filters are extended JSON, or the notation of the database's shell, as the Java driver reads both (`JsonReader`).

Ranges are in BSON's order over all types of ids. Comparisons of the query language know only ids of one type, or of one family of types,
such as numbers. The reference asks in that way for what follows the last id of the whole collection, and so reads the family of the largest
id alone. Here the families are read one after another, in the order in which the index has them.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import bson
from bson import Binary, Decimal128, Int64, ObjectId, json_util
from bson.errors import BSONError
from bson.json_util import CANONICAL_JSON_OPTIONS, DatetimeRepresentation, JSONOptions

from connect_py.errors import ConfigError
from connectors.engine.java_object import STRING, JavaValue, StoredKey

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
    """Return a filter from a signal or a property.

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
    """Return shell notation as extended JSON: names without quotes, single quotes, constructors, regular expressions.

    Raises:
        ValueError: a character is not allowed there.
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
    """Return the text of a constructor's one argument, and the position after its parenthesis."""
    end = text.find(")", at)
    if end < 0:
        raise ValueError("a constructor has no end")
    return text[at:end].strip().strip("'\""), end + 1


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1])


Query = dict[str, Any]

_NAN: Final = float("nan")
#: BSON's type numbers by family, in the order of comparison; NaN, the smallest number, is a family of its own, since no range has it.
#: Arrays, regular expressions and undefined are no ids.
_FAMILIES: Final[tuple[tuple[int, ...], ...]] = (
    (-1,),  # MinKey
    (10,),  # null
    (),  # NaN
    (1, 16, 18, 19),
    (2, 14),
    (3,),
    (5,),
    (7,),
    (8,),
    (9,),
    (17,),
    (127,),  # MaxKey
)
_NOT_A_NUMBER: Final = 2
#: Families of one value: nothing of the family follows it.
_SINGLE: Final = frozenset({0, 1, _NOT_A_NUMBER, len(_FAMILIES) - 1})
_NUMBERS: Final = 3
_TEXTS: Final = 4

_CLASSES: Final[dict[str, Callable[[str], Any]]] = {
    "java.lang.Integer": int,
    "java.lang.Long": Int64,
    "java.lang.Double": float,
    "org.bson.types.ObjectId": ObjectId,
    "org.bson.types.Decimal128": Decimal128,
    "java.util.UUID": lambda text: Binary.from_uuid(uuid.UUID(text)),
    "java.lang.Boolean": lambda text: text in ("t", "true"),
}
#: Ids that Java has no simple class for are stored as extended JSON after this prefix; so are texts that begin with it themselves.
_JSON: Final = "ejson:"
_OPTIONS: Final[JSONOptions] = CANONICAL_JSON_OPTIONS.with_options(
    datetime_representation=DatetimeRepresentation.NUMBERLONG, datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_MS
)


def family_of(value: Any) -> int:
    """Return the rank of an id's family in the order. Raises ValueError: no id can have this type."""
    if _is_nan(value):
        return _NOT_A_NUMBER
    kind = bson.encode({"": value})[4]
    number = kind - 256 if kind == 255 else kind
    for rank, types in enumerate(_FAMILIES):
        if number in types:
            return rank
    raise ValueError(f"an id of BSON's type {number} has no place in the order")


class Bound(NamedTuple):
    """An id as a bound, None among them."""

    id: Any


def ranges(after: Bound | None, until: Bound | None) -> Iterator[Query]:
    """Return queries that together find, in order, the documents with ids after `after` up to `until`; None is no bound."""
    first = 0 if after is None else family_of(after.id)
    last = len(_FAMILIES) - 1 if until is None else family_of(until.id)
    for rank in range(first, last + 1):
        conditions: Query = {}
        if after is not None and rank == first:
            if rank in _SINGLE:
                continue
            conditions["$gt"] = after.id
        elif rank == _TEXTS:
            # symbols too, whose type not every server knows
            conditions["$gte"] = ""
        elif rank != _NOT_A_NUMBER:
            conditions["$type"] = list(_FAMILIES[rank])
        if rank == _NOT_A_NUMBER:
            yield {"_id": _NAN}
            continue
        if rank == _NUMBERS:
            conditions["$ne"] = _NAN
        if until is not None and rank == last and rank not in _SINGLE:
            conditions["$lte"] = until.id
        yield {"_id": conditions}


def text_of(value: Any) -> str:
    """Return an id as canonical extended JSON."""
    return json_util.dumps(value, json_options=_OPTIONS)


def id_of(text: str) -> Any:
    """Return the id of `text_of`. Raises ValueError: it is none."""
    return json_util.loads(text, json_options=_OPTIONS)


def to_stored(value: Any) -> StoredKey:
    """Return an id as offsets hold it; where Debezium can store it, as Debezium stores it."""
    if isinstance(value, bool):
        return (JavaValue("java.lang.Boolean", "true" if value else "false"),)
    if isinstance(value, Int64):
        return (JavaValue("java.lang.Long", str(int(value))),)
    if isinstance(value, int):
        return (JavaValue("java.lang.Integer", str(value)),)
    if isinstance(value, float) and not math.isnan(value) and not math.isinf(value):
        return (JavaValue("java.lang.Double", repr(value)),)
    if isinstance(value, str) and not value.startswith(_JSON):
        return (JavaValue(STRING, value),)
    if isinstance(value, ObjectId):
        return (JavaValue("org.bson.types.ObjectId", str(value)),)
    if isinstance(value, Decimal128) and value.to_decimal().is_finite():
        return (JavaValue("org.bson.types.Decimal128", str(value)),)
    if isinstance(value, Binary) and value.subtype == 4 and len(value) == 16:
        return (JavaValue("java.util.UUID", str(uuid.UUID(bytes=bytes(value)))),)
    return (JavaValue(STRING, _JSON + text_of(value)),)


def from_stored(key: StoredKey) -> Any:
    """Return the id of `to_stored`. Raises ValueError: it is none."""
    part = key[0]
    if part is None:
        return None
    if part.java_class == STRING:
        if part.text.startswith(_JSON):
            return id_of(part.text.removeprefix(_JSON))
        return part.text
    try:
        return _CLASSES[part.java_class](part.text)
    except KeyError:
        raise ValueError(f"an id of the class {part.java_class}") from None


def _is_nan(value: Any) -> bool:
    if isinstance(value, Decimal128):
        return str(value).lower().endswith("nan")
    return isinstance(value, float) and math.isnan(value)
