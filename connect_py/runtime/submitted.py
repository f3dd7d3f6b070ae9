"""Which source offsets may be committed (`runtime/SubmittedRecords.java`). Pure.

Records are acknowledged in any order; the offset that may be stored is that of the longest prefix, in order of submission and for each
source partition on its own, of which Kafka holds everything. So a committed offset never runs ahead of what Kafka holds.

A submission stands for one record or for a whole `EncodedBatch`, whose offset counts only once all its rows are acknowledged. One thread
owns a `SubmittedRecords`: the task's, which also runs the producer's callbacks.
"""

from __future__ import annotations

from collections import deque

from connect_py.api import SourceOffset, SourcePartition

_Key = tuple[tuple[str, object], ...]


class Submission:
    """Rows on their way to Kafka that share one source offset.

    Attributes:
        failed: the rows were sent before their batch failed: neither its offset nor what comes later is ever committed.
        outstanding: rows that Kafka has not acknowledged yet; the producer's callback counts it down.
    """

    __slots__ = ("failed", "offset", "outstanding", "partition")

    def __init__(self, partition: SourcePartition, offset: SourceOffset, outstanding: int) -> None:
        self.partition = partition
        self.offset = offset
        self.failed = False
        self.outstanding = outstanding


class SubmittedRecords:
    """Submissions in order, by source partition."""

    def __init__(self) -> None:
        self._queues: dict[_Key, deque[Submission]] = {}
        self._last: tuple[SourcePartition, deque[Submission]] | None = None

    def submit(self, partition: SourcePartition, offset: SourceOffset, rows: int = 1) -> Submission:
        """Note rows before they are sent.

        Args:
            partition: the source partition; it must not be changed afterwards.
            offset: the place from which reading goes on once all rows are in Kafka.
            rows: how many acknowledgements are due; with 0 the offset counts as soon as everything before it does.
        """
        if self._last is None or self._last[0] is not partition:
            self._last = (partition, self._queues.setdefault(tuple(partition.items()), deque()))
        submission = Submission(partition, offset, rows)
        self._last[1].append(submission)
        return submission

    def committable(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """The newest offset of every source partition whose acknowledged prefix grew since the last call; forgets that prefix."""
        found: list[tuple[SourcePartition, SourceOffset]] = []
        for queue in self._queues.values():
            done: Submission | None = None
            while queue and not queue[0].outstanding and not queue[0].failed:
                done = queue.popleft()
            if done is not None:
                found.append((done.partition, done.offset))
        return found

    def outstanding(self) -> int:
        """Rows that Kafka has not acknowledged yet."""
        return sum(submission.outstanding for queue in self._queues.values() for submission in queue)

    def is_idle(self) -> bool:
        """Whether Kafka has acknowledged everything."""
        return not any(submission.outstanding for queue in self._queues.values() for submission in queue)
