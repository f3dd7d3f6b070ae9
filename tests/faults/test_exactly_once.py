"""kill -9 of tasks and workers while rows are written, with exactly-once delivery: a reader of committed records gets each
row once.

FAULTS_KILLS is the number of kills in each test.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import RefusedError, Worker
from tests import mongo_task
from tests.cluster import plugin_folder
from tests.counting_plugin import is_dropped
from tests.fault_counts import Fault, note, note_changes
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.kills import KILLS, is_streaming, new_dice
from tests.mysql_task import mysql_source
from tests.waiting import eventually, let_time_pass, wait_until

pytestmark = [pytest.mark.services, pytest.mark.timeout(300 + 60 * KILLS)]

ENABLED = {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "500"}

#: A session as short as tests can bear on a busy machine, and a delay by which a lost worker's work moves soon.
QUICK = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000", "scheduled.rebalance.max.delay.ms": "2000"}

#: Rows of a batch: several INSERTs of several rows in a transaction.
ROWS_A_TRANSACTION = 7


def row_id(message: Message) -> int:
    """Of a change event."""
    return int(payload(message.value())["after"]["id"])


def counted(message: Message) -> int:
    """The number in a record of `tests.counting_plugin`."""
    return int(payload(message.value()).split()[0])


def committed(kafka: Kafka, topic: str, number: Callable[[Message], int] = row_id) -> list[int]:
    """The numbers of the records in the topic, in order, as a reader of committed records gets them."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "tests",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    found: list[int] = []
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            for message in consumer.consume(1000, 5.0):
                error = message.error()
                if error is None:
                    found.append(number(message))
                elif error.code() in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    return found
    finally:
        consumer.close()


@contextmanager
def inserting(insert: Callable[[int], object]) -> Iterator[None]:
    """Rows are written inside, in short transactions and now and then in long ones; `insert` writes so many in one."""
    enough = threading.Event()

    def work() -> None:
        for number in itertools.count():
            if enough.wait(0.003):
                return
            insert(3000 if number % 100 == 99 else ROWS_A_TRANSACTION)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@contextmanager
def each_row_once(
    kafka: Kafka, topic: str, insert: Callable[[int], object], ids: Callable[[], list[int]], number: Callable[[Message], int] = row_id
) -> Iterator[None]:
    """Rows are written inside; afterwards a reader of committed records has each of the table's `ids` once, in order."""
    with inserting(insert):
        yield
    wanted = ids()
    found: list[int] = []

    def is_complete() -> bool:
        found[:] = committed(kafka, topic, number)
        return set(found) >= set(wanted)

    eventually(is_complete, lambda: f"{len(set(wanted) - set(found))} of {len(wanted)} rows are missing", 120, pause=0.5)
    twice = {row: count for row, count in Counter(found).items() if count > 1}
    print(json.dumps({"rows": len(wanted), "records": kafka.count(topic), "twice": len(twice)}))
    assert twice == {}
    assert found == wanted
    note_changes(_COUNTED_AS, len(wanted))


@contextmanager
def streaming(
    create: Callable[[dict[str, str]], None], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, **more: str
) -> Iterator[None]:
    """A source reads what is inserted inside; see `each_row_once`."""
    slot = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"

    def insert(rows: int) -> None:
        writer.execute("INSERT INTO item (note) SELECT 'row' FROM generate_series(1, %s)", (rows,))

    def ids() -> list[int]:
        return [row for (row,) in connection.execute("SELECT id FROM item ORDER BY id").fetchall()]

    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute("CREATE TABLE item (id serial PRIMARY KEY, note text)")
        create(postgres_source(postgres, database, tag, table_include_list="public.item", snapshot_mode="no_data", **more))
        wait_until(lambda: connection.execute(slot, (f"slot_{tag}",)).fetchone() is not None, 60, "the stream")
        with each_row_once(kafka, f"pg_{tag}.public.item", insert, ids):
            yield


#: What faults and rows are counted under.
_COUNTED_AS = "exactly once"


