"""`POST /connector-plugins/{class}/doctor` and `connect-py doctor NAME --worker URL`, on a real worker with a real database."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests

from connect_py.app.cli import main
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.integration.test_kafka_doctor import make

pytestmark = pytest.mark.services

CLASS = "io.debezium.connector.postgresql.PostgresConnector"
PASSWORD = "battery-staple"


def ask(worker: Worker, config: dict[str, str], name: str = CLASS) -> requests.Response:
    return requests.post(f"{worker.url}/connector-plugins/{name}/doctor", json=config, timeout=60)


def checks(answer: dict[str, Any]) -> list[str]:
    return [finding["check"] for finding in answer["findings"]]


def test_the_worker_looks_with_its_own_providers_and_shows_no_value_of_theirs(
    make_worker: Callable[..., Worker], postgres: PostgresAddress, database: str, tag: str, tmp_path: Path
) -> None:
    role, secrets = f"hidden_{tag}", tmp_path / "secrets.properties"
    secrets.write_text(f"user={role}\npassword={PASSWORD}\n")
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    worker = make_worker(properties={"config.providers": "file", "config.providers.file.class": provider})
    config = postgres_source(postgres, database, tag) | {
        "name": tag,
        "database.user": f"${{file:{secrets}:user}}",
        "database.password": f"${{file:{secrets}:password}}",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    with psycopg.connect(postgres.dsn(database), autocommit=True) as admin:
        admin.execute(f"CREATE TABLE a (id int PRIMARY KEY); CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
        try:
            found = ask(worker, config)
            answer = found.json()
            assert (found.status_code, answer["code"]) == (200, 1)
            assert checks(answer) == ["postgres.replication", "postgres.tables.select", "postgres.publication.denied"]
            assert role not in found.text and PASSWORD not in found.text
            assert answer["findings"][0]["statements"] == [f'ALTER ROLE "${{file:{secrets}:user}}" WITH REPLICATION;']
            assert any(text.startswith("Kafka at ") for text in answer["looked_at"])
            missing = ask(worker, {**config, "database.password": f"${{file:{secrets}:nothing}}"}).json()
            assert missing["code"] == 3 and "configuration.variables" in checks(missing)
        finally:
            admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_running_connector_is_well_and_the_command_says_so(
    worker: Worker, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = postgres_source(postgres, database, tag)
    with psycopg.connect(postgres.dsn(database), autocommit=True) as admin:
        admin.execute("CREATE TABLE a (id int PRIMARY KEY, t text); INSERT INTO a VALUES (1, 'x')")
        worker.create(tag, config)
        try:
            worker.wait_for(tag, "RUNNING")
            code = main(["doctor", tag, "--worker", worker.url])
            assert (code, "Nothing is wrong." in (shown := capsys.readouterr().out)) == (0, True), shown
            assert "captured tables" in shown and "Kafka at" in shown
            path = tmp_path / "other.json"
            path.write_text(json.dumps({**config, "name": "other"}))
            assert main(["doctor", str(path), "--worker", worker.url, "--json"]) == 1
            assert "postgres.slot.active" in checks(json.loads(capsys.readouterr().out))
        finally:
            worker.delete(tag)
    assert main(["doctor", "nobody", "--worker", worker.url]) == 3


def test_requests_that_cannot_be_answered_are_refused(worker: Worker) -> None:
    assert ask(worker, {}, "Nothing").status_code == 400
    assert ask(worker, {"connector.class": "FileStreamSink"}).status_code == 400
    wrong = ask(worker, {"name": "n"}, "FileStreamSource").json()
    assert wrong["code"] == 3 and checks(wrong) == ["configuration"] and "topic" in wrong["findings"][0]["what"]


def test_faults_of_database_kafka_worker_and_configuration_are_found_in_one_run(
    kafka: Kafka, postgres: PostgresAddress, database: str, tag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties, connector = tmp_path / "worker.properties", tmp_path / "connector.json"
    own = {"bootstrap.servers": kafka.bootstrap, "group.id": tag, "key.converter": "JsonConverter", "value.converter": "JsonConverter"}
    own |= {f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")}
    own |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    properties.write_text("\n".join(f"{name}={value}" for name, value in {**own, "ofset.flush.interval.ms": "1"}.items()))
    config = postgres_source(postgres, database, tag, publication_autocreate_mode="disabled", signal_data_collection="public.signal")
    user = {"database.user": f"app_{tag}", "database.password": PASSWORD, "tabel.include.list": "x", "table.exclude.list": "public.p_1"}
    connector.write_text(json.dumps({"name": tag, **config, **user}))
    make(kafka, f"{tag}-offset", cleanup_policy="delete", min_insync_replicas="2")
    make(kafka, f"{tag}-config", partitions=2, cleanup_policy="compact")
    make(kafka, f"pg_{tag}.public.a", max_message_bytes="1000")
    make(kafka, f"pg_{tag}.public.b", retention_ms="60000")
    plant = [
        f"CREATE ROLE app_{tag} LOGIN PASSWORD '{PASSWORD}'",
        "CREATE TABLE a (id int PRIMARY KEY, t text); ALTER TABLE a ALTER t SET STORAGE EXTERNAL, ENABLE ROW LEVEL SECURITY",
        "INSERT INTO a VALUES (1, repeat('x', 100000))",
        "CREATE TABLE b (id int); CREATE UNLOGGED TABLE c (id int PRIMARY KEY); CREATE TABLE d (id int PRIMARY KEY)",
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
        f"GRANT SELECT ON a TO app_{tag}",
        f"CREATE PUBLICATION pub_{tag} FOR TABLE a, b WITH (publish = 'insert')",
        f"SELECT pg_create_physical_replication_slot('slot_{tag}')",
        "ALTER SYSTEM SET max_slot_wal_keep_size = '100MB'",
        "SELECT pg_reload_conf()",
    ]
    with psycopg.connect(postgres.dsn(database), autocommit=True) as admin:
        try:
            for statement in plant:
                admin.execute(statement.encode())
            seconds = []
            for _ in range(3):  # the least of them, since the machine of a test may be busy
                began = time.monotonic()
                assert main(["doctor", str(connector), "--worker-properties", str(properties), "--json"]) == 1
                seconds.append(time.monotonic() - began)
                answer = json.loads(capsys.readouterr().out)
        finally:
            admin.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            admin.execute(f"SELECT pg_reload_conf(); DROP OWNED BY app_{tag}; DROP ROLE app_{tag}".encode())
    found = Counter(checks(answer))
    assert found.pop("worker.properties") == 2  # an unknown name, and an open listener
    assert sorted(found.elements()) == [
        "configuration.unknown",
        "kafka.internal.cleanup_policy",
        "kafka.internal.partitions",
        "kafka.max_message_bytes",
        "kafka.min_insync_replicas",
        "kafka.retention",
        "postgres.max_slot_wal_keep_size",
        "postgres.publication.operations",
        "postgres.publication.tables",
        "postgres.replication",
        "postgres.signal.missing",
        "postgres.slot.other",
        "postgres.tables.large_values",
        "postgres.tables.partitions",
        "postgres.tables.replica_identity",
        "postgres.tables.row_security",
        "postgres.tables.select",
        "postgres.tables.unlogged",
    ]
    print(f"{sum(found.values()) + 2} findings in {min(seconds):.2f} s")
    assert min(seconds) <= 5


def test_a_workers_kafka_is_looked_at_by_its_file(kafka: Kafka, tag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "worker.properties"
    own = {"bootstrap.servers": kafka.bootstrap, "group.id": tag, "key.converter": "JsonConverter", "value.converter": "JsonConverter"}
    own |= {f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")}

    def look(**more: str) -> tuple[int, list[str]]:
        path.write_text("\n".join(f"{name}={value}" for name, value in {**own, **more}.items()))
        code = main(["doctor", "--worker-properties", str(path), "--json"])
        answer = json.loads(capsys.readouterr().out)
        return code, [check for check in checks(answer) if check != "worker.properties"]

    replicas = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    assert look() == (1, ["kafka.internal.replication"] * 3)
    assert look(**replicas)[1] == []
    assert look(**replicas, **{"bootstrap.servers": "127.0.0.1:1"}) == (3, ["kafka.connection"])
