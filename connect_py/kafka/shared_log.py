"""Read a topic as a shared log that every worker reads whole (`runtime/util/KafkaBasedLog.java`).

All partitions are assigned without a group, read from their beginning to the end offsets of that moment, then followed. The reader thread
owns the consumer; it calls `on_record` for every record in order and wakes those who wait for a position. Writers wait on the thread that
called them, and the reader serves the callbacks of what was only sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connect_py.kafka.admin import LEADER_WAIT_SECONDS, KafkaAdmin
from connect_py.kafka.client_log import BrokerWatch, ClientLog
from connect_py.kafka.client_statistics import statistics_config
from connect_py.kafka.producer import delivery_error, error_text
from connect_py.kafka.settings import ClientKind, librdkafka_config

log = logging.getLogger(__name__)

#: How soon a writer notices that its record is acknowledged when the reader's thread, which serves the same client, was told so.
_ACKNOWLEDGED_SECONDS = 0.005

#: How long the reader waits for records before it looks whether it must stop.
POLL_SECONDS = 0.1

#: Records of internal topics are few; these bounds keep a client's buffers small compared to the worker's memory budget.
_SMALL_CONSUMER = {"queued.max.messages.kbytes": 4096, "fetch.error.backoff.ms": 100}
_SMALL_PRODUCER = {"queue.buffering.max.kbytes": 32768, "linger.ms": 0}


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record as it was read."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    headers: Sequence[tuple[str, bytes | None]] = ()


class KafkaLog:
    """Follows one topic and writes to it.

    Args:
        topic: an existing topic.
        properties: Java client properties of the worker, `client.internal_properties`.
        admin: knows partitions and end offsets; stays the caller's.
        on_record: called by the reader thread; an exception is logged and the record skipped.
        read_committed: read committed transactions only.
        write_timeout: seconds after which a record that Kafka hasn't acknowledged is given up.
        producer_properties: of the client that writes, where it is not that of `properties`.
    """

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        admin: KafkaAdmin,
        on_record: Callable[[LogRecord], None],
        *,
        read_committed: bool = False,
        write_timeout: float = 30.0,
        producer_properties: Mapping[str, str] | None = None,
    ) -> None:
        self.topic = topic
        self._admin = admin
        self._on_record = on_record
        self._read_committed = read_committed
        self._consumer_config = librdkafka_config(properties, ClientKind.CONSUMER) | _SMALL_CONSUMER
        self._consumer_config |= {
            "group.id": properties.get("group.id", "connect-standalone"),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
            **statistics_config(BrokerWatch().take),
        }
        ordered = {**(producer_properties or properties), "acks": "all", "enable.idempotence": "true"}
        for name in ("max.in.flight.requests.per.connection", "retries", "transactional.id"):
            ordered.pop(name, None)
        self._producer_config = librdkafka_config(ordered, ClientKind.PRODUCER) | _SMALL_PRODUCER
        self._producer_config["message.timeout.ms"] = int(write_timeout * 1000)
        self._changed = threading.Condition()
        self._positions: dict[int, int] = {}
        self._stopping = False
        self._has_given_up = False
        self._reader: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._partitions: list[TopicPartition] = []

    def start(self, timeout: float = 60.0) -> None:
        """Read to the current end offsets, then continue to follow.

        Raises:
            ConfigError: a client property that cannot be used.
            RetriableError: the topic has not been read after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        count = self._admin.describe_topics([self.topic]).get(self.topic, 0)
        while not count:
            # a topic that was created a moment ago is not yet known to every broker
            if time.monotonic() > deadline:
                raise RetriableError(f"Topic '{self.topic}' does not exist or has no partitions.")
            time.sleep(0.02)
            count = self._admin.describe_topics([self.topic]).get(self.topic, 0)
        self._partitions = [TopicPartition(self.topic, number) for number in range(count)]
        try:
            self._producer = Producer(self._producer_config, logger=ClientLog())
            self._consumer = Consumer(self._consumer_config, logger=ClientLog())
            # connects and learns the leaders now: an assignment without a connection waits for a timer of a second
            self._consumer.list_topics(self.topic, timeout=max(0.1, deadline - time.monotonic()))
        except KafkaException as error:
            if error.args[0].retriable() or error.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
                raise RetriableError(f"Topic '{self.topic}' cannot be read: {error_text(error)}") from error
            raise ConfigError(f"Client properties for topic '{self.topic}' cannot be used: {error_text(error)}") from error
        except ValueError as error:
            raise ConfigError(f"Client properties for topic '{self.topic}' cannot be used: {error_text(error)}") from error
        # explicit offsets: a seek to the beginning costs librdkafka a coordinator query and half a second
        begins = self._admin.begin_offsets(self._partitions)
        self._positions = {partition.partition: offset for partition, offset in begins.items()}
        self._consumer.assign([_TopicPartition(topic, number, offset) for (topic, number), offset in begins.items()])
        self._reader = threading.Thread(target=self._read, name=f"kafka-log-{self.topic}", daemon=True)
        self._reader.start()
        # what died with this worker may have left a transaction open, which its successor ends; later reads wait for that
        self._read_to_end(max(0.1, deadline - time.monotonic()), committed=self._read_committed)

    def stop(self) -> None:
        """Stop following and release the clients. What was sent and not acknowledged within two seconds, or by the end of a `flush` that
        failed before, is given up; who waits for it in `write` gets a RetriableError."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        reader, self._reader = self._reader, None
        if reader is None:
            return
        reader.join()
        left = self._producer.flush(0.0 if self._has_given_up else 2.0)
        if left:
            log.warning("%d record(s) for topic '%s' were not acknowledged before the worker stopped, and are given up", left, self.topic)
        self._consumer.close()

    def read_to_end(self, timeout: float) -> None:
        """Wait until everything written before this call has been given to `on_record`.

        Where only committed records are read, this waits for transactions that are open: a record behind their first ones may be committed.

        Raises:
            RetriableError: that took longer than `timeout` seconds.
        """
        self._read_to_end(timeout, committed=False)

    def _read_to_end(self, timeout: float, *, committed: bool) -> None:
        deadline = time.monotonic() + timeout
        ends = self._end_offsets(deadline, committed=committed)
        self._await({partition.partition: offset for partition, offset in ends.items()}, deadline, timeout)

    def write(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float, *, read_back: bool = True) -> None:
        """Write records in order, wait for all acknowledgements and, with `read_back`, until they have been given to `on_record`.

        Raises:
            ConnectError: a record was refused, or not acknowledged in time; records before it may have been written.
        """
        deadline = time.monotonic() + timeout
        batch = Acknowledgements(len(records))
        for key, value in records:
            self._produce(key, value, batch.delivered)
        while batch.left:
            left = deadline - time.monotonic()
            if self._stopping:
                raise RetriableError(f"Topic '{self.topic}' had not taken {batch.left} of {len(records)} records when the worker stopped.")
            if left <= 0:
                raise RetriableError(f"Topic '{self.topic}' did not take {batch.left} of {len(records)} records within {timeout:g} s.")
            self._producer.poll(min(left, _ACKNOWLEDGED_SECONDS))
        if batch.error is not None:
            raise delivery_error(batch.error, self.topic)
        if read_back:
            self._await(batch.ends, deadline, timeout)

    def send(
        self,
        key: bytes,
        value: bytes | None,
        done: Callable[[ConnectError | None], None],
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Write a record without waiting; `done` is called by the reader thread or by another writer's."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            done(None if error is None else delivery_error(error, self.topic, len(value or b"")))

        self._produce(key, value, delivered, headers)

    def flush(self, timeout: float) -> None:
        """Wait until what was sent is acknowledged or given up. Raises RetriableError after `timeout` seconds."""
        self._has_given_up = False
        if self._producer.flush(timeout):
            self._has_given_up = True
            raise RetriableError(f"Topic '{self.topic}' did not take all records within {timeout:g} s.")

    def _produce(
        self,
        key: bytes,
        value: bytes | None,
        delivered: Callable[[KafkaError | None, Message], None],
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        while True:
            try:
                self._producer.produce(self.topic, value, key, on_delivery=delivered, headers=list(headers))
                return
            except BufferError:
                self._producer.poll(0.05)
            except KafkaException as error:
                raise delivery_error(error.args[0], self.topic, len(key) + len(value or b"")) from error

    def _end_offsets(self, deadline: float, *, committed: bool) -> Mapping[TopicPartition, int]:
        """Return next offsets, asked for again until `deadline`: leaders are unknown for a while after a broker came back."""
        while True:
            try:
                return self._admin.end_offsets(self._partitions, committed=committed)
            except RetriableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(LEADER_WAIT_SECONDS)

    def _await(self, ends: Mapping[int, int], deadline: float, timeout: float) -> None:
        with self._changed:
            while any(self._positions.get(number, 0) < end for number, end in ends.items()):
                if self._failure is not None:
                    raise ConnectError(f"Reading topic '{self.topic}' has ended: {self._failure}") from self._failure
                left = deadline - time.monotonic()
                if left <= 0 or self._stopping:
                    raise RetriableError(f"Topic '{self.topic}' was not read to its end within {timeout:g} s.")
                self._changed.wait(left)

    def _read(self) -> None:
        try:
            while not self._stopping:
                message = self._consumer.poll(POLL_SECONDS)
                if message is not None:
                    self._take([message])
                    self._take(self._consumer.consume(1000, 0))
                self._run_callbacks()
        except BaseException as error:
            log.exception("Reading topic '%s' has ended", self.topic)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _run_callbacks(self) -> None:
        try:
            self._producer.poll(0)
        except Exception:  # a writer's, which must not end the reading for everybody
            log.exception("What a record for topic '%s' brought about failed", self.topic)

    def _take(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        positions: dict[int, int] = {}
        for message in messages:
            error = message.error()
            number = message.partition()
            if error is None:
                self._give(message)
                positions[number] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                # shows control records, which are never given out but count as read
                positions[number] = max(positions.get(number, 0), message.offset())
            else:
                log.warning("Reading topic '%s': %s", self.topic, error.str())
        with self._changed:
            for number, position in positions.items():
                self._positions[number] = max(self._positions.get(number, 0), position)
            self._changed.notify_all()

    def _give(self, message: Message) -> None:
        try:
            self._on_record(LogRecord(message.key(), message.value(), message.partition(), message.offset(), message.headers() or ()))
        except Exception:
            log.exception(
                "Skipped the record at offset %d of partition %d of topic '%s'", message.offset(), message.partition(), self.topic
            )


class Acknowledgements:
    """Counts the acknowledgements of one `write`. Callbacks may come on the reader's thread too, hence the lock.

    Attributes:
        left: those to come. It changes last: a thread that sees 0 may use what else is here.
        ends: the next offset by partition.
    """

    def __init__(self, left: int) -> None:
        self.left = left
        self.error: KafkaError | None = None
        self.ends: dict[int, int] = {}
        self._lock = threading.Lock()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        with self._lock:
            if error is not None:
                self.error = self.error or error
            else:
                number = message.partition()
                self.ends[number] = max(self.ends.get(number, 0), message.offset() + 1)
            self.left -= 1
