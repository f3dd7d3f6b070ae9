"""Incremental and blocking snapshots of PostgreSQL tables on a real server: keys, conditions, signals, restarts, failures."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.signal import channels
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask, fold_events
from tests.seeds import seeds

pytestmark = pytest.mark.services

SIGNALS = "CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))"
NOTES = "notes"


@dataclass
class Source:
    """A database with a signal table, and tasks that read it."""

    postgres: PostgresAddress
    database: str
    tag: str
    connection: psycopg.Connection

    def task(self, offset: Any = None, hooks: SnapshotHooks | None = None, tuning: Tuning = DEFAULT_TUNING, **more: str) -> DirectTask:
        settings = {
            "snapshot_mode": "no_data",
            "skipped_operations": "none",
            "signal_data_collection": "public.signal",
            "incremental_snapshot_chunk_size": "2",
            "notification_enabled_channels": "sink",
            "notification_sink_topic_name": NOTES,
        }
        task = DirectTask(postgres_source(self.postgres, self.database, self.tag, **{**settings, **more}), offset, hooks, tuning)
        try:
            task.poll_until(task.is_streaming, what="the stream")
        except BaseException:
            task.close()
            raise
        return task

    def signal(self, id_: str, type_: str, **data: object) -> None:
        text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
        self.connection.execute("INSERT INTO signal VALUES (%s, %s, %s)", (id_, type_, text))

    def execute(self, *collections: str, id_: str = "s", **more: object) -> None:
        self.signal(id_, "execute-snapshot", data_collections=list(collections), **more)

    def topic(self, table: str) -> str:
        return f"pg_{self.tag}.public.{table}"

    def rows(self, table: str) -> list[dict[str, Any]]:
        cursor = self.connection.execute(f"SELECT to_jsonb(t) FROM {table} t")
        return [row[0] for row in cursor.fetchall()]


@pytest.fixture
def source(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Source]:
    with postgres.connect(database) as connection:
        connection.execute("SET synchronous_commit = local")  # or each signal waits 200 ms for the log's writer of a test server
        connection.execute(SIGNALS)
        yield Source(postgres, database, tag, connection)


def notes(task: DirectTask) -> list[tuple[str, str, dict[str, str]]]:
    """Type, id and data of the notifications about incremental snapshots."""
    found = [value for _, value in task.of(NOTES) if value["aggregate_type"] == "Incremental Snapshot"]
    return [(note["type"], note["id"], note["additional_data"]) for note in found]


def types(task: DirectTask) -> list[str]:
    return [type_ for type_, _, _ in notes(task)]


def read(task: DirectTask, table: str) -> list[dict[str, Any]]:
    """Rows that snapshots brought, in order."""
    return [value["after"] for topic, _, value in task.events if topic.endswith(f".{table}") and value is not None and value["op"] == "r"]


def await_completed(task: DirectTask, times: int = 1) -> None:
    task.poll_until(lambda: types(task).count("COMPLETED") >= times, what="the notification COMPLETED")
    task.poll_until(lambda: not task.task.incremental.chunk, what="the last window")


KEYS = {
    "a bigint": ("id bigint PRIMARY KEY", ["-5", "0", "9223372036854775807", "7", "8"]),
    "a text": ("id text PRIMARY KEY", ["'b'", "'a''quote'", "E'back\\\\slash'", "''", "'ž'", "E'tab\\t'"]),
    "a uuid": ("id uuid PRIMARY KEY", [f"'{number:08x}-0000-4000-8000-000000000000'" for number in (3, 1, 2, 5, 4)]),
    "a date": ("id date PRIMARY KEY", ["'2020-01-01'", "'0044-03-15 BC'", "'infinity'", "'1999-12-31'"]),
    "a timestamp": ("id timestamptz PRIMARY KEY", ["'2020-01-01 00:00:00.000001+02'", "'-infinity'", "'2020-01-01'", "'1970-01-01'"]),
    "a numeric": ("id numeric PRIMARY KEY", ["1.50", "-2", "100000000000000000000.000001", "3"]),
    "a boolean": ("id boolean PRIMARY KEY", ["true", "false"]),
    "a float": ("id double precision PRIMARY KEY", ["1.5", "'-Infinity'", "1e300", "'NaN'", "0.1"]),
    "an enum": ("id mood PRIMARY KEY", ["'happy'", "'sad'", "'ok'"]),
    "a composite": ("id integer, part text, PRIMARY KEY (part, id)", ["1, 'x'", "2, 'x'", "1, 'y'", "3, 'a'", "2, 'y'"]),
    "three parts": (
        "id integer, b smallint, c uuid, PRIMARY KEY (id, b, c)",
        [f"{i % 2}, {i % 3}, '{i:08x}-0000-4000-8000-000000000000'" for i in range(7)],
    ),
    "a nullable unique index": ("id integer, part text, UNIQUE (id, part)", ["1, 'x'", "1, NULL", "2, NULL", "2, 'y'", "3, 'z'"]),
    "another order of columns": (
        "v text, id integer, part integer, PRIMARY KEY (part, id)",
        ["'v', 1, 2", "'v', 2, 1", "'v', 3, 1", "'v', 1, 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_every_row_is_read_once_whatever_the_key(source: Source, kind: str) -> None:
    columns, rows = KEYS[kind]
    source.connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    source.connection.execute(f"CREATE TABLE t ({columns})")
    for row in rows:
        source.connection.execute(f"INSERT INTO t VALUES ({row})")
    with source.task() as task:
        source.execute("public.t")
        await_completed(task)
        assert len(read(task, "t")) == len(rows)
        assert len({json.dumps(row, sort_keys=True) for row in read(task, "t")}) == len(rows)


@pytest.mark.parametrize("kind", KEYS)
def test_a_restart_after_any_batch_brings_every_row(source: Source, kind: str) -> None:
    """The offset of a batch is where a new task begins; its last key has been through Java's form."""
    columns, rows = KEYS[kind]
    source.connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    source.connection.execute(f"CREATE TABLE t ({columns})")
    for row in rows:
        source.connection.execute(f"INSERT INTO t VALUES ({row})")
    with source.task(tuning=Tuning(batch_rows=1)) as task:
        source.execute("public.t")
        await_completed(task)
        batches = task.batches
    ongoing = [number for number, (_, offset) in enumerate(batches) if "incremental_snapshot_collections" in offset]
    assert ongoing
    number = random.choice(ongoing)
    print(f"restart after batch {number} of {ongoing}")
    before = [value["after"] for events, _ in batches[: number + 1] for topic, _, value in events if topic.endswith(".t")]
    # On a busy machine the first task has lasted for so long that the slot has moved on; nothing has happened in between.
    unchecked = {"internal.log.position.check.enable": "false"}
    with source.task(offset=batches[number][1], tuning=Tuning(batch_rows=1), **unchecked) as task:
        await_completed(task)
        after = read(task, "t")
    assert {json.dumps(row, sort_keys=True) for row in before + after} == {json.dumps(row, sort_keys=True) for row in read_all(batches)}


