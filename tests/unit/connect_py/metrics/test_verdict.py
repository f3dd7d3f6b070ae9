"""The verdict of a source connector, case by case, and what it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connect_py.api.task import MetricGroup
from connect_py.metrics.facts import SourceFactsStore, TaskProgress
from connect_py.metrics.verdict import Observed, Verdict, judge, size_text, time_text
from connectors.mysql.figures import LogFigures, bean

#: A task that has read everything.
WELL = Observed(
    connector_state="running",
    task_states=("running",),
    report_age=1.0,
    is_connected=True,
    quiet_for=2.0,
    lag_ms=40,
    head=1_000_000,
    earlier_head=990_000,
    position=1_000_000,
    position_age=1.0,
)

#: What a worker knows of a connector that it has, and whose task another worker runs.
AWAY: dict[str, Any] = {"task_states": (), "runs_elsewhere": True, "report_age": None, "is_connected": None, "quiet_for": None}


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ({}, Verdict.STREAMING, "events are read as they happen"),
        ({"quiet_for": 250.0}, Verdict.IDLE, "source quiet for 4 min"),
        ({"quiet_for": None}, Verdict.IDLE, "source quiet since the task's start"),
        ({"quiet_for": 250.0, "position_age": 250.0}, Verdict.IDLE, "source quiet for 4 min"),
        # what a server writes of its own accord is no stall
        ({"quiet_for": 250.0, "position_age": 250.0, "head": 1_008_000, "earlier_head": 1_008_000}, Verdict.IDLE, "source quiet for 4 min"),
        (
            {"position_age": 20.0, "head": 3_000_000, "earlier_head": 2_000_000},
            Verdict.STALLED,
            "the source's log has moved, and the task has not for 20 s; 2 MB to read",
        ),
        # the log has moved just now, and the task has had no time
        ({"position_age": 200.0, "head": 3_000_000, "earlier_head": 1_000_000, "quiet_for": 200.0}, Verdict.IDLE, "source quiet for 3 min"),
        ({"position_age": 3.0, "head": 3_000_000, "earlier_head": 2_000_000}, Verdict.STREAMING, "events are read as they happen"),
        ({"report_age": 40.0}, Verdict.STALLED, "the task has not reported for 40 s"),
        ({"lag_ms": 185_000}, Verdict.BEHIND, "3 min behind, catching up"),
        ({"lag_ms": 185_000, "quiet_for": 250.0}, Verdict.IDLE, "source quiet for 4 min"),
        ({"head": 200_000_000}, Verdict.BEHIND, "199 MB behind, catching up"),
        ({"unit": "seconds", "head": 1_000_300, "position": 1_000_000}, Verdict.BEHIND, "5 min behind, catching up"),
        (
            {"unacknowledged": 500, "unacknowledged_for": 12.0},
            Verdict.WAITING_FOR_KAFKA,
            "500 records are on their way, and none was acknowledged for 12 s",
        ),
        ({"unacknowledged": 500, "unacknowledged_for": 2.0}, Verdict.STREAMING, "events are read as they happen"),
        ({"is_snapshotting": True, "is_connected": False}, Verdict.SNAPSHOTTING, "the snapshot is being read"),
        ({"is_connected": False}, Verdict.DISCONNECTED, "not connected to its source; it tries again"),
        ({"is_connected": False, "is_opening": True}, Verdict.STARTING, "it connects to its source"),
        (
            {"quiet_for": 250.0, "head": None, "earlier_head": None, "facts_error": "no route"},
            Verdict.UNKNOWN,
            "no event for 4 min, and the end of the source's log is not known: no route",
        ),
        (
            {"task_states": ("failed",), "retained_bytes": 2.5e9},
            Verdict.FAILED,
            "1 of 1 tasks failed; the server keeps 2.5 GB of log for it",
        ),
        ({"connector_state": "failed", "task_states": ()}, Verdict.FAILED, "the connector has failed"),
        (
            {"connector_state": "stopped", "task_states": (), "retained_bytes": 48e6},
            Verdict.STOPPED,
            "stopped on request; the server keeps 48 MB of log for it",
        ),
        ({"connector_state": "paused", "task_states": ("paused",)}, Verdict.PAUSED, "paused on request"),
        ({"task_states": ("restarting",)}, Verdict.STARTING, "its task has not reported yet"),
        ({"report_age": None}, Verdict.STARTING, "its task has not reported yet"),
        (AWAY, Verdict.STREAMING, "its log was read; its task runs on another worker"),
        (AWAY | {"head": 200_000_000}, Verdict.STREAMING, "its log was read; its task runs on another worker"),
        (AWAY | {"head": 300_000_000, "earlier_head": 200_000_000}, Verdict.BEHIND, "199 MB behind, catching up"),
        (AWAY | {"head": None}, Verdict.UNKNOWN, "its task runs on another worker"),
        (AWAY | {"connector_state": "paused"}, Verdict.PAUSED, "paused on request"),
    ],
)
def test_a_verdict_has_its_reason(change: dict[str, Any], verdict: Verdict, reason: str) -> None:
    assert judge(replace(WELL, **change)) == (verdict, reason)


def test_numbers_are_short_in_sentences() -> None:
    assert [time_text(seconds) for seconds in (3, 61, 7200, 200_000)] == ["3 s", "1 min", "2 h", "2 d"]
    assert [size_text(size) for size in (12, 4_200, 48e6, 1.26e9, 3e12)] == ["12 B", "4.2 kB", "48 MB", "1.26 GB", "3 TB"]


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _facts(head: int, position: int | None = None, *, segments: dict[str, int] | None = None) -> dict[str, Any]:
    return {"head": head, "position": position, "unit": "bytes", "segments": segments or {}, "groups": []}


def _report(events: int, position: dict[str, int]) -> list[MetricGroup]:
    streaming = {"TotalNumberOfEventsSeen": events, "MilliSecondsBehindSource": 5, "Connected": True}
    return [
        MetricGroup("debezium.mysql", "connector-metrics", {"context": "streaming"}, streaming),
        MetricGroup("kafka.connect", "source-task-metrics", {}, {"source-record-active-count": 0, "source-record-write-total": events}),
        MetricGroup("connect.py", "source-position", {}, position),
    ]


def test_a_task_that_stands_still_while_the_log_moves_is_stalled_within_thirty_seconds() -> None:
    clock = _Clock()
    store, task = SourceFactsStore(clock), TaskProgress()
    verdicts = []
    for second in range(60):
        clock.now = 1000.0 + second
        if second % 10 == 0:  # the log grows by 5 MB at each look
            store.reported("c", _facts(10_000_000 + second * 500_000, segments={"3": 10_000_000}), uses_offsets=True)
        if second % 2 == 0:  # the task reports; from the 20th second on it reads nothing
            task.report(_report(min(second, 20), {"segment": 3, "position": min(second, 20) * 500_000}), clock.now)
        verdicts.append(store.judged("c", "running", ["running"], task)[0].verdict)
    assert verdicts[19] is Verdict.STREAMING
    assert Verdict.STALLED in verdicts[:50]
    assert verdicts[-1] is Verdict.STALLED


def test_a_task_that_has_just_begun_connects_and_one_that_lost_its_source_is_disconnected() -> None:
    clock = _Clock()
    store, task = SourceFactsStore(clock), TaskProgress()

    def verdict_after(seconds: float, *, connected: bool) -> Verdict:
        clock.now += seconds
        task.report([MetricGroup("debezium.mysql", "connector-metrics", {"context": "streaming"}, {"Connected": connected})], clock.now)
        return store.judged("c", "running", ["running"], task)[0].verdict

    assert verdict_after(0, connected=False) is Verdict.STARTING
    assert verdict_after(16, connected=False) is Verdict.DISCONNECTED
    assert verdict_after(2, connected=True) is not Verdict.DISCONNECTED
    assert verdict_after(2, connected=False) is Verdict.DISCONNECTED


def test_a_bean_that_is_reported_in_parts_is_judged_by_the_part_that_says_how_it_goes() -> None:
    """MySQL's attributes come as beans of the same names, after those that all connectors have."""
    clock = _Clock()
    store, task = SourceFactsStore(clock), TaskProgress()
    more = [
        bean("mysql", "shop", "streaming", LogFigures().values(None)),
        bean("mysql", "shop", "snapshot", {"HoldingGlobalLock": False}),
    ]
    snapshot = MetricGroup("debezium.mysql", "connector-metrics", {"context": "snapshot"}, {"SnapshotRunning": True})
    task.report([snapshot, *more], clock.now)
    assert store.judged("c", "running", ["running"], task)[0].verdict is Verdict.SNAPSHOTTING
    for second in range(0, 200, 2):
        clock.now = 2000.0 + second
        if second % 10 == 0:
            store.reported("c", _facts(12_345), uses_offsets=False)
        task.report([*_report(7, {"position": 12_345}), replace(snapshot, values={"SnapshotRunning": False}), *more], clock.now)
    assert store.judged("c", "running", ["running"], task)[0] == (Verdict.IDLE, "source quiet for 3 min")


