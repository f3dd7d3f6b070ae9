"""From Connect schemas to Spark: by which type a JSON value is read, what the table stores, and the expression between the two.

Pure: everything here is text made from a parsed schema (`JsonSchema.java` has the form), so it is tested without Spark. Expressions never
turn a value that they cannot represent into null; they raise, and the batch is not committed.

Decimals are two's complement numbers. Up to sixteen bytes go through Spark's whole-number arithmetic; longer ones, which no decimal of
Spark's or of a format's holds, are divided in groups of nine digits, which takes about ten times as long.

Geometries are PostGIS's extended WKB, in which a value names its spatial reference, or text. EWKB is WKB with a flag in the type's
number, followed by the reference's number, both in the byte order of the first byte. What Debezium reads from PostGIS has them already;
MySQL's does not. Text is made by a function that the session must have (`spark_sink.spark.functions`). It takes arrays, since Spark does
not call Python functions within lambda functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connect_py.errors import DataError

#: A parsed schema, as JsonConverter writes it.
SchemaJson = Mapping[str, Any]
Expression = Callable[[str], str]

#: Iceberg refuses to read tables with data columns of these names (`MetadataColumns.java`).
RESERVED_NAMES = frozenset({"_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number"})


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """What configurations decide about types.

    Attributes:
        time_mode: ``iso-string`` or ``micros``.
        timestamp_type: of Connect's own Timestamp: ``timestamp`` or ``timestamp_ntz``.
        decimals_numeric: records hold decimals as JSON numbers (``decimal.format=NUMERIC``), not base64.
        infinity: of dates and timestamps: ``null``, ``clamp`` (to the first or last instant of the years 1 to 9999) or ``fail``.
        variable_decimal: ``string``, ``double`` or ``decimal(p,s)``, for decimals that each have a scale of their own.
        overflow: of decimals that no column holds: ``string``, ``double`` or ``fail``.
        json: ``string`` or ``variant``.
        bits: ``binary`` or ``bigint``.
        geometry: ``struct``, ``ewkb`` or ``wkt``.
        nested_as_variant: whether structs, maps and arrays are VARIANT.
        placeholder: what stands for a value that the source did not send, which is no JSON.
    """

    time_mode: str = "iso-string"
    timestamp_type: str = "timestamp"
    decimals_numeric: bool = False
    infinity: str = "null"
    variable_decimal: str = "string"
    overflow: str = "string"
    json: str = "string"
    bits: str = "binary"
    geometry: str = "struct"
    nested_as_variant: bool = False
    placeholder: str = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How one value is read and stored.

    Attributes:
        read: the type that `from_json` is given.
        spark: the table's type, in the form of Spark's `simpleString`, names of struct fields quoted.
        convert: from an SQL expression of type `read` to one of type `spark`.
    """

    read: str
    spark: str
    convert: Expression

    @property
    def same(self) -> bool:
        """Whether the value is stored as it was read."""
        return self.convert is as_is


