"""A task's process that kills itself (`kill -9`) at named points of its way, one after the other: those of an initial snapshot, of the
stream, of an incremental snapshot, and of MySQL's schema history; with and without exactly-once delivery.

The points are in `tests/crash_plugin.py`, with what sets them. Rows change meanwhile, and a journal says what the topics have to hold. The
short form crashes at some points of each kind, by a seed that is printed (FAULTS_SEED repeats it), the long form at all of them, as many
times as FAULTS_POINTS says.
"""

from __future__ import annotations

import itertools
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import ServiceError
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import (
    Journalled,
    digest_of,
    line_of_document,
    mysql_statements,
    postgres_statements,
)
from connect_py.app.verify.history.records import Change, Op
from tests import crash_plugin, mongo_task
from tests.cluster import plugin_folder
from tests.crash_plugin import OF_A_CHUNK, OF_THE_HISTORY, OF_THE_SNAPSHOT, OF_THE_STREAM
from tests.fault_counts import Fault, note, system_of
from tests.faults.test_kill import PostgresChanges
from tests.faults.test_kill_mysql import PLAIN, MySqlChanges
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.kills import Changes, await_history, changing, new_dice
from tests.mysql_task import mysql_source
from tests.seeds import size
from tests.waiting import wait_until

#: How often each point is passed at last; 0 in the short form, which takes some points alone.
ROUNDS = size("FAULTS_POINTS", 0, 1)
#: Points of a kind in the short form.
SOME = 2

pytestmark = [pytest.mark.services, pytest.mark.timeout(240 + 360 * ROUNDS)]

#: The first one is changed.
NAMES = ("item", "other", "third")
ROWS = 1000
DIGEST = ["id", "version", "note"]
QUICK = {"offset.flush.interval.ms": "500"}


class Source(ABC):
    """Three tables with a journal, and a connector that reads them.

    Attributes:
        config: of the connector, as `await_history` takes it.
        plugin: the class that crashes.
        tables: their names in events.
        has_history: whether statements are kept in a topic.
    """

    config: dict[str, str]
    plugin: str
    tables: list[str]
    has_history = False

    @abstractmethod
    def changes(self, dice: random.Random) -> Changes:
        """Writes into the first table."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Ask for an incremental snapshot of the first table."""

    def alter(self, number: int) -> None:
        """Have a statement about the last table in the log, where there are statements."""
        raise NotImplementedError


class Postgres(Source):
    """See `Source`."""

    plugin = "tests.CrashingPostgres"

    def __init__(self, stack: ExitStack, postgres: PostgresAddress, _bootstrap: str, tag: str) -> None:
        database = postgres.create_database()
        stack.callback(postgres.drop_database, database)
        self._connection, self._writer = (stack.enter_context(postgres.connect(database)) for _ in range(2))
        self._connection.execute("CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))")
        for name in NAMES:
            self._connection.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, version integer NOT NULL DEFAULT 1, note text)")
            self._connection.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
            self._connection.execute(f"INSERT INTO {name} SELECT g, 1, 'old' FROM generate_series(1, {ROWS}) g")
            for statement in postgres_statements(Journalled("public", name, ["id"], "version", DIGEST)):
                self._connection.execute(statement)
        self.tables = [f"public.{name}" for name in NAMES]
        more = {"signal_data_collection": "public.signal", "incremental_snapshot_chunk_size": "100"}
        self.config = postgres_source(postgres, database, tag, table_include_list=",".join(self.tables), **more)

    def changes(self, dice: random.Random) -> Changes:
        """See `Source`."""
        return PostgresChanges(self._writer, dice, ROWS)

    def signal(self, number: int) -> None:
        """See `Source`."""
        data = json.dumps({"data-collections": [self.tables[0]]})
        self._connection.execute("INSERT INTO signal VALUES (%s, 'execute-snapshot', %s)", (f"s{number}", data))


