"""SIGSTOP of a worker with all its tasks, while a second worker of the group takes over, and SIGCONT.

The rows of a table count up, each by one a change. So the topic may have older numbers of a row again, where a worker resumed from a stored
offset; after each number only the next one, or one that was there, may come. And no stored offset may lie before the one stored last.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import process_tree
from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note, note_changes, system_of
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.mysql_task import mysql_source
from tests.waiting import eventually, let_time_pass

pytestmark = pytest.mark.services

ROWS = 20

#: A worker's session and its heartbeat, in milliseconds: leases of two seconds, and one that takes over waits for three.
SHORT = {"session.timeout.ms": "3000", "heartbeat.interval.ms": "1000", "offset.flush.interval.ms": "300"}
DEFAULTS = {"offset.flush.interval.ms": "300"}


class Source(Protocol):
    """A table whose rows count up."""

    topic: str
    config: dict[str, str]

    def count_up(self, row: int) -> None: ...
    def numbers(self) -> dict[int, int]: ...
    def position(self, offset: dict[str, Any]) -> tuple[Any, ...]:
        """Of a stored offset, in the order of the log."""
        ...


@dataclass
class MySqlTable:
    topic: str
    config: dict[str, str]
    cursor: Any

    def count_up(self, row: int) -> None:
        self.cursor.execute("UPDATE item SET number = number + 1 WHERE id = %s", (row,))

    def numbers(self) -> dict[int, int]:
        self.cursor.execute("SELECT id, number FROM item")
        return dict(self.cursor.fetchall())

    def position(self, offset: dict[str, Any]) -> tuple[Any, ...]:
        return offset["file"], offset["pos"], offset.get("event", 0), offset.get("row", 0)


@dataclass
class PostgresTable:
    topic: str
    config: dict[str, str]
    connection: Any

    def count_up(self, row: int) -> None:
        self.connection.execute("UPDATE item SET number = number + 1 WHERE id = %s", (row,))

    def numbers(self) -> dict[int, int]:
        return dict(self.connection.execute("SELECT id, number FROM item").fetchall())

    def position(self, offset: dict[str, Any]) -> tuple[Any, ...]:
        return (offset["lsn"],)


@pytest.fixture
def mysql_table(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Source]:
    name = f"frozen_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE item (id INT PRIMARY KEY, number INT)"):
            cursor.execute(statement)
        cursor.executemany("INSERT INTO item VALUES (%s, 0)", [(row,) for row in range(ROWS)])
        yield MySqlTable(f"{name}.{name}.item", mysql_source(mysql, kafka.bootstrap, name), cursor)
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def postgres_table(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Source]:
    with postgres.connect(database) as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE item (id INT PRIMARY KEY, number INT)")
        connection.execute("INSERT INTO item SELECT g, 0 FROM generate_series(0, %s) g", (ROWS - 1,))
        yield PostgresTable(f"pg_{tag}.public.item", postgres_source(postgres, database, tag), connection)


class Changing:
    """Counts rows up, one after the other, until it is left."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        count = 0
        while not self._ended.wait(0.001):
            self._source.count_up(count % ROWS)
            count += 1


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            assert number == signal.SIGCONT


def numbers_in(kafka: Kafka, topic: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {row: [] for row in range(ROWS)}
    for message in kafka.read(topic):
        after = payload(message.value())["after"]
        found[after["id"]].append(after["number"])
    return found


def assert_in_order(found: dict[int, list[int]]) -> None:
    for row, numbers in found.items():
        for before, after in itertools.pairwise(numbers):
            assert after <= before + 1, f"row {row} goes from {before} to {after}: {numbers}"


def stored(kafka: Kafka, worker: Worker, connector: str) -> list[dict[str, Any]]:
    messages = [message for message in kafka.read(worker.topic("offset")) if json.loads(message.key() or b"null")[0] == connector]
    return [json.loads(message.value() or b"null") for message in messages]


def successor(make_worker: Callable[..., Worker], worker: Worker, more: dict[str, str]) -> Worker:
    names = {name: worker.properties[name] for name in worker.properties if name == "group.id" or name.endswith(".storage.topic")}
    return make_worker(properties={**names, **more})


def runs_on(worker: Worker, connector: str) -> bool:
    status = worker.status(connector)
    own = worker.properties["rest.advertised.port"]
    return all(part["state"] == "RUNNING" and part["worker_id"].endswith(f":{own}") for part in (status["connector"], *status["tasks"]))


def take_over(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, source: Source, settings: dict[str, str]
) -> tuple[Worker, Worker]:
    """Freeze a worker with its tasks, have another take over, wake the first, and check what came of it."""
    first = make_worker(properties=settings)
    first.create(tag, source.config)
    frozen: list[int] = []
    try:
        with Changing(source):
            eventually(lambda: len(stored(kafka, first, tag)) > 3 and kafka.count(source.topic) > 3 * ROWS, "stream", 30)
            frozen = process_tree(first.pid)
            assert len(frozen) > 1
            send(frozen, signal.SIGSTOP)
            second = successor(make_worker, first, settings)
            eventually(lambda: runs_on(second, tag), "takeover", 40)
            before = kafka.count(source.topic)
            eventually(lambda: kafka.count(source.topic) > before + 20 * ROWS, "records of the second worker", 30)
            send(frozen, signal.SIGCONT)
            let_time_pass(3, "the woken worker does what it does")
        last = source.numbers()
        eventually(
            lambda: {row: numbers[-1] for row, numbers in numbers_in(kafka, source.topic).items()} == last,
            lambda: f"end of {last} in {numbers_in(kafka, source.topic)}",
            30,
        )
    finally:
        send(frozen, signal.SIGCONT)
    found = numbers_in(kafka, source.topic)
    assert_in_order(found)
    for row, numbers in found.items():
        assert set(numbers) == set(range(min(numbers), last[row] + 1))
    positions = [source.position(offset) for offset in stored(kafka, first, tag)]
    assert positions == sorted(positions), "a stored offset went back"
    assert runs_on(second, tag)
    assert first.children() == [], "the woken worker runs nothing"
    of = system_of(source.config)
    note(Fault.FROZEN_WORKER, of)
    note_changes(of, sum(len(set(numbers)) for numbers in found.values()))
    return first, second


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    found: Source = request.getfixturevalue(request.param)
    return found


both = pytest.mark.parametrize("source", ["mysql_table", pytest.param("postgres_table", marks=pytest.mark.long)], indirect=True)


@both
def test_a_worker_that_wakes_after_another_took_over_sends_and_stores_nothing(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, source: Source
) -> None:
    first, second = take_over(make_worker, kafka, tag, source, SHORT)
    assert "has not been able to show the group that it lives" in Path(first.log).read_text()
    second.delete(tag)


@pytest.mark.long
@both
def test_so_it_is_with_the_default_session(make_worker: Callable[..., Worker], kafka: Kafka, tag: str, source: Source) -> None:
    take_over(make_worker, kafka, tag, source, DEFAULTS)[1].delete(tag)
