"""Values as Java's `toString` shows them: what StringConverter writes, and what messages quote."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from connect_py.data.java_map import in_java_order
from connect_py.data.java_text import double_text, float_text
from connect_py.data.schema import Schema, Struct, Type


def to_text(schema: Schema | None, value: Any) -> str:
    """`String.valueOf(value)`: `Struct{a=1,b=x}` without its null fields, `{a=1}`, `[1, 2]`, `true`, `1.0E10`, `null`.

    Bytes differ on purpose: Java prints an object's address, which says nothing; here it is the text ``[B`` and the length.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
        case Struct():
            pairs = zip(value.schema.fields, value.values, strict=True)
            return "Struct{" + ",".join(f"{f.name}={to_text(f.schema, v)}" for f, v in pairs if v is not None) + "}"
        case Mapping():
            keys, values = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
            if all(isinstance(key, str) for key in value):
                value = in_java_order(value)  # a HashMap, as Connect's converters make them
            return "{" + ", ".join(f"{to_text(keys, k)}={to_text(values, v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            element = schema.value_schema if schema is not None else None
            return "[" + ", ".join(to_text(element, item) for item in value) + "]"
        case bytes() | bytearray() | memoryview():
            return f"[B@{len(value)}"
        case datetime.datetime():
            utc = value.astimezone(datetime.UTC) if value.tzinfo else value
            return _date_text(utc)
        case datetime.date():
            return _date_text(datetime.datetime(value.year, value.month, value.day))  # shown as UTC
        case datetime.time():
            return _date_text(datetime.datetime.combine(datetime.date(1970, 1, 1), value))
        case _:
            return str(value)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _date_text(value: datetime.datetime) -> str:
    """java.util.Date's text in a worker whose zone is UTC; names of days do not follow the locale."""
    day, month = _DAYS[value.weekday()], _MONTHS[value.month - 1]
    return f"{day} {month} {value:%d %H:%M:%S} UTC {value.year:04d}"
