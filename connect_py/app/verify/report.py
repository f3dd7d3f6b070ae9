"""Hold what a comparison may take and what it finds, and show it as text for people or JSON for programs."""

from __future__ import annotations

import base64
import decimal
from dataclasses import dataclass, field
from typing import Any

#: Why keys are not looked at again when there are more of them: each takes some 300 bytes.
_MAX_SUSPECTS = 100_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long differences may take to settle, in seconds; how many keys are watched, and how many are shown."""

    wait: float = 120.0
    pause: float = 5.0
    suspects: int = _MAX_SUSPECTS
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


_LONGEST = 200


def as_text(outcome: Outcome) -> str:
    """Return a line on the table, and one on each difference that is shown."""
    head = f"{outcome.table} ({', '.join(outcome.sources)}): "
    if outcome.problem:
        return f"{head}not compared: {outcome.problem}"
    verdict = "equal" if outcome.equal else "DIFFERENT"
    counts = ", ".join(f"{count} {kind}" for kind, count in outcome.counts.items() if count)
    lines = [
        f"{head}{verdict}; {outcome.source_rows} rows in the source, {outcome.table_rows} in the table{', ' if counts else ''}{counts}"
    ]
    lines += [f"  {text}" for text in notes_of(outcome)]
    lines += [f"  {_shown(difference)}" for difference in outcome.differences]
    hidden = hidden_of(outcome)
    return "\n".join([*lines, f"  … and {hidden} more"] if hidden > 0 else lines)


def hidden_of(outcome: Outcome) -> int:
    """Return how many differences are counted and not kept."""
    return sum(outcome.counts.values()) - len(outcome.differences)


def notes_of(outcome: Outcome) -> list[str]:
    """Return what else is to be said of a table, in parts of sentences."""
    notes = [
        (outcome.changes, f"the table's rows are what {outcome.changes} changes have left"),
        (outcome.doubled, f"{outcome.doubled} of them are the same event as another one"),
        (outcome.updates, f"{outcome.updates} updates: the table has the rows from before them too, and does not say which they are"),
        (outcome.unaccounted > 0, f"{outcome.unaccounted} rows more than the source's and those from before updates"),
        (outcome.unaccounted < 0, f"{-outcome.unaccounted} rows less than the source's and those from before updates"),
        (outcome.twice, f"{outcome.twice} keys are in the table more than once"),
        (outcome.settled, f"{outcome.settled} keys were late and have settled"),
        (outcome.unwatched, f"{outcome.unwatched} more keys differed at the first look and were not looked at again"),
        (outcome.lacking, f"the table has no column {', '.join(outcome.lacking)}"),
        (outcome.not_compared, f"columns that the source does not have: {', '.join(outcome.not_compared)}"),
    ]
    return [text for there, text in notes if there]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the same for programs; bytes are base64, decimals texts, dates days, timestamps microseconds since 1970."""
    return {
        "table": outcome.table,
        "sources": outcome.sources,
        "equal": outcome.equal,
        "problem": outcome.problem,
        "source_rows": outcome.source_rows,
        "table_rows": outcome.table_rows,
        **outcome.counts,
        "changes": outcome.changes,
        "doubled": outcome.doubled,
        "updates": outcome.updates,
        "unaccounted": outcome.unaccounted,
        "twice": outcome.twice,
        "settled": outcome.settled,
        "unwatched": outcome.unwatched,
        "lacking": outcome.lacking,
        "not_compared": outcome.not_compared,
        "seconds": round(outcome.seconds, 3),
        "differences": [
            {
                "kind": difference.kind,
                "key": _plain(difference.key),
                "source": _plain(difference.source),
                "table": _plain(difference.table),
                "copies": difference.copies,
            }
            for difference in outcome.differences
        ],
    }


def _shown(difference: Difference) -> str:
    if difference.copies is not None:
        there, here = difference.copies
        return f"{difference.kind:9} {_row(difference.source or difference.table)}: {there} times in the source, {here} in the table"
    key = ", ".join(f"{name}={shown_value(value)}" for name, value in difference.key.items())
    if difference.kind == "missing":
        return f"missing   {key}: the source has {_row(difference.source)}"
    if difference.kind == "extra":
        return f"extra     {key}: the table has {_row(difference.table)}"
    values = "; ".join(
        f"{name} is {shown_value(here)} in the source, {shown_value(there)} in the table"
        for name, (here, there) in difference.columns.items()
    )
    return f"different {key}: {values}"


def _row(row: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in (row or {}).items())


def shown_value(value: Any) -> str:
    """Return a value in normal form as people read it, cut where it is long."""
    shown = repr(value) if not isinstance(value, decimal.Decimal) else format(value, "f")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return format(value, "f") if isinstance(value, decimal.Decimal) else value
