"""What must be true after faults and after a long time: nothing leaks, a lag ends soon, nothing spins or grows, and a broker that falls
silent is noticed.

FAULTS_RESTARTS is the number of restarts of each task. FAULTS_SOAK_MINUTES is how long each soak lasts: 30 by hand.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress, PostgresServer
from connect_py.app.services.process import child_pids, command_of, cpu_seconds, process_tree
from connect_py.app.services.worker import Worker
from connect_py.task.fork_server import FORK_SERVER
from tests.fault_counts import Fault, note, note_changes
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.integration.test_metrics import Scrape
from tests.killable_broker import KillableBroker
from tests.mysql_task import mysql_source
from tests.seeds import size
from tests.steady_load import MySql, Postgres, SteadyLoad
from tests.waiting import eventually, let_time_pass, wait_until

RESTARTS = size("FAULTS_RESTARTS", 10, 100)
SOAK_MINUTES = size("FAULTS_SOAK_MINUTES", 1, 2)

pytestmark = pytest.mark.services


# -- what restarts leave -----------------------------------------------------------------------------------------------------------------


def fork_server_of(worker: Worker) -> int:
    """The process that forks the worker's tasks."""
    (found,) = (pid for pid in child_pids(worker.pid) if any(FORK_SERVER in word for word in command_of(pid)))
    return found


def held_by(name: str, pid: int) -> Counter[str]:
    """Threads of a process, and what its file descriptors are of."""
    found = Counter({f"threads of the {name}": len(list(Path(f"/proc/{pid}/task").iterdir()))})
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            kind = os.readlink(descriptor).partition(":")[0]
            found[f"{kind if kind in ('socket', 'pipe', 'anon_inode') else 'file'}s of the {name}"] += 1
    return found


def dead_children(pid: int) -> int:
    """Processes that have ended and were not waited for."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            count += state == "Z" and int(parent) == pid
    return count


def held(worker: Worker, connection: Any, admin: AdminClient) -> Counter[str]:
    """Everything that a restart might leave."""
    server = fork_server_of(worker)
    groups = admin.list_consumer_groups(request_timeout=20).result(30).valid
    count = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return (
        held_by("worker", worker.pid)
        + held_by("fork server", server)
        + Counter(
            {
                "processes": len(process_tree(worker.pid)),
                "dead processes": dead_children(worker.pid) + dead_children(server),
                "slots": connection.execute(count).fetchone()[0],
                "connections": connection.execute(others).fetchone()[0],
                "consumer groups": len(groups),
            }
        )
    )


def restart(worker: Worker, connector: str) -> None:
    """Restart the connector's task by REST, and wait until another process runs it."""
    before = set(worker.children())
    worker.request("POST", f"/connectors/{connector}/tasks/0/restart")
    wait_until(
        lambda: len(set(worker.children()) - before) == 1 and len(worker.children()) == len(before), 60, "another process of the task"
    )
    worker.wait_for(connector, "RUNNING")


