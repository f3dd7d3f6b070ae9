"""A group taken over worker by worker, from Java workers to these and back, while PostgreSQL, MySQL and MongoDB are written to.

Runs where CONNECT_REFERENCE names a folder with Kafka Connect's jars in ``kafka-libs`` and Debezium's in ``plugins/debezium``. On the way
to these workers a Java worker leads mixed groups, on the way back one of these does.
"""

from __future__ import annotations

import threading
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
from tests.cluster import address, now_ms, places
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

#: Rows of each table before its connector starts.
BEFORE = 200


class Load(threading.Thread):
    """Inserts numbered rows until it is stopped; connections are made in its own thread."""

    def __init__(self, inserting: Callable[[ExitStack], Callable[[int], object]]) -> None:
        super().__init__(daemon=True)
        self._inserting = inserting
        self._enough = threading.Event()
        self.count = BEFORE

    def run(self) -> None:
        with ExitStack() as stack:
            insert = self._inserting(stack)
            while not self._enough.wait(0.02):
                insert(self.count + 1)
                self.count += 1

    def finish(self) -> None:
        self._enough.set()
        self.join()


class Sources:
    """The three sources: their configurations, topics and loads."""

    def __init__(
        self, stack: ExitStack, kafka: Kafka, postgres: PostgresAddress, pg_name: str, mysql: MySqlAddress, mongo: MongoAddress, tag: str
    ):
        with postgres.connect(pg_name) as connection:
            connection.execute("CREATE TABLE item (id integer PRIMARY KEY)")
            connection.execute("INSERT INTO item SELECT generate_series(1, %s)", (BEFORE,))
        with mysql.connect() as my, my.cursor() as cursor:
            for statement in (f"CREATE DATABASE {tag}", f"CREATE TABLE {tag}.item (id INT PRIMARY KEY)"):
                cursor.execute(statement)
            cursor.executemany(f"INSERT INTO {tag}.item VALUES (%s)", [(row + 1,) for row in range(BEFORE)])
            my.commit()
        documents = stack.enter_context(mongo_task.database(mongo))
        documents["item"].insert_many([{"_id": row + 1} for row in range(BEFORE)])

        def into_postgres(stack: ExitStack) -> Callable[[int], object]:
            connection = stack.enter_context(postgres.connect(pg_name))
            return lambda row: connection.execute("INSERT INTO item VALUES (%s)", (row,))

        def into_mysql(stack: ExitStack) -> Callable[[int], object]:
            connection = stack.enter_context(mysql.connect())
            connection.autocommit(True)
            cursor = stack.enter_context(connection.cursor())
            return lambda row: cursor.execute(f"INSERT INTO {tag}.item VALUES (%s)", (row,))

        def into_mongo(stack: ExitStack) -> Callable[[int], object]:
            return lambda row: documents["item"].insert_one({"_id": row})

        self.configs: Mapping[str, dict[str, str]] = {
            "pg": postgres_source(postgres, pg_name, tag, plugin_name="pgoutput", table_include_list="public.item"),
            "my": mysql_source(mysql, kafka.bootstrap, tag),
            "mongo": {**mongo_task.config(mongo, documents), "topic.prefix": f"mongo_{tag}"},
        }
        self.topics = {"pg": f"pg_{tag}.public.item", "my": f"{tag}.{tag}.item", "mongo": f"mongo_{tag}.{documents.name}.item"}
        self.loads = {"pg": Load(into_postgres), "my": Load(into_mysql), "mongo": Load(into_mongo)}


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
        self._folder, self._bootstrap, self._settings, self._parts = folder, bootstrap, {**SETTINGS, **settings}, parts
        self._names: dict[str, str] = {}
        self._made = 0
        self.workers: list[Worker] = []

    def add(self, kind: Kind) -> Worker:
        worker = kind(self._folder / f"worker-{self._made}", self._bootstrap, properties={**self._settings, **self._names}, seconds=180)
        self._made += 1
        self.workers.append(worker)
        if not self._names:
            self._names = {
                name: worker.properties[name] for name in worker.properties if name == "group.id" or name.endswith(".storage.topic")
            }
        return worker

    def replace(self, old: Worker, kind: Kind) -> None:
        """Add a worker of the kind, then end the old one in order."""
        self.add(kind)
        self.await_running()
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
                and len(parts) == self._parts
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
    tag: str,
    support: str,
) -> None:
    mixed = make_mixed(settings={"exactly.once.source.support": support})
    with ExitStack() as stack:
        sources = Sources(stack, kafka, postgres, database, mysql, mongo, tag)
        for _ in range(3):
            mixed.add(JavaWorker)
        for name, config in sources.configs.items():
            mixed.workers[0].create(name, config)
        for name, topic in sources.topics.items():
            eventually(lambda topic=topic: kafka.count(topic) >= BEFORE, f"the snapshot of {name}", 60)
        mixed.await_running()
        for load in sources.loads.values():
            load.start()
        try:
            for kind in KINDS:
                leader = mixed.leader()
                for old in sorted(mixed.workers, key=lambda worker, leader=leader: worker is leader):  # type: ignore[misc]
                    assert mixed.leader() is leader
                    mixed.replace(old, kind)
                    let_time_pass(2, "the new group works")
        finally:
            for load in sources.loads.values():
                load.finish()
        for name, topic in sources.topics.items():
            wanted = {*range(1, sources.loads[name].count + 1)}
            found: list[tuple[str, int]] = []

            def is_there(topic: str = topic, found: list[tuple[str, int]] = found, wanted: set[int] = wanted) -> bool:
                found[:] = events(kafka, topic)
                return {row for _, row in found} == wanted

            eventually(
                is_there, lambda found=found, wanted=wanted: f"missing: {sorted(wanted - {row for _, row in found})[:9]}", 60, pause=0.5
            )
            read = [row for op, row in found if op == "r"]
            print(f"{name}: {len(wanted)} rows in {len(found)} records, {len(read)} read by snapshots")
            assert sorted(read) == [*range(1, BEFORE + 1)], "a snapshot was made again"
            assert support == "disabled" or len(found) == len(wanted), "a reader of committed records got a row twice"
            newest = 0
            for _, row in found:
                assert row <= newest + 1 or row <= BEFORE, f"{name}: {row} after {newest}"
                newest = max(newest, row)
        for name in sources.configs:
            mixed.workers[0].delete(name)
        eventually(lambda: mixed.workers[0].request("GET", "/connectors") == [], "end of the connectors", 30)


def test_work_moves_past_a_living_java_leader_without_its_delay(
    make_mixed: Callable[..., Mixed], kafka: Kafka, tmp_path: Path, tag: str
) -> None:
    names = "abcdef"
    mixed = make_mixed(settings={"scheduled.rebalance.max.delay.ms": "120000"}, parts=2 * len(names))
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

    began = now_ms()
    mixed.workers.remove(ends)
    ends.stop()
    append("after")
    mixed.await_running()
    took = now_ms() - began
    print(f"{len(moved)} connectors with their tasks ran elsewhere after {took} ms, the leader's delay is 120000 ms")
    assert took < 60_000
    assert "Handed over to the others, as work that two members ran" in ends.log.read_text()
    assert mixed.leader() is leads
    for name in names:
        eventually(lambda name=name: lines(name) == ["before", "after"], f"the lines of {name}, each of them once", 30)
