"""A start from an offset that Debezium wrote in a window of an incremental snapshot: the stream resumes, and no table is read again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.mysql_task import DirectMySqlTask, mysql_source
from tests.postgres_task import DirectTask

pytestmark = pytest.mark.services

#: What Debezium writes with each row of a window, and with those of a blocking snapshot, behind which the stream resumes too.
WINDOWS = [
    {"snapshot": "INCREMENTAL", "snapshot_completed": False},
    {"snapshot": "INCREMENTAL"},
    {"snapshot": "BLOCKING", "snapshot_completed": False},
]


def operations(task: DirectTask) -> list[tuple[str, int]]:
    return [(value["op"], value["after"]["id"]) for _, _, value in task.events if value and value.get("after")]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_mysql_resumes_its_stream(mysql: MySqlAddress, kafka: Kafka, window: dict[str, Any]) -> None:
    database = f"window_{uuid.uuid4().hex[:8]}"
    config = mysql_source(mysql, kafka.bootstrap, database)
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        try:
            cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {database}.t VALUES (1), (2)")
            task = DirectMySqlTask(config)
            try:
                task.poll_until(lambda: operations(task) == [("r", 1), ("r", 2)] and task.is_streaming(), 60)
                cursor.execute(f"INSERT INTO {database}.t VALUES (3)")
                task.poll_until(lambda: operations(task)[2:] == [("c", 3)], 60)
            finally:
                task.close()
            assert task.offset is not None
            cursor.execute(f"INSERT INTO {database}.t VALUES (4)")
            resumed = DirectMySqlTask(config, {**task.offset, **window})
            try:
                resumed.poll_until(lambda: operations(resumed), 60)
                assert operations(resumed) == [("c", 4)]
                assert resumed.offset is not None
                assert "snapshot" not in resumed.offset
            finally:
                resumed.close()
        finally:
            cursor.execute(f"DROP DATABASE {database}")


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_postgresql_resumes_its_stream(postgres: PostgresAddress, database: str, tag: str, window: dict[str, Any]) -> None:
    config = postgres_source(postgres, database, tag, table_include_list=r"public\.t")
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        task = DirectTask(config)
        try:
            task.poll_until(lambda: operations(task) == [("r", 1), ("r", 2)] and task.is_streaming())
            connection.execute("INSERT INTO t VALUES (3)")
            task.poll_until(lambda: operations(task)[2:] == [("c", 3)])
        finally:
            task.close()
        assert task.offset is not None
        connection.execute("INSERT INTO t VALUES (4)")
        resumed = DirectTask(config, {**task.offset, **window, "last_snapshot_record": False})
        try:
            resumed.poll_until(lambda: operations(resumed))
            assert operations(resumed) == [("c", 4)]
            assert resumed.offset is not None
            assert "snapshot" not in resumed.offset
        finally:
            resumed.close()
