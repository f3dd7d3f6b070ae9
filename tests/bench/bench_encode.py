"""How long the encoder takes a row: `python tests/bench/bench_encode.py [--rows N] [--schemas 0|1]`, microseconds of CPU a row.

The table is the benchmark's of ten columns. Timestamps and amounts are random over twenty years and a million, so that no cache of values
is favoured; text and numbers differ on every row. Figures are the best of five rounds, of the process's own CPU time. The process runs with
the allocator's settings that task processes get: without them glibc returns the heap to the kernel after each batch, 1 µs a row.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
import sys
import time
from collections.abc import Callable

from connect_py.api import JsonEncoding, Route
from connectors.engine.envelope import tail
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.columns import PgColumn, ValueOptions, column_plan

COLUMNS = [
    PgColumn("id", 20, "int8", nullable=False),
    PgColumn("customer_id", 23, "int4", nullable=False),
    PgColumn("name", 1043, "varchar", 64, nullable=False),
    PgColumn("email", 25, "text"),
    PgColumn("amount", 1700, "numeric", (12 << 16 | 2) + 4, nullable=False),
    PgColumn("quantity", 23, "int4"),
    PgColumn("active", 16, "bool", nullable=False),
    PgColumn("created", 1114, "timestamp", nullable=False),
    PgColumn("updated", 1184, "timestamptz"),
    PgColumn("note", 25, "text"),
]
BATCH = 1000
MALLOC = {"MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_TOP_PAD_": "8388608"}


def encoder(schemas: bool) -> PostgresEncoder:
    plans = [column_plan(column, ValueOptions()) for column in COLUMNS]
    return PostgresEncoder("shop.public.load", plans, ["id"], SOURCE_SCHEMA, JsonEncoding(schemas, schemas))


def moment(seconds: int, fraction: str) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + fraction


def rows(count: int, *, kind: str = "plain") -> list[list[str | None]]:
    """kind: plain, fractions (microseconds in timestamps), nulls (a third of the nullable values), quotes (in each note), unicode, long."""
    chance = random.Random(42)
    out: list[list[str | None]] = []
    for g in range(1, count + 1):
        fraction = f".{chance.randrange(10**5, 10**6 - 1):06}".rstrip("0") if kind == "fractions" else ""
        row: list[str | None] = [
            str(g),
            str(chance.randrange(9973)),
            f"Customer number {g}",
            f"user{g}@example.com",
            f"{chance.randrange(100_000_000) / 100:.2f}",
            str(g % 50),
            "t" if g % 3 == 0 else "f",
            moment(chance.randrange(946_684_800, 1_577_836_800), fraction),
            moment(chance.randrange(946_684_800, 1_577_836_800), fraction) + "+00",
            f"the quick brown fox jumps over the lazy dog {g}",
        ]
        if kind == "nulls":
            for index in (3, 5, 8, 9):
                if chance.random() < 1 / 3:
                    row[index] = None
        if kind == "quotes":
            row[9] = f'{{"n": {g}, "text": "the quick brown fox"}}'
        if kind == "unicode":
            row[2] = f"Žluťoučký kůň {g}"
        if kind == "long":
            row[9] = f"the quick brown fox jumps over the lazy dog {g}" * 8
        out.append(row)
    return out


def copy_line(row: list[str | None]) -> bytes:
    fields = ["\\N" if v is None else v.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for v in row]
    return ("\t".join(fields) + "\n").encode()


def insert_message(row: list[str | None]) -> bytes:
    parts = [b"I", struct.pack(">i", 16384), b"N", struct.pack(">h", len(row))]
    for value in row:
        if value is None:
            parts.append(b"n")
        else:
            data = value.encode()
            parts += [b"t", struct.pack(">i", len(data)), data]
    return b"".join(parts)


def best(count: int, work: Callable[[], None]) -> float:
    figures = []
    for _ in range(5):
        start = time.process_time()
        work()
        figures.append(time.process_time() - start)
    return min(figures) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--schemas", type=int, default=1)
    options = parser.parse_args()
    table = encoder(bool(options.schemas))
    route = Route("shop.public.load", table.key_schema, table.value_schema)
    block = SourceBlock("3.6.1.Final", "shop", "shop", "public", "load")
    snapshot, end = block.snapshot("true", 1_795_244_381_480_114, 797, 49_567_344), tail("r", time.time_ns())
    streaming, created = block.transaction(1_795_244_381_480_114, 797, 49_567_344), tail("c", time.time_ns())
    for kind in ("plain", "fractions", "nulls", "quotes", "unicode", "long"):
        data = rows(options.rows, kind=kind)
        lines = [copy_line(row) for row in data]
        messages = [insert_message(row) for row in data]
        batches = [lines[i : i + BATCH] for i in range(0, len(lines), BATCH)]

        def copy(batches: list[list[bytes]] = batches) -> None:
            for batch in batches:
                table.copy_rows(batch, route, snapshot, end)

        def insert(messages: list[bytes] = messages) -> None:
            for lsn, message in enumerate(messages, 49_567_344):
                table.insert(message, 5, streaming(lsn), created)

        def update(messages: list[bytes] = messages) -> None:
            for lsn, message in enumerate(messages, 49_567_344):
                table.update(b"U" + message[1:5] + b"O" + message[6:] + message[5:], 5, streaming(lsn), created)

        works = (("copy", copy), ("insert", insert), ("update with whole old row", update))
        print(f"{kind:10}", "   ".join(f"{name} {best(len(lines), work):5.2f}" for name, work in works))


if __name__ == "__main__":
    if not MALLOC.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MALLOC})
    main()
