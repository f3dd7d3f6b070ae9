"""Commit a source task's offsets, never ahead of what Kafka holds.

`SubmittedRecords` knows which offsets may be committed (after `runtime/SubmittedRecords.java`). Kafka reports a record only when it was
refused (`Producer`, ``only_errors``), because a report of each success costs a tenth of all that a row does. So what it holds is known at
the times at which nothing is under way: `delivered` is called then, and the offset that may be stored is that of the longest prefix, in
order of submission and for each source partition on its own, of which nothing is held back or has failed. A submission stands for one
record or for a whole `EncodedBatch`, whose offset counts only as a whole.

`OffsetCommitter` writes these offsets to the offsets topic asynchronously (`runtime/SourceTaskOffsetCommitter.java`). An offset is written
only after Kafka holds every record up to it, and the task is notified only after Kafka holds the offset itself. A failed write keeps its
offsets for the next attempt and does not fail the task.

`PipeOffsetWriter` sends offsets through the worker: for the standalone worker, whose tasks share one file that only the worker may write.

The task's thread, which also runs the producer's callbacks, owns all of this.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from connect_py.api import SourceOffset, SourcePartition, SourceRecord, SourceTask
from connect_py.api.storage import OffsetWriter
from connect_py.errors import ConnectError, RetriableError
from connect_py.metrics.task import TaskMetrics
from connect_py.task.control import Report

log = logging.getLogger(__name__)


#: How long the writer keeps its connections while there is nothing to write; longer than two commits are apart.
RELEASE_SECONDS = 90.0

_Key = tuple[tuple[str, object], ...]


class Submission:
    """Rows on their way to Kafka that share one source offset.

    Attributes:
        failed: a row will never be in Kafka: neither this offset nor what comes later is ever committed.
        held: what is still to be handed to the producer: the rest of the rows counts as one, each dead letter as another.
    """

    __slots__ = ("failed", "held", "offset", "partition")

    def __init__(self, partition: SourcePartition, offset: SourceOffset) -> None:
        self.partition = partition
        self.offset = offset
        self.failed = False
        self.held = 1


class SubmittedRecords:
    """Submissions in order, by source partition."""

    def __init__(self) -> None:
        self._queues: dict[_Key, deque[Submission]] = {}
        self._last: tuple[SourcePartition, deque[Submission]] | None = None
        self._committable: dict[_Key, Submission] = {}

    def submit(self, partition: SourcePartition, offset: SourceOffset) -> Submission:
        """Note rows before they are sent; the sender takes 1 from `held` when the last one is handed over.

        Args:
            partition: the source partition; it must not be changed afterwards.
            offset: the position from which reading resumes once all rows are in Kafka.
        """
        if self._last is None or self._last[0] is not partition:
            self._last = (partition, self._queues.setdefault(tuple(partition.items()), deque()))
        submission = Submission(partition, offset)
        self._last[1].append(submission)
        return submission

    def delivered(self) -> None:
        """Nothing is under way: of all that was handed over, Kafka holds what it did not refuse."""
        for key, queue in self._queues.items():
            while queue and not queue[0].held and not queue[0].failed:
                self._committable[key] = queue.popleft()

    def committable(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return the newest offset of every source partition whose delivered prefix grew since the last call."""
        found, self._committable = self._committable, {}
        return [(submission.partition, submission.offset) for submission in found.values()]

    def is_idle(self) -> bool:
        """Return whether Kafka holds everything."""
        return not any(self._queues.values())


_Offsets = dict[tuple[tuple[str, object], ...], tuple[SourcePartition, SourceOffset]]


def commits_records(task: SourceTask) -> bool:
    """Whether a task wants to be notified of each record that Kafka acknowledges; a report of each costs a tenth of all that a row does."""
    return type(task).commit_record is not SourceTask.commit_record


