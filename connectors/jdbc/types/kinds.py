"""Column types of schemas: what a dialect knows of each (`GeneralDatabaseDialect.getSchemaType`, `type/**/*.java`). Pure.

A schema's type is looked for by its logical name, by the type of the source's column where that is propagated
(``__debezium.source.column.type``), and by Connect's own type, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect_py.data import Schema
from connect_py.errors import DataError

SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
SOURCE_CHARSET: Final = "__debezium.source.column.character_set"
MAX_INT: Final = 2**31 - 1

Convert = Callable[[Any], Any]


def unchanged(value: Any) -> Any:
    """A value that the driver takes as it is."""
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
    """A number as it is; what is no finite number has no literal."""
    text = f"{value:f}" if hasattr(value, "as_tuple") and value.is_finite() else str(value)
    return text if text.lstrip("+-")[:1].isdigit() else None


def no_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    """None: the database takes no default here, or Debezium gives none."""
    return None


def text_default(schema: Schema, value: Any, quote: Quote) -> str | None:
    """A text."""
    return quote(str(value))


def by_converter(convert: Callable[[Schema], Convert]) -> Callable[[Schema, Any, Quote], str | None]:
    """The literal of the converted value, a text."""
    return lambda schema, value, quote: quote(str(convert(schema)(value)))


def always(convert: Convert) -> Callable[[Schema], Convert]:
    """The same function for every schema."""
    return lambda schema: convert


def named(text: str) -> Callable[[Schema, bool], str]:
    """A column type without parameters."""
    return lambda schema, is_key: text


def simple(text: str, convert: Convert = unchanged, default: Any = text_default, marker: str = "?") -> Kind:
    """A kind whose column type never varies."""
    return Kind(named(text), always(convert), default, marker)


def length(schema: Schema) -> int:
    """The length of the source's column, 0 where it is not propagated."""
    return _int(schema.parameter(SOURCE_LENGTH))


def precision(schema: Schema) -> int:
    """Digits of a second: the scale, or, as MySQL's source has it, the length; 0 where neither is propagated."""
    scale = schema.parameter(SOURCE_SCALE)
    return _int(scale) if scale is not None else length(schema)


def _int(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise DataError(f"A schema's parameter says {text!r} where a number must be") from None


def source_type(schema: Schema) -> str:
    """The type of the source's column in upper case, empty where it is not propagated."""
    return (schema.parameter(SOURCE_TYPE) or "").upper()


def allowed_values(schema: Schema) -> list[str]:
    """The values of an ENUM or SET; a comma in one of them has a backslash before it."""
    return [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", schema.parameter("allowed") or "")]


def decimal_digits(schema: Schema, most: int, usual: int = 38, most_scale: int = 1000) -> str:
    """Precision and scale of a `Decimal`, such as ``10,2``."""
    scale = min(max(_int(schema.parameter("scale")), 0), most_scale)
    digits = _int(schema.parameter("connect.decimal.precision"))
    return f"{min(digits, most) if digits > 0 else max(usual, scale)},{scale}"


def bit_length(schema: Schema) -> int | None:
    """The bits of a Bits schema; None without a limit."""
    found = _int(schema.parameter("length"))
    return None if found in (0, MAX_INT) else found


class Kinds:
    """The kinds of a dialect.

    Args:
        by_name: by logical name, or by Connect's type in upper case.
        by_source: by the type of the source's column in upper case.
    """

    def __init__(self, by_name: Mapping[str, Kind], by_source: Mapping[str, Kind]) -> None:
        self._by_name = by_name
        self._by_source = by_source

    def of(self, schema: Schema) -> Kind:
        """The kind of a schema. Raises DataError: the database has none for it."""
        found = self._by_name.get(schema.name or "")
        if found is None and schema.parameters:
            found = self._by_source.get(source_type(schema))
        found = found or self._by_name.get(schema.type.name)
        if found is None:
            raise DataError(f"Failed to resolve column type for schema: {schema.type.name} ({schema.name})")
        return found
