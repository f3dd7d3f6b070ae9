"""What the doctor says of catalogs and buckets, by what they answer. The real ones are in `tests/integration/test_sink_doctor.py`."""

from __future__ import annotations

import json
import socket
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from connect_py.api import Diagnosis
from spark_sink.config.sink_config import SinkConfig, parse
from spark_sink.doctor.catalog import is_asked, read_jdbc, read_rest, rest_findings
from spark_sink.doctor.diagnose import of_catalog, of_storage
from spark_sink.doctor.s3 import Answer, Bucket, bucket_of, findings, signed_headers

Answers = Mapping[str, tuple[int, str]]


@contextmanager
def answering(answers: Answers) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """A server that answers by path with status and body; gives its address, and (path, Authorization, body) of every request."""
    seen: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            seen.append((self.path, self.headers.get("Authorization", ""), body))
            status, text = answers.get(self.path.partition("?")[0], (404, "{}"))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


def sink(**more: str) -> SinkConfig:
    settings = {f"lakehouse.{name.replace('__', '-').replace('_', '.')}": value for name, value in more.items()}
    return parse({"name": "n", "topics": "t", **settings})


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


WELL: Answers = {
    "/v1/oauth/tokens": (200, '{"access_token": "ticket"}'),
    "/v1/config": (200, '{"defaults": {}, "overrides": {"prefix": "main"}}'),
    "/v1/main/namespaces": (200, '{"namespaces": []}'),
    "/v1/main/namespaces/a%1Fb": (200, "{}"),
}


def test_a_catalog_is_asked_as_iceberg_asks_it() -> None:
    with answering(WELL) as (uri, seen):
        catalog = {"type": "rest", "uri": uri, "credential": "client:correct-horse", "warehouse": "lake"}
        (finding,) = rest_findings(read_rest(catalog, ["a.b", "c"], 5), "iceberg")
    assert finding.statements == ("CREATE NAMESPACE `iceberg`.`c`;",)
    assert [(path, login) for path, login, _ in seen] == [
        ("/v1/oauth/tokens", ""),
        ("/v1/config?warehouse=lake", "Bearer ticket"),
        ("/v1/main/namespaces?pageSize=1", "Bearer ticket"),
        ("/v1/main/namespaces/a%1Fb", "Bearer ticket"),
        ("/v1/main/namespaces/c", "Bearer ticket"),
    ]
    assert seen[0][2] == "grant_type=client_credentials&scope=catalog&client_id=client&client_secret=correct-horse"


@pytest.mark.parametrize(
    ("answers", "check"),
    [
        ({"/v1/oauth/tokens": (401, '{"error": "invalid_client", "error_description": "no such client"}')}, "sink.catalog.credentials"),
        ({"/v1/config": (401, "")}, "sink.catalog.credentials"),
        ({"/v1/config": (403, '{"error": {"message": "no"}}')}, "sink.catalog.rights"),
        ({"/v1/main/namespaces": (403, "")}, "sink.catalog.rights"),
        ({"/v1/config": (404, "<html>")}, "sink.catalog.uri"),
        ({"/v1/config": (307, "")}, "sink.catalog.uri"),  # the credentials do not go elsewhere
        ({"/v1/config": (200, "<html>")}, "sink.catalog.connection"),
        ({"/v1/config": (503, "")}, "sink.catalog.connection"),
    ],
)
def test_each_refusal_of_a_catalog_is_told_apart(answers: Answers, check: str) -> None:
    with answering({**WELL, **answers}) as (uri, _):
        found = of_catalog(sink(catalog_type="rest", catalog_uri=uri, catalog_credential="client:correct-horse"), 5)
    assert checks(found) == [check] and "correct-horse" not in str(found), found


def test_a_catalog_that_is_not_there_is_a_finding_and_unseen() -> None:
    found = of_catalog(sink(catalog_type="rest", catalog_uri="http://127.0.0.1:1"), 5)
    assert (checks(found), found.code) == (["sink.catalog.connection"], 3)


def test_missing_namespaces_count_only_where_the_sink_creates_none() -> None:
    with answering(WELL) as (uri, _):
        config = {"catalog_type": "rest", "catalog_uri": uri, "tables": "c.t"}
        assert checks(of_catalog(sink(**config), 5)) == ["sink.catalog.namespace"]
        assert checks(of_catalog(sink(**config, tables_auto__create__enabled="true"), 5)) == []


def test_catalogs_whose_login_only_spark_knows_are_not_asked() -> None:
    assert is_asked({"type": "rest", "uri": "http://c"})
    assert not is_asked({"type": "rest", "uri": "http://c", "rest.sigv4-enabled": "true"})
    assert not is_asked({"type": "glue"})
    assert is_asked({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "uri": "http://c"})


