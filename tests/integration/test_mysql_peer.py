"""Our reader of the binlog, another one (python-mysql-replication) and the server itself say the same of generated tables of every type."""

from __future__ import annotations

import os
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import pytest

from connect_py.api import Password
from connect_py.app.services.mysql import MySqlAddress
from connectors.mysql.binlog.events import Query, Rows
from connectors.mysql.binlog.rows import read_images, read_pairs, row_reader
from connectors.mysql.binlog.table_map import TableMap, described_columns
from connectors.mysql.config.config import ConnectionSettings
from connectors.mysql.config.value_options import ValueOptions
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import MyTable, Tables
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.server.connection import Connection
from connectors.mysql.types.columns import is_text, meaning_of
from tests.binlog_peer import KNOWN, is_same, is_same_document, is_what_the_server_has, known, peer_changes, value_of
from tests.binlog_tables import Generated, Kind, tables
from tests.seeds import size

# the other reader names parameters of its driver as they were named once
pytestmark = [pytest.mark.services, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

#: 200 make 30,000 changes of rows.
TABLES = size("CONNECT_PY_BINLOG_TABLES", 30, 200)
ROWS = 100
#: Dates inside of JSON as the server prints them.
OPTIONS = ValueOptions(unified=True)

Image = dict[str, str | None]
Change = tuple[str, str, Image | None, Image | None]


@contextmanager
def described_tables(server: MySqlAddress) -> Iterator[Any]:
    """A cursor in a database of its own, and its name; the log describes its tables, which the other reader depends on."""
    database = f"peer_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.binlog_row_metadata")
        before = cursor.fetchone()[0]
        cursor.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {database}")
        try:
            yield database, cursor
        finally:  # other tests depend on it
            cursor.execute(f"SET GLOBAL binlog_row_metadata = '{before}'")
            cursor.execute(f"DROP DATABASE {database}")


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_log_tells_signs_also_of_columns_behind_a_year(request: pytest.FixtureRequest, kind: str) -> None:
    server: MySqlAddress = request.getfixturevalue(kind)
    with described_tables(server) as (database, cursor):
        start = place(cursor)
        columns = "y YEAR, u INT UNSIGNED, i INT, z YEAR NOT NULL, d DECIMAL(5) UNSIGNED, f DOUBLE, t TINYINT UNSIGNED, s SMALLINT"
        cursor.execute(f"CREATE TABLE signs (id INT PRIMARY KEY, {columns})")
        cursor.execute("INSERT INTO signs VALUES (1, 1999, 4294967295, -1, 2000, 7, 1.5, 255, -2)")
        _, [(_, _, _, image)] = our_changes(server, database, start, place(cursor)[1], mariadb=kind == "mariadb")
    assert image is not None
    assert list(image.values()) == ["1", "1999", "4294967295", "-1", "2000", "7", "1.5", "255", "-2"]


def test_generated_tables_are_read_as_another_reader_and_the_server_read_them(mysql: MySqlAddress) -> None:
    """CONNECT_PY_BINLOG_TABLES of them, each with some hundred changes; CONNECT_PY_SEED makes the same again."""
    seed = int(os.environ.get("CONNECT_PY_SEED") or random.randrange(1 << 30))
    chance = random.Random(seed)
    print(f"seed {seed}")
    with described_tables(mysql) as (database, cursor):
        start = place(cursor)
        generated = dict(written(cursor, chance))
        file, end = place(cursor)
        assert file == start[0], "the log was rotated in between"
        models, ours = our_changes(mysql, database, start, end)
        assert {id_.table for id_ in models} == {table.name for table in generated}
        shared = {table.name: table.kinds for table, is_shared in generated.items() if is_shared}
        theirs = peer_changes(mysql, database, start, end, list(shared))
        differences, images = compared(shared, [change for change in ours if change[0] in shared], theirs)
        print(f"{len(shared)} tables, {len(ours)} changes, {images} images")
        for reason, count in sorted(differences.items()):
            print(f"  {count} × {reason}")
        assert not set(differences) - set(KNOWN)
        assert_server_has(mysql, database, generated, models, ours)


def place(cursor: Any) -> tuple[str, int]:
    """The end of the log."""
    cursor.execute("SHOW VARIABLES LIKE 'version'")
    version = cursor.fetchone()[1]
    old = "MariaDB" in version or tuple(map(int, version.split(".")[:2])) < (8, 2)
    cursor.execute("SHOW MASTER STATUS" if old else "SHOW BINARY LOG STATUS")
    row = cursor.fetchone()
    return str(row[0]), int(row[1])


def written(cursor: Any, chance: random.Random) -> Iterator[tuple[Generated, bool]]:
    """Make tables with rows, of which some are changed and some deleted."""
    for table, is_shared in tables(chance, TABLES):
        cursor.execute(table.statement)
        for first in range(0, ROWS, 25):
            rows = ", ".join(table.row(chance, id_) for id_ in range(first, first + 25))
            cursor.execute(f"INSERT IGNORE INTO {table.name} VALUES {rows}")
        for _ in range(4):
            column = chance.randrange(len(table.kinds))
            value = table.kinds[column].literal(chance)
            cursor.execute(f"UPDATE IGNORE {table.name} SET c{column} = {value} WHERE id % 9 = {chance.randrange(9)}")
        cursor.execute(f"DELETE FROM {table.name} WHERE id % 13 = {chance.randrange(13)}")
        yield table, is_shared


