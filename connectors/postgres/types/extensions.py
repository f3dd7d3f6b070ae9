"""PostGIS's shapes, with the built-in ones (point; the others appear only as unknown types), and pgvector's vectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import pack, unpack_from

from connect_py.data.java_text import double_text, float_text
from connect_py.data.schema import FLOAT32, FLOAT64, INT16, array, map_of, struct
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.encode.values import EMPTY_COLLECTION, POINT, point_object, spatial_object, spatial_schema
from connectors.postgres.types.base import Family, RootType, ValueOptions

_POINT = re.compile(r"\(([^,()]+),([^,()]+)\)").fullmatch
_NUMBER = re.compile(r"[-+]?(?:\d[\d.eE+-]*|Infinity|NaN)")
#: The flag in an EWKB type that a SRID follows.
_HAS_SRID = 0x20000000


def point(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of point: `(x,y)` and its WKB."""
    return ColumnPlan(name, POINT, _point_object, fallback=_point_object("(0,0)"))


def _point_object(text: str) -> str:
    found = _POINT(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a point")
    x, y = float(found[1]), float(found[2])
    return point_object(x, y, pack("<BIdd", 1, 1, x, y), None)


def _postgis(kind: str, *, optional: bool) -> Family:
    schema = spatial_schema(kind, optional=optional)

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, _spatial_object, fallback=_spatial_object(EMPTY_COLLECTION.hex()))

    return plan


def _spatial_object(text: str) -> str:
    """Return the object of a hex EWKB, whose SRID is shown separately as well."""
    data = bytes.fromhex(text)
    if len(data) < 9:
        raise Unrepresentable("a PostGIS value is shorter than the head of its EWKB form")
    order = "<" if data[0] else ">"
    kind, srid = unpack_from(f"{order}II", data, 1)
    return spatial_object(data, srid if kind & _HAS_SRID else None)


def shape_text(text: str) -> str:
    """Return a box, line, lseg, path, polygon or circle with its numbers as Java prints them, as pgjdbc's objects do."""
    return _NUMBER.sub(lambda number: double_text(float(number[0])), text)


#: Built-in types without a form of their own, and how their text is shown where unknown types are wanted.
SHAPES: dict[str, Callable[[str], str]] = dict.fromkeys(("box", "line", "lseg", "path", "polygon", "circle"), shape_text)

SPATIAL: dict[str, Family] = {
    "point": point,
    "geometry": _postgis("Geometry", optional=True),
    "geography": _postgis("Geography", optional=False),
}


DOUBLE_VECTOR = array(FLOAT64, name="io.debezium.data.DoubleVector", version=1)
FLOAT_VECTOR = array(FLOAT32, name="io.debezium.data.FloatVector", version=1)
SPARSE_VECTOR = struct(
    [("dimensions", INT16), ("vector", map_of(INT16, FLOAT64))],
    name="io.debezium.data.SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
)
_SPARSE = re.compile(r"\{([^{}]*)\}/(\d+)").fullmatch


def vector(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of vector: `[1,2.5]` as doubles."""
    return ColumnPlan(name, DOUBLE_VECTOR, lambda text: f"[{','.join(double_text(float(part)) for part in _items(text))}]", fallback="[]")


def halfvec(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of halfvec: `[1,2.5]` as floats."""
    return ColumnPlan(name, FLOAT_VECTOR, lambda text: f"[{','.join(float_text(float(part)) for part in _items(text))}]", fallback="[]")


def sparsevec(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of sparsevec: `{1:1.5,3:2}/5`."""
    return ColumnPlan(name, SPARSE_VECTOR, _sparse_object, fallback='{"dimensions":0,"vector":[]}')


def _items(text: str) -> list[str]:
    if text[:1] != "[" or text[-1:] != "]":
        raise Unrepresentable(f"{text!r} is not a vector")
    return [part for part in text[1:-1].split(",") if part]


def _sparse_object(text: str) -> str:
    """Return the object of a sparse vector; a map whose keys are no strings is an array of pairs in JSON (`JsonConverter`)."""
    found = _SPARSE(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a sparse vector")
    entries = (entry.split(":") for entry in found[1].split(",") if entry)
    pairs = ",".join(f"[{int(index)},{double_text(float(value))}]" for index, value in entries)
    return f'{{"dimensions":{int(found[2])},"vector":[{pairs}]}}'


VECTORS: dict[str, Family] = {"vector": vector, "halfvec": halfvec, "sparsevec": sparsevec}
