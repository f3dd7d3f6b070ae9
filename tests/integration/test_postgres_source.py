"""The PostgreSQL source task against a real server: snapshot, stream, and what a restart makes of every place it can happen at."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect_py.api import EncodedBatch
from connect_py.api.record import JsonEncoding
from connect_py.app.services.postgres import PostgresAddress, PostgresServer
from connect_py.errors import ConfigError, ConnectError, FatalTaskError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.postgres.config import parse_config
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.server.connection import Connection
from connectors.postgres.slot.slot import drop_slot
from connectors.postgres.task import PostgresConnectorTask
from tests.canary import within
from tests.waiting import eventually, let_time_pass

pytestmark = pytest.mark.services

PREFIX = "src"


class Context:
    """The runtime's side, in memory: offsets outlive a task."""

    connector = "source"
    task = 0
    encoding = JsonEncoding(key_schemas=False, value_schemas=False)

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None

    def offset(self, partition: Any) -> Any:
        assert partition == {"server": PREFIX}
        return self.stored

    def notify(self, notification: Any) -> None:
        pass


class Record:
    """One emitted row, decoded."""

    def __init__(self, row: Any) -> None:
        route, key, value = row
        self.table = route.topic.removeprefix(f"{PREFIX}.")
        self.key = None if key is None else json.loads(key)
        self.value = None if value is None else json.loads(value)
        self.headers = dict(route.headers)

    @property
    def op(self) -> str | None:
        return self.value["op"] if self.value else None

    def __repr__(self) -> str:
        shown = self.value and (self.value["op"], self.value["before"], self.value["after"])
        return f"{self.table} {self.key} {shown}"


