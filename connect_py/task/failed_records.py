"""Decide what happens to a record that fails, and report it to the log and to a dead letter queue.

`Tolerance` decides about records that cannot be transformed or converted (`runtime/errors/RetryWithToleranceOperator.java`). Retriable
failures are repeated after 300 ms × 2ⁿ until ``errors.retry.timeout`` is over; anything else, and what is left of a retriable one, is
tolerated (the record is skipped) with ``errors.tolerance=all`` and fails the task otherwise. Two differences from Connect, which skips a
record without a word when its retries are over or when the task is stopped between two of them, whatever the tolerance: here the end of the
retries is a failure like any other, and a record whose retries a stop interrupts is neither skipped nor failed (`TaskStopped`), so that it
is read again.

`SendErrorHandler` decides about records that Kafka refuses (`WorkerSourceTask.producerSendFailed`). With ``errors.tolerance=none`` the task
fails. With ``all`` the record is reported and skipped, and its source offset advances; where the connector has a dead letter queue, a
letter takes the record's place first.

Reports (`runtime/errors/ProcessingContext.java`): a sink's records go where Connect's go. For sources, Connect has the log only; here a
record that is skipped with ``errors.tolerance=all`` and ``errors.deadletterqueue.topic.name`` leaves a dead letter. There are no bytes of
it yet, so the letter's key and value are what JsonConverter writes with schemas (whatever the connector's converters are: one of them may
be what failed), and its headers are texts. A record that Kafka refused leaves its bytes, without headers where the client forgot them; one
that it refused for its size leaves its key and the size. Context headers are those of a sink's letters, with the topic that the record was
for, without partition and offset, and with ``__connect.errors.source.partition`` and ``__connect.errors.source.offset`` as JSON.
A letter belongs to the submission of its record: the source offset advances when Kafka holds the letter, and a letter that Kafka refuses
fails the task.

The task's thread owns all of these.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import orjson

from connect_py.api import SourceOffset, SourcePartition, SourceRecord
from connect_py.api.config import ConfigType, parse_value
from connect_py.converters.json_converter import JsonConverter
from connect_py.data.java_text import to_text
from connect_py.data.schema import Schema
from connect_py.data.values import to_text as header_text
from connect_py.errors import ConnectError, DataError, FatalTaskError, RetriableError, noted
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.kafka.producer import RECORD_TOO_LARGE
from connect_py.log.traces import java_name
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.control import TaskStopped
from connect_py.task.dead_letters import (
    DeadLetterQueue,
    ErrorLog,
    Headers,
    context_headers,
    dead_letter_topic,
    has_context_headers,
    refused_letter,
)
from connect_py.task.offsets import Submission
from connect_py.task.producing import Produced

T = TypeVar("T")

#: RetryWithToleranceOperator.RETRIES_DELAY_MIN_MS.
_FIRST_DELAY_SECONDS = 0.3


class ErrorReports(Protocol):
    """What failed records are reported to: `SinkErrorReporter`, `SourceErrorReporter`."""

    @property
    def topic(self) -> str | None:
        """The dead letter queue, None when the connector has none."""
        ...

    def report(self, stage: str, class_name: str, error: Exception) -> None: ...
    def place(self) -> str: ...


class Tolerance:
    """The error settings of one connector. Used by the task's thread only.

    Args:
        config: the connector's configuration.
        wait: sleeps that many seconds or less; True means that the task is to stop.
        reports: receives every failure before the record is skipped or the task fails.
        metrics: where failures are counted.
        now: monotonic seconds.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        wait: Callable[[float], bool],
        reports: ErrorReports | None = None,
        metrics: ErrorMetrics | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        def millis(name: str, default: str) -> float:
            return int(parse_value(name, config.get(name, default), ConfigType.LONG)) / 1000

        self._retry_seconds = millis("errors.retry.timeout", "0")
        self._longest_delay = millis("errors.retry.delay.max.ms", "60000")
        self.is_skipping = config.get("errors.tolerance", "none").strip() == "all"
        self._wait = wait
        self._reports = reports
        self._metrics = metrics or ErrorMetrics()
        self._now = now

    def run(self, stage: str, what: str, operation: Callable[[], T]) -> tuple[bool, T | None]:
        """Run one stage for one record.

        Args:
            stage: TRANSFORMATION, KEY_CONVERTER, VALUE_CONVERTER or HEADER_CONVERTER.
            what: the class that does the work, for messages.

        Returns:
            (True, result), or (False, None) when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
            TaskStopped: the task is to end; what became of the record is open.
        """
        try:
            return True, self._repeat(operation)
        except TaskStopped:
            raise
        except Exception as error:  # noqa: BLE001  # a plugin's author may raise anything; tolerance covers all of it
            self.failed(stage, what, error)
            return False, None

    def failed(self, stage: str, what: str, error: Exception) -> None:
        """Report a record's failure; returns when the record is to be skipped.

        Raises:
            FatalTaskError: the failure is not tolerated.
        """
        self._metrics.error()
        if self._reports is not None:
            self._reports.report(stage, what, error)
        if not self.is_skipping:
            where = f", {self._reports.place()}" if self._reports is not None else ""
            raise noted(
                FatalTaskError("Tolerance exceeded in error handler"),
                f"Stage {stage}, class {what}{where}. No offset beyond it is committed; errors.tolerance=all would skip the record.",
            ) from error
        place, topic = ("", None) if self._reports is None else (self._reports.place(), self._reports.topic)
        self._metrics.skip(stage, java_name(error), str(error), place, topic)

    def _repeat(self, operation: Callable[[], T]) -> T:
        deadline = None
        delay = _FIRST_DELAY_SECONDS
        while True:
            try:
                return operation()
            except RetriableError as error:
                now = self._now()
                if deadline is None:
                    deadline = now + self._retry_seconds if self._retry_seconds >= 0 else float("inf")
                if now >= deadline:
                    raise
                pause = delay if delay <= self._longest_delay else random.uniform(0, self._longest_delay)  # noqa: S311
                delay *= 2
                if self._wait(min(pause, deadline - now)):
                    raise TaskStopped from error
                self._metrics.retry()


