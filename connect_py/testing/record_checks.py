"""Whether records, values and offsets are what the contract says."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from connect_py.api import SourceRecord
from connect_py.data import Schema, Struct, Type
from connect_py.data.logical import DATE, DECIMAL, TIME, TIMESTAMP

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}

_PYTHON: dict[Type, type] = {
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
    Type.STRUCT: Struct,
}

_LOGICAL: dict[str, type] = {DECIMAL: decimal.Decimal, DATE: datetime.date, TIME: datetime.time, TIMESTAMP: datetime.datetime}

#: What the offsets topic can hold (`OffsetUtils.validateFormat`).
_PRIMITIVES = (bool, int, float, str, type(None))


def check_source_record(record: SourceRecord) -> None:
    """A record that a source may give. Raises AssertionError with the first rule that it breaks."""
    assert isinstance(record, SourceRecord), f"poll gave a {type(record).__name__}, not a SourceRecord"
    assert record.topic, f"a record has no topic: {record}"
    _check_flat(record.source_partition, "source partition")
    assert record.source_partition, "a source partition is empty: it could not be told from another connector's"
    _check_flat(record.source_offset, "source offset")
    assert record.timestamp is None or record.timestamp >= -1, f"a timestamp is before 1970: {record.timestamp}"
    assert record.partition is None or record.partition >= 0, f"a Kafka partition is negative: {record.partition}"
    check_value(record.key_schema, record.key, "key")
    check_value(record.value_schema, record.value, "value")
    for header in record.headers:
        check_value(header.schema, header.value, f"header {header.name}")


def check_value(schema: Schema | None, value: Any, where: str = "value") -> None:
    """A value that its schema allows, all parts included (`ConnectSchema.validateValue`); without a schema anything is allowed.

    Raises:
        AssertionError: it does not fit; the text says where.
    """
    if schema is None:
        return
    if value is None:
        assert schema.optional or schema.default is not None, f"{where} is null, but its schema is not optional"
        return
    wanted = _LOGICAL.get(schema.name or "")
    if wanted is not None:
        assert isinstance(value, wanted), f"{where} is a {type(value).__name__}; {schema.name} wants a {wanted.__name__}"
    elif schema.type in _BITS:
        assert isinstance(value, int) and not isinstance(value, bool), f"{where} is a {type(value).__name__}, not an int"
        assert -(2 ** (_BITS[schema.type] - 1)) <= value < 2 ** (_BITS[schema.type] - 1), f"{where}: {value} is no {schema.type.value}"
    elif schema.type is Type.BOOLEAN:
        assert isinstance(value, bool), f"{where} is a {type(value).__name__}, not a bool"
    else:
        python = _PYTHON[schema.type]
        assert isinstance(value, python), f"{where} is a {type(value).__name__}; {schema.type.value} wants a {python.__name__}"
        _check_parts(schema, value, where)


def _check_parts(schema: Schema, value: Any, where: str) -> None:
    if schema.type is Type.STRUCT:
        assert value.schema == schema, f"{where} is a Struct of another schema than the one beside it"
        for field, part in zip(schema.fields, value.values, strict=True):
            check_value(field.schema, part, f"{where}.{field.name}")
    elif schema.type is Type.ARRAY:
        for number, part in enumerate(value):
            check_value(schema.value_schema, part, f"{where}[{number}]")
    elif schema.type is Type.MAP:
        for key, part in value.items():
            check_value(schema.key_schema, key, f"a key of {where}")
            check_value(schema.value_schema, part, f"{where}[{key!r}]")


def _check_flat(offsets: Any, what: str) -> None:
    assert isinstance(offsets, Mapping), f"a {what} is a {type(offsets).__name__}, not a mapping"
    for key, value in offsets.items():
        assert isinstance(key, str), f"a {what} has the key {key!r}; keys are strings"
        assert isinstance(value, _PRIMITIVES), (
            f"{key} of a {what} is a {type(value).__name__}; only bool, int, float, str and None are kept"
        )