def read_all(batches: list[tuple[list[tuple[str, Any, Any]], Any]]) -> list[dict[str, Any]]:
    return [value["after"] for events, _ in batches for topic, _, value in events if topic.endswith(".t")]


def test_conditions_and_a_surrogate_key_choose_and_order_rows(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY, seq integer, kind text)")
    source.connection.execute(
        "INSERT INTO t SELECT g, 100 - g, CASE WHEN g % 2 = 0 THEN 'even' ELSE 'odd' END FROM generate_series(1, 9) g"
    )
    with source.task() as task:
        source.execute(
            "public.t",
            surrogate_key="seq",
            additional_conditions=[
                {"data-collection": "public.other", "filter": "false"},
                {"data-collection": "PUBLIC.T", "filter": "kind = 'odd' OR id = 2"},
            ],
        )
        await_completed(task)
        assert [row["id"] for row in read(task, "t")] == [9, 7, 5, 3, 2, 1]
        last = notes(task)[-2]
        assert last[2]["total_rows_scanned"] == "6"


def test_a_table_without_key_is_left_out_and_read_by_a_surrogate_key(source: Source) -> None:
    source.connection.execute("CREATE TABLE bare (a integer, b text); ALTER TABLE bare REPLICA IDENTITY FULL")
    source.connection.execute("INSERT INTO bare SELECT g, 'b' FROM generate_series(1, 5) g")
    with source.task() as task:
        source.execute("public.bare")
        await_completed(task)
        assert notes(task)[1][2]["status"] == "NO_PRIMARY_KEY"
        source.execute("public.bare", id_="by a", surrogate_key="a")
        await_completed(task, 2)
        assert [row["a"] for row in read(task, "bare")] == [1, 2, 3, 4, 5]


