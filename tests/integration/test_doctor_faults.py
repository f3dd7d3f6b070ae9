"""Many faults at once, over five connectors, a worker and Kafka with ACLs: one run of the command finds all of them within five seconds.
Then each printed statement is run as the person it names, the rest is mended by hand, and a last run finds nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from connect_py.app.cli import main
from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from spark_sink.spark.jars import SINK_JARS, cached
from tests.fix_kafka import GuardedKafka, Kafka
from tests.fix_postgres import postgres_source
from tests.integration.test_kafka_doctor import make
from tests.kafka_commands import run
from tests.mongo_task import config as mongo_source
from tests.mongo_task import database as mongo_database
from tests.mysql_task import mysql_source
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.long]

SECRET = "correct-horse"
CREATES = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
KINDS = ("config", "offset", "status")
Answer = Mapping[str, Any]


@dataclass
class Site:
    """Everything that the command looks at, and its administrators."""

    tag: str
    folder: Path
    kafka: GuardedKafka
    postgres: psycopg.Connection[tuple[object, ...]]
    mysql: pymysql.connections.Connection[pymysql.cursors.Cursor]
    mariadb: pymysql.connections.Connection[pymysql.cursors.Cursor]
    worker: dict[str, str] = field(default_factory=dict)
    connectors: dict[str, dict[str, str]] = field(default_factory=dict)

    def write(self) -> list[str]:
        """Write all files; return the command's arguments."""
        properties = self.folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self.worker.items()))
        for name, config in self.connectors.items():
            (self.folder / f"{name}.json").write_text(json.dumps({"name": name, "config": config}))
        return [*(str(self.folder / f"{name}.json") for name in self.connectors), "--worker-properties", str(properties)]

    def look(self, capsys: pytest.CaptureFixture[str]) -> tuple[Answer, float]:
        """The answer in which everything was seen, and its seconds; the first run also loads all drivers, which on a busy machine may
        take longer than servers are waited for."""
        tries: list[Answer] = []

        def attempt() -> tuple[Answer, float] | None:
            began = time.monotonic()
            code = main(["doctor", *self.write(), "--json"])
            tries.append(json.loads(capsys.readouterr().out))
            assert tries[-1]["code"] == code
            return None if tries[-1]["unseen"] else (tries[-1], time.monotonic() - began)

        return eventually(attempt, lambda: f"was not seen: {tries[-1]['unseen']}")

    def allow(self, user: str, operations: str, *topics: str) -> None:
        """Rights that are not planted as missing."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for topic in topics
            for operation in operations.split()
        ]
        for future in admin.create_acls(bindings).values():
            future.result(30)

    def execute(self, finding: Mapping[str, Any]) -> None:
        """Run what was printed, as the person it names, on the server that it is for."""
        connector = finding["what"].partition(": ")[0]
        for statement in finding["statements"]:
            match finding["who"], connector:
                case "kafka-admin", _:
                    run(statement, self.kafka.bootstrap)
                case "dba", "pg" | "lake":
                    self.postgres.execute(statement.encode())
                case "dba", "my" | "maria":
                    with (self.mysql if connector == "my" else self.mariadb).cursor() as cursor:
                        cursor.execute(statement)
                case other:
                    pytest.fail(f"nobody runs {statement} of {other}")


def sql(connection: pymysql.connections.Connection[pymysql.cursors.Cursor], *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def site(
    guarded_kafka: GuardedKafka,
    postgres: PostgresAddress,
    database: str,
    mysql: MySqlAddress,
    mariadb: MySqlAddress,
    mongo: MongoAddress,
    tag: str,
    tmp_path: Path,
) -> Iterator[Site]:
    """Faults of everything."""
    with (
        postgres.connect(database) as pg,
        contextlib.closing(mysql.connect()) as my,
        contextlib.closing(mariadb.connect()) as maria,
        mongo_database(mongo) as documents,
    ):
        pg.autocommit = True
        found = Site(tag, tmp_path, guarded_kafka, pg, my, maria)
        try:
            _plant_kafka(found)
            _plant_postgres(found)
            _plant_mysql(found)
            found.worker = {
                "group.id": tag,
                "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "listeners": "http://127.0.0.1:8083",
                "ofset.flush.interval.ms": "1",
                **{f"{kind}.storage.topic": f"{tag}-{kind}" for kind in KINDS},
                **{f"{kind}.storage.replication.factor": "1" for kind in KINDS},
                **guarded_kafka.login("worker"),
                **guarded_kafka.login("writer", "producer."),
                **guarded_kafka.login("reader", "consumer."),
            }
            history = {
                f"schema.history.internal.{client}.{name}": value
                for client in ("producer", "consumer")
                for name, value in guarded_kafka.login("writer").items()
            }
            login = {"database.user": f"app_{tag}", "database.password": SECRET, **CREATES}
            relational = {**login, **history, "schema.history.internal.kafka.bootstrap.servers": guarded_kafka.guarded}
            collections = f"{documents.name}.nothing"
            found.connectors = {
                "pg": {
                    **postgres_source(
                        postgres, database, tag, publication_autocreate_mode="disabled", signal_data_collection="public.signal"
                    ),
                    **login,
                    "tabel.include.list": "x",
                    "table.exclude.list": "public.p_1",
                },
                "my": {
                    **mysql_source(mysql, guarded_kafka.guarded, f"my_{tag}", signal_data_collection=f"my_{tag}.signal"),
                    **relational,
                    "database.server.id": "223344",
                    "schema.history.internal.kafka.topic": f"{tag}-history-my",
                },
                "maria": {
                    **mysql_source(mariadb, guarded_kafka.guarded, f"maria_{tag}"),
                    **relational,
                    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
                    "schema.history.internal.kafka.topic": f"{tag}-history-maria",
                },
                "mongo": {**mongo_source(mongo, documents, collection_include_list=collections), **CREATES},
                "lake": {
                    "connector.class": "io.github.connectpy.spark.SparkLakehouseSink",
                    "topics": f"pg_{tag}.public.a",
                    "lakehouse.catalog.type": "jdbc",
                    "lakehouse.catalog.uri": f"jdbc:postgresql://{postgres.host}:{postgres.port}/{database}",
                    "lakehouse.catalog.jdbc.user": f"lake_{tag}",
                    "lakehouse.catalog.jdbc.password": SECRET,
                    "lakehouse.catalog.warehouse": f"file://{tmp_path}/lake",
                    "lakehouse.tables.auto-create-enabled": "true",
                },
            }
            yield found
        finally:
            pg.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            pg.execute("SELECT pg_reload_conf()")
            for role in ("app", "lake"):
                pg.execute(f"DROP OWNED BY {role}_{tag}; DROP ROLE {role}_{tag}".encode())
            sql(
                my,
                f"DROP DATABASE my_{tag}",
                f"DROP USER app_{tag}",
                "SET GLOBAL binlog_format = 'ROW'",
                "SET GLOBAL binlog_row_image = 'FULL'",
                "SET PERSIST binlog_expire_logs_seconds = 2592000",
                "RESET PERSIST",
            )
            sql(maria, f"DROP DATABASE maria_{tag}", f"DROP USER app_{tag}")


def _plant_kafka(site: Site) -> None:
    broker, tag = Kafka(site.kafka.bootstrap), site.tag
    make(broker, f"{tag}-config", partitions=2, cleanup_policy="compact")
    make(broker, f"{tag}-offset", cleanup_policy="delete", min_insync_replicas="2")
    make(broker, f"{tag}-status", cleanup_policy="compact")
    make(broker, f"{tag}-history-maria", partitions=2, retention_ms="1000")
    make(broker, f"pg_{tag}.public.a", max_message_bytes="1000")
    make(broker, f"pg_{tag}.public.b", retention_ms="60000")
    # the worker may use two of its topics, and look at two of the connector's; nobody else may do anything
    site.allow("worker", "READ WRITE DESCRIBE_CONFIGS", f"{tag}-config", f"{tag}-offset", f"pg_{tag}.public.a", f"pg_{tag}.public.b")
    site.allow("writer", "READ WRITE DESCRIBE_CONFIGS", f"{tag}-history-maria")


def _plant_postgres(site: Site) -> None:
    tag = site.tag
    for statement in (
        f"CREATE ROLE app_{tag} LOGIN PASSWORD '{SECRET}'",
        f"CREATE ROLE lake_{tag} LOGIN PASSWORD '{SECRET}'",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "CREATE TABLE a (id int PRIMARY KEY, t text)",
        "ALTER TABLE a ALTER t SET STORAGE EXTERNAL, ENABLE ROW LEVEL SECURITY",
        "INSERT INTO a VALUES (1, repeat('x', 100000))",
        "CREATE TABLE b (id int)",
        "CREATE UNLOGGED TABLE c (id int PRIMARY KEY)",
        "CREATE TABLE d (id int PRIMARY KEY)",
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
        f"GRANT SELECT ON a TO app_{tag}",
        f"CREATE PUBLICATION pub_{tag} FOR TABLE a, b WITH (publish = 'insert')",
        f"SELECT pg_create_physical_replication_slot('slot_{tag}')",
        "ALTER SYSTEM SET max_slot_wal_keep_size = '100MB'",
        "SELECT pg_reload_conf()",
    ):
        site.postgres.execute(statement.encode())


def _plant_mysql(site: Site) -> None:
    tag = site.tag
    sql(
        site.mysql,
        f"CREATE DATABASE my_{tag}",
        f"CREATE TABLE my_{tag}.a (id INT PRIMARY KEY) ENGINE = MyISAM",
        f"CREATE TABLE my_{tag}.keyless (id INT)",
        f"CREATE USER app_{tag} IDENTIFIED BY '{SECRET}'",
        f"GRANT SELECT, LOCK TABLES ON my_{tag}.* TO app_{tag}",
        "SET GLOBAL binlog_format = 'STATEMENT'",
        "SET GLOBAL binlog_row_image = 'MINIMAL'",
        "SET GLOBAL binlog_expire_logs_seconds = 3600",
    )
    sql(
        site.mariadb,
        f"CREATE DATABASE maria_{tag}",
        f"CREATE TABLE maria_{tag}.a (id INT PRIMARY KEY) ENGINE = MyISAM",
        f"CREATE TABLE maria_{tag}.keyless (id INT)",
        f"CREATE USER app_{tag} IDENTIFIED BY '{SECRET}'",
        f"GRANT SELECT ON maria_{tag}.a TO app_{tag}",
        f"GRANT SELECT ON maria_{tag}.keyless TO app_{tag}",
    )


#: How often each check finds something; by connector where one is named.
PLANTED = Counter(
    {
        "worker.properties": 1,
        "kafka.internal.partitions": 1,
        "kafka.internal.cleanup_policy": 1,
        "kafka.min_insync_replicas": 1,
        "kafka.max_message_bytes": 1,
        "kafka.retention": 1,
        "kafka.acl.group": 2,  # the worker's, the sink's
        "kafka.acl.topics": 9,  # the worker's, the sink's, a history's; of three sources the producer's and the admin client's
        "pg configuration.unknown": 1,
        "pg postgres.max_slot_wal_keep_size": 1,
        "pg postgres.publication.operations": 1,
        "pg postgres.publication.tables": 1,
        "pg postgres.replication": 1,
        "pg postgres.signal.missing": 1,
        "pg postgres.slot.other": 1,
        "pg postgres.tables.large_values": 1,
        "pg postgres.tables.partitions": 1,
        "pg postgres.tables.replica_identity": 1,
        "pg postgres.tables.row_security": 1,
        "pg postgres.tables.select": 1,
        "pg postgres.tables.unlogged": 1,
        "my mysql.binlog_format": 1,
        "my mysql.binlog_row_image": 1,
        "my mysql.binlog_expire": 1,
        "my mysql.server_id": 1,
        "my mysql.grants": 1,
        "my mysql.tables.engine": 1,
        "my mysql.tables.key": 1,
        "my mysql.signal": 1,
        "maria mysql.grants": 1,
        "maria mysql.tables.engine": 1,
        "maria mysql.tables.key": 1,
        "maria mysql.history.partitions": 1,
        "maria mysql.history.retention": 1,
        "mongo mongodb.collections.none": 1,
        "lake sink.catalog.rights": 1,
        "lake sink.catalog.driver": 1,
    }
)


def counted(answer: Answer) -> Counter[str]:
    """How often each check of the answer found something, as in `PLANTED`."""
    found: Counter[str] = Counter()
    for finding in answer["findings"]:
        whose = re.match(r"(pg|my|maria|mongo|lake): ", finding["what"])
        found[f"{whose[1]} {finding['check']}" if whose else finding["check"]] += 1
    return found


def mend_by_hand(site: Site, mongo: MongoAddress) -> Mapping[str, Callable[[], object]]:
    """What a person does about findings without a statement, by check."""
    tag = site.tag
    pg, my, maria, lake = (site.connectors[name] for name in ("pg", "my", "maria", "lake"))
    driver = site.folder / "postgresql.jar"

    def add_driver() -> None:
        with zipfile.ZipFile(driver, "w") as archive:
            archive.writestr("org/postgresql/Driver.class", b"")
        lake["lakehouse.spark.jars"] = ",".join(map(str, [*cached(SINK_JARS, "spark-sink").glob("*.jar"), driver]))

    def add_collection() -> None:
        database, _, collection = site.connectors["mongo"]["collection.include.list"].partition(".")
        with contextlib.closing(mongo.connect()) as client:
            client[database][collection].insert_one({"_id": 1})

    return {
        "worker.properties": lambda: site.worker.pop("ofset.flush.interval.ms"),
        "kafka.internal.partitions": lambda: site.worker.update({"config.storage.topic": f"{tag}-config-2"}),
        "configuration.unknown": lambda: pg.pop("tabel.include.list"),
        "postgres.slot.other": lambda: site.postgres.execute(f"SELECT pg_drop_replication_slot('slot_{tag}')".encode()),
        "mysql.server_id": lambda: my.update({"database.server.id": "551122"}),
        "mysql.tables.key": lambda: [config.update({"message.key.columns": r"(.*)\.keyless:id"}) for config in (my, maria)],
        "mysql.history.partitions": lambda: maria.update({"schema.history.internal.kafka.topic": f"{tag}-history-maria-2"}),
        "mongodb.collections.none": add_collection,
        "sink.catalog.driver": add_driver,
    }


def test_all_planted_faults_are_found_in_one_run_and_what_is_printed_mends_them(
    site: Site, mongo: MongoAddress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars")  # the driver of the sink's catalog
    shown = site.postgres.execute
    eventually(lambda: shown("SHOW max_slot_wal_keep_size").fetchone() == ("100MB",), "the setting")
    seconds = []
    for _ in range(3):  # the least of them, since the machine of a test may be busy
        first, took = site.look(capsys)
        seconds.append(took)
    assert counted(first) == PLANTED, first
    assert SECRET not in str(first) and GuardedKafka.PASSWORD not in str(first)
    told = [finding for finding in first["findings"] if finding["check"] != "worker.properties"]  # whose own sentences say what to do
    assert all(finding["what"] and finding["why"] and (finding["statements"] or finding["advice"]) for finding in told)
    with capsys.disabled():
        print(f"{len(first['findings'])} findings in {min(seconds):.2f} s")
    assert len(first["findings"]) >= 30 and min(seconds) <= 5

    by_hand = mend_by_hand(site, mongo)
    left: Sequence[Mapping[str, Any]] = first["findings"]
    for _ in range(3):  # what is mended by hand has other topics, on which nobody has rights yet
        for finding in left:
            if finding["statements"]:
                site.execute(finding)
            else:
                by_hand[finding["check"]]()
        eventually(lambda mended=left: not [each for each in site.look(capsys)[0]["findings"] if each in mended], "end of them")
        left = site.look(capsys)[0]["findings"]
        if not left:
            break
        assert {each["check"] for each in left} == {"kafka.acl.topics"}, left
    assert left == []
