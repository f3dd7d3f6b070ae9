"""How long generated code takes a row: `python tests/bench/bench_encode.py [--rows N] [--schemas 0|1]`, microseconds of CPU a row.

`--other CHECKOUT` measures another commit in turn with this one, and prints the ratios.

The table is the benchmark's of ten columns. Timestamps and amounts are random over twenty years and a million, so that no cache of values
is favoured; text and numbers differ on every row. Figures are the best of five rounds, of the process's own CPU time. The process runs with
the allocator's settings that task processes get: without them glibc returns the heap to the kernel after each batch, 1 µs a row.
"""

from __future__ import annotations

import argparse
import calendar
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from connect_py.api import JsonEncoding, Route
from connect_py.converters.json_struct import struct_writer
from connect_py.converters.json_write import WriteOptions
from connect_py.data.schema import Field, Schema, Struct, Type
from connectors.engine.encode.table import TableEncoder
from connectors.engine.envelope import tail
from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.columns import event_rows
from connectors.mysql.binlog.rows import read_images, row_reader
from connectors.mysql.binlog.table_map import StoredColumn
from connectors.mysql.config.value_options import ValueOptions as MyOptions
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyColumn, Tables
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.server.text_rows import any_rows, rows_function
from connectors.mysql.types.columns import column_plan as my_plan
from connectors.mysql.types.columns import is_text, meaning_of
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.types.columns import PgColumn, ValueOptions, column_plan
from tests.stored_rows import copy_line, log_image, stored_datetime, stored_decimal, stored_text, text_value, tuple_data

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


def insert_message(row: list[str | None]) -> bytes:
    return b"I" + struct.pack(">i", 16384) + b"N" + tuple_data(row)


# -- MySQL -------------------------------------------------------------------------------------------------------------------------

MYSQL = """CREATE TABLE t (id BIGINT PRIMARY KEY, customer_id INT NOT NULL, name VARCHAR(64) NOT NULL, email TEXT,
amount DECIMAL(12,2) NOT NULL, quantity INT, active TINYINT NOT NULL, created DATETIME NOT NULL,
updated TIMESTAMP NULL, note TEXT) CHARACTER SET utf8mb4"""
STORED = [
    StoredColumn(ColumnType.LONGLONG),
    StoredColumn(ColumnType.LONG),
    StoredColumn(ColumnType.VARCHAR, 256),
    StoredColumn(ColumnType.BLOB, 2),
    StoredColumn(ColumnType.NEWDECIMAL, 12, 2),
    StoredColumn(ColumnType.LONG),
    StoredColumn(ColumnType.TINY),
    StoredColumn(ColumnType.DATETIME2),
    StoredColumn(ColumnType.TIMESTAMP2),
    StoredColumn(ColumnType.BLOB, 2),
]


def mysql_columns() -> list[MyColumn]:
    tables = Tables()
    apply(MYSQL, tables, "d")
    (table,) = tables.tables.values()
    return list(table.columns)


def mysql_row(row: list[str | None]) -> list[str | None]:
    return [*row[:6], None if row[6] is None else str(int(row[6] == "t")), row[7], row[8] and row[8].removesuffix("+00"), row[9]]


def image(row: list[str | None]) -> bytes:
    """Return a row as an event of the log stores it."""
    return log_image([None if text is None else stored(column, text) for column, text in zip(STORED, row, strict=True)])


def stored(column: StoredColumn, text: str) -> bytes:
    match column.type:
        case ColumnType.LONGLONG | ColumnType.LONG | ColumnType.TINY:
            return int(text).to_bytes({ColumnType.LONGLONG: 8, ColumnType.LONG: 4}.get(column.type, 1), "little", signed=True)
        case ColumnType.VARCHAR | ColumnType.BLOB:
            return stored_text(text, 2)
        case ColumnType.NEWDECIMAL:
            return stored_decimal(int(text.replace(".", "")), 12, 2)
    moment = time.strptime(text[:19], "%Y-%m-%d %H:%M:%S")
    return stored_datetime(moment[:6], 0, 0) if column.type is ColumnType.DATETIME2 else calendar.timegm(moment).to_bytes(4, "big")


# -- measurement ---------------------------------------------------------------------------------------------------------------------


def best(count: int, work: Callable[[], object]) -> float:
    figures = []
    for _ in range(5):
        start = time.process_time()
        work()
        figures.append(time.process_time() - start)
    return min(figures) / count * 1e6


def parts(data: list[bytes]) -> list[list[bytes]]:
    return [data[i : i + BATCH] for i in range(0, len(data), BATCH)]


def postgres_ways(kind: str, data: list[list[str | None]], *, schemas: bool) -> dict[str, Callable[[], object]]:
    table = encoder(schemas)
    route = Route("shop.public.load", table.key_schema, table.value_schema)
    block = SourceBlock("3.6.1.Final", "shop", "shop", "public", "load")
    snapshot, end = block.snapshot("true", 1_795_244_381_480_114, 797, 49_567_344), tail("r", time.time_ns())
    streaming, created = block.transaction(1_795_244_381_480_114, 797, 49_567_344), tail("c", time.time_ns())
    messages = [insert_message(row) for row in data]
    updates = [b"U" + message[1:5] + b"O" + message[6:] + message[5:] for message in messages]
    batches = parts([copy_line(row) for row in data])
    return {
        f"postgresql copy {kind}": lambda: [table.copy_rows(batch, route, snapshot, end) for batch in batches],
        f"postgresql insert {kind}": lambda: [
            table.insert(message, 5, streaming(lsn), created) for lsn, message in enumerate(messages, 49_567_344)
        ],
        f"postgresql update {kind}": lambda: [
            table.update(message, 5, streaming(lsn), created) for lsn, message in enumerate(updates, 49_567_344)
        ],
    }


