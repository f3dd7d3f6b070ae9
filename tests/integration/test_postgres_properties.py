"""Properties of the PostgreSQL connector that need a server to show what they do."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.errors import DataError, FatalTaskError
from connectors.postgres.server.validation import connection_problem
from tests.fix_postgres import RESELECT, postgres_source
from tests.postgres_task import DirectTask
from tests.waiting import eventually

pytestmark = pytest.mark.services

BIG = "x" * 10_000
PLACEHOLDER = "__debezium_unavailable_value"


class Source:
    """A database and a task that reads it."""

    def __init__(self, postgres: PostgresAddress, database: str) -> None:
        self._postgres, self.database = postgres, database
        self.db = postgres.connect(database)
        self.task: DirectTask | None = None

    def config(self, **more: str) -> dict[str, str]:
        return {**postgres_source(self._postgres, self.database, "props"), "slot.name": self.database, **more}

    def start(self, offset: Any = None, **more: str) -> DirectTask:
        if self.task is not None:
            self.task.close()
        self.task = DirectTask(self.config(**more), offset)
        self.task.poll_until(self.task.is_streaming)
        return self.task

    def events(self, count: int, table: str = "public.a") -> list[Any]:
        """Values of a table's streamed events, when there are so many."""
        task = self.task
        assert task is not None

        def found() -> list[Any]:
            return [value for _, value in task.of(f"pg_props.{table}") if value is None or value["op"] != "r"]

        task.poll_until(lambda: len(found()) >= count, what=f"{count} events")
        return found()

    def close(self) -> None:
        if self.task is not None:
            self.task.close()
        self.db.close()


@pytest.fixture
def source(postgres: PostgresAddress, database: str) -> Iterator[Source]:
    made = Source(postgres, database)
    yield made
    made.close()


def table_with_large_values(db: psycopg.Connection[Any]) -> None:
    db.execute("CREATE TABLE a (id int PRIMARY KEY, n int, big text, raw bytea, list int[])")
    db.execute("ALTER TABLE a ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL, ALTER list SET STORAGE EXTERNAL")
    db.execute(
        "INSERT INTO a SELECT i, 0, %s, decode(repeat('ab', 9000), 'hex'), array(SELECT generate_series(1, 4000)) "
        "FROM generate_series(1, 3) i",
        (BIG,),
    )


def test_values_that_were_not_sent_are_read_from_the_table(source: Source) -> None:
    table_with_large_values(source.db)
    source.start(**RESELECT)
    source.db.execute("UPDATE a SET n = 1 WHERE id = 1")
    source.db.execute("UPDATE a SET id = 20 WHERE id = 2")
    source.db.execute("INSERT INTO a VALUES (4, 7)")
    update, delete, tombstone, create, insert = source.events(5)
    whole = {"big": BIG, "raw": "q" + "6ur" * 2999 + "6s=", "list": list(range(1, 4001))}
    assert len(update["after"]["raw"]) == 12_000
    assert {**update["after"], "raw": ""} == {"id": 1, "n": 1, **whole, "raw": ""}
    assert (delete["op"], delete["after"], tombstone) == ("d", None, None)
    assert (create["after"]["id"], create["after"]["big"], create["after"]["list"]) == (20, BIG, whole["list"])
    assert insert["after"] == {"id": 4, "n": 7, "big": None, "raw": None, "list": None}


def test_only_the_selected_columns_and_kinds_are_read_again(source: Source) -> None:
    table_with_large_values(source.db)
    lists = {"post.processors.again.reselect.columns.include.list": "public.a:big", "binary.handling.mode": "hex"}
    source.start(**RESELECT, **lists)
    source.db.execute("UPDATE a SET n = 1 WHERE id = 1")
    after = source.events(1)[0]["after"]
    assert (after["big"], after["raw"]) == (BIG, PLACEHOLDER)
    source.start(source.task and source.task.offset, **RESELECT, **{"post.processors.again.reselect.unavailable.values": "false"})
    source.db.execute("UPDATE a SET n = 2 WHERE id = 1")
    assert source.events(1)[0]["after"]["big"] == PLACEHOLDER


