"""Lengths and scales of columns as the reference's driver reports them (pgjdbc's TypeInfoCache; pg_propagate_types.json).

They show in propagated parameters, and decide what `column.truncate.to…` and hashes cut.
"""

from __future__ import annotations

from connectors.postgres.types.base import IDENTITY_DEFAULT, PgColumn, RootType
from connectors.postgres.types.numbers import precision_and_scale

UNLIMITED = 2_147_483_647
_FIXED = {
    "bool": (1, 0),
    "int2": (5, 0),
    "int4": (10, 0),
    "int8": (19, 0),
    "oid": (10, 0),
    "float4": (8, 8),
    "float8": (17, 17),
    "date": (13, 0),
}
#: Characters of a time before its fraction and point, and after.
_TIMES = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
_BY_TYPMOD = ("bpchar", "varchar")
_SERIALS = {"int2": "smallserial", "int4": "serial", "int8": "bigserial"}
#: What pgjdbc reports for numeric without precision, in the stream's metadata.
_STREAMED_NUMERIC = (131_089, 0)
#: Types that JDBC calls CHAR or VARCHAR. The reference passes citext over; a column that its owner wants hidden is hidden here.
_CHARACTERS = frozenset({"bpchar", "char", "varchar", "text", "name", "citext"})


def length_and_scale(root: RootType, *, streamed: bool) -> tuple[int | None, int | None]:
    """Of a type, or of an array's elements.

    Args:
        streamed: whether the structure came with the stream: the two ways differ for numeric without precision.
    """
    name = root.element.name if root.element else root.name
    if name in _FIXED:
        return _FIXED[name]
    if name == "numeric":
        if root.typmod >= 4:
            return precision_and_scale(root.typmod)
        return _STREAMED_NUMERIC if streamed else (0, None)
    if name in _TIMES:
        digits = root.typmod if 0 <= root.typmod <= 6 else 6
        return _TIMES[name] + {0: 0, 1: 3}.get(digits, digits + 1), digits
    if name == "interval":
        digits = root.typmod & 0xFFFF if root.typmod >= 0 else 6
        return 49, digits if digits <= 6 else 6
    if name in _BY_TYPMOD and root.typmod > 4:
        return root.typmod - 4, 0
    if name in ("bit", "varbit") and root.typmod > 0:
        return root.typmod, 0
    return UNLIMITED, 0


def shown_type_name(column: PgColumn, *, streamed: bool) -> str:
    """`int4` is `serial` where the driver reads the catalog and finds a sequence behind it."""
    if not streamed and column.default and column.default != IDENTITY_DEFAULT and "nextval(" in column.default:
        return _SERIALS.get(column.type_name, column.type_name)
    return column.type_name


def holds_characters(root: RootType) -> bool:
    """Whether masks and hashes apply."""
    return root.element is None and (bool(root.enum_labels) or root.name in _CHARACTERS)
