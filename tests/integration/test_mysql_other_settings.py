"""Servers that are set up otherwise: without GTIDs, with statements in the log; and statements of heartbeats that fail."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress, MySqlServer, mysqld
from connect_py.app.services.process import ServiceError
from connect_py.errors import ConnectError, FatalTaskError
from connectors.mysql.connector import MySqlConnector
from offsets.schema_history import KafkaSchemaHistory
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka
from tests.mysql_replicas import run

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlAddress]:
    """A server without GTIDs whose log holds statements unless a session wants rows."""
    try:
        mysqld()
    except ServiceError as error:
        pytest.skip(str(error))
    options = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--binlog-format=STATEMENT")
    server = MySqlServer(tmp_path_factory.mktemp("plain"), *options)
    yield server
    server.stop()


def make_table(server: MySqlAddress) -> str:
    """A database with the table `t`, which has one row."""
    name = f"settings_{uuid.uuid4().hex[:8]}"
    run(server, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)", f"INSERT INTO {name}.t VALUES (1)")
    return name


def test_a_log_of_statements_is_refused_but_by_a_snapshot_that_never_reads_it(plain: MySqlAddress, kafka: Kafka) -> None:
    name = make_table(plain)
    with (
        DirectTask(task_config(plain, kafka, name)) as task,
        pytest.raises(FatalTaskError, match=r"^The database server is not configured to use a ROW binlog_format, which is required"),
    ):
        task.poll_until(lambda: task.rows("t"), seconds=20)
    with DirectTask(task_config(plain, kafka, name, **{"snapshot.mode": "initial_only"})) as only:
        only.poll_until(lambda: only.rows("t"))
    assert only.rows("t") == [("r", {"id": 1})]


def test_a_statement_in_place_of_rows_is_warned_about(plain: MySqlAddress, kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    name = make_table(plain)
    run(plain, "SET GLOBAL binlog_format = ROW")
    try:
        with caplog.at_level(logging.WARNING), DirectTask(task_config(plain, kafka, name)) as task:
            task.poll_until(lambda: task.rows("t"))
            run(plain, "SET binlog_format = STATEMENT", f"INSERT INTO {name}.t VALUES (2)")
            run(plain, f"INSERT INTO {name}.t VALUES (3)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
    finally:
        run(plain, "SET GLOBAL binlog_format = STATEMENT")
    assert task.rows("t") == [("r", {"id": 1}), ("c", {"id": 3})]
    assert f"INSERT INTO {name}.t VALUES (2)" in caplog.text


def test_without_gtids_nothing_is_read_only_and_moments_are_seconds(plain: MySqlAddress, mysql: MySqlAddress, kafka: Kafka) -> None:
    name = make_table(plain)
    run(plain, "SET GLOBAL binlog_format = ROW")
    try:
        with (
            DirectTask(task_config(plain, kafka, name, **{"read.only": "true"})) as task,
            pytest.raises(FatalTaskError, match=r"^Read only connection requires GTID_MODE to be ON\."),
        ):
            task.poll_until(lambda: False, seconds=20)
        sources = {server: moments(server, kafka) for server in (plain, mysql)}
    finally:
        run(plain, "SET GLOBAL binlog_format = STATEMENT")
    assert all(source["ts_us"] % 1_000_000 == 0 and source["gtid"] is None for source in sources[plain])
    # the clock of five transactions does not stand at a whole millisecond each time
    assert any(source["ts_us"] % 1000 for source in sources[mysql]) and all(source["gtid"] for source in sources[mysql])


def moments(server: MySqlAddress, kafka: Kafka) -> list[dict[str, Any]]:
    """Source blocks of five changes."""
    name = make_table(server)
    with DirectTask(task_config(server, kafka, name)) as task:
        task.poll_until(lambda: task.rows("t"))
        for number in range(2, 7):
            run(server, f"INSERT INTO {name}.t VALUES ({number})")
        task.poll_until(lambda: len(task.rows("t")) == 6)
    return [value["source"] for topic, value in task.records if topic.endswith(".t") and value["op"] == "c"]


@pytest.mark.parametrize("state", ["42000", "3D000", "42S02"])
def test_a_heartbeats_statement_that_cannot_ever_succeed_fails_the_task_and_others_are_logged(
    mysql: MySqlAddress, kafka: Kafka, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = make_table(mysql)
    statement = {"42000": "THIS IS NOT SQL", "3D000": "INSERT INTO nowhere VALUES (1)", "42S02": f"INSERT INTO {name}.missing VALUES (1)"}
    more = {"heartbeat.interval.ms": "100", "heartbeat.action.query": statement[state]}
    with caplog.at_level(logging.ERROR), DirectTask(task_config(mysql, kafka, name, **more)) as task:
        if state == "42S02":
            task.poll_until(lambda: "streaming goes on" in caplog.text)
            run(mysql, f"INSERT INTO {name}.t VALUES (2)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
            return
        with pytest.raises(ConnectError, match=rf"Could not execute heartbeat action query \(Error: {state}\)"):
            task.poll_until(lambda: False, seconds=20)


def test_a_history_that_grows_while_it_is_read_is_warned_about(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    history = KafkaSchemaHistory(f"history_{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap})
    record = {"source": {"server": "a"}, "position": {}, "ddl": "SET x=1"}
    history.create()
    history.append(record)
    records = history.read()
    assert next(records) == record
    history.append(record)
    with caplog.at_level(logging.WARNING):
        assert list(records) == []
    assert "grew from 1 to 2 records while it was read" in caplog.text
    caplog.clear()
    assert len(list(history.read())) == 2 and "grew" not in caplog.text
    history.close()


def test_the_first_statement_of_a_history_is_kept_without_delay(kafka: Kafka) -> None:
    """The stream, or the snapshot, waits for it: an idempotent client that is used at once takes half a second, or a whole one."""
    taken = []
    for _ in range(4):
        history = KafkaSchemaHistory(f"history_{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap})
        history.create()
        began = time.monotonic()
        history.append({"source": {"server": "a"}, "position": {}, "ddl": "SET x=1"})
        taken.append(time.monotonic() - began)
        history.close()
    assert min(taken) < 0.4, taken


def test_a_way_to_lock_that_only_a_class_can_ask_for_is_no_value(mysql: MySqlAddress, kafka: Kafka) -> None:
    config = {**task_config(mysql, kafka, "none"), "snapshot.locking.mode": "minimal_at_least_once"}
    found = {value.name: value.errors for value in MySqlConnector().validate(config)}
    assert any("Value must be one of" in error for error in found["snapshot.locking.mode"])


def test_a_statement_in_place_of_a_table_may_leave_columns_out(mysql: MySqlAddress, kafka: Kafka) -> None:
    name = make_table(mysql)
    run(mysql, f"CREATE TABLE {name}.w (id INT PRIMARY KEY, doc TEXT, at DATE)", f"INSERT INTO {name}.w VALUES (1, 'x', '2020-01-01')")
    chosen = "snapshot.select.statement.overrides"
    more = {chosen: f"{name}.w", f"{chosen}.{name}.w": f"SELECT at AS AT, id FROM {name}.w;"}
    with DirectTask(task_config(mysql, kafka, name, **more)) as task:
        task.poll_until(lambda: task.rows("w"))
    assert task.rows("w") == [("r", {"id": 1, "doc": None, "at": 18262})]


def test_decimals_with_leading_zeros_are_the_same_texts_in_a_snapshot_and_in_the_stream(mysql: MySqlAddress, kafka: Kafka) -> None:
    name = make_table(mysql)
    texts = ["1.50", "0.25", "0.00", "9999.99"]
    run(mysql, f"CREATE TABLE {name}.z (id INT PRIMARY KEY, d DECIMAL(6,2) ZEROFILL, n DECIMAL(4) ZEROFILL)")
    run(mysql, *(f"INSERT INTO {name}.z VALUES ({i}, {text}, 0)" for i, text in enumerate(texts)))
    with DirectTask(task_config(mysql, kafka, name, **{"decimal.handling.mode": "string"})) as task:
        task.poll_until(lambda: len(task.rows("z")) == len(texts))
        run(mysql, *(f"INSERT INTO {name}.z VALUES ({i}, {text}, 0)" for i, text in enumerate(texts, 10)))
        task.poll_until(lambda: len(task.rows("z")) == 2 * len(texts))
    shown = [(op, row["d"], row["n"]) for op, row in task.rows("z")]
    assert shown == [(op, text, "0") for op in "rc" for text in texts]


def test_databases_show_where_the_history_keeps_only_captured_tables(mysql: MySqlAddress, kafka: Kafka) -> None:
    name = make_table(mysql)
    later = f"later_{uuid.uuid4().hex[:8]}"
    more = {"schema.history.internal.store.only.captured.tables.ddl": "true", "include.schema.changes": "true"}
    more["database.include.list"] = f"{name},{later}"
    with DirectTask(task_config(mysql, kafka, name, **more)) as task:
        task.poll_until(lambda: task.rows("t"))
        run(mysql, f"CREATE DATABASE {later}", f"DROP DATABASE {later}", f"INSERT INTO {name}.t VALUES (2)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    statements = [value["ddl"] for _, value in task.records if isinstance(value, dict) and later in str(value.get("ddl"))]
    assert statements == [f"CREATE DATABASE {later}", f"DROP DATABASE {later}"]
