"""The producer of a source task: confluent-kafka's, with Connect's patience when its queue is full.

`send` is the client's own bound method, because it is called for every row and a wrapper costs as much as the call itself (0.5 us a row
measured with 400-byte rows, delivery callback included). If you use it, handle BufferError as `produce` does.

Threads: one thread produces and polls; delivery callbacks run on the thread that calls `poll`, `flush`, `wait_for_room` or `close`.
Memory: librdkafka holds at most `buffer.memory` bytes of rows (8 MiB) and `QUEUE_MESSAGES` rows, whichever is reached first.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as _Client

from connect_py.errors import ConfigError, ConnectError, FatalTaskError, RetriableError, noted
from connect_py.kafka.client_log import ClientLog
from connect_py.kafka.client_statistics import statistics_config
from connect_py.kafka.settings import ClientKind, is_topic_name, librdkafka_config

__all__ = [
    "RECORD_TOO_LARGE",
    "DeliveryCallback",
    "KafkaError",
    "Message",
    "Producer",
    "RefusedRecordError",
    "connect_now",
    "delivery_error",
    "error_text",
    "java_class",
    "was_given_up",
]

DeliveryCallback = Callable[[KafkaError | None, Message], None]

#: librdkafka counts payload bytes only, and a queued row costs about 300 more in its own and our structures. At 10 ms of linger and
#: 200,000 rows/s some 4,000 rows are under way, so this many never throttle and small rows stay below 15 MiB in addition to their bytes.
QUEUE_MESSAGES = 50_000

#: What a new client needs to begin to connect, and how long its first connection is waited for; it continues to connect by itself.
_BEGIN_SECONDS = 0.01
_CONNECT_SECONDS = 0.5

#: How often a caller that waits for room is let keep its source alive.
ROOM_SECONDS = 1.0

#: How many milliseconds records wait for company where the user has not said it: `send_now` sends them before
#: (`connect_py/task/producing.py`). Longer than a queue of full batches takes to be sent where answers take 10 ms.
LINGER_MS = 100

#: How long `send_now` waits at most: so that the client's threads see that they are asked. Answers often come meanwhile.
_HURRY_SECONDS = 0.002

#: A queue that is full of batches that are not, since they are of many partitions, is sent after so long without progress: at first, and
#: where that was so a moment ago.
_STUCK_SECONDS = 0.01
_STUCK_AGAIN_SECONDS = 0.001
_UNSTICK_SECONDS = 0.005

#: How long a topic that the broker doesn't know yet is waited for (auto creation, or a creation on its way through the cluster).
UNKNOWN_TOPIC_MS = 60_000


#: The Java name of the refusal of a record for its size.
RECORD_TOO_LARGE = "org.apache.kafka.common.errors.RecordTooLargeException"


class RefusedRecordError(FatalTaskError):
    """Kafka will never take one record."""


class Producer:
    """An idempotent, ordered producer.

    Args:
        properties: Java producer properties, as `client.source_producer_properties` composes them.
        quiet: leave librdkafka's own lines out; for a producer that is polled seldom, in whose queue they would pile up.
        on_statistics: given librdkafka's statistics every few seconds, by `poll`.
        only_errors: callbacks run for records that were not delivered, and for no other: with `len` it is known when all were. A report of
            each success costs 0.6 to 2 us a row, most of it for copies of its bytes.
        linger_ms: how long records wait for company where the properties do not say it.
        room_seconds: how often a caller that waits for room is let keep its source alive.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        quiet: bool = False,
        on_statistics: Callable[[str], None] | None = None,
        only_errors: bool = False,
        linger_ms: int = LINGER_MS,
        room_seconds: float = ROOM_SECONDS,
    ) -> None:
        config = librdkafka_config(properties, ClientKind.PRODUCER) | statistics_config(on_statistics)
        config["delivery.report.only.error"] = only_errors
        config.setdefault("queue.buffering.max.messages", QUEUE_MESSAGES)
        config["topic.metadata.propagation.max.ms"] = UNKNOWN_TOPIC_MS
        #: Whether the linger is `linger_ms`, and records are better sent by `send_now`.
        self.holds_back = "linger.ms" not in config
        config.setdefault("linger.ms", linger_ms)
        self._room_seconds = room_seconds
        self._max_request_size = config["message.max.bytes"]
        try:
            self._client = _Client(config | {"log_level": 2}) if quiet else _Client(config, logger=ClientLog())
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"The producer's properties cannot be used: {error_text(error)}") from error
        self._waited = self._kept = 0.0
        self._stuck_after = _STUCK_SECONDS
        #: `send(topic, value, key, partition, on_delivery, None, timestamp, headers)`, positional; partition -1: by key; headers
        #: may be None. The None in the middle is the callback's second name, which has a position of its own.
        self.send = self._client.produce

    def __len__(self) -> int:
        """Return records handed over whose callback has not run yet."""
        return len(self._client)

    def connect(self, topic: str) -> None:
        """Connect, which is `connect_now`, where the first record of a topic follows at once."""
        connect_now(self._client, topic)

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: DeliveryCallback | None = None,
        *,
        partition: int = -1,
        timestamp: int = 0,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        """Hand over one record; waits while the queue is full.

        Args:
            partition: -1 lets the key decide, as Java's default partitioner does.
            timestamp: epoch milliseconds, 0 for now.
            while_waiting: called about once a second while the queue stays full; it may raise to give up.

        Raises:
            RefusedRecordError: the record is larger than `max.request.size`.
            RetriableError: another failure of the client.
        """
        while True:
            try:
                if headers:
                    self.send(topic, value, key, partition, on_delivery, None, timestamp, list(headers))
                else:
                    self.send(topic, value, key, partition, on_delivery, None, timestamp)
                return
            except BufferError:
                self.wait_for_room(while_waiting)
            except KafkaException as error:
                raise delivery_error(error.args[0], topic, _serialized_size(key, value, headers), self._max_request_size) from error

    def wait_for_room(self, while_waiting: Callable[[], None] | None = None) -> None:
        """Run callbacks until something happened or `room_seconds` have passed; there may be room now.

        `while_waiting` is called when the last such call, or the first wait, is `room_seconds` ago.
        """
        started = time.monotonic()
        if started - self._waited > 2 * self._room_seconds:
            self._kept = started
        queued = len(self)
        while not self._client.poll(self._stuck_after):
            if self.holds_back:
                self.send_now(_UNSTICK_SECONDS)
                self._stuck_after = _STUCK_AGAIN_SECONDS
            if len(self) < queued or time.monotonic() - started >= self._room_seconds:
                break
        else:
            self._stuck_after = min(_STUCK_SECONDS, self._stuck_after * 1.2)
        self._waited = now = time.monotonic()
        if while_waiting is not None and now - self._kept >= self._room_seconds:
            self._kept = now
            while_waiting()

    def poll(self, timeout_seconds: float = 0.0) -> int:
        """Run the callbacks of what has been delivered; returns how many events there were."""
        return int(self._client.poll(timeout_seconds))

    def send_now(self, seconds: float = _HURRY_SECONDS) -> None:
        """Have what is queued sent, without the linger, waiting so long at most. Callbacks may run."""
        self._client.flush(seconds)

    def flush(self, timeout_seconds: float) -> int:
        """Send what is queued and wait; returns how many records are still not acknowledged."""
        return int(self._client.flush(max(0.0, timeout_seconds)))

    def purge(self) -> None:
        """Give up every record that is queued or under way; their callbacks run with an error at the next `poll`."""
        self._client.purge(in_queue=True, in_flight=True, blocking=True)

    def close(self, timeout_seconds: float) -> int:
        """Flush for at most `timeout_seconds`, give up the rest; returns how many records were given up."""
        left = self.flush(timeout_seconds)
        if left:
            self.purge()
            self._client.poll(0)
        return left


