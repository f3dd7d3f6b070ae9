"""Tables are altered while their rows change: after each statement the model is what information_schema says, and the rows that a task
gives are those that the server shows."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pymysql
import pytest

from connect_py.api import JsonEncoding
from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.run import Marker
from connectors.mysql.config.config import parse_config
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyColumn, MyTable, Tables, quote_name
from connectors.mysql.position.offset import EventPosition
from connectors.mysql.schema.captured import TableFactory
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.rows import select_rows, snapshot_encoder
from tests.binlog_task import DirectTask, task_config
from tests.ddl_changes import SAME, TYPES, actions, key
from tests.fix_kafka import Kafka
from tests.seeds import size

pytestmark = pytest.mark.services

SEQUENCES = size("CONNECT_PY_DDL_SEQUENCES", 10, 48)
STATEMENTS = 6
#: Rows that are never deleted, and those that come and go.
STAYING, ALL = 5, 40
VALUES = (
    "'7'",
    "'a'",
    "'p'",
    "'b,c'",
    "'2020-02-03'",
    "'2020-02-03 04:05:06.789'",
    "'12:34:56.789'",
    "1999",
    "-1.5",
    "'ž'",
    "x'00c3a9'",
    "NULL",
)
CREATE = "(id INT PRIMARY KEY, step INT NOT NULL DEFAULT 0, a VARCHAR(5), b INT, c DATETIME(3), d VARCHAR(9), e ENUM('p', 'q'))"

Row = dict[str, Any]


class Writer:
    """Changes rows of a table all the time in a thread of its own, except while it is paused.

    Attributes:
        table: of which rows change; statements that the server refuses at the moment are tried no second time.
        columns: of these; may be out of date.
        done: how many statements the server took.
    """

    def __init__(self, address: MySqlAddress, database: str, seed: int) -> None:
        self.table, self.columns, self.done = "none", ["a"], 0
        self._chance = random.Random(seed)
        self._turn = threading.Condition()
        self._ended = threading.Event()
        self._connection = address.connect()
        with self._connection.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            cursor.execute(f"USE {database}")
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._turn:
            yield

    def work(self, changes: int) -> None:
        """Wait until the server took some changes, or refuses most of them, as it does where a new column has no default."""
        with self._turn:
            wanted = self.done + changes
            self._turn.wait_for(lambda: self.done >= wanted, 0.3)

    def _run(self) -> None:
        with self._connection.cursor() as cursor:
            while not self._ended.wait(0.0003):
                with self._turn:
                    try:
                        cursor.execute(self._statement())
                        self.done += 1
                        self._turn.notify_all()
                    except pymysql.MySQLError:
                        continue

    def _statement(self) -> str:
        chance, id_ = self._chance, self._chance.randint(STAYING + 1, ALL)
        if chance.random() < 0.3:
            return f"INSERT INTO {self.table} (id) VALUES ({id_})"
        if chance.random() < 0.2:
            return f"DELETE FROM {self.table} WHERE id = {id_}"
        column = quote_name(chance.choice(self.columns))
        return f"UPDATE IGNORE {self.table} SET {column} = {chance.choice(VALUES)} WHERE id % 4 = {id_ % 4}"

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._connection.close()


@dataclass
class Altered:
    """A database whose tables are altered, our model of it, and what the server shows.

    Attributes:
        statements: that the server took.
        rows: that were compared.
    """

    database: str
    cursor: Any
    connection: Connection
    factory: TableFactory
    writer: Writer
    models: Tables
    statements: int = 0
    rows: int = 0
    step: int = 0

    def change(self, sql: str) -> None:
        """Run a statement, and change the model. Raises MySQLError where the server refuses it."""
        self.cursor.execute(sql)
        apply(sql, self.models, self.database)
        self.statements += 1

    def touch(self, table: str) -> dict[int, Row]:
        """Give every row the next step; returns the rows as records show them. The writer must be paused."""
        self.step += 1
        self.cursor.execute(f"UPDATE {table} SET step = {self.step}")
        captured = self.factory.build(self.models.tables[TableId(self.database, table)])
        encode = snapshot_encoder(captured, EventPosition("", 0), 0)
        found = {}
        for rows in select_rows(self.connection, captured):
            for _, _, value in encode(rows, Marker.MIDDLE):
                row = orjson.loads(value)["after"]
                found[row["id"]] = row
        assert all(row["step"] == self.step for row in found.values())
        return found

    def assert_described(self, model: MyTable, why: str) -> None:
        """The model is what information_schema says."""
        name = (self.database, model.id.table)
        self.cursor.execute(
            "SELECT column_name, data_type, column_type, is_nullable, character_set_name, numeric_precision, numeric_scale, "
            "character_maximum_length, datetime_precision FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "ORDER BY ordinal_position",
            name,
        )
        wanted = [shown(*row) for row in self.cursor.fetchall()]
        assert [modelled(column) for column in model.columns] == wanted, why
        self.cursor.execute(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' "
            "ORDER BY seq_in_index",
            name,
        )
        assert key(model) == tuple(row[0] for row in self.cursor.fetchall()), why


def shown(
    name: str,
    kind: str,
    whole: str,
    nullable: str,
    charset: str | None,
    precision: int | None,
    scale: int | None,
    length: int | None,
    digits: int | None,
) -> tuple[Any, ...]:
    """A column of information_schema, as `modelled` has it."""
    kind = kind.upper()
    size: Any = None
    if kind in ("DECIMAL", "BIT"):
        size = (precision, scale or 0)
    elif kind in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        size = length
    elif kind in ("DATETIME", "TIMESTAMP", "TIME"):
        size = digits
    elif kind in ("ENUM", "SET"):
        size = whole.partition("(")[2]
    kind = SAME.get(kind, kind)
    return name, without_size(kind), " unsigned" in whole, size, (charset or "").replace("utf8mb3", "utf8"), nullable == "YES"


def modelled(column: MyColumn) -> tuple[Any, ...]:
    """What rows depend on."""
    kind = SAME.get(column.base_type, column.base_type)
    size: Any = None
    if kind in ("DECIMAL", "BIT"):
        size = (column.length or (10 if kind == "DECIMAL" else 1), column.scale or 0)
    elif kind in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        size = column.length or 1
    elif kind in ("DATETIME", "TIMESTAMP", "TIME"):
        size = column.length or 0
    elif kind in ("ENUM", "SET"):
        labels = [label.replace("\\", "\\\\").replace("'", "''") for label in column.labels]
        size = "'" + "','".join(labels) + "')"
    return column.name, without_size(kind), column.unsigned, size, (column.charset or "").replace("utf8mb3", "utf8"), column.nullable


def without_size(kind: str) -> str:
    """CONVERT TO may choose another size of a TEXT or a BLOB, which rows tell by themselves."""
    return next((name for name in ("TEXT", "BLOB") if kind.endswith(name)), kind)


@pytest.fixture
def altered(mysql: MySqlAddress, kafka: Kafka) -> Iterator[tuple[Altered, dict[str, str]]]:
    """A database, and a connector's configuration for it."""
    database = f"altered_{uuid.uuid4().hex[:8]}"
    config = task_config(mysql, kafka, database, **{"snapshot.mode": "no_data", "value.consistency": "unified"})
    parsed = parse_config(config)
    with mysql.connect() as driver, driver.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {database}")
        cursor.execute("SET sql_mode = ''")
        models = Tables()
        apply(f"CREATE DATABASE {database} CHARSET utf8mb4", models, database)
        connection = queries.open_connection(parsed)
        factory = TableFactory(parsed, JsonEncoding(key_schemas=False, value_schemas=False), ())
        writer = Writer(mysql, database, random.randrange(1 << 30))
        yield Altered(database, cursor, connection, factory, writer, models), config
        writer.close()
        connection.close()
        cursor.execute(f"DROP DATABASE {database}")


