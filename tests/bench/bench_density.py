"""Many tasks on one worker: how long until all run, how much memory they take together, what they cost when nothing happens, how long a
restart of the worker takes; by Kafka Connect's worker, too, where CONNECT_REFERENCE names it (`tests/reference.py`).

    python -m tests.bench.bench_density [--files 100] [--postgres 50] [--mysql 50] [--property task.fork.server=false]

Each task is a connector's own: file sources of one line, sources of a PostgreSQL server and of a MySQL server with a table of one row each.
A connector counts as there when its status says RUNNING and its row is in its topic; after a restart, when it says RUNNING again. Memory is
PSS: pages that processes share are counted once, in parts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.mysql import MySqlAddress, MySqlServer
from connect_py.app.services.postgres import PostgresAddress, PostgresServer
from connect_py.app.services.process import cpu_seconds, process_tree, wait_until
from connect_py.app.services.worker import Worker
from tests.fix_postgres import postgres_source
from tests.mysql_task import mysql_source
from tests.reference import REFERENCE, JavaWorker

#: How long all may take, and what is waited before the idle worker is looked at: clients are let go 90 s after the last commit of offsets,
#: which follows the first record within a minute.
_START_SECONDS, _SETTLE_SECONDS, _IDLE_SECONDS = 900, 180, 30


def pss_mb(pid: int) -> float:
    """The memory of a process, shared pages divided among those that share them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def total(of: Callable[[int], float], pids: list[int]) -> float:
    """The sum over processes, without those that have just ended."""
    found = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, StopIteration):
            found += of(pid)
    return found


class Databases:
    """The servers, each with a database of one table that all its connectors read.

    Args:
        tag: part of names that no other worker's connectors have.
    """

    def __init__(self, folder: Path, asked: argparse.Namespace, stack: contextlib.ExitStack) -> None:
        self._line = folder / "lines.txt"
        self._line.write_text("one\n")
        self._postgres: PostgresAddress | None = None
        self._mysql: MySqlAddress | None = None
        if asked.postgres:
            server = PostgresServer(folder / "postgres")
            stack.callback(server.stop)
            self._postgres, self._database = server, server.create_database()
            with server.connect(self._database) as connection:
                connection.execute("CREATE TABLE one (id int PRIMARY KEY)")
                connection.execute("INSERT INTO one VALUES (1)")
        if asked.mysql:
            self._mysql = mysql = MySqlServer(folder / "mysql", "--max-connections=1000")
            stack.callback(mysql.stop)
            with mysql.connect() as session, session.cursor() as cursor:
                cursor.execute("CREATE DATABASE dense")
                cursor.execute("CREATE TABLE dense.one (id int PRIMARY KEY)")
                cursor.execute("INSERT INTO dense.one VALUES (1)")

    def connectors(self, asked: argparse.Namespace, tag: str, bootstrap: str) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Name, topic and configuration of each connector; kinds in turn."""
        for number in range(max(asked.files, asked.postgres, asked.mysql)):
            name = f"{tag}{number}"
            if number < asked.files:
                config = {"connector.class": "FileStreamSource", "file": str(self._line), "topic": f"file_{name}", "tasks.max": "1"}
                yield f"file-{name}", f"file_{name}", config
            if self._postgres and number < asked.postgres:
                config = postgres_source(self._postgres, self._database, name, plugin_name="pgoutput", table_include_list="public.one")
                yield f"postgres-{name}", f"pg_{name}.public.one", config
            if self._mysql and number < asked.mysql:
                config = mysql_source(self._mysql, bootstrap, "dense") | {"topic.prefix": f"my_{name}"}
                yield f"mysql-{name}", f"my_{name}.dense.one", config


def all_run(worker: Worker, count: int) -> bool:
    """Whether the tasks of all connectors say RUNNING."""
    found = worker.request("GET", "/connectors?expand=status")
    running = sum(task["state"] == "RUNNING" for connector in found.values() for task in connector["status"]["tasks"])
    failed = [task["trace"] for connector in found.values() for task in connector["status"]["tasks"] if task["state"] == "FAILED"]
    if failed:
        raise SystemExit(failed[0])
    return running == count


def measure(worker: Worker, connectors: list[tuple[str, str, dict[str, str]]], kafka: KafkaBroker) -> None:
    """Print what the connectors take."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    topics = {topic for _, topic, _ in connectors}
    began, before = time.monotonic(), total(cpu_seconds, process_tree(worker.pid))
    for name, _, config in connectors:
        worker.request("PUT", f"/connectors/{name}/config", config)
    posted = time.monotonic() - began
    wait_until(lambda: all_run(worker, len(connectors)), _START_SECONDS, "all tasks", worker.service.is_alive)
    running = time.monotonic() - began
    wait_until(lambda: topics <= set(admin.list_topics(timeout=30).topics), _START_SECONDS, "all records", worker.service.is_alive)
    pids = process_tree(worker.pid)
    cpu = total(cpu_seconds, pids) - before
    print(f"  posted {posted:.1f} s, all run {running:.1f} s, every first record {time.monotonic() - began:.1f} s, CPU {cpu:.1f} s")
    time.sleep(_SETTLE_SECONDS)
    pids = process_tree(worker.pid)
    idle, at = total(cpu_seconds, pids), time.monotonic()
    time.sleep(_IDLE_SECONDS)
    share = 100 * (total(cpu_seconds, pids) - idle) / (time.monotonic() - at)
    memory = f"worker {pss_mb(worker.pid):.0f} MB, all {total(pss_mb, pids):.0f} MB in {len(pids)} processes"
    print(f"  PSS: {memory}; idle {share:.1f} % of one core", flush=True)
    worker.stop()
    at = time.monotonic()
    worker.restart()
    answers = time.monotonic() - at
    wait_until(lambda: all_run(worker, len(connectors)), _START_SECONDS, "all tasks", worker.service.is_alive)
    cpu = total(cpu_seconds, process_tree(worker.pid))
    print(f"  restart: answers after {answers:.1f} s, all run after {time.monotonic() - at:.1f} s, CPU {cpu:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, count in ("files", 100), ("postgres", 50), ("mysql", 50):
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE", help="of this project's worker")
    parser.add_argument("--heap", default="1g", help="of Kafka Connect's worker")
    asked = parser.parse_args()
    own = dict(setting.split("=", 1) for setting in asked.property)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        databases = Databases(folder, asked, stack)
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        for kind in ("connect-py", "Kafka Connect") if REFERENCE else ("connect-py",):
            print(
                f"{kind}, {asked.files} files, {asked.postgres} PostgreSQL, {asked.mysql} MySQL; load {os.getloadavg()[0]:.1f}", flush=True
            )
            tag = "java" if kind == "Kafka Connect" else "ours"
            with contextlib.ExitStack() as running:
                if tag == "java":
                    worker: Worker = JavaWorker(folder / tag, kafka.bootstrap, properties={}, heap=asked.heap)
                else:
                    worker = Worker(folder / tag, kafka.bootstrap, properties=own)
                running.callback(worker.stop)
                measure(worker, list(databases.connectors(asked, tag, kafka.bootstrap)), kafka)


if __name__ == "__main__":
    main()