def kill_again_and_again(worker: Worker, connector: str, times: int) -> None:
    """In turn the task and the worker."""
    dice = new_dice()
    for number in range(times):
        let_time_pass(dice.uniform(0.2, 2.5), "a random moment, in and between transactions")
        if number % 2:
            worker.kill()
            note(Fault.KILLED_WORKER, _COUNTED_AS)
            worker.restart()
        else:
            for pid in worker.children():
                os.kill(pid, signal.SIGKILL)
            note(Fault.KILLED_TASK, _COUNTED_AS)
        worker.wait_for(connector, "RUNNING")


@pytest.mark.parametrize("boundary", ["poll", pytest.param("interval", marks=pytest.mark.long)])
def test_a_source_that_is_killed_again_and_again_writes_each_row_once(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, boundary: str
) -> None:
    worker = make_worker(properties=ENABLED)
    more = {"transaction_boundary": boundary, "transaction_boundary_interval_ms": "300"}
    with streaming(lambda config: worker.create(tag, config), kafka, postgres, database, tag, **more):
        kill_again_and_again(worker, tag, KILLS * 2)
    worker.delete(tag)


@pytest.mark.long
def test_a_mysql_source_that_is_killed_again_and_again_writes_each_row_once(
    make_worker: Callable[..., Worker], kafka: Kafka, mysql: MySqlAddress, tag: str
) -> None:
    worker = make_worker(properties=ENABLED)
    topic = f"{tag}.{tag}.item"
    with mysql.connect() as connection, connection.cursor() as cursor, mysql.connect() as other, other.cursor() as writer:

        def insert(rows: int) -> None:
            writer.execute(f"INSERT INTO {tag}.item (note) VALUES {', '.join(['(%s)'] * rows)}", ["row"] * rows)

        def ids() -> list[int]:
            cursor.execute(f"SELECT id FROM {tag}.item ORDER BY id")
            return [row for (row,) in cursor.fetchall()]

        cursor.execute(f"CREATE DATABASE {tag}")
        cursor.execute(f"CREATE TABLE {tag}.item (id BIGINT AUTO_INCREMENT PRIMARY KEY, note TEXT)")
        insert(1)
        worker.create(tag, mysql_source(mysql, kafka.bootstrap, tag))
        wait_until(lambda: kafka.count(topic) > 0, 60, "the snapshot")
        insert(1)  # of a snapshot that was killed, rows are sent again
        wait_until(lambda: is_streaming(worker, tag), 60, "the stream")
        with each_row_once(kafka, topic, insert, ids):
            kill_again_and_again(worker, tag, KILLS)
        worker.delete(tag)
        cursor.execute(f"DROP DATABASE {tag}")


@pytest.mark.long
def test_a_mongodb_source_that_is_killed_again_and_again_writes_each_document_once(
    make_worker: Callable[..., Worker], kafka: Kafka, mongo: MongoAddress, tag: str
) -> None:
    worker = make_worker(properties=ENABLED)
    with mongo_task.database(mongo) as documents:
        items, numbers = documents["item"], itertools.count(1)
        topic = f"m_{tag}.{documents.name}.item"

        def insert(count: int) -> None:
            items.insert_many([{"_id": next(numbers)} for _ in range(count)])

        def ids() -> list[int]:
            return [document["_id"] for document in items.find().sort("_id")]

        def key(message: Message) -> int:
            return int(payload(message.key())["id"])

        insert(1)
        worker.create(tag, mongo_task.config(mongo, documents, topic_prefix=f"m_{tag}"))
        wait_until(lambda: committed(kafka, topic, key) == ids(), 60, "the snapshot's document")
        insert(1)  # of a snapshot that was killed, documents are sent again: the kills begin with the stream
        wait_until(lambda: committed(kafka, topic, key) == ids(), 60, "the stream's document")
        with each_row_once(kafka, topic, insert, ids, key):
            kill_again_and_again(worker, tag, KILLS * 2)
        worker.delete(tag)


