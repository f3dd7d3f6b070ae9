"""Which ranges of the log are the next batch, and when. Tables do not know what decides it.

`Trigger` is what a task asks: its own plan (`LoopTrigger`, ``lakehouse.source.mode=loop``: from its positions and the log, with nothing
remembered anywhere) or Structured Streaming's (`plan.stream`). `BatchBound` says how large a batch may be, `Turns` of which topics, `Pace`
when it is due, and `Horizon` how far a task with ``lakehouse.trigger=available-now`` goes. The task's thread owns all of them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from connect_py.api.record import TopicPartition
from spark_sink.config.sink_config import SinkConfig
from spark_sink.read.ranges import Range, plan_ranges, waiting_ranges
from spark_sink.read.reader import HELD_RECORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


@dataclass(frozen=True)
class PendingBatch:
    """A batch that is to be applied.

    Attributes:
        ranges: non-empty; [start, end) by topic partition.
        records: the records of these ranges with the columns of Spark's Kafka source; None when they are still to be read.
    """

    ranges: Mapping[TopicPartition, Range]
    records: DataFrame | None = None


class Trigger(Protocol):
    """Decides which batch is next. The task's thread calls everything; only `stop` may come from another one."""

    def next(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> PendingBatch | None:
        """Return the next batch, or None when nothing waits or the time has not come.

        Asking again says that the batch before has been applied and reported: what `positions` says is in the tables.

        Args:
            positions: the next offset to apply, for every partition of `log`; they decide, whatever the trigger remembers.
            log: first and next offset that Kafka holds.

        Raises:
            FatalTaskError: Kafka has deleted offsets that were still to be read.
        """
        ...

    def after(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Range] | None:
        """Return the ranges that `next` will return at once when it is called with `positions`; None when that is not known yet.

        They may be read before, but nothing of them may be believed until `next` has named the same.
        """
        ...

    def failed(self, *, too_large: bool = False) -> None:
        """Note that the batch could not be applied; the rest of it comes again: smaller, if it was too large and may be cut."""
        ...

    def stop(self) -> None:
        """Make a waiting call of `next` return None soon."""
        ...

    def close(self) -> None:
        """Release what the trigger holds. Idempotent."""
        ...


#: A batch is never made smaller than this: what fails then does so for another reason.
_MIN_OFFSETS = 100


class BatchBound:
    """How large a batch may be: halved when one was too large, grown by a quarter while batches take less than half an interval."""

    def __init__(self, config: SinkConfig) -> None:
        self._max_offsets: int = config["max-offsets-per-trigger"]
        self._adaptive: bool = config["batch.adaptive"]
        self._half_interval_s: float = config["control.commit.interval-ms"] / 2000
        self.offsets = self._max_offsets

    def too_large(self) -> None:
        """Note that a batch of this bound ran out of memory or time."""
        if self._adaptive and self.offsets > _MIN_OFFSETS:
            self.offsets = max(self.offsets // 2, _MIN_OFFSETS)
            _log.warning("A batch was too large; the next ones have at most %d offsets", self.offsets)

    def applied(self, seconds: float) -> None:
        """Note that a batch of this bound has been applied."""
        if self.offsets < self._max_offsets and seconds < self._half_interval_s:
            self.offsets = min(self.offsets + max(self.offsets // 4, 1), self._max_offsets)


class Pace:
    """When a batch is due: an interval after the start of the one before, at once when a whole batch waits.

    With `min-offsets-per-trigger` fewer records than that wait on, for `max-trigger-delay-ms` at most: fewer, larger commits.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, config: SinkConfig, bound: BatchBound | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._interval_ms = config["control.commit.interval-ms"]
        self._bound = BatchBound(config) if bound is None else bound
        self._min_offsets = config["min-offsets-per-trigger"]
        self._delay_ms = config["max-trigger-delay-ms"]
        self._started = float("-inf")

    def due(self, waiting: int) -> bool:
        """Return whether to begin now; `waiting` offsets are in the log."""
        waited_ms = (self._clock() - self._started) * 1000
        enough = waiting >= self._min_offsets or waited_ms >= self._delay_ms
        return waiting >= self._bound.offsets or (waiting > 0 and enough and waited_ms >= self._interval_ms)

    def begin(self) -> None:
        """Note that a batch begins."""
        self._started = self._clock()

    @property
    def seconds(self) -> float:
        """Seconds since the last batch began."""
        return self._clock() - self._started


#: Batches of a round of topics. With more of them a change waits for less of the round, which takes a reading and a plan more for each.
_BATCHES_OF_A_ROUND = 3


class Turns:
    """Which topics are in a batch, where many have little each.

    A batch of all topics has what was in the log at its beginning. A change that comes while it is written waits for its end, and then for
    the tables before its own: as long as a batch takes, on average. So topics have their turns in a round of some batches, each with what
    is in the log by then.
    """

    def __init__(self, config: SinkConfig) -> None:
        self._fewest: int = 2 * config["control.commit.threads"]
        self._waiting: list[str] = []
        self._size = 0
        self._last: dict[str, int] = {}  # the number of the round's batch that had a topic
        self._batch = 0

    def are_left(self, waiting: Mapping[TopicPartition, Range]) -> bool:
        """Return whether topics wait for their turn in the round that is under way."""
        topics = {tp.topic for tp in waiting}
        self._waiting = [topic for topic in self._waiting if topic in topics]
        return bool(self._waiting)

    def take(self, waiting: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Range]:
        """Return the ranges of those whose turn it is; a new round begins with those that had theirs first in the last one."""
        if not self.are_left(waiting):
            self._waiting = sorted({tp.topic for tp in waiting}, key=lambda topic: (self._last.get(topic, 0), topic))
            self._size = max(self._fewest, math.ceil(len(self._waiting) / _BATCHES_OF_A_ROUND))
        chosen, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
        self._batch += 1
        self._last |= dict.fromkeys(chosen, self._batch)
        topics = frozenset(chosen)
        return {tp: found for tp, found in waiting.items() if tp.topic in topics}

    def end(self) -> None:
        """End the round: all that waits is taken together."""
        self._waiting = []


class LoopTrigger:
    """Batches that the task plans from its positions and the log; nothing is remembered anywhere."""

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._turns = Turns(config)
        self._bound = BatchBound(config)
        self._pace = Pace(config, self._bound)
        self._running = False
        self._after: Mapping[TopicPartition, Range] = {}

    def next(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> PendingBatch | None:
        if self._running:
            self._running = False
            self._bound.applied(self._pace.seconds)
        waiting = waiting_ranges(positions, log, fail_on_data_loss=self._config["fail-on-data-loss"])
        offsets = sum(end - start for start, end in waiting.values())
        if not self._turns.are_left(waiting):
            if not self._pace.due(offsets):
                return None
            self._pace.begin()
        self._running = True
        if offsets < min(HELD_RECORDS, self._bound.offsets):
            return PendingBatch(self._turns.take(waiting))
        self._turns.end()
        promised, self._after = self._after, {}
        if promised and all(tp in waiting and waiting[tp][0] == start and waiting[tp][1] >= end for tp, (start, end) in promised.items()):
            return PendingBatch(promised)
        return PendingBatch(plan_ranges(waiting, self._bound.offsets))

    def after(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Range] | None:
        # Of what is in the log already, if that is a whole batch.
        waiting = waiting_ranges(positions, log, fail_on_data_loss=False)
        bound = self._bound.offsets
        self._after = plan_ranges(waiting, bound) if sum(end - start for start, end in waiting.values()) >= bound else {}
        return self._after or None

    def failed(self, *, too_large: bool = False) -> None:
        # Nothing of a range is fixed before its tables have committed, so the next one may be smaller.
        self._running, self._after = False, {}
        self._turns.end()
        if too_large:
            self._bound.too_large()

    def stop(self) -> None:
        """Do nothing: no call waits."""

    def close(self) -> None:
        """Do nothing: nothing is held."""


class Horizon:
    """How much of the log a task reads."""

    def __init__(self, config: SinkConfig) -> None:
        self._bounded = config["trigger"] == "available-now"
        self._goal: dict[TopicPartition, int] | None = None
        self._reached = False

    def of(self, log: Mapping[TopicPartition, Range], positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Range]:
        """Return the first and next offset of each partition, as far as the task is to go.

        Args:
            log: as Kafka has it now; the first call fixes the goal.
            positions: the next offset to apply, which a streaming query may have taken beyond the goal.
        """
        if not self._bounded:
            return log
        if self._goal is None:
            self._goal = {tp: end for tp, (_, end) in log.items()}
        seen = {tp: (first, max(positions[tp], min(end, self._goal.get(tp, first)))) for tp, (first, end) in log.items()}
        if not self._reached and all(positions[tp] >= end for tp, (_, end) in seen.items()):
            self._reached = True
            _log.info("All that was there when the task started is in the tables; it rests until it is restarted (available-now)")
        return seen
