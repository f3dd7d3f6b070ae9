"""Types with parts: structs, arrays and maps as trees, read from Spark's texts of types and written back. Pure.

Spark casts structs by the order of their fields and refuses those of another length, so values go from one struct to another by the names
of their fields (`conformed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from spark_sink.types.columns import literal, quote


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct's fields, in order."""

    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of one type."""

    element: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A map."""

    key: Type
    value: Type


#: A type without parts is its text, in lower case and without spaces.
Type: TypeAlias = str | Struct | Array | Map

#: From the top of a table to a part of a column: names of columns and fields; `element` and `value` are parts of arrays and maps.
TypePath: TypeAlias = tuple[str, ...]


def parse_type(text: str) -> Type:
    """Parse a type as Spark writes it; names of fields may be quoted.

    Raises:
        ValueError: it is no type.
    """
    found, rest = _parse(text.strip())
    if rest.strip():
        raise ValueError(f"{text} is no type: it goes on with {rest}")
    return found


def type_text(type_: Type) -> str:
    """Return a type for SQL, with names of fields quoted; the inverse of `parse_type`."""
    match type_:
        case Struct(fields):
            return "struct<" + ",".join(f"{quote(name)}:{type_text(part)}" for name, part in fields.items()) + ">"
        case Array(element):
            return f"array<{type_text(element)}>"
        case Map(key, value):
            return f"map<{type_text(key)},{type_text(value)}>"
        case _:
            return type_


def leaves(type_: Type) -> set[str]:
    """Return the types without parts that a type is made of."""
    match type_:
        case Struct(fields):
            return set().union(*map(leaves, fields.values()))
        case Array(element):
            return leaves(element)
        case Map(key, value):
            return leaves(key) | leaves(value)
        case _:
            return {type_}


def path_sql(path: TypePath) -> str:
    """Return a path for ALTER TABLE."""
    return ".".join(quote(name) for name in path)


def merged(one: Type, other: Type, common: Callable[[str, str], str | None]) -> Type | None:
    """Return the type that has all parts of both, in the order of the first; None when a part of both has no common type.

    Args:
        common: returns the common type of two types without parts, or None.
    """
    match one, other:
        case Struct(), Struct():
            fields: dict[str, Type] = dict(other.fields)
            for name, part in one.fields.items():
                both = merged(part, other.fields[name], common) if name in other.fields else part
                if both is None:
                    return None
                fields[name] = both
            return Struct({name: fields[name] for name in (*one.fields, *(name for name in fields if name not in one.fields))})
        case Array(), Array():
            element = merged(one.element, other.element, common)
            return None if element is None else Array(element)
        case Map(), Map():
            value = merged(one.value, other.value, common)
            return None if value is None or one.key != other.key else Map(one.key, value)
        case str(), str():
            return common(one, other)
        case _:
            return None


def conformed(value: str, have: Type, want: Type, depth: int = 0) -> str:
    """Return SQL of a value in another type of the same kind: fields go by their names, and a missing one is null.

    Args:
        depth: nesting of arrays and maps around the value; keeps names of lambda variables apart.
    """
    if type_text(have) == type_text(want):  # structs are equal in any order of their fields, and Spark goes by the order
        return value
    item = f"c{depth}"
    match have, want:
        case Struct(), Struct():
            parts = {
                name: conformed(f"{value}.{quote(name)}", have.fields[name], part, depth)
                if name in have.fields
                else f"CAST(NULL AS {type_text(part)})"
                for name, part in want.fields.items()
            }
            return struct_sql(value, parts)
        case Array(), Array():
            return f"transform({value}, {item} -> {conformed(item, have.element, want.element, depth + 1)})"
        case Map(), Map():
            return f"transform_values({value}, (k{depth}, {item}) -> {conformed(item, have.value, want.value, depth + 1)})"
        case _:
            return f"CAST({value} AS {type_text(want)})"


def struct_sql(value: str, parts: Mapping[str, str]) -> str:
    """Return SQL of a struct made of expressions by field; null where the value that they come from is null."""
    return f"IF({value} IS NULL, NULL, named_struct({', '.join(f'{literal(name)}, {part}' for name, part in parts.items())}))"


def _parse(text: str) -> tuple[Type, str]:
    head = text[:7].lower()
    if head == "struct<":
        fields: dict[str, Type] = {}
        rest = text[7:].lstrip()
        while not rest.startswith(">"):
            name, rest = _name(rest.removeprefix(",").lstrip())
            fields[name], rest = _parse(rest)
            rest = rest.lstrip()
        return Struct(fields), rest[1:]
    if head.startswith("array<"):
        element, rest = _parse(text[6:].lstrip())
        return Array(element), _closed(rest)
    if head.startswith("map<"):
        key, rest = _parse(text[4:].lstrip())
        value, rest = _parse(rest.lstrip().removeprefix(",").lstrip())
        return Map(key, value), _closed(rest)
    found = re.match(r"\w[\w ]*(?:\([^()]*\))?", text)
    if not found:
        raise ValueError(f"{text or 'nothing'} is no type")
    return found[0].replace(" ", "").lower(), text[found.end() :]


def _closed(rest: str) -> str:
    rest = rest.lstrip()
    if not rest.startswith(">"):
        raise ValueError(f"> is missing before {rest or 'the end of the type'}")
    return rest[1:]


def _name(text: str) -> tuple[str, str]:
    """Split a text into a field's name and the text of its type."""
    found = re.match(r"`((?:[^`]|``)*)`\s*:?\s*", text) or re.match(r"([^:<>,`]+?)\s*:\s*", text)
    if not found:
        raise ValueError(f"a field's name is missing before {text or 'the end of the type'}")
    return found[1].replace("``", "`"), text[found.end() :]
