"""The walk through MongoDB's incremental snapshots: six documents become seven and then thirteen records, and a sink that upserts stays at
six; then a snapshot that is asked for through Kafka, and one that is paused, resumed and stopped through a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.folding import payload
from tests.mongo_task import config, database, signal
from tests.waiting import wait_until

pytestmark = pytest.mark.services


def test_six_documents_become_seven_and_thirteen_records_and_stay_six_documents(
    worker: Worker, kafka: Kafka, mongo: MongoAddress, tag: str, tmp_path: Path
) -> None:
    topic, orders = f"walk_{tag}", tmp_path / "signals.txt"
    orders.touch()
    with database(mongo) as db, database(mongo) as copy:
        db["items"].insert_many([{"_id": n, "name": f"item {n}"} for n in range(1, 7)])
        source = config(mongo, db, signal_data_collection=f"{db.name}.signals", incremental_snapshot_chunk_size="2")
        source |= {
            "topic.prefix": topic,
            "collection.include.list": f"{db.name}.items",
            "signal.enabled.channels": "source,kafka,file",
            "signal.kafka.topic": f"signals_{tag}",
            "signal.kafka.bootstrap.servers": kafka.bootstrap,
            "signal.file": str(orders),
            "signal.poll.interval.ms": "200",
        }
        records = f"{topic}.{db.name}.items"
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        # a message for somebody else makes the topic
        producer.produce(f"signals_{tag}", b"{}", key=b"another connector")
        producer.flush()
        worker.create(tag, source)
        wait_until(lambda: kafka.count(records) >= 6, 60, "the initial snapshot")
        wait_until(lambda: not _offset(worker, tag).get("initsync", True), 60, "the stream")
        sink = {
            "connector.class": "io.debezium.connector.mongodb.MongoDbSinkConnector",
            "mongodb.connection.string": mongo.uri,
            "sink.database": copy.name,
            "topics": records,
            "collection.name.format": "items",
        }
        worker.create(f"{tag}-sink", sink)
        db["items"].update_one({"_id": 3}, {"$set": {"name": "changed"}})
        wait_until(lambda: kafka.count(records) >= 7, 60, "the update")

        signal(db, "execute-snapshot", type="incremental", data_collections=[f"{db.name}.items"])
        wait_until(lambda: kafka.count(records) >= 13, 60, "the incremental snapshot")
        wait_until(lambda: not _is_running(worker, tag), 60, "its end")
        assert [payload(message.value())["op"] for message in kafka.read(records)] == ["r"] * 6 + ["u"] + ["r"] * 6
        wanted = {document["_id"]: document for document in db["items"].find()}
        wait_until(lambda: {document["_id"]: document for document in copy["items"].find()} == wanted, 60, "the sink")
        assert len(wanted) == 6

        data = {"type": "incremental", "data-collections": [f"{db.name}.items"]}
        conditions = [{"data-collection": f"{db.name}.items", "filter": "{_id: {$gt: 4}}"}]
        order = {"type": "execute-snapshot", "data": {**data, "additional-conditions": conditions}}
        producer.produce(f"signals_{tag}", json.dumps(order), key=topic)
        producer.flush()
        wait_until(lambda: kafka.count(records) >= 15, 60, "the snapshot that Kafka asked for")
        wait_until(lambda: not _is_running(worker, tag), 60, "its end")  # the pause would be its own

        # both lines at once: three chunks take less time than the file is looked at again
        _order(orders, {"execute-snapshot": data, "pause-snapshot": {"type": "incremental"}})
        wait_until(lambda: kafka.count(records) >= 17 and _is_running(worker, tag), 60, "the first chunk")
        _order(orders, {"resume-snapshot": {"type": "incremental"}})
        wait_until(lambda: kafka.count(records) >= 21, 60, "the other chunks")
        wait_until(lambda: not _is_running(worker, tag), 60, "the end")

        # the snapshot is stopped after the chunk that is under way
        _order(orders, {"execute-snapshot": data, "stop-snapshot": data})
        wait_until(lambda: kafka.count(records) >= 23 and not _is_running(worker, tag), 60, "the stop")
        db["items"].delete_one({"_id": 6})
        wait_until(lambda: kafka.count(records) >= 25, 60, "the deletion and its tombstone")
        assert kafka.count(records) == 25
        wait_until(lambda: copy["items"].count_documents({}) == 5, 60, "the sink")
        worker.delete(tag)
        worker.delete(f"{tag}-sink")


def _order(path: Path, signals: dict[str, dict[str, object]]) -> None:
    """Write signals into the file, types with their data, all at once."""
    # the source renames the file, reads it, and makes an empty one
    wait_until(lambda: path.exists() and not path.stat().st_size, 30, "the file to be read")
    path.write_text("".join(json.dumps({"id": kind, "type": kind, "data": data}) + "\n" for kind, data in signals.items()))


def _offset(worker: Worker, connector: str) -> dict[str, object]:
    found = worker.request("GET", f"/connectors/{connector}/offsets")["offsets"]
    return {"initsync": False, **found[0]["offset"]} if found else {}


def _is_running(worker: Worker, connector: str) -> bool:
    return any(name.startswith("incremental_snapshot") for name in _offset(worker, connector))
