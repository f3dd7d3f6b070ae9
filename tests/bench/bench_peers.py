"""The lakehouse sink and its peers on the same events: Iceberg's Kafka Connect sink, debezium-server-iceberg, pyiceberg, deltalake.

    CONNECT_REFERENCE=FOLDER python -m tests.bench.bench_peers drain [--who 'ours-*'] [--events 200000]
    CONNECT_REFERENCE=FOLDER python -m tests.bench.bench_peers fresh [--who iceberg-connect --interval 1000] [--rate 10] [--seconds 40]

Starts a broker and, for `fresh`, PostgreSQL and a worker with the source; each writer is then measured alone, in turn, in a process tree of
its own: a worker of this project, a worker of Kafka Connect, or one Python process. Both JVMs have the same heap and the same options.

`drain`: a first backlog in the log warms the writer up; it is then paused (a single process: SIGSTOP) while the next one is written. The
time is from its resumption to the commit of the last event. `fresh`: as bench_freshness.py, from the commit in PostgreSQL to the table's.
debezium-server-iceberg, where DEBEZIUM_SERVER_ICEBERG names its unpacked distribution, reads the database itself: its backlog is a
table's rows, then updates of them in PostgreSQL's log. It needs Java 21, by DEBEZIUM_SERVER_JAVA.

CPU is that of the writer's process tree. Memory is the tree's PSS, its peak of samples a second apart. Rows are counted at the end: all
events for an append, the living keys for an upsert. Iceberg's sink has no upsert (1.12.0); its plugin comes from Maven Central, and its
table keeps Debezium's timestamps as long and text, where ours and the loops' have timestamps.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable
from sqlalchemy.exc import OperationalError

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.postgres import PostgresServer
from connect_py.app.services.process import Service, cpu_seconds, process_tree
from connect_py.app.services.worker import Worker
from spark_sink.spark.jars import cached, resolve
from tests.bench.bench_density import pss_mb, total
from tests.bench.bench_freshness import ROWS, change, destination, new_files_of_delta, new_files_of_iceberg
from tests.bench.bench_sink_events import event, heads, produce
from tests.bench.bench_sink_python import events
from tests.fix_postgres import postgres_source
from tests.reference import REFERENCE

#: Iceberg's sink, its transform, and what its own distribution adds: Parquet, and Hadoop's file system.
PLUGIN = (
    "org.apache.iceberg:iceberg-kafka-connect:1.12.0",
    "org.apache.iceberg:iceberg-kafka-connect-transforms:1.12.0",
    "org.apache.iceberg:iceberg-parquet:1.12.0",
    "org.apache.hadoop:hadoop-client-runtime:3.4.3",
)

#: Who can be measured: name → format, mode.
WRITERS = {
    "iceberg-connect": ("iceberg", "append"),
    **{f"ours-{format_}-{mode}": (format_, mode) for format_ in ("iceberg", "delta") for mode in ("append", "upsert")},
    **{f"debezium-server-{mode}": ("iceberg", mode) for mode in ("append", "upsert")},
    **{f"pyiceberg-{mode}": ("iceberg", mode) for mode in ("append", "upsert")},
    **{f"deltalake-{mode}": ("delta", mode) for mode in ("append", "upsert")},
}

SERVER = os.environ.get("DEBEZIUM_SERVER_ICEBERG")

#: How long a start, a drain or the last change may take.
_SECONDS = 300


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("drain", "fresh"))
    parser.add_argument("--who", nargs="+", default=["*"], help=f"patterns of: {', '.join(WRITERS)}")
    parser.add_argument("--events", type=int, default=200_000, help="of a backlog; of pyiceberg's upserts a tenth")
    parser.add_argument("--backlogs", type=int, default=3)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=10, help="changes a second")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--heap", default="1g", help="of each JVM")
    parser.add_argument("--java-options", default="", help="of each JVM; bench_freshness.py has those of a quick start")
    parser.add_argument("--interval", default="1000", help="commit interval of Iceberg's sink, ms; ours is 0")
    parser.add_argument("--server-batch", type=int, default=2048, help="events of a commit of debezium-server-iceberg; its default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a property of our sink")
    parser.add_argument("--connect-set", action="append", default=[], metavar="NAME=VALUE", help="a property of Iceberg's sink")
    asked = parser.parse_args()
    asked.who = [name for name in WRITERS if any(fnmatch.fnmatch(name, pattern) for pattern in asked.who)]
    if not REFERENCE and "iceberg-connect" in asked.who:
        parser.error("Iceberg's sink needs CONNECT_REFERENCE, see tests/reference.py; name others by --who")
    if not SERVER:
        asked.who = [name for name in asked.who if not name.startswith("debezium-server")]
    asked.tables = 1
    return asked


@dataclass
class Writer:
    """A running writer and its table, `place`/…/`table`.

    Attributes:
        pid: of the tree's root.
        hold, resume: stop it from reading, and let it read.
        failure: what is wrong with it, if it failed.
        catalog: whether pyiceberg's own catalog has the table, in SQLite.
        read: data files that were looked at.
    """

    pid: int
    hold: Callable[[], None]
    resume: Callable[[], None]
    failure: Callable[[], str | None]
    place: Path
    table: str
    format: str
    catalog: bool = False
    read: set[Path] = field(default_factory=set)

    def location(self) -> Path | None:
        """Where the table is: its folder, or the metadata that pyiceberg's catalog names."""
        if self.catalog:
            of = {"uri": f"sqlite:///{self.place}/catalog.db", "init_catalog_tables": "false"}
            with contextlib.suppress(NoSuchTableError, OperationalError):  # the loop makes file and tables
                return Path(urllib.parse.urlparse(SqlCatalog("bench", **of).load_table(f"public.{self.table}").metadata_location).path)
            return None
        logs = self.place.rglob("version-hint.text" if self.format == "iceberg" else "_delta_log")
        folders = [path.parents[1] if self.format == "iceberg" else path.parent for path in logs]
        return next((folder for folder in folders if folder.name == self.table), None)

    def new_files(self) -> Iterator[tuple[float, Path]]:
        """The time of its version and the path of each data file that was not seen before."""
        location = self.location()
        if location is None:
            return
        with contextlib.suppress(FileNotFoundError):  # a new hint takes the place of the old one in two steps
            for at, files in new_files_of_iceberg(location) if self.format == "iceberg" else new_files_of_delta(location):
                for file in files:
                    if file not in self.read:
                        self.read.add(file)
                        yield at, file

    def first_seen(self, value: int) -> float | None:
        """When a row with this id came with a new file, among the files that this was not asked of before."""
        times = [at for at, file in self.new_files() if value in parquet.read_table(file, columns=["id"])["id"].to_pylist()]
        return min(times, default=None)

    def counted(self) -> str:
        """How many rows the table has, and how many keys."""
        location = self.location()
        assert location is not None
        if self.format == "iceberg":
            try:
                ids = StaticTable.from_metadata(str(location)).scan(selected_fields=("id",)).to_arrow()["id"]
            except ValueError:
                return "equality deletes, which pyiceberg does not read"
        else:
            ids = pa.table(QueryBuilder().register("t", DeltaTable(str(location))).execute("SELECT id FROM t").read_all())["id"]
        return f"{len(ids):,} rows of {len(ids.unique()):,} keys"


