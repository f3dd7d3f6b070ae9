"""Arrays of any type that has a form of its own (postgres.md §14, §12.4)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from hashlib import md5

from connect_py.converters.json_write import quote
from connect_py.data.schema import STRING, array
from connectors.engine.encode.numbers import base64_of_bytes
from connectors.engine.encode.plan import ColumnPlan, Convert, Unrepresentable
from connectors.postgres.types.base import ValueOptions
from connectors.postgres.types.binary import placeholder_bytes

#: Element types whose arrays the reference leaves out, whatever is configured.
NEVER = frozenset({"money", "name", "interval", "varbit", "xml", "point", "refcursor"})
#: Element types of arrays whose schema has required elements, besides enums.
_REQUIRED_ELEMENTS = frozenset({"tsvector", "isbn", "vector", "halfvec", "sparsevec"})
_TEXTS = frozenset({"text", "varchar", "bpchar", "json", "jsonb"})
_OCTETS = frozenset({"int4", "int8", "date"})
_TOKENS = {mark: re.compile(rf'"((?:[^"\\]|\\.)*)"|([^{mark}{{}}"\\]+)|([{{}}{mark}])', re.DOTALL) for mark in ",;"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FULL_DAY = "24:00:00"


class Nested(str):
    """The text of an inner array: the schema of a column has one dimension whatever its values have."""

    __slots__ = ()


def array_plan(name: str, type_name: str, element: ColumnPlan, options: ValueOptions) -> ColumnPlan:
    """A column of an array type.

    Args:
        type_name: of the elements, as `pg_type.typname`.
        element: the plan of one element.
    """
    required = type_name in _REQUIRED_ELEMENTS or element.schema.name == "io.debezium.data.Enum"
    schema = element.schema if required else element.schema.as_optional()
    # pgjdbc reads arrays alike in snapshots and streams: the form of snapshots is the form of both
    one = element.snapshot or (quote if element.textual else element.convert)
    return ColumnPlan(
        name,
        array(schema),
        _converter(_without_full_days(type_name, one), texts=schema.type is STRING.type and schema.name is None and type_name != "numeric"),
        numeric=_converter(element.numeric) if element.numeric is not None else None,
        fallback="[]",
        placeholder=_placeholder(type_name, options),
    )


def _converter(one: Convert | None, *, texts: bool = False, mark: str = ",") -> Convert:
    def convert(text: str) -> str:
        return "[" + ",".join(_element(item, one, texts) for item in elements_of(text, mark)) + "]"

    return convert


def _element(item: str | None, one: Convert | None, texts: bool) -> str:
    """An element's JSON text. One without a form is null, as in the reference; an inner array keeps its text where the schema takes one."""
    if item is None:
        return "null"
    if isinstance(item, Nested):
        return quote(item) if texts else "null"
    if one is None:
        return item
    try:
        return one(item)
    except ValueError:
        return "null"


def _without_full_days(type_name: str, one: Convert | None) -> Convert | None:
    """`24:00:00` inside an array passes through a clock, where it is midnight."""
    if type_name != "time" or one is None:
        return one
    return lambda text: one("00:00:00" if text == _FULL_DAY else text)


def elements_of(text: str, mark: str = ",") -> list[str | None]:
    """Elements of an array's text, `{1,"a b",NULL}`, None for NULL, `Nested` for inner arrays; bounds before it are passed over.

    Args:
        mark: what stands between them (`pg_type.typdelim`).

    Raises:
        Unrepresentable: the text is no array.
    """
    body = text.partition("=")[2] if text.startswith("[") else text
    if body[:1] != "{" or body[-1:] != "}":
        raise Unrepresentable("an array value is not in the form that the server prints")
    return list(_elements(body[1:-1], _TOKENS[mark]))


def _elements(body: str, tokens: re.Pattern[str]) -> Iterator[str | None]:
    depth, start, at = 0, 0, 0
    while at < len(body):
        token = tokens.match(body, at)
        if token is None:
            raise Unrepresentable("an array value is not in the form that the server prints")
        if token[3] == "{":
            start = start if depth else at
            depth += 1
        elif token[3] == "}":
            depth -= 1
            if depth == 0:
                yield Nested(body[start : token.end()])
        elif depth == 0 and token[3] is None:
            yield (None if token[2].upper() == "NULL" else token[2]) if token[2] is not None else _ESCAPE.sub(r"\1", token[1])
        at = token.end()


def _placeholder(type_name: str, options: ValueOptions) -> str:
    """What stands for an array that was not sent: the reference's table, null for what is not in it."""
    octets = placeholder_bytes(options.placeholder)
    if type_name in _TEXTS:
        return f"[{quote(options.placeholder)}]"
    if type_name in _OCTETS:
        return "[" + ",".join(str(octet - 256 if octet > 127 else octet) for octet in octets) + "]"
    if type_name == "bytea" and options.binary_mode == "bytes":
        return f'["{base64_of_bytes(octets)}"]'
    if type_name == "uuid":
        # UUID.nameUUIDFromBytes: a version 3 UUID without a name space
        return f'["{uuid.UUID(bytes=md5(octets, usedforsecurity=False).digest(), version=3)}"]'
    return "null"


def array_of_unknown(name: str, type_name: str, element: ColumnPlan) -> ColumnPlan:
    """An array of a type that is not known, where those are wanted: each element as binary."""
    convert = _converter(element.convert, mark=";" if type_name == "box" else ",")
    return replace(element, name=name, schema=array(element.schema), convert=convert, fallback="[]", placeholder="null")
