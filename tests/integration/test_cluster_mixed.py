"""A group taken over worker by worker, from Java workers to these and back, while PostgreSQL, MySQL and MongoDB are written to, a sink of
two tasks copies their topics to a file, and a source is within a slow snapshot.

Runs where CONNECT_REFERENCE names a folder with Kafka Connect's jars in ``kafka-libs`` and Debezium's in ``plugins/debezium``. On the way
to these workers a Java worker leads mixed groups, on the way back one of these does.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import RefusedError, Worker
from tests import mongo_task
from tests.canary import Canary, now_ms
from tests.cluster import address, places
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import payload
from tests.mysql_task import mysql_source
from tests.reference import REFERENCE, JavaWorker
from tests.waiting import eventually, let_time_pass

pytestmark = [
    pytest.mark.services,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not REFERENCE, reason="CONNECT_REFERENCE names no folder with Kafka Connect and Debezium"),
]

SETTINGS = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "1000", "scheduled.rebalance.max.delay.ms": "2000"}

#: Rows of each table before its connector starts; a multiple of four.
BEFORE = 200

#: Rows of the table whose snapshot is slow, and how long each takes: longer than one worker is replaced by another.
SLOW_ROWS, SLOW_SECONDS = 6_000, 0.01

#: Characters of each of them, by which the server, which sends 8 KiB at a time, sends some within a tenth of a second.
SLOW_WIDTH = 1_000

#: Records without schemas: a line of the file sink that is short enough is one write, also where tasks of two workers append to the file.
PLAIN = {
    f"{part}.converter{name}": value
    for part in ("key", "value")
    for name, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
}


def change(number: int) -> tuple[str, int]:
    """Operation and row of a numbered change: of four, two insert a row each, the third updates the first, the last deletes the second."""
    return ("c", "c", "u", "d")[(number - 1) % 4], number - (0, 0, 2, 2)[(number - 1) % 4]


def number_of(operation: str, row: int) -> int:
    """The number of a change, and of a row that a snapshot has read."""
    return row + (2 if operation in ("u", "d") else 0)


class Load(threading.Thread):
    """Makes numbered changes until it is stopped; connections are made in its own thread."""

    def __init__(self, changing: Callable[[ExitStack], Mapping[str, Callable[[int], object]]]) -> None:
        super().__init__(daemon=True)
        self._changing = changing
        self._enough = threading.Event()
        self.count = BEFORE

    def run(self) -> None:
        with ExitStack() as stack:
            make = self._changing(stack)
            while not self._enough.wait(0.02):
                operation, row = change(self.count + 1)
                make[operation](row)
                self.count += 1

    def finish(self) -> None:
        self._enough.set()
        self.join()


class Sources:
    """The three sources under load and the one of a slow snapshot: their configurations, topics and loads."""

    def __init__(
        self, stack: ExitStack, kafka: Kafka, postgres: PostgresAddress, pg_name: str, mysql: MySqlAddress, mongo: MongoAddress, tag: str
    ):
        with postgres.connect(pg_name) as connection:
            connection.execute("CREATE TABLE item (id integer PRIMARY KEY, changed integer DEFAULT 0)")
            connection.execute("INSERT INTO item SELECT generate_series(1, %s)", (BEFORE,))
            connection.execute("CREATE TABLE slow (id integer PRIMARY KEY, filler text)")
            connection.execute("INSERT INTO slow SELECT generate_series(1, %s), repeat('x', %s)", (SLOW_ROWS, SLOW_WIDTH))
        with mysql.connect() as my, my.cursor() as cursor:
            for statement in (f"CREATE DATABASE {tag}", f"CREATE TABLE {tag}.item (id INT PRIMARY KEY, changed INT DEFAULT 0)"):
                cursor.execute(statement)
            cursor.executemany(f"INSERT INTO {tag}.item (id) VALUES (%s)", [(row + 1,) for row in range(BEFORE)])
            my.commit()
        documents = stack.enter_context(mongo_task.database(mongo))
        documents["item"].insert_many([{"_id": row + 1} for row in range(BEFORE)])

        def in_postgres(stack: ExitStack) -> Mapping[str, Callable[[int], object]]:
            connection = stack.enter_context(postgres.connect(pg_name))
            return statements(connection.execute, "item")

        def in_mysql(stack: ExitStack) -> Mapping[str, Callable[[int], object]]:
            connection = stack.enter_context(mysql.connect())
            connection.autocommit(True)
            return statements(stack.enter_context(connection.cursor()).execute, f"{tag}.item")

        def in_mongo(stack: ExitStack) -> Mapping[str, Callable[[int], object]]:
            return {
                "c": lambda row: documents["item"].insert_one({"_id": row}),
                "u": lambda row: documents["item"].update_one({"_id": row}, {"$set": {"changed": 1}}),
                "d": lambda row: documents["item"].delete_one({"_id": row}),
            }

        self._slow = {
            **postgres_source(postgres, pg_name, f"{tag}_slow", plugin_name="pgoutput", table_include_list="public.slow"),
            "snapshot.fetch.size": "100",
            "max.batch.size": "100",
            "max.queue.size": "200",
            "snapshot.select.statement.overrides": "public.slow",
            "snapshot.select.statement.overrides.public.slow": f"SELECT id, filler FROM slow WHERE pg_sleep({SLOW_SECONDS}) IS NOT NULL",
            **PLAIN,
        }
        self._slow_prefix = self._slow["topic.prefix"]
        self.configs: Mapping[str, dict[str, str]] = {
            "pg": {**postgres_source(postgres, pg_name, tag, plugin_name="pgoutput", table_include_list="public.item"), **PLAIN},
            "my": {**mysql_source(mysql, kafka.bootstrap, tag), **PLAIN},
            "mongo": {**mongo_task.config(mongo, documents), "topic.prefix": f"mongo_{tag}", **PLAIN},
        }
        self.topics = {"pg": f"pg_{tag}.public.item", "my": f"{tag}.{tag}.item", "mongo": f"mongo_{tag}.{documents.name}.item"}
        self.loads = {"pg": Load(in_postgres), "my": Load(in_mysql), "mongo": Load(in_mongo)}

    def sink(self, file: Path) -> dict[str, str]:
        """A file sink of two tasks: values of the three topics, as they are in Kafka, are lines of the file."""
        return {
            "connector.class": "FileStreamSink",
            "tasks.max": "2",
            "topics": ",".join(self.topics.values()),
            "file": str(file),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }

    def slow(self, name: str) -> tuple[dict[str, str], str]:
        """The source of a slow snapshot, with a topic and a slot by this name; and the topic."""
        prefix = f"{self._slow_prefix}_{name}"
        own = {"topic.prefix": prefix, "slot.name": prefix, "publication.name": prefix}
        return {**self._slow, **own}, f"{prefix}.public.slow"


def statements(execute: Callable[..., object], table: str) -> Mapping[str, Callable[[int], object]]:
    return {
        "c": lambda row: execute(f"INSERT INTO {table} (id) VALUES (%s)", (row,)),
        "u": lambda row: execute(f"UPDATE {table} SET changed = 1 WHERE id = %s", (row,)),
        "d": lambda row: execute(f"DELETE FROM {table} WHERE id = %s", (row,)),
    }


def copied(file: Path) -> Counter[str]:
    """JSON texts in the sink's file, and how often each is there. Two tasks may have written both lines before both line ends."""
    text, found, at = file.read_text().replace("\n", ""), Counter[str](), 0
    while at < len(text):
        _, end = json.JSONDecoder().raw_decode(text, at)
        found[text[at:end]] += 1
        at = end
    return found