def test_a_quiet_source_is_idle_and_not_stalled() -> None:
    clock = _Clock()
    store, task = SourceFactsStore(clock), TaskProgress()
    for second in range(0, 200, 2):
        clock.now = 1000.0 + second
        if second % 10 == 0:
            store.reported("c", _facts(12_345), uses_offsets=False)
        task.report(_report(7, {"position": 12_345}), clock.now)
    assert store.judged("c", "running", ["running"], task)[0] == (Verdict.IDLE, "source quiet for 3 min")


def test_facts_of_a_source_that_no_longer_answers_vanish_and_their_connector_says_so() -> None:
    clock = _Clock()
    store = SourceFactsStore(clock)
    message = _facts(500, 400) | {"groups": [("connect.py", "postgres-slot", {"slot": "s"}, {"retained-bytes": 100})]}
    store.reported("c", message, uses_offsets=False)
    judgement, seen = store.judged("c", "stopped", [], None)
    assert judgement.reason == "stopped on request; the server keeps 100 B of log for it"
    assert [group.type for group in store.groups("c", judgement, seen)] == ["source", "postgres-slot"]
    store.failed("c", "connection refused")
    clock.now += 100
    judgement, seen = store.judged("c", "stopped", [], None)
    (own,) = store.groups("c", judgement, seen)
    assert own.values == {"verdict": "stopped", "facts-up": 0}
    assert store.shown("c", judgement, seen)["facts_error"] == "connection refused"


def test_a_task_of_another_worker_that_stores_its_position_once_a_minute_is_not_behind() -> None:
    clock = _Clock()
    store = SourceFactsStore(clock)
    verdicts = {}
    for rate in (0, 1, 5):  # tenths of what the source writes that the task does not get read
        position = 0
        for second in range(0, 600, 10):
            clock.now += 10
            if second % 60 == 0:
                position = second * (10 - rate) // 10
            store.reported(f"c{rate}", _facts(second, position) | {"unit": "seconds"}, uses_offsets=True)
        verdicts[rate] = store.judged(f"c{rate}", "running", [], None, runs_elsewhere=True)[0].verdict
    assert verdicts == {0: Verdict.STREAMING, 1: Verdict.STREAMING, 5: Verdict.BEHIND}
