"""A MongoDB source task without a worker; see `postgres_task`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo.database import Database

from connect_py.app.services.mongo import MongoAddress
from connectors.engine.batches import Tuning
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.mongodb.task import MongoDbConnectorTask
from tests.postgres_task import DirectTask


class MongoTask(DirectTask):
    """Runs a MongoDB task in the test's thread."""

    def make(self, hooks: SnapshotHooks | None, tuning: Tuning) -> Any:
        return MongoDbConnectorTask(hooks=hooks, tuning=tuning)

    def stream(self) -> None:
        """Poll until the stream is open and shown."""
        self.poll_until(self.is_streaming, what="the stream to open")

    def documents(self, topic: str) -> dict[str, Any]:
        """What a reader of the topic knows at last: documents (None: only that there is one) by the texts of their keys."""
        found: dict[str, Any] = {}
        for key, value in self.of(topic):
            if value is None or value["op"] == "d":
                found.pop(key["id"], None)
            else:
                found[key["id"]] = json.loads(value["after"]) if value["after"] else None
        return found

    def operations(self, topic: str) -> list[tuple[str, str]]:
        """Operation and key of every event that is no tombstone."""
        return [(value["op"], key["id"]) for key, value in self.of(topic) if value is not None]


@contextmanager
def database(mongo: MongoAddress) -> Iterator[Database[dict[str, Any]]]:
    """A database of the test's own, gone afterwards."""
    client = mongo.connect()
    name = f"test_{uuid.uuid4().hex[:10]}"
    try:
        yield client[name]
    finally:
        client.drop_database(name)
        client.close()


def config(mongo: MongoAddress, db: Database[dict[str, Any]], **more: str) -> dict[str, str]:
    """A configuration that captures the database under the prefix `m`; underscores in names of `more` stand for dots."""
    return {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": mongo.uri,
        "topic.prefix": "m",
        "database.include.list": db.name,
        "cursor.max.await.time.ms": "50",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def signal(db: Database[dict[str, Any]], kind: str, **data: Any) -> None:
    """Insert a signal into the collection `signals`."""
    db.signals.insert_one({"_id": uuid.uuid4().hex, "type": kind, "data": {name.replace("_", "-"): value for name, value in data.items()}})
