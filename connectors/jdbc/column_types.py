"""Column types of schemas, and the texts of their values. Pure.

What a dialect knows of a type is a `Kind` (`GeneralDatabaseDialect.getSchemaType`, `type/**/*.java`). A schema's kind is looked for by its
logical name, by the type of the source's column where that is propagated (``__debezium.source.column.type``), and by Connect's own type, in
this order. Numbers, decimals, and dates and times as text are the same in all dialects.

Values of Connect and of Debezium's logical types become the text that databases read (`DateTimeUtils`, `type/debezium/*.java`). Dates and
times are written as text, not as the drivers' objects: years before 1 and after 9999, nanoseconds and hours beyond 24 have no object in
Python.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from connect_py.data import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct
from connect_py.data.times import date_to_days, time_to_millis, timestamp_to_millis
from connect_py.errors import DataError

DAY = 86_400_000_000_000  # nanoseconds


def date_text(days: int) -> str:
    """Return days since 1970 as ``2024-02-29``; a year before 1 ends in `` BC``."""
    year, month, day = _civil(days)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} BC"


def timestamp_text(nanos: int) -> str:
    """Return nanoseconds since 1970 as ``2024-02-29 12:34:56.789``, in UTC."""
    days, rest = divmod(nanos, DAY)
    date = date_text(days)
    era = " BC" if date.endswith(" BC") else ""
    return f"{date.removesuffix(' BC')} {time_text(rest)}{era}"


def time_text(nanos: int) -> str:
    """Return nanoseconds since midnight as ``12:34:56.789``. A duration of MySQL's TIME may be negative or longer than a day."""
    sign = "-" if nanos < 0 else ""
    seconds, fraction = divmod(abs(nanos), 1_000_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of the proleptic Gregorian calendar, for any year (Howard Hinnant's `civil_from_days`)."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def connect_date(value: Any) -> str:
    """Return the text of a `Date` of Connect."""
    return date_text(date_to_days(value))


def connect_time(value: Any) -> str:
    """Return the text of a `Time` of Connect."""
    return time_text(time_to_millis(value) * 1_000_000)


def connect_timestamp(value: Any) -> str:
    """Return the text of a `Timestamp` of Connect."""
    return timestamp_text(timestamp_to_millis(value) * 1_000_000)


def local_timestamp(text: str, zone: ZoneInfo) -> str:
    """Return a ZonedTimestamp as a zone's clocks show it. Raises DataError: it is none, or no clock shows it."""
    try:
        return datetime.datetime.fromisoformat(_micros(text)).astimezone(zone).replace(tzinfo=None).isoformat(" ")
    except (ValueError, OverflowError):
        raise DataError(f"{text} is no moment with a time zone that the database can hold") from None


def local_time(text: str, zone: ZoneInfo) -> str:
    """Return a ZonedTime as a zone's clocks show it today. Raises DataError: it is none."""
    try:
        found = datetime.time.fromisoformat(_micros(text))
        today = datetime.datetime.combine(datetime.datetime.now(datetime.UTC).date(), found)
        return today.astimezone(zone).time().isoformat()
    except (ValueError, OverflowError):
        raise DataError(f"{text} is no time of day with a time zone") from None


def _micros(text: str) -> str:
    """Return ISO 8601 with no more digits than Python reads."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"


def variable_decimal(value: Any) -> decimal.Decimal | None:
    """Return a VariableScaleDecimal. Raises DataError: it is no such struct."""
    if not isinstance(value, Struct):
        raise DataError(f"Unexpected VariableScaleDecimal value '{value}'")
    unscaled, scale = value["value"], value["scale"]
    if unscaled is None:
        return None
    number = decimal.Decimal(int.from_bytes(unscaled, "big", signed=True))
    return number.scaleb(-int(scale), decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN))


def bit_text(value: bytes, length: int | None) -> str:
    """Return Debezium's Bits, the lowest byte first, as zeros and ones; as many as are set where the length is None."""
    number = int.from_bytes(value, "little")
    return f"{number:0{length}b}"[-length:] if length else (f"{number:b}" if number else "")


def interval_text(micros: int) -> str:
    """Return a MicroDuration in seconds, as PostgreSQL reads intervals."""
    sign = "-" if micros < 0 else ""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    return f"{sign}{seconds}{f'.{fraction:06}'.rstrip('0') if fraction else ''} seconds"


def map_json(value: Any) -> str:
    """Return a map as JSON text. Raises DataError: JSON cannot hold it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(f"Failed to deserialize MAP data to JSON: {error}") from None


def hstore_text(value: Any) -> str:
    """Return a map as PostgreSQL reads hstore, quotes and backslashes escaped."""
    return ", ".join(f"{_hstore(name)} => {'NULL' if text is None else _hstore(text)}" for name, text in value.items())


def hstore_of_json(text: str) -> str:
    """Return a JSON object as hstore. Raises DataError: it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError("Failed to deserialize JSON to HSTORE")
    return hstore_text({name: item if item is None or isinstance(item, str) else json.dumps(item) for name, item in found.items()})


def _hstore(value: Any) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_text(values: Any) -> str:
    """Return a list, its elements converted already, as PostgreSQL reads arrays."""
    return "{" + ",".join(_element(value) for value in values) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return array_text(value)
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"\\\\x{bytes(value).hex()}"'
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain_wkb(data: bytes) -> bytes:
    """Return WKB without the SRID that PostGIS's extended form may hold in its header."""
    if len(data) < 9:
        return data
    order = "little" if data[0] == 1 else "big"
    kind = int.from_bytes(data[1:5], order)  # type: ignore[arg-type]
    if not kind & 0x20000000:
        return data
    return data[:1] + (kind & ~0x20000000).to_bytes(4, order) + data[9:]  # type: ignore[arg-type]


def vector_text(values: Any) -> str:
    """Return a vector as pgvector, MySQL and MariaDB read it."""
    return "[" + ",".join(repr(float(value)) for value in values) + "]"


def sparse_vector_text(value: Any) -> str:
    """Return a SparseDoubleVector as pgvector reads it."""
    pairs = ",".join(f"{index}:{float(number)!r}" for index, number in value["vector"].items())
    return f"{{{pairs}}}/{value['dimensions']}"


SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
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
        DATE: kind(date, connect_date),
        TIME: kind(time, connect_time),
        TIMESTAMP: kind(timestamp, connect_timestamp),
        _TIME + "Date": kind(date, _of_number("DateType", date_text)),
        _TIME + "Time": kind(time, _of_number("TimeType", lambda n: time_text(n * 1_000_000))),
        _TIME + "MicroTime": kind(time, _of_number("MicroTimeType", lambda n: time_text(n * 1_000))),
        _TIME + "NanoTime": kind(time, _of_number("NanoTimeType", time_text)),
        _TIME + "Timestamp": kind(timestamp, _of_number("TimestampType", lambda n: timestamp_text(n * 1_000_000))),
        _TIME + "MicroTimestamp": kind(timestamp, _of_number("MicroTimestampType", lambda n: timestamp_text(n * 1_000))),
        _TIME + "NanoTimestamp": kind(timestamp, _of_number("NanoTimestampType", timestamp_text)),
    }


def decimals(decimal: Callable[[Schema, bool], str], variable: str, convert: Convert = unchanged) -> dict[str, Kind]:
    """Return the kinds of decimals.

    Args:
        decimal: the type of a `Decimal`'s column.
        variable: the type of a VariableScaleDecimal's column.
        convert: what the driver needs.
    """

    def of_struct(value: Any) -> Any:
        found = variable_decimal(value)
        return None if found is None else convert(found)

    def struct_default(schema: Schema, value: Any, quote: Any) -> str | None:
        found = variable_decimal(value)
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
    return (None, None) if wkb is None else (plain_wkb(bytes(wkb)), int(srid or 0))
