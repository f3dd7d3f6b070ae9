"""A schema history whose broker does not know the topic's partition yet. The rest is tested on brokers (`test_stores_kafka`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from connect_py.api.record import TopicPartition
from connect_py.errors import RetriableError
from offsets.schema_history import KafkaSchemaHistory


class Admin:
    """The topic is there, and its leader says UNKNOWN_TOPIC_OR_PARTITION, for which `log_offsets` leaves it out."""

    def describe_topics(self, names: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(names, 1)

    def log_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, tuple[int, int]]:
        return {}

    def begin_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        raise RetriableError("Unknown topic or partition")

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = False) -> dict[TopicPartition, int]:
        raise RetriableError("Unknown topic or partition")


def test_a_partition_that_the_broker_does_not_know_yet_is_no_empty_history() -> None:
    admin: Any = Admin()
    history = KafkaSchemaHistory("history", {"bootstrap.servers": "127.0.0.1:1"}, admin=admin)
    with pytest.raises(RetriableError):
        history.is_empty()
    with pytest.raises(RetriableError):
        list(history.read())
