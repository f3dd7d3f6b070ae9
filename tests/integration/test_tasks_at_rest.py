"""Sources to which nothing happens for a while: they look around seldom, and do at once what they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import wait_until
from connect_py.app.services.worker import Worker
from connect_py.task.producing import REST_AFTER_SECONDS
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.mysql_task import mysql_source
from tests.waiting import let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.timeout(180)]

#: Turns of a task's main thread in a second, at most, once it rests; 3.3 or 5 before.
_TURNS = 2.0
#: How soon it does what it is asked for, in seconds: half of what a poll of a database's stream waits.
_SOON = 1.0


def switches(pid: int) -> int:
    """How often the main thread of a process has waited for something."""
    lines = Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def turns(pid: int, seconds: float = 3.0) -> float:
    """How often it waits in a second."""
    before, began = switches(pid), time.monotonic()
    let_time_pass(seconds, "what is measured")
    return (switches(pid) - before) / (time.monotonic() - began)


@pytest.mark.parametrize("kind", ["file", "postgres", "mysql"])
def test_a_source_at_rest_does_at_once_what_it_is_asked_for(
    kind: str,
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    tag: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    worker = make_worker()
    if kind == "postgres":
        postgres: PostgresAddress = request.getfixturevalue("postgres")
        database = request.getfixturevalue("database")
        with postgres.connect(database) as connection:
            connection.execute("CREATE TABLE one (id int PRIMARY KEY)")
        config = postgres_source(postgres, database, tag, plugin_name="pgoutput")
    elif kind == "mysql":
        mysql: MySqlAddress = request.getfixturevalue("mysql")
        with mysql.connect() as session, session.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {tag}")
            cursor.execute(f"CREATE TABLE {tag}.one (id int PRIMARY KEY)")
        config = mysql_source(mysql, kafka.bootstrap, tag)
    else:
        (tmp_path / "lines").write_text("one\n")
        config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), "topic": tag, "tasks.max": "1"}
    worker.create(tag, config)
    try:
        (pid,) = worker.children()
        wait_until(lambda: turns(pid) <= _TURNS, REST_AFTER_SECONDS + 60, "the task to rest")
        began = time.monotonic()
        worker.request("PUT", f"/connectors/{tag}/pause")
        worker.wait_for(tag, "PAUSED")
        took = {"pause": time.monotonic() - began}
        worker.request("PUT", f"/connectors/{tag}/resume")
        worker.wait_for(tag, "RUNNING")
        wait_until(lambda: turns(pid) <= _TURNS, REST_AFTER_SECONDS + 60, "the task to rest again")
        began = time.monotonic()
        worker.request("PUT", f"/connectors/{tag}/stop")
        wait_until(lambda: not worker.children(), 60, "the task's end")
        took["stop"] = time.monotonic() - began
        assert max(took.values()) < _SOON, took
    finally:
        worker.delete(tag)
