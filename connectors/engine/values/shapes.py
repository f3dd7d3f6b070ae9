"""Geometry: schemas, and values as JSON (`io.debezium.data.geometry`; debezium-common.md §6.4)."""

from __future__ import annotations

from connect_py.data import Schema
from connect_py.data.java_text import double_text
from connect_py.data.schema import BYTES, FLOAT64, INT32, OPTIONAL_BYTES, struct
from connectors.engine.encode.numbers import base64_of_bytes
from connectors.engine.values.decimals import json_number

POINT = struct(
    [("x", FLOAT64), ("y", FLOAT64), ("wkb", OPTIONAL_BYTES), ("srid", INT32.as_optional())],
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
#: WKB of an empty collection: what stands for a missing value of a required column.
EMPTY_COLLECTION = bytes.fromhex("010700000000000000")


def spatial_schema(kind: str, *, optional: bool) -> Schema:
    """`Geometry` or `Geography`."""
    return struct(
        [("wkb", BYTES), ("srid", INT32.as_optional())],
        name=f"io.debezium.data.geometry.{kind}",
        version=1,
        doc=kind,
        optional=optional,
    )


def point_object(x: float, y: float, wkb: bytes, srid: int | None) -> str:
    """A `Point`."""
    shown = "null" if srid is None else str(srid)
    return f'{{"x":{json_number(double_text(x))},"y":{json_number(double_text(y))},"wkb":"{base64_of_bytes(wkb)}","srid":{shown}}}'


def spatial_object(wkb: bytes, srid: int | None) -> str:
    """A `Geometry` or `Geography`."""
    return f'{{"wkb":"{base64_of_bytes(wkb)}","srid":{"null" if srid is None else srid}}}'
