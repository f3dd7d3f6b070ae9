"""A snapshot of PostgreSQL that several processes read: every row once, at one moment, with the markers of one reader."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from connect_py.app.services.process import child_pids, command_of, is_running
from connectors.engine.snapshot.initial.progress import FIELD, SnapshotProgress
from connectors.postgres.snapshot import worker
from tests.integration.test_postgres_snapshot_resume import CHUNK, Source, finished, make_item, seen, source
from tests.postgres_task import fold_events

pytestmark = pytest.mark.services

THREADS = {"snapshot_max_threads": "3"}
__all__ = ["source"]


def reader_pids(module: str) -> list[int]:
    """Return the processes of the test's own that read chunks."""
    return [pid for pid in child_pids(os.getpid()) if module in command_of(pid)]


def test_every_row_of_every_table_comes_once_between_its_markers(source: Source) -> None:
    make_item(source, 1000)
    source.connection.execute("CREATE TABLE small (id integer PRIMARY KEY); INSERT INTO small VALUES (1)")
    source.connection.execute("CREATE TABLE keyless (id integer); INSERT INTO keyless SELECT g FROM generate_series(1, 300) g")
    source.connection.execute("CREATE TABLE void (id integer PRIMARY KEY)")
    source.connection.execute("CREATE TABLE odd (a text, b text, PRIMARY KEY (a, b))")
    source.connection.execute(
        "INSERT INTO odd SELECT E'\"\\t\\\\' || g, repeat(chr(128512), 3) || g FROM generate_series(1, 400) g; ANALYZE"
    )
    source.run_until(finished, **THREADS)
    for name, rows in (("item", 1000), ("small", 1), ("keyless", 300), ("odd", 400)):
        events = source.topic(name)
        assert len(events) == rows
        markers = [value["source"]["snapshot"] for _, value in events]
        assert markers[0] in ("first", "first_in_data_collection") or rows == 1
        assert markers[-1] in ("last", "last_in_data_collection")
        assert set(markers[1:-1]) <= {"true"}
    assert {value["after"]["id"] for _, value in source.topic("item")} == set(range(1, 1001))
    assert len({(value["after"]["a"], value["after"]["b"]) for _, value in source.topic("odd")}) == 400
    everything = [value["source"]["snapshot"] for _, _, value in source.events]
    assert everything[0] == "first" and everything[-1] == "last"
    assert everything.count("first") == everything.count("last") == 1
    assert len({(value["source"]["lsn"], value["source"]["ts_us"]) for _, _, value in source.events}) == 1


def test_all_readers_see_the_moment_of_the_slot(source: Source) -> None:
    make_item(source, 1000)
    task = source.task(**THREADS)
    with task:
        task.poll_until(lambda: task.events)
        source.connection.execute("UPDATE item SET version = 2; DELETE FROM item WHERE id > 500")
        task.poll_until(lambda: finished(task))
        snapshot = [value for _, value in task.of(f"pg_{source.tag}.public.item") if value and value["op"] == "r"]
        assert len(snapshot) == 1000 and {value["after"]["version"] for value in snapshot} == {1}
        source.connection.execute("INSERT INTO item VALUES (0, 7, 'the end')")
        task.poll_until(lambda: any(key["id"] == 0 for _, key, _ in task.events))
    assert fold_events(task.of(f"pg_{source.tag}.public.item")) == source.rows("item")


def test_records_are_those_of_one_reader(source: Source) -> None:
    make_item(source, 500)
    source.run_until(finished, **THREADS)
    parallel = {key["id"]: value for key, value in source.topic("item")}
    source.events.clear()
    source.run_until(finished, snapshot_mode="always")
    for key, value in source.topic("item"):
        other = parallel[key["id"]]
        assert {**value, "source": None, **{f"ts_{unit}": 0 for unit in ("ms", "us", "ns")}} == {
            **other,
            "source": None,
            **{f"ts_{unit}": 0 for unit in ("ms", "us", "ns")},
        }
        assert set(value["source"]) == set(other["source"])


def test_a_resumed_snapshot_reads_at_most_a_chunk_a_reader_again(source: Source) -> None:
    make_item(source, 2000)
    offset = source.run_until(seen(900), **THREADS)
    assert 900 - 4 * CHUNK <= SnapshotProgress(offset[FIELD]).rows("public.item") <= 900
    source.run_until(finished, offset, **THREADS)
    counts = Counter(key["id"] for key, _ in source.topic("item"))
    assert set(counts) == set(range(1, 2001))
    assert sum(counts.values()) - 2000 <= 3 * CHUNK


def test_a_reader_that_is_killed_interrupts_the_snapshot_only(source: Source) -> None:
    make_item(source, 2000)
    task = source.task(**THREADS, retriable_restart_connector_wait_ms="100")
    with task:
        task.poll_until(lambda: len(task.events) >= 500)
        others = reader_pids(worker.MODULE)
        os.kill(others[0], signal.SIGKILL)
        task.poll_until(lambda: finished(task))
        assert not any(map(is_running, others))
    assert fold_events(task.of(f"pg_{source.tag}.public.item")) == source.rows("item")
    assert len(task.events) <= 2000 + 3 * CHUNK + 2000


def test_readers_end_with_the_task(source: Source) -> None:
    make_item(source, 2000)
    task = source.task(**THREADS)
    task.poll_until(lambda: task.events)
    found = reader_pids(worker.MODULE)
    assert len(found) == 3
    task.close()
    assert not any(map(is_running, found))


def test_a_reader_says_what_the_server_refused(source: Source) -> None:
    make_item(source, 500)
    source.connection.execute("CREATE TABLE other (id integer PRIMARY KEY); INSERT INTO other SELECT generate_series(1, 500); ANALYZE")
    statements = {
        "snapshot_select_statement_overrides": "public.item",
        "snapshot_select_statement_overrides_public_item": "SELECT id, version, note FROM item WHERE 1 / (id - 250) < 5",
    }
    task = source.task(**THREADS, **statements)
    with task, pytest.raises(Exception, match="division by zero"):
        task.poll_until(lambda: finished(task))


def test_a_statement_in_place_of_a_table_may_leave_columns_out(source: Source) -> None:
    make_item(source, 20)
    statements = {
        "snapshot_select_statement_overrides": "public.item",
        "snapshot_select_statement_overrides_public_item": "SELECT version, id FROM item WHERE id <= 2 ORDER BY id;",
    }
    with source.task(**statements) as task:
        task.poll_until(lambda: finished(task))
    rows = [value["after"] for topic, _, value in task.events if topic.endswith("public.item")]
    assert rows == [{"id": number, "version": 1, "note": None} for number in (1, 2)]