@pytest.mark.long
def test_a_source_that_is_paused_restarted_and_stopped_writes_each_row_once(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    dice = new_dice()
    worker = make_worker(properties=ENABLED)
    with streaming(lambda config: worker.create(tag, config), kafka, postgres, database, tag):
        for number in range(KILLS * 4):
            let_time_pass(dice.uniform(0.1, 1.0), "a random moment, in and between transactions")
            match number % 4:
                case 0:
                    worker.request("PUT", f"/connectors/{tag}/pause")
                    worker.wait_for(tag, "PAUSED")
                    worker.request("PUT", f"/connectors/{tag}/resume")
                case 1:
                    worker.request("POST", f"/connectors/{tag}/tasks/0/restart")
                case 2:
                    worker.request("PUT", f"/connectors/{tag}/stop")
                    wait_until(lambda: worker.status(tag)["connector"]["state"] == "STOPPED", 60, "the stop")
                    worker.request("PUT", f"/connectors/{tag}/resume")
                case _:
                    worker.restart()
            note(Fault.REQUEST, _COUNTED_AS)
            worker.wait_for(tag, "RUNNING")
    worker.delete(tag)


def test_a_source_whose_worker_dies_is_taken_over_and_writes_each_row_once(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    dice = new_dice()
    first = make_worker(properties={**ENABLED, **QUICK})
    shared = {name: first.properties[name] for name in first.properties if name == "group.id" or name.endswith(".storage.topic")}
    second = make_worker(properties={**ENABLED, **QUICK, **shared})

    def owner() -> Worker:
        place = first.status(tag)["tasks"][0]["worker_id"]
        return first if first.url.endswith(place) else second

    with streaming(lambda config: first.create(tag, config), kafka, postgres, database, tag):
        for _ in range(max(1, KILLS // 2)):
            let_time_pass(dice.uniform(0.2, 2.5), "a random moment, in and between transactions")
            dead = owner()
            heir = second if dead is first else first
            dead.kill()
            note(Fault.KILLED_WORKER, _COUNTED_AS)

            def is_taken_over(heir: Worker = heir) -> bool:
                tasks = heir.status(tag)["tasks"]
                return bool(tasks) and heir.url.endswith(tasks[0]["worker_id"]) and tasks[0]["state"] == "RUNNING"

            wait_until(is_taken_over, 90, "the takeover")
            dead.restart()
            dead.wait_for(tag, "RUNNING")
    first.delete(tag)


def test_a_source_that_says_where_its_transactions_end_shows_whole_ones_that_it_has_not_dropped(
    make_worker: Callable[..., Worker], kafka: Kafka, tmp_path: Path, tag: str
) -> None:
    rows = 10
    worker = make_worker(properties={**ENABLED, "plugin.path": str(plugin_folder(tmp_path))})
    config = {"connector.class": "tests.CountingSource", "topic": tag, "rate": "150", "transaction.boundary": "connector"}
    with pytest.raises(RefusedError, match="does not support connector-defined transaction boundaries"):
        worker.create(tag, config)
    worker.create(tag, {**config, "transaction.rows": str(rows)})
    worker.wait_for(tag, "RUNNING")
    kill_again_and_again(worker, tag, KILLS)

    def numbers() -> list[int]:
        return committed(kafka, f"{tag}-0", counted)

    at_least = max([*numbers()[-1:], 3 * rows])
    eventually(lambda: numbers()[-1:] > [at_least], "a transaction after the last kill, and after the first that is dropped", 60)
    worker.request("PUT", f"/connectors/{tag}/stop")
    eventually(lambda: worker.status(tag)["tasks"] == [], "the stop", 60)
    found = numbers()
    print(json.dumps({"committed": len(found), "records": kafka.count(f"{tag}-0")}))
    assert len(found) % rows == 0
    assert found == [number for number in range(1, found[-1] + 1) if not is_dropped(number, rows)]
    worker.delete(tag)
