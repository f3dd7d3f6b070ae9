"""`connect-py verify` on real databases and real tables of both formats: what is equal, and what it finds when it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_py.commands.verify import verify
from connect_py.testing.services.mongo import MongoAddress
from connect_py.testing.services.mysql import MySqlAddress
from connect_py.testing.services.postgres import PostgresAddress
from tests import mongo_task
from tests.fix_postgres import postgres_source
from tests.fix_spark import Lake, both_formats
from tests.lake_pump import MongoPump, MySqlPump, PostgresPump
from tests.mysql_task import mysql_source

pytestmark = [pytest.mark.services, pytest.mark.spark]

POSTGRES_TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE things (id int, part text, b boolean, i2 smallint, i8 bigint, r real, d double precision, n numeric, n52 numeric(5, 2),
  n380 numeric(38, 0), m money, c char(5), t text, e mood, j jsonb, u uuid, raw bytea, bits bit(10), day date, at time(3), atz timetz,
  ts timestamp, ts3 timestamp(3), tstz timestamptz, iv interval, ia int[], ta text[], tsa timestamp[], na numeric(10, 2)[],
  fill int DEFAULT 7, PRIMARY KEY (id, part));
INSERT INTO things VALUES
  (1, 'a', true, -32768, 9223372036854775807, 1.1, 2.2, 123.4560, -999.99, 99999999999999999999999999999999999999, '$1,234.56', 'ab',
   'žluťoučký 日本語', 'ok', '{"a": [1, 2.50]}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\xdeadbeef00', '1010101010', '2016-11-04',
   '13:51:30.123', '13:51:30.123789+02', '2016-11-04 13:51:30.123456', '1969-12-31 23:59:59.999', '2016-11-04 13:51:30.123456+02',
   '1 year 2 days', '{1,NULL,3}', '{x,NULL,"q\\"q"}', '{"2016-01-01 10:00:00.123456",NULL}', '{1.10,2.20}', NULL),
  (1, 'B', false, 0, -1, 'NaN', '-Infinity', 0.000000001, 0, -1, '0', '', '', 'sad', 'null', NULL, '', B'0000000000', '0001-01-01',
   '00:00', '00:00+00', '0001-01-01 00:00', '9999-12-31 23:59:59.999', '1900-01-01 00:00:00.000001+00', '-1 day',
   '{}', '{}', '{}', '{}', 1),
  (-2147483648, '', NULL, NULL, NULL, '3.4028235e38', '-1.7976931348623157e308', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, 'infinity', '24:00', NULL, '-infinity', NULL, 'infinity', NULL, NULL, NULL, NULL, NULL, DEFAULT);
"""
MYSQL_TYPES = """
CREATE TABLE things (id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, flag TINYINT(1), bu SMALLINT UNSIGNED, du INT UNSIGNED, y YEAR, b1 BIT,
  b17 BIT(17), dd DECIMAL(12, 3), big DECIMAL(65, 30), f FLOAT, g DOUBLE, c CHAR(5), v VARCHAR(40), t TEXT, e ENUM('x', 'y'),
  s SET('p', 'q', 'r'), j JSON, raw VARBINARY(9), bl BLOB, day DATE, dt DATETIME(6), dt0 DATETIME,
  ts TIMESTAMP(3) NULL, at TIME(6), fill INT DEFAULT 7);
INSERT INTO things VALUES
  (1, -128, 1, 65535, 4294967295, 2155, 1, 131071, -999999999.999, 99999999999999999999999999999999999.999999999999999999999999999999,
   3.4028234e38, 2.2, 'ab', 'žluťoučký 😀', 'long', 'y', 'p,r', '{"a": [1, 2.5]}', X'DEAD00', X'00FF', '9999-12-31',
   '2016-11-04 13:51:30.123456', '1969-12-31 23:59:59', '2038-01-19 03:14:07.499', '-838:59:58.999999', NULL),
  (18446744073709551615, NULL, 0, 0, 0, NULL, NULL, NULL, 0, -0.000000000000000000000000000001, 0.1, -0.1, '', '', '', NULL,
   '', 'null', '', '', '1000-01-01', '1000-01-01', '1000-01-01', NULL, '838:59:59', 1);
INSERT INTO things (id) VALUES (5);
"""

