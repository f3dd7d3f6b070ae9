"""Signals of any content on real servers: a row that is written after them arrives, whatever they held."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from bson.errors import BSONError

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connectors.engine.signal import channels
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.mongo_task import MongoTask, config, database
from tests.mysql_task import DirectMySqlTask, mysql_source
from tests.postgres_task import DirectTask
from tests.seeds import seeds

pytestmark = [pytest.mark.services, pytest.mark.filterwarnings("ignore::FutureWarning")]

TYPES = ["execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "log", "schema-changes", "snapshot-window-open"]
TYPES += ["snapshot-window-close", "set-binlog-position", "no-such-signal"]
NESTED = "[" * 500 + "]" * 500
WHOLE = ["null", "[]", "7", '"x"', "{", "\x00", "", NESTED, f'{{"data-collections": {NESTED}}}', '{"message": "\\ud800"}', "{}"]


class Dice:
    """Makes data of signals; `table` is the name of one that is captured."""

    def __init__(self, seed: int, table: str) -> None:
        self.random = random.Random(seed)
        self.table = table

    def any(self, depth: int = 0) -> Any:
        pick = self.random.choice
        plain = [None, True, -1, 10**30, 1.5, "", "x", self.table, "a(", "*", "\ud800", "é\u2028", "\0", "' OR 1=1; --", '"`', "x" * 3000]
        if depth > 2 or self.random.random() < 0.6:
            return pick(plain)
        if self.random.random() < 0.5:
            return [self.any(depth + 1) for _ in range(self.random.randrange(4))]
        return {str(pick([*plain, "id", "table", "type", "data-collection", "filter"])): self.any(depth + 1) for _ in range(3)}

    def data(self) -> str:
        pick = self.random.choice
        if self.random.random() < 0.15:
            return pick(WHOLE)
        names = [[self.table], [self.table, "a("], ["a("], [self.table, "\0"], ["\ud800"], [".*"], self.any(), self.any()]
        filters = [
            "1=1",
            "1=1) OR (1=1",
            "1=1); SELECT 1 WHERE (1=1",
            "no_such = 1",
            "'",
            "/*",
            "--",
            "\0",
            "{",
            '{"$where": 1}',
            "é",
            "\ud800",
        ]
        fields = {
            "data-collections": lambda: pick(names),
            "type": lambda: pick(["incremental", "blocking", self.any()]),
            "additional-conditions": lambda: pick([[{"data-collection": ".*", "filter": pick(filters)}], self.any()]),
            "surrogate-key": lambda: pick(["id", "\0", self.any()]),
            "message": self.any,
            "database": lambda: pick([self.table.split(".")[0], self.any()]),
            "changes": lambda: pick([[self.any()], [{"type": "ALTER", "id": self.any(), "table": self.any()}], self.any()]),
            "binlog_filename": self.any,
            "binlog_position": self.any,
            "gtid_set": self.any,
        }
        chosen = [name for name in fields if self.random.random() < 0.5]
        return json.dumps({name: fields[name]() for name in chosen})


def run(task: DirectTask, dice: Dice, send: Callable[[str, str, str], None], write: Callable[[int], None], topic: str) -> None:
    """Send signals by the source and by the process, and look for a marker row after each few."""
    connector = task.context.connector
    for number in range(60):
        type_, data = dice.random.choice(TYPES), dice.data()
        if dice.random.random() < 0.5:
            channels.send(connector, type_, data, f"s{number}")
        else:
            send(f"s{number}", type_, data)
        if number % 6 == 5:
            write(number)
            task.poll_until(
                lambda n=number: any(key is not None and str(n) in str(key["id"]) for key, _ in task.of(topic)), 60, f"row {number}"
            )  # type: ignore[misc]
    assert task.offset is not None
    json.dumps(task.offset)


@pytest.mark.parametrize("seed", seeds(3))
def test_postgres_streams_after_signals_of_any_content(postgres: PostgresAddress, database: str, tag: str, seed: int) -> None:
    print(f"seed {seed}")
    with postgres.connect(database) as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute("CREATE TABLE signal (id varchar(64), type varchar(32), data text)")
        connection.execute(
            "CREATE TABLE t (id integer PRIMARY KEY, v integer); INSERT INTO t SELECT g, g FROM generate_series(1000, 1009) g"
        )

        def send(id_: str, type_: str, data: str) -> None:
            connection.execute("INSERT INTO signal VALUES (%s, %s, %s)", (id_, type_, data.replace("\0", "")))

        settings = {"snapshot_mode": "no_data", "signal_data_collection": "public.signal", "incremental_snapshot_chunk_size": "2"}
        settings |= {"signal_poll_interval_ms": "1", "table_include_list": "public.t,public.signal"}
        with DirectTask(postgres_source(postgres, database, tag, **settings)) as task:
            task.poll_until(task.is_streaming, what="the stream")
            run(task, Dice(seed, "public.t"), send, lambda n: connection.execute("INSERT INTO t VALUES (%s)", (n,)), f"pg_{tag}.public.t")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", seeds(2))
def test_mysql_streams_after_signals_of_any_content(mysql: MySqlAddress, kafka: Kafka, seed: int) -> None:
    print(f"seed {seed}")
    name = f"payloads_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection:
        cursor = connection.cursor()
        for statement in (
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4",
            f"CREATE TABLE {name}.signals (id varchar(64), type varchar(32), data text)",
            f"CREATE TABLE {name}.t (id integer PRIMARY KEY, v integer)",
            f"INSERT INTO {name}.t VALUES (1000, 1), (1001, 2), (1002, 3), (1003, 4), (1004, 5)",
        ):
            cursor.execute(statement)
        settings = {"snapshot_mode": "no_data", "incremental_snapshot_chunk_size": "2", "signal_poll_interval_ms": "1"}
        source = mysql_source(mysql, kafka.bootstrap, name, **settings) | {"signal.data.collection": f"{name}.signals"}
        try:
            with DirectMySqlTask(source) as task:
                task.poll_until(task.is_streaming, what="the stream")
                run(
                    task,
                    Dice(seed, f"{name}.t"),
                    lambda *row: cursor.execute(f"INSERT INTO {name}.signals VALUES (%s, %s, %s)", row),
                    lambda n: cursor.execute(f"INSERT INTO {name}.t VALUES (%s, 1)", (n,)),
                    f"{name}.{name}.t",
                )
        finally:
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize("seed", seeds(2))
def test_mongodb_streams_after_signals_of_any_content(mongo: MongoAddress, seed: int) -> None:
    print(f"seed {seed}")
    with database(mongo) as db:
        db.t.insert_many([{"_id": number} for number in range(1000, 1010)])
        dice = Dice(seed, f"{db.name}.t")

        def send(id_: str, type_: str, data: str) -> None:
            try:
                value = data if NESTED in data else json.loads(data)  # MongoDB stores a hundred levels
                db.signals.insert_one({"_id": id_, "type": type_, "data": value})
            except (ValueError, OverflowError, BSONError):
                db.signals.insert_one({"_id": id_, "type": type_, "data": data})

        settings = {"snapshot_mode": "no_data", "incremental_snapshot_chunk_size": "2", "signal_poll_interval_ms": "1"}
        with MongoTask(config(mongo, db, signal_data_collection=f"{db.name}.signals", **settings)) as task:
            task.stream()
            run(task, dice, send, lambda n: db.t.insert_one({"_id": n}), f"m.{db.name}.t")  # type: ignore[arg-type,return-value]
