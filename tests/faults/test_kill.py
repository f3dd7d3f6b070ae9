"""kill -9 of the worker or of a task's process, at random moments, while rows are copied and while they change.

A killed worker is started again by the test, a killed task by its worker. At the end the topic, folded by key, must be the table;
every version of a row that the database committed while streaming must be there as an event of its own. A seed is printed; give it as
FAULTS_SEED to repeat a run's choices.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from connect_py.testing.services.postgres import PostgresAddress
from connect_py.testing.services.process import wait_until
from connect_py.testing.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import fold, payload

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]

TABLE = "CREATE TABLE item (id integer PRIMARY KEY, version integer NOT NULL, note text)"

KILLS = 5

#: In the middle of an incremental snapshot; more by hand.
INCREMENTAL_KILLS = int(os.environ.get("FAULTS_KILLS", "3"))
CHUNKED_ROWS = 4000 * max(1, INCREMENTAL_KILLS // 2)

#: Many enough for a snapshot of a second or more, few enough to be folded in seconds.
ROWS = 200_000


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))
    print(f"FAULTS_SEED={seed}")
    return random.Random(seed)


def kill(worker: Worker, victim: str) -> None:
    """End the worker, or the process of its only task, as a power cut would."""
    if victim == "worker":
        worker.kill()
    else:
        tasks = worker.children()
        assert tasks, "the task has no process of its own"
        for pid in tasks:
            os.kill(pid, signal.SIGKILL)


def bring_back(worker: Worker, connector: str) -> None:
    """Start a killed worker again; a killed task is started again by its worker."""
    if not worker.service.is_alive():
        worker.restart()
    wait_until(worker.children, 60, "a process for the task", worker.service.is_alive)
    worker.wait_for(connector, "RUNNING")


class Changes(threading.Thread):
    """Writes random changes until told to stop; remembers each version that was committed."""

    def __init__(self, connection: psycopg.Connection, dice: random.Random, keys: int) -> None:
        super().__init__(daemon=True)
        self._connection, self._dice, self._keys = connection, dice, keys
        self._enough = threading.Event()
        self.committed: set[tuple[int, int]] = set()

    def run(self) -> None:
        version = 1
        while not self._enough.wait(0.002):
            version += 1
            key = self._dice.randrange(1, self._keys + 1)
            if self._dice.random() < 0.2:
                self._connection.execute("DELETE FROM item WHERE id = %s", (key,))
            else:
                statement = "INSERT INTO item VALUES (%s, %s, 'changed') ON CONFLICT (id) DO UPDATE SET version = excluded.version"
                self._connection.execute(statement, (key, version))
                self.committed.add((key, version))

    def finish(self) -> None:
        self._enough.set()
        self.join()


@contextmanager
def changing(connection: psycopg.Connection, dice: random.Random, keys: int) -> Iterator[Changes]:
    changes = Changes(connection, dice, keys)
    changes.start()
    try:
        yield changes
    finally:
        changes.finish()


def table(connection: psycopg.Connection) -> dict[int, dict[str, object]]:
    return {row[0]: dict(zip(("id", "version", "note"), row, strict=True)) for row in connection.execute("SELECT * FROM item").fetchall()}


def await_equal(kafka: Kafka, topic: str, connection: psycopg.Connection, seconds: float = 120) -> None:
    wanted = table(connection)
    deadline = time.monotonic() + seconds
    while (found := fold(kafka.read(topic))) != wanted:
        if time.monotonic() > deadline:
            missing = [key for key in wanted if key not in found][:5]
            stale = [(found[key], wanted[key]) for key in wanted if key in found and found[key] != wanted[key]][:5]
            extra = [key for key in found if key not in wanted][:5]
            pytest.fail(f"after {seconds:.0f} s the topic is not the table: missing {missing}, other {stale}, too many {extra}")
        time.sleep(0.5)


def test_a_snapshot_that_is_killed_again_and_again_loses_no_row(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    topic = f"pg_{tag}.public.item"
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, repeat('row ' || g, 20) FROM generate_series(1, %s) g", (ROWS,))
        with changing(writer, dice, keys=ROWS):
            worker.create(tag, postgres_source(postgres, database, tag, table_include_list="public.item"))
            before = 0
            for round_number in range(KILLS):
                far_enough = before + dice.uniform(0.01, 0.6) * ROWS
                wait_until(lambda enough=far_enough: kafka.count(topic) >= enough, 60, "a part of the snapshot")
                kill(worker, "task" if round_number % 2 else "worker")
                started, before = before, kafka.count(topic)
                assert before - started < ROWS, "the kill came too late to interrupt the snapshot"
                bring_back(worker, tag)
        await_equal(kafka, topic, connection)
    worker.delete(tag)


def test_streaming_that_is_killed_again_and_again_loses_no_change(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    topic = f"pg_{tag}.public.item"
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, 'new' FROM generate_series(1, 100) g")
        worker.create(tag, postgres_source(postgres, database, tag, table_include_list="public.item"))
        wait_until(lambda: len(kafka.read(topic)) >= 100, 60, "the snapshot")
        with changing(writer, dice, keys=100) as changes:
            for round_number in range(KILLS):
                time.sleep(dice.uniform(0, 4))  # a random moment, in and between two flushes of the offsets (2 s)
                kill(worker, "worker" if round_number % 2 else "task")
                bring_back(worker, tag)
        await_equal(kafka, topic, connection)
    events = [payload(record.value()) for record in kafka.read(topic) if record.value() is not None]
    seen = {(event["after"]["id"], event["after"]["version"]) for event in events if event["after"]}
    assert changes.committed - seen == set(), "changes that were committed and never became an event"
    worker.delete(tag)


def test_an_incremental_snapshot_that_is_killed_again_and_again_loses_no_row(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    topic = f"pg_{tag}.public.item"
    signals = "CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))"
    settings = {"snapshot_mode": "no_data", "signal_data_collection": "public.signal", "incremental_snapshot_chunk_size": "50"}
    strategy = dice.choice(["insert_insert", "insert_delete"])
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute(signals)
        connection.execute("INSERT INTO item SELECT g, 1, 'old' FROM generate_series(1, %s) g", (CHUNKED_ROWS,))
        slots = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
        more = {"table_include_list": "public.item", "incremental_snapshot_watermarking_strategy": strategy, **settings}
        worker.create(tag, postgres_source(postgres, database, tag, **more))
        wait_until(lambda: connection.execute(slots, (f"slot_{tag}",)).fetchone(), 60, "the stream")
        connection.execute("INSERT INTO signal VALUES ('all', 'execute-snapshot', '{\"data-collections\": [\"public.item\"]}')")
        with changing(writer, dice, keys=CHUNKED_ROWS):
            before = 0
            for round_number in range(INCREMENTAL_KILLS):
                far_enough = before + dice.uniform(0.01, 0.7) * CHUNKED_ROWS / INCREMENTAL_KILLS
                wait_until(lambda enough=far_enough: kafka.count(topic) >= enough, 60, "a part of the snapshot")
                kill(worker, "task" if round_number % 2 else "worker")
                before = kafka.count(topic)
                bring_back(worker, tag)
        await_equal(kafka, topic, connection)
    reads = [event for event in (payload(record.value()) for record in kafka.read(topic) if record.value()) if event["op"] == "r"]
    print(f"{INCREMENTAL_KILLS} kills, {strategy}: {len(reads)} rows were read for a table of {CHUNKED_ROWS}")
    assert {event["source"]["snapshot"] for event in reads} == {"incremental"}
    worker.delete(tag)


def test_a_task_process_does_not_outlive_its_worker(
    make_worker: Callable[..., Worker], postgres: PostgresAddress, database: str, tag: str
) -> None:
    worker = make_worker()
    with postgres.connect(database) as connection:
        connection.execute(TABLE)
    worker.create(tag, postgres_source(postgres, database, tag))
    tasks = worker.children()
    assert tasks, "the task has no process of its own"
    worker.kill()
    wait_until(lambda: not any(is_running(pid) for pid in tasks), 10, "the end of the tasks' processes")


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
