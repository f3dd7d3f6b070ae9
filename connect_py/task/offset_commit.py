"""Commits a source task's offsets to the offsets topic (`runtime/SourceTaskOffsetCommitter.java`), asynchronously.

Rule: an offset is written only after Kafka holds every record up to it (`SubmittedRecords`), and the task hears of it only after Kafka
holds the offset itself. A failed write keeps its offsets for the next attempt and does not fail the task. The task's thread owns this.
"""

from __future__ import annotations

import logging
import time

from connect_py.api import SourceOffset, SourcePartition, SourceTask
from connect_py.api.storage import OffsetWriter
from connect_py.errors import RetriableError
from connect_py.metrics.task import TaskMetrics
from connect_py.task.submitted import SubmittedRecords

log = logging.getLogger(__name__)

_Offsets = dict[tuple[tuple[str, object], ...], tuple[SourcePartition, SourceOffset]]


class OffsetCommitter:
    """Takes committable offsets to the writer and the good news to the task.

    Args:
        interval_seconds: time between two commits (``offset.flush.interval.ms``).
        metrics: where commits are counted.
    """

    def __init__(
        self,
        task: SourceTask,
        submitted: SubmittedRecords,
        writer: OffsetWriter,
        interval_seconds: float,
        metrics: TaskMetrics | None = None,
    ) -> None:
        self._task = task
        self._submitted = submitted
        self._writer = writer
        self._interval = interval_seconds
        self._next = time.monotonic() + interval_seconds
        self._waiting: _Offsets = {}
        self._writing: _Offsets | None = None
        self._written: list[tuple[SourcePartition, SourceOffset]] = []
        self._metrics = metrics or TaskMetrics()
        self._began = 0.0
        self._is_milestone = False
        self._failing_since: float | None = None

    def commit_soon(self) -> None:
        """Begin a commit as soon as Kafka holds what was submitted up to now."""
        self._is_milestone = True

    def is_due(self) -> bool:
        """Whether it is time to `commit`."""
        return time.monotonic() >= self._next or (self._is_milestone and self._writing is None)

    def commit(self) -> None:
        """Begin to write what is committable; what is being written comes first."""
        self._next = time.monotonic() + self._interval
        self._is_milestone = self._is_milestone and self._writing is not None
        self._begin()

    def serve(self) -> None:
        """Let a commit go on; to be called often. Raises ConnectError, from the task's `offsets_committed`."""
        if self._writing is not None:
            self._writer.serve(0.0)
            self._tell_task()

    def finish(self, deadline: float) -> bool:
        """Commit everything that is acknowledged and wait for it until `deadline`; returns whether all of it is stored."""
        while True:
            self._begin()
            if self._writing is None:
                return not self._waiting
            while self._writing is not None and time.monotonic() < deadline:
                self._writer.serve(min(0.1, max(0.0, deadline - time.monotonic())))
            self._tell_task()
            if self._writing is not None or time.monotonic() >= deadline:
                return False

    def _begin(self) -> None:
        for partition, offset in self._submitted.committable():
            self._waiting[tuple(partition.items())] = (partition, offset)
        if not self._waiting or self._writing is not None:
            return
        self._writing, self._waiting = self._waiting, {}
        self._began = time.monotonic()
        self._writer.write(list(self._writing.values()), self._done)

    def _done(self, error: Exception | None) -> None:
        batch, self._writing = self._writing or {}, None
        self._metrics.commit(time.monotonic() - self._began, succeeded=error is None)
        if error is None:
            if self._failing_since is not None:
                log.info("Offsets are committed again, after %.0f s", time.monotonic() - self._failing_since)
                self._failing_since = None
            self._written += batch.values()
            return
        self._failing_since = self._failing_since or time.monotonic()
        for key, entry in batch.items():
            self._waiting.setdefault(key, entry)
        log.warning("Offsets could not be committed; they are kept and tried again with the next commit: %s", error)

    def _tell_task(self) -> None:
        written, self._written = self._written, []
        if not written:
            return
        try:
            self._task.offsets_committed(written)
        except RetriableError as error:
            log.warning("The source could not be told that offsets are committed; the next commit tells it: %s", error)
