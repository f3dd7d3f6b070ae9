"""The checker of histories: right ones are clean, and each planted fault is reported by the invariant that it breaks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.app.verify.history.checks import check
from connect_py.app.verify.history.records import (
    Acknowledged,
    Change,
    Event,
    History,
    Invariant,
    Op,
    Promise,
    Row,
    StoredOffset,
    TaskState,
    Write,
)
from tests.histories import TABLES, right_history
from tests.seeds import examples, seeds

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.fixed_dictionaries({"whole_deletes": st.booleans(), "late_rows": st.booleans(), "kills": st.sampled_from((0.05, 0.2))})


@settings(max_examples=examples(300), deadline=None)
@given(seed=SEEDS, shape=SHAPES, exactly_once=st.booleans())
def test_a_right_history_is_clean_over_kills_and_replays(seed: int, shape: dict[str, Any], exactly_once: bool) -> None:
    history = right_history(random.Random(seed), exactly_once=exactly_once, **shape)
    assert [str(finding) for finding in check(history)] == []


@settings(max_examples=examples(150), deadline=None)
@given(seed=SEEDS, shape=SHAPES)
def test_a_right_history_is_clean_where_its_start_is_not_known(seed: int, shape: dict[str, Any]) -> None:
    history = right_history(random.Random(seed), **shape)
    history = replace(history, promise=replace(history.promise, start=None, restarts=None))
    assert [str(finding) for finding in check(history)] == []


# -- planted faults: a right history with one thing wrong


Fault = Callable[[History, random.Random], History]


def without(history: History, event: Event) -> History:
    return replace(history, events=[each for each in history.events if each is not event])


def changed(history: History, event: Event, **more: object) -> History:
    return replace(history, events=[replace(each, **more) if each is event else each for each in history.events])


def some(history: History, dice: random.Random, *ops: Op, last: bool = False) -> Event:
    """An event of these operations which is there once, so that no replay makes good what is done to it."""
    counts: dict[tuple[object, ...], int] = {}
    for event in history.events:
        place = event.table, event.key, event.op, event.sequence
        counts[place] = counts.get(place, 0) + 1
    found = [e for e in history.events if e.op in ops and counts[e.table, e.key, e.op, e.sequence] == 1]
    return found[-1] if last else dice.choice(found)


def drop_an_event(history: History, dice: random.Random) -> History:
    return without(history, some(history, dice, Op.CREATE, Op.UPDATE))


def lose_a_delete(history: History, dice: random.Random) -> History:
    event = some(history, dice, Op.DELETE)
    place = history.events.index(event)
    return replace(history, events=[*history.events[:place], *history.events[place + 2 :]])


def repeat_an_event(history: History, dice: random.Random) -> History:
    """Once more than restarts explain."""
    event = some(history, dice, Op.CREATE, Op.UPDATE, last=True)
    end = max(each.offset for each in history.events if each.topic == event.topic) + 1
    more = [replace(event, offset=end + number) for number in range((history.promise.restarts or 0) + 1)]
    return replace(history, events=[*history.events, *more])


def swap_two_of_a_key(history: History, dice: random.Random) -> History:
    events = list(history.events)
    pairs = [
        (one, two)
        for one, first in enumerate(events)
        for two in range(one + 1, len(events))
        if (first.table, first.key) == (events[two].table, events[two].key)
        and first.op is Op.CREATE
        and events[two].op is Op.UPDATE
        and not any(e.table == first.table and e.key == first.key for e in events[one + 1 : two])
        and [(e.table, e.key, e.sequence) for e in events].count((first.table, first.key, first.sequence)) == 1
    ]
    one, two = dice.choice(pairs)
    events[one], events[two] = replace(events[two], offset=events[one].offset), replace(events[one], offset=events[two].offset)
    return replace(history, events=events)


def read_a_stale_row(history: History, dice: random.Random) -> History:
    events = list(history.events)
    event = some(history, dice, Op.UPDATE)
    older = next(c for c in history.changes if (c.table, c.key, c.sequence) == (event.table, event.key, event.sequence - 1))
    row = replace(event, op=Op.READ, sequence=older.sequence, digest=older.digest, incremental=True, total_order=None, offset=event.offset)
    events.insert(events.index(event) + 1, row)
    return replace(history, events=events)


def skip_a_chunk(history: History, dice: random.Random) -> History:
    """Rows that were read, and never changed again, are not there."""
    rest = [event for event in history.events if event.op is not Op.READ]
    return replace(history, events=[event for event in rest if (event.table, event.key) != reads_only(history)])


def reads_only(history: History) -> tuple[str, str | None]:
    return next((e.table, e.key) for e in history.events if e.op is Op.READ)


def resurrect_an_aborted_change(history: History, dice: random.Random) -> History:
    event = some(history, dice, Op.CREATE, Op.UPDATE, last=True)
    return replace(history, events=[*history.events, replace(event, op=Op.UPDATE, sequence=1_000, offset=event.offset + 1_000)])


def cut_a_text(history: History, dice: random.Random) -> History:
    event = some(history, dice, Op.CREATE, Op.UPDATE)
    return changed(history, event, digest=f"{event.digest}, of a text without its end")


def store_an_older_offset(history: History, dice: random.Random) -> History:
    return replace(history, stored=[*history.stored, StoredOffset("shop", (99, 0)), StoredOffset("shop", (98, 7))])


def acknowledge_early(history: History, dice: random.Random) -> History:
    sample = dice.choice(history.acknowledged)
    return replace(history, acknowledged=[Acknowledged(sample.at, (10_000, 0), sample.stored)])


def lose_a_tombstone(history: History, dice: random.Random) -> History:
    return without(history, history.events[history.events.index(some(history, dice, Op.DELETE)) + 1])


def tear_a_transaction(history: History, dice: random.Random) -> History:
    """One change of several is shown under another transaction's name."""
    large = {event.transaction for event in history.events if event.total_order == 3}
    found = [event for event in history.events if event.transaction in large]
    event = dice.choice([event for event in found if event.op is not Op.DELETE])  # which may not say what it is of
    return changed(history, event, transaction="other:lsn")


