"""A schema history whose broker is slow, or does not know the topic's partition yet. The rest is tested on brokers."""

from __future__ import annotations

import socket
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


class SlowAdmin:
    """The topic is created once the history has connected for what follows."""

    def __init__(self, broker: socket.socket) -> None:
        self._broker = broker

    def create_topic(self, name: str, partitions: int, replication: int, settings: dict[str, str]) -> bool:
        self._broker.settimeout(20)
        self._broker.accept()[0].close()
        return True

    def close(self) -> None:
        """Nothing is open."""


def test_the_writer_of_a_new_history_connects_while_its_topic_is_created() -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        admin: Any = SlowAdmin(broker)
        history = KafkaSchemaHistory("history", {"bootstrap.servers": f"127.0.0.1:{broker.getsockname()[1]}"}, admin=admin)
        history.create()
        history.close()
