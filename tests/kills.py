"""kill -9 at random moments: what every database's test of it shares.

Triggers note every change of the table `item` in a journal, in the change's transaction; by it `await_history` tests the topics.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from connect_py.app.services.process import child_pids, is_running
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import JOURNAL
from connect_py.app.verify.history.records import History, Op, Promise
from connect_py.app.verify.history.run import Plan, as_text, verify_history
from tests.fault_counts import Fault, note, note_changes, system_of
from tests.fix_kafka import Kafka
from tests.seeds import size
from tests.waiting import wait_until

#: In each test; more by hand.
KILLS = size("FAULTS_KILLS", 2, 6)


def new_dice() -> random.Random:
    """Random choices, of FAULTS_SEED or of a seed that is printed."""
    seed = int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))
    print(f"FAULTS_SEED={seed}")
    return random.Random(seed)


def kill(worker: Worker, victim: str, of: str) -> list[int]:
    """End the worker, the process of its only task, or one that reads a snapshot for it, as a power cut would.

    Args:
        of: the system under test: the database that the task reads, `a JDBC sink`.

    Returns:
        The processes that read.
    """
    # the one that was killed before may have gone a moment ago
    wait_until(worker.children, 60, "a process of the task's own")
    tasks = worker.children()
    readers = [child for pid in tasks for child in child_pids(pid)]
    if victim == "worker":
        worker.kill()
        note(Fault.KILLED_WORKER, of)
    else:
        is_reader = victim == "reader" and bool(readers)
        for pid in readers[:1] if is_reader else tasks:
            os.kill(pid, signal.SIGKILL)
        note(Fault.KILLED_READER if is_reader else Fault.KILLED_TASK, of)
    return readers


def has_records(kafka: Kafka, topic: str, count: float) -> bool:
    return kafka.count(topic) >= count


def is_streaming(worker: Worker, connector: str) -> bool:
    """Whether the stored offset is behind the initial snapshot."""
    offsets = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return bool(offsets) and "snapshot" not in offsets[0]["offset"]


def goes_on_until(worker: Worker, connector: str, is_far_enough: Callable[[], bool]) -> bool:
    """Wait until a snapshot has come far enough for the next kill; False when it has ended before. On a busy machine each kill comes late,
    and the last ones may find nothing left to interrupt."""
    wait_until(lambda: is_far_enough() or has_ended_snapshot(worker, connector), 60, "a part of the snapshot")
    return not has_ended_snapshot(worker, connector)


def has_ended_snapshot(worker: Worker, connector: str) -> bool:
    """Whether the stored offset says that the initial snapshot is over."""
    offsets = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return bool(offsets) and ("snapshot" not in offsets[0]["offset"] or offsets[0]["offset"].get("snapshot_completed") is True)


def are_gone(pids: list[int]) -> bool:
    return not any(is_running(pid) for pid in pids)


def bring_back(worker: Worker, connector: str) -> None:
    """Start a killed worker again; a killed task is started again by its worker."""
    if not worker.service.is_alive():
        worker.restart()
    wait_until(worker.children, 60, "a process for the task", worker.service.is_alive)
    worker.wait_for(connector, "RUNNING")


class Changes(threading.Thread):
    """Writes random changes until told to stop, each with a line of the journal."""

    def __init__(self, dice: random.Random, keys: int) -> None:
        super().__init__(daemon=True)
        self._dice, self._keys = dice, keys
        self._enough = threading.Event()

    @abstractmethod
    def change(self, what: float, key: int, to: int, version: int) -> None:
        """One change in one transaction: up to 0.2 a deletion, up to 0.3 a move to another key, else an upsert."""

    def run(self) -> None:
        """See `threading.Thread`."""
        version = 1
        while not self._enough.wait(0.002):
            version += 1
            key, to = (self._dice.randrange(1, self._keys + 1) for _ in range(2))
            self.change(self._dice.random(), key, to, version)

    def finish(self) -> None:
        """Stop, and wait for the end."""
        self._enough.set()
        self.join()


@contextmanager
def changing(changes: Changes) -> Iterator[None]:
    """Changes go on inside."""
    changes.start()
    try:
        yield
    finally:
        changes.finish()


def await_history(
    kafka: Kafka,
    config: Mapping[str, str],
    digest: dict[str, list[str]],
    *,
    journal: str = JOURNAL,
    offsets_topic: str | None = None,
    seconds: float = 120 + 10 * KILLS,
    **promise: Any,
) -> History:
    """Wait until the topics are what the journal says, and nothing else is wrong with them."""
    plan = Plan(
        config=config,
        worker={"bootstrap.servers": kafka.bootstrap},
        journal=journal,
        sequence="version",
        digest=digest,
        offsets_topic=offsets_topic,
        promise=Promise(**promise),
        wait=seconds,
    )
    report = verify_history(plan)
    # a note on a topic says that less was tested
    assert not report.findings and not any(note.startswith("the topic") for note in report.notes), as_text(report)
    assert any(change.sequence > 1 for change in report.history.changes), "nothing changed"
    note_changes(system_of(config), len(report.history.changes))
    return report.history


def reads(history: History) -> list[str | None]:
    """Keys of the rows that snapshots have read."""
    return [event.key for event in history.events if event.op is Op.READ]