class MySql(Source):
    """See `Source`."""

    plugin = "tests.CrashingMySql"
    has_history = True

    def __init__(self, stack: ExitStack, mysql: MySqlAddress, bootstrap: str, tag: str) -> None:
        connection, self._writer = (stack.enter_context(mysql.connect()) for _ in range(2))
        self._cursor, self._database = stack.enter_context(connection.cursor()), tag
        self._cursor.execute(f"CREATE DATABASE {tag}")
        stack.callback(self._cursor.execute, f"DROP DATABASE {tag}")
        self._cursor.execute(f"USE {tag}")
        self._cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, 1, 'old' FROM n"
        for name in NAMES:
            columns = "id INT PRIMARY KEY, version INT NOT NULL DEFAULT 1, note TEXT"
            self._cursor.execute(f"CREATE TABLE {name} ({columns}) CHARACTER SET utf8mb4")
            self._cursor.execute(f"INSERT INTO {name} {numbers}")
            for statement in mysql_statements(Journalled(tag, name, ["id"], "version", DIGEST)):
                self._cursor.execute(statement)
        self.tables = [f"{tag}.{name}" for name in NAMES]
        more = {
            **PLAIN,
            "signal_data_collection": f"{tag}.signals",
            "incremental_snapshot_chunk_size": "100",
            "schema_history_internal_store_only_captured_tables_ddl": "true",
        }
        self.config = mysql_source(mysql, bootstrap, tag, table_include_list=",".join([*self.tables, f"{tag}.signals"]), **more)

    def changes(self, dice: random.Random) -> Changes:
        """See `Source`."""
        return MySqlChanges(self._writer, self._database, dice, ROWS)

    def signal(self, number: int) -> None:
        """See `Source`."""
        data = json.dumps({"data-collections": [self.tables[0]]})
        self._cursor.execute("INSERT INTO signals VALUES (%s, 'execute-snapshot', %s)", (f"s{number}", data))

    def alter(self, number: int) -> None:
        """See `Source`."""
        self._cursor.execute(f"ALTER TABLE {NAMES[-1]} ADD COLUMN more_{number} INT")


class MongoChanges(Changes):
    """See `Changes`. The stand-in has no transactions: a line comes before its change. An event of a deletion says only the key, and half
    of the keys that are gone come back."""

    def __init__(self, db: Any, dice: random.Random) -> None:
        super().__init__(dice, ROWS)
        self._db, self._line = db, len(NAMES) * ROWS
        self._there = list(range(1, ROWS + 1))
        self._gone: list[int] = []
        self._sequences = dict.fromkeys(self._there, 1)

    def change(self, what: float, key: int, to: int, version: int) -> None:
        """See `Changes`: documents do not move, but new ones come."""
        place, text = key % len(self._there), f"changed {version}"
        if what < 0.2 and len(self._there) > ROWS // 2:
            self._there[place], self._there[-1] = self._there[-1], self._there[place]
            key = self._there.pop()
            self._gone.append(key)
            self._note(key, Op.DELETE, None)
            self._db.item.delete_one({"_id": key})
            return
        key, op = self._there[place], Op.UPDATE
        if what >= 0.8:
            key, op = self._gone.pop() if self._gone and what < 0.9 else len(self._sequences) + 1, Op.CREATE
            self._there.append(key)
        self._note(key, op, text)
        self._db.item.replace_one({"_id": key}, {"version": self._sequences[key], "note": text}, upsert=True)

    def _note(self, key: int, op: Op, text: str | None) -> None:
        self._line += 1
        self._sequences[key] = self._sequences.get(key, 0) + 1
        note_document(self._db, self._line, "item", key, self._sequences[key], op, text)


def note_document(db: Any, line: int, name: str, key: int, sequence: int, op: Op, text: str | None) -> None:
    """Insert a line of the journal."""
    change = Change(line, f"{db.name}.{name}", str(key), sequence, op, "", None if text is None else digest_of([text]))
    db.connect_py_journal.insert_one(line_of_document(change))


class Mongo(Source):
    """See `Source`."""

    plugin = "tests.CrashingMongo"

    def __init__(self, stack: ExitStack, mongo: MongoAddress, _bootstrap: str, tag: str) -> None:
        self._db = db = stack.enter_context(mongo_task.database(mongo))
        lines = itertools.count(1)
        for name in NAMES:
            for key in range(1, ROWS + 1):
                note_document(db, next(lines), name, key, 1, Op.CREATE, "old")
            db[name].insert_many([{"_id": key, "version": 1, "note": "old"} for key in range(1, ROWS + 1)])
        self.tables = [f"{db.name}.{name}" for name in NAMES]
        more = {"signal_data_collection": f"{db.name}.signals", "incremental_snapshot_chunk_size": "100"}
        self.config = mongo_task.config(mongo, db, topic_prefix=f"m_{tag}", collection_include_list=",".join(self.tables), **more)
        # an event as it happened: a look-up would show a later document
        self.config["capture.mode"] = "change_streams"

    def changes(self, dice: random.Random) -> Changes:
        """See `Source`."""
        return MongoChanges(self._db, dice)

    def signal(self, number: int) -> None:
        """See `Source`."""
        mongo_task.signal(self._db, "execute-snapshot", data_collections=[self.tables[0]])


SOURCES: dict[str, tuple[Callable[..., Source], str]] = {
    "postgres": (Postgres, "postgres"),
    "mysql": (MySql, "mysql"),
    "mongodb": (Mongo, "mongo"),
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, kafka: Kafka, tag: str) -> Iterator[Source]:
    make, server = SOURCES[request.param]
    with ExitStack() as stack:
        yield make(stack, request.getfixturevalue(server), kafka.bootstrap, tag)


