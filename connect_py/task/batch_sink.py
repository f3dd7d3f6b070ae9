"""Run a sink whose engine reads Kafka itself (`BatchSinkTask`): step, commit what the step reports, wait.

What a step returns is durable in the tables already, so committing it to the consumer group can only lag behind; a failed commit is
therefore tried again with the next step and never fails the task. The task's thread runs everything here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from connect_py.api import BadRecord, BatchSinkTask, RecordConversion, TopicPartition
from connect_py.api.task import LogRecord
from connect_py.errors import FatalTaskError, RetriableError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.log.traces import java_name
from connect_py.metrics.task import ErrorMetrics, SinkMetrics
from connect_py.task.control import Report, TaskControl, take_signals
from connect_py.task.failed_records import SinkErrorReporter, place_of

log = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS = 0.5
_DEAD_LETTER_SECONDS = 60.0
_LONGEST_RETRY_SECONDS = 30.0


class LogReader(Protocol):
    """What the context needs of `connect_py.kafka.admin.KafkaAdmin`."""

    def log_offsets(self, topics: Sequence[str] = (), pattern: str | None = None) -> Mapping[TopicPartition, tuple[int, int]]: ...
    def group_offsets(self, group: str) -> Mapping[TopicPartition, int]: ...


class RangeSource(Protocol):
    """What the context needs of `connect_py.kafka.range_reader.RangeReader`."""

    def read(self, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int) -> Sequence[LogRecord] | None: ...


class OffsetCommit(Protocol):
    """What the loop needs of `connect_py.kafka.consumer.GroupCommitter`."""

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class SinkContext:
    """`BatchSinkContext`."""

    def __init__(
        self,
        connector: str,
        task: int,
        kafka_options: Mapping[str, str],
        group_id: str,
        admin: LogReader,
        ranges: RangeSource,
        errors: SinkErrorReporter | None = None,
        metrics: ErrorMetrics | None = None,
        conversion: Callable[[], RecordConversion] | None = None,
        report: Report = lambda message: None,
    ) -> None:
        self.connector = connector
        self.task = task
        self.kafka_options = kafka_options
        self.group_id = group_id
        self._admin = admin
        self._ranges = ranges
        self._errors = errors
        self._error_metrics = metrics
        self._conversion = conversion
        self._report = report

    @property
    def conversion(self) -> RecordConversion:
        """The converters and transforms that apply to the connector."""
        if self._conversion is None:
            raise FatalTaskError("This context has been given no converters.")
        return self._conversion()

    def log_offsets(self, topics: Sequence[str], pattern: str | None) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return first and next offset of every partition."""
        return self._admin.log_offsets(topics, pattern)

    def records(self, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int) -> Sequence[LogRecord] | None:
        """Read small ranges of the log by this process's client."""
        return self._ranges.read(ranges, max_bytes)

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the group's committed offsets."""
        return self._admin.group_offsets(self.group_id)

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Hand a notification to the worker."""
        self._report({"type": "notification", "notification": dict(notification)})

    def reject(self, records: Sequence[BadRecord]) -> None:
        """Report each as a sink's record that its converter refused, and wait for the dead letters."""
        for record in records:
            whole = (
                record.topic,
                record.partition,
                record.offset,
                record.timestamp,
                "CreateTime",
                record.key,
                record.value,
                record.headers,
            )
            consumed = ConsumedRecord(*whole)
            if self._error_metrics is not None:
                self._error_metrics.error()
                topic = None if self._errors is None else self._errors.topic
                self._error_metrics.skip("VALUE_CONVERTER", java_name(record.error), str(record.error), place_of(consumed), topic)
            if self._errors is not None:
                self._errors.record = consumed
                self._errors.report("VALUE_CONVERTER", self._value_converter(), record.error)
        if self._errors is not None:
            self._errors.flush(time.monotonic() + _DEAD_LETTER_SECONDS)

    def _value_converter(self) -> str:
        if self._conversion is None:
            return "org.apache.kafka.connect.json.JsonConverter"
        return self._conversion().converters["value"]["class"]


