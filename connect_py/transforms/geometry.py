"""Geometry values (`io.debezium.transforms.{GeometryFormatTransformer,SwapGeometryCoordinates}`; debezium-common §16.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigType, Importance, Width
from connect_py.data import Schema, Struct, Type
from connect_py.errors import ConfigError, DataError
from connect_py.transforms import wkb
from connect_py.transforms.base import AnyRecord
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, listed, one_of, option

_GEOMETRY = "io.debezium.data.geometry.Geometry"

Change = Callable[[Struct], Struct]


def _in_struct(value: Struct, change: Change, *, deep: bool) -> Struct:
    """A struct with its geometries changed, those of structs inside too; nulls become defaults, as in Debezium."""
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
        """The record with changed geometries; one whose value is no struct is left alone. Raises DataError for one without SRID."""
        if not isinstance(record.value, Struct):
            return record
        return replace(record, value=_in_struct(record.value, self._changed, deep=False))

    def _changed(self, geometry: Struct) -> Struct:
        data, srid = geometry["wkb"], geometry["srid"]
        if wkb.is_extended(data):
            self._adds = False
        if not self._adds:
            return _with_wkb(geometry, wkb.without_srid(data))
        if srid is None:
            raise DataError("Cannot convert to EWKB when SRID is null")
        return _with_wkb(geometry, wkb.with_srid(data, srid))


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
        """The record with changed geometries; one whose value is no struct is left alone. Raises DataError for malformed bytes."""
        if not isinstance(record.value, Struct):
            return record
        return replace(record, value=_in_struct(record.value, self._changed, deep=True))

    def _changed(self, geometry: Struct) -> Struct:
        return _with_wkb(geometry, wkb.swapped(geometry["wkb"])) if geometry["srid"] in self._srids else geometry


def _with_wkb(geometry: Struct, data: bytes) -> Struct:
    changed = Struct(geometry.schema, geometry.values)
    changed["wkb"] = data
    return changed


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f'For input string: "{text}"; srids takes numbers with commas between them') from None
