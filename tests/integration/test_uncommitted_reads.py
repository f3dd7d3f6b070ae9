"""Tables are read when they show what the stream has: a log has a transaction before its commit, which may wait for a replica, has ended.

It holds for values that are read again, and for snapshots that a signal asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlServer
from connect_py.app.services.postgres import PostgresServer
from connectors.mysql.ddl.statements import apply
from tests import binlog_task, postgres_task
from tests.fix_kafka import Kafka
from tests.fix_postgres import RESELECT, postgres_source
from tests.mysql_replicas import run
from tests.waiting import eventually

pytestmark = pytest.mark.services

#: How long a commit of MySQL waits for a replica that is not there; PostgreSQL's waits until it is told otherwise.
COMMIT_SECONDS = 1.5
NAMELESS = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Callable[..., MySqlServer]]:
    """Makes a server with a row, whose commits wait for a time once they are in the log, from when `rpl_semi_sync_source_enabled` is on."""
    made: list[MySqlServer] = []

    def make(*options: str, seconds: float = COMMIT_SECONDS) -> MySqlServer:
        semisync = ("--plugin-load-add=semisync_source.so", f"--rpl-semi-sync-source-timeout={int(seconds * 1000)}")
        server = MySqlServer(tmp_path / "slow", *semisync, *options)
        made.append(server)
        table = "CREATE TABLE late.t (id INT PRIMARY KEY, v VARCHAR(9))"
        run(server, "CREATE DATABASE late", table, "INSERT INTO late.t VALUES (1, 'old')")
        return server

    yield make
    for server in made:
        server.stop()


def test_mysql_is_asked_for_a_row_when_its_transaction_shows(slow: Callable[..., MySqlServer], kafka: Kafka) -> None:
    mysql = slow()
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


def update_within_the_log(server: MySqlServer) -> threading.Thread:
    """Begin a change; returns when it is in the log, and not yet in the table."""
    run(server, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
    before = run(server, "SHOW BINARY LOG STATUS")[0][1]
    writing = threading.Thread(target=run, args=(server, "UPDATE late.t SET v = 'new' WHERE id = 1"))
    writing.start()
    eventually(lambda: run(server, "SHOW BINARY LOG STATUS")[0][1] > before, "the change in the log")
    return writing


def last_value(task: binlog_task.DirectTask) -> str:
    return str([row["v"] for _, row in task.rows("t") if row["id"] == 1][-1])


def test_a_snapshot_without_locks_or_gtids_has_what_was_in_the_log_before_it(slow: Callable[..., MySqlServer], kafka: Kafka) -> None:
    server = slow(*NAMELESS, seconds=0.9)
    config = binlog_task.task_config(server, kafka, "late", **{"snapshot.locking.mode": "none"})
    writing = update_within_the_log(server)
    with binlog_task.DirectTask(config) as task:
        task.poll_until(lambda: task.is_connected)
        run(server, "INSERT INTO late.t VALUES (2, 'end')")
        task.poll_until(lambda: task.rows("t")[-1][1]["id"] == 2)
    writing.join()
    assert last_value(task) == "new"


def test_the_rest_of_a_snapshot_without_locks_is_not_older_than_what_the_stream_has_shown(
    slow: Callable[..., MySqlServer], kafka: Kafka
) -> None:
    server = slow(*NAMELESS, seconds=0.9)
    numbers = "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 9000) SELECT i FROM n"
    run(
        server,
        "SET SESSION cte_max_recursion_depth = 10000",
        "CREATE TABLE late.big (id INT PRIMARY KEY)",
        f"INSERT INTO late.big {numbers}",
    )
    config = binlog_task.task_config(server, kafka, "late", **{"snapshot.locking.mode": "none"})
    with binlog_task.DirectTask(config) as first:
        first.poll_until(lambda: first.rows("big"))
    assert not first.rows("t")
    writing: list[threading.Thread] = []

    def read(*arguments: Any) -> Any:
        """Statements of the history are read right before the rest of the snapshot begins."""
        if not writing:
            writing.append(update_within_the_log(server))
        return apply(*arguments)

    with binlog_task.DirectTask(config, first.offsets[-1], read) as task:
        task.poll_until(lambda: any(op == "r" for op, _ in task.rows("t")))
    writing[0].join()
    assert ("u", {"id": 1, "v": "new"}) in task.rows("t")
    assert last_value(task) == "new"


def _standby(server: PostgresServer) -> str:
    with server.connect("postgres") as connection:
        return str(connection.execute("SHOW synchronous_standby_names").fetchall()[0][0])


def test_a_blocking_snapshot_of_mysql_waits_for_what_the_stream_has_shown(slow: Callable[..., MySqlServer], kafka: Kafka) -> None:
    mysql = slow()
    with binlog_task.DirectTask(binlog_task.task_config(mysql, kafka, "late")) as task:
        task.poll_until(lambda: task.rows("t"))
        run(mysql, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
        writing = threading.Thread(target=run, args=(mysql, "UPDATE late.t SET v = 'new'"))
        writing.start()
        task.poll_until(lambda: len(task.rows("t")) == 2)
        task.ask_for_snapshot("late.t")
        task.poll_until(lambda: len(task.rows("t")) == 3)
        writing.join()
    assert [(op, row["v"]) for op, row in task.rows("t")] == [("r", "old"), ("u", "new"), ("r", "new")]


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres")
    yield server
    server.stop()


def set_standby(server: PostgresServer, name: str) -> None:
    """Have commits wait for a standby of this name; of none with ''."""
    with server.connect("postgres") as admin:
        admin.autocommit = True
        admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        admin.execute("SELECT pg_reload_conf()")
    eventually(lambda: _standby(server) == name, "the new setting")


def write(server: PostgresServer, *statements: str) -> threading.Thread:
    """One transaction, whose commit waits for a standby; for some time."""

    def run() -> None:
        with server.connect("postgres") as connection, connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = on")
            for statement in statements:
                connection.execute(statement)

    set_standby(server, "nobody")
    writing = threading.Thread(target=run)
    writing.start()
    return writing


def test_postgres_is_asked_for_a_row_when_its_transaction_shows(postgres: PostgresServer) -> None:
    with postgres.connect("postgres") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t VALUES (1, 'old')")
    changes = ["UPDATE t SET v = NULL WHERE id = 1", "INSERT INTO t VALUES (2, NULL)", "UPDATE t SET v = 'now' WHERE id = 2"]
    with postgres_task.DirectTask(postgres_source(postgres, "postgres", "late", **RESELECT)) as task:
        task.poll_until(task.is_streaming)
        writing = write(postgres, *changes)
        releasing = threading.Timer(COMMIT_SECONDS, set_standby, args=(postgres, ""))
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


def test_a_blocking_snapshot_of_postgres_waits_for_what_the_stream_has_shown(postgres: PostgresServer) -> None:
    with postgres.connect("postgres") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t VALUES (1, 'old')")
    with postgres_task.DirectTask(postgres_source(postgres, "postgres", "late")) as task:
        task.poll_until(task.is_streaming)
        writing = write(postgres, "UPDATE t SET v = 'new'")
        task.poll_until(lambda: len(task.of("pg_late.public.t")) == 2)
        task.ask_for_snapshot("public.t")
        releasing = threading.Timer(COMMIT_SECONDS, set_standby, args=(postgres, ""))
        releasing.start()
        task.poll_until(lambda: len(task.of("pg_late.public.t")) == 3)
        writing.join()
        releasing.join()
    found = [(value["op"], value["after"]["v"]) for _, value in task.of("pg_late.public.t")]
    assert found == [("r", "old"), ("u", "new"), ("r", "new")]
