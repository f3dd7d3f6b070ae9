"""A steady load of a table, and how far a topic is behind it.

Rows are numbered, each is committed by itself, and one thread notes when. Another one reads the topic, and notes when each number came. A
row that the database did not take, since it was not there, is written again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

import psycopg
import pymysql
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from tests.folding import payload
from tests.waiting import eventually

#: Errors of a database that is not there.
_GONE = (psycopg.OperationalError, pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)


class Database(Protocol):
    """What rows are written into."""

    def connect(self) -> Callable[[int], object]:
        """Return what writes the row of a number in a transaction of its own, unless it is there."""
        ...


class Postgres:
    """The table `item` of a database, which is made here.

    Args:
        connect: returns a connection in autocommit mode.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        with connect() as connection:
            connection.execute("CREATE TABLE item (id bigint PRIMARY KEY, note text)")

    def connect(self) -> Callable[[int], object]:
        """See `Database`."""
        connection = self._connect()
        # what is committed must survive the death of the server
        connection.execute("SET synchronous_commit = on")
        write = "INSERT INTO item VALUES (%s, repeat('steady ', 30)) ON CONFLICT DO NOTHING"
        return lambda number: connection.execute(write, (number,))


class MySql:
    """The table `item` of the database `name`; both are made here.

    Args:
        connect: returns a connection in autocommit mode.
    """

    def __init__(self, connect: Callable[[], Any], name: str) -> None:
        self._connect, self._name = connect, name
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"CREATE TABLE {name}.item (id BIGINT PRIMARY KEY, note TEXT)")

    def connect(self) -> Callable[[int], object]:
        """See `Database`."""
        cursor = self._connect().cursor()
        return lambda number: cursor.execute(f"INSERT IGNORE INTO {self._name}.item VALUES (%s, REPEAT('steady ', 30))", (number,))


class SteadyLoad:
    """Writes from `with` on until `finish`, and reads until the end of `with`.

    Args:
        pause: seconds between two rows.

    Attributes:
        committed: when each number was, in monotonic seconds.
        arrived: each number in the topic's order, as often as it came, and when.
    """

    def __init__(self, database: Database, bootstrap: str, topic: str, pause: float = 0.05) -> None:
        self._database, self._bootstrap, self._topic, self._pause = database, bootstrap, topic, pause
        self.committed: list[float] = []
        self.arrived: list[tuple[int, float]] = []
        self._seen: set[int] = set()
        self._enough, self._ended = threading.Event(), threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader = threading.Thread(target=self._read, daemon=True)

    def lag(self) -> float:
        """How many seconds ago the oldest row was committed that is not in the topic; 0 without one."""
        for number, when in enumerate(list(self.committed)):
            if number not in self._seen:
                return time.monotonic() - when
        return 0.0

    def recovery(self, since: float, below: float = 5.0, seconds: float = 90.0) -> float:
        """Wait until a row that was committed after a moment is in the topic, and no older one is missing for longer than `below` seconds.

        Returns:
            How many seconds after that moment this was so.
        """

        def is_back() -> bool:
            late = next((number for number, when in enumerate(list(self.committed)) if when > since), None)
            return late is not None and late in self._seen and self.lag() < below

        eventually(is_back, lambda: f"the lag is {self.lag():.1f} s", seconds)
        return time.monotonic() - since

    def finish(self, seconds: float = 90.0) -> int:
        """End the load, and wait until each row is in the topic, in order where it came first.

        Returns:
            How many rows were written.
        """
        self._enough.set()
        self._writer.join(seconds)
        wanted = set(range(len(self.committed)))
        eventually(lambda: self._seen >= wanted, lambda: f"{len(wanted - self._seen)} of {len(wanted)} rows are missing", seconds)
        first = list(dict.fromkeys(number for number, _ in list(self.arrived)))
        assert first == sorted(first), "rows came out of order"
        return len(wanted)

    def __enter__(self) -> Self:
        self._reader.start()
        self._writer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._enough.set()
        self._ended.set()
        self._writer.join(30)
        self._reader.join(30)

    def _write(self) -> None:
        write: Callable[[int], object] | None = None
        while not self._enough.wait(self._pause):
            try:
                write = write or self._database.connect()
                write(len(self.committed))
            except _GONE:
                write = None
            else:
                self.committed.append(time.monotonic())

    def _read(self) -> None:
        quick = {"fetch.wait.max.ms": 20, "reconnect.backoff.max.ms": 500, "log_level": 2}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "tests", "enable.auto.commit": False, **quick})
        consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        try:
            while not self._ended.is_set():
                for message in consumer.consume(1000, 0.05):
                    with suppress(KeyError):
                        self._take(message)
        finally:
            consumer.close()

    def _take(self, message: Message) -> None:
        if message.error() is None:
            number = int(payload(message.value())["after"]["id"])
            self.arrived.append((number, time.monotonic()))
            self._seen.add(number)
