"""Types whose value is their text (postgres.md §14)."""

from __future__ import annotations

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.schema import STRING
from connectors.engine.encode.plan import ColumnPlan
from connectors.postgres.types.base import Family, RootType, ValueOptions


def semantic(name: str) -> Schema:
    """A string with one of Debezium's names."""
    return Schema(Type.STRING, name=f"io.debezium.data.{name}", version=1)


def _text(schema: Schema) -> Family:
    """Any text; it may need escapes."""

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, quote, textual=True, placeholder=quote(options.placeholder))

    return plan


def _symbols(schema: Schema) -> Family:
    """Letters, digits and marks that JSON never escapes."""

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, quote, "$", quoted=True, placeholder=quote(options.placeholder))

    return plan


def name_type(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """PostgreSQL's `name`. The reference decodes it in snapshots only and streams null instead (pg_types.json); so do we where the column
    may be null. Where it may not, the reference streams an empty string, which would make keys equal: there we give the value.
    With `include.unknown.datatypes` it decodes the type in streams too.
    """
    return ColumnPlan(
        name, STRING, quote, textual=True, placeholder=quote(options.placeholder), missing_in_stream=not options.include_unknown
    )


def enum(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """A label; the schema lists all of them."""
    schema = Schema(Type.STRING, name="io.debezium.data.Enum", version=1, parameters=(("allowed", ",".join(root.enum_labels)),))
    return ColumnPlan(name, schema, quote, textual=True, placeholder=quote(options.placeholder))


_RANGES = ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange")

FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("varchar", "text", "bpchar", "char", "citext", "isbn", *_RANGES), _text(STRING)),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), _symbols(STRING)),
    "name": name_type,
    "json": _text(semantic("Json")),
    "jsonb": _text(semantic("Json")),
    "xml": _text(semantic("Xml")),
    "uuid": _symbols(semantic("Uuid")),
    "ltree": _text(semantic("Ltree")),
    "tsvector": _text(semantic("Tsvector")),
}
