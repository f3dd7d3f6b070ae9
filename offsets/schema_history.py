"""The schema history on a Kafka topic (`KafkaSchemaHistory.java`): one partition, records without keys, read whole at a start.

Records are JSON objects over several lines, as Jackson's `DefaultPrettyPrinter` writes them (`DocumentWriter.java`); what they mean is the
connector's. A write returns when Kafka holds the record: the offset after a statement may be stored only then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from connect_py.api.record import TopicPartition as Place
from connect_py.errors import ConnectError, RetriableError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client_log import ClientLog
from connect_py.kafka.producer import connect_now, delivery_error, error_text
from connect_py.kafka.settings import ClientKind, librdkafka_config

log = logging.getLogger(__name__)


_WORDS = {None: "null", True: "true", False: "false"}


def pretty_json(value: Mapping[str, Any]) -> bytes:
    """Return an object's text: two blanks a level of objects, elements of lists on one line. Raises TypeError: a value has no JSON form."""
    return _written(dict(value), "\n").encode()


def _written(value: Any, line: str) -> str:
    """Write a value; `line` is the line break with the indentation of the object around."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, dict):
        if not value:
            return "{ }"
        deeper = line + "  "
        fields = [f"{encode_basestring(name)} : {_written(item, deeper)}" for name, item in value.items()]
        return "{" + deeper + ("," + deeper).join(fields) + line + "}"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join([_written(item, line) for item in value]) + " ]" if value else "[ ]"
    return orjson.dumps(value).decode()


#: As the reference creates it: nothing may ever be dropped.
SETTINGS = {"cleanup.policy": "delete", "retention.ms": str((1 << 63) - 1), "retention.bytes": "-1"}
#: How long one write may take, in seconds (`max.block.ms` and delivery together).
WRITE_SECONDS = 30.0
_POLL_SECONDS = 0.5
_PARTITION = 0


class KafkaSchemaHistory:
    """One connector's history; used by its task's thread.

    Args:
        topic: its name.
        properties: Java client properties with `bootstrap.servers`.
        read_seconds: how long one silence of the broker may last while the topic is read.
        admin_seconds: how long one question about the topic may take.
        admin: asks; by default a client of its own.

    Raises:
        ConfigError: a client property cannot be used.
    """

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        read_seconds: float = 60.0,
        admin_seconds: float = 30.0,
        admin: KafkaAdmin | None = None,
    ) -> None:
        self.topic = topic
        self._properties = dict(properties)
        self._read_seconds = read_seconds
        self._admin_seconds = admin_seconds
        self._maybe_admin: KafkaAdmin | None = admin or self._opened_admin()
        self._producer: Producer | None = None
        self._opened_at = 0.0
        self._is_connected = False
        self._failures: list[ConnectError] = []

    def close(self) -> None:
        """Let the connections go; the next call opens what it needs."""
        self._producer = None
        if self._maybe_admin is not None:
            self._maybe_admin.close()
            self._maybe_admin = None

    @property
    def _admin(self) -> KafkaAdmin:
        self._maybe_admin = self._maybe_admin or self._opened_admin()
        return self._maybe_admin

    def _opened_admin(self) -> KafkaAdmin:
        return KafkaAdmin({**self._properties, "client.id": f"{self.topic}-schemahistory"}, timeout=self._admin_seconds)

    def exists(self) -> bool:
        """Return whether there is a topic. Raises RetriableError."""
        return self.topic in self._admin.describe_topics([self.topic])

    def create(self) -> None:
        """Create the topic if it is missing. Who creates it is about to write: the client for that connects meanwhile. Raises
        RetriableError, ConnectError."""
        self._open()
        if self._admin.create_topic(self.topic, 1, -1, SETTINGS):
            log.info("Created the topic '%s' for the schema history", self.topic)

    def is_empty(self) -> bool:
        """Return whether nothing was ever kept. Raises RetriableError."""
        begin, end = self._offsets()
        return begin == end

    def describe(self) -> tuple[int, int, dict[str, str]]:
        """Number of partitions, first offset that is still there, and settings of the topic. Raises RetriableError."""
        begin, _ = self._offsets()
        return self._admin.describe_topics([self.topic])[self.topic], begin, self._admin.topic_settings(self.topic)

    def read(self) -> Generator[Mapping[str, Any]]:
        """Return every record up to the current end, in order; those that are no JSON objects are skipped with a warning.

        Raises:
            RetriableError: the broker was silent for too long.
        """
        for offset, value in self.read_values():
            found = self._object(value, offset)
            if found is not None:
                yield found

    def read_values(self) -> Iterator[tuple[int, bytes | None]]:
        """Return Kafka offset and value of every record up to the current end, in order. Raises RetriableError as `read`."""
        _, end = self._offsets()
        settings = librdkafka_config(self._properties, ClientKind.CONSUMER) | {
            "group.id": f"{self.topic}-schemahistory",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            # the end of a topic may be the marker of a transaction, which is no record
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings, logger=ClientLog())
        try:
            consumer.assign([TopicPartition(self.topic, _PARTITION, OFFSET_BEGINNING)])
            position = 0
            deadline = time.monotonic() + self._read_seconds
            while position < end:
                for message in consumer.consume(1000, _POLL_SECONDS):
                    if (error := message.error()) is not None:
                        if error.code() == KafkaError._PARTITION_EOF:
                            position = max(position, message.offset() or 0)
                        continue
                    deadline = time.monotonic() + self._read_seconds
                    position = (message.offset() or 0) + 1
                    if position <= end:
                        yield position - 1, message.value()
                if time.monotonic() > deadline:
                    raise RetriableError(
                        f"The schema history in the topic '{self.topic}' was read up to offset {position} of {end}, then the broker was "
                        f"silent for {self._read_seconds:g} s. Nothing was sent; the task tries again"
                    )
        finally:
            consumer.close()
        _, now = self._offsets()
        if now != end:
            log.warning(
                "The schema history in the topic '%s' grew from %d to %d records while it was read. Each connector is to have its own",
                self.topic,
                end,
                now,
            )

    def _offsets(self) -> tuple[int, int]:
        """First and next offset, zeros without a topic. A broker that has just started may not know the partition that it leads yet: it is
        asked again, since a history that seems to be empty would cost the connector its tables. Raises RetriableError."""
        if not self.exists():
            return 0, 0
        place = Place(self.topic, _PARTITION)
        return self._admin.begin_offsets([place])[place], self._admin.end_offsets([place], committed=True)[place]

    def _object(self, value: bytes | None, offset: int) -> Mapping[str, Any] | None:
        try:
            found = orjson.loads(value or b"null")
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or "source" not in found or "position" not in found:
            log.warning("Record %d of the schema history '%s' is none and was passed over", offset, self.topic)
            return None
        return found

    def append(self, record: Mapping[str, Any], *, wait: bool = True) -> None:
        """Keep one record.

        Args:
            wait: for Kafka's answer; without it `flush` says whether Kafka took the record.

        Raises:
            ConnectError: Kafka did not take it; the statement's offset must not be stored.
        """
        producer = self._connected()
        try:
            producer.produce(self.topic, pretty_json(record), partition=_PARTITION, on_delivery=self._delivered)
            producer.poll(0)
        except BufferError:
            # the client holds as many as it may
            self.flush()
            self.append(record, wait=wait)
            return
        except KafkaException as error:
            raise RetriableError(f"The schema history in the topic '{self.topic}' was not written: {error_text(error)}") from error
        if wait:
            self.flush()

    def _connected(self) -> Producer:
        producer = self._open()
        if not self._is_connected:
            connect_now(producer, self.topic, time.monotonic() - self._opened_at)
            self._is_connected = True
        return producer

    def _open(self) -> Producer:
        if self._producer is None:
            settings = librdkafka_config({**self._properties, "acks": "all", "enable.idempotence": "true"}, ClientKind.PRODUCER)
            # records that come in a row go together; `flush` does not wait
            settings |= {"linger.ms": 50, "message.timeout.ms": int(WRITE_SECONDS * 1000)}
            self._producer, self._opened_at, self._is_connected = Producer(settings, logger=ClientLog()), time.monotonic(), False
        return self._producer

    def flush(self) -> None:
        """Wait until Kafka has every record. Raises ConnectError: it did not take one."""
        left = self._producer.flush(WRITE_SECONDS + 1) if self._producer is not None else 0
        failures, self._failures = self._failures, []
        if left or failures:
            reason = str(failures[0]) if failures else f"no answer within {WRITE_SECONDS:g} s"
            raise RetriableError(f"The schema history in the topic '{self.topic}' was not written: {reason}")

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failures.append(delivery_error(error, self.topic))
