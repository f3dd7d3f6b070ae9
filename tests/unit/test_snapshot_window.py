"""The window and the state machine of an incremental snapshot, without a database: whatever happens, the topic ends as the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.errors import FatalTaskError, RetriableError
from connectors.engine.notification.events import IncrementalEvents, Notification
from connectors.engine.snapshot.hooks import SnapshotHooks
from connectors.engine.snapshot.incremental import IncrementalSnapshot
from connectors.engine.snapshot.incremental_offset import IncrementalOffset, StoredKey, WantedCollection
from connectors.engine.snapshot.java_object import JavaValue
from connectors.engine.snapshot.pace import PAUSES, WIDEST, ChunkSize
from connectors.engine.snapshot.reader import Chunk, UnknownCollectionError
from connectors.engine.snapshot.watermarks import Watermarks
from connectors.engine.snapshot.window import Window


def test_only_watermarks_of_the_chunk_open_and_close_the_window() -> None:
    window: Window[str] = Window()
    assert not window.opens("any-open"), "there is no chunk"
    window.begin("c1")
    window.fill([(b"k", "row")])
    assert not window.opens("c0-open")
    assert not window.closes("c0-close")
    assert not window.drop(b"k"), "the low watermark was not passed"
    assert window.opens("c1-open")
    assert window.closes("c1-close")
    assert window.take() == ["row"]
    assert not window.closes("c1-close"), "it was taken already"


def test_rows_without_a_key_are_all_kept() -> None:
    window: Window[str] = Window()
    window.begin("c")
    window.fill([(None, "a"), (None, "a"), (b"k", "b")])
    assert window.take() == ["a", "a", "b"]


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_a_window_gives_the_rows_whose_keys_the_stream_did_not_show(rows: list[int], before: list[int], inside: list[int]) -> None:
    window: Window[int] = Window()
    window.begin("c")
    window.fill([(b"%d" % key, key) for key in rows])
    for key in before:
        window.drop(b"%d" % key)
    window.opens("c-open")
    for key in inside:
        window.drop(b"%d" % key)
    assert window.take() == [key for key in dict.fromkeys(rows) if key not in inside]


# -- a database of one table and its log -------------------------------------------------------------------------------------------------

Operation = tuple[str, int, int]
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 6), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.integers(0, 6), st.just(0)),
    st.tuples(st.just("truncate"), st.just(0), st.just(0)),
)


@dataclass
class Table(SnapshotHooks, Watermarks):
    """Rows, a log of what was done to them, and a plan of what others do at each phase."""

    structure = None
    takes_surrogate_keys = True

    rows: dict[int, int]
    plan: list[list[Operation]] = field(default_factory=list)
    failures: list[Exception | None] = field(default_factory=list)
    log: list[tuple[str, object]] = field(default_factory=list)

    def do(self, operation: Operation) -> None:
        name, key, value = operation
        if name == "put":
            self.rows[key] = value
        elif name == "delete":
            if self.rows.pop(key, None) is None:
                return
        else:
            self.rows.clear()
        self.log.append((name, (key, value)))

    def reached(self, phase: str) -> None:
        for operation in self.plan.pop(0) if self.plan else []:
            self.do(operation)

    def low(self, chunk: str) -> None:
        self.log.append(("open", chunk + "-open"))

    def high(self, chunk: str) -> None:
        self.log.append(("close", chunk + "-close"))

    def names(self) -> Sequence[str]:
        return ["s.t"]

    def maximum(self, wanted: WantedCollection) -> StoredKey | None:
        if wanted.id != "s.t":
            raise UnknownCollectionError("no such table")
        return stored(max(self.rows)) if self.rows else None

    def read(self, wanted: WantedCollection, after: StoredKey | None, until: StoredKey, limit: int) -> Chunk[tuple[int, int]]:
        failure = self.failures.pop(0) if self.failures else None
        if failure:
            raise failure
        keys = sorted(key for key in self.rows if after is None or number(after) < key <= number(until))[:limit]
        return Chunk([(b"%d" % key, (key, self.rows[key])) for key in keys], stored(keys[-1]) if keys else None)


def stored(key: int) -> StoredKey:
    return (JavaValue("java.lang.Integer", str(key)),)


def number(key: StoredKey) -> int:
    assert key[0] is not None
    return int(key[0].text)


class Run:
    """Drives a snapshot over a table; `topic` is what it and the stream sent, folded."""

    def __init__(self, table: Table, chunk_size: int) -> None:
        self.table, self.chunk_size = table, chunk_size
        self.topic: dict[int, int] = {}
        self.read_at = 0
        self.now = 0.0
        self.notes: list[Notification] = []
        self.snapshot = self.new()

    def new(self) -> IncrementalSnapshot[tuple[int, int]]:
        tell = IncrementalEvents("p", self.notes.append)
        return IncrementalSnapshot(
            self.table, self.table, chunk_size=self.chunk_size, emit=self.topic_put, tell=tell, hooks=self.table, clock=self.clock
        )

    def clock(self) -> float:
        """Time passes whenever somebody looks."""
        self.now += 1.0
        return self.now

    def topic_put(self, rows: list[tuple[int, int]]) -> None:
        self.topic.update(rows)

    def batch(self, most: int = 1_000_000) -> None:
        """What a poll does. One that fails loses its batch, and goes on from the offset of the one before."""
        before = self.read_at, dict(self.topic), dict(self.snapshot.offset())
        try:
            self.snapshot.advance()
            self.stream(most)
        except RetriableError:
            self.read_at, self.topic, offset = before
            self.snapshot.restore(offset)

    def stream(self, most: int) -> None:
        for name, what in self.table.log[self.read_at : self.read_at + most]:
            self.read_at += 1
            if name == "open":
                self.snapshot.window_opened(str(what))
            elif name == "close":
                self.snapshot.window_closed(str(what))
            else:
                assert isinstance(what, tuple)
                key, value = what
                if name == "truncate":
                    self.topic.clear()
                    self.snapshot.truncated()
                    continue
                self.snapshot.event(b"%d" % key)
                if name == "put":
                    self.topic[key] = value
                else:
                    self.topic.pop(key, None)

    def finish(self) -> None:
        for _ in range(1000):
            self.batch()
            if not self.snapshot.is_running and not self.snapshot.chunk:
                return
        raise AssertionError("the snapshot does not end")


#: Few keys, so that what is read and what changes meet often.
ROWS = st.dictionaries(st.integers(0, 5), st.integers(100, 199), min_size=2)
PLANS = st.lists(st.lists(OPERATIONS, max_size=2), min_size=6, max_size=30)


@settings(max_examples=300)
@given(ROWS, PLANS, st.integers(1, 5))
def test_the_topic_is_the_table_whatever_happens_at_whatever_phase(rows: dict[int, int], plan: list[list[Operation]], size: int) -> None:
    table = Table(rows=dict(rows), plan=plan)
    run = Run(table, size)
    run.snapshot.begin("s", ["s.t"])
    run.finish()
    assert run.topic == table.rows


@given(ROWS, PLANS, st.integers(1, 5), st.lists(st.integers(0, 4), max_size=8), st.lists(st.booleans(), max_size=10))
def test_the_topic_is_the_table_after_restarts_and_lost_connections(
    rows: dict[int, int], plan: list[list[Operation]], size: int, steps: list[int], losses: list[bool]
) -> None:
    """A restart goes on from the offset of the last batch, here at any place of the stream; watermarks of before come again."""
    table = Table(rows=dict(rows), plan=plan, failures=[RetriableError("lost") if lost else None for lost in losses])
    run = Run(table, size)
    while not run.snapshot.is_running and not run.notes:
        try:
            run.snapshot.begin("s", ["s.t"])
        except RetriableError:  # the signal comes again
            run.snapshot.restore({})
            run.notes.clear()
    for step in steps:
        run.batch(step)
        offset = dict(run.snapshot.offset())
        run.snapshot = run.new()
        run.snapshot.restore(offset)
    run.finish()
    assert run.topic == table.rows


@pytest.mark.parametrize("refusals", [[], [True], [True, False, True], [False, *[True] * len(PAUSES)]])
def test_a_chunk_that_is_refused_is_read_again(refusals: list[bool]) -> None:
    table = Table(rows={1: 1, 2: 2, 3: 3}, failures=[FatalTaskError("refused") if refused else None for refused in refusals])
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t", "s.other"])
    run.finish()
    scans = [note.additional_data for note in run.notes if note.type == "TABLE_SCAN_COMPLETED"]
    assert [scan["status"] for scan in scans] == ["SUCCEEDED", "UNKNOWN_SCHEMA"]
    assert run.topic == table.rows


def test_a_chunk_that_is_refused_for_good_pauses_the_snapshot_until_somebody_has_looked_at_it() -> None:
    attempts = 1 + len(PAUSES)
    table = Table(rows={1: 1, 2: 2, 3: 3}, failures=[None, *[FatalTaskError("refused")] * (2 * attempts)])
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t", "s.u"])
    for round_number in range(2):
        for _ in range(60):
            run.batch()
        assert run.snapshot.is_paused
        assert run.snapshot.collections == ["s.t", "s.u"], "it is not left for the next collection"
        assert run.topic == {1: 1}
        paused = [note for note in run.notes if note.type == "PAUSED"]
        assert [note.additional_data["error"] for note in paused] == ["refused"] * (round_number + 1)
        run.snapshot.resume()
    run.finish()
    assert run.topic == table.rows
    assert run.notes[-1].type == "COMPLETED"


def test_a_collection_whose_chunk_is_refused_can_be_stopped() -> None:
    table = Table(rows={1: 1, 2: 2}, failures=[FatalTaskError("refused")] * (1 + len(PAUSES)))
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t", "s.other"])
    for _ in range(60):
        run.batch()
    run.snapshot.stop(["s.t"])
    run.snapshot.resume()
    run.finish()
    assert [note.type for note in run.notes][-2:] == ["TABLE_SCAN_COMPLETED", "COMPLETED"]
    assert run.topic == {}


@given(st.integers(1, 5000), st.floats(0.01, 10), st.lists(st.floats(1e-6, 1e-2), min_size=1, max_size=60))
def test_a_chunk_size_follows_its_time_within_bounds(rows: int, seconds: float, costs: list[float]) -> None:
    """`costs` are seconds a row, the last one for a long while: there the size settles, or lies at a bound."""
    size = ChunkSize(rows, seconds)
    for cost in [*costs, *[costs[-1]] * 60]:
        before = size.rows
        size.took(cost * before, before)
        assert max(1, rows // WIDEST) <= size.rows <= rows * WIDEST
        assert size.rows <= 2 * before
    expected = min(rows * WIDEST, max(max(1, rows // WIDEST), seconds / costs[-1]))
    assert abs(size.rows - expected) <= max(2, expected * 0.1)
    size.took(100.0, size.rows - 1)
    assert abs(size.rows - expected) <= max(2, expected * 0.1), "the last, short chunk says nothing"


def test_chunks_keep_their_size_unless_a_time_is_asked_for() -> None:
    size = ChunkSize(100)
    size.took(1000.0, 100)
    assert size.rows == 100


def test_an_offset_comes_back() -> None:
    wanted = (WantedCollection("s.t", "a = ')' OR (b)", None), WantedCollection("s.ü", None, "seq"))
    offset = IncrementalOffset(wanted, stored(3), None, "signal")
    fields = offset.dump()
    assert IncrementalOffset.load(fields) == offset
    assert fields["incremental_snapshot_maximum_key"] == "aced000570"
    assert fields["incremental_snapshot_collections"] == (
        '[{"incremental_snapshot_collections_id":"s.t","incremental_snapshot_collections_additional_condition":"(a = \')\' OR (b))",'
        '"incremental_snapshot_collections_surrogate_key":null},{"incremental_snapshot_collections_id":"s.ü",'
        '"incremental_snapshot_collections_additional_condition":null,"incremental_snapshot_collections_surrogate_key":"seq"}]'
    )


def test_a_condition_that_debezium_wrapped_again_and_again_is_the_same() -> None:
    text = '[{"incremental_snapshot_collections_id":"s.t","incremental_snapshot_collections_additional_condition":"(((a) OR (b)))"}]'
    assert IncrementalOffset.load({"incremental_snapshot_collections": text}).collections[0].condition == "(a) OR (b)"
