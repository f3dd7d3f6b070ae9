"""Statements change our models as they change the server's tables: after each, the model equals what SHOW CREATE TABLE tells anew."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from connect_py.app.services.mysql import MySqlAddress
from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyColumn, Tables, quote_name
from tests.ddl_changes import SAME, TYPES, actions, key

pytestmark = pytest.mark.services

WITH_LENGTH = ("CHAR", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "BIT", "DATETIME", "TIMESTAMP", "TIME")


class Server:
    """A database of its own, and our model of it."""

    def __init__(self, connection: pymysql.connections.Connection[Any], name: str) -> None:
        self.cursor = connection.cursor()
        self.name = name
        self.is_mariadb = "MariaDB" in connection.get_server_info()
        self.version = tuple(int(part) for part in connection.get_server_info().split("-")[0].split(".")[:3])
        self.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        self.run(f"USE {name}")
        self.tables = Tables()
        apply(f"CREATE DATABASE {name} CHARSET utf8mb4", self.tables, name)

    def run(self, sql: str) -> None:
        self.cursor.execute(sql)

    def change(self, sql: str) -> None:
        """Run a statement on the server and on the model, and compare all tables."""
        self.run(sql)
        apply(sql, self.tables, self.name)
        self.compare(sql)

    def compare(self, why: str) -> None:
        self.cursor.execute("SHOW FULL TABLES WHERE Table_Type = 'BASE TABLE'")
        names = {row[0] for row in self.cursor.fetchall()}
        assert {id_.table for id_ in self.tables.tables if id_.schema == self.name} == names, why
        for name in names:
            self.cursor.execute(f"SHOW CREATE TABLE {quote_name(name)}")
            shown = Tables(charsets=dict(self.tables.charsets))
            apply(self.cursor.fetchone()[1], shown, self.name)
            id_ = TableId(self.name, name)
            ours, theirs = self.tables.tables[id_], shown.tables[id_]
            assert [facts(column) for column in ours.columns] == [facts(column) for column in theirs.columns], why
            assert key(ours) == key(theirs), why
            self.cursor.execute(
                "SELECT column_name, character_set_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
                "ORDER BY ordinal_position",
                (self.name, name),
            )
            wanted = [(column, (charset or "").replace("utf8mb3", "utf8")) for column, charset in self.cursor.fetchall()]
            found = [(c.name, (c.charset or "").replace("utf8mb3", "utf8")) for c in ours.columns]
            assert found == [(name, "" if own == "" else charset) for (name, charset), (_, own) in zip(wanted, found, strict=True)], why


def facts(column: MyColumn) -> tuple[Any, ...]:
    """What rows depend on, in the server's words."""
    kind = SAME.get(column.base_type, column.base_type)
    if kind.endswith(("TEXT", "BLOB")):
        kind = kind[-4:]  # CONVERT TO may choose another size, which rows tell by themselves
    length = (column.length, column.scale) if kind in WITH_LENGTH else None
    if kind in ("CHAR", "BINARY") and column.length is None:
        length = (1, None)
    if kind in ("DATETIME", "TIMESTAMP", "TIME"):
        length = (column.length or 0, None)
    charset = (column.charset or "").replace("utf8mb3", "utf8")
    return column.name, kind, column.unsigned, length, charset, column.labels, column.nullable


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    address: MySqlAddress = request.getfixturevalue(request.param)
    name = f"ddl_{uuid.uuid4().hex[:8]}"
    with address.connect() as connection:
        yield Server(connection, name)
        connection.cursor().execute(f"DROP DATABASE {name}")


