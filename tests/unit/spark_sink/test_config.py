"""Properties of the lakehouse sink: aliases, refusals, what ends up where."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.errors import ConfigError, FatalTaskError
from spark_sink.config.sink_config import CONFIG_DEF, parse
from spark_sink.connector import SparkLakehouseSink
from spark_sink.spark import jars
from spark_sink.spark.settings import context_settings

GOOD = {"topics": "a.b.c, d.e.f", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/tmp/w"}


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in SparkLakehouseSink().validate(config) if value.errors}


def test_every_property_is_documented_and_grouped() -> None:
    assert all(key.documentation and key.group for key in CONFIG_DEF.keys.values())


def test_prefixed_properties_reach_spark_the_catalog_kafka_and_new_tables() -> None:
    parsed = parse(
        GOOD
        | {
            "lakehouse.spark.conf.spark.driver.memory": "2g",
            "lakehouse.hadoop.fs.s3a.endpoint": "e",
            "lakehouse.kafka.max.poll.records": "10",
            "lakehouse.tables.auto-create-props.format-version": "3",
            "lakehouse.catalog.uri": "u",
        }
    )
    assert parsed.topics == ("a.b.c", "d.e.f")
    assert parsed.catalog == {"type": "hadoop", "warehouse": "/tmp/w", "uri": "u"}
    assert parsed.spark_conf == {"spark.driver.memory": "2g", "spark.hadoop.fs.s3a.endpoint": "e"}
    assert (parsed.kafka, parsed.table_properties) == ({"max.poll.records": "10"}, {"format-version": "3"})


def test_what_writers_are_told_becomes_a_setting_of_the_session_or_is_refused() -> None:
    told = parse(GOOD | {"iceberg.tables.write-props.write.parquet.compression-codec": "gzip"})
    assert told.spark_conf == {"spark.sql.iceberg.compression-codec": "gzip"}
    delta = {"topics": "a", "lakehouse.format": "delta", "lakehouse.delta.root": "/w"}
    assert parse(delta | {"lakehouse.tables.write-props.maxRecordsPerFile": "9"}).spark_conf == {"spark.sql.files.maxRecordsPerFile": "9"}
    with pytest.raises(ConfigError, match="for new ones"):
        parse(GOOD | {"lakehouse.tables.write-props.write.target-file-size-bytes": "1"})
    both = {
        "lakehouse.tables.write-props.compression-codec": "gzip",
        "lakehouse.tables.write-props.write.parquet.compression-codec": "zstd",
    }
    with pytest.raises(ConfigError, match="two different things"):
        parse(GOOD | both)


def test_icebergs_spelling_means_the_same() -> None:
    config = {"topics.regex": ".*", "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": "/w", "iceberg.catalog": "lake"}
    parsed = parse(config | {"iceberg.tables.auto-create-enabled": "true", "iceberg.control.topic": "means nothing here"})
    assert (parsed["catalog"], parsed["tables.auto-create-enabled"], parsed.catalog["warehouse"]) == ("lake", True, "/w")
    assert not errors(config)


def test_two_spellings_of_one_property_must_agree() -> None:
    config = GOOD | {"lakehouse.catalog": "a", "iceberg.catalog": "b"}
    with pytest.raises(ConfigError, match="set to different values"):
        parse(config)
    assert "lakehouse.catalog" in errors(config)
    assert parse(GOOD | {"lakehouse.catalog": "a", "iceberg.catalog": "a"})["catalog"] == "a"


@pytest.mark.parametrize(
    ("changes", "where", "why"),
    [
        ({"lakehouse.tables.auto-create": "true"}, "lakehouse.tables.auto-create", "is not a property"),
        ({"lakehouse.format": "hudi"}, "lakehouse.format", "must be one of: iceberg"),
        ({"lakehouse.tables.write-mode": "merge"}, "lakehouse.tables.write-mode", "must be one of: upsert, append, scd2"),
        ({"lakehouse.tables.truncate-mode": "hard"}, "lakehouse.tables.truncate-mode", "must be one of: apply, soft, ignore, fail"),
        ({"lakehouse.tables.metadata-columns": "op,when"}, "lakehouse.tables.metadata-columns", "when"),
        ({"lakehouse.tables.route-pattern": "{shema}.{table}"}, "lakehouse.tables.route-pattern", "placeholders are"),
        ({"lakehouse.tables.ordering": "newest"}, "lakehouse.tables.ordering", "column:<name>"),
        ({"lakehouse.tables.ordering": "column:"}, "lakehouse.tables.ordering", "column:<name>"),
        ({"lakehouse.tables.default-partition-by": "days(a"}, "lakehouse.tables.default-partition-by", "is none of a column"),
        ({"lakehouse.tables.default-partition-by": "bucket(a)"}, "lakehouse.tables.default-partition-by", "is none of a column"),
        ({"lakehouse.tables.ordering": "source", "lakehouse.tables.write-mode": "scd2"}, "lakehouse.catalog", "must be log"),
        ({"lakehouse.max-offsets-per-trigger": "0"}, "lakehouse.max-offsets-per-trigger", "at least 1"),
    ],
)
def test_what_the_sink_would_have_to_ignore_is_an_error_at_its_property(changes: dict[str, str], where: str, why: str) -> None:
    found = errors(GOOD | changes)
    assert list(found) == [where]
    assert why in found[where][0]
    with pytest.raises(ConfigError):
        parse(GOOD | changes)


def test_a_missing_warehouse_or_catalog_type_is_named() -> None:
    for hadoop in ({"lakehouse.catalog.type": "hadoop"}, {"lakehouse.catalog.catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"}):
        assert "lakehouse.catalog.warehouse is missing" in str(errors({"topics": "t", **hadoop}))
    assert "lakehouse.catalog.type is missing" in str(errors({"topics": "t"}))


def test_secrets_of_the_catalog_do_not_show_in_the_parsed_configuration() -> None:
    assert "hunter2" not in repr(parse(GOOD | {"lakehouse.catalog.credential": "hunter2"}))


def test_the_connector_has_one_task() -> None:
    connector = SparkLakehouseSink()
    connector.start(GOOD)
    assert connector.task_configs(8) == [GOOD]


@pytest.fixture
def _fresh_java() -> Iterator[None]:
    jars.java.cache_clear()
    yield
    jars.java.cache_clear()


def test_a_missing_java_gets_one_clear_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, _fresh_java: None) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert errors(GOOD) == {
        "lakehouse.spark.master": ["Java 17 or newer is needed and no java command was found; install a JRE or set JAVA_HOME."]
    }


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, _fresh_java: None) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r'bin/java says: openjdk version "1\.8\.0_402"'):
        jars.java()


def test_a_missing_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "connect-py-worker[spark]" in errors(GOOD)["lakehouse.spark.master"][0]


def test_a_library_that_is_not_the_one_that_was_tested_is_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path))
    assert set(jars.SHA256) == set(jars.SINK_JARS)

    def download(coordinates: list[str], excludes: list[str], transitive: bool, scratch: Path) -> None:
        (scratch / "jars").mkdir()
        for coordinate in coordinates:
            (scratch / "jars" / (coordinate.replace(":", "_", 1).replace(":", "-") + ".jar")).write_bytes(b"other")

    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(FatalTaskError, match=f"io.delta:delta-storage:4.4.0 from Maven Central has the SHA-256 {other}"):
        jars.resolve(["io.delta:delta-storage:4.4.0"], tmp_path / "jars" / "x", download=download)
    assert not list((tmp_path / "jars").iterdir())
    assert len(jars.resolve(["some:other:1"], tmp_path / "jars" / "y", download=download)) == 1


def test_the_libraries_that_are_here_are_those_that_were_tested() -> None:
    here = jars.cached(jars.SINK_JARS, "spark-sink")
    if not here.is_dir():
        pytest.skip("they have not been fetched yet")
    jars.verify(jars.SINK_JARS, here)


def test_libraries_that_cannot_be_had_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match="Invalid Maven coordinate nonsense"):
        jars.resolve(["nonsense"], tmp_path / "jars" / "x")
    assert not list((tmp_path / "jars").iterdir())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("spark.plugins", "allow it in the worker's environment"),
        ("spark.jars.packages", "CONNECT_PY_SPARK_SETTINGS=spark.jars.packages"),
        ("spark.driver.memoryy", "is not a setting that connectors may make"),
        ("spark.sql.extensions", "both formats' extensions are loaded always"),
        ("spark.sql.session.timeZone", "conversions rely on UTC"),
    ],
)
def test_settings_of_spark_are_those_of_a_list(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        parse(GOOD | {f"lakehouse.spark.conf.{name}": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.conf.spark.driver.extraJavaOptions", "-XX:OnOutOfMemoryError=touch /tmp/x -XX:MaxMetaspaceSize=14m"),
        ("spark.conf.spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -javaagent:/tmp/x.jar"),
        ("spark.conf.spark.executor.extraJavaOptions", "@/tmp/options"),
        ("spark.conf.spark.driver.extraClassPath", "/tmp/x.jar"),
        ("spark.conf.spark.jars", "http://evil/x.jar"),
        ("spark.conf.spark.jars.packages", "a:b:1"),
        ("spark.conf.spark.executor.plugins", "x"),
        ("spark.conf.spark.sql.catalog.other", "some.Class"),
        ("spark.conf.spark.sql.queryExecutionListeners", "some.Class"),
        ("spark.conf.spark.sql.hive.metastore.jars.path", "/tmp/x.jar"),
        ("spark.conf.spark.kubernetes.driver.podTemplateFile", "/tmp/x"),
        ("spark.conf.spark.ui.filters", "some.Class"),
        ("spark.conf.spark.io.compression.codec", "some.Class"),
        ("spark.conf.spark.hadoop.fs.evil.impl", "some.Class"),
        ("hadoop.fs.s3a.impl", "some.Class"),
        ("hadoop.fs.azure.shellkeyprovider.script", "/bin/sh"),
        ("hadoop.fs.azure.sas.token.provider.type.a.blob.core", "some.Class"),
        ("hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:x"),
        ("hadoop.fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,some.Class"),
        ("catalog.hadoop.fs.evil.impl", "some.Class"),
        ("catalog.io-impl", "some.Class"),
        ("tables.auto-create-props.write.location-provider.impl", "some.Class"),
        ("spark.jars", "http://evil/x.jar"),
        ("spark.master", "spark://evil:7077"),
    ],
)
def test_a_setting_that_could_run_code_is_refused_at_its_property_unless_the_operator_allows_it(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = GOOD | {f"lakehouse.{name}": value}
    found = errors(config)
    assert list(found) == [f"lakehouse.{name}"]
    assert "The worker's operator can allow it in the worker's environment: CONNECT_PY_SPARK_SETTINGS=" in found[f"lakehouse.{name}"][0]
    with pytest.raises(ConfigError, match=re.escape(f"lakehouse.{name} is not a setting that connectors may make")):
        SparkLakehouseSink().start(config)  # as the task does: a stored configuration may be older than the rule
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", found[f"lakehouse.{name}"][0].partition("CONNECT_PY_SPARK_SETTINGS=")[2].split()[0])
    assert not errors(config)


def test_the_jvm_fetches_tokens_from_the_workers_addresses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def option(config: dict[str, str], kafka: dict[str, str]) -> str:
        settings = context_settings(parse(GOOD | {"lakehouse.spark.jars": "x.jar"} | config), kafka)
        return settings["spark.driver.extraJavaOptions"]

    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars")
    name = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
    assert option({}, {}) == name
    assert option({"lakehouse.spark.conf.spark.driver.extraJavaOptions": "-Xss2m"}, {}) == f"{name} -Xss2m"
    assert option({}, {"sasl.oauthbearer.token.endpoint.url": "https://login/token"}) == f"{name}https://login/token"


@pytest.mark.parametrize("type_", ["int) OR java_method('java.lang.System', 'exit', 1", "struct<a:int>>", "decimal(3", "array<int'>"])
def test_a_columns_type_is_a_type_and_no_other_sql(type_: str) -> None:
    assert "Invalid " in str(errors(GOOD | {"lakehouse.table.public.t.column-types": f"a:{type_}"}))
    types = "a:int,b:struct<`x y`:array<decimal(10, 2)>,z:map<string,date>>,c:io.debezium.time.MicroTimestamp"
    assert not errors(GOOD | {"lakehouse.table.public.t.column-types": types})


def test_what_only_tunes_and_names_of_file_systems_need_no_operator() -> None:
    harmless = {
        "spark.conf.spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseG1GC -XX:-UseTransparentHugePages",
        "spark.conf.spark.driver.memory": "2g",
        "spark.conf.spark.executor.cores": "1",
        "spark.conf.spark.sql.shuffle.partitions": "7",
        "spark.conf.spark.sql.codegen.cache.maxEntries": "4000",
        "spark.conf.spark.hadoop.fs.s3a.endpoint": "http://minio:9000",
        "hadoop.fs.s3a.bucket.one.secret.key": "s",
        "hadoop.fs.s3a.path.style.access": "true",
        "hadoop.fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "hadoop.fs.azure.account.key.store.dfs.core.windows.net": "k",
        "hadoop.fs.gs.auth.service.account.json.keyfile": "/etc/key.json",
        "catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "catalog.credential": "id:secret.part",
        "spark.master": "local[2]",
    }
    assert not errors(GOOD | {f"lakehouse.{name}": value for name, value in harmless.items()})


def test_the_workers_environment_can_allow_more_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.plugins, spark.my.")
    found = parse(GOOD | {"lakehouse.spark.conf.spark.plugins": "p", "lakehouse.spark.conf.spark.my.own": "1"})
    assert found.spark_conf == {"spark.plugins": "p", "spark.my.own": "1"}
