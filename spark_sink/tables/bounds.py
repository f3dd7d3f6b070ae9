"""Which part of a table a batch's keys can be in, so that a MERGE reads that part and not the whole table.

A format prunes files, and row groups within them, by constants only: the keys of the rows that are merged are known too late. So they are
looked at before the statement is made. A few keys are listed. Of many the least and the greatest are named, which is what rows of a
snapshot and of tables with growing keys need: they lie beyond all that the table has. Keys that are spread over the whole table gain
nothing from that, and the look costs some hundredth of the batch.

Iceberg compares lists of up to 200 values with the bounds of files (`InclusiveMetricsEvaluator.IN_PREDICATE_LIMIT`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_sink.sql.keys import bounded_keys, in_order, key_texts
from spark_sink.sql.merge import Shape
from spark_sink.types.columns import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

#: A batch of so many events has its keys listed.
LISTED = 200

#: Values of these are a part of the code that Spark generates; those of others are references.
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")

#: Longer texts are not worth their place in a statement.
_LONGEST = 200


def key_bounds(events: DataFrame, shape: Shape, count: int | None = None) -> tuple[str, ...]:
    """Return SQL conditions, of a table `t`, that hold for every row which has the key of an event.

    Args:
        events: with the columns of `shape`; they are read once.
        count: how many there are at most; None where that is not known.
    """
    keys = bounded_keys(shape)
    if not keys:
        return ()
    if count is not None and count <= LISTED:
        return bounds_of_texts(events.selectExpr(*key_texts(shape)).collect(), shape)
    [row] = events.selectExpr(*texts_of_ends(keys)).collect()
    return bounds_of_ends(ends_of_texts(keys, row), shape)


def bounded(rows: DataFrame, shape: Shape) -> Shape:
    """Return a shape with the bounds of its keys, for a statement that was not expected; the driver's rows have them already."""
    return shape if shape.is_local or shape.bounds else replace(shape, bounds=key_bounds(rows, shape))


def texts_of_ends(keys: Sequence[str]) -> list[str]:
    """Return expressions of the texts of the least and the greatest value of each key."""
    return [f"CAST({end}({quote(key)}) AS STRING)" for key in keys for end in ("min", "max")]


def ends_of_texts(keys: Sequence[str], texts: Sequence[str | None]) -> dict[str, tuple[str | None, str | None]]:
    """Return the values of `texts_of_ends` by key. Pure."""
    return dict(zip(keys, zip(texts[::2], texts[1::2], strict=True), strict=True))


def bounds_of_ends(ends: Mapping[str, tuple[str | None, str | None]], shape: Shape) -> tuple[str, ...]:
    """Return what `key_bounds` does, from the ends of all keys. Pure."""
    return tuple(filter(None, (_between(key, shape.types[key], ends[key]) for key in bounded_keys(shape))))


def bounds_of_texts(rows: Sequence[Row], shape: Shape) -> tuple[str, ...]:
    """Return what `key_bounds` does, from the texts of the keys of all events. Pure."""
    found: list[str | None] = []
    for key in bounded_keys(shape):
        type_, texts = shape.types[key], {row[key] for row in rows}
        found.append(_listed(key, type_, texts) if len(texts) <= LISTED else _between(key, type_, _ends(texts, type_)))
    return tuple(filter(None, found))


def _ends(texts: Iterable[str | None], type_: str) -> Sequence[str | None]:
    """Return the texts of the least and the greatest value."""
    found = in_order((text for text in texts if text is not None), type_)
    if found is None:
        return (None,)
    return (found[0][1], found[-1][1]) if found else ()


def _listed(key: str, type_: str, texts: Iterable[str | None]) -> str | None:
    """An event whose key cannot be read makes the statement fail later; it has no text here."""
    known = sorted(text for text in texts if text is not None)
    if len(known) == 1 and type_ in _WHOLE_NUMBERS:
        # Spark makes a comparison of a list of one, whose number is a part of the generated code: each batch's would be compiled again.
        number = int(known[0])
        known.append(str(number - 1 if number > 0 else number + 1))
    return f"t.{quote(key)} IN ({', '.join(_constants(known, type_))})" if _are_short(known) else None


def _between(key: str, type_: str, ends: Sequence[str | None]) -> str | None:
    known = [text for text in ends if text is not None]
    return f"t.{quote(key)} BETWEEN {' AND '.join(_constants(known, type_))}" if len(known) == len(ends) and _are_short(known) else None


def _are_short(texts: Sequence[str]) -> bool:
    return bool(texts) and max(map(len, texts)) <= _LONGEST


def _constants(texts: Iterable[str], type_: str) -> list[str]:
    return [literal(text) if type_ == "string" else f"CAST({literal(text)} AS {type_})" for text in texts]
