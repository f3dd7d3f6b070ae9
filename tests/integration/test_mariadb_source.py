"""MariaDB's own: what its log holds that MySQL's does not. What both share is held by the parity scenarios, run against MariaDB too."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlAddress
from connect_py.errors import FatalTaskError
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services


@pytest.fixture
def database(mariadb: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database of its own, and a cursor in it."""
    name = f"own_{uuid.uuid4().hex[:8]}"
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def test_uuids_addresses_and_compressed_columns_are_the_same_in_snapshot_and_stream(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]
) -> None:
    name, cursor = database
    cursor.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, u UUID, i6 INET6, i4 INET4, v VARCHAR(3000) COMPRESSED, "
        "b BLOB COMPRESSED, j JSON)"
    )
    insert = (
        "INSERT INTO t (u, i6, i4, v, b, j) VALUES "
        "('123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:0', '10.0.0.0', REPEAT('é', 900), REPEAT('x', 5000), '{\"é\": 1}'), "
        "('00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', 'short', '', '1'), (NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    cursor.execute(insert)
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True, **{"binary.handling.mode": "hex"})) as task:
        task.poll_until(lambda: len(task.rows("t")) == 3)
        cursor.execute(insert)
        task.poll_until(lambda: len(task.rows("t")) == 6)
    read, streamed = [[{**row, "id": 0} for op, row in task.rows("t") if op == wanted] for wanted in ("r", "c")]
    assert read == streamed
    assert read[0] == {
        "id": 0,
        "u": "123e4567-e89b-12d3-a456-426655440000",
        "i6": "2001:db8::ff00:0",
        "i4": "10.0.0.0",
        "v": "é" * 900,
        "b": "78" * 5000,
        "j": '{"é": 1}',
    }
    assert read[1]["u"] == "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        # sorted by version: of the first three the last digits decide, of the others the first
        (
            "UUID",
            [
                "ffffffff-0000-1000-8000-000000000001",
                "00000000-0000-1000-8000-000000000002",
                "88888888-0000-1fff-8000-000000000002",
                "0190163d-8694-739b-aea5-966c26f8ad91",
                "123e4567-e89b-42d3-a456-426655440000",
            ],
        ),
        ("INET4", ["10.0.0.2", "9.0.0.1", "0.0.0.0", "255.255.255.255", "10.0.0.10"]),
        ("INET6", ["2001:db8::ff00:0", "::", "::ffff:1.2.3.4", "fe80::1", "10::"]),
    ],
)
def test_tables_are_cut_by_uuids_and_addresses(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], kind: str, keys: list[str]
) -> None:
    name, cursor = database
    cursor.execute(f"CREATE TABLE t (id {kind} PRIMARY KEY)")
    cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    cursor.executemany("INSERT INTO t VALUES (%s)", [(key,) for key in keys])
    more = {"snapshot.mode": "no_data", "signal.data.collection": f"{name}.signals", "incremental.snapshot.chunk.size": "2"}
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True, **more)) as task:
        task.poll_until(lambda: any(value["source"]["snapshot"] == "last" for _, value in task.records))
        cursor.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{{\"data-collections\": [\"{name}.t\"]}}')")
        task.poll_until(lambda: len(task.rows("t")) == len(keys))
        cursor.execute("SELECT id FROM t ORDER BY id")
        assert [(op, row["id"]) for op, row in task.rows("t")] == [("r", str(key)) for (key,) in cursor.fetchall()]


def test_a_compressed_log_gives_the_same_rows(mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
    cursor.execute("INSERT INTO t VALUES (1, 'old')")
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
        try:
            cursor.execute("INSERT INTO t VALUES (2, REPEAT('a', 4000)), (3, REPEAT('b', 4000))")
            cursor.execute("UPDATE t SET v = REPEAT('c', 4000) WHERE id = 2")
            cursor.execute(f"ALTER TABLE t ADD w VARCHAR(200) DEFAULT '{'d' * 100}' COMMENT '{'e' * 900}'")
            cursor.execute("DELETE FROM t WHERE id = 3")
        finally:
            cursor.execute("SET GLOBAL log_bin_compress = OFF")
        task.poll_until(lambda: len(task.rows("t")) == 5)
    assert task.rows("t")[1:4] == [
        ("c", {"id": 2, "v": "a" * 4000}),
        ("c", {"id": 3, "v": "b" * 4000}),
        ("u", {"id": 2, "v": "c" * 4000}),
    ]
    assert task.rows("t")[4] == ("d", {"id": 3, "v": "b" * 4000, "w": "d" * 100})


def test_create_or_replace_gives_a_table_a_new_structure(mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    cursor.execute("INSERT INTO t VALUES (1, 1, 1)")
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("CREATE OR REPLACE TABLE t (v VARCHAR(5), id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES ('new', 2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    assert task.rows("t")[1] == ("c", {"v": "new", "id": 2})


def test_a_table_whose_versions_have_hidden_columns_shows_its_present_rows_and_their_changes(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]
) -> None:
    name, cursor = database
    cursor.execute("SET system_versioning_alter_history = KEEP, system_versioning_insert_history = ON")
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING")
    cursor.execute("CREATE TABLE later (id INT PRIMARY KEY)")
    cursor.execute(
        "CREATE TABLE pieces (id INT PRIMARY KEY, v INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME "
        "(PARTITION old HISTORY, PARTITION present CURRENT)"
    )
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    cursor.execute("UPDATE t SET v = 10 WHERE id = 1")
    config = task_config(mariadb, kafka, name, mariadb=True)
    with DirectTask(config) as task:
        task.poll_until(lambda: len(task.rows("t")) == 2)
        cursor.execute("INSERT INTO t VALUES (3, 3), (4, 4)")
        cursor.execute("UPDATE t SET v = v + 1 WHERE id > 2")
        cursor.execute("DELETE FROM t WHERE id < 3")
        cursor.execute("INSERT INTO t (id, v, row_start, row_end) VALUES (9, 9, '2001-01-01', '2002-01-01')")
        cursor.execute("REPLACE INTO t VALUES (4, 6), (5, 5)")
        cursor.execute("UPDATE t SET id = 7 WHERE id = 3")
        cursor.execute("DELETE HISTORY FROM t")
        # REPLACE is an update in the log since 11.8
        task.poll_until(lambda: ("c", {"id": 7, "v": 4}) in task.rows("t"))
        cursor.execute("INSERT INTO pieces VALUES (1, 1)")
        cursor.execute("UPDATE pieces SET v = 2")
    with DirectTask(config, task.offsets[-1]) as again:
        # what the history keeps tells of the hidden columns too
        cursor.execute("ALTER TABLE t ADD w VARCHAR(9) DEFAULT 'w' FIRST")
        cursor.execute("INSERT INTO t VALUES ('new', 8, 8)")
        cursor.execute("ALTER TABLE t DROP SYSTEM VERSIONING")
        cursor.execute("UPDATE t SET v = 0 WHERE id = 8")
        cursor.execute("ALTER TABLE later ADD SYSTEM VERSIONING")
        cursor.execute("INSERT INTO later VALUES (1), (2)")
        cursor.execute("DELETE FROM later WHERE id = 1")
        again.poll_until(lambda: len(again.rows("later")) == 3)
    replaced = [("d", {"id": 4, "v": 5}), ("c", {"id": 4, "v": 6})]
    if ("u", {"id": 4, "v": 6}) in task.rows("t"):
        replaced = [("u", {"id": 4, "v": 6})]
    assert task.rows("t") == [
        ("r", {"id": 1, "v": 10}), ("r", {"id": 2, "v": 2}), ("c", {"id": 3, "v": 3}), ("c", {"id": 4, "v": 4}),
        ("u", {"id": 3, "v": 4}), ("u", {"id": 4, "v": 5}), ("d", {"id": 1, "v": 10}), ("d", {"id": 2, "v": 2}),
        *replaced, ("c", {"id": 5, "v": 5}), ("d", {"id": 3, "v": 4}), ("c", {"id": 7, "v": 4}),
    ]  # fmt: skip
    assert again.rows("pieces") == [("c", {"id": 1, "v": 1}), ("u", {"id": 1, "v": 2})]
    assert again.rows("t") == [("c", {"w": "new", "id": 8, "v": 8}), ("u", {"w": "new", "id": 8, "v": 0})]
    assert again.rows("later") == [("c", {"id": 1}), ("c", {"id": 2}), ("d", {"id": 1})]


@pytest.mark.parametrize("metadata", ["NO_LOG", "FULL"])
def test_a_versioned_table_of_a_history_that_does_not_tell_of_it_is_looked_up(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], metadata: str
) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    settings = {"schema.history.internal.ddl.filter": "ALTER TABLE t ADD SYSTEM VERSIONING"}
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True, **settings)) as task:
        task.poll_until(lambda: task.offsets)
        cursor.execute("INSERT INTO t VALUES (1)")
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"SET GLOBAL binlog_row_metadata = {metadata}")
        try:
            cursor.execute("ALTER TABLE t ADD SYSTEM VERSIONING")
            cursor.execute("INSERT INTO t VALUES (2)")
            cursor.execute("DELETE FROM t WHERE id = 1")
        finally:
            cursor.execute("SET GLOBAL binlog_row_metadata = NO_LOG")
        task.poll_until(lambda: len(task.rows("t")) == 3)
    assert task.rows("t")[1:] == [("c", {"id": 2}), ("d", {"id": 1})]