def quote(name: str) -> str:
    """Quote an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Quote an SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def column_name(field: str) -> str:
    """Return a table's column for a record's field: a reserved name gets a trailing underscore."""
    return field + "_" if field.lower() in RESERVED_NAMES else field


def column_type(schema: SchemaJson, options: TypeOptions, depth: int = 0) -> ColumnType:
    """Return how values of a schema are read and stored.

    Args:
        depth: nesting of arrays and maps around the value; keeps names of lambda variables apart.

    Raises:
        DataError: this sink has no rule for the schema.
    """
    found = _type_of(schema, options, depth)
    nested = schema.get("type") in ("struct", "map", "array") and found.spark.startswith(("struct<", "map<", "array<"))
    if options.nested_as_variant and nested and not str(schema.get("name")).startswith((_GEOMETRY, _SPARSE_VECTOR)):
        return ColumnType(found.read, "variant", lambda value: f"to_variant_object({found.convert(value)})")
    return found


def _type_of(schema: SchemaJson, options: TypeOptions, depth: int) -> ColumnType:
    name, kind = str(schema.get("name")), schema.get("type")
    if name.startswith(_GEOMETRY) and options.geometry == "ewkb":
        return ColumnType("struct<`wkb`:binary,`srid`:int>", "binary", ewkb_sql)
    if name.startswith(_GEOMETRY) and options.geometry == "wkt":
        if depth:
            raise DataError("geometries within nested arrays or maps cannot be had as text; set lakehouse.geometry.mode to struct or ewkb")
        return ColumnType("struct<`wkb`:binary>", "string", wkt_sql)
    if name == "org.apache.kafka.connect.data.Decimal":
        return _decimal(schema, options)
    if name == "io.debezium.data.Bits" and options.bits == "bigint":
        return _bits(_parameter(schema, "length", 0))
    if name in LOGICAL:
        return LOGICAL[name](options)
    if kind in PLAIN:
        return ColumnType(PLAIN[kind], PLAIN[kind], as_is)
    if kind == "array" and options.geometry == "wkt" and not depth and str(schema["items"].get("name")).startswith(_GEOMETRY):
        return ColumnType("array<struct<`wkb`:binary>>", "array<string>", wkts_sql)
    if kind == "array":
        return array_type(_type_of(schema["items"], options, depth + 1), depth)
    if kind == "map":
        if schema["keys"].get("type") != "string":
            raise DataError(f"Maps whose keys are {schema['keys'].get('type')} are not supported; only string keys are.")
        return _map(_type_of(schema["values"], options, depth + 1), depth)
    if kind == "struct":
        return struct_type({field["field"]: _type_of(field, options, depth) for field in schema["fields"]})
    raise DataError(f"Schemas of type {kind} are not supported.")


def as_is(value: str) -> str:
    """Return the value as it was read."""
    return value


def logical_type(name: str, options: TypeOptions) -> ColumnType | None:
    """Return how values of a logical type are read, by its schema's name; Decimal's with precision and scale: ``…Decimal(10,2)``."""
    if found := re.fullmatch(r"org\.apache\.kafka\.connect\.data\.Decimal\((\d+),\s*(\d+)\)", name):
        return _decimal({"parameters": {"connect.decimal.precision": found[1], "scale": found[2]}}, options)
    return LOGICAL[name](options) if name in LOGICAL else None


_GEOMETRY = "io.debezium.data.geometry."
_SPARSE_VECTOR = "io.debezium.data.SparseDoubleVector"

PLAIN = {
    "boolean": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "binary",
}


# -- compound types ---------------------------------------------------------------------------------------------------------------


def array_type(element: ColumnType, depth: int) -> ColumnType:
    """Return an array of values of a type; `depth` as of `column_type`."""
    if element.same:
        return ColumnType(f"array<{element.read}>", f"array<{element.spark}>", as_is)
    item = f"e{depth}"
    return ColumnType(
        f"array<{element.read}>", f"array<{element.spark}>", lambda value: f"transform({value}, {item} -> {element.convert(item)})"
    )


def _map(entry: ColumnType, depth: int) -> ColumnType:
    read, spark = f"map<string,{entry.read}>", f"map<string,{entry.spark}>"
    if entry.same:
        return ColumnType(read, spark, as_is)
    key, item = f"k{depth}", f"e{depth}"
    return ColumnType(read, spark, lambda value: f"transform_values({value}, ({key}, {item}) -> {entry.convert(item)})")


def struct_type(fields: Mapping[str, ColumnType]) -> ColumnType:
    """Return a struct of values of types by field."""
    read = "struct<" + ",".join(f"{quote(name)}:{field.read}" for name, field in fields.items()) + ">"
    spark = "struct<" + ",".join(f"{quote(name)}:{field.spark}" for name, field in fields.items()) + ">"
    if all(field.same for field in fields.values()):
        return ColumnType(read, spark, as_is)

    def convert(value: str) -> str:
        parts = ", ".join(f"{literal(name)}, {field.convert(f'{value}.{quote(name)}')}" for name, field in fields.items())
        return f"IF({value} IS NULL, NULL, named_struct({parts}))"

    return ColumnType(read, spark, convert)


# -- decimals: two's complement, big endian ------------------------------------------------------------------------------------------


def _decimal(schema: SchemaJson, options: TypeOptions) -> ColumnType:
    scale, precision = _parameter(schema, "scale", 0), _parameter(schema, "connect.decimal.precision", MAX_PRECISION)
    if abs(scale) > MAX_SCALE or not 1 <= precision <= MAX_SCALE:
        raise DataError(f"no decimal has a scale of {scale} and a precision of {precision}")
    if scale < 0:
        precision, zeros, scale = precision - scale, -scale, 0
    else:
        precision, zeros = max(precision, scale), 0
    if precision > MAX_PRECISION:
        if options.overflow == "fail":
            raise DataError(f"a decimal of {precision} digits fits no column; see lakehouse.decimal.overflow")
        read = "string" if options.decimals_numeric else "binary"
        text: Expression = as_is if options.decimals_numeric else lambda value: decimal_text(value, str(scale - zeros))
        if options.overflow == "double":
            return ColumnType(read, "double", lambda value: f"CAST({text(value)} AS DOUBLE)")
        return ColumnType(read, "string", text)
    spark = f"decimal({precision},{scale})"
    if options.decimals_numeric:
        return ColumnType(spark, spark, as_is)
    if zeros:
        tens = f"'{'0' * zeros}'"
        return ColumnType("binary", spark, lambda value: f"CAST(concat(CAST({wide_decimal(value)} AS STRING), {tens}) AS {spark})")
    return ColumnType("binary", spark, lambda value: scaled_decimal(value, precision, scale))


def _parameter(schema: SchemaJson, name: str, default: int) -> int:
    value = (schema.get("parameters") or {}).get(name, default)
    try:
        return int(value)
    except (ValueError, TypeError):
        raise DataError(f"its parameter {name} is no whole number: {value!r:.60}") from None


def _variable_scale(options: TypeOptions) -> ColumnType:
    def convert(value: str) -> str:
        text = decimal_text(f"{value}.`value`", f"{value}.`scale`")
        too_long = f"{value}.`scale` NOT BETWEEN -{MAX_SCALE} AND {MAX_SCALE}"
        text = f"IF({too_long}, raise_error(concat('no decimal has a scale of ', {value}.`scale`)), {text})"
        return text if options.variable_decimal == "string" else f"CAST({text} AS {options.variable_decimal})"

    return ColumnType("struct<`scale`:int,`value`:binary>", options.variable_decimal, convert)


def _sparse_vector(options: TypeOptions) -> ColumnType:
    """Return the type of pgvector's sparsevec, whose map is pairs in JSON, since its keys are numbers; a variant cannot hold such a map."""
    read = "struct<`dimensions`:int,`vector`:array<array<double>>>"

    def convert(value: str) -> str:
        numbers = f"map_from_entries(transform({value}.`vector`, p -> struct(CAST(p[0] AS INT), p[1])))"
        return f"IF({value} IS NULL, NULL, named_struct('dimensions', {value}.`dimensions`, 'vector', {numbers}))"

    return ColumnType(read, "struct<`dimensions`:int,`vector`:map<int,double>>", convert)


