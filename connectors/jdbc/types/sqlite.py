"""Column types of SQLite, which Debezium has no dialect for. Pure.

SQLite keeps what it is given, by the affinity of the column's type: a decimal or a JSON text in a numeric column would become a float, so
these are texts.
"""

from __future__ import annotations

from typing import Any

from connect_py.data import DECIMAL, Schema
from connectors.jdbc.types import values
from connectors.jdbc.types.common import (
    BITS,
    GEOGRAPHY,
    GEOMETRY,
    POINT,
    VARIABLE_DECIMAL,
    as_bytes,
    decimals,
    geometry_parts,
    moments,
    number,
)
from connectors.jdbc.types.kinds import Convert, Kind, Kinds, Quote, always, bit_length, named, no_default, simple


def _blob_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    return f"x'{bytes(value).hex()}'"


def _bits_convert(schema: Schema) -> Convert:
    size = bit_length(schema)
    return lambda value: values.bit_text(bytes(value), size)


def _decimal_text(value: Any) -> str:
    return f"{value:f}"


def sqlite_kinds() -> Kinds:
    """The kinds."""

    def decimal_default(schema: Schema, value: Any, quote: Quote) -> str | None:
        found = values.variable_decimal(value) if schema.name == VARIABLE_DECIMAL else value
        return None if found is None else quote(_decimal_text(found))

    exact = decimals(named("text"), "text", _decimal_text)
    return Kinds(
        {
            **{name: number("integer") for name in ("INT8", "INT16", "INT32", "INT64")},
            **{name: number("real") for name in ("FLOAT32", "FLOAT64")},
            "BOOLEAN": simple("boolean", default=lambda schema, value, quote: "1" if value else "0"),
            "STRING": simple("text"),
            "BYTES": simple("blob", as_bytes, _blob_default),
            "MAP": simple("text", values.map_json, no_default),
            **moments(named("date"), named("time"), named("datetime")),
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
