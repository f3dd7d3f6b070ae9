"""Column types of schemas: what a dialect knows of each (`GeneralDatabaseDialect.getSchemaType`, `type/**/*.java`). Pure.

A schema's type is looked for by its logical name, by the type of the source's column where that is propagated
(``__debezium.source.column.type``), and by Connect's own type, in this order. Numbers, decimals, and dates
and times as text are the same in all dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect_py.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema
from connect_py.errors import DataError
from connectors.jdbc.types import values

SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
SOURCE_CHARSET: Final = "__debezium.source.column.character_set"
MAX_INT: Final = 2**31 - 1

Convert = Callable[[Any], Any]


def unchanged(value: Any) -> Any:
    """Return a value that the driver accepts as it is."""
    return value


@dataclass(frozen=True)
class Kind:
    """How values of some schemas are kept.

    Attributes:
        column: the column's type, of schema and whether it is part of a primary key.
        convert: makes the function from values, never None, to what the driver is given.
        default: a default's literal, None for no default; `quote` makes a literal of a text.
        marker: what stands for a value in a statement, with ``?`` for each parameter.
        width: parameters of one value; a converted value of more than one is a tuple.
    """

    column: Callable[[Schema, bool], str]
    convert: Callable[[Schema], Convert]
    default: Callable[[Schema, Any, Callable[[str], str]], str | None]
    marker: str = "?"
    width: int = 1


Quote = Callable[[str], str]


def number_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    """Return a number as it is; what is no finite number has no literal."""
    text = f"{value:f}" if hasattr(value, "as_tuple") and value.is_finite() else str(value)
    return text if text.lstrip("+-")[:1].isdigit() else None


def no_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    """Return None: the database accepts no default here, or Debezium gives none."""
    return None


def text_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    """Return the literal of a text."""
    return quote(str(value))


def by_converter(convert: Callable[[Schema], Convert]) -> Callable[[Schema, Any, Quote], str | None]:
    """Return the literal of the converted value, a text."""
    return lambda schema, value, quote: quote(str(convert(schema)(value)))


def always(convert: Convert) -> Callable[[Schema], Convert]:
    """Return the same function for every schema."""
    return lambda schema: convert


def named(text: str) -> Callable[[Schema, bool], str]:
    """Return a column type without parameters."""
    return lambda schema, is_key: text


def simple(text: str, convert: Convert = unchanged, default: Any = text_default, marker: str = "?") -> Kind:
    """Return a kind whose column type never varies."""
    return Kind(named(text), always(convert), default, marker)


def length(schema: Schema) -> int:
    """Return the length of the source's column, 0 where it is not propagated."""
    return _int(schema.parameter(SOURCE_LENGTH))


def precision(schema: Schema) -> int:
    """Return the digits of a second: the scale, or, as MySQL's source has it, the length; 0 where neither is propagated."""
    scale = schema.parameter(SOURCE_SCALE)
    return _int(scale) if scale is not None else length(schema)