def events(kafka: Kafka, topic: str) -> list[tuple[str, int]]:
    """Operation and number of each record."""
    found = []
    for message in kafka.read(topic):
        if message.value() is not None:
            key: Any = payload(message.key() or b"")["id"]
            found.append((payload(message.value() or b"")["op"], int(str(key))))
    return found


#: Makes a worker.
Kind = Callable[..., Worker]
KINDS: tuple[Kind, ...] = (Worker, JavaWorker)


class Mixed:
    """Workers of both kinds in one group.

    Args:
        settings: of the workers, in addition to `SETTINGS`.
        parts: how many connectors and tasks there are.
    """

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str], parts: int = 6) -> None:
        self._folder, self._bootstrap, self._settings, self.parts = folder, bootstrap, {**SETTINGS, **settings}, parts
        self._names: dict[str, str] = {}
        self._made = 0
        self.workers: list[Worker] = []

    def add(self, kind: Kind) -> Worker:
        worker = kind(self._folder / f"worker-{self._made}", self._bootstrap, properties={**self._settings, **self._names})
        self._made += 1
        self.workers.append(worker)
        if not self._names:
            self._names = {
                name: worker.properties[name] for name in worker.properties if name == "group.id" or name.endswith(".storage.topic")
            }
        return worker

    def end(self, old: Worker) -> None:
        """End a worker in order."""
        self.workers.remove(old)
        began = now_ms()
        old.stop()
        self.await_running()
        print(
            f"{'Java' if isinstance(old, JavaWorker) else 'Python'} worker ended after {now_ms() - began} ms; led by {self.leader_kind()}"
        )

    def await_running(self) -> None:
        """Everything runs on living workers, and every worker says the same."""
        living = {address(worker) for worker in self.workers}
        last: list[object] = []

        def is_running() -> bool:
            last.clear()
            try:
                last.extend(places(worker) for worker in self.workers)
            except (OSError, RefusedError) as error:
                last.append(error)
                return False
            shown = places(self.workers[0])
            parts = [part for found in shown.values() for part in found]
            return (
                last[1:] == last[:1] * (len(last) - 1)
                and len(parts) == self.parts
                and all(s == "RUNNING" and o in living for s, o in parts)
            )

        eventually(is_running, lambda: f"all on {living}: {last}", 120, pause=0.2)

    def leader(self) -> Worker:
        """As the newest lines of the workers' logs about it say, which agree soon."""
        found: list[Worker] = []

        def agree() -> bool:
            urls = set()
            for worker in self.workers:
                lines = [line for line in worker.log.read_text().splitlines() if "leaderUrl='" in line]
                urls |= {line.partition("leaderUrl='")[2].partition("'")[0].rstrip("/") for line in lines[-1:]}
            found[:] = [worker for worker in self.workers if {worker.url} == urls]
            return bool(found)

        eventually(agree, "a leader of all", 30)
        return found[0]

    def leader_kind(self) -> str:
        return "Java" if isinstance(self.leader(), JavaWorker) else "Python"

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()


