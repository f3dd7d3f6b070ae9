"""Catalogs: Iceberg's by REST (its own servlet) and JDBC (SQLite, PostgreSQL), Delta's metastore; read by pyiceberg and deltalake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import free_port
from connect_py.app.verify.lake import iceberg_catalog
from spark_sink.config.sink_config import parse
from spark_sink.spark.jars import SINK_JARS, cached, resolve
from tests.fix_catalogs import RestCatalog
from tests.fix_spark import INT, TEXT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"
POSTGRESQL = "org.postgresql:postgresql:42.7.4"
AWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator allows drivers' jars and the metastore's own settings."""
    allowed = "spark.jars,spark.hadoop.javax.jdo.,spark.hadoop.datanucleus.,spark.hadoop.hive.,spark.driver.extraJavaOptions"
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", allowed)


def in_catalog(config: Mapping[str, str], **settings: str) -> dict[str, str]:
    """A configuration with another catalog; underscores in the names of its settings are points."""
    kept = {name: value for name, value in config.items() if not name.startswith("lakehouse.catalog")}
    named = {f"lakehouse.catalog.{name.replace('_', '.')}": value for name, value in settings.items()}
    return {**kept, "lakehouse.catalog": "lake", "lakehouse.maintenance.compact.every-commits": "2", **named}


def rows(config: Mapping[str, str], table: str = "t") -> list[dict[str, Any]]:
    """As pyiceberg reads them through the same catalog."""
    found = iceberg_catalog(parse(config))(["public", table])
    return sorted(found.scan().to_arrow().drop_columns(["__op", "__ts_ms"]).to_pylist(), key=lambda row: row["id"])


FIRST = [event("c", key, {"n": key}, {"n": INT}) for key in range(4)]
THEN = [event("d", 0, {"n": 0}, {"n": INT}), event("u", 1, {"n": 11, "more": "m"}, {"n": INT, "more": TEXT})]
LAST = [event("u", 3, {"n": 33, "more": "x"}, {"n": INT, "more": TEXT})]
EXPECTED = [{"id": 1, "n": 11, "more": "m"}, {"id": 2, "n": 2, "more": None}, {"id": 3, "n": 33, "more": "x"}]


def test_a_rest_catalog_holds_tables_through_changes_of_schema_maintenance_and_a_restart(lake: Lake, rest_catalog: RestCatalog) -> None:
    topic = lake.topic("t")
    config = in_catalog(lake.config(topic), type="rest", uri=rest_catalog.uri, warehouse=rest_catalog.warehouse)
    task = lake.start(config)
    for records in (FIRST, THEN):
        lake.produce(topic, records)
        assert lake.drain(task) == 1
    again = lake.start(config)
    lake.produce(topic, LAST)
    assert lake.drain(again) == 1
    assert rows(config) == EXPECTED
    lake.context.rewind()
    repeated = lake.start(config)
    assert lake.drain(repeated) == 1  # all of it again, and nothing of it is new
    assert rows(config) == EXPECTED
    assert repeated.metrics()[1].values["commits-total"] == 0