def test_what_cannot_be_read_is_told_and_left_out_and_streaming_goes_on(source: Source) -> None:
    source.connection.execute("CREATE TABLE good (id integer PRIMARY KEY); CREATE TABLE empty (id integer PRIMARY KEY)")
    source.connection.execute("CREATE TABLE bad (id integer PRIMARY KEY)")
    source.connection.execute("INSERT INTO good VALUES (1); INSERT INTO bad VALUES (1)")
    with source.task() as task:
        bad = [{"data-collection": "public.bad", "filter": "no_such_column = 1"}]
        source.execute("public.gone", "public.bad", "public.empty", "public.good", additional_conditions=bad)
        await_completed(task)
        scans = [(data["scanned_collection"], data["status"]) for type_, _, data in notes(task) if type_ == "TABLE_SCAN_COMPLETED"]
        assert scans == [
            ("public.gone", "UNKNOWN_SCHEMA"),
            ("public.bad", "SQL_EXCEPTION"),
            ("public.empty", "EMPTY"),
            ("public.good", "SUCCEEDED"),
        ]
        assert read(task, "good") == [{"id": 1}]
        source.connection.execute("INSERT INTO good VALUES (2)")
        task.poll_until(lambda: len(task.of(source.topic("good"))) == 2, what="the streamed row")


def test_notifications_of_a_snapshot_bear_the_signals_id(source: Source) -> None:
    source.connection.execute("CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY)")
    source.connection.execute("INSERT INTO a VALUES (1), (2), (3); INSERT INTO b VALUES (7)")
    with source.task() as task:
        source.execute("public.[ab]", id_="both")
        await_completed(task)
        found = [(type_, {k: v for k, v in data.items() if k != "connector_name"}) for type_, id_, data in notes(task) if id_ == "both"]
        both = "public.a,public.b"
        progress = {"data_collections": both, "current_collection_in_progress": "public.a", "maximum_key": "3"}
        assert found == [
            ("STARTED", {"data_collections": both}),
            ("IN_PROGRESS", {**progress, "last_processed_key": "2"}),
            ("IN_PROGRESS", {**progress, "last_processed_key": "3"}),
            (
                "TABLE_SCAN_COMPLETED",
                {"data_collections": both, "scanned_collection": "public.a", "total_rows_scanned": "3", "status": "SUCCEEDED"},
            ),
            (
                "IN_PROGRESS",
                {
                    "data_collections": "public.b",
                    "current_collection_in_progress": "public.b",
                    "maximum_key": "7",
                    "last_processed_key": "7",
                },
            ),
            (
                "TABLE_SCAN_COMPLETED",
                {"data_collections": "public.b", "scanned_collection": "public.b", "total_rows_scanned": "1", "status": "SUCCEEDED"},
            ),
            ("COMPLETED", {}),
        ]


class AtChunk(SnapshotHooks):
    """Does something when a chunk of a number begins."""

    def __init__(self) -> None:
        self.chunks = 0
        self.then: dict[int, Any] = {}

    def reached(self, phase: str) -> None:
        if phase == "before_low":
            self.chunks += 1
            if self.chunks in self.then:
                self.then[self.chunks]()


def test_pause_resume_stop_and_add_while_it_runs(source: Source) -> None:
    for table in "abcd":
        source.connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY); INSERT INTO {table} SELECT generate_series(1, 6)")
    hooks = AtChunk()
    hooks.then[2] = lambda: source.signal("p", "pause-snapshot")
    with source.task(hooks=hooks) as task:
        incremental = task.task.incremental
        source.execute("public.a", "public.b", "public.c", id_="first")
        task.poll_until(lambda: incremental.is_paused and not incremental.chunk, what="the pause")
        seen = hooks.chunks
        for _ in range(3):
            task.poll()
        assert hooks.chunks == seen, "a chunk was read while the snapshot was paused"
        source.signal("x", "stop-snapshot", data_collections=["public.c", "public.nothing"], type="incremental")
        source.execute("public.d", id_="second")
        task.poll_until(lambda: "public.d" in incremental.collections, what="the other snapshot")
        assert "ABORTED" not in types(task), "a stop of a paused snapshot waits for its resumption"
        source.signal("r", "resume-snapshot")
        await_completed(task)
        assert {table: len(read(task, table)) for table in "abcd"} == {"a": 6, "b": 6, "c": 0, "d": 6}
        assert [type_ for type_ in types(task) if type_ not in ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")] == [
            "STARTED",
            "PAUSED",
            "RESUMED",
            "ABORTED",
            "COMPLETED",
        ]


