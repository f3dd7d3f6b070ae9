"""Which source offsets may be committed (after `runtime/SubmittedRecords.java`). Pure.

Kafka tells of a record only when it was refused (`Producer`, ``only_errors``), because a report of each success costs a tenth of all a row
does. So what it holds is known at the moments at which nothing is under way: `delivered` is called then, and the offset that may be stored
is that of the longest prefix, in order of submission and for each source partition on its own, of which nothing is held back or has
failed. A committed offset never runs ahead of what Kafka holds.

A submission stands for one record or for a whole `EncodedBatch`, whose offset counts only as a whole. One thread owns a
`SubmittedRecords`: the task's, which also runs the producer's callbacks.
"""

from __future__ import annotations

from collections import deque

from connect_py.api import SourceOffset, SourcePartition

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
        """Note rows before they are sent; whoever sends them takes 1 from `held` when the last one is handed over.

        Args:
            partition: the source partition; it must not be changed afterwards.
            offset: the place from which reading goes on once all rows are in Kafka.
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
        """The newest offset of every source partition whose delivered prefix grew since the last call."""
        found, self._committable = self._committable, {}
        return [(submission.partition, submission.offset) for submission in found.values()]

    def is_idle(self) -> bool:
        """Whether Kafka holds everything."""
        return not any(self._queues.values())
