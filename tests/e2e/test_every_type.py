"""From a database to its lakehouse tables, every type of the parity suites: source and table agree value by value, in both formats, and
readers that know nothing of one another (Spark; pyiceberg and deltalake) see the same."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.verify.report import Patience
from connect_py.app.verify.run import verify
from tests.fix_kafka import Kafka
from tests.fix_postgres import postgres_source
from tests.fix_spark import LAKES, Lake
from tests.lake_pump import MySqlPump, PostgresPump
from tests.mysql_task import mysql_source

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.timeout(900)]

UTC = datetime.UTC

#: Tables, rows, changes: each a list of statements.
POSTGRES, MYSQL = (
    [[statement for statement in part.partition("\n")[2].split(";\n") if statement.strip()] for part in text.split("-- ")[1:]]
    for text in ((Path(__file__).parent / "data" / f"every_type_{name}.sql").read_text() for name in ("postgres", "mysql"))
)
POSTGRES_TABLES = ("numbers", "texts", "times", "nets", "arrays")
MYSQL_TABLES = ("integers", "decimals", "moments", "texts", "bytes", "shapes")


@pytest.fixture
def lakes(kafka: Kafka, held_spark: Any, tmp_path: Path, tag: str) -> Iterator[list[Lake]]:
    """A warehouse of each format."""
    made = [kind(kafka.bootstrap, tmp_path / kind.format, tag) for kind in LAKES.values()]
    yield made
    for lake in made:
        lake.close()


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts, in which not-a-number equals itself; days and microseconds since 1970 for dates and timestamps."""

    def plain(value: Any) -> Any:
        match value:
            case datetime.datetime():
                return (value.replace(tzinfo=value.tzinfo or UTC) - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(
                    0, 0, 1
                )
            case datetime.date():
                return (value - datetime.date(1970, 1, 1)).days
            case dict():
                return {name: plain(found) for name, found in sorted(value.items())}
            case list() | tuple():
                return [plain(found) for found in value]
            case bytearray():
                return bytes(value)
        return value

    return sorted(repr({name: plain(value) for name, value in sorted(row.items())}) for row in rows)


def by_spark(lake: Lake, name: str) -> list[dict[str, Any]]:
    """A table's rows as Spark has them; moments as `comparable` wants them, since PySpark's own rows do not hold all years."""
    numbers = {"date": "unix_date(`{}`)", "timestamp": "unix_micros(`{}`)", "timestamp_ntz": "unix_micros(CAST(`{}` AS TIMESTAMP))"}
    frame = lake.tasks[-1].spark.table(lake.sql(name))
    columns = [(field.name, numbers.get(field.dataType.simpleString(), "`{}`")) for field in frame.schema.fields]
    chosen = [f"{form.format(column)} `{column}`" for column, form in columns if not column.startswith("__")]
    return [row.asDict(recursive=True) for row in frame.selectExpr(*chosen).collect()]


def assert_all_equal(lakes: list[Lake], source: dict[str, str], sinks: list[dict[str, str]], tables: tuple[str, ...]) -> None:
    problems: list[str] = []
    for lake, sink in zip(lakes, sinks, strict=True):
        outcomes = {outcome.table: outcome for outcome in verify(source, sink, [], Patience(wait=0))}
        assert set(outcomes) == {f"public.{table}" for table in tables}
        for name, outcome in outcomes.items():
            if not outcome.equal or outcome.lacking:
                problems.append(f"{lake.format} {name}: {outcome.problem} lacking {outcome.lacking} {outcome.counts}")
                problems += [f"  {d.key} {d.kind} {d.columns}" for d in outcome.differences]
        for table in tables:
            if comparable(by_spark(lake, table)) != comparable(lake.rows(table)):
                problems.append(
                    f"{lake.format} {table}: Spark has {comparable(by_spark(lake, table))}, others {comparable(lake.rows(table))}"
                )
    assert not problems, "\n".join(problems)


@pytest.mark.long
def test_every_type_of_postgresql(lakes: list[Lake], postgres_with_extensions: PostgresAddress, tag: str) -> None:
    server = postgres_with_extensions
    database = server.create_database()
    topics = [f"{tag}.public.{table}" for table in POSTGRES_TABLES]
    with server.connect(database) as db:
        tables, rows, changes = POSTGRES
        for statement in (*tables, *rows):
            db.execute(statement)
        count = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in POSTGRES_TABLES)
        listed = ",".join(f"public.{table}" for table in POSTGRES_TABLES)
        source = postgres_source(server, database, tag, topic_prefix=tag, table_include_list=listed, include_unknown_datatypes="true")
        sinks = [lake.config(*topics) for lake in lakes]
        with PostgresPump(source, lakes[0]) as pump:
            pump.pump(until=count)
            for statement in (*rows, *changes):
                db.execute(statement)
            pump.pump(until=2 * count + len(changes) + 1)  # a delete and its tombstone
            for lake, sink in zip(lakes, sinks, strict=True):
                lake.drain(lake.start(sink))
            assert_all_equal(lakes, source, sinks, POSTGRES_TABLES)
    server.drop_database(database)
    for lake in lakes:
        first = next(row for row in lake.rows("numbers") if row["pk"] == 4)  # as the stream had it
        assert (first["i8"], first["n"], first["n52"], first["m"]) == (-(2**63), "123.456", Decimal("-999.99"), Decimal("-1234.56"))
        assert first["n382"] == Decimal("999999999999999999999999999999999999.99")
        assert first["n503"] == "99999999999999999999999999999999999999999999999.999"
        moment = next(row for row in lake.rows("times") if row["pk"] == 7)
        assert (moment["ts"], moment["t3"]) == (datetime.datetime(2016, 11, 4, 13, 51, 30, 123456), "13:51:30.123000")
        assert moment["tstz"] == datetime.datetime(2016, 11, 4, 11, 51, 30, 123456, tzinfo=UTC)


