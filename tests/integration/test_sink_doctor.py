"""The doctor of the lakehouse sink at real catalogs and, with S3_TESTS set, at a stand-in of S3."""

from __future__ import annotations

import os
import urllib.request
import zipfile
from pathlib import Path

import pytest

from connect_py.api import Diagnosis, Person
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.services.process import free_port
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.doctor.diagnose import of_catalog, of_storage
from tests.fix_catalogs import RestCatalog

pytestmark = [pytest.mark.services, pytest.mark.long]

PASSWORD = "correct-horse"


def sink(**more: str) -> SinkConfig:
    settings = {f"lakehouse.{name.replace('__', '-').replace('_', '.')}": value for name, value in more.items()}
    return parse({"name": "n", "topics": "t", **settings})


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


def driver(folder: Path, name: str) -> str:
    """A jar that holds a class of this name, and nothing to run."""
    path = folder / "driver.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"")
    return str(path)


def test_a_rest_catalog_is_reached_and_its_namespaces_are_looked_for(rest_catalog: RestCatalog) -> None:
    catalog = {"catalog_type": "rest", "catalog_uri": rest_catalog.uri, "catalog_warehouse": rest_catalog.warehouse}
    found = of_catalog(sink(**catalog, tables="shop.orders"), 20)
    (finding,) = found.findings
    assert (finding.check, finding.statements) == ("sink.catalog.namespace", ("CREATE NAMESPACE `iceberg`.`shop`;",))
    body = b'{"namespace": ["shop"], "properties": {}}'
    request = urllib.request.Request(f"{rest_catalog.uri}/v1/namespaces", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=60).close()
    assert of_catalog(sink(**catalog, tables="shop.orders"), 20).code == 0
    assert checks(of_catalog(sink(**catalog | {"catalog_uri": f"{rest_catalog.uri}/nothing"}), 20)) == ["sink.catalog.uri"]


def test_rights_of_a_catalogs_user_in_postgresql_are_found_and_given(
    postgres: PostgresAddress, database: str, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars")
    config = {
        "catalog_type": "jdbc",
        "catalog_uri": f"jdbc:postgresql://{postgres.host}:{postgres.port}/{database}",
        "catalog_jdbc_user": f"lake_{tag}",
        "catalog_jdbc_password": PASSWORD,
        "catalog_warehouse": "/lake",
        "spark_jars": driver(tmp_path, "org/postgresql/Driver.class"),
    }
    with postgres.connect(database) as admin:
        admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        assert checks(of_catalog(sink(**config), 5)) == ["sink.catalog.credentials"]
        admin.execute(f"CREATE ROLE lake_{tag} LOGIN PASSWORD '{PASSWORD}'".encode())
        try:
            for table in ("", "iceberg_tables", "iceberg_namespace_properties"):
                if table:  # as another user would have made it
                    admin.execute(f"CREATE TABLE {table} (catalog_name text)".encode())
                    admin.execute(f"REVOKE ALL ON SCHEMA public FROM lake_{tag}".encode())
                (finding,) = of_catalog(sink(**config), 5).findings
                assert (finding.check, finding.who) == ("sink.catalog.rights", Person.DBA)
                for statement in finding.statements:
                    admin.execute(statement.encode())
                mended = of_catalog(sink(**config), 5)
                assert (checks(mended), mended.code) == ([], 0)
            wrong = of_catalog(sink(**config | {"catalog_jdbc_password": "wrong-horse"}), 5)
            assert "horse" not in str(wrong)
        finally:
            admin.execute(f"DROP OWNED BY lake_{tag}; DROP ROLE lake_{tag}".encode())


def test_a_login_that_mysql_refuses_is_called_so(mysql: MySqlAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars")
    config = {
        "catalog_type": "jdbc",
        "catalog_uri": f"jdbc:mysql://{mysql.host}:{mysql.port}/mysql",
        "catalog_jdbc_user": mysql.user,
        "catalog_jdbc_password": mysql.password,
        "catalog_warehouse": "/lake",
        "spark_jars": driver(tmp_path, "com/mysql/cj/jdbc/Driver.class"),
    }
    assert checks(of_catalog(sink(**config), 5)) == []
    wrong = of_catalog(sink(**config | {"catalog_jdbc_password": PASSWORD}), 5)
    assert checks(wrong) == ["sink.catalog.credentials"] and wrong.code == 1 and PASSWORD not in str(wrong)


@pytest.mark.skipif("S3_TESTS" not in os.environ, reason="S3_TESTS is not set: this fetches moto's server")
def test_a_bucket_that_is_missing_is_made_by_what_is_printed() -> None:
    port = free_port()
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=port)
    server.start()
    try:
        settings = {
            "catalog_type": "jdbc",
            "catalog_uri": "jdbc:sqlite:/c.db",
            "catalog_warehouse": "s3://lake/warehouse",
            "catalog_io__impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "catalog_s3_endpoint": f"http://127.0.0.1:{port}",
            "catalog_s3_path__style__access": "true",
            "catalog_s3_access__key__id": "key",
            "catalog_s3_secret__access__key": PASSWORD,
            "catalog_client_region": "us-east-1",
        }
        (finding,) = of_storage(sink(**settings), 5).findings
        assert finding.check == "sink.s3.bucket" and finding.statements[0].startswith("aws s3 mb s3://lake --region us-east-1")
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/lake", method="PUT"), timeout=60).close()
        assert of_storage(sink(**settings), 5).code == 0
    finally:
        server.stop()
