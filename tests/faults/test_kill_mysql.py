"""kill -9 of the worker or of a task's process at random moments, while rows of MySQL are copied and while they change; see
`tests/kills.py`.

Triggers note every change of the table in a journal. At the end nothing may be wrong with the history (`connect-py verify --history`), and
a snapshot that goes on may have read no more again than a chunk a reader. FAULTS_KILLS is the number of kills in each test: 30 are the long
form.
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
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import Journalled, mysql_statements
from connect_py.app.verify.history.records import History, Op
from tests.fault_counts import system_of
from tests.fix_kafka import Kafka
from tests.kills import (
    KILLS,
    Changes,
    are_gone,
    await_history,
    bring_back,
    changing,
    goes_on_until,
    has_records,
    is_streaming,
    kill,
    new_dice,
    reads,
)
from tests.mysql_task import mysql_source
from tests.waiting import let_time_pass, wait_until

pytestmark = [pytest.mark.services, pytest.mark.timeout(600 + 60 * KILLS)]

CHUNKED_ROWS = max(4000, 800 * KILLS)
#: Many enough for a snapshot that lasts for all kills, few enough to be folded in seconds.
ROWS = 40_000 + 25_000 * KILLS
CHUNK = 10_000
DIGEST = ["id", "version", "note"]
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
            # not UPDATE IGNORE: MariaDB runs triggers for rows, too, that it leaves alone
            there = "SELECT 1 FROM (SELECT id FROM item WHERE id = %s) AS other"
            execute(f"UPDATE item SET id = %s WHERE id = %s AND NOT EXISTS ({there})", (to, key, to))
        else:
            execute("INSERT INTO item VALUES (%s, 1, %s) ON DUPLICATE KEY UPDATE note = VALUES(note)", (key, f"changed {version}"))
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
            "CREATE TABLE item (id INT PRIMARY KEY, version INT NOT NULL DEFAULT 1, note TEXT) CHARACTER SET utf8mb4",
            "CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
            f"SET SESSION {'max_recursive_iterations' if isinstance(server, MariaDbServer) else 'cte_max_recursion_depth'} = {ROWS}",
        ):
            cursor.execute(statement)
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def fill(cursor: Any, database: str, rows: int) -> None:
    """Fill the table, and keep its journal from then on: the rows are the journal's first lines."""
    cursor.execute(
        "INSERT INTO item WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT i, 1, 'old' FROM n", (rows,)
    )
    for statement in mysql_statements(Journalled(database, "item", ["id"], "version", DIGEST)):
        cursor.execute(statement)


def await_right(kafka: Kafka, worker: Worker, name: str, config: dict[str, str], **promise: Any) -> History:
    """Wait for a history with which nothing is wrong."""
    return await_history(kafka, {**config, "name": name}, {f"{name}.item": DIGEST}, offsets_topic=worker.topic("offset"), **promise)


def has_no_incremental_snapshot(worker: Worker, connector: str) -> bool:
    offsets = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return bool(offsets) and not any(name.startswith("incremental_snapshot_") for name in offsets[0]["offset"])


def test_a_snapshot_and_a_stream_that_are_killed_again_and_again_lose_no_change(
    make_worker: Callable[..., Worker], kafka: Kafka, mysql: MySqlAddress, database: tuple[str, Any], dice: random.Random
) -> None:
    worker = make_worker()
    name, cursor = database
    fill(cursor, name, 20_000)
    only = {"schema_history_internal_store_only_captured_tables_ddl": "true", **PLAIN}
    config = mysql_source(mysql, kafka.bootstrap, name, table_include_list=f"{name}.item", **only)
    with mysql.connect() as writer, changing(MySqlChanges(writer, name, dice, keys=20_000)):
        worker.create(name, config)
        wait_until(partial(has_records, kafka, f"{name}.{name}.item", dice.randrange(1, 15_000)), 60, "a part of the snapshot")
        for round_number in range(KILLS):
            kill(worker, "worker" if round_number % 2 else "task", system_of(config))
            bring_back(worker, name)
            let_time_pass(dice.uniform(0, 4), "a random moment, in and between two flushes of the offsets (2 s)")
        wait_until(partial(is_streaming, worker, name), 120, "the stream")
    await_right(kafka, worker, name, config)
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
    fill(cursor, name, ROWS)
    cursor.execute("ANALYZE TABLE item")
    more = {
        **PLAIN,
        "schema_history_internal_store_only_captured_tables_ddl": "true",
        "snapshot_max_threads": str(readers),
        "internal_snapshot_chunk_rows": str(CHUNK),
    }
    config = mysql_source(server, kafka.bootstrap, name, table_include_list=f"{name}.item", **more)
    if isinstance(server, MariaDbServer):
        config["connector.class"] = "io.debezium.connector.mariadb.MariaDbConnector"
    with server.connect() as writer, changing(MySqlChanges(writer, name, dice, keys=ROWS)):
        worker.create(name, config)
        before = 0
        for round_number in range(KILLS):
            far_enough = before + dice.uniform(0.1, 1) * ROWS / (KILLS + 1)
            if not goes_on_until(worker, name, partial(has_records, kafka, topic, far_enough)):
                break
            gone = kill(worker, dice.choice(["worker", "task", "reader"]) if round_number else "task", system_of(config))
            before = kafka.count(topic)
            bring_back(worker, name)
            wait_until(partial(are_gone, gone), 60, "the end of the processes that read")
        # little may have been read for good between kills
        wait_until(partial(is_streaming, worker, name), 180 + 20 * KILLS, "the stream")
    keys = reads(await_right(kafka, worker, name, config))
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
    fill(cursor, name, CHUNKED_ROWS)
    settings = {
        **PLAIN,
        "snapshot_mode": "no_data",
        "incremental_snapshot_chunk_size": "50",
        "schema_history_internal_store_only_captured_tables_ddl": "true",
        "signal_file": str(signals),
        **({} if strategy == "read_only" else {"signal_data_collection": f"{name}.signals"}),
        **STRATEGIES[strategy],
    }
    config = mysql_source(mysql, kafka.bootstrap, name, table_include_list=f"{name}.item,{name}.signals", **settings)
    worker.create(name, config)
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
            kill(worker, "task" if round_number % 2 else "worker", system_of(config))
            before = kafka.count(topic)
            bring_back(worker, name)
        wait_until(partial(has_no_incremental_snapshot, worker, name), 600, "the end of the snapshot", worker.service.is_alive)
    history = await_right(kafka, worker, name, config, start=CHUNKED_ROWS)
    print(f"{KILLS} kills, {strategy}: {len(reads(history))} rows were read for a table of {CHUNKED_ROWS}")
    assert all(event.incremental for event in history.events if event.op is Op.READ)
    worker.delete(name)
