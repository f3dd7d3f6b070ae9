"""Keep what tasks measured lately, for plots: three rings a task, in the worker's memory.

A ring has a slot for each step of the clock: 300 of 2 s, 360 of a minute, 288 of 5 min, which is ten minutes, six hours and a day. A slot
without a measurement is NaN, so that a time in which a task was down is a gap. `TaskMeter` makes the values of one report from totals.
Histories survive restarts of a task, and not of the worker.

`WorkerMetrics` owns these and guards them with its lock.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect_py.api.task import MetricGroup

#: (seconds a slot, slots) of each ring, the finest first; each step is a multiple of the one before.
RINGS = ((2, 300), (60, 360), (300, 288))

#: What is kept of a source's task; records, bytes, rows and errors are for each second.
SOURCE_SERIES = (
    "records_in",
    "records_out",
    "bytes",
    "age_ms",
    "age_p99_ms",
    "distance",
    "retained_bytes",
    "snapshot_rate",
    "commit_ms",
    "cpu",
    "rss_bytes",
    "errors",
)

#: The same of a sink's task.
SINK_SERIES = (
    "records_in",
    "records_out",
    "bytes",
    "lag_ms",
    "lag_offsets",
    "batch_share",
    "applied",
    "rejected",
    "commit_ms",
    "cpu",
    "rss_bytes",
    "errors",
)

#: Of these a longer slot shows the highest value, of all others the average: a late minute must not vanish in a quiet hour.
_PEAKS = frozenset({"age_ms", "age_p99_ms", "distance", "retained_bytes", "lag_ms", "lag_offsets"})

#: Tasks report every 2 s, and a batch may hold one up: a value also fills this many slots before its own that are empty.
_REACH = 3

#: The list of connectors shows the last five minutes: 30 averages of 5 slots of 2 s.
TREND, _TREND_SLOTS = 30, 5

_NAN = math.nan


class TaskHistory:
    """The series of one task.

    Args:
        names: of the series, `SOURCE_SERIES` or `SINK_SERIES`.
    """

    __slots__ = ("_last", "_rings", "_trend", "_trend_step", "names", "newest")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.newest = 0.0
        self._rings = [[array("d", [_NAN]) * slots for _ in self.names] for _, slots in RINGS]
        self._last = [0 for _ in RINGS]
        self._trend: deque[float] = deque([0.0] * TREND, maxlen=TREND)
        self._trend_step = 0

    @property
    def size_bytes(self) -> int:
        """What the values take."""
        return sum(len(series) * series.itemsize for ring in self._rings for series in ring)

    def note(self, now: float, values: Mapping[str, float], reach: int = _REACH) -> None:
        """Note values of a time in seconds since 1970; names that this history does not have are ignored.

        Args:
            reach: the number of slots, the present one included, that the values stand for.
        """
        self._advance(now)
        if values:
            self.newest = now
        slots, last = RINGS[0][1], self._last[0]
        for name, series in zip(self.names, self._rings[0], strict=True):
            value = values.get(name, _NAN)
            if math.isnan(value):
                continue
            series[last % slots] = value
            for earlier in range(last - 1, last - reach, -1):
                if not math.isnan(series[earlier % slots]):
                    break
                series[earlier % slots] = value

    def points(self, seconds: int) -> dict[str, Any]:
        """Return ``{"start", "step", "series": {name: [value or None, …]}}`` of at least so many seconds, if a ring is that long;
        the longest one otherwise, and of one value at least.

        `start` is the time of the first value, in seconds since 1970; the last value is the slot that is still being filled.
        """
        level = next((level for level, (step, slots) in enumerate(RINGS) if step * slots >= seconds), len(RINGS) - 1)
        step, slots = RINGS[level]
        self._aggregate(level)
        wanted = min(slots, max(1, seconds // step))
        first = self._last[level] - wanted + 1
        series = {name: self._values(values, first, wanted) for name, values in zip(self.names, self._rings[level], strict=True)}
        return {"start": first * step, "step": step, "series": series}

    @staticmethod
    def _values(values: array[float], first: int, wanted: int) -> list[float | None]:
        size = len(values)
        found = (values[slot % size] for slot in range(first, first + wanted))
        return [None if math.isnan(value) else round(value, 2) for value in found]

    def trend(self, now: float) -> list[float]:
        """Return averages of `records_out`, oldest first, over the last `TREND` steps of ten seconds that are complete; 0 where nothing
        was measured."""
        self._advance(now)
        current = self._last[0] // _TREND_SLOTS
        values, size = self._rings[0][self.names.index("records_out")], RINGS[0][1]
        for step in range(max(self._trend_step, current - TREND), current):
            slots = (values[slot % size] for slot in range(step * _TREND_SLOTS, (step + 1) * _TREND_SLOTS))
            known = [value for value in slots if value == value]
            self._trend.append(float(f"{sum(known) / len(known):.3g}") if known else 0.0)
        self._trend_step = current
        return list(self._trend)

    def _advance(self, now: float) -> None:
        """Empty the slots between the newest one and now; the longer rings take what is over first."""
        slot = int(now // RINGS[0][0])
        behind = slot - self._last[0]
        if behind <= 0 and self._last[0] - slot < RINGS[0][1]:
            return  # the same slot, or the machine's clock was set back a little
        if self._last[0]:
            for level in range(1, len(RINGS)):
                if int(now // RINGS[level][0]) != self._last[level]:
                    self._aggregate(level)
        is_new = not self._last[0]
        for level, (step, slots) in enumerate(RINGS):
            new = int(now // step)
            passed = 0 if is_new else new - self._last[level]
            for empty in range(new - min(passed if passed >= 0 else slots, slots) + 1, new + 1):
                for series in self._rings[level]:
                    series[empty % slots] = _NAN
            self._last[level] = new

    def _aggregate(self, level: int) -> None:
        """Fill the newest slot of a ring from the ring below it."""
        if level == 0:
            return
        if level > 1:
            self._aggregate(level - 1)
        (below_step, below_slots), (step, slots) = RINGS[level - 1], RINGS[level]
        parts, newest, below = step // below_step, self._last[level], self._last[level - 1]
        first = newest * parts
        for name, fine, coarse in zip(self.names, self._rings[level - 1], self._rings[level], strict=True):
            known = [
                value
                for slot in range(max(first, below - below_slots + 1), min(first + parts, below + 1))
                if not math.isnan(value := fine[slot % below_slots])
            ]
            if known:
                coarse[newest % slots] = max(known) if name in _PEAKS else sum(known) / len(known)


@dataclass(slots=True)
class TaskMeter:
    """Makes the values of a report; rates are between one report and the next."""

    _totals: dict[str, float] = field(default_factory=dict)
    _at: float = 0.0

    def measure(self, groups: Iterable[MetricGroup], process: Mapping[str, Any], now: float) -> dict[str, float]:
        """Return values by series.

        Args:
            process: the figures `task-process` of the task's process.
            now: monotonic seconds.
        """
        totals: dict[str, float] = {}
        values: dict[str, float] = {}
        for group in groups:
            _read(group, totals, values)
        if "cpu-seconds-total" in process:
            totals["cpu"] = process["cpu-seconds-total"]
        if "resident-memory-bytes" in process:
            values["rss_bytes"] = process["resident-memory-bytes"]
        seconds = now - self._at
        for name, total in totals.items():
            before = self._totals.get(name)
            if before is not None and total >= before and seconds > 0:
                values[name] = (total - before) / seconds
        self._totals, self._at = totals, now
        return values


#: (type, attribute) of a group to the series that is its growth for each second.
_TOTALS = {
    ("source-task-metrics", "source-record-poll-total"): "records_in",
    ("source-task-metrics", "source-record-write-total"): "records_out",
    ("sink-task-metrics", "sink-record-read-total"): "records_in",
    ("sink-task-metrics", "sink-record-send-total"): "records_out",
    ("producer-metrics", "outgoing-byte-total"): "bytes",
    ("consumer-metrics", "incoming-byte-total"): "bytes",
    ("task-error-metrics", "total-record-errors"): "errors",
    ("lakehouse-sink", "batch-seconds-total"): "batch_share",
    ("lakehouse-sink", "records-rejected-total"): "rejected",
    ("lakehouse-table", "records-applied-total"): "applied",
}

#: The same to the series that is the value itself.
_GAUGES = {
    ("connector-task-metrics", "offset-commit-avg-time-ms"): "commit_ms",
    ("lakehouse-sink", "lag-ms"): "lag_ms",
    ("lakehouse-sink", "lag-offsets"): "lag_offsets",
    ("consumer-fetch-manager-metrics", "records-lag-max"): "lag_offsets",
}

_BY_TYPE: dict[str, list[tuple[str, str, bool]]] = {}
for _table, _is_total in ((_TOTALS, True), (_GAUGES, False)):
    for (_type, _attribute), _series in _table.items():
        _BY_TYPE.setdefault(_type, []).append((_attribute, _series, _is_total))


def _read(group: MetricGroup, totals: dict[str, float], values: dict[str, float]) -> None:
    for attribute, series, is_total in _BY_TYPE.get(group.type, ()):
        value = group.values.get(attribute)
        if not isinstance(value, int | float) or math.isnan(value):
            continue
        if is_total:
            totals[series] = totals.get(series, 0.0) + value
        else:
            values[series] = value
    if group.tags.get("context") == "streaming":
        for attribute, series in (("MilliSecondsBehindSource", "age_ms"), ("MilliSecondsBehindSourceP99", "age_p99_ms")):
            value = group.values.get(attribute)
            if isinstance(value, int | float) and value >= 0:
                values[series] = value
    elif group.type == "snapshot-progress":
        rates = group.values.get("rows-per-second")
        if isinstance(rates, Mapping) and group.values.get("running"):
            values["snapshot_rate"] = sum(rates.values())


def is_sink(groups: Iterable[MetricGroup]) -> bool:
    """Return whether a report is a sink's."""
    return any(group.type == "sink-task-metrics" for group in groups)
