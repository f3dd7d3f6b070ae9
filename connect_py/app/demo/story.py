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
from connect_py.app.demo.stage import GROUP_SETTINGS, Stage
from connect_py.app.demo.takeover import PAUSE_SECONDS, Place, Writer, places, tally
from connect_py.app.services.kafka import kafka_jars
from connect_py.app.services.worker import RefusedError, Worker
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


def address(worker: Worker) -> str:
    """Return a worker's host and port, as statuses name it."""
    return worker.url.removeprefix("http://")


def shown_url(worker: Worker) -> str:
    """Return a worker's address as a person would type it."""
    return worker.url.replace("127.0.0.1", "localhost")


class Story:
    """Tells the tutorial on a stage.

    Args:
        workers: how many share the work; the last step kills one of several.
        lakehouse: whether the sink has its part; without, no Spark is needed.
    """

    def __init__(self, stage: Stage, screen: Screen, workers: int = 1, *, lakehouse: bool = True) -> None:
        self._stage = stage
        self._screen = screen
        self._workers = workers
        self._has_sink = lakehouse

    def tell(self) -> None:
        """All steps.

        Raises:
            ConnectError: a step did not show what it should; the text says which and what was seen instead.
        """
        self._fetch()
        self._start_servers()
        self._fill_database()
        self._start_source()
        if self._has_sink:
            self._start_sink()
        self._change_rows()
        if self._workers > 1:
            self._kill_worker()

    @property
    def url(self) -> str:
        """The address of a worker, as it is printed."""
        return shown_url(self._stage.worker)

    def _fetch(self) -> None:
        java()
        with self._screen.working("fetching the Kafka broker from Maven Central (44 MB, once)"):
            kafka_jars()
        if not self._has_sink:
            return
        needed = cached(SINK_JARS, "spark-sink")
        with self._screen.working("fetching Spark's Iceberg and Kafka libraries from Maven Central (60 MB, once)"):
            resolve(SINK_JARS, needed)

    def _start_servers(self) -> None:
        count = self._workers
        self._screen.step(f"A database, a broker and {'a worker' if count == 1 else f'{count} workers of one group'}, on this machine")
        with self._screen.working("starting PostgreSQL"):
            postgres = self._stage.start_postgres()
        with postgres.connect() as connection:
            version = connection.execute("SELECT current_setting('server_version')").fetchone()
        self._screen.done(f"PostgreSQL {version[0] if version else ''} at localhost:{postgres.port}")
        with self._screen.working("starting Kafka"):
            kafka = self._stage.start_kafka()
        self._screen.done(f"Kafka at {kafka.bootstrap.replace('127.0.0.1', 'localhost')}")
        with self._screen.working("starting the worker" if count == 1 else f"starting {count} workers"):
            self._stage.start_workers(count)
        answer = send(self._screen, "GET", self.url + "/", show=False)
        self._screen.done(f"the worker at {self.url}, which speaks Kafka Connect {answer['version']}'s REST API")
        for worker in self._stage.workers[1:]:
            self._screen.done(
                f"a worker at {shown_url(worker)}, with the same group.id and internal topics; any of them answers every request"
            )

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
        if not self._has_sink:
            return
        with self._screen.working("the sink merges them"):
            self._await(lambda: self._lake_rows() == self._source_rows() or None, "the lakehouse table to follow the changes", SINK)
        self._screen.done(f"in the lakehouse table after {time.monotonic() - began:.1f} s:")
        self._show_rows(self._lake_rows())

    def _kill_worker(self) -> None:
        self._screen.step("Kill the worker that runs the source, while rows are written")
        before = self._await(self._all_run, "all connectors and tasks to run", SOURCE)
        self._show_places(before)
        victim = self._owner_of_source(before)
        seen = len(self._changes(0) or ())
        with Writer(self._stage.postgres, DATABASE) as writer:
            self._await(lambda: self._arrived(writer.keys[:10], seen), "rows of the writer on the topic", SOURCE)
            self._screen.code(f"$ kill -9 {victim.pid}")
            victim.kill()
            killed, last = time.monotonic(), len(writer.keys)
            self._screen.note(
                f"{shown_url(victim)} is gone, and its tasks with it; a row is inserted every {PAUSE_SECONDS * 1000:.0f} ms meanwhile"
            )
            with self._screen.working("the group waits for it, then gives its work to the rest"):
                after = self._await(self._all_run, "the others to run everything", SOURCE)
            taken_over = time.monotonic() - killed
            self._await(lambda: self._arrived(writer.keys[last : last + 1] or [0], seen), "the first row since", SOURCE)
            first = time.monotonic() - killed
        self._screen.done(f"all of it runs on the {'other worker' if self._workers == 2 else 'others'} after {taken_over:.1f} s:")
        self._show_places(after)
        session, delay = (int(GROUP_SETTINGS[name]) / 1000 for name in ("session.timeout.ms", "scheduled.rebalance.max.delay.ms"))
        self._screen.note(
            f"the group waits for a sign of life {session:.0f} s here (session.timeout.ms, by default 10 s), then for the return"
        )
        self._screen.note(
            f"of the worker {delay:.0f} s here (scheduled.rebalance.max.delay.ms, by default 5 minutes), unless that one led the group;"
        )
        self._screen.note("a worker that gets SIGTERM, as in a deployment, hands its work over at once")
        self._await(lambda: self._arrived(writer.keys, seen), f"all {len(writer.keys)} rows on the topic", SOURCE)
        found = tally(writer.keys, self._created(seen))
        again = (
            f"{found.repeated} of them twice, since sources deliver at least once by default" if found.repeated else "none of them twice"
        )
        self._screen.done(f"the first row inserted after the kill was on the topic after {first:.1f} s")
        self._screen.done(f"{len(writer.keys)} rows were inserted before, during and after: the topic has all of them, {again}")
        if not self._has_sink:
            return
        with self._screen.working("the sink catches up"):
            self._await(lambda: self._lake_rows() == self._source_rows() or None, "the lakehouse table to have all rows", SINK)
        self._screen.done(f"the lakehouse table equals the database's: {len(self._lake_rows())} rows, each of them once")

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

    def _created(self, seen: int) -> list[int]:
        """Return the keys of the creating records after the first ones, in the topic's order."""
        return [change.key for change in (self._changes(0) or [])[seen:] if change.operation == "create"]

    def _arrived(self, keys: Sequence[int], seen: int) -> bool | None:
        """Return True when the topic has rows with these keys, and there are any."""
        return (bool(keys) and not tally(keys, self._created(seen)).missing) or None

    def _all_run(self) -> list[Place] | None:
        """Return who runs what, once everything runs on workers that live."""
        living = {address(worker) for worker in self._stage.workers if worker.service.is_alive()}
        found = places(self._stage.worker.request("GET", "/connectors?expand=status"))
        tasks = {place.connector for place in found if place.task is not None}
        is_whole = tasks == {place.connector for place in found}
        return found if is_whole and all(place.state == "RUNNING" and place.worker in living for place in found) else None

    def _owner_of_source(self, found: Sequence[Place]) -> Worker:
        owner = next(place.worker for place in found if place.connector == SOURCE and place.task is not None)
        return next(worker for worker in self._stage.workers if address(worker) == owner)

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

    def _show_places(self, found: Sequence[Place]) -> None:
        lines = [
            (place.connector, "connector" if place.task is None else f"task {place.task}", place.state, place.worker) for place in found
        ]
        self._screen.table(("connector", "part", "state", "worker"), lines)

    def _show_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        self._screen.table(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])

    def _show_changes(self, changes: Sequence[Change]) -> None:
        def short(row: dict[str, Any] | None) -> str | None:
            return ", ".join(str(row[name]) for name in COLUMNS) if row else None

        rows = [[change.key, change.operation, short(change.before), short(change.after)] for change in changes]
        self._screen.table(("key", "op", "before", "after"), rows)
