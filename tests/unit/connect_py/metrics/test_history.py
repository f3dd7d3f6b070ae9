"""What tasks measured lately: rings of three lengths, in little memory, with gaps where nothing was measured."""

import math

import pytest

from connect_py.api.task import MetricGroup
from connect_py.metrics.history import RINGS, SINK_SERIES, SOURCE_SERIES, TaskHistory, TaskMeter
from connect_py.metrics.worker import WorkerMetrics

#: A time that begins a slot of every ring.
BEGIN = 1_800_000_000.0


@pytest.mark.parametrize("names", [SOURCE_SERIES, SINK_SERIES])
def test_a_task_has_twelve_series_in_three_rings_below_100_kb(names):
    assert len(names) == len(set(names)) == 12
    assert RINGS == ((2, 300), (60, 360), (300, 288))
    assert TaskHistory(names).size_bytes == 91_008


def test_values_come_back_with_their_time_and_a_gap_stays_a_gap():
    history = TaskHistory(SOURCE_SERIES)
    history.note(BEGIN, {"records_out": 5.0})
    history.note(BEGIN + 2, {"records_out": 7.0})
    history.note(BEGIN + 40, {"records_out": 9.0})
    found = history.points(60)
    assert (found["start"], found["step"]) == (BEGIN + 40 - 58, 2)
    known = {found["start"] + 2 * at: value for at, value in enumerate(found["series"]["records_out"]) if value is not None}
    # a report stands for the slots since the last one, of at most six seconds
    assert known == {
        BEGIN - 4: 5.0,
        BEGIN - 2: 5.0,
        BEGIN: 5.0,
        BEGIN + 2: 7.0,
        BEGIN + 36: 9.0,
        BEGIN + 38: 9.0,
        BEGIN + 40: 9.0,
    }
    assert set(found["series"]["cpu"]) == {None}


def test_longer_rings_keep_averages_of_rates_and_peaks_of_lateness():
    history = TaskHistory(SOURCE_SERIES)
    for second in range(0, 7200, 2):
        is_late = second == 600
        history.note(BEGIN + second, {"records_out": 10.0 + (second // 2) % 2, "age_ms": 90_000.0 if is_late else 5.0})
    hours = history.points(3600 * 2)
    assert hours["step"] == 60
    assert hours["series"]["records_out"][-3:] == [10.5, 10.5, 10.5]
    late = [value for value in hours["series"]["age_ms"] if value == 90_000.0]
    assert len(late) == 1
    day = history.points(86_400)
    assert history.points(10**9) == day
    assert [len(history.points(seconds)["series"]["cpu"]) for seconds in (0, -5)] == [1, 1]
    assert (day["step"], len(day["series"]["age_ms"])) == (300, 288)
    assert [value for value in day["series"]["age_ms"] if value is not None].count(90_000.0) == 1
    assert {value for value in day["series"]["records_out"] if value is not None} == {10.5}


def test_a_night_without_reports_is_empty_and_the_day_before_is_kept():
    history = TaskHistory(SINK_SERIES)
    for second in range(0, 3600, 2):
        history.note(BEGIN + second, {"applied": 3.0})
    history.note(BEGIN + 8 * 3600, {"applied": 4.0})
    minutes = history.points(600)["series"]["applied"]
    assert [value for value in minutes if value is not None] == [4.0, 4.0, 4.0]
    values = history.points(86_400)["series"]["applied"]
    assert [value for value in values if value is not None] == [3.0] * 12 + [4.0]


@pytest.mark.parametrize("back", [5, 100_000])
def test_a_clock_that_is_set_back_neither_fails_nor_invents_values(back):
    history = TaskHistory(SOURCE_SERIES)
    for second in range(0, 100, 2):
        history.note(BEGIN + second, {"cpu": 0.5})
    history.note(BEGIN + 100 - back, {"cpu": 0.25})
    values = {value for value in history.points(600)["series"]["cpu"] if value is not None}
    assert values <= {0.5, 0.25}
    assert 0.25 in values


def report(polled, written, seconds=0.0):
    return [
        MetricGroup("kafka.connect", "source-task-metrics", {}, {"source-record-poll-total": polled, "source-record-write-total": written}),
        MetricGroup("kafka.connect", "connector-task-metrics", {}, {"offset-commit-avg-time-ms": math.nan}),
        MetricGroup("debezium", "connector-metrics", {"context": "streaming"}, {"MilliSecondsBehindSource": seconds * 1000}),
    ]


def test_rates_are_between_two_reports_and_a_restart_makes_none():
    meter = TaskMeter()
    assert meter.measure(report(100, 90), {"resident-memory-bytes": 5, "cpu-seconds-total": 1.0}, 10.0) == {"age_ms": 0.0, "rss_bytes": 5}
    second = meter.measure(report(140, 110, 1.5), {"cpu-seconds-total": 1.5}, 12.0)
    assert second == {"records_in": 20.0, "records_out": 10.0, "cpu": 0.25, "age_ms": 1500.0}
    assert "records_in" not in meter.measure(report(3, 3), {}, 14.0)


def as_message(groups):
    return {"groups": [(group.domain, group.type, dict(group.tags), dict(group.values)) for group in groups]}


def test_a_history_survives_the_restart_of_its_task_and_ends_with_its_connector():
    metrics = WorkerMetrics()
    metrics.connector_state("c", "RUNNING")
    metrics.task_launched(("c", 0))
    metrics.task_reported(("c", 0), as_message(report(0, 0, 3)))
    metrics.task_state(("c", 0), "FAILED")
    metrics.task_gone(("c", 0))
    found = metrics.history("c", 60)
    assert [value for value in found[0]["series"]["age_ms"] if value is not None][-1] == 3000.0
    metrics.forget(["other"])
    assert metrics.history("c", 60) == {}


def test_what_the_server_keeps_for_a_stopped_connector_is_in_its_history():
    metrics = WorkerMetrics()
    metrics.connector_state("c", "STOPPED")
    slot = ("connect.py", "postgres-slot", {"slot": "s"}, {"retained-bytes": 4096})
    metrics.facts_reported("c", {"head": 9000, "position": 8000, "unit": "bytes", "segments": {}, "groups": [slot]}, uses_offsets=False)
    # the next slot of two seconds may have begun since the report
    known = {name: [value for value in values if value is not None] for name, values in metrics.history("c", 20)[0]["series"].items()}
    assert known["retained_bytes"][-1] == 4096
    assert known["distance"][-1] == 1000
    assert metrics.figures()["c"].source["verdict"] == "stopped"
