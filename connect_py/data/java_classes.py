"""What Java would call the class of a value, for messages that people know from there."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from connect_py.data.schema import Schema, Struct, Type

_CLASSES: Mapping[type, str] = {
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    decimal.Decimal: "java.math.BigDecimal",
    Struct: "org.apache.kafka.connect.data.Struct",
    datetime.date: "java.util.Date",
    datetime.time: "java.util.Date",
    datetime.datetime: "java.util.Date",
    type(None): "null",
}
_NARROWER: Mapping[Type, str] = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.FLOAT32: "java.lang.Float",
}


def class_name(value: Any, schema: Schema | None = None) -> str:
    """`value.getClass().getName()`; the schema tells numbers apart that are one type here."""
    if schema is not None and schema.type in _NARROWER and type(value) in (int, float):
        return _NARROWER[schema.type]
    return _CLASSES.get(type(value), type(value).__name__)


def java_class(value: Any) -> str:
    """`value.getClass()` as a text."""
    return f"class {class_name(value)}" if type(value) in _CLASSES else type(value).__name__
