"""Structures that statements do not tell are looked up in the log or on the server, and never guessed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from connect_py.api import Password
from connect_py.app.services.mysql import MySqlAddress
from connect_py.errors import FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.mysql.config.config import ConnectionSettings
from connectors.mysql.ddl.lexer import DdlError
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import Change, Tables
from connectors.mysql.schema.structure import read_statements
from connectors.mysql.server.connection import Connection
from tests.binlog_task import DirectTask, task_config
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services

#: Statements with this comment are none that the parser understands, as those of a server's next version may be.
NEW = "/* of the next version */"


def limited(sql: str, tables: Tables, database: str, *, sql_mode: int = 0) -> list[Change]:
    """A parser that does not understand all statements."""
    if NEW in sql:
        raise DdlError(f"Something new in {sql}")
    return apply(sql, tables, database, sql_mode=sql_mode)


@pytest.fixture
def database(mysql: MySqlAddress) -> Iterator[tuple[str, Any]]:
    """A database with a table `t`, and a cursor in it."""
    name = f"structures_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
        cursor.execute("INSERT INTO t VALUES (1, 'old')")
        yield name, cursor
        cursor.execute(f"DROP DATABASE {name}")


def test_a_statement_that_is_not_understood_makes_the_server_be_asked(
    mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    name, cursor = database
    config = task_config(mysql, kafka, name)
    with DirectTask(config, parser=limited) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"ALTER TABLE t ADD e ENUM('p', 'é') FIRST, ADD u BIGINT UNSIGNED {NEW}")
        cursor.execute("INSERT INTO t VALUES ('é', 2, 'new', 18446744073709551615)")
        task.poll_until(lambda: len(task.rows("t")) == 2)
    assert task.rows("t")[1] == ("c", {"e": "é", "id": 2, "v": "new", "u": -1})
    assert "its structure was read from the server" in caplog.text
    # the structure is in the history, and a start goes on with it
    cursor.execute("INSERT INTO t VALUES ('p', 3, 'more', 7)")
    with DirectTask(config, task.offsets[-1], limited) as again:
        again.poll_until(lambda: again.rows("t"))
    assert again.rows("t") == [("c", {"e": "p", "id": 3, "v": "more", "u": 7})]


def test_a_start_behind_a_statement_that_is_not_understood_asks_too(mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]) -> None:
    name, cursor = database
    config = task_config(mysql, kafka, name)
    with DirectTask(config, parser=limited) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"ALTER TABLE t MODIFY v VARCHAR(9) CHARACTER SET latin1 {NEW}")
        cursor.execute("CREATE TABLE other (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO other VALUES (1)")
        task.poll_until(lambda: task.rows("other"))
    cursor.execute("INSERT INTO t VALUES (2, 'é')")
    with DirectTask(config, task.offsets[-1], limited) as again:
        again.poll_until(lambda: again.rows("t"))
    assert again.rows("t") == [("c", {"id": 2, "v": "é"})]


def test_a_table_that_has_changed_again_by_now_fails_the_task_with_what_to_do(
    mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any]
) -> None:
    name, cursor = database
    with DirectTask(task_config(mysql, kafka, name), parser=limited) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute(f"ALTER TABLE t ADD w INT {NEW}")
        cursor.execute("INSERT INTO t VALUES (2, 'new', 2)")
        cursor.execute("ALTER TABLE t DROP COLUMN v")
        with pytest.raises(FatalTaskError, match=r"another one by now.*binlog_row_metadata=FULL"):
            task.poll_until(lambda: len(task.rows("t")) == 2)


def test_row_metadata_tells_a_structure_that_the_server_no_longer_has(
    mysql: MySqlAddress, kafka: Kafka, database: tuple[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    name, cursor = database
    cursor.execute("SELECT @@GLOBAL.binlog_row_metadata")
    before = cursor.fetchone()[0]
    with DirectTask(task_config(mysql, kafka, name), parser=limited) as task:
        task.poll_until(lambda: task.rows("t"))
        cursor.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
        try:
            cursor.execute(
                "ALTER TABLE t ADD e ENUM('p', 'é') NOT NULL FIRST, ADD u BIGINT UNSIGNED, ADD d DECIMAL(9,3), ADD ts TIMESTAMP(3) NULL, "
                "ADD l VARCHAR(9) CHARACTER SET latin1, ADD b BLOB, ADD x TEXT, ADD s SET('a','b'), ADD g POINT, ADD j JSON, ADD y YEAR, "
                f"ADD bits BIT(9), ADD f FLOAT, ADD vb VARBINARY(5), ADD small SMALLINT, DROP PRIMARY KEY, ADD PRIMARY KEY (v, id) {NEW}"
            )
            cursor.execute(
                "INSERT INTO t (e, id, v, u, d, ts, l, b, x, s, g, j, y, bits, f, vb, small) VALUES ('é', 2, 'new', 18446744073709551615, "
                "1.5, '2001-01-01 00:00:00.5', 'é', 'blob', 'tëxt', 'a,b', POINT(1, 2), '[1]', 1999, b'100000001', 1.5, 'é', -2)"
            )
            cursor.execute("ALTER TABLE t DROP COLUMN v, DROP PRIMARY KEY, ADD PRIMARY KEY (id)")
            task.poll_until(lambda: len(task.rows("t")) == 2)
        finally:
            cursor.execute(f"SET GLOBAL binlog_row_metadata = '{before}'")
    row = task.rows("t")[1][1]
    assert (row["e"], row["id"], row["v"], row["u"], row["d"], row["l"], row["x"]) == ("é", 2, "new", -1, "Bdw=", "é", "tëxt")
    assert (row["s"], row["j"], row["y"], row["f"], row["small"], row["ts"]) == ("a,b", "[1]", 1999, 1.5, -2, "2001-01-01T00:00:00.500Z")
    assert (row["g"]["x"], row["b"], row["vb"], row["bits"]) == (1.0, "YmxvYg==", "w6k=", "AQE=")
    assert "taken from the log's row metadata" in caplog.text


def test_tables_and_databases_that_go_while_a_snapshot_looks_at_them_are_left_out(
    mysql: MySqlAddress, database: tuple[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    name, _ = database
    connection = Connection(ConnectionSettings(mysql.host, mysql.port, mysql.user, Password(mysql.password)))
    found = read_statements(connection, [TableId(f"no_{name}", "t"), TableId(name, "gone"), TableId(name, "t")], recreate=False)
    connection.close()
    assert [statement.split(" (")[0] for told_for, statement in found if told_for == name] == [f"USE `{name}`", "CREATE TABLE `t`"]
    assert caplog.text.count("was dropped before its structure could be read") == 2
