"""point, PostGIS's types, and the text forms of the built-in shapes, which events hold only as unknown types (postgres.md §14)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from connect_py.data.java_text import double_text
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.values.shapes import EMPTY_COLLECTION, POINT, point_object, spatial_object, spatial_schema
from connectors.postgres.types.base import Family, RootType, ValueOptions

_POINT = re.compile(r"\(([^,()]+),([^,()]+)\)").fullmatch
_NUMBER = re.compile(r"[-+]?(?:\d[\d.eE+-]*|Infinity|NaN)")
#: The flag in an EWKB type that a SRID follows.
_HAS_SRID = 0x20000000


def point(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`(x,y)` with its WKB beside it."""
    return ColumnPlan(name, POINT, _point_object, fallback=_point_object("(0,0)"))


def _point_object(text: str) -> str:
    found = _POINT(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a point")
    x, y = float(found[1]), float(found[2])
    return point_object(x, y, struct.pack("<BIdd", 1, 1, x, y), None)


def _postgis(kind: str, *, optional: bool) -> Family:
    schema = spatial_schema(kind, optional=optional)

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, _spatial_object, fallback=_spatial_object(EMPTY_COLLECTION.hex()))

    return plan


def _spatial_object(text: str) -> str:
    """Hex EWKB, whose SRID is shown beside it as well."""
    data = bytes.fromhex(text)
    if len(data) < 9:
        raise Unrepresentable("a PostGIS value is shorter than the head of its EWKB form")
    order = "<" if data[0] else ">"
    kind, srid = struct.unpack_from(f"{order}II", data, 1)
    return spatial_object(data, srid if kind & _HAS_SRID else None)


def shape_text(text: str) -> str:
    """A box, line, lseg, path, polygon or circle with its numbers as Java prints them, as pgjdbc's objects do."""
    return _NUMBER.sub(lambda number: double_text(float(number[0])), text)


#: Built-in types without a form of their own, and how their text is shown where unknown types are wanted.
SHAPES: dict[str, Callable[[str], str]] = dict.fromkeys(("box", "line", "lseg", "path", "polygon", "circle"), shape_text)

FAMILIES: dict[str, Family] = {
    "point": point,
    "geometry": _postgis("Geometry", optional=True),
    "geography": _postgis("Geography", optional=False),
}
