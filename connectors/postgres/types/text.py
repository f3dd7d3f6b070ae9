"""Types whose value is their text, and hstore, as JSON text or as a map."""

from __future__ import annotations

import re

from connect_py.converters.json_write import quote, quote_characters
from connect_py.data import Schema, Type
from connect_py.data.java_map import in_java_order
from connect_py.data.schema import OPTIONAL_STRING, STRING, map_of
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions


def semantic(name: str) -> Schema:
    """Return a string with one of Debezium's names."""
    return Schema(Type.STRING, name=f"io.debezium.data.{name}", version=1)


def _text(schema: Schema) -> Family:
    """Make the plan of any text; it may need escapes."""

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, quote, textual=True, placeholder=quote(options.placeholder))

    return plan


def _symbols(schema: Schema) -> Family:
    """Make the plan of texts that hold only characters which JSON never escapes."""

    def plan(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
        return ColumnPlan(name, schema, quote, "$", quoted=True, placeholder=quote(options.placeholder))

    return plan


def name_type(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of `name`. The reference decodes it in snapshots only and streams null instead (pg_types.json); so do we where the
    column may be null. Where it may not, the reference streams an empty string, which would make keys equal: there we give the value. With
    `include.unknown.datatypes` it decodes the type in streams too.
    """
    return ColumnPlan(
        name, STRING, quote, textual=True, placeholder=quote(options.placeholder), missing_in_stream=not options.include_unknown
    )


def enum(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of an enum: a label; the schema lists all of them."""
    schema = Schema(Type.STRING, name="io.debezium.data.Enum", version=1, parameters=(("allowed", ",".join(root.enum_labels)),))
    return ColumnPlan(name, schema, quote, textual=True, placeholder=quote(options.placeholder))


_RANGES = ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange")

TEXTS: dict[str, Family] = {
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


_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)
_HSTORE_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def hstore(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of hstore by `hstore.handling.mode`. A value that was not sent is a map of the placeholder to itself."""
    unavailable = {options.placeholder: options.placeholder}
    if options.hstore_mode == "map":
        return ColumnPlan(
            name,
            map_of(STRING, OPTIONAL_STRING),
            lambda text: _object(pairs_of(text), escaped=True),
            fallback="{}",
            placeholder=_object(unavailable, escaped=True),
        )
    return ColumnPlan(
        name,
        semantic("Json"),
        lambda text: quote(_object(pairs_of(text))),
        fallback='"{}"',
        placeholder=quote(_object(unavailable)),
    )


def pairs_of(text: str) -> dict[str, str | None]:
    """Return keys and values of `"k"=>"v", "n"=>NULL` in the order of the driver's HashMap. Raises ValueError."""
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise Unrepresentable("an hstore value is not in the form that the server prints")
        found[_HSTORE_ESCAPE.sub(r"\1", pair[1])] = None if pair[2] is None else _HSTORE_ESCAPE.sub(r"\1", pair[2])
        at = pair.end()
    return in_java_order(found)


def _object(pairs: dict[str, str | None] | dict[str, str], *, escaped: bool = False) -> str:
    write = quote if escaped else quote_characters
    return "{" + ",".join(f"{write(key)}:{'null' if value is None else write(value)}" for key, value in pairs.items()) + "}"


HSTORE: dict[str, Family] = {"hstore": hstore}
