"""Values are read again only when the transaction shows: a log has it before its commit, which may wait for a replica, has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.mysql import MySqlServer
from connect_py.app.services.postgres import PostgresServer
from tests import binlog_task, postgres_task
from tests.fix_kafka import Kafka
from tests.fix_postgres import RESELECT, postgres_source
from tests.mysql_replicas import run
from tests.waiting import eventually

pytestmark = pytest.mark.services

#: How long a commit of MySQL waits for a replica that is not there; PostgreSQL's waits until it is told otherwise.
COMMIT_SECONDS = 1.5


@pytest.fixture
def mysql(tmp_path: Path) -> Iterator[MySqlServer]:
    """A server whose commits wait for a replica once `rpl_semi_sync_source_enabled` is on."""
    semisync = ("--plugin-load-add=semisync_source.so", f"--rpl-semi-sync-source-timeout={int(COMMIT_SECONDS * 1000)}")
    server = MySqlServer(tmp_path / "semisync", *semisync)
    yield server
    server.stop()


def test_mysql_is_asked_for_a_row_when_its_transaction_shows(mysql: MySqlServer, kafka: Kafka) -> None:
    run(mysql, "CREATE DATABASE late", "CREATE TABLE late.t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO late.t VALUES (1, 'old')")
    with binlog_task.DirectTask(binlog_task.task_config(mysql, kafka, "late", **RESELECT)) as task:
        task.poll_until(lambda: task.rows("t"))
        run(mysql, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
        changes = [
            "UPDATE late.t SET v = NULL WHERE id = 1",
            "INSERT INTO late.t VALUES (2, NULL)",
            "UPDATE late.t SET v = 'now' WHERE id = 2",
        ]
        writing = threading.Thread(target=run, args=(mysql, "BEGIN", *changes, "COMMIT"))
        writing.start()
        task.poll_until(lambda: len(task.rows("t")) == 4)
        writing.join()
    assert [(op, row["id"], row["v"]) for op, row in task.rows("t")[1:]] == [("u", 1, None), ("c", 2, "now"), ("u", 2, "now")]


def _standby(server: PostgresServer) -> str:
    with server.connect("postgres") as connection:
        return str(connection.execute("SHOW synchronous_standby_names").fetchall()[0][0])


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres")
    yield server
    server.stop()


def test_postgres_is_asked_for_a_row_when_its_transaction_shows(postgres: PostgresServer) -> None:
    def set_standby(name: str) -> None:
        with postgres.connect("postgres") as admin:
            admin.autocommit = True
            admin.execute("SET synchronous_commit = local")
            admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
            admin.execute("SELECT pg_reload_conf()")
        eventually(lambda: _standby(postgres) == name, "the new setting")

    def write() -> None:
        with postgres.connect("postgres") as connection, connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute("UPDATE t SET v = NULL WHERE id = 1")
            connection.execute("INSERT INTO t VALUES (2, NULL)")
            connection.execute("UPDATE t SET v = 'now' WHERE id = 2")

    with postgres.connect("postgres") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t VALUES (1, 'old')")
    with postgres_task.DirectTask(postgres_source(postgres, "postgres", "late", **RESELECT)) as task:
        task.poll_until(task.is_streaming)
        set_standby("nobody")
        writing = threading.Thread(target=write)
        releasing = threading.Timer(COMMIT_SECONDS, set_standby, args=("",))
        writing.start()
        releasing.start()
        task.poll_until(lambda: len(task.of("pg_late.public.t")) == 4)
        writing.join()
        releasing.join()
    found = [value for _, value in task.of("pg_late.public.t")[1:]]
    assert [(event["op"], event["after"]["id"], event["after"]["v"]) for event in found] == [
        ("u", 1, None),
        ("c", 2, "now"),
        ("u", 2, "now"),
    ]