_SIZE_HEADER = "__connect.errors.value.bytes"


class SourceErrorReporter:
    """The error reporters of one source task.

    Args:
        config: the connector's configuration.
        metrics: where reports are counted.

    Attributes:
        record: what is under way; set before its transformation.
    """

    def __init__(self, connector: str, task: int, config: Mapping[str, str], metrics: ErrorMetrics | None = None) -> None:
        self.record: SourceRecord | None = None
        self._topic = dead_letter_topic(config)
        self._connector = connector
        self._task = task
        self._metrics = metrics or ErrorMetrics()
        self._log = ErrorLog(connector, task, config, self._metrics)
        self._has_context = has_context_headers(config)
        self._json = JsonConverter()
        self._json.configure({"replace.null.with.default": "false"})  # a letter shows what there was
        self._last: tuple[str, str, Exception] | None = None

    @property
    def topic(self) -> str | None:
        """The dead letter queue, None when the connector has none."""
        return self._topic

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        """Log the failure of `record`, and remember it for the letter."""
        self._last = stage, class_name, error
        record = self.record
        self._log.write(
            stage, class_name, error, lambda: f", where source record is = {_shown_source(record)}" if record is not None else ""
        )

    def place(self) -> str:
        """Return where the record under way is from, in words."""
        record = self.record
        return (
            f"source partition {dict(record.source_partition)}, offset {dict(record.source_offset)}" if record is not None else "no record"
        )

    def letter(self) -> Produced | None:
        """Return the letter of `record`, whose failure was reported last; None without a queue."""
        record = self.record
        if self.topic is None or record is None:
            return None
        headers: Headers = [(header.name, _header(header.schema, header.value)) for header in record.headers]
        key, value = (self._bytes(schema, data) for schema, data in ((record.key_schema, record.key), (record.value_schema, record.value)))
        return self._letter(key, value, headers, record.timestamp)

    def letter_of(self, produced: Produced) -> Produced | None:
        """Return the letter of `record`, which Kafka refused as these bytes; None without a queue."""
        return None if self.topic is None else self._letter(produced.key, produced.value, list(produced.headers or ()), produced.timestamp)

    def without_value(self, letter: Produced) -> Produced:
        """Return a letter that Kafka refused for its size, shortened to where the record can be found."""
        size = (_SIZE_HEADER, str(len(letter.value or b"")).encode())
        return letter._replace(value=None, headers=[*(letter.headers or ()), size])

    def letter_failed(self) -> None:
        """Kafka refused a letter."""
        self._metrics.dead_letter_failures += 1

    def _letter(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp: int | None) -> Produced:
        assert self.topic is not None
        self._metrics.dead_letter_requests += 1
        if self._has_context and self._last is not None and self.record is not None:
            headers += context_headers(self.record.topic, None, None, self._connector, self._task, *self._last)
            headers += _source_headers(self.record.source_partition, self.record.source_offset)
        return Produced(self.topic, None, timestamp, key, value, headers or None, is_dead_letter=True)

    def _bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        try:
            return self._json.from_connect_data("", schema, value)
        except DataError:
            return to_text(schema, value).encode("utf-8", "surrogateescape")


