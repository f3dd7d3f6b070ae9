"""Columns of MySQL tables as fields of events: the face of `connectors.mysql.types`.

Pure: a plan from a column's model and the options. The texts are those of the text protocol in a session with the time zone UTC, characters
decoded, and bytes as characters U+0000 to U+00FF; `binlog/rows.py` makes the same texts.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.engine.encode.plan import ColumnPlan
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.model import MyColumn
from connectors.mysql.server.connection import quote_name
from connectors.mysql.types import binary, numbers, temporal, text
from connectors.mysql.types.base import Family, ValueOptions
from connectors.mysql.types.defaults import default_of

_FAMILIES: dict[str, Family] = {**numbers.FAMILIES, **text.FAMILIES, **temporal.FAMILIES, **binary.FAMILIES}
_PADDED = frozenset(("CHAR", "CHARACTER"))
_TEXTUAL = frozenset((*text.CHARACTER_TYPES, *text.TEXT_TYPES))


def column_plan(column: MyColumn, options: ValueOptions) -> ColumnPlan | None:
    """How a column is read and written.

    Returns:
        The plan, or None for a type that events leave out; the caller warns once.
    """
    if options.unified and is_octets(column):
        # as the server itself makes it, and shows it to a snapshot
        column = replace(column, type_name="BINARY" if column.base_type in _PADDED else "VARBINARY")
    family = _FAMILIES.get(column.base_type)
    if family is None:
        return None
    plan = family(column, options)
    schema = plan.schema.as_optional() if column.nullable else plan.schema
    if column.has_default and column.default is not None:
        # a default is not filled up with zeros as values are
        filled = column.base_type == "BINARY"
        schema = schema.with_default(default_of(column, binary.binary(replace(column, type_name="VARBINARY"), options) if filled else plan))
    placeholder = plan.fallback if plan.placeholder == "null" and not column.nullable else plan.placeholder
    return replace(plan, schema=schema, placeholder=placeholder)


def meaning_of(column: MyColumn, options: ValueOptions) -> Meaning:
    """What the reader of the binlog needs to know of a column."""
    charset = (column.charset or "utf8mb4") if column.base_type in _TEXTUAL else ""
    if column.base_type == "JSON":
        # MariaDB's, which is text; MySQL's own has a form of its own in the log
        charset = "utf8mb4"
    return Meaning(unsigned=column.unsigned, charset=charset, labels=column.labels, server_json=options.unified)


def is_octets(column: MyColumn) -> bool:
    """Whether a statement called it a text of the character set `binary`: the server has made it VARBINARY, and shows it so."""
    return column.base_type in _TEXTUAL and (column.charset or "").lower() == "binary"


def is_text(column: MyColumn) -> bool:
    """Whether the text protocol sends characters; all else is bytes or digits."""
    return (column.base_type in _TEXTUAL and not is_octets(column)) or column.base_type in ("ENUM", "SET", "JSON")


def selected(column: MyColumn, options: ValueOptions) -> str:
    """A column as a snapshot selects it. The server prints six digits of a FLOAT, and all of them where it is made a DOUBLE."""
    name = quote_name(column.name)
    return f"{name} + 0e0 AS {name}" if options.unified and column.base_type == "FLOAT" else name