@pytest.fixture
def make_mixed(kafka: Kafka, tmp_path: Path) -> Iterator[Callable[..., Mixed]]:
    """Makes a group, which is ended with the test; takes `settings` and `parts` of `Mixed`."""
    made: list[Mixed] = []

    def make(**arguments: Any) -> Mixed:
        made.append(Mixed(tmp_path, kafka.bootstrap, **arguments))
        return made[-1]

    yield make
    for group in made:
        group.close()


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_group_is_taken_over_worker_by_worker_and_given_back(
    make_mixed: Callable[..., Mixed],
    kafka: Kafka,
    postgres: PostgresAddress,
    database: str,
    mysql: MySqlAddress,
    mongo: MongoAddress,
    tmp_path: Path,
    tag: str,
    support: str,
) -> None:
    mixed = make_mixed(settings={"exactly.once.source.support": support, "consumer.isolation.level": "read_committed"}, parts=9)
    lines = tmp_path / "lines.txt"
    with ExitStack() as stack:
        sources = Sources(stack, kafka, postgres, database, mysql, mongo, tag)
        for _ in range(3):
            mixed.add(JavaWorker)
        for name, config in sources.configs.items():
            mixed.workers[0].create(name, config)
        for name, topic in sources.topics.items():
            eventually(lambda topic=topic: kafka.count(topic) >= BEFORE, f"the snapshot of {name}", 60)
        mixed.workers[0].create("lines", sources.sink(lines), tasks=2)
        mixed.await_running()
        for load in sources.loads.values():
            load.start()
        mixed.parts += 2
        try:
            for turn, kind in enumerate(KINDS):
                name = f"slow{turn}"
                config, topic = sources.slow(name)
                mixed.workers[0].create(name, config)
                leader, caught = mixed.leader(), list[int]()
                for old in sorted(mixed.workers, key=lambda worker, leader=leader: worker is leader):  # type: ignore[misc]
                    assert mixed.leader() is leader
                    mixed.add(kind)
                    mixed.await_running()
                    read = kafka.count(topic)
                    if places(old)[name][1][1] == address(old) and 0 < read < SLOW_ROWS:
                        caught.append(read)
                    mixed.end(old)
                    let_time_pass(2, "the new group works")
                rows = {*range(1, SLOW_ROWS + 1)}
                eventually(lambda topic=topic, rows=rows: {row for _, row in events(kafka, topic)} == rows, "the slow snapshot", 240)
                records = len(events(kafka, topic))
                print(f"the slow snapshot was within {caught} of {SLOW_ROWS} records when its worker ended; {records} in all")
                assert caught or records > SLOW_ROWS, "no worker changed within the snapshot"
                mixed.workers[0].delete(name)
                eventually(lambda name=name: name not in mixed.workers[0].request("GET", "/connectors"), "end of the slow source", 30)
        finally:
            for load in sources.loads.values():
                load.finish()
        for name, topic in sources.topics.items():
            check_source(kafka, name, topic, sources.loads[name].count, is_exact=support == "enabled")
        messages = [message for topic in sources.topics.values() for message in kafka.read(topic)]
        written = Counter(value.decode() for message in messages if (value := message.value()))
        found: Counter[str] = Counter()

        def has_all() -> bool:
            found.clear()
            found.update(copied(lines))
            del found["null"]
            return not written - found

        eventually(has_all, lambda: f"the sink lacks {[*(written - found)][:3]}", 60, pause=0.5)
        print(f"the sink's file has {found.total()} lines of {written.total()} records, {(found - written).total()} of them again")
        assert set(found) == set(written), "lines that are in no topic"
        for name in (*sources.configs, "lines"):
            mixed.workers[0].delete(name)
        eventually(lambda: mixed.workers[0].request("GET", "/connectors") == [], "end of the connectors", 30)


