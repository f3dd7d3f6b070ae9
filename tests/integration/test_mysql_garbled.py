"""Where the running reference loses or garbles values of MySQL, or fails its task, this connector does not."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka
from tests.mysql_task import DirectMySqlTask, mysql_source

pytestmark = pytest.mark.services


@pytest.fixture
def database(mysql: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database of its own, and a cursor in it."""
    name = f"garbled_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def test_updates_of_parts_of_json_documents_are_whole_documents(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    document = {"a": [1, 2.50, {"deep": [None, True]}, "é"], "b": {"x y": 1, 'q"uote': 2}, "long": "x" * 200, "n": 10}
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, other JSON, j JSON, last VARCHAR(5) DEFAULT 'z')")
    for id_ in range(1, 6):
        cursor.execute("INSERT INTO t (id, other, j) VALUES (%s, '[1]', %s)", (id_, json.dumps(document)))
    with DirectTask(task_config(mysql, kafka, name)) as task:
        task.poll_until(lambda: len(task.rows("t")) == 5)
        cursor.execute("SET binlog_row_value_options = 'PARTIAL_JSON'")
        wanted = []
        paths = ["$.a[0]", "$.a[2].deep[1]", "$.a[last]", '$.b."x y"', "$.long", "$.n", "$.new", "$.a[9]", '$.b."é"']
        for _ in range(60):
            id_, path, number = chance.randint(1, 5), chance.choice(paths), chance.randint(-99, 99)
            value = chance.choice([f"{number}", f"'text {number}'", "CAST('[1.5, {}]' AS JSON)", f"{number}.250", "NULL"])
            call = chance.choice([f"JSON_SET(j, '{path}', {value})", f"JSON_REPLACE(j, '{path}', {value})", f"JSON_REMOVE(j, '{path}')"])
            cursor.execute(f"UPDATE t SET j = {call} WHERE id = {id_}")
            if cursor.rowcount:
                cursor.execute(f"SELECT j FROM t WHERE id = {id_}")
                wanted.append((id_, json.loads(cursor.fetchone()[0])))
        cursor.execute("UPDATE t SET j = JSON_SET(j, '$.n', 1000), other = JSON_REMOVE(other, '$[0]')")
        task.poll_until(lambda: len(task.rows("t")) == 10 + len(wanted))
    streamed = [row for op, row in task.rows("t") if op == "u"]
    assert [(row["id"], json.loads(row["j"])) for row in streamed[:-5]] == wanted, f"seed {seed}"
    assert all(json.loads(row["j"])["n"] == 1000 and row["other"] == "[]" and row["last"] == "z" for row in streamed[-5:])


def test_negative_times_inside_of_json_are_times(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, j JSON)")
    cursor.execute("INSERT INTO t VALUES (0, '[]')")
    with DirectTask(task_config(mysql, kafka, name)) as task:
        task.poll_until(lambda: task.rows("t"))
        times = "CAST('-12:34:56.789' AS TIME(3)), CAST('-838:59:59' AS TIME), CAST('-00:00:00.000001' AS TIME(6))"
        cursor.execute(f"INSERT INTO t VALUES (1, JSON_ARRAY({times}))")
        task.poll_until(lambda: len(task.rows("t")) == 2)
        cursor.execute("SELECT j FROM t WHERE id = 1")
        shown = json.loads(cursor.fetchone()[0])
    # of times below -511:59:59 older servers keep other ones
    assert shown[0] == "-12:34:56.789000" and shown[1].startswith("-") and shown[2] == "-00:00:00.000001"
    assert json.loads(task.rows("t")[1][1]["j"]) == ["-12:34:56.789", shown[1].removesuffix(".000000"), "-00:00:00.000001"]


