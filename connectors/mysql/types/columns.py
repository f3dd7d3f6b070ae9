"""Columns of MySQL tables as fields of events: plans from a column's model and the options, and schema defaults. Pure.

The texts are those of the text protocol in a session with the time zone UTC, characters decoded, and bytes as characters U+0000 to U+00FF;
`binlog/columns.py` makes the same texts. Schema defaults come from the texts of DDL (`MySqlDefaultValueConverter`).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from connect_py.data import Type
from connect_py.data.schema import DATE, DECIMAL, EXACT, TIME, TIMESTAMP
from connect_py.data.times import days_to_date, millis_to_time, millis_to_timestamp
from connectors.engine.encode.plan import ColumnPlan, StandsForNull
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import JDBC, MyColumn, quote_name
from connectors.mysql.types import binary, numbers, temporal, text
from connectors.mysql.types.base import Family

_MAX_LONG = (1 << 63) - 1
#: What stands for a default of CURRENT_TIMESTAMP and its synonyms.
CURRENT_TIME = "1970-01-01 00:00:00"
_NUMBERS = frozenset(JDBC[name] for name in ("BIT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "REAL", "DOUBLE", "NUMERIC", "DECIMAL"))
_BITS = ("BIT",)
_DECIMALS = ("DECIMAL", "NUMERIC", "DEC", "FIXED")
_BYTES = ("BINARY", "VARBINARY")


def default_of(column: MyColumn, plan: ColumnPlan) -> Any:
    """Return a Connect value for a default's text, None for no default."""
    text = column.default or ""
    if column.base_type not in ("CHAR", "VARCHAR", "ENUM", "SET", *_BYTES):
        text = text.strip()
    if column.base_type == "TIMESTAMP" and column.nullable and text == CURRENT_TIME:
        return None
    try:
        return _value(column, plan, text)
    except StandsForNull:
        return None if column.nullable else _value(column, plan, CURRENT_TIME if " " in text else CURRENT_TIME[:10])
    except (ValueError, ArithmeticError):
        # a day that cannot be read becomes the first one where there must be one; of TIMESTAMP, as of others, there is no default then
        return None if column.nullable or column.base_type not in ("DATE", "DATETIME") else _value(column, plan, CURRENT_TIME)


def _value(column: MyColumn, plan: ColumnPlan, text: str) -> Any:
    schema = plan.schema
    if column.jdbc_type in _NUMBERS and text.upper() in ("TRUE", "FALSE"):
        if schema.type is Type.BYTES and column.base_type in _BITS:
            raise ValueError("Debezium has no bits for a truth value")
        text = str(int(text.upper() == "TRUE"))
    if column.base_type in _BITS:
        value = int(text or "0", 2)
        if schema.type is Type.BOOLEAN:
            return bool(value)
        return value.to_bytes(((column.length or 1) + 7) // 8, "little")
    if schema.type is Type.BOOLEAN:
        return text.upper() not in ("FALSE", "0")
    if column.base_type in _DECIMALS and schema.name != DECIMAL:
        # rounded to the column's digits in every mode
        number = Decimal(text).quantize(Decimal(1).scaleb(-(column.scale or 0)), rounding=ROUND_HALF_UP, context=EXACT)
        return float(number) if schema.type is Type.FLOAT64 else f"{number:f}"
    if schema.name == DECIMAL:
        scale = int(schema.parameter("scale") or 0)
        return Decimal(text).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return float(text)
    if schema.type is Type.BYTES:
        return text.encode()
    if column.base_type in _BYTES and plan.convert is not None:
        return json.loads(plan.convert(text.encode().decode("latin-1")))
    if schema.name in ("io.debezium.time.Year",):
        return year_of(int(text))
    if column.base_type in ("DATE", "DATETIME", "TIME", "TIMESTAMP"):
        return _time_default(column, plan, text)
    if schema.type in (Type.INT8, Type.INT16, Type.INT32, Type.INT64):
        return min(int(Decimal(text).quantize(Decimal(1), rounding=ROUND_HALF_UP)), _MAX_LONG)
    if schema.type is Type.STRING:
        return text
    return None


def year_of(number: int) -> int:
    """Return what the server stores for the year of a statement: 0 to 69 are of this century, 70 to 99 of the last one."""
    return number + (2000 if number < 70 else 1900) if number < 100 else number


def _to_seconds(text: str) -> str:
    return f"{text}:00" if text.count(":") == 1 else text


#: A clock with any number of digits in its parts (`BinlogValueConverters.stringToDuration`), and a date before it that TIME leaves out.
_CLOCK = re.compile(r"(?:\d*-\d*-\d* )?(-?)(\d+):(\d+)(?::(\d+))?(\.\d*)?")


def _clock(text: str) -> str:
    """Return a default of TIME in the form of the column's values. What is not a clock comes back as it is."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return text
    sign, hours, minutes, seconds, fraction = found.groups()
    return f"{sign}{hours:0>2}:{minutes:0>2}:{seconds or '':0>2}{fraction if fraction and fraction != '.' else ''}"


#: Numbers with anything between them, as the server accepts them; what is missing at the end is zero.
_TIMESTAMP = re.compile(r"(\d+)\D+(\d+)\D+(\d+)(?:\D+(?:(\d+)(?:\D+(?:(\d+)(?:\D+(?:(\d+)(?:\.(\d*))?)?)?)?)?)?)?")


def _cleaned(text: str) -> str:
    """Return a default of TIMESTAMP in its usual form (`BinlogDefaultValueConverter.cleanTimestamp`). Raises ValueError."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time stamp")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = f".{found[7]}" if found[7] else ""
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"


