"""How long a small batch takes in a large table of the lakehouse, with and without bounds of its keys (`spark_sink.tables.bounds`).

    python -m tests.bench.bench_merge [--format iceberg|delta] [--rows 4000000] [--changes 50] [--rounds 5]

Rows lie in the order of their keys, as a snapshot leaves them. Merged are changes of random rows, of rows that were written last, and new
rows; each kind with bounds and without, in turn. A round is one commit, watermark and all; medians are printed, in seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

from connect_py.api.record import TopicPartition
from spark_sink.config.layout import Layout
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName
from spark_sink.spark.session import open_session
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import Writer
from spark_sink.tables.bounds import key_bounds
from spark_sink.tables.open import open_tables
from spark_sink.tables.watermark import Watermark

TABLE, TOPIC = TableName(("public", "big")), TopicPartition("t", 0)
COLUMNS = {
    "id": ("bigint", "id"),
    "customer": ("int", "CAST(id % 9973 AS INT)"),
    "name": ("string", "concat('Customer ', id)"),
    "email": ("string", "concat('u', id, '@example.com')"),
    "amount": ("decimal(12,2)", "CAST(id % 100000 / 100 AS DECIMAL(12,2))"),
    "note": ("string", "concat('the quick brown fox jumps over the lazy dog ', id)"),
}
SHAPE = Shape(("id",), {name: type_ for name, (type_, _) in COLUMNS.items()}, required_keys=frozenset({"id"}))
EXPRESSIONS = [f"{expression} {name}" for name, (_, expression) in COLUMNS.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    os.environ.setdefault("CONNECT_PY_SPARK_SETTINGS", "spark.")  # any setting may be measured
    place = tempfile.mkdtemp(prefix="bench-merge-")
    try:
        measure(asked, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measure(asked: argparse.Namespace, place: str) -> None:
    """Print the medians."""
    where = {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": place}
    if asked.format == "delta":
        where = {"lakehouse.format": "delta", "lakehouse.delta.root": place}
    config = parse({"name": "bench", "topics": "t", "lakehouse.spark.conf.spark.driver.memory": "1500m", **where})
    session = open_session(config, "bench")
    spark = session.spark
    tables = open_tables(spark, config, Writer("bench", 0, 1))
    tables.create(TABLE, SHAPE.types, SHAPE.required_keys, {}, Layout())
    snapshot = spark.range(asked.rows).selectExpr(*EXPRESSIONS, "'r' `$op`")
    offset = asked.rows
    tables.append(TABLE, snapshot, SHAPE, Watermark({TOPIC: offset}))
    chance = random.Random(1)

    def merge(keys: list[int], *, bounded: bool) -> float:
        nonlocal offset
        offset += len(keys)
        events = spark.createDataFrame([(key,) for key in keys], "id bigint").selectExpr(*EXPRESSIONS, "'u' `$op`")
        began = time.monotonic()
        shape = dataclasses.replace(SHAPE, bounds=key_bounds(events, SHAPE, len(keys))) if bounded else SHAPE
        tables.merge(TABLE, events, shape, Watermark({TOPIC: offset}))
        return time.monotonic() - began

    kinds: dict[str, Callable[[], list[int]]] = {
        "random rows": lambda: chance.sample(range(asked.rows), asked.changes),
        "recent rows": lambda: chance.sample(range(asked.rows - 40 * asked.changes, asked.rows), asked.changes),
        "new rows": lambda: list(range(asked.rows + offset, asked.rows + offset + asked.changes)),
    }
    for keys in kinds.values():  # the JVM compiles
        for bounded in (False, True):
            merge(keys(), bounded=bounded)
    print(f"{asked.format}, {asked.changes} changes of {asked.rows:,} rows; load {os.getloadavg()[0]:.1f}")
    for name, keys in kinds.items():
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(asked.rounds):
            for bounded, times in taken.items():
                times.append(merge(keys(), bounded=bounded))
        without, bounds = statistics.median(taken[False]), statistics.median(taken[True])
        print(f"  {name}: without bounds {without:.2f} s, with {bounds:.2f} s, {without / bounds:.1f} x", flush=True)
    session.close()


if __name__ == "__main__":
    main()
