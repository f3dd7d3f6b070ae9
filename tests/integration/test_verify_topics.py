"""`connect-py verify` of topics: whatever form a worker's records have, they are equal to the source until somebody plants a difference."""

from __future__ import annotations

import contextlib
import datetime
import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from connect_py.app.cli import main
from connect_py.app.commands.command import INTERRUPTED
from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests import mongo_task
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.fix_registry import SchemaRegistry
from tests.integration.test_verify import MYSQL_TYPES, POSTGRES_TYPES
from tests.mysql_task import mysql_source
from tests.seeds import seeds
from tests.waiting import eventually

pytestmark = pytest.mark.services

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}


def converters(name: str, **more: str) -> dict[str, str]:
    properties = {f".{key.replace('_', '.')}": value for key, value in more.items()}
    return {f"{side}.converter{key}": value for side in ("key", "value") for key, value in {"": name, **properties}.items()}


#: Of records.
FORMS = {
    "schemas": converters(JSON),
    "no-schemas": converters(JSON, schemas_enable="false"),
    "numbers": converters(JSON, schemas_enable="false", decimal_format="numeric"),
    "unwrapped": converters(JSON, schemas_enable="false") | UNWRAP,
    "rewritten": converters(JSON)
    | UNWRAP
    | {"transforms.unwrap.delete.tombstone.handling.mode": "rewrite", "transforms.unwrap.add.fields": "op,lsn"},
    "avro": converters(AVRO) | {"schema.name.adjustment.mode": "avro"},
}


@contextlib.contextmanager
def running(worker: Worker, name: str, config: Mapping[str, str]) -> Iterator[None]:
    worker.create(name, dict(config))
    try:
        worker.wait_for(name, "RUNNING")
        yield
    finally:
        worker.delete(name)


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code, and what `verify` says of each topic."""
    capsys.readouterr()
    code = main(["verify", *arguments, "--json"])
    said = capsys.readouterr()
    assert not said.err, said.err
    return code, [json.loads(line) for line in said.out.splitlines()]


def write(kafka: Kafka, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    for key, value in records:
        producer.produce(topic, value, key, 0)
    assert producer.flush(20) == 0


def histories(kafka: Kafka, topic: str) -> list[list[Message]]:
    """Each key's records in their order; the keys in the order in which they came first."""
    by_key: dict[bytes, list[Message]] = {}
    for message in kafka.read(topic):
        by_key.setdefault(message.key(), []).append(message)
    return list(by_key.values())


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Mapping[str, str]], str]:
    """Writes a configuration to a file."""

    def write(config: Mapping[str, str]) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"name": path.stem, "config": config}))
        return str(path)

    return write


