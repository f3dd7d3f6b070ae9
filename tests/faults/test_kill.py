"""kill -9 of the worker, of a task's process or of a process that reads for it, at random moments, while rows are copied and while they
change.

A killed worker is started again by the test, a killed task by its worker. Triggers note every change of the table in a journal. At the end

- nothing may be wrong with the history (`connect-py verify --history`): no change is lost, invented or out of order, no row that a snapshot
  read follows a newer event of its key, no stored offset goes back, and the topic, folded by key, is the table;
- a snapshot that goes on may have read no more again than a chunk a reader.

A seed is printed; give it as FAULTS_SEED to repeat a run's choices. FAULTS_KILLS is the number of kills in each test: 17 make 51 in all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import Journalled, postgres_statements
from connect_py.app.verify.history.records import Op
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.kills import (
    KILLS,
    Changes,
    are_gone,
    await_history,
    bring_back,
    changing,
    goes_on_until,
    has_ended_snapshot,
    has_records,
    is_running,
    kill,
    new_dice,
    reads,
)
from tests.waiting import let_time_pass, wait_until

TABLE = "CREATE TABLE item (id integer PRIMARY KEY, version integer NOT NULL DEFAULT 1, note text); ALTER TABLE item REPLICA IDENTITY FULL"
TABLES = "public.item"
DIGEST = {"public.item": ["id", "version", "note"]}

pytestmark = [pytest.mark.services, pytest.mark.timeout(900 + 60 * KILLS)]

CHUNKED_ROWS = 4000 * max(1, KILLS // 2)

#: Many enough for a snapshot that lasts for all kills, few enough to be folded in seconds.
ROWS = 100_000 + 25_000 * KILLS
CHUNK = 10_000


@pytest.fixture
def dice() -> random.Random:
    return new_dice()


class PostgresChanges(Changes):
    """See `Changes`."""

    def __init__(self, connection: psycopg.Connection, dice: random.Random, keys: int) -> None:
        super().__init__(dice, keys)
        self._connection = connection

    def change(self, what: float, key: int, to: int, version: int) -> None:
        with self._connection.transaction():
            if what < 0.2:
                self._connection.execute("DELETE FROM item WHERE id = %s", (key,))
            elif what < 0.3:
                move = "UPDATE item SET id = %s WHERE id = %s AND NOT EXISTS (SELECT 1 FROM item WHERE id = %s)"
                self._connection.execute(move, (to, key, to))
            else:
                write = "INSERT INTO item VALUES (%s, 1, %s) ON CONFLICT (id) DO UPDATE SET note = excluded.note"
                self._connection.execute(write, (key, f"changed {version}"))


def keep_journal(connection: psycopg.Connection) -> None:
    """From here on; the rows that are there are its first lines."""
    for statement in postgres_statements(Journalled("public", "item", ["id"], "version", DIGEST["public.item"])):
        connection.execute(statement)


@pytest.mark.long
@pytest.mark.parametrize("readers", [1, 2])
def test_a_snapshot_that_is_killed_again_and_again_goes_on(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, dice: random.Random, readers: int
) -> None:
    worker = make_worker()
    topic = f"pg_{tag}.public.item"
    more = {"table_include_list": TABLES, "snapshot_max_threads": str(readers), "internal_snapshot_chunk_rows": str(CHUNK)}
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, repeat('row ' || g, 20) FROM generate_series(1, %s) g", (ROWS,))
        connection.execute("ANALYZE")
        keep_journal(connection)
        config = postgres_source(postgres, database, tag, **more)
        with changing(PostgresChanges(writer, dice, keys=ROWS)):
            worker.create(tag, config)
            before = 0
            for round_number in range(KILLS):
                far_enough = before + dice.uniform(0.1, 1) * ROWS / (KILLS + 1)
                if not goes_on_until(worker, tag, partial(has_records, kafka, topic, far_enough)):
                    break
                gone = kill(worker, dice.choice(["worker", "task", "reader"]) if round_number else "task", "PostgreSQL")
                before = kafka.count(topic)
                bring_back(worker, tag)
                wait_until(partial(are_gone, gone), 60, "the end of the processes that read")
            wait_until(partial(has_ended_snapshot, worker, tag), 180, "the end of the snapshot")
    keys = reads(await_history(kafka, {**config, "name": tag}, DIGEST, offsets_topic=worker.topic("offset")))
    again = len(keys) - len(set(keys))
    print(f"{KILLS} kills, {readers} readers: {again} rows of {ROWS} were read again, in chunks of {CHUNK}")
    # a chunk a reader, and one whose offset was on its way
    assert again <= KILLS * (readers + 1) * CHUNK
    worker.delete(tag)


def test_streaming_that_is_killed_again_and_again_loses_no_change(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    topic = f"pg_{tag}.public.item"
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, 'new' FROM generate_series(1, 100) g")
        keep_journal(connection)
        config = postgres_source(postgres, database, tag, table_include_list=TABLES)
        worker.create(tag, config)
        wait_until(lambda: len(kafka.read(topic)) >= 100, 60, "the snapshot")
        with changing(PostgresChanges(writer, dice, keys=100)):
            for round_number in range(KILLS):
                let_time_pass(dice.uniform(0, 4), "a random moment, in and between two flushes of the offsets (2 s)")
                kill(worker, "worker" if round_number % 2 else "task", "PostgreSQL")
                bring_back(worker, tag)
    # what was there is read, and everything after it is in the stream
    await_history(kafka, {**config, "name": tag}, DIGEST, offsets_topic=worker.topic("offset"), start=100)
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
        more = {"table_include_list": TABLES, "incremental_snapshot_watermarking_strategy": strategy, **settings}
        keep_journal(connection)
        config = postgres_source(postgres, database, tag, **more)
        worker.create(tag, config)
        wait_until(lambda: connection.execute(slots, (f"slot_{tag}",)).fetchone(), 60, "the stream")
        connection.execute("INSERT INTO signal VALUES ('all', 'execute-snapshot', '{\"data-collections\": [\"public.item\"]}')")
        with changing(PostgresChanges(writer, dice, keys=CHUNKED_ROWS)):
            before = 0
            for round_number in range(KILLS):
                far_enough = before + dice.uniform(0.01, 0.7) * CHUNKED_ROWS / KILLS
                wait_until(partial(has_records, kafka, topic, far_enough), 60, "a part of the snapshot")
                kill(worker, "task" if round_number % 2 else "worker", "PostgreSQL")
                before = kafka.count(topic)
                bring_back(worker, tag)
    history = await_history(kafka, {**config, "name": tag}, DIGEST, start=CHUNKED_ROWS)
    print(f"{KILLS} kills, {strategy}: {len(reads(history))} rows were read for a table of {CHUNKED_ROWS}")
    assert all(event.incremental for event in history.events if event.op is Op.READ)
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
    wait_until(lambda: not any(is_running(pid) for pid in tasks), 60, "the end of the tasks' processes")