HIVE = {"format": "delta", "spark_conf_spark_sql_catalogImplementation": "hive"}


@pytest.mark.parametrize(
    ("config", "unseen"),
    [
        ({"catalog_type": "hive", "catalog_uri": "thrift://{}"}, "The catalog (hive) at thrift://{}: only Spark can ask it"),
        ({"catalog_type": "hive", "catalog_uri": "thrift://127.0.0.1:1,thrift://{}"}, "only Spark can ask it"),
        ({"catalog_type": "hive"}, "The catalog (hive): only Spark can ask it"),
        ({"catalog_type": "glue"}, "The catalog (glue): only Spark can ask it"),
        ({"catalog_type": "nessie", "catalog_uri": "http://{}/api/v2"}, "The catalog (nessie) at http://{}/api/v2: only Spark can ask it"),
        ({"catalog_type": "rest", "catalog_uri": "http://{}", "catalog_rest_sigv4__enabled": "true"}, "(rest) at http://{}: only Spark"),
        ({"catalog_type": "jdbc", "catalog_uri": "jdbc:oracle:thin:@db:1521/x", "catalog_warehouse": "/w"}, "(jdbc): only Spark"),
        (
            {"catalog_catalog__impl": "org.apache.iceberg.snowflake.SnowflakeCatalog"},
            "(org.apache.iceberg.snowflake.SnowflakeCatalog): only",
        ),
        (HIVE, "The Hive metastore: only Spark can ask it"),
    ],
)
def test_what_is_not_looked_at_is_said(config: dict[str, str], unseen: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = "{}:{}".format(*server.getsockname())
        found = of_catalog(sink(**{name: value.format(at) for name, value in config.items()}), 5)
    assert (checks(found), len(found.unseen), found.code) == ([], 1, 3)
    assert unseen.format(at) in found.unseen[0]


@pytest.mark.parametrize(
    ("config", "check", "code"),
    [
        ({"catalog_type": "hive", "catalog_uri": "thrift://127.0.0.1:1"}, "sink.catalog.connection", 3),
        ({"catalog_type": "nessie", "catalog_uri": "http://127.0.0.1:1/api/v2"}, "sink.catalog.connection", 3),
        ({"catalog_type": "rest"}, "sink.catalog.uri", 1),
        ({"catalog_type": "jdbc", "catalog_warehouse": "/w"}, "sink.catalog.uri", 1),
    ],
)
def test_a_catalog_where_nothing_listens_is_found_whatever_its_kind(config: dict[str, str], check: str, code: int) -> None:
    found = of_catalog(sink(**config), 5)
    assert (checks(found), found.code) == ([check], code)


@pytest.mark.parametrize(
    ("config", "unseen"),
    [
        ({"catalog_type": "hadoop", "catalog_warehouse": "hdfs://name:8020/lake"}, ["hdfs://name:8020/lake"]),
        ({"format": "delta", "delta_root": "gs://bucket/lake"}, ["gs://bucket/lake"]),
        ({"format": "delta", "delta_root": "/lake", "spark_remote": "sc://spark:15002"}, ["/lake"]),
        ({"format": "delta", "delta_root": "/lake"}, []),
        ({"catalog_type": "rest", "catalog_uri": "http://c", "catalog_warehouse": "lake"}, []),
        ({"catalog_type": "rest", "catalog_uri": "http://c", "catalog_warehouse": "s3://bucket/lake"}, ["s3://bucket/lake"]),
    ],
)
def test_storage_that_only_spark_reaches_is_named(config: dict[str, str], unseen: list[str]) -> None:
    found = of_storage(sink(**config), 5)
    assert list(found.unseen) == [f"The tables' files at {place}: only Spark can reach them" for place in unseen]
    assert not found.findings and not found.looked_at


# -- JDBC -----------------------------------------------------------------------------------------------------------------------------


def jar(path: Path, name: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"")
    return path


def test_the_driver_of_a_catalogs_database_is_looked_for_in_the_jars(tmp_path: Path) -> None:
    other, driver = jar(tmp_path / "other.jar", "a/B.class"), jar(tmp_path / "all-in-one.jar", "org/sqlite/JDBC.class")
    config = {"catalog_type": "jdbc", "catalog_uri": f"jdbc:sqlite:file:{tmp_path}/catalog.db", "catalog_warehouse": "/lake"}
    assert read_jdbc(sink(**config).catalog, [other, driver], 5) is not None

    def look(*jars: Path) -> list[str]:
        facts = read_jdbc(sink(**config).catalog, jars, 5)
        assert facts is not None
        return [] if facts.has_driver else ["driver"]

    assert (look(other), look(other, driver)) == (["driver"], [])


def test_a_database_that_is_not_there_is_found(tmp_path: Path) -> None:
    nowhere = of_catalog(sink(catalog_type="jdbc", catalog_uri=f"jdbc:sqlite:{tmp_path}/no/catalog.db", catalog_warehouse="/lake"), 5)
    assert "sink.catalog.connection" in checks(nowhere)
    for kind in ("postgresql", "mysql"):
        config = {"catalog_type": "jdbc", "catalog_uri": f"jdbc:{kind}://127.0.0.1:1/lake", "catalog_warehouse": "/lake"}
        found = of_catalog(sink(**config), 3)
        assert "sink.catalog.connection" in checks(found) and found.code == 3


# -- S3 -------------------------------------------------------------------------------------------------------------------------------


def test_requests_are_signed_as_amazons_documentation_has_it() -> None:
    """The example "GET Bucket (List Objects)" of sig-v4-header-based-auth."""
    bucket = Bucket("examplebucket", "", "", "", key="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"
    headers = signed_headers(url, bucket, datetime(2013, 5, 24, tzinfo=UTC))
    assert headers["Authorization"].endswith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


S3 = {
    "catalog_type": "jdbc",
    "catalog_uri": "jdbc:sqlite:/c.db",
    "catalog_warehouse": "s3://lake/ware house",
    "catalog_io__impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "catalog_s3_path__style__access": "true",
    "catalog_s3_access__key__id": "key",
    "catalog_s3_secret__access__key": "correct-horse",
    "catalog_client_region": "eu-central-1",
}


def error(code: str, more: str = "") -> str:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>No.</Message>{more}</Error>"


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        ((200, ""), None),
        ((404, error("NoSuchBucket")), "sink.s3.bucket"),
        ((403, error("InvalidAccessKeyId")), "sink.s3.credentials"),
        ((403, error("SignatureDoesNotMatch")), "sink.s3.credentials"),
        ((403, error("AccessDenied")), "sink.s3.rights"),
        ((403, error("RequestTimeTooSkewed")), "sink.s3.clock"),
        ((400, error("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>")), "sink.s3.region"),
        ((301, error("PermanentRedirect")), "sink.s3.answer"),
        ((503, error("SlowDown")), "sink.s3.connection"),
    ],
)
def test_each_answer_of_s3_is_told_apart(answer: tuple[int, str], check: str | None) -> None:
    with answering({"/lake": answer}) as (uri, seen):
        found = of_storage(sink(**S3, catalog_s3_endpoint=uri), 5)
    assert checks(found) == ([] if check is None else [check])
    assert "correct-horse" not in str(found) and seen[0][0] == "/lake?list-type=2&max-keys=1&prefix=ware%20house"


