"""Tell the tutorial: what the demo does and what it expects to see after each step.

Every expectation is checked against the database. Of a topic the demo shows its change events, in short.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from connect_py.app.demo.databases import CHUNK, PREFIX
from connect_py.app.demo.events import Change, LakeTable, count_records, read_changes
from connect_py.app.demo.kills import CHANGE_PAUSE_SECONDS, CHANGES, source_tasks, spark_processes
from connect_py.app.demo.screen import Screen, send
from connect_py.app.demo.stage import GROUP_SETTINGS, Stage
from connect_py.app.demo.takeover import PAUSE_SECONDS, Place, Writer, places, tally
from connect_py.app.services.kafka import kafka_jars
from connect_py.app.services.worker import RefusedError, Worker
from connect_py.errors import ConnectError
from spark_sink.spark.jars import SINK_JARS, cached, java, resolve

TOPIC = f"{PREFIX}.inventory.customers"
MEASUREMENTS = "inventory.measurements"
SOURCE, SINK = "inventory-connector", "lakehouse"

#: What those statements must put on the topic, after the snapshot's four records.
EXPECTED = [(1005, "create"), (1001, "update"), (1004, "delete"), (1004, "tombstone")]

#: Enough for a slow or busy machine: Spark needs twenty seconds of CPU until its first table stands.
PATIENCE_SECONDS = 240.0

Found = TypeVar("Found")


def address(worker: Worker) -> str:
    """Return a worker's host and port, as statuses name it."""
    return worker.url.removeprefix("http://")


def shown_url(worker: Worker) -> str:
    """Return a worker's address as a person would type it."""
    return worker.url.replace("127.0.0.1", "localhost")