@pytest.mark.long
@pytest.mark.timeout(120 + 8 * RESTARTS)
def test_restarts_of_tasks_leave_nothing(
    make_worker: Callable[..., Worker], kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    worker, admin = make_worker(), AdminClient({"bootstrap.servers": kafka.bootstrap})
    source, sink, lines = f"{tag}-source", f"{tag}-sink", tmp_path / "lines.txt"
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE item (id serial PRIMARY KEY)")
        worker.create(source, postgres_source(postgres, database, tag, table_include_list="public.item"))
        connection.execute("INSERT INTO item DEFAULT VALUES")
        wait_until(lambda: kafka.count(f"pg_{tag}.public.item") == 1, 60, "the first row")
        worker.create(sink, {"connector.class": "FileStreamSink", "file": str(lines), "topics": f"pg_{tag}.public.item"})

        def again(rounds: int) -> None:
            for _ in range(rounds):
                for connector in (source, sink):
                    restart(worker, connector)
                connection.execute("INSERT INTO item DEFAULT VALUES")

        again(3)  # threads and connections that are kept are made once
        before: Counter[str] = Counter()
        until = time.monotonic() + 15
        while time.monotonic() < until:  # as some come and go: the facts of a source, the requests of a test
            before |= held(worker, connection, admin)
        again(RESTARTS)
        more: Counter[str] = Counter()

        def is_as_before() -> bool:
            more.clear()
            more.update(held(worker, connection, admin) - before)
            return not more

        eventually(is_as_before, lambda: f"{dict(more)} are still there after {RESTARTS} restarts; before there were {before}", 60)
        wait_until(lambda: len(lines.read_text().splitlines()) >= RESTARTS + 4, 60, "the rows in the file")
    print(dict(before))
    note(Fault.REQUEST, "one worker", 2 * RESTARTS)
    note_changes("PostgreSQL", RESTARTS + 4)
    worker.delete(source)
    worker.delete(sink)


# -- lag after a fault -------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableBroker]:
    found = KillableBroker(tmp_path_factory.mktemp("kafka"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that nobody else uses."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    yield server
    server.stop()


@pytest.fixture
def worker(broker: KillableBroker, tmp_path: Path) -> Iterator[Worker]:
    running = Worker(tmp_path / "worker", broker.bootstrap)
    yield running
    running.stop()


def kill_task(worker: Worker, _broker: KillableBroker, _server: PostgresServer) -> float:
    for pid in worker.children():
        os.kill(pid, signal.SIGKILL)
    note(Fault.KILLED_TASK, "PostgreSQL")
    return time.monotonic()


def kill_worker(worker: Worker, _broker: KillableBroker, _server: PostgresServer) -> float:
    worker.kill()
    note(Fault.KILLED_WORKER, "PostgreSQL")
    let_time_pass(2, "until somebody starts it again")
    since = time.monotonic()
    worker.restart()
    return since


def kill_broker(_worker: Worker, broker: KillableBroker, _server: PostgresServer) -> float:
    broker.kill()
    note(Fault.KILLED_BROKER, "PostgreSQL")
    let_time_pass(5, "an outage")
    broker.bring_back()
    return time.monotonic()


def kill_database(_worker: Worker, _broker: KillableBroker, server: PostgresServer) -> float:
    server.kill()
    note(Fault.KILLED_DATABASE, "PostgreSQL")
    let_time_pass(5, "an outage")
    server.start()
    return time.monotonic()


#: Each returns the moment from which on nothing is wrong.
FAULTS = {"task": kill_task, "worker": kill_worker, "broker": kill_broker, "database": kill_database}


@pytest.mark.long
@pytest.mark.parametrize("victim", FAULTS)
def test_the_lag_is_short_again_soon_after_a_fault(
    worker: Worker, broker: KillableBroker, own_postgres: PostgresServer, tag: str, victim: str
) -> None:
    database = own_postgres.create_database()
    table = Postgres(lambda: own_postgres.connect(database))
    worker.create(tag, postgres_source(own_postgres, database, tag, table_include_list="public.item"))
    with SteadyLoad(table, broker.bootstrap, f"pg_{tag}.public.item") as load:
        load.recovery(time.monotonic())
        seconds = [load.recovery(FAULTS[victim](worker, broker, own_postgres)) for _ in range(3)]
        rows = load.finish()
    print(f"kill -9 of the {victim}: the lag was below 5 s again after {', '.join(f'{each:.1f}' for each in seconds)} s")
    assert max(seconds) < 30
    note_changes("PostgreSQL", rows)
    worker.delete(tag)
    own_postgres.drop_database(database)


# -- a broker that falls silent ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_broker_that_falls_silent_is_noticed_and_nothing_is_lost_when_it_wakes(
    worker: Worker, broker: KillableBroker, own_postgres: PostgresServer, tag: str
) -> None:
    database = own_postgres.create_database()
    table = Postgres(lambda: own_postgres.connect(database))
    worker.create(tag, postgres_source(own_postgres, database, tag, table_include_list="public.item"))
    scrape = Scrape(worker.url)
    with SteadyLoad(table, broker.bootstrap, f"pg_{tag}.public.item") as load:
        load.recovery(time.monotonic())
        said_before = len(worker.log.read_text())
        broker.freeze()
        note(Fault.FROZEN_BROKER, "PostgreSQL")
        frozen = time.monotonic()
        try:
            wait_until(lambda: scrape("connect_py_source_verdict", connector=tag, verdict="waiting for Kafka") == 1, 60, "the verdict")
            verdict = time.monotonic() - frozen
            silent = f"Kafka broker {broker.bootstrap}: requests are not answered in time"
            wait_until(lambda: silent in worker.log.read_text()[said_before:], 60 - verdict, "a line in the log")
            logged = time.monotonic() - frozen
            assert worker.status(tag)["tasks"][0]["state"] == "RUNNING"
        finally:
            broker.wake()
        back = load.recovery(time.monotonic())
        print(f"a silent broker: the verdict after {verdict:.1f} s, the log after {logged:.1f} s; the lag was short after {back:.1f} s")
        assert back < 30
        rows = load.finish()
    wait_until(lambda: f"Kafka broker {broker.bootstrap}: answers again after" in worker.log.read_text()[said_before:], 30, "the good news")
    assert worker.status(tag)["tasks"][0]["state"] == "RUNNING"
    note_changes("PostgreSQL", rows)
    worker.delete(tag)
    own_postgres.drop_database(database)


# -- a long time -------------------------------------------------------------------------------------------------------------------------


def resident_kilobytes(pid: int) -> int:
    """Of a process's memory, what is in the machine's."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


@pytest.fixture(params=["postgres", "mysql"])
def soaked(request: pytest.FixtureRequest, kafka: Kafka, tag: str) -> Iterator[tuple[Any, dict[str, str], str]]:
    """A table to write into, the configuration of a source of it, and its topic."""
    if request.param == "postgres":
        postgres: PostgresAddress = request.getfixturevalue("postgres")
        database: str = request.getfixturevalue("database")
        config = postgres_source(postgres, database, tag, table_include_list="public.item")
        yield Postgres(lambda: postgres.connect(database)), config, f"pg_{tag}.public.item"
        return
    mysql: MySqlAddress = request.getfixturevalue("mysql")
    name = f"soak_{uuid.uuid4().hex[:8]}"
    yield MySql(mysql.connect, name), mysql_source(mysql, kafka.bootstrap, name), f"{name}.{name}.item"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.long
@pytest.mark.timeout(300 + 120 * SOAK_MINUTES)
def test_a_worker_does_not_grow_under_a_steady_load_and_does_not_spin_without_one(
    make_worker: Callable[..., Worker], kafka: Kafka, soaked: tuple[Any, dict[str, str], str], tag: str
) -> None:
    table, config, topic = soaked
    worker = make_worker()
    worker.create(tag, config)
    (task,) = worker.children()
    watched = {"worker": worker.pid, "task": task, "fork server": fork_server_of(worker)}
    sizes: dict[str, list[int]] = {name: [] for name in watched}
    with SteadyLoad(table, kafka.bootstrap, topic, pause=0.01) as load:
        load.recovery(time.monotonic())
        began = time.monotonic()
        while time.monotonic() < began + 60 * SOAK_MINUTES:
            for name, pid in watched.items():
                sizes[name].append(resident_kilobytes(pid))
            let_time_pass(0.5, "two looks at the memory of a soak")
        rows = load.finish()
    assert worker.children() == [task], "the task was started again"
    grown = {}
    for name, each in sizes.items():
        fifth = len(each) // 5
        early, late = statistics.median(each[2 * fifth : 3 * fifth]), statistics.median(each[-fifth:])
        grown[name] = late / early - 1
        print(f"{name}: {early / 1000:.1f} MB after the warm-up, {late / 1000:.1f} MB at the end ({grown[name]:+.1%})")
    let_time_pass(5, "what is stored after the last change")
    before, began = cpu_seconds(task), time.monotonic()
    let_time_pass(20, "an idle task")
    idle = (cpu_seconds(task) - before) / (time.monotonic() - began)
    print(f"{rows} rows in {SOAK_MINUTES} min; idle, the task takes {idle:.2%} of a core")
    assert max(grown.values()) < 0.05, grown
    assert idle < 0.02
    note_changes("MySQL" if "mysql" in config["connector.class"].lower() else "PostgreSQL", rows)
    worker.delete(tag)
