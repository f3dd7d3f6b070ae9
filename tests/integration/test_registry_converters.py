"""Avro, Protobuf and JSON Schema in a worker: a database's rows read by other people's deserialisers, and sinks that read them back.

The registry is the stand-in of `tests/fix_registry.py`, since no registry server can be installed here.
"""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_registry import SchemaRegistry
from tests.waiting import wait_until

pytestmark = pytest.mark.services

AVRO = "io.confluent.connect.avro.AvroConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"


def with_registry(registry: SchemaRegistry, converter: str, *sides: str, **more: str) -> dict[str, str]:
    config = {}
    for side in sides:
        config |= {f"{side}.converter": converter, f"{side}.converter.schema.registry.url": registry.url}
        config |= {f"{side}.converter.{name.replace('_', '.')}": value for name, value in more.items()}
    return config


def test_rows_of_a_table_are_read_by_confluents_avro_deserializer_and_by_a_sink(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, schema_registry: SchemaRegistry, tag: str, tmp_path: Path
) -> None:
    topic, out = f"{tag}.public.items", tmp_path / "out"
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10,2), day date, at timestamp, flags boolean[])")
        db.execute("INSERT INTO items VALUES (1, 'grüße', 2.22, '2024-02-29', '2024-02-29 12:00:00.123', '{t,f,NULL}')")
        db.execute("INSERT INTO items VALUES (2, NULL, 0, NULL, NULL, NULL)")
        db.commit()
        source = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": tag,
            "database.hostname": postgres.host,
            "database.port": str(postgres.port),
            "database.user": postgres.user,
            "database.password": postgres.password,
            "database.dbname": database,
            "slot.name": tag.replace("-", "_"),
            "publication.name": tag.replace("-", "_"),
            "time.precision.mode": "connect",
            "schema.name.adjustment.mode": "avro",
        }
        worker.create(f"{tag}-source", source | with_registry(schema_registry, AVRO, "key", "value"))
        try:
            worker.wait_for(f"{tag}-source", "RUNNING")
            wait_until(lambda: kafka.count(topic) == 2, 60, "the snapshot")
            db.execute("UPDATE items SET name = 'two' WHERE id = 2")
            db.commit()
            wait_until(lambda: kafka.count(topic) == 3, 60, "the update")
            sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic}
            unwrap = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
            worker.create(f"{tag}-sink", sink | unwrap | with_registry(schema_registry, AVRO, "key", "value"))
            wait_until(lambda: out.exists() and len(out.read_text().splitlines()) == 3, 60, "the sink's lines")
        finally:
            for name in (f"{tag}-sink", f"{tag}-source"):
                worker.delete(name)

    client = SchemaRegistryClient({"url": schema_registry.url})
    read = AvroDeserializer(client)
    messages = kafka.read(topic)
    keys = [read(message.key(), SerializationContext(topic, MessageField.KEY)) for message in messages]
    values = [read(message.value(), SerializationContext(topic, MessageField.VALUE)) for message in messages]
    assert keys == [{"id": 1}, {"id": 2}, {"id": 2}]
    assert [value["op"] for value in values] == ["r", "r", "u"]
    assert values[0]["after"] == {
        "id": 1,
        "name": "grüße",
        "price": decimal.Decimal("2.22"),
        "day": datetime.date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=datetime.UTC),
        "flags": [True, False, None],
    }
    assert values[2]["after"]["name"] == "two"
    assert sorted(schema_registry.subjects) == [f"{topic}-key", f"{topic}-value"]
    assert [len(versions) for versions in schema_registry.subjects.values()] == [1, 1], "the stream's schema is the snapshot's"
    assert out.read_text().splitlines()[2].startswith("Struct{id=2,name=two,price=0.00")


@pytest.mark.parametrize(
    "converter",
    [AVRO, "io.confluent.connect.protobuf.ProtobufConverter", "io.confluent.connect.json.JsonSchemaConverter"],
)
def test_lines_go_through_a_topic_and_a_registry_that_comes_late_is_waited_for(
    worker: Worker, schema_registry: SchemaRegistry, tag: str, tmp_path: Path, converter: str
) -> None:
    lines, out = tmp_path / "in", tmp_path / "out"
    lines.write_text("one\ntwo\n")
    schema_registry.failures = [503, 503]
    source = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": tag,
        "key.converter": TEXT,
        "transforms": "hoist",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "errors.retry.timeout": "60000",
    }
    sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": tag, "key.converter": TEXT}
    worker.create(f"{tag}-source", source | with_registry(schema_registry, converter, "value", max_retries="0"))
    worker.create(f"{tag}-sink", sink | with_registry(schema_registry, converter, "value"))
    try:
        wait_until(lambda: out.exists() and len(out.read_text().splitlines()) == 2, 60, "two lines")
        assert out.read_text().splitlines() == ["Struct{line=one}", "Struct{line=two}"]
        assert not schema_registry.failures
    finally:
        for name in (f"{tag}-sink", f"{tag}-source"):
            worker.delete(name)


def test_an_incompatible_schema_fails_the_task_and_its_trace_names_the_subject_and_no_password(
    worker: Worker, schema_registry: SchemaRegistry, tag: str, tmp_path: Path
) -> None:
    lines = tmp_path / "in"
    lines.write_text("one\n")
    schema_registry.password = "ann:s3cret"
    schema_registry.refused.add(f"{tag}-value")
    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": tag, "key.converter": TEXT}
    login = {"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "ann:s3cret"}
    worker.request("PUT", f"/connectors/{tag}/config", source | with_registry(schema_registry, AVRO, "value", **login))
    try:
        trace = worker.wait_for(tag, "FAILED")["tasks"][0]["trace"]
        assert f"subject '{tag}-value'" in trace
        assert "incompatible with an earlier schema" in trace
        assert "s3cret" not in trace
        assert "s3cret" not in worker.log.read_text()
    finally:
        worker.delete(tag)
