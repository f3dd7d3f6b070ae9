"""The start of an exactly-once task, step by step: its process by itself, with the test in the worker's place (KIP-618).

The order is the one of `ExactlyOnceWorkerSourceTask.java`: the set before is fenced, the task's own transactional id is initialised, and
only then the worker is asked whether the task is still its own, and for the offsets.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.commands.worker import TASK_COMMAND
from connect_py.config.worker import WorkerConfig
from connect_py.errors import FatalTaskError
from connect_py.herder.applier import start_message
from connect_py.host.process import Event, Exited, TaskProcess, spawn
from connect_py.kafka.client import transactional_producer_properties
from connect_py.kafka.transactions import TransactionalProducer
from connect_py.plugins.registry import Plugins
from tests.fix_kafka import Kafka
from tests.waiting import eventually, let_time_pass

pytestmark = pytest.mark.services


class Starting:
    """A task of the file source that has been started, and what it says."""

    def __init__(self, kafka: Kafka, tag: str, lines: Path) -> None:
        text = "org.apache.kafka.connect.storage.StringConverter"
        worker = WorkerConfig.parse(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": tag,
                "key.converter": text,
                "value.converter": text,
                **{f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")},
                "exactly.once.source.support": "enabled",
                "file.connectors.allowed.paths": str(lines.parent),
            }
        )
        config = {"name": tag, "connector.class": "FileStreamSource", "file": str(lines), "topic": tag}
        start = start_message(
            worker,
            Plugins.discover(),
            lambda: (),
            connector=tag,
            task=0,
            config=config,
            task_config=config,
            paused=False,
            offsets_by_pipe=False,
        )
        assert start["exactly_once"] and start["offsets"] == [], "offsets are not read before the task asks for them"
        self.properties = transactional_producer_properties(worker.raw, tag, 0)
        self._events: queue.Queue[Event] = queue.Queue()
        self.process = TaskProcess(
            lambda: spawn([*TASK_COMMAND, tag]),
            {**start, "leased": False},
            self._events.put,
            forward=lambda line: print(line, file=sys.stderr),
        )

    def await_question(self, kind: str) -> Mapping[str, Any]:
        """Wait for what the task asks next, which has to be this."""
        deadline = time.monotonic() + 60
        while True:
            event = self._events.get(timeout=max(0.1, deadline - time.monotonic()))
            assert not isinstance(event, Exited), event
            if event["type"] in ("fence", "admit", "failed"):
                assert event["type"] == kind, event
                return event

    def await_end(self) -> Exited:
        """Wait for the end of the process, before which it asks nothing."""
        while not isinstance(event := self._events.get(timeout=60), Exited):
            assert event["type"] not in ("fence", "admit", "failed"), event
        return event

    def answer(self, **found: Any) -> None:
        self.process.send({"type": "answered", **found})


class Zombie:
    """The task's predecessor, with a record in an open transaction."""

    def __init__(self, kafka: Kafka, tag: str, properties: Mapping[str, str]) -> None:
        self._producer, self._topic = TransactionalProducer(properties), f"{tag}-zombie"
        self._producer.begin()
        self.write()

    def write(self) -> None:
        self._producer.produce(self._topic, b"late")
        assert self._producer.flush(30) == 0

    def commit(self) -> None:
        self._producer.commit(time.monotonic() + 30)


@pytest.fixture
def make(kafka: Kafka, tag: str, tmp_path: Path) -> Iterator[Callable[[], Starting]]:
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    made: list[Starting] = []

    def start() -> Starting:
        made.append(Starting(kafka, tag, lines))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()


@pytest.mark.long
def test_a_task_is_fenced_for_then_initialises_its_id_and_then_asks_for_offsets(
    make: Callable[[], Starting], kafka: Kafka, tag: str, tmp_path: Path
) -> None:
    task = make()
    zombie = Zombie(kafka, tag, task.properties)
    task.await_question("fence")
    let_time_pass(1, "without an answer the task does nothing")
    zombie.commit()
    zombie.write()
    task.answer()
    task.await_question("admit")
    with pytest.raises(FatalTaskError, match="Another producer has this transactional id"):
        zombie.commit()
    assert kafka.count(tag) == 0, "nothing is read before the worker's answer"
    task.answer(offsets=[({"filename": str(tmp_path / "lines.txt")}, {"position": 4})])
    eventually(lambda: [message.value() for message in kafka.read(tag)] == [b"two"], "the line after the offset", 60)
    task.process.stop(10)
    assert task.await_end().code == 0


@pytest.mark.long
def test_a_task_that_is_stopped_while_it_waits_for_the_fencing_does_not_fence_its_successor(
    make: Callable[[], Starting], kafka: Kafka, tag: str
) -> None:
    task = make()
    task.await_question("fence")
    successor = Zombie(kafka, tag, task.properties)
    task.process.stop(10)
    assert task.await_end().code == 0
    successor.commit()


@pytest.mark.long
def test_a_task_that_the_worker_does_not_admit_reads_nothing(make: Callable[[], Starting], kafka: Kafka, tag: str) -> None:
    """It was revoked, or there are newer tasks: it gets no answer and is stopped."""
    task = make()
    task.await_question("fence")
    task.answer()
    task.await_question("admit")
    task.process.stop(10)
    assert task.await_end().code == 0
    assert kafka.count(tag) == 0
