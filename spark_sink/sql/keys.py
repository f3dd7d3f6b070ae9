"""The keys of a batch's rows as texts: what can be compared with the statistics of a table's files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from spark_sink.sql.merge import Shape
from spark_sink.types.columns import quote

#: Types whose values have one text, which casts back to them, and an order that files' statistics keep.
_ORDERED = re.compile(r"tinyint|smallint|int|bigint|date|decimal\(\d+,\d+\)|string")

#: A date whose text has the order of its value.
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d")

#: A value of a key that has an order.
Value = int | Decimal | str


def bounded_keys(shape: Shape) -> list[str]:
    """Return the key columns by which a table can be narrowed: never null, and of a type that has an order."""
    return [key for key in shape.keys if key in shape.required_keys and _ORDERED.fullmatch(shape.types[key])]


def key_texts(shape: Shape) -> list[str]:
    """Return SQL of the texts of the keys by which a table can be narrowed, each by the name of its key."""
    return [f"CAST({quote(key)} AS STRING) {quote(key)}" for key in bounded_keys(shape)]


def has_plain_keys(shape: Shape) -> bool:
    """Return whether the texts of the keys say which rows share one."""
    return bool(shape.keys) and len(bounded_keys(shape)) == len(shape.keys)


def in_order(texts: Iterable[str], type_: str) -> list[tuple[Value, str]] | None:
    """Return the values of texts, as files' statistics have them, and the texts, sorted; None if the statistics have another order.

    Args:
        type_: one of those of `bounded_keys`.
    """
    distinct = set(texts)
    if type_ == "date" and not all(map(_PLAIN_DATE.fullmatch, distinct)):
        return None
    kind = Decimal if type_.startswith("decimal") else str if type_ in ("date", "string") else int
    found: list[tuple[Any, str]] = [(kind(text), text) for text in distinct]
    return sorted(found)
