"""Character data, JSON, enums and sets (mysql.md §13)."""

from __future__ import annotations

from typing import Final

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.schema import STRING
from connectors.engine.encode.plan import ColumnPlan
from connectors.mysql.model import MyColumn
from connectors.mysql.types.base import Family, ValueOptions
from connectors.mysql.types.found import Found
from connectors.mysql.types.unified_json import unified_json

#: Types that hold characters, whatever their length.
CHARACTER_TYPES = (
    *("CHAR", "CHARACTER", "VARCHAR", "CHAR VARYING", "CHARACTER VARYING", "LONG VARCHAR", "LONG"),
    *("NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER", "NVARCHAR", "NATIONAL VARCHAR", "NCHAR VARCHAR", "NCHAR VARYING"),
    *("NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING"),
)
TEXT_TYPES = ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT")


def text(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Any text."""
    return ColumnPlan(column.name, STRING, quote, textual=True, placeholder=quote(options.placeholder))


def json(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """JSON as it was printed: by the server, with spaces, in snapshots; by the decoder of the binlog, without, in streams."""
    schema = Schema(Type.STRING, name="io.debezium.data.Json", version=1)
    placeholder = quote(options.placeholder)
    if options.unified:
        return ColumnPlan(column.name, schema, lambda text: quote(unified_json(text)), placeholder=placeholder, fallback='"{}"')
    return ColumnPlan(column.name, schema, quote, textual=True, placeholder=placeholder, fallback='"{}"')


def enum(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """A label. The schema's list and the stream escape a comma in it; snapshots do not."""
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


_LABELS: Final = Found(_streamed_label)


def set_(column: MyColumn, options: ValueOptions) -> ColumnPlan:
    """Labels with commas between them."""
    return ColumnPlan(column.name, _labelled("EnumSet", column), quote, textual=True)


def _labelled(name: str, column: MyColumn) -> Schema:
    allowed = ",".join(escaped(label) for label in column.labels)
    return Schema(Type.STRING, name=f"io.debezium.data.{name}", version=1, parameters=(("allowed", allowed),))


def escaped(label: str) -> str:
    """A label inside a list with commas."""
    return label.replace("\\", "\\\\").replace(",", "\\,")


FAMILIES: dict[str, Family] = {**dict.fromkeys((*CHARACTER_TYPES, *TEXT_TYPES), text), "JSON": json, "ENUM": enum, "SET": set_}
