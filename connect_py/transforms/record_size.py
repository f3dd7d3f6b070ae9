"""Cut large columns so that an event keeps within a size (`io.debezium.transforms.EnforceRecordSize`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from connect_py.api import ConfigType, Importance, SourceRecord
from connect_py.api.config import REQUIRED, invalid
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import EXACT, int_to_bytes
from connect_py.transforms.base import AnyRecord, key
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform, struct_of

#: What objects of a Java heap are taken to weigh, in bytes (`ApproximateStructSizeCalculator`).
_STRUCT = _STRING = 56
_BYTES = _PRIMITIVE = 24
_ARRAY, _MAP, _REFERENCE = 64, 88, 8
_ENTRY = 100  # of a source partition, an offset, and a header


class EnforceRecordSize(DebeziumTransform):
    """Cuts the texts and bytes of `before` and `after`, each by its share, where the whole is estimated to be larger than allowed."""

    java_name = f"{DEBEZIUM}EnforceRecordSize"
    KEYS = (
        key(
            "max.bytes",
            ConfigType.INT,
            REQUIRED,
            Importance.HIGH,
            "The most bytes that an event may have; the texts and bytes of a larger one are cut.",
        ),
        key(
            "compression.ratio",
            ConfigType.DOUBLE,
            1.0,
            Importance.MEDIUM,
            "The estimate of an event's size is multiplied by this: 0.5 where the serialised form has half the size.",
        ),
        key(
            "min.field.size",
            ConfigType.INT,
            25000,
            Importance.MEDIUM,
            "Fields of this size, in bytes, and smaller ones are not cut.",
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._max_bytes, self._ratio, self._min_field_size = config["max.bytes"], config["compression.ratio"], config["min.field.size"]
        if self._max_bytes <= 0:
            raise invalid("max.bytes", self._max_bytes, "Must be a positive integer")
        if self._ratio <= 0:
            raise invalid("compression.ratio", self._ratio, "Must be a positive number")
        if self._min_field_size < 0:
            raise invalid("min.field.size", self._min_field_size, "Must be non-negative")

    def apply(self, record: AnyRecord) -> AnyRecord:
        """Return the record, cut where it is too large; one of a sink, and one whose value is no struct, is left alone."""
        if not isinstance(record, SourceRecord) or not isinstance(record.value, Struct):
            return record
        size = math.ceil(_record_size(record) * self._ratio)
        if size <= self._max_bytes:
            return record
        sides = {side: self._large(struct_of(record.value, side)) for side in ("before", "after")}
        total = sum(sum(sizes.values()) for sizes in sides.values())
        if not total:
            return record
        values = list(record.value.values)
        for side, sizes in sides.items():
            weight = sum(sizes.values())
            excess = math.ceil(weight / total * (size - self._max_bytes))
            part = struct_of(record.value, side)
            if part is not None and sizes and excess > 0:
                values[record.value.schema.index_of(side)] = _cut(part, sizes, weight, excess)
        return replace(record, value=Struct(record.value.schema, values))

    def _large(self, part: Struct | None) -> dict[int, int]:
        """Positions of the fields that may be cut, with their sizes."""
        if part is None:
            return {}
        values = (part[field.name] for field in part.schema.fields)
        return {i: len(value) for i, value in enumerate(values) if isinstance(value, str | bytes) and len(value) > self._min_field_size}


def _cut(part: Struct, sizes: dict[int, int], weight: int, excess: int) -> Struct:
    values = list(part.values)
    for index, size in sizes.items():
        kept = max(0, size - math.ceil(size / weight * excess))
        values[index] = part[part.schema.fields[index].name][:kept]
    return Struct(part.schema, values)


def _record_size(record: SourceRecord) -> int:
    entries = len(record.source_partition) + len(record.source_offset) + len(record.headers)
    timestamp = 8
    sizes = sum(_size(side.schema, side) for side in (record.key, record.value) if isinstance(side, Struct))
    return entries * _ENTRY + timestamp + sizes + len(record.topic.encode())


def _size(schema: Schema, value: Any) -> int:
    match schema.type:
        case Type.STRING:
            return 0 if value is None else _STRING + len(value.encode())
        case Type.BYTES:
            return 0 if value is None else _BYTES + len(_unscaled(value) if isinstance(value, Decimal) else value)
        case Type.STRUCT:
            if value is None:
                return 0
            parts = zip(value.schema.fields, value.values, strict=True)
            return _STRUCT + sum(_REFERENCE + _size(field.schema, item) for field, item in parts)
        case Type.ARRAY:
            assert schema.value_schema is not None
            return 0 if value is None else _ARRAY + sum(_REFERENCE + _size(schema.value_schema, item) for item in value)
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            if value is None:
                return 0
            return _MAP + sum(2 * _REFERENCE + _size(schema.key_schema, k) + _size(schema.value_schema, v) for k, v in value.items())
        case _:
            return _PRIMITIVE


def _unscaled(value: Decimal) -> bytes:
    return int_to_bytes(int(value.scaleb(-int(value.as_tuple().exponent), EXACT)))
