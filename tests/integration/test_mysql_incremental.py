"""Incremental and blocking snapshots of MySQL tables on a real server: keys, conditions, signals, restarts, structures."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.signal import channels
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMySqlTask, mysql_source
from tests.postgres_task import fold_events

pytestmark = pytest.mark.services

NOTES = "notes"


@dataclass
class Source:
    """A database with a signal table, and tasks that read it."""

    mysql: MySqlAddress
    kafka: Kafka
    database: str
    cursor: Any

    def __post_init__(self) -> None:
        self.config = mysql_source(
            self.mysql,
            self.kafka.bootstrap,
            self.database,
            snapshot_mode="no_data",
            skipped_operations="none",
            signal_data_collection=f"{self.database}.signals",
            incremental_snapshot_chunk_size="2",
            notification_enabled_channels="sink",
            notification_sink_topic_name=NOTES,
        )

    def task(self, offset: Any = None, hooks: SnapshotHooks | None = None, **more: str) -> DirectMySqlTask:
        config = {**self.config, **{name.replace("_", "."): value for name, value in more.items()}}
        task = DirectMySqlTask(config, offset, hooks)
        try:
            task.poll_until(task.is_streaming, what="the stream")
        except BaseException:
            task.close()
            raise
        return task

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def signal(self, id_: str, type_: str, **data: object) -> None:
        text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
        self.cursor.execute("INSERT INTO signals VALUES (%s, %s, %s)", (id_, type_, text))

    def execute(self, *tables: str, id_: str = "s", **more: object) -> None:
        self.signal(id_, "execute-snapshot", data_collections=[f"{self.database}.{table}" for table in tables], **more)

    def topic(self, table: str) -> str:
        return f"{self.database}.{self.database}.{table}"

    def rows(self, table: str) -> list[dict[str, Any]]:
        self.cursor.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in self.cursor.description]
        return [dict(zip(names, row, strict=True)) for row in self.cursor.fetchall()]


@pytest.fixture
def source(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Source]:
    name = f"incremental_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {name}")
        cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        yield Source(mysql, kafka, name, cursor)
        cursor.execute(f"DROP DATABASE {name}")


def notes(task: DirectMySqlTask, kind: str = "Incremental Snapshot") -> list[tuple[str, dict[str, str]]]:
    """Type and data of the notifications about snapshots."""
    return [(value["type"], value["additional_data"]) for _, value in task.of(NOTES) if value["aggregate_type"] == kind]


def types(task: DirectMySqlTask) -> list[str]:
    return [type_ for type_, _ in notes(task)]


def read(task: DirectMySqlTask, table: str) -> list[dict[str, Any]]:
    """Rows that snapshots brought, in order."""
    return [value["after"] for topic, _, value in task.events if topic.endswith(f".{table}") and value is not None and value["op"] == "r"]


def await_completed(task: DirectMySqlTask, times: int = 1) -> None:
    task.poll_until(lambda: types(task).count("COMPLETED") >= times, what="the notification COMPLETED")
    task.poll_until(lambda: not task.task.incremental.chunk, what="the last window")


#: Columns and rows; in each table `id` tells rows apart in whatever form it is shown.
KEYS = {
    "an int": ("id INT PRIMARY KEY", ["-5", "0", "2147483647", "7", "8"]),
    # the reference delivers none of the larger half
    "an unsigned bigint": (
        "id BIGINT UNSIGNED PRIMARY KEY",
        ["0", "9223372036854775807", "9223372036854775808", "18446744073709551615", "5"],
    ),
    "a decimal": ("id DECIMAL(38,6) PRIMARY KEY", ["1.5", "-2", "12345678901234567890123456789012.000001", "3"]),
    "a float": ("id FLOAT PRIMARY KEY", ["0.1", "16777216", "1234567.9", "-3.3333333e-20", "2.5"]),
    "a double": ("id DOUBLE PRIMARY KEY", ["0.1", "1e300", "-1.7976931348623157e308", "0.30000000000000004", "0.3"]),
    "a bit": ("id BIT(33) PRIMARY KEY", ["b'1'", "b'0'", "b'100000000000000000000000000000000'", "b'11'"]),
    "a text": ("id VARCHAR(20) PRIMARY KEY", ["'b'", "'a''quote'", "'back\\\\\\\\slash'", "''", "'ž'", "'B2'", "'🐟'", "'%_'"]),
    "a text of latin1": ("id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_general_cs PRIMARY KEY", ["'b'", "'é'", "'B'", "'É'", "''"]),
    "bytes": ("id VARBINARY(20) PRIMARY KEY", ["x'00'", "x''", "x'ff27'", "x'275c'", "x'80'"]),
    "fixed bytes": ("id BINARY(4) PRIMARY KEY", ["x'00'", "x'ff27'", "x'275c'", "x'80'"]),
    "an enum": ("id ENUM('z','a','m, or','b') PRIMARY KEY", ["'z'", "'a'", "'m, or'", "'b'"]),
    "a set": ("id SET('z','a','m') PRIMARY KEY", ["'z'", "'a,m'", "''", "'z,a,m'", "'m'"]),
    "a date": ("id DATE PRIMARY KEY", ["'2020-01-01'", "'1000-01-01'", "'9999-12-31'", "'1999-12-31'"]),
    "a timestamp": ("id TIMESTAMP(6) PRIMARY KEY", ["'2020-01-01 00:00:00.000001'", "'1970-01-02'", "'2037-12-31'", "'2020-01-01'"]),
    "a time": ("id TIME(3) PRIMARY KEY", ["'-838:59:59'", "'00:00:00.001'", "'838:59:59'", "'00:00:00'"]),
    "a year": ("id YEAR PRIMARY KEY", ["2020", "1999", "2155", "1901"]),
    "a composite": ("id INT, part VARCHAR(9), PRIMARY KEY (part, id)", ["1, 'x'", "2, 'x'", "1, 'y'", "3, 'a'", "2, 'y'"]),
    "a unique key in place of one": ("id INT NOT NULL, v INT, UNIQUE KEY (id)", ["1, 1", "2, 2", "3, 3", "4, 4", "5, 5"]),
    "a name in backticks": ("id INT, `a ``key``` INT, PRIMARY KEY (`a ``key```)", ["1, 5", "2, 4", "3, 3", "4, 2", "5, 1"]),
}


def fill(source: Source, kind: str) -> int:
    columns, rows = KEYS[kind]
    source.run(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {', '.join(f'({row})' for row in rows)}")
    return len(rows)


@pytest.mark.parametrize("kind", KEYS)
def test_every_row_is_read_once_whatever_the_key(source: Source, kind: str) -> None:
    count = fill(source, kind)
    with source.task() as task:
        source.execute("t")
        await_completed(task)
        rows = [json.dumps(row) for row in read(task, "t")]
    assert len(rows) == count
    assert len(set(rows)) == count


@pytest.mark.parametrize(
    "kind",
    [
        "an unsigned bigint",
        "a composite",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("a text", "bytes", "a date", "a float")),
    ],
)
def test_a_restart_after_any_batch_brings_every_row(source: Source, kind: str) -> None:
    count = fill(source, kind)
    with source.task() as task:
        source.execute("t")
        await_completed(task)
        batches = list(task.batches)
    halves = [i for i, (_, offset) in enumerate(batches) if "incremental_snapshot_collections" in offset]
    assert len(halves) >= 2
    for i in halves:
        seen = [json.dumps(value["after"]) for events, _ in batches[: i + 1] for topic, _, value in events if topic == source.topic("t")]
        with source.task(batches[i][1]) as task:
            await_completed(task)
            again = [json.dumps(row) for row in read(task, "t")]
        assert len(set(again)) == len(again)
        assert len({*seen, *again}) == count


def test_conditions_and_a_surrogate_key_choose_and_order_rows(source: Source) -> None:
    """The reference delivers nothing by a surrogate key."""
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY, other BIGINT UNSIGNED, kind VARCHAR(9))",
        "INSERT INTO t VALUES (1, 18446744073709551615, 'a'), (2, 4, 'a'), (3, 9, 'b'), (4, NULL, 'a'), (5, 7, 'a'), (6, NULL, 'a')",
    )
    with source.task(incremental_snapshot_chunk_size="1") as task:
        source.execute(
            "t",
            surrogate_key="other",
            additional_conditions=[{"data-collection": f"{source.database}.T", "filter": "kind = 'a' OR kind IS NULL"}],
        )
        await_completed(task)
        ids = [row["id"] for row in read(task, "t")]
    assert ids[0] in (4, 6), "NULL sorts first"
    # rows that share a surrogate key share a place: of the two without one, one chunk of one row shows the first
    assert ids[-3:] == [2, 5, 1]


def test_a_table_without_key_is_left_out_and_read_by_a_surrogate_key(source: Source) -> None:
    source.run("CREATE TABLE t (id INT, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    with source.task() as task:
        source.execute("t")
        await_completed(task)
        assert [data["status"] for type_, data in notes(task) if type_ == "TABLE_SCAN_COMPLETED"] == ["NO_PRIMARY_KEY"]
        source.execute("t", id_="s2", surrogate_key="id")
        await_completed(task, times=2)
        assert [row["id"] for row in read(task, "t")] == [1, 2, 3]


def test_patterns_choose_several_tables_and_stop_takes_one_out(source: Source) -> None:
    for name in ("a1", "a2", "a3", "b"):
        source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1),(2),(3),(4),(5)")
    with source.task() as task:
        source.signal("p", "pause-snapshot")
        source.execute("a.")
        source.signal("x", "stop-snapshot", data_collections=[f"{source.database}.a2"], type="incremental")
        await_completed(task)
        assert {name for name in ("a1", "a2", "a3", "b") if read(task, name)} == {"a1", "a3"}
        assert "ABORTED" in types(task)


def test_pause_holds_chunks_until_resume(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3),(4),(5),(6),(7),(8)")
    with source.task() as task:
        source.execute("t")
        source.signal("p", "pause-snapshot")
        task.poll_until(lambda: "PAUSED" in types(task), what="the pause")
        source.run("INSERT INTO t VALUES (100)")
        task.poll_until(lambda: 100 in [key["id"] for key, _ in task.of(source.topic("t"))], what="the stream")
        held = len(read(task, "t"))
        assert held < 8
        progress = task.task.incremental.progress
        assert progress.group().values["SnapshotPaused"] is True
        assert progress.estimates.keys() == {f"{source.database}.t"}
        source.signal("r", "resume-snapshot")
        await_completed(task)
        assert {row["id"] for row in read(task, "t")} >= {1, 2, 3, 4, 5, 6, 7, 8}


def test_a_table_that_another_session_locks_waits_and_streaming_goes_on(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3)")
    with source.mysql.connect() as other, other.cursor() as locker, source.task() as task:
        locker.execute(f"LOCK TABLES {source.database}.t WRITE")
        source.execute("t")
        source.run("INSERT INTO u VALUES (1)")
        task.poll_until(lambda: task.of(source.topic("u")), what="the stream")
        assert not read(task, "t")
        locker.execute("UNLOCK TABLES")
        await_completed(task)
        assert [row["id"] for row in read(task, "t")] == [1, 2, 3]


def test_a_locked_signal_table_lets_the_chunk_wait_and_streaming_goes_on(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3)")
    with source.mysql.connect() as other, other.cursor() as locker:

        class Lock(SnapshotHooks):
            done = False

            def reached(self, phase: str) -> None:
                if phase == "before_low" and not self.done:
                    self.done = True
                    locker.execute(f"LOCK TABLES {source.database}.signals READ")

        with source.task(hooks=Lock()) as task:
            source.execute("t")
            task.poll_until(lambda: "A chunk waits: the signal table" in caplog.text, what="the lock")
            source.run("INSERT INTO u VALUES (1)")
            task.poll_until(lambda: task.of(source.topic("u")), what="the stream")
            assert not read(task, "t")
            locker.execute("UNLOCK TABLES")
            await_completed(task)
            assert [row["id"] for row in read(task, "t")] == [1, 2, 3]
            assert "Trying again in" not in caplog.text


def test_a_session_that_is_killed_loses_no_row(source: Source) -> None:
    user = f"killed_{uuid.uuid4().hex[:8]}"
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3),(4),(5),(6),(7)")
    source.run(f"CREATE USER {user} IDENTIFIED BY 'p'", f"GRANT ALL ON *.* TO {user}")

    class Kill(SnapshotHooks):
        done = 0

        def reached(self, phase: str) -> None:
            if phase == "before_chunk":
                self.done += 1
                if self.done == 2:
                    source.run(f"SELECT id FROM information_schema.processlist WHERE user = '{user}' AND command = 'Sleep'")
                    [(session,)] = source.cursor.fetchall()
                    source.run(f"KILL {session}")

    with source.task(hooks=Kill(), retriable_restart_connector_wait_ms="1", database_user=user, database_password="p") as task:
        source.execute("t")
        await_completed(task)
        assert sorted({row["id"] for row in read(task, "t")}) == [1, 2, 3, 4, 5, 6, 7]
    source.run(f"DROP USER {user}")


def test_a_blocking_snapshot_reads_chosen_rows_and_streaming_goes_on(source: Source) -> None:
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,2),(3,3)", "CREATE TABLE u (id INT PRIMARY KEY)"
    )
    source.run("INSERT INTO u VALUES (7)")
    with source.task() as task:
        source.signal(
            "b",
            "execute-snapshot",
            type="BLOCKING",
            data_collections=[f"{source.database}.(t|u)"],
            additional_conditions=[
                {"data-collection": f"{source.database}.t", "filter": f"SELECT * FROM {source.database}.t WHERE id < 3"}
            ],
        )
        task.poll_until(lambda: read(task, "u"), what="the blocking snapshot")
        source.run("INSERT INTO t VALUES (4, 4)")
        task.poll_until(lambda: {"id": 4} in [key for key, _ in task.of(source.topic("t"))], what="the stream")
        assert [row["id"] for row in read(task, "t")] == [1, 2]
        told = [type_ for type_, _ in notes(task, "Initial Snapshot")]
    # the first start told of its snapshot of structures before
    assert told[-6:] == ["STARTED", *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"] * 2, "COMPLETED"]
    assert "snapshot" not in (task.offset or {})


def test_a_blocking_snapshot_that_fails_leaves_streaming_alone(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with source.task() as task:
        wrong = [{"data-collection": f"{source.database}.t", "filter": "SELECT nothing FROM nowhere"}]
        source.signal("b", "execute-snapshot", type="BLOCKING", data_collections=[f"{source.database}.t"], additional_conditions=wrong)
        task.poll_until(lambda: "ABORTED" in [type_ for type_, _ in notes(task, "Initial Snapshot")], what="the abort")
        source.run("INSERT INTO t VALUES (2)")
        task.poll_until(lambda: {"id": 2} in [key for key, _ in task.of(source.topic("t"))], what="the stream")


def test_a_blocking_snapshot_waits_for_a_structure_that_the_stream_has_not_come_to(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)", "CREATE TABLE u (id INT PRIMARY KEY)")
    with source.task(signal_enabled_channels="in-process,source", signal_poll_interval_ms="100") as task:
        source.run("INSERT INTO u VALUES (1)", "ALTER TABLE t DROP COLUMN v, ADD COLUMN w VARCHAR(9) DEFAULT 'new' FIRST")
        data = {"type": "BLOCKING", "data-collections": [f"{source.database}.t"]}
        assert channels.send("direct", "execute-snapshot", json.dumps(data))
        task.poll_until(lambda: read(task, "t"), what="the blocking snapshot")
        assert read(task, "t") == [{"w": "new", "id": 1}]


def test_a_signal_gives_a_table_another_structure(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    with source.task() as task:
        source.run("INSERT INTO t VALUES (1, 1)")
        task.poll_until(lambda: task.of(source.topic("t")), what="the row")
        history = source.kafka.read(source.config["schema.history.internal.kafka.topic"])
        changes = [change for message in history for change in json.loads(message.value() or b"{}").get("tableChanges", ())]
        change = next(change for change in changes if change["id"].endswith('"t"') and change["type"] == "CREATE")
        change["table"]["columns"][1]["name"] = "renamed"
        source.signal("c", "schema-changes", database=source.database, schema="", changes=[change])
        source.run("INSERT INTO t VALUES (2, 2)")
        task.poll_until(lambda: len(task.of(source.topic("t"))) == 2, what="the second row")
        offset = task.offset
        assert [value["after"] for _, value in task.of(source.topic("t"))] == [{"id": 1, "v": 1}, {"id": 2, "renamed": 2}]
        assert task.of(source.database)[-1][1]["ddl"] is None
    source.run("INSERT INTO t VALUES (3, 3)")
    with source.task(offset) as task:
        task.poll_until(lambda: task.of(source.topic("t")), what="the third row")
        assert [value["after"] for _, value in task.of(source.topic("t"))] == [{"id": 3, "renamed": 3}], "the history keeps it"


def test_nothing_is_written_where_nothing_may_be(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3),(4),(5)")
    with source.task(read_only="true", signal_enabled_channels="in-process") as task:
        source.cursor.execute("SELECT @@gtid_executed")
        before = source.cursor.fetchall()
        assert channels.send("direct", "execute-snapshot", json.dumps({"data-collections": [f"{source.database}.t"]}))
        await_completed(task)
        source.cursor.execute("SELECT @@gtid_executed")
        assert source.cursor.fetchall() == before
        assert [row["id"] for row in read(task, "t")] == [1, 2, 3, 4, 5]


def test_events_of_a_transaction_beside_a_chunk_converge(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES " + ",".join(f"({i},0)" for i in range(60)))
    with source.mysql.connect() as other, other.cursor() as writer, source.task(provide_transaction_metadata="true") as task:
        other.autocommit(False)
        writer.execute(f"USE {source.database}")
        source.execute("t")
        for round_ in range(20):
            writer.execute("UPDATE t SET v = v + 1 WHERE id %% 7 = %s", (round_ % 7,))
            writer.execute("DELETE FROM t WHERE id = %s", (round_ * 2,))
            writer.execute("INSERT INTO t VALUES (%s, 1)", (100 + round_,))
            other.commit()
            task.poll()
        await_completed(task)
        source.run("INSERT INTO t VALUES (1000, 0)")
        task.poll_until(lambda: {"id": 1000} in [key for key, _ in task.of(source.topic("t"))], what="the stream")
        assert sorted(fold_events(task.of(source.topic("t"))).values(), key=lambda row: row["id"]) == source.rows("t ORDER BY id")


HOSTILE = [
    "1=1); DROP TABLE t; SELECT 1 WHERE (1=1",
    "1=1) INTO OUTFILE '{file}' #",
    "1=1) INTO OUTFILE '{file}' -- ",
    "1=1) UNION SELECT 1, 'x', 1 INTO OUTFILE '{file}' FROM t WHERE (1=1",
    "1=1) UNION SELECT id, v, id FROM secret WHERE (1=1",
    "1=1 THEN 1 END AND CASE WHEN 1=1",
    "1=1 /*",
    "1=1 #",
    "'",
]


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_condition_is_nothing_but_a_condition(source: Source, kind: str, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(10))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source.run("CREATE TABLE secret (id INTEGER PRIMARY KEY, v VARCHAR(10))", "INSERT INTO secret VALUES (77, 's')")
    source.cursor.execute("SELECT @@secure_file_priv")
    folder = Path(source.cursor.fetchone()[0] or tmp_path)
    file = folder / f"pwned_{uuid.uuid4().hex}"
    with source.task() as task:
        for number, text in enumerate(HOSTILE):
            text = text.format(file=file)
            if kind == "blocking":
                text = f"SELECT * FROM t WHERE ({text})" if "INTO" not in text else f"SELECT id, v FROM t WHERE ({text})"
            condition = [{"data-collection": f"{source.database}.t", "filter": text}]
            source.execute("t", id_=f"h{number}", type=kind, additional_conditions=condition)
            source.run(f"INSERT INTO t VALUES ({1000 + number}, 'later')")
            task.poll_until(
                lambda n=1000 + number: {"id": n} in [key for key, _ in task.of(source.topic("t"))], what=f"the row after {text}"
            )  # type: ignore[misc]
        assert not file.exists()
        assert not [row for row in read(task, "t") if row["id"] == 77]
        assert len(source.rows("t")) == 2 + len(HOSTILE)
        if kind == "incremental":
            task.poll_until(lambda: types(task).count("COMPLETED") == len(HOSTILE), what="the last notification")
            assert [data["status"] for type_, data in notes(task) if type_ == "TABLE_SCAN_COMPLETED"] == ["SQL_EXCEPTION"] * len(HOSTILE)
