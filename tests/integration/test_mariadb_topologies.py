"""MariaDB servers beside each other and how they are reached: transactions of several domains, and encryption."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlAddress, mariadbd
from connect_py.app.services.process import ServiceError
from connect_py.errors import ConnectError
from tests.binlog_task import DirectTask, task_config
from tests.certificates import Identity
from tests.fix_kafka import Kafka
from tests.mysql_replicas import run

pytestmark = pytest.mark.services


@pytest.fixture
def database(mariadb: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database of its own with the table `t`, which has one row, and a cursor in it."""
    name = f"domains_{uuid.uuid4().hex[:8]}"
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        yield name, cursor
        cursor.execute("SET gtid_domain_id = 0")
        cursor.execute(f"DROP DATABASE {name}")


FILTERS = {
    "domains that are taken": {"gtid.source.includes": "0-.*"},
    "one server of a domain": {"gtid.source.includes": "0-223344"},
    "domains that are left out": {"gtid.source.excludes": "7-.*,9-.*"},
    "a server that is left out": {"gtid.source.excludes": "7-223344"},
}


@pytest.mark.parametrize("filter_", FILTERS)
def test_rows_of_sources_that_are_left_out_make_no_records(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], filter_: str
) -> None:
    """As Debezium 3.5 showed them; `domain-server` is what the filters see."""
    name, cursor = database
    config = task_config(mariadb, kafka, name, mariadb=True, **FILTERS[filter_])
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("INSERT INTO t VALUES (2, 2)")
        cursor.execute("SET gtid_domain_id = 7")
        cursor.execute("INSERT INTO t VALUES (3, 3)")
        cursor.execute("ALTER TABLE t ADD w INT")
        cursor.execute("INSERT INTO t VALUES (4, 4, 4)")
        cursor.execute("SET gtid_domain_id = 0")
        cursor.execute("INSERT INTO t VALUES (5, 5, 5)")
        task.poll_until(lambda: len(task.rows("t")) == 3)
    # statements of all sources count: the tables are ours
    assert [row for _, row in task.rows("t")] == [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 5, "v": 5, "w": 5}]
    assert {part.rpartition("-")[0] for part in task.offsets[-1]["gtids"].split(",")} >= {"0-223344", "7-223344"}
    cursor.execute("ALTER TABLE t DROP w")
    cursor.execute("INSERT INTO t VALUES (6, 6)")
    with DirectTask(config, task.offsets[-1]) as again:
        again.poll_until(lambda: again.rows("t"))
        cursor.execute("SET gtid_domain_id = 7")
        cursor.execute("INSERT INTO t VALUES (7, 7)")
        cursor.execute("SET gtid_domain_id = 0")
        cursor.execute("INSERT INTO t VALUES (8, 8)")
        again.poll_until(lambda: len(again.rows("t")) == 2)
    assert again.rows("t") == [("c", {"id": 6, "v": 6}), ("c", {"id": 8, "v": 8})]


