"""The lakehouse sink's rate: events a second that a running task decodes and commits, one topic of one partition, one table.

    BOOTSTRAP=127.0.0.1:9092 python tests/bench/bench_sink.py --format iceberg --mode upsert --events 100000 --batches 4

Events are Debezium's, of ten columns, with their schemas (3.6 kB a record, lz4). The first batches warm the JVM up and are shown but not
counted; the rate is that of the median of the others, with the CPU time of the whole process tree and the machine's load beside it.
`--tables N` spreads the events over N topics and tables, and measures what N idle tables add to a batch of one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from spark_sink.task import SparkLakehouseSinkTask
from tests.fix_spark import Context, struct


def field(type_: str, name: str | None = None, **parameters: str) -> dict[str, object]:
    found: dict[str, object] = {"type": type_, "optional": True}
    if name:
        found |= {"name": name, "version": 1}
    return found | ({"parameters": parameters} if parameters else {})


ROW = {
    "id": {"type": "int64", "optional": False},
    "customer": field("int32"),
    "status": field("string"),
    "price": field("bytes", "org.apache.kafka.connect.data.Decimal", scale="2", **{"connect.decimal.precision": "12"}),
    "note": field("string"),
    "quantity": field("int32"),
    "paid": field("boolean"),
    "weight": field("double"),
    "created_at": field("int64", "io.debezium.time.MicroTimestamp"),
    "updated_at": field("string", "io.debezium.time.ZonedTimestamp"),
}
SOURCE = {
    **{name: field("string") for name in ("version", "connector", "name", "snapshot", "db", "sequence", "schema", "table")},
    **{name: field("int64") for name in ("ts_ms", "ts_us", "ts_ns", "txId", "lsn", "xmin")},
}


def heads(topic: str) -> tuple[bytes, bytes]:
    row = {**struct(ROW, name=f"{topic}.Value"), "optional": True}
    source = struct(SOURCE, name="io.debezium.connector.postgresql.Source")
    transaction = struct(
        {"id": field("string"), "total_order": field("int64"), "data_collection_order": field("int64")}, name="event.block"
    )
    fields = {"before": row, "after": row, "source": source, "transaction": {**transaction, "optional": True}, "op": field("string")}
    fields |= {name: field("int64") for name in ("ts_ms", "ts_us", "ts_ns")}
    value = {**struct(fields, name=f"{topic}.Envelope"), "version": 2}
    key = struct({"id": ROW["id"]}, name=f"{topic}.Key")
    return tuple(f'{{"schema":{json.dumps(one, separators=(",", ":"))},"payload":'.encode() for one in (key, value))  # type: ignore[return-value]


def event(rng: random.Random, key: int, op: str, table: str, number: int) -> tuple[bytes, bytes]:
    after = (
        f'{{"id":{key},"customer":{rng.randrange(9999)},"status":"{rng.choice(("new", "paid", "sent"))}","price":"AJiWgA==",'
        f'"note":"order {number} of somebody {rng.randrange(10**9)}","quantity":{rng.randrange(99)},"paid":true,'
        f'"weight":{rng.random():.6f},'
        f'"created_at":{1700000000000000 + number},"updated_at":"2026-01-01T10:{number % 60:02d}:00.{number % 1000000:06d}Z"}}'
    )
    source = (
        f'{{"version":"3.6.1","connector":"postgresql","name":"bench","snapshot":"false","db":"shop","sequence":"[\\"{number}\\",\\"{number}\\"]",'
        f'"schema":"public","table":"{table}","ts_ms":1,"ts_us":1,"ts_ns":1,"txId":{number},"lsn":{number},"xmin":null}}'
    )
    rows = f'"before":{after},"after":null' if op == "d" else f'"before":null,"after":{after}'
    return (
        f'{{"id":{key}}}}}'.encode(),
        f'{{{rows},"source":{source},"transaction":null,"op":"{op}","ts_ms":1,"ts_us":1,"ts_ns":1}}}}'.encode(),
    )


def produce(bootstrap: str, topics: list[str], events: int, keys: int, seed: int) -> None:
    """Mostly updates of known keys and inserts, a few deletes."""
    rng = random.Random(seed)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 20, "queue.buffering.max.kbytes": 200_000})
    prefixes = {topic: heads(topic) for topic in topics}
    for number in range(events):
        topic = topics[number % len(topics)]
        key, value = event(rng, rng.randrange(keys), "d" if rng.random() < 0.02 else "u", topic.rsplit(".", 1)[1], number + seed * events)
        of_key, of_value = prefixes[topic]
        while True:
            try:
                producer.produce(topic, of_value + value, of_key + key, 0)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(120)


def cpu() -> float:
    """CPU seconds of this process and its children (the JVM)."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes if process.is_running())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--mode", choices=("append", "upsert"), default="append")
    parser.add_argument("--events", type=int, default=100_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--warm", type=int, default=2, help="batches that are not counted")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--set", action="append", default=[], help="a further property of the sink, name=value")
    arguments = parser.parse_args()
    bootstrap = os.environ["BOOTSTRAP"]
    place = Path(tempfile.mkdtemp(prefix="bench-sink-"))
    tag = f"bench-sink-{os.getpid()}"
    topics = [f"{tag}.public.t{number}" for number in range(arguments.tables)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result(30)
    destination = (
        {"lakehouse.format": "delta", "lakehouse.delta.root": str(place)}
        if arguments.format == "delta"
        else {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": str(place)}
    )
    config = {
        "name": tag,
        "topics": ",".join(topics),
        **destination,
        "lakehouse.tables.auto-create-enabled": "true",
        "lakehouse.tables.write-mode": arguments.mode,
        "lakehouse.control.commit.interval-ms": "0",
        "lakehouse.max-offsets-per-trigger": str(arguments.events),
        "lakehouse.spark.master": arguments.master,
        **dict(pair.split("=", 1) for pair in arguments.set),
    }
    task = SparkLakehouseSinkTask()
    context = Context(bootstrap)
    rates: list[float] = []
    try:
        began = time.monotonic()
        task.start(config, context)
        assert task.ready(600)
        print(f"session after {time.monotonic() - began:.1f} s")
        for number in range(arguments.batches):
            produce(bootstrap, topics, arguments.events, arguments.keys, number)
            began, used = time.monotonic(), cpu()
            reached = task.step()
            seconds = time.monotonic() - began
            assert reached is not None
            context.group.update(reached)
            counted = number >= arguments.warm
            if counted:
                rates.append(arguments.events / seconds)
            load = os.getloadavg()[0]
            print(
                f"{'' if counted else 'warming up: '}{arguments.events / seconds:9,.0f} events/s, "
                f"{(cpu() - used) / arguments.events * 1e6:6.1f} CPU µs/event, "
                f"{seconds:5.2f} s, load {load:.1f}",
                flush=True,
            )
        if arguments.tables > 1:
            produce(bootstrap, topics[:1], 100, 100, 99)
            began = time.monotonic()
            task.step()
            print(f"a batch of 100 events for one table, {arguments.tables - 1} idle: {time.monotonic() - began:.2f} s")
        print(f"{arguments.format} {arguments.mode}: median {statistics.median(rates):,.0f} events/s")
    finally:
        task.close()
        admin.delete_topics(topics)
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
