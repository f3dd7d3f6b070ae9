"""A group of workers of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.fix_kafka import Kafka


@pytest.fixture
def cluster(kafka: Kafka, tmp_path: Path, tag: str) -> Iterator[Cluster]:
    """A group without workers yet; all are ended with the test."""
    made = Cluster(tmp_path, kafka.bootstrap, tag)
    yield made
    made.close()
