"""The plan of a column: its type's family, or an array of a type that has one; and its length and scale.

Pure: a plan from a column's description and the options. The text forms are those of sessions with client_encoding UTF8, DateStyle ISO,
TimeZone UTC, IntervalStyle postgres, bytea_output hex and extra_float_digits of at least 1.

Lengths and scales are those that the reference's driver reports (pgjdbc's `TypeInfoCache`). They show in propagated parameters, and decide
what `column.truncate.to…` and hashes cut.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from hashlib import md5

from connect_py.converters.json_write import quote
from connect_py.data.schema import STRING, array
from connectors.engine.encode.plan import ColumnPlan, Convert, Unrepresentable
from connectors.engine.encode.values import base64_of_bytes
from connectors.postgres.types import binary, extensions, numbers, temporal, text
from connectors.postgres.types.base import IDENTITY_DEFAULT, BaseType, Family, PgColumn, RootType, ValueOptions
from connectors.postgres.types.binary import bytea, placeholder_bytes, unknown
from connectors.postgres.types.defaults import default_of
from connectors.postgres.types.numbers import precision_and_scale

#: Element types whose arrays the reference leaves out, whatever is configured.
NEVER = frozenset({"money", "name", "interval", "varbit", "xml", "point", "refcursor"})
#: Element types of arrays whose schema has required elements, in addition to enums.
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
    """Make the plan of a column of an array type.

    Args:
        type_name: the elements' type, as `pg_type.typname`.
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
    """Return an element's JSON text.

    An element without a form is null, as in the reference; an inner array keeps its text where the schema allows one.
    """
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
    """Return a conversion for which `24:00:00` is midnight: inside an array it passes through a clock."""
    if type_name != "time" or one is None:
        return one
    return lambda text: one("00:00:00" if text == _FULL_DAY else text)


def elements_of(text: str, mark: str = ",") -> list[str | None]:
    """Return the elements of an array's text, `{1,"a b",NULL}`, None for NULL, `Nested` for inner arrays; bounds before it are passed over.

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
    """Return what stands for an array that was not sent: the reference's table, null for what is not in it."""
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
    """Make the plan of an array of an unknown type, where those are wanted: each element as binary."""
    convert = _converter(element.convert, mark=";" if type_name == "box" else ",")
    return replace(element, name=name, schema=array(element.schema), convert=convert, fallback="[]", placeholder="null")


__all__ = ["IDENTITY_DEFAULT", "BaseType", "PgColumn", "ValueOptions", "column_plan"]

FAMILIES: dict[str, Family] = {
    **numbers.NUMBERS,
    **text.TEXTS,
    **temporal.TEMPORAL,
    **binary.BITS,
    **numbers.MONEY,
    **temporal.INTERVALS,
    **text.HSTORE,
    **extensions.SPATIAL,
    **extensions.VECTORS,
    "bytea": bytea,
}


def column_plan(column: PgColumn, options: ValueOptions) -> ColumnPlan | None:
    """Return how a column is read and written.

    Returns:
        The plan, or None for a type that events leave out; the caller warns once.
    """
    root = root_type(column)
    plan = _array(column.name, root, options) if root.element else _scalar(column.name, root, options)
    if plan is None:
        return None
    schema = plan.schema.as_optional() if column.nullable else plan.schema
    if column.default is not None and column.default != IDENTITY_DEFAULT and not column.base_types and not root.element:
        schema = schema.with_default(default_of(column.default, plan, root))
    placeholder = plan.placeholder
    if placeholder == "null" and not column.nullable:
        placeholder = plan.fallback
    return replace(plan, schema=schema, placeholder=placeholder, missing_in_stream=plan.missing_in_stream and column.nullable)


def _scalar(name: str, root: RootType, options: ValueOptions) -> ColumnPlan | None:
    """Return the plan of a value; of a type that has no form of its own only where unknown types are wanted."""
    if root.enum_labels:
        return text.enum(name, root, options)
    family = (temporal.ISO_TIMES.get(root.name) if options.time_mode == "isostring" else None) or FAMILIES.get(root.name)
    if family is not None:
        return family(name, root, options)
    return unknown(name, extensions.SHAPES.get(root.name, str), options) if options.include_unknown else None


def _array(name: str, root: RootType, options: ValueOptions) -> ColumnPlan | None:
    kind = root.element
    if kind is None or kind.name in NEVER:
        return None
    if kind.name == "bit":
        return binary.bits_array(name, root, options)
    known = kind.category == "e" or (kind.name in FAMILIES and kind.category != "d")
    element = _scalar(name, RootType(kind.name, root.typmod, root.enum_labels), options) if known or options.include_unknown else None
    if element is None:
        return None
    return array_plan(name, kind.name, element, options) if known else array_of_unknown(name, kind.name, element)


def root_type(column: PgColumn) -> RootType:
    """Return the type at the end of a domain's chain, with the first type modifier that is given on the way; else the column's own."""
    steps = [(column.type_name, column.typmod), *((step.name, step.typmod) for step in column.base_types)]
    typmod = next((typmod for _, typmod in steps if typmod != -1), -1)
    return RootType(steps[-1][0], typmod, column.enum_labels, column.element)


UNLIMITED = 2_147_483_647
_FIXED = {
    "bool": (1, 0),
    "int2": (5, 0),
    "int4": (10, 0),
    "int8": (19, 0),
    "oid": (10, 0),
    "float4": (8, 8),
    "float8": (17, 17),
    "date": (13, 0),
}
#: Characters of a time before its fraction and point, and after.
_TIMES = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
_BY_TYPMOD = ("bpchar", "varchar")
_SERIALS = {"int2": "smallserial", "int4": "serial", "int8": "bigserial"}
#: What pgjdbc reports for numeric without precision, in the stream's metadata.
_STREAMED_NUMERIC = (131_089, 0)
#: Types that JDBC calls CHAR or VARCHAR. The reference passes citext over; a column that its owner wants hidden is hidden here.
_CHARACTERS = frozenset({"bpchar", "char", "varchar", "text", "name", "citext"})


def length_and_scale(root: RootType, *, streamed: bool) -> tuple[int | None, int | None]:
    """Return length and scale of a type, or of an array's elements.

    Args:
        streamed: whether the structure came with the stream: the two ways differ for numeric without precision.
    """
    name = root.element.name if root.element else root.name
    if name in _FIXED:
        return _FIXED[name]
    if name == "numeric":
        if root.typmod >= 4:
            return precision_and_scale(root.typmod)
        return _STREAMED_NUMERIC if streamed else (0, None)
    if name in _TIMES:
        digits = root.typmod if 0 <= root.typmod <= 6 else 6
        return _TIMES[name] + {0: 0, 1: 3}.get(digits, digits + 1), digits
    if name == "interval":
        digits = root.typmod & 0xFFFF if root.typmod >= 0 else 6
        return 49, digits if digits <= 6 else 6
    if name in _BY_TYPMOD and root.typmod > 4:
        return root.typmod - 4, 0
    if name in ("bit", "varbit") and root.typmod > 0:
        return root.typmod, 0
    return UNLIMITED, 0


def shown_type_name(column: PgColumn, *, streamed: bool) -> str:
    """Return the type's name as the driver shows it: `int4` is `serial` where it reads the catalog and finds a sequence for it."""
    if not streamed and column.default and column.default != IDENTITY_DEFAULT and "nextval(" in column.default:
        return _SERIALS.get(column.type_name, column.type_name)
    return column.type_name


def holds_characters(root: RootType) -> bool:
    """Return whether masks and hashes apply."""
    return root.element is None and (bool(root.enum_labels) or root.name in _CHARACTERS)
