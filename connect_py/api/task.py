"""Define what a task's author implements, and what the runtime gives to a task (`org.apache.kafka.connect.{source,sink}`).

One thread, the task's, calls every method but `stop`, which comes from another thread and only asks.

`MetricGroup` holds figures that a task reports of itself, in addition to those that the runtime counts for every task (KIP-877 is Connect's
way).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from connect_py.api.record import (
    EncodedBatch,
    JsonEncoding,
    RecordMetadata,
    SinkRecord,
    SourceOffset,
    SourcePartition,
    SourceRecord,
    TopicPartition,
)
from connect_py.errors import ConfigError

#: The domain of groups that are for people who look at a connector: their texts change with every event, so /metrics leaves them out.
NOTES_DOMAIN = "connect.py.notes"

#: A number; a boolean, shown as 1 or 0; a text, shown as a label; or numbers by key (rows by table). None: not known now.
MetricValue = int | float | bool | str | Mapping[str, int | float] | None


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Figures that belong together: one JMX bean of a Java worker.

    Attributes:
        domain: such as ``kafka.connect`` or ``debezium.postgres``; begins the names.
        type: such as ``source-task-metrics``.
        tags: what the figures are about. The runtime adds connector and task to those that a task gives.
        values: by attribute, spelt as in JMX.
    """

    domain: str
    type: str
    tags: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, MetricValue] = field(default_factory=dict)


class TransactionContext(Protocol):
    """How a source task says where its transactions end (`org.apache.kafka.connect.source.TransactionContext`). Any thread may call."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Ask for a commit after this record, or after the next batch that `poll` returns."""
        ...

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Ask that all of the transaction up to this record, or to the end of the next batch, is dropped. Its offsets are stored."""
        ...


class SignalTaker:
    """What every kind of task may do: carry out what a client of the worker asks for."""

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Take a signal (``POST /connectors/{name}/signals``); it is carried out in a later `poll`, `put` or `step`.

        Args:
            signal: ``id``, ``type`` (texts), ``data`` and ``additional-data`` (objects).
            done: to be called when the signal was carried out and nothing of it would be lost: of a source, when the offsets topic holds
                what it brought about. Until then a task that is started again is given it again.

        Raises:
            ConfigError: it is refused; the text, which the client sees, says why and what to do.
        """
        raise ConfigError("This connector takes no signals.")


class SourceTaskContext(Protocol):
    """What a source task may ask of the runtime."""

    @property
    def connector(self) -> str:
        """The connector's name."""
        ...

    @property
    def task(self) -> int:
        """The task's number, from 0."""
        ...

    @property
    def config(self) -> Mapping[str, str]:
        """The task's configuration, with the values of its variables (`SourceTaskContext.configs`)."""
        ...

    @property
    def encoding(self) -> JsonEncoding:
        """How rows of an `EncodedBatch` must be serialised; of no interest to a task that gives `SourceRecord`s."""
        ...

    @property
    def transactions(self) -> TransactionContext | None:
        """Of an exactly-once source with ``transaction.boundary=connector``; None otherwise."""
        ...

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition (integers come back as int, decimals as float), None if there is none."""
        ...

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Show something to clients of the worker (``GET /connectors/{name}/notifications``): a small JSON object. Never raises."""
        ...


