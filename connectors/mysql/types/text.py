"""Character data, JSON, enums and sets.

Under `value.consistency=unified` a JSON document has one text, whether the server printed it or the decoder of the log. The server puts
spaces between parts, prints large and small doubles with exponents, six digits of a time's fraction, and `base64:type252:` before values of
other SQL types; the decoder prints as Debezium does. Texts cannot distinguish a double from a decimal, or a time from a string, so numbers
are brought to a common form by their value, and times get their digits from the decoder (`binlog/json_text.py`).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

from connect_py.converters.json_write import quote, quote_characters
from connect_py.data import Schema, Type
from connect_py.data.java_text import double_text
from connect_py.data.schema import EXACT, STRING
from connectors.engine.encode.plan import ColumnPlan
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.model import MyColumn
from connectors.mysql.types.base import BoundedCache, Family

#: Digits that every double holds.
_SAFE_DIGITS = 15
#: Of an integer, sign and all; the decoder prints larger ones for doubles.
_INTEGER_DIGITS = 20
_LARGE = 1e19
_OPAQUE = re.compile(r"base64:type\d+:([A-Za-z0-9+/=\n]*)")


class _Number(str):
    __slots__ = ()


def unified_json(text: str) -> str:
    """Return a document's common form; a text that is no JSON stays as it is."""
    try:
        return _printed(json.loads(text, parse_int=_Number, parse_float=_Number))
    except (ValueError, RecursionError):
        return text


def number_text(text: str) -> str:
    """Return a number's common form: one that a double holds exactly, or whose digits it holds, is printed as a double without an exponent;
    integers and others stay."""
    if text.lstrip("-").isdigit() and len(text) <= _INTEGER_DIGITS:
        return text
    value = Decimal(text)
    if abs(value.adjusted()) >= EXACT.prec:
        return text  # no server stores it, and it would be written out
    double = float(value)
    if "e" in text.lower() and abs(double) < _LARGE and double.is_integer():
        return str(int(double))
    if len(value.as_tuple().digits) <= _SAFE_DIGITS or Decimal(double) == value:
        return f"{Decimal(double_text(double)):f}"
    return f"{value:f}"


def _printed(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{quote_characters(name)}:{_printed(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_printed, value)) + "]"
        case _Number():
            return number_text(value)
        case str():
            opaque = _OPAQUE.fullmatch(value)
            return quote_characters(opaque[1].replace("\n", "") if opaque else value)
        case None:
            return "null"
    return "true" if value else "false"


#: Types that hold characters, whatever their length.
CHARACTER_TYPES = (
    *("CHAR", "CHARACTER", "VARCHAR", "CHAR VARYING", "CHARACTER VARYING", "LONG VARCHAR", "LONG"),
    *("NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER", "NVARCHAR", "NATIONAL VARCHAR", "NCHAR VARCHAR", "NCHAR VARYING"),
    *("NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING"),
)
TEXT_TYPES = ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT")


def text(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of any text."""
    return ColumnPlan(column.name, STRING, quote, textual=True, placeholder=quote(options.placeholder))


def json_(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of JSON as it was printed: in snapshots by the server, with spaces; in streams by the binlog's decoder, without."""
    schema = Schema(Type.STRING, name="io.debezium.data.Json", version=1)
    placeholder = quote(options.placeholder)
    if options.unified:
        return ColumnPlan(column.name, schema, lambda text: quote(unified_json(text)), placeholder=placeholder, fallback='"{}"')
    return ColumnPlan(column.name, schema, quote, textual=True, placeholder=placeholder, fallback='"{}"')


def enum(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of a label. The schema's list and the stream escape a comma in it; snapshots do not."""
    return ColumnPlan(
        column.name,
        _labelled("Enum", column),
        _streamed_label,
        "LABELS[$]",
        helpers={"LABELS": _LABELS},
        snapshot=None if options.unified else quote,
        quick_copy=None if options.unified else "",
    )


def _streamed_label(label: str) -> str:
    return quote(escaped(label))


_LABELS: Final = BoundedCache(_streamed_label)


def set_(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Return the plan of SET: labels separated by commas."""
    return ColumnPlan(column.name, _labelled("EnumSet", column), quote, textual=True)


def _labelled(name: str, column: MyColumn) -> Schema:
    allowed = ",".join(escaped(label) for label in column.labels)
    return Schema(Type.STRING, name=f"io.debezium.data.{name}", version=1, parameters=(("allowed", allowed),))


def escaped(label: str) -> str:
    """Return a label inside a list with commas."""
    return label.replace("\\", "\\\\").replace(",", "\\,")


FAMILIES: dict[str, Family] = {**dict.fromkeys((*CHARACTER_TYPES, *TEXT_TYPES), text), "JSON": json_, "ENUM": enum, "SET": set_}
