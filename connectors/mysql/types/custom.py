"""The custom converters that come with Debezium's MySQL and MariaDB connectors (`io.debezium.connector.binlog.converters`).

Values come as the texts of the text protocol (`types/columns.py`): numbers as digits, time stamps in UTC, `BIT` and binary types as
characters U+0000 to U+00FF. `ZeroDateFallbackConverter` replaces MySQL's and MariaDB's dates of zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from connect_py.api import Conversion, ConvertedColumn, CustomConverter
from connect_py.data import Schema, Type
from connect_py.errors import ConfigError
from connectors.engine.encode.plan import StandsForNull
from connectors.engine.relational.tables import matches_any, parse_regexes
from connectors.mysql.types.temporal import days_of_date, micros_of_datetime


def _selects(patterns: Sequence[re.Pattern[str]], column: ConvertedColumn) -> bool:
    return matches_any(patterns, f"{column.data_collection}.{column.name}")


def _missing(column: ConvertedColumn, fallback: Any) -> Any:
    """Return the replacement of NULL: none where NULL is allowed, otherwise the type's zero."""
    return None if column.optional else fallback


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


class TinyIntOneToBooleanConverter(CustomConverter):
    """``TINYINT(1)`` as a boolean.

    Properties: ``selector``, regexes of ``database.table.column``; ``length.checker``: false converts columns of any length.
    """

    def __init__(self) -> None:
        self._selector: Sequence[re.Pattern[str]] = ()
        self._checks_length = True

    def configure(self, properties: Mapping[str, str]) -> None:
        self._selector = parse_regexes(properties.get("selector"))
        self._checks_length = properties.get("length.checker", "true").strip().lower() == "true"

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        if column.type_name.upper() not in ("TINYINT", "TINYINT UNSIGNED") or (self._checks_length and column.length != 1):
            return None
        if self._selector and not _selects(self._selector, column):
            return None

        def convert(text: str | None) -> bool | None:
            if text is None:
                return _missing(column, False)  # type: ignore[no-any-return]
            number = _whole(text)
            return text.strip().lower() == "true" if number is None else number > 0  # as in 3.6; MySQL itself treats -1 as true

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
        self._boolean, self._real, self._string = (
            parse_regexes(properties.get(f"selector.{kind}")) for kind in ("boolean", "real", "string")
        )
        self._is_double = properties.get("treat.real.as.double", "true").strip().lower() == "true"

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
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


_LOCAL = re.compile(r"\d{4}-\d\d-\d\d (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d", re.ASCII).fullmatch
#: As `OffsetDateTime.parse` accepts it: seconds, their fraction and the offset's minutes may be left out.
_ZONED = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::(\d\d)(\.\d{0,9})?)?(?:Z|([+-])(\d\d)(?::([0-5]\d)(?::([0-5]\d))?)?)", re.ASCII | re.IGNORECASE
).fullmatch
_MAX_OFFSET = timedelta(hours=18)


def _zoned(text: str) -> str:
    """Return a time stamp of the server's, with the digits of its fraction that are needed. Raises ValueError."""
    micros_of_datetime(text)
    fraction = text[19:].rstrip("0").rstrip(".")
    return f"{text[:10]}T{text[11:19]}{fraction}Z"


def _micros_of_literal(text: str) -> int:
    if _LOCAL(text) is None:
        raise ValueError(f"{text!r} is no date and time")
    return micros_of_datetime(text)