def test_rows_of_sources_that_are_left_out_of_positions_only_are_records(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]
) -> None:
    name, cursor = database
    settings = {"gtid.source.excludes": "7-.*", "gtid.source.filter.dml.events": "false"}
    with DirectTask(task_config(mariadb, kafka, name, mariadb=True, **settings)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("SET gtid_domain_id = 7")
        cursor.execute("INSERT INTO t VALUES (2, 2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)


def test_a_server_that_lacks_a_domain_takes_over_where_the_domain_is_left_out(
    mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any], tmp_path: Path
) -> None:
    name, cursor = database
    replica = MariaDbServer(tmp_path / "replica", "--log-slave-updates=ON", server_id=2)
    try:
        cursor.execute("SELECT @@global.gtid_binlog_pos")
        (position,) = cursor.fetchone()
        ours = ",".join(part for part in position.split(",") if part.startswith("0-"))
        run(
            replica,
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
            "RESET MASTER",
            f"SET GLOBAL gtid_slave_pos = '{ours}'",
            f"CHANGE MASTER TO MASTER_HOST='{mariadb.host}', MASTER_PORT={mariadb.port}, MASTER_USER='{mariadb.user}', "
            f"MASTER_PASSWORD='{mariadb.password}', MASTER_USE_GTID=slave_pos, IGNORE_DOMAIN_IDS=(7)",
            "START SLAVE",
        )
        config = task_config(mariadb, kafka, name, mariadb=True, **{"gtid.source.includes": "0-.*"})
        with DirectTask(config) as task:
            task.poll_until(lambda: task.rows("t"))
            cursor.execute("SET gtid_domain_id = 7")
            cursor.execute("INSERT INTO t VALUES (2, 2)")
            cursor.execute("SET gtid_domain_id = 0")
            cursor.execute("INSERT INTO t VALUES (3, 3)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
        cursor.execute("INSERT INTO t VALUES (4, 4)")
        cursor.execute("SELECT @@global.gtid_binlog_pos")
        last = next(part for part in cursor.fetchone()[0].split(",") if part.startswith("0-"))
        run(replica, f"SELECT MASTER_GTID_WAIT('{last}', 60)")
        with DirectTask({**config, "database.port": str(replica.port)}, task.offsets[-1]) as other:
            other.poll_until(lambda: other.rows("t"))
        assert other.rows("t") == [("c", {"id": 4, "v": 4})]
    finally:
        replica.stop()


# -- encryption ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MariaDbServer, Identity, Path]]:
    """A server whose certificate names its address, who signed it, and the folder of that authority's certificate `ca.pem`."""
    try:
        mariadbd()
    except ServiceError as error:
        pytest.skip(str(error))
    stores = tmp_path_factory.mktemp("stores")
    authority = Identity("authority")
    identity = Identity("server", authority)
    (stores / "ca.pem").write_text(authority.chain_pem)
    (stores / "server.pem").write_text(identity.chain_pem)
    (stores / "server.key").write_text(identity.key_pem())
    options = [f"--ssl-ca={stores}/ca.pem", f"--ssl-cert={stores}/server.pem", f"--ssl-key={stores}/server.key"]
    server = MariaDbServer(tmp_path_factory.mktemp("encrypted"), *options)
    run(server, "CREATE DATABASE tls", "CREATE TABLE tls.t (id INT PRIMARY KEY)", "INSERT INTO tls.t VALUES (0)")
    yield server, authority, stores
    server.stop()


@pytest.mark.parametrize("mode", ["disable", "trust", "verify-ca", "verify-full"])
def test_each_mode_of_encryption_is_what_it_says(encrypted: tuple[MariaDbServer, Identity, Path], kafka: Kafka, mode: str) -> None:
    server, _, stores = encrypted
    user = mode.replace("-", "_")
    wanted = "" if mode == "disable" else " REQUIRE SSL"
    run(server, f"CREATE USER {user} IDENTIFIED BY 'secret'{wanted}", f"GRANT ALL ON *.* TO {user}")
    settings = {"database.user": user, "database.password": "secret", "database.ssl.mode": mode, "errors.max.retries": "0"}
    if mode.startswith("verify"):
        settings["database.ssl.truststore"] = str(stores / "ca.pem")
    config = task_config(server, kafka, "tls", mariadb=True, **settings)
    with DirectTask(config) as task:
        task.poll_until(lambda: task.rows("t"))
        (highest,) = run(server, "SELECT MAX(id) FROM tls.t")[0]
        run(server, f"INSERT INTO tls.t VALUES ({highest + 1})")
        task.poll_until(lambda: ("c", {"id": highest + 1}) in task.rows("t"))
    by_name = {**config, "database.hostname": "localhost"}
    if mode == "verify-full":
        with DirectTask(by_name) as refused, pytest.raises(ConnectError, match=r"(?i)hostname mismatch|doesn.t match"):
            refused.poll_until(lambda: refused.rows("t"), seconds=20)
    if mode == "verify-ca":
        with DirectTask(by_name) as other:
            other.poll_until(lambda: other.rows("t"))
        strange = {name: value for name, value in config.items() if name != "database.ssl.truststore"}
        with DirectTask(strange) as refused, pytest.raises(ConnectError, match=r"(?i)certificate"):
            refused.poll_until(lambda: refused.rows("t"), seconds=20)


def test_a_user_who_must_show_a_certificate_is_let_in(
    encrypted: tuple[MariaDbServer, Identity, Path], kafka: Kafka, tmp_path: Path
) -> None:
    server, authority, stores = encrypted
    run(server, "CREATE USER mutual IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=connector'", "GRANT ALL ON *.* TO mutual")
    identity = Identity("connector", authority)
    (tmp_path / "own.p12").write_bytes(identity.p12("store"))
    settings = {"database.user": "mutual", "database.password": "secret", "database.ssl.mode": "verify-ca", "errors.max.retries": "0"}
    config = task_config(server, kafka, "tls", mariadb=True, **settings, **{"database.ssl.truststore": str(stores / "ca.pem")})
    shown = {"database.ssl.keystore": str(tmp_path / "own.p12"), "database.ssl.keystore.password": "store"}
    with DirectTask({**config, **shown}) as task:
        task.poll_until(lambda: task.rows("t"))
        run(server, "INSERT INTO tls.t VALUES (1000)")
        task.poll_until(lambda: ("c", {"id": 1000}) in task.rows("t"))
    with DirectTask(config) as nobody, pytest.raises(ConnectError, match="Access denied"):
        nobody.poll_until(lambda: nobody.rows("t"), seconds=20)


def test_a_server_without_encryption_is_refused_where_it_is_wanted(mariadb: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("SELECT @@have_ssl")
    if cursor.fetchone()[0] == "YES":
        pytest.skip("this version makes a certificate for itself")
    settings = {"database.ssl.mode": "trust", "errors.max.retries": "0", "database.password": "wrong: it is not even looked at"}
    config = task_config(mariadb, kafka, name, mariadb=True, **settings)
    with DirectTask(config) as task, pytest.raises(ConnectError, match="SSL is required but the server doesn't support it"):
        task.poll_until(lambda: task.rows("t"), seconds=20)