def refused_record(partition: SourcePartition, offset: SourceOffset, produced: Produced) -> SourceRecord:
    """Return a record that is known by its bytes only, for the log and the headers."""
    key, value = (None if data is None else data.decode("utf-8", "replace") for data in (produced.key, produced.value))
    return SourceRecord(partition, offset, produced.topic, None, key, None, value, produced.partition, produced.timestamp)


def _source_headers(partition: SourcePartition, offset: SourceOffset) -> Headers:
    return [
        (f"__connect.errors.source.{name}", orjson.dumps(dict(what), default=str))
        for name, what in (("partition", partition), ("offset", offset))
    ]


def _header(schema: Schema | None, value: Any) -> bytes | None:
    return None if value is None else header_text(schema, value).encode("utf-8", "surrogateescape")


def _shown_source(record: SourceRecord) -> str:
    """`SourceRecord.toString`."""
    headers = ", ".join(
        f"ConnectHeader(key={h.name}, value={to_text(h.schema, h.value)}, schema={_schema(h.schema)})" for h in record.headers
    )
    return (
        f"SourceRecord{{sourcePartition={to_text(None, record.source_partition)}, sourceOffset={to_text(None, record.source_offset)}}} "
        f"ConnectRecord{{topic='{record.topic}', kafkaPartition={to_text(None, record.partition)}, "
        f"key={to_text(record.key_schema, record.key)}, keySchema={_schema(record.key_schema)}, "
        f"value={to_text(record.value_schema, record.value)}, valueSchema={_schema(record.value_schema)}, "
        f"timestamp={to_text(None, record.timestamp)}, headers=ConnectHeaders(headers={f'[{headers}]' if headers else ''})}}"
    )


def _schema(schema: Schema | None) -> str:
    """`ConnectSchema.toString`."""
    if schema is None:
        return "null"
    return f"Schema{{{schema.name}:{schema.type.name}}}" if schema.name else f"Schema{{{schema.type.name}}}"


#: The class that the reference names for this stage.
_PRODUCES = "org.apache.kafka.connect.runtime.WorkerSourceTask"


