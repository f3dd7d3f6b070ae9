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

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import wait_until
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.kills import KILLS, new_dice
from tests.waiting import eventually, let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.timeout(300 + 60 * KILLS)]

ENABLED = {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "500"}

#: Rows of a batch: several INSERTs of several rows in a transaction.
ROWS_A_TRANSACTION = 7


def committed(kafka: Kafka, topic: str) -> list[int]:
    """The ids of the rows in the topic, in order, as a reader of committed records gets them."""
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
                    found.append(payload(message.value())["after"]["id"])
                elif error.code() in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    return found
    finally:
        consumer.close()


@contextmanager
def inserting(connection: psycopg.Connection) -> Iterator[None]:
    """Rows are written inside, in short transactions and now and then in long ones."""
    enough = threading.Event()

    def work() -> None:
        for number in itertools.count():
            if enough.wait(0.003):
                return
            rows = 3000 if number % 100 == 99 else ROWS_A_TRANSACTION
            connection.execute("INSERT INTO item (note) SELECT 'row' FROM generate_series(1, %s)", (rows,))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_a_source_that_is_killed_again_and_again_writes_each_row_once(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, boundary: str
) -> None:
    dice = new_dice()
    worker = make_worker(properties=ENABLED)
    topic = f"pg_{tag}.public.item"
    slot = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    with postgres.connect(database) as connection, postgres.connect(database) as writer:
        connection.execute("CREATE TABLE item (id serial PRIMARY KEY, note text)")
        more = {"transaction_boundary": boundary, "transaction_boundary_interval_ms": "300", "snapshot_mode": "no_data"}
        worker.create(tag, postgres_source(postgres, database, tag, table_include_list="public.item", **more))
        wait_until(lambda: connection.execute(slot, (f"slot_{tag}",)).fetchone() is not None, 60, "the stream")
        with inserting(writer):
            for number in range(KILLS * 4):
                let_time_pass(dice.uniform(0.2, 2.5), "a random moment, in and between transactions")
                victims = worker.children()
                if number % 4 == 3:
                    worker.kill()
                    worker.restart()
                else:
                    for pid in victims:
                        os.kill(pid, signal.SIGKILL)
                worker.wait_for(tag, "RUNNING")
        wanted = [row for (row,) in connection.execute("SELECT id FROM item ORDER BY id").fetchall()]
    found: list[int] = []

    def is_complete() -> bool:
        found[:] = committed(kafka, topic)
        return set(found) >= set(wanted)

    eventually(is_complete, lambda: f"{len(set(wanted) - set(found))} of {len(wanted)} rows are missing", 120, pause=0.5)
    twice = {row: count for row, count in Counter(found).items() if count > 1}
    print(json.dumps({"kills": KILLS * 4, "rows": len(wanted), "records": kafka.count(topic), "twice": len(twice)}))
    assert twice == {}
    assert found == wanted
    worker.delete(tag)
