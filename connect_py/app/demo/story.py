"""Tell the tutorial: what the demo does and what it expects to see after each step.

Every expectation is checked against the database. Of a topic the demo shows its change events, in short.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from connect_py.app.demo.screen import Screen, send
from connect_py.app.demo.stage import Stage
from connect_py.app.services.kafka import kafka_jars
from connect_py.app.services.worker import RefusedError
from connect_py.errors import ConnectError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from spark_sink.spark.jars import SINK_JARS, cached, java, resolve

#: What the envelope's `op` means to a person.
OPERATIONS = {"r": "read", "c": "create", "u": "update", "d": "delete"}


@dataclass(frozen=True)
class Change:
    """One record: the key's field, the operation (`tombstone` for a null value), the row before and after."""

    key: Any
    operation: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def read_changes(bootstrap: str, topic: str) -> list[Change]:
    """Return all records of a topic of Debezium's events; none when the topic does not exist yet."""
    properties = internal_properties({"bootstrap.servers": bootstrap, "group.id": "connect-py-demo"}, "demo")
    admin = KafkaAdmin(properties)
    try:
        if not admin.describe_topics([topic]):
            return []
        records: list[LogRecord] = []
        log = KafkaLog(topic, properties, admin, records.append)
        log.start()
        log.stop()
    finally:
        admin.close()
    return [parse_change(record.key, record.value) for record in records]


def parse_change(key: bytes | None, value: bytes | None) -> Change:
    """Return a record of JsonConverter with schemas, as a Change."""
    key_fields = json.loads(key or b"{}").get("payload") or {}
    only = next(iter(key_fields.values()), None)
    if value is None:
        return Change(only, "tombstone", None, None)
    event = json.loads(value)["payload"]
    return Change(only, OPERATIONS.get(event["op"], event["op"]), event["before"], event["after"])


DATABASE = "inventory"
PREFIX = "dbserver1"
TOPIC = f"{PREFIX}.inventory.customers"
SOURCE, SINK = "inventory-connector", "lakehouse"

COLUMNS = ("id", "first_name", "last_name", "email")

INVENTORY = """
CREATE SCHEMA inventory;
CREATE TABLE inventory.customers (
  id serial PRIMARY KEY, first_name varchar(80) NOT NULL, last_name varchar(80) NOT NULL, email varchar(120) NOT NULL UNIQUE);
CREATE TABLE inventory.products (
  id serial PRIMARY KEY, name varchar(80) NOT NULL, description text, weight real);
CREATE TABLE inventory.orders (
  id serial PRIMARY KEY, order_date date NOT NULL, quantity integer NOT NULL,
  purchaser integer NOT NULL REFERENCES inventory.customers (id), product_id integer NOT NULL REFERENCES inventory.products (id));
ALTER TABLE inventory.customers REPLICA IDENTITY FULL;
ALTER SEQUENCE inventory.customers_id_seq RESTART WITH 1001;
ALTER SEQUENCE inventory.products_id_seq RESTART WITH 101;
ALTER SEQUENCE inventory.orders_id_seq RESTART WITH 10001;
INSERT INTO inventory.customers (first_name, last_name, email) VALUES
  ('Ada', 'Lindgren', 'ada@example.com'), ('Bruno', 'Okafor', 'bruno@example.com'),
  ('Chiara', 'Novak', 'chiara@example.com'), ('Dmitri', 'Haddad', 'dmitri@example.com');
INSERT INTO inventory.products (name, description, weight) VALUES
  ('kettle', 'whistles in F sharp', 1.2), ('ladder', 'five steps', 6.5), ('torch', NULL, 0.3);
INSERT INTO inventory.orders (order_date, quantity, purchaser, product_id) VALUES
  ('2026-01-16', 1, 1001, 102), ('2026-01-17', 2, 1002, 101), ('2026-02-19', 2, 1002, 103), ('2026-02-21', 1, 1003, 102);
"""

