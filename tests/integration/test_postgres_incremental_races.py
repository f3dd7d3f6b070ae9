"""Races between an incremental snapshot and its table; see `tests/races.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from connect_py.api.permissions import FILE_PATHS, permit
from connect_py.app.services.postgres import PostgresAddress
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask
from tests.races import Race, Running, assert_topic_is_table, places, table_name

pytestmark = pytest.mark.services

#: What happens to a table of the keys 1 to 6, read in chunks of 3. Keys 2 and 5 are in the first and the second chunk.
CHANGES = {
    "insert": "INSERT INTO {t} VALUES (0, 'low'), (7, 'high')",
    "update": "UPDATE {t} SET v = v || '!' WHERE id IN (2, 5)",
    "delete": "DELETE FROM {t} WHERE id IN (2, 5)",
    "key change": "UPDATE {t} SET id = id + 10 WHERE id IN (2, 5)",
    "key swap": "UPDATE {t} SET id = 100 WHERE id = 2; UPDATE {t} SET id = 2 WHERE id = 5; UPDATE {t} SET id = 5 WHERE id = 100",
    "truncate": "TRUNCATE {t}",
    "truncate and insert": "TRUNCATE {t}; INSERT INTO {t} VALUES (2, 'again'), (8, 'new')",
    "add column": "ALTER TABLE {t} ADD COLUMN more integer DEFAULT 7; UPDATE {t} SET v = v || '+' WHERE id IN (2, 5)",
    "drop column": "ALTER TABLE {t} DROP COLUMN w; UPDATE {t} SET v = v || '-' WHERE id IN (2, 5)",
    "retype column": "ALTER TABLE {t} ALTER COLUMN w TYPE bigint; UPDATE {t} SET v = v || '~' WHERE id IN (2, 5)",
    "many": "UPDATE {t} SET v = 'a'; DELETE FROM {t} WHERE id = 3; INSERT INTO {t} VALUES (3, 'back'); UPDATE {t} SET v = 'b' WHERE id = 1",
}
STRATEGIES = {
    "insert_insert": {},
    "insert_delete": {"incremental_snapshot_watermarking_strategy": "insert_delete"},
    "read_only": {"read_only": "true", "signal_enabled_channels": "file", "signal_poll_interval_ms": "1"},
}
PLACES = places(CHANGES)


@pytest.fixture(scope="module", params=STRATEGIES)
def running(request: pytest.FixtureRequest, postgres: PostgresAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    strategy = request.param
    database = postgres.create_database()
    tag = f"race_{strategy}"
    path: Path = tmp_path_factory.mktemp("signals") / "signals.txt"
    path.touch()
    permit({FILE_PATHS: str(path.parent)})
    with postgres.connect(database) as connection:  # the test servers' commits reach the log, and so the stream, after 200 ms
        connection.execute(f"ALTER DATABASE {database} SET synchronous_commit = local")
    with postgres.connect(database) as connection, postgres.connect(database) as racer:
        connection.execute("CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))")
        connection.execute("CREATE TABLE marker (id integer PRIMARY KEY)")
        for change, phase, chunk in PLACES:
            table = table_name(change, phase, chunk)
            connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, v text, w integer)")
            connection.execute(f"INSERT INTO {table} SELECT g, 'v' || g, g FROM generate_series(1, 6) g")
        config = postgres_source(
            postgres,
            database,
            tag,
            snapshot_mode="no_data",
            skipped_operations="none",
            incremental_snapshot_chunk_size="3",
            **({} if strategy == "read_only" else {"signal_data_collection": "public.signal"}),
            **STRATEGIES[strategy],
        )
        config["signal.file"] = str(path)

        def signal(id_: str, type_: str, data: Mapping[str, object]) -> None:
            if strategy == "read_only":
                path.write_text(json.dumps({"id": id_, "type": type_, "data": data}) + "\n")
            else:
                connection.execute("INSERT INTO signal VALUES (%s, %s, %s)", (id_, type_, json.dumps(data)))

        race = Race(racer.execute)
        with DirectTask(config, hooks=race) as task:
            task.poll_until(task.is_streaming, what="the stream")
            mark = lambda number: connection.execute("INSERT INTO marker VALUES (%s)", (number,))  # noqa: E731
            yield Running(task, race, signal, mark, f"pg_{tag}.public", lambda sql: connection.execute(sql))
    postgres.drop_database(database)


@pytest.mark.parametrize(("change", "phase", "chunk"), PLACES)
def test_the_topic_is_the_table(running: Running, change: str, phase: str, chunk: int) -> None:
    table = table_name(change, phase, chunk)
    running.run((change, phase, chunk), f"public.{table}", CHANGES[change].format(t=table))
    cursor = running.query(f"SELECT * FROM {table}")
    names = [column.name for column in cursor.description or ()]
    assert_topic_is_table(running.task.of(f"{running.prefix}.{table}"), names, cursor.fetchall(), change)


def test_there_are_enough_cases() -> None:
    assert len(PLACES) * len(STRATEGIES) >= 100
