"""point, PostGIS's types, and the text forms of the built-in shapes, which events hold only as unknown types (postgres.md §14)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from connect_py.data import Schema
from connect_py.data.java_text import double_text
from connect_py.data.schema import BYTES, FLOAT64, INT32, OPTIONAL_BYTES
from connect_py.data.schema import struct as struct_schema
from connectors.engine.encode.numbers import base64_of_bytes
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions
from connectors.postgres.types.numbers import json_number

POINT = struct_schema(
    [("x", FLOAT64), ("y", FLOAT64), ("wkb", OPTIONAL_BYTES), ("srid", INT32.as_optional())],
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
_EMPTY_COLLECTION = "010700000000000000"
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
    wkb = base64_of_bytes(struct.pack("<BIdd", 1, 1, x, y))
    return f'{{"x":{json_number(double_text(x))},"y":{json_number(double_text(y))},"wkb":"{wkb}","srid":null}}'


def _postgis(kind: str, *, optional: bool) -> Family:
    schema: Schema = struct_schema(
        [("wkb", BYTES), ("srid", INT32.as_optional())],
        name=f"io.debezium.data.geometry.{kind}",
        version=1,
        doc=kind,
        optional=optional,
    )

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, _spatial_object, fallback=_spatial_object(_EMPTY_COLLECTION))

    return plan


def _spatial_object(text: str) -> str:
    """Hex EWKB, whose SRID is shown beside it as well."""
    data = bytes.fromhex(text)
    if len(data) < 9:
        raise Unrepresentable("a PostGIS value is shorter than the head of its EWKB form")
    order = "<" if data[0] else ">"
    kind, srid = struct.unpack_from(f"{order}II", data, 1)
    return f'{{"wkb":"{base64_of_bytes(data)}","srid":{srid if kind & _HAS_SRID else "null"}}}'


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