def _time_default(column: MyColumn, plan: ColumnPlan, text: str) -> Any:
    """Convert a default by way of the text that a value of the column has."""
    if text == "0" and column.base_type != "TIME":
        raise StandsForNull("a zero date")
    if column.base_type == "DATE":
        text = text[:10]
    elif column.base_type == "TIMESTAMP":
        text = _cleaned(text)
    elif column.base_type == "DATETIME":
        text = _to_seconds(text) if " " in text else f"{text} 00:00:00"
    else:
        text = "00:00:00" if text == CURRENT_TIME else _clock(text)
    convert = plan.snapshot or plan.convert
    if column.base_type == "TIMESTAMP" and column.length and text != CURRENT_TIME:
        # with all of the column's digits, however many the statement has
        whole, _, fraction = text.partition(".")
        text, convert = f"{whole}.{fraction:0<{column.length}}", plan.convert
    assert convert is not None
    value = json.loads(convert(text))
    match plan.schema.name:
        case n if n == DATE:
            return days_to_date(value)
        case n if n == TIME:
            return millis_to_time(value)
        case n if n == TIMESTAMP:
            return millis_to_timestamp(value)
    return value


FAMILIES: dict[str, Family] = {**numbers.FAMILIES, **text.FAMILIES, **temporal.FAMILIES, **binary.FAMILIES}
_PADDED = frozenset(("CHAR", "CHARACTER"))
_TEXTUAL = frozenset((*text.CHARACTER_TYPES, *text.TEXT_TYPES))


def column_plan(column: MyColumn, options: ValueOptions) -> ColumnPlan | None:
    """Return the plan by which a column is read and written.

    Returns:
        The plan, or None for a type that events leave out; the caller warns once.
    """
    if options.unified and is_octets(column):
        # as the server itself makes it, and shows it to a snapshot
        column = replace(column, type_name="BINARY" if column.base_type in _PADDED else "VARBINARY")
    family = FAMILIES.get(column.base_type)
    if family is None:
        return None
    plan = family(column, options)
    schema = plan.schema.as_optional() if column.nullable else plan.schema
    if column.has_default and column.default is not None:
        # a default is not filled up with zeros as values are
        filled = column.base_type == "BINARY"
        schema = schema.with_default(default_of(column, binary.binary(replace(column, type_name="VARBINARY"), options) if filled else plan))
    placeholder = plan.fallback if plan.placeholder == "null" and not column.nullable else plan.placeholder
    return replace(plan, schema=schema, placeholder=placeholder)


def meaning_of(column: MyColumn, options: ValueOptions) -> Meaning:
    """Return what the reader of the binlog needs to know of a column."""
    charset = (column.charset or "utf8mb4") if column.base_type in _TEXTUAL else ""
    if column.base_type == "JSON":
        # MariaDB's, which is text; MySQL's own has a form of its own in the log
        charset = "utf8mb4"
    return Meaning(unsigned=column.unsigned, charset=charset, labels=column.labels, server_json=options.unified)


def is_octets(column: MyColumn) -> bool:
    """Return whether a statement called it a text of the character set `binary`: the server has made it VARBINARY, and shows it so."""
    return column.base_type in _TEXTUAL and (column.charset or "").lower() == "binary"


def is_text(column: MyColumn) -> bool:
    """Return whether the text protocol sends characters; all else is bytes or digits."""
    return (column.base_type in _TEXTUAL and not is_octets(column)) or column.base_type in ("ENUM", "SET", "JSON")


def selected(column: MyColumn, options: ValueOptions) -> str:
    """Return a column as a snapshot selects it. The server prints six digits of a FLOAT, and all of them where it is made a DOUBLE."""
    name = quote_name(column.name)
    return f"{name} + 0e0 AS {name}" if options.unified and column.base_type == "FLOAT" else name
