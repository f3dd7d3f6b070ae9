"""Integers, floats, decimals, bits and years."""

from __future__ import annotations

import struct
from decimal import Decimal

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.java_text import double_text, float_text
from connect_py.data.schema import BOOLEAN, FLOAT32, FLOAT64, INT16, INT32, INT64, STRING, decimal_schema
from connectors.engine.encode.plan import ColumnPlan, Convert, Stored
from connectors.engine.encode.values import base64_of_bytes, base64_of_integer, decimal_plan, json_number
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn
from connectors.mysql.types.base import Family

_FLOAT = struct.Struct("<f")
#: Schemas of signed and of unsigned integers.
_INTEGERS = {
    "TINYINT": (INT16, INT16),
    "SMALLINT": (INT16, INT32),
    "MEDIUMINT": (INT32, INT32),
    "INT": (INT32, INT64),
    "INTEGER": (INT32, INT64),
    "BIGINT": (INT64, INT64),
}
_INTEGER = (Stored("integer", "$"),)
_TRUTH = (Stored("integer", "'true' if $ else 'false'"),)
#: FLOAT(p) up to this many bits is a single.
_SINGLE_BITS = 24
YEAR = Schema(Type.INT32, name="io.debezium.time.Year", version=1)


def integer(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of integers of all sizes; the server prints those with ZEROFILL with leading zeros."""
    if column.base_type == "BIGINT" and column.unsigned:
        return _big_unsigned(column, options)
    schema = _INTEGERS[column.base_type][column.unsigned]
    if "ZEROFILL" in column.type_name:
        return ColumnPlan(column.name, schema, lambda text: str(int(text)), "int($)", stored=_INTEGER, fallback="0")
    return ColumnPlan(column.name, schema, stored=_INTEGER, fallback="0")


def _big_unsigned(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of BIGINT UNSIGNED: `long` lets the largest half wrap around, as a Java long does; `precise` is a decimal."""
    if options.bigint_mode == "precise":
        return ColumnPlan(
            column.name,
            decimal_schema(0, 20),
            lambda text: f'"{base64_of_integer(int(text))}"',
            "base64_of_integer(int($))",
            quoted=True,
            helpers={"base64_of_integer": base64_of_integer},
            stored=(Stored("integer", "base64_of_integer($)"),),
            numeric=lambda text: str(int(text)),
            fallback='"AA=="',
        )
    return ColumnPlan(
        column.name,
        INT64,
        lambda text: str(wrapped(int(text))),
        "wrapped_long(int($))",
        helpers={"wrapped_long": wrapped},
        stored=(Stored("integer", "wrapped_long($)"),),
        fallback="0",
    )


def wrapped(value: int) -> int:
    """Return the 64-bit number with the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def boolean(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of BOOL, which only a captured statement can say: the server calls it tinyint(1)."""
    return ColumnPlan(column.name, BOOLEAN, lambda text: "false" if int(text) == 0 else "true", stored=_TRUTH, fallback="false")


def single(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of FLOAT and FLOAT(p). With digits of a fraction, or more bits, the schema is that of a double."""
    if column.scale is not None:
        return _float(column, FLOAT64, lambda text: json_number(double_text(_as_single(text))))
    if column.length is not None and column.length > _SINGLE_BITS:
        return double(column, options)
    return _single(column)


def _single(column: MyColumn) -> ColumnPlan:
    return _float(column, FLOAT32, lambda text: json_number(float_text(float(text))), quick="json_number($)")


def _float(column: MyColumn, schema: Schema, convert: Convert, *, quick: str = "") -> ColumnPlan:
    """Convert a FLOAT's text. The reader of the log prints floats as Java does, so their texts stay; the server prints them in its own
    way."""
    if not quick:
        return ColumnPlan(column.name, schema, convert, fallback="0.0")
    return ColumnPlan(
        column.name, schema, convert, quick, helpers={"json_number": json_number}, snapshot=convert, quick_copy="", fallback="0.0"
    )


def _as_single(text: str) -> float:
    value: float = _FLOAT.unpack(_FLOAT.pack(float(text)))[0]
    return value


def double(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of DOUBLE, with or without digits."""
    return _float(column, FLOAT64, lambda text: json_number(double_text(float(text))), quick="json_number($)")


def real(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of REAL, a single where a statement says it; the server itself calls it double, and logs one."""
    return _float(column, FLOAT32, lambda text: json_number(float_text(float(text))))


def decimal(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan for `decimal.handling.mode`."""
    precision, scale = column.length or 10, column.scale or 0
    match options.decimal_mode:
        case "string":
            zero = f"{Decimal(0).scaleb(-scale):f}"
            if "ZEROFILL" in column.type_name:
                bare = "without_padding($)"
                helpers = {"without_padding": without_padding}
                return ColumnPlan(column.name, STRING, _quoted_bare, bare, quoted=True, helpers=helpers, fallback=f'"{zero}"')
            return ColumnPlan(column.name, STRING, quote, "$", quoted=True, fallback=f'"{zero}"')
        case "double":
            return ColumnPlan(column.name, FLOAT64, lambda text: double_text(float(text)), fallback="0.0")
    return decimal_plan(column.name, decimal_schema(scale, precision), scale)


def without_padding(text: str) -> str:
    """Return a number without the zeros that the server puts before those with ZEROFILL."""
    bare = text.lstrip("0")
    return bare if bare[:1].isdigit() else f"0{bare}"


def _quoted_bare(text: str) -> str:
    return quote(without_padding(text))


def bit(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of BIT: BIT(1) is a boolean, BIT(n) as many bytes as n needs, little-endian. The text holds the bytes, big-endian."""
    if (column.length or 1) == 1:
        return ColumnPlan(column.name, BOOLEAN, lambda text: "true" if text.strip("\0") else "false", fallback="false")
    length = column.length or 1
    size = (length + 7) // 8
    schema = Schema(Type.BYTES, name="io.debezium.data.Bits", version=1, parameters=(("length", str(length)),))
    return ColumnPlan(column.name, schema, lambda text: f'"{base64_of_bytes(text.encode("latin-1")[::-1].ljust(size, bytes(1)))}"')


def year(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Convert a year. Year 0 is 1900 in Debezium's stream and 2000 in its snapshots."""
    return ColumnPlan(
        column.name,
        YEAR,
        lambda text: str(int(text) or 1900),
        snapshot=None if options.unified else lambda text: str(int(text) or 2000),
        quick="nonzero_year($)",
        helpers={"nonzero_year": _nonzero},
        fallback="0",
    )


def _nonzero(text: str) -> int:
    value = int(text)
    if value == 0:
        raise ValueError(text)
    return value


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_INTEGERS, integer),
    **dict.fromkeys(("BOOL", "BOOLEAN"), boolean),
    "FLOAT": single,
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION"), double),
    "REAL": real,
    **dict.fromkeys(("DECIMAL", "DEC", "FIXED", "NUMERIC"), decimal),
    "BIT": bit,
    "YEAR": year,
}