class Crashes:
    """Crashes a connector's task, and has it started again: by its worker, or by a request, which need not wait.

    Args:
        file: `crash.file` of the connector.
        counted: the system under test.
    """

    def __init__(self, worker: Worker, connector: str, file: Path, counted: str) -> None:
        self._worker, self._connector, self._file, self._counted = worker, connector, file, counted
        self._sprung = file.with_suffix(".sprung")
        self.count = 0

    def arm(self, point: str, passings: int = 0) -> None:
        """Crash there next, after this number of passings."""
        print(f"{point}, after {passings} passings")
        ready = self._file.with_suffix(".next")
        ready.write_text(f"{point} {passings}")
        ready.rename(self._file)

    def await_crash(self, again: Callable[[], object] = lambda: None) -> None:
        """Wait until the armed point has been passed.

        Args:
            again: has it passed once more, if nothing else does; called from time to time.
        """
        for _ in range(6):
            again()
            with suppress(ServiceError):
                wait_until(self._sprung.exists, 5, "the crash", self._worker.service.is_alive)
                break
        assert self._sprung.exists(), f"{self._file.read_text()} was not passed: {json.dumps(self._worker.status(self._connector))}"
        self._sprung.unlink()
        note(Fault.KILLED_AT, self._counted)
        self.count += 1

    def go_on(self) -> None:
        """Have every second crashed task started at once; the others are started by their worker."""
        if self.count % 2 == 0:
            self._worker.request("POST", f"/connectors/{self._connector}/tasks/0/restart")

    def at(self, point: str, passings: int, again: Callable[[], object] = lambda: None) -> None:
        """Crash at a point of the running connector; see `arm` and `await_crash`."""
        self.arm(point, passings)
        self.go_on()
        self.await_crash(again)


def some(points: tuple[str, ...], dice: random.Random) -> list[str]:
    """All points, or as many as the short form takes; in any order."""
    return [point for _ in range(ROUNDS) for point in dice.sample(points, len(points))] or dice.sample(points, SOME)


@contextmanager
def crashing(
    make_worker: Callable[..., Worker], folder: Path, source: Source, tag: str, exactly_once: bool, first: str
) -> Iterator[tuple[Worker, Crashes]]:
    """A worker and its connector, whose task crashes first at a point of its start."""
    properties = QUICK | {"exactly.once.source.support": "enabled" if exactly_once else "disabled"}
    plugins = {crash_plugin: ("CrashingPostgres", "CrashingMySql", "CrashingMongo")}
    worker = make_worker(properties={**properties, "plugin.path": str(plugin_folder(folder, plugins))})
    file = folder / "crash.at"
    crashes = Crashes(worker, tag, file, "exactly once" if exactly_once else system_of(source.config))
    crashes.arm(first)
    config = {**source.config, "connector.class": source.plugin, "crash.file": str(file)}
    worker.request("POST", "/connectors", {"name": tag, "config": config})
    yield worker, crashes
    worker.delete(tag)


@pytest.mark.rotates
@pytest.mark.parametrize("exactly_once", [False, pytest.param(True, marks=pytest.mark.long)], ids=["at least once", "exactly once"])
def test_a_task_that_dies_at_any_point_of_its_way_loses_nothing(
    make_worker: Callable[..., Worker], kafka: Kafka, source: Source, tag: str, tmp_path: Path, exactly_once: bool
) -> None:
    dice = new_dice()
    chosen = set(some(OF_THE_SNAPSHOT, dice))
    of_the_snapshot = [point for point in OF_THE_SNAPSHOT if point in chosen]
    numbers = itertools.count(1)
    with crashing(make_worker, tmp_path, source, tag, exactly_once, of_the_snapshot[0]) as (worker, crashes):
        with changing(source.changes(dice)):
            crashes.await_crash()
            for point in of_the_snapshot[1:]:
                crashes.at(point, 0)
            for point in some(OF_THE_STREAM, dice):
                crashes.at(point, dice.randrange(20))
            for point in some(OF_A_CHUNK, dice):
                crashes.at(point, dice.randrange(4), lambda: source.signal(next(numbers)))
            for point in some(OF_THE_HISTORY, dice) if source.has_history else ():
                crashes.at(point, 0, lambda: source.alter(next(numbers)))
            crashes.go_on()
            worker.wait_for(tag, "RUNNING")
        lag = {"initial_rows_lag": True} if source.plugin == "tests.CrashingMongo" else {}
        digest = {table: ["note"] if lag else DIGEST for table in source.tables}
        config: dict[str, Any] = {**source.config, "name": tag}
        promise: dict[str, Any] = {"exactly_once": exactly_once, **lag}
        history = await_history(kafka, config, digest, offsets_topic=worker.topic("offset"), **promise)
    print(f"{crashes.count} crashes, {len(history.changes)} changes, {len(history.events)} records")
