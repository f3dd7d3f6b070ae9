"""`lakehouse.trigger=available-now`: what Kafka holds at the task's start, and nothing later. The task's thread owns it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect_py.api.record import TopicPartition
from spark_sink.config.sink_config import SinkConfig
from spark_sink.read.ranges import Range

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


class Horizon:
    """How far of the log a task looks."""

    def __init__(self, config: SinkConfig) -> None:
        self._bounded = config["trigger"] == "available-now"
        self._goal: dict[TopicPartition, int] | None = None
        self._reached = False

    def of(self, log: Mapping[TopicPartition, Range], positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Range]:
        """First and next offset of each partition, as far as the task is to go.

        Args:
            log: as Kafka has it now; the first look decides what is there.
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
