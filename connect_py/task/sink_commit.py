"""Decide which offsets of a sink task may be committed, and commit them (`WorkerSinkTask.commitOffsets`).

For each assigned partition two offsets are known: the next one after what `put` took, and the last committed one (`SinkOffsets`, pure).

A commit while the task runs is asynchronous: it begins when it is due or asked for, its answer comes with a later `poll` of the consumer,
and one without an answer counts as failed after a time; a late answer is ignored. When partitions go, the commit is awaited.

Order when they go, as in Connect: `pre_commit`, `close`, commit. A sink that fails to close what it has written keeps its old offsets.

The task's thread owns a `SinkCommits`; answers run inside the consumer's calls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from connect_py.api import SinkTask, TopicPartition
from connect_py.errors import FatalTaskError, RetriableError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.metrics.task import SinkMetrics
from connect_py.task.control import TaskControl
from connect_py.task.failed_records import SinkErrorReporter

log = logging.getLogger(__name__)


class SinkOffsets:
    """Offsets of the assigned partitions."""

    def __init__(self) -> None:
        self._taken: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def __len__(self) -> int:
        return len(self._committed)

    def uncommitted(self) -> int:
        """Return how many offsets lie between what was taken and what is committed."""
        return sum(self._taken[partition] - offset for partition, offset in self._committed.items())

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Partitions came, to be read from these offsets."""
        self._taken.update(positions)
        self._committed.update(positions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions went."""
        for partition in partitions:
            self._taken.pop(partition, None)
            self._committed.pop(partition, None)

    def take(self, reached: Mapping[TopicPartition, int]) -> None:
        """`put` took every record before these offsets; those of partitions that went meanwhile are left out."""
        for partition, offset in reached.items():
            if partition in self._committed:
                self._taken[partition] = offset

    def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return what to offer to `pre_commit`."""
        return {partition: self._taken[partition] for partition in partitions if partition in self._taken}

    def committable(self, offered: Mapping[TopicPartition, int], accepted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """What to commit after `pre_commit` accepted some of the offer: as in Connect, all partitions of the offer as soon as one of them
        moves, so that the group shows those without records, too; nothing when none does.

        Offsets ahead of what was put, and partitions that are not assigned or not offered, are left out with a warning.
        """
        before = {partition: self._committed[partition] for partition in offered if partition in self._committed}
        due = dict(before)
        for partition, offset in accepted.items():
            where = f"{partition[0]}-{partition[1]}"
            key = TopicPartition(*partition)
            if key not in self._committed:
                log.warning("Ignoring invalid task provided offset %s/%s -- partition not assigned", where, offset)
            elif key in offered and offset > offered[key]:
                log.warning("Ignoring invalid task provided offset %s/%s -- not yet consumed, taken offset=%s", where, offset, offered[key])
            elif key in offered:
                due[key] = offset
        return due if due != before else {}

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Kafka holds these."""
        for partition, offset in offsets.items():
            if partition in self._committed:
                self._committed[partition] = offset

    def rewind(self, partition: TopicPartition, offset: int) -> None:
        """A partition is read again from an offset."""
        if partition in self._committed:
            self._taken[partition] = self._committed[partition] = offset

    def rewind_all(self) -> dict[TopicPartition, int]:
        """Go back to the committed offsets; returns them."""
        self._taken = dict(self._committed)
        return dict(self._committed)


class CommittingConsumer(Protocol):
    """What commits need of `connect_py.kafka.consumer.GroupConsumer`."""

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...
    def poll(self, timeout_seconds: float) -> list[ConsumedRecord]: ...
    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...
    def commit_async(self, offsets: Mapping[TopicPartition, int], done: Callable[[Exception | None], None]) -> None: ...


class SinkCommits:
    """Commits the offsets of one sink task.

    Args:
        errors: whose dead letters must be in Kafka before an offset passes them.
        interval_seconds: ``offset.flush.interval.ms``.
        timeout_seconds: ``offset.flush.timeout.ms``: a commit without an answer for so long counts as failed.

    Attributes:
        offsets: what was taken and what is committed.
        is_wanted: whether the next commit must come at once.
    """

    def __init__(
        self,
        task: SinkTask,
        errors: SinkErrorReporter,
        consumer: CommittingConsumer,
        control: TaskControl,
        metrics: SinkMetrics,
        *,
        interval_seconds: float,
        timeout_seconds: float,
    ) -> None:
        self.offsets = SinkOffsets()
        self.is_wanted = False
        self._task = task
        self._errors = errors
        self._consumer = consumer
        self._control = control
        self._metrics = metrics
        self._interval = interval_seconds
        self._timeout = timeout_seconds
        self._next = 0.0
        self._under_way: tuple[float, dict[TopicPartition, int]] | None = None

    def begin(self) -> None:
        """The task runs from now on: the first commit is an interval away."""
        self._next = time.monotonic() + self._interval

    @property
    def is_due(self) -> bool:
        """Whether `commit_if_due` would begin one now."""
        return self._under_way is None and (self.is_wanted or time.monotonic() >= self._next)

    @property
    def deadline(self) -> float:
        """By when (`time.monotonic`) `commit_if_due` wants to be called again."""
        return self._next if self._under_way is None else self._under_way[0] + self._timeout

    def commit_if_due(self) -> bool:
        """Begin a commit when it is time to, give up one without an answer.

        Returns:
            False when the task refused: the consumer stands at the committed offsets again.

        Raises:
            FatalTaskError: the task cannot continue.
        """
        now = time.monotonic()
        if self._under_way is not None and now >= self.deadline:
            log.warning("Commit of offsets timed out after %.1f s; the next commit includes them.", now - self._under_way[0])
            self._ended(self._under_way[1], RetriableError("timed out"))
        if not self.is_due:
            return True
        self._next = now + self._interval
        self.is_wanted = False
        return self._begin()

    def commit_for_good(self, partitions: Sequence[TopicPartition], close: Callable[[], None], *, in_time: bool = False) -> None:
        """Partitions go: have the task make durable what it took, close them, commit and wait for it.

        A failure to commit is logged: the records after the last commit are read again by the next owner.

        Args:
            in_time: keep to the task's deadline, because the task ends.

        Raises:
            Exception: what `close` raised; nothing was committed.
        """
        due: dict[TopicPartition, int] = {}
        try:
            offsets = self.offsets.of(partitions)
            if offsets:
                self._errors.flush(min(self._control.deadline, time.monotonic() + self._timeout))
                due = self.offsets.committable(offsets, self._task.pre_commit(dict(offsets)))
        except Exception as error:  # noqa: BLE001  # the partitions go whatever happens
            self._failed_for_good(error)
        finally:
            close()
        if due:
            try:
                (self._commit_in_time if in_time else self._consumer.commit)(due)
                self._ended(due, None)
            except Exception as error:  # noqa: BLE001
                self._failed_for_good(error)

    def _begin(self) -> bool:
        offsets = self.offsets.of(self._consumer.assignment)
        if not offsets:
            return True
        try:
            self._errors.flush(time.monotonic() + self._timeout)
            accepted = self._task.pre_commit(dict(offsets))
        except FatalTaskError:
            raise
        except Exception as error:  # noqa: BLE001  # a plugin's author may raise anything, and all of it means "not durable"
            log.error("Offset commit failed, rewinding to last committed offsets: %s", error)
            self._metrics.commit(0.0, succeeded=False)
            for partition, offset in self.offsets.rewind_all().items():
                self._consumer.seek(partition, offset)
            return False
        due = self.offsets.committable(offsets, accepted)
        if due:
            self._metrics.commit_begun()
            self._under_way = time.monotonic(), due
            self._consumer.commit_async(due, lambda problem: self._answered(due, problem))
        return True

    def _answered(self, due: dict[TopicPartition, int], problem: Exception | None) -> None:
        if self._under_way is not None and self._under_way[1] is due:
            if problem is not None:
                log.warning("%s; the next commit includes them.", problem)
            self._ended(due, problem)
        else:  # it was given up before
            self._metrics.commit_skipped()

    def _ended(self, due: Mapping[TopicPartition, int], problem: Exception | None) -> None:
        began, self._under_way = self._under_way[0] if self._under_way else time.monotonic(), None
        self._metrics.commit(time.monotonic() - began, succeeded=problem is None)
        if problem is None:
            log.debug("Committed the offsets of %d partitions in %.0f ms", len(due), (time.monotonic() - began) * 1000)
            self.offsets.committed(due)

    def _failed_for_good(self, error: Exception) -> None:
        self._metrics.commit(0.0, succeeded=False)
        log.warning("Offset commit failed during close; records since the last commit are read again: %s", error)

    def _commit_in_time(self, due: Mapping[TopicPartition, int]) -> None:
        """The last commit: `Consumer.commit` would wait minutes for a Kafka that is gone. A quarter of the time is kept for closing."""
        answers: list[Exception | None] = []
        self._consumer.pause(self._consumer.assignment)
        self._consumer.commit_async(due, answers.append)
        now = time.monotonic()
        deadline = now + min(self._timeout, (self._control.deadline - now) * 0.75)
        while not answers and time.monotonic() < deadline:
            self._consumer.poll(0.05)
        problem = answers[0] if answers else RetriableError("Kafka did not answer in time")
        if problem is not None:
            raise problem