def test_the_snapshot_bean_shows_rows_an_estimate_and_pauses(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 500); ANALYZE t")
    hooks = AtChunk()
    hooks.then[2] = lambda: source.signal("p", "pause-snapshot")
    with source.task(hooks=hooks, incremental_snapshot_chunk_size="100") as task:
        progress = task.task.incremental.progress
        source.execute("public.t")
        task.poll_until(lambda: progress.group().values["SnapshotPaused"], what="the pause")
        assert progress.estimates == {"public.t": 500}
        source.signal("r", "resume-snapshot")
        await_completed(task)
        values = progress.group().values
        assert (values["SnapshotCompleted"], values["RowsScanned"], values["RemainingTableCount"]) == (True, {"public.t": 500}, 0)


def test_a_stop_without_names_ends_all(source: Source) -> None:
    for table in "ab":
        source.connection.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY); INSERT INTO {table} SELECT generate_series(1, 9)")
    hooks = AtChunk()
    hooks.then[2] = lambda: source.signal("x", "stop-snapshot", type="incremental")
    with source.task(hooks=hooks) as task:
        source.execute("public.[ab]")
        task.poll_until(lambda: "ABORTED" in types(task), what="the stop")
        assert 2 <= len(read(task, "a")) < 9
        assert notes(task)[-1][2]["data_collections"] == "public.b,public.a"
        assert "incremental_snapshot_collections" not in task.offset
        source.execute("public.a", id_="again")
        task.poll_until(lambda: len({row["id"] for row in read(task, "a")}) == 9, what="a new snapshot")


def test_signals_that_are_wrong_change_nothing(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)")
    with source.task() as task:
        insert = "INSERT INTO signal VALUES (%s, %s, %s)"
        for number, (type_, data) in enumerate(
            [
                ("no-such-signal", "{}"),
                ("execute-snapshot", "{not json"),
                ("execute-snapshot", "{}"),
                ("execute-snapshot", '{"data-collections": ["public.t"], "type": "sideways"}'),
                ("execute-snapshot", '{"data-collections": [7]}'),
                ("execute-snapshot", '{"data-collections": ["public.("]}'),
                ("execute-snapshot", '{"data-collections": ["public.t"], "additional-conditions": ["x"]}'),
                ("stop-snapshot", "{}"),
                ("pause-snapshot", None),
                ("resume-snapshot", None),
                ("snapshot-window-close", None),
                ("log", '{"message": "we are at {}"}'),
            ]
        ):
            source.connection.execute(insert, (f"wrong-{number}", type_, data))
        with caplog.at_level("INFO"):
            task.poll_until(lambda: len(task.of(source.topic("signal"))) == 12, what="the signals' rows")
        assert task.of(NOTES)[0][1]["type"] == "SKIPPED"
        assert notes(task) == []
        assert any(line.startswith("we are at {") for line in caplog.messages)
        assert any("'no-such-signal' is not recognized" in line for line in caplog.messages)
        source.execute("public.t")
        await_completed(task)
        assert read(task, "t") == [{"id": 1}]