def test_a_null_is_read_again_and_shows_what_the_table_has_now(source: Source) -> None:
    source.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text, w text DEFAULT 'd')")
    task = source.start(**RESELECT)
    with source.db.transaction():
        source.db.execute("INSERT INTO a VALUES (1, NULL, NULL)")
        source.db.execute("UPDATE a SET v = 'later', w = 'later' WHERE id = 1")
    first = source.events(2)[0]
    # the default stands for NULL, which is therefore none
    assert first["after"] == {"id": 1, "v": "later", "w": "d"}
    task.close()
    source.start(task.offset, **RESELECT, **{"post.processors.again.reselect.null.values": "false"})
    with source.db.transaction():
        source.db.execute("INSERT INTO a VALUES (2, NULL, NULL)")
        source.db.execute("UPDATE a SET v = 'later' WHERE id = 2")
    assert source.events(2)[0]["after"]["v"] is None


def test_a_row_that_is_gone_is_said_or_fails_the_task(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    table_with_large_values(source.db)
    source.start(**RESELECT)
    with source.db.transaction():
        source.db.execute("UPDATE a SET n = 1 WHERE id = 1")
        source.db.execute("DELETE FROM a WHERE id = 1")
    assert source.events(2)[0]["after"]["big"] == PLACEHOLDER
    assert "Failed to find row in table public.a by its key (id)" in caplog.text
    offset = source.task and source.task.offset
    task = source.start(offset, **RESELECT, **{"post.processors.again.reselect.error.handling.mode": "FAIL"})
    with source.db.transaction():
        source.db.execute("UPDATE a SET n = 1 WHERE id = 2")
        source.db.execute("DELETE FROM a WHERE id = 2")
    with pytest.raises(FatalTaskError, match=r"Failed to find row in table public\.a by its key \(id\)"):
        task.poll_until(lambda: False)


def test_a_table_without_a_key_is_asked_by_the_key_of_its_records(source: Source) -> None:
    table_with_large_values(source.db)
    source.db.execute("ALTER TABLE a DROP CONSTRAINT a_pkey; ALTER TABLE a REPLICA IDENTITY FULL; ALTER TABLE a DROP COLUMN raw")
    keys = {"message.key.columns": "public.a:id", "post.processors.again.reselect.use.event.key": "true"}
    source.start(**RESELECT, **keys)
    with source.db.transaction():
        source.db.execute("INSERT INTO a VALUES (9, 1, NULL)")
        source.db.execute("UPDATE a SET big = 'later' WHERE id = 9")
    assert source.events(1)[0]["after"]["big"] == "later"


def test_updates_without_a_change_of_captured_columns_are_left_out(source: Source) -> None:
    source.db.execute("CREATE TABLE a (id int PRIMARY KEY, v text, hidden text); ALTER TABLE a REPLICA IDENTITY FULL")
    source.db.execute("CREATE TABLE b (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x', 'y'); INSERT INTO b VALUES (1, 'x')")
    given = {"skip.messages.without.change": "true", "column.exclude.list": "public.a.hidden", "provide.transaction.metadata": "true"}
    task = source.start(**given)
    with source.db.transaction():
        source.db.execute("UPDATE a SET hidden = 'z'")
        source.db.execute("UPDATE a SET v = 'x'")
        source.db.execute("UPDATE a SET v = 'z'")
        source.db.execute("UPDATE a SET id = 2")
        source.db.execute("UPDATE b SET v = v")
    source.events(1, "public.b")
    assert [(value["op"], value["transaction"]["total_order"]) for value in source.events(4) if value] == [("u", 1), ("d", 2), ("c", 3)]
    assert source.events(1, "public.b")[0]["op"] == "u"  # without the whole old row nobody can tell
    task.poll_until(lambda: any(value and value.get("status") == "END" for _, value in task.of("pg_props.transaction")))
    end = task.of("pg_props.transaction")[-1][1]
    assert end["event_count"] == 4


def test_the_slots_xmin_is_shown_and_stored(source: Source) -> None:
    source.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    task = source.start(**{"xmin.fetch.interval.ms": "1"})
    source.db.execute("INSERT INTO a VALUES (1)")
    shown = source.events(1)[0]["source"]["xmin"]
    (oldest,) = source.db.execute(
        "SELECT catalog_xmin::text::bigint FROM pg_replication_slots WHERE slot_name = current_database()"
    ).fetchone() or (0,)
    assert isinstance(shown, int)
    assert 0 < shown <= oldest
    assert task.offset is not None
    assert list(task.offset)[:3] == ["lsn_proc", "xmin", "messageType"]
    assert task.offset["xmin"] == shown


@pytest.fixture
def positions(source: Source) -> Callable[[], tuple[Any, Any]]:
    """Makes five events, and gives offsets: before them, and behind the third; the slot is confirmed behind none."""

    def make() -> tuple[Any, Any]:
        source.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
        task = source.start(**{"lsn.flush.mode": "manual"})
        source.db.execute("INSERT INTO a VALUES (0)")
        source.events(1)
        before, found = task.offset, []
        for number in range(1, 6):
            source.db.execute("INSERT INTO a VALUES (%s)", (number,))
            source.events(number + 1)
            found.append(task.offset)
        task.close()
        source.task = None
        free_slot(source)
        return before, found[2]

    return make


def free_slot(source: Source) -> None:
    """Wait until the server has noticed that the task's connection is gone."""
    sql = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = current_database() AND active"
    eventually(lambda: source.db.execute(sql).fetchone() == (0,), "free slot")


def confirmed(source: Source) -> int:
    sql = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = current_database()"
    ((lsn,),) = source.db.execute(sql).fetchall()
    return int(lsn)


@pytest.mark.parametrize(
    ("strategy", "ids", "moves"),
    [
        ("no_validation", [4, 5], False),
        ("trust_offset", [4, 5], True),
        ("trust_greater_lsn", [4, 5], True),
        ("trust_slot", [4, 5], False),
        ("garbage", [4, 5], False),
    ],
)
def test_an_offset_behind_the_slot_is_settled_as_the_strategy_says(
    source: Source,
    positions: Callable[[], tuple[Any, Any]],
    strategy: str,
    ids: list[int],
    moves: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, third = positions()
    at = confirmed(source)
    with caplog.at_level(logging.INFO), DirectTask(source.config(**{"offset.mismatch.strategy": strategy}), third) as task:
        task.poll_until(lambda: len(task.of("pg_props.public.a")) >= len(ids))
        assert [key["id"] for key, _ in task.of("pg_props.public.a")] == ids
    assert ("was advanced to the stored offset" in caplog.text) == moves
    assert third["lsn"] > at


@pytest.mark.parametrize(
    ("strategy", "ids"), [("trust_slot", [6]), ("trust_greater_lsn", [6]), ("trust_offset", [6]), ("no_validation", [6])]
)
def test_an_offset_before_the_slot_cannot_bring_back_what_the_server_has_discarded(
    source: Source, positions: Callable[[], tuple[Any, Any]], strategy: str, ids: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    before, _ = positions()
    source.db.execute(
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) FROM pg_replication_slots WHERE slot_name = current_database()"
    )
    source.db.execute("INSERT INTO a VALUES (6)")
    # whether the server still has the log of then is another question, and depends on its version
    given = {"offset.mismatch.strategy": strategy, "internal.log.position.check.enable": "false"}
    with caplog.at_level(logging.WARNING), DirectTask(source.config(**given), before) as task:
        task.poll_until(lambda: task.of("pg_props.public.a"))
        assert [key["id"] for key, _ in task.of("pg_props.public.a")] == ids
    assert ("changes between them are not read" in caplog.text) == (strategy in ("trust_slot", "trust_greater_lsn"))


def test_a_statement_is_given_up_after_its_time(source: Source) -> None:
    source.db.execute("CREATE TABLE a (id int PRIMARY KEY)")
    given = {"heartbeat.interval.ms": "100", "heartbeat.action.query": "SELECT pg_sleep(30)", "database.query.timeout.ms": "300"}
    config = source.config(**given, **{"errors.max.retries": "0"})
    with DirectTask(config) as task, pytest.raises(FatalTaskError, match="canceling statement due to user request"):
        task.poll_until(lambda: False, seconds=15)


def test_a_validation_that_gets_no_answer_says_so(source: Source) -> None:
    assert connection_problem(source.config()) is None
    with socket.create_server(("127.0.0.1", 0)) as silent:
        deaf = {"database.port": str(silent.getsockname()[1]), "connection.validation.timeout.ms": "1000"}
        assert connection_problem(source.config(**deaf)) == "Connection validation timed out after 1000 ms"


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_an_event_without_a_form_fails_the_task_or_is_left_out(source: Source, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    source.db.execute("CREATE TABLE a (id int PRIMARY KEY, n numeric(6,2) NOT NULL)")
    task = source.start(**{"event.processing.failure.handling.mode": mode})
    with source.db.transaction():
        source.db.execute("INSERT INTO a VALUES (1, 1)")
        source.db.execute("INSERT INTO a VALUES (2, 'NaN')")
        source.db.execute("INSERT INTO a VALUES (3, 3)")
    if mode == "fail":
        with pytest.raises(DataError, match="A value of the required column n has no form"):
            task.poll_until(lambda: False)
        return
    assert [value["after"]["id"] for value in source.events(2)] == [1, 3]
    assert ("Error while processing event at offset" in caplog.text) == (mode == "warn")