class Meter:
    """CPU and memory of a process tree from now on, until `stop`."""

    def __init__(self, pid: int) -> None:
        self._pid, self._began, self._before = pid, time.monotonic(), total(cpu_seconds, process_tree(pid))
        self._peak, self._end = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while True:
            self._peak = max(self._peak, total(pss_mb, process_tree(self._pid)))
            if self._end.wait(1):
                return

    def stop(self) -> tuple[float, float, float]:
        """Return seconds, CPU seconds and the peak in MiB."""
        used, seconds = total(cpu_seconds, process_tree(self._pid)) - self._before, time.monotonic() - self._began
        self._end.set()
        self._thread.join()
        return seconds, used, self._peak


def pairs(given: list[str]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in given)


def started(name: str, topic: str, bootstrap: str, folder: Path, asked: argparse.Namespace, stack: contextlib.ExitStack) -> Writer:
    """Start a writer of this topic's events."""
    format_, mode = WRITERS[name]
    place, table = folder / "lake", topic.rsplit(".", 1)[1]
    folder.mkdir()
    if name.startswith(("pyiceberg", "deltalake")):
        library, table = name.split("-")[0], "appended" if mode == "append" else "upserted"
        command = [sys.executable, "-m", "tests.bench.bench_peers_loop", library, mode, bootstrap, topic, str(place)]
        return process(Service(name, command, folder / "loop.log", cwd=Path.cwd()), place, table, format_, stack, library == "pyiceberg")
    environment = {"JDK_JAVA_OPTIONS": asked.java_options}
    if name == "iceberg-connect":
        jars = cached(PLUGIN, "iceberg-connect")
        resolve(PLUGIN, jars, transitive=True)
        (folder / "plugins").mkdir()
        (folder / "plugins" / "iceberg").symlink_to(jars)
        logging, main = f"-Dlog4j2.configurationFile={REFERENCE}/log4j2.properties", "org.apache.kafka.connect.cli.ConnectDistributed"
        worker = Worker(
            folder,
            bootstrap,
            properties={"plugin.path": str(folder / "plugins"), "plugin.discovery": "service_load"},
            command=["java", f"-Xmx{asked.heap}", logging, "-cp", f"{REFERENCE}/kafka-libs/*", main],
            env=environment,
            seconds=180,
        )
        config = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "iceberg.tables": f"public.{table}",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.schema-force-optional": "true",
            "iceberg.catalog.type": "hadoop",
            "iceberg.catalog.warehouse": str(place),
            "iceberg.control.topic": f"control-{topic}",
            "iceberg.control.commit.interval-ms": asked.interval,
            "transforms": "debezium",
            "transforms.debezium.type": "org.apache.iceberg.connect.transforms.DebeziumTransform",
            **pairs(asked.connect_set),
        }
    else:
        worker = Worker(folder, bootstrap, env=environment)
        config = {
            "connector.class": "SparkLakehouseSink",
            **destination(format_, place),
            "lakehouse.tables.auto-create-enabled": "true",
            "lakehouse.tables.write-mode": mode,
            "lakehouse.control.commit.interval-ms": "0",
            "lakehouse.spark.conf.spark.driver.memory": asked.heap,
            **pairs(asked.set),
        }
    stack.callback(worker.stop)
    worker.create(name, {"topics": topic, "tasks.max": "1", **config})

    def hold() -> None:
        worker.request("PUT", f"/connectors/{name}/pause")
        worker.wait_for(name, "PAUSED")

    def failure() -> str | None:
        return next((task["trace"] for task in worker.status(name)["tasks"] if task["state"] == "FAILED"), None)

    return Writer(worker.pid, hold, lambda: worker.request("PUT", f"/connectors/{name}/resume"), failure, place, table, format_)