class SourceTask(SignalTaker, ABC):
    """Copies from a source into records.

    Attributes:
        patience: seconds that the next `poll` may wait. A task that can keep to it starts with the longest time it would wait; the runtime
            then asks for less while records of earlier polls wait to be sent together with the next ones. None: `poll` waits as it likes.
        rest_patience: what the runtime may set it to once nothing has come for a while, if `interrupt` ends such a wait; 0 for no rest. A
            worker may have hundreds of tasks to which nothing happens, and each look around costs some 0.2 ms of CPU.
    """

    patience: float | None = None
    rest_patience: float = 0.0

    @abstractmethod
    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Get ready. Raises ConfigError, FatalTaskError or RetriableError; the task is then FAILED."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | EncodedBatch | None:
        """Return the next records, in order; waits up to about half a second for them, then gives None.

        Raises:
            RetriableError: it is called again.
            ConnectError: the task fails.
        """

    def stop(self) -> None:
        """Make a waiting `poll` return soon. Called from another thread; must not block."""

    def interrupt(self) -> None:
        """Make one waiting `poll` return soon: the runtime was asked for something. Called from another thread; must not block."""

    def close(self) -> None:
        """Free what the task holds. Called by the task's thread after its last `poll` and the last commit, also after a failure."""

    def offsets_committed(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None:
        """The offsets topic holds these now: a source may discard what lies before them, and nothing else."""

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Kafka holds this record now, or never will (`SourceTask.commitRecord`). Override it to acknowledge single messages to a queue.

        Called by the task's thread in the order of the acknowledgements, for every `SourceRecord`; rows of an `EncodedBatch` have none.
        A task that overrides it is notified of each record separately, which costs about a tenth of all that a record does. What it raises
        is logged.

        Args:
            record: as `poll` gave it, before transforms.
            metadata: where Kafka put it; None for a record that a transform dropped or that was skipped (``errors.tolerance=all``), once
                its dead letter, if there is one, is in Kafka.
        """

    def keep_alive(self) -> None:
        """Called about once a second while the runtime cannot take records (Kafka is unavailable): answer the server's pings."""

    def metrics(self) -> Sequence[MetricGroup]:
        """Return figures of the task's own, as they stand now. Asked for every few seconds between two calls of the task: must not wait."""
        return ()


class SinkTaskContext(Protocol):
    """What a sink task may ask of the runtime. Every method is for the task's thread."""

    @property
    def connector(self) -> str:
        """The connector's name."""
        ...

    @property
    def task(self) -> int:
        """The task's number, from 0."""
        ...

    @property
    def config(self) -> Mapping[str, str]:
        """The task's configuration, with the values of its variables (`SinkTaskContext.configs`)."""
        ...

    def request_commit(self) -> None:
        """Ask for an offset commit soon."""
        ...

    def retry_after(self, seconds: float) -> None:
        """After a RetriableError of this `put`: give the same records again no later than this (`SinkTaskContext.timeout`)."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this task reads now."""
        ...

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets, for a sink that keeps its own (`SinkTaskContext.offset`)."""
        ...

    def pause(self, *partitions: TopicPartition) -> None:
        """Bring no records of these partitions until `resume`."""
        ...

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        ...

    @property
    def report_errant_record(self) -> Callable[[SinkRecord, Exception], None] | None:
        """Hands one record of the current `put` to the dead letter queue and the error log, instead of failing the task
        (`ErrantRecordReporter`). None when the connector has neither. Raises FatalTaskError unless ``errors.tolerance`` is all."""
        ...


class SinkTask(SignalTaker, ABC):
    """Copies records into a sink; the runtime consumes, converts and commits."""

    @abstractmethod
    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Get ready. Raises as `SourceTask.start`."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records, possibly none. Raises RetriableError to be given the same ones again."""

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions have been assigned."""

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions go away."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Make what was put durable; returns the next offsets that may be committed."""
        return offsets

    def metrics(self) -> Sequence[MetricGroup]:
        """Return figures of the task's own, as they stand now. Asked for every few seconds between two calls of the task: must not wait."""
        return ()

    def stop(self) -> None:
        """Free what the task holds."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be applied, as Kafka holds it.

    Attributes:
        timestamp: epoch milliseconds.
        error: why.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    error: Exception


class RecordReader(Protocol):
    """Converters and transforms of one sink, set up. One thread uses an instance."""

    def read(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> SinkRecord | None:
        """Return a record as a sink task would get it; None when a transform drops it.

        Args:
            timestamp: epoch milliseconds.

        Raises:
            DataError: it cannot be converted or transformed.
            RetriableError: what a converter needs, such as a registry, does not answer now.
        """
        ...

    def close(self) -> None:
        """Free what transforms hold."""
        ...


class RecordConversion(Protocol):
    """How the worker reads a connector's records, for a sink whose engine reads them elsewhere, in other processes or on other machines.

    It can be pickled, and holds the converters' secrets. Where it is opened this package must be installed.
    """

    @property
    def converters(self) -> Mapping[str, Mapping[str, str]]:
        """By side (``key``, ``value``, ``header``) the properties of the converter that applies, its class by Java's name as ``class``."""
        ...

    @property
    def transforms(self) -> Sequence[str]:
        """Java's names of the transforms' classes, in order."""
        ...

    def open(self) -> RecordReader:
        """Return a reader. Raises ConfigError: a class or one of its properties is wrong."""
        ...


class LogRecord(Protocol):
    """A record as Kafka holds it.

    Attributes:
        timestamp: epoch milliseconds, None when there is none.
        timestamp_type: ``CreateTime``, ``LogAppendTime`` or None.
    """

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int | None: ...
    @property
    def timestamp_type(self) -> str | None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class BatchSinkContext(Protocol):
    """What a sink that reads Kafka by itself may ask of the runtime.

    Attributes:
        kafka_options: client settings by Java's names (``bootstrap.servers``, ``security.protocol`` …), consumer overrides applied.
        group_id: the consumer group in which the runtime commits what the task reports.
    """

    @property
    def connector(self) -> str:
        """The connector's name."""
        ...

    @property
    def task(self) -> int:
        """The task's number, from 0."""
        ...

    @property
    def kafka_options(self) -> Mapping[str, str]:
        """Client settings by Java's names, consumer overrides applied."""
        ...

    @property
    def group_id(self) -> str:
        """The consumer group."""
        ...

    @property
    def conversion(self) -> RecordConversion:
        """The converters and transforms that apply to the connector. Raises ConfigError: a class is unknown."""
        ...

    def log_offsets(self, topics: Sequence[str], pattern: str | None) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return first and next offset (last stable one) of every partition of the topics, or of all topics that match a Java regex."""
        ...

    def records(self, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int) -> Sequence[LogRecord] | None:
        """Return the records of a few small ranges [start, end) of the log, read by the worker's client.

        Returns:
            None if the engine had better read them: they have more bytes, did not come in time, or Kafka refuses.
        """
        ...

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the group's committed offsets. What the sink itself has stored is the better authority where they differ."""
        ...

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Show something to clients of the worker, as `SourceTaskContext.notify` does."""
        ...

    def reject(self, records: Sequence[BadRecord]) -> None:
        """Log records that ``errors.tolerance=all`` lets the sink pass over, and write them to the dead letter queue, where there is one.

        Returns when Kafka holds them. Call it before their offsets become durable anywhere: a letter may then be written twice, and is
        never lost. Raises FatalTaskError when Kafka does not take them.
        """
        ...


class BatchSinkTask(SignalTaker, ABC):
    """A sink whose engine reads Kafka itself (Spark does, in the JVM): the runtime drives it step by step and commits what it reports."""

    @abstractmethod
    def start(self, config: Mapping[str, str], context: BatchSinkContext) -> None:
        """Get ready. Raises as `SourceTask.start`."""

    @abstractmethod
    def step(self) -> Mapping[TopicPartition, int] | None:
        """Apply at most one batch.

        Returns:
            The next offsets that are durable in every table after this step, for the runtime to commit to the consumer group; None when
            there was nothing to do (the runtime then waits ``poll_interval_seconds`` before it calls again).

        Raises:
            RetriableError: the step is repeated with back-off.
            ConnectError: the task fails.
        """

    #: How long the runtime waits after a step that found nothing.
    poll_interval_seconds: float = 1.0

    def metrics(self) -> Sequence[MetricGroup]:
        """Return figures of the task's own, as they stand now. Asked for every few seconds between two calls of the task: must not wait."""
        return ()

    def stop(self) -> None:
        """Ask a running step to end soon. Called from another thread; must not block."""

    def close(self) -> None:
        """Free what the task holds. Called by the task's thread after its last step."""
