"""Races between an incremental snapshot and its table, placed: what happens around each watermark, for each way of marking the log.

Every case has a table of its own whose rows were there before the stream began, so that only the snapshot can bring them. At one phase of
one of its chunks another session changes the table. At the end the topic, folded by key, is the table: no row is missing, none is stale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from connect_py.testing.services.postgres import PostgresAddress
from connectors.engine.snapshot.hooks import SnapshotHooks
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask, fold_events

pytestmark = pytest.mark.services

PHASES = ["before_low", "after_low", "before_chunk", "after_chunk", "before_high", "after_high"]
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
#: Change, phase, and which of the first two chunks.
PLACES = [(change, phase, (i + j) % 2) for i, change in enumerate(CHANGES) for j, phase in enumerate(PHASES)]


@dataclass
class Race(SnapshotHooks):
    """Runs a change at the n-th time that a phase is reached."""

    connection: psycopg.Connection
    phase: str = ""
    count: int = -1
    change: str = ""

    def place(self, phase: str, chunk: int, change: str) -> None:
        self.phase, self.count, self.change = phase, chunk, change

    def reached(self, phase: str) -> None:
        if phase != self.phase:
            return
        if self.count == 0:
            self.connection.execute(self.change)
        self.count -= 1


@dataclass
class Running:
    """One task for all cases of a strategy."""

    task: DirectTask
    race: Race
    connection: psycopg.Connection
    signal: Callable[[str, str, dict[str, object]], None]
    prefix: str

    def settle(self, marker: int) -> None:
        """Wait for the snapshot's end, and for what had been committed then to be streamed."""
        incremental = self.task.task._side.incremental
        assert incremental is not None
        self.task.poll_until(lambda: not incremental.is_running and not incremental.chunk, what="the end of the snapshot")
        self.connection.execute("INSERT INTO marker VALUES (%s)", (marker,))
        self.task.poll_until(lambda: {"id": marker} in [key for key, _ in self.task.of(f"{self.prefix}.public.marker")], what="the marker")


def table_name(change: str, phase: str, chunk: int) -> str:
    return f"t_{change}_{phase}_{chunk}".replace(" ", "_")


@pytest.fixture(scope="module", params=STRATEGIES)
def running(request: pytest.FixtureRequest, postgres: PostgresAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    strategy = request.param
    database = postgres.create_database()
    tag = f"race_{strategy}"
    path: Path = tmp_path_factory.mktemp("signals") / "signals.txt"
    path.touch()
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

        def signal(id_: str, type_: str, data: dict[str, object]) -> None:
            if strategy == "read_only":
                path.write_text(json.dumps({"id": id_, "type": type_, "data": data}) + "\n")
            else:
                connection.execute("INSERT INTO signal VALUES (%s, %s, %s)", (id_, type_, json.dumps(data)))

        race = Race(racer)
        with DirectTask(config, hooks=race) as task:
            task.poll_until(task.is_streaming, what="the stream")
            yield Running(task, race, connection, signal, f"pg_{tag}")
    postgres.drop_database(database)


@pytest.mark.parametrize(("change", "phase", "chunk"), PLACES)
def test_the_topic_is_the_table(running: Running, change: str, phase: str, chunk: int) -> None:
    table = table_name(change, phase, chunk)
    running.race.place(phase, chunk, CHANGES[change].format(t=table))
    running.signal(f"s-{table}", "execute-snapshot", {"data-collections": [f"public.{table}"], "type": "incremental"})
    topic = f"{running.prefix}.public.{table}"
    running.task.poll_until(lambda: running.race.count < 0, what="the race")
    running.settle(len(running.task.batches))

    cursor = running.connection.execute(f"SELECT * FROM {table}")
    names = [column.name for column in cursor.description or ()]
    wanted = {(("id", row[0]),): dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    found = fold_events(running.task.of(topic))
    assert set(found) == set(wanted)
    shared = [name for name in names if name != "more"]  # a new column's default reaches no row that nobody touches
    assert {key: {name: row[name] for name in shared} for key, row in found.items()} == {
        key: {name: row[name] for name in shared} for key, row in wanted.items()
    }
    assert_structures_never_go_back(running.task.of(topic), change)


def assert_structures_never_go_back(events: list[tuple[object, dict[str, dict[str, object]]]], change: str) -> None:
    """A row of an older structure must not follow one of a newer."""
    rows = [event["after"] or event["before"] for _, event in events if event is not None and event["op"] in "rcu"]
    if change == "add column":
        assert [("more" in row) for row in rows] == sorted("more" in row for row in rows)
    if change == "drop column":
        assert [("w" in row) for row in rows] == sorted((("w" in row) for row in rows), reverse=True)


def test_there_are_enough_cases() -> None:
    assert len(PLACES) * len(STRATEGIES) >= 100
