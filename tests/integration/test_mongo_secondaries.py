"""Members that may lag behind the stream: a connection string that allows secondaries makes every read of a snapshot wait for what came
before the stream's position."""

from __future__ import annotations

from typing import Any

import pymongo
import pytest
from bson import Timestamp
from pymongo.database import Database
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from connect_py.app.services.mongo import MongoAddress
from connectors.mongodb.server.connection import adopt_cluster_time, cluster_time
from connectors.mongodb.snapshot.rows import collection_rows
from tests.mongo_task import MongoTask, config, database, signal

pytestmark = pytest.mark.services

Db = Database[dict[str, Any]]


class Sent(CommandListener):
    """What a client has sent, by the commands' names."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, dict[str, Any]]] = []

    def started(self, event: CommandStartedEvent) -> None:
        self.commands.append((event.command_name, dict(event.command)))

    def succeeded(self, event: CommandSucceededEvent) -> None:
        pass

    def failed(self, event: CommandFailedEvent) -> None:
        pass

    def waited_for(self) -> list[Timestamp | None]:
        """The times that the queries say a member must have reached."""
        return [command.get("readConcern", {}).get("afterClusterTime") for name, command in self.commands if name == "find"]


@pytest.fixture
def db(mongo: MongoAddress) -> Any:
    with database(mongo) as found:
        yield found


@pytest.mark.parametrize(("preference", "waits"), [("primary", False), ("secondaryPreferred", True), ("nearest", True)])
def test_a_member_that_may_lag_is_asked_to_wait(mongo: MongoAddress, db: Db, preference: str, *, waits: bool) -> None:
    db["items"].insert_many([{"_id": n} for n in range(5)])
    now = db.client.admin.command("hello")["operationTime"]
    sent = Sent()
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongo.uri, readPreference=preference, event_listeners=[sent])
    with client:
        rows = collection_rows(client, f"{db.name}.items", [({}, False)], since=(now.time, now.inc), batch_size=2)
        assert sum(map(len, rows)) == 5
    assert sent.waited_for() == [now if waits else None]


def test_a_new_client_knows_the_time_that_another_one_has_seen(mongo: MongoAddress, db: Db) -> None:
    db["items"].insert_one({"_id": 1})
    sent = Sent()
    with pymongo.MongoClient(mongo.uri, readPreference="nearest") as first:
        seen = cluster_time(first)
    with pymongo.MongoClient(mongo.uri, readPreference="nearest", event_listeners=[sent]) as second:
        adopt_cluster_time(second, seen)
    if seen is None:
        assert not mongo.is_real, "MongoDB tells the time with each answer"
        assert sent.commands == []
    else:
        assert next(name for name, command in sent.commands if "$clusterTime" in command) == "ping"
    with pymongo.MongoClient(mongo.uri) as primary:
        assert cluster_time(primary) is None


@pytest.mark.parametrize("threads", ["1", "2"])
def test_snapshots_of_every_kind_read_all_where_secondaries_are_allowed(mongo: MongoAddress, db: Db, threads: str) -> None:
    db["items"].insert_many([{"_id": n} for n in range(12)])
    settings = config(mongo, db, signal_data_collection=f"{db.name}.signals", snapshot_max_threads=threads)
    settings["mongodb.connection.string"] = mongo.uri + ("&" if "?" in mongo.uri else "/?") + "readPreference=secondaryPreferred"
    settings["internal.snapshot.chunk.rows"] = "5"
    topic = f"m.{db.name}.items"
    with MongoTask(settings) as task:
        task.stream()
        assert sorted(task.operations(topic)) == sorted(("r", str(n)) for n in range(12))
        for number, kind in enumerate(("blocking", "incremental"), 2):
            db["items"].insert_one({"_id": f"before {kind}"})
            signal(db, "execute-snapshot", data_collections=[f"{db.name}.items"], type=kind)
            task.poll_until(lambda count=number: [op for op, key in task.operations(topic) if key == "0"].count("r") == count, what=kind)
            task.poll_until(lambda name=kind: ("r", f'"before {name}"') in task.operations(topic), what=f"the last row of the {kind} one")