def test_the_collision_of_six_keys(source: Source) -> None:
    """The example of the DBLog paper: chunk K1 to K6 is read while K1, K3 are changed between the watermarks."""
    source.connection.execute("CREATE TABLE k (id integer PRIMARY KEY, v text)")
    source.connection.execute("INSERT INTO k SELECT g, 'old' FROM generate_series(1, 6) g")

    class Collide(SnapshotHooks):
        def reached(self, phase: str) -> None:
            if phase == "before_low":
                source.connection.execute("UPDATE k SET v = 'before the low watermark' WHERE id = 2")
            elif phase == "before_chunk":
                source.connection.execute("UPDATE k SET v = 'new' WHERE id = 1")
                source.connection.execute("DELETE FROM k WHERE id = 3")
            elif phase == "after_chunk":
                source.connection.execute("INSERT INTO k VALUES (3, 'again')")
                source.connection.execute("UPDATE k SET v = 'newest' WHERE id = 1")

    class Once(Collide):
        done = False

        def reached(self, phase: str) -> None:
            if not self.done:
                super().reached(phase)
            self.done |= phase == "after_high"

    with source.task(hooks=Once(), incremental_snapshot_chunk_size="6") as task:
        source.execute("public.k")
        await_completed(task)
        events = [
            (key["id"], value and value["op"], value and (value["after"] or {}).get("v")) for key, value in task.of(source.topic("k"))
        ]
        assert events == [
            (2, "u", "before the low watermark"),
            (1, "u", "new"),
            (3, "d", None),
            (3, None, None),
            (3, "c", "again"),
            (1, "u", "newest"),
            (2, "r", "before the low watermark"),
            (4, "r", "old"),
            (5, "r", "old"),
            (6, "r", "old"),
        ]
        assert {row["id"]: row for row in fold_events(task.of(source.topic("k"))).values()} == {row["id"]: row for row in source.rows("k")}


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_random_changes_at_random_places(source: Source, strategy: str, seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    source.connection.execute("INSERT INTO t SELECT g, 0 FROM generate_series(1, 60) g")

    class Random(SnapshotHooks):
        def reached(self, phase: str) -> None:
            for _ in range(dice.randrange(4)):
                key, other, v = dice.randrange(1, 70), dice.randrange(1, 70), dice.randrange(1000)
                source.connection.execute(
                    dice.choice(
                        [
                            f"INSERT INTO t VALUES ({key}, {v}) ON CONFLICT (id) DO UPDATE SET v = {v}",
                            f"DELETE FROM t WHERE id = {key}",
                            f"DELETE FROM t WHERE id = {other}; UPDATE t SET id = {other} WHERE id = {key}",
                        ]
                    )
                )

    with source.task(hooks=Random(), incremental_snapshot_chunk_size="7", incremental_snapshot_watermarking_strategy=strategy) as task:
        source.execute("public.t")
        await_completed(task)
        source.connection.execute("INSERT INTO t VALUES (1000, 1)")
        task.poll_until(lambda: {"id": 1000} in [key for key, _ in task.of(source.topic("t"))], what="the last row")
        assert {row["id"]: row for row in fold_events(task.of(source.topic("t"))).values()} == {row["id"]: row for row in source.rows("t")}


def test_a_lost_connection_inside_of_a_chunk_loses_no_row(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    source.connection.execute("INSERT INTO t SELECT generate_series(1, 9)")
    hooks = AtChunk()
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'Debezium%'"
    hooks.then[2] = hooks.then[4] = lambda: source.connection.execute(cut)
    with source.task(hooks=hooks) as task:
        source.execute("public.t")
        await_completed(task)
        assert {row["id"] for row in read(task, "t")} == set(range(1, 10))


def test_a_blocking_snapshot_reads_chosen_rows_and_streaming_goes_on(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v text); CREATE TABLE u (id integer PRIMARY KEY)")
    source.connection.execute("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 5) g; INSERT INTO u VALUES (1)")
    with source.task() as task:
        chosen = [{"data-collection": "public.t", "filter": "SELECT * FROM t WHERE id > 3 ORDER BY id DESC"}]
        source.execute("public.[TU]", type="blocking", additional_conditions=chosen)
        task.poll_until(lambda: len(read(task, "t")) == 2 and len(read(task, "u")) == 1, what="the blocking snapshot")
        assert [row["id"] for row in read(task, "t")] == [5, 4]
        offsets = [offset for _, offset in task.batches if offset.get("snapshot") == "BLOCKING"]
        assert offsets
        source.connection.execute("INSERT INTO t VALUES (6, 'streamed')")
        task.poll_until(lambda: len(task.of(source.topic("t"))) == 3, what="the streamed row")
        assert "snapshot" not in task.offset
        told = [value["type"] for _, value in task.of(NOTES)]
        assert told == ["SKIPPED", "STARTED", *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"] * 2, "COMPLETED"]
    with source.task(offset=offsets[0]) as task:
        task.poll_until(lambda: ({"id": 6}) in [key for key, _ in task.of(source.topic("t"))], what="the streamed row again")
        assert read(task, "t") == [], "a blocking snapshot is not taken again after a restart"


def test_a_blocking_snapshot_that_fails_leaves_streaming_alone(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)")
    with source.task() as task:
        source.execute("public.t", type="blocking", additional_conditions=[{"data-collection": "public.t", "filter": "SELECT nonsense"}])
        task.poll_until(lambda: "ABORTED" in [value["type"] for _, value in task.of(NOTES)], what="the notification ABORTED")
        source.connection.execute("INSERT INTO t VALUES (2)")
        task.poll_until(lambda: len(task.of(source.topic("t"))) == 1, what="the streamed row")


def test_a_blocking_snapshot_that_cannot_begin_leaves_the_session_as_it_was(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    role = f"reader_{source.tag}"
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)")
    source.connection.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'secret'; GRANT SELECT ON signal TO {role}")
    source.connection.execute(f"CREATE PUBLICATION pub_{source.tag} FOR TABLE t, signal")
    user = {"database_user": role, "database_password": "secret", "publication_autocreate_mode": "disabled"}
    try:
        with source.task(snapshot_locking_mode="shared", **user) as task:
            source.execute("public.t", id_="early", type="blocking")
            task.poll_until(lambda: "cannot begin" in caplog.text, what="the refusal")
            source.connection.execute(f"GRANT SELECT ON t TO {role}")
            source.execute("public.t", id_="late", type="blocking")
            task.poll_until(lambda: read(task, "t") == [{"id": 1}], what="the second snapshot")
    finally:
        source.connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_signal_from_code_of_the_process(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)")
    with source.task(signal_poll_interval_ms="10") as task:
        assert channels.send("direct", "execute-snapshot", '{"data-collections": ["public.t"]}', "from code")
        await_completed(task)
        assert read(task, "t") == [{"id": 1}]
    assert not channels.send("direct", "log", "{}")


def test_nothing_is_written_where_nothing_may_be(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 7)")
    with source.task(read_only="true") as task:
        source.execute("public.t")
        await_completed(task)
        assert [row["id"] for row in read(task, "t")] == list(range(1, 8))
    assert source.connection.execute("SELECT count(*) FROM signal").fetchone() == (1,)


def test_chunks_grow_to_the_time_that_they_may_take(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 3000)")
    with source.task(incremental_snapshot_chunk_size="10", incremental_snapshot_chunk_time_ms="5000") as task:
        source.execute("public.t")
        await_completed(task)
        assert sorted(row["id"] for row in read(task, "t")) == list(range(1, 3001))
        # 10, 20, 40 … rows up to 320, the most for chunks that begin with 10
        assert types(task).count("IN_PROGRESS") == 6 + 8


def test_a_chunk_that_the_server_refuses_waits_for_somebody_to_look_at_it(source: Source) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer); CREATE TABLE u (id integer PRIMARY KEY)")
    source.connection.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 6) g; INSERT INTO u VALUES (1)")
    with source.task(tuning=Tuning(chunk_pauses=(0.0, 0.05))) as task:
        # the largest key can be read, the chunk with the fifth row cannot
        condition = [{"data-collection": "public.t", "filter": "id = 6 OR 1 / (5 - v) > -9"}]
        source.execute("public.t", "public.u", additional_conditions=condition)
        task.poll_until(lambda: "PAUSED" in types(task), what="the notification PAUSED")
        paused = next(data for type_, _, data in notes(task) if type_ == "PAUSED")
        assert "division by zero" in paused["error"]
        assert read(task, "u") == [], "the next table waits as well"
        source.connection.execute("INSERT INTO u VALUES (2)")
        task.poll_until(lambda: len(task.of(source.topic("u"))) == 1, what="the streamed row")
        source.connection.execute("UPDATE t SET v = 50 WHERE id = 5")
        source.signal("on", "resume-snapshot")
        await_completed(task)
        assert sorted(row["id"] for row in read(task, "t")) == [1, 2, 3, 4, 5, 6]
        assert len(read(task, "u")) == 2


@pytest.mark.parametrize("skipped", ["d", "c,d", "c,u,d,t"])
@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_an_incremental_snapshot_ends_whatever_operations_are_skipped(source: Source, strategy: str, skipped: str) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 5)")
    settings = {"skipped_operations": skipped, "incremental_snapshot_watermarking_strategy": strategy}
    with source.task(**settings) as task:
        source.execute("public.t")
        await_completed(task)
        assert [row["id"] for row in read(task, "t")] == [1, 2, 3, 4, 5]
        events = [value["op"] for topic, _, value in task.events if value is not None and topic.startswith("pg_")]
        assert not set(events) & set(skipped.split(",")), "nothing that is to be skipped was sent"