class Runner:
    """Runs tasks one after the other on the same database and offsets."""

    def __init__(self, postgres: PostgresAddress, database: str) -> None:
        self.postgres = postgres
        self.database = database
        self.context = Context()
        self.records: list[Record] = []
        self.task: PostgresConnectorTask | None = None
        self.db = postgres.connect(database)

    def config(self, **more: str) -> dict[str, str]:
        return {
            "topic.prefix": PREFIX,
            "database.hostname": self.postgres.host,
            "database.port": str(self.postgres.port),
            "database.user": self.postgres.user,
            "database.password": self.postgres.password,
            "database.dbname": self.database,
            "slot.name": self.slot,
            "publication.name": "pub",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    @property
    def slot(self) -> str:
        return f"s_{self.database}".lower()

    def start(self, tuning: Tuning = DEFAULT_TUNING, **more: str) -> None:
        self.task = PostgresConnectorTask(tuning=tuning)
        self.task.start(self.config(**more), self.context)

    def poll(self, *, commit: bool = True) -> EncodedBatch | None:
        assert self.task is not None
        batch = self.task.poll()
        if batch is not None:
            self.records += map(Record, batch.rows)
            if commit:
                self.context.stored = json.loads(json.dumps(batch.source_offset))
                self.task.offsets_committed([(batch.source_partition, batch.source_offset)])
        return batch

    def until(self, count: int, seconds: float = 60.0, *, commit: bool = True) -> list[Record]:
        deadline = time.monotonic() + seconds
        while len(self.records) < count and time.monotonic() < deadline:
            self.poll(commit=commit)
        assert len(self.records) >= count, f"{len(self.records)} of {count} records came: {self.records}"
        return self.records

    def idle(self, polls: int = 4) -> None:
        """Poll until nothing comes any more."""
        quiet = 0
        while quiet < polls:
            quiet = quiet + 1 if self.poll() is None else 0

    def stop(self) -> None:
        if self.task is not None:
            self.task.stop()
            self.task.close()
            self.task = None

    def kill(self) -> None:
        """What kill -9 leaves behind: closed sockets, nothing said."""
        assert self.task is not None
        self.task.disconnect()
        self.task = None

    def table(self, name: str, key: str = "id") -> dict[Any, dict[str, Any]]:
        rows = self.db.execute(f"SELECT row_to_json(t) FROM {name} t").fetchall()
        return {row[0][key]: row[0] for row in rows}

    def folded(self, name: str, key: str = "id") -> dict[Any, dict[str, Any]]:
        """What a reader of the topic has when it keeps the last value of each key."""
        state: dict[Any, dict[str, Any]] = {}
        for record in self.records:
            if record.table == name:
                if record.value is None or record.value["after"] is None:
                    state.pop(record.key[key], None)
                else:
                    state[record.key[key]] = record.value["after"]
        return state

    def close(self) -> None:
        self.stop()
        self.db.close()


@pytest.fixture
def runner(postgres: PostgresAddress, database: str) -> Iterator[Runner]:
    running = Runner(postgres, database)
    yield running
    running.close()


def test_snapshot_then_changes_with_markers_offsets_and_headers(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1,'x'),(2,'y')")
    runner.db.execute("CREATE TABLE b (id int PRIMARY KEY, v text); INSERT INTO b VALUES (1,'z')")
    runner.start()
    records = runner.until(3)
    assert [(r.table, r.op, r.value["source"]["snapshot"]) for r in records] == [
        ("public.a", "r", "first"),
        ("public.a", "r", "last_in_data_collection"),
        ("public.b", "r", "last"),
    ]
    assert runner.context.stored is not None
    assert list(runner.context.stored) == ["last_snapshot_record", "lsn", "txId", "ts_usec", "snapshot", "snapshot_completed"]
    assert runner.context.stored["snapshot_completed"] is True
    runner.db.execute("INSERT INTO a VALUES (3,'new')")
    runner.db.execute("UPDATE a SET v='changed' WHERE id=1")
    runner.db.execute("DELETE FROM a WHERE id=2")
    records = runner.until(7)[3:]
    assert [(r.key["id"], r.op) for r in records] == [(3, "c"), (1, "u"), (2, "d"), (2, None)]
    assert list(runner.context.stored) == ["lsn_proc", "messageType", "lsn_commit", "lsn", "txId", "ts_usec"]
    assert runner.context.stored["messageType"] == "DELETE"
    headers = [r.headers for r in runner.records]
    assert all(list(h) == list(headers[0]) for h in headers)
    assert headers[0]["__debezium.context.connectorLogicalName"] == PREFIX
    assert len({h["__debezium.context.runId"] for h in headers}) == 1


def test_the_slot_is_confirmed_only_with_committed_offsets(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start(status_update_interval_ms="1")  # a status at every poll
    runner.idle()
    before = confirmed(runner)
    runner.db.execute("INSERT INTO a VALUES (1)")
    runner.db.execute("INSERT INTO a VALUES (2)")
    runner.until(2, commit=False)
    runner.idle()
    assert confirmed(runner) == before
    runner.db.execute("INSERT INTO a VALUES (3)")
    runner.until(3)
    assert runner.context.stored is not None
    wanted = runner.context.stored["lsn_commit"]
    wait_for(lambda: lsn_number(runner, confirmed(runner)) == wanted)


def confirmed(runner: Runner) -> str:
    row = runner.db.execute("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name=%s", (runner.slot,)).fetchone()
    assert row is not None
    return str(row[0])


def lsn_number(runner: Runner, text: str) -> int:
    row = runner.db.execute("SELECT %s::pg_lsn - '0/0'::pg_lsn", (text,)).fetchone()
    assert row is not None
    return int(row[0])


def wait_for(holds: Any, seconds: float = 60.0) -> None:
    eventually(holds, "such state", seconds)


def test_a_changed_key_is_a_delete_a_tombstone_and_a_create(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text NOT NULL); INSERT INTO a VALUES (1,'x')")
    runner.start()
    runner.until(1)
    runner.db.execute("UPDATE a SET id=10")
    delete, tombstone, create = runner.until(4)[1:]
    assert (delete.op, delete.key, delete.value["before"]) == ("d", {"id": 1}, {"id": 1, "v": ""})
    assert (tombstone.key, tombstone.value) == ({"id": 1}, None)
    assert (create.op, create.key, create.value["after"]) == ("c", {"id": 10}, {"id": 10, "v": "x"})
    assert delete.headers["__debezium.newkey"] == tombstone.headers["__debezium.newkey"] == '{"id":10}'
    assert create.headers["__debezium.oldkey"] == '{"id":1}'
    assert runner.folded("public.a") == runner.table("a")


def test_an_unchanged_toast_value_is_the_placeholder(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, big text); ALTER TABLE a ALTER big SET STORAGE EXTERNAL")
    runner.start()
    runner.idle()
    big = "0123456789" * 2000
    runner.db.execute("INSERT INTO a VALUES (1,1,%s)", (big,))
    runner.db.execute("UPDATE a SET n=2")
    insert, update = runner.until(2)
    assert insert.value["after"]["big"] == big
    assert update.value["after"] == {"id": 1, "n": 2, "big": "__debezium_unavailable_value"}


def test_a_table_without_a_key_has_null_keys(runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    runner.db.execute("CREATE TABLE a (v text); INSERT INTO a VALUES ('x'); ALTER TABLE a REPLICA IDENTITY FULL")
    runner.start()
    runner.until(1)
    runner.db.execute("INSERT INTO a VALUES ('y'); UPDATE a SET v='z' WHERE v='y'; DELETE FROM a WHERE v='z'")
    assert [(r.key, r.op) for r in runner.until(5)] == [(None, "r"), (None, "c"), (None, "u"), (None, "d"), (None, None)]
    assert "has neither a primary key nor a usable unique index" in caplog.text


def test_a_unique_index_stands_in_for_a_missing_key_unless_it_is_partial(runner: Runner) -> None:
    runner.db.execute(
        "CREATE TABLE a (x int NOT NULL, y int NOT NULL); CREATE UNIQUE INDEX a1 ON a (x) WHERE y > 0; CREATE UNIQUE INDEX a2 ON a (y, x)"
    )
    runner.db.execute("INSERT INTO a VALUES (1, 2)")
    runner.start()
    assert runner.until(1)[0].key == {"y": 2, "x": 1}


def test_a_truncate_shows_when_it_is_asked_for(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)")
    runner.start(skipped_operations="none")
    runner.idle()
    runner.db.execute("INSERT INTO a VALUES (1); TRUNCATE a, b; INSERT INTO a VALUES (2)")
    records = runner.until(4)
    assert [(r.table, r.key, r.op) for r in records] == [
        ("public.a", {"id": 1}, "c"),
        ("public.a", None, "t"),
        ("public.b", None, "t"),
        ("public.a", {"id": 2}, "c"),
    ]


def test_a_structure_that_changes_changes_the_next_rows(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
    runner.start()
    runner.idle()
    runner.db.execute("INSERT INTO a VALUES (1,'x')")
    runner.until(1)
    runner.db.execute("ALTER TABLE a ADD COLUMN w int NOT NULL DEFAULT 4, DROP COLUMN v")
    runner.db.execute("INSERT INTO a VALUES (2,7)")
    assert runner.until(2)[1].value["after"] == {"id": 2, "w": 7}
    assert runner.records[1].key == {"id": 2}


def test_writers_during_the_snapshot_lose_and_double_nothing(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a SELECT i, 0 FROM generate_series(1,20000) i")
    done = threading.Event()

    def write() -> None:
        with runner.postgres.connect(runner.database) as db:
            next_id = 20001
            while not done.is_set():
                db.execute("INSERT INTO a VALUES (%s, 1)", (next_id,))
                db.execute("UPDATE a SET v = v + 1 WHERE id = %s", (next_id % 20000,))
                db.execute("DELETE FROM a WHERE id = %s", (next_id - 15000,))
                next_id += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: len(runner.table("a")) > 0)
        runner.start()
        runner.until(20500)
    finally:
        done.set()
        writer.join()
    runner.idle()
    assert runner.folded("public.a") == runner.table("a")
    snapshot_rows = [r for r in runner.records if r.op == "r"]
    assert len({r.key["id"] for r in snapshot_rows}) == len(snapshot_rows)
    streamed = [(r.value["source"]["txId"], r.value["source"]["lsn"], r.op) for r in runner.records if r.value and r.op != "r"]
    assert len(set(streamed)) == len(streamed)


def test_an_unfinished_snapshot_begins_again_and_converges(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a SELECT i, 0 FROM generate_series(1,1000) i")
    runner.start(Tuning(snapshot_rows=100))
    runner.until(300)
    assert runner.context.stored is not None
    assert runner.context.stored["snapshot_completed"] is False
    runner.kill()
    # rows that the first attempt has sent go away before the second one reads: only the stream can tell of them
    runner.db.execute("DELETE FROM a WHERE id <= 10")
    runner.db.execute("UPDATE a SET v = 1 WHERE id <= 20")
    runner.start(Tuning(snapshot_rows=100))
    runner.idle()
    assert len([r for r in runner.records if r.op == "r"]) >= 990 + 300
    assert runner.folded("public.a") == runner.table("a")


def test_a_snapshot_that_died_before_its_first_commit_converges_too(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a SELECT i, 0 FROM generate_series(1,1000) i")
    runner.start(Tuning(snapshot_rows=100))
    runner.until(300, commit=False)
    runner.kill()
    runner.db.execute("DELETE FROM a WHERE id <= 10")
    runner.start(Tuning(snapshot_rows=100))
    runner.idle()
    assert runner.folded("public.a") == runner.table("a")


WORKLOAD = [
    "INSERT INTO a VALUES (100, 1), (101, 1), (102, 1)",
    "UPDATE a SET v = v + 1",
    "DELETE FROM a WHERE id = 2",
    "UPDATE a SET id = 200 WHERE id = 3",
    "BEGIN; INSERT INTO a VALUES (300, 1); UPDATE a SET v = 9 WHERE id = 300; SAVEPOINT s; DELETE FROM a WHERE id = 100; ROLLBACK TO "
    "s; COMMIT",
    "COPY-MANY",
    "DELETE FROM a WHERE id BETWEEN 1000 AND 1004",
    "INSERT INTO a VALUES (2, 5)",
]


def play(runner: Runner) -> None:
    """The workload, with two transactions that overlap: the one with the smaller positions commits last."""
    with runner.postgres.connect(runner.database) as other:
        other.execute("BEGIN")
        other.execute("INSERT INTO a VALUES (400, 1)")
        for statement in WORKLOAD:
            if statement == "COPY-MANY":
                # one WAL record for many rows: they share one position
                with runner.db.cursor() as cursor, cursor.copy("COPY a FROM STDIN") as copy:
                    for number in range(1000, 1010):
                        copy.write_row((number, 0))
            else:
                runner.db.execute(statement)
        other.execute("UPDATE a SET v = 7 WHERE id = 400")
        other.execute("COMMIT")


def test_a_restart_between_any_two_events_repeats_none_and_loses_none(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a VALUES (1,0),(2,0),(3,0)")
    runner.start(Tuning(batch_rows=1))
    runner.idle()
    play(runner)
    last = -1
    while len(runner.records) != last:
        # one event, killed, next task: every cut point there is
        last = len(runner.records)
        deadline = time.monotonic() + 2
        while runner.poll() is None and time.monotonic() < deadline:
            pass
        runner.kill()
        runner.start(Tuning(batch_rows=1))
    assert runner.folded("public.a") == runner.table("a")
    events = [(r.key["id"], r.op, json.dumps(r.value and r.value["after"])) for r in runner.records]
    runner.kill()

    # the same workload in one go gives the same events
    runner.db.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active", (runner.slot,)
    )
    again = Runner(runner.postgres, runner.database)
    again.db.execute("TRUNCATE a; INSERT INTO a VALUES (1,0),(2,0),(3,0)")
    wait_for(
        lambda: not again.db.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (again.slot,)).fetchone() or drop(again)
    )
    again.start()
    again.idle()
    play(again)
    again.until(len(events))
    again.idle()
    assert [(r.key["id"], r.op, json.dumps(r.value and r.value["after"])) for r in again.records] == events
    again.close()


def drop(runner: Runner) -> bool:
    try:
        runner.db.execute("SELECT pg_drop_replication_slot(%s)", (runner.slot,))
    except psycopg.errors.ObjectInUse:
        return False
    return True


def test_a_restart_without_any_commit_replays_from_the_snapshots_position(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a VALUES (1,0),(2,0),(3,0)")
    runner.start()
    runner.until(3)
    play(runner)
    runner.until(20, commit=False)
    runner.kill()
    runner.start()
    runner.idle()
    assert runner.folded("public.a") == runner.table("a")


def test_an_offset_of_debezium_inside_a_multi_row_record_repeats_rather_than_loses(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v int)")
    runner.start(Tuning(batch_rows=1))
    runner.idle()
    with runner.db.cursor() as cursor, cursor.copy("COPY a FROM STDIN") as copy:
        for number in range(10):
            copy.write_row((number, 0))
    runner.until(4)
    runner.kill()
    assert runner.context.stored is not None
    assert runner.context.stored.pop("lsn_events_processed") == 4
    runner.start(Tuning(batch_rows=1))
    runner.idle()
    assert runner.folded("public.a") == runner.table("a")


def test_a_cut_connection_is_opened_again_and_reading_goes_on(runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    runner.db.execute("INSERT INTO a VALUES (1)")
    runner.until(1)
    runner.db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    runner.db.execute("INSERT INTO a VALUES (2)")
    runner.until(2)
    assert [r.key["id"] for r in runner.records] == [1, 2]
    assert "reading goes on from" in caplog.text


def test_an_idle_catalog_connection_that_was_cut_does_not_disturb_the_stream(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    runner.db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'Debezium "
        "General'"
    )
    runner.db.execute("CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (1)")
    assert runner.until(1)[0].table == "public.later"


def test_a_slot_held_by_a_dying_predecessor_is_waited_for(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    predecessor, runner.task = runner.task, None
    runner.start()
    assert runner.poll() is None
    assert predecessor is not None
    predecessor.disconnect()
    runner.db.execute("INSERT INTO a VALUES (1)")
    runner.until(1)


def test_a_slot_held_for_good_fails_the_task_with_a_sentence(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    holder, runner.task = runner.task, None
    runner.start(slot_retry_delay_ms="100", slot_max_retries="2")
    with pytest.raises(FatalTaskError, match="make sure to use a distinct replication slot name for each") as caught:
        runner.idle(polls=50)
    assert "pg_terminate_backend" in str(caught.value)
    assert holder is not None
    holder.disconnect()


def test_only_filtered_tables_are_published_in_filtered_mode(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)")
    runner.start(table_include_list="public.a", publication_autocreate_mode="filtered")
    runner.idle()
    assert runner.db.execute("SELECT tablename FROM pg_publication_tables WHERE pubname='pub'").fetchall() == [("a",)]
    runner.kill()
    runner.start(table_include_list="public.a,public.b", publication_autocreate_mode="filtered")
    runner.idle()
    assert sorted(runner.db.execute("SELECT tablename FROM pg_publication_tables WHERE pubname='pub'").fetchall()) == [("a",), ("b",)]


def test_initial_only_makes_no_slot_and_rests(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    runner.start(snapshot_mode="initial_only")
    runner.until(1)
    runner.idle()
    assert runner.db.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name=%s", (runner.slot,)).fetchone() == (0,)


def test_no_data_streams_only(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    runner.start(snapshot_mode="never")
    runner.idle()
    runner.db.execute("INSERT INTO a VALUES (2)")
    assert [(r.key["id"], r.op) for r in runner.until(1)] == [(2, "c")]


def test_a_dropped_slot_fails_initial_and_makes_when_needed_read_again(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    runner.start()
    runner.until(1)
    runner.idle()
    runner.stop()
    wait_for(lambda: drop(runner))
    runner.start()
    with pytest.raises(FatalTaskError, match="no longer available on the server"):
        runner.idle()
    runner.stop()
    runner.start(snapshot_mode="when_needed")
    assert [r.op for r in runner.until(2)] == ["r", "r"]


def test_a_slot_that_is_dropped_under_a_running_task_is_not_silently_replaced(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    runner.db.execute("INSERT INTO a VALUES (1)")
    runner.until(1)
    slot = "FROM pg_replication_slots WHERE slot_name = %s"
    runner.db.execute(f"SELECT pg_terminate_backend(active_pid) {slot}", (runner.slot,))
    wait_for(lambda: runner.db.execute(f"SELECT active {slot}", (runner.slot,)).fetchone() == (False,))
    runner.db.execute(f"SELECT pg_drop_replication_slot(slot_name) {slot}", (runner.slot,))
    runner.db.execute("INSERT INTO a VALUES (2)")
    with pytest.raises(FatalTaskError, match=f"no longer available on the server: the replication slot '{runner.slot}' does not exist"):
        runner.until(2)


def test_dropping_the_slot_on_stop(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start(slot_drop_on_stop="true")
    runner.idle()
    runner.stop()
    assert runner.db.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name=%s", (runner.slot,)).fetchone() == (0,)


def test_a_slot_that_a_session_still_holds_is_dropped_when_that_has_ended(runner: Runner) -> None:
    """The server's process ends a moment after our connection; the slot stayed, and kept the server's log."""
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    connection = Connection(parse_config(runner.config()).connection, "test")
    try:
        assert not drop_slot(connection, runner.slot, 0.2), "the task reads it"
        ending = threading.Timer(0.3, runner.kill)
        ending.start()
        assert drop_slot(connection, runner.slot, 30)
        ending.join()
        assert drop_slot(connection, runner.slot, 0), "it is gone already"
    finally:
        connection.close()


def failure(runner: Runner, **more: str) -> str:
    with pytest.raises(ConnectError) as caught:
        runner.start(**more)
        runner.idle()
    return str(caught.value)


def test_a_user_without_replication_is_told_what_to_run(runner: Runner) -> None:
    role = f"plain_{runner.database}".lower()
    runner.db.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
    try:
        text = failure(runner, database_user=role, database_password="p")
    finally:
        runner.db.execute(f"DROP ROLE {role}")
    assert f'ALTER ROLE "{role}" WITH REPLICATION;' in text
    assert "no slot was created" in text


def test_a_user_without_select_is_told_what_to_run(runner: Runner) -> None:
    role = f"blind_{runner.database}".lower()
    runner.db.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'p'")
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    try:
        text = failure(runner, database_user=role, database_password="p")
    finally:
        runner.db.execute(f"DROP ROLE {role}")
    assert f'GRANT SELECT ON "public"."a" TO "{role}"' in text
    assert runner.db.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name=%s", (runner.slot,)).fetchone() == (0,)


def test_a_user_who_may_not_publish_is_told_what_to_run(runner: Runner) -> None:
    role = f"quiet_{runner.database}".lower()
    runner.db.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'p'")
    runner.db.execute(f"CREATE TABLE a (id int PRIMARY KEY); GRANT SELECT ON a TO {role}")
    try:
        text = failure(runner, database_user=role, database_password="p")
    finally:
        runner.db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert 'CREATE PUBLICATION "pub" FOR ALL TABLES' in text


def test_a_missing_publication_is_named_when_it_may_not_be_made(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    text = failure(runner, publication_autocreate_mode="disabled")
    assert text.startswith("Publication autocreation is disabled, please create one and restart the connector.")


def test_filters_that_match_no_table_are_named_when_the_publication_would_be_empty(runner: Runner) -> None:
    with pytest.raises(ConnectError, match="No table filters found for filtered publication pub") as caught:
        runner.start(table_include_list="public.nothing", publication_autocreate_mode="filtered")
        runner.idle()
    assert "matches the filters" in caught.value.__notes__[0]


def test_a_publication_that_exists_is_used_where_filters_match_no_table(runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE PUBLICATION pub FOR TABLE a")
    with caplog.at_level(logging.WARNING):
        runner.start(table_include_list="public.nothing", publication_autocreate_mode="filtered")
        runner.idle()
    assert "publication 'pub' is used as it is" in caplog.text
    assert runner.db.execute("SELECT tablename FROM pg_publication_tables WHERE pubname = 'pub'").fetchall() == [("a",)]


def test_a_server_without_logical_decoding_is_told_so(postgres_without_logical: PostgresAddress) -> None:
    database = postgres_without_logical.create_database()
    runner = Runner(postgres_without_logical, database)
    try:
        assert "wal_level property must be 'logical' but is: 'replica'" in failure(runner)
    finally:
        runner.close()
        postgres_without_logical.drop_database(database)


def test_a_wrong_password_fails_without_being_shown(runner: Runner) -> None:
    text = failure(runner, database_password="not-the-password")
    assert "password authentication failed" in text
    assert "not-the-password" not in text


def test_validation_tries_the_connection_only_when_nothing_else_is_wrong(runner: Runner) -> None:
    connector = PostgresConnector()

    def problems(**more: str) -> dict[str, list[str]]:
        return {value.name: value.errors for value in connector.validate(runner.config(**more)) if value.errors}

    assert problems() == {}
    wrong = problems(database_password="wrong")
    assert wrong == {
        "database.hostname": [
            f'Error while validating connector config: FATAL: password authentication failed for user "{runner.postgres.user}"'
        ]
    }
    assert list(problems(database_password="wrong", snapshot_mode="foo")) == ["snapshot.mode"]
    assert list(problems(plugin_name="decoderbufs")) == ["plugin.name"]
    assert problems(database_hostname="no-such-host.invalid") == {
        "database.hostname": ["Error while validating connector config: The connection attempt failed."]
    }


def test_names_of_debezium_1_are_taken_with_a_warning(runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    runner.db.execute(
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"
    )
    config = runner.config(table_whitelist="public.a")
    config["database.server.name"] = config.pop("topic.prefix")
    runner.task = PostgresConnectorTask()
    runner.task.start(config, runner.context)
    runner.idle()
    assert [r.table for r in runner.records] == ["public.a"]
    assert "'database.server.name' is an old name of 'topic.prefix'" in caplog.text


def test_a_bad_configuration_is_refused_at_once(runner: Runner) -> None:
    with pytest.raises(ConfigError, match=r"snapshot\.mode"):
        runner.start(snapshot_mode="foo")
    runner.task = None


def test_a_stop_ends_a_waiting_poll_soon(runner: Runner) -> None:
    runner.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    runner.start()
    runner.idle()
    assert runner.task is not None
    stopped = threading.Event()
    with within(2, "a stop ends a poll"):
        threading.Timer(0.05, lambda: (runner.task.stop(), stopped.set())).start()
        while not stopped.is_set():
            runner.poll()


@pytest.mark.long
def test_a_server_with_a_short_timeout_keeps_a_source_that_must_wait_for_kafka(runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    role = f"slow_{runner.database}".lower()
    runner.db.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'p'")
    runner.db.execute(f"ALTER ROLE {role} SET wal_sender_timeout = '4s'")
    try:
        runner.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
        runner.start(database_user=role, database_password="p")
        runner.idle()
        # more than the sockets hold, so that the server is in the middle of sending all the time
        runner.db.execute("INSERT INTO a SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) i")
        runner.until(1)
        assert runner.task is not None
        began = time.monotonic()
        while time.monotonic() - began < 9:
            runner.task.keep_alive()
            let_time_pass(0.2, "a source that is fed slowly")
        runner.until(30000)
        assert "Trying again" not in caplog.text
        runner.stop()
    finally:
        runner.db.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_a_server_without_a_free_slot_is_told_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = PostgresServer(tmp_path_factory.mktemp("postgres-full"))
    runner = Runner(server, server.create_database())
    try:
        (slots,) = runner.db.execute("SELECT current_setting('max_replication_slots')::int").fetchone() or (0,)
        for number in range(slots):
            runner.db.execute("SELECT pg_create_physical_replication_slot(%s)", (f"p{number}",))
        text = failure(runner)
    finally:
        runner.close()
        server.stop()
    assert "all replication slots are in use" in text
    assert "max_replication_slots" in text


def test_what_is_not_installed_is_refused(runner: Runner) -> None:
    config = runner.config()
    config |= {"converters": "isbn", "isbn.type": "com.acme.Isbn"}
    errors = {value.name: value.errors for value in PostgresConnector().validate(config) if value.errors}
    assert list(errors) == ["converters"]
    task = PostgresConnectorTask()
    with pytest.raises(ConfigError, match=r"There is no custom converter com\.acme\.Isbn"):
        task.start(config, runner.context)
