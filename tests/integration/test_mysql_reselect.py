"""Columns of MySQL that are read again from the table: by keys of every kind, and what row images leave out, up to minimal ones."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress, MySqlServer
from connect_py.errors import FatalTaskError
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka
from tests.fix_postgres import RESELECT
from tests.mysql_replicas import run

pytestmark = pytest.mark.services

#: Of some the reference finds no row: its statement compares with what records show.
KEYS = {
    "unsigned": ("BIGINT UNSIGNED", "18446744073709551615"),
    "bytes": ("VARBINARY(9)", "0x00FF27"),
    "fixed bytes": ("BINARY(4)", "0x00FF"),
    "label": ("ENUM('z','a,b')", "'a,b'"),
    "labels": ("SET('z','a','b')", "'z,b'"),
    "date": ("DATE", "'2020-02-29'"),
    "moment": ("DATETIME(6)", "'2020-02-29 12:00:00.000001'"),
    "stamp": ("TIMESTAMP(3)", "'2020-02-29 12:00:00.5'"),
    "bits": ("BIT(12)", "b'100000000101'"),
    "time": ("TIME(2)", "'-01:00:00.5'"),
    "word": ("VARCHAR(20) CHARACTER SET latin2", "'it''s \\\\ ž'"),
    "decimal": ("DECIMAL(20,3)", "-12345678901234567.125"),
}


@pytest.fixture
def database(mysql: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database of its own, and a cursor in it."""
    name = f"again_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def test_rows_are_found_by_keys_of_every_kind(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE fence (id INT PRIMARY KEY)")
    cursor.execute("INSERT INTO fence VALUES (1)")
    tables = {kind: f"by_{kind.replace(' ', '_')}" for kind in KEYS}
    with DirectTask(task_config(mysql, kafka, name, **RESELECT)) as task:
        task.poll_until(lambda: task.rows("fence"))
        for kind, (column, value) in KEYS.items():
            cursor.execute(f"CREATE TABLE {tables[kind]} (k {column} PRIMARY KEY, v VARCHAR(9), n INT)")
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT INTO {tables[kind]} (k) VALUES ({value})")
            cursor.execute(f"UPDATE {tables[kind]} SET v = 'later', n = -5")
            cursor.execute("COMMIT")
        cursor.execute("INSERT INTO fence VALUES (2)")
        task.poll_until(lambda: len(task.rows("fence")) == 2)
    inserted = {kind: task.rows(table)[0] for kind, table in tables.items()}
    assert {kind: (op, row["v"], row["n"]) for kind, (op, row) in inserted.items()} == dict.fromkeys(KEYS, ("c", "later", -5))


@pytest.mark.parametrize("image", ["NOBLOB", "MINIMAL"])
def test_what_row_images_leave_out_is_read_again(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any], image: str) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(9), big TEXT, b BLOB)")
    cursor.execute("INSERT INTO t VALUES (1, 1, 'a', 'large', 'bytes')")
    with DirectTask(task_config(mysql, kafka, name, **RESELECT)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"SET binlog_row_image = {image}")
        cursor.execute("UPDATE t SET n = 5 WHERE id = 1")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    assert task.rows("t")[1] == ("u", {"id": 1, "n": 5, "v": "a", "big": "large", "b": "Ynl0ZXM="})


def test_a_server_of_minimal_images_is_refused_unless_they_are_accepted(kafka: Kafka, tmp_path: Path) -> None:
    server = MySqlServer(tmp_path / "minimal", "--binlog-row-image=MINIMAL")
    try:
        run(
            server,
            "CREATE DATABASE least",
            "CREATE TABLE least.t (id INT PRIMARY KEY, n INT, v VARCHAR(9))",
            "INSERT INTO least.t VALUES (1, 1, 'a')",
        )
        config = task_config(server, kafka, "least")
        with DirectTask(config) as task, pytest.raises(FatalTaskError, match="not configured to use a FULL binlog_row_image"):
            task.poll_until(lambda: task.rows("t"))
        accepted = {**config, "binlog.row.image.minimal": "accept"}
        with DirectTask({**accepted, **RESELECT}) as task:
            task.poll_until(lambda: task.rows("t"))
            run(server, "UPDATE least.t SET n = 5", "INSERT INTO least.t (id) VALUES (2)", "DELETE FROM least.t WHERE id = 1")
            task.poll_until(lambda: len(task.rows("t")) == 4)
        # by the time of the read the row is gone, so that the event shows what the log has of it
        assert task.rows("t")[1][1]["n"] == 5 and task.rows("t")[3] == ("d", task.rows("t")[3][1])
        assert task.rows("t")[2] == ("c", {"id": 2, "n": None, "v": None})
    finally:
        server.stop()