def _bits(length: int) -> ColumnType:
    """Return the type of little-endian bits. A column of more than 63 bits, or of an unknown number, stays binary."""
    if not 0 < length < 64:
        return ColumnType("binary", "binary", as_is)
    digits = "concat_ws('', reverse(regexp_extract_all(hex({0}), '..', 0)))"
    return ColumnType("binary", "bigint", f"IF({{0}} IS NULL, NULL, CAST(conv({digits}, 16, 10) AS BIGINT))".format)


def _json(options: TypeOptions) -> ColumnType:
    return variant(options) if options.json == "variant" else ColumnType("string", "string", as_is)


def variant(options: TypeOptions) -> ColumnType:
    """Return JSON text as VARIANT; the placeholder, which is not JSON, as a text."""
    placeholder, text = literal(options.placeholder), literal(json.dumps(options.placeholder))
    return ColumnType("string", "variant", lambda value: f"parse_json(IF({value} = {placeholder}, {text}, {value}))")


# -- dates and times -----------------------------------------------------------------------------------------------------------------

#: Values that stand for infinity, and those for minus infinity.
_Infinite = tuple[tuple[int | str, ...], tuple[int | str, ...]]

#: What Debezium 3.6 sends for PostgreSQL's infinity and -infinity, by unit (recorded from the reference): the driver's constants
#: (`PGStatement.DATE_POSITIVE_INFINITY`) as microseconds, a thousandth of them as milliseconds, the ends of 64 bits as nanoseconds, and for
#: dates what is left in 32 bits, or in snapshots other days that no calendar has. Texts show the same moments.
_INFINITE_MILLIS: _Infinite = (9223372036825200, 9223372036825200000), (-9223372036832400, -9223372036832400000)
_INFINITE_MICROS: _Infinite = (9223372036825200000,), (-9223372036832400000,)
_INFINITE_NANOS: _Infinite = (9223372036854775807,), (-9223372036854775808,)
_INFINITE_DAYS: _Infinite = (-2147472692, -622191234), (-2147472691, -625821272)
_INFINITE_ISO_DATES: _Infinite = ("-5877611-06-21Z", "+292278994-08-16Z"), ("-5877611-06-22Z", "+292269055-12-02Z")
_INFINITE_ISO_TIMESTAMPS: _Infinite = ("+294247-01-10T04:00:25.2Z",), ("-290308-12-21T19:59:27.6Z",)


