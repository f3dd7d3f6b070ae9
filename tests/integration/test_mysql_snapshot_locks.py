"""Which locks a snapshot of MySQL takes, and what it does where they are refused."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.errors import FatalTaskError
from connectors.mysql.doctor import diagnose
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMySqlTask, mysql_source
from tests.waiting import wait_until

pytestmark = pytest.mark.services

#: What every connector needs.
RIGHTS = "SELECT, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"


@dataclass
class Place:
    """A database with two tables, and users of any rights."""

    mysql: MySqlAddress
    kafka: Kafka
    database: str
    cursor: Any
    users: list[str]

    @property
    def version(self) -> tuple[int, ...]:
        """Such as (9, 7, 4)."""
        self.cursor.execute("SELECT VERSION()")
        return tuple(map(int, self.cursor.fetchone()[0].split("-")[0].split(".")))

    def task(self, rights: str, **more: str) -> DirectMySqlTask:
        """The task of a new user with these rights."""
        return DirectMySqlTask(self.config(rights, **more))

    def config(self, rights: str, **more: str) -> dict[str, str]:
        user = f"u_{uuid.uuid4().hex[:8]}"
        self.cursor.execute(f"CREATE USER {user} IDENTIFIED BY 'secret'")
        self.users.append(user)
        self.cursor.execute(f"GRANT {rights} ON *.* TO {user}")
        config = mysql_source(self.mysql, self.kafka.bootstrap, self.database, **more)
        return {**config, "database.user": user, "database.password": "secret"}


@pytest.fixture
def place(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Place]:
    name = f"locks_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in (
            f"CREATE DATABASE {name}",
            f"USE {name}",
            "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE b (id INT PRIMARY KEY, v INT)",
            "INSERT INTO a VALUES (1, 0)",
            "INSERT INTO b VALUES (1, 0)",
        ):
            cursor.execute(statement)
        users: list[str] = []
        yield Place(mysql, kafka, name, cursor, users)
        cursor.execute(f"DROP DATABASE {name}")
        for user in users:
            cursor.execute(f"DROP USER {user}")


@contextmanager
def general_log(place: Place) -> Iterator[list[str]]:
    """What the place's users ask of the server, by its own log, which has statements that it does not understand only as they came."""
    found: list[str] = []
    place.cursor.execute("SELECT @@GLOBAL.log_output, @@GLOBAL.log_raw, @@GLOBAL.general_log")
    before = place.cursor.fetchone()
    settings = "SET GLOBAL log_output = %s, GLOBAL log_raw = %s, GLOBAL general_log = %s"
    place.cursor.execute(settings, ("TABLE", 1, 1))
    try:
        yield found
        place.cursor.execute("SELECT user_host, CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = 'Query'")
        found += [text for who, text in place.cursor.fetchall() if who.partition("[")[0] in place.users]
    finally:
        place.cursor.execute(settings, before)


def await_streaming(task: DirectMySqlTask) -> None:
    task.poll_until(task.is_streaming, what="the stream")


def order(statements: list[str], *beginnings: str) -> list[str]:
    """Those of the beginnings that were asked, in the order in which they were."""
    return [beginning for statement in statements for beginning in beginnings if statement.startswith(beginning)]


SHOWN = ("FLUSH TABLES WITH", "FLUSH TABLES `", "LOCK TABLES FOR", "LOCK TABLES `", "SHOW CREATE TABLE", "UNLOCK", "SELECT `id`")

