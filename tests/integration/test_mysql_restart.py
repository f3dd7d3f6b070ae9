"""A MySQL task that is started from the offset of any batch gives exactly the rows that follow it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest

from connect_py.api import EncodedBatch, JsonEncoding, SourceOffset, SourcePartition
from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.batches import Tuning
from connectors.mysql.task import MySqlConnectorTask
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMySqlTask

pytestmark = pytest.mark.services

#: (topic's last part, operation, id) of a record, ("", "", 0) for a tombstone.
Event = tuple[str, str, int]


class Direct:
    """A task in the test's thread. `batches` holds each batch's events with its offset."""

    connector, task = "direct", 0
    encoding = JsonEncoding(key_schemas=False, value_schemas=False)

    def __init__(self, config: dict[str, str], offset: SourceOffset | None) -> None:
        self._offset = offset
        self.batches: list[tuple[list[Event], SourceOffset]] = []
        self._task = MySqlConnectorTask()
        self._task.start(config, self)

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        return self._offset

    def notify(self, notification: Mapping[str, Any]) -> None:
        pass

    @property
    def events(self) -> list[Event]:
        return [event for events, _ in self.batches for event in events]

    def poll_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"waited 60 s after {self.events[-5:]}"
            batch = self._task.poll()
            if isinstance(batch, EncodedBatch):
                found = [_event(route.topic, value) for route, _, value in batch.rows]
                self.batches.append((found, batch.source_offset))
                self._task.offsets_committed([(batch.source_partition, batch.source_offset)])

    def close(self) -> None:
        self._task.stop()
        self._task.close()


def _event(topic: str, value: bytes | None) -> Event:
    shown: Any = orjson.loads(value) if value else None
    if shown is None or "op" not in shown:
        return ("", "", 0)
    return topic.rpartition(".")[2], shown["op"], (shown["after"] or shown["before"])["id"]


@pytest.fixture
def table(mysql: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database with a table `t`, and a cursor in it."""
    name = f"restart_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))")
        cursor.execute("INSERT INTO t VALUES (0, 'old')")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def config_of(mysql: MySqlAddress, kafka: Kafka, database: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.user,
        "database.password": mysql.password,
        "database.server.id": str(uuid.uuid4().int % 1_000_000 + 1_000),
        "topic.prefix": database,
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"history_{database}",
        **more,
    }


def insert(cursor: Any, first: int, last: int) -> None:
    cursor.execute("INSERT INTO t (id, v) VALUES " + ",".join(f"({i},'row {i}')" for i in range(first, last)))


@pytest.mark.parametrize("with_gtids", [True, False], ids=["GTID set", "file and position"])
def test_a_start_from_any_batch_gives_the_rest_once(mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any], with_gtids: bool) -> None:
    database, cursor = table
    config = config_of(mysql, kafka, database, **{"gtid.ignore.on.recovery": str(not with_gtids).lower()})
    first = Direct(config, None)
    try:
        first.poll_until(lambda: ("t", "r", 0) in first.events)
        cursor.execute("BEGIN")
        insert(cursor, 1, 4_000)
        cursor.execute("UPDATE t SET v = 'changed' WHERE id < 10")
        cursor.execute("DELETE FROM t WHERE id < 5")
        insert(cursor, 4_000, 9_000)
        cursor.execute("COMMIT")
        cursor.execute("ALTER TABLE t ADD w INT")
        insert(cursor, 9_000, 9_010)
        first.poll_until(lambda: ("t", "c", 9_009) in first.events)
    finally:
        first.close()
    inside = [(i, offset) for i, (_, offset) in enumerate(first.batches) if "event" in offset]
    assert len(inside) > 3, "the transaction went out in one batch: nothing to go on from"
    for i, offset in inside[::2]:
        assert ("gtids" in offset) is with_gtids
        left = [event for events, _ in first.batches[i + 1 :] for event in events]
        cursor.execute("INSERT INTO t (id) VALUES (%s)", (100_000 + i,))
        again = Direct(config, offset)
        try:
            again.poll_until(lambda again=again, i=i: ("t", "c", 100_000 + i) in again.events)  # type: ignore[misc]
        finally:
            again.close()
        later = [("t", "c", 100_000 + j) for j, _ in inside[::2] if j <= i]
        assert again.events == left + later


