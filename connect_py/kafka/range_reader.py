"""Read small ranges of the log, again and again, by one client that fetches nothing in between and joins no group."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.kafka.consumer import ConsumedRecord, consumed_record, is_passing, log_consumer
from connect_py.kafka.producer import error_text

_log = logging.getLogger(__name__)

#: Ranges are in the log already, so a fetch that waits is of what follows them.
_QUICK = {"fetch.wait.max.ms": 5, "auto.offset.reset": "error"}

_POLL_SECONDS = 0.1
_MESSAGES = 500


class RangeReader:
    """Reads ranges, one call after the other; its client is made when it is first needed.

    Args:
        properties: Java consumer properties, `client.sink_consumer_properties`; without another isolation level committed records are read.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._client: Consumer | None = None
        self._is_closed = False
        self._lock = threading.Lock()  # a client must not be closed while it reads

    def read(self, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int, seconds: float = 2.0) -> list[ConsumedRecord] | None:
        """Return the records of some ranges [start, end), those of a partition in order.

        Returns:
            None if it would be better to read them in another way, which also says what is wrong: keys and values have more than
            `max_bytes`, they did not come in time, or Kafka refuses; also after `close`.

        Raises:
            ConfigError: a property of the client cannot be used.
        """
        with self._lock:
            if self._is_closed:
                return None
            client = self._open()
            try:
                client.assign([_TopicPartition(topic, number, start) for (topic, number), (start, _) in ranges.items()])
                return _collect(client, ranges, max_bytes, time.monotonic() + seconds)
            except KafkaException as error:
                _log.debug("Ranges of the log are not read: %s", error_text(error))
                return None
            finally:
                client.unassign()

    def _open(self) -> Consumer:
        if self._client is None:
            self._client = log_consumer(self._properties, _QUICK)
        return self._client

    def close(self) -> None:
        """Release the client, when it has read what is under way. Any thread may call it."""
        with self._lock:
            self._is_closed = True
            if self._client is not None:
                self._client.close()
                self._client = None


def _collect(
    client: Consumer, ranges: Mapping[TopicPartition, tuple[int, int]], max_bytes: int, deadline: float
) -> list[ConsumedRecord] | None:
    """Return what comes until each range has come to its end: by its last record, one behind it, or the end of the partition."""
    left = {partition: end for partition, (_, end) in ranges.items()}
    records: list[ConsumedRecord] = []
    size = 0
    while left:
        if time.monotonic() > deadline:
            _log.debug("Ranges of the log did not come in time; %d are left", len(left))
            return None
        for message in _next(client):
            partition = TopicPartition(message.topic(), message.partition())
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                if is_passing(error):
                    continue
                raise KafkaException(error)
            if (end := left.get(partition)) is None:
                continue
            offset = message.offset()
            if error is None and offset < end:
                record = consumed_record(message)
                size += len(record.key or b"") + len(record.value or b"")
                if size > max_bytes:
                    return None
                records.append(record)
                offset += 1  # the end of a partition is an offset, too: of what comes next
            if offset >= end:
                del left[partition]
    return records


def _next(client: Consumer) -> list[Message]:
    first = client.poll(_POLL_SECONDS)
    return [] if first is None else [first, *client.consume(_MESSAGES, timeout=0)]
