"""The kinds that all dialects share: numbers, and moments as text. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connect_py.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema
from connect_py.errors import DataError
from connectors.jdbc.types import values
from connectors.jdbc.types.kinds import Convert, Kind, always, by_converter, named, number_default, precision, unchanged

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
    """The function that takes whole numbers only, as Java's casts do."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise DataError(f"Unexpected {name} value '{value}' with type '{type(value).__name__}'")
        return value

    return check


def _of_number(name: str, convert: Callable[[int], Any]) -> Convert:
    check = whole(name)
    return lambda value: convert(check(value))


def number(column: str) -> Kind:
    """Integers and floats."""
    return Kind(named(column), always(unchanged), number_default)


def digits_of(schema: Schema, most: int = 6) -> int:
    """The digits of a second of a column's type."""
    found = precision(schema)
    return found if 0 < found <= most else most


def moments(
    date: Callable[[Schema, bool], str], time: Callable[[Schema, bool], str], timestamp: Callable[[Schema, bool], str]
) -> dict[str, Kind]:
    """The kinds of dates, times of day and moments without a zone.

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
        _TIME + "Timestamp": kind(timestamp, _of_number("TimestampType", lambda n: values.moment_text(n * 1_000_000))),
        _TIME + "MicroTimestamp": kind(timestamp, _of_number("MicroTimestampType", lambda n: values.moment_text(n * 1_000))),
        _TIME + "NanoTimestamp": kind(timestamp, _of_number("NanoTimestampType", values.moment_text)),
    }


def decimals(decimal: Callable[[Schema, bool], str], variable: str, convert: Convert = unchanged) -> dict[str, Kind]:
    """The kinds of decimals.

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
    """Bytes of any Python type of them."""
    return bytes(value)


def geometry_parts(value: Any) -> tuple[Any, Any]:
    """WKB without an SRID in it, and the SRID. Raises DataError: it is no geometry."""
    schema = getattr(value, "schema", None)
    if schema is None or schema.field("wkb") is None:
        raise DataError(f"Unexpected GeometryType value '{value}' with type '{type(value).__name__}'")
    wkb, srid = value["wkb"], value["srid"] if schema.field("srid") else None
    return (None, None) if wkb is None else (values.plain_wkb(bytes(wkb)), int(srid or 0))