@pytest.mark.parametrize("with_gtids", [True, pytest.param(False, marks=pytest.mark.long)], ids=["GTID set", "file and position"])
def test_a_start_between_any_two_events_gives_the_rest_once(
    mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any], with_gtids: bool
) -> None:
    """The losses R3 and R6 of the reference: a batch that ends within the records of a changed key, or within an event of several rows."""
    database, cursor = table
    config = config_of(mysql, kafka, database, **{"gtid.ignore.on.recovery": str(not with_gtids).lower()})
    topic = f"{database}.{database}.t"
    with DirectMySqlTask(config, tuning=Tuning(batch_rows=1)) as first:
        first.poll_until(lambda: first.of(topic), what="the snapshot")
        snapshot = len(first.batches)
        insert(cursor, 1, 3)
        cursor.execute("BEGIN")
        insert(cursor, 3, 6)
        cursor.execute("UPDATE t SET id = id + 50 WHERE id IN (2, 4)")
        cursor.execute("DELETE FROM t WHERE id < 3")
        cursor.execute("COMMIT")
        cursor.execute("ALTER TABLE t ADD w INT")
        cursor.execute("UPDATE t SET id = 70 WHERE id = 5")
        insert(cursor, 60, 62)
        first.poll_until(lambda: _changes(first.events)[-1:] == [("c", 61)], what="the last row")
    starts = range(snapshot - 1, len(first.batches) - 1)
    assert len(starts) > 6, "events that went out together: nothing to go on from"
    for i in starts:
        left = [event for events, _ in first.batches[i + 1 :] for event in _shown(events, topic)]
        with DirectMySqlTask(config, first.batches[i][1]) as again:
            again.poll_until(lambda again=again: _changes(again.events)[-1:] == [("c", 61)], what="the last row")  # type: ignore[misc]
        assert _shown(again.events, topic) == left, f"from {first.batches[i][1]}"


def _shown(events: list[tuple[str, Any, Any]], topic: str) -> list[tuple[Any, Any, Any]]:
    """Return key, operation and row of a topic's records; of a tombstone the key alone."""
    return [(key, value and value["op"], value and (value["after"] or value["before"])) for name, key, value in events if name == topic]


def test_rows_come_in_the_structure_of_their_time(mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any]) -> None:
    database, cursor = table
    config = config_of(mysql, kafka, database)
    first = Direct(config, None)
    try:
        first.poll_until(lambda: ("t", "r", 0) in first.events)
    finally:
        first.close()
    insert(cursor, 1, 2)
    cursor.execute("ALTER TABLE t DROP COLUMN v, ADD a INT FIRST, ADD b INT")
    cursor.execute("INSERT INTO t VALUES (7, 2, 8)")
    cursor.execute("RENAME TABLE t TO u")
    cursor.execute("INSERT INTO u VALUES (7, 3, 8)")
    again = Direct(config, first.batches[-1][1])
    try:
        again.poll_until(lambda: ("u", "c", 3) in again.events)
    finally:
        again.close()
    assert [event for event in again.events if event[0]] == [("t", "c", 1), ("t", "c", 2), ("u", "c", 3)]


def test_what_was_deleted_while_a_snapshot_was_interrupted_is_deleted_in_the_topic(
    mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any]
) -> None:
    database, cursor = table
    insert(cursor, 1, 9_000)
    config = config_of(mysql, kafka, database, **{"database.include.list": database})
    first = Direct(config, None)
    try:
        first.poll_until(lambda: ("t", "r", 10) in first.events)
    finally:
        first.close()
    assert ("t", "r", 8_999) not in first.events, "the snapshot was not interrupted"
    cursor.execute("DELETE FROM t WHERE id < 5")
    cursor.execute("UPDATE t SET v = 'changed' WHERE id = 6")
    again = Direct(config, first.batches[-1][1])
    try:
        again.poll_until(lambda: ("t", "r", 8_999) in again.events)
    finally:
        again.close()
    assert [event for event in again.events if event[0]][:6] == [*(("t", "d", i) for i in range(5)), ("t", "u", 6)]
    assert {i for name, op, i in again.events if op == "r"} == set(range(5, 9_000))
    assert "snapshot" not in again.batches[-1][1]