#: With 32 bits and a sign, and since 11.5 without.
_NEVER = ("2038-01-19T03:14:07.999999Z", "2106-02-07T06:28:15.999999Z")


def test_versions_with_columns_of_their_own_come_as_rows(mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    """As Debezium 3.5 showed them."""
    name, cursor = database
    cursor.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, "
        "e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(s, e)) WITH SYSTEM VERSIONING"
    )
    cursor.execute("INSERT INTO t (id, v) VALUES (1, 1)")
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("UPDATE t SET v = 2")
        cursor.execute("DELETE FROM t")
        task.poll_until(lambda: len(task.rows("t")) == 5)
    assert [(op, row["v"], row["e"] in _NEVER) for op, row in task.rows("t")] == [
        ("r", 1, True), ("u", 2, True), ("c", 1, False), ("d", 2, True), ("c", 2, False),
    ]  # fmt: skip


@pytest.mark.parametrize("include", ["true", "false"])
def test_the_place_of_a_row_is_that_of_its_event(mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], include: str) -> None:
    """Of a transaction's events MariaDB 11.8 tells it only of the first and the last one."""
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True, **{"include.query": include})) as task:
        task.poll_until(lambda: task.offsets)
        for statement in (
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
            "COMMIT",
            "INSERT INTO t VALUES (3)",
        ):
            cursor.execute(statement)
        task.poll_until(lambda: ("c", {"id": 3}) in task.rows("t"))
    sources = [value["source"] for topic, value in task.records if topic.endswith(".t")]
    cursor.execute(f"SHOW BINLOG EVENTS IN '{sources[-1]['file']}' FROM {sources[0]['pos']} LIMIT 100")
    places = {(place, kind) for _, place, kind, *_ in cursor.fetchall()}
    kinds = ["Write_rows_v1", "Update_rows_v1", "Update_rows_v1", "Delete_rows_v1", "Write_rows_v1"]
    assert [(source["pos"], kind) for source, kind in zip(sources, kinds, strict=True) if (source["pos"], kind) not in places] == []


