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
        table: the row of the side that follows the source, a table or a topic.
        copies: of a row without a key, how often the source and the table have it.
        place: of a topic, the key's last record.
    """

    key: dict[str, Any]
    source: dict[str, Any] | None
    table: dict[str, Any] | None
    copies: tuple[int, int] | None = None
    place: str | None = None

    @property
    def kind(self) -> str:
        """missing (on that side), extra (there, and not in the source), different."""
        return "missing" if self.table is None else "extra" if self.source is None else "different"

    @property
    def columns(self) -> dict[str, tuple[Any, Any]]:
        """Of rows that both have, the values that differ."""
        if self.source is None or self.table is None:
            return {}
        values = {name: (self.source.get(name), self.table.get(name)) for name in {**self.source, **self.table}}
        return {name: (here, there) for name, (here, there) in values.items() if repr(here) != repr(there)}


@dataclass(slots=True)
class Outcome:
    """What was found.

    Attributes:
        counts: missing, extra and different keys.
        differences: the first ones of them.
        settled: keys that were late, not different.
        compared: keys of the source that were compared: all, or those that were chosen.
        chosen: which keys were chosen, in words; None: all.
        unwatched: keys beyond the number that is watched; they differed at the first look.
        doubled: how many of them are there once more.
        updates: of a table without a key, whose rows from before an update stay.
        unaccounted: how many rows such a table has more (or, below 0, less) than its events explain, without one of them being known.
        twice: keys that the table has more than once.
        changes: rows of a table that keeps every change, of which `table_rows` are left; 0 of others.
        lacking: columns of the source that the table has not.
        not_compared: columns of the table that the source has not.
        topic: whether the topics that the table is made of are equal to the source; None: they were not compared.
        problem: why nothing was compared.
    """

    table: str
    sources: list[str]
    source_rows: int = 0
    table_rows: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"missing": 0, "extra": 0, "different": 0})
    differences: list[Difference] = field(default_factory=list)
    settled: int = 0
    compared: int = 0
    chosen: str | None = None
    unwatched: int = 0
    doubled: int = 0
    updates: int = 0
    unaccounted: int = 0
    twice: int = 0
    changes: int = 0
    lacking: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    topic: bool | None = None
    problem: str | None = None
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether the table has what the source has."""
        return not (self.problem or self.unwatched or self.twice or self.doubled or self.unaccounted or any(self.counts.values()))


@dataclass(slots=True)
class TopicOutcome(Outcome):
    """What was found of a topic, whose name is that of `table`; `table_rows` are the rows that its records have left.

    Attributes:
        records: that were read.
        unknown: rows with values that no record of the topic has.
        incomplete: why keys of the source that the topic lacks are no difference; None: they are.
        undeleted: why rows that only the topic has are no difference; None: they are.
    """

    records: int = 0
    unknown: int = 0
    incomplete: str | None = None
    undeleted: str | None = None


_LONGEST = 200

#: What a difference is called where the topic is the side that is wrong.
_IN_TOPIC = {"missing": "missing in the topic", "extra": "deleted, but in the topic", "different": "stale in the topic"}


def side_of(outcome: Outcome) -> str:
    """Return ``topic`` or ``table``."""
    return "topic" if isinstance(outcome, TopicOutcome) else "table"


def kind_of(outcome: Outcome, difference: Difference) -> str:
    """Return what a difference is called."""
    return _IN_TOPIC[difference.kind] if isinstance(outcome, TopicOutcome) else difference.kind


def as_text(outcome: Outcome) -> str:
    """Return a line on the table or topic, and one on each difference that is shown."""
    side = side_of(outcome)
    head = f"{'topic ' if side == 'topic' else ''}{outcome.table} ({', '.join(outcome.sources)}): "
    if outcome.problem:
        return f"{head}not compared: {outcome.problem}"
    verdict = "equal" if outcome.equal else "DIFFERENT"
    names = {"missing": "missing", "extra": "extra", "different": "stale"} if side == "topic" else {}
    counts = ", ".join(f"{count} {names.get(kind, kind)}" for kind, count in outcome.counts.items() if count)
    rows = f"{outcome.source_rows} rows in the source, {outcome.table_rows} in the {side}"
    lines = [f"{head}{verdict}; {rows}{', ' if counts else ''}{counts}"]
    lines += [f"  {text}" for text in notes_of(outcome)]
    lines += [f"  {_shown(outcome, difference)}" for difference in outcome.differences]
    hidden = hidden_of(outcome)
    return "\n".join([*lines, f"  … and {hidden} more"] if hidden > 0 else lines)


