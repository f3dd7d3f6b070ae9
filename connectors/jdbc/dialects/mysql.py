"""MySQL and MariaDB: statements (`MySqlDatabaseDialect`, `MariaDbDatabaseDialect`) and column types (`dialect/mysql/*Type.java`,
`dialect/maria/*Type.java`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine

from connect_py.data import Schema
from connectors.jdbc.column_types import (
    BITS,
    DOUBLE_VECTOR,
    ENUM,
    ENUM_SET,
    FLOAT_VECTOR,
    GEOGRAPHY,
    GEOMETRY,
    JSON,
    POINT,
    YEAR,
    ZONED_TIME,
    ZONED_TIMESTAMP,
    Convert,
    Kind,
    Kinds,
    Quote,
    allowed_values,
    always,
    as_bytes,
    bit_length,
    bit_text,
    by_converter,
    dates_and_times,
    decimal_digits,
    decimals,
    digits_of,
    geometry_parts,
    length,
    local_time,
    local_timestamp,
    map_json,
    named,
    no_default,
    number,
    number_default,
    simple,
    source_type,
    text_default,
    unchanged,
    vector_text,
)
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import MAX_STATEMENT, Dialect, Row
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Shape

#: Characters of a text in a key, so that an index of InnoDB holds it (`MySqlDatabaseDialect.getMaxVarcharLengthInKey`).
_IN_KEY: Final = 255
_MAX_VARCHAR: Final = 16_383
_CHARS: Final = frozenset({"CHAR", "CHARACTER", "BPCHAR", "NCHAR"})
_VARCHARS: Final = frozenset({"VARCHAR", "VARCHAR2", "CHARACTER VARYING", "NVARCHAR", "NVARCHAR2"})
_BLOBS: Final = frozenset({"TINYBLOB", "MEDIUMBLOB", "BLOB", "LONGBLOB"})
_INFINITIES: Final = {"infinity": "2038-01-19T03:14:07+00:00", "-infinity": "1970-01-01T00:00:01+00:00"}


def _string(schema: Schema, is_key: bool) -> str:
    kind, size = source_type(schema), length(schema)
    if is_key:
        size = min(size or _IN_KEY, _IN_KEY)
    if kind in _CHARS and size <= _IN_KEY:
        return f"char({size or 1})"
    if is_key or (kind in _VARCHARS and 0 < size <= _MAX_VARCHAR):
        return f"varchar({size})"
    return "longtext"


def _binary(schema: Schema, is_key: bool) -> str:
    kind, size = source_type(schema), length(schema)
    if is_key:
        return f"varbinary({min(size or _IN_KEY, 3 * _IN_KEY)})"
    if kind in _BLOBS:
        return kind.lower()
    return f"varbinary({size})" if kind and 0 < size <= 65_535 else "longblob"


def _text_unless_long(column: Callable[[Schema, bool], str]) -> Callable[[Schema, Any, Quote], str | None]:
    """Return the defaults of texts; LONGTEXT has none."""
    return lambda schema, value, quote: None if column(schema, False) == "longtext" else quote(str(value))


def _sized(name: str) -> Kind:
    def column(schema: Schema, is_key: bool) -> str:
        size = length(schema)
        return f"{name}({size})" if 0 < size <= 255 else name

    return Kind(column, always(unchanged), number_default)


def _bits(schema: Schema, is_key: bool) -> str:
    size = bit_length(schema)
    return f"bit({size})" if size and size <= 64 else "longtext"


def _bits_convert(schema: Schema) -> Convert:
    size = bit_length(schema)
    if size and size <= 64:
        return lambda value: int.from_bytes(bytes(value), "little")
    return lambda value: bit_text(bytes(value), size)


def _bits_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    size = bit_length(schema)
    return f"b'{bit_text(bytes(value), size)}'" if size and size <= 64 else None


def _one_of(name: str, quote: Quote) -> Callable[[Schema, bool], str]:
    return lambda schema, is_key: f"{name}({','.join(quote(value) for value in allowed_values(schema))})"


def _unsigned(value: Any) -> Any:
    """Return a BIGINT UNSIGNED: what the source could not hold in 64 bits with a sign has turned negative."""
    if isinstance(value, int) and value < 0:
        return value + 2**64
    return value


def _unsigned_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    return number_default(schema, _unsigned(value), quote)


def mysql_kinds(quote: Quote, zone: ZoneInfo, *, is_mariadb: bool, has_axes: bool) -> Kinds:
    """Return the kinds.

    Args:
        quote: makes a literal of a text.
        zone: the zone in which timestamps that had one are written.
        has_axes: whether the server knows axis orders (MySQL 8): it reads WKB of EPSG 4326 as latitude and longitude unless the
            statement says otherwise, and sources give longitude first.
    """

    def zoned(value: Any) -> str:
        return local_timestamp(_INFINITIES.get(value, value), zone)

    def time(schema: Schema, is_key: bool) -> str:
        return f"time({digits_of(schema)})"

    def vector(most: int) -> Callable[[Schema, bool], str]:
        return lambda schema, is_key: f"vector({length(schema) or most})" if is_mariadb or length(schema) else "vector"

    to_vector = "VEC_FromText(?)" if is_mariadb else "string_to_vector(?)"
    json = simple("longtext", default=no_default) if is_mariadb else simple("json", default=no_default)
    geometry = "ST_GeomFromWKB(?, ?, 'axis-order=long-lat')" if has_axes else "ST_GeomFromWKB(?, ?)"
    by_source = {name: simple("bigint unsigned", _unsigned, _unsigned_default) for name in _UNSIGNED}
    by_source |= {name: _sized(name.lower()) for name in ("TINYINT", "MEDIUMINT", "INTEGER")}
    return _MySqlKinds(
        {
            "INT8": number("tinyint"),
            "INT16": number("smallint"),
            "INT32": number("integer"),
            "INT64": number("bigint"),
            "FLOAT32": number("float"),
            "FLOAT64": number("double precision"),
            "BOOLEAN": simple("boolean", default=lambda schema, value, quote: "1" if value else "0"),
            "STRING": Kind(_string, always(unchanged), _text_unless_long(_string)),
            "BYTES": Kind(_binary, always(as_bytes), no_default),
            "MAP": Kind(json.column, always(map_json), no_default),
            **dates_and_times(named("date"), time, lambda schema, is_key: f"datetime({digits_of(schema)})"),
            **decimals(lambda schema, is_key: f"decimal({decimal_digits(schema, 65, most_scale=30)})", "double precision"),
            ZONED_TIME: Kind(time, always(lambda value: local_time(value, zone)), no_default),
            ZONED_TIMESTAMP: Kind(lambda schema, is_key: f"timestamp({digits_of(schema)})", always(zoned), by_converter(always(zoned))),
            BITS: Kind(_bits, _bits_convert, _bits_default),
            ENUM: Kind(_one_of("enum", quote), always(unchanged), text_default),
            ENUM_SET: Kind(_one_of("set", quote), always(unchanged), text_default),
            JSON: json,
            YEAR: simple("year", default=number_default),
            GEOMETRY: Kind(named("geometry"), always(geometry_parts), no_default, geometry, 2),
            GEOGRAPHY: Kind(named("geometry"), always(geometry_parts), no_default, geometry, 2),
            POINT: Kind(named("point"), always(geometry_parts), no_default, geometry, 2),
            FLOAT_VECTOR: Kind(vector(2048), always(vector_text), no_default, to_vector),
            DOUBLE_VECTOR: Kind(vector(16383), always(vector_text), no_default, to_vector),
        },
        by_source,
    )


_UNSIGNED: Final = ("BIGINT UNSIGNED", "BIGINT UNSIGNED ZEROFILL", "INT8 UNSIGNED", "INT8 UNSIGNED ZEROFILL")


class _MySqlKinds(Kinds):
    """Kinds among which BIGINT UNSIGNED wins over the logical name `Decimal`."""

    def of(self, schema: Schema) -> Kind:
        if schema.parameters and source_type(schema) in _UNSIGNED:
            return self._by_source[source_type(schema)]
        return super().of(schema)


#: Since then MySQL warns of `VALUES(column)` and has a name for the new row.
_HAS_ALIAS = (8, 0, 20)


class MySqlDialect(Dialect):
    """Columns have no case."""

    ignores_case = True

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        found: Any = engine.dialect
        self._is_mariadb = bool(getattr(found, "is_mariadb", False))
        version = () if self._is_mariadb else tuple(found.server_version_info or ())
        self._has_alias = version[:3] >= _HAS_ALIAS
        self.kinds = mysql_kinds(self.literal, config.zone, is_mariadb=self._is_mariadb, has_axes=version[:1] >= (8,))

    def literal(self, text: str) -> str:
        """Quote a text, in which a backslash escapes too."""
        return super().literal(text.replace("\\", "\\\\"))

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        wanted = self.table_name(table)
        query = "SELECT column_name FROM information_schema.columns WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s"
        found = connection.exec_driver_sql(query, (wanted.space or None, wanted.name)).scalars()
        return frozenset(self.same_name(name) for name in found) or None

    def insert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        if not shape.columns:
            return f"INSERT INTO {self.quoted_table(table)} VALUES ", "()", ""
        return super().insert(table, shape)

    def upsert(self, table: TableId, shape: Shape) -> tuple[str, str, str]:
        before, row, _ = self.insert(table, shape)
        names = map(self.quoted_column, shape.others or shape.keys)
        if self._has_alias:
            return before, row, f" AS new ON DUPLICATE KEY UPDATE {', '.join(f'{name} = new.{name}' for name in names)}"
        return before, row, f" ON DUPLICATE KEY UPDATE {', '.join(f'{name} = VALUES({name})' for name in names)}"

    def run(self, connection: Connection, statement: tuple[str, str, str], rows: Sequence[Row]) -> None:
        """Execute insertions of many rows a statement, which the server applies in order."""
        before, row, after = statement
        for part in _parts(rows):
            values = tuple(value for found in part for value in found)
            connection.exec_driver_sql(f"{before}{', '.join([row] * len(part))}{after}", values)


def _parts(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows in pieces that a statement may hold."""
    part: list[Row] = []
    size = 0
    for row in rows:
        added = sum(2 * len(value) if isinstance(value, str | bytes) else 24 for value in row)
        if part and size + added > MAX_STATEMENT:
            yield part
            part, size = [], 0
        part.append(row)
        size += added
    if part:
        yield part
