"""What sources say of their logs, by a real worker: whatever state the connector is in."""

from __future__ import annotations

import os
import signal
import time

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_postgres import postgres_source
from tests.integration.test_metrics import Scrape
from tests.waiting import wait_until

pytestmark = pytest.mark.services


def test_a_stopped_connectors_slot_is_seen_to_grow(worker: Worker, postgres: PostgresAddress, database: str, tag: str) -> None:
    scrape = Scrape(worker.url)

    def retained() -> float:
        return scrape("connect_py_postgres_slot_retained_bytes", connector=tag, slot=f"slot_{tag}") or 0.0

    with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
        session.execute("CREATE TABLE a (id int PRIMARY KEY, t text)")
        worker.create(tag, postgres_source(postgres, database, tag))
        try:
            scrape.until(1, "connect_py_postgres_slot_active", connector=tag, slot=f"slot_{tag}")
            worker.request("PUT", f"/connectors/{tag}/stop")
            scrape.until(1, "connect_py_source_verdict", connector=tag, verdict="stopped")
            before = retained()
            session.execute("INSERT INTO a SELECT n, repeat('x', 1000) FROM generate_series(1, 4000) n")
            wait_until(lambda: retained() > before + 4_000_000, 30, "the slot to grow")
            assert scrape("connect_py_postgres_slot_wal_status_level", connector=tag) == 0
            assert scrape("connect_py_source_facts_up", connector=tag) == 1
        finally:
            worker.delete(tag)
    wait_until(lambda: tag not in scrape.text(), 60, "the figures of a deleted connector to vanish")


@pytest.mark.long
def test_a_quiet_source_is_idle(worker: Worker, postgres: PostgresAddress, database: str, tag: str) -> None:
    scrape = Scrape(worker.url)
    with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
        session.execute("CREATE TABLE a (id int PRIMARY KEY)")
        worker.create(tag, postgres_source(postgres, database, tag))
        try:
            scrape.until(1, "debezium_metrics_Connected", connector=tag, context="streaming")
            scrape.until(1, "connect_py_source_verdict", connector=tag, verdict="idle")
        finally:
            worker.delete(tag)


@pytest.mark.long
def test_a_stalled_source_is_told_from_a_quiet_one_within_half_a_minute(
    worker: Worker, postgres: PostgresAddress, database: str, tag: str
) -> None:
    """The server's sender of one stream stands still. Both read the same log, which moves; the other captures nothing of it."""
    scrape = Scrape(worker.url)
    stalled, quiet = f"{tag}s", f"{tag}q"
    with psycopg.connect(postgres.dsn(database), autocommit=True) as session:
        session.execute("CREATE TABLE busy (id int PRIMARY KEY)")
        session.execute("CREATE TABLE quiet (id int PRIMARY KEY)")
        try:
            for name, table in ((stalled, "busy"), (quiet, "quiet")):
                worker.create(name, postgres_source(postgres, database, name, table_include_list=f"public.{table}"))
            for name in (stalled, quiet):
                scrape.until(1, "debezium_metrics_Connected", connector=name, context="streaming")
            scrape.until(1, "connect_py_source_verdict", connector=quiet, verdict="idle")
            found = session.execute("SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", [f"slot_{stalled}"]).fetchone()
            assert found is not None
            os.kill(found[0], signal.SIGSTOP)
            try:
                session.execute("INSERT INTO busy SELECT generate_series(1, 10000)")
                began = time.monotonic()
                scrape.until(1, "connect_py_source_verdict", connector=stalled, verdict="stalled")
                print(f"stalled: known after {time.monotonic() - began:.1f} s")
                assert scrape("connect_py_source_verdict", connector=quiet, verdict="idle") == 1
            finally:
                os.kill(found[0], signal.SIGCONT)
            scrape.until(1, "connect_py_source_verdict", connector=stalled, verdict="streaming")
        finally:
            worker.delete(stalled)
            worker.delete(quiet)
