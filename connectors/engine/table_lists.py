"""Which tables a configuration captures, and what to write into its list for each: an answer to `SourceConnector.list_tables`. Pure.

An entry of a list is a regex of a whole name in any case. Commas, white space and backslashes become code points, since lists are cut at
commas and their entries trimmed before anything reads a regex.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect_py.api.tables import MAX_TABLES, SourceTable, SourceTables
from connectors.engine.config import OLD_NAMES
from connectors.engine.relational.tables import NameFilter, TableFilters, TableId

#: What java.util.regex, Python and PCRE (MongoDB's own stage) read as more than itself.
_SPECIAL = frozenset("^$.|?*+()[]{}")


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a configuration.

    Attributes:
        property: the include list of tables.
        tables: the lists of tables, parsed.
        outer: what schemas, or databases, are called in the names of properties.
        is_outer_captured: whether the lists of those accept the one that a table is in.
        is_captured: whether a table is captured, all in all.
        forced: tables that are captured whatever lists say.
        forced_by: the property that says so.
        literal: whether entries are names and no regexes.
    """

    property: str
    tables: NameFilter
    outer: str
    is_outer_captured: Callable[[str], bool]
    is_captured: Callable[[str], bool]
    forced: frozenset[str] = frozenset()
    forced_by: str = "signal.data.collection"
    literal: bool = False


def described(
    config: Mapping[str, str], lists: Lists, names: Sequence[str], rows: Mapping[str, int], *, most: int = MAX_TABLES
) -> SourceTables:
    """Return the tables of a source.

    Args:
        config: the configuration, with present and old names of properties.
        names: of all tables, as lists see them.
        rows: how many rows the server estimates, where it does.
        most: how many are returned.
    """
    exclude = lists.property.replace(".include.", ".exclude.")
    text = next((config[name] for name in _spellings(lists.property) if name in config), "")
    twins = Counter(map(str.lower, names))
    found = []
    for name in names:
        table = SourceTable(name, lists.is_captured(name), rows.get(name))
        entry = _literal(name) if lists.literal else entry_of(name, in_one_case=twins[name.lower()] > 1)
        matched = tuple(number for number, pattern in enumerate(lists.tables.include) if pattern.fullmatch(name))
        found.append(replace(table, entry=entry, matched_by=matched, fixed_by=_fixed_by(config, lists, name, entry)))
    shown = sorted(sorted(found, key=lambda table: (not table.captured, table.name))[:most], key=lambda table: table.name)
    replaced = [*_spellings(lists.property)[1:], *_spellings(exclude)]
    return SourceTables(
        lists.property,
        entries_of(text, literal=lists.literal),
        [name for name in replaced if name in config],
        shown,
        len(found) - len(shown),
    )


def described_tables(
    config: Mapping[str, str], filters: TableFilters, outer: str, found: Sequence[TableId], rows: Mapping[TableId, int]
) -> SourceTables:
    """Return the tables of a relational source.

    Args:
        outer: what lists of properties call the schema of a `TableId`: ``schema`` or ``database``.
        found: all tables.
        rows: how many rows the server estimates, where it does.
    """
    by_name = {str(table): table for table in found}
    lists = Lists(
        "table.include.list",
        filters.tables,
        outer,
        lambda name: filters.schemas(by_name[name].schema),
        lambda name: filters.is_captured(by_name[name]),
        filters.forced,
    )
    return described(config, lists, list(by_name), {str(table): count for table, count in rows.items()})


def entry_of(name: str, *, in_one_case: bool = False) -> str:
    """Return a regex that matches one name, as an entry of a list.

    Args:
        in_one_case: another table has the same name but for upper and lower case.
    """
    text = "".join(map(_escaped, name))
    return f"(?-i:{text})" if in_one_case else text


def _escaped(character: str) -> str:
    if character in _SPECIAL:
        return f"\\{character}"
    if character in ",\\" or character.isspace() or not character.isprintable():
        return f"\\x{{{ord(character):X}}}" if ord(character) > 0xFF else f"\\x{ord(character):02X}"
    return character


def _literal(name: str) -> str:
    """Return a name as an entry of names; "" where a list cannot have it."""
    return name if "," not in name and name == name.strip() else ""


def entries_of(text: str, *, literal: bool = False) -> list[str]:
    """Return the entries of a list as they are written, without the white space around them."""
    parts = text.split(",") if literal else re.split(r"(?<!\\),", text)
    return [part.strip() for part in parts if part.strip()]


def _spellings(name: str) -> list[str]:
    return [name, *(old for old, new in OLD_NAMES.items() if new == name)]


def _fixed_by(config: Mapping[str, str], lists: Lists, name: str, entry: str) -> str:
    if name in lists.forced:
        return lists.forced_by
    if not lists.is_outer_captured(name):
        sides = (f"{lists.outer}.{side}.list" for side in ("include", "exclude"))
        return next((each for side in sides for each in _spellings(side) if config.get(each)), f"{lists.outer}.include.list")
    return "" if entry else "filters.match.mode"
