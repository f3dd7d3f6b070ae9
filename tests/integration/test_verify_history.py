"""`connect-py verify --history` over a real journal and real topics: right as they are, and with a record that nobody has committed."""

from __future__ import annotations

import contextlib
import io
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from confluent_kafka import Producer

from connect_py.app.cli import main
from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from connect_py.app.verify.history.journal import digest_of, line_of_document
from connect_py.app.verify.history.records import Change, Op
from tests import mongo_task
from tests.fix_kafka import Kafka, set_topic
from tests.fix_postgres import postgres_source
from tests.mysql_task import mysql_source
from tests.waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.long]

WORK = (
    "INSERT INTO {table} (id, note) VALUES (4, 'é'), (5, NULL)",
    "UPDATE {table} SET note = 'other' WHERE id < 3",
    "DELETE FROM {table} WHERE id = 2",
    "INSERT INTO {table} (id, note) VALUES (2, 'again')",
    "UPDATE {table} SET id = 30 WHERE id = 3",
)

ID = ObjectId("65f0c0ffee65f0c0ffee65f0")


@dataclass
class Table:
    """A table, and how to change it."""

    name: str
    topic: str
    config: dict[str, str]
    execute: Callable[[str], Any]


@pytest.fixture
def postgres_table(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Table]:
    with postgres.connect(database) as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1, note text)")
        config = postgres_source(postgres, database, tag, table_include_list="public.item", tombstones_on_delete="true")
        yield Table("public.item", f"pg_{tag}.public.item", config, connection.execute)


@pytest.fixture
def mysql_table(mysql: MySqlAddress, kafka: Kafka) -> Iterator[Table]:
    name = f"history_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.item (id INT PRIMARY KEY, version BIGINT NOT NULL DEFAULT 1, note VARCHAR(20))")
        # a transform chooses the topic
        routed = {"transforms": "route", "transforms_route_type": "org.apache.kafka.connect.transforms.RegexRouter"}
        routed |= {"transforms_route_regex": rf"{name}\.(.*)", "transforms_route_replacement": "routed-$1"}
        config = mysql_source(mysql, kafka.bootstrap, name, table_include_list=f"{name}.item", **routed)
        yield Table(f"{name}.item", f"routed-{name}.item", config, cursor.execute)
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Table:
    found: Table = request.getfixturevalue(request.param)
    return found


def run(*arguments: str) -> tuple[int, str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(["verify", "--history", *arguments])
    return code, output.getvalue()


@pytest.mark.parametrize("table", ["postgres_table", "mysql_table"], indirect=True)
def test_a_topic_is_what_the_journal_says_and_a_forged_record_is_not(
    make_worker: Callable[..., Worker], kafka: Kafka, tag: str, table: Table, tmp_path: Path
) -> None:
    source = tmp_path / "source.json"
    source.write_text(json.dumps({"name": tag, "config": table.config}))
    digest = f"{table.name}:id,note"
    table.execute(f"INSERT INTO {table.name} (id, note) VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    code, statements = run(str(source), "--prepare", f"{table.name}:id", "--digest", digest)
    assert code == 0
    for statement in statements.removeprefix("DELIMITER //\n").partition("DELIMITER ;\n")[0].split(" //\n"):
        if statement:  # PostgreSQL takes all of them at once
            table.execute(statement)
    worker = make_worker()
    worker.create(tag, table.config)
    wait_until(lambda: kafka.count(table.topic) >= 3, 60, "the snapshot")
    for work in WORK:
        table.execute(work.format(table=table.name))
    properties = tmp_path / "worker.properties"
    properties.write_text(f"bootstrap.servers={kafka.bootstrap}\noffset.storage.topic={worker.topic('offset')}\n")
    settings = ["--worker-properties", str(properties), "--digest", digest]
    code, output = run(str(source), *settings, "--start", "3", "--restarts", "0", "--wait", "60")
    assert (code, output) == (0, "11 changes of 6 keys in the journal, 13 records in the topics: all as promised\n"), output
    records = [message for message in kafka.read(table.topic) if message.value() is not None]
    forged = records[-1].value().replace(b'"version":1', b'"version":77')
    assert forged != records[-1].value()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": tag})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(table.topic, forged, records[-1].key())
    producer.flush(20)
    code, output = run(str(source), *settings, "--exactly-once", "--wait", "0")
    assert code == 3 and "exactly-once: " in output and "a transaction is open" in output and "phantom" not in output, output
    producer.abort_transaction(30)
    code, output = run(str(source), *settings, "--exactly-once")
    assert (code, output.partition(":")[2]) == (0, " all as promised\n"), output
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(table.topic, forged, records[-1].key())
    producer.flush(20)
    code, output = run(str(source), *settings, "--wait", "0")
    assert code == 3
    assert f"phantom: {table.name} [30]" in output
    assert f"table: {table.name} [30]" in output
    code, output = run(str(source), *settings, "--wait", "0", "--json")
    said = json.loads(output)
    assert (code, said["tables"], said["changes"], said["notes"]) == (3, [table.name], 11, [])
    assert {found["finding"] for found in said["findings"]} == {"phantom", "table"}
    set_topic(kafka.bootstrap, table.topic, {"cleanup.policy": "compact"})
    said = json.loads(run(str(source), *settings, "--wait", "0", "--json")[1])
    assert said["notes"] == [
        f"the topic {table.topic} is compacted, so no topic was tested for changes that are lost and for missing tombstones"
    ]
    worker.delete(tag)


def test_documents_are_what_their_journal_says(
    make_worker: Callable[..., Worker], kafka: Kafka, mongo: MongoAddress, tag: str, tmp_path: Path
) -> None:
    source, keys = tmp_path / "source.json", {1: "1", 2: "2", 3: "3", ID: f'{{"$oid": "{ID}"}}'}
    with mongo_task.database(mongo) as db:
        table, topic = f"{db.name}.items", f"m.{db.name}.items"
        config = mongo_task.config(mongo, db, collection_include_list=rf"{db.name}\.items")
        source.write_text(json.dumps({"name": tag, "config": config}))
        lines = iter(range(1, 100))

        def note(key: Any, sequence: int, op: Op, text: str | None) -> None:
            digest = None if text is None else digest_of([text])
            db.connect_py_journal.insert_one(line_of_document(Change(next(lines), table, keys[key], sequence, op, "", digest)))
            if op is Op.DELETE:
                db.items.delete_one({"_id": key})
            else:
                db.items.replace_one({"_id": key}, {"version": sequence, "note": text}, upsert=True)

        for key in (1, 2, ID):
            note(key, 1, Op.CREATE, "before")
        worker = make_worker()
        worker.create(tag, config)
        wait_until(lambda: kafka.count(topic) >= 3, 60, "the snapshot")
        note(3, 1, Op.CREATE, "new")
        note(1, 2, Op.UPDATE, "other")
        note(2, 2, Op.DELETE, None)
        note(2, 3, Op.CREATE, "again")
        settings = [str(source), "--bootstrap-servers", kafka.bootstrap, "--digest", f"{table}:note"]
        code, output = run(*settings, "--offsets-topic", worker.topic("offset"))
        assert (code, output) == (0, "7 changes of 4 keys in the journal, 8 records in the topics: all as promised\n"), output
        db.connect_py_journal.update_one({"_id": 4}, {"$set": {"digest": digest_of(["newer"])}})
        code, output = run(*settings, "--wait", "0")
        assert code == 3 and f"values: {table} [3]: {topic}-0@3 has other values of row 1 than were committed" in output, output
        worker.delete(tag)
