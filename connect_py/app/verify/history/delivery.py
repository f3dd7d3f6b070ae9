"""Test what was delivered of each key: nothing lost, nothing invented, nothing out of order, nothing stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from connect_py.app.verify.history.records import Event, Finding, Invariant, Op
from connect_py.app.verify.history.trail import KeyTrail, Step, Trail


def lost(trail: Trail) -> Iterator[Finding]:
    """Yield changes that no record shows.

    A change after the start of the stream must be in the stream. Where the start is not given, the stream of a key begins with the first
    change of it that was delivered; a change of a line after the first that was delivered at all may only be missing if a snapshot has read
    it, or a later one. What was before the start is not lost if the newest row of it is there, or anything newer.
    """
    promise = trail.history.promise
    if promise.compacted:
        return
    begin = promise.start + 1 if promise.start is not None else trail.first_line()
    for key in trail:
        streamed = key.streamed()
        first, newest = min(streamed, default=len(key.changes)), key.newest()
        missing, earlier = [], -1
        for place, change in enumerate(key.changes):
            if place in streamed:
                continue
            after = begin is not None and change.line >= begin
            if after if promise.start is not None else place > first or (after and newest < place):
                missing.append(change)
            else:
                earlier = place
        if missing:
            yield _finding(
                Invariant.LOST,
                key,
                f"{_numbers([change.sequence for change in missing])} of {len(key.changes)} changes in no record of the stream: "
                f"{', '.join(f'{change.op} of line {change.line}' for change in missing[:3])}",
            )
        if promise.snapshot and earlier >= 0 and newest < earlier:
            change = key.changes[earlier]
            cut = any(line > change.line for line in trail.truncated.get(key.table, ()))
            if change.op is not Op.DELETE and not cut:
                yield _finding(Invariant.LOST, key, f"row {change.sequence}, which was there before the stream began, is in no record")
    for table, lines in trail.truncated.items():
        wanted = [line for line in lines if begin is not None and line >= begin]
        found = {event.position or event.offset for event in trail.truncates.get(table, ())}
        if len(found) < len(wanted):
            yield Finding(Invariant.LOST, table, None, f"{len(wanted)} TRUNCATEs were committed, and {len(found)} are in the topic")


def phantoms(trail: Trail) -> Iterator[Finding]:
    """Yield records that show what nobody has committed, as a transaction that was rolled back would."""
    for event in trail.history.events:
        if event.key is None and event.op is not Op.TRUNCATE:
            yield Finding(Invariant.PHANTOM, event.table, None, f"{_place(event)} has no key, so it shows no change of the journal")
    for key in trail:
        for step in key.steps:
            event = step.event
            if event.op is Op.TOMBSTONE:
                continue
            if step.index is None:
                said = "does not say its sequence" if event.sequence is None else f"shows row {event.sequence}"
                what = "a deletion of it" if event.op is Op.DELETE else f"{event.op} of it"
                yield _finding(Invariant.PHANTOM, key, f"{_place(event)} {said}, and the journal has no {what}")
            elif (change := key.changes[step.index]).op is not event.op and (event.op is not Op.READ or change.op is Op.DELETE):
                yield _finding(
                    Invariant.PHANTOM, key, f"{_place(event)} says {event.op} of row {event.sequence}, and the journal says {change.op}"
                )
    for table, events in trail.truncates.items():
        committed, seen = len(trail.truncated.get(table, ())), len({event.position or event.offset for event in events})
        if seen > committed and (trail.history.promise.exactly_once or all(event.position for event in events)):
            yield Finding(Invariant.PHANTOM, table, None, f"{seen} TRUNCATEs are in the topic, and {committed} were committed")


def disorder(trail: Trail) -> Iterator[Finding]:
    """Yield keys whose changes do not come in their order.

    After each change the next one comes, or one that was there before: a replay, which repeats what followed without leaving any out. A
    change that is missing altogether is lost, and is no matter of order.
    """
    compacted = trail.history.promise.compacted
    for key in trail:
        places = sorted({(step.event.topic, step.event.partition) for step in key.steps})
        if len(places) > 1:
            where = ", ".join(f"{topic}-{partition}" for topic, partition in places)
            yield _finding(Invariant.ORDER, key, f"its records are in {len(places)} partitions, which have no common order: {where}")
            continue
        there = key.streamed()
        seen: set[int] = set()
        at, high = -1, -1
        for step in key.steps:
            index = step.index
            if index is None or not step.is_streamed:
                continue
            if index > at:
                between = [place for place in range(at + 1, index) if place in there] if at >= 0 and not compacted else []
                if at < high and between:
                    skipped = _numbers([key.changes[place].sequence for place in between])
                    yield _finding(Invariant.ORDER, key, f"{_place(step.event)} repeats {_of(key, step)} and leaves out {skipped}")
            if index < high and index not in seen:
                yield _finding(
                    Invariant.ORDER,
                    key,
                    f"{_place(step.event)} shows {_of(key, step)} for the first time, after {key.changes[high].sequence}",
                )
            seen.add(index)
            at, high = index, max(high, index)


def excess_replays(trail: Trail) -> Iterator[Finding]:
    """Yield partitions in which more is repeated than that often as tasks were started again: a replay repeats a change once."""
    promise = trail.history.promise
    if promise.restarts is None:
        return
    by_partition: dict[tuple[str, int], list[tuple[int, KeyTrail, Step]]] = {}
    for key in trail:
        for step in key.steps:
            if step.index is not None and step.is_streamed and not step.guessed:
                by_partition.setdefault((step.event.topic, step.event.partition), []).append((step.event.offset, key, step))
    for (topic, partition), steps in sorted(by_partition.items()):
        steps.sort(key=lambda entry: entry[0])
        replays = 0
        run: dict[tuple[str, str], int] = {}
        last: tuple[KeyTrail, Step] | None = None
        for _, key, step in steps:
            assert step.index is not None
            if step.index <= run.get((key.table, key.key), -1):
                replays, run, last = replays + 1, {}, (key, step)
            run[key.table, key.key] = step.index
        if replays > promise.restarts and last is not None:
            key, step = last
            yield _finding(
                Invariant.REPLAYS,
                key,
                f"{topic}-{partition} repeats changes {replays} times, and tasks were started again {promise.restarts} times; "
                f"the last repetition begins with {_of(key, step)} at offset {step.event.offset}",
            )


def repeated(trail: Trail) -> Iterator[Finding]:
    """Yield changes that readers of committed records find twice, under exactly-once delivery. Rows of snapshots do not count."""
    if not trail.history.promise.exactly_once:
        return
    for key in trail:
        first: dict[int, Event] = {}
        for step in key.steps:
            if step.index is None or not step.is_streamed:
                continue
            if (other := first.get(step.index)) is not None:
                yield _finding(
                    Invariant.EXACTLY_ONCE, key, f"{_of(key, step)} is at offset {other.offset} and again at {_place(step.event)}"
                )
            first.setdefault(step.index, step.event)


def open_transactions(trail: Trail) -> Iterator[Finding]:
    """Yield partitions where a transaction of a producer was left open: readers of committed records cannot get beyond it."""
    for end in trail.history.ends:
        if end.stable_end < end.end:
            yield Finding(
                Invariant.EXACTLY_ONCE,
                None,
                None,
                f"{end.topic}-{end.partition} ends at {end.end}, and readers of committed records stop at {end.stable_end}: "
                "a transaction is open",
            )


def stale_rows(trail: Trail) -> Iterator[Finding]:
    """Yield rows of snapshots that follow something newer of their key, and so overwrite it."""
    lag = trail.history.promise.initial_rows_lag
    for key in trail:
        high = -1
        for step in key.steps:
            if step.index is None:
                continue
            if step.event.op is Op.READ and step.index < high and not (lag and not step.event.incremental):
                yield _finding(
                    Invariant.STALE_ROW, key, f"{_place(step.event)} has row {step.event.sequence}, after {key.changes[high].sequence}"
                )
            high = max(high, step.index)


def wrong_values(trail: Trail) -> Iterator[Finding]:
    """Yield records whose row has the right sequence and other values than were committed."""
    for key in trail:
        for step in key.steps:
            if step.index is None or step.event.op in (Op.DELETE, Op.TOMBSTONE):
                continue
            wanted, found = key.changes[step.index].digest, step.event.digest
            if wanted is not None and found is not None and wanted != found:
                yield _finding(
                    Invariant.VALUES, key, f"{_place(step.event)} has other values of row {step.event.sequence} than were committed"
                )


def missing_tombstones(trail: Trail) -> Iterator[Finding]:
    """Yield deletions that no tombstone follows before the key's next change, and tombstones that follow no deletion."""
    promise = trail.history.promise
    if promise.compacted:
        return
    for key in trail:
        pending: Step | None = None
        before: Op | None = None
        for step in key.steps:
            event, op = step.event, step.event.op
            if op is Op.TOMBSTONE:
                if not promise.tombstones:
                    yield _finding(Invariant.TOMBSTONES, key, f"{_place(event)} is a tombstone, and tombstones.on.delete is false")
                elif before is not Op.DELETE:
                    yield _finding(Invariant.TOMBSTONES, key, f"{_place(event)} is a tombstone, and no deletion is right before it")
                pending = None
            elif op is Op.DELETE:
                pending = step
            elif op is Op.READ and not event.incremental:
                # a snapshot that is taken again after a crash between a deletion and its tombstone; the stream brings both again
                continue
            elif pending is not None and (pending.index is None or step.index is None or step.index > pending.index):
                # anything older is a replay, which brings the deletion again
                if promise.tombstones:
                    yield _finding(Invariant.TOMBSTONES, key, f"no tombstone follows the deletion at {_place(pending.event)}")
                pending = None
            before = op
        if pending is not None and promise.tombstones:
            yield _finding(Invariant.TOMBSTONES, key, f"no tombstone follows the deletion at {_place(pending.event)}")


def _finding(invariant: Invariant, key: KeyTrail, evidence: str) -> Finding:
    return Finding(invariant, key.table, key.key, evidence)


def _place(event: Event) -> str:
    return f"{event.topic}-{event.partition}@{event.offset}"


def _of(key: KeyTrail, step: Step) -> str:
    assert step.index is not None
    change = key.changes[step.index]
    return f"change {change.sequence} ({change.op})"


def _numbers(numbers: Iterable[int]) -> str:
    """Return numbers as people write them: runs as 3 to 7, and no more than a few."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")
