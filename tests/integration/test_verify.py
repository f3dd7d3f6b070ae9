"""`connect-py verify` on real databases and real tables of both formats: what is equal, and what it finds when it is not."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from connect_py.app.cli import main
from connect_py.app.services.mongo import MongoAddress
from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from tests import mongo_task
from tests.fix_postgres import postgres_source
from tests.fix_spark import Lake, iceberg_and_long_delta
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
    code = main(["verify", *arguments, "--json"])
    said = capsys.readouterr()
    assert not said.err
    return code, [json.loads(line) for line in said.out.splitlines()]


@iceberg_and_long_delta
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
            assert main(["verify", *paths, "--wait", "0"]) == 3
            assert "different id=1, part='a': n52 is 0.5 in the source, -999.99 in the table; t is 'changed'" in capsys.readouterr().out
            pump.pump(until=7)
            lake.drain(task)
            code, (again,) = found([*paths, "--wait", "0"], capsys)
            assert (code, again["equal"]) == (0, True), again


def test_topic_and_table_are_held_against_the_source_and_the_side_that_is_wrong_is_named(
    lake: Lake, postgres: PostgresAddress, database: str, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE things (id int PRIMARY KEY, t text)")
        db.execute("INSERT INTO things SELECT i, 'x' FROM generate_series(1, 50) i")
        source = postgres_source(postgres, database, tag, topic_prefix=tag, table_include_list="public.things")
        sink = lake.config(f"{tag}.public.things")
        with PostgresPump(source, lake) as pump:
            pump.pump(until=50)
            task = lake.start(sink)
            lake.drain(task)
            paths = [*files(source, sink), "--bootstrap-servers", lake.bootstrap, "--wait", "0"]
            code, (topic, table) = found(paths, capsys)
            assert (code, topic["side"], topic["equal"], topic["topic_rows"]) == (0, "topic", True, 50), topic
            assert (table["side"], table["equal"], table["topic_equal"]) == ("table", True, True), table
            since = datetime.datetime.now(datetime.UTC).isoformat()
            db.execute("UPDATE things SET t = 'y' WHERE id IN (7, 8)")
            db.execute("DELETE FROM things WHERE id = 9")
            pump.pump(until=54)
            # the topic has them, the table not yet
            code, (topic, table) = found(paths, capsys)
            assert (code, topic["equal"], table["topic_equal"], table["different"], table["extra"]) == (3, True, True, 2, 1), table
            assert main(["verify", *paths]) == 3
            assert "the topic is equal to the source, so the sink is behind or wrong" in capsys.readouterr().out
            for part in ("100%", "50"):
                code, (topic, table) = found([*paths, "--since", since, "--sample", part], capsys)
                assert (code, topic["records"], topic["equal"], table["compared"]) == (3, 4, True, 2), (topic, table)
                assert (table["different"], table["extra"], table["missing"]) == (2, 1, 0), table
            lake.drain(task)
            assert found([*paths, "--since", since], capsys)[0] == 0
            # what neither has
            db.execute("INSERT INTO things VALUES (60, 'z')")
            code, (topic, table) = found(paths, capsys)
            assert (code, topic["missing"], table["missing"], table["topic_equal"]) == (3, 1, 1, False), table
            assert main(["verify", *paths]) == 3
            assert "the topic differs too, so look at the source connector first" in capsys.readouterr().out
            code, part = found([*paths, "--sample", "20%"], capsys)
            assert {each["side"] for each in part} == {"topic", "table"} and part[0]["compared"] == part[1]["compared"] < 40


@iceberg_and_long_delta
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


@pytest.mark.long
def test_documents_that_a_transform_made_columns_of_are_compared_by_all_their_fields(
    lake: Lake, mongo: MongoAddress, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with mongo_task.database(mongo) as db:
        db.things.insert_many([{"_id": 1, "a": "x", "__v": 0}, {"_id": 2, "a": "y", "b": 2**40, "c": {"d": [1, 2]}, "__v": 1}])
        source = mongo_task.config(mongo, db)
        topic = f"m.{db.name}.things"
        sink = lake.config(topic) | {
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
            "transforms.unwrap.add.fields": "op,ord",
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
        assert (other["differences"][0]["source"]["__v"], other["differences"][0]["table"]["__v"]) == (1, 1)


def _untombstoned(source: dict[str, str]) -> dict[str, str]:
    """Every event of it is one change, so that they can be counted."""
    return source | {"tombstones.on.delete": "false"}


@pytest.mark.long
@iceberg_and_long_delta
def test_what_a_changelog_has_left_is_held_against_the_source_with_values_that_were_not_sent(
    lake: Lake, postgres: PostgresAddress, database: str, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE things (id int PRIMARY KEY, n int, large text)")
        db.execute("ALTER TABLE things ALTER large SET STORAGE EXTERNAL")
        db.execute("INSERT INTO things SELECT i, i, repeat('x', 5000) FROM generate_series(1, 4) i")
        source = _untombstoned(postgres_source(postgres, database, tag, topic_prefix=tag, table_include_list="public.things"))
        sink = lake.config(f"{tag}.public.things", tables_write__mode="append")
        with PostgresPump(source, lake) as pump:
            pump.pump(until=4)
            db.execute("UPDATE things SET n = n + 10")  # without the large text
            db.execute("UPDATE things SET n = 0 WHERE id = 2")
            db.execute("DELETE FROM things WHERE id = 3")
            db.execute("UPDATE things SET id = 40, large = repeat('z', 5000) WHERE id = 4")
            pump.pump(until=4 + 4 + 1 + 1 + 2)
            task = lake.start(sink)
            lake.drain(task)
            paths = files(source, sink)
            code, (same,) = found([*paths, "--wait", "0"], capsys)
            assert (code, same["equal"], same["source_rows"], same["table_rows"], same["changes"]) == (0, True, 3, 3, 12), same
            db.execute("UPDATE things SET large = 'other' WHERE id = 1")
            db.execute("DELETE FROM things WHERE id = 2")
            code, (other,) = found([*paths, "--wait", "0"], capsys)
            assert (code, other["extra"], other["different"], other["missing"]) == (3, 1, 1, 0)
            told = {difference["kind"]: difference for difference in other["differences"]}
            assert told["extra"]["key"] == {"id": 2}
            assert (told["different"]["source"]["large"], told["different"]["table"]["large"]) == ("other", "x" * 5000)
            pump.pump(until=4 + 4 + 1 + 1 + 2 + 2)
            lake.drain(task)
            assert found([*paths, "--wait", "0"], capsys)[0] == 0


@pytest.mark.long
def test_of_a_table_of_versions_the_current_ones_are_held_against_the_source(
    lake: Lake, postgres: PostgresAddress, database: str, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE things (id int PRIMARY KEY, t text)")
        db.execute("INSERT INTO things SELECT i, 'first' FROM generate_series(1, 3) i")
        source = _untombstoned(postgres_source(postgres, database, tag, topic_prefix=tag, table_include_list="public.things"))
        sink = lake.config(f"{tag}.public.things", tables_write__mode="scd2")
        with PostgresPump(source, lake) as pump:
            pump.pump(until=3)
            task = lake.start(sink)
            lake.drain(task)
            db.execute("UPDATE things SET t = 'second' WHERE id = 1")
            db.execute("DELETE FROM things WHERE id = 2")
            pump.pump(until=5)
            lake.drain(task)
            assert len(lake.rows("things")) == 4  # versions
            paths = files(source, sink)
            code, (same,) = found([*paths, "--wait", "0"], capsys)
            assert (code, same["equal"], same["source_rows"], same["table_rows"]) == (0, True, 2, 2), same
            db.execute("UPDATE things SET t = 'first' WHERE id = 1")  # what an old version says does not count
            code, (other,) = found([*paths, "--wait", "0"], capsys)
            assert (code, other["different"], other["missing"], other["extra"]) == (3, 1, 0, 0)


@pytest.mark.long
def test_rows_of_a_postgresql_table_without_a_key_are_counted(
    lake: Lake, postgres: PostgresAddress, database: str, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE things (n int, t text); ALTER TABLE things REPLICA IDENTITY FULL")
        db.execute("CREATE TABLE keyed (id int PRIMARY KEY)")
        db.execute("INSERT INTO things SELECT i % 3, 'x' FROM generate_series(1, 9) i")
        db.execute("INSERT INTO keyed VALUES (1)")
        source = _untombstoned(postgres_source(postgres, database, tag, topic_prefix=tag, table_include_list="public.things,public.keyed"))
        sink = lake.config(f"{tag}.public.things", f"{tag}.public.keyed")
        with PostgresPump(source, lake) as pump:
            pump.pump(until=10)
            db.execute("DELETE FROM things WHERE ctid IN (SELECT ctid FROM things WHERE n = 1 LIMIT 2)")
            db.execute("UPDATE things SET t = 'y' WHERE n = 2")
            pump.pump(until=15)
            task = lake.start(sink)
            lake.drain(task)
            paths = files(source, sink)
            code, outcomes = found([*paths, "--wait", "0"], capsys)
            assert code == 0 and [outcome["equal"] for outcome in outcomes] == [True, True], outcomes
            same = next(outcome for outcome in outcomes if outcome["table"] == "public.things")
            assert (same["source_rows"], same["updates"]) == (7, 3)
            db.execute("INSERT INTO things VALUES (5, 'new'), (5, 'new')")
            db.execute("DELETE FROM things WHERE ctid IN (SELECT ctid FROM things WHERE n = 0 LIMIT 1)")
            code, (other,) = found([*paths, "--wait", "0", "--table", "public.things"], capsys)
            assert (code, other["missing"], other["unaccounted"]) == (3, 2, 1)
            assert [(told["source"], told["copies"]) for told in other["differences"]] == [({"n": 5, "t": "new"}, [2, 0])]
            pump.pump(until=18)
            lake.drain(task)
            assert found([*paths, "--wait", "0"], capsys)[0] == 0
            db.execute("DELETE FROM things")
            pump.pump(until=18 + 8)
            lake.drain(task)
            code, (empty,) = found([*paths, "--wait", "0", "--table", "public.things"], capsys)
            assert (code, empty["equal"], empty["source_rows"]) == (0, True, 0)


@pytest.mark.long
def test_rows_of_a_mysql_table_without_a_key_are_counted(
    lake: Lake, mysql: MySqlAddress, tag: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    with mysql.connect() as db, db.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {tag}")
        cursor.execute(f"CREATE TABLE {tag}.things (n INT, j JSON, d DATETIME(3))")
        twice = ", ".join(["(1, '[1]', '2016-11-04 13:51:30.123')"] * 2)
        cursor.execute(f"INSERT INTO {tag}.things VALUES {twice}, (2, NULL, NULL)")
        db.commit()
        source = _untombstoned(mysql_source(mysql, lake.bootstrap, tag, include_schema_changes="false"))
        sink = lake.config(f"{tag}.{tag}.things", tables_write__mode="append")
        with MySqlPump(source, lake) as pump:
            pump.pump(until=3)
            cursor.execute(f"DELETE FROM {tag}.things LIMIT 1")
            db.commit()
            pump.pump(until=4)
            lake.drain(lake.start(sink))
            paths = [*files(source, sink), "--wait", "0", "--table", rf"{tag}\.things"]
            code, (same,) = found(paths, capsys)
            assert (code, same["equal"], same["source_rows"], same["table_rows"]) == (0, True, 2, 2), same
            cursor.execute(f"DELETE FROM {tag}.things WHERE n = 2")
            db.commit()
            code, (other,) = found(paths, capsys)
        cursor.execute(f"DROP DATABASE {tag}")
    assert (code, other["extra"], other["missing"]) == (3, 1, 0)


@iceberg_and_long_delta
def test_documents_as_mongodb_sends_them_are_compared_by_id(
    lake: Lake, mongo: MongoAddress, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    ids: list[Any] = [ObjectId(), "a", "5", 5, 2**40, 1.5, {"part": 1, "of": "b"}, "", str(ObjectId())]
    with mongo_task.database(mongo) as db:
        db.things.insert_many([{"_id": id_, "n": number, "t": ["ž", None, 2.0]} for number, id_ in enumerate(ids)])
        source = mongo_task.config(mongo, db)
        sink = lake.config(f"m.{db.name}.things")
        with MongoPump(source, lake) as pump:
            pump.pump(until=len(ids))
            pump.stream()
            db.things.update_one({"_id": 5}, {"$set": {"n": 50}})
            pump.pump(until=len(ids) + 1)
            lake.drain(lake.start(sink))
        paths = files(source, sink)
        code, (same,) = found([*paths, "--wait", "0"], capsys)
        assert (code, same["equal"], same["source_rows"], same["table_rows"]) == (0, True, len(ids), len(ids)), same
        db.things.update_one({"_id": "5"}, {"$set": {"n": 7}})
        db.things.delete_one({"_id": "a"})
        code, (other,) = found([*paths, "--wait", "0"], capsys)
        assert (code, other["different"], other["extra"]) == (3, 1, 1)
        assert {difference["key"]["_id"] for difference in other["differences"]} == {'"5"', "a"}
