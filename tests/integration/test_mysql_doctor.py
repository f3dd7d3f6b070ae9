"""The doctor of MySQL and MariaDB connectors on real servers: plant a fault, see its finding, run the printed statements, see it gone."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pymysql
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api import Diagnosis, Finding, Person
from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.relational.tables import TableId
from connectors.mysql.checks import Facts, Grants, Locking, TableFacts, Wanted, all_findings
from connectors.mysql.doctor import diagnose
from tests.fix_kafka import Kafka
from tests.mysql_task import mysql_source

pytestmark = pytest.mark.services

PASSWORD = "correct-horse"


@dataclass
class Place:
    """A database that has all that a connector needs: two tables, and a user with its grants."""

    server: MySqlAddress
    bootstrap: str
    database: str
    admin: pymysql.connections.Connection[pymysql.cursors.Cursor]
    connector: str = "mysql"

    @property
    def user(self) -> str:
        return f"u_{self.database}"

    def run(self, *statements: str) -> None:
        with self.admin.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement.format(db=self.database, user=f"'{self.user}'@'%'"))

    def look(self, *, is_running: bool = False, **more: str) -> Diagnosis:
        own = {"database_user": self.user, "database_password": PASSWORD, **more}
        config = {"name": self.database, **mysql_source(self.server, self.bootstrap, self.database, **own)}
        return diagnose(config, self.connector, is_running=is_running)

    def repair(self, findings: Sequence[Finding]) -> None:
        """Run what was printed, as it stands."""
        with self.admin.cursor() as cursor:
            for finding in findings:
                for statement in finding.statements:
                    cursor.execute(statement)


@contextlib.contextmanager
def prepared(server: MySqlAddress, kafka: Kafka, connector: str) -> Iterator[Place]:
    with contextlib.closing(server.connect()) as admin:
        found = Place(server, kafka.bootstrap, f"doc_{uuid.uuid4().hex[:8]}", admin, connector)
        client = "BINLOG MONITOR" if connector == "mariadb" else "REPLICATION CLIENT"
        found.run(
            "CREATE DATABASE {db}",
            "CREATE TABLE {db}.a (id INT PRIMARY KEY, t TEXT)",
            "CREATE TABLE {db}.b (id INT PRIMARY KEY)",
            f"CREATE USER {{user}} IDENTIFIED BY '{PASSWORD}'",
            f"GRANT RELOAD, REPLICATION SLAVE, {client} ON *.* TO {{user}}",
            "GRANT SELECT ON {db}.* TO {user}",
        )
        yield found
        found.run("DROP DATABASE {db}", "DROP USER {user}")


@pytest.fixture
def place(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Place]:
    with prepared(mysql, kafka, "mysql") as found:
        yield found


@pytest.fixture
def maria(mariadb: MySqlAddress, kafka: Kafka) -> Iterator[Place]:
    with prepared(mariadb, kafka, "mariadb") as found:
        yield found


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


FAULTS = {
    "replication slave": (["REVOKE REPLICATION SLAVE ON *.* FROM {user}"], "mysql.grants", {}),
    "reload": (["REVOKE RELOAD ON *.* FROM {user}"], "mysql.grants", {}),
    "everything": (
        ["REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}"],
        "mysql.grants",
        {"table_include_list": "{db}.a,{db}[.]b"},
    ),
    "binlog_format": (["SET GLOBAL binlog_format = 'STATEMENT'"], "mysql.binlog_format", {}),
    "partial_json": (
        ["SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'", "SET GLOBAL binlog_row_image = 'NOBLOB'"],
        "mysql.binlog_row_value_options",
        {},
    ),
    "binlog_row_image": (["SET GLOBAL binlog_row_image = 'MINIMAL'"], "mysql.binlog_row_image", {}),
    "expiry": (["SET GLOBAL binlog_expire_logs_seconds = 3600"], "mysql.binlog_expire", {}),
    "engine": (["ALTER TABLE {db}.a ENGINE = MyISAM"], "mysql.tables.engine", {}),
    "no signal table": (
        ["GRANT SELECT ON {db}.* TO {user}"],
        "mysql.signal",
        {"signal_data_collection": "{db}.signal", "incremental_snapshot_watermarking_strategy": "insert_delete"},
    ),
    "other signal table": (["CREATE TABLE {db}.signal (id INT)"], "mysql.signal", {"signal_data_collection": "{db}.signal"}),
}


def mend(place: Place, fault: str) -> None:
    plant, check, more = FAULTS[fault]
    wanted = {name: text.format(db=place.database) for name, text in more.items()}
    place.run(*plant)
    found = place.look(**wanted)
    assert (checks(found), found.code) == ([check], 1)
    assert found.findings[0].statements and found.findings[0].who is Person.DBA
    place.repair(found.findings)
    assert place.look(**wanted).findings == []


def test_a_server_that_has_everything_gives_no_finding(place: Place) -> None:
    found = place.look()
    assert (found.findings, found.unseen, found.code) == ([], [], 0)
    assert found.topics == [f"{place.database}.{place.database}.{table}" for table in "ab"]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_printed_statement_mends_a_planted_fault(place: Place, fault: str) -> None:
    mend(place, fault)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_mariadbs_statements_mend_its_faults(maria: Place, fault: str) -> None:
    assert maria.look().findings == []
    mend(maria, fault)


def test_many_faults_are_found_in_one_run(place: Place) -> None:
    try:
        for fault in ("replication slave", "reload", "binlog_format", "binlog_row_image", "expiry", "engine"):
            place.run(*FAULTS[fault][0])
        place.run("CREATE TABLE {db}.keyless (id INT)")
        seconds = []
        for _ in range(3):  # the least of them, since the machine of a test may be busy
            began = time.monotonic()
            found = place.look(signal_data_collection=f"{place.database}.signal", database_server_id="223344")
            seconds.append(time.monotonic() - began)
        assert checks(found) == [
            "mysql.binlog_format",
            "mysql.binlog_row_image",
            "mysql.binlog_expire",
            "mysql.server_id",
            "mysql.grants",
            "mysql.tables.engine",
            "mysql.tables.key",
            "mysql.signal",
        ]
        assert min(seconds) <= 5
    finally:
        place.repair([finding for finding in found.findings if finding.check.startswith("mysql.binlog")])


def test_names_that_the_user_does_not_see_and_filters_without_a_table_are_found(place: Place) -> None:
    found = place.look(database_include_list=f"{place.database},elsewhere", table_include_list=f"{place.database}.a,elsewhere.t")
    assert checks(found) == ["mysql.grants"]
    assert found.findings[0].statements == (f"GRANT SELECT ON `elsewhere`.* TO '{place.user}'@'%';",)
    assert checks(place.look(table_include_list="nothing.*")) == ["mysql.tables.none"]


def test_rights_that_come_by_a_default_role_count(place: Place) -> None:
    place.run(
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}",
        "CREATE ROLE '{db}_role'",
        "GRANT RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{db}_role'",
        "GRANT SELECT ON {db}.* TO '{db}_role'",
        "GRANT '{db}_role' TO {user}",
    )
    try:
        assert "mysql.grants" in checks(place.look()), "a role that is not active gives no right"
        place.run("SET DEFAULT ROLE ALL TO {user}")
        assert place.look().findings == []
    finally:
        place.run("DROP ROLE '{db}_role'")


def test_a_history_that_loses_records_is_found(place: Place) -> None:
    topic = f"history_{place.database}"
    admin = AdminClient({"bootstrap.servers": place.bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "1000"})])[topic].result(30)
    found = place.look(schema_history_internal_kafka_topic=topic)
    assert checks(found) == ["mysql.history.partitions", "mysql.history.retention"]
    assert found.findings[1].statements[0].endswith(f"--entity-name {topic} --add-config retention.ms=-1")
    unreached = place.look(schema_history_internal_kafka_bootstrap_servers="127.0.0.1:1")
    assert (checks(unreached), unreached.code) == (["mysql.history.connection"], 3)


def test_a_history_of_another_connector_is_found(place: Place) -> None:
    topic, own = f"history_{place.database}", f"own_{place.database}"
    admin = AdminClient({"bootstrap.servers": place.bootstrap})
    forever = {"retention.ms": "-1"}
    for made in admin.create_topics([NewTopic(name, 1, 1, config=forever) for name in (topic, own)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": place.bootstrap})
    for name, server in ((topic, "somebody"), (own, place.database)):
        producer.produce(name, json.dumps({"source": {"server": server}, "position": {}, "ddl": "SET @a = 1"}).encode(), partition=0)
    assert producer.flush(20) == 0
    found = place.look(schema_history_internal_kafka_topic=topic)
    assert checks(found) == ["mysql.history.owner"] and "topic.prefix=somebody" in found.findings[0].what
    assert place.look(schema_history_internal_kafka_topic=own).findings == []


@pytest.mark.parametrize(
    ("more", "advice"),
    [({"database_password": "wrong-horse"}, "database.password"), ({"database_port": "1"}, "database.port")],
)
def test_a_server_that_cannot_be_used_is_a_finding_and_unseen(place: Place, more: dict[str, str], advice: str) -> None:
    found = place.look(**more)
    assert (checks(found), found.code) == (["mysql.connection"], 3)
    assert advice in found.findings[0].advice and "horse" not in str(found)


def test_rds_says_how_long_it_keeps_the_log(place: Place) -> None:
    place.run(
        "CREATE TABLE mysql.rds_configuration (name VARCHAR(100), value VARCHAR(100), description VARCHAR(300))",
        "INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL, '')",
        "GRANT SELECT ON mysql.rds_configuration TO {user}",
    )
    try:
        found = place.look()
        assert checks(found) == ["mysql.rds_retention", "mysql.grants"]
        assert found.findings[0].statements == ("CALL mysql.rds_set_configuration('binlog retention hours', 168);",)
        # RDS gives nobody the global lock
        assert found.findings[1].statements == (f"GRANT LOCK TABLES ON `{place.database}`.* TO '{place.user}'@'%';",)
        place.repair(found.findings[1:])
        assert checks(place.look()) == ["mysql.rds_retention"]
    finally:
        place.run("DROP TABLE mysql.rds_configuration")


RDS = {"basedir": "/rdsdbbin/mysql/"}
PERCONA = {"version_comment": "Percona Server (GPL), Release 1"}

# -- what a running server cannot be made to be ----------------------------------------------------------------------------------------


def test_servers_without_log_or_gtids_are_found() -> None:
    grants = Grants.parse(["GRANT ALL PRIVILEGES ON *.* TO `app`@`%`"])
    usual = {"log_bin": "ON", "binlog_format": "ROW", "server_id": "7", "gtid_mode": "ON", "log_replica_updates": "ON"}

    def found(wanted: Wanted, *, is_replica: bool = False, signals: bool = False, **variables: str) -> list[str]:
        signal = (TableId("shop", "signals"), 3) if signals else None
        facts = Facts("'app'@'%'", False, "8.4.0", usual | variables, grants, is_replica=is_replica, signal=signal)
        return [finding.check for finding in all_findings(facts, wanted) if finding.check != "mysql.tables.none"]

    assert found(Wanted(8)) == []
    assert found(Wanted(8), log_bin="OFF") == ["mysql.log_bin"]
    assert found(Wanted(8, streams=False), log_bin="OFF") == []
    assert found(Wanted(8, read_only=True), gtid_mode="OFF") == ["mysql.gtid_mode"]
    assert found(Wanted(8), is_replica=True, log_replica_updates="OFF") == ["mysql.log_replica_updates"]
    assert found(Wanted(7)) == ["mysql.server_id"]
    assert found(Wanted(8, accepts_minimal=True), binlog_row_image="MINIMAL") == []
    partial = {"binlog_row_value_options": "PARTIAL_JSON"}
    assert found(Wanted(8), binlog_row_image="FULL", **partial) == []
    assert found(Wanted(8), binlog_row_image="NOBLOB", **partial) == ["mysql.binlog_row_value_options"]
    assert found(Wanted(8), binlog_row_image="MINIMAL", **partial) == ["mysql.binlog_row_image"]
    assert found(Wanted(8), signals=True, binlog_order_commits="OFF") == []
    assert found(Wanted(8), binlog_order_commits="OFF", gtid_mode="OFF") == []
    assert found(Wanted(8), signals=True, binlog_order_commits="OFF", gtid_mode="OFF") == ["mysql.binlog_order_commits"]


@pytest.mark.parametrize(
    ("rights", "locking", "variables", "statements"),
    [
        ("RELOAD", Locking(), {}, ()),
        ("FLUSH_TABLES", Locking(), {}, ()),
        ("LOCK TABLES", Locking(), {}, ("GRANT RELOAD ON *.* TO 'app'@'%';",)),
        ("LOCK TABLES", Locking(flushes=False), {}, ()),
        ("LOCK TABLES, RELOAD", Locking(), RDS, ()),
        ("LOCK TABLES", Locking(flushes=False), RDS, ()),
        ("RELOAD", Locking(), RDS, ("GRANT LOCK TABLES ON `shop`.* TO 'app'@'%';",)),
        ("LOCK TABLES", Locking(), RDS, ("GRANT RELOAD ON *.* TO 'app'@'%';",)),
        ("USAGE", Locking(), RDS, ("GRANT RELOAD ON *.* TO 'app'@'%';", "GRANT LOCK TABLES ON `shop`.* TO 'app'@'%';")),
        ("USAGE", Locking("none"), {}, ()),
        ("USAGE", Locking("extended"), {}, ("GRANT RELOAD ON *.* TO 'app'@'%';",)),
        ("RELOAD", Locking("minimal_percona"), PERCONA, ("GRANT BACKUP_ADMIN ON *.* TO 'app'@'%';",)),
        ("BACKUP_ADMIN", Locking("minimal_percona_no_table_locks"), PERCONA, ()),
        ("LOCK TABLES, RELOAD", Locking("minimal_percona"), {}, ()),
        ("LOCK TABLES, RELOAD", Locking("minimal_percona_no_table_locks"), {}, None),
    ],
)
def test_the_rights_of_each_way_to_lock(
    rights: str, locking: Locking, variables: dict[str, str], statements: tuple[str, ...] | None
) -> None:
    grants = Grants.parse([f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT, {rights} ON *.* TO `app`@`%`"])
    usual = {"log_bin": "ON", "binlog_format": "ROW", "server_id": "7", "version": "8.4.0", **variables}
    facts = Facts("'app'@'%'", False, "8.4.0", usual, grants, [TableFacts(TableId("shop", "a"))])
    found = all_findings(facts, Wanted(8, locking=locking))
    assert [finding.check for finding in found] == (["mysql.locking_mode"] if statements is None else ["mysql.grants"] * bool(statements))
    assert statements is None or tuple(text for finding in found for text in finding.statements) == statements


def test_grants_are_read_by_place_pattern_and_column() -> None:
    grants = Grants.parse(
        [
            "GRANT USAGE ON *.* TO `app`@`%`",
            "GRANT SELECT, LOCK TABLES ON `shop\\_%`.* TO `app`@`%`",
            "GRANT SELECT (`id`, `name`), INSERT ON `other`.`t` TO `app`@`%`",
            "GRANT `reader`@`%` TO `app`@`%`",
        ]
    )
    assert grants.has("SELECT", TableId("shop_1", "x")) and not grants.has("SELECT", TableId("shop1", "x"))
    assert grants.has("SELECT", TableId("other", "t")) and not grants.has("SELECT", TableId("other", "u"))
    assert not grants.has("RELOAD") and not grants.has("SELECT")
