"""Put together what was committed and what was delivered, key by key: which change does each record show?

A row says its sequence, so it names its change. A DELETE says the sequence of the row that it removed, and shows the change after that one.
Where a DELETE says nothing, because the source logs only keys, as MongoDB does, it may stand for any deletion of its key that is possible
at its place: the records around it say which that is. Of all ways to read the records of a key, the one is taken that leaves the least to
be explained as lost or out of order; what is left then is wrong however the deletions are read. Of several such ways the first is taken,
and in it a deletion is the next change of its key if it can be: so one that is repeated, and one that is delivered too often, are not told
apart, and `Step.guessed` says that nothing may be counted by them.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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


def _steps(changes: list[Change], events: Sequence[Event]) -> Iterator[Step]:
    places = {change.sequence: place for place, change in enumerate(changes)}
    said = [_said(changes, places, event) for event in events]
    unnamed = [event.op is Op.DELETE and event.sequence is None for event in events]
    shown = _read(changes, events, said, unnamed) if any(unnamed) else said
    for event, index, guessed in zip(events, shown, unnamed, strict=True):
        yield Step(event, index, guessed)


def _said(changes: list[Change], places: dict[int, int], event: Event) -> int | None:
    """Return the place of the change that an event shows by the sequence in it."""
    if event.sequence is None or event.op is Op.TOMBSTONE:
        return None
    if event.op is not Op.DELETE:
        return places.get(event.sequence)
    index = places.get(event.sequence, len(changes)) + 1
    return index if index < len(changes) and changes[index].op is Op.DELETE else None


#: So many ways to read the records of a key are followed at once. One is enough but for replays within replays.
_MOST_READINGS = 32


@dataclass(frozen=True, slots=True)
class _Reading:
    """A way to read the records of a key up to one of them.

    Attributes:
        at: the place of the last change that was streamed; -1: there is none.
        high: the highest one.
        seen: a bit for each place that was streamed.
        wrong: how much of it would be out of order.
        shown: the places of the deletions that do not say theirs, the last one first, as pairs of a place and the pairs before.
    """

    at: int = -1
    high: int = -1
    seen: int = 0
    wrong: int = 0
    shown: tuple[int, Any] | None = None

    def then(self, index: int, there: int, shown: tuple[int, Any] | None) -> _Reading:
        """Return the reading with one more change; `there` has a bit for each place that may be streamed (see `delivery.disorder`)."""
        between = (1 << index) - (1 << (self.at + 1)) if index > self.at >= 0 else 0
        skips = self.at < self.high and bool(between & there)
        late = index < self.high and not self.seen >> index & 1
        return _Reading(index, max(self.high, index), self.seen | 1 << index, self.wrong + skips + late, shown)

    def lost(self, deletions: int) -> int:
        """Return how many deletions would be missing."""
        after_first = -1 << (self.seen & -self.seen).bit_length() if self.seen else 0
        return (deletions & after_first & ~self.seen).bit_count()


def _read(changes: list[Change], events: Sequence[Event], said: list[int | None], unnamed: list[bool]) -> list[int | None]:
    """Return the place of the change that each event shows, the deletions that do not say it included."""
    deletions = [place for place, change in enumerate(changes) if change.op is Op.DELETE]
    if not deletions:
        return said
    mask = sum(1 << place for place in deletions)
    there = mask | sum({1 << index for event, index in zip(events, said, strict=True) if index is not None and event.op in STREAMED})
    following = _following(len(changes), events, said)
    readings, last_row, high_row = [_Reading()], -1, -1
    for number, event in enumerate(events):
        index = said[number]
        if unnamed[number]:
            readings = [
                reading.then(place, there, (place, reading.shown))
                for reading in readings
                for place in _possible(deletions, mask, reading, last_row, following[number])
            ]
        elif index is not None and event.op in STREAMED:
            readings = [reading.then(index, there, reading.shown) for reading in readings]
        elif index is not None and event.op is Op.READ:
            if event.incremental and index >= high_row:  # a stale row, if what was streamed is newer
                readings = [replace(reading, wrong=reading.wrong + (index < reading.high)) for reading in readings]
            last_row, high_row = index, max(high_row, index)
        readings = _best(readings)
    best = min(readings, key=lambda reading: reading.wrong + reading.lost(mask))
    found, shown = list(said), best.shown
    for number in range(len(events) - 1, -1, -1):
        if unnamed[number] and shown is not None:
            found[number], shown = shown
    return found


def _following(end: int, events: Sequence[Event], said: list[int | None]) -> list[int]:
    """Return, for each event, the place of the change that is streamed next and says which it is; in the end, that after the last."""
    following, ahead = [end] * len(events), end
    for number in range(len(events) - 1, -1, -1):
        following[number] = ahead
        index = said[number]
        if index is not None and events[number].op in STREAMED:
            ahead = index
    return following


def _possible(deletions: list[int], mask: int, reading: _Reading, last_row: int, following: int) -> list[int]:
    """Return the places of deletions that the next record may show, the likeliest first: the next change after what was streamed last,
    the change before that which is streamed next, that after the row which a snapshot has read, and a repetition."""
    after = bisect.bisect_right(deletions, reading.at)
    repeated = next((place for place in reversed(deletions[:after]) if reading.seen >> place & 1), None)
    nearest = *deletions[after : after + 1], *deletions[max(0, after - 1) : after]
    wanted = (reading.at + 1 if reading.at >= 0 else None, last_row + 1, following - 1, repeated, *nearest)
    return list(dict.fromkeys(place for place in wanted if place is not None and place >= 0 and mask >> place & 1))


def _best(readings: list[_Reading]) -> list[_Reading]:
    """Return one reading of those that differ in nothing that matters later, and of the others as many as are followed."""
    if len(readings) == 1:
        return readings
    kept: dict[tuple[int, int, int], _Reading] = {}
    for reading in readings:
        place = reading.at, reading.high, reading.seen
        if place not in kept or reading.wrong < kept[place].wrong:
            kept[place] = reading
    return sorted(kept.values(), key=lambda reading: reading.wrong)[:_MOST_READINGS]
