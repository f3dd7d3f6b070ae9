"""The incremental snapshot as its design tells it, through a worker, with nothing but SQL: a row in the signal table, windows between two
watermarks, and the six keys of which some change in a window.

The signal table has a trigger that lets the connector's high watermarks through one at a time, when the test allows it. So the changes lie
between the watermarks of one chunk, for certain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import fold, payload
from tests.waiting import wait_until

pytestmark = pytest.mark.services

#: Held by the test: a row of the type snapshot-window-close waits for it.
GATE = 4711
TABLES = f"""
CREATE TABLE signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048));
CREATE TABLE k (id integer PRIMARY KEY, v text);
ALTER TABLE k REPLICA IDENTITY FULL;
INSERT INTO k SELECT g, 'K' || g || ' as it was' FROM generate_series(1, 6) g;
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.type = 'snapshot-window-close' THEN
    PERFORM pg_advisory_lock({GATE});
    PERFORM pg_advisory_unlock({GATE});
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON signal FOR EACH ROW EXECUTE FUNCTION gate();
"""


@pytest.fixture
def connection(postgres: PostgresAddress, database: str) -> Iterator[psycopg.Connection]:
    with postgres.connect(database) as connection:
        connection.execute(TABLES)
        yield connection


def test_of_a_row_that_is_read_and_changed_in_one_window_the_later_change_wins(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, connection: psycopg.Connection
) -> None:
    more = {"snapshot_mode": "no_data", "signal_data_collection": "public.signal", "incremental_snapshot_chunk_size": "6"}
    worker.create(tag, postgres_source(postgres, database, tag, table_include_list="public.k", **more))
    wait_until(lambda: _streams(connection, tag), 60, "the stream")
    connection.execute("SELECT pg_advisory_lock(%s)", (GATE,))
    signal = {"data-collections": ["public.k"], "type": "incremental"}
    connection.execute("INSERT INTO signal VALUES ('demo', 'execute-snapshot', %s)", (json.dumps(signal),))
    wait_until(lambda: _waiting(connection), 60, "the high watermark of the first chunk")
    connection.execute("UPDATE k SET v = 'K1 changed' WHERE id = 1")
    connection.execute("DELETE FROM k WHERE id = 3")
    connection.execute("UPDATE k SET v = 'K4 changed' WHERE id = 4; UPDATE k SET v = 'K4 changed again' WHERE id = 4")
    connection.execute("INSERT INTO k VALUES (7, 'K7 is new')")
    connection.execute("SELECT pg_advisory_unlock(%s)", (GATE,))
    topic = f"pg_{tag}.public.k"
    wait_until(lambda: len(kafka.read(topic)) >= 9, 60, "the window's end")
    wait_until(lambda: _last_type(worker, tag) == "COMPLETED", 60, "the snapshot's end")
    events = [_event(message) for message in kafka.read(topic)]
    assert events == [
        (1, "u", "K1 changed"),
        (3, "d", None),
        (3, None, None),
        (4, "u", "K4 changed"),
        (4, "u", "K4 changed again"),
        (7, "c", "K7 is new"),
        # at the place of the high watermark: what was read and did not change
        (2, "r", "K2 as it was"),
        (5, "r", "K5 as it was"),
        (6, "r", "K6 as it was"),
    ]
    rows = connection.execute("SELECT id, v FROM k").fetchall()
    assert fold(kafka.read(topic)) == {id_: {"id": id_, "v": v} for id_, v in rows}
    types = [row[0] for row in connection.execute("SELECT type FROM signal WHERE id <> 'demo'").fetchall()]
    assert sorted(types) == sorted(["snapshot-window-open", "snapshot-window-close"] * (len(types) // 2))
    assert types
    worker.delete(tag)


def _streams(connection: psycopg.Connection, tag: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active", (f"slot_{tag}",)).fetchone() is not None


def _waiting(connection: psycopg.Connection) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
    row = connection.execute(query, (GATE,)).fetchone()
    return row is not None and row[0] > 0


def _last_type(worker: Worker, connector: str) -> str | None:
    notes = worker.request("GET", f"/connectors/{connector}/notifications?limit=1")["notifications"]
    return notes[0]["type"] if notes else None


def _event(message: Any) -> tuple[int, str | None, str | None]:
    value = None if message.value() is None else payload(message.value())
    after = (value or {}).get("after") or {}
    return payload(message.key())["id"], (value or {}).get("op"), after.get("v")
