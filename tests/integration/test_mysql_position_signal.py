"""The signal `set-binlog-position` on real servers: reading goes on from the place it names, once, with the structures of that place."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services


class Source:
    """A database with a table `t` and a signal table."""

    def __init__(self, kind: str, server: MySqlAddress, kafka: Kafka, cursor: Any) -> None:
        self.kind = kind
        self.cursor = cursor
        self.name = f"moved_{uuid.uuid4().hex[:8]}"
        cursor.execute(f"CREATE DATABASE {self.name}")
        cursor.execute(f"USE {self.name}")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        cursor.execute("INSERT INTO t VALUES (1)")
        more = {"signal.data.collection": f"{self.name}.signals", "table.include.list": f"{self.name}.t"}
        self.config = task_config(server, kafka, self.name, mariadb=kind == "mariadb", **more)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def place(self) -> dict[str, object]:
        """Signal data of where the log ends: GTIDs of MySQL, a position of MariaDB."""
        if self.kind == "mysql":
            self.cursor.execute("SELECT @@gtid_executed")
            return {"gtid_set": self.cursor.fetchone()[0].replace("\n", "")}
        return self.position()

    def position(self) -> dict[str, object]:
        self.cursor.execute("SHOW MASTER STATUS" if self.kind == "mariadb" else "SHOW BINARY LOG STATUS")
        file, position = self.cursor.fetchone()[:2]
        return {"binlog_filename": file, "binlog_position": position}

    def signal(self, data: dict[str, object]) -> None:
        self.cursor.execute("INSERT INTO signals VALUES (%s, 'set-binlog-position', %s)", (uuid.uuid4().hex, json.dumps(data)))


@pytest.fixture(params=["mysql", "mariadb"])
def source(request: pytest.FixtureRequest, kafka: Kafka) -> Iterator[Source]:
    server = request.getfixturevalue(request.param)
    with server.connect() as connection, connection.cursor() as cursor:
        made = Source(request.param, server, kafka, cursor)
        yield made
        cursor.execute(f"DROP DATABASE {made.name}")


def test_changes_are_read_again_once_with_the_structure_that_they_had(source: Source) -> None:
    with DirectTask(source.config) as task:
        task.poll_until(lambda: task.rows("t"))
        source.execute("INSERT INTO t VALUES (2)")
        place = source.place()
        source.execute("INSERT INTO t VALUES (3)", "ALTER TABLE t ADD v VARCHAR(5) DEFAULT 'x'", "INSERT INTO t VALUES (4, 'y')")
        task.poll_until(lambda: len(task.rows("t")) == 4)
        source.signal(place)
        task.poll_until(lambda: len(task.rows("t")) == 6)
        source.execute("INSERT INTO t VALUES (5, 'z')")
        task.poll_until(lambda: len(task.rows("t")) == 7)
    again = [{"id": 3}, {"id": 4, "v": "y"}]
    assert [row for _, row in task.rows("t")] == [{"id": 1}, {"id": 2}, *again, *again, {"id": 5, "v": "z"}]
    # a start behind it reads no more than what is new, and one from the place passes the signal by, too
    moved = next(offset for offset in task.offsets if "set_binlog_position_signal" in offset)
    source.execute("INSERT INTO t VALUES (6, 'n')")
    for offset, expected in ((task.offsets[-1], [6]), (moved, [3, 4, 5, 6])):
        with DirectTask(source.config, offset) as later:
            later.poll_until(lambda later=later: any(row["id"] == 6 for _, row in later.rows("t")))  # type: ignore[misc]
        assert [row["id"] for _, row in later.rows("t")] == expected


def test_a_place_that_cannot_be_read_from_changes_nothing(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    gtids = "0-77-999999999" if source.kind == "mariadb" else f"{uuid.uuid4()}:1-5"
    refused = [
        ({"binlog_filename": "nothing.000001", "binlog_position": 4}, "has no position 4 in a file nothing.000001"),
        ({**source.position(), "binlog_position": 1 << 31}, "has no position 2147483648"),
        ({"gtid_set": gtids}, "does not have everything behind"),
        ({"gtid_set": "none"}, "Invalid GTID set format: none"),
        ({"gtid_set": "0-1-1" if source.kind == "mysql" else f"{uuid.uuid4()}:1"}, "Invalid GTID set format"),
        ({}, "Must specify either binlog file/position or GTID set"),
    ]
    if source.kind == "mysql":
        refused.append((source.position(), "name gtid_set, the transactions that count as read"))
    with DirectTask(source.config) as task:
        task.poll_until(lambda: task.rows("t"))
        for number, (data, reason) in enumerate(refused, 2):
            caplog.clear()
            source.signal(data)
            source.execute(f"INSERT INTO t VALUES ({number})")
            task.poll_until(lambda number=number: task.rows("t")[-1][1] == {"id": number})  # type: ignore[misc]
            assert "Action set-binlog-position failed" in caplog.text
            assert reason in caplog.text
    assert [row["id"] for _, row in task.rows("t")] == [*range(1, len(refused) + 2)]


def test_a_file_and_a_position_count_where_gtids_are_left_alone(mysql: MySqlAddress, kafka: Kafka) -> None:
    with mysql.connect() as connection, connection.cursor() as cursor:
        source = Source("mysql", mysql, kafka, cursor)
        with DirectTask({**source.config, "gtid.ignore.on.recovery": "true"}) as task:
            task.poll_until(lambda: task.rows("t"))
            place = source.position()
            source.execute("INSERT INTO t VALUES (2)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
            source.signal(place)
            source.execute("INSERT INTO t VALUES (3)")
            task.poll_until(lambda: task.rows("t")[-1][1] == {"id": 3} and len(task.rows("t")) >= 4)
        cursor.execute(f"DROP DATABASE {source.name}")
    read = [row["id"] for _, row in task.rows("t")]
    assert read[:2] == [1, 2]
    assert read[-2:] == [2, 3]
