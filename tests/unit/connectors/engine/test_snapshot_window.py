"""The window and the state machine of an incremental snapshot, without a database: whatever happens, the topic ends as the table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.errors import FatalTaskError, RetriableError
from connectors.engine.batches import CHUNK_PAUSES
from connectors.engine.snapshot.incremental.machine import WIDEST, ChunkSize
from connectors.engine.snapshot.incremental.offset import IncrementalOffset, WantedCollection
from connectors.engine.snapshot.incremental.window import Window
from tests.seeds import examples
from tests.snapshot_run import OPERATIONS, Operation, Run, Table, stored


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


#: Few keys, so that what is read and what changes meet often.
ROWS = st.dictionaries(st.integers(0, 5), st.integers(100, 199), min_size=2)
PLANS = st.lists(st.lists(OPERATIONS, max_size=2), min_size=6, max_size=30)


@settings(max_examples=examples(300))
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


@pytest.mark.parametrize("refusals", [[], [True], [True, False, True], [False, *[True] * len(CHUNK_PAUSES)]])
def test_a_chunk_that_is_refused_is_read_again(refusals: list[bool]) -> None:
    table = Table(rows={1: 1, 2: 2, 3: 3}, failures=[FatalTaskError("refused") if refused else None for refused in refusals])
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t", "s.other"])
    run.finish()
    scans = [note.additional_data for note in run.notes if note.type == "TABLE_SCAN_COMPLETED"]
    assert [scan["status"] for scan in scans] == ["SUCCEEDED", "UNKNOWN_SCHEMA"]
    assert run.topic == table.rows


def test_a_chunk_that_is_refused_for_good_pauses_the_snapshot_until_somebody_has_looked_at_it() -> None:
    attempts = 1 + len(CHUNK_PAUSES)
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


@pytest.mark.parametrize("refusals", [1, 2, len(CHUNK_PAUSES), 1 + len(CHUNK_PAUSES)])
def test_a_collection_whose_largest_key_is_refused_is_not_left_out(refusals: int) -> None:
    """The loss R5 of the reference: an SQL error there, and no row of the table was ever read."""
    table = Table(rows={1: 1, 2: 2}, maximum_failures=[FatalTaskError("refused")] * refusals)
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t"])
    for _ in range(60):
        run.batch()
    if refusals > len(CHUNK_PAUSES):
        assert run.snapshot.is_paused
        assert run.snapshot.collections == ["s.t"]
        run.snapshot.resume()
        run.finish()
    assert run.topic == table.rows
    assert [note.additional_data["status"] for note in run.notes if note.type == "TABLE_SCAN_COMPLETED"] == ["SUCCEEDED"]


@pytest.mark.parametrize(("conditions", "surrogate_key"), [([("s.t", "no_such_column = 1")], None), ([], "no_such_column")])
def test_what_a_signal_asks_for_and_cannot_be_read_is_left_out(conditions: list[tuple[str, str]], surrogate_key: str | None) -> None:
    table = Table(rows={1: 1}, maximum_failures=[FatalTaskError("refused")] * 2)
    run = Run(table, 1)
    run.snapshot.begin("s", ["s.t"], conditions, surrogate_key)
    run.finish()
    assert [note.additional_data["status"] for note in run.notes if note.type == "TABLE_SCAN_COMPLETED"] == ["SQL_EXCEPTION"]


def test_the_progress_shows_rows_pauses_and_how_it_ended() -> None:
    table = Table(rows={1: 1, 2: 2, 3: 3})
    run = Run(table, 1)

    def shown(*names: str) -> tuple[object, ...]:
        values = run.snapshot.progress.group().values
        return tuple(values[name] for name in names)

    run.snapshot.begin("s", ["s.t"])
    assert shown("SnapshotRunning", "TotalTableCount", "RowsScanned") == (True, 1, {"s.t": 1})
    run.snapshot.pause()
    assert shown("SnapshotRunning", "SnapshotPaused") == (False, True)
    run.snapshot.resume()
    run.finish()
    assert shown("SnapshotCompleted", "SnapshotPaused", "RemainingTableCount", "RowsScanned") == (True, False, 0, {"s.t": 3})
    run.snapshot.begin("s", ["s.t"])
    run.snapshot.stop()
    run.finish()
    assert shown("SnapshotAborted", "SnapshotCompleted", "RemainingTableCount") == (True, False, 0)


def test_a_collection_whose_chunk_is_refused_can_be_stopped() -> None:
    table = Table(rows={1: 1, 2: 2}, failures=[FatalTaskError("refused")] * (1 + len(CHUNK_PAUSES)))
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
