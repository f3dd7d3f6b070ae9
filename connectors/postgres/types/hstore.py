"""hstore, as JSON text or as a map (postgres.md §14)."""

from __future__ import annotations

import re

from connect_py.converters.json_write import quote, quote_characters
from connect_py.data.java_map import in_java_order
from connect_py.data.schema import OPTIONAL_STRING, STRING, map_of
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions
from connectors.postgres.types.text import semantic

_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def hstore(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """By `hstore.handling.mode`. A value that was not sent is a map of the placeholder to itself."""
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
    """Keys and values of `"k"=>"v", "n"=>NULL` in the order of the driver's HashMap. Raises ValueError."""
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise Unrepresentable("an hstore value is not in the form that the server prints")
        found[_ESCAPE.sub(r"\1", pair[1])] = None if pair[2] is None else _ESCAPE.sub(r"\1", pair[2])
        at = pair.end()
    return in_java_order(found)


def _object(pairs: dict[str, str | None] | dict[str, str], *, escaped: bool = False) -> str:
    write = quote if escaped else quote_characters
    return "{" + ",".join(f"{write(key)}:{'null' if value is None else write(value)}" for key, value in pairs.items()) + "}"


FAMILIES: dict[str, Family] = {"hstore": hstore}