@pytest.mark.parametrize("form", [pytest.param(form, marks=[] if form in ("schemas", "avro") else pytest.mark.long) for form in FORMS])
def test_every_type_of_postgresql_is_equal_in_the_topic_and_what_somebody_plants_there_is_found(
    worker: Worker,
    kafka: Kafka,
    postgres: PostgresAddress,
    database: str,
    tag: str,
    schema_registry: SchemaRegistry,
    file: Callable[[Mapping[str, str]], str],
    form: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with postgres.connect(database) as db:
        db.autocommit = True
        db.execute(POSTGRES_TYPES)
        db.execute("CREATE TABLE large (id int PRIMARY KEY, n int, t text, b bytea, a text[])")
        for column in ("t", "b", "a"):
            db.execute(f"ALTER TABLE large ALTER {column} SET STORAGE EXTERNAL")
        db.execute(
            "INSERT INTO large SELECT i, i, repeat('x', 5000), decode(repeat('00', 5000), 'hex'), ARRAY[repeat('y', 5000)] "
            "FROM generate_series(1, 9) i"
        )
        registry = {f"{side}.converter.schema.registry.url": schema_registry.url for side in ("key", "value")} if form == "avro" else {}
        config = postgres_source(postgres, database, tag, topic_prefix=tag) | FORMS[form] | registry
        arguments = [tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap]
        with running(worker, tag, config):
            code, same = found(capsys, *arguments, "--wait", "60")
            assert code == 0 and {each["topic"]: each["source_rows"] for each in same} == {
                f"{tag}.public.things": 3,
                f"{tag}.public.large": 9,
            }
            db.execute("UPDATE large SET n = n + 10")  # the large values are not sent
            db.execute("UPDATE large SET t = 'short' WHERE id = 2")
            db.execute("UPDATE large SET id = 30, t = 'moved', b = '', a = NULL WHERE id = 3")
            db.execute("DELETE FROM large WHERE id = 4")
            db.execute("UPDATE things SET t = 'changed', n52 = 0.5 WHERE part = 'a'")
            db.execute("INSERT INTO things (id, part, t) VALUES (7, 'new', 'n')")
            code, same = found(capsys, *arguments, "--wait", "60")
            large = next(each for each in same if each["topic"].endswith(".large"))
            assert code == 0 and (large["equal"], large["source_rows"], large["topic_rows"], large["unknown"]) == (True, 8, 8, 0), large
        topic = f"{tag}.public.large"
        first, second, _, fourth, *_ = histories(kafka, topic)
        deleted = (first[0].key(), None)
        write(kafka, topic, deleted, (second[0].key(), second[0].value()), (fourth[0].key(), fourth[0].value()))
        code, (told,) = found(capsys, file(config), "--bootstrap-servers", kafka.bootstrap, "--wait", "0", "--table", "public.large")
    assert code == 3 and (told["missing"], told["extra"], told["different"]) == (1, 1, 1), told
    by_kind = {difference["kind"]: difference for difference in told["differences"]}
    assert [by_kind[kind]["key"] for kind in ("missing", "extra", "different")] == [{"id": 1}, {"id": 4}, {"id": 2}]
    assert by_kind["missing"]["topic"] is None and by_kind["extra"]["source"] is None
    stale = by_kind["different"]
    assert (stale["source"]["n"], stale["topic"]["n"], stale["source"]["t"]) == (12, 2, "short")
    assert stale["record"] == f"{topic}-0@{kafka.count(topic) - 2}"


@pytest.mark.parametrize("form", ["schemas", pytest.param("unwrapped", marks=pytest.mark.long)])
def test_every_type_of_mysql_is_equal_in_the_topic_and_what_the_source_alone_has_is_missing(
    worker: Worker, kafka: Kafka, mysql: MySqlAddress, tag: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with mysql.connect() as db, db.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {tag}")
        cursor.execute(f"USE {tag}")
        cursor.execute("SET sql_mode = ''")
        for statement in MYSQL_TYPES.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        db.commit()
        config = mysql_source(mysql, kafka.bootstrap, tag, include_schema_changes="false") | FORMS[form]
        arguments = [tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap, "--table", f"{tag}.things"]
        with running(worker, tag, config):
            code, (same,) = found(capsys, *arguments, "--wait", "60")
            assert (code, same["equal"], same["source_rows"]) == (0, True, 3), same
            cursor.execute("UPDATE things SET id = 6, v = 'moved', dd = 0.5 WHERE id = 5")
            cursor.execute("DELETE FROM things WHERE id = 1")
            db.commit()
            code, (same,) = found(capsys, *arguments, "--wait", "60")
            assert (code, same["equal"], same["source_rows"], same["topic_rows"]) == (0, True, 2, 2), same
            cursor.execute("SET sql_log_bin = 0")  # what the binlog does not have, no connector can know
            cursor.execute("INSERT INTO things (id) VALUES (8)")
            cursor.execute("UPDATE things SET flag = 7 WHERE id = 6")
            cursor.execute("DELETE FROM things WHERE id = 18446744073709551615")
            db.commit()
            code, (other,) = found(capsys, *arguments, "--wait", "0")
        cursor.execute(f"DROP DATABASE {tag}")
    assert (code, other["missing"], other["extra"], other["different"]) == (3, 1, 1, 1), other
    by_kind = {difference["kind"]: difference["key"]["id"] for difference in other["differences"]}
    assert (by_kind["missing"], by_kind["different"]) == (8, 6)


@pytest.mark.parametrize("unwraps", [False, pytest.param(True, marks=pytest.mark.long)])
def test_documents_are_equal_in_the_topic_until_one_is_planted(
    worker: Worker, kafka: Kafka, mongo: MongoAddress, tag: str, unwraps: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with mongo_task.database(mongo) as db:
        ids: list[Any] = [ObjectId(), "5", 5, 2**40, "", str(ObjectId())] if not unwraps else [1, 2, 3, 4, 5, 6]
        db.things.insert_many([{"_id": id_, "n": number, "t": "ž", "d": {"x": number}} for number, id_ in enumerate(ids)])
        config = mongo_task.config(mongo, db, topic_prefix=tag) | converters(JSON)
        if unwraps:
            config |= {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState"}
        topic = f"{tag}.{db.name}.things"
        arguments = [tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap]
        with running(worker, tag, config):
            code, (same,) = found(capsys, *arguments, "--wait", "60")
            assert (code, same["equal"], same["source_rows"]) == (0, True, len(ids)), same
            db.things.update_one({"_id": ids[2]}, {"$set": {"n": 50}})
            db.things.delete_one({"_id": ids[1]})
            code, (same,) = found(capsys, *arguments, "--wait", "60")
            assert (code, same["equal"], same["topic_rows"]) == (0, True, len(ids) - 1), same
            first, second, third, *_ = histories(kafka, topic)
            write(kafka, topic, (first[0].key(), None), *[(each[0].key(), each[0].value()) for each in (second, third)])
            code, (other,) = found(capsys, *arguments, "--wait", "0")
    assert (code, other["missing"], other["extra"], other["different"]) == (3, 1, 1, 1), other


def test_a_topic_that_has_lost_its_oldest_records_is_said_to_be_incomplete_and_only_its_keys_are_compared(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"{tag}.public.things"
    with postgres.connect(database) as db:
        db.autocommit = True
        db.execute("CREATE TABLE things (id int PRIMARY KEY, t text)")
        db.execute("INSERT INTO things SELECT i, 'x' FROM generate_series(1, 20) i")
        arguments = [tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap]
        config = postgres_source(postgres, database, tag, topic_prefix=tag) | converters(JSON, schemas_enable="false")
        with running(worker, tag, config):
            assert found(capsys, *arguments, "--wait", "60")[0] == 0
            place, admin = TopicPartition(topic, 0, 10), AdminClient({"bootstrap.servers": kafka.bootstrap})
            admin.delete_records([place])[place].result(20)
            code, (same,) = found(capsys, *arguments, "--wait", "0")
            assert (code, same["equal"], same["topic_rows"], same["missing"]) == (0, True, 10, 0), same
            assert "its oldest records are gone" in same["incomplete"]
            assert main(["verify", *arguments]) == 0
            assert "not counted as missing: its oldest records are gone" in capsys.readouterr().out
            newest = histories(kafka, topic)[0][0]
            write(kafka, topic, (newest.key(), None), (b'{"id":99}', newest.value()))
            code, (other,) = found(capsys, *arguments, "--wait", "0")
            assert (code, other["missing"], other["extra"]) == (3, 1, 1), other


def test_rows_that_change_all_the_time_are_no_differences(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.autocommit = True
        db.execute("CREATE TABLE things (id int PRIMARY KEY, n int)")
        db.execute("INSERT INTO things SELECT i, 0 FROM generate_series(1, 200) i")
        ends, writes = threading.Event(), 0

        def change() -> None:
            nonlocal writes
            chance = random.Random(seeds(1)[0])
            with postgres.connect(database) as other:
                other.autocommit = True
                while not ends.wait(0.003):  # faster than they are read again, topics would have no end
                    id_ = chance.randrange(1, 260)
                    other.execute("DELETE FROM things WHERE id = %s", (id_,)) if chance.random() < 0.3 else other.execute(
                        "INSERT INTO things VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET n = things.n + 1", (id_,)
                    )
                    writes += 1

        arguments = [tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap, "--wait", "60"]
        with running(worker, tag, postgres_source(postgres, database, tag, topic_prefix=tag)):
            thread = threading.Thread(target=change)
            thread.start()
            try:
                looks = [found(capsys, *arguments) for _ in range(3)]
            finally:
                ends.set()
                thread.join()
    assert [code for code, _ in looks] == [0, 0, 0], looks
    assert writes > 100


def test_all_connectors_a_share_of_their_keys_and_what_has_changed_since(
    worker: Worker,
    kafka: Kafka,
    postgres: PostgresAddress,
    database: str,
    tag: str,
    file: Callable[[Mapping[str, str]], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    brokers = ["--worker", worker.url, "--bootstrap-servers", kafka.bootstrap, "--wait", "60"]
    with postgres.connect(database) as db:
        db.autocommit = True
        for name in ("one", "two"):
            db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, t text)")
            db.execute(f"INSERT INTO {name} SELECT i, 'x' FROM generate_series(1, 1000) i")
        configs = {
            name: postgres_source(postgres, database, f"{tag}_{name}", topic_prefix=f"{tag}_{name}", table_include_list=f"public.{name}")
            for name in ("one", "two")
        }
        with running(worker, f"{tag}-one", configs["one"]), running(worker, f"{tag}-two", configs["two"]):
            code, same = found(capsys, "--all", *brokers)
            assert code == 0 and [(each["source"], each["equal"], each["source_rows"]) for each in same] == [
                (f"{tag}-one", True, 1000),
                (f"{tag}-two", True, 1000),
            ]
            for sample, least, most in (("10%", 50, 200), ("100", 50, 200), ("100%", 1000, 1000), ("5000", 1000, 1000)):
                code, (part,) = found(capsys, f"{tag}-one", *brokers, "--sample", sample)
                assert code == 0 and least <= part["compared"] <= most and part["chosen"], (sample, part)
            since = datetime.datetime.now(datetime.UTC).isoformat()
            code, (part,) = found(capsys, f"{tag}-one", *brokers, "--since", since)
            assert (code, part["records"], part["compared"]) == (0, 0, 1000)
            db.execute("UPDATE one SET t = 'y' WHERE id IN (7, 8)")
            db.execute("DELETE FROM one WHERE id = 9")
            assert found(capsys, f"{tag}-one", *brokers)[0] == 0
            code, (part,) = found(capsys, f"{tag}-one", *brokers, "--since", since)
            assert (code, part["equal"], part["topic_rows"], part["missing"]) == (0, True, 2, 0), part
            stale = next(each for each in histories(kafka, f"{tag}_one.public.one") if b'"id":7' in each[0].key().replace(b" ", b""))
            write(kafka, f"{tag}_one.public.one", (stale[0].key(), stale[0].value()))
            page = tmp_path / "page.html"
            code = main(["verify", f"{tag}-one", *brokers[:4], "--wait", "0", "--since", since, "--html", str(page)])
            said = capsys.readouterr().out
            assert code == 3 and "stale in the topic id=7: t is 'y' in the source, 'x' in the topic" in said, said
            assert "stale in the topic" in page.read_text()
            assert f"topic {tag}_one.public.one (public.one): DIFFERENT" in said


def test_a_watched_comparison_sees_a_topic_fall_behind_and_catch_up_until_it_is_interrupted(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE stock (id int PRIMARY KEY, n int)")
        db.execute("INSERT INTO stock SELECT g, g FROM generate_series(1, 5) g")
    command = [sys.executable, "-m", "connect_py.app.cli", "verify", tag, "--worker", worker.url, "--bootstrap-servers", kafka.bootstrap]
    config = postgres_source(postgres, database, tag, topic_prefix=tag)
    with running(worker, tag, config):
        eventually(lambda: kafka.count(f"{tag}.public.stock") == 5, "the snapshot", 60)
        options = ["--watch", "0.2", "--wait", "0", "--json"]
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None and watching.stderr is not None
            deadline = threading.Timer(180, watching.kill)  # the output then ends, and with it the test
            deadline.start()
            try:
                outcomes = (json.loads(line) for line in watching.stdout)
                assert next(outcomes)["equal"]
                worker.request("PUT", f"/connectors/{tag}/pause")
                worker.wait_for(tag, "PAUSED")
                with postgres.connect(database) as db:
                    db.execute("UPDATE stock SET n = 0 WHERE id = 1")
                behind = next(outcome for outcome in outcomes if not outcome["equal"])
                assert (behind["topic"], behind["different"], behind["missing"]) == (f"{tag}.public.stock", 1, 0)
                worker.request("PUT", f"/connectors/{tag}/resume")
                assert next(outcome for outcome in outcomes if outcome["equal"])["source_rows"] == 5
            finally:
                deadline.cancel()
                watching.send_signal(signal.SIGINT)
            assert watching.wait(60) == INTERRUPTED
            assert "Traceback" not in watching.stderr.read()