def test_statements_under_ansi_quotes_are_understood(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
    cursor.execute('CREATE TABLE "t" ("id" INT PRIMARY KEY, "a b" VARCHAR(9) DEFAULT \'x\')')
    cursor.execute("INSERT INTO t VALUES (1, 'old')")
    with DirectTask(task_config(mysql, kafka, name)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute('ALTER TABLE "t" ADD COLUMN "c""d" INT FIRST, RENAME COLUMN "a b" TO "b a"')
        cursor.execute("INSERT INTO t VALUES (7, 2, 'new')")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    assert task.rows("t")[1] == ("c", {'c"d': 7, "id": 2, "b a": "new"})


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_rows_that_are_logged_in_part_are_shown_with_what_is_known(
    mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any], image: str
) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(9), big TEXT)")
    cursor.execute("INSERT INTO t VALUES (1, 1, 'a', 'large')")
    with DirectTask(task_config(mysql, kafka, name)) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"SET binlog_row_image = {image}")
        cursor.execute("INSERT INTO t (id, n, v) VALUES (2, 2, 'b')")
        cursor.execute("UPDATE t SET n = 5 WHERE id = 1")
        cursor.execute("DELETE FROM t WHERE id = 2")
        task.poll_until(lambda: len(task.rows("t")) == 4)
    unknown = "__debezium_unavailable_value"
    known = image == "NOBLOB"
    inserted, updated, deleted = (row for _, row in task.rows("t")[1:])
    assert (inserted["id"], inserted["n"], inserted["v"]) == (2, 2, "b")
    assert updated == {"id": 1, "n": 5, "v": "a" if known else unknown, "big": unknown}
    assert deleted["id"] == 2


def test_a_negative_default_of_a_time_does_not_fail_the_connect_mode(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, t TIME DEFAULT '-01:00:00', u TIME NOT NULL DEFAULT '-00:00:01')")
    cursor.execute("INSERT INTO t VALUES (1, '12:00:00', '12:00:00')")
    with DirectTask(task_config(mysql, kafka, name, **{"time.precision.mode": "connect"})) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("INSERT INTO t VALUES (2, '00:00:01', '00:00:01')")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    assert task.rows("t") == [("r", {"id": 1, "t": 43_200_000, "u": 43_200_000}), ("c", {"id": 2, "t": 1000, "u": 1000})]


def test_unified_values_are_the_same_in_snapshot_and_stream(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    """Each of these differs between the reference's snapshot and its stream."""
    name, cursor = database
    cursor.execute("SET sql_mode = ''")
    cursor.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, y YEAR, e ENUM('a', 'x,y', 'b\\\\c'), f FLOAT, fm FLOAT(9,3), f53 FLOAT(53), "
        "ts TIMESTAMP(3) NULL, ts6 TIMESTAMP(6) NULL, ts0 TIMESTAMP NULL, j JSON)"
    )
    documents = (
        '\'{"b": 1, "a": [1.0, 2.5, 1e100, 12345678.9, -1e-7, 0.30000000000000004, 18446744073709551615], "é": " x "}\'',
        "JSON_OBJECT('d', CAST('1999-12-31' AS DATE), 't', CAST('-12:34:56.700' AS TIME(3)), "
        "'dt', CAST('1999-12-31 23:59:59' AS DATETIME(6)), 'n', CAST(12.340 AS DECIMAL(10,3)), 'bin', CAST('ab' AS BINARY), "
        "'long', CAST('12345678901234567890.1234567890' AS DECIMAL(40,10)), 'text', '12:34:56.700000')",
    )
    rows = ", ".join(
        f"(0, 'x,y', {number}, {number}, {number}, '2001-01-01 00:00:00.500', '2001-01-01 00:00:00.120000', '2001-01-01', {document})"
        for number in ("0.1", "16777217", "1.17549435e-38", "123456.789", "-3.4028234e38", "9999999")
        for document in documents
    )
    insert = f"INSERT INTO t (y, e, f, fm, f53, ts, ts6, ts0, j) VALUES {rows}, (NULL, 'b\\\\c', NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    cursor.execute(insert)
    with DirectTask(task_config(mysql, kafka, name, **{"value.consistency": "unified"})) as task:
        task.poll_until(lambda: len(task.rows("t")) == 13)
        cursor.execute(insert)
        task.poll_until(lambda: len(task.rows("t")) == 26)
    read, streamed = [[{**row, "id": 0} for op, row in task.rows("t") if op == wanted] for wanted in ("r", "c")]
    for one, other in zip(read, streamed, strict=True):
        assert one == other
    assert read[0]["y"] == 1900 and read[0]["e"] == "x\\,y" and read[0]["ts"] == "2001-01-01T00:00:00.500Z" and read[2]["f"] == 16777216.0
    assert read[1]["j"] == (
        '{"d":"1999-12-31","n":12.34,"t":"-12:34:56.700000","dt":"1999-12-31 23:59:59.000000","bin":"YWI=",'
        '"long":12345678901234567890.1234567890,"text":"12:34:56.700000"}'
    )


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_every_character_set_of_the_server_is_read_alike_in_snapshot_and_stream(
    kind: str, kafka: Kafka, request: pytest.FixtureRequest
) -> None:
    server: MySqlAddress = request.getfixturevalue(kind)
    name = f"letters_{uuid.uuid4().hex[:8]}"
    letters = "Aé ñöÅäßÿ¤½€ŁşžčřŞıĞ Жёї ΩάΐʼҐ אבג ¯‾ აბგ Ա֏աՖ กไ 漢字語〜‖−¢£ かカｶﾊ 한글똠 中國们 ~^[]{}|@ Çœ ²ⁿ•ѓ"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT character_set_name FROM information_schema.character_sets WHERE character_set_name <> 'binary' ORDER BY 1")
        charsets = [row[0] for row in cursor.fetchall()]
        cursor.execute(f"CREATE DATABASE {name}")
        try:
            cursor.execute(f"USE {name}")
            cursor.execute("SET sql_mode = ''")
            columns = ", ".join(f"{charset} TEXT CHARACTER SET {charset}" for charset in charsets)
            cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {columns})")
            # what a set has no letter for becomes a question mark, there and here
            insert = f"INSERT INTO t ({', '.join(charsets)}) VALUES ({', '.join(['%s'] * len(charsets))})"
            cursor.execute(insert, [letters] * len(charsets))
            with DirectTask(task_config(server, kafka, name, mariadb=kind == "mariadb")) as task:
                task.poll_until(lambda: task.rows("t"))
                cursor.execute(insert, [letters] * len(charsets))
                task.poll_until(lambda: len(task.rows("t")) == 2)
        finally:
            cursor.execute(f"DROP DATABASE {name}")
    (_, read), (_, streamed) = task.rows("t")
    assert len(charsets) >= 39
    different = {charset: (read[charset], streamed[charset]) for charset in charsets if read[charset] != streamed[charset]}
    assert different == {}
    assert read["utf8mb4"] == letters


