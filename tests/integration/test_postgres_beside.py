"""Heartbeats, transaction metadata, custom signals and modes of a PostgreSQL source on a real server."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.errors import ConfigError
from connectors.engine.signal.records import Signal
from tests.fix_postgres import postgres_source
from tests.postgres_task import DirectTask

pytestmark = pytest.mark.services


@pytest.fixture
def connection(postgres: PostgresAddress, database: str) -> Iterator[psycopg.Connection]:
    with postgres.connect(database) as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, v text); ALTER TABLE t REPLICA IDENTITY FULL")
        connection.execute("CREATE TABLE unseen (id integer PRIMARY KEY)")
        yield connection


def start(postgres: PostgresAddress, database: str, tag: str, offset: Any = None, **more: str) -> DirectTask:
    settings = {"snapshot_mode": "no_data", "table_include_list": "public.t", **more}
    task = DirectTask(postgres_source(postgres, database, tag, **settings), offset)
    try:
        task.poll_until(task.is_streaming, what="the stream")
    except BaseException:
        task.close()
        raise
    return task


def test_heartbeats_move_the_offset_past_what_is_filtered(
    postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection
) -> None:
    query = "INSERT INTO unseen SELECT count(*) FROM unseen"
    more = {"heartbeat_interval_ms": "50", "heartbeat_action_query": query, "topic_heartbeat_prefix": "__beats"}
    with start(postgres, database, tag, **more) as task:
        for _ in range(3):
            task.poll()
        assert task.events == [], "there is no offset yet that a heartbeat could carry"
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        topic = f"__beats.pg_{tag}"
        task.poll_until(lambda: len(task.of(topic)) >= 4, what="heartbeats")
        key, value = task.of(topic)[0]
        assert key == {"serverName": f"pg_{tag}"}
        assert list(value) == ["ts_ms"]
        positions = [offset["lsn_commit"] for events, offset in task.batches if events and events[-1][0] == topic]
        assert positions == sorted(positions)
        assert positions[-1] > positions[0], "the query's own, filtered transactions move the offset"
        assert task.offset is not None
        assert task.offset["messageType"] == "COMMIT"
        offset = task.offset
    connection.execute("INSERT INTO t VALUES (2, 'after')")
    with start(postgres, database, tag, offset) as task:
        task.poll_until(lambda: task.of(f"pg_{tag}.public.t"), what="what came after the last heartbeat")
        assert [key["id"] for key, _ in task.of(f"pg_{tag}.public.t")] == [2]


def test_a_heartbeat_query_that_fails_stops_nothing(
    postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with start(postgres, database, tag, heartbeat_interval_ms="50", heartbeat_action_query="SELECT no_such_column") as task:
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        task.poll_until(lambda: len(task.of(f"__debezium-heartbeat.pg_{tag}")) >= 2, what="heartbeats")
        assert any("heartbeat.action.query" in line for line in caplog.messages)


def test_transactions_are_counted_through_a_key_change_a_filter_and_a_restart(
    postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection
) -> None:
    more = {"provide_transaction_metadata": "true"}
    with start(postgres, database, tag, **more) as task:
        with connection.transaction():
            connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
            connection.execute("INSERT INTO unseen VALUES (100)")
            connection.execute("UPDATE t SET id = 3 WHERE id = 1")
            connection.execute("UPDATE t SET v = 'c' WHERE id = 2")
        with connection.transaction():
            connection.execute("INSERT INTO unseen VALUES (101)")
        task.poll_until(lambda: len(task.of(f"pg_{tag}.transaction")) == 4, what="two transactions")
        boundaries = [value for _, value in task.of(f"pg_{tag}.transaction")]
        counted = [{"data_collection": "public.t", "event_count": 5}]
        assert [(value["status"], value["event_count"], value["data_collections"]) for value in boundaries] == [
            ("BEGIN", None, None),
            ("END", 5, counted),
            ("BEGIN", None, None),
            ("END", 0, []),
        ]
        blocks = [value["transaction"] for _, value in task.of(f"pg_{tag}.public.t") if value is not None]
        assert [(block["total_order"], block["data_collection_order"]) for block in blocks] == [(n, n) for n in range(1, 6)]
        number = {block["id"].split(":")[0] for block in blocks}
        assert number == {boundaries[0]["id"].split(":")[0]} == {boundaries[1]["id"].split(":")[0]}
        assert task.offset is not None
        assert task.offset["messageType"] == "COMMIT"


def test_a_transaction_goes_on_after_a_restart_in_its_middle(
    postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection
) -> None:
    events: list[Any] = []
    boundaries: list[Any] = []
    offset = None
    for stop_early in (True, False):
        with start(postgres, database, tag, offset, provide_transaction_metadata="true") as task:
            if stop_early:
                with connection.transaction():
                    connection.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g")
                task.poll_until(lambda task=task: task.of(f"pg_{tag}.public.t"), what="a part of the transaction")
                assert task.offset is not None
                assert task.offset["transaction_data_collection_order_public.t"] < 5000
            else:
                task.poll_until(lambda task=task: task.of(f"pg_{tag}.transaction"), what="its end")
            offset = task.offset
            events += [value["transaction"]["total_order"] for _, value in task.of(f"pg_{tag}.public.t")]
            boundaries += [(value["status"], value["event_count"]) for _, value in task.of(f"pg_{tag}.transaction")]
    assert events == list(range(1, 5001))
    assert boundaries == [("BEGIN", None), ("END", 5000)]


#: A package with a signal and a snapshot mode.
PACKAGE = """
from connectors.engine.snapshot.modes import SnapshotMode

