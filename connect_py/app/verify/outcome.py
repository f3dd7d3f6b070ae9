"""What a comparison may take, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Why keys are not looked at again when there are more of them: each takes some 300 bytes.
_MOST_SUSPECTS = 100_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long differences may take to settle, in seconds; how many keys are watched, and how many are shown."""

    wait: float = 120.0
    pause: float = 5.0
    suspects: int = _MOST_SUSPECTS
    shown: int = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose rows differ; None for a row that is not there. Values are in normal form, by column.

    Attributes:
        key: nothing where rows have none.
        copies: of a row without a key, how often the source and the table have it.
    """

    key: dict[str, Any]
    source: dict[str, Any] | None
    table: dict[str, Any] | None
    copies: tuple[int, int] | None = None

    @property
    def kind(self) -> str:
        """missing (in the table), extra (there, and not in the source), different."""
        return "missing" if self.table is None else "extra" if self.source is None else "different"

    @property
    def columns(self) -> dict[str, tuple[Any, Any]]:
        """Of rows that both have, the values that differ."""
        if self.source is None or self.table is None:
            return {}
        return {name: (value, self.table[name]) for name, value in self.source.items() if repr(value) != repr(self.table[name])}


@dataclass(slots=True)
class Outcome:
    """What was found.

    Attributes:
        counts: missing, extra and different keys.
        differences: the first ones of them.
        settled: keys that were late, not different.
        unwatched: keys beyond the number that is watched; they differed at the first look.
        doubled: how many of them are there once more.
        updates: of a table without a key, whose rows from before an update stay.
        unaccounted: how many rows such a table has more (or, below 0, less) than its events explain, without one of them being known.
        twice: keys that the table has more than once.
        changes: rows of a table that keeps every change, of which `table_rows` are left; 0 of others.
        lacking: columns of the source that the table has not.
        not_compared: columns of the table that the source has not.
        problem: why nothing was compared.
    """

    table: str
    sources: list[str]
    source_rows: int = 0
    table_rows: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"missing": 0, "extra": 0, "different": 0})
    differences: list[Difference] = field(default_factory=list)
    settled: int = 0
    unwatched: int = 0
    doubled: int = 0
    updates: int = 0
    unaccounted: int = 0
    twice: int = 0
    changes: int = 0
    lacking: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    problem: str | None = None
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether the table has what the source has."""
        return not (self.problem or self.unwatched or self.twice or self.doubled or self.unaccounted or any(self.counts.values()))