def test_rows_that_change_while_their_table_is_altered_are_those_of_the_server(altered: tuple[Altered, dict[str, str]]) -> None:
    """CONNECT_PY_DDL_SEQUENCES of them, each on a table of its own."""
    seed = int(os.environ.get("CONNECT_PY_SEED") or random.randrange(1 << 30))
    print(f"seed {seed}")
    chance = random.Random(seed)
    found, config = altered
    found.change("CREATE TABLE first (id INT PRIMARY KEY)")
    with DirectTask(config) as task:
        task.poll_until(lambda: task.offsets)
        found.cursor.execute("INSERT INTO first VALUES (1)")
        task.poll_until(lambda: task.rows("first"))
        for number in range(SEQUENCES):
            follow(found, task, chance, f"t{number}", f"seed {seed}, t{number}")
    print(
        f"seed {seed}: {SEQUENCES} sequences, {found.statements} statements beside {found.writer.done} changes, {found.rows} rows compared"
    )


def test_a_float_ahead_of_a_moment_with_fractions_is_read_in_rows_with_and_without_null(altered: tuple[Altered, dict[str, str]]) -> None:
    """What reads a float was once hidden by the variable of a fraction, in tables with both at certain places."""
    found, config = altered
    with DirectTask(config) as task:
        task.poll_until(lambda: task.offsets)
        for table, last in (("at4", "DATETIME(3)"), ("at8", "TIMESTAMP(6) NULL")):
            between = ", ".join(f"c{i} INT" for i in range(1 if table == "at4" else 5))
            found.change(f"CREATE TABLE {table} (a FLOAT, id INT PRIMARY KEY, b DOUBLE, {between}, f {last})")
            found.cursor.execute(f"INSERT INTO {table} (a, id, b, f) VALUES (1.5, 1, 2.5, '2020-01-01 00:00:00.25'), (NULL, 2, NULL, NULL)")
            found.cursor.execute(f"UPDATE {table} SET c0 = 1")
            task.poll_until(lambda of=table: len(task.rows(of)) == 4)
            rows = [row for _, row in task.rows(table)]
            assert [(row["a"], row["b"], row["f"] is None) for row in rows] == [(1.5, 2.5, False), (None, None, True)] * 2


