"""PostgreSQL: statements (`PostgresDatabaseDialect`) and column types (`dialect/postgres/*Type.java`)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Engine

from connect_py.data import Schema
from connect_py.errors import DataError
from connectors.jdbc.column_types import (
    BITS,
    DOUBLE_VECTOR,
    DURATION,
    ENUM,
    FLOAT_VECTOR,
    GEOGRAPHY,
    GEOMETRY,
    JSON,
    LTREE,
    MAX_INT,
    POINT,
    SPARSE_VECTOR,
    TSVECTOR,
    UUID,
    XML,
    ZONED_TIME,
    ZONED_TIMESTAMP,
    Convert,
    Kind,
    Kinds,
    Quote,
    always,
    array_text,
    as_bytes,
    bit_length,
    bit_text,
    by_converter,
    dates_and_times,
    decimal_digits,
    decimals,
    digits_of,
    geometry_parts,
    hstore_of_json,
    hstore_text,
    interval_text,
    length,
    named,
    no_default,
    number,
    simple,
    source_type,
    sparse_vector_text,
    text_default,
    unchanged,
    vector_text,
    whole,
)
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.naming import TableId

_CHARS: Final = {"CHAR": "char", "CHARACTER": "char", "BPCHAR": "char", "NCHAR": "char"}
_VARCHARS: Final = frozenset({"VARCHAR", "VARCHAR2", "CHARACTER VARYING", "NVARCHAR", "NVARCHAR2"})
_MAX_VARCHAR: Final = 10_485_760


def _string(schema: Schema, is_key: bool) -> str:
    kind, size = source_type(schema), length(schema)
    if kind in _CHARS:
        return f"char({size or 1})" if size <= _MAX_VARCHAR else "text"
    return f"varchar({size})" if kind in _VARCHARS and 0 < size <= _MAX_VARCHAR else "text"


def _time(schema: Schema, is_key: bool) -> str:
    return f"time({digits_of(schema)})"


def _timestamp(schema: Schema, is_key: bool) -> str:
    return f"timestamp({digits_of(schema)})"


def _bits(schema: Schema, is_key: bool) -> str:
    size = bit_length(schema)
    if size is None:
        return "bit varying"
    return f"bit varying({size})" if source_type(schema) == "VARBIT" else f"bit({size})"


def _bits_convert(schema: Schema) -> Convert:
    size = bit_length(schema)
    return lambda value: bit_text(bytes(value), size)


def _bit(value: Any) -> str:
    """Return a BIT(1), which Debezium's sources give as a boolean."""
    return str(value) if isinstance(value, str) else "1" if value else "0"


def _json(schema: Schema, is_key: bool) -> str:
    return {"JSONB": "jsonb", "HSTORE": "hstore"}.get(source_type(schema), "json")


def _json_convert(schema: Schema) -> Convert:
    return hstore_of_json if source_type(schema) == "HSTORE" else unchanged


def _vector(name: str) -> Any:
    def column(schema: Schema, is_key: bool) -> str:
        size = length(schema)
        return f"{name}({size})" if 0 < size < MAX_INT else name

    return column


def _bytea_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    return f"'\\x{bytes(value).hex()}'"


def _interval_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    return quote(interval_text(value))


def _source_named(schema: Schema, is_key: bool) -> str:
    return source_type(schema).lower()


def _point(value: Any) -> str | None:
    """Return a Point as text; reading its WKB would need PostGIS."""
    schema = getattr(value, "schema", None)
    if schema is None or schema.field("x") is None or schema.field("y") is None:
        raise DataError(f"Unexpected PointType value '{value}' with type '{type(value).__name__}'")
    return None if value["x"] is None or value["y"] is None else f"({value['x']!r},{value['y']!r})"


def _range(value: Any) -> str:
    return str(value)