def _int(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise DataError(f"A schema's parameter says {text!r} where a number must be") from None


def source_type(schema: Schema) -> str:
    """Return the type of the source's column in upper case, empty where it is not propagated."""
    return (schema.parameter(SOURCE_TYPE) or "").upper()


def allowed_values(schema: Schema) -> list[str]:
    """Return the values of an ENUM or SET; a comma in one of them has a backslash before it."""
    return [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", schema.parameter("allowed") or "")]


def decimal_digits(schema: Schema, most: int, usual: int = 38, most_scale: int = 1000) -> str:
    """Return precision and scale of a `Decimal`, such as ``10,2``."""
    scale = min(max(_int(schema.parameter("scale")), 0), most_scale)
    digits = _int(schema.parameter("connect.decimal.precision"))
    return f"{min(digits, most) if digits > 0 else max(usual, scale)},{scale}"


def bit_length(schema: Schema) -> int | None:
    """Return the bits of a Bits schema; None without a limit."""
    found = _int(schema.parameter("length"))
    return None if found in (0, MAX_INT) else found


class Kinds:
    """The kinds of a dialect.

    Args:
        by_name: kinds by logical name, or by Connect's type in upper case.
        by_source: kinds by the type of the source's column in upper case.
    """

    def __init__(self, by_name: Mapping[str, Kind], by_source: Mapping[str, Kind]) -> None:
        self._by_name = by_name
        self._by_source = by_source

    def of(self, schema: Schema) -> Kind:
        """Return the kind of a schema. Raises DataError: the database has none for it."""
        found = self._by_name.get(schema.name or "")
        if found is None and schema.parameters:
            found = self._by_source.get(source_type(schema))
        found = found or self._by_name.get(schema.type.name)
        if found is None:
            raise DataError(f"Failed to resolve column type for schema: {schema.type.name} ({schema.name})")
        return found


_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
BITS: Final = _DATA + "Bits"
ENUM: Final = _DATA + "Enum"
ENUM_SET: Final = _DATA + "EnumSet"
JSON: Final = _DATA + "Json"
UUID: Final = _DATA + "Uuid"
XML: Final = _DATA + "Xml"
LTREE: Final = _DATA + "Ltree"
TSVECTOR: Final = _DATA + "Tsvector"
FLOAT_VECTOR: Final = _DATA + "FloatVector"
DOUBLE_VECTOR: Final = _DATA + "DoubleVector"
SPARSE_VECTOR: Final = _DATA + "SparseDoubleVector"
VARIABLE_DECIMAL: Final = _DATA + "VariableScaleDecimal"
GEOMETRY: Final = _DATA + "geometry.Geometry"
GEOGRAPHY: Final = _DATA + "geometry.Geography"
POINT: Final = _DATA + "geometry.Point"
YEAR: Final = _TIME + "Year"
DURATION: Final = _TIME + "MicroDuration"
ZONED_TIME: Final = _TIME + "ZonedTime"
ZONED_TIMESTAMP: Final = _TIME + "ZonedTimestamp"


def whole(name: str) -> Convert:
    """Return the function that accepts whole numbers only, as Java's casts do."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise DataError(f"Unexpected {name} value '{value}' with type '{type(value).__name__}'")
        return value

    return check


def _of_number(name: str, convert: Callable[[int], Any]) -> Convert:
    check = whole(name)
    return lambda value: convert(check(value))


def number(column: str) -> Kind:
    """Return the kind of integers and floats."""
    return Kind(named(column), always(unchanged), number_default)


def digits_of(schema: Schema, most: int = 6) -> int:
    """Return the digits of a second of a column's type."""
    found = precision(schema)
    return found if 0 < found <= most else most


def dates_and_times(
    date: Callable[[Schema, bool], str], time: Callable[[Schema, bool], str], timestamp: Callable[[Schema, bool], str]
) -> dict[str, Kind]:
    """Return the kinds of dates, times of day and timestamps without a zone.

    Args:
        date, time, timestamp: the types of such columns.
    """

    def kind(column: Callable[[Schema, bool], str], convert: Convert) -> Kind:
        return Kind(column, always(convert), by_converter(always(convert)))

    return {
        DATE: kind(date, values.connect_date),
        TIME: kind(time, values.connect_time),
        TIMESTAMP: kind(timestamp, values.connect_timestamp),
        _TIME + "Date": kind(date, _of_number("DateType", values.date_text)),
        _TIME + "Time": kind(time, _of_number("TimeType", lambda n: values.time_text(n * 1_000_000))),
        _TIME + "MicroTime": kind(time, _of_number("MicroTimeType", lambda n: values.time_text(n * 1_000))),
        _TIME + "NanoTime": kind(time, _of_number("NanoTimeType", values.time_text)),
        _TIME + "Timestamp": kind(timestamp, _of_number("TimestampType", lambda n: values.timestamp_text(n * 1_000_000))),
        _TIME + "MicroTimestamp": kind(timestamp, _of_number("MicroTimestampType", lambda n: values.timestamp_text(n * 1_000))),
        _TIME + "NanoTimestamp": kind(timestamp, _of_number("NanoTimestampType", values.timestamp_text)),
    }


def decimals(decimal: Callable[[Schema, bool], str], variable: str, convert: Convert = unchanged) -> dict[str, Kind]:
    """Return the kinds of decimals.

    Args:
        decimal: the type of a `Decimal`'s column.
        variable: the type of a VariableScaleDecimal's column.
        convert: what the driver needs.
    """

    def of_struct(value: Any) -> Any:
        found = values.variable_decimal(value)
        return None if found is None else convert(found)

    def struct_default(schema: Schema, value: Any, quote: Any) -> str | None:
        found = values.variable_decimal(value)
        return None if found is None else number_default(schema, found, quote)

    return {
        DECIMAL: Kind(decimal, always(convert), number_default),
        VARIABLE_DECIMAL: Kind(named(variable), always(of_struct), struct_default),
    }


def as_bytes(value: Any) -> bytes:
    """Return bytes of any bytes-like type."""
    return bytes(value)


def geometry_parts(value: Any) -> tuple[Any, Any]:
    """Return WKB without an SRID in it, and the SRID. Raises DataError: it is no geometry."""
    schema = getattr(value, "schema", None)
    if schema is None or schema.field("wkb") is None:
        raise DataError(f"Unexpected GeometryType value '{value}' with type '{type(value).__name__}'")
    wkb, srid = value["wkb"], value["srid"] if schema.field("srid") else None
    return (None, None) if wkb is None else (values.plain_wkb(bytes(wkb)), int(srid or 0))