def hidden_of(outcome: Outcome) -> int:
    """Return how many differences are counted and not kept."""
    return sum(outcome.counts.values()) - len(outcome.differences)


def notes_of(outcome: Outcome) -> list[str]:
    """Return what else is to be said of a table, in parts of sentences."""
    topic = outcome if isinstance(outcome, TopicOutcome) else TopicOutcome("", [])
    notes = [
        (outcome.chosen, f"only a part was compared, {outcome.compared} keys of the source: {outcome.chosen}"),
        (topic.incomplete, f"keys that the topic does not have were not counted as missing: {topic.incomplete}"),
        (topic.undeleted, f"rows that only the topic has were not counted: {topic.undeleted}"),
        (topic.unknown, f"{topic.unknown} rows have values that no record of the topic has; these were not compared"),
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
    if outcome.topic is not None and not outcome.equal:
        right = "the topic is equal to the source, so the sink is behind or wrong"
        notes.append((True, right if outcome.topic else "the topic differs too, so look at the source connector first"))
    return [text for there, text in notes if there]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the same for programs; bytes are base64, decimals texts, dates days, timestamps microseconds since 1970."""
    side = side_of(outcome)
    more: dict[str, Any] = {}
    if isinstance(outcome, TopicOutcome):
        names = ("records", "unknown", "incomplete", "undeleted")
        more = {name: getattr(outcome, name) for name in names}
    return {
        "side": side,
        side: outcome.table,
        "sources": outcome.sources,
        "equal": outcome.equal,
        "problem": outcome.problem,
        "source_rows": outcome.source_rows,
        f"{side}_rows": outcome.table_rows,
        **more,
        **outcome.counts,
        "compared": outcome.compared,
        "chosen": outcome.chosen,
        "changes": outcome.changes,
        "doubled": outcome.doubled,
        "updates": outcome.updates,
        "unaccounted": outcome.unaccounted,
        "twice": outcome.twice,
        "settled": outcome.settled,
        "unwatched": outcome.unwatched,
        "lacking": outcome.lacking,
        "not_compared": outcome.not_compared,
        **({} if outcome.topic is None else {"topic_equal": outcome.topic}),
        "seconds": round(outcome.seconds, 3),
        "differences": [
            {
                "kind": difference.kind,
                "key": _plain(difference.key),
                "source": _plain(difference.source),
                side: _plain(difference.table),
                "copies": difference.copies,
                **({} if difference.place is None else {"record": difference.place}),
            }
            for difference in outcome.differences
        ],
    }


def _shown(outcome: Outcome, difference: Difference) -> str:
    if difference.copies is not None:
        there, here = difference.copies
        return f"{difference.kind:9} {_row(difference.source or difference.table)}: {there} times in the source, {here} in the table"
    key = ", ".join(f"{name}={shown_value(value)}" for name, value in difference.key.items())
    side = side_of(outcome)
    head = f"{kind_of(outcome, difference):9} {key}"
    if difference.kind == "missing":
        what = f"the source has {_row(difference.source)}"
    elif difference.kind == "extra":
        what = f"the {side} has {_row(difference.table)}"
    else:
        what = "; ".join(
            f"{name} is {shown_value(here)} in the source, {shown_value(there)} in the {side}"
            for name, (here, there) in difference.columns.items()
        )
    return f"{head}: {what}{'' if difference.place is None else f' ({difference.place})'}"


def _row(row: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in (row or {}).items())


def shown_value(value: Any) -> str:
    """Return a value in normal form as people read it, cut where it is long."""
    shown = repr(value) if not isinstance(value, decimal.Decimal) else format(value, "f")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return format(value, "f") if isinstance(value, decimal.Decimal) else value