def _bounded(value: str, infinite: _Infinite, spark: str, otherwise: str, options: TypeOptions) -> str:
    """Return SQL of a date or timestamp in which some values stand for infinity and minus infinity."""
    last, first = _ends(spark, options)
    after, before = (f"{value} IN ({', '.join(literal(it) if isinstance(it, str) else str(it) for it in side)})" for side in infinite)
    return f"CASE WHEN {after} THEN {last} WHEN {before} THEN {first} ELSE {otherwise} END"


def _ends(spark: str, options: TypeOptions) -> tuple[str, str]:
    """Return what infinity and minus infinity become."""
    match options.infinity:
        case "clamp":
            time = ("", "") if spark == "date" else (" 23:59:59.999999", " 00:00:00")
            return f"CAST('9999-12-31{time[0]}' AS {spark})", f"CAST('0001-01-01{time[1]}' AS {spark})"
        case "fail":
            failure = f"CAST(raise_error('infinity fits no column; see lakehouse.temporal.infinity') AS {spark})"
            return failure, failure
        case _:
            return "NULL", "NULL"


def _floor(value: str, divisor: int) -> str:
    return f"(({value} - pmod({value}, {divisor}L)) div {divisor}L)"


def timestamp_of_millis(spark: str, options: TypeOptions) -> ColumnType:
    """Return numbers of milliseconds as ``timestamp`` or ``timestamp_ntz``."""
    return _instant("{} * 1000L".format, _INFINITE_MILLIS, spark)(options)


def _instant(to_micros: Expression, infinite: _Infinite, spark: str) -> Callable[[TypeOptions], ColumnType]:
    def convert(value: str, options: TypeOptions) -> str:
        instant = f"timestamp_micros({to_micros(value)})"
        instant = instant if spark == "timestamp" else f"CAST({instant} AS TIMESTAMP_NTZ)"
        return _bounded(value, infinite, spark, instant, options)

    return lambda options: ColumnType("bigint", spark, lambda value: convert(value, options))


def _time(read: str, to_micros: Expression) -> Callable[[TypeOptions], ColumnType]:
    def iso(value: str) -> str:
        micros = f"abs({to_micros(value)})"
        hours, minutes, seconds = f"{micros} div 3600000000", f"{micros} div 60000000 % 60", f"{micros} div 1000000 % 60"
        hours_text = f"IF({hours} < 10, concat('0', {hours}), CAST({hours} AS STRING))"
        fraction = f"IF({micros} % 1000000 = 0, '', concat('.', lpad(CAST({micros} % 1000000 AS STRING), 6, '0')))"
        two = "lpad(CAST({} AS STRING), 2, '0')".format
        return f"concat(IF({value} < 0, '-', ''), {hours_text}, ':', {two(minutes)}, ':', {two(seconds)}, {fraction})"

    def build(options: TypeOptions) -> ColumnType:
        if options.time_mode == "micros":
            return ColumnType(read, "bigint", to_micros)
        return ColumnType(read, "string", iso)

    return build


