"""`lakehouse.source.mode=loop`: the task plans ranges from its positions and the log; nothing is remembered anywhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from connect_py.api.record import TopicPartition
from spark_sink.config.sink_config import SinkConfig
from spark_sink.plan.adaptive import Bound
from spark_sink.plan.triggers import Pending
from spark_sink.read.ranges import Range, plan_ranges, waiting_ranges


class Pace:
    """When a batch is due: an interval after the start of the one before, at once when a whole batch waits.

    With `min-offsets-per-trigger` fewer records than that wait on, for `max-trigger-delay-ms` at most: fewer, larger commits.
    """

    def __init__(self, config: SinkConfig, bound: Bound | None = None) -> None:
        self._interval_ms = config["control.commit.interval-ms"]
        self._bound = Bound(config) if bound is None else bound
        self._least = config["min-offsets-per-trigger"]
        self._delay_ms = config["max-trigger-delay-ms"]
        self._started = float("-inf")

    def due(self, waiting: int) -> bool:
        """Whether to begin now; `waiting` offsets are in the log."""
        waited_ms = (time.monotonic() - self._started) * 1000
        enough = waiting >= self._least or waited_ms >= self._delay_ms
        return waiting >= self._bound.offsets or (waiting > 0 and enough and waited_ms >= self._interval_ms)

    def begin(self) -> None:
        """A batch begins."""
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the last batch began."""
        return time.monotonic() - self._started


class LoopDriver:
    """See the module's text and `Driver`."""

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._bound = Bound(config)
        self._pace = Pace(config, self._bound)
        self._running = False
        self._after: Mapping[TopicPartition, Range] = {}

    def next(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Pending | None:
        """See `Driver.next`."""
        if self._running:
            self._running = False
            self._bound.applied(self._pace.seconds)
        waiting = waiting_ranges(positions, log, fail_on_data_loss=self._config["fail-on-data-loss"])
        if not self._pace.due(sum(end - start for start, end in waiting.values())):
            return None
        self._pace.begin()
        self._running = True
        promised, self._after = self._after, {}
        if promised and all(tp in waiting and waiting[tp][0] == start and waiting[tp][1] >= end for tp, (start, end) in promised.items()):
            return Pending(promised)
        return Pending(plan_ranges(waiting, self._bound.offsets))

    def after(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Range] | None:
        """See `Driver.after`: of what is in the log already, if that is a whole batch."""
        waiting = waiting_ranges(positions, log, fail_on_data_loss=False)
        bound = self._bound.offsets
        self._after = plan_ranges(waiting, bound) if sum(end - start for start, end in waiting.values()) >= bound else {}
        return self._after or None

    def failed(self, *, too_large: bool = False) -> None:
        """See `Driver.failed`: nothing of a range is fixed before its tables have committed, so the next one may be smaller."""
        self._running, self._after = False, {}
        if too_large:
            self._bound.too_large()

    def stop(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is held."""
