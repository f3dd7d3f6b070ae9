"""Reading the batch that comes next while the one before is being written.

Writing is half the driver's work, planning and committing, in which executors have nothing to do; a backlog is read in that time. Nothing
of it is believed before its turn: a batch that does not start where the tables stand then is released unread. At most one batch is held
beside the one that is being applied.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from connect_py.api.record import TopicPartition
from spark_sink.read.ranges import Range
from spark_sink.read.reader import Batch, Reader

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")


class ReadAhead:
    """One task's. Its thread uses the reader only between `begin` and `take` or `drop`; the task reads nothing else in that time."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lakehouse-read-ahead")
        self._ranges: Mapping[TopicPartition, Range] = {}
        self._batch: Future[Batch] | None = None

    def begin(self, ranges: Mapping[TopicPartition, Range]) -> None:
        """Start to read ranges. What was read before them has been taken or dropped."""
        self._ranges = ranges
        self._batch = self._thread.submit(self._reader.read, ranges)

    def take(self, ranges: Mapping[TopicPartition, Range]) -> Batch | None:
        """The batch of these ranges, once it has been read; None when others, or none, were, or the reading failed (it is tried again)."""
        if self._batch is None:
            return None
        if self._ranges != ranges:
            self.drop()
            return None
        reading, self._batch = self._batch, None
        try:
            return reading.result()
        except Exception as error:  # noqa: BLE001  # the task reads the same again, and fails by the rules if it must
            _log.debug("Reading ahead failed: %s", error)
            return None

    def drop(self) -> None:
        """Release what was read for nothing."""
        if self._batch is None:
            return
        reading, self._batch = self._batch, None
        _release(reading)

    def close(self) -> None:
        """Release what was read, without waiting for what is still being read: Spark's end cuts that short. Idempotent."""
        reading, self._batch = self._batch, None
        if reading is not None:
            reading.add_done_callback(_release)
        self._thread.shutdown(wait=False)


def _release(reading: Future[Batch]) -> None:
    try:
        reading.result().close()
    except Exception as error:  # noqa: BLE001  # nobody needs it
        _log.debug("What was read ahead cannot be released: %s", error)
