"""An initial snapshot of MySQL and MariaDB that is interrupted goes on where it was, and no row goes back in time."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.batches import Tuning
from connectors.engine.snapshot.initial.progress import FIELD, SnapshotProgress
from connectors.mysql.position.offset import MySqlOffset
from tests.fix_kafka import Kafka
from tests.integration.test_postgres_snapshot_resume import goes_back_in_time
from tests.mysql_task import DirectMariaDbTask, DirectMySqlTask, mysql_source
from tests.postgres_task import fold_events

pytestmark = pytest.mark.services

CHUNK = 100
SMALL = Tuning(snapshot_rows=30)


@dataclass
class Source:
    """A database, and tasks that read it one after the other, each from the offset of the one before."""

    server: MySqlAddress
    kafka: Kafka
    database: str
    cursor: Any
    mariadb: bool
    events: list[Any] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = f"history_{self.database}"

    def task(self, offset: Any = None, **more: str) -> DirectMySqlTask:
        settings = {"internal_snapshot_chunk_rows": str(CHUNK), "schema_history_internal_store_only_captured_tables_ddl": "true"}
        config = mysql_source(self.server, self.kafka.bootstrap, self.database, **{**settings, **more})
        config["schema.history.internal.kafka.topic"] = self.history
        if not self.mariadb:
            return DirectMySqlTask(config, offset, tuning=SMALL)
        config["connector.class"] = "io.debezium.connector.mariadb.MariaDbConnector"
        return DirectMariaDbTask(config, offset, tuning=SMALL)

    def run_until(self, condition: Callable[[DirectMySqlTask], object], offset: Any = None, **more: str) -> Any:
        """Run a task until something holds of it; it is then gone at once, as if killed. Returns its last offset."""
        task = self.task(offset, **more)
        try:
            task.poll_until(lambda: condition(task), 60)
        finally:
            self.events += task.events
            self.batches = task.batches
            task.close()
        return task.offset

    def topic(self, table: str) -> list[tuple[Any, Any]]:
        return [(key, value) for topic, key, value in self.events if topic == f"{self.database}.{self.database}.{table}"]

    def rows(self, table: str) -> dict[Any, Any]:
        self.cursor.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in self.cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in self.cursor.fetchall()]
        return {(("id", row["id"]),): row for row in found}

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def make_item(self, rows: int) -> None:
        self.execute("CREATE TABLE item (id INT PRIMARY KEY, version INT NOT NULL, note TEXT)")
        self.cursor.executemany("INSERT INTO item VALUES (%s, 1, 'old')", [(i,) for i in range(1, rows + 1)])
        self.execute("ANALYZE TABLE item")


@pytest.fixture(params=["mysql", "mariadb"])
def source(request: pytest.FixtureRequest, kafka: Kafka) -> Iterator[Source]:
    server: MySqlAddress = request.getfixturevalue(request.param)
    name = f"rest_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        yield Source(server, kafka, name, cursor, request.param == "mariadb")
        cursor.execute(f"DROP DATABASE {name}")


def rows_of(task: DirectMySqlTask) -> int:
    return sum(1 for _, _, value in task.events if isinstance(value, dict) and value.get("op") == "r")


def seen(count: int) -> Callable[[DirectMySqlTask], bool]:
    return lambda task: rows_of(task) >= count


def finished(task: DirectMySqlTask) -> bool:
    """Whether the snapshot has ended and the stream is read."""
    position: MySqlOffset | None = task.task.position
    return position is not None and not position.is_snapshot_unfinished and task.is_streaming()


def seen_or_finished(count: int) -> Callable[[DirectMySqlTask], bool]:
    return lambda task: len(task.events) >= count or finished(task)


def test_a_resumed_snapshot_reads_at_most_a_chunk_again(source: Source) -> None:
    source.make_item(1000)
    offset = source.run_until(seen(450))
    assert offset["snapshot"] == "INITIAL"
    assert SnapshotProgress(offset[FIELD]).rows(f"{source.database}.item") == 400
    offset = source.run_until(seen(300), offset)
    source.run_until(finished, offset)
    counts = Counter(key["id"] for key, _ in source.topic("item"))
    assert set(counts) == set(range(1, 1001))
    assert sum(counts.values()) - 1000 <= 2 * CHUNK
    markers = [value["source"]["snapshot"] for _, value in source.topic("item")]
    assert (markers[0], markers[-1]) == ("first", "last")
    assert markers.count("first") == markers.count("last") == 1
    assert fold_events(source.topic("item")) == source.rows("item")
    assert FIELD not in source.batches[-1][1] and "snapshot" not in source.batches[-1][1]


def test_changes_between_two_attempts_come_before_what_is_left(source: Source) -> None:
    source.make_item(600)
    offset = source.run_until(seen(250))
    # in what was read, in what was cut off, in what is left; and rows that move between them
    for id_ in (5, 210, 500):
        source.execute(f"UPDATE item SET version = 2, note = 'changed' WHERE id = {id_}")
    for id_ in (6, 211, 501):
        source.execute(f"DELETE FROM item WHERE id = {id_}")
    for old, new in ((7, 1007), (502, 1502), (503, -3), (8, 504)):
        source.execute(f"DELETE FROM item WHERE id = {new}", f"UPDATE item SET id = {new}, version = 3 WHERE id = {old}")
    source.execute("INSERT INTO item VALUES (-1, 1, 'new'), (2000, 1, 'new')")
    offset = source.run_until(finished, offset)
    source.execute("UPDATE item SET version = 9 WHERE id = 501 OR id = 300")
    final = source.run_until(lambda task: any(value and value["op"] == "u" for _, _, value in task.events), offset)
    assert fold_events(source.topic("item")) == source.rows("item")
    assert goes_back_in_time(source.topic("item")) == []
    assert "snapshot" not in final


def test_the_offset_says_unfinished_to_debezium_until_the_last_row(source: Source) -> None:
    source.make_item(600)
    offset = source.run_until(seen(250))
    source.execute("UPDATE item SET version = 2 WHERE id % 10 = 0", "FLUSH BINARY LOGS")
    source.run_until(finished, offset)
    assert any(value["op"] == "u" for _, value in source.topic("item"))
    assert all(offset["snapshot"] == "INITIAL" for _, offset in source.batches[:-1])


def test_a_table_that_was_altered_renamed_or_dropped_in_between_comes_as_the_stream_has_it(source: Source) -> None:
    source.make_item(600)
    source.execute("CREATE TABLE second AS SELECT * FROM item", "ALTER TABLE second ADD PRIMARY KEY (id)", "ANALYZE TABLE second")
    source.execute("CREATE TABLE third AS SELECT * FROM item", "ALTER TABLE third ADD PRIMARY KEY (id)")
    offset = source.run_until(seen(250))
    source.execute(
        "INSERT INTO item VALUES (1000, 1, 'before')",
        "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 4 FIRST",
        "UPDATE item SET version = 2 WHERE id < 20",
        "RENAME TABLE second TO fourth",
        "DELETE FROM fourth WHERE id = 3",
        "DROP TABLE third",
    )
    offset = source.run_until(seen(200), offset)
    source.execute("ALTER TABLE item DROP COLUMN note", "UPDATE item SET version = 3 WHERE id BETWEEN 15 AND 30 OR id > 550")
    source.run_until(finished, offset)
    found = fold_events(source.topic("item"))
    assert {key: value["version"] for key, value in found.items()} == {key: value["version"] for key, value in source.rows("item").items()}
    left = [value["after"] for _, value in source.topic("item") if value and value["op"] == "r"][-1]
    assert set(left) == {"more", "id", "version"}
    assert fold_events(source.topic("fourth")) == source.rows("fourth")


@pytest.mark.long
def test_an_interruption_in_a_large_transaction_before_what_is_left_is_no_other_case(source: Source) -> None:
    settings = {"internal_snapshot_chunk_rows": "1000", "provide_transaction_metadata": "true"}
    source.make_item(5000)
    offset = source.run_until(seen(1500), **settings)
    source.execute("UPDATE item SET version = 2")
    offset = source.run_until(lambda task: any(value and value.get("op") == "u" for _, _, value in task.events), offset, **settings)
    assert offset["snapshot"] == "INITIAL" and FIELD in offset and offset["event"], "the transaction went out in one batch"
    source.run_until(finished, offset, **settings)
    assert fold_events(source.topic("item")) == source.rows("item")
    assert goes_back_in_time(source.topic("item")) == []
    assert [value["op"] for _, value in source.topic("item")].count("u") == 5000
    ends = [value for topic, _, value in source.events if topic.endswith(".transaction") and value["status"] == "END"]
    assert [end["event_count"] for end in ends] == [5000]


@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_a_user_who_may_lock_only_tables_goes_on_and_keeps_nobody_from_writing(source: Source, threads: str) -> None:
    user = f"u_{uuid.uuid4().hex[:8]}"
    login = {"database_user": user, "database_password": "secret", "snapshot_locking_fallback": "lock", "snapshot_max_threads": threads}
    source.make_item(600)
    source.execute(
        f"CREATE USER {user} IDENTIFIED BY 'secret'",
        f"GRANT SELECT, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES ON *.* TO {user}",
        "SET lock_wait_timeout = 1",
    )
    try:
        offset = source.run_until(seen(150), **login)
        source.execute("UPDATE item SET version = 2 WHERE id % 10 = 1")
        with source.task(offset, **login) as task:
            task.poll_until(lambda: rows_of(task) > 0, 60)
            source.execute("UPDATE item SET version = 3 WHERE id % 10 = 2")
            task.poll_until(lambda: finished(task), 60)
            task.poll_until(lambda: sum(value["op"] == "u" for _, value in task.of(task.events[-1][0])) >= 120, 60)
            source.events += task.events
    finally:
        source.execute(f"DROP USER {user}")
    assert fold_events(source.topic("item")) == source.rows("item")
    assert goes_back_in_time(source.topic("item")) == []


@pytest.mark.parametrize("statement", ["DROP COLUMN note", "ADD COLUMN more INT DEFAULT 1", "RENAME TO renamed"])
def test_a_table_that_is_altered_before_it_is_first_looked_at_is_read_behind_that(source: Source, statement: str) -> None:
    source.make_item(300)
    source.execute("CREATE TABLE second AS SELECT * FROM item", "ALTER TABLE second ADD PRIMARY KEY (id)", "ANALYZE TABLE second")
    with source.task(retriable_restart_connector_wait_ms="10", snapshot_tables_order_by_row_count="disabled") as task:
        task.poll_until(lambda: rows_of(task) > 50, 60)
        source.execute(f"ALTER TABLE second {statement}")
        task.poll_until(lambda: finished(task), 60)
        source.events += task.events
    name = "renamed" if "RENAME" in statement else "second"
    assert fold_events(source.topic("item")) == source.rows("item")
    found, wanted = fold_events(source.topic(name)), source.rows(name)
    # where the server can still show rows as they were, they come so, and the stream has the statement behind them
    assert {key: value["version"] for key, value in found.items()} == {key: value["version"] for key, value in wanted.items()}


def test_a_table_whose_key_orders_otherwise_now_is_read_again(source: Source) -> None:
    source.execute("CREATE TABLE item (id VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, version INT NOT NULL)")
    source.cursor.executemany("INSERT INTO item VALUES (%s, 1)", [(("a" if i % 2 else "A") + str(i),) for i in range(600)])
    source.execute("ANALYZE TABLE item")
    offset = source.run_until(seen(250))
    assert SnapshotProgress(offset[FIELD]).rows(f"{source.database}.item") == 200
    source.execute("ALTER TABLE item MODIFY id VARCHAR(20) COLLATE utf8mb4_general_ci")
    source.run_until(finished, offset)
    counts = Counter(key["id"] for key, _ in source.topic("item"))
    assert len(counts) == 600 and sum(count > 1 for count in counts.values()) >= 200


KEYS = {
    "two columns": ("id INT, b VARCHAR(10), PRIMARY KEY (b, id)", "({i}, 'x{d}')"),
    "a unique key": ("id INT NOT NULL, UNIQUE KEY other (id)", "({i})"),
    "a large number": ("id BIGINT UNSIGNED PRIMARY KEY", "(18446744073709551615 - {i})"),
    "bytes": ("id VARBINARY(20) PRIMARY KEY", "(LEFT(UNHEX(SHA2('{i}', 256)), 16))"),
    "a time": ("id DATETIME(6) PRIMARY KEY", "('2020-01-01' + INTERVAL {i} MICROSECOND)"),
    "a decimal": ("id DECIMAL(20, 3) PRIMARY KEY", "({i} / 8)"),
    "letters of two cases": ("id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY", "('Ä{i}\\'\\\\')"),
    "letters of Japan": ("id VARCHAR(20) CHARACTER SET sjis PRIMARY KEY", "('表{i}')"),
    "letters of two bytes": ("id VARCHAR(20) CHARACTER SET utf16 PRIMARY KEY", "('é{i}')"),
    "a label": ("id INT, b ENUM('z', 'y', 'x'), PRIMARY KEY (b, id)", "({i}, 1 + {i} % 3)"),
    "a beginning": ("id VARCHAR(20), PRIMARY KEY (id(8))", "('{i}')"),
    "none": ("id INT", "({i})"),
}


#: Keys whose order or index does not serve: such tables are read in one go.
UNCUT = {"a label", "a beginning", "none"}


@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_tables_of_any_key_are_read_whatever_interrupts_them(source: Source, threads: str) -> None:
    tables = {kind: f"t_{kind.replace(' ', '_')}" for kind in KEYS}
    for kind, (columns, row) in KEYS.items():
        rows = ",".join(row.format(i=i, d=i % 7) for i in range(450))
        source.execute(
            f"CREATE TABLE {tables[kind]} ({columns})", f"INSERT INTO {tables[kind]} VALUES {rows}", f"ANALYZE TABLE {tables[kind]}"
        )
    offset: Any = None
    cut: set[str] = set()
    while offset is None or "snapshot" in offset:
        offset = source.run_until(seen_or_finished(900 if threads == "1" else 3000), offset, snapshot_max_threads=threads)
        for _, stored in source.batches:
            known = json.loads(stored.get(FIELD, "null")) or {"tables": {}}
            cut |= {name.partition(".")[2] for name, table in known["tables"].items() if "key" in table}
    assert cut == {name for kind, name in tables.items() if kind not in UNCUT}
    for kind, name in tables.items():
        found = Counter(tuple(value["after"].values()) for _, value in source.topic(name))
        assert len(found) == 450 and min(found.values()) == 1
        if kind not in UNCUT:
            assert sum(found.values()) - 450 <= 3 * 3 * CHUNK, "more was read again than the chunks of a few interruptions"


def test_random_interruptions_beside_random_changes_lose_nothing(source: Source) -> None:
    seed = int(os.environ.get("SNAPSHOT_SEED", random.randrange(1 << 30)))
    print(f"SNAPSHOT_SEED={seed}")
    dice = random.Random(seed)
    source.make_item(1000)
    offset: Any = None
    version = 2
    for _ in range(5):
        threads = dice.choice("1112")
        offset = source.run_until(seen_or_finished(dice.randrange(1, 500)), offset, snapshot_max_threads=threads)
        if "snapshot" not in offset:
            break
        for _ in range(dice.randrange(40)):
            version += 1
            key, other = dice.randrange(1, 1100), dice.randrange(1, 1100)
            change = dice.randrange(4)
            if change == 0:
                source.execute(f"DELETE FROM item WHERE id = {key}")
            elif change == 1 and key != other:
                source.execute(f"DELETE FROM item WHERE id = {other}")
                source.execute(f"UPDATE item SET id = {other}, version = {version} WHERE id = {key}")
            else:
                source.execute(
                    f"INSERT INTO item VALUES ({key}, {version}, 'changed') ON DUPLICATE KEY UPDATE version = {version}, note = 'changed'"
                )
    source.run_until(finished, offset)
    assert fold_events(source.topic("item")) == source.rows("item")
    # a batch that was sent and whose offset was stored is not sent again, so here nothing is
    assert goes_back_in_time(source.topic("item")) == []
