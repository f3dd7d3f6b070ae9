"""Change geometry values (`io.debezium.transforms.{GeometryFormatTransformer,SwapGeometryCoordinates}`).

Geometries are in well-known binary form, bytes in and bytes out (OGC 06-103r4; PostGIS' extended form adds an SRID). Their coordinates are
exchanged in place: a geometry library would write the bytes in an order of its own, and takes eleven times as long.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Schema, Struct, Type
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, listed, one_of, option

_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
#: Collections inside one another; a server nests no deeper, and a forged value must not exhaust the stack.
_MAX_DEPTH = 64


def is_extended(wkb: bytes) -> bool:
    """Return whether the bytes carry an SRID."""
    return len(wkb) >= 5 and bool(_type_of(wkb) & _HAS_SRID)


def with_srid(wkb: bytes, srid: int) -> bytes:
    """Return the extended form; bytes that are extended already are left alone. Raises DataError for bytes that are cut off."""
    if is_extended(wkb):
        return wkb
    if len(wkb) < 5:
        raise DataError(f"A geometry of {len(wkb)} bytes has no type: it is cut off")
    order = _order(wkb[0])
    return wkb[:1] + struct.pack(f"{order}Ii", _type_of(wkb) | _HAS_SRID, srid) + wkb[5:]


def without_srid(wkb: bytes) -> bytes:
    """Return the plain form; bytes that are plain already are left alone."""
    if not is_extended(wkb):
        return wkb
    order = _order(wkb[0])
    return wkb[:1] + struct.pack(f"{order}I", _type_of(wkb) & ~_HAS_SRID) + wkb[9:]


def swapped(wkb: bytes) -> bytes:
    """Return the same geometry with x and y of every point exchanged.

    Raises:
        DataError: the bytes are no geometry of the seven simple kinds.
    """
    data = bytearray(wkb)
    try:
        _Swapper(data).geometry(0, 0)
    except (struct.error, IndexError):
        raise DataError("Failed to swap EWKB/WKB coordinates: the bytes end inside the geometry") from None
    return bytes(data)


def _order(byte: int) -> str:
    return "<" if byte == 1 else ">"


def _type_of(wkb: bytes) -> int:
    found: int = struct.unpack_from(f"{_order(wkb[0])}I", wkb, 1)[0]
    return found


class _Swapper:
    """Walk a geometry and exchange coordinates in place; each method takes a position and returns the one after it."""

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def geometry(self, at: int, depth: int) -> int:
        """Walk a whole geometry, from its byte order on."""
        if depth > _MAX_DEPTH:
            raise DataError(f"Failed to swap EWKB/WKB coordinates: collections are nested deeper than {_MAX_DEPTH}")
        order = _order(self._data[at])
        kind = self._number(at + 1, order)
        at += 9 if kind & _HAS_SRID else 5
        stride = 16 + (8 if kind & _HAS_Z else 0) + (8 if kind & _HAS_M else 0)
        match kind & 0xFF:
            case 1:
                return self._point(at, stride)
            case 2:
                return self._line(at, order, stride)
            case 3:
                return self._polygon(at, order, stride)
            case 4 | 5 | 6 | 7:
                count, at = self._number(at, order), at + 4
                for _ in range(count):
                    at = self.geometry(at, depth + 1)
                return at
            case other:
                raise DataError(f"Failed to swap EWKB/WKB coordinates: invalid geometry type: {other}")

    def _number(self, at: int, order: str) -> int:
        found: int = struct.unpack_from(f"{order}I", self._data, at)[0]
        return found

    def _point(self, at: int, stride: int) -> int:
        if at + stride > len(self._data):
            raise IndexError(at)
        x = self._data[at : at + 8]
        self._data[at : at + 8] = self._data[at + 8 : at + 16]
        self._data[at + 8 : at + 16] = x
        return at + stride

    def _line(self, at: int, order: str, stride: int) -> int:
        count, at = self._number(at, order), at + 4
        for _ in range(count):
            at = self._point(at, stride)
        return at

    def _polygon(self, at: int, order: str, stride: int) -> int:
        rings, at = self._number(at, order), at + 4
        for _ in range(rings):
            at = self._line(at, order, stride)
        return at


_GEOMETRY = "io.debezium.data.geometry.Geometry"

Change = Callable[[Struct], Struct]


def _in_struct(value: Struct, change: Change, *, deep: bool) -> Struct:
    """Return a struct with its geometries changed, those of structs inside too; nulls become defaults, as in Debezium."""
    values = [_in_value(field.schema, value[field.name], change, deep=deep) for field in value.schema.fields]
    return Struct(value.schema, values)


def _in_value(schema: Schema | None, value: Any, change: Change, *, deep: bool) -> Any:
    """`deep` looks into arrays and maps as well."""
    if value is None or schema is None:
        return value
    if schema.type is Type.STRUCT:
        return change(value) if schema.name == _GEOMETRY else _in_struct(value, change, deep=deep)
    if deep and schema.type is Type.ARRAY:
        return [_in_value(schema.value_schema, item, change, deep=True) for item in value]
    if deep and schema.type is Type.MAP:
        return {k: _in_value(schema.value_schema, item, change, deep=True) for k, item in value.items()}
    return value


class GeometryFormatTransformer(DebeziumTransform):
    """Well-known binary with an SRID or without.

    Debezium's rules are odd, and are kept: `wkb`, the default, *adds* the SRID to geometries that have none, and `ewkb` removes it; the
    first geometry that has one turns the transform to `ewkb` for good.
    """

    java_name = f"{DEBEZIUM}GeometryFormatTransformer"
    KEYS = (
        option(
            "format",
            ConfigType.STRING,
            "wkb",
            Importance.LOW,
            Width.MEDIUM,
            "Target Format",
            "What geometries are before: wkb gets its SRID, ewkb loses it.",
        ),
    )
    RULES = (("format", one_of("ewkb", "wkb")),)

    def use(self, config: Mapping[str, Any]) -> None:
        self._adds = config["format"].strip().lower() == "wkb"

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with changed geometries; one whose value is no struct is left alone. Raises DataError for one without SRID."""
        if not isinstance(record.value, Struct):
            return record
        return replace(record, value=_in_struct(record.value, self._changed, deep=False))

    def _changed(self, geometry: Struct) -> Struct:
        data, srid = geometry["wkb"], geometry["srid"]
        if is_extended(data):
            self._adds = False
        if not self._adds:
            return _with_wkb(geometry, without_srid(data))
        if srid is None:
            raise DataError("Cannot convert to EWKB when SRID is null")
        return _with_wkb(geometry, with_srid(data, srid))


class SwapGeometryCoordinates(DebeziumTransform):
    """Exchanges x and y of geometries with some SRIDs."""

    java_name = f"{DEBEZIUM}SwapGeometryCoordinates"
    KEYS = (
        option(
            "srids",
            ConfigType.STRING,
            None,
            Importance.LOW,
            Width.MEDIUM,
            "Geometry SRIDs that should be considered for coordinate swapping",
            "Which SRIDs; 4326, 3857 and 4269 without it.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._srids = {4326, 3857, 4269} if config["srids"] is None else set(map(_number, listed(config["srids"])))

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record with changed geometries; one whose value is no struct is left alone. Raises DataError for malformed bytes."""
        if not isinstance(record.value, Struct):
            return record
        return replace(record, value=_in_struct(record.value, self._changed, deep=True))

    def _changed(self, geometry: Struct) -> Struct:
        return _with_wkb(geometry, swapped(geometry["wkb"])) if geometry["srid"] in self._srids else geometry


def _with_wkb(geometry: Struct, data: bytes) -> Struct:
    changed = Struct(geometry.schema, geometry.values)
    changed["wkb"] = data
    return changed


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f'For input string: "{text}"; srids takes numbers with commas between them') from None
