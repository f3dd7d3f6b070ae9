"""How long a change takes from its commit in PostgreSQL to the lakehouse table: the whole way, through one worker.

    python -m tests.bench.bench_freshness [--tables 1] [--rate 10] [--seconds 60] [--format iceberg|delta] [--set NAME=VALUE]

Starts a broker, PostgreSQL and a worker with a source and a Spark sink that merges (`upsert`) and whose commit interval is 0. Changes are
committed one by one, half of them inserts and half updates of rows a while ago, over all tables in turn; each has a number. A change is
visible from the first version of its table that has its number in a new data file: the time of Iceberg's snapshot, or of the file in
Delta's log. The first third is not counted: the JVM compiles.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet as parquet
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table import StaticTable

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.postgres import PostgresServer
from connect_py.app.services.process import cpu_seconds, process_tree, wait_until
from connect_py.app.services.worker import Worker
from tests.bench.bench_density import total
from tests.fix_postgres import postgres_source
from tests.waiting import eventually

TAG = "fresh"
#: Rows of each table before the first change.
ROWS = 200


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--rate", type=float, default=10, help="changes a second, over all tables together")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--memory", default="1g", help="heap of the sink's JVM")
    parser.add_argument("--java-options", default="-Xshare:auto", help="of the sink's JVM; by default those that it has without any")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a property of the sink")
    return parser.parse_args()


def change(connection: psycopg.Connection, wanted: argparse.Namespace, stop: threading.Event, sent: dict[int, float]) -> None:
    """Commit changes at the rate, until the time is over; ``sent`` gets the time of each commit by its number."""
    began, number = time.time(), 0
    while not stop.is_set() and time.time() < began + wanted.seconds:
        number += 1
        table, row = f"t{number % wanted.tables}", ROWS + number
        if number // wanted.tables % 2 and number > 40 * wanted.tables:
            connection.execute(f"UPDATE {table} SET number = %s WHERE id = %s", (number, row - 20 * wanted.tables - wanted.tables))
        else:
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, 'a row of some words', 1.25, now())", (row, number))
        sent[number] = time.time()
        stop.wait(max(0.0, began + number / wanted.rate - time.time()))


def new_files_of_iceberg(table: Path) -> Iterator[tuple[float, list[Path]]]:
    """The time of each snapshot and its new data files."""
    loaded = StaticTable.from_metadata(str(table))
    for snapshot in loaded.snapshots():
        files = [
            Path(urllib.parse.urlparse(entry.data_file.file_path).path)
            for manifest in snapshot.manifests(loaded.io)
            if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content == ManifestContent.DATA
            for entry in manifest.fetch_manifest_entry(loaded.io)
            if entry.status == ManifestEntryStatus.ADDED
        ]
        yield snapshot.timestamp_ms / 1000, files


def new_files_of_delta(table: Path) -> Iterator[tuple[float, list[Path]]]:
    """The same for Delta."""
    for log in table.glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        yield log.stat().st_mtime, [table / urllib.parse.unquote(each["add"]["path"]) for each in actions if "add" in each]


def visible(place: Path, wanted: argparse.Namespace) -> dict[int, float]:
    """When each change's number was first in a table."""
    seen: dict[int, float] = {}
    for number in range(wanted.tables):
        table = place / "public" / f"t{number}"
        for at, files in new_files_of_iceberg(table) if wanted.format == "iceberg" else new_files_of_delta(table):
            for file in files:
                for found in parquet.read_table(file, columns=["number"])["number"].to_pylist():
                    seen[found] = min(seen.get(found, at), at)
    return seen


def destination(format_: str, place: Path) -> dict[str, str]:
    """A sink's properties of a table format, for tables below a folder."""
    if format_ == "delta":
        return {"lakehouse.format": "delta", "lakehouse.delta.root": str(place)}
    return {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": str(place)}


def main() -> None:
    wanted = arguments()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kafka = KafkaBroker(folder / "kafka")
        stack.callback(kafka.stop)
        postgres = PostgresServer(folder / "postgres")
        stack.callback(postgres.stop)
        worker = Worker(folder / "worker", kafka.bootstrap, env={"JDK_JAVA_OPTIONS": wanted.java_options})
        stack.callback(worker.stop)
        with postgres.connect("postgres") as connection:
            for number in range(wanted.tables):
                connection.execute(
                    f"CREATE TABLE t{number} (id bigint PRIMARY KEY, number bigint, name text, amount numeric(12,2), made timestamptz)"
                )
                connection.execute(f"INSERT INTO t{number} SELECT g, -g, 'row', 1.25, now() FROM generate_series(1, {ROWS}) g")
            included = ",".join(f"public.t{number}" for number in range(wanted.tables))
            worker.create("source", postgres_source(postgres, "postgres", TAG, table_include_list=included))
            place = folder / "lake"
            worker.create(
                "sink",
                {
                    "connector.class": "SparkLakehouseSink",
                    "topics": ",".join(f"pg_{TAG}.public.t{number}" for number in range(wanted.tables)),
                    **destination(wanted.format, place),
                    "lakehouse.tables.auto-create-enabled": "true",
                    "lakehouse.tables.write-mode": "upsert",
                    "lakehouse.control.commit.interval-ms": "0",
                    "lakehouse.spark.conf.spark.driver.memory": wanted.memory,
                    **dict(pair.split("=", 1) for pair in wanted.set),
                },
            )
            tables = [place / "public" / f"t{number}" for number in range(wanted.tables)]
            wait_until(lambda: all(any(table.rglob("*.parquet")) for table in tables), 300, "the snapshot's rows")
            print(f"load before: {os.getloadavg()[0]:.1f}", flush=True)
            sent: dict[int, float] = {}
            used = total(cpu_seconds, process_tree(worker.pid))
            change(connection, wanted, threading.Event(), sent)
            used = total(cpu_seconds, process_tree(worker.pid)) - used
            last = max(sent)
            eventually(lambda: last in visible(place, wanted), "last change", 120, 2)
            seen = visible(place, wanted)
        counted = [number for number in sent if number > last / 3]
        late = sorted(seen[number] - sent[number] for number in counted if number in seen)
        size = len(counted) // 4 + 1
        parts = [[seen[n] - sent[n] for n in counted[at : at + size] if n in seen] for at in range(0, len(counted), size)]
        print("p50 of each quarter of them: " + ", ".join(f"{statistics.median(part):.2f}" for part in parts) + " s")
        # a row that is changed again before its batch never shows its first value
        print(f"{len(counted)} changes, of which {len(counted) - len(late)} were overtaken by the next of their row")
        print(
            f"{wanted.format}, {wanted.tables} tables, {wanted.rate:g}/s: p50 {statistics.median(late):.2f} s, "
            f"p99 {late[int(len(late) * 0.99) - 1]:.2f} s, longest {late[-1]:.2f} s; {used / wanted.seconds:.2f} cores; "
            f"load after: {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
