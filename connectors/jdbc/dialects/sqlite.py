"""SQLite, for which Debezium's connector has no dialect: statements and column types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from connect_py.data import DECIMAL, Schema
from connectors.jdbc.column_types import (
    BITS,
    GEOGRAPHY,
    GEOMETRY,
    POINT,
    VARIABLE_DECIMAL,
    Convert,
    Kind,
    Kinds,
    Quote,
    always,
    as_bytes,
    bit_length,
    bit_text,
    dates_and_times,
    decimals,
    geometry_parts,
    map_json,
    named,
    no_default,
    number,
    simple,
    variable_decimal,
)
from connectors.jdbc.config import SinkConfig
from connectors.jdbc.dialects.base import Dialect
from connectors.jdbc.naming import TableId
from connectors.jdbc.records import Column


def _blob_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    return f"x'{bytes(value).hex()}'"


def _bits_convert(schema: Schema) -> Convert:
    size = bit_length(schema)
    return lambda value: bit_text(bytes(value), size)


def _decimal_text(value: Any) -> str:
    return f"{value:f}"


def sqlite_kinds() -> Kinds:
    """Return the kinds."""

    def decimal_default(schema: Schema, value: Any, quote: Quote) -> str | None:
        found = variable_decimal(value) if schema.name == VARIABLE_DECIMAL else value
        return None if found is None else quote(_decimal_text(found))

    exact = decimals(named("text"), "text", _decimal_text)
    return Kinds(
        {
            **{name: number("integer") for name in ("INT8", "INT16", "INT32", "INT64")},
            **{name: number("real") for name in ("FLOAT32", "FLOAT64")},
            "BOOLEAN": simple("boolean", default=lambda schema, value, quote: "1" if value else "0"),
            "STRING": simple("text"),
            "BYTES": simple("blob", as_bytes, _blob_default),
            "MAP": simple("text", map_json, no_default),
            **dates_and_times(named("date"), named("time"), named("datetime")),
            **{
                name: Kind(kind.column, kind.convert, decimal_default)
                for name, kind in exact.items()
                if name in (DECIMAL, VARIABLE_DECIMAL)
            },
            BITS: Kind(named("text"), _bits_convert, no_default),
            **{
                name: Kind(named("blob"), always(lambda value: geometry_parts(value)[0]), no_default)
                for name in (GEOMETRY, GEOGRAPHY, POINT)
            },
        },
        {},
    )


class SqliteDialect(Dialect):
    """Columns have no case; a table is in the connection's only database."""

    placeholder = "?"
    ignores_case = True

    def __init__(self, config: SinkConfig, engine: Engine) -> None:
        super().__init__(config, engine)
        self.kinds = sqlite_kinds()

    def table_name(self, table: TableId) -> TableId:
        return TableId("", table.name)

    def columns_of(self, connection: Connection, table: TableId) -> frozenset[str] | None:
        found = connection.exec_driver_sql("SELECT name FROM pragma_table_info(?)", (self.table_name(table).name,)).scalars()
        return frozenset(self.same_name(name) for name in found) or None

    def add_columns(self, table: TableId, columns: Sequence[Column]) -> list[str]:
        """Return the statements that add columns, one each."""
        return [statement for column in columns for statement in super(SqliteDialect, self).add_columns(table, [column])]

    def truncate(self, table: TableId) -> str:
        """Return a deletion of all rows; SQLite has no TRUNCATE."""
        return f"DELETE FROM {self.quoted_table(table)}"
