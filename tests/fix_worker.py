"""Workers: one for the session that tests share, and a maker of workers that a test may kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.process import ServiceError
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka


@pytest.fixture(scope="session")
def worker(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker for all tests that leave it as they found it: delete your connectors."""
    running = Worker(tmp_path_factory.mktemp("worker"), kafka.bootstrap)
    yield running
    running.stop()


@pytest.fixture
def make_worker(kafka: Kafka, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Makes workers of the test's own, which are stopped at its end; takes Worker's keyword arguments."""
    made: list[Worker] = []

    def make(**arguments: Any) -> Worker:
        made.append(Worker(tmp_path / f"worker-{len(made)}", kafka.bootstrap, **arguments))
        return made[-1]

    yield make
    for running in made:
        try:
            running.stop()
        except ServiceError as error:
            pytest.fail(f"a worker did not stop: {error}")