def process(service: Service, place: Path, table: str, format_: str, stack: contextlib.ExitStack, catalog: bool = False) -> Writer:
    """A writer that is one process, which is held by SIGSTOP."""
    stack.callback(service.kill)
    return Writer(
        service.pid,
        lambda: os.kill(service.pid, signal.SIGSTOP),
        lambda: os.kill(service.pid, signal.SIGCONT),
        lambda: None if service.is_alive() else service.log_tail(150),
        place,
        table,
        format_,
        catalog,
    )


def debezium_server(name: str, source: dict[str, str], folder: Path, asked: argparse.Namespace, stack: contextlib.ExitStack) -> Writer:
    """Start debezium-server-iceberg, which reads the database itself; offsets are in a file."""
    (folder / "config").mkdir(parents=True)
    settings = {f"debezium.source.{key}": value for key, value in source.items() if key != "tasks.max"} | {
        "debezium.source.plugin.name": "pgoutput",
        "debezium.source.offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "debezium.source.offset.storage.file.filename": str(folder / "offsets"),
        "debezium.source.offset.flush.interval.ms": "0",
        "debezium.sink.type": "iceberg",
        "debezium.sink.iceberg.type": "hadoop",
        "debezium.sink.iceberg.catalog-name": "peers",
        "debezium.sink.iceberg.warehouse": str(folder / "lake"),
        "debezium.sink.iceberg.table-namespace": "public",
        "debezium.sink.iceberg.upsert": str(WRITERS[name][1] == "upsert").lower(),
        "debezium.sink.iceberg.upsert-keep-deletes": "false",
        "debezium.source.max.batch.size": str(asked.server_batch),
        "debezium.source.max.queue.size": str(4 * asked.server_batch),
        "debezium.format.value": "connect",
        "debezium.format.key": "connect",
        "debezium.transforms": "unwrap",
        "debezium.transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "debezium.transforms.unwrap.add.fields": "op,table,source.ts_ns,db,ts_ms",
        "debezium.transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        "debezium.transforms.unwrap.drop.tombstones": "true",
        "quarkus.log.console.json": "false",
        "quarkus.http.port": "0",
    }
    (folder / "config" / "application.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    runner = next(Path(SERVER or "").glob("*runner.jar"))
    java = os.environ.get("DEBEZIUM_SERVER_JAVA", "java")
    command = [java, f"-Xmx{asked.heap}", *asked.java_options.split(), "-cp", f"{runner}:{SERVER}/lib/*", "io.debezium.server.Main"]
    table = f"{source['topic.prefix']}.{source['table.include.list']}".replace(".", "_")
    return process(Service(name, command, folder / "server.log", cwd=folder), folder / "lake", table, "iceberg", stack)


def backlog(bootstrap: str, topic: str, count: int, keys: int, seed: int) -> int:
    """Write events, the last of them of a key that no other has; returns this key."""
    produce(bootstrap, [topic], count - 1, keys, seed)
    marker, (of_key, of_value) = keys + seed, heads(topic)
    key, value = event(random.Random(seed), marker, "u", topic.rsplit(".", 1)[1], count * (seed + 1))
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, of_value + value, of_key + key, 0)
    producer.flush(60)
    return marker


