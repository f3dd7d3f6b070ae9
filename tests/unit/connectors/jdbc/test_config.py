"""The JDBC sink's properties: addresses and what a URL may not say, defaults, rules between properties, names."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_py.api import permissions
from connect_py.data import INT64, OPTIONAL_STRING, STRING, Struct
from connect_py.data.schema import struct
from connect_py.errors import ConfigError, DataError
from connectors.engine.sink_records import TargetNames
from connectors.jdbc.address import parse_address
from connectors.jdbc.config import DEFINITION, parse_config, problems
from connectors.jdbc.connector import JdbcSinkConnector
from connectors.jdbc.naming import TableId, field_filter, table_id

PG = {"connection.url": "jdbc:postgresql://db/shop", "connection.username": "u", "connection.password": "secret"}


@pytest.mark.parametrize(
    ("url", "kind", "host", "port", "database", "options"),
    [
        ("jdbc:postgresql://db/shop", "postgresql", "db", 5432, "shop", {}),
        ("jdbc:postgresql://db:6000/a%20b?sslmode=require", "postgresql", "db", 6000, "a b", {"sslmode": "require"}),
        ("jdbc:postgresql://db/shop?ssl=true&reWriteBatchedInserts=true", "postgresql", "db", 5432, "shop", {"sslmode": "verify-full"}),
        ("jdbc:mysql://[::1]:3307/shop?useSSL=true", "mysql", "::1", 3307, "shop", {"ssl_mode": "REQUIRED"}),
        (
            "jdbc:mysql://db/shop?sslMode=verify-full&connectTimeout=1500",
            "mysql",
            "db",
            3306,
            "shop",
            {"ssl_mode": "VERIFY_FULL", "connect_timeout": 2},
        ),
        ("jdbc:mariadb://db/shop", "mariadb", "db", 3306, "shop", {}),
    ],
)
def test_jdbc_urls_are_read(url: str, kind: str, host: str, port: int, database: str, options: dict[str, object]) -> None:
    found = parse_address(url)
    assert (found.kind, found.host, found.port, found.database, dict(found.options)) == (kind, host, port, database, options)
    assert "?" not in found.shown


@pytest.mark.parametrize(
    "parameter",
    [
        "socketFactory=org.evil.Factory",
        "socketFactoryArg=file",
        "sslfactory=x",
        "sslkey=/root/.ssh/id",
        "sslpasswordcallback=x",
        "authenticationPluginClassName=x",
        "loggerFile=/tmp/x",
        "options=-c%20x",
        "service=x",
        "user=root",
        "password=x",
    ],
)
def test_parameters_of_postgres_that_run_code_or_read_files_are_refused_by_name(parameter: str) -> None:
    with pytest.raises(ConfigError, match=f"the parameter {parameter.partition('=')[0]} is not allowed") as raised:
        parse_address(f"jdbc:postgresql://db/shop?{parameter}")
    assert parameter not in str(raised.value)


@pytest.mark.parametrize(
    "parameter",
    [
        "allowLoadLocalInfile=true",
        "allowUrlInLocalInfile=true",
        "autoDeserialize=true",
        "queryInterceptors=x",
        "propertiesTransform=x",
        "init_command=x",
        "read_default_file=/etc/passwd",
    ],
)
def test_parameters_of_mysql_that_run_code_or_read_files_are_refused(parameter: str) -> None:
    for kind in ("mysql", "mariadb"):
        with pytest.raises(ConfigError, match="is not allowed"):
            parse_address(f"jdbc:{kind}://db/shop?{parameter}")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgresql://db/shop",
        "jdbc:oracle:thin:@db:1521/shop",
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://x'",
        "jdbc:postgresql://u:p@db/shop",
        "jdbc:postgresql://a,b/shop",
        "jdbc:postgresql:///shop",
        "jdbc:postgresql://db/",
        "jdbc:postgresql://db:x/shop",
        "jdbc:mysql:loadbalance://db/shop",
        "jdbc:postgresql://db/shop?sslmode=yes",
        "jdbc:sqlite::memory:",
        "jdbc:sqlite:",
        "jdbc:sqlite:file:x?mode=ro",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"connection\.url"):
        parse_address(url)


def test_a_file_of_sqlite_or_of_certificates_must_be_where_the_worker_allows_files(tmp_path: Path) -> None:
    permissions.permit({permissions.FILE_PATHS: str(tmp_path)})
    try:
        assert parse_address(f"jdbc:sqlite:{tmp_path}/x.db").database == str((tmp_path / "x.db").resolve())
        assert parse_address(f"jdbc:postgresql://db/s?sslrootcert={tmp_path}/ca.pem").options["sslrootcert"].endswith("ca.pem")
        for url in (f"jdbc:sqlite:{tmp_path}/../x.db", "jdbc:sqlite:/etc/x.db", "jdbc:postgresql://db/s?sslrootcert=/etc/shadow"):
            with pytest.raises(ConfigError, match=r"file\.connectors\.allowed\.paths"):
                parse_address(url)
    finally:
        permissions.permit({})


def test_defaults_are_debeziums() -> None:
    shown = {name: key.default for name, key in DEFINITION.keys.items()}
    assert shown["insert.mode"] == "insert"
    assert shown["primary.key.mode"] == "none"
    assert shown["schema.evolution"] == "none"
    assert shown["collection.name.format"] == "${topic}"
    assert (shown["batch.size"], shown["flush.max.retries"], shown["flush.retry.delay.ms"]) == (500, 5, 1000)
    parsed = parse_config(PG)
    assert (parsed.insert_mode, parsed.deletes, parsed.truncates, parsed.reduces, parsed.quotes) == ("insert", False, False, False, False)
    assert "secret" not in repr(parsed)


def test_older_names_count_where_the_newer_one_is_missing() -> None:
    parsed = parse_config({**PG, "table.name.format": "t_${topic}", "database.time_zone": "Europe/Berlin"})
    assert parsed.tables.of("a.b", None) == "t_a_b"
    assert parsed.zone.key == "Europe/Berlin"
    assert parse_config({**PG, "table.name.format": "old", "collection.name.format": "new"}).tables.of("x", None) == "new"


@pytest.mark.parametrize(
    ("more", "name", "message"),
    [
        ({"connection.url": None}, "connection.url", "A value is required"),
        ({"connection.username": None}, "connection.username", "A value is required"),
        ({"insert.mode": "upsert"}, "insert.mode", "When using UPSERT, please define 'primary.key.mode' and 'primary.key.fields'."),
        ({"insert.mode": "UPSERT", "primary.key.fields": "id"}, "insert.mode", "When using UPSERT, please define 'primary.key.mode'."),
        ({"delete.enabled": "true"}, "delete.enabled", "the 'primary.key.mode' option must be set to 'record_key'"),
        ({"insert.mode": "merge"}, "insert.mode", "Value must be one of insert, upsert, update"),
        ({"use.time.zone": "Mars/Base"}, "use.time.zone", "no time zone"),
        ({"batch.size": "0"}, "batch.size", "at least 1"),
        ({"field.include.list": "a", "field.exclude.list": "b"}, "field.exclude.list", "Please specify only one"),
        ({"collection.naming.strategy": "org.evil.Strategy"}, "collection.naming.strategy", "could not be found"),
        ({"cloud.events.schema.name.pattern": "("}, "cloud.events.schema.name.pattern", "invalid"),
    ],
)
def test_validation_names_the_property_and_what_to_do(more: dict[str, str | None], name: str, message: str) -> None:
    config = {key: value for key, value in {**PG, **more}.items() if value is not None}
    errors = {value.name: value.errors for value in JdbcSinkConnector().validate(config)}
    assert any(message in error for error in errors[name])
    with pytest.raises(ConfigError):
        parse_config(config)


def test_a_valid_configuration_has_no_problems() -> None:
    assert problems({**PG, "insert.mode": "upsert", "primary.key.mode": "record_key", "delete.enabled": "true"}) == []


SOURCE = struct([("db", STRING), ("table", STRING), ("schema", OPTIONAL_STRING), ("pos", INT64)])
EVENT = struct([("source", SOURCE)], name="x.Envelope")


def test_tables_are_named_by_topic_and_source() -> None:
    event = Struct(EVENT, [Struct(SOURCE, ["shop", "items", None, 3])])
    assert TargetNames("table", "${topic}").of("a.b.c", None) == "a_b_c"
    assert TargetNames("table", "${topic}", is_passthrough=True).of("a.b.c", None) == "a.b.c"
    assert TargetNames("table", "${source.db}_${source.table}").of("t", event) == "shop_items"
    assert TargetNames("table", "${source.table}").of("t", None) is None
    for field in ("pos", "schema", "nothing"):
        with pytest.raises(DataError, match=f"has no text {field}"):
            TargetNames("table", f"${{source.{field}}}").of("t", event)


def test_table_names_are_divided_at_their_dots() -> None:
    assert table_id("t") == TableId("", "t")
    assert table_id("s.t") == TableId("s", "t")
    assert table_id("d.s.t") == TableId("s", "t")
    assert table_id('s."a.b"') == TableId("s", "a.b")
    for wrong in ("", "a.b.c.d", "a..b", '"a'):
        with pytest.raises(DataError, match="Failed to parse table name"):
            table_id(wrong)


def test_fields_are_chosen_by_name_or_by_topic_and_name() -> None:
    included, excluded = field_filter("a, t:b", ""), field_filter("", "a,t:b")
    assert [included("t", name) for name in "abc"] == [True, True, False]
    assert [included("u", name) for name in "abc"] == [True, False, False]
    assert [excluded("t", name) for name in "abc"] == [False, False, True]
    assert field_filter("", "")("t", "x")
