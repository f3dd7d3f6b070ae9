"""Debezium's events of a table of ten columns, with their schemas: 3.6 kB a record, of which 2.9 are the schema."""

from __future__ import annotations

import json
import random

from confluent_kafka import Producer

from tests.fix_spark import struct


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
