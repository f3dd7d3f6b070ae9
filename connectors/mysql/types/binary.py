"""Bytes, geometry, vectors and UUIDs. Their texts are characters U+0000 to U+00FF, one a byte."""

from __future__ import annotations

import ipaddress
import struct
import uuid

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.java_text import float_text
from connect_py.data.schema import BYTES, FLOAT32, STRING, array
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.encode.values import (
    EMPTY_COLLECTION,
    POINT,
    TEXT_OF_BYTES,
    base64_of_bytes,
    json_number,
    point_object,
    spatial_object,
    spatial_schema,
)
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn
from connectors.mysql.types.base import Family

FLOAT_VECTOR = array(FLOAT32, name="io.debezium.data.FloatVector", version=1)
_SHAPES = (*("GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION"),)
_BLOBS = ("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY")
#: Bytes of the WKB of a point.
_POINT_SIZE = 21
_ADDRESS_SIZES = {"UUID": 16, "INET4": 4, "INET6": 16}


def octets(text: str) -> bytes:
    """Return the bytes that a text stands for."""
    return text.encode("latin-1")


def binary(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan for `binary.handling.mode`; BINARY(n) gets back the zeros that the binlog leaves out."""
    text_of = TEXT_OF_BYTES[options.binary_mode]
    size = (column.length or 1) if column.base_type == "BINARY" else 0
    schema = BYTES if options.binary_mode == "bytes" else STRING
    placeholder = base64_of_bytes(options.placeholder.encode()) if options.binary_mode == "bytes" else options.placeholder
    return ColumnPlan(column.name, schema, lambda text: f'"{text_of(octets(text).ljust(size, bytes(1)))}"', placeholder=quote(placeholder))


def point(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of POINT."""
    return ColumnPlan(column.name, POINT, _point_object, fallback=point_object(0.0, 0.0, struct.pack("<BIdd", 1, 1, 0.0, 0.0), None))


def _point_object(text: str) -> str:
    srid, wkb = _parts(text)
    if len(wkb) != _POINT_SIZE:
        raise Unrepresentable("a POINT is not 21 bytes long")
    x, y = struct.unpack("<dd" if wkb[0] else ">dd", wkb[5:])
    return point_object(x, y, wkb, srid)


def shape(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of every other geometry."""
    schema = spatial_schema("Geometry", optional=True)
    return ColumnPlan(column.name, schema, _shape_object, fallback=spatial_object(EMPTY_COLLECTION, None))


def _shape_object(text: str) -> str:
    srid, wkb = _parts(text)
    return spatial_object(wkb, srid)


def _parts(text: str) -> tuple[int | None, bytes]:
    """Return the reference system's number, None for 0, and the WKB after it."""
    data = octets(text)
    if len(data) < 5:
        raise Unrepresentable("a geometry is shorter than its head")
    return int.from_bytes(data[:4], "little") or None, data[4:]


def vector(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of VECTOR: little-endian floats."""
    return ColumnPlan(column.name, FLOAT_VECTOR, _vector, fallback="[]")


def _vector(text: str) -> str:
    data = octets(text)
    if len(data) % 4:
        return "[]"
    return "[" + ",".join(json_number(float_text(value)) for (value,) in struct.iter_unpack("<f", data)) + "]"


def uuid_(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of MariaDB's UUID: in the binlog sixteen bytes without the zeros at the end, text in results."""
    schema = Schema(Type.STRING, name="io.debezium.data.Uuid", version=1)
    return ColumnPlan(column.name, schema, _uuid_text, fallback='"00000000-0000-0000-0000-000000000000"')


def _uuid_text(text: str) -> str:
    if len(text) > _ADDRESS_SIZES["UUID"]:
        return quote(text)
    return quote(str(uuid.UUID(bytes=octets(text).ljust(16, bytes(1)))))


def address(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of MariaDB's INET4 and INET6: in the binlog bytes without the zeros at the end, text in results."""
    size = _ADDRESS_SIZES[column.base_type]

    def shown(text: str) -> str:
        if "." in text or ":" in text:
            return quote(text)
        data = octets(text).ljust(size, bytes(1))
        found = ipaddress.IPv4Address(data) if size == 4 else ipaddress.IPv6Address(data)
        return quote(str(found))

    return ColumnPlan(column.name, STRING, shown, fallback='"0.0.0.0"' if size == 4 else '"::"')


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("BINARY", "VARBINARY", *_BLOBS), binary),
    "POINT": point,
    **dict.fromkeys(_SHAPES, shape),
    "VECTOR": vector,
    "UUID": uuid_,
    "INET4": address,
    "INET6": address,
}
