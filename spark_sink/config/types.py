"""How values are stored."""

from __future__ import annotations

import re
from typing import Any

from connect_py.api.config import ConfigType, one_of
from connect_py.errors import ConfigError
from spark_sink.config.key import key
from spark_sink.types.decimals import MAX_PRECISION


def _variable_decimal(name: str, value: Any) -> None:
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", str(value))
    if value not in ("string", "double") and not (found and 0 <= int(found[2]) <= int(found[1]) <= MAX_PRECISION):
        raise ConfigError(f"Invalid value {value} for configuration {name}: must be one of: string, double, decimal(p,s) with p up to 38")


KEYS = (
    key(
        "time.mode",
        "iso-string",
        "Times of day as text (13:05:01.123456) or as micros, a BIGINT of microseconds.",
        validator=one_of("iso-string", "micros"),
        group="Types",
    ),
    key(
        "connect-timestamp.as",
        "timestamp",
        "Type for org.apache.kafka.connect.data.Timestamp.",
        validator=one_of("timestamp", "timestamp_ntz"),
        group="Types",
    ),
    key(
        "temporal.infinity",
        "null",
        "What infinite dates and timestamps become: null, the ends of the years 1 and 9999 (clamp), or a bad record (fail).",
        validator=one_of("null", "clamp", "fail"),
        group="Types",
    ),
    key(
        "variable-decimal.mode",
        "string",
        "Type for decimals that each have a scale of their own (NUMERIC without one): string, double, or decimal(p,s), which rounds.",
        validator=_variable_decimal,
        group="Types",
    ),
    key(
        "decimal.overflow",
        "string",
        "Type for decimals of more than 38 digits, which no column holds: string, double, or fail, which refuses the records.",
        validator=one_of("string", "double", "fail"),
        group="Types",
    ),
    key(
        "json.mode",
        "string",
        "Type for JSON values: string, or variant (Iceberg: tables of format 3); text that is no JSON is then a bad record.",
        validator=one_of("string", "variant"),
        group="Types",
    ),
    key(
        "bits.mode",
        "binary",
        "Type for strings of bits: binary, little endian, or bigint, of columns of at most 63 bits.",
        validator=one_of("binary", "bigint"),
        group="Types",
    ),
    key(
        "geometry.mode",
        "struct",
        "Type for geometries: struct, as they come (wkb, srid, and x and y of points), ewkb, a binary that holds its srid too, or wkt, "
        "a text without it.",
        validator=one_of("struct", "ewkb", "wkt"),
        group="Types",
    ),
    key(
        "nested-as-variant",
        False,
        "Structs, maps and arrays become VARIANT (Iceberg: tables of format 3), so that changes within them never change the table.",
        ConfigType.BOOLEAN,
        group="Types",
    ),
)