class OffsetCommitter:
    """Takes committable offsets to the writer and the good news to the task.

    Args:
        interval_seconds: time between two commits (``offset.flush.interval.ms``).
        metrics: where commits are counted.
        clock: monotonic seconds; those of the deadline of `finish`.
    """

    #: Kafka must hold all records of the offsets before these are written.
    settles_first = True

    def __init__(
        self,
        task: SourceTask,
        submitted: SubmittedRecords,
        writer: OffsetWriter,
        interval_seconds: float,
        metrics: TaskMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._task = task
        self._submitted = submitted
        self._writer = writer
        self._interval = interval_seconds
        self._next = self._clock() + interval_seconds
        self._waiting: _Offsets = {}
        self._writing: _Offsets | None = None
        self._written: list[tuple[SourcePartition, SourceOffset]] = []
        self._metrics = metrics or TaskMetrics(clock=clock)
        self._began = 0.0
        self._is_milestone = False
        self._failing_since: float | None = None
        self._keeps = max(RELEASE_SECONDS, 1.5 * interval_seconds)
        self._release_at = self._clock() + self._keeps

    def commit_soon(self) -> None:
        """Begin a commit as soon as Kafka holds what was submitted up to now."""
        self._is_milestone = True

    def before_rows(self, while_waiting: Callable[[], None]) -> None:
        """Rows are about to be handed over: of no matter without transactions."""

    def after_record(self, record: SourceRecord) -> None:
        """A record was handed over: of no matter without transactions."""

    def after_batch(self, rows: int) -> None:
        """A batch was handed over: of no matter without transactions."""

    def at_pause(self) -> None:
        """The task is to rest: offsets are committed in the meantime."""

    def confirm(self, confirmation: Callable[[], None]) -> None:
        """Have something called once Kafka holds the record: now."""
        confirmation()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being written, nor to be written before the next regular commit."""
        return self._writing is None and not self._is_milestone

    def is_due(self) -> bool:
        """Return whether it is time to `commit`."""
        return self._clock() >= self._next or (self._is_milestone and self._writing is None)

    def commit(self) -> None:
        """Begin to write what is committable; what is being written comes first."""
        self._next = self._clock() + self._interval
        self._is_milestone = self._is_milestone and self._writing is not None
        self._begin()

    def serve(self) -> None:
        """Let a commit progress; to be called often. Raises ConnectError, from the task's `offsets_committed`."""
        if self._writing is not None:
            self._writer.serve(0.0)
            self._tell_task()
        elif self._clock() >= self._release_at:
            self._release_at = math.inf
            self._writer.release()

    def finish(self, deadline: float, *, failed: bool = False) -> bool:
        """Commit everything that is acknowledged and wait for it until `deadline`; returns whether all of it is stored."""
        while True:
            self._begin()
            if self._writing is None:
                return not self._waiting
            while self._writing is not None and self._clock() < deadline:
                self._writer.serve(min(0.1, max(0.0, deadline - self._clock())))
            self._tell_task()
            if self._writing is not None or self._clock() >= deadline:
                return False

    def _begin(self) -> None:
        for partition, offset in self._submitted.committable():
            self._waiting[tuple(partition.items())] = (partition, offset)
        if not self._waiting or self._writing is not None:
            return
        self._writing, self._waiting = self._waiting, {}
        self._began = self._clock()
        self._release_at = self._began + self._keeps
        self._writer.write(list(self._writing.values()), self._done)

    def _done(self, error: Exception | None) -> None:
        batch, self._writing = self._writing or {}, None
        self._metrics.commit(self._clock() - self._began, succeeded=error is None)
        if error is None:
            if self._failing_since is not None:
                log.info("Offsets are committed again, after %.0f s", self._clock() - self._failing_since)
                self._failing_since = None
            log.debug("Committed the offsets of %d partitions in %.0f ms", len(batch), (self._clock() - self._began) * 1000)
            self._written += batch.values()
            return
        self._failing_since = self._failing_since or self._clock()
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


class PipeOffsetWriter:
    """`OffsetWriter` that reports offsets to the worker and waits for its answer.

    `answer` is called by the thread that reads the worker's messages; the rest belongs to the task's thread.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._answers: list[tuple[int, str | None]] = []
        self._arrived = threading.Condition()
        self._waiting: dict[int, Callable[[Exception | None], None]] = {}
        self._next = 0

    def write(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]], done: Callable[[Exception | None], None]) -> None:
        """Send offsets to the worker."""
        self._next += 1
        self._waiting[self._next] = done
        self._report({"type": "offsets", "id": self._next, "offsets": [[dict(p), dict(o)] for p, o in offsets]})

    def answer(self, number: int, error: str | None) -> None:
        """The worker stored the offsets of a message, or could not."""
        with self._arrived:
            self._answers.append((number, error))
            self._arrived.notify_all()

    def serve(self, timeout: float = 0.0) -> None:
        """Call back for what was answered."""
        with self._arrived:
            if timeout:
                self._arrived.wait_for(lambda: bool(self._answers), timeout)
            answers, self._answers = self._answers, []
        for number, error in answers:
            self._waiting.pop(number)(ConnectError(error) if error else None)

    def release(self) -> None:
        """There is no connection but the pipe."""

    def close(self, timeout: float) -> None:
        """Wait for open answers."""
        deadline = time.monotonic() + timeout
        while self._waiting and time.monotonic() < deadline:
            self.serve(min(0.1, timeout))
