"""MongoDB connections whose peer falls silent: the task notices, and resumes when there is a server again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from connect_py.app.services.mongo import MongoAddress
from connectors.mongodb.sink.connector import MongoDbSinkConnector
from tests.mongo_task import MongoTask, config, database
from tests.silent_peers import Proxy, silent_listener

pytestmark = pytest.mark.services


@pytest.fixture
def proxy(mongo: MongoAddress) -> Iterator[Proxy]:
    host, port = re.findall(r"([\w.]+):(\d+)", mongo.uri)[-1]
    with Proxy(host, int(port)) as found:
        yield found


def test_a_stream_notices_that_its_server_is_silent_and_resumes_when_it_is_back(mongo: MongoAddress, proxy: Proxy) -> None:
    with database(mongo) as db:
        settings = config(mongo, db, snapshot_mode="no_data", mongodb_connect_timeout_ms="1000", mongodb_heartbeat_frequency_ms="500")
        settings |= {"retriable.restart.connector.wait.ms": "200", "mongodb.server.selection.timeout.ms": "2000"}
        settings["mongodb.connection.string"] = f"mongodb://127.0.0.1:{proxy.port}/?directConnection=true"
        with MongoTask(settings) as task:
            task.stream()
            db.t.insert_one({"_id": 1})
            task.poll_until(lambda: task.of(f"m.{db.name}.t"), what="the first document")
            proxy.silence()
            db.t.insert_one({"_id": 2})
            began = time.monotonic()
            task.poll_until(lambda: not task.is_streaming(), 60, "the loss to be noticed")
            assert time.monotonic() - began < 30
            proxy.resume()
            task.poll_until(lambda: len(task.of(f"m.{db.name}.t")) == 2, 60, "the document of the outage")


def _problems(string: str) -> list[str]:
    connector = {"connector.class": MongoDbSinkConnector.java_name, "name": "sink", "topics": "t", "sink.database": "d"}
    found = MongoDbSinkConnector().validate({**connector, "mongodb.connection.string": string})
    return [f"{value.name}: {error}" for value in found for error in value.errors]


def test_a_sink_without_a_server_is_refused_by_validation(mongo: MongoAddress) -> None:
    refused = ["mongodb.connection.string: Unable to connect to the server."]
    assert _problems("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=500") == refused
    with silent_listener() as port:
        assert _problems(f"mongodb://127.0.0.1:{port}/?serverSelectionTimeoutMS=500") == refused
    assert _problems(mongo.uri) == []
