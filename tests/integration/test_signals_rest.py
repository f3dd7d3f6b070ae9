"""Signals and notifications by REST: a worker, a PostgreSQL source, and a client that knows the worker's address alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import RefusedError, Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.folding import fold, payload
from tests.waiting import wait_until

pytestmark = pytest.mark.services

ROWS = 4000


@dataclass
class Source:
    """A connector `<tag>` over the tables `many` of ROWS rows and `few` of three, none of which was read when it started."""

    worker: Worker
    kafka: Kafka
    connection: psycopg.Connection
    config: dict[str, str]
    tag: str

    def signal(self, type_: str, id_: str | None = None, **data: object) -> str:
        body = {"type": type_, "data": {name.replace("_", "-"): value for name, value in data.items()}}
        answer = self.worker.request("POST", f"/connectors/{self.tag}/signals", {**body, "id": id_} if id_ else body)
        return str(answer["id"])

    def notes(self, since: int | None = None, limit: int = 1000) -> list[dict[str, Any]]:
        query = f"?limit={limit}" + (f"&since={since}" if since is not None else "")
        found: list[dict[str, Any]] = self.worker.request("GET", f"/connectors/{self.tag}/notifications{query}")["notifications"]
        return found

    def types(self) -> list[str]:
        return [note["type"] for note in self.notes() if note["aggregate_type"] == "Incremental Snapshot"]

    def read(self, table: str) -> list[int]:
        """Keys that snapshots brought, in order."""
        records = [payload(message.value()) for message in self.kafka.read(f"pg_{self.tag}.public.{table}") if message.value() is not None]
        return [record["after"]["id"] for record in records if record["op"] == "r"]


@pytest.fixture
def source(worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str) -> Iterator[Source]:
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE many (id integer PRIMARY KEY, v text); CREATE TABLE few (id integer PRIMARY KEY)")
        connection.execute("INSERT INTO many SELECT g, 'old' FROM generate_series(1, %s) g", (ROWS,))
        connection.execute("INSERT INTO few VALUES (1), (2), (3)")
        more = {"snapshot_mode": "no_data", "read_only": "true", "incremental_snapshot_chunk_size": "100"}
        config = postgres_source(postgres, database, tag, table_include_list="public.many,public.few", **more)
        worker.create(tag, config)
        yield Source(worker, kafka, connection, config, tag)
        worker.delete(tag)


def refusal(source: Source, body: object) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        source.worker.request("POST", f"/connectors/{source.tag}/signals", body)
    return caught.value


def test_a_snapshot_is_begun_paused_resumed_and_stopped(source: Source) -> None:
    assert source.signal("execute-snapshot", "first", data_collections=["public.many", "public.few"]) == "first"
    wait_until(lambda: source.types().count("IN_PROGRESS") >= 3, 30, "three chunks")
    source.signal("pause-snapshot")
    wait_until(lambda: "PAUSED" in source.types(), 30, "the notification PAUSED")
    last = source.notes()[-1]
    assert (last["type"], last["id"], last["additional_data"]["data_collections"]) == ("PAUSED", "first", "public.many,public.few")
    source.connection.execute("UPDATE many SET v = 'new' WHERE id = %s", (ROWS,))
    topic = f"pg_{source.tag}.public.many"
    wait_until(lambda: fold(source.kafka.read(topic)).get(ROWS), 30, "the streamed change")
    assert source.types().count("IN_PROGRESS") < ROWS / 100, "it was paused in the middle"
    source.signal("stop-snapshot", data_collections=["public.few"], type="incremental")
    source.signal("resume-snapshot")
    wait_until(lambda: "COMPLETED" in source.types(), 60, "the end of the snapshot")
    wait_until(lambda: len(set(source.read("many"))) >= ROWS - 1, 30, "the rows of the last window")
    assert source.read("few") == []
    assert len(source.read("many")) == len(set(source.read("many"))), "each row was read once"
    assert fold(source.kafka.read(topic)) == {
        row[0]: {"id": row[0], "v": row[1]} for row in source.connection.execute("SELECT * FROM many")
    }


def test_notifications_are_numbered_and_given_from_a_number_on(source: Source) -> None:
    made_up = source.signal("execute-snapshot", data_collections=["public.few"])
    wait_until(lambda: "COMPLETED" in source.types(), 30, "the end of the snapshot")
    notes = source.notes()
    numbers = [note["sequence"] for note in notes]
    assert numbers == sorted(set(numbers))
    begun = next(note for note in notes if note["type"] == "STARTED" and note["aggregate_type"] == "Incremental Snapshot")
    assert begun["id"] == made_up
    assert begun["task"] == 0
    assert begun["additional_data"] == {"connector_name": f"pg_{source.tag}", "data_collections": "public.few"}
    after = source.notes(since=begun["sequence"])
    assert [note["type"] for note in after] == ["IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
    assert source.notes(since=begun["sequence"], limit=1) == after[:1]
    assert source.notes(limit=2) == after[1:]
    assert source.notes(since=after[-1]["sequence"]) == []


def test_a_blocking_snapshot_is_asked_for_by_rest(source: Source) -> None:
    source.signal("execute-snapshot", data_collections=["public.few"], type="blocking")
    wait_until(lambda: source.read("few") == [1, 2, 3], 30, "the rows")
    source.connection.execute("INSERT INTO few VALUES (4)")
    wait_until(lambda: source.kafka.count(f"pg_{source.tag}.public.few") == 4, 30, "the streamed row")


def test_what_cannot_be_carried_out_is_refused_with_what_to_do(source: Source, tmp_path: Path) -> None:
    cases = [
        ({"type": "execute-snapsot", "data": {}}, "There is no signal of the type 'execute-snapsot'"),
        ({"type": "execute-snapshot", "data": {}}, "'data-collections' is missing"),
        ({"type": "execute-snapshot", "data": {"data-collections": ["a"], "type": "both"}}, "incremental or blocking"),
        ({"type": "execute-snapshot", "data": {"data-collections": ["a"], "additional-conditions": ["x"]}}, "additional-conditions"),
        ({"type": ""}, '"type" must be a text'),
        ({"type": "log", "data": "x"}, '"data" must be a JSON object'),
    ]
    for body, text in cases:
        error = refusal(source, body)
        assert (error.status, text in error.message) == (400, True), error.message
    assert [note for note in source.notes() if note["aggregate_type"] == "Incremental Snapshot"] == []
    worker, name = source.worker, source.tag
    with pytest.raises(RefusedError, match="404"):
        worker.request("POST", f"/connectors/{name}-other/signals", {"type": "log"})
    with pytest.raises(RefusedError, match="404"):
        worker.request("GET", f"/connectors/{name}-other/notifications")
    # a source without signals, a sink, a source that has chosen other channels, one that can write no watermarks
    lines = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), "topic": f"{name}-lines"}
    (tmp_path / "lines").touch()
    out = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": f"{name}-lines"}
    for kind, config in (("lines", lines), ("out", out)):
        worker.create(f"{name}-{kind}", config)
        with pytest.raises(RefusedError, match=r"400: .*takes no signals"):
            worker.request("POST", f"/connectors/{name}-{kind}/signals", {"type": "log", "data": {"message": "x"}})
        worker.delete(f"{name}-{kind}")
    worker.request("PUT", f"/connectors/{name}/config", {**source.config, "signal.enabled.channels": "source,in-process"})
    wait_until(lambda: "add 'rest' to its property signal.enabled.channels" in _answer(source), 30, "the refusal")
    worker.request("PUT", f"/connectors/{name}/config", {**source.config, "read.only": "false"})
    wait_until(lambda: "signal.data.collection" in _answer(source), 30, "the refusal")


def _answer(source: Source) -> str:
    try:
        source.signal("execute-snapshot", data_collections=["public.few"])
    except RefusedError as error:
        return error.message
    return ""


def test_a_connector_that_rests_says_so(source: Source) -> None:
    source.worker.request("PUT", f"/connectors/{source.tag}/pause")
    source.worker.wait_for(source.tag, "PAUSED")
    error = refusal(source, {"type": "log", "data": {"message": "x"}})
    assert (error.status, "Resume it" in error.message) == (409, True)
    source.worker.request("PUT", f"/connectors/{source.tag}/resume")
    source.worker.wait_for(source.tag, "RUNNING")
    assert source.signal("log", message="here again")


def test_no_task_means_503(source: Source) -> None:
    source.worker.request("PUT", f"/connectors/{source.tag}/config", {**source.config, "signal.enabled.channels": "no-such-channel"})
    source.worker.wait_for(source.tag, "FAILED")
    error = refusal(source, {"type": "log", "data": {"message": "x"}})
    assert (error.status, "task 0 is FAILED" in error.message) == (503, True)


def test_a_signal_that_a_killed_task_had_taken_is_carried_out_by_the_next_one(source: Source) -> None:
    name = source.tag = f"{source.tag}-again"
    config = {**source.config, "slot.name": f"{source.config['slot.name']}_again", "topic.prefix": f"pg_{name}", "snapshot.mode": "initial"}
    before = set(source.worker.children())
    source.worker.create(name, {**config, "table.include.list": "public.few", "streaming.delay.ms": "5000"})
    # the initial snapshot is followed by a pause, in which the task takes signals and carries out none
    wait_until(lambda: "COMPLETED" in [note["type"] for note in source.notes()], 60, "the initial snapshot")
    source.signal("execute-snapshot", "before the kill", data_collections=["public.few"])
    for pid in set(source.worker.children()) - before:
        os.kill(pid, signal.SIGKILL)

    def told() -> list[str]:
        return [note["type"] for note in source.notes() if note["id"] == "before the kill"]

    wait_until(lambda: "COMPLETED" in told(), 60, "the snapshot that was asked for before the kill")
    assert told().count("STARTED") == 1
    source.worker.delete(name)
