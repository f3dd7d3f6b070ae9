"""Read topics from a moment on, without a consumer group: nothing is committed, and the cluster does not remember the reader.

One thread uses a reader. Topics may be added while it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError, ConnectError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client_log import ClientLog
from connect_py.kafka.consumer import ConsumedRecord, consumed_record
from connect_py.kafka.producer import error_text
from connect_py.kafka.settings import ClientKind, librdkafka_config

#: How long a broker may take to name a topic's partitions and their offsets.
_LOOK_UP_SECONDS = 15.0

#: A person who follows a topic reads lines, not megabytes.
_SMALL = {"queued.max.messages.kbytes": 4096, "fetch.wait.max.ms": 100}

#: What the client mends by itself.
_PASSING = frozenset({KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE})


class TopicReader:
    """Follows topics.

    Args:
        properties: Java client properties, with ``bootstrap.servers``.
        since: epoch milliseconds of the first records to read; None for the topics' beginnings.
        from_end: read what comes after the reader was made, and of topics added later everything; `since` does not count then.

    Raises:
        ConfigError: a client property cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], *, since: int | None = None, from_end: bool = False) -> None:
        config = librdkafka_config(properties, ClientKind.CONSUMER) | _SMALL
        # librdkafka asks for a group's name, and never joins it: partitions are assigned here
        config |= {"group.id": "connect-py-reader", "enable.auto.commit": False, "enable.auto.offset.store": False}
        config.setdefault("isolation.level", "read_committed")
        try:
            self._consumer = Consumer(config, logger=ClientLog())
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"Kafka's client properties cannot be used: {error}") from error
        self._admin = KafkaAdmin(properties, timeout=_LOOK_UP_SECONDS)
        self._since, self._from_end = since, from_end
        self._topics: set[str] = set()
        self._has_begun = False

    def add(self, topics: Iterable[str]) -> list[str]:
        """Read these topics too and return those that were new, sorted; one that does not exist yet is left out.

        Raises:
            ConnectError: the brokers do not answer, or refuse.
        """
        counts = self._admin.describe_topics(sorted({*topics} - self._topics))
        partitions = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        if partitions:
            starts = self._starts(partitions)
            try:
                self._consumer.incremental_assign([_TopicPartition(each.topic, each.partition, starts[each]) for each in partitions])
            except KafkaException as error:
                raise ConnectError(f"Kafka's client does not read {', '.join(counts)}: {error_text(error)}") from error
        self._topics |= {*counts}
        self._has_begun = True
        return sorted(topic for topic, count in counts.items() if count)

    def _starts(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return offsets, not librdkafka's logical ones: the end that these mean is the one of the first fetch."""
        if self._from_end and self._has_begun:
            return self._admin.begin_offsets(partitions)
        ends = self._admin.end_offsets(partitions)
        if self._from_end:
            return ends
        if self._since is None:
            return self._admin.begin_offsets(partitions)
        try:
            wanted = [_TopicPartition(each.topic, each.partition, self._since) for each in partitions]
            found = self._consumer.offsets_for_times(wanted, timeout=_LOOK_UP_SECONDS)
        except KafkaException as error:
            raise ConnectError(f"Kafka does not say which records are newer than the given time: {error_text(error)}") from error
        return {
            TopicPartition(each.topic, each.partition): each.offset
            if each.offset >= 0
            else ends[TopicPartition(each.topic, each.partition)]
            for each in found
        }

    def poll(self, seconds: float) -> list[ConsumedRecord]:
        """Return the next records, waiting for the first one for at most so long. Raises ConnectError when the brokers refuse."""
        records = []
        for message in self._consumer.consume(500, timeout=seconds):
            error = message.error()
            if error is None:
                records.append(consumed_record(message))
            elif error.code() not in _PASSING and not error.retriable():
                raise ConnectError(f"Kafka refuses: {error.str()}")
        return records

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()
        self._admin.close()
