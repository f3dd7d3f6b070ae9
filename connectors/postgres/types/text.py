"""Types whose value is their text (postgres.md §14), and bytea."""

from __future__ import annotations

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.schema import BYTES, STRING
from connectors.engine.encode.numbers import base64_of_bytes
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
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
    """
    return ColumnPlan(name, STRING, quote, textual=True, placeholder=quote(options.placeholder), missing_in_stream=True)


def enum(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """A label; the schema lists all of them."""
    schema = Schema(Type.STRING, name="io.debezium.data.Enum", version=1, parameters=(("allowed", ",".join(root.enum_labels)),))
    return ColumnPlan(name, schema, quote, textual=True, placeholder=quote(options.placeholder))


def bytea(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`bytea_output` hex to base64."""
    placeholder = f'"{base64_of_bytes(_placeholder_bytes(options.placeholder))}"'
    return ColumnPlan(
        name,
        BYTES,
        lambda text: f'"{base64_of_hex(text)}"',
        "base64_of_hex($)",
        quoted=True,
        helpers={"base64_of_hex": base64_of_hex},
        placeholder=placeholder,
    )


def base64_of_hex(text: str) -> str:
    """Base64 of `\\x…`."""
    if not text.startswith("\\x"):
        raise Unrepresentable("a bytea value is not in hex form; the session's bytea_output must be hex")
    return base64_of_bytes(bytes.fromhex(text[2:]))


def _placeholder_bytes(placeholder: str) -> bytes:
    return bytes.fromhex(placeholder[4:]) if placeholder.startswith("hex:") else placeholder.encode()


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
    "bytea": bytea,
}