@pytest.mark.long
def test_every_type_of_mysql(lakes: list[Lake], mysql: MySqlAddress, tag: str) -> None:
    topics = [f"{tag}.{tag}.{table}" for table in MYSQL_TABLES]
    with mysql.connect() as db, db.cursor() as cursor:
        tables, rows, changes = MYSQL
        for statement in (f"CREATE DATABASE {tag}", f"USE {tag}", "SET sql_mode = ''", "SET NAMES utf8mb4", *tables, *rows):
            cursor.execute(statement)
        count = 0
        for table in MYSQL_TABLES:
            cursor.execute(f"SELECT count(*) FROM {table}")
            count += next(iter(cursor.fetchone()))
        listed = ",".join(f"{tag}.{table}" for table in MYSQL_TABLES)
        # else JSON and ENUM members with a comma have one text in the log and another in a SELECT, as in the reference
        told = {"table_include_list": listed, "include_schema_changes": "false", "value_consistency": "unified"}
        source = mysql_source(mysql, lakes[0].bootstrap, tag, **told)
        sinks = [lake.config(*topics) | {"lakehouse.tables.route-pattern": "public.{table}"} for lake in lakes]
        with MySqlPump(source, lakes[0]) as pump:
            pump.pump(until=count)
            for statement in (*rows, *changes):
                cursor.execute(statement)
            pump.pump(until=2 * count + len(changes) + 1)
            for lake, sink in zip(lakes, sinks, strict=True):
                lake.drain(lake.start(sink))
            assert_all_equal(lakes, source, sinks, MYSQL_TABLES)
        cursor.execute(f"DROP DATABASE {tag}")
    for lake in lakes:
        row = next(row for row in lake.rows("integers") if row["id"] == 5)  # as the stream had it
        assert (row["eu"], row["b64"], row["y"]) == (-1, b"\xff" * 8, 2155), "unsigned 64 bits as long: Debezium's default"
        moment = next(row for row in lake.rows("moments") if row["id"] == 6)
        assert (moment["t6"], moment["dt6"]) == ("838:59:58.999999", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999))
