"""A slot whose tables are quiet while others write: the server must not keep its log for it, and a restart must find its place."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from connect_py.app.services.postgres import PostgresAddress
from tests.integration.test_postgres_source import Runner

pytestmark = pytest.mark.services

WRITTEN = 200_000_000
RETAINED = 20_000_000


@pytest.fixture
def runner(postgres: PostgresAddress, database: str) -> Iterator[Runner]:
    running = Runner(postgres, database)
    yield running
    running.close()


def retained(runner: Runner) -> int:
    """Bytes of log that the server keeps for the slot."""
    runner.db.execute("CHECKPOINT")
    row = runner.db.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) FROM pg_replication_slots WHERE slot_name = %s", (runner.slot,)
    ).fetchone()
    assert row is not None
    return int(row[0])  # type: ignore[call-overload]


@pytest.mark.parametrize("publication", ["filtered", pytest.param("all_tables", marks=pytest.mark.long)])
def test_a_quiet_slot_lets_the_server_discard_its_log(runner: Runner, publication: str) -> None:
    runner.db.execute("CREATE TABLE quiet (id int PRIMARY KEY, v text); INSERT INTO quiet VALUES (1, 'a')")
    runner.db.execute("CREATE TABLE busy (id serial PRIMARY KEY, v text)")
    more = {"publication_autocreate_mode": publication, "table_include_list": "public.quiet"}
    runner.start(**more)
    runner.until(1)
    runner.idle()
    before = runner.db.execute("SELECT pg_current_wal_lsn()").fetchone()
    assert before is not None
    while True:
        runner.db.execute("INSERT INTO busy (v) SELECT repeat(md5(i::text), 60) FROM generate_series(1, 5000) i")
        runner.poll()
        row = runner.db.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)", before).fetchone()
        if row is not None and int(row[0]) > WRITTEN:  # type: ignore[call-overload]
            break
    deadline = time.monotonic() + 60
    while (kept := retained(runner)) > RETAINED:
        assert time.monotonic() < deadline, f"{kept:,} bytes of log are kept for the slot"
        runner.poll()
    runner.kill()
    runner.db.execute("INSERT INTO quiet VALUES (2, 'while away')")
    runner.start(**more)
    runner.until(2)
    runner.db.execute("INSERT INTO quiet VALUES (3, 'after')")
    runner.until(3)
    runner.idle()
    assert [record.key["id"] for record in runner.records] == [1, 2, 3]


def test_the_offset_does_not_pass_a_transaction_that_is_still_open(runner: Runner) -> None:
    """Its changes lie before the place that the server has looked through, and its commit behind it."""
    runner.db.execute("CREATE TABLE quiet (id int PRIMARY KEY); CREATE TABLE busy (id serial PRIMARY KEY, v text)")
    more = {"publication_autocreate_mode": "filtered", "table_include_list": "public.quiet"}
    runner.start(**more)
    runner.idle()
    with runner.postgres.connect(runner.database) as other:
        other.execute("BEGIN; INSERT INTO quiet VALUES (1)")
        runner.db.execute("INSERT INTO busy (v) SELECT repeat(md5(i::text), 60) FROM generate_series(1, 15000) i")
        deadline = time.monotonic() + 30
        while not (runner.context.stored or {}).get("lsn_proc"):
            assert time.monotonic() < deadline, "the offset never followed the log"
            runner.poll()
        runner.kill()
        other.execute("INSERT INTO quiet VALUES (2); COMMIT")
    runner.start(**more)
    runner.until(2)
    runner.idle()
    assert [record.key["id"] for record in runner.records] == [1, 2]