def mysql_ways(kind: str, data: list[list[str | None]], *, schemas: bool) -> dict[str, Callable[[], object]]:
    columns, meanings = mysql_columns(), [meaning_of(column, MyOptions()) for column in mysql_columns()]
    plans = [my_plan(column, MyOptions()) for column in columns]
    table = TableEncoder("shop.d.t", plans, ["id"], block_schema("mysql"), JsonEncoding(schemas, schemas))
    route = Route("shop.d.t", table.key_schema, table.value_schema)
    characters = [is_text(column) for column in columns]
    texts = table.fused(any_rows(characters, table.wanted_forms), stream=False)
    log = table.fused(event_rows(STORED, meanings, range(len(columns)), table.wanted_forms), stream=True)
    read_texts, read_image = rows_function(characters), row_reader(STORED, meanings, b"\xff\x03")
    end = table.end(b"{}", tail("r", time.time_ns()))
    rows = [mysql_row(row) for row in data]
    packets = [b"".join(text_value(None if text is None else text.encode()) for text in row) for row in rows]
    results, events = [b"".join(part) for part in parts(packets)], [b"".join(part) for part in parts([image(row) for row in rows])]
    assert all(
        found is not None for found in (texts.records(results[0], route, "", end), log.records(events[0], route, ',"source":{', end))
    )
    return {
        f"mysql text {kind}": lambda: [texts.records(part, route, "", end) for part in results],
        f"mysql log {kind}": lambda: [log.records(part, route, ',"source":{', end) for part in events],
        f"mysql log images {kind}": lambda: [log.images(part) for part in events],
        f"mysql text to texts {kind}": lambda: [read_texts(part) for part in parts(packets)],
        f"mysql log to texts {kind}": lambda: [read_images(read_image, part) for part in events],
    }


def converter_ways(data: list[list[str | None]]) -> dict[str, Callable[[], object]]:
    """Return the way of JsonConverter for rows of the benchmark's columns."""
    types = (Type.INT64, Type.INT32, Type.STRING, Type.STRING, Type.FLOAT64, Type.INT32, Type.BOOLEAN, Type.INT64, Type.STRING, Type.STRING)
    fields = tuple(Field(column.name, Schema(type_, optional=column.nullable)) for column, type_ in zip(COLUMNS, types, strict=True))
    schema = Schema(Type.STRUCT, fields=fields)
    write = struct_writer(schema, WriteOptions())
    numbers = [(int(r[0] or 0), int(r[1] or 0), r[2], r[3], float(r[4] or 0), int(r[5] or 0), r[6] == "t", 1, r[8], r[9]) for r in data]
    structs = [Struct(schema, row) for row in numbers]
    return {"json converter": lambda: [write(value) for value in structs]}


def figures(count: int, *, schemas: bool) -> dict[str, float]:
    """Return the microseconds of CPU that each way takes for a row."""
    found = {}
    for kind in ("plain", "fractions", "nulls", "quotes", "unicode", "long"):
        data = rows(count, kind=kind)
        ways = postgres_ways(kind, data, schemas=schemas)
        if kind in ("plain", "nulls", "unicode"):
            ways |= mysql_ways(kind, data, schemas=schemas)
        if kind == "plain":
            ways |= converter_ways(data)
        found |= {name: best(count, work) for name, work in ways.items()}
    return found


def compared(count: int, schemas: int, rounds: int, other: Path) -> None:
    """Measure this tree and another one in turn, in processes of their own."""
    trees = {"this": Path(__file__).parents[2], "other": other.resolve()}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for number in range(rounds):
        for name, tree in list(trees.items())[:: -1 if number % 2 else 1]:
            command = [sys.executable, str(tree / "tests/bench/bench_encode.py"), "--rows", str(count), "--schemas", str(schemas), "--json"]
            shown = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True)
            found[name].append(json.loads(shown.stdout))
    for way in found["this"][0]:
        this, old = (statistics.median(figures[way] for figures in found[name]) for name in trees)
        least = (min(figures[way] for figures in found[name]) for name in trees)
        print(f"{way:32} {this:6.2f}   other {old:6.2f}   speed {old / this:5.3f}   of the best {1 / (next(least) / next(least)):5.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--schemas", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print all figures as one JSON object")
    parser.add_argument("--other", type=Path, help="a checkout of another commit: measure both in turn and print the ratio of speeds")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.other:
        compared(options.rows, options.schemas, options.rounds, options.other)
        return
    found = figures(options.rows, schemas=bool(options.schemas))
    print(json.dumps(found) if options.json else "\n".join(f"{way:32} {figure:6.2f}" for way, figure in found.items()))


if __name__ == "__main__":
    if not MALLOC.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MALLOC})
    main()
