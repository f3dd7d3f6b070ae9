"""The tables that Debezium's own JDBC sink made, from the records that it read: types, defaults, keys and rows, in PostgreSQL and MySQL.

`data/jdbc_reference.json.gz` holds the topics of Debezium's PostgreSQL and MySQL sources (tables of every type with and without
`column.propagate.source.type`; updates, deletions, changed keys, added columns), and the tables that
`io.debezium.connector.jdbc.JdbcSinkConnector` made of them. The same records go through this project's task here.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from tests.jdbc_task import Reader, started

pytestmark = pytest.mark.services

REFERENCE = json.loads(gzip.decompress((Path(__file__).parent / "data/jdbc_reference.json.gz").read_bytes()))
TOPICS: dict[str, list[list[str | None]]] = REFERENCE["topics"]

#: What the reference cannot write: geometries without PostGIS, times as defaults of PostgreSQL's columns, arrays in MySQL.
EXCLUDED = {"pg": "pt,g,p", "pgmy": "pt,g,p,ai,at,an,hs,ci,lt,tv,n,ttz,vbu", "mypg": "pt,g,p,tm"}


def properties(target: str, topic: str, table: str) -> dict[str, str]:
    """What the reference was configured with for a table."""
    source = "my" if "my" in topic.partition(".")[0] else "pg"
    listed = EXCLUDED.get(source + target if source != target else source, "pt,g,p")
    config = {"field_exclude_list": listed}
    if table.startswith("ins_"):
        return config | {"collection_name_format": table, "quote_identifiers": "true"}
    if table.startswith("none_"):
        return config | {"collection_name_format": "none_${topic}"}
    if table.startswith("kafka_"):
        return config | {"collection_name_format": "kafka_${topic}", "insert_mode": "upsert", "primary_key_mode": "kafka"}
    has_case = target == "my" and "types" in table
    more = {"insert_mode": "upsert", "primary_key_mode": "record_key", "delete_enabled": "true"}
    return config | more | {"quote_identifiers": "true" if has_case else "false"}


def topic_of(table: str) -> str:
    if table.startswith("ins_types_"):
        return "jtr1my.jtsrc.types" if table.endswith("my") else "jtr1pg.public.types"
    plain = table.removeprefix("none_").removeprefix("kafka_")
    return next(topic for topic in TOPICS if topic.replace(".", "_") == plain)


def write(url: str, login: dict[str, str], target: str, table: str) -> None:
    topic, reader = topic_of(table), Reader()
    with started(url, **login, **properties(target, topic, table)) as (task, _):
        for offset, (key, value) in enumerate(TOPICS[topic]):
            task.put([reader.record(topic, offset, key, value)])


@pytest.fixture
def extended_database(postgres_with_extensions: PostgresAddress) -> Iterator[str]:
    """A new database of a server that has XML and PostgreSQL's own extensions."""
    name = postgres_with_extensions.create_database()
    yield name
    postgres_with_extensions.drop_database(name)


@pytest.mark.parametrize("table", sorted(REFERENCE["tables"]["pg"]))
def test_tables_of_postgres_are_those_of_the_reference(
    postgres_with_extensions: PostgresAddress, extended_database: str, table: str
) -> None:
    check_postgres(postgres_with_extensions, extended_database, table)


def check_postgres(postgres: PostgresAddress, database: str, table: str) -> None:
    with postgres.connect(database) as db:
        for extension in ("hstore", "citext", "ltree"):
            db.execute(f"CREATE EXTENSION {extension}")
        db.commit()
    url = f"jdbc:postgresql://{postgres.host}:{postgres.port}/{database}"
    write(url, {"connection_username": postgres.user, "connection_password": postgres.password}, "pg", table)
    expected = REFERENCE["tables"]["pg"][table]
    with postgres.connect(database) as db:
        db.execute("SET TIME ZONE 'UTC'")
        columns = db.execute(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = %s::regclass AND a.attnum > 0 "
            "ORDER BY a.attnum",
            (f'"{table}"',),
        ).fetchall()
        assert [list(column) for column in columns] == expected["cols"]
        keys = db.execute(
            "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, place) JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE i.indisprimary AND i.indrelid = %s::regclass ORDER BY k.place",
            (f'"{table}"',),
        ).fetchall()
        assert [name for (name,) in keys] == (expected["pk"] or [])
        names = ", ".join(f'"{name}"::text' for name, *_ in columns)
        found = [dict(zip([c[0] for c in columns], row, strict=True)) for row in db.execute(f'SELECT {names} FROM "{table}"').fetchall()]
    assert sorted(found, key=str) == sorted(expected["rows"], key=str)


