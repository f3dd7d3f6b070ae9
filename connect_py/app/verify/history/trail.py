"""Put together what was committed and what was delivered, key by key: which change does each record show?

A row says its sequence, so it names its change. A DELETE says the sequence of the row that it removed, and shows the change after that one.
Where a DELETE says nothing, because the source logs only keys, it is taken for the next change of its key if that is a deletion, and
otherwise for the last one before, delivered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from connect_py.app.verify.history.records import Change, Event, History, Op

#: Operations that a stream delivers, of one row each.
STREAMED = frozenset((Op.CREATE, Op.UPDATE, Op.DELETE))


@dataclass(frozen=True, slots=True)
class Step:
    """A record of a key, and the place of the change that it shows in the key's changes; None: it shows none of them.

    Attributes:
        guessed: the record does not say which deletion it shows; of several it may be another one.
    """

    event: Event
    index: int | None
    guessed: bool = False

    @property
    def is_streamed(self) -> bool:
        """Whether a change was delivered, and not a row that a snapshot has read."""
        return self.event.op in STREAMED


@dataclass(slots=True)
class KeyTrail:
    """What became of a key: its changes by sequence, and its records in the order of their partition."""

    table: str
    key: str
    changes: list[Change] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def streamed(self) -> set[int]:
        """Return the places of changes that the stream has delivered."""
        return {step.index for step in self.steps if step.index is not None and step.is_streamed}

    def newest(self) -> int:
        """Return the place of the newest change that any record shows; -1: there is none."""
        return max((step.index for step in self.steps if step.index is not None), default=-1)


@dataclass(slots=True)
class Trail:
    """All keys of a history.

    Attributes:
        keys: by table and key.
        truncated: lines of TRUNCATEs in the journal, by table.
        truncates: their events, by table.
    """

    history: History
    keys: dict[tuple[str, str], KeyTrail] = field(default_factory=dict)
    truncated: dict[str, list[int]] = field(default_factory=dict)
    truncates: dict[str, list[Event]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[KeyTrail]:
        return iter(self.keys.values())

    def first_line(self) -> int | None:
        """Return the lowest line of the journal that the stream has delivered; None: it has delivered nothing."""
        lines = (trail.changes[min(streamed)].line for trail in self if (streamed := trail.streamed()))
        return min(lines, default=None)

    def last_state(self, trail: KeyTrail) -> Change | None:
        """Return the change that made the row which the journal says is there; None: there is none."""
        last = trail.changes[-1] if trail.changes else None
        if last is None or last.op is Op.DELETE or any(line > last.line for line in self.truncated.get(trail.table, ())):
            return None
        return last

    def folded(self, trail: KeyTrail) -> Step | None:
        """Return the step that is left of a key when all records are applied in order; None: no row is left."""
        last = trail.steps[-1] if trail.steps else None
        if last is None or last.event.op in (Op.DELETE, Op.TOMBSTONE):
            return None
        event = last.event
        for cut in self.truncates.get(trail.table, ()):
            if (cut.topic, cut.partition) == (event.topic, event.partition) and cut.offset > event.offset:
                return None
        return last


def follow(history: History) -> Trail:
    """Put changes and events together."""
    trail = Trail(history)
    for change in history.changes:
        if change.key is None:
            trail.truncated.setdefault(change.table, []).append(change.line)
        else:
            _of(trail, change.table, change.key).changes.append(change)
    for each in trail:
        each.changes.sort(key=lambda change: change.sequence)
    by_key: dict[tuple[str, str], list[Event]] = {}
    for event in history.events:
        if event.op is Op.TRUNCATE:
            trail.truncates.setdefault(event.table, []).append(event)
        elif event.key is not None:
            by_key.setdefault((event.table, event.key), []).append(event)
    for (table, key), events in by_key.items():
        found = _of(trail, table, key)
        found.steps.extend(_steps(found.changes, events))
    return trail


def _of(trail: Trail, table: str, key: str) -> KeyTrail:
    found = trail.keys.get((table, key))
    if found is None:
        found = trail.keys[table, key] = KeyTrail(table, key)
    return found


def _steps(changes: list[Change], events: Iterable[Event]) -> Iterator[Step]:
    places = {change.sequence: place for place, change in enumerate(changes)}
    at = -1
    for event in events:
        index = None
        if event.op is Op.DELETE:
            index = _deletion(changes, places, event.sequence, at)
        elif event.op is not Op.TOMBSTONE and event.sequence is not None:
            index = places.get(event.sequence)
        if index is not None:
            at = index
        yield Step(event, index, event.op is Op.DELETE and event.sequence is None)


def _deletion(changes: list[Change], places: dict[int, int], removed: int | None, at: int) -> int | None:
    """Return the place of the deletion that an event shows.

    Args:
        removed: the sequence of the row that was removed, if the event says it.
        at: the place of the key's event before.
    """
    if removed is not None:
        index = places.get(removed, len(changes)) + 1
        return index if index < len(changes) and changes[index].op is Op.DELETE else None
    if at + 1 < len(changes) and changes[at + 1].op is Op.DELETE:
        return at + 1
    before = (place for place in range(min(at, len(changes) - 1), -1, -1) if changes[place].op is Op.DELETE)
    after = (place for place in range(at + 1, len(changes)) if changes[place].op is Op.DELETE)
    return next(before, next(after, None))
