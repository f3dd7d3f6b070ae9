"""Queries of snapshots: the documents of a range of ids. Pure.

Ranges are in BSON's order over all types of ids. Comparisons of the query language know only ids of one type, or of one family of types,
such as numbers. The reference asks in that way for what follows the last id of the whole collection, and so reads the family of the largest
id alone. Here the families are read one after another, in the order in which the index has them.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import bson
from bson import Binary, Decimal128, Int64, ObjectId, json_util
from bson.json_util import CANONICAL_JSON_OPTIONS, DatetimeRepresentation, JSONOptions

from connectors.engine.java_object import STRING, JavaValue, StoredKey

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
