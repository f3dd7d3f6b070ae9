"""kill -9 of the worker or of a task's process at random moments, while rows of MySQL are copied and while they change; see
`tests/kills.py`.

At the end the topic, folded by key, must be the table; the journal's topic must have every line of the journal; no row that a snapshot
read may follow a newer event of its key; and a snapshot that goes on may have read no more again than a chunk a reader. FAULTS_KILLS is the
number of kills in each test: 30 are the long form.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MariaDbServer, MySqlAddress
from connect_py.app.services.process import wait_until
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.kills import (
    KILLS,
    Changes,
    are_gone,
    await_equal,
    await_lines,
    bring_back,
    changing,
    has_records,
    is_streaming,
    kill,
    new_dice,
    reads,
    stale_rows,
)
from tests.mysql_task import mysql_source
from tests.waiting import let_time_pass

pytestmark = [pytest.mark.services, pytest.mark.timeout(600 + 60 * KILLS)]

CHUNKED_ROWS = max(4000, 800 * KILLS)
#: Many enough for a snapshot that lasts for all kills, few enough to be folded in seconds.
ROWS = 40_000 + 25_000 * KILLS
CHUNK = 10_000
#: A million records with their schemas would be gigabytes for the test to read.
PLAIN = {
    f"{side}_converter{more}": value
    for side in ("key", "value")
    for more, value in (("", "org.apache.kafka.connect.json.JsonConverter"), ("_schemas_enable", "false"))
}
STRATEGIES = {
    "insert_insert": {},
    "insert_delete": {"incremental_snapshot_watermarking_strategy": "insert_delete"},
    "read_only": {"read_only": "true", "signal_enabled_channels": "file", "signal_poll_interval_ms": "100"},
}


@pytest.fixture
def dice() -> random.Random:
    return new_dice()


class MySqlChanges(Changes):
    """See `Changes`."""

    def __init__(self, connection: Any, database: str, dice: random.Random, keys: int) -> None:
        super().__init__(dice, keys)
        self._connection = connection
        connection.autocommit(False)
        self._cursor = connection.cursor()
        self._cursor.execute(f"USE {database}")

    def change(self, what: float, key: int, to: int, version: int) -> None:
        execute = self._cursor.execute
        if what < 0.2:
            execute("DELETE FROM item WHERE id = %s", (key,))
        elif what < 0.3:
            execute("UPDATE IGNORE item SET id = %s, version = %s WHERE id = %s", (to, version, key))
        else:
            execute("INSERT INTO item VALUES (%s, %s, 'changed') ON DUPLICATE KEY UPDATE version = VALUES(version)", (key, version))
        execute("INSERT INTO journal (id, version) VALUES (%s, %s)", (key, version))
        self._connection.commit()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> MySqlAddress:
    """MySQL, or what a test says."""
    found: MySqlAddress = request.getfixturevalue(getattr(request, "param", "mysql"))
    return found


@pytest.fixture
def database(server: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database with the tables, and a cursor in it."""
    name = f"kill_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (
            f"CREATE DATABASE {name}",
            f"USE {name}",
            "CREATE TABLE item (id INT PRIMARY KEY, version INT NOT NULL, note TEXT)",
            "CREATE TABLE journal (line BIGINT AUTO_INCREMENT PRIMARY KEY, id INT, version INT)",
            "CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
            f"SET SESSION {'max_recursive_iterations' if isinstance(server, MariaDbServer) else 'cte_max_recursion_depth'} = {ROWS}",
        ):
            cursor.execute(statement)
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def fill(cursor: Any, rows: int) -> None:
    cursor.execute(
        "INSERT INTO item WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT i, 1, 'old' FROM n", (rows,)
    )


def table(cursor: Any) -> dict[int, dict[str, Any]]:
    cursor.execute("SELECT id, version, note FROM item")
    return {row[0]: dict(zip(("id", "version", "note"), row, strict=True)) for row in cursor.fetchall()}


def assert_nothing_is_lost(kafka: Kafka, name: str, cursor: Any) -> list[tuple[int, str]]:
    """The three conditions; returns what snapshots read."""
    cursor.execute("SELECT line FROM journal")
    # the small topic first: once it is whole, the large one is read once or twice
    await_lines(kafka, f"{name}.{name}.journal", {line for (line,) in cursor.fetchall()})
    records = await_equal(kafka, f"{name}.{name}.item", table(cursor))
    assert stale_rows(records) == []
    return reads(records)


def has_no_incremental_snapshot(worker: Worker, connector: str) -> bool:
    offsets = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return bool(offsets) and not any(name.startswith("incremental_snapshot_") for name in offsets[0]["offset"])


def test_a_snapshot_and_a_stream_that_are_killed_again_and_again_lose_no_change(
    make_worker: Callable[..., Worker], kafka: Kafka, mysql: MySqlAddress, database: tuple[str, Any], dice: random.Random
) -> None:
    worker = make_worker()
    name, cursor = database
    fill(cursor, 20_000)
    only = {"schema_history_internal_store_only_captured_tables_ddl": "true", **PLAIN}
    with mysql.connect() as writer, changing(MySqlChanges(writer, name, dice, keys=20_000)):
        worker.create(name, mysql_source(mysql, kafka.bootstrap, name, **only))
        wait_until(partial(has_records, kafka, f"{name}.{name}.item", dice.randrange(1, 15_000)), 60, "a part of the snapshot")
        for round_number in range(KILLS):
            kill(worker, "worker" if round_number % 2 else "task")
            bring_back(worker, name)
            let_time_pass(dice.uniform(0, 4), "a random moment, in and between two flushes of the offsets (2 s)")
        wait_until(partial(is_streaming, worker, name), 120, "the stream")
    assert_nothing_is_lost(kafka, name, cursor)
    worker.delete(name)