Files = Callable[..., list[str]]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Configurations as files: the command line of `verify`."""

    def write(*configs: dict[str, str]) -> list[str]:
        paths = []
        for number, config in enumerate(configs):
            path = tmp_path / f"{number}.json"
            path.write_text(json.dumps({"name": f"c{number}", "config": config}))
            paths.append(str(path))
        return paths

    return write


def found(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """Exit code, and what it says of each table."""
    capsys.readouterr()
    code = verify([*arguments, "--json"], "")
    said = capsys.readouterr()
    assert not said.err
    return code, [json.loads(line) for line in said.out.splitlines()]


@both_formats
def test_every_type_of_postgresql_is_found_equal_and_each_kind_of_difference_is_told_with_its_values(
    lake: Lake, postgres: PostgresAddress, database: str, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.execute(POSTGRES_TYPES)
        source = postgres_source(postgres, database, tag, topic_prefix=tag, table_include_list="public.things")
        sink = lake.config(f"{tag}.public.things")
        with PostgresPump(source, lake) as pump:
            pump.pump(until=3)
            task = lake.start(sink)
            lake.drain(task)
            paths = files(source, sink)
            code, (same,) = found([*paths, "--wait", "0"], capsys)
            assert (code, same["equal"], same["source_rows"], same["table_rows"]) == (0, True, 3, 3), same
            db.execute("INSERT INTO things (id, part, t) VALUES (7, 'new', 'n')")
            db.execute("UPDATE things SET t = 'changed', n52 = 0.5 WHERE part = 'a'")
            db.execute("DELETE FROM things WHERE part = 'B'")
            code, (other,) = found([*paths, "--wait", "0"], capsys)
            assert code == 3
            assert (other["missing"], other["extra"], other["different"]) == (1, 1, 1)
            told = {difference["kind"]: difference for difference in other["differences"]}
            assert told["missing"]["key"] == {"id": 7, "part": "new"} and told["missing"]["table"] is None
            assert told["extra"]["key"] == {"id": 1, "part": "B"} and told["extra"]["source"] is None
            differing = {name for name, value in told["different"]["source"].items() if value != told["different"]["table"][name]}
            assert differing == {"t", "n52"}
            assert (told["different"]["source"]["n52"], told["different"]["table"]["n52"]) == ("0.5", "-999.99")
            assert verify([*paths, "--wait", "0"], "") == 3
            assert "different id=1, part='a': n52 is 0.5 in the source, -999.99 in the table; t is 'changed'" in capsys.readouterr().out
            pump.pump(until=7)
            lake.drain(task)
            code, (again,) = found([*paths, "--wait", "0"], capsys)
            assert (code, again["equal"]) == (0, True), again


@both_formats
def test_every_type_of_mysql_is_found_equal(
    lake: Lake, mysql: MySqlAddress, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with mysql.connect() as db, db.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {tag}")
        cursor.execute(f"USE {tag}")
        cursor.execute("SET sql_mode = ''")
        for statement in MYSQL_TYPES.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        source = mysql_source(mysql, lake.bootstrap, tag, include_schema_changes="false")
        sink = lake.config(f"{tag}.{tag}.things")
        with MySqlPump(source, lake) as pump:
            pump.pump(until=3)
            lake.drain(lake.start(sink))
        code, (same,) = found([*files(source, sink), "--wait", "0", "--table", rf"{tag}\.things"], capsys)
        cursor.execute(f"DROP DATABASE {tag}")
    assert (code, same["equal"], same["source_rows"], same["table_rows"]) == (0, True, 3, 3), same


def test_documents_that_a_transform_made_columns_of_are_compared_by_all_their_fields(
    lake: Lake, mongo: MongoAddress, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with mongo_task.database(mongo) as db:
        db.things.insert_many([{"_id": 1, "a": "x"}, {"_id": 2, "a": "y", "b": 2**40, "c": {"d": [1, 2]}}])
        source = mongo_task.config(mongo, db)
        topic = f"m.{db.name}.things"
        sink = lake.config(topic) | {
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
        }
        with MongoPump(source, lake) as pump:
            pump.pump(until=2)
            lake.drain(lake.start(sink))
        paths = files(source, sink)
        code, (same,) = found([*paths, "--wait", "0"], capsys)
        assert (code, same["equal"], same["source_rows"]) == (0, True, 2), same
        db.things.update_one({"_id": 2}, {"$set": {"b": 7}})
        code, (other,) = found([*paths, "--wait", "0"], capsys)
        assert (code, other["different"]) == (3, 1)
        assert (other["differences"][0]["source"]["b"], other["differences"][0]["table"]["b"]) == (7, 2**40)