def _zoned_timestamp(options: TypeOptions) -> ColumnType:
    last, first = _ends("timestamp", options)

    def convert(value: str) -> str:
        # years of seven digits are what older versions made of infinity: PostgreSQL's own end with 294276
        after, before = f"{value} RLIKE '^([+][0-9]{{7,}}-|infinity$)'", f"{value} RLIKE '^-([0-9]{{7,}}-|infinity$)'"
        odd = f"{value} NOT BETWEEN '0' AND '9~'"  # nearly all begin with a digit, and RLIKE takes longer than the conversion
        return f"CASE WHEN {odd} AND {after} THEN {last} WHEN {odd} AND {before} THEN {first} ELSE CAST({value} AS TIMESTAMP) END"

    return ColumnType("string", "timestamp", convert)


def _date(options: TypeOptions) -> ColumnType:
    return ColumnType("int", "date", lambda value: _bounded(value, _INFINITE_DAYS, "date", f"date_from_unix_date({value})", options))


def _iso(spark: str, infinite: _Infinite) -> Callable[[TypeOptions], ColumnType]:
    def convert(value: str, options: TypeOptions) -> str:
        return _bounded(value, infinite, spark, f"CAST(trim(TRAILING 'Z' FROM {value}) AS {spark})", options)

    return lambda options: ColumnType("string", spark, lambda value: convert(value, options))


def _simple(read: str, spark: str, convert: Expression = as_is) -> Callable[[TypeOptions], ColumnType]:
    return lambda _: ColumnType(read, spark, convert)


_TEXT = _simple("string", "string")
_MILLIS = _time("int", "(CAST({} AS BIGINT) * 1000L)".format)

LOGICAL: Mapping[str, Callable[[TypeOptions], ColumnType]] = {
    "org.apache.kafka.connect.data.Date": _date,
    "org.apache.kafka.connect.data.Time": _MILLIS,
    "org.apache.kafka.connect.data.Timestamp": lambda options: timestamp_of_millis(options.timestamp_type, options),
    "io.debezium.time.Date": _date,
    "io.debezium.time.IsoDate": _iso("date", _INFINITE_ISO_DATES),
    "io.debezium.time.Time": _MILLIS,
    "io.debezium.time.MicroTime": _time("bigint", as_is),
    "io.debezium.time.NanoTime": _time("bigint", "({} div 1000L)".format),
    "io.debezium.time.IsoTime": _TEXT,
    "io.debezium.time.ZonedTime": _TEXT,
    "io.debezium.time.Timestamp": lambda options: timestamp_of_millis("timestamp_ntz", options),
    "io.debezium.time.MicroTimestamp": _instant(as_is, _INFINITE_MICROS, "timestamp_ntz"),
    "io.debezium.time.NanoTimestamp": _instant(lambda value: _floor(value, 1000), _INFINITE_NANOS, "timestamp_ntz"),
    "io.debezium.time.IsoTimestamp": _iso("timestamp_ntz", _INFINITE_ISO_TIMESTAMPS),
    "io.debezium.time.ZonedTimestamp": _zoned_timestamp,
    "io.debezium.time.Year": _simple("int", "int"),
    "io.debezium.time.Interval": _TEXT,
    "io.debezium.time.MicroDuration": _simple("bigint", "bigint"),
    "io.debezium.time.NanoDuration": _simple("bigint", "bigint", "({} div 1000L)".format),
    "io.debezium.data.VariableScaleDecimal": _variable_scale,
    _SPARSE_VECTOR: _sparse_vector,
    "io.debezium.data.Json": _json,
    "io.debezium.data.Uuid": _TEXT,
    "io.debezium.data.Xml": _TEXT,
    "io.debezium.data.Enum": _TEXT,
    "io.debezium.data.EnumSet": _TEXT,
    "io.debezium.data.Ltree": _TEXT,
    "io.debezium.data.Tsvector": _TEXT,
    "io.debezium.data.Bits": _simple("binary", "binary"),
}


#: Spark's and both table formats' widest decimal.
MAX_PRECISION = 38