CASES = {
    "minimal": ("minimal", "RELOAD", ["FLUSH TABLES WITH", *["SHOW CREATE TABLE"] * 2, "UNLOCK", *["SELECT `id`"] * 2]),
    "extended": ("extended", "RELOAD", ["FLUSH TABLES WITH", *["SHOW CREATE TABLE"] * 2, *["SELECT `id`"] * 2, "UNLOCK"]),
    "none": ("none", "RELOAD", [*["SHOW CREATE TABLE"] * 2, *["SELECT `id`"] * 2]),
    "a right to flush suffices": (
        "minimal",
        "FLUSH_TABLES",
        ["FLUSH TABLES WITH", *["SHOW CREATE TABLE"] * 2, "UNLOCK", *["SELECT `id`"] * 2],
    ),
    # the reference has no such way: its documentation promises it
    "only tables may be locked": (
        "minimal",
        "LOCK TABLES",
        ["FLUSH TABLES WITH", "FLUSH TABLES `", "LOCK TABLES `", *["SHOW CREATE TABLE"] * 2, "UNLOCK", *["SELECT `id`"] * 2],
    ),
    # no server of Percona: it does not know the statement
    "minimal_percona": (
        "minimal_percona",
        "RELOAD, LOCK TABLES",
        ["LOCK TABLES FOR", "FLUSH TABLES `", *["SHOW CREATE TABLE"] * 2, "UNLOCK", *["SELECT `id`"] * 2],
    ),
    # without transactions only the lock holds the rows
    "tables of another engine": (
        "minimal",
        "LOCK TABLES",
        ["FLUSH TABLES WITH", "FLUSH TABLES `", "LOCK TABLES `", *["SHOW CREATE TABLE"] * 2, *["SELECT `id`"] * 2, "UNLOCK"],
    ),
    "tables are locked until the end": (
        "extended",
        "LOCK TABLES",
        ["FLUSH TABLES WITH", "FLUSH TABLES `", "LOCK TABLES `", *["SHOW CREATE TABLE"] * 2, *["SELECT `id`"] * 2, "UNLOCK"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_locks_are_taken_and_let_go_in_the_order_of_the_mode(place: Place, case: str) -> None:
    mode, rights, wanted = CASES[case]
    if rights == "FLUSH_TABLES" and place.version < (8, 0, 23):
        pytest.skip("the server has no such right")
    if case == "tables of another engine":
        place.cursor.execute("ALTER TABLE b ENGINE = MyISAM")
    more = {"schema_history_internal_store_only_captured_tables_ddl": "true", "snapshot_locking_fallback": "lock"}
    with general_log(place) as statements, place.task(f"{RIGHTS}, {rights}", snapshot_locking_mode=mode, **more) as task:
        await_streaming(task)
        assert [value["after"]["id"] for topic, _, value in task.events if topic.endswith((".a", ".b"))] == [1, 1]
    assert order(statements, *SHOWN) == wanted


def test_a_percona_mode_without_table_locks_says_what_is_missing(place: Place) -> None:
    mode = "minimal_percona_no_table_locks"
    with place.task(f"{RIGHTS}, RELOAD", snapshot_locking_mode=mode) as task, pytest.raises(FatalTaskError, match="not allowed in"):
        await_streaming(task)


@pytest.mark.parametrize(
    ("rights", "lacks"),
    [
        ("LOCK TABLES", "User does not have the RELOAD privilege .* snapshot.locking.fallback=lock"),
        ("SELECT", "User does not have the 'LOCK TABLES' privilege"),
    ],
)
def test_a_start_without_locks_says_what_the_doctor_says_and_the_statement_is_enough(place: Place, rights: str, lacks: str) -> None:
    config = place.config(f"{RIGHTS}, {rights}")
    (finding,) = diagnose(config, "mysql", is_running=False).findings
    with DirectMySqlTask(config) as task, pytest.raises(FatalTaskError, match=lacks) as refused:
        await_streaming(task)
    assert finding.check == "mysql.grants" and finding.remedy in str(refused.value)
    for statement in finding.statements:
        place.cursor.execute(statement)
    assert diagnose(config, "mysql", is_running=False).findings == []
    with DirectMySqlTask(config) as mended:
        await_streaming(mended)


def test_a_lock_of_tables_alone_is_enough_with_the_fallback(place: Place) -> None:
    """What starts then is among the cases above."""
    config = place.config(f"{RIGHTS}, LOCK TABLES", snapshot_locking_fallback="lock")
    assert diagnose(config, "mysql", is_running=False).findings == []


@pytest.mark.parametrize("rights", ["RELOAD", "LOCK TABLES"])
def test_no_change_is_lost_or_torn_between_snapshot_and_stream(place: Place, rights: str) -> None:
    """Every transaction changes both tables alike; whoever applies the topics in order sees them alike at the end of the snapshot."""
    place.cursor.execute("INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, 0 FROM n")
    place.cursor.execute("INSERT INTO b SELECT * FROM a WHERE id > 1")
    enough = threading.Event()

    def write() -> None:
        with place.mysql.connect() as connection, connection.cursor() as cursor:
            connection.autocommit(False)
            cursor.execute(f"USE {place.database}")
            version = 0
            while not enough.is_set():
                version += 1
                for table in "ab":
                    cursor.execute(f"UPDATE {table} SET v = %s WHERE id = %s", (version, version % 900 + 1))
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with place.task(f"{RIGHTS}, {rights}", snapshot_locking_fallback="lock") as task:
            await_streaming(task)
            snapshot = {topic[-1]: {} for topic, _, _ in task.events if topic.endswith((".a", ".b"))}
            for topic, key, value in task.events:
                if topic.endswith((".a", ".b")):
                    snapshot[topic[-1]][key["id"]] = value["after"]["v"]
            enough.set()
            writer.join()
            place.cursor.execute("INSERT INTO a VALUES (5000, 0)")
            task.poll_until(
                lambda: {"id": 5000} in [key for key, _ in task.of(f"{place.database}.{place.database}.a")], what="the last row"
            )
            place.cursor.execute("DELETE FROM a WHERE id = 5000")
            for table in "ab":
                rows: dict[int, int] = {}
                for key, value in task.of(f"{place.database}.{place.database}.{table}"):
                    if key["id"] < 5000:
                        rows[key["id"]] = value["after"]["v"]
                place.cursor.execute(f"SELECT id, v FROM {table}")
                assert rows == dict(place.cursor.fetchall())
    finally:
        enough.set()
        writer.join()
    assert snapshot["a"] == snapshot["b"], "the snapshot is of one moment"


@pytest.mark.parametrize(("by_rows", "wanted"), [("ascending", "bca"), ("descending", "acb"), ("disabled", "abc")])
def test_tables_are_read_in_the_order_of_their_sizes(place: Place, by_rows: str, wanted: str) -> None:
    place.cursor.execute("CREATE TABLE c (id INT PRIMARY KEY, v INT)")
    for table, rows in (("a", 300), ("c", 40)):
        place.cursor.executemany(f"INSERT INTO {table} VALUES (%s, 0)", [(number,) for number in range(2, rows)])
    place.cursor.execute("ANALYZE TABLE a, b, c")
    with place.task(f"{RIGHTS}, RELOAD", snapshot_tables_order_by_row_count=by_rows) as task:
        await_streaming(task)
        tables = [topic.rpartition(".")[2] for topic, _, value in task.events if isinstance(value, dict) and value.get("op") == "r"]
    assert "".join(dict.fromkeys(tables)) == wanted


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_locked_tables_take_changes_again_as_soon_as_a_transaction_keeps_the_rows_seen(place: Place, engine: str) -> None:
    """The reference lets nobody write until the last row was read. Here so does only a table without transactions; either way a row written
    meanwhile is no part of the snapshot and comes as a change."""
    place.cursor.execute(f"ALTER TABLE b ENGINE = {engine}")
    topic = f"{place.database}.{place.database}.b"
    written = threading.Event()

    def write() -> None:
        with place.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {place.database}.b VALUES (2, 0)")
            written.set()

    writer = threading.Thread(target=write, daemon=True)
    with place.task(f"{RIGHTS}, LOCK TABLES", snapshot_locking_fallback="lock") as task:
        task.poll_until(lambda: task.events, what="the structures")
        assert not task.of(topic), "a row was read with the structures"
        writer.start()
        if engine == "InnoDB":
            assert written.wait(60), "the table is still locked"
        else:
            wait_until(lambda: is_waiting_for_a_lock(place), 60, "the writer behind the lock")
        assert written.is_set() is (engine == "InnoDB")
        task.poll_until(lambda: len(task.of(topic)) == 2, what="the new row")
    writer.join()
    assert [(value["op"], value["after"]["id"]) for _, value in task.of(topic)] == [("r", 1), ("c", 2)]


def is_waiting_for_a_lock(place: Place) -> bool:
    place.cursor.execute(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%%lock' AND info LIKE %s",
        (f"INSERT INTO {place.database}.b%",),
    )
    return bool(place.cursor.fetchone()[0])


@pytest.mark.parametrize("rights", ["RELOAD", "LOCK TABLES"])
def test_only_under_table_locks_the_structures_of_other_tables_come_behind_the_rows(place: Place, rights: str) -> None:
    captured = f"{place.database}.a"
    with place.task(f"{RIGHTS}, {rights}", table_include_list=captured, snapshot_locking_fallback="lock") as task:
        await_streaming(task)
        told = [_what(event) for event in task.events if place.database in str(event)]
    mine = [what for what in told if what in ("rows", "a", "b")]
    assert mine == (["a", "b", "rows"] if rights == "RELOAD" else ["a", "rows", "b"])


def _what(event: tuple[str, Any, Any]) -> str:
    """`rows` of a row, the table of a CREATE TABLE, else nothing."""
    topic, _, value = event
    if topic.endswith(".a"):
        return "rows"
    ddl = (value or {}).get("ddl") or ""
    return value["source"]["table"] if ddl.startswith("CREATE TABLE") else ""
