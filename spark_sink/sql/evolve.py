"""What must change in a table before a batch can be written to it. Pure: column names and types in, a list of changes or a refusal out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from connect_py.errors import FatalTaskError
from spark_sink.types.trees import Array, Map, Path, Struct, Type, merged, parse_type, type_text

_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True)
class Evolution:
    """Changes to a table; empty when nothing must change.

    Attributes:
        added: types of new columns, and of new fields within columns, by path.
        widened: the wider types of columns and of parts of columns, by path.
        relaxed: columns that may be null from now on.
    """

    added: Mapping[Path, str]
    widened: Mapping[Path, str]
    relaxed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.relaxed)

    def __str__(self) -> str:
        changes = [f"add {'.'.join(path)} {type_}" for path, type_ in self.added.items()]
        changes += [f"widen {'.'.join(path)} to {type_}" for path, type_ in self.widened.items()]
        return ", ".join([*changes, *(f"drop NOT NULL of {name}" for name in self.relaxed)])


def wider(one: str, other: str) -> str | None:
    """The type that holds values of both without loss by the changes that both formats allow, or None.

    Its fields are in the order of `one`, with those that only `other` has behind them.
    """
    found = merged(parse_type(one), parse_type(other), _wider)
    return None if found is None else type_text(found)


def in_order_of(table: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """Types of a batch's columns, where those with parts have the fields of the table's, in the table's order: so they are written."""
    return {name: wider(table[name], type_) or type_ if "<" in type_ and name in table else type_ for name, type_ in types.items()}


def _wider(one: str, other: str) -> str | None:
    if one == other or (other, one) in _WIDER:
        return one
    if (one, other) in _WIDER:
        return other
    first, second = _decimal(one), _decimal(other)
    if first and second and first[1] == second[1]:
        return one if first[0] >= second[0] else other
    return None


def plain(type_: str) -> str:
    """A type's text in one spelling."""
    return type_.replace("`", "").replace(" ", "").lower()


def _decimal(type_: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else None


def plan_evolution(
    table: str, has: Mapping[str, str], wanted: Mapping[str, str], *, enabled: bool, nulls: AbstractSet[str] = frozenset()
) -> Evolution:
    """Compare a table's columns with a batch's; both are types by column, in order.

    Args:
        enabled: whether the table may be changed.
        nulls: columns of the table that are NOT NULL, and may be null in the batch.

    Raises:
        FatalTaskError: the difference cannot or may not be mended; nothing was changed or written.
    """
    folded = {name.lower(): name for name in has}
    added: dict[Path, str] = {}
    widened: dict[Path, str] = {}
    for name, type_ in wanted.items():
        stored = folded.get(name.lower())
        if stored is None:
            added[name,] = type_
            continue
        if stored != name:
            raise FatalTaskError(
                f"Table {table} has a column {stored} and the records have {name}: they differ in case only. Rename one of them."
            )
        if plain(has[name]) == plain(type_):
            continue
        old, new = parse_type(has[name]), parse_type(type_)
        common = merged(old, new, _wider)
        if common is None:
            path, one, other = next(_conflicts((name,), old, new))
            raise FatalTaskError(
                f"Column {'.'.join(path)} of table {table} is {type_text(one)} and the records now have {type_text(other)}. This sink does "
                "not convert between them. Nothing was written; change the column, or write to a new table under another connector name."
            )
        for path, part, is_new in _changes((name,), old, common):
            (added if is_new else widened)[path] = type_text(part)
    evolution = Evolution(added, widened, tuple(name for name in has if name in nulls) if enabled else ())
    if evolution and not enabled:
        raise FatalTaskError(
            f"Table {table} must change before the records fit: {evolution}. Nothing was written. Set "
            "lakehouse.tables.evolve-schema-enabled=true (and lakehouse.tables.schema-change.behavior to something else than exception), "
            "or change the table yourself, and restart the task."
        )
    return evolution


def _changes(path: Path, old: Type, new: Type) -> Iterator[tuple[Path, Type, bool]]:
    """Parts in which a type differs from one that it was merged from: the path, the new type, and whether the part is new altogether."""
    match old, new:
        case Struct(), Struct():
            for name, part in new.fields.items():
                if name in old.fields:
                    yield from _changes((*path, name), old.fields[name], part)
                else:
                    yield (*path, name), part, True
        case Array(), Array():
            yield from _changes((*path, "element"), old.element, new.element)
        case Map(), Map():
            yield from _changes((*path, "value"), old.value, new.value)
        case _ if old != new:
            yield path, new, False


def _conflicts(path: Path, one: Type, other: Type) -> Iterator[tuple[Path, Type, Type]]:
    """Parts that have no common type."""
    match one, other:
        case Struct(), Struct():
            for name in one.fields.keys() & other.fields.keys():
                yield from _conflicts((*path, name), one.fields[name], other.fields[name])
        case Array(), Array():
            yield from _conflicts((*path, "element"), one.element, other.element)
        case Map(), Map() if one.key == other.key:
            yield from _conflicts((*path, "value"), one.value, other.value)
        case _ if merged(one, other, _wider) is None:
            yield path, one, other