class Story:
    """Tells the tutorial on a stage.

    Args:
        workers: how many share the work; the last step kills one of several.
        lakehouse: whether the sink has its part; without, no Spark is needed.
        kill: whether the source's task, Spark and the worker are killed while rows change; then there is one worker, and the sink.
        rows: of a table of measurements, which is captured and followed too; 0 for no such table.
    """

    def __init__(
        self, stage: Stage, screen: Screen, workers: int = 1, *, lakehouse: bool = True, kill: bool = False, rows: int = 0
    ) -> None:
        self._stage = stage
        self._database = stage.database
        self._lake = LakeTable(stage.warehouse / "inventory/customers")
        self._kill = kill
        self._rows = rows
        self._screen = screen
        self._workers = workers
        self._has_sink = lakehouse

    def tell(self) -> None:
        """All steps.

        Raises:
            ConnectError: a step did not show what it should; the text says which and what was seen instead.
        """
        self._fetch()
        self._start_servers()
        self._fill_database()
        self._start_source()
        if self._has_sink:
            self._start_sink()
        self._change_rows()
        if self._workers > 1:
            self._kill_worker()
        if self._kill:
            self._kill_everything()

    @property
    def url(self) -> str:
        """The address of a worker, as it is printed."""
        return shown_url(self._stage.worker)

    def _fetch(self) -> None:
        java()
        with self._screen.working("fetching the Kafka broker from Maven Central (44 MB, once)"):
            kafka_jars()
        with self._screen.working(f"fetching {self._database.label}, where it is not on this machine yet"):
            self._database.fetch()
        if not self._has_sink:
            return
        needed = cached(SINK_JARS, "spark-sink")
        with self._screen.working("fetching Spark's Iceberg and Kafka libraries from Maven Central (60 MB, once)"):
            resolve(SINK_JARS, needed)

    def _start_servers(self) -> None:
        count = self._workers
        self._screen.step(f"A database, a broker and {'a worker' if count == 1 else f'{count} workers of one group'}, on this machine")
        with self._screen.working(f"starting {self._database.label}"):
            where = self._stage.start_database()
        self._screen.done(where)
        with self._screen.working("starting Kafka"):
            kafka = self._stage.start_kafka()
        self._screen.done(f"Kafka at {kafka.bootstrap.replace('127.0.0.1', 'localhost')}")
        with self._screen.working("starting the worker" if count == 1 else f"starting {count} workers"):
            self._stage.start_workers(count)
        answer = send(self._screen, "GET", self.url + "/", show=False)
        self._screen.done(f"the worker at {self.url}, which speaks Kafka Connect {answer['version']}'s REST API")
        for worker in self._stage.workers[1:]:
            self._screen.done(
                f"a worker at {shown_url(worker)}, with the same group.id and internal topics; any of them answers every request"
            )

    def _fill_database(self) -> None:
        self._screen.step("A few rows" if not self._rows else f"A few rows, and {self._rows:,}")
        self._screen.note(self._database.fill())
        self._show_rows(self._database.customers())
        if not self._rows:
            return
        with self._screen.bar("inserting into inventory.measurements", self._rows) as show:
            for begin in range(1, self._rows + 1, CHUNK):
                self._database.make_measurements(begin, min(CHUNK, self._rows + 1 - begin))
                show(min(begin + CHUNK - 1, self._rows))
        self._screen.done(f"inventory.measurements has {self._rows:,} rows")

    def _start_source(self) -> None:
        self._screen.step(f"{self._database.label} -> Kafka: create a source connector")
        config = self._database.config(self._stage.kafka.bootstrap, with_measurements=bool(self._rows))
        send(self._screen, "POST", self.url + "/connectors", {"name": SOURCE, "config": config})
        began = time.monotonic()
        self._await_running(SOURCE)
        changes = self._await(lambda: self._changes(4), f"4 records on the topic {TOPIC}", SOURCE)
        self._screen.done(f"the topic {TOPIC} has its records {time.monotonic() - began:.1f} s after the request:")
        self._show_changes(changes)
        if self._rows:
            topic = f"{PREFIX}.{MEASUREMENTS}"
            self._follow(f"reading {MEASUREMENTS}", lambda: count_records(self._stage.kafka.bootstrap, topic), SOURCE)
            seconds = time.monotonic() - began
            self._screen.done(f"the topic {topic} has {self._rows:,} records {seconds:.1f} s after the request")

    def _start_sink(self) -> None:
        self._screen.step("Kafka -> Iceberg: create a sink connector, whose task is a Spark driver")
        config = {
            "connector.class": "SparkLakehouseSink",
            "tasks.max": "1",
            "topics": ",".join([TOPIC, f"{PREFIX}.inventory.orders", *([f"{PREFIX}.{MEASUREMENTS}"] if self._rows else [])]),
            "lakehouse.catalog.type": "hadoop",
            "lakehouse.catalog.warehouse": str(self._stage.warehouse),
            "lakehouse.tables.auto-create-enabled": "true",
            "lakehouse.control.commit.interval-ms": "1000",
            **self._database.sink_properties,
            # a task whose JVM is killed reports a failure, and stays FAILED without a policy
            **({"task.restart.policy": "on-failure"} if self._kill else {}),
        }
        send(self._screen, "POST", self.url + "/connectors", {"name": SINK, "config": config})
        began = time.monotonic()
        if self._rows:
            table = LakeTable(self._stage.warehouse / MEASUREMENTS.replace(".", "/"))
            self._follow(f"Spark starts, then writes {MEASUREMENTS}", table.count, SINK)
            self._screen.done(f"the Iceberg table {MEASUREMENTS} has {self._rows:,} rows after {time.monotonic() - began:.1f} s")
        with self._screen.working("Spark starts, reads the topics and creates the tables"):
            self._await_equal("the lakehouse table to equal inventory.customers")
        self._screen.done(f"the Iceberg table inventory.customers equals the database's after {time.monotonic() - began:.1f} s")

    def _change_rows(self) -> None:
        self._screen.step("Change rows, and see both follow")
        for step in self._database.steps():
            self._screen.code(self._database.prompt + step.shown)
            step.run()
        began = time.monotonic()
        changes = self._await(lambda: self._changes(4 + len(EXPECTED)), f"{len(EXPECTED)} more records on the topic {TOPIC}", SOURCE)[4:]
        seen = [(change.key, change.operation) for change in changes]
        if seen != EXPECTED:
            raise ConnectError(f"The topic {TOPIC} should show {EXPECTED} after the snapshot's records, and shows {seen}.")
        self._screen.done(f"on the topic after {time.monotonic() - began:.1f} s:")
        self._show_changes(changes)
        if not self._has_sink:
            return
        with self._screen.working("the sink merges them"):
            self._await_equal("the lakehouse table to follow the changes")
        self._screen.done(f"in the lakehouse table after {time.monotonic() - began:.1f} s:")
        self._show_rows(self._lake_rows())

    def _kill_worker(self) -> None:
        self._screen.step("Kill the worker that runs the source, while rows are written")
        before = self._await(self._all_run, "all connectors and tasks to run", SOURCE)
        self._show_places(before)
        victim = self._owner_of_source(before)
        seen = len(self._changes(0) or ())
        with Writer(self._database.session) as writer:
            self._await(lambda: self._arrived(writer.keys[:10], seen), "rows of the writer on the topic", SOURCE)
            self._screen.code(f"$ kill -9 {victim.pid}")
            victim.kill()
            killed, last = time.monotonic(), len(writer.keys)
            self._screen.note(
                f"{shown_url(victim)} is gone, and its tasks with it; a row is inserted every {PAUSE_SECONDS * 1000:.0f} ms meanwhile"
            )
            with self._screen.working("the group waits for it, then gives its work to the rest"):
                after = self._await(self._all_run, "the others to run everything", SOURCE)
            taken_over = time.monotonic() - killed
            self._await(lambda: self._arrived(writer.keys[last : last + 1] or [0], seen), "the first row since", SOURCE)
            first = time.monotonic() - killed
        self._screen.done(f"all of it runs on the {'other worker' if self._workers == 2 else 'others'} after {taken_over:.1f} s:")
        self._show_places(after)
        session, delay = (int(GROUP_SETTINGS[name]) / 1000 for name in ("session.timeout.ms", "scheduled.rebalance.max.delay.ms"))
        self._screen.note(
            f"the group waits for a sign of life {session:.0f} s here (session.timeout.ms, by default 10 s), then for the return"
        )
        self._screen.note(
            f"of the worker {delay:.0f} s here (scheduled.rebalance.max.delay.ms, by default 5 minutes), unless that one led the group;"
        )
        self._screen.note("a worker that gets SIGTERM, as in a deployment, hands its work over at once")
        self._await(lambda: self._arrived(writer.keys, seen), f"all {len(writer.keys)} rows on the topic", SOURCE)
        found = tally(writer.keys, self._created(seen))
        again = (
            f"{found.repeated} of them twice, since sources deliver at least once by default" if found.repeated else "none of them twice"
        )
        self._screen.done(f"the first row inserted after the kill was on the topic after {first:.1f} s")
        self._screen.done(f"{len(writer.keys)} rows were inserted before, during and after: the topic has all of them, {again}")
        if not self._has_sink:
            return
        with self._screen.working("the sink catches up"):
            self._await_equal("the lakehouse table to have all rows")
        self._screen.done(f"the lakehouse table equals the database's: {len(self._lake_rows())} rows, each of them once")

    def _kill_everything(self) -> None:
        self._screen.step(f"kill -9 of the source's task, of Spark and of the worker, while {CHANGES:,} rows change")
        worker = self._stage.worker
        seen = len(self._changes(0) or ())
        with Writer(self._database.session, CHANGE_PAUSE_SECONDS, mixed=True) as writer:
            self._screen.note("half of the changes insert a customer, the others update or delete one")
            self._await(
                lambda: (len(writer.keys) >= 100 and self._arrived(writer.keys[:100], seen)) or None, "100 new rows on the topic", SOURCE
            )
            [task] = source_tasks(worker)
            began, last = self._kill_process(task, "the task that reads the database", writer)
            with self._screen.working("the worker starts the task again"):
                self._await(lambda: self._arrived(writer.keys[last : last + 1], seen), "the first row since", SOURCE)
            self._screen.done(f"the first row inserted since was on the topic after {time.monotonic() - began:.1f} s")

            [jvm] = spark_processes(worker)
            began, _ = self._kill_process(jvm, "Spark", writer)
            with self._screen.working("the worker starts Spark again"):
                before = self._lake.commit()
                self._await(lambda: self._lake.commit() != before or None, "a commit of the new Spark", SOURCE)
            self._screen.done(f"the table was written again after {time.monotonic() - began:.1f} s")

            began, last = self._kill_process(worker.pid, "the worker, and all that it runs", writer)
            self._screen.code(f"$ connect-py distributed {worker.log.with_name('worker.properties')}")
            with self._screen.working("a new worker reads from Kafka what it has to run"):
                self._stage.restart_worker(worker)
                self._await(lambda: self._arrived(writer.keys[last : last + 1], seen), "the first row since", SOURCE)
            self._screen.done(f"the first row inserted since was on the topic after {time.monotonic() - began:.1f} s")
            with self._screen.bar("changing rows", CHANGES, writer.changes) as show:
                while writer.changes < CHANGES:
                    show(writer.changes)
                    time.sleep(0.2)
                    writer.check()
        self._await(lambda: self._arrived(writer.keys, seen), f"all {len(writer.keys)} inserted rows on the topic", SOURCE)
        found = tally(writer.keys, self._created(seen))
        again = f"{found.repeated} of them twice" if found.repeated else "none of them twice"
        self._screen.done(f"{writer.changes:,} rows changed; the topic has all {len(writer.keys):,} that were inserted, {again}")
        with self._screen.working("the sink catches up"):
            self._await_equal("the lakehouse table to have all changes")
        self._verify()

    def _kill_process(self, pid: int, what: str, writer: Writer) -> tuple[float, int]:
        """Kill; returns when, and how many customers had been inserted."""
        self._screen.code(f"$ kill -9 {pid}        # {what}; {writer.changes:,} rows have changed")
        os.kill(pid, signal.SIGKILL)
        return time.monotonic(), len(writer.keys)

    def _verify(self) -> None:
        """Compare all topics and tables with the database, by the command. Raises ConnectError with what it printed."""
        arguments = ["verify", SOURCE, SINK, "--worker", self.url, "--bootstrap-servers", self._stage.kafka.bootstrap]
        arguments += ["--wait", f"{PATIENCE_SECONDS:.0f}"]
        self._screen.code("$ connect-py " + " ".join(arguments))
        with self._screen.working("comparing topics and tables with the database, row by row"):
            done = subprocess.run(
                [sys.executable, "-P", "-m", "connect_py.app.cli", *arguments],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        if done.returncode != 0:
            raise ConnectError(f"connect-py verify ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        for line in done.stdout.splitlines():
            self._screen.done(line) if not line.startswith(" ") else self._screen.note(line)

    # -- looking -----------------------------------------------------------------------------------------------------------

    def _source_rows(self) -> list[dict[str, Any]]:
        return self._database.customers()

    def _lake_rows(self) -> list[dict[str, Any]]:
        return self._lake.rows(self._database.columns)

    def _await_equal(self, what: str) -> None:
        self._await(lambda: self._lake_rows() == self._source_rows() or None, what, SINK)

    def _changes(self, count: int) -> list[Change] | None:
        found = read_changes(self._stage.kafka.bootstrap, TOPIC)
        return found if len(found) >= count else None

    def _created(self, seen: int) -> list[int]:
        """Return the keys of the creating records after the first ones, in the topic's order."""
        return [change.key for change in (self._changes(0) or [])[seen:] if change.operation == "create"]

    def _arrived(self, keys: Sequence[int], seen: int) -> bool | None:
        """Return True when the topic has rows with these keys, and there are any."""
        return (bool(keys) and not tally(keys, self._created(seen)).missing) or None

    def _all_run(self) -> list[Place] | None:
        """Return who runs what, once everything runs on workers that live."""
        living = {address(worker) for worker in self._stage.workers if worker.service.is_alive()}
        found = places(self._stage.worker.request("GET", "/connectors?expand=status"))
        tasks = {place.connector for place in found if place.task is not None}
        is_whole = tasks == {place.connector for place in found}
        return found if is_whole and all(place.state == "RUNNING" and place.worker in living for place in found) else None

    def _owner_of_source(self, found: Sequence[Place]) -> Worker:
        owner = next(place.worker for place in found if place.connector == SOURCE and place.task is not None)
        return next(worker for worker in self._stage.workers if address(worker) == owner)

    def _follow(self, text: str, count: Callable[[], int], connector: str) -> None:
        """Show a bar until all measurements are counted. Raises ConnectError when nothing is added for as long as `_await` waits."""
        with self._screen.bar(text, self._rows) as show:
            reached = 0
            while reached < self._rows:
                reached = self._await(lambda: found if (found := count()) > reached else None, f"more of {MEASUREMENTS}", connector)  # noqa: B023
                show(reached)

    def _await_running(self, connector: str) -> None:
        self._await(lambda: self._task(connector).get("state") == "RUNNING" or None, f"the task of {connector} to run", connector)

    def _task(self, connector: str) -> dict[str, Any]:
        """Return the connector's only task's status; empty before there is one."""
        try:
            tasks = self._stage.worker.status(connector)["tasks"]
        except RefusedError:
            return {}
        return tasks[0] if tasks else {}

    def _await(self, probe: Callable[[], Found | None], what: str, connector: str) -> Found:
        """Ask until there is something; give up when the connector's task has failed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := probe()) is None:
            task = self._task(connector)
            if task.get("state") == "FAILED":
                raise ConnectError(f"The demo waited for {what}, and the task of {connector} failed:\n{task['trace']}")
            if time.monotonic() > deadline:
                end = self._stage.worker.service.log_tail(5)
                raise ConnectError(f"The demo waited {PATIENCE_SECONDS:.0f} s for {what}; the end of the worker's log:\n{end}")
            time.sleep(0.1)
        return found

    # -- showing -----------------------------------------------------------------------------------------------------------

    def _show_places(self, found: Sequence[Place]) -> None:
        lines = [
            (place.connector, "connector" if place.task is None else f"task {place.task}", place.state, place.worker) for place in found
        ]
        self._screen.table(("connector", "part", "state", "worker"), lines)

    def _show_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        columns = self._database.columns
        self._screen.table(columns, [[row[name] for name in columns] for row in rows])

    def _show_changes(self, changes: Sequence[Change]) -> None:
        def short(row: dict[str, Any] | None) -> str | None:
            return ", ".join(str(row[name]) for name in self._database.columns) if row else None

        rows = [[change.key, change.operation, short(change.before), short(change.after)] for change in changes]
        self._screen.table(("key", "op", "before", "after"), rows)
