"""How many Kafka clients a task's writer of offsets opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from offsets.offset_store import TaskOffsetWriter

WORKER = {"bootstrap.servers": "a:1", "offset.storage.topic": "offsets"}
OFFSETS = [({"server": "s"}, {"lsn": 1})]


class FakeProducer:
    """Takes records and delivers them when it is polled."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.is_closed = False

    def __len__(self) -> int:
        return len(self.waiting)

    def produce(self, topic: str, value: bytes, key: bytes, on_delivery: Any) -> None:
        self.waiting.append(on_delivery)

    def poll(self, timeout_seconds: float = 0.0) -> int:
        waiting, self.waiting = self.waiting, []
        for delivered in waiting:
            delivered(None, None)
        return len(waiting)

    def close(self, timeout_seconds: float) -> int:
        self.is_closed = True
        return 0


@pytest.fixture
def clients() -> list[FakeProducer]:
    return []


@pytest.fixture
def writer(clients: list[FakeProducer]) -> TaskOffsetWriter:
    def open_client(properties: Mapping[str, str]) -> Any:
        clients.append(FakeProducer())
        return clients[-1]

    return TaskOffsetWriter(WORKER, "c", 0, open_client=open_client)


def write(writer: TaskOffsetWriter) -> None:
    done: list[Exception | None] = []
    writer.write(OFFSETS, done.append)
    writer.serve()
    assert done == [None]


def test_every_write_uses_the_client_that_connected_at_the_start(writer: TaskOffsetWriter, clients: list[FakeProducer]) -> None:
    assert len(clients) == 1
    write(writer)
    write(writer)
    assert len(clients) == 1


def test_a_released_writer_opens_another_client_for_the_next_write(writer: TaskOffsetWriter, clients: list[FakeProducer]) -> None:
    write(writer)
    writer.release()
    assert [client.is_closed for client in clients] == [True]
    write(writer)
    write(writer)
    assert [client.is_closed for client in clients] == [True, False]
