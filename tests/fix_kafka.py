"""The broker that tests use: `$KAFKA_BOOTSTRAP`, or one of our own for the session."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from connect_py.testing.services.kafka import KafkaBroker


@dataclass(frozen=True)
class Kafka:
    """Where the broker is."""

    bootstrap: str


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka broker; `.bootstrap` is its address. Topics are shared by all tests: use names of your own."""
    given = os.environ.get("KAFKA_BOOTSTRAP")
    if given:
        yield Kafka(given)
        return
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), print)
    yield Kafka(broker.bootstrap)
    broker.stop()


@pytest.fixture
def tag() -> str:
    """A word that no other test has, to be part of the names of topics, slots and connectors."""
    return "t" + uuid.uuid4().hex[:10]