SEEN = []


def refresh(signal):
    SEEN.append(signal)


def mine(config):
    return SnapshotMode("mine", True, True, False, streams=True)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It is installed."""
    (tmp_path / "beside_package.py").write_text(PACKAGE)
    info = tmp_path / "beside_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beside-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[connect_py.signals]\nrefresh-cache = beside_package:refresh\n[connect_py.snapshotters]\nmine = beside_package:mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("beside_package", None)


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_signal(postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection) -> None:
    seen: list[Signal] = importlib.import_module("beside_package").SEEN
    connection.execute("CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))")
    with start(postgres, database, tag, signal_data_collection="public.signal") as task:
        connection.execute("INSERT INTO signal VALUES ('1', 'refresh-cache', '{\"of\": \"t\"}')")
        task.poll_until(lambda: seen, what="the signal")
        assert (seen[0].id, seen[0].data, seen[0].channel) == ("1", {"of": "t"}, "source")


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_snapshot_mode(postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    more = {"snapshot_mode": "custom", "snapshot_mode_custom_name": "mine"}
    with start(postgres, database, tag, **more) as task:
        assert [value["op"] for _, value in task.of(f"pg_{tag}.public.t")] == ["r"]
    with pytest.raises(ConfigError, match="Unable to find other snapshotter"):
        start(postgres, database, tag, **{**more, "snapshot_mode_custom_name": "other"})


def test_a_statement_is_read_in_a_tables_place(postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5) g")
    config = postgres_source(postgres, database, tag, table_include_list="public.t", snapshot_locking_mode="shared")
    config["snapshot.select.statement.overrides"] = "public.t,public.other"
    config["snapshot.select.statement.overrides.public.t"] = "SELECT * FROM t WHERE id > 3 ORDER BY id DESC;"
    with DirectTask(config) as task:
        task.poll_until(task.is_streaming, what="the stream")
        assert [key["id"] for key, _ in task.of(f"pg_{tag}.public.t")] == [5, 4]


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The example package of the guide to plugins, with the metadata that installing it would leave."""
    example = Path(__file__).resolve().parents[2] / "docs" / "example-plugin"
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / f"acme_connect-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in entries.items()) for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(metadata.parent))
    monkeypatch.syspath_prepend(str(example))


@pytest.mark.usefixtures("acme")
def test_the_examples_signal_and_channels_serve_a_source(
    postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    folder, journal = tmp_path / "signals", tmp_path / "journal"
    folder.mkdir()
    more = {
        "signal_enabled_channels": "acme-folder",
        "signal_acme_folder": str(folder),
        "notification_enabled_channels": "acme-journal",
        "notification_acme_journal": str(journal),
        "signal_poll_interval_ms": "10",
        "read_only": "true",
    }
    with start(postgres, database, tag, **more) as task:
        (folder / "1.json").write_text('{"id": "a", "type": "acme-announce", "data": {"text": "hello"}}')
        (folder / "2.json").write_text('{"id": "b", "type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}')
        task.poll_until(lambda: task.of(f"pg_{tag}.public.t"), what="the row")
        task.poll_until(lambda: not list(folder.iterdir()), what="the files to be removed")
        told = [json.loads(line) for line in journal.read_text().splitlines()]
        assert [(line["connector"], line["id"], line["type"]) for line in told if line["id"] == "b"] == [
            ("direct", "b", type_) for type_ in ("STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED")
        ]
        assert "Announcement a: hello" in caplog.messages
        journal.unlink()
        journal.mkdir()
        (folder / "3.json").write_text('{"id": "c", "type": "acme-announce", "data": 7}')
        (folder / "4.json").write_text('{"id": "d", "type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}')
        task.poll_until(lambda: len(task.of(f"pg_{tag}.public.t")) == 2, what="the row, although the journal fails and a signal is none")