#: PostgreSQL's NUMERIC, the widest, has up to 131,072 digits before and 16,383 after the point (its manual, "Numeric Types"). A scale is
#: also a number of zeros that are written, so that one of a billion would fill the memory.
MAX_SCALE = 131_072 + 16_383

#: Bytes that surely have no more than `MAX_PRECISION` digits.
_SURE_BYTES = 15

#: A group of digits; times 65536 it is far below what a BIGINT holds.
_GROUP = 1_000_000_000


def scaled_decimal(value: str, precision: int, scale: int) -> str:
    """Return a binary as DECIMAL(precision, scale); precision is at most `MAX_PRECISION`. A number that is too large raises."""
    unscaled = f"CAST({_narrow_decimal(value)} AS decimal({precision},0))" if precision <= 18 else wide_decimal(value)
    if scale == 0:
        return f"CAST({unscaled} AS decimal({precision},0))"
    if precision + scale + 1 <= MAX_PRECISION:  # a product of decimals(p,0) and (s,s) has the type (p+s+1,s), so nothing is rounded
        unscaled = unscaled if precision <= 18 else f"CAST({unscaled} AS decimal({precision},0))"
        return f"CAST({unscaled} * 0.{'1'.rjust(scale, '0')}BD AS decimal({precision},{scale}))"
    return f"CAST({_plain_text(wide_decimal(value), str(scale))} AS decimal({precision},{scale}))"


def decimal_text(value: str, scale: str) -> str:
    """Return a binary of any length as text without an exponent (java.math.BigDecimal.toPlainString); `scale` is an SQL expression."""
    return f"IF(length({value}) <= {_SURE_BYTES}, {_plain_text(wide_decimal(value), scale)}, {_long_decimal_text(value, scale)})"


def wide_decimal(value: str) -> str:
    """Return up to sixteen bytes as DECIMAL(38,0). Negative numbers go through their complement, 0 - ~v - 1: no step leaves 38 digits.

    Spark's unary minus and abs round to 34 digits (Scala's default context; found with 4.1.3), so neither is used here or below.
    """
    padded = f"lpad({_magnitude(value)}, 32, '0')"
    high, low = (f"CAST(conv(substring({padded}, {start}, 16), 16, 10) AS decimal(20,0))" for start in (1, 17))
    magnitude = f"({high} * 18446744073709551616BD + {low})"
    return _at_most(value, 16, f"IF(hex({value}) >= '8', 0BD - {magnitude} - 1BD, {magnitude})")


def _magnitude(value: str) -> str:
    """Return the hexadecimal digits of a number; of a negative one those of its complement."""
    digits = f"hex({value})"
    return f"IF({digits} >= '8', translate({digits}, '0123456789ABCDEF', 'FEDCBA9876543210'), {digits})"


def _narrow_decimal(value: str) -> str:
    """Return up to eight bytes as BIGINT: the sign's nibble fills the left, and `conv` to base -10 reads 64 bits as signed."""
    digits = f"hex({value})"
    padded = f"lpad({digits}, 16, IF({digits} >= '8', 'F', '0'))"
    return _at_most(value, 8, f"CAST(conv({padded}, 16, -10) AS BIGINT)")


def _at_most(value: str, size: int, then: str) -> str:
    why = f"concat('a decimal of ', length({value}), ' bytes does not fit its column')"
    return f"CASE WHEN length({value}) > {size} THEN raise_error({why}) ELSE {then} END"


def _plain_text(unscaled: str, scale: str) -> str:
    """Return the text of unscaled × 10^-scale without an exponent; both are SQL expressions, the first a decimal."""
    digits = f"trim(LEADING '-' FROM CAST({unscaled} AS STRING))"
    return _pointed(digits, f"{unscaled} < 0", scale)


def _pointed(digits: str, negative: str, scale: str) -> str:
    sign = f"IF({negative}, '-', '')"
    padded = f"concat(repeat('0', greatest(0, {scale} + 1 - length({digits}))), {digits})"
    shifted = f"IF({digits} = '0', '0', concat({sign}, {digits}, repeat('0', -({scale}))))"
    point = f"concat({sign}, substring({padded}, 1, length({padded}) - {scale}), '.', right({padded}, {scale}))"
    return f"CASE WHEN {scale} <= 0 THEN {shifted} ELSE {point} END"