def follow(lake: Lake, config: dict[str, str], topic: str, *more: str, again: bool = False) -> None:
    """The same three batches by a task in a process of its own: drivers must be there when Spark starts, and this process's has started.

    Args:
        more: jars.
        again: have a second task read everything anew at the end, which changes nothing.
    """
    jars = [
        *resolve(SINK_JARS, cached(SINK_JARS, "spark-sink")),
        *(jar for name in more for jar in resolve([name], cached([name], "catalog"))),
    ]
    config |= {"lakehouse.spark.jars": ",".join(map(str, jars)), "lakehouse.spark.conf.spark.driver.memory": "700m"}
    order = {"format": "iceberg", "bootstrap": lake.bootstrap, "warehouse": str(lake.warehouse), "tag": lake.tag, "config": config}
    command = [sys.executable, "-m", "tests.lake_script"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(line: str) -> Any:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return json.loads(next(text for text in process.stdout if text.startswith('{"answer"')))["answer"]

        process.stdin.write(json.dumps(order) + "\n")
        assert ask("start") is None
        for records in (FIRST, THEN, LAST):
            lake.produce(topic, records)
            assert ask("drain") == 1
        if again:
            for line in ("close", "rewind"):
                ask(line)
            assert ask("start") is None
            assert ask("drain") == 1
        ask("close")
        process.stdin.close()


@pytest.mark.long
def test_a_jdbc_catalog_in_sqlite_does_too(lake: Lake, tmp_path: Path) -> None:
    topic = lake.topic("t")
    catalog = f"jdbc:sqlite:file:{tmp_path / 'catalog.db'}"
    config = in_catalog(lake.config(topic), type="jdbc", uri=catalog, warehouse=f"file://{tmp_path}/jdbc")
    follow(lake, config, topic, SQLITE)
    assert rows(config) == EXPECTED


@pytest.mark.long
def test_a_jdbc_catalog_in_postgresql_holds_the_tables_and_their_offsets(
    lake: Lake, tmp_path: Path, postgres: PostgresAddress, database: str
) -> None:
    topic = lake.topic("t")
    uri = f"jdbc:postgresql://{postgres.host}:{postgres.port}/{database}"
    login = {"jdbc_user": postgres.user, "jdbc_password": postgres.password}
    config = in_catalog(lake.config(topic), type="jdbc", uri=uri, warehouse=f"file://{tmp_path}/jdbc", **login)
    follow(lake, config, topic, POSTGRESQL, again=True)
    assert rows(config) == EXPECTED


@pytest.mark.long
def test_delta_tables_in_a_metastore_are_created_changed_maintained_and_found_again(lake: Lake, tmp_path: Path) -> None:
    import pyarrow
    from deltalake import DeltaTable, QueryBuilder

    topic = lake.topic("t")
    config = {name: value for name, value in lake.config(topic).items() if not name.startswith("lakehouse.catalog")}
    metastore = {
        "lakehouse.format": "delta",
        "lakehouse.maintenance.compact.every-commits": "2",
        "lakehouse.spark.conf.spark.sql.catalogImplementation": "hive",
        "lakehouse.spark.conf.spark.sql.warehouse.dir": f"file://{tmp_path}/warehouse",
        "lakehouse.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "lakehouse.hadoop.datanucleus.schema.autoCreateAll": "true",
        "lakehouse.hadoop.hive.metastore.schema.verification": "false",
        "lakehouse.spark.conf.spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={tmp_path}",
    }
    follow(lake, config | metastore, topic, again=True)
    found = DeltaTable(str(tmp_path / "warehouse" / "public.db" / "t"))
    stored = pyarrow.table(QueryBuilder().register("t", found).execute("SELECT id, n, more FROM t ORDER BY id").read_all())
    assert stored.to_pylist() == EXPECTED
    written = [json.loads(commit.get("userMetadata") or "{}") for commit in found.history()]
    assert sum("kafka.connect.offsets.lake" in metadata for metadata in written) == 3, "the second task finds the table's offsets"


@pytest.mark.skipif("S3_TESTS" not in os.environ, reason="S3_TESTS is not set: this fetches moto's server and 60 MB of Amazon's SDK")
def test_tables_in_s3_are_written_and_read_through_icebergs_own_client(lake: Lake, tmp_path: Path) -> None:
    port = free_port()
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{port}"
        bucket = urllib.request.Request(f"{endpoint}/lake", method="PUT")
        urllib.request.urlopen(bucket, timeout=60).close()
        topic = lake.topic("t")
        config = in_catalog(
            lake.config(topic), type="jdbc", uri=f"jdbc:sqlite:file:{tmp_path / 'catalog.db'}", warehouse="s3://lake/warehouse"
        )
        settings = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": endpoint,
            "s3.path-style-access": "true",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "client.region": "us-east-1",
        }
        config |= {f"lakehouse.catalog.{name}": value for name, value in settings.items()}
        follow(lake, config, topic, SQLITE, AWS)
        assert rows(config) == EXPECTED
    finally:
        server.stop()
