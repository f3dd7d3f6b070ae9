"""Run a sink task: consume, convert and transform, put, commit (`runtime/WorkerSinkTask.java`).

Rule: an offset is committed only when `put` took every record before it, `pre_commit` agreed, and every dead letter before it is in Kafka.
A partition leaves the task only after that was tried once more (`on_revoked`); what then is not committed is read again by the next owner.

Differences from Connect: a `put` that keeps failing with a RetriableError is repeated after 1, 2, 4 … s instead of at the next commit (up
to a minute), because most sinks are back sooner; and a FatalTaskError of `pre_commit` fails the task, where Connect goes back and
tries for ever.

The task's thread runs everything here, rebalances and answers to commits too (they run inside the consumer's `poll`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from connect_py.api import SinkRecord, SinkTask, TopicPartition
from connect_py.errors import FatalTaskError, RetriableError, noted
from connect_py.kafka.consumer import ConsumedRecord, RebalanceListener
from connect_py.metrics.task import SinkMetrics
from connect_py.task.control import Report, SinkContext, TaskControl, TaskStopped, take_signals
from connect_py.task.failed_records import SinkErrorReporter
from connect_py.task.sink_commit import CommittingConsumer, SinkCommits

log = logging.getLogger(__name__)

#: The longest single wait for records: how soon a command of the worker is noticed.
_SLICE_SECONDS = 0.2

_FIRST_RETRY_SECONDS = 1.0


class Consumer(CommittingConsumer, Protocol):
    """What the loop needs of `connect_py.kafka.consumer.GroupConsumer`."""

    def subscribe(self, listener: RebalanceListener) -> None: ...
    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...
    def close(self) -> None: ...


class RecordChain(Protocol):
    """What the loop needs of `connect_py.task.chain.SinkChain`."""

    def convert(self, record: ConsumedRecord, is_read: Callable[[str], None] = ...) -> SinkRecord | None: ...
    def close(self) -> None: ...


class SinkTaskLoop:
    """Runs one sink task to its end.

    Args:
        skip: `Tolerance.failed`, for records that the task itself reports.
        commit_interval_seconds: ``offset.flush.interval.ms``.
        commit_timeout_seconds: ``offset.flush.timeout.ms``: a commit without answer for so long counts as failed.
        metrics: where records and commits are counted.
    """

    def __init__(
        self,
        task: SinkTask,
        chain: RecordChain,
        errors: SinkErrorReporter,
        consumer: Consumer,
        control: TaskControl,
        report: Report,
        context: SinkContext,
        *,
        skip: Callable[[str, str, Exception], None],
        commit_interval_seconds: float,
        commit_timeout_seconds: float,
        metrics: SinkMetrics | None = None,
    ) -> None:
        self._task = task
        self._chain = chain
        self._errors = errors
        self._consumer = consumer
        self._control = control
        self._report = report
        self._context = context
        self._skip = skip
        if errors.is_reporting:
            context.report_errant_record = self._report_errant
        self._batch: list[SinkRecord] = []
        self._originals: list[ConsumedRecord] = []
        self._reached: dict[TopicPartition, int] = {}
        self._not_tolerated: Exception | None = None
        self._retries = 0
        self._is_paused = False
        context.is_held = lambda: self._is_paused or self._retries > 0
        self._is_ending = False
        self._topics: set[str] = set()
        self._metrics = metrics or SinkMetrics()
        self._commits = SinkCommits(
            task,
            errors,
            consumer,
            control,
            self._metrics,
            interval_seconds=commit_interval_seconds,
            timeout_seconds=commit_timeout_seconds,
        )
        self._offsets = self._commits.offsets
        self._metrics.partitions = self._offsets.__len__
        self._metrics.active = lambda: self._offsets.uncommitted() + len(self._batch)

    def run(self, config: Mapping[str, str]) -> None:
        """Start the task, run it until it is asked to stop, commit, leave the group, close.

        Raises:
            ConnectError: the task failed; what it took before is committed nevertheless.
        """
        if not self._control.wait_for_start(self._report):
            self._consumer.close()
            self._chain.close()
            return
        failed = True
        try:
            self._task.start(config, self._context)
            self._consumer.subscribe(self)
            self._report({"type": "state", "state": "RUNNING"})
            self._commits.begin()
            while not self._control.is_stopping:
                self._turn()
            failed = False
        except TaskStopped:
            failed = False
        finally:
            self._end(failed)

    # -- the loop

    def _turn(self) -> None:
        self._pause_or_resume()
        take_signals(self._control, self._task, self._report)
        self._take_commit_wish()
        if not self._commits.commit_if_due():
            self._forget_batch()
        self._seek()
        records = self._poll()
        if self._control.is_stopping:
            return
        if records:
            self._convert(records)
        self._deliver()
        if self._metrics.is_due():
            self._report_metrics()

    def _pause_or_resume(self) -> None:
        if self._control.is_paused == self._is_paused:
            return
        self._is_paused = not self._is_paused
        if self._is_paused:
            self._consumer.pause(self._consumer.assignment)
            self._commits.is_wanted = True
        elif not self._retries:
            self._resume_all()
        self._report({"type": "state", "state": "PAUSED" if self._is_paused else "RUNNING"})

    def _resume_all(self) -> None:
        self._consumer.resume(self._consumer.assignment - self._context.resting)

    def _poll(self) -> list[ConsumedRecord]:
        """Wait for records, but no longer than until there is something else to do."""
        deadline = self._commits.deadline
        if self._retries:
            wanted, self._context.retry_seconds = self._context.retry_seconds, None
            delay = _FIRST_RETRY_SECONDS * 2 ** min(self._retries - 1, 16) if wanted is None else wanted
            deadline = min(deadline, time.monotonic() + delay)
        while True:
            left = deadline - time.monotonic()
            records = self._consumer.poll(min(_SLICE_SECONDS, max(0.0, left)))
            if records or left <= _SLICE_SECONDS or self._control.is_stopping or self._control.is_paused != self._is_paused:
                return records
            take_signals(self._control, self._task, self._report)
            self._take_commit_wish()
            if self._commits.is_due:
                return records

    def _convert(self, records: Sequence[ConsumedRecord]) -> None:
        self._metrics.read(len(records))
        if self._control.take_forget_topics():
            self._topics.clear()
        for record in records:
            converted = self._chain.convert(record, self._note_topic)
            if converted is not None:
                self._batch.append(converted)
                self._originals.append(record)
            self._reached[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _note_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._report({"type": "topic", "topic": topic})

    def _deliver(self) -> None:
        """Give the batch to the task, also an empty one; offsets advance only when it takes it."""
        began = time.monotonic()
        try:
            self._task.put(list(self._batch))
            if self._not_tolerated is not None:  # the sink may have caught it, which does not make it tolerated
                raise self._not_tolerated
        except RetriableError as error:
            if not self._retries:
                log.warning("The sink cannot take records just now; the same ones are given to it again: %s", error)
                self._consumer.pause(self._consumer.assignment)
            self._retries += 1
            return
        except Exception as error:
            raise noted(
                FatalTaskError("Exiting WorkerSinkTask due to unrecoverable exception."),
                "Offsets stand at the last commit; the records after it are read again after a restart.",
            ) from error
        if self._retries:
            log.info("The sink takes records again.")
        took = time.monotonic() - began
        self._metrics.put(len(self._batch), took)
        log.debug("The sink took %d records in %.0f ms", len(self._batch), took * 1000)
        self._offsets.take(self._reached)
        self._forget_batch()

    def _forget_batch(self) -> None:
        """The batch is done with, or will be read again: read on."""
        self._batch, self._originals, self._reached = [], [], {}
        if self._retries:
            self._retries = 0
            if not self._is_paused:
                self._resume_all()

    def _report_errant(self, record: SinkRecord, error: Exception) -> None:
        original = next((known for mine, known in zip(self._batch, self._originals, strict=True) if mine is record), None)
        if original is None:
            raise FatalTaskError("A record was reported that is not one of the current put. No offset was committed.") from error
        self._errors.record = original
        try:
            self._skip("TASK_PUT", "org.apache.kafka.connect.sink.SinkTask", error)
        except Exception as failure:
            self._not_tolerated = failure
            raise

    def _take_commit_wish(self) -> None:
        if self._context.wants_commit:
            self._context.wants_commit, self._commits.is_wanted = False, True

    def _seek(self) -> None:
        """Go where the task asked; records of those partitions that wait to be put are given up."""
        if not self._context.seeks:
            return
        seeks, self._context.seeks = self._context.seeks, {}
        for partition, offset in seeks.items():
            if partition in self._consumer.assignment:
                self._consumer.seek(partition, offset)
                self._offsets.rewind(partition, offset)
        self._drop(seeks)

    # -- rebalances (RebalanceListener)

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Partitions came."""
        if self._is_ending:
            return
        self._offsets.assign(positions)
        if positions and (self._is_paused or self._retries):
            self._consumer.pause(positions)
        self._task.open(list(positions))
        self._seek()  # before a record of these partitions comes

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions go: commit what was put, once and for all."""
        if not partitions or self._is_ending:
            return
        self._commits.commit_for_good(partitions, lambda: self._lose(partitions))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions are gone: their offsets are no longer ours to commit."""
        if partitions and not self._is_ending:
            self._lose(partitions)

    def _lose(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            self._task.close(list(partitions))
        finally:
            self._offsets.forget(partitions)
            self._context.resting.difference_update(partitions)
            self._drop(partitions)

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Take records of these partitions out of the batch that waits to be put again."""
        gone = set(partitions)
        kept = [
            (mine, known)
            for mine, known in zip(self._batch, self._originals, strict=True)
            if TopicPartition(known.topic, known.partition) not in gone
        ]
        self._batch, self._originals = [mine for mine, _ in kept], [known for _, known in kept]
        self._reached = {partition: offset for partition, offset in self._reached.items() if partition not in gone}

    # -- ending

    def _end(self, failed: bool) -> None:
        """Close everything; the first failure is raised, unless one has ended the task already."""
        problems: list[Exception] = []
        for step in (self._give_up_partitions, self._task.stop, self._consumer.close, self._chain.close, self._report_metrics):
            try:
                step()
            except Exception as error:
                problems.append(error)
                if failed or len(problems) > 1:
                    log.exception("The task could not be closed properly")
        if problems and not failed:
            raise problems[0]

    def _give_up_partitions(self) -> None:
        partitions = sorted(self._consumer.assignment)
        self._is_ending = True
        if partitions:
            self._commits.commit_for_good(partitions, lambda: self._lose(partitions), in_time=True)

    def _report_metrics(self) -> None:
        self._report(self._metrics.message())
