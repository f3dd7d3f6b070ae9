"""Commits offsets of a consumer group without being a member of it, for sinks whose engine reads Kafka by itself.

The commit is a "simple" one (generation -1, no member id), which the coordinator accepts while the group has no members
(`GroupCoordinator`, `OffsetCommit` of a standalone consumer). One thread uses an instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError, RetriableError
from connect_py.kafka.producer import error_text
from connect_py.kafka.settings import ClientKind, librdkafka_config


class GroupCommitter:
    """Commits and reads a group's offsets.

    Args:
        properties: Java consumer properties, `client.sink_consumer_properties`.
        group: the consumer group.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self.group = group
        config = librdkafka_config(properties, ClientKind.CONSUMER)
        # nobody polls this client, so librdkafka's lines would pile up in its queue; what goes wrong is raised by the call
        config |= {"group.id": group, "enable.auto.commit": False, "log_level": 2}
        # a member's settings, which a client that never joins must not carry
        for name in ("group.instance.id", "group.protocol", "group.remote.assignor"):
            config.pop(name, None)
        try:
            self._client = Consumer(config)
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"The consumer's properties cannot be used: {error_text(error)}") from error

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store next offsets; returns when the coordinator has them. Raises RetriableError."""
        if not offsets:
            return
        places = [_TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        try:
            results = self._client.commit(offsets=places, asynchronous=False)
            for place in results:
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as error:
            raise RetriableError(f"Offsets of consumer group '{self.group}' could not be committed: {error_text(error)}") from error

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = 30.0) -> dict[TopicPartition, int]:
        """Committed offsets of those partitions that have one. Raises RetriableError."""
        if not partitions:
            return {}
        try:
            places = self._client.committed([_TopicPartition(topic, number) for topic, number in partitions], timeout=timeout)
        except KafkaException as error:
            raise RetriableError(f"Offsets of consumer group '{self.group}' could not be read: {error_text(error)}") from error
        return {TopicPartition(place.topic, place.partition): place.offset for place in places if place.offset >= 0}

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()