def postgres_kinds(postgis: str) -> Kinds:
    """Return the kinds.

    Args:
        postgis: the quoted name of the schema that has PostGIS's types and functions.
    """
    geometry = f"{postgis}.ST_GeomFromWKB(?, ?)"
    by_name: dict[str, Kind] = {}
    kinds = Kinds(
        by_name,
        {
            **dict.fromkeys(("BIT",), Kind(_source_bit, always(_bit), no_default)),
            **dict.fromkeys(("SMALLSERIAL", "SERIAL", "BIGSERIAL"), Kind(_source_named, always(unchanged), no_default)),
            **dict.fromkeys(
                ("INT4RANGE", "INT8RANGE", "NUMRANGE", "TSRANGE", "TSTZRANGE", "DATERANGE"),
                Kind(_source_named, always(_range), text_default),
            ),
            **{name.upper(): simple(name) for name in ("cidr", "inet", "macaddr", "citext", "xml")},
            "MONEY": simple("money", lambda value: str(value)),
            "OID": number("oid"),
        },
    )

    def element(schema: Schema) -> Schema:
        assert schema.value_schema is not None, "arrays have one"
        return schema.value_schema

    def array(schema: Schema, is_key: bool) -> str:
        return kinds.of(element(schema)).column(element(schema), is_key).replace("[]", "") + "[]"

    def array_convert(schema: Schema) -> Convert:
        inner = kinds.of(element(schema)).convert(element(schema))

        def listed(found: Any) -> Any:
            return [None if item is None else inner(item) for item in found]

        if (element(schema)).type.name == "ARRAY":
            return lambda found: array_text([None if item is None else [*item] for item in found])
        return lambda found: array_text(listed(found))

    by_name |= {
        "INT8": number("smallint"),
        "INT16": number("smallint"),
        "INT32": number("integer"),
        "INT64": number("bigint"),
        "FLOAT32": number("real"),
        "FLOAT64": number("double precision"),
        "BOOLEAN": simple("boolean", default=lambda schema, value, quote: "TRUE" if value else "FALSE"),
        "STRING": Kind(_string, always(unchanged), text_default),
        "BYTES": simple("bytea", as_bytes, _bytea_default),
        "MAP": simple("hstore", hstore_text, no_default),
        "ARRAY": Kind(array, array_convert, no_default),
        **dates_and_times(named("date"), _time, _timestamp),
        **decimals(lambda schema, is_key: f"numeric({decimal_digits(schema, 1000)})", "double precision"),
        ZONED_TIME: Kind(lambda schema, is_key: f"time({digits_of(schema)}) with time zone", always(unchanged), text_default),
        ZONED_TIMESTAMP: Kind(lambda schema, is_key: f"timestamp({digits_of(schema)}) with time zone", always(unchanged), text_default),
        DURATION: simple("interval", lambda value: interval_text(whole("IntervalType")(value)), _interval_default),
        BITS: Kind(_bits, _bits_convert, no_default),
        JSON: Kind(_json, _json_convert, by_converter(_json_convert)),
        ENUM: Kind(_string, always(unchanged), text_default),
        UUID: simple("uuid"),
        XML: simple("xml"),
        LTREE: simple("ltree"),
        TSVECTOR: simple("tsvector"),
        FLOAT_VECTOR: Kind(_vector("halfvec"), always(vector_text), no_default),
        DOUBLE_VECTOR: Kind(_vector("vector"), always(vector_text), no_default),
        SPARSE_VECTOR: Kind(_vector("sparsevec"), always(sparse_vector_text), no_default),
        GEOMETRY: Kind(named(f"{postgis}.geometry"), always(geometry_parts), no_default, geometry, 2),
        GEOGRAPHY: Kind(named(f"{postgis}.geography"), always(geometry_parts), no_default, geometry, 2),
        POINT: simple("point", _point, no_default),
    }
    return kinds


def _source_bit(schema: Schema, is_key: bool) -> str:
    return "bit" if schema.name is None else _bits(schema, is_key)


_COLUMNS = (
    "SELECT a.attname FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)


class PostgresDialect(Dialect):
    """Statements of PostgreSQL. Without ``quote.identifiers`` names are in lower case, as PostgreSQL folds names without quotes."""

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        self.kinds = postgres_kinds('"' + config.postgis_schema.replace('"', '""') + '"')

    def table_name(self, table: TableId) -> TableId:
        return table if self._config.quotes else TableId(table.space.lower(), table.name.lower())

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        """Return the names of a table's columns, by the connection's search path where the table's name has no schema."""
        name = self.quoted_table(table).replace("%%", "%")  # a parameter here, no statement
        if connection.exec_driver_sql("SELECT to_regclass(%s)", (name,)).scalar() is None:
            return None
        return frozenset(connection.exec_driver_sql(_COLUMNS, (name,)).scalars())
