"""Test positions, transactions and tasks: nothing acknowledged too early, nothing stored backwards, one owner at a time, failures loud."""

from __future__ import annotations

from collections.abc import Iterator

from connect_py.app.verify.history.records import Boundary, Event, Finding, Invariant, Position, SchemaChange
from connect_py.app.verify.history.trail import STREAMED, Trail


def early_acknowledgements(trail: Trail) -> Iterator[Finding]:
    """Yield samples at which the source might have discarded what no stored offset was beyond."""
    for sample in trail.history.acknowledged:
        if sample.stored is None or sample.acknowledged > sample.stored:
            stored = "nothing was stored" if sample.stored is None else f"{_text(sample.stored)} was stored"
            yield Finding(
                Invariant.ACKNOWLEDGED, None, None, f"at {sample.at:.3f} s {_text(sample.acknowledged)} was acknowledged, and {stored}"
            )


def offsets_that_went_back(trail: Trail) -> Iterator[Finding]:
    """Yield stored offsets that are before the one stored last, unless the REST API has stored or reset them."""
    last: dict[str, Position] = {}
    for number, stored in enumerate(trail.history.stored):
        before = last.get(stored.partition)
        if stored.position is None:
            last.pop(stored.partition, None)
            continue
        if before is not None and not stored.altered and stored.position < before:
            went = f"stored offset {number} goes back from {_text(before)} to {_text(stored.position)}"
            yield Finding(Invariant.OFFSETS, None, None, f"source partition {stored.partition}: {went}")
        last[stored.partition] = stored.position


def torn_transactions(trail: Trail) -> Iterator[Finding]:
    """Yield transactions of the source that the topics show otherwise than they were committed."""
    yield from _boundaries(trail)
    yield from _groups(trail)


def _boundaries(trail: Trail) -> Iterator[Finding]:
    boundaries = trail.history.boundaries
    open_: dict[str, int] = {}
    ends: dict[str, Boundary] = {}
    before: Boundary | None = None
    for number, boundary in enumerate(boundaries):
        name = boundary.transaction
        if boundary.status == "BEGIN":
            open_[name] = number
        elif before is None or before.status != "BEGIN" or before.transaction != name:
            yield _torn(f"END of {name} does not follow its BEGIN")
        else:
            open_.pop(name, None)
            if name in ends and trail.history.promise.exactly_once:
                yield _torn(f"END of {name} is there twice, with exactly-once delivery")
            ends[name] = boundary
        before = boundary
    for name in open_:
        yield _torn(f"BEGIN of {name} has no END")
    if not boundaries:
        return
    events: dict[str, list[Event]] = {}
    for event in trail.history.events:
        if event.total_order is not None:
            events.setdefault(event.transaction, []).append(event)
    tables = {event.table for event in trail.history.events} | {key.table for key in trail}
    for name, end in ends.items():
        yield from _counts(name, end, events.get(name, []), tables)


def _counts(name: str, end: Boundary, events: list[Event], tables: set[str]) -> Iterator[Finding]:
    for table, count in end.by_table.items():
        if table not in tables:
            continue
        orders = {event.collection_order for event in events if event.table == table}
        if orders != {*range(1, count + 1)}:
            yield _torn(f"END of {name} counts {count} events, and {len(orders)} of them are there", table)
    if end.event_count is not None and set(end.by_table) <= tables:
        orders = {event.total_order for event in events}
        if orders != {*range(1, end.event_count + 1)}:
            yield _torn(f"END of {name} counts {end.event_count} events in all, and {len(orders)} of them are there, by their total_order")


def _groups(trail: Trail) -> Iterator[Finding]:
    """Changes of one transaction must have one transaction in the topics, and that one no other."""
    by_journal: dict[str, str] = {}
    by_source: dict[str, str] = {}
    for key in trail:
        for step in key.steps:
            if step.index is None or step.guessed or step.event.op not in STREAMED or not step.event.transaction:
                continue
            ours, theirs = key.changes[step.index].transaction, step.event.transaction
            if not ours:
                continue
            if by_journal.setdefault(ours, theirs) != theirs:
                evidence = f"transaction {ours} of the journal is {by_journal[ours]} in one record and {theirs} in another"
                yield Finding(Invariant.TRANSACTIONS, key.table, key.key, evidence)
            elif by_source.setdefault(theirs, ours) != ours:
                evidence = f"transaction {theirs} of the topics has changes of {by_source[theirs]} and of {ours}"
                yield Finding(Invariant.TRANSACTIONS, key.table, key.key, evidence)


def _torn(evidence: str, table: str | None = None) -> Finding:
    return Finding(Invariant.TRANSACTIONS, table, None, evidence)


def two_owners(trail: Trail) -> Iterator[Finding]:
    """Yield starts of a task that have written after a later start of it had begun to write."""
    begun: dict[tuple[str, str, int], list[str]] = {}
    for write in trail.history.writes:
        starts = begun.setdefault((write.task, write.topic, write.partition), [])
        if starts and write.start == starts[-1]:
            continue
        if write.start in starts:
            where = f"{write.topic}-{write.partition}@{write.offset}"
            evidence = f"start {write.start} of task {write.task} wrote {where} after {starts[-1]} had begun to"
            yield Finding(Invariant.ONE_OWNER, None, None, evidence)
        starts.append(write.start)


def quiet_failures(trail: Trail) -> Iterator[Finding]:
    """Yield tasks that ended otherwise than they had to: FAILED for no reason, or RUNNING where an error had to end them."""
    states, failure = trail.history.states, trail.history.promise.failure
    if failure is None:
        for state in states:
            if state.state != "RUNNING":
                first = state.error.strip().splitlines()[:1]
                yield Finding(
                    Invariant.LOUD, None, None, f"task {state.task} is {state.state}: {first[0] if first else 'it does not say why'}"
                )
    elif not any(state.state == "FAILED" and failure in state.error for state in states):
        found = ", ".join(f"{state.task} is {state.state}" for state in states) or "there is no task"
        yield Finding(Invariant.LOUD, None, None, f"no task has failed with {failure!r}: {found}")


def uncounted(trail: Trail) -> Iterator[Finding]:
    """Yield tasks whose metrics do not say what became of every record."""
    for counted in trail.history.counted:
        known = counted.written + counted.filtered + counted.dead_lettered + counted.skipped
        if known != counted.taken:
            evidence = f"task {counted.task} took {counted.taken} records, and says of {known} what became of them"
            yield Finding(Invariant.COUNTED, None, None, evidence)


def incomplete_schema_history(trail: Trail) -> Iterator[Finding]:
    """Yield DDL statements that the schema history does not have, or has in another order."""
    ddl, history = trail.history.ddl, trail.history.schema_history
    if ddl is None or history is None:
        return
    at = 0
    texts = [_statement(entry) for entry in history]
    for entry in ddl:
        text = _statement(entry)
        if text in texts[at:]:
            at = texts.index(text, at) + 1
        else:
            what = "is only there before an earlier one" if text in texts else "is not there"
            yield Finding(Invariant.SCHEMA_HISTORY, None, None, f"of the schema history: {what}: {entry.statement.strip()[:120]}")


def _statement(entry: SchemaChange) -> str:
    return " ".join(entry.statement.split()).rstrip("; ").lower()


def _text(position: Position) -> str:
    return ":".join(map(str, position))
