"""What a snapshot remembers of itself: ranges that are done, rows and rates, and how both are shown."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.api import MetricGroup, Route
from connect_py.api.record import EncodedRow
from connect_py.api.storage import Status
from connect_py.data.schema import STRING
from connect_py.herder.base import ConnectorStatus
from connect_py.metrics.worker import WorkerMetrics, snapshot_of
from connectors.engine.batches import rows_per_batch
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.snapshot.initial.progress import WHOLE, Chunk, KeyRange, SnapshotProgress
from connectors.engine.snapshot.initial.run import Encode, MarkedRows, Marker, OpenChunk, Part, Piece, encoded
from connectors.engine.snapshot.parallel import frames
from rest_api import models

KEY = ("id int4",)


def key(number: int | None) -> tuple[str] | None:
    return None if number is None else (f"{number}",)


def spans(progress: SnapshotProgress, table: str = "t") -> list[tuple[Any, Any]]:
    return [(one.after, one.until) for one in progress.left(table, KEY)]


def test_what_is_left_are_the_gaps_between_finished_ranges() -> None:
    progress = SnapshotProgress()
    assert progress.left("t", KEY) == [WHOLE] and progress.text is None
    chunks = [KeyRange(key(a), key(b)) for a, b in ((None, 10), (10, 20), (20, 30), (30, None))]
    for chunk in chunks:
        progress.planned("t", chunk)
    progress.chunk_done("t", chunks[2], 10)
    assert spans(SnapshotProgress(progress.text)) == [(None, ("20",)), (("30",), None)]
    progress.chunk_done("t", chunks[0], 10)
    assert spans(SnapshotProgress(progress.text)) == [(("10",), ("20",)), (("30",), None)]
    progress.chunk_done("t", chunks[1], 10)
    assert progress.text == '{"v":1,"tables":{"t":{"rows":30,"key":["id int4"],"done":[[null,["30"]]]}}}'
    progress.table_done("t")
    again = SnapshotProgress(progress.text)
    assert again.is_done("t") and again.rows("t") == 30


def test_a_gap_is_cut_again_after_a_restart() -> None:
    progress = SnapshotProgress('{"v":1,"tables":{"t":{"rows":5,"key":["id int4"],"done":[[["10"],["20"]],[["50"],null]]}}}')
    assert spans(progress) == [(None, ("10",)), (("20",), ("50",))]
    progress.planned("t", KeyRange(key(20), key(30)))
    progress.planned("t", KeyRange(key(30), key(50)))
    progress.chunk_done("t", KeyRange(key(30), key(50)), 5)
    assert spans(SnapshotProgress(progress.text)) == [(None, ("10",)), (("20",), ("30",))]


def test_ranges_of_another_key_are_forgotten() -> None:
    progress = SnapshotProgress('{"v":1,"tables":{"t":{"rows":5,"key":["id int4"],"done":[[null,["20"]]]}}}')
    assert progress.left("t", ("id int8",)) == [WHOLE]
    assert progress.is_empty and progress.rows("t") == 0


def test_a_form_that_is_not_known_is_no_progress() -> None:
    for text in ('{"v":2,"tables":{"t":{}}}', "{", "[]", '{"v":1}', '{"v":1,"tables":{"t":{"rows":1,"key":[],"done":[1]}}}'):
        assert SnapshotProgress(text).is_empty


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_restarts_in_any_order_of_chunks_leave_each_key_once(seed: int, cuts: int) -> None:
    dice = random.Random(seed)
    bounds: list[int | None] = sorted(dice.sample(range(100), cuts))
    done: list[tuple[int, int]] = []
    text: str | None = None
    for _ in range(20):
        progress = SnapshotProgress(text)
        if progress.is_done("t"):
            break
        planned = []
        for span in progress.left("t", KEY):
            low = -1 if span.after is None else int(str(span.after[0]))
            high = 100 if span.until is None else int(str(span.until[0]))
            inside = [bound for bound in bounds if bound is not None and low < bound < high and dice.random() < 0.7]
            edges = [None if span.after is None else low, *inside, None if span.until is None else high]
            planned += [KeyRange(key(a), key(b)) for a, b in pairwise(edges)]
            for chunk in planned[-(len(edges) - 1) :]:
                if chunk != WHOLE:
                    progress.planned("t", chunk)
        order = dice.sample(planned, len(planned))
        count = dice.randrange(len(order) + 1)
        for chunk in order[:count]:
            done.append((-1 if chunk.after is None else int(str(chunk.after[0])), 100 if chunk.until is None else int(str(chunk.until[0]))))
            if chunk != WHOLE:
                progress.chunk_done("t", chunk, 1)
        if count == len(order):
            progress.table_done("t")
        text = progress.text
    done.sort()
    assert all(a[1] <= b[0] for a, b in pairwise(done)), "a key was read in two finished chunks"


def opened(table: str, chunk: Chunk[str], encode: Encode[bytes]) -> OpenChunk[bytes]:
    found: OpenChunk[bytes] = OpenChunk(table, chunk)
    found.encode = encode
    return found


def test_chunks_beside_each_other_keep_the_markers() -> None:
    route = Route("t", None, STRING)
    progress = SnapshotProgress()
    ended: list[str] = []
    marked: MarkedRows[bytes] = MarkedRows(progress, ended.append)

    def encode(rows: Any, marker: Marker) -> list[EncodedRow]:
        return [(route, row, marker.value.encode()) for row in rows]

    progress.left("a", KEY)
    low, high = KeyRange(None, key(5)), KeyRange(key(5), None)
    one, two, three = (
        opened("a", Chunk("a", low, KEY, is_last=False), encode),
        opened("a", Chunk("a", high, KEY), encode),
        opened("b", Chunk("b"), encode),
    )
    out: list[EncodedRow] = []

    def take(chunk: OpenChunk[bytes], part: Part, *rows: Any) -> None:
        nonlocal out
        out += encoded(marked.take(Piece(chunk, part, list(rows))))

    for chunk in (one, two, three):
        take(chunk, Part.BEGIN)
    take(two, Part.FIRST, b"6")
    take(three, Part.FIRST, b"x")
    take(two, Part.RECORDS, *encode([b"7"], Marker.MIDDLE))
    take(two, Part.ROWS, b"8")
    take(two, Part.END)
    assert progress.text is None, "a row of the chunk is held back"
    take(one, Part.ROWS, b"1")
    assert SnapshotProgress(progress.text).left("a", KEY) == [low]
    take(one, Part.END)
    assert ended == ["a"]
    take(three, Part.ROWS, b"y")
    assert progress.is_done("a")
    take(three, Part.END)
    out += encoded(marked.finish())
    assert [(row, marker.decode() if marker else "") for _, row, marker in out] == [
        (b"6", "first"),
        (b"x", "first_in_data_collection"),
        (b"7", "true"),
        (b"8", "true"),
        (b"1", "last_in_data_collection"),
        (b"y", "last"),
    ]
    assert progress.is_done("b")


@given(st.lists(st.text(), min_size=1), st.booleans())
def test_rows_come_out_of_a_frame_as_they_went_in(texts: list[str], with_key: bool) -> None:
    route = Route("t", None, STRING)
    rows: list[EncodedRow] = [(route, orjson.dumps(text) if with_key else None, orjson.dumps({"a": text})) for text in texts]
    data = frames.rows_frame(rows)
    length, kind = frames.HEADER.unpack_from(data)
    assert length == len(data) - 4
    assert frames.unpack_rows(kind, data[5:], route, b"", b"") == rows
    with_heads = frames.unpack_rows(kind, data[5:], route, b"<", b"[")
    assert with_heads == [(route, None if k is None else b"<" + k + b"}", b"[" + (v or b"") + b"}") for _, k, v in rows]


def test_a_long_snapshot_shows_rows_rates_and_what_is_left() -> None:
    now = 100.0
    metrics = SnapshotMetrics("postgres", "s", clock=lambda: now)
    metrics.begin(2, {"a": 1000, "b": 50, "c": None}, {"a": 400, "c": 7}, ["c"])
    metrics.scanned("a", 100)
    now += 4
    assert len(metrics.groups()) == 1, "most snapshots are over before anybody can ask"
    now += 6
    metrics.scanned("a", 200)
    shown = snapshot_of(MetricGroup(g.domain, g.type, g.tags, g.values) for g in metrics.groups())
    assert shown == {
        "state": "RUNNING",
        "rows": 707,
        "tables": [
            {"table": "a", "state": "RUNNING", "rows": 700, "estimated_rows": 1000, "rows_per_second": 30.0, "seconds_left": 10},
            {"table": "b", "state": "PENDING", "rows": 0, "estimated_rows": 50},
            {"table": "c", "state": "COMPLETED", "rows": 7, "seconds_left": 0},
        ],
    }
    now += 30
    metrics.end("completed")
    assert (snapshot_of(metrics.groups()) or {})["state"] == "COMPLETED"
    now += 61
    assert snapshot_of(metrics.groups()) is None


def test_an_incremental_snapshot_is_shown_with_its_pauses_taken_out() -> None:
    now = 0.0
    metrics = SnapshotMetrics("postgres", "p", clock=lambda: now)
    metrics.begin(1, {"a": 10})
    metrics.scanned("a", 10)
    metrics.end("completed")
    metrics.begin_incremental(["s.b"])
    metrics.estimated("s.b", 1000)
    now += 10
    metrics.scanned("s.b", 50)
    now += 10
    metrics.scanned("s.b", 50)
    metrics.added(["s.c"])
    metrics.paused()
    now += 1000
    values = metrics.group().values
    assert (values["SnapshotRunning"], values["SnapshotPaused"], values["SnapshotPausedDurationInSeconds"]) == (False, True, 1000)
    assert values["RowsScanned"] == {"a": 10, "s.b": 100}
    shown = snapshot_of(metrics.groups()) or {}
    assert (shown["state"], shown["tables"][0]["seconds_left"]) == ("PAUSED", 90)
    metrics.resumed()
    now += 10
    metrics.scanned("s.b", 100)
    assert metrics.group().values["RemainingTableCount"] == 2
    assert snapshot_of(metrics.groups()) == {
        "state": "RUNNING",
        "rows": 200,
        "tables": [
            {"table": "s.b", "state": "RUNNING", "rows": 200, "estimated_rows": 1000, "rows_per_second": 10.0, "seconds_left": 80},
            {"table": "s.c", "state": "PENDING", "rows": 0},
        ],
    }
    metrics.interrupted()
    metrics.begin_incremental(["s.b", "s.c"], again=True)
    assert metrics.group().values["RowsScanned"] == {"a": 10, "s.b": 200, "s.c": 0}
    metrics.table_done("s.b")
    metrics.table_done("s.c")
    metrics.end("completed")
    values = metrics.group().values
    assert (values["SnapshotCompleted"], values["RemainingTableCount"], values["SnapshotPausedDurationInSeconds"]) == (True, 0, 0)


def test_a_task_that_resumes_an_incremental_snapshot_has_no_initial_one_and_still_shows_it() -> None:
    metrics = SnapshotMetrics("postgres", "p")
    metrics.begin_incremental(["s.b"], again=True)
    metrics.skipped()
    assert metrics.group().values["SnapshotRunning"] is True
    without = SnapshotMetrics("postgres", "p")
    without.skipped()
    assert without.group().values["SnapshotSkipped"] is True


def test_a_paused_snapshot_is_shown_with_the_reason_until_it_is_resumed_or_ends() -> None:
    now = 0.0
    metrics = SnapshotMetrics("postgres", "p", clock=lambda: now)
    metrics.begin_incremental(["s.b"])
    now += 1
    assert snapshot_of(metrics.groups()) is None, "a short one that runs is not worth telling"
    metrics.paused("a chunk of s.b could not be read: refused")
    now += 100
    shown = snapshot_of(metrics.groups()) or {}
    assert (shown["state"], shown["paused_reason"], shown["paused_seconds"]) == ("PAUSED", "a chunk of s.b could not be read: refused", 100)
    metrics.resumed()
    assert snapshot_of(metrics.groups()) is None
    now += 10
    assert "paused_reason" not in (snapshot_of(metrics.groups()) or {})
    metrics.paused("on request")
    now += 5
    metrics.end("aborted")
    assert snapshot_of(metrics.groups()) is None, "one that was stopped while it was paused is over"
    assert metrics.group().values["SnapshotPausedDurationInSeconds"] == 105


def test_a_status_shows_a_snapshot_beside_its_tasks_state_and_nothing_without_one() -> None:
    worker = WorkerMetrics()
    task = ("c", 0)
    worker.task_launched(task)
    worker.task_reported(task, {"groups": [("connect.py", "snapshot-progress", {}, {"running": True, "rows": {"a": 5}, "done": {"a": 0}})]})
    running = Status("RUNNING", "w:1")
    status = ConnectorStatus("c", running, {0: running, 1: running}, "source", worker.snapshots("c"))
    shown = models.ConnectorStatus.of(status).tasks
    assert shown[0]["snapshot"] == {"state": "RUNNING", "rows": 5, "tables": [{"table": "a", "state": "PENDING", "rows": 5}]}
    assert shown[1] == {"id": 1, "state": "RUNNING", "worker_id": "w:1", "version": None}
    worker.task_launched(task)
    assert worker.snapshots("c") == {}, "what a process told goes with it"


def _records(chunk: OpenChunk[bytes], *reads: list[bytes]) -> list[EncodedRow]:
    """Return the records of a snapshot of one chunk."""
    marked: MarkedRows[bytes] = MarkedRows(SnapshotProgress())
    pieces = [Piece(chunk, Part.BEGIN), *(Piece(chunk, Part.ROWS, rows) for rows in reads), Piece(chunk, Part.END)]
    return [*(record for piece in pieces for record in encoded(marked.take(piece))), *encoded(marked.finish())]


def test_a_row_that_was_held_back_is_encoded_with_those_that_follow_it() -> None:
    route = Route("t", None, STRING)
    calls: list[tuple[list[bytes], Marker]] = []

    def encode(rows: Any, marker: Marker) -> list[EncodedRow]:
        calls.append((list(rows), marker))
        return [(route, row, marker.value.encode()) for row in rows]

    out = _records(opened("a", Chunk("a"), encode), [b"1", b"2", b"3"], [b"4", b"5", b"6"], [b"7"])
    assert [row for _, row, _ in out] == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    assert calls == [
        ([b"1"], Marker.FIRST),
        ([b"2"], Marker.MIDDLE),
        ([b"3", b"4", b"5"], Marker.MIDDLE),
        ([b"6"], Marker.MIDDLE),
        ([b"7"], Marker.LAST),
    ]


def test_the_first_row_is_the_first_one_even_if_it_was_held_back() -> None:
    route = Route("t", None, STRING)
    chunk = opened("a", Chunk("a"), lambda rows, marker: [(route, row, marker.value.encode()) for row in rows])
    out = _records(chunk, [b"1"], [b"2", b"3"])
    assert [(row, marker) for _, row, marker in out] == [(b"1", b"first"), (b"2", b"true"), (b"3", b"last")]


@pytest.mark.parametrize(("constant_bytes", "rows"), [(0, 2000), (130, 2000), (3_000, 174), (100_000, 100)])
def test_a_batch_of_records_stays_in_the_nearest_caches(constant_bytes: int, rows: int) -> None:
    assert rows_per_batch(constant_bytes) == rows
