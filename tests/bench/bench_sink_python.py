"""The same events through deltalake and pyiceberg alone: read by confluent-kafka, parsed by orjson, written as Arrow tables, all in Python.

One process and no exactly-once, no evolution, no other types than these ten columns have: what a script of one's own would do. The last
event of each key is chosen in Python too, since both libraries refuse a source with a key twice.
"""

from __future__ import annotations

import base64
import datetime
import functools
import os
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import psutil
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("customer", pa.int32()),
        ("status", pa.string()),
        ("price", pa.decimal128(12, 2)),
        ("note", pa.string()),
        ("quantity", pa.int32()),
        ("paid", pa.bool_()),
        ("weight", pa.float64()),
        ("created_at", pa.timestamp("us")),
        ("updated_at", pa.timestamp("us", tz="UTC")),
    ]
)
SEAM = b',"payload":'


def events(bootstrap: str, topic: str, count: int) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Key and row of each event; None for a delete."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-sink-python", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    seam = 0
    left = count
    while left:
        for message in consumer.consume(min(left, 10_000), 10):
            value = message.value()
            if value[seam : seam + len(SEAM)] != SEAM:
                seam = value.index(SEAM)
            payload = orjson.loads(memoryview(value)[seam + len(SEAM) : -1])
            row = payload["after"]
            left -= 1
            yield (payload["before"] or row)["id"], row
    consumer.close()


def table_of(rows: list[dict[str, Any]], schema: pa.Schema = COLUMNS) -> pa.Table:
    """Typed columns; decimals are base64 of their digits, timestamps microseconds and texts."""
    columns = {name: [row[name] for row in rows] for name in schema.names}
    for field in schema:
        texts = columns[field.name]
        if pa.types.is_decimal(field.type):
            scale = -field.type.scale
            columns[field.name] = [Decimal(int.from_bytes(base64.b64decode(text), signed=True)).scaleb(scale) for text in texts]
        elif pa.types.is_timestamp(field.type) and field.type.tz:
            columns[field.name] = [datetime.datetime.fromisoformat(text) for text in texts]
    return pa.table(columns, schema=schema)


def iceberg(place: Path, rows: pa.Table) -> tuple[Callable[[pa.Table], Any], Callable[[pa.Table, list[int]], Any]]:
    """Append and upsert of pyiceberg; deletes are left out of the upsert, for which it has no statement."""
    from pyiceberg.catalog.sql import SqlCatalog

    place.mkdir(exist_ok=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{place}/catalog.db", warehouse=str(place))
    catalog.create_namespace("public")
    appended = catalog.create_table("public.appended", rows.schema)
    upserted = catalog.create_table("public.upserted", rows.schema)
    upserted.append(rows)
    return appended.append, lambda table, _: upserted.upsert(table, join_cols=["id"])


def delta(place: Path, rows: pa.Table) -> tuple[Callable[[pa.Table], Any], Callable[[pa.Table, list[int]], Any]]:
    """Append and merge of deltalake."""
    from deltalake import DeltaTable, write_deltalake

    upserted = str(place / "upserted")
    write_deltalake(upserted, rows)

    def upsert(table: pa.Table, deleted: list[int]) -> None:
        marked = table.append_column("$deleted", pa.array([False] * len(table)))
        gone = pa.table(
            {"id": deleted, "$deleted": [True] * len(deleted)}, schema=pa.schema([rows.schema.field("id"), ("$deleted", pa.bool_())])
        )
        source = pa.concat_tables([marked, gone], promote_options="default")
        merge = DeltaTable(upserted).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        columns = {name: f"s.{name}" for name in rows.schema.names}
        merge.when_matched_delete('s."$deleted"').when_matched_update(columns).when_not_matched_insert(
            columns, 'NOT s."$deleted"'
        ).execute()

    return lambda table: write_deltalake(str(place / "appended"), table, mode="append"), upsert


def compare(bootstrap: str, topic: str, count: int, place: Path) -> None:
    """Read and parse `count` events once; append them, and upsert them into a table that has these keys already."""
    process = psutil.Process()

    def timed(what: str, do: Callable[[], Any]) -> Any:
        began, before = time.monotonic(), sum(process.cpu_times()[:2])
        result = do()
        took, cost = time.monotonic() - began, sum(process.cpu_times()[:2]) - before
        print(
            f"{what}: {count / took:9,.0f} events/s, {cost / count * 1e6:6.1f} CPU µs/event, {took:5.2f} s, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        return result

    def last() -> tuple[pa.Table, list[int]]:
        by_key = dict(events(bootstrap, topic, count))
        return table_of([row for row in by_key.values() if row is not None]), [key for key, row in by_key.items() if row is None]

    rows, deleted = timed("Python: reading, parsing, the last of each key", last)
    for name, make in (("pyiceberg", iceberg), ("deltalake", delta)):
        append, upsert = make(place / name, rows)
        timed(f"{name}: append", functools.partial(append, rows))
        timed(f"{name}: upsert", functools.partial(upsert, rows, deleted))
