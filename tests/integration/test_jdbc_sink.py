"""The JDBC sink in a worker, on real servers: a task that is killed while it writes, and a server that drops connections."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import Producer

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.kills import KILLS, bring_back, kill, new_dice
from tests.waiting import eventually, wait_until

pytestmark = pytest.mark.services

Rows = dict[int, tuple[Any, ...]]
FIELDS = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "name", "type": "string", "optional": True},
    {"field": "at", "type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp"},
    {
        "field": "price",
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
]
ROW = {"type": "struct", "optional": True, "name": "s.items.Value", "fields": FIELDS}
ENVELOPE = {
    "type": "struct",
    "optional": False,
    "name": "s.items.Envelope",
    "fields": [{**ROW, "field": "before"}, {**ROW, "field": "after"}, {"field": "op", "type": "string", "optional": False}],
}
KEY = {"type": "struct", "optional": False, "name": "s.items.Key", "fields": FIELDS[:1]}


@dataclass
class Target:
    """A database that a sink writes to."""

    config: dict[str, str]
    rows: Callable[[str], Rows]


@contextmanager
def mysql_target(address: MySqlAddress, kind: str, name: str) -> Iterator[Target]:
    def run(statement: str) -> Any:
        with pymysql.connect(host=address.host, port=address.port, user=address.user, password=address.password, autocommit=True) as db:
            cursor = db.cursor()
            cursor.execute(statement)
            return cursor.fetchall()

    def rows(table: str) -> Rows:
        exists = run(f"SELECT 1 FROM information_schema.tables WHERE table_schema = '{name}' AND table_name = '{table}'")
        found = run(f"SELECT id, name, CAST(price AS CHAR) FROM `{name}`.`{table}`") if exists else ()
        return {row[0]: tuple(row[1:]) for row in found}

    run(f"CREATE DATABASE `{name}`")
    url = f"jdbc:{kind}://{address.host}:{address.port}/{name}"
    try:
        yield Target({"connection.url": url, "connection.username": address.user, "connection.password": address.password}, rows)
    finally:
        run(f"DROP DATABASE `{name}`")


@contextmanager
def postgres_target(address: PostgresAddress, database: str) -> Iterator[Target]:
    def rows(table: str) -> Rows:
        with address.connect(database) as db:
            if db.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
                return {}
            return {row[0]: tuple(row[1:]) for row in db.execute(f"SELECT id, name, price::text FROM {table}").fetchall()}

    url = f"jdbc:postgresql://{address.host}:{address.port}/{database}"
    yield Target({"connection.url": url, "connection.username": address.user, "connection.password": address.password}, rows)


@contextmanager
def sqlite_target(folder: Path) -> Iterator[Target]:
    def rows(table: str) -> Rows:
        with closing(sqlite3.connect(folder / "copy.db", timeout=30)) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall():
                return {}
            return {row[0]: tuple(row[1:]) for row in db.execute(f"SELECT id, name, price FROM {table}").fetchall()}

    yield Target({"connection.url": f"jdbc:sqlite:{folder}/copy.db"}, rows)


@pytest.fixture(params=["postgresql", "mysql", "mariadb", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path, tag: str) -> Iterator[Target]:
    name = tag.replace("-", "_")
    if request.param == "postgresql":
        with postgres_target(request.getfixturevalue("postgres"), request.getfixturevalue("database")) as found:
            yield found
    elif request.param == "sqlite":
        with sqlite_target(tmp_path) as found:
            yield found
    else:
        with mysql_target(request.getfixturevalue(request.param), request.param, name) as found:
            yield found


class Changes:
    """Random change events of one table, and the rows that they leave."""

    def __init__(self, kafka: Kafka, topic: str, dice: random.Random) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 5})
        self._topic, self._dice = topic, dice
        self.rows: Rows = {}
        self._version = 0

    def send(self, count: int, keys: int) -> None:
        for _ in range(count):
            self._version += 1
            key = self._dice.randrange(keys)
            deletes = key in self.rows and self._dice.random() < 0.15
            row = {"id": key, "name": f"v{self._version} é'\\%s", "at": 1_700_000_000_000_000 + self._version, "price": "AN4="}
            if deletes:
                del self.rows[key]
                self._put(key, {"before": row, "after": None, "op": "d"})
                self._put(key, None)
            else:
                op = "u" if key in self.rows else "c"
                self.rows[key] = (row["name"], "2.22")
                self._put(key, {"before": None, "after": row, "op": op})
        self._producer.flush(60)

    def _put(self, key: int, value: dict[str, Any] | None) -> None:
        text = None if value is None else json.dumps({"schema": ENVELOPE, "payload": value})
        self._producer.produce(self._topic, text, json.dumps({"schema": KEY, "payload": {"id": key}}))
        self._producer.poll(0)


def sink(target: Target, topic: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "insert.mode": "upsert",
        "primary.key.mode": "record_key",
        "delete.enabled": "true",
        "schema.evolution": "basic",
        "flush.retry.delay.ms": "200",
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.session.timeout.ms": "6000",  # how long a killed task's partitions wait
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        **target.config,
        **more,
    }


@pytest.mark.long
def test_a_sink_killed_while_it_writes_leaves_exactly_the_rows_of_the_source(
    make_worker: Callable[..., Worker], kafka: Kafka, target: Target, tag: str, tmp_path: Path
) -> None:
    dice, topic = new_dice(), f"{tag}.items"
    table = topic.replace(".", "_").replace("-", "_")
    changes = Changes(kafka, topic, dice)
    changes.send(1500, 400)
    worker = make_worker(properties={"file.connectors.allowed.paths": str(tmp_path)})
    worker.create(
        tag, sink(target, topic, **{"batch.size": "100", "collection.name.format": table, "consumer.override.max.poll.records": "150"})
    )
    try:
        for _ in range(KILLS):
            worker.wait_for(tag, "RUNNING")
            known = target.rows(table)
            changes.send(1500, 400)
            wait_until(lambda known=known: target.rows(table) != known, 60, "rows that have changed")  # type: ignore[misc]
            kill(worker, "task", "a JDBC sink")
            changes.send(300, 400)
            bring_back(worker, tag)
        # next to other tests the backlog of the kills takes minutes
        eventually(lambda: target.rows(table) == changes.rows, lambda: difference(target.rows(table), changes.rows), 240)
    finally:
        worker.delete(tag)


def difference(found: Rows, wanted: Rows) -> str:
    keys = [key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)]
    return f"the rows of the source; {len(keys)} differ, such as {[(k, found.get(k), wanted.get(k)) for k in keys[:3]]}"


def test_connections_that_the_server_ends_are_opened_again(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    topic, changes = f"{tag}.items", Changes(kafka, f"{tag}.items", random.Random(7))
    with postgres_target(postgres, database) as target:
        changes.send(200, 50)
        worker.create(tag, sink(target, topic, **{"collection.name.format": "items"}))
        try:
            for _ in range(3):
                wait_until(lambda: target.rows("items") == changes.rows, 60, "the rows of the source")
                with postgres.connect(database) as db:
                    db.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'Debezium JDBC sink' "
                        "AND datname = current_database()"
                    )
                changes.send(200, 50)
            wait_until(lambda: target.rows("items") == changes.rows, 60, "the rows of the source")
            assert worker.status(tag)["tasks"][0]["state"] == "RUNNING"
        finally:
            worker.delete(tag)