def test_a_connector_goes_on_from_a_replica_by_its_position_in_each_domain(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], tmp_path: Path
) -> None:
    name, cursor = database
    replica = MariaDbServer(tmp_path / "replica", "--log-slave-updates=ON", server_id=2)
    try:
        with replica.connect() as connection, connection.cursor() as other:
            cursor.execute("SELECT @@global.gtid_binlog_pos")
            # the replica begins where this test does
            other.execute("SET GLOBAL gtid_slave_pos = %s", (cursor.fetchone()[0],))
            other.execute(f"CREATE DATABASE IF NOT EXISTS {name}")
            other.execute(
                f"CHANGE MASTER TO MASTER_HOST='{mariadb.host}', MASTER_PORT={mariadb.port}, MASTER_USER='{mariadb.user}', "
                f"MASTER_PASSWORD='{mariadb.password}', MASTER_USE_GTID=slave_pos"
            )
            other.execute("START SLAVE")
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
            cursor.execute("INSERT INTO t VALUES (1)")
            config = task_config(mariadb, kafka, name, mariadb=True)
            with DirectTask(config) as task:
                task.poll_until(lambda: task.rows("t"))
                cursor.execute("INSERT INTO t VALUES (2)")
                task.poll_until(lambda: len(task.rows("t")) == 2)
            cursor.execute("INSERT INTO t VALUES (3)")
            cursor.execute("ALTER TABLE t ADD v INT")
            cursor.execute("SET gtid_domain_id = 7")
            cursor.execute("INSERT INTO t VALUES (4, 4)")
            cursor.execute("SELECT @@global.gtid_binlog_pos")
            other.execute("SELECT MASTER_GTID_WAIT(%s, 60)", (cursor.fetchone()[0],))
            other.execute("STOP SLAVE")
            other.execute(f"INSERT INTO {name}.t VALUES (5, 5)")
            elsewhere = {**config, "database.port": str(replica.port)}
            with DirectTask(elsewhere, task.offsets[-1]) as again:
                again.poll_until(lambda: len(again.rows("t")) == 3)
            assert again.rows("t") == [("c", {"id": 3}), ("c", {"id": 4, "v": 4}), ("c", {"id": 5, "v": 5})]
            shown = [value["source"]["gtid"].rpartition("-")[0] for topic, value in again.records if topic.endswith(".t")]
            assert shown == ["0-223344", "7-223344", "0-2"]
            # a position whose log was thrown away is named at the start
            deadline = time.monotonic() + 60
            other.execute("FLUSH BINARY LOGS")
            while other.execute("SHOW BINARY LOGS") > 1:  # a file stays while a session that ended a moment ago reads it
                assert time.monotonic() < deadline, "the server keeps its log"
                other.execute("SHOW MASTER STATUS")
                other.execute("PURGE BINARY LOGS TO %s", (other.fetchone()[0],))
            with DirectTask(elsewhere, task.offsets[-1]) as late, pytest.raises(FatalTaskError, match="no longer available on the server"):
                late.poll_until(lambda: late.rows("t"))
    finally:
        replica.stop()
