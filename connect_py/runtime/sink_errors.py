"""Where a sink task's failed records go: the log and the dead letter queue (`runtime/errors/LogReporter.java`,
`DeadLetterQueueReporter.java`, `ProcessingContext.java`).

A dead letter is the original record, key, value, headers and timestamp, with the context headers appended when these are on. It is sent at
once and awaited before offsets are committed (`SinkErrors.flush`): an offset never passes a record that is in neither place. Connect only
logs a dead letter that cannot be written; here the task fails and its offset stays.

The task's thread owns a `SinkErrors`; delivery callbacks run inside its calls.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.api.config import ConfigType, parse_value
from connect_py.errors import ConfigError, ConnectError, DataError, FatalTaskError, RetriableError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.runtime.connector_config import DEAD_LETTER_TOPIC
from connect_py.runtime.metrics.task import ErrorMetrics
from connect_py.runtime.producing import RecordProducer

log = logging.getLogger(__name__)

Headers = list[tuple[str, bytes | None]]

#: The classes by which users of Kafka's tools know our errors; others have their own names.
_JAVA_NAMES: tuple[tuple[type[BaseException], str], ...] = (
    (DataError, "org.apache.kafka.connect.errors.DataException"),
    (RetriableError, "org.apache.kafka.connect.errors.RetriableException"),
    (ConfigError, "org.apache.kafka.common.config.ConfigException"),
    (ConnectError, "org.apache.kafka.connect.errors.ConnectException"),
)

_PREFIX = "__connect.errors."


class DeadLetterQueue:
    """Writes failed records to a topic.

    Args:
        topic: an existing topic.
        has_context: whether to append the context headers.
    """

    def __init__(self, topic: str, producer: RecordProducer, *, has_context: bool) -> None:
        self.topic = topic
        self._producer = producer
        self._has_context = has_context
        self._outstanding = 0
        self._problem: object = None
        self.sent = 0

    def send(self, record: ConsumedRecord, context: Headers) -> None:
        """Hand over one record. Raises FatalTaskError when it or an earlier one was refused."""
        headers = [*record.headers, *(context if self._has_context else ())]
        self._outstanding += 1
        self.sent += 1
        try:
            self._producer.produce(
                self.topic,
                record.value,
                record.key,
                headers,
                self._delivered,
                timestamp=record.timestamp or 0,
                while_waiting=self._raise_problem,
            )
        except ConnectError as error:
            self._outstanding -= 1
            self._problem = error
        self._producer.poll(0.0)
        self._raise_problem()

    def flush(self, deadline: float) -> None:
        """Wait until Kafka holds everything. Raises FatalTaskError when it does not by `deadline` (`time.monotonic`)."""
        while self._outstanding and self._problem is None and time.monotonic() < deadline:
            self._producer.poll(0.05)
        if self._outstanding and self._problem is None:
            self._problem = f"{self._outstanding} records were not acknowledged in time"
        self._raise_problem()

    def _delivered(self, error: Any, _message: Any) -> None:
        self._outstanding -= 1
        if error is not None:
            self._problem = error.str()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise FatalTaskError(
                f"Could not produce message to dead letter queue. topic={self.topic}: {self._problem}. No offset beyond it is committed; "
                "the records are read again after a restart."
            )


class SinkErrors:
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
        self._logs = _flag(config, "errors.log.enable")
        self._shows_records = _flag(config, "errors.log.include.messages")
        #: the record that is under way; set before its conversion
        self.record: ConsumedRecord | None = None

    @property
    def is_reporting(self) -> bool:
        """Whether failed records go anywhere."""
        return self._logs or self._queue is not None

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        """Report the failure of `record`. Raises FatalTaskError when the dead letter queue cannot take it."""
        record = self.record
        if self._logs:
            self._metrics.logged += 1
            log.error("%s", self._line(stage, class_name, record), exc_info=error)
        if self._queue is not None and record is not None:
            self._metrics.dead_letter_requests += 1
            try:
                self._queue.send(record, context_headers(record, self._connector, self._task, stage, class_name, error))
            except FatalTaskError:
                self._metrics.dead_letter_failures += 1
                raise

    def flush(self, deadline: float) -> None:
        """Wait for the dead letters. Raises FatalTaskError."""
        if self._queue is not None:
            self._queue.flush(deadline)

    def _line(self, stage: str, class_name: str, record: ConsumedRecord | None) -> str:
        text = f"Error encountered in task {self._connector}-{self._task}. Executing stage '{stage}' with class '{class_name}'"
        if self._shows_records and record is not None:
            text += f", where consumed record is {{topic='{record.topic}', partition={record.partition}, offset={record.offset}"
            if record.timestamp_type is not None:
                text += f", timestamp={record.timestamp}, timestampType={record.timestamp_type}"
            text += "}"
        return text + "."


def dead_letter_topic(config: Mapping[str, str]) -> str | None:
    """The name of a connector's dead letter queue, None when it has none."""
    return config.get(DEAD_LETTER_TOPIC, "").strip() or None


def has_context_headers(config: Mapping[str, str]) -> bool:
    """``errors.deadletterqueue.context.headers.enable``."""
    return _flag(config, "errors.deadletterqueue.context.headers.enable")


def create_dead_letter_topic(create: Callable[[str, int, int], bool], topic: str, config: Mapping[str, str]) -> None:
    """Make sure of the topic: one partition, the configured replication factor.

    Args:
        create: `KafkaAdmin.create_topic`, which leaves an existing topic as it is.

    Raises:
        FatalTaskError: it cannot be created.
    """
    name = "errors.deadletterqueue.topic.replication.factor"
    replication = int(parse_value(name, config.get(name, "3"), ConfigType.SHORT))
    try:
        create(topic, 1, replication)
    except ConnectError as error:
        raise FatalTaskError(
            f"Could not initialize dead letter queue with topic={topic}: {error} Nothing was read. Create the topic, or set {name} "
            f"(now {replication}) to no more than the number of brokers, and restart the task."
        ) from error


def context_headers(record: ConsumedRecord, connector: str, task: int, stage: str, class_name: str, error: Exception) -> Headers:
    """The context headers of a dead letter, in Connect's order (KIP-298)."""
    name, text = java_name(error), _own_text(error)
    values = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "connector.name": connector,
        "task.id": str(task),
        "stage": stage,
        "class.name": class_name,
        "exception.class.name": name,
        "exception.message": text or None,
        "exception.stacktrace": f"{name}: {text}\n{''.join(traceback.format_exception(error))}" if text else f"{name}\n",
    }
    return [(_PREFIX + key, None if value is None else value.encode("utf-8", "surrogateescape")) for key, value in values.items()]


def _own_text(error: BaseException) -> str:
    """An error's text without the cause's, which Connect keeps apart: it is in the stack trace."""
    text, cause = str(error), str(error.__cause__ or "")
    return text.removesuffix(cause)


def java_name(error: BaseException) -> str:
    """The class of an error as Connect's users know it."""
    return next((name for kind, name in _JAVA_NAMES if isinstance(error, kind)), type(error).__qualname__)


def _flag(config: Mapping[str, str], name: str) -> bool:
    return bool(parse_value(name, config.get(name, "false"), ConfigType.BOOLEAN))
