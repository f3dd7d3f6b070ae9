"""What a sink task may ask of its loop (`WorkerSinkTaskContext.java`). The task's thread owns a context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from connect_py.api import SinkRecord, TopicPartition


class PausingConsumer(Protocol):
    """What a context needs of `connect_py.kafka.consumer.GroupConsumer`."""

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...
    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...
    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...


class SinkContext:
    """`SinkTaskContext`: notes what the task asks for; the loop looks at it between two calls of the task."""

    def __init__(self, connector: str, task: int, consumer: PausingConsumer, config: Mapping[str, str] | None = None) -> None:
        self.connector = connector
        self.task = task
        self.config = config or {}
        self._consumer = consumer
        self.wants_commit = False
        self.retry_seconds: float | None = None
        self.seeks: dict[TopicPartition, int] = {}
        self.resting: set[TopicPartition] = set()
        self.report_errant_record: Callable[[SinkRecord, Exception], None] | None = None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this task reads now."""
        return self._consumer.assignment

    def request_commit(self) -> None:
        """Ask for an offset commit soon."""
        self.wants_commit = True

    def retry_after(self, seconds: float) -> None:
        """Bound the wait before the same records come again."""
        self.retry_seconds = seconds

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets."""
        self.seeks.update(offsets)

    def pause(self, *partitions: TopicPartition) -> None:
        """Bring no records of these partitions."""
        self._consumer.pause(partitions)
        self.resting.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Bring records of these partitions again."""
        self._consumer.resume(partitions)
        self.resting.difference_update(partitions)
