"""A loop of one's own in place of a sink: a topic's changes through confluent-kafka and orjson into pyiceberg's or deltalake's table.

    python -m tests.bench.bench_peers_loop pyiceberg|deltalake append|upsert BOOTSTRAP TOPIC FOLDER

What has come is written at once, 10,000 events at most, and the offset is committed after that: at least once. Columns are those of the
first event's schema and stay so. An append has a delete's last row; pyiceberg's upsert has no deletes, and the loop leaves them out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition

from tests.bench.bench_sink_python import SEAM, delta, iceberg, table_of

#: Events of a batch at most.
BATCH = 10_000

_TYPES = {
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "string": pa.string(),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.ZonedTimestamp": pa.timestamp("us", tz="UTC"),
}


def columns(value: bytes) -> pa.Schema:
    """The columns of an event's table, by the schema in it."""
    row = next(field for field in orjson.loads(value)["schema"]["fields"] if field["field"] == "after")
    found = []
    for field in row["fields"]:
        if field.get("name") == "org.apache.kafka.connect.data.Decimal":
            of = field["parameters"]
            type_: pa.DataType = pa.decimal128(int(of["connect.decimal.precision"]), int(of["scale"]))
        else:
            type_ = _TYPES[field.get("name") or field["type"]]
        found.append(pa.field(field["field"], type_, nullable=field["field"] != "id"))
    return pa.schema(found)


def payload(message: Message) -> dict[str, Any]:
    value = message.value()
    assert value is not None
    found: dict[str, Any] = orjson.loads(memoryview(value)[value.index(SEAM) + len(SEAM) : -1])
    return found


def main() -> None:
    library, mode, bootstrap, topic, folder = sys.argv[1:]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"loop-{topic}", "enable.auto.commit": False, "fetch.wait.max.ms": 50})
    consumer.assign([TopicPartition(topic, 0, 0)])
    append = upsert = None
    while True:
        # the first event alone is waited for: `consume` would wait for as many as it may return
        first = consumer.poll(10)
        messages = [] if first is None else [first, *consumer.consume(BATCH - 1, 0.05)]
        found = [payload(message) for message in messages if message.value()]
        if not found:
            continue
        if append is None or upsert is None:
            schema = columns(messages[0].value() or b"")
            append, upsert = (iceberg if library == "pyiceberg" else delta)(place, table_of([], schema))
        if mode == "append":
            append(table_of([each["after"] or each["before"] for each in found], schema))
        else:
            last = {(each["before"] or each["after"])["id"]: each["after"] for each in found}
            rows = table_of([row for row in last.values() if row is not None], schema)
            upsert(rows, [key for key, row in last.items() if row is None])
        consumer.commit(message=messages[-1], asynchronous=False)


if __name__ == "__main__":
    main()