def test_every_class_of_statements_has_its_effect(server: Server) -> None:
    for sql in (
        "CREATE TABLE `we``ird na.me` (`or``der` INT, `a,b` VARCHAR(3) DEFAULT ')', `c\"d` CHAR(1), PRIMARY KEY (`or``der`))",
        "CREATE TABLE a (id SERIAL PRIMARY KEY, n INT DEFAULT 5 COMMENT 'x) y', KEY k (n), CHECK (n > (0)), CONSTRAINT u UNIQUE (n))",
        "CREATE TABLE IF NOT EXISTS a (other INT)",
        "CREATE TABLE b LIKE a",
        "CREATE TABLE c (id INT UNSIGNED NOT NULL, r VARCHAR(9), PRIMARY KEY (id, r(3))) ENGINE=InnoDB DEFAULT CHARSET latin1 "
        "COMMENT 'a;b' PARTITION BY HASH (id) PARTITIONS 3",
        "ALTER TABLE c ADD PARTITION PARTITIONS 1",
        "ALTER TABLE c ADD COLUMN (d DATE, e TIME(2)), ADD f INT FIRST, ADD COLUMN g INT AFTER id, ADD h VARCHAR(3)",
        "ALTER TABLE c DEFAULT CHARACTER SET utf8mb4, ADD i VARCHAR(4)",
        "ALTER TABLE c CONVERT TO CHARACTER SET latin2",
        "ALTER TABLE c CONVERT TO CHARACTER SET DEFAULT",
        "ALTER TABLE c CHANGE h hh CHAR(5) NOT NULL DEFAULT 'x' AFTER f, MODIFY d DATETIME(3) NOT NULL FIRST",
        "ALTER TABLE c ALTER COLUMN hh SET DEFAULT 'y', ALTER g DROP DEFAULT",
        "ALTER TABLE c RENAME COLUMN e TO `select`, DROP COLUMN f, DROP g",
        "ALTER TABLE c ADD INDEX by_hh (hh DESC), ADD UNIQUE KEY uu (`id`, `r`), ADD INDEX other (i)",
        "ALTER TABLE c DROP INDEX by_hh, RENAME INDEX uu TO vv, DROP KEY other",
        "ALTER TABLE b DROP PRIMARY KEY, MODIFY id BIGINT UNSIGNED NOT NULL, ADD PRIMARY KEY (n, id)",
        "ALTER TABLE b ADD COLUMN twice BIGINT GENERATED ALWAYS AS (n * (2 + 1)) STORED, ADD v INT AS (n + 1) VIRTUAL COMMENT 'gen'",
        "ALTER TABLE b ADD COLUMN ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, ADD now DATETIME(3) DEFAULT NOW(3)",
        "CREATE UNIQUE INDEX i ON b (n, ts)",
        "DROP INDEX i ON b",
        "CREATE TABLE chosen AS SELECT id, n FROM a WHERE 1 = 0",
        "RENAME TABLE a TO old_a, b TO a",
        "ALTER TABLE old_a RENAME TO b",
        "/*!40101 CREATE TABLE versioned (id INT UNSIGNED) */",
        "CREATE TABLE /*!40101 IF NOT EXISTS */ versions (id INT /*!40101 UNSIGNED */ /* 99999 ZEROFILL */)",
        "# a comment\nCREATE /* another */ TABLE commented (id INT, -- and\n v INT)",
        "CREATE TABLE words (`primary` INT, status INT, `key` INT, comment VARCHAR(3) COMMENT 'c', start DATE, PRIMARY KEY (`primary`))",
        "ALTER TABLE words ADD CONSTRAINT pos CHECK (status > 0), ADD `period` INT, ADD `check` INT",
        "CREATE TABLE refs (id INT PRIMARY KEY, w INT, CONSTRAINT fk FOREIGN KEY (w) REFERENCES words (`primary`) ON DELETE SET NULL)",
        "ALTER TABLE refs DROP FOREIGN KEY fk, ADD CONSTRAINT named FOREIGN KEY (w) REFERENCES words (`primary`) ON UPDATE CASCADE",
        "DROP TABLE refs, words",
        "DROP TABLE IF EXISTS commented, never_there",
        "TRUNCATE TABLE c",
    ):
        if sql.startswith("CREATE TABLE chosen"):
            if not server.is_mariadb and server.version < (8, 0, 21):
                # refused where transactions have GTIDs
                continue
            # servers log the columns that they chose
            server.run(sql)
            server.cursor.execute("SHOW CREATE TABLE chosen")
            apply(server.cursor.fetchone()[1], server.tables, server.name)
            server.compare(sql)
            continue
        if server.is_mariadb:
            sql = sql.replace("ADD PARTITION PARTITIONS 1", "ADD PARTITION PARTITIONS 1").replace(
                "ALTER g DROP DEFAULT", "ALTER g SET DEFAULT 1"
            )
        server.change(sql)


def test_every_type_is_read_as_the_server_reads_it(server: Server) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(TYPES))
    server.change(f"CREATE TABLE t ({columns}, id INT PRIMARY KEY) CHARSET utf8mb4")


def test_binary_columns_of_a_conversion_have_the_tables_new_default(server: Server) -> None:
    server.change("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5), b VARCHAR(6) BINARY) CHARSET ucs2")
    conversion = (
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1, ADD c VARCHAR(3), ADD d VARCHAR(3) BINARY AFTER id, MODIFY a CHAR(4) BINARY, "
        "ADD e VARCHAR(3) CHARACTER SET greek BINARY, DEFAULT CHARSET = utf8mb4"
    )
    if server.is_mariadb:
        server.change(conversion)
    else:
        with pytest.raises(pymysql.MySQLError, match="Conflicting declarations"):
            server.run(conversion)
    server.change("ALTER TABLE t CONVERT TO CHARACTER SET latin2, ADD f VARCHAR(3) BINARY")


def test_random_sequences_of_changes_leave_the_models_equal(server: Server) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    for number in range(12):
        table = f"t{number}"
        server.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(5))")
        apply(f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(5))", server.tables, server.name)
        done: list[str] = []
        for step in range(10):
            names = [column.name for column in server.tables.tables[TableId(server.name, table)].columns]
            sql = f"ALTER TABLE {table} {', '.join(actions(chance, names, step))}"
            before = dict(server.tables.tables)
            try:
                server.run(sql)
            except pymysql.MySQLError:
                server.tables.tables = before  # the server refuses what makes no sense; it is not in the log then
                continue
            done.append(sql)
            apply(sql, server.tables, server.name)
            server.compare(f"seed {seed}: {done}")
        server.run(f"DROP TABLE {table}")
        apply(f"DROP TABLE {table}", server.tables, server.name)
