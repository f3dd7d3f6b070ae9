"""Read topics from a moment on, without a consumer group: nothing is committed, and the cluster does not remember the reader.

One thread uses a reader. Topics may be added while it reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.errors import ConnectError, RetriableError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.consumer import ConsumedRecord, consumed_record, is_passing, log_consumer
from connect_py.kafka.producer import error_text

#: How long a broker may take to name a topic's partitions and their offsets.
_LOOK_UP_SECONDS = 15.0

#: A person who follows a topic reads lines, not megabytes.
_SMALL = {"queued.max.messages.kbytes": 4096, "fetch.wait.max.ms": 100}

#: How long a reader that must come to an end waits without any progress.
_STALLED_SECONDS = 60.0
_POLL_SECONDS = 0.2


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
        self._consumer = log_consumer(properties, _SMALL)
        self._admin = KafkaAdmin(properties, timeout=_LOOK_UP_SECONDS)
        self._since, self._from_end = since, from_end
        self._topics: set[str] = set()
        self._positions: dict[TopicPartition, int] = {}
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
            self._positions.update(starts)
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
            partition = TopicPartition(message.topic(), message.partition())
            if error is None:
                records.append(consumed_record(message))
                self._positions[partition] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._positions[partition] = max(message.offset(), self._positions.get(partition, 0))
            elif not is_passing(error):
                raise ConnectError(f"Kafka refuses: {error.str()}")
        return records

    def read_to_end(self) -> Iterator[list[ConsumedRecord]]:
        """Yield, some at a time, the records that come before the current ends; open transactions are such an end.

        Raises:
            RetriableError: nothing has come for a minute.
            ConnectError: the brokers refuse.
        """
        ends = self._admin.end_offsets([*self._positions], committed=True) if self._positions else {}
        moved = time.monotonic()
        while any(self._positions[partition] < end for partition, end in ends.items()):
            before = dict(self._positions)
            if records := self.poll(_POLL_SECONDS):
                yield records
            if before != self._positions:
                moved = time.monotonic()
            elif time.monotonic() - moved > _STALLED_SECONDS:
                topics = ", ".join(sorted({topic for topic, _ in ends}))
                raise RetriableError(f"The end of {topics} was not reached: Kafka has sent nothing for {_STALLED_SECONDS:.0f} s.")

    def record_at(self, topic: str, partition: int, offset: int, seconds: float = 5.0) -> ConsumedRecord | None:
        """Return one record again; None: it is not there any more, or did not come in time. What comes next is read from there on."""
        try:
            self._consumer.seek(_TopicPartition(topic, partition, offset))
        except KafkaException as error:
            raise ConnectError(f"Kafka's client does not read {topic}: {error_text(error)}") from error
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for record in self.poll(_POLL_SECONDS):
                if (record.topic, record.partition) == (topic, partition) and record.offset >= offset:
                    return record if record.offset == offset else None
        return None

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()
        self._admin.close()
