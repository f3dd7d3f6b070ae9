"""Races between an incremental snapshot and its table; see `tests/races.py`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect_py.api.permissions import FILE_PATHS, permit
from connect_py.app.services.mysql import MySqlAddress
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMariaDbTask, DirectMySqlTask, mysql_source
from tests.races import Race, Running, assert_topic_is_table, places, table_name

pytestmark = pytest.mark.services

#: What happens to a table of the keys 1 to 6, read in chunks of 3. Keys 2 and 5 are in the first and the second chunk.
CHANGES = {
    "insert": "INSERT INTO {t} VALUES (0, 'low', 0), (7, 'high', 7)",
    "update": "UPDATE {t} SET v = CONCAT(v, '!') WHERE id IN (2, 5)",
    "delete": "DELETE FROM {t} WHERE id IN (2, 5)",
    "key change": "UPDATE {t} SET id = id + 10 WHERE id IN (2, 5)",
    "key swap": "UPDATE {t} SET id = 100 WHERE id = 2; UPDATE {t} SET id = 2 WHERE id = 5; UPDATE {t} SET id = 5 WHERE id = 100",
    "truncate": "TRUNCATE {t}",
    "truncate and insert": "TRUNCATE {t}; INSERT INTO {t} VALUES (2, 'again', 2), (8, 'new', 8)",
    "add column": "ALTER TABLE {t} ADD COLUMN more int DEFAULT 7; UPDATE {t} SET v = CONCAT(v, '+') WHERE id IN (2, 5)",
    "drop column": "ALTER TABLE {t} DROP COLUMN w; UPDATE {t} SET v = CONCAT(v, '-') WHERE id IN (2, 5)",
    "move column": "ALTER TABLE {t} MODIFY COLUMN w int FIRST; UPDATE {t} SET v = CONCAT(v, '>') WHERE id IN (2, 5)",
    "retype column": "ALTER TABLE {t} MODIFY COLUMN w bigint unsigned; UPDATE {t} SET v = CONCAT(v, '~') WHERE id IN (2, 5)",
    "add index": "ALTER TABLE {t} ADD INDEX (v); UPDATE {t} SET v = CONCAT(v, '#') WHERE id IN (2, 5)",
    "rebuild": "CREATE TABLE {t}_new LIKE {t}; INSERT INTO {t}_new SELECT * FROM {t}; "
    "RENAME TABLE {t} TO {t}_old, {t}_new TO {t}; UPDATE {t} SET v = 'moved' WHERE id IN (2, 5)",
    "many": "BEGIN; UPDATE {t} SET v = 'a'; DELETE FROM {t} WHERE id = 3; INSERT INTO {t} VALUES (3, 'back', 3); "
    "UPDATE {t} SET v = 'b' WHERE id = 1; COMMIT",
}
STRATEGIES = {
    "insert_insert": {},
    "insert_delete": {"incremental_snapshot_watermarking_strategy": "insert_delete"},
    "read_only": {"read_only": "true", "signal_enabled_channels": "file", "signal_poll_interval_ms": "1"},
}
PLACES = places(CHANGES)


#: The server and the strategy. MariaDB's transactions begin with their names, and its heartbeats are others.
CASES = [("mysql", strategy) for strategy in STRATEGIES] + [("mariadb", "insert_insert"), ("mariadb", "read_only")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def running(request: pytest.FixtureRequest, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    kind, strategy = request.param
    mysql: MySqlAddress = request.getfixturevalue(kind)
    database = f"race_{strategy}_{uuid.uuid4().hex[:6]}"
    path: Path = tmp_path_factory.mktemp("signals") / "signals.txt"
    path.touch()
    permit({FILE_PATHS: str(path.parent)})
    with mysql.connect() as connection, mysql.connect() as racer, connection.cursor() as cursor, racer.cursor() as runner:
        for statement in (
            f"CREATE DATABASE {database}",
            f"USE {database}",
            "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))",
            "CREATE TABLE marker (id int PRIMARY KEY)",
        ):
            cursor.execute(statement)
        runner.execute(f"USE {database}")
        for place in PLACES:
            cursor.execute(f"CREATE TABLE {table_name(*place)} (id int PRIMARY KEY, v varchar(20), w int)")
            cursor.execute(f"INSERT INTO {table_name(*place)} VALUES (1,'v1',1),(2,'v2',2),(3,'v3',3),(4,'v4',4),(5,'v5',5),(6,'v6',6)")
        config = mysql_source(
            mysql,
            kafka.bootstrap,
            database,
            snapshot_mode="no_data",
            skipped_operations="none",
            incremental_snapshot_chunk_size="3",
            signal_file=str(path),
            **({} if strategy == "read_only" else {"signal_data_collection": f"{database}.signals"}),
            **STRATEGIES[strategy],
        )

        def execute(statements: str) -> None:
            for statement in statements.split("; "):
                runner.execute(statement)

        def signal(id_: str, type_: str, data: Mapping[str, object]) -> None:
            if strategy == "read_only":
                path.write_text(json.dumps({"id": id_, "type": type_, "data": data}) + "\n")
            else:
                cursor.execute("INSERT INTO signals VALUES (%s, %s, %s)", (id_, type_, json.dumps(data)))

        def query(statement: str) -> Any:
            cursor.execute(statement)
            return cursor

        task_class = DirectMySqlTask
        if kind == "mariadb":
            config["connector.class"] = "io.debezium.connector.mariadb.MariaDbConnector"
            task_class = DirectMariaDbTask
        race = Race(execute)
        with task_class(config, hooks=race) as task:
            task.poll_until(task.is_streaming, what="the stream")
            mark = lambda number: cursor.execute("INSERT INTO marker VALUES (%s)", (number,))  # noqa: E731
            yield Running(task, race, signal, mark, f"{database}.{database}", query)
        cursor.execute(f"DROP DATABASE {database}")


@pytest.mark.parametrize(("change", "phase", "chunk"), PLACES)
def test_the_topic_is_the_table(running: Running, change: str, phase: str, chunk: int) -> None:
    table = table_name(change, phase, chunk)
    database = running.prefix.partition(".")[0]
    running.run((change, phase, chunk), f"{database}.{table}", CHANGES[change].format(t=table))
    cursor = running.query(f"SELECT * FROM {table} ORDER BY id")
    names = [column[0] for column in cursor.description]
    key = names.index("id")
    rows = [(row[key], *row) for row in cursor.fetchall()]
    assert_topic_is_table(running.task.of(f"{running.prefix}.{table}"), ["id", *names], rows, change)


def test_there_are_enough_cases() -> None:
    assert len(PLACES) * len(CASES) >= 100