def _long_decimal_text(value: str, scale: str) -> str:
    """Return a long number's text.

    It is computed in groups of nine decimal digits, the lowest first: each step multiplies by 65536 and adds the next two bytes. At the end
    of a negative number one is added, since its complement lacks one.
    """
    negative = f"hex({value}) >= '8'"
    padded = f"lpad({_magnitude(value)}, length({value}) * 2 + 2 * (length({value}) % 2), '0')"
    pairs = f"transform(sequence(1, length({padded}), 4), i -> struct(65536L m, CAST(conv(substring({padded}, i, 4), 16, 10) AS BIGINT) a))"
    one_more = f"IF({negative}, array(struct(1L m, 1L a)), slice(array(struct(1L m, 1L a)), 1, 0))"
    start = "struct({carry} carry, slice(array(0L), 1, 0) done)".format
    term = "g * p.m + s.carry"
    step = (
        f"aggregate(n, {start(carry='p.a')}, "
        f"(s, g) -> struct(({term}) div {_GROUP}L carry, concat(s.done, array(({term}) % {_GROUP}L)) done), "
        "s -> IF(s.carry > 0, concat(s.done, array(s.carry)), s.done))"
    )
    joined = "concat_ws('', transform(reverse(n), g -> lpad(CAST(g AS STRING), 9, '0')))"
    digits = f"coalesce(nullif(trim(LEADING '0' FROM {joined}), ''), '0')"
    whole = f"aggregate(concat({pairs}, {one_more}), array(0L), (n, p) -> {step}, n -> {digits})"
    return f"element_at(transform(array({whole}), d -> {_pointed('d', negative, scale)}), 1)"


#: Of the type's most significant byte (`liblwgeom.h.in`, WKBSRIDFLAG 0x20000000).
_HAS_SRID = 32

#: A session's function from an array of WKBs to their texts, or to why there are none (`spark_sink.spark.functions`).
WKT_UDF = "connect_py_wkt"


def ewkb_sql(value: str) -> str:
    """Return SQL of a struct of wkb and srid as one binary; without a srid it is the WKB."""
    digits = f"hex({value}.`wkb`)"
    little, srid = f"{digits} LIKE '01%'", f"lpad(hex({value}.`srid`), 8, '0')"
    flags = f"CAST(conv(IF({little}, substr({digits}, 9, 2), substr({digits}, 3, 2)), 16, 10) AS INT)"
    flagged = f"lpad(hex({flags} | {_HAS_SRID}), 2, '0')"
    turned = f"concat(substr({srid}, 7, 2), substr({srid}, 5, 2), substr({srid}, 3, 2), substr({srid}, 1, 2))"
    of_little = f"concat(substr({digits}, 1, 8), {flagged}, {turned}, substr({digits}, 11))"
    of_big = f"concat(substr({digits}, 1, 2), {flagged}, substr({digits}, 5, 6), {srid}, substr({digits}, 11))"
    return (
        f"CASE WHEN {value}.`srid` IS NULL OR ({flags} & {_HAS_SRID}) <> 0 THEN {value}.`wkb` "
        f"ELSE unhex(IF({little}, {of_little}, {of_big})) END"
    )


def wkt_sql(value: str) -> str:
    """Return SQL of a struct with wkb as well-known text; what is no geometry raises."""
    lacks = f"{value} IS NOT NULL AND {value}.`wkb` IS NULL"
    return f"IF({lacks}, raise_error('a geometry has no wkb'), {_geometry_texts(f'array({value}.`wkb`)')}[0])"


def wkts_sql(value: str) -> str:
    """Return SQL of an array of structs with wkb as an array of well-known texts."""
    lacks = f"exists({value}, g -> g IS NOT NULL AND g.`wkb` IS NULL)"
    return f"IF({lacks}, raise_error('a geometry has no wkb'), {_geometry_texts(f'transform({value}, g -> g.`wkb`)')})"


def _geometry_texts(wkbs: str) -> str:
    found = f"{WKT_UDF}({wkbs})"
    return f"IF({found}.`problem` IS NULL, {found}.`texts`, raise_error({found}.`problem`))"