def connect_now(client: _Client, topic: str, age: float = 0.0) -> None:
    """Connect a new client, waiting up to half a second, so that the first record is not delayed by librdkafka's idempotence timer.

    Args:
        age: for how many seconds the client has been there.

    An idempotent client that is given a record in its first milliseconds sends it half a second later, or a whole one
    (`rd_kafka_idemp_pid_timer_restart` of librdkafka); after this 0.05 s have passed.
    """
    client.poll(max(0.0, _BEGIN_SECONDS - age))
    with contextlib.suppress(KafkaException):
        client.list_topics(topic, _CONNECT_SECONDS)


def delivery_error(error: KafkaError, topic: str, size: int = 0, limit: object = None) -> ConnectError:
    """Return the error to raise for a record that was not delivered.

    Args:
        error: what the delivery callback got.
        size: the record's bytes, for the text.
        limit: the producer's `max.request.size` when it is known.
    """
    code = error.code()
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        text = "The request included a message larger than the max message size the server will accept."
        if limit is not None:
            text = (
                f"The message is {size} bytes when serialized which is larger than {limit}, which is the value of the max.request.size "
                "configuration."
            )
        refused = RefusedRecordError(text)
        refused.java_name = RECORD_TOO_LARGE
        return noted(
            refused,
            f"It was for topic '{topic}', and was not written; no offset beyond it is committed. Raise producer.override.max.request.size "
            "and the topic's max.message.bytes.",
        )
    is_unknown = code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
    # librdkafka may report the topic as unknown before it has the broker's answer to the name
    if code == KafkaError.TOPIC_EXCEPTION or (is_unknown and not is_topic_name(topic)):
        invalid = RefusedRecordError(f"Invalid topics: [{topic}]")
        invalid.java_name = _JAVA_NAMES[KafkaError.TOPIC_EXCEPTION]
        return invalid
    if is_unknown:
        missing = RefusedRecordError(
            f"Topic '{topic}' (or its partition) does not exist and the broker did not create it within {UNKNOWN_TOPIC_MS // 1000} s. "
            "The record was not written. Create the topic or set auto.create.topics.enable=true on the broker."
        )
        missing.java_name = "org.apache.kafka.common.errors.TimeoutException"
        return missing
    text = f"A record of {size} bytes could not be written to topic '{topic}': {error.str()} ({error.name()})."
    failure = (
        RetriableError(text) if error.retriable() or code in _PASSING else RefusedRecordError(text + " No offset beyond it is committed.")
    )
    failure.java_name = java_class(error)
    return failure