def lose_an_end(history: History, dice: random.Random) -> History:
    return replace(history, boundaries=history.boundaries[:-1])


def write_after_the_successor(history: History, dice: random.Random) -> History:
    late = [Write("c-0", start, TABLES[0], 0, 1_000 + number) for number, start in enumerate(("one", "two", "one"))]
    return replace(history, writes=[*history.writes, *late])


def forget_ddl(history: History, dice: random.Random) -> History:
    assert history.schema_history is not None
    return replace(history, schema_history=history.schema_history[:-1])


def fail_a_task(history: History, dice: random.Random) -> History:
    return replace(history, states=[TaskState("c-0", "FAILED", "org.example.Error: no\n  at")])


def miscount(history: History, dice: random.Random) -> History:
    return replace(history, counted=[replace(history.counted[0], written=1)])


def lose_a_row_in_the_lakehouse(history: History, dice: random.Random) -> History:
    assert history.sink_versions is not None
    table = next(table for table in TABLES if history.sink_versions[table][-1])
    *older, last = history.sink_versions[table]
    return replace(history, sink_versions={table: [*older, dict(list(last.items())[1:])]})


def go_back_in_the_lakehouse(history: History, dice: random.Random) -> History:
    assert history.sink_versions is not None
    table, key, row = next((t, k, r) for t in TABLES for k, r in history.sink_versions[t][-1].items() if (r.sequence or 0) > 2)
    live = next(c for c in history.changes if (c.table, c.key) == (table, key) and c.op is not Op.DELETE)
    versions = history.sink_versions[table]
    return replace(history, sink_versions={table: [{key: row}, {key: Row(live.sequence, live.digest)}, *versions[-1:]]})


def keep_another_row(history: History, dice: random.Random) -> History:
    """The journal is no witness of the source."""
    assert history.rows is not None
    table, key = next((table, key) for table in TABLES for key in history.rows[table])
    return replace(history, rows={**history.rows, table: {**history.rows[table], key: Row(1_000)}})


def spread_a_key(history: History, dice: random.Random) -> History:
    return changed(history, some(history, dice, Op.UPDATE), partition=1)