def _zoned_of_literal(text: str) -> str:
    found = _ZONED(text)
    if found is None:
        raise ValueError(f"{text!r} is no moment with an offset")
    day, clock, seconds, fraction, sign, *parts = found.groups()
    hours, minutes, rest = (int(part or 0) for part in parts)
    offset = timedelta(hours=hours, minutes=minutes, seconds=rest)
    if offset > _MAX_OFFSET:
        raise ValueError(f"{text!r} is more than 18 hours from UTC")
    local = datetime.strptime(f"{day} {clock}:{seconds or '00'}", "%Y-%m-%d %H:%M:%S")
    try:
        moment = local + offset if sign == "-" else local - offset
    except OverflowError:
        raise ValueError(f"{text!r} is outside of the years 1 to 9999 in UTC") from None
    return f"{moment.isoformat()}{(fraction or '').rstrip('0').rstrip('.')}Z"


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of a type are written, whatever ``time.precision.mode`` says.

    Attributes:
        read: the server's text as a value of the schema. Raises StandsForNull for zeros.
        of_literal: the same of a fallback. Raises ValueError.
        example: of a fallback.
    """

    schema: Schema
    read: Callable[[str], Any]
    of_literal: Callable[[str], Any]
    example: str

    def fallback(self, name: str, text: str | None) -> Any:
        """Return a property's value; None where that is null.

        Raises:
            ConfigError: it says neither NULL nor a value.
        """
        text = (text or "").strip()
        if not text or text.upper() == "NULL":
            return None
        try:
            return self.of_literal(text)
        except ValueError as error:
            raise ConfigError(f"{name}={text} stands for no value: {error}. Write NULL, or one such as {self.example}") from error


_DATE: Final = _Form(Schema(Type.INT32, name="io.debezium.time.Date", version=1), days_of_date, days_of_date, "2000-01-31")
_MICROS: Final = _Form(
    Schema(Type.INT64, name="io.debezium.time.MicroTimestamp", version=1), micros_of_datetime, _micros_of_literal, "2000-01-31 23:59:59"
)
_MILLIS: Final = replace(
    _MICROS,
    schema=Schema(Type.INT64, name="io.debezium.time.Timestamp", version=1),
    read=lambda text: micros_of_datetime(text) // 1000,
    of_literal=lambda text: _micros_of_literal(text) // 1000,
)
_MOMENT: Final = _Form(
    Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp", version=1), _zoned, _zoned_of_literal, "2000-01-31T23:59:59Z"
)
#: By the server's name of the type.
_FORMS: Final = {"DATE": _DATE, "DATETIME": _MILLIS, "TIMESTAMP": _MOMENT}
_MILLIS_DIGITS = 3


class ZeroDateFallbackConverter(CustomConverter):
    """Dates of which the year, month or day is zero as null, or as a value that is chosen; NULLs are taken for them, as by Debezium.

    Properties: ``target.types``, a list of DATE, DATETIME and TIMESTAMP; ``fallback.date``, ``fallback.datetime``, ``fallback.timestamp``
    and, before them, ``column.<database>.<table>.<column>.fallback``: a value, or NULL; ``selector``, regexes of ``database.table.column``.

    Where NULL is the fallback, the field is optional and has no default. Elsewhere the fallback is also the default of a column that has
    one. Debezium gives the fallback, too, for the first row of a structure in columns of which the default is NULL, whatever they hold;
    here such a row keeps its values.
    """

    def __init__(self) -> None:
        self._properties: Mapping[str, str] = {}
        self._types = frozenset(_FORMS)
        self._selector: Sequence[re.Pattern[str]] = ()

    def configure(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        if "target.types" in properties:
            self._types = frozenset(name.strip() for name in properties["target.types"].upper().split(","))
        self._selector = parse_regexes(properties.get("selector"))
        for type_name, form in _FORMS.items():
            name = f"fallback.{type_name.lower()}"
            form.fallback(name, properties.get(name))

    def converter_for(self, column: ConvertedColumn) -> Conversion | None:
        """Return the column's conversion, None for other types. Raises ConfigError: a fallback is none of the column's type."""
        type_name = column.type_name.upper()
        form = _FORMS.get(type_name)
        qualified_name = f"{column.data_collection}.{column.name}"
        if form is None or type_name not in self._types or (self._selector and not matches_any(self._selector, qualified_name)):
            return None
        if form is _MILLIS and (column.length or 0) > _MILLIS_DIGITS:
            form = _MICROS
        name = f"column.{qualified_name}.fallback"
        if name not in self._properties:
            name = f"fallback.{type_name.lower()}"
        fallback = form.fallback(name, self._properties.get(name))
        read = form.read

        def convert(text: str | None) -> Any:
            if text is None:
                return fallback
            try:
                return read(text)
            except StandsForNull:
                return fallback

        schema = form.schema.as_optional() if fallback is None else form.schema
        return Conversion(schema, convert, default=lambda _: fallback)
