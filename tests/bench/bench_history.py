"""How long a MySQL connector needs until it is back where a long schema history left it.

    python tests/bench/bench_history.py [--statements 10000] [--tables 500] [--worker NAME=URL ...]

A history topic is filled with statements (CREATE, ADD, MODIFY and DROP COLUMN) in Debezium's format. Then, for each worker: a connector
that is stopped gets an offset at the end of the log, a row is inserted, the connector is resumed, and the time runs until the row is in its
topic. The same with a history of one statement says what of it is not the history's. Without workers, the history alone is read in this
process: seconds and CPU seconds. Environment as of bench.py.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from connectors.mysql.config.config import parse_config
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.schema.schema import Schema
from offsets.schema_history import KafkaSchemaHistory
from tests.bench.bench import new_run, wait_count
from tests.parity.kit import Run
from tests.parity.servers import Servers

ROW_TABLE = "t0"
COLUMNS = (
    "id BIGINT PRIMARY KEY, customer INT NOT NULL, name VARCHAR(60) NOT NULL, email TEXT, amount DECIMAL(12,2), made DATETIME(3), "
    "seen TIMESTAMP NULL"
)


def statements(count: int, tables: int) -> Iterator[str]:
    """So many, in turn for each table; the first table's only one is its CREATE, which is what the server has."""
    for table in range(tables):
        yield f"CREATE TABLE t{table} ({COLUMNS})"
    for number in range(count - tables):
        table, step = 1 + number % (tables - 1), number // (tables - 1)
        change = (f"ADD COLUMN x{step} VARCHAR(20) DEFAULT 'a'", f"MODIFY x{step - 1} VARCHAR(40)", f"DROP COLUMN x{step - 2}")[step % 3]
        yield f"ALTER TABLE t{table} {change}"


def config_of(run: Run, number: int) -> dict:
    return run.mysql_config(
        snapshot_mode="no_data", **{"schema.history.internal.kafka.topic": f"history_{run.tag}_{number}", "include.schema.changes": "false"}
    )


def schema_of(config: dict) -> tuple[Schema, KafkaSchemaHistory]:
    parsed = parse_config(config, "mysql")
    history = KafkaSchemaHistory(parsed.history_topic, parsed.history_client)
    return Schema(parsed, history, {"server": config["topic.prefix"]}, None), history


def fill(run: Run, config: dict, count: int, tables: int, offset: MySqlOffset) -> None:
    schema, history = schema_of(config)
    history.create()
    database = f"db_{run.tag}"
    with schema.batched_history_writes():
        for sql in statements(count, tables) if tables > 1 else [f"CREATE TABLE {ROW_TABLE} ({COLUMNS})"]:
            schema.statement(sql, database, offset.dump(), (0, "false", offset.file, offset.pos, {}))
    history.close()


def place(cursor: object) -> MySqlOffset:
    cursor.execute("SHOW BINARY LOG STATUS")  # type: ignore[attr-defined]
    row = cursor.fetchone()  # type: ignore[attr-defined]
    return MySqlOffset(str(row[0]), int(row[1]), str(row[4]).replace("\n", "") or None, int(time.time()))


def alone(config: dict, offset: MySqlOffset, rounds: int) -> None:
    for _ in range(rounds):
        schema, history = schema_of(config)
        began, cpu = time.perf_counter(), time.process_time()
        count = schema.recover(offset)
        tables = len(schema.tables.tables)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(f"this process: {count} records, {tables} tables, {took:.2f} s, {cpu:.2f} s of CPU", flush=True)
        history.close()


def resumed(run: Run, name: str, url: str, config: dict, offset: MySqlOffset, label: str, number: int) -> None:
    """One worker: seconds from the request to resume to the row."""
    run.servers = replace(run.servers, connect_url=url)
    connector = run.name_of(f"history{number}{name}")
    run.connectors.append(connector)
    run.call("POST", "/connectors", {"name": connector, "config": config, "initial_state": "STOPPED"}).raise_for_status()
    run.wait_state(connector, "STOPPED")
    stored = {"partition": {"server": config["topic.prefix"]}, "offset": offset.dump()}
    run.call("PATCH", f"/connectors/{connector}/offsets", {"offsets": [stored]}).raise_for_status()
    topic = f"{config['topic.prefix']}.db_{run.tag}.{ROW_TABLE}"
    before = count_of(topic)
    began = time.time()
    run.call("PUT", f"/connectors/{connector}/resume")
    ended = wait_count(topic, before + 1, 300)
    print(f"{name}, {label}: {ended - began:.2f} s", flush=True)
    run.call("DELETE", f"/connectors/{connector}")


def count_of(topic: str) -> int:
    try:
        wait_count(topic, 1, 1)
    except TimeoutError:
        return 0
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": Servers.from_environment().bootstrap, "group.id": "bench"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", action="append", default=[], help="NAME=URL")
    arguments = parser.parse_args()
    run = new_run("bench_history")
    try:
        connection = run.mysql(f"CREATE TABLE {ROW_TABLE} ({COLUMNS})")
        with connection.cursor() as cursor:
            offset = place(cursor)
            cursor.execute(f"INSERT INTO {ROW_TABLE} (id, customer, name) VALUES (1, 1, 'n')")
            configs = [config_of(run, 0), config_of(run, 1)]
            fill(run, configs[0], 1, 1, offset)
            fill(run, configs[1], arguments.statements, arguments.tables, offset)
            alone(configs[1], offset, arguments.rounds)
            for _ in range(arguments.rounds):
                for worker in arguments.worker:
                    name, _, url = worker.partition("=")
                    url = url.partition("@")[0]
                    for number, label in ((0, "one statement"), (1, f"{arguments.statements} statements over {arguments.tables} tables")):
                        resumed(run, name, url, configs[number], offset, label, number)
    finally:
        run.close()


if __name__ == "__main__":
    main()
