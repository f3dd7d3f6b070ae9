"""`POST /connector-plugins/{class}/tables` on a real worker, of PostgreSQL, MySQL and MongoDB; and what a connector then captures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.mysql_task import mysql_source
from tests.waiting import eventually

pytestmark = pytest.mark.services

PASSWORD = "battery-staple"


def ask(worker: Worker, config: dict[str, str]) -> requests.Response:
    return requests.post(f"{worker.url}/connector-plugins/{config['connector.class']}/tables", json=config, timeout=60)


def listed(worker: Worker, config: dict[str, str]) -> dict[str, Any]:
    answer = ask(worker, config)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def shown(found: dict[str, Any]) -> dict[str, bool]:
    return {table["name"]: table["captured"] for table in found["tables"]}


#: Every character that means something to a list or to a regex, and one name in two cases.
ODD = ["Or,der", "a.b(c)*", r"back\slash", " both ", "twin", "TWIN", "${x}", "ö[1]"]


def test_each_table_of_postgresql_has_an_entry_by_which_it_alone_is_captured(
    worker: Worker, kafka: Kafka, postgres: PostgresAddress, database: str, tag: str
) -> None:
    config = postgres_source(postgres, database, tag)
    with postgres.connect(database) as admin:
        admin.execute("CREATE SCHEMA other; CREATE TABLE other.t (id int PRIMARY KEY)")
        for name in ODD:
            admin.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY)'.encode())
            admin.execute(f'INSERT INTO "{name}" SELECT generate_series(1, 50)'.encode())
        admin.execute("ANALYZE")
    found = listed(worker, config)
    assert shown(found) == {**{f"public.{name}": True for name in ODD}, "other.t": True}
    by_name = {table["name"]: table for table in found["tables"]}
    assert (by_name["public.twin"]["rows"], by_name["other.t"]["rows"]) == (50, None)
    for name in ODD:
        only = {**config, "table.include.list": by_name[f"public.{name}"]["entry"]}
        assert [each for each, captured in shown(listed(worker, only)).items() if captured] == [f"public.{name}"]
    fixed = listed(worker, {**config, "schema.include.list": "public", "table.exclude.list": "x"})
    assert fixed["replaces"] == ["table.exclude.list"]
    assert {table["name"]: table["fixed_by"] for table in fixed["tables"]}["other.t"] == "schema.include.list"
    wanted = [by_name[name]["entry"] for name in ("public.Or,der", r"public.back\slash")]
    worker.create(tag, {**config, "table.include.list": ",".join(wanted)})
    try:
        read = eventually(lambda: topics_of(worker, tag, 2), "records of both tables")
        assert len(read) == 2
        assert {kafka.count(topic) for topic in read} == {50}
    finally:
        worker.delete(tag)


def topics_of(worker: Worker, name: str, number: int) -> list[str]:
    found: list[str] = worker.request("GET", f"/connectors/{name}/topics")[name]["topics"]
    return found if len(found) >= number else []


def test_tables_of_mysql_are_listed_by_database(worker: Worker, kafka: Kafka, mysql: MySqlAddress, tag: str) -> None:
    config = mysql_source(mysql, kafka.bootstrap, tag)
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{tag}`")
        for name in ("a", "or,der", "x$y"):
            cursor.execute(f"CREATE TABLE `{tag}`.`{name}` (id int PRIMARY KEY)")
        cursor.execute(f"CREATE VIEW `{tag}`.seen AS SELECT * FROM `{tag}`.a")
    config = {**config, "name": tag, "database.include.list": tag}
    found = listed(worker, config)
    assert found["property"] == "table.include.list"
    own = {name: captured for name, captured in shown(found).items() if name.startswith(f"{tag}.")}
    assert own == {f"{tag}.a": True, f"{tag}.or,der": True, f"{tag}.x$y": True}
    assert not any(name.startswith(("mysql.", "sys.")) for name in shown(found))
    for name in ("or,der", "x$y"):
        entry = next(table["entry"] for table in found["tables"] if table["name"] == f"{tag}.{name}")
        chosen = shown(listed(worker, {**config, "table.include.list": entry}))
        assert [each for each, captured in chosen.items() if captured] == [f"{tag}.{name}"]


def test_collections_of_mongodb_are_listed_with_regexes_and_with_names(worker: Worker, mongo: Any, tag: str) -> None:
    client = mongo.connect()
    config = {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "name": tag,
        "mongodb.connection.string": mongo.uri,
        "topic.prefix": tag,
        "database.include.list": tag,
    }
    try:
        for name in ("goods", "goods.old", "a+b"):
            client[tag][name].insert_many([{"_id": number} for number in range(3)])
        found = listed(worker, config)
        assert found["property"] == "collection.include.list"
        own = [table for table in found["tables"] if table["name"].startswith(f"{tag}.")]
        assert [(table["name"], table["captured"], table["rows"]) for table in own] == [
            (f"{tag}.a+b", True, 3),
            (f"{tag}.goods", True, 3),
            (f"{tag}.goods.old", True, 3),
        ]
        for mode in ("regex", "literal"):
            entry = next(t["entry"] for t in listed(worker, {**config, "filters.match.mode": mode})["tables"] if t["name"] == f"{tag}.a+b")
            assert entry == {"regex": rf"{tag}\.a\+b", "literal": f"{tag}.a+b"}[mode]
            chosen = shown(listed(worker, {**config, "filters.match.mode": mode, "collection.include.list": entry}))
            assert [each for each, captured in chosen.items() if captured] == [f"{tag}.a+b"]
    finally:
        client.drop_database(tag)
        client.close()


def test_providers_are_asked_and_no_answer_holds_a_secret(
    make_worker: Callable[..., Worker], postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    role, secrets = f"lister_{tag}", tmp_path / "secrets.properties"
    secrets.write_text(f"user={role}\npassword={PASSWORD}\n")
    worker = make_worker(
        properties={
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "rest.ui": "read-only",
        }
    )
    config = postgres_source(postgres, database, tag) | {
        "database.user": f"${{file:{secrets}:user}}",
        "database.password": f"${{file:{secrets}:password}}",
    }
    with postgres.connect(database) as admin:
        admin.execute(f"CREATE TABLE a (id int PRIMARY KEY); CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
        try:
            assert shown(listed(worker, config)) == {"public.a": True}
            admin.execute(f"ALTER ROLE {role} PASSWORD 'other'".encode())
            refused = ask(worker, config)
        finally:
            admin.execute(f"DROP ROLE {role}".encode())
    assert refused.status_code == 400
    assert refused.json()["message"].startswith(f"The tables cannot be listed: Cannot connect to the database '{database}'")
    assert PASSWORD not in refused.text and role not in refused.text
    unreached = ask(worker, {**config, "database.port": "1"})
    assert (unreached.status_code, "Cannot connect to the database" in unreached.text) == (400, True)
    wrong = ask(worker, {**config, "topic.prefix": ""})
    assert (wrong.status_code, "The tables cannot be listed with this configuration" in wrong.text) == (400, True)
