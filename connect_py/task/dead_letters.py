"""Write what failed records leave: an entry in the log, and a dead letter.

`ErrorLog` is the log's side of ``errors.*``: one entry for each record that fails (`runtime/errors/LogReporter.java`).

`DeadLetterQueue` is the writer of sink tasks (`DeadLetterQueueReporter.java`, KIP-298). A sink's dead letter is the original record, key,
value, headers and timestamp, with the context headers appended when these are on. `connect_py.task.failed_records` says what a source's
is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from connect_py.api.config import ConfigType, parse_value
from connect_py.config.connector import DEAD_LETTER_TOPIC
from connect_py.errors import ConnectError, FatalTaskError, noted
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.log.lines import clean
from connect_py.log.traces import java_name, own_text, trace_of
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.producing import RecordProducer

log = logging.getLogger(__name__)


class ErrorLog:
    """What ``errors.log.enable`` and ``errors.log.include.messages`` ask for.

    Args:
        config: the connector's configuration.
        metrics: where entries are counted.
    """

    def __init__(self, connector: str, task: int, config: Mapping[str, str], metrics: ErrorMetrics) -> None:
        self.is_enabled = flag(config, "errors.log.enable")
        self._shows_records = flag(config, "errors.log.include.messages")
        self._task = f"{connector}-{task}"
        self._metrics = metrics

    def write(self, stage: str, class_name: str, error: Exception, record: Callable[[], str]) -> None:
        """Log a failure, if that is asked for.

        Args:
            record: describes the record, with the words that lead to it; it may hold the record's values, and is asked only where the
                configuration allows that.
        """
        if not self.is_enabled:
            return
        self._metrics.logged += 1
        shown = record() if self._shows_records else ""
        log.error(
            "Error encountered in task %s. Executing stage '%s' with class '%s'%s.\n%s",
            self._task,
            stage,
            class_name,
            shown,
            trace_of(error).rstrip(),
        )


def flag(config: Mapping[str, str], name: str) -> bool:
    """Return a property that is on or off, off by default."""
    return bool(parse_value(name, config.get(name, "false"), ConfigType.BOOLEAN))


Headers = list[tuple[str, bytes | None]]

_PREFIX = "__connect.errors."


class DeadLetterQueue:
    """Writes a sink's failed records to a topic; the task's thread owns it, and delivery callbacks run inside its calls.

    A letter is sent at once and awaited before offsets are committed (`flush`): an offset never passes a record that is in neither place.
    Connect only logs a dead letter that cannot be written; here the task fails and its offset stays.

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

    def send(self, record: ConsumedRecord, context: Callable[[], Headers]) -> None:
        """Hand over one record. Raises FatalTaskError when it or an earlier one was refused."""
        headers = [*record.headers, *(context() if self._has_context else ())]
        self._outstanding += 1
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
            raise refused_letter(self.topic, self._problem)


def refused_letter(topic: str, problem: object) -> FatalTaskError:
    """Return the error of a task whose dead letter Kafka did not take."""
    return FatalTaskError(
        f"Could not produce message to dead letter queue. topic={topic}: {problem}. No offset beyond it is committed; "
        "the records are read again after a restart."
    )


def dead_letter_topic(config: Mapping[str, str]) -> str | None:
    """Return the name of a connector's dead letter queue, None when it has none."""
    return config.get(DEAD_LETTER_TOPIC, "").strip() or None


def has_context_headers(config: Mapping[str, str]) -> bool:
    """``errors.deadletterqueue.context.headers.enable``."""
    return flag(config, "errors.deadletterqueue.context.headers.enable")


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
        root = error.__cause__ or error
        cause = ConnectError(f"{java_name(root)}: {root}")
        cause.java_name = "java.util.concurrent.ExecutionException"  # what Java's admin client wraps it in
        cause.__cause__ = root
        raise noted(
            FatalTaskError(f"Could not initialize dead letter queue with topic={topic}"),
            f"Nothing was read. Create the topic, or set {name} (now {replication}) to no more than the number of brokers, and restart the "
            "task.",
        ) from cause


def context_headers(
    topic: str, partition: int | None, offset: int | None, connector: str, task: int, stage: str, class_name: str, error: Exception
) -> Headers:
    """Return the context headers of a dead letter, in Connect's order; without the secrets that an error's text may hold.

    Args:
        topic: where a sink's record is from; where a source's was to go.
        partition: its Kafka partition; None leaves the header out.
        offset: its Kafka offset; None leaves the header out.
    """
    values: dict[str, object] = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "connector.name": connector,
        "task.id": task,
        "stage": stage,
        "class.name": class_name,
        "exception.class.name": java_name(error),
    }
    text = clean(str(error) and own_text(error))
    headers = [(name, str(value)) for name, value in values.items() if value is not None]
    texts: list[tuple[str, str | None]] = [*headers, ("exception.message", text or None), ("exception.stacktrace", clean(trace_of(error)))]
    return [(_PREFIX + name, None if value is None else value.encode("utf-8", "surrogateescape")) for name, value in texts]