class SendErrorHandler:
    """Decides what happens to records that Kafka refuses.

    Attributes:
        failure: what the task fails with; None while nothing has failed it.
        letters: dead letters to be sent, each with the submission that it belongs to, which is held until then, and what it was made of.
    """

    def __init__(self, tolerance: Tolerance, errors: SourceErrorReporter) -> None:
        self.failure: ConnectError | None = None
        self.letters: deque[tuple[Produced, Submission, SourceRecord | None]] = deque()
        self._tolerance = tolerance
        self._errors = errors

    def handle(self, cause: ConnectError, submission: Submission, produced: Produced, record: SourceRecord | None = None) -> bool:
        """Kafka refused what was produced.

        Args:
            record: what it was made of, where that is known.

        Returns:
            Whether the record is skipped, and no dead letter takes its place.
        """
        is_too_large = cause.java_name == RECORD_TOO_LARGE and produced.value is not None
        if produced.is_dead_letter:
            if is_too_large:
                self._send(self._errors.without_value(produced), submission, record)
            else:
                self._errors.letter_failed()
                self._fail(refused_letter(produced.topic, cause), cause, submission)
        elif not self._tolerance.is_skipping:
            self._fail(FatalTaskError("Unrecoverable exception from producer send callback"), cause, submission)
        else:
            self._errors.record = record or refused_record(submission.partition, submission.offset, produced)
            self._tolerance.failed("KAFKA_PRODUCE", _PRODUCES, cause)
            letter = self._errors.letter_of(produced)
            if letter is None:
                return True
            self._send(self._errors.without_value(letter) if is_too_large else letter, submission, record)
        return False

    def _send(self, letter: Produced, submission: Submission, record: SourceRecord | None) -> None:
        submission.held += 1
        self.letters.append((letter, submission, record))

    def _fail(self, failure: ConnectError, cause: ConnectError, submission: Submission) -> None:
        submission.failed = True
        if self.failure is None:
            failure.__cause__ = cause
            self.failure = failure


class SinkErrorReporter:
    """The error reporters of one sink task.

    Args:
        config: the connector's configuration.
        queue: None when the connector has no dead letter queue.
        metrics: where reports are counted.
    """

    def __init__(
        self, connector: str, task: int, config: Mapping[str, str], queue: DeadLetterQueue | None, metrics: ErrorMetrics | None = None
    ) -> None:
        self._connector = connector
        self._task = task
        self._queue = queue
        self._metrics = metrics or ErrorMetrics()
        self._log = ErrorLog(connector, task, config, self._metrics)
        #: the record that is under way; set before its conversion
        self.record: ConsumedRecord | None = None

    @property
    def is_reporting(self) -> bool:
        """Whether failed records go anywhere."""
        return self._log.is_enabled or self._queue is not None

    @property
    def topic(self) -> str | None:
        """The dead letter queue, None when the connector has none."""
        return None if self._queue is None else self._queue.topic

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        """Report the failure of `record`. Raises FatalTaskError when the dead letter queue cannot take it."""
        record = self.record
        self._log.write(stage, class_name, error, lambda: _shown_consumed(record))
        if self._queue is None or record is None:
            return
        place = record.topic, record.partition, record.offset
        self._metrics.dead_letter_requests += 1
        try:
            self._queue.send(record, lambda: context_headers(*place, self._connector, self._task, stage, class_name, error))
        except FatalTaskError:
            self._metrics.dead_letter_failures += 1
            raise

    def place(self) -> str:
        """Return where the record under way is from, in words."""
        return place_of(self.record) if self.record is not None else "no record"

    def flush(self, deadline: float) -> None:
        """Wait for the dead letters. Raises FatalTaskError."""
        if self._queue is not None:
            self._queue.flush(deadline)


def place_of(record: ConsumedRecord) -> str:
    """Return where a record is from, in words."""
    return f"topic {record.topic}, partition {record.partition}, offset {record.offset}"


def _shown_consumed(record: ConsumedRecord | None) -> str:
    if record is None:
        return ""
    text = f", where consumed record is {{topic='{record.topic}', partition={record.partition}, offset={record.offset}"
    if record.timestamp_type is not None:
        text += f", timestamp={record.timestamp}, timestampType={record.timestamp_type}"
    return text + "}"
