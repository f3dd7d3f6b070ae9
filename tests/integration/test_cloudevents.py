"""CloudEvents of a database's rows through a worker: the envelope, and metadata that a transform has put into headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services

CLOUD = "io.debezium.converters.CloudEventsConverter"
IN_HEADERS = {
    "header.converter": "org.apache.kafka.connect.json.JsonConverter",
    "transforms": "copy,unwrap",
    "transforms.copy.type": "org.apache.kafka.connect.transforms.HeaderFrom$Value",
    "transforms.copy.fields": "source,op",
    "transforms.copy.headers": "source,op",
    "transforms.copy.operation": "copy",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "value.converter.metadata.source": "header,id:generate,type:generate",
}


@pytest.mark.parametrize("more", [{}, IN_HEADERS], ids=["value", "headers"])
def test_rows_of_postgres_become_cloud_events(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, more: dict[str, str]
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
        db.execute("INSERT INTO items VALUES (1, 'grüße')")
        db.commit()
    slot = tag.replace("-", "_")
    source = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": tag,
        "database.hostname": postgres.host,
        "database.port": str(postgres.port),
        "database.user": postgres.user,
        "database.password": postgres.password,
        "database.dbname": database,
        "slot.name": slot,
        "publication.name": slot,
        "value.converter": CLOUD,
        "value.converter.json.schemas.enable": "false",
    }
    worker.create(tag, source | more)
    try:
        wait_until(lambda: kafka.count(f"{tag}.public.items") == 1, 60, "the row")
        (found,) = kafka.read(f"{tag}.public.items")
        assert "value.converter.json" not in worker.log.read_text()  # a property that nothing reads would be warned of
    finally:
        worker.delete(tag)
    event: dict[str, Any] = json.loads(found.value() or b"")
    assert event["specversion"] == "1.0"
    assert event["source"] == f"/debezium/postgresql/{tag}"
    assert event["type"] == "io.debezium.connector.postgresql.DataChangeEvent"
    assert event["id"].startswith(f"name:{tag};lsn:{event['iodebeziumlsn']};txId:")
    assert (event["iodebeziumop"], event["iodebeziumdb"], event["iodebeziumtable"]) == ("r", database, "items")
    assert (event["data"] if more else event["data"]["after"]) == {"id": 1, "name": "grüße"}
