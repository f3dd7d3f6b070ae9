"""An initial snapshot of PostgreSQL that is interrupted goes on where it was, and no row goes back in time."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connectors.engine.batches import Tuning
from connectors.engine.snapshot.initial.progress import FIELD, SnapshotProgress
from connectors.postgres.position.offset import PostgresOffset
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask, fold_events

pytestmark = pytest.mark.services

CHUNK = 100


@dataclass
class Source:
    """A database, and tasks that read it one after the other, each from the offset of the one before."""

    postgres: PostgresAddress
    database: str
    tag: str
    connection: psycopg.Connection
    events: list[Any] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)

    def task(self, offset: Any = None, **more: str) -> DirectTask:
        settings = {"internal_snapshot_chunk_rows": str(CHUNK), "table_include_list": r"public\..*"}
        config = postgres_source(self.postgres, self.database, self.tag, **{**settings, **more})
        return DirectTask(config, offset, tuning=Tuning(snapshot_rows=30))

    def run_until(self, condition: Callable[[DirectTask], object], offset: Any = None, **more: str) -> Any:
        """Run a task until something holds of it; it is then gone at once, as if killed. Returns its last offset."""
        task = self.task(offset, **more)
        try:
            task.poll_until(lambda: condition(task))
        finally:
            self.events += task.events
            self.batches = task.batches
            task.task.disconnect()
            task.close()
        return task.offset

    def topic(self, table: str) -> list[tuple[Any, Any]]:
        return [(key, value) for topic, key, value in self.events if topic == f"pg_{self.tag}.public.{table}"]

    def rows(self, table: str) -> dict[Any, Any]:
        found = self.connection.execute(f"SELECT to_jsonb(t) FROM {table} t").fetchall()
        return {(("id", row["id"]),): row for (row,) in found}


@pytest.fixture
def source(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Source]:
    with postgres.connect(database) as connection:
        yield Source(postgres, database, tag, connection)


def seen(count: int) -> Callable[[DirectTask], bool]:
    return lambda task: len(task.events) >= count


def finished(task: DirectTask) -> bool:
    """Whether the snapshot has ended and the stream is read."""
    position = task.task.position
    return position is not None and not position.is_snapshot_unfinished and task.is_streaming()


def seen_or_finished(count: int) -> Callable[[DirectTask], bool]:
    return lambda task: len(task.events) >= count or finished(task)


def goes_back_in_time(events: list[tuple[Any, Any]]) -> list[Any]:
    """Keys of which an event shows an older version than one before it; a deletion counts as the version that it removes."""
    newest: dict[Any, int] = {}
    wrong = []
    for key, value in events:
        if value is None:
            continue
        version = (value["after"] or value["before"])["version"]
        if version is None:
            continue
        if version < newest.get(key["id"], 0):
            wrong.append((key["id"], value["op"], newest[key["id"]], version))
        newest[key["id"]] = max(newest.get(key["id"], 0), version)
    return wrong


def make_item(source: Source, rows: int) -> None:
    source.connection.execute("CREATE TABLE item (id integer PRIMARY KEY, version integer NOT NULL, note text)")
    source.connection.execute("ALTER TABLE item REPLICA IDENTITY FULL")
    source.connection.execute("INSERT INTO item SELECT g, 1, 'old' FROM generate_series(1, %s) g", (rows,))
    source.connection.execute("ANALYZE item")


def test_a_resumed_snapshot_reads_at_most_a_chunk_again(source: Source) -> None:
    make_item(source, 1000)
    offset = source.run_until(seen(450))
    assert offset["snapshot"] == "INITIAL" and offset["snapshot_completed"] is False
    assert SnapshotProgress(offset[FIELD]).rows("public.item") == 400
    offset = source.run_until(seen(300), offset)
    source.run_until(finished, offset)
    counts = Counter(key["id"] for key, _ in source.topic("item"))
    assert set(counts) == set(range(1, 1001))
    assert sum(counts.values()) - 1000 <= 2 * CHUNK
    markers = [value["source"]["snapshot"] for _, value in source.topic("item")]
    assert (markers[0], markers[-1]) == ("first", "last")
    assert markers.count("first") == markers.count("last") == 1
    assert fold_events(source.topic("item")) == source.rows("item")


def test_changes_between_two_attempts_come_before_what_is_left(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    # in what was read, in what was cut off, in what is left; and rows that move between them
    for id_ in (5, 210, 500):
        source.connection.execute("UPDATE item SET version = 2, note = 'changed' WHERE id = %s", (id_,))
    for id_ in (6, 211, 501):
        source.connection.execute("DELETE FROM item WHERE id = %s", (id_,))
    for old, new in ((7, 1007), (502, 1502), (503, -3), (8, 504)):
        source.connection.execute("DELETE FROM item WHERE id = %s", (new,))
        source.connection.execute("UPDATE item SET id = %s, version = 3 WHERE id = %s", (new, old))
    source.connection.execute("INSERT INTO item VALUES (-1, 1, 'new'), (2000, 1, 'new')")
    offset = source.run_until(finished, offset)
    source.connection.execute("UPDATE item SET version = 9 WHERE id = 501 OR id = 300")
    assert "snapshot" not in offset or offset["snapshot_completed"]
    final = source.run_until(lambda task: any(value and value["op"] == "u" for _, _, value in task.events), offset)
    assert fold_events(source.topic("item")) == source.rows("item")
    assert goes_back_in_time(source.topic("item")) == []
    assert "snapshot" not in final


def test_the_offset_says_unfinished_to_debezium_until_the_last_row(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    source.connection.execute("UPDATE item SET version = 2 WHERE id % 10 = 0")
    source.run_until(finished, offset)
    unfinished = [offset for _, offset in source.batches[:-1]]
    assert all(offset["snapshot"] == "INITIAL" and offset["snapshot_completed"] is False for offset in unfinished)
    assert any("lsn_proc" in offset for offset in unfinished), "the changes in between have streaming positions"
    last = source.batches[-1][1]
    assert last["snapshot_completed"] is True and FIELD not in last


def test_tables_that_are_done_are_not_read_again_and_keyless_ones_are_whole(source: Source) -> None:
    source.connection.execute("CREATE TABLE a (id integer PRIMARY KEY); INSERT INTO a VALUES (1), (2)")
    source.connection.execute("CREATE TABLE b (id integer); INSERT INTO b SELECT g FROM generate_series(1, 500) g; ANALYZE b")
    source.connection.execute("CREATE TABLE c (id integer PRIMARY KEY); INSERT INTO c VALUES (1)")
    offset = source.run_until(seen(200))
    assert SnapshotProgress(offset[FIELD]).is_done("public.a")
    source.run_until(finished, offset)
    assert len(source.topic("a")) == 2
    assert 500 < len(source.topic("b")) <= 1000
    assert {value["after"]["id"] for _, value in source.topic("b")[-500:]} == set(range(1, 501))
    assert source.topic("c")[-1][1]["source"]["snapshot"] == "last"


def test_an_offset_of_debezium_begins_anew(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    debeziums = {name: value for name, value in offset.items() if name != FIELD}
    source.events.clear()
    source.run_until(finished, debeziums)
    assert len(source.topic("item")) == 600
    assert source.topic("item")[0][1]["source"]["snapshot"] == "first"


def test_a_snapshot_whose_slot_is_gone_begins_anew(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    source.connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (f"slot_{source.tag}",)
    )
    source.events.clear()
    source.run_until(finished, offset)
    assert len(source.topic("item")) == 600


def test_a_table_with_another_key_is_read_whole(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    source.connection.execute("ALTER TABLE item DROP CONSTRAINT item_pkey; ALTER TABLE item ADD PRIMARY KEY (version, id)")
    source.events.clear()
    source.run_until(finished, offset)
    assert len(source.topic("item")) == 600


def test_a_lost_connection_interrupts_only_a_chunk(source: Source) -> None:
    make_item(source, 1000)
    task = source.task(retriable_restart_connector_wait_ms="100")
    with task:
        task.poll_until(lambda: len(task.events) >= 450)
        source.connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        task.poll_until(lambda: finished(task))
    assert len(task.events) <= 1000 + CHUNK
    assert fold_events(task.of(f"pg_{source.tag}.public.item")) == source.rows("item")


KEYS = {
    "uuid": "gen_random_uuid()",
    "text": "'k' || md5(g::text) || E'\\\\'",
    "timestamptz": "now() + g * interval '1 s'",
    "numeric": "g * 1.5",
    "bytea": "decode(md5(g::text), 'hex')",
}


@pytest.mark.parametrize("type_", KEYS)
def test_any_key_cuts_a_table(source: Source, type_: str) -> None:
    source.connection.execute(f"CREATE TABLE t (a {type_}, b integer, PRIMARY KEY (a, b))")
    source.connection.execute(f"INSERT INTO t SELECT {KEYS[type_]}, g FROM generate_series(1, 500) g; ANALYZE t")
    offset = source.run_until(seen(250))
    assert SnapshotProgress(offset[FIELD]).rows("public.t") == 200
    source.run_until(finished, offset)
    numbers = [value["after"]["b"] for _, value in source.topic("t")]
    assert set(numbers) == set(range(1, 501))
    assert len(numbers) <= 500 + CHUNK


def test_interruptions_at_random_never_take_a_row_back(source: Source) -> None:
    seed = int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))
    print(f"FAULTS_SEED={seed}")
    dice = random.Random(seed)
    make_item(source, 1500)
    offset, version, is_finished = None, 1, False
    while not is_finished:
        last = source.run_until(seen_or_finished(dice.randrange(1, 500)), offset)
        is_finished = not PostgresOffset.load(last).is_snapshot_unfinished
        # what was sent after the last commit is sent again
        known = [stored for _, stored in source.batches[: dice.randrange(len(source.batches) + 1)]]
        offset = last if is_finished else (known or [offset])[-1]
        for _ in range(20):
            version += 1
            id_, what = dice.randrange(1, 1500), dice.random()
            if what < 0.2:
                source.connection.execute("DELETE FROM item WHERE id = %s", (id_,))
            elif what < 0.4:
                source.connection.execute(
                    "UPDATE item SET id = %s, version = %s WHERE id = %s AND NOT EXISTS (SELECT 1 FROM item WHERE id = %s)",
                    (to := dice.randrange(1, 3000), version, id_, to),
                )
            else:
                source.connection.execute(
                    "INSERT INTO item VALUES (%s, %s, 'changed') ON CONFLICT (id) DO UPDATE SET version = excluded.version", (id_, version)
                )
    source.connection.execute("INSERT INTO item VALUES (-9, 1000000, 'the end')")
    source.run_until(lambda task: any(key["id"] == -9 for _, key, _ in task.events), offset)
    assert fold_events(source.topic("item")) == source.rows("item")


@pytest.mark.parametrize(("order", "wanted"), [("ascending", "cab"), ("descending", "bac"), ("disabled", "abc")])
def test_tables_are_read_in_the_order_of_their_sizes(source: Source, order: str, wanted: str) -> None:
    for name, rows in (("a", 20), ("b", 50), ("c", 5)):
        source.connection.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY)")
        source.connection.execute(f"INSERT INTO {name} SELECT generate_series(1, {rows})")
    source.connection.execute("ANALYZE")
    source.run_until(finished, snapshot_tables_order_by_row_count=order)
    assert "".join(dict.fromkeys(topic[-1] for topic, _, _ in source.events)) == wanted


def test_a_table_whose_key_may_not_be_read_is_read_whole(source: Source) -> None:
    make_item(source, 600)
    role = f"limited_{source.tag}"
    source.connection.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'")
    try:
        source.connection.execute(f"GRANT SELECT (version, note) ON item TO {role}")
        source.connection.execute(f"CREATE PUBLICATION pub_{source.tag} FOR TABLE item")
        limited = {"database_user": role, "database_password": "x", "publication_autocreate_mode": "disabled"}
        source.run_until(finished, column_exclude_list=r"public\.item\.id", message_key_columns="public.item:note", **limited)
        assert len(source.topic("item")) == 600
    finally:
        source.connection.execute(f"DROP OWNED BY {role}")
        source.connection.execute(f"DROP ROLE {role}")


def test_a_snapshot_that_no_stream_follows_begins_anew(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250), snapshot_mode="initial_only")
    assert FIELD not in offset
    source.connection.execute("UPDATE item SET version = 2")
    source.events.clear()
    source.run_until(lambda task: task.events and task.events[-1][2]["source"]["snapshot"] == "last", offset, snapshot_mode="initial_only")
    assert [value["after"]["version"] for _, value in source.topic("item")] == [2] * 600


@contextmanager
def every_slot_taken(source: Source) -> Iterator[None]:
    """Leave the server no room for another replication slot."""
    names: list[str] = []
    try:
        with suppress(psycopg.errors.ConfigurationLimitExceeded):
            while True:
                name = f"full_{source.tag}_{len(names)}"
                source.connection.execute("SELECT pg_create_physical_replication_slot(%s)", (name,))
                names.append(name)
        yield
    finally:
        for name in names:
            source.connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def test_without_room_for_a_temporary_slot_the_end_is_right_all_the_same(source: Source) -> None:
    make_item(source, 600)
    offset = source.run_until(seen(250))
    for id_ in (5, 210, 500):
        source.connection.execute("UPDATE item SET version = 2 WHERE id = %s", (id_,))
    source.connection.execute("DELETE FROM item WHERE id IN (6, 211, 501)")
    source.connection.execute("UPDATE item SET id = id + 1000, version = 3 WHERE id IN (7, 502)")
    source.connection.execute("INSERT INTO item VALUES (-9, 1, 'the end')")

    def has_streamed(task: DirectTask) -> bool:
        return finished(task) and any(key["id"] == -9 and value["op"] == "c" for _, key, value in task.events if value)

    with every_slot_taken(source):
        source.run_until(has_streamed, offset)
    assert fold_events(source.topic("item")) == source.rows("item")
    assert len([1 for _, value in source.topic("item") if value and value["op"] == "r"]) <= 600 + CHUNK