def test_an_interrupted_snapshot_goes_on_in_the_structures_that_tables_have_now(
    mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any]
) -> None:
    database, cursor = table
    insert(cursor, 1, 9_000)
    config = config_of(mysql, kafka, database)
    first = Direct(config, None)
    try:
        first.poll_until(lambda: ("t", "r", 10) in first.events)
    finally:
        first.close()
    cursor.execute("ALTER TABLE t ADD COLUMN w INT DEFAULT 3")
    again = Direct(config, first.batches[-1][1])
    try:
        again.poll_until(lambda: ("t", "r", 8_999) in again.events)
        cursor.execute("INSERT INTO t VALUES (9999, 'x', 1)")
        again.poll_until(lambda: ("t", "c", 9_999) in again.events)
    finally:
        again.close()
    assert "connect_py_snapshot" not in again.batches[-1][1]


def test_a_compressed_transaction_counts_its_events_at_the_place_of_the_whole(
    mysql: MySqlAddress, kafka: Kafka, table: tuple[str, Any]
) -> None:
    """Its events have no place of their own in the log: records name that of the payload, offsets that of the transaction with the number
    of events before, and a start from any of them gives the rest once."""
    database, cursor = table
    config = config_of(mysql, kafka, database)
    rows = 3_000
    with DirectMySqlTask(config) as first:
        first.poll_until(lambda: first.of(f"{database}.{database}.t"), what="the snapshot")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("BEGIN")
        insert(cursor, 1, rows)
        cursor.execute("UPDATE t SET v = 'changed' WHERE id < 10")
        insert(cursor, rows, 2 * rows)
        cursor.execute("DELETE FROM t WHERE id < 5")
        insert(cursor, 2 * rows, 3 * rows)
        cursor.execute("COMMIT")
        cursor.execute("SET SESSION binlog_transaction_compression = OFF")
        insert(cursor, 50_000, 50_001)
        first.poll_until(lambda: _changes(first.events)[-1:] == [("c", 50_000)], what="the row behind it")
    cursor.execute("SHOW BINARY LOGS")
    logs = [row[0] for row in cursor.fetchall()]
    changes = [value for _, value in first.of(f"{database}.{database}.t") if value and value["op"] != "r"][:-1]
    places = {(value["source"]["file"], value["source"]["pos"]) for value in changes}
    assert len(places) == 1, "the events of one payload name one place"
    file, pos = places.pop()
    assert file in logs
    cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {pos} LIMIT 1")
    assert cursor.fetchone()[2] == "Transaction_payload"
    begun = next(offset["pos"] for _, offset in first.batches if "event" in offset)
    inside = [(i, offset) for i, (_, offset) in enumerate(first.batches) if "event" in offset and offset["pos"] == begun]
    counted = [offset["event"] for _, offset in inside]
    assert len(inside) > 2, "the transaction went out in one batch: nothing to go on from"
    assert counted == sorted(counted)
    assert counted[-1] > counted[0], "the events inside are counted"
    assert begun == pos, "the whole transaction is one event of the log"
    for i, offset in (inside[0], inside[len(inside) // 2], inside[-1]):
        left = [event for events, _ in first.batches[i + 1 :] for event in _changes(events)]
        with DirectMySqlTask(config, offset) as again:
            again.poll_until(lambda again=again: _changes(again.events)[-1:] == [("c", 50_000)], what="the row behind it")  # type: ignore[misc]
            assert _changes(again.events) == left


def _changes(events: list[tuple[str, Any, Any]]) -> list[tuple[str, int]]:
    return [(value["op"], (value["after"] or value["before"])["id"]) for topic, _, value in events if topic.endswith(".t") and value]
