"""The custom converters that come with Debezium's MySQL and MariaDB connectors (`io.debezium.connector.binlog.converters`).

Values come as the texts of the text protocol: numbers as digits, `BIT` and binary types as characters U+0000 to U+00FF.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.api import Conversion, ConvertedColumn, CustomConverter
from connect_py.data import Schema, Type
from connectors.engine.relational.filters import matches_any, parse_regexes


def _selects(patterns: Sequence[re.Pattern[str]], column: ConvertedColumn) -> bool:
    return matches_any(patterns, f"{column.data_collection}.{column.name}")


def _missing(column: ConvertedColumn, fallback: Any) -> Any:
    """What stands for NULL: nothing where that is allowed, else the type's own nothing."""
    return None if column.optional else fallback


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


class TinyIntOneToBooleanConverter(CustomConverter):
    """``TINYINT(1)`` as a boolean.

    Properties: ``selector``, regexes of ``database.table.column``; ``length.checker``: false takes columns of any length.
    """

    def __init__(self) -> None:
        self._selector: Sequence[re.Pattern[str]] = ()
        self._checks_length = True

    def configure(self, properties: Mapping[str, str]) -> None:
        """See `CustomConverter`."""
        self._selector = parse_regexes(properties.get("selector"))
        self._checks_length = properties.get("length.checker", "true").strip().lower() == "true"

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        """See `CustomConverter`."""
        if column.type_name.upper() not in ("TINYINT", "TINYINT UNSIGNED") or (self._checks_length and column.length != 1):
            return None
        if self._selector and not _selects(self._selector, column):
            return None

        def convert(text: str | None) -> bool | None:
            if text is None:
                return _missing(column, False)  # type: ignore[no-any-return]
            number = _whole(text)
            return text.strip().lower() == "true" if number is None else number > 0  # as in 3.6; MySQL itself takes -1 for true

        return Conversion(Schema(Type.BOOLEAN), convert)


class JdbcSinkDataTypesConverter(CustomConverter):
    """Types that snapshot and stream have in common, for a sink's tables: booleans as INT16, REAL as FLOAT64, texts with their charset.

    Properties: ``selector.boolean``, ``selector.real``, ``selector.string``: regexes of ``database.table.column``; without one no column is
    taken. ``treat.real.as.double``: false gives FLOAT32.
    """

    def __init__(self) -> None:
        self._boolean: Sequence[re.Pattern[str]] = ()
        self._real: Sequence[re.Pattern[str]] = ()
        self._string: Sequence[re.Pattern[str]] = ()
        self._is_double = True

    def configure(self, properties: Mapping[str, str]) -> None:
        """See `CustomConverter`."""
        self._boolean, self._real, self._string = (
            parse_regexes(properties.get(f"selector.{kind}")) for kind in ("boolean", "real", "string")
        )
        self._is_double = properties.get("treat.real.as.double", "true").strip().lower() == "true"

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        """See `CustomConverter`."""
        if _selects(self._boolean, column):
            return Conversion(Schema(Type.INT16), lambda text: _missing(column, 0) if text is None else _flag(text))
        if _selects(self._real, column):
            schema = Schema(Type.FLOAT64 if self._is_double else Type.FLOAT32)
            return Conversion(schema, lambda text: _missing(column, 0.0) if text is None else float(text))
        if _selects(self._string, column):
            parameters = (("__debezium.source.column.character_set", column.charset),) if column.charset else ()
            return Conversion(
                Schema(Type.STRING, parameters=parameters),
                lambda text: _missing(column, "") if text is None else text,
            )
        return None


def _flag(text: str) -> int:
    number = _whole(text)
    return int(text.strip().lower() == "true" if number is None else number > 0)
