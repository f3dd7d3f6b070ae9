"""Values of a lakehouse table in one normal form, so that both sides of a comparison can be counted, hashed and held against each other.

The normal form is made of None, bool, int, float, str, bytes, Decimal and tuples of these: dates are days and timestamps microseconds
since 1970, structs are pairs of names and values, maps are pairs in order. Two values are equal if their `repr` is.
"""

from __future__ import annotations

import decimal
import hashlib
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

#: What a plain Python value becomes; None: it stays.
Finish = Callable[[Any], Any]

_EXACT = decimal.Context(prec=100)
_FLOAT = struct.Struct("f")


def digest(values: tuple[Any, ...]) -> bytes:
    """Sixteen bytes that stand for values in normal form."""
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def of_column(column: pa.Array | pa.ChunkedArray) -> Sequence[Any]:
    """A column's values in normal form."""
    plain, finish = _form(column.type)
    values = (column if plain == column.type else column.cast(plain)).to_pylist()
    return values if finish is None else [None if value is None else finish(value) for value in values]


def of_float(value: float, *, single: bool = False) -> Any:
    """A float; not-a-number is a text, since it equals nothing, and `single` is rounded as 32 bits hold it."""
    if math.isnan(value):
        return "NaN"
    if not single or math.isinf(value):
        return value
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def of_decimal(value: decimal.Decimal) -> decimal.Decimal:
    """A decimal without zeros at its end: its scale is the column's, not the value's."""
    return decimal.Decimal(0) if value.is_zero() else value.normalize(_EXACT)


def of_pairs(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
    """A map, in an order that its values decide."""
    return tuple(sorted(pairs, key=repr))


def _form(type_: pa.DataType) -> tuple[pa.DataType, Finish | None]:
    """The type to cast to, which Python's values are read from, and what they become then."""
    if kinds.is_timestamp(type_):
        divisor = {"us": 1, "ns": 1000}[type_.unit]  # the two that tables of both formats can have
        return pa.int64(), None if divisor == 1 else lambda value: value // divisor
    if kinds.is_date32(type_):
        return pa.int32(), None
    if kinds.is_time64(type_):
        return pa.int64(), None
    if kinds.is_floating(type_):
        return type_, of_float
    if kinds.is_decimal(type_):
        return type_, of_decimal
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        return _list(type_)
    if kinds.is_map(type_):
        return _map(type_)
    if kinds.is_struct(type_):
        return _struct(type_)
    return type_, None


def _list(type_: Any) -> tuple[pa.DataType, Finish]:
    item, finish = _form(type_.value_type)
    if finish is None:
        return pa.list_(item), tuple
    return pa.list_(item), lambda value: tuple(None if entry is None else finish(entry) for entry in value)


def _map(type_: Any) -> tuple[pa.DataType, Finish]:
    (key, of_key), (item, of_item) = _form(type_.key_type), _form(type_.item_type)

    def finish(value: Any) -> Any:
        return of_pairs([(_done(of_key, name), _done(of_item, entry)) for name, entry in value])

    return pa.map_(key, item), finish


def _struct(type_: Any) -> tuple[pa.DataType, Finish]:
    fields = [type_.field(place) for place in range(type_.num_fields)]
    forms = {field.name: _form(field.type) for field in fields}

    def finish(value: Any) -> Any:
        return tuple((name, _done(forms[name][1], value[name])) for name in sorted(forms))

    return pa.struct([(name, form[0]) for name, form in forms.items()]), finish


def _done(finish: Finish | None, value: Any) -> Any:
    return value if finish is None or value is None else finish(value)
