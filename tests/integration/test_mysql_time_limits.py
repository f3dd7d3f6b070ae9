"""`database.query.timeout.ms` against statements that take longer, on both servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlAddress
from connect_py.errors import FatalTaskError
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka
from tests.mysql_replicas import await_

pytestmark = pytest.mark.services


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> MySqlAddress:
    """Both kinds."""
    found: MySqlAddress = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def database(server: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database with the table `t`, which has one row, and a cursor in it."""
    name = f"limits_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES (1)")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def slow_statements(cursor: Any) -> list[str]:
    """What sleeps on the server."""
    cursor.execute("SELECT info FROM information_schema.processlist WHERE info LIKE '%SLEEP(30)%' AND info NOT LIKE '%processlist%'")
    return [text for (text,) in cursor.fetchall()]


SLOW = {
    "a statement of the user's": {"heartbeat.interval.ms": "100", "heartbeat.action.query": "SELECT SLEEP(30) AS {name}"},
    "a statement of every session": {"database.initial.statements": "SELECT SLEEP(30) AS {name}"},
}


@pytest.mark.parametrize("case", SLOW)
def test_a_statement_is_given_up_after_its_time_on_the_server_too(
    server: MySqlAddress, kafka: Kafka, database: tuple[str, Any], case: str
) -> None:
    name, cursor = database
    more = {setting: value.format(name=name) for setting, value in SLOW[case].items()}
    more |= {"database.query.timeout.ms": "500", "errors.max.retries": "0"}
    config = task_config(server, kafka, name, mariadb=isinstance(server, MariaDbServer), **more)
    with (
        DirectTask(config) as task,
        pytest.raises(
            FatalTaskError, match=rf"took longer than database\.query\.timeout\.ms=500 .* given up: SELECT SLEEP\(30\) AS {name}"
        ),
    ):
        task.poll_until(lambda: False, seconds=25)
    await_(lambda: not any(name in text for text in slow_statements(cursor)), "the end of the statement on the server", 10)


def test_a_statement_that_was_given_up_is_tried_again(server: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    """Here one that waits for a row's lock until it is let go."""
    name, cursor = database
    cursor.execute("CREATE TABLE beats (id INT PRIMARY KEY, n INT)")
    cursor.execute("INSERT INTO beats VALUES (1, 0)")
    more = {
        "heartbeat.interval.ms": "100",
        "heartbeat.action.query": f"UPDATE {name}.beats SET n = n + 1",
        "database.query.timeout.ms": "500",
        "retriable.restart.connector.wait.ms": "100",
    }
    with (
        server.connect() as other,
        other.cursor() as locking,
        DirectTask(task_config(server, kafka, name, mariadb=isinstance(server, MariaDbServer), **more)) as task,
    ):
        task.poll_until(lambda: ("u", {"id": 1, "n": 1}) in task.rows("beats"))
        locking.execute(f"USE {name}")
        locking.execute("BEGIN")
        locking.execute("SELECT * FROM beats FOR UPDATE")
        task.poll_until(lambda: not task.is_connected)
        locking.execute("INSERT INTO t VALUES (2)")
        locking.execute("COMMIT")
        cursor.execute("SELECT n FROM beats")
        (before,) = cursor.fetchone()
        task.poll_until(lambda: ("c", {"id": 2}) in task.rows("t") and ("u", {"id": 1, "n": before + 2}) in task.rows("beats"))
    counted = [row["n"] for op, row in task.rows("beats") if op == "u"]
    assert counted == list(range(1, len(counted) + 1))