@pytest.mark.parametrize("table", sorted(REFERENCE["tables"]["my"]))
def test_tables_of_mysql_are_those_of_the_reference(mysql: MySqlAddress, tag: str, table: str) -> None:
    name = tag.replace("-", "_")
    with pymysql.connect(host=mysql.host, port=mysql.port, user=mysql.user, password=mysql.password, autocommit=True) as db:
        cursor = db.cursor()
        cursor.execute(f"CREATE DATABASE `{name}`")
        try:
            url = f"jdbc:mysql://{mysql.host}:{mysql.port}/{name}"
            write(url, {"connection_username": mysql.user, "connection_password": mysql.password}, "my", table)
            cursor.execute(
                "SELECT column_name, column_type, is_nullable, column_default, column_key FROM information_schema.columns "
                "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
                (name, table),
            )
            columns: list[list[Any]] = [[None if item is None else str(item) for item in row] for row in cursor.fetchall()]
            expected = REFERENCE["tables"]["my"][table]
            assert columns == expected["cols"]
            cursor.execute(f"SELECT * FROM `{name}`.`{table}`")
            rows = [dict(zip([c[0] for c in columns], map(shown, row), strict=True)) for row in cursor.fetchall()]
            assert sorted(rows, key=str) == sorted(expected["rows"], key=str)
        finally:
            cursor.execute(f"DROP DATABASE `{name}`")


def shown(value: Any) -> str | None:
    return value if value is None else value.hex() if isinstance(value, bytes) else str(value)


def test_what_the_reference_cannot_write_is_written(
    postgres_with_extensions: PostgresAddress, extended_database: str, mysql: MySqlAddress, tag: str
) -> None:
    """Points without PostGIS, times as defaults, times with a zone in MySQL, geometries."""
    name = tag.replace("-", "_")
    upsert = {"insert_mode": "upsert", "primary_key_mode": "record_key", "delete_enabled": "true", "quote_identifiers": "true"}
    reader = Reader()

    def put(url: str, login: tuple[str, str], topic: str, excluded: str) -> None:
        named = {"connection_username": login[0], "connection_password": login[1], "field_exclude_list": excluded}
        with started(url, **named, **upsert) as (task, _):
            task.put([reader.record(topic, offset, key, value) for offset, (key, value) in enumerate(TOPICS[topic])])

    postgres, database = postgres_with_extensions, extended_database
    to_postgres = f"jdbc:postgresql://{postgres.host}:{postgres.port}/{database}", (postgres.user, postgres.password)
    put(*to_postgres, "jtr1pg.public.types", "lt,hs")
    put(*to_postgres, "jtr1my.jtsrc.types", "g,p")
    with postgres.connect(database) as db:
        assert db.execute("SELECT pt::text, n FROM jtr1pg_public_types WHERE id = 1").fetchone() == ("(1.5,2)", 1.2345678901234567e19)
        assert db.execute("SELECT tm::text FROM jtr1my_jtsrc_types ORDER BY id").fetchall() == [("23:59:59",), ("01:02:03",)]
    with pymysql.connect(host=mysql.host, port=mysql.port, user=mysql.user, password=mysql.password, autocommit=True) as db:
        cursor = db.cursor()
        cursor.execute(f"CREATE DATABASE `{name}`")
        try:
            to_mysql = f"jdbc:mysql://{mysql.host}:{mysql.port}/{name}", (mysql.user, mysql.password)
            put(*to_mysql, "jtr1my.jtsrc.types", "")
            put(*to_mysql, "jtr1pg.public.types", "ai,at,an")
            cursor.execute(f"SELECT ST_AsText(g), ST_AsText(p), ST_SRID(p) FROM `{name}`.jtr1my_jtsrc_types WHERE id = 1")
            assert cursor.fetchall() == (("LINESTRING(0 0,1 1)", "POINT(1 2)", 4326),)
            cursor.execute(f"SELECT CAST(ttz AS CHAR), vbu, ST_AsText(pt) FROM `{name}`.jtr1pg_public_types WHERE id = 1")
            assert cursor.fetchall() == (("08:00:00.500000", "1100", "POINT(1.5 2)"),)
        finally:
            cursor.execute(f"DROP DATABASE `{name}`")
