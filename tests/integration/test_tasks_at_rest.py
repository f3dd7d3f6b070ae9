"""Sources to which nothing happens for a while: they look around seldom, and do at once what they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import command_of
from connect_py.app.services.worker import Worker
from connect_py.task.producing import RELEASE_AFTER_SECONDS, REST_AFTER_SECONDS
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.mysql_task import mysql_source
from tests.waiting import wait_until

pytestmark = pytest.mark.services

#: Turns of a task's main thread in a second, at most, once it rests; 3.3 or 5 before.
_TURNS = 2.0
#: How soon it does what it is asked for, in seconds: half of what a poll of a database's stream waits.
_SOON = 1.0


def switches(pid: int) -> int:
    """How often the main thread of a process has waited for something."""
    lines = Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def most_turns(pids: list[int], seconds: float = 2.0) -> float:
    """How often they wait in a second, the one that does so most."""
    before, began = [switches(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)  # noqa: TID251  # what is measured is a rate
    return max(switches(pid) - earlier for pid, earlier in zip(pids, before, strict=True)) / (time.monotonic() - began)


def threads(pid: int) -> int:
    """How many threads a process has, those of Kafka clients too."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def await_tasks(worker: Worker, count: int) -> None:
    """Wait until this number of tasks is left."""
    wait_until(lambda: len(worker.children()) == count, 60, f"{count} tasks")


@pytest.fixture
def sources(
    kafka: Kafka, tag: str, tmp_path: Path, postgres: PostgresAddress, database: str, mysql: MySqlAddress
) -> dict[str, dict[str, str]]:
    """A file of one line, and an empty table of each server, by the connector's name."""
    (tmp_path / "lines").write_text("one\n")
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE one (id int PRIMARY KEY)")
    with mysql.connect() as session, session.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {tag}")
        cursor.execute(f"CREATE TABLE {tag}.one (id int PRIMARY KEY)")
    return {
        f"{tag}_file": {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), "topic": f"{tag}_lines", "tasks.max": "1"},
        f"{tag}_postgres": postgres_source(postgres, database, tag, plugin_name="pgoutput"),
        f"{tag}_mysql": mysql_source(mysql, kafka.bootstrap, tag),
    }


def test_sources_at_rest_do_at_once_what_they_are_asked_for(make_worker: Callable[..., Worker], sources: dict[str, dict[str, str]]) -> None:
    worker = make_worker()
    for name, config in sources.items():
        worker.create(name, config)
    pids, took = worker.children(), {}
    assert len(pids) == len(sources)
    wait_until(lambda: most_turns(pids) <= _TURNS, REST_AFTER_SECONDS + 60, "the tasks to rest")
    for name in sources:
        began = time.monotonic()
        worker.request("PUT", f"/connectors/{name}/pause")
        worker.wait_for(name, "PAUSED")
        took[name, "pause"] = time.monotonic() - began
    for name in sources:
        worker.request("PUT", f"/connectors/{name}/resume")
        worker.wait_for(name, "RUNNING")
    wait_until(lambda: most_turns(pids) <= _TURNS, REST_AFTER_SECONDS + 60, "the tasks to rest again")
    for number, name in enumerate(sources, 1):
        began = time.monotonic()
        worker.request("PUT", f"/connectors/{name}/stop")
        await_tasks(worker, len(pids) - number)
        took[name, "stop"] = time.monotonic() - began
    assert max(took.values()) < _SOON, took


#: Threads of a task without a Kafka client: its own and the reader of the worker's messages. PostgreSQL's housekeeping (autovacuum) moves
#: the position of its source, which is committed: the client of the offsets, with three more, may be there.
_THREADS = {"file": 2, "mysql": 2, "postgres": 5}


@pytest.mark.long
def test_sources_at_rest_have_no_kafka_client_until_there_is_a_record(
    kafka: Kafka,
    make_worker: Callable[..., Worker],
    sources: dict[str, dict[str, str]],
    tag: str,
    tmp_path: Path,
    postgres: PostgresAddress,
    database: str,
    mysql: MySqlAddress,
) -> None:
    worker = make_worker()
    for name, config in sources.items():
        worker.create(name, config)
    pids = worker.children()
    kinds = {pid: next(kind for kind in _THREADS if f"_{kind}-0" in " ".join(command_of(pid))) for pid in pids}
    topics = f"{tag}_lines", f"pg_{tag}.public.one", f"{tag}.{tag}.one"

    def await_records(*counts: int) -> None:
        wait_until(lambda: tuple(map(kafka.count, topics)) == counts, 30, f"records: {counts}")

    await_records(1, 0, 0)
    closed = 2 * RELEASE_AFTER_SECONDS
    wait_until(lambda: all(threads(pid) <= _THREADS[kind] for pid, kind in kinds.items()), closed, "the clients to be closed")
    with (tmp_path / "lines").open("a") as lines:
        lines.write("two\n")
    with postgres.connect(database) as connection:
        connection.execute("INSERT INTO one VALUES (1)")
    with mysql.connect() as session, session.cursor() as cursor:
        cursor.execute(f"INSERT INTO {tag}.one VALUES (1)")
        session.commit()
    await_records(2, 1, 1)
    assert worker.children() == pids
    assert all(worker.status(name)["tasks"][0]["state"] == "RUNNING" for name in sources)
