"""kill -9 of the worker or of a MongoDB task's process, at random moments of a snapshot, of streaming and of an incremental snapshot.

Every change of a document also inserts a line into a journal, which is captured too. At the end the topic, folded by key, must be the
collection, and every line of the journal must have become an event. No document that an incremental snapshot read may follow a newer event
of its key; those of an initial snapshot have no common moment, and the stream brings each of them up to date.

A seed is printed; give it as FAULTS_SEED to repeat a run's choices. FAULTS_KILLS is the number of kills in each test: 15 make 30 in all.
"""

from __future__ import annotations

import json
import os
import random
import signal as signals
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from pymongo.database import Database

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.worker import Worker
from tests.fault_counts import Fault, note, note_changes
from tests.fix_kafka import Kafka
from tests.folding import payload
from tests.mongo_task import config, database, signal
from tests.seeds import size
from tests.waiting import eventually, wait_until

#: In each test; more by hand.
KILLS = size("FAULTS_KILLS", 2, 6)
pytestmark = [pytest.mark.services, pytest.mark.timeout(600 + 60 * KILLS)]

DOCUMENTS = 4000 + 2000 * KILLS

Db = Database[dict[str, Any]]


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))
    print(f"FAULTS_SEED={seed}")
    return random.Random(seed)


class Changes(threading.Thread):
    """Writes random changes until told to stop, each with a line of the journal."""

    def __init__(self, db: Db, dice: random.Random) -> None:
        super().__init__(daemon=True)
        self._db, self._dice = db, dice
        self._enough = threading.Event()

    def run(self) -> None:
        version = 1
        while not self._enough.wait(0.005):
            version += 1
            key = self._dice.randrange(DOCUMENTS)
            if self._dice.random() < 0.2:
                self._db["items"].delete_one({"_id": key})
            else:
                self._db["items"].replace_one({"_id": key}, {"version": version}, upsert=True)
            self._db.journal.insert_one({"_id": version, "key": key})

    def finish(self) -> None:
        self._enough.set()
        self.join()


@contextmanager
def changing(db: Db, dice: random.Random) -> Iterator[None]:
    changes = Changes(db, dice)
    changes.start()
    try:
        yield
    finally:
        changes.finish()


def kill_and_bring_back(worker: Worker, connector: str, victim: str) -> None:
    if victim == "worker":
        worker.kill()
        note(Fault.KILLED_WORKER, "MongoDB")
        worker.restart()
    else:
        for pid in worker.children():
            os.kill(pid, signals.SIGKILL)
        note(Fault.KILLED_TASK, "MongoDB")
    wait_until(worker.children, 60, "a process for the task", worker.service.is_alive)
    worker.wait_for(connector, "RUNNING")


def events(kafka: Kafka, topic: str) -> list[tuple[str, str, dict[str, Any] | None, str]]:
    """Key, operation, document, and where in a snapshot, of every event but tombstones."""
    found = []
    for message in kafka.read(topic):
        if message.value() is None:
            continue
        value = payload(message.value())
        found.append((payload(message.key())["id"], value["op"], json.loads(value["after"] or "null"), value["source"]["snapshot"]))
    return found


def await_equal(kafka: Kafka, prefix: str, db: Db) -> None:
    """Wait until the topic is the collection and the journal's topic has all of its lines."""
    wanted = {str(d["_id"]): d for d in db["items"].find()}

    def found() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, op, document, _ in events(kafka, f"{prefix}.items"):
            if op == "d":
                found.pop(key, None)
            else:
                found[key] = document
        return found

    def difference() -> str:
        now = found()
        other = [(key, now.get(key), wanted.get(key)) for key in now.keys() | wanted.keys() if now.get(key) != wanted.get(key)]
        return f"the topic is not the collection in {len(other)} documents: {other[:5]}"

    eventually(lambda: found() == wanted, difference, 120, pause=0.5)
    lines = {str(d["_id"]) for d in db.journal.find()}
    assert lines, "nothing changed"
    note_changes("MongoDB", len(lines))
    wait_until(lambda: not lines - {key for key, *_ in events(kafka, f"{prefix}.journal")}, 60, "the journal's lines")