def was_given_up(error: object) -> bool:
    """Return whether the client dropped a record because it was told to: by `purge`, or by the abort of a transaction."""
    return isinstance(error, KafkaError) and error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


def java_class(error: KafkaError) -> str:
    """Return the class by which the Java client knows an error."""
    return _JAVA_NAMES.get(error.code(), "org.apache.kafka.common.KafkaException")


def _serialized_size(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None) -> int:
    """Return what a record counts against `max.request.size` (`AbstractRecords.estimateSizeInBytesUpperBound`, magic 2)."""
    # a batch's header, the most of a record's own fields, the count of headers (one byte for up to 63 of them)
    size = 61 + 21 + 1 + _field_size(key) + _field_size(value)
    return size + sum(_field_size(name.encode()) + _field_size(data) for name, data in headers or ())


def _field_size(data: bytes | None) -> int:
    """Return bytes with their length before them, as a zigzag varint; a null is a length of -1."""
    return 1 if data is None else len(data) + max(1, -(-(2 * len(data)).bit_length() // 7))


#: The Java client's classes of the errors that a record or a new topic can meet.
_JAVA_NAMES = {
    KafkaError._MSG_TIMED_OUT: "org.apache.kafka.common.errors.TimeoutException",
    KafkaError._TIMED_OUT: "org.apache.kafka.common.errors.TimeoutException",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "org.apache.kafka.common.errors.TopicAuthorizationException",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "org.apache.kafka.common.errors.ClusterAuthorizationException",
    KafkaError.SASL_AUTHENTICATION_FAILED: "org.apache.kafka.common.errors.SaslAuthenticationException",
    KafkaError.INVALID_RECORD: "org.apache.kafka.common.InvalidRecordException",
    KafkaError.INVALID_TIMESTAMP: "org.apache.kafka.common.errors.InvalidTimestampException",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "org.apache.kafka.common.errors.UnsupportedCompressionTypeException",
    KafkaError.INVALID_REPLICATION_FACTOR: "org.apache.kafka.common.errors.InvalidReplicationFactorException",
    KafkaError.INVALID_PARTITIONS: "org.apache.kafka.common.errors.InvalidPartitionsException",
    KafkaError.INVALID_CONFIG: "org.apache.kafka.common.errors.InvalidConfigurationException",
    KafkaError.TOPIC_EXCEPTION: "org.apache.kafka.common.errors.InvalidTopicException",
    KafkaError.POLICY_VIOLATION: "org.apache.kafka.common.errors.PolicyViolationException",
    KafkaError.NOT_ENOUGH_REPLICAS: "org.apache.kafka.common.errors.NotEnoughReplicasException",
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "org.apache.kafka.common.errors.NotEnoughReplicasAfterAppendException",
}

_PASSING = frozenset({KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})


def error_text(error: BaseException) -> str:
    """Return the text of a client's exception, without its Python and C wrapping."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
