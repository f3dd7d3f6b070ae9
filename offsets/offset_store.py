"""Source offsets on the offsets topic: of all connectors, for the worker (`KafkaOffsetBackingStore.java`), and a task's own writer
(`OffsetStorageWriter.java`).

`KafkaOffsetStore` keeps values as bytes, by the bytes of their keys, as the topic has them; they are parsed when somebody asks. The lock
guards them; the log's reader thread fills them.

`TaskOffsetWriter` has a small producer of its own. A batch is done when Kafka has acknowledged every record of it; several batches may be
under way, and a key's records keep their order. The caller writes offsets only of records that Kafka holds already, so what the topic says
never runs ahead of the data. The task's thread uses it: `done` runs inside `serve` and `close`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.errors import ConnectError, DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties, is_exactly_once, source_producer_properties, transactional_producer_properties
from connect_py.kafka.producer import KafkaError, Message, Producer, delivery_error
from connect_py.kafka.shared_log import LogRecord
from offsets.cache import OffsetCache, offset_records
from offsets.own_topic import OwnOffsets, own_topic
from offsets.topics import OFFSET_TOPIC, READ_WRITE_SECONDS, TopicLog

log = logging.getLogger(__name__)

_Records = Sequence[tuple[bytes, bytes | None]]


class KafkaOffsetStore:
    """A `connect_py.api.storage.OffsetStore` on a compacted topic.

    Args:
        worker: worker properties (`offset.storage.topic`, `.partitions`, `.replication.factor`, client settings).
        admin: to be shared; the store makes its own otherwise.
        write_seconds: what one request may spend on the topic.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(self, worker: Mapping[str, str], admin: KafkaAdmin | None = None, *, write_seconds: float = READ_WRITE_SECONDS) -> None:
        self._worker = worker
        self._exactly_once = is_exactly_once(worker)
        self._log = TopicLog(
            worker, OFFSET_TOPIC, "offsets", self._take, admin, read_committed=self._exactly_once, write_seconds=write_seconds
        )
        self._lock = threading.Lock()
        self._cache = OffsetCache()

    def start(self) -> None:
        """Create the topic if it is missing, read it to the end, then follow it. Raises ConfigError, RetriableError."""
        self._log.start()

    def stop(self) -> None:
        """Stop following."""
        self._log.stop()

    def read(self, connector: str, config: Mapping[str, str], timeout: float) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return everything stored of a connector, in the worker's topic and in its own.

        Raises:
            ConfigError: its own topic cannot be used.
            RetriableError: the topics were not read to their ends within `timeout` seconds.
        """
        self._log.read_to_end(timeout)
        with self._lock:
            found = self._cache.only(connector)
        own = own_topic(self._worker, config)
        if own is not None:
            with OwnOffsets(self._worker, connector, config, own, timeout) as topic:
                found.overlay(topic.cache)
        return found.of_connector(connector)

    def put(
        self, connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]], config: Mapping[str, str] | None = None
    ) -> None:
        """Store offsets (None is a tombstone); returns when Kafka holds them and they have been read back.

        With exactly-once sources they are one transaction of the producer that the connector's first task has, which is fenced by it.

        Args:
            config: the connector's, for the settings of its producer.

        Raises:
            DataError: a partition or offset that is no flat map of strings to primitives; nothing was written.
            ConfigError: the producer's settings cannot be used.
            ConnectError: Kafka did not take all of them; with exactly-once sources, none.
        """
        found = offset_records(connector, offsets)
        if not found:
            return
        failure = f"Error writing offsets of connector {connector} to Kafka"
        own = own_topic(self._worker, config)
        if own is not None:
            self._put_own(own, connector, found, config or {}, failure)
        elif self._exactly_once:
            deadline = time.monotonic() + self._log.write_seconds
            try:
                self._commit(OFFSET_TOPIC.name(self._worker), connector, found, config, deadline)
                self._log.read_to_end(max(0.1, deadline - time.monotonic()))
            except ConnectError as error:
                raise ConnectError(f"{failure}: {error}") from error
        else:
            self._log.write(found, failure)

    def _put_own(self, own: str, connector: str, records: _Records, config: Mapping[str, str], failure: str) -> None:
        """Write to the connector's own topic; the worker's forgets before it, and is given the rest after it. Raises ConnectError."""
        last = dict(records)
        gone = [(key, value) for key, value in last.items() if value is None]
        kept = [(key, value) for key, value in last.items() if value is not None]
        if gone:  # what the own topic forgets would come back from the worker's (KAFKA-15018)
            self._log.write(gone, failure)
        seconds = self._log.write_seconds
        deadline = time.monotonic() + seconds
        try:
            with OwnOffsets(self._worker, connector, config, own, seconds) as topic:  # which creates it
                if self._exactly_once:
                    self._commit(own, connector, records, config, deadline)
                else:
                    topic.write(records)
        except ConnectError as error:
            raise ConnectError(f"{failure}: {error}") from error
        if kept:
            try:
                self._log.write(kept, failure)
            except ConnectError as error:
                log.warning("The worker's topic has no copy of the offsets in '%s': %s", own, error)

    def _commit(self, topic: str, connector: str, records: _Records, config: Mapping[str, str] | None, deadline: float) -> None:
        from connect_py.kafka.transactions import TransactionalProducer  # of no use to tasks, which have this module too

        producer = TransactionalProducer(transactional_producer_properties(self._worker, connector, 0, config))
        producer.begin(lambda: time.monotonic() < deadline)
        try:
            for key, value in records:
                producer.produce(topic, value, key)
            producer.commit(deadline)
        except ConnectError:
            with contextlib.suppress(ConnectError):  # else readers wait until the transaction expires
                producer.abort(deadline)
            raise

    def _take(self, record: LogRecord) -> None:
        try:
            with self._lock:
                self._cache.apply(record.key, record.value)
        except DataError as error:
            log.warning("%s (offset %d of partition %d of the offsets topic)", error, record.offset, record.partition)


#: Offsets are some hundred bytes every few seconds.
_SMALL = {"buffer.memory": "1048576", "linger.ms": "0", "delivery.timeout.ms": str(2**31 - 1), "enable.metrics.push": "false"}


def open_quietly(properties: Mapping[str, str]) -> Producer:
    """Return a client that is polled seldom. Raises ConfigError."""
    return Producer(properties, quiet=True)


class TaskOffsetWriter:
    """A `connect_py.api.storage.OffsetWriter` on Kafka; the topic exists already, as the worker has read it.

    Args:
        worker: worker properties (`offset.storage.topic`, client settings).
        connector: the connector's name, the first part of each key.
        task: the task's number, for the client id.
        config: the connector's. Where it names an offsets topic of its own, a write is done when that has it; the worker's gets a copy.
        open_client: makes the client, of a producer's properties.

    Raises:
        ConfigError: no topic is named, or a client property cannot be used.
    """

    def __init__(
        self,
        worker: Mapping[str, str],
        connector: str,
        task: int,
        config: Mapping[str, str] | None = None,
        *,
        open_client: Callable[[Mapping[str, str]], Producer] = open_quietly,
    ) -> None:
        own = own_topic(worker, config)
        self._open_client = open_client
        self._topic = own or OFFSET_TOPIC.name(worker)
        self._connector = connector
        if own is None:
            properties = internal_properties(worker, f"offsets-{connector}-{task}")
        else:
            properties = source_producer_properties(worker, connector, task, config)
        properties |= {**_SMALL, "acks": "all", "enable.idempotence": "true"}
        for name in ("max.in.flight.requests.per.connection", "retries", "transactional.id"):
            properties.pop(name, None)
        self._properties = properties
        self._producer: Producer | None = open_client(properties)
        self._copies = None if own is None else TaskOffsetWriter(worker, connector, task, open_client=open_client)
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
        batch = _Batch(self._topic, len(found), done if self._copies is None else partial(self._copy, offsets, done))
        if self._producer is None:
            self._producer = self._open_client(self._properties)
        for key, value in found:
            self._producer.produce(self._topic, value, key, on_delivery=batch.delivered)

    def copy(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None:
        """Write offsets that count elsewhere. Nobody waits for them, and that they were not written is a warning."""
        try:
            self.write(offsets, self._warn)
        except ConnectError as error:
            self._warn(error)

    def _copy(
        self,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        done: Callable[[Exception | None], None],
        error: Exception | None,
    ) -> None:
        if error is None and self._copies is not None:
            self._copies.copy(offsets)
        done(error)

    def _warn(self, error: Exception | None) -> None:
        if error is not None:
            log.warning("The worker's topic '%s' has no copy of offsets that are in the connector's own topic: %s", self._topic, error)

    def serve(self, timeout: float = 0.0) -> None:
        """Let callbacks run."""
        if self._copies is not None:
            self._copies.serve()
        empty, self._empty = self._empty, []
        for done in empty:
            done(None)
        if self._producer is not None:
            self._producer.poll(0.0 if empty else timeout)

    def release(self) -> None:
        """Close the client; the next write opens another."""
        if self._producer is not None:
            self._producer.close(0.0)
            self._producer = None
        if self._copies is not None:
            self._copies.release()

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for what is under way; the rest is given up and its `done` is called with an error."""
        deadline = time.monotonic() + timeout
        self.serve()
        if self._producer is not None:
            self._producer.close(timeout)
        if self._copies is not None:
            self._copies.close(max(0.0, deadline - time.monotonic()))


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