def wait_for(writer: Writer, probe: Callable[[], float | None], what: str) -> float:
    """The probe's first time that is one."""
    deadline = time.monotonic() + _SECONDS
    while (found := probe()) is None:
        if (failed := writer.failure()) or time.monotonic() > deadline:
            raise SystemExit(f"no {what}: {failed or f'{_SECONDS} s are over'}")
        time.sleep(0.2)
    return found


def changed_rows(connection: psycopg.Connection[tuple[object, ...]], count: int, keys: int, seed: int) -> int:
    """The same for a database: first a table of all keys, then updates, a thousand a transaction, and an insert; returns its key."""
    if not seed:
        connection.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, status text, price numeric(12,2), note text, quantity int, "
            "paid boolean, weight float8, created_at timestamp, updated_at timestamptz)"
        )
        row = "id % 9999, 'new', 25600.00, 'order ' || id || ' of somebody', 7, true, 0.123456, now(), now()"
        connection.execute(f"INSERT INTO orders SELECT id, {row} FROM generate_series(1, {keys}) AS g(id)")
    rng = random.Random(seed)
    for _ in range(count // 1000 if seed else 0):
        first = rng.randrange(keys - 1000) + 1
        between = (first, first + 999)
        connection.execute("UPDATE orders SET customer = customer + 1, updated_at = now() WHERE id BETWEEN %s AND %s", between)
    marker = keys + 1 + seed
    connection.execute("INSERT INTO orders (id) VALUES (%s)", (marker,))
    return marker


def drain(
    name: str, bootstrap: str, postgres: PostgresServer | None, folder: Path, asked: argparse.Namespace, stack: contextlib.ExitStack
) -> None:
    """Measure each backlog but the first."""
    count = asked.events // 10 if name == "pyiceberg-upsert" else asked.events
    topic, tag = f"{name}.public.orders", name.replace("-", "_")
    if name.startswith("debezium-server") and postgres:
        database = postgres.create_database()
        connection = stack.enter_context(postgres.connect(database))
        fill = functools.partial(changed_rows, connection, count, asked.keys)
        config = postgres_source(postgres, database, tag, table_include_list="public.orders")
        start = functools.partial(debezium_server, name, config, folder, asked, stack)
    else:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        fill = functools.partial(backlog, bootstrap, topic, count, asked.keys)
        start = functools.partial(started, name, topic, bootstrap, folder, asked, stack)
    marker, began = fill(0), time.time()
    writer = start()
    warm = wait_for(writer, lambda: writer.first_seen(marker), "end of the first backlog") - began
    for number in range(1, asked.backlogs):
        writer.hold()
        marker = fill(number)
        load, files = os.getloadavg()[0], len(writer.read)
        meter, began = Meter(writer.pid), time.time()
        writer.resume()
        took = wait_for(writer, lambda: writer.first_seen(marker), f"end of backlog {number + 1}") - began  # noqa: B023
        _, used, peak = meter.stop()
        print(
            f"{name}, backlog {number + 1}: {count / took:9,.0f} events/s, {used / count * 1e6:6.1f} CPU µs/event, {took:5.2f} s, "
            f"{peak:5,.0f} MB PSS, {len(writer.read) - files} files; the first backlog {warm:.1f} s; load {load:.1f}",
            flush=True,
        )
    writer.hold()
    if name.startswith("debezium-server"):
        wanted = f"{asked.keys + 1 + (asked.backlogs - 1) * (count // 1000 * 1000 + 1):,} rows"
    else:
        last = dict(events(bootstrap, topic, asked.backlogs * count))
        rows = asked.backlogs * count if name.endswith(("append", "connect")) else sum(row is not None for row in last.values())
        wanted = f"{rows:,} rows of {len(last):,} keys"
    print(f"{name}: wanted {wanted}, found {writer.counted()}", flush=True)


def fresh(
    name: str, source: Worker, postgres: PostgresServer, folder: Path, asked: argparse.Namespace, stack: contextlib.ExitStack
) -> None:
    """Measure changes one by one, from their commit to the table's."""
    database, tag = postgres.create_database(), name.replace("-", "_")
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE t0 (id bigint PRIMARY KEY, number bigint, name text, amount numeric(12,2), made timestamptz)")
        connection.execute(f"INSERT INTO t0 SELECT g, -g, 'row', 1.25, now() FROM generate_series(1, {ROWS}) g")
        config = postgres_source(postgres, database, tag, table_include_list="public.t0")
        if name.startswith("debezium-server"):
            writer = debezium_server(name, config, folder, asked, stack)
        else:
            source.create(tag, config)
            stack.callback(source.delete, tag)
            writer = started(name, f"pg_{tag}.public.t0", source.properties["bootstrap.servers"], folder, asked, stack)
        wait_for(writer, lambda: writer.first_seen(ROWS), "snapshot's rows")
        load, sent, meter, of_source = os.getloadavg()[0], dict[int, float](), Meter(writer.pid), Meter(source.pid)
        change(connection, asked, threading.Event(), sent)
        seconds, used, peak = meter.stop()
        _, by_source, _ = of_source.stop()
    seen: dict[int, float] = {}
    last = max(sent)

    def look() -> float | None:
        for at, file in writer.new_files():
            for number in parquet.read_table(file, columns=["number"])["number"].to_pylist():
                seen[number] = min(seen.get(number, at), at)
        return seen.get(last)

    wait_for(writer, look, "last change")
    counted = [number for number in sent if number > last / 3]
    late = sorted(seen[number] - sent[number] for number in counted if number in seen)
    print(
        f"{name}: p50 {statistics.median(late):.2f} s, p99 {late[int(len(late) * 0.99) - 1]:.2f} s, longest {late[-1]:.2f} s of "
        f"{len(late)} (of {len(counted)}); {used / seconds:.2f} cores (the source {by_source / seconds:.2f}), {peak:,.0f} MB PSS; "
        f"load {load:.1f} to {os.getloadavg()[0]:.1f}; {last + ROWS:,} events, found {writer.counted()}",
        flush=True,
    )


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        folder.chmod(0o755)
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        postgres = None
        if asked.what == "fresh" or any(name.startswith("debezium-server") for name in asked.who):
            postgres = PostgresServer(folder / "postgres")
            stack.callback(postgres.stop)
        if asked.what == "fresh":
            source = Worker(folder / "source", kafka.bootstrap)
            stack.callback(source.stop)
        for name in asked.who:
            with contextlib.ExitStack() as running:
                if asked.what == "drain":
                    drain(name, kafka.bootstrap, postgres, folder / name, asked, running)
                elif postgres:
                    fresh(name, source, postgres, folder / name, asked, running)


if __name__ == "__main__":
    main()
