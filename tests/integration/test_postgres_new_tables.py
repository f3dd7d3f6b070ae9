"""A table is added to a running PostgreSQL source: its rows are read while the others are streamed, once, whatever is killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.engine.snapshot.new_tables import FIELD
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask, fold_events

pytestmark = pytest.mark.services

ROWS = 9


@dataclass
class Source:
    """A database with the tables `old` and `new`, of nine rows each, and tasks that go on from each other's offsets."""

    postgres: PostgresAddress
    database: str
    tag: str
    connection: psycopg.Connection
    offset: Any = None

    def task(self, tables: str, hooks: SnapshotHooks | None = None, **more: str) -> DirectTask:
        settings = {
            "table_include_list": ",".join(f"public.{table}" for table in tables.split(",")),
            "publication_autocreate_mode": "filtered",
            "read_only": "true",
            "snapshot_new_tables": "incremental",
            "incremental_snapshot_chunk_size": "2",
        }
        task = DirectTask(postgres_source(self.postgres, self.database, self.tag, **{**settings, **more}), self.offset, hooks)
        try:
            task.poll_until(task.is_streaming, what="the stream")
        except BaseException:
            task.close()
            raise
        return task

    def stop(self, task: DirectTask) -> None:
        task.close()
        self.offset = task.offset

    def finish(self, task: DirectTask, marker: int) -> None:
        """Wait for the snapshot's end, if one runs, and for what had been committed then to be streamed."""
        task.poll()
        task.poll_until(lambda: not task.is_snapshotting(), what="the end of the snapshot")
        self.connection.execute("INSERT INTO old VALUES (%s, 'marker')", (marker,))
        task.poll_until(lambda: {"id": marker} in [key for key, _ in task.of(f"pg_{self.tag}.public.old")], what="the marker")

    def read(self, task: DirectTask, table: str) -> list[int]:
        """Keys that snapshots brought."""
        return [value["after"]["id"] for _, value in task.of(f"pg_{self.tag}.public.{table}") if value is not None and value["op"] == "r"]

    def rows(self, table: str) -> dict[int, Any]:
        return {row[0]: {"id": row[0], "v": row[1]} for row in self.connection.execute(f"SELECT id, v FROM {table}").fetchall()}

    def published(self) -> set[str]:
        query = "SELECT tablename FROM pg_publication_tables WHERE pubname = %s"
        return {row[0] for row in self.connection.execute(query, (f"pub_{self.tag}",)).fetchall()}


@pytest.fixture
def source(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Source]:
    with postgres.connect(database) as connection:
        connection.execute("SET synchronous_commit = local")
        for table in ("old", "new"):
            connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, v text); ALTER TABLE {table} REPLICA IDENTITY FULL")
            connection.execute(f"INSERT INTO {table} SELECT g, 'first' FROM generate_series(1, {ROWS}) g")
        yield Source(postgres, database, tag, connection)


def folded(events: list[tuple[Any, Any]]) -> dict[int, Any]:
    return {row["id"]: row for row in fold_events(events).values()}


class DuringChunks(SnapshotHooks):
    """Changes both tables while chunks are read."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.chunks = 0

    def reached(self, phase: str) -> None:
        if phase == "after_chunk":
            self.chunks += 1
            self._connection.execute("UPDATE new SET v = %s WHERE id IN (2, 5, 8)", (f"changed {self.chunks}",))
            self._connection.execute("INSERT INTO old VALUES (%s, 'beside')", (100 + self.chunks,))


def test_the_new_table_alone_is_read_while_the_others_are_streamed(source: Source) -> None:
    with source.task("old") as task:
        source.finish(task, 50)
        assert source.read(task, "old") == list(range(1, ROWS + 1))
        assert source.published() == {"old"}
        source.stop(task)
    source.connection.execute("INSERT INTO old VALUES (60, 'while away'); UPDATE new SET v = 'while away' WHERE id = 3")
    hooks = DuringChunks(source.connection)
    with source.task("old,new", hooks) as task:
        source.finish(task, 51)
        assert source.published() == {"old", "new"}
        assert source.read(task, "old") == [], "it was read before"
        assert folded(task.of(f"pg_{source.tag}.public.new")) == source.rows("new")
        streamed = [key["id"] for key, _ in task.of(f"pg_{source.tag}.public.old")]
        assert streamed == [60, *range(101, 101 + hooks.chunks), 51], "streaming of the other table went on"
        told = [note["type"] for note in task.context.notifications if note["aggregate_type"] == "Incremental Snapshot"]
        assert (told[0], told[-1]) == ("STARTED", "COMPLETED")
        source.stop(task)
    assert json.loads(source.offset[FIELD]) == ["public.new", "public.old"]
    with source.task("old,new") as task:
        source.finish(task, 52)
        assert source.read(task, "new") == [], "it is read once"


@pytest.mark.parametrize("chunk", [1, 2, 4, 5])
def test_killed_in_the_middle_it_goes_on(source: Source, chunk: int) -> None:
    with source.task("old") as task:
        source.finish(task, 50)
        source.stop(task)
    events: list[Any] = []

    class Kill(SnapshotHooks):
        count = 0

        def reached(self, phase: str) -> None:
            if phase == "after_chunk":
                self.count += 1
                if self.count == chunk:
                    raise KeyboardInterrupt

    for hooks in (Kill(), None):
        try:
            with source.task("old,new", hooks) as task:
                source.finish(task, 51 + len(events))
        except KeyboardInterrupt:
            pass
        events += task.of(f"pg_{source.tag}.public.new")
        source.offset = task.offset
    assert folded(events) == source.rows("new")
    assert len(events) <= ROWS + 2, "no more than one chunk was read again"


def test_a_table_that_was_left_out_for_a_while_is_read_again(source: Source) -> None:
    with source.task("old,new") as task:
        source.finish(task, 50)
        source.stop(task)
    with source.task("old") as task:
        source.connection.execute("DELETE FROM new WHERE id < 4; INSERT INTO new VALUES (40, 'unseen')")
        source.finish(task, 51)
        source.stop(task)
    with source.task("old,new") as task:
        source.finish(task, 52)
        assert source.read(task, "new") == [4, 5, 6, 7, 8, 9, 40]


def test_an_offset_of_before_goes_by_the_publication(source: Source) -> None:
    with source.task("old", snapshot_new_tables="off") as task:
        source.finish(task, 50)
        assert FIELD not in task.offset
        source.stop(task)
    with source.task("old,new") as task:
        source.finish(task, 51)
        assert source.read(task, "new") == list(range(1, ROWS + 1))
        assert source.read(task, "old") == []


def test_a_table_that_is_made_while_the_stream_is_read_is_streamed_and_not_read(source: Source) -> None:
    more = {"publication_autocreate_mode": "all_tables"}
    with source.task(".*", **more) as task:
        source.finish(task, 50)
        source.connection.execute("CREATE TABLE late (id integer PRIMARY KEY, v text); INSERT INTO late VALUES (1, 'streamed')")
        source.finish(task, 51)
        assert [value["op"] for _, value in task.of(f"pg_{source.tag}.public.late")] == ["c"]
        source.stop(task)
    with source.task(".*", **more) as task:
        source.finish(task, 52)
        assert source.read(task, "late") == []


def test_it_works_with_a_signal_table_too(source: Source) -> None:
    source.connection.execute("CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))")
    more = {"read_only": "false", "signal_data_collection": "public.signal"}
    with source.task("old", **more) as task:
        source.finish(task, 50)
        source.stop(task)
    with source.task("old,new", **more) as task:
        source.finish(task, 51)
        assert source.read(task, "new") == list(range(1, ROWS + 1))