def has(kafka: Kafka, topic: str, count: float) -> bool:
    return kafka.count(topic) >= count


@pytest.mark.long
def test_a_snapshot_that_is_killed_again_and_again_goes_on(
    make_worker: Callable[..., Worker], kafka: Kafka, mongo: MongoAddress, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    with database(mongo) as db:
        db["items"].insert_many([{"_id": n, "version": 1} for n in range(DOCUMENTS)])
        prefix = f"kill_{tag}.{db.name}"
        settings = {**config(mongo, db), "topic.prefix": f"kill_{tag}", "internal.snapshot.chunk.rows": "500", "snapshot.fetch.size": "100"}
        with changing(db, dice):
            worker.create(tag, settings)
            before = 0.0
            for round_number in range(KILLS):
                far = before + dice.uniform(0.2, 1) * DOCUMENTS / (KILLS + 1)
                wait_until(partial(has, kafka, f"{prefix}.items", far), 60, "a part of the snapshot")
                kill_and_bring_back(worker, tag, dice.choice(["worker", "task"]) if round_number else "task")
                before = kafka.count(f"{prefix}.items")
            wait_until(partial(has, kafka, f"{prefix}.journal", 1), 60, "the stream")
        await_equal(kafka, prefix, db)


def test_streaming_and_incremental_snapshots_survive_kills_and_nothing_stale_overwrites(
    make_worker: Callable[..., Worker], kafka: Kafka, mongo: MongoAddress, tag: str, dice: random.Random
) -> None:
    worker = make_worker()
    with database(mongo) as db:
        db["items"].insert_many([{"_id": n, "version": 1} for n in range(DOCUMENTS)])
        prefix = f"kill_{tag}.{db.name}"
        settings = config(mongo, db, snapshot_mode="no_data", signal_data_collection=f"{db.name}.signals")
        # an event as it happened: a look-up would show a later document
        settings |= {"topic.prefix": f"kill_{tag}", "incremental.snapshot.chunk.size": "200", "capture.mode": "change_streams"}
        worker.create(tag, settings)
        db.journal.insert_one({"_id": 0})
        wait_until(partial(streams, kafka, f"{prefix}.journal", db), 60, "the stream")
        with changing(db, dice):
            signal(db, "execute-snapshot", type="incremental", data_collections=[f"{db.name}.items"])
            before = 0.0
            for _ in range(KILLS):
                far = before + dice.uniform(0.2, 1) * DOCUMENTS / (KILLS + 1)
                wait_until(partial(has, kafka, f"{prefix}.items", far), 60, "a part of the snapshot")
                kill_and_bring_back(worker, tag, dice.choice(["worker", "task"]))
                before = kafka.count(f"{prefix}.items")
            wait_until(partial(is_done, worker, tag), 120, "the snapshot's end")
        await_equal(kafka, prefix, db)
        newest: dict[str, float] = {}
        stale = []
        for key, op, document, _ in events(kafka, f"{prefix}.items"):
            version = newest.get(key, 0) + 0.5 if document is None else float(document["version"])
            if op == "r" and version < newest.get(key, 0):
                stale.append((key, version, newest[key]))
            newest[key] = version
        assert stale == []


def streams(kafka: Kafka, topic: str, db: Db) -> bool:
    """A change after the stream's beginning is seen; what came before it is nobody's."""
    db.journal.replace_one({"_id": 0}, {"at": time.monotonic()})
    return kafka.count(topic) > 0


def is_done(worker: Worker, connector: str) -> bool:
    found = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return bool(found) and not any(name.startswith("incremental_snapshot") for name in found[0]["offset"])
