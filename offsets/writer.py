"""A source task's own way to the offsets topic, with a small producer of its own (`OffsetStorageWriter.java`).

A batch is done when Kafka has acknowledged every record of it; several batches may be under way, and a key's records keep their order.
The caller writes offsets only of records that Kafka holds already, so what the topic says never runs ahead of the data.
Used by the task's thread only: `done` runs inside `serve` and `close`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.kafka.client import internal_properties
from connect_py.kafka.producer import KafkaError, Message, Producer, delivery_error
from offsets.offset_store import offset_records
from offsets.topics import OFFSET_TOPIC

#: Offsets are some hundred bytes every few seconds.
_SMALL = {"buffer.memory": "1048576", "linger.ms": "0", "delivery.timeout.ms": str(2**31 - 1)}


class TaskOffsetWriter:
    """A `connect_py.api.storage.OffsetWriter` on Kafka; the topic exists already, as the worker has read it.

    Args:
        worker: worker properties (`offset.storage.topic`, client settings).
        connector: the connector's name, the first part of each key.
        task: the task's number, for the client id.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], connector: str, task: int) -> None:
        self._topic = OFFSET_TOPIC.name(worker)
        self._connector = connector
        properties = {**internal_properties(worker, f"offsets-{connector}-{task}"), **_SMALL, "acks": "all", "enable.idempotence": "true"}
        for name in ("max.in.flight.requests.per.connection", "retries", "transactional.id"):
            properties.pop(name, None)
        self._producer = Producer(properties, quiet=True)
        self._empty: list[Callable[[Exception | None], None]] = []

    def write(
        self,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        done: Callable[[Exception | None], None],
    ) -> None:
        """Send offsets; `done` is called from `serve` once Kafka holds all of them, or with the first failure.

        Raises:
            DataError: a partition or offset that is no flat map of strings to primitives; nothing was sent, `done` is not called.
        """
        found = offset_records(self._connector, offsets)
        if not found:
            self._empty.append(done)
            return
        batch = _Batch(self._topic, len(found), done)
        for key, value in found:
            self._producer.produce(self._topic, value, key, on_delivery=batch.delivered)

    def serve(self, timeout: float = 0.0) -> None:
        """Let callbacks run."""
        empty, self._empty = self._empty, []
        for done in empty:
            done(None)
        self._producer.poll(0.0 if empty else timeout)

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for what is under way; the rest is given up and its `done` hears so."""
        self.serve()
        self._producer.close(timeout)


class _Batch:
    """Counts one write's acknowledgements."""

    def __init__(self, topic: str, left: int, done: Callable[[Exception | None], None]) -> None:
        self._topic = topic
        self._left = left
        self._done = done
        self._failure: Exception | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        self._left -= 1
        if error is not None and self._failure is None:
            self._failure = delivery_error(error, self._topic)
        if self._left == 0:
            self._done(self._failure)
