"""What must change in a table before a batch can be written to it. Pure: column names and types in, a list of changes or a refusal out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.errors import FatalTaskError

_WIDER = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True)
class Evolution:
    """Changes to a table, each a column and its type; empty when nothing must change."""

    added: Mapping[str, str]
    widened: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def wider(one: str, other: str) -> str | None:
    """The type that holds values of both without loss by the changes that both formats allow, or None."""
    one, other = plain(one), plain(other)
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


def plan_evolution(table: str, has: Mapping[str, str], wanted: Mapping[str, str], *, enabled: bool) -> Evolution:
    """Compare a table's columns with a batch's; both are types by column, in order.

    Raises:
        FatalTaskError: the difference cannot or may not be mended; nothing was changed or written.
    """
    folded = {name.lower(): name for name in has}
    added: dict[str, str] = {}
    widened: dict[str, str] = {}
    for name, type_ in wanted.items():
        stored = folded.get(name.lower())
        if stored is None:
            added[name] = type_
            continue
        if stored != name:
            raise FatalTaskError(
                f"Table {table} has a column {stored} and the records have {name}: they differ in case only. Rename one of them."
            )
        common = wider(has[name], type_)
        if common is None:
            raise FatalTaskError(
                f"Column {name} of table {table} is {has[name]} and the records now have {type_}. This sink does not convert between them. "
                "Nothing was written; change the column, or write to a new table under another connector name."
            )
        if common != plain(has[name]):
            widened[name] = common
    if (added or widened) and not enabled:
        changes = [f"add {name} {type_}" for name, type_ in added.items()] + [f"widen {name} to {type_}" for name, type_ in widened.items()]
        raise FatalTaskError(
            f"Table {table} must change before the records fit: {', '.join(changes)}. Nothing was written. "
            "Set lakehouse.tables.evolve-schema-enabled=true, or change the table yourself, and restart the task."
        )
    return Evolution(added, widened)