def as_shown(row: Row) -> Row:
    """Bytes that are no character of their set are `?` where the server shows them."""
    return {name: value.replace("\ufffd", "?") if isinstance(value, str) else value for name, value in row.items()}


def follow(found: Altered, task: DirectTask, chance: random.Random, table: str, why: str) -> None:
    """One sequence, and what the task gave of it."""
    id_ = TableId(found.database, table)
    found.change(f"CREATE TABLE {table} {CREATE}")
    found.cursor.execute(f"INSERT INTO {table} (id, a) VALUES {', '.join(f'({i}, {i})' for i in range(1, STAYING + 1))}")
    found.writer.table = table
    expected: dict[int, dict[int, Row]] = {}
    done: list[str] = []
    for place in range(STATEMENTS):
        names = [column.name for column in found.models.tables[id_].columns if column.name not in ("id", "step")]
        found.writer.columns = names
        # with fewer columns the generator would take the key's
        some = actions(chance, ["id", *names], place) if len(names) > 3 else [f"ADD COLUMN more{place} {chance.choice(TYPES)}"]
        sql = f"ALTER TABLE {table} {', '.join(some)}"
        try:
            found.change(sql)
        except pymysql.MySQLError:
            continue  # what makes no sense to the server is not in the log
        done.append(sql)
        found.writer.work(4)
        with found.writer.paused():
            rows = found.touch(table)
            expected[found.step] = rows
            found.assert_described(found.models.tables[id_], f"{why}: {done}")
    with found.writer.paused():
        last = found.touch(table)
        expected[found.step] = last
        task.poll_until(lambda: sum(row["step"] == found.step for _, row in task.rows(table)) >= len(last))
        found.assert_described(task.structures.tables[id_], f"{why}, the task's: {done}")
        found.change(f"DROP TABLE {table}")
    given: dict[int, dict[int, Row]] = {step: {} for step in expected}
    left: dict[int, Row] = {}
    for op, streamed in task.rows(table):
        row = as_shown(streamed)
        if op == "u" and row["step"] in given:
            given[row["step"]].setdefault(row["id"], row)
        if op == "d":
            del left[row["id"]]
        else:
            left[row["id"]] = row
    for step, wanted in expected.items():
        for id_of_row, row in wanted.items():
            assert given[step].get(id_of_row) == row, f"{why}, step {step}: {done}"
            found.rows += 1
    assert left == last, f"{why}: {done}"
    task.records.clear()