def check_source(kafka: Kafka, name: str, topic: str, count: int, *, is_exact: bool) -> None:
    """Every change is there in order, from the one before any that is there twice; the snapshot was made once."""
    wanted = {number_of(*change(number)) for number in range(BEFORE + 1, count + 1)} | {*range(1, BEFORE + 1)}
    found: list[tuple[str, int]] = []

    def is_there() -> bool:
        found[:] = events(kafka, topic)
        return {number_of(*event) for event in found} == wanted

    eventually(is_there, lambda: f"missing: {sorted(wanted - {number_of(*event) for event in found})[:9]}", 60, pause=0.5)
    read = [row for operation, row in found if operation == "r"]
    print(f"{name}: {len(wanted)} changes in {len(found)} records, {len(read)} read by snapshots")
    assert sorted(read) == [*range(1, BEFORE + 1)], "a snapshot was made again"
    assert not is_exact or len(found) == len(wanted), "a reader of committed records got a row twice"
    newest = BEFORE
    for operation, row in found:
        number = number_of(operation, row)
        assert number <= newest + 1, f"{name}: {number} after {newest}"
        assert operation == "r" or (operation, row) == change(number)
        newest = max(newest, number)


#: What a hand-over takes in addition to the heartbeat by which Java workers learn of a round: tasks end, and start elsewhere.
STOP_AND_START_MS = 3_000


@pytest.mark.parametrize("heartbeat", [1_000, 3_000])
def test_work_moves_past_a_living_java_leader_without_its_delay(
    make_mixed: Callable[..., Mixed], kafka: Kafka, tmp_path: Path, tag: str, heartbeat: int
) -> None:
    names = "abcdef"
    settings = {"scheduled.rebalance.max.delay.ms": "120000", "heartbeat.interval.ms": str(heartbeat)}
    mixed = make_mixed(settings=settings, parts=2 * len(names))
    leads, ends, stays = mixed.add(JavaWorker), mixed.add(Worker), mixed.add(Worker)
    files = {name: tmp_path / f"{name}.txt" for name in names}

    def append(line: str) -> None:
        for file in files.values():
            with file.open("a") as lines:
                lines.write(f"{line}\n")

    def lines(name: str) -> list[str]:
        return [payload(message.value()) for message in kafka.read(f"{tag}-{name}")]

    append("before")
    for name, file in files.items():
        config = {"connector.class": "FileStreamSource", "file": str(file), "topic": f"{tag}-{name}", "tasks.max": "1"}
        mixed.workers[0].create(name, config)
    mixed.await_running()
    moved = {name for name, parts in places(stays).items() if address(ends) in {owner for _, owner in parts}}
    assert moved, "the worker that is to end has nothing"
    assert mixed.leader() is leads

    with Canary() as canary:
        began = now_ms()
        mixed.workers.remove(ends)
        ends.stop()
        append("after")
        mixed.await_running()
        took = now_ms() - began
    print(f"{len(moved)} connectors with their tasks ran elsewhere after {took} ms; heartbeats each {heartbeat} ms, the delay is 120000 ms")
    assert took < heartbeat + STOP_AND_START_MS + canary.withheld(began, began + took)
    assert "Handed over to the others, as work that two members ran" in ends.log.read_text()
    assert mixed.leader() is leads
    for name in names:
        eventually(lambda name=name: lines(name) == ["before", "after"], f"the lines of {name}, each of them once", 30)