CHANGES = (
    "INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('Elif', 'Moreau', 'elif@example.com')",
    "UPDATE inventory.customers SET email = 'ada.lindgren@example.com' WHERE id = 1001",
    "DELETE FROM inventory.customers WHERE id = 1004",
)

#: What those statements must put on the topic, after the snapshot's four records.
EXPECTED = [(1005, "create"), (1001, "update"), (1004, "delete"), (1004, "tombstone")]

#: Enough for a slow or busy machine: Spark needs twenty seconds of CPU until its first table stands.
PATIENCE_SECONDS = 240.0

Found = TypeVar("Found")


class Story:
    """Tells the tutorial on a stage."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen

    def tell(self) -> None:
        """All steps.

        Raises:
            ConnectError: a step did not show what it should; the text says which and what was seen instead.
        """
        self._fetch()
        self._start_servers()
        self._fill_database()
        self._start_source()
        self._start_sink()
        self._change_rows()

    @property
    def url(self) -> str:
        """The worker's address, as it is printed."""
        return self._stage.worker.url.replace("127.0.0.1", "localhost")

    def _fetch(self) -> None:
        java()
        needed = cached(SINK_JARS, "spark-sink")
        with self._screen.working("fetching the Kafka broker from Maven Central (44 MB, once)"):
            kafka_jars()
        with self._screen.working("fetching Spark's Iceberg and Kafka libraries from Maven Central (60 MB, once)"):
            resolve(SINK_JARS, needed)

    def _start_servers(self) -> None:
        self._screen.step("A database, a broker and a worker, on this machine")
        with self._screen.working("starting PostgreSQL"):
            postgres = self._stage.start_postgres()
        with postgres.connect() as connection:
            version = connection.execute("SELECT current_setting('server_version')").fetchone()
        self._screen.done(f"PostgreSQL {version[0] if version else ''} at localhost:{postgres.port}")
        with self._screen.working("starting Kafka"):
            kafka = self._stage.start_kafka()
        self._screen.done(f"Kafka at {kafka.bootstrap.replace('127.0.0.1', 'localhost')}")
        with self._screen.working("starting the worker"):
            self._stage.start_worker()
        answer = send(self._screen, "GET", self.url + "/", show=False)
        self._screen.done(f"the worker at {self.url}, which speaks Kafka Connect {answer['version']}'s REST API")

    def _fill_database(self) -> None:
        self._screen.step("Tables with a few rows")
        postgres = self._stage.postgres
        with postgres.connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        with postgres.connect(DATABASE) as connection:
            connection.execute(INVENTORY)
        self._screen.note(f"database {DATABASE}: inventory.customers, inventory.products, inventory.orders; the customers are")
        self._show_rows(self._source_rows())

    def _start_source(self) -> None:
        self._screen.step("PostgreSQL -> Kafka: create a source connector")
        postgres = self._stage.postgres
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "database.hostname": "localhost",
            "database.port": str(postgres.port),
            "database.user": postgres.user,
            "database.password": postgres.password,
            "database.dbname": DATABASE,
            "topic.prefix": PREFIX,
            "table.include.list": "inventory.customers,inventory.orders",
        }
        send(self._screen, "POST", self.url + "/connectors", {"name": SOURCE, "config": config})
        began = time.monotonic()
        self._await_running(SOURCE)
        changes = self._await(lambda: self._changes(4), f"4 records on the topic {TOPIC}", SOURCE)
        self._screen.done(f"the topic {TOPIC} has its records {time.monotonic() - began:.1f} s after the request:")
        self._show_changes(changes)

    def _start_sink(self) -> None:
        self._screen.step("Kafka -> Iceberg: create a sink connector, whose task is a Spark driver")
        config = {
            "connector.class": "SparkLakehouseSink",
            "tasks.max": "1",
            "topics": f"{TOPIC},{PREFIX}.inventory.orders",
            "lakehouse.catalog.type": "hadoop",
            "lakehouse.catalog.warehouse": str(self._stage.warehouse),
            "lakehouse.tables.auto-create-enabled": "true",
            "lakehouse.control.commit.interval-ms": "1000",
        }
        send(self._screen, "POST", self.url + "/connectors", {"name": SINK, "config": config})
        began = time.monotonic()
        with self._screen.working("Spark starts, reads the topics and creates the tables"):
            self._await(lambda: self._lake_rows() == self._source_rows() or None, "the lakehouse table to equal inventory.customers", SINK)
        self._screen.done(f"the Iceberg table inventory.customers equals the database's after {time.monotonic() - began:.1f} s")

    def _change_rows(self) -> None:
        self._screen.step("Change rows, and see both follow")
        with self._stage.postgres.connect(DATABASE) as connection:
            for statement in CHANGES:
                self._screen.code(f"inventory=> {statement};")
                connection.execute(statement)
        began = time.monotonic()
        changes = self._await(lambda: self._changes(4 + len(EXPECTED)), f"{len(EXPECTED)} more records on the topic {TOPIC}", SOURCE)[4:]
        seen = [(change.key, change.operation) for change in changes]
        if seen != EXPECTED:
            raise ConnectError(f"The topic {TOPIC} should show {EXPECTED} after the snapshot's records, and shows {seen}.")
        self._screen.done(f"on the topic after {time.monotonic() - began:.1f} s:")
        self._show_changes(changes)
        with self._screen.working("the sink merges them"):
            self._await(lambda: self._lake_rows() == self._source_rows() or None, "the lakehouse table to follow the changes", SINK)
        self._screen.done(f"in the lakehouse table after {time.monotonic() - began:.1f} s:")
        self._show_rows(self._lake_rows())

    # -- looking -----------------------------------------------------------------------------------------------------------

    def _source_rows(self) -> list[dict[str, Any]]:
        with self._stage.postgres.connect(DATABASE) as connection:
            rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM inventory.customers ORDER BY id").fetchall()  # noqa: S608
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def _lake_rows(self) -> list[dict[str, Any]]:
        from pyiceberg.table import StaticTable

        try:
            table = StaticTable.from_metadata(str(self._stage.warehouse / "inventory/customers"))
        except FileNotFoundError:
            return []
        rows = table.scan(selected_fields=COLUMNS).to_arrow().to_pylist()
        return sorted(rows, key=lambda row: row["id"])

    def _changes(self, count: int) -> list[Change] | None:
        found = read_changes(self._stage.kafka.bootstrap, TOPIC)
        return found if len(found) >= count else None

    def _await_running(self, connector: str) -> None:
        self._await(lambda: self._task(connector).get("state") == "RUNNING" or None, f"the task of {connector} to run", connector)

    def _task(self, connector: str) -> dict[str, Any]:
        """Return the connector's only task's status; empty before there is one."""
        try:
            tasks = self._stage.worker.status(connector)["tasks"]
        except RefusedError:
            return {}
        return tasks[0] if tasks else {}

    def _await(self, probe: Callable[[], Found | None], what: str, connector: str) -> Found:
        """Ask until there is something; give up when the connector's task has failed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := probe()) is None:
            task = self._task(connector)
            if task.get("state") == "FAILED":
                raise ConnectError(f"The demo waited for {what}, and the task of {connector} failed:\n{task['trace']}")
            if time.monotonic() > deadline:
                end = self._stage.worker.service.log_tail(5)
                raise ConnectError(f"The demo waited {PATIENCE_SECONDS:.0f} s for {what}; the end of the worker's log:\n{end}")
            time.sleep(0.1)
        return found

    # -- showing -----------------------------------------------------------------------------------------------------------

    def _show_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        self._screen.table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])

    def _show_changes(self, changes: Sequence[Change]) -> None:
        def short(row: dict[str, Any] | None) -> str | None:
            return ", ".join(str(row[name]) for name in COLUMNS) if row else None

        rows = [[change.key, change.operation, short(change.before), short(change.after)] for change in changes]
        self._screen.table(("key", "op", "before", "after"), rows)