@pytest.mark.parametrize("consistency", ["reference", "unified"])
def test_octets_of_texts_that_are_declared_binary_come_whole_by_every_way(
    mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any], consistency: str
) -> None:
    """The server makes them VARBINARY; statements of the log and so Debezium go on calling them texts, a character an octet, but for some
    of these spellings. An initial snapshot has the server's own word, and so has the stream with `value.consistency=unified`."""
    name, cursor = database
    columns = (
        "id VARCHAR(4) CHARACTER SET binary PRIMARY KEY, v VARCHAR(9) CHARACTER SET binary, c CHAR(4) CHARSET binary, "
        "t TEXT CHARACTER SET binary, b VARCHAR(6) BYTE, y VARCHAR(4) COLLATE binary"
    )
    values = [(b"\xff\x01", b"\xff\x00\xfe", b"\x80", b"\xc3(", b"\xe9", b"\xff\x80"), (b"a'", b"text", b"abcd", b"more", b"'", b"\\")]
    cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    cursor.execute(f"CREATE TABLE before_it ({columns})")
    more = {"signal_data_collection": f"{name}.signals", "incremental_snapshot_chunk_size": "1", "value_consistency": consistency}

    def insert(table: str) -> None:
        for row in values:
            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s, %s)", row)

    insert("before_it")
    with DirectMySqlTask(mysql_source(mysql, kafka.bootstrap, name, **more)) as task:
        task.poll_until(task.is_streaming, what="the stream")
        cursor.execute(f"CREATE TABLE t ({columns})")
        insert("t")
        data = json.dumps({"data-collections": [f"{name}.t"]})
        cursor.execute("INSERT INTO signals VALUES ('all', 'execute-snapshot', %s)", (data,))
        task.poll_until(lambda: len(task.of(f"{name}.{name}.t")) == 4, what="the incremental snapshot")

    def shown(table: str, op: str) -> list[tuple[bytes, ...]]:
        rows = [value["after"] for _, value in task.of(f"{name}.{name}.{table}") if value["op"] == op]
        if table == "t" and consistency == "reference":
            return sorted(tuple(text.encode("latin-1").rstrip(b"\0") for text in row.values()) for row in rows)
        return sorted(tuple(base64.b64decode(text).rstrip(b"\0") for text in row.values()) for row in rows)

    assert shown("t", "c") == shown("t", "r") == shown("before_it", "r") == sorted(values)