def our_changes(
    server: MySqlAddress, database: str, start: tuple[str, int], end: int, *, mariadb: bool = False
) -> tuple[dict[Any, MyTable], list[Change]]:
    """The models that the log's statements make, and changes in order."""
    client = BinlogClient(settings(server), 987_655, mariadb=mariadb)
    found: list[Change] = []
    models, maps, readers = Tables(), {}, {}
    try:
        client.dump_from(*start)
        reached = start[1]
        while reached < end:
            for header, body in client.read(10):
                reached = max(reached, header.end if header.end else reached)
                if isinstance(body, Query) and body.schema == database and body.sql.startswith(b"CREATE TABLE"):
                    apply(body.sql.decode(), models, database)
                elif isinstance(body, TableMap) and body.schema == database:
                    maps[body.table_id] = body
                elif isinstance(body, Rows) and body.table_id in maps:
                    map_ = maps[body.table_id]
                    model = next(model for id_, model in models.tables.items() if id_.table == map_.table)
                    names = [column.name for column in model.columns]
                    read = readers.get(body.table_id)
                    if read is None:
                        assert_described(model, map_)
                        meanings = [meaning_of(column, OPTIONS) for column in model.columns]
                        read = readers[body.table_id] = row_reader(map_.columns, meanings, body.present)
                    if body.kind == "u":
                        for before, after in read_pairs(read, read, body.body):
                            found.append((map_.table, "u", dict(zip(names, before, strict=True)), dict(zip(names, after, strict=True))))
                    else:
                        for texts in read_images(read, body.body):
                            image = dict(zip(names, texts, strict=True))
                            found.append((map_.table, body.kind, None, image) if body.kind == "c" else (map_.table, "d", image, None))
    finally:
        client.close()
    return dict(models.tables), found


def assert_described(model: MyTable, map_: TableMap) -> None:
    """What the log says of a table is what its statement says."""
    described = described_columns(map_)
    assert described is not None
    assert [column.name for column in described] == [column.name for column in model.columns]
    assert [column.unsigned for column in described] == [column.unsigned for column in model.columns], model
    assert [len(column.labels) for column in described] == [len(column.labels) for column in model.columns]
    assert [column.nullable for column in described] == [column.nullable for column in model.columns]


def compared(shared: dict[str, tuple[Kind, ...]], ours: list[Change], theirs: Iterator[Any]) -> tuple[Counter[str], int]:
    """Known differences by their reasons, and how many images were compared. Others fail."""
    differences: Counter[str] = Counter()
    images = 0
    for mine, other in zip_longest(ours, theirs):
        assert mine is not None and other is not None, f"one reader has more: {mine}, {other}"
        assert mine[:2] == other[:2]
        for image, their_image in zip(mine[2:], other[2:], strict=True):
            assert (image is None) == (their_image is None)
            if image is None or their_image is None:
                continue
            images += 1
            assert image["id"] == str(their_image["id"])
            for index, kind in enumerate(shared[mine[0]]):
                text, value = image[f"c{index}"], their_image[f"c{index}"]
                same = is_same_document if kind.family == "JSON" else is_same
                if same(value_of(kind, text), value):
                    continue
                reason = known(kind, text, value)
                assert reason, f"{mine[0]}.c{index} {kind.sql} of row {image['id']}: {text!r} is {value!r} to the other reader"
                differences[reason] += 1
    return differences, images


def assert_server_has(
    mysql: MySqlAddress, database: str, generated: dict[Generated, bool], models: dict[Any, MyTable], ours: list[Change]
) -> None:
    """Our changes fold to what the server shows."""
    rows: dict[str, dict[str, Image]] = {table.name: {} for table in generated}
    for table, _, before, after in ours:
        if before is not None:
            del rows[table][str(before["id"])]
        if after is not None:
            rows[table][str(after["id"])] = after
    connection = Connection(settings(mysql))
    try:
        for id_, model in models.items():
            kinds = next(table.kinds for table in generated if table.name == id_.table)
            columns = ", ".join(f"c{i} + 0e0" if kind.family == "FLOAT" else f"c{i}" for i, kind in enumerate(kinds))
            result = connection.result(f"SELECT id, {columns} FROM {database}.{id_.table}", [is_text(column) for column in model.columns])
            count = 0
            while True:
                some, _ = result.read(1000, 1 << 24)
                if not some:
                    break
                for id_text, *shown in some:
                    count += 1
                    image = rows[id_.table][str(id_text)]
                    for index, (kind, text) in enumerate(zip(kinds, shown, strict=True)):
                        found = image[f"c{index}"]
                        assert is_what_the_server_has(kind, found, text), (
                            f"{id_}.c{index} {kind.sql}, row {id_text}: {found!r}, not {text!r}"
                        )
            assert count == len(rows[id_.table])
    finally:
        connection.close()


def settings(mysql: MySqlAddress) -> ConnectionSettings:
    return ConnectionSettings(mysql.host, mysql.port, mysql.user, Password(mysql.password))
