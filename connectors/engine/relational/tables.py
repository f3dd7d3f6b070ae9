"""Tables as a relational connector knows them: their names and columns (`io.debezium.relational.{TableId,Table,Column}`), which of them it
captures (`Selectors`, `RelationalTableFilters`), and which columns make a record's key (`Key.CustomKeyMapper`). Values; nothing of one
database.

Every list is comma-separated Java regexes that must match a whole name, ignoring case; a literal comma is written ``\\\\,``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from connect_py.data import java_regex
from connect_py.errors import ConfigError


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table's name; its text is what filters, statements of users and topic names see: `schema.table`."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class Column(Protocol):
    """What this package needs to know of a column; a connector's own class says more (its type)."""

    @property
    def name(self) -> str:
        """As the server spells it."""
        ...


C = TypeVar("C", bound=Column)


@dataclass(frozen=True)
class Table(Generic[C]):
    """A table's structure.

    Attributes:
        columns: in the table's order.
        key: names of the columns of the primary key, or of the first usable unique index, in key order; empty without one.
    """

    id: TableId
    columns: tuple[C, ...]
    key: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, C]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> C | None:
        """Return a column by its exact name."""
        return self._by_name.get(name)


def parse_regexes(text: str | None) -> list[re.Pattern[str]]:
    """Parse one list; its patterns are in order.

    Raises:
        ConfigError: a regex is malformed; the text is the one that java.util.regex gives where the two engines find the same fault.
    """
    if not text:
        return []
    parts = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]
    return [compile_java_regex(part) for part in parts if part]


def compile_java_regex(pattern: str) -> re.Pattern[str]:
    """Compile a Java regex to a Python one, ignoring case. Raises ConfigError: it is malformed."""
    return java_regex.compile_java_regex(pattern, re.IGNORECASE)


def matches_any(patterns: Iterable[re.Pattern[str]], text: str) -> bool:
    """Return whether a pattern matches the whole text."""
    return any(pattern.fullmatch(text) for pattern in patterns)


@dataclass(frozen=True)
class NameFilter:
    """Include and exclude list of one kind of name; an include list that is given decides alone."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, include: str | None, exclude: str | None) -> NameFilter:
        """Parse the two properties. Raises ConfigError."""
        return cls(tuple(parse_regexes(include)), tuple(parse_regexes(exclude)))

    def __call__(self, name: str) -> bool:
        if self.include:
            return matches_any(self.include, name)
        return not matches_any(self.exclude, name)

    def rank(self, name: str) -> int:
        """Return the position of the first including regex that matches: the order in which a snapshot reads
        (RelationalSnapshotChangeEventSource)."""
        for position, pattern in enumerate(self.include):
            if pattern.fullmatch(name):
                return position
        return len(self.include)


@dataclass(frozen=True)
class TableFilters:
    """What is captured.

    Attributes:
        is_system: tables that are never captured.
        forced: tables that are captured regardless of the lists (the signal table).
        snapshot: limits what a snapshot reads, not what is streamed.
    """

    schemas: NameFilter = NameFilter()
    tables: NameFilter = NameFilter()
    columns: NameFilter = NameFilter()
    snapshot: NameFilter = NameFilter()
    is_system: Callable[[TableId], bool] = lambda _: False
    forced: frozenset[str] = frozenset()

    def is_captured(self, table: TableId) -> bool:
        """Return whether changes of the table become records."""
        name = str(table)
        if name in self.forced:
            return True
        return not self.is_system(table) and self.schemas(table.schema) and self.tables(name)

    def is_column_captured(self, table: TableId, column: str) -> bool:
        """Return whether the column is part of records."""
        return self.columns(f"{table}.{column}")

    def snapshot_order(self, tables: Iterable[TableId], only: Sequence[re.Pattern[str]] | None = None) -> list[TableId]:
        """Return the captured tables that a snapshot reads: by the order of the include list's regexes, then by name; forced ones not.

        Args:
            only: what a signal asks for, instead of `snapshot.include.collection.list`.
        """
        wanted = self.snapshot if only is None else NameFilter(tuple(only))

        def is_wanted(table: TableId) -> bool:
            # names may stand in quotes (`AbstractSnapshotChangeEventSource.tableNameMatcher`)
            return wanted(str(table)) or wanted(f'"{table.schema}"."{table.table}"')

        chosen = [t for t in tables if self.is_captured(t) and is_wanted(t) and str(t) not in self.forced]
        return sorted(chosen, key=lambda t: (self.tables.rank(str(t)), str(t)))

    def snapshot_names(self, captured: Iterable[TableId]) -> list[str]:
        """Return the tables that notifications of an initial snapshot name as its own: with forced ones, which it does not read, unless
        `snapshot.include.collection.list` leaves them out."""
        return [str(table) for table in captured if self.snapshot(str(table))]


#: As Debezium's error shows it.
ENTRY = r"^\s*([^:]+):([^:,]+(,[^:,]+)*)\s*$"
#: The same with one way to match: the other takes minutes for a long value of blanks.
_ENTRY = re.compile(r"([^:]+):([^:,]+(?:,[^:,]+)*)")


@dataclass(frozen=True)
class KeyRules:
    """`message.key.columns`: for tables that match, these columns in this order instead of the primary key."""

    rules: tuple[tuple[re.Pattern[str], str], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> KeyRules:
        """Parse ``<table regex>:<column>,<column>;<table regex>:<column>``. Raises ConfigError."""
        if text is None:
            return cls()
        if not text.strip():
            raise ConfigError("Must not be empty")
        return cls(tuple(rule for entry in text.split(";") for rule in cls.parse_entry(entry)))

    @staticmethod
    def parse_entry(entry: str) -> list[tuple[re.Pattern[str], str]]:
        """Parse one ``<table regex>:<column>,<column>``. Raises ConfigError."""
        found = _ENTRY.fullmatch(entry)
        if not found:
            raise ConfigError(f"{entry} has an invalid format (expecting '{ENTRY}')")
        table = found[1].lstrip() or found[1][-1]
        # Debezium joins table and column into one regex, so that a `.` between them is any character
        return [(compile_java_regex(f"{table}.{column.strip()}"), column) for column in found[2].strip().split(",")]

    def columns(self, table: Table[C]) -> tuple[str, ...]:
        """Return the names of the key's columns in key order; empty when records have no key."""
        chosen: list[str] = []
        for pattern, _ in self.rules:
            chosen += [c.name for c in table.columns if c.name not in chosen and pattern.fullmatch(f"{table.id}.{c.name}")]
        return tuple(chosen) or table.key
