"""A snapshot of MySQL or MariaDB that several processes read: the events of one reader, at one moment."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from typing import Any

import orjson
import pytest

from connectors.mysql.snapshot import worker
from tests.integration.test_mysql_snapshot_resume import Source, finished, rows_of, source
from tests.integration.test_postgres_snapshot_parallel import reader_pids
from tests.postgres_task import fold_events

pytestmark = pytest.mark.services

__all__ = ["source"]

THREADS = {"snapshot_max_threads": "3", "retriable_restart_connector_wait_ms": "10"}
#: One column of each family of types, in odd names.
COLUMNS = {
    "id": ("INT PRIMARY KEY", "{i}"),
    "`ä b`": ("VARCHAR(90) CHARACTER SET latin1", "CONCAT('é\"\\\\', {i}, '\\n')"),
    "t": ("TEXT", "REPEAT('\U0001f600', {i} % 90)"),
    "n": ("DECIMAL(20,3)", "{i} / 8"),
    "f": ("DOUBLE", "{i} / 7"),
    "d": ("DATETIME(3)", "'2020-01-01' + INTERVAL {i} SECOND"),
    "s": ("TIMESTAMP(6) NULL", "'2020-01-01 00:00:00.5'"),
    "b": ("VARBINARY(90)", "UNHEX(SHA2({i}, 256))"),
    "o": ("BLOB", "IF({i} % 3, NULL, REPEAT('x', {i} * 9))"),
    "j": ("JSON", "JSON_OBJECT('a', {i})"),
    "e": ("ENUM('x', 'y,z')", "1 + {i} % 2"),
    "bits": ("BIT(9)", "{i} % 512"),
}


def plain(events: list[Any]) -> Counter[bytes]:
    """Rows without what differs between any two snapshots: times, and which row is the last."""
    found: Counter[bytes] = Counter()
    for topic, key, value in events:
        if isinstance(value, dict) and value.get("op") == "r":
            shown = {name: part for name, part in value.items() if not name.startswith("ts_")}
            shown["source"] = {name: part for name, part in value["source"].items() if not name.startswith("ts_") and name != "snapshot"}
            found[orjson.dumps([topic, key, shown])] += 1
    return found


def test_several_readers_give_the_events_of_one(source: Source) -> None:
    source.execute(f"CREATE TABLE many ({', '.join(f'{name} {kind}' for name, (kind, _) in COLUMNS.items())})")
    rows = (", ".join(value.format(i=i) for _, value in COLUMNS.values()) for i in range(1, 501))
    source.execute(f"INSERT INTO many VALUES ({'), ('.join(rows)})")
    source.execute("CREATE TABLE keyless (id INT)", "INSERT INTO keyless VALUES (1), (1), (2)", "CREATE TABLE void (id INT PRIMARY KEY)")
    source.execute("ANALYZE TABLE many")
    source.run_until(finished)
    wanted, source.events = source.events, []
    source.history += "_several"
    source.run_until(finished, **THREADS)
    assert sum(plain(wanted).values()) == 503
    assert plain(source.events) == plain(wanted)
    markers = [value["source"]["snapshot"] for _, _, value in source.events if isinstance(value, dict) and value.get("op") == "r"]
    assert markers[-1] == "last" and markers.count("last") == 1
    assert markers.count("first") == 1 and markers[0] == "first"


def test_a_reader_that_dies_interrupts_the_snapshot_and_its_rest_is_read(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.make_item(2000)
    with source.task(**THREADS) as task:
        task.poll_until(lambda: rows_of(task) > 300, 60)
        first = reader_pids(worker.MODULE)
        os.kill(first[0], signal.SIGKILL)
        source.execute("UPDATE item SET version = 2 WHERE id % 100 = 0", "DELETE FROM item WHERE id % 100 = 1")
        task.poll_until(lambda: "The snapshot goes on where it was interrupted" in caplog.text or finished(task), 60)
        task.poll_until(lambda: finished(task), 60)
        source.events += task.events
    assert fold_events(source.topic("item")) == source.rows("item")
    assert any(value and value["op"] == "d" for _, value in source.topic("item"))


def test_all_readers_see_one_moment(source: Source) -> None:
    """Every transaction changes a row of each half of the table alike, so that rows of one moment are alike."""
    source.make_item(1000)
    enough = threading.Event()

    def write() -> None:
        with source.server.connect() as connection, connection.cursor() as cursor:
            connection.autocommit(False)
            cursor.execute(f"USE {source.database}")
            version = 1
            while not enough.is_set():
                version += 1
                cursor.execute(f"UPDATE item SET version = {version} WHERE id IN ({version % 500 + 1}, {version % 500 + 501})")
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        source.run_until(finished, **THREADS)
    finally:
        enough.set()
        writer.join()
    read = {key["id"]: value["after"]["version"] for key, value in source.topic("item") if value["op"] == "r"}
    assert len(read) == 1000 and max(read.values()) > 1
    assert [read[id_] for id_ in range(1, 501)] == [read[id_ + 500] for id_ in range(1, 501)]