class BatchSinkTaskLoop:
    """Runs one batch sink task to its end.

    Args:
        metrics: where steps and commits are counted.
    """

    def __init__(
        self, task: BatchSinkTask, committer: OffsetCommit, control: TaskControl, report: Report, metrics: SinkMetrics | None = None
    ) -> None:
        self._task = task
        self._committer = committer
        self._control = control
        self._report = report
        self._uncommitted: dict[TopicPartition, int] = {}
        self._topics: set[str] = set()
        self._metrics = metrics or SinkMetrics()
        self._positions: dict[TopicPartition, int] = {}
        self._metrics.partitions = lambda: len(self._positions)
        self._retry_delay = 0.0

    def run(self, config: Mapping[str, str], context: SinkContext) -> None:
        """Start the task, step until it is asked to stop, close.

        Raises:
            ConnectError: the task failed.
        """
        if self._control.is_paused:
            self._rest()
        if self._control.is_stopping:
            return
        self._control.on_stop(self._task.stop)
        try:
            self._context = context
            self._task.start(config, context)
            self._report({"type": "state", "state": "RUNNING"})
            while not self._control.is_stopping:
                if self._control.is_paused:
                    self._rest()
                else:
                    self._turn()
        finally:
            self._task.close()

    def _turn(self) -> None:
        if self._metrics.is_due():
            self._report(self._metrics.message())
        take_signals(self._control, self._task, self._report)
        began = time.monotonic()
        try:
            reached = self._task.step()
        except RetriableError as error:
            if not self._retry_delay:
                log.warning("A batch could not be applied and is tried again: %s", error)
            self._retry_delay = min(_LONGEST_RETRY_SECONDS, self._retry_delay * 2 or _FIRST_RETRY_SECONDS)
            self._control.wait(self._retry_delay)
            return
        if self._retry_delay:
            log.info("Batches are applied again.")
        self._retry_delay = 0.0
        if reached is not None:
            self._count(reached, time.monotonic() - began)
            self._uncommitted.update(reached)
            self._report_topics(reached)
        self._commit()
        if reached is None:
            self._control.wait(self._task.poll_interval_seconds)

    def _begins(self, new: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where the task began to read partitions: at the group's offset, else at the log's beginning. For the count only."""
        try:
            committed = self._context.committed()
            logs = self._context.log_offsets(sorted({partition.topic for partition in new}), None)
        except RetriableError:
            return {}
        return {partition: committed.get(partition, logs[partition][0]) for partition in new if partition in logs}

    def _commit(self) -> None:
        if not self._uncommitted:
            return
        began = time.monotonic()
        self._metrics.commit_begun()
        try:
            self._committer.commit(self._uncommitted)
        except RetriableError as error:
            self._metrics.commit(time.monotonic() - began, succeeded=False)
            log.warning(
                "Offsets could not be committed to the consumer group (%.1f s); the next step tries again. The tables hold their own: %s",
                time.monotonic() - began,
                error,
            )
            return
        self._metrics.commit(time.monotonic() - began, succeeded=True)
        log.debug("Committed the offsets of %d partitions in %.0f ms", len(self._uncommitted), (time.monotonic() - began) * 1000)
        self._uncommitted.clear()

    def _count(self, reached: Mapping[TopicPartition, int], seconds: float) -> None:
        """A step's records are the offsets that it passed."""
        new = [partition for partition in reached if partition not in self._positions]
        if new:
            self._positions.update(self._begins(new))
        records = sum(offset - self._positions.get(partition, offset) for partition, offset in reached.items())
        self._positions.update(reached)
        self._metrics.read(records)
        self._metrics.put(records, seconds)
        log.debug("The sink took %d records in %.0f ms", records, seconds * 1000)

    def _report_topics(self, reached: Mapping[TopicPartition, int]) -> None:
        if self._control.take_forget_topics():
            self._topics.clear()
        for topic in sorted({partition.topic for partition in reached} - self._topics):
            self._topics.add(topic)
            self._report({"type": "topic", "topic": topic})

    def _rest(self) -> None:
        self._report({"type": "state", "state": "PAUSED"})
        while self._control.is_paused and not self._control.is_stopping:
            self._control.wait_while_paused(60.0)
        if not self._control.is_stopping:
            self._report({"type": "state", "state": "RUNNING"})
