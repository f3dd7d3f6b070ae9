"""The lakehouse sink's rate: events a second that a running task decodes and commits, one topic of one partition, one table.

    BOOTSTRAP=127.0.0.1:9092 python tests/bench/bench_sink.py --format iceberg --mode upsert --events 100000 --batches 14 --warm 8

Events are Debezium's, of ten columns, with their schemas (3.6 kB a record, lz4). All of them are in the log before the task starts, as in a
backlog, so that the next batch is read while one is written. The first batches warm the JVM up and are shown but not counted; the rate is
that of the others together, with the CPU time of the whole process tree and the machine's load beside it.

`--tables N` spreads the events over N topics and tables, and measures what N idle tables add to a batch of one. `--master spark://…`
measures a standalone cluster. `--python M` then has deltalake and pyiceberg alone do the same with M events, in Python, without Spark.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api.record import TopicPartition
from connect_py.app.services.process import process_tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from spark_sink.task import SparkLakehouseSinkTask
from tests.bench.bench_density import pss_mb, total
from tests.bench.bench_sink_events import produce
from tests.bench.bench_sink_python import compare
from tests.fix_spark import Context


def cpu(master: str) -> float:
    """CPU seconds of this process and its children (the JVM), and of a standalone cluster's executors on this machine."""
    processes = {process.pid: process for process in (psutil.Process(), *psutil.Process().children(recursive=True))}
    if master.startswith("spark://"):
        for process in psutil.process_iter(["cmdline"]):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in (process.info["cmdline"] or ()):
                processes[process.pid] = process
    return sum(sum(process.cpu_times()[:2]) for process in processes.values() if process.is_running())


def resident() -> float:
    """MB that this process and its children hold; what they share is counted once, in parts (PSS)."""
    return total(pss_mb, process_tree(os.getpid())) * (1 << 20) / 1e6


def step(task: SparkLakehouseSinkTask) -> Mapping[TopicPartition, int]:
    """The next batch; the first one waits for Spark's start."""
    while (reached := task.step()) is None:
        time.sleep(0.02)
    return reached


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--mode", choices=("append", "upsert"), default="append")
    parser.add_argument("--events", type=int, default=100_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--warm", type=int, default=6, help="batches that are not counted")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g", help="heap of the driver's JVM; `default`: the sink's own")
    parser.add_argument("--python", type=int, default=0, help="events for the comparison with libraries of Python")
    parser.add_argument("--set", action="append", default=[], help="a further property of the sink, name=value")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    bootstrap = os.environ["BOOTSTRAP"]
    place = Path(tempfile.mkdtemp(prefix="bench-sink-"))
    tag = f"bench-sink-{os.getpid()}"
    topics = [f"{tag}.public.t{number}" for number in range(wanted.tables)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result(30)
    try:
        # By a process of its own, whose memory is not the task's; one batch more, which is only read ahead.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.starmap(produce, [(bootstrap, topics, wanted.events, wanted.keys, number) for number in range(wanted.batches + 1)])
        measure(wanted, bootstrap, tag, topics, place)
        if wanted.python:
            compare(bootstrap, topics[0], wanted.python, place)
    finally:
        admin.delete_topics(topics)
        shutil.rmtree(place, ignore_errors=True)


def measure(wanted: argparse.Namespace, bootstrap: str, tag: str, topics: list[str], place: Path) -> None:
    """Drain the topics through a task, and say how fast."""
    destination = (
        {"lakehouse.format": "delta", "lakehouse.delta.root": str(place)}
        if wanted.format == "delta"
        else {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": str(place)}
    )
    config = {
        "name": tag,
        "topics": ",".join(topics),
        **destination,
        "lakehouse.tables.auto-create-enabled": "true",
        "lakehouse.tables.write-mode": wanted.mode,
        "lakehouse.control.commit.interval-ms": "0",
        "lakehouse.max-offsets-per-trigger": str(wanted.events),
        "lakehouse.spark.master": wanted.master,
        **({} if wanted.memory == "default" else {"lakehouse.spark.conf.spark.driver.memory": wanted.memory}),
        **dict(pair.split("=", 1) for pair in wanted.set),
    }
    os.environ.setdefault("CONNECT_PY_SPARK_SETTINGS", "spark.")  # any setting may be measured
    task = SparkLakehouseSinkTask()
    context = Context(bootstrap)
    seconds = used = 0.0
    try:
        task.start(config, context)
        for number in range(wanted.batches):
            began, before = time.monotonic(), cpu(wanted.master)
            reached = step(task)
            took, cost = time.monotonic() - began, cpu(wanted.master) - before
            context.group.update(reached)
            counted = number >= wanted.warm
            if counted:
                seconds, used = seconds + took, used + cost
            print(
                f"{'' if counted else 'warming up: '}{wanted.events / took:9,.0f} events/s, "
                f"{cost / wanted.events * 1e6:6.1f} CPU µs/event, "
                f"{took:5.2f} s, {resident():,.0f} MB, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        events = wanted.events * (wanted.batches - wanted.warm)
        print(f"{wanted.format} {wanted.mode}: {events / seconds:,.0f} events/s, {used / events * 1e6:.1f} CPU µs/event")
        if wanted.tables > 1:
            while task.step() is not None:
                pass
            produce(bootstrap, topics[:1], 100, 100, 99)
            began = time.monotonic()
            task.step()
            print(f"a batch of 100 events for one table, {wanted.tables - 1} idle: {time.monotonic() - began:.2f} s")
    finally:
        task.close()


if __name__ == "__main__":
    main()
