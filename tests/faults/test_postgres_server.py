"""kill -9 of the PostgreSQL server with all its processes, and connections that it ends, at random moments: while rows are copied and while
they change. A journal says what the topic has to hold; see `tests/kills.py`. FAULTS_KILLS is the number of kills."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresServer
from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note
from tests.faults.test_kill import DIGEST, TABLE, TABLES, PostgresChanges, keep_journal
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.kills import KILLS, Changes, await_history, changing, has_ended_snapshot, has_records, new_dice
from tests.waiting import let_time_pass, wait_until

pytestmark = [pytest.mark.services, pytest.mark.timeout(300 + 40 * KILLS)]

ROWS = 20_000

#: What reads for a connector: its stream, and the connections of its snapshots.
END_OTHERS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'writer'
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that nobody else uses."""
    found = PostgresServer(tmp_path / "postgres")
    yield found
    found.stop()


class ThroughOutages(Changes):
    """Random changes, of which some fail while the server is not there. Whether the last one before was committed says the journal."""

    def __init__(self, connect: Callable[[], psycopg.Connection], dice: random.Random, keys: int) -> None:
        super().__init__(dice, keys)
        self._connect = connect
        self._changes: PostgresChanges | None = None

    def change(self, what: float, key: int, to: int, version: int) -> None:
        try:
            if self._changes is None:
                connection = self._connect()
                # what is committed must survive the death of the server
                connection.execute("SET synchronous_commit = on; SET application_name = 'writer'")
                self._changes = PostgresChanges(connection, random.Random(), 1)
            self._changes.change(what, key, to, version)
        except psycopg.OperationalError:
            self._changes = None


def kill_server(server: PostgresServer, _database: str, dice: random.Random) -> None:
    server.kill()
    note(Fault.KILLED_DATABASE, "PostgreSQL")
    let_time_pass(dice.uniform(0, 3), "an outage")
    server.start()


def end_connections(server: PostgresServer, database: str, _dice: random.Random) -> None:
    with server.connect(database) as connection, suppress(psycopg.OperationalError):
        row = connection.execute(END_OTHERS).fetchone()
        assert row is not None
        note(Fault.CUT_CONNECTION, "PostgreSQL", int(str(row[0])))


@pytest.mark.long
@pytest.mark.parametrize("fault", [kill_server, end_connections])
def test_a_server_that_ends_again_and_again_loses_no_change(
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    server: PostgresServer,
    tag: str,
    fault: Callable[[PostgresServer, str, random.Random], None],
) -> None:
    dice, worker, topic = new_dice(), make_worker(), f"pg_{tag}.public.item"
    database = server.create_database()
    with server.connect(database) as connection:
        connection.execute("SET synchronous_commit = on")
        connection.execute(TABLE)
        connection.execute("INSERT INTO item SELECT g, 1, repeat('row ' || g, 20) FROM generate_series(1, %s) g", (ROWS,))
        keep_journal(connection)
    quick = {"retriable_restart_connector_wait_ms": "200", "internal_snapshot_chunk_rows": "2000"}
    config = postgres_source(server, database, tag, table_include_list=TABLES, **quick)
    with changing(ThroughOutages(partial(server.connect, database), dice, keys=ROWS)):
        worker.create(tag, config)
        for round_number in range(2 * KILLS):
            if round_number < KILLS and not has_ended_snapshot(worker, tag):
                wait_until(partial(has_records, kafka, topic, dice.uniform(0, ROWS / 2)), 60, "a part of the snapshot")
            else:
                let_time_pass(dice.uniform(0, 3), "a random moment, in and between two flushes of the offsets (2 s)")
            fault(server, database, dice)
            wait_until(partial(has_records, kafka, topic, kafka.count(topic) + 50), 60, "further changes")
        wait_until(partial(has_ended_snapshot, worker, tag), 120, "the end of the snapshot")
    worker.wait_for(tag, "RUNNING")
    await_history(kafka, {**config, "name": tag}, DIGEST, offsets_topic=worker.topic("offset"))
    worker.delete(tag)