FAULTS: dict[Fault, Invariant] = {
    drop_an_event: Invariant.LOST,
    lose_a_delete: Invariant.LOST,
    repeat_an_event: Invariant.REPLAYS,
    swap_two_of_a_key: Invariant.ORDER,
    spread_a_key: Invariant.ORDER,
    read_a_stale_row: Invariant.STALE_ROW,
    skip_a_chunk: Invariant.LOST,
    resurrect_an_aborted_change: Invariant.PHANTOM,
    cut_a_text: Invariant.VALUES,
    store_an_older_offset: Invariant.OFFSETS,
    acknowledge_early: Invariant.ACKNOWLEDGED,
    lose_a_tombstone: Invariant.TOMBSTONES,
    tear_a_transaction: Invariant.TRANSACTIONS,
    lose_an_end: Invariant.TRANSACTIONS,
    write_after_the_successor: Invariant.ONE_OWNER,
    forget_ddl: Invariant.SCHEMA_HISTORY,
    fail_a_task: Invariant.LOUD,
    miscount: Invariant.COUNTED,
    lose_a_row_in_the_lakehouse: Invariant.LAKEHOUSE,
    go_back_in_the_lakehouse: Invariant.LAKEHOUSE,
    keep_another_row: Invariant.JOURNAL,
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("whole_deletes", [True, False], ids=["rows", "keys"])
def test_a_planted_fault_is_reported_by_its_invariant(fault: Fault, whole_deletes: bool) -> None:
    planted = 0
    for seed in seeds(25):
        dice = random.Random(seed)
        try:
            history = fault(right_history(dice, whole_deletes=whole_deletes, late_rows=not whole_deletes), dice)
        except (IndexError, StopIteration):  # this one has no place for it
            continue
        planted += 1
        found = check(history)
        assert FAULTS[fault] in {finding.invariant for finding in found}, f"seed {seed}: {[str(finding) for finding in found]}"
    assert planted >= 10


def test_a_deletion_that_lost_its_tombstone_to_a_kill_may_come_again_after_a_repeated_snapshot() -> None:
    changes = [
        Change(line, "a", "1", line, op, "", None) for line, op in enumerate((Op.CREATE, Op.DELETE, Op.CREATE), 1)
    ]  # fmt: skip
    shown = [(Op.CREATE, 1), (Op.DELETE, 1), (Op.READ, 3), (Op.CREATE, 1), (Op.DELETE, 1), (Op.TOMBSTONE, None), (Op.CREATE, 3)]
    events = [Event("a", 0, offset, "a", "1", op, sequence) for offset, (op, sequence) in enumerate(shown)]
    promise = Promise(start=0, snapshot=False)

    def tombstones(events: list[Event]) -> list[str]:
        found = check(History(changes=changes, events=events, promise=promise))
        return [str(finding) for finding in found if finding.invariant is Invariant.TOMBSTONES]

    assert tombstones(events) == []
    assert tombstones([event for event in events if event.op is not Op.TOMBSTONE]) != []


def findings_of(changes: str, *records: str) -> list[Invariant]:
    """Return what is found wrong with a key's history, whose deletions say only the key.

    Args:
        changes: their operations, the first of which is number 1.
        records: operations with the number of a row, as c1; a deletion is followed by its tombstone.
    """
    journal = [Change(line, "a", "1", line, Op(op)) for line, op in enumerate(changes, 1)]
    events: list[Event] = []
    for record in records:
        op, sequence = Op(record[0]), int(record[1:]) if record[1:] else None
        for each in (op, Op.TOMBSTONE) if op is Op.DELETE else (op,):
            events.append(Event("a", 0, len(events), "a", "1", each, sequence))
    return [finding.invariant for finding in check(History(changes=journal, events=events, promise=Promise(initial_rows_lag=True)))]


def test_a_deletion_that_says_only_its_key_may_be_any_that_is_possible_at_its_place() -> None:
    # a snapshot that was resumed has read the last row; the stream begins before
    assert findings_of("cdcdc", "r5", "d", "c3", "d", "c5") == []
    assert findings_of("cdcd", "r3", "d", "c3", "d") == []
    # the stream is killed after its first deletion, and begins again
    assert findings_of("cdcdc", "r3", "d", "r5", "d", "c3", "d", "c5") == []
    assert findings_of("cdcd", "c1", "d", "c3", "d", "d", "c3", "d") == []


def test_what_is_wrong_however_deletions_are_read_is_found() -> None:
    assert Invariant.LOST in findings_of("cdcdc", "c1", "d", "c3", "c5")
    assert Invariant.ORDER in findings_of("cdcdc", "c1", "d", "c3", "d", "c5", "c1", "c3", "d", "c5")  # a replay without a deletion
    assert Invariant.ORDER in findings_of("cdcu", "c1", "c3", "d", "u4")
    assert Invariant.TABLE in findings_of("cdc", "c1", "d", "c3", "d")
    assert findings_of("cu", "c1", "d", "u2") == [Invariant.PHANTOM]
