"""Slots whose creation has to wait, and what waits for us: the server makes a slot only when the transactions of that moment have ended."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import orjson
import psycopg
import pytest

from connect_py.api import JsonEncoding
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import ServiceError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.postgres.task import PostgresConnectorTask
from tests.fix_postgres import postgres_source
from tests.waiting import eventually, wait_until

pytestmark = pytest.mark.services


def started(config: dict[str, str], tuning: Tuning = DEFAULT_TUNING) -> PostgresConnectorTask:
    task = PostgresConnectorTask(tuning=tuning)
    task.start(config, SimpleNamespace(connector="c", task=0, encoding=JsonEncoding(False, False), offset=lambda partition: None))
    return task


@pytest.fixture
def writer(postgres: PostgresAddress, database: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in the middle of a transaction that has a number."""
    with psycopg.connect(postgres.dsn(database), application_name="night batch", autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        connection.execute("INSERT INTO item SELECT generate_series(1, 1000)")
        connection.execute("BEGIN")
        connection.execute("SELECT pg_current_xact_id()")
        yield connection


def test_a_slot_can_be_created_while_our_snapshot_is_under_way(postgres: PostgresAddress, database: str, tag: str) -> None:
    with postgres.connect(database) as other:
        other.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        other.execute("INSERT INTO item SELECT generate_series(1, 1000)")
        task = started(postgres_source(postgres, database, tag), Tuning(snapshot_rows=100))
        try:
            batch = task.poll()
            assert batch is not None and not batch.source_offset["snapshot_completed"]
            source = orjson.loads(batch.rows[0][2] or b"")["source"]
            assert source["txId"] == batch.source_offset["txId"] > 0
            other.execute("SET lock_timeout = '5s'")  # of the wait for a transaction's end
            other.execute(f"SELECT pg_create_logical_replication_slot('other_{tag}', 'pgoutput')")
            batch = task.poll()
            assert batch is not None and not batch.source_offset["snapshot_completed"]
        finally:
            task.stop()
            task.close()


def test_a_creation_that_waits_says_for_whom_and_goes_on(
    postgres: PostgresAddress,
    database: str,
    tag: str,
    writer: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = started(postgres_source(postgres, database, tag), Tuning(slot_report_seconds=(0.3, 0.5)))
    reports = []

    def end_when_reported_twice() -> None:
        def reported_twice() -> bool:
            reports[:] = [r.getMessage() for r in caplog.records if "still being created" in r.getMessage()]
            return len(reports) >= 2

        with contextlib.suppress(ServiceError):  # the test then finds too few reports
            wait_until(reported_twice, 60, "two reports")
        writer.execute("COMMIT")

    ending = threading.Thread(target=end_when_reported_twice)
    ending.start()
    try:
        batch = task.poll()
        ending.join()
        assert len(reports) >= 2
        assert f"'slot_{tag}'" in reports[0]
        assert f"pid {writer.info.backend_pid} (night batch, database {database}, idle in transaction, for " in reports[0]
        assert f"SELECT pg_terminate_backend({writer.info.backend_pid});" in reports[0]
        assert batch is not None and len(batch.rows) > 0
    finally:
        ending.join()
        task.stop()
        task.close()


def test_a_stop_ends_the_wait_and_leaves_no_slot(
    postgres: PostgresAddress, database: str, tag: str, writer: psycopg.Connection[Any]
) -> None:
    task = started(postgres_source(postgres, database, tag))
    polling = threading.Thread(target=task.poll)
    polling.start()
    found = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
    with postgres.connect(database) as admin:
        eventually(lambda: admin.execute(found, (f"slot_{tag}",)).fetchone(), "slot")
        task.stop()
        polling.join(60)
        assert not polling.is_alive()
        task.close()
        eventually(lambda: admin.execute(found, (f"slot_{tag}",)).fetchone() is None, "end of the slot")


def test_no_change_falls_between_a_snapshot_and_a_slot_that_is_still_being_created(
    postgres: PostgresAddress, database: str, tag: str
) -> None:
    with (
        postgres.connect(database) as connection,
        postgres.connect(database) as lingering,
        postgres.connect(database) as predecessor,
    ):
        connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
        connection.execute("INSERT INTO item VALUES (1)")
        lingering.execute("BEGIN")
        lingering.execute("SELECT pg_current_xact_id()")  # creating a slot waits for the transactions that run
        create = f"SELECT pg_create_logical_replication_slot('slot_{tag}', 'pgoutput')"
        creating = threading.Thread(target=predecessor.execute, args=(create,))
        creating.start()
        found = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        eventually(lambda: connection.execute(found, (f"slot_{tag}",)).fetchone(), "slot")

        task = started(postgres_source(postgres, database, tag, slot_retry_delay_ms="200", slot_max_retries="1000"))
        seen: set[int] = set()

        def poll() -> None:
            batch = task.poll()
            seen.update(orjson.loads(value)["after"]["id"] for _, _, value in batch.rows if value) if batch else None

        try:
            for _ in range(5):
                poll()
            connection.execute("INSERT INTO item VALUES (2)")
            lingering.execute("COMMIT")
            creating.join(60)
            connection.execute("INSERT INTO item VALUES (3)")
            deadline = time.monotonic() + 30
            while 3 not in seen and time.monotonic() < deadline:
                poll()
            assert seen == {1, 2, 3}
        finally:
            task.stop()
            task.close()