def test_a_publication_that_hides_what_watermarks_need_is_named(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    source.connection.execute("CREATE PUBLICATION hides FOR ALL TABLES WITH (publish = 'insert')")
    settings = {"publication_name": "hides", "incremental_snapshot_watermarking_strategy": "insert_delete"}
    with source.task(**settings):
        assert any("'hides' does not publish delete of the signal table" in line for line in caplog.messages)


HOSTILE = [
    "1=1); CREATE TABLE pwned AS SELECT current_user u; SELECT * FROM t WHERE (1=1",
    "1=1)) TO PROGRAM 'touch {file}' --",
    "1=1) TO PROGRAM 'touch {file}' --",
    "1=1) UNION SELECT id, v FROM secret WHERE (1=1",
    "1=1) UNION SELECT id, v FROM secret WHERE CASE WHEN (1=1",
    "true THEN true END AND CASE WHEN true",
    "1=1) INTO TEMPORARY pwned --",
    "1=1 /*",
    "1=1 --",
    "'",
    "nextval('counter') > 0",
    "make_table() > 0",
]


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_condition_is_nothing_but_a_condition(source: Source, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of somebody who may write to the signal table and nothing else, while the connector is a superuser."""
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source.connection.execute("CREATE TABLE secret (id integer PRIMARY KEY, v text); INSERT INTO secret VALUES (77, 'secret')")
    source.connection.execute("CREATE SEQUENCE counter")
    source.connection.execute(
        "CREATE FUNCTION make_table() RETURNS integer LANGUAGE plpgsql AS 'BEGIN CREATE TABLE pwned (i integer); RETURN 1; END'"
    )
    file = tmp_path / "pwned"
    with source.task(table_include_list="public.t,public.signal") as task:
        for number, text in enumerate(HOSTILE):
            text = text.format(file=file)
            if kind == "blocking":
                text = f"SELECT * FROM t WHERE ({text})"
            source.execute("public.t", id_=f"h{number}", type=kind, additional_conditions=[{"data-collection": "public.t", "filter": text}])
            source.connection.execute("INSERT INTO t VALUES (%s, 'later')", (1000 + number,))
            task.poll_until(
                lambda n=1000 + number: {"id": n} in [key for key, _ in task.of(source.topic("t"))], what=f"the row after {text}"
            )  # type: ignore[misc]
            if kind == "incremental":
                await_completed(task, number + 1)
        assert source.connection.execute("SELECT to_regclass('public.pwned'), (SELECT is_called FROM counter)").fetchone() == (None, False)
        assert not file.exists()
        if kind == "incremental":
            assert not [row for row in read(task, "t") if row["id"] == 77]
            statuses = [data["status"] for type_, _, data in notes(task) if type_ == "TABLE_SCAN_COMPLETED"]
            assert statuses == ["SQL_EXCEPTION"] * len(HOSTILE)
            assert any("leaves out public.t; streaming goes on" in line for line in caplog.messages)


def test_conditions_of_signals_can_be_switched_off(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.connection.execute("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    with source.task(signal_conditions_enabled="false") as task:
        for kind in ("incremental", "blocking"):
            source.execute("public.t", id_=kind, type=kind, additional_conditions=[{"data-collection": "public.t", "filter": "id = 1"}])
        source.execute("public.t", id_="all")
        await_completed(task)
        assert len(read(task, "t")) == 2
        assert sum("signal.conditions.enabled=false" in line for line in caplog.messages) == 2
