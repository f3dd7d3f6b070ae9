"""A primary and its replica: fail-over by GTIDs, sources that are left out, encrypted connections, and names in small letters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.errors import ConnectError, FatalTaskError
from connect_py.testing.services.mysql import MySqlServer
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services


def await_(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited 60 s for {what}"
        time.sleep(0.1)


class Pair:
    """A primary, and a replica that keeps a log of its own and stores names in small letters."""

    def __init__(self, primary: MySqlServer, replica: MySqlServer) -> None:
        self.primary, self.replica = primary, replica

    def run(self, server: MySqlServer, *statements: str) -> Any:
        with server.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def follow(self) -> None:
        """The replica begins to follow the primary."""
        self.run(
            self.replica,
            "RESET BINARY LOGS AND GTIDS",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={self.primary.port}, SOURCE_USER='{self.primary.user}', "
            f"SOURCE_PASSWORD='{self.primary.password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1",
            "START REPLICA",
        )

    def is_level(self) -> bool:
        wanted = self.run(self.primary, "SELECT @@global.gtid_executed")[0][0]
        return bool(self.run(self.replica, f"SELECT GTID_SUBSET('{wanted}', @@global.gtid_executed)")[0][0])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    primary = MySqlServer(tmp_path_factory.mktemp("primary"), server_id=1)
    replica = MySqlServer(tmp_path_factory.mktemp("replica"), "--lower-case-table-names=1", server_id=2)
    found = Pair(primary, replica)
    found.follow()
    yield found
    replica.stop()
    primary.stop()


def test_a_connector_goes_on_from_a_replica_by_its_gtids(pair: Pair, kafka: Kafka) -> None:
    pair.run(pair.primary, "CREATE DATABASE failover", "CREATE TABLE failover.t (id INT PRIMARY KEY)", "INSERT INTO failover.t VALUES (1)")
    config = task_config(pair.primary, kafka, "failover")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        pair.run(pair.primary, "INSERT INTO failover.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    # what nobody has read yet, with a structure that only the log tells; then the replica is the new primary, and writes itself
    pair.run(pair.primary, "INSERT INTO failover.t VALUES (3)", "ALTER TABLE failover.t ADD v INT", "INSERT INTO failover.t VALUES (4, 4)")
    await_(pair.is_level, "the replica")
    pair.run(pair.replica, "FLUSH BINARY LOGS", "INSERT INTO failover.t VALUES (5, 5)")
    elsewhere = {**config, "database.port": str(pair.replica.port)}
    with DirectTask(elsewhere, task.offsets[-1]) as again:
        again.poll_until(lambda: len(again.rows("t")) == 3)
    assert again.rows("t") == [("c", {"id": 3}), ("c", {"id": 4, "v": 4}), ("c", {"id": 5, "v": 5})]
    sources = [value["source"]["server_id"] for topic, value in again.records if topic.endswith(".t")]
    assert sources == [1, 1, 2], "the server where a row was written, not the one that was asked"


def test_rows_of_servers_that_are_left_out_make_no_records(pair: Pair, kafka: Kafka) -> None:
    pair.run(pair.primary, "CREATE DATABASE apart", "CREATE TABLE apart.t (id INT PRIMARY KEY)")
    await_(pair.is_level, "the replica")
    uuid = pair.run(pair.primary, "SELECT @@server_uuid")[0][0]
    config = task_config(pair.replica, kafka, "apart", **{"gtid.source.excludes": f"{uuid}"})
    pair.run(pair.replica, "INSERT INTO apart.t VALUES (100)")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        pair.run(pair.primary, "INSERT INTO apart.t VALUES (1)", "ALTER TABLE apart.t ADD v INT")
        await_(pair.is_level, "the replica")
        pair.run(pair.replica, "INSERT INTO apart.t VALUES (101, 1)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    # statements of the other server count all the same: its tables are ours
    assert task.rows("t") == [("r", {"id": 100}), ("c", {"id": 101, "v": 1})]


def test_a_log_that_was_thrown_away_is_a_named_error(pair: Pair, kafka: Kafka) -> None:
    pair.run(pair.primary, "CREATE DATABASE gone", "CREATE TABLE gone.t (id INT PRIMARY KEY)", "INSERT INTO gone.t VALUES (1)")
    config = task_config(pair.primary, kafka, "gone")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
    pair.run(pair.primary, "INSERT INTO gone.t VALUES (2)", "FLUSH BINARY LOGS")
    await_(pair.is_level, "the replica")
    file = pair.run(pair.primary, "SHOW BINARY LOG STATUS")[0][0]
    pair.run(pair.primary, f"PURGE BINARY LOGS TO '{file}'")
    with DirectTask(config, task.offsets[-1]) as again, pytest.raises(FatalTaskError, match="no longer available on the server"):
        again.poll_until(lambda: again.rows("t"))
    # the replica still has it all
    with DirectTask({**config, "database.port": str(pair.replica.port)}, task.offsets[-1]) as other:
        other.poll_until(lambda: other.rows("t"))
    assert other.rows("t") == [("c", {"id": 2})]


def test_names_that_do_not_differ_by_case_are_one_table(pair: Pair, kafka: Kafka) -> None:
    pair.run(
        pair.replica, "CREATE DATABASE Letters", "CREATE TABLE Letters.Mixed (id INT PRIMARY KEY)", "INSERT INTO letters.mixed VALUES (1)"
    )
    config = task_config(pair.replica, kafka, "letters", **{"table.include.list": "Letters.MIXED,letters.Next"})
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("mixed"))
        pair.run(pair.replica, "ALTER TABLE LETTERS.MIXED ADD v INT", "INSERT INTO Letters.mixeD VALUES (2, 2)")
        pair.run(pair.replica, "RENAME TABLE letters.Mixed TO letters.NEXT", "INSERT INTO letters.next VALUES (3, 3)")
        task.poll_until(lambda: task.rows("next"))
    assert task.rows("mixed") == [("r", {"id": 1}), ("c", {"id": 2, "v": 2})]
    pair.run(pair.replica, "INSERT INTO letters.next VALUES (4, 4)")
    with DirectTask(config, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("next"))
    assert again.rows("next") == [("c", {"id": 4, "v": 4})]


@pytest.mark.parametrize("mode", ["disabled", "preferred", "required", "verify_ca"])
def test_a_user_with_caching_sha2_is_let_in_by_each_mode_of_encryption(
    pair: Pair, kafka: Kafka, mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = next(Path(str(tmp_path_factory.getbasetemp())).glob("primary*/data"))
    pair.run(
        pair.primary,
        f"CREATE DATABASE tls_{mode}",
        f"CREATE TABLE tls_{mode}.t (id INT PRIMARY KEY)",
        f"INSERT INTO tls_{mode}.t VALUES (1)",
        # never seen before, so that the server has no hash of the password in its cache
        f"CREATE USER {mode} IDENTIFIED WITH caching_sha2_password BY 'secret'{'' if mode == 'disabled' else ' REQUIRE SSL'}",
        f"GRANT ALL ON *.* TO {mode}",
    )
    settings = {"database.user": mode, "database.password": "secret", "database.ssl.mode": mode}
    if mode == "verify_ca":
        settings["database.ssl.truststore"] = str(data / "ca.pem")
    with DirectTask(task_config(pair.primary, kafka, f"tls_{mode}", **settings)) as task:
        task.poll_until(lambda: task.rows("t"))
        pair.run(pair.primary, f"INSERT INTO tls_{mode}.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
        ciphers = pair.run(
            pair.primary,
            "SELECT VARIABLE_VALUE FROM performance_schema.status_by_thread JOIN performance_schema.threads USING (THREAD_ID) "
            f"WHERE VARIABLE_NAME = 'Ssl_cipher' AND PROCESSLIST_USER = '{mode}'",
        )
    assert ciphers and all(bool(cipher) is (mode != "disabled") for (cipher,) in ciphers)


def test_a_certificate_of_nobody_that_is_trusted_is_refused(pair: Pair, kafka: Kafka) -> None:
    config = task_config(pair.primary, kafka, "failover", **{"database.ssl.mode": "verify_ca", "errors.max.retries": "0"})
    with DirectTask(config) as task, pytest.raises(ConnectError, match=r"(?i)certificate"):
        task.poll_until(lambda: task.rows("t"), seconds=20)