def test_a_bucket_is_known_by_the_properties_of_either_way() -> None:
    iceberg = bucket_of(sink(**S3), {})
    assert (
        iceberg is not None and iceberg.region == "eu-central-1" and iceberg.url.startswith("https://s3.eu-central-1.amazonaws.com/lake?")
    )
    hadoop = {
        "format": "delta",
        "delta_root": "s3a://lake/tables",
        "hadoop_fs_s3a_endpoint": "http://minio:9000",
        "hadoop_fs_s3a_bucket_lake_access_key": "own",
    }
    delta = bucket_of(sink(**hadoop), {"AWS_ACCESS_KEY_ID": "other"})
    assert delta is not None and (delta.key, delta.endpoint) == ("own", "http://minio:9000")
    assert delta.url.startswith("http://lake.minio:9000/?")
    assert bucket_of(sink(catalog_type="hadoop", catalog_warehouse="/lake"), {}) is None
    vended = {name: value for name, value in S3.items() if "key" not in name} | {"catalog_type": "rest", "catalog_uri": "http://c"}
    assert bucket_of(sink(**vended), {}) is None, "the catalog gives out credentials"


def test_a_bucket_whose_rights_nobody_here_knows_is_no_finding() -> None:
    bucket = Bucket("lake", "", "catalog.s3.", "catalog.client.region", region="us-east-1")
    assert list(findings(bucket, Answer(403, "AccessDenied"))) == []
    with answering({"/lake": (403, error("AccessDenied"))}) as (uri, _):
        found = of_storage(sink(**{name: value for name, value in S3.items() if "key" not in name}, catalog_s3_endpoint=uri), 5)
    assert (checks(found), found.code) == ([], 3) and "only Spark has the credentials" in found.unseen[0]
    (finding,) = findings(bucket, Answer(301, "PermanentRedirect", region="eu-west-1"))
    assert finding.advice == "Set lakehouse.catalog.client.region=eu-west-1."


def test_no_file_of_this_machine_is_opened_as_an_address() -> None:
    found = of_storage(sink(**S3 | {"catalog_s3_endpoint": "file:///etc"}), 5)
    assert checks(found) == ["sink.s3.connection"]
    assert json.dumps([str(each) for each in found.findings]).count("no address of HTTP")