@pytest.mark.long
@pytest.mark.parametrize("readers", [1, 2] if KILLS > 3 else [2])
@pytest.mark.parametrize("server", ["mysql", "mariadb"] if KILLS > 3 else ["mysql"], indirect=True)
def test_a_snapshot_that_is_killed_again_and_again_goes_on(
    make_worker: Callable[..., Worker], kafka: Kafka, server: MySqlAddress, database: tuple[str, Any], dice: random.Random, readers: int
) -> None:
    worker = make_worker()
    name, cursor = database
    topic = f"{name}.{name}.item"
    fill(cursor, ROWS)
    cursor.execute("ANALYZE TABLE item")
    more = {
        **PLAIN,
        "schema_history_internal_store_only_captured_tables_ddl": "true",
        "snapshot_max_threads": str(readers),
        "internal_snapshot_chunk_rows": str(CHUNK),
    }
    config = mysql_source(server, kafka.bootstrap, name, **more)
    if isinstance(server, MariaDbServer):
        config["connector.class"] = "io.debezium.connector.mariadb.MariaDbConnector"
    with server.connect() as writer, changing(MySqlChanges(writer, name, dice, keys=ROWS)):
        worker.create(name, config)
        before = 0
        for round_number in range(KILLS):
            far_enough = before + dice.uniform(0.1, 1) * ROWS / (KILLS + 1)
            wait_until(partial(has_records, kafka, topic, far_enough), 60, "a part of the snapshot")
            gone = kill(worker, dice.choice(["worker", "task", "reader"]) if round_number else "task")
            before = kafka.count(topic)
            bring_back(worker, name)
            wait_until(partial(are_gone, gone), 60, "the end of the processes that read")
        # little may have been read for good between kills
        wait_until(partial(is_streaming, worker, name), 180 + 20 * KILLS, "the stream")
    keys = [key for key, _ in assert_nothing_is_lost(kafka, name, cursor)]
    again = len(keys) - len(set(keys))
    print(f"{KILLS} kills, {readers} readers: {again} rows of {ROWS} were read again, in chunks of {CHUNK}")
    # a chunk a reader, and one whose offset was on its way
    assert again <= KILLS * (readers + 1) * CHUNK
    worker.delete(name)


@pytest.mark.parametrize("strategy", [next(iter(STRATEGIES)), *(pytest.param(s, marks=pytest.mark.long) for s in list(STRATEGIES)[1:])])
def test_an_incremental_snapshot_that_is_killed_again_and_again_loses_no_row(
    make_worker: Callable[..., Worker],
    kafka: Kafka,
    mysql: MySqlAddress,
    database: tuple[str, Any],
    dice: random.Random,
    strategy: str,
    tmp_path: Path,
) -> None:
    worker = make_worker()
    name, cursor = database
    topic, signals = f"{name}.{name}.item", tmp_path / "signals.txt"
    signals.touch()
    fill(cursor, CHUNKED_ROWS)
    settings = {
        **PLAIN,
        "snapshot_mode": "no_data",
        "incremental_snapshot_chunk_size": "50",
        "schema_history_internal_store_only_captured_tables_ddl": "true",
        "signal_file": str(signals),
        **({} if strategy == "read_only" else {"signal_data_collection": f"{name}.signals"}),
        **STRATEGIES[strategy],
    }
    worker.create(name, mysql_source(mysql, kafka.bootstrap, name, **settings))
    wait_until(partial(is_streaming, worker, name), 60, "the stream")
    data = {"data-collections": [f"{name}.item"]}
    with mysql.connect() as writer, changing(MySqlChanges(writer, name, dice, keys=CHUNKED_ROWS)):
        if strategy == "read_only":
            signals.write_text(json.dumps({"id": "all", "type": "execute-snapshot", "data": data}) + "\n")
        else:
            cursor.execute("INSERT INTO signals VALUES ('all', 'execute-snapshot', %s)", (json.dumps(data),))
        before = 0
        for round_number in range(KILLS):
            far_enough = before + dice.uniform(0.01, 0.7) * CHUNKED_ROWS / KILLS
            wait_until(partial(has_records, kafka, topic, far_enough), 60, "a part of the snapshot")
            kill(worker, "task" if round_number % 2 else "worker")
            before = kafka.count(topic)
            bring_back(worker, name)
        wait_until(partial(has_no_incremental_snapshot, worker, name), 600, "the end of the snapshot", worker.service.is_alive)
    found = assert_nothing_is_lost(kafka, name, cursor)
    print(f"{KILLS} kills, {strategy}: {len(found)} rows were read for a table of {CHUNKED_ROWS}")
    assert {marker for _, marker in found} == {"incremental"}
    worker.delete(name)
