"""Rows that are read and written at once are byte for byte what the careful way makes of them: of the log and of results, for every type
and handling mode, with NULL, quotes, characters beyond ASCII, and values that no schema holds."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from connect_py.api import JsonEncoding, Password
from connect_py.app.services.mysql import MySqlAddress
from connect_py.errors import ConnectError
from connectors.engine.envelope import tail
from connectors.mysql.binlog.events import Query, Rows
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.config.config import ConnectionSettings, parse_config
from connectors.mysql.ddl.statements import apply
from connectors.mysql.model import Tables
from connectors.mysql.schema.captured import CapturedTable, CapturedTables, TableFactory
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.rows import PacketRows
from connectors.mysql.stream.rows import TableStream
from tests.binlog_tables import Generated, tables
from tests.seeds import size

pytestmark = pytest.mark.services

#: 100 make some 20,000 images, each in every way below.
TABLES = size("CONNECT_PY_FUSED_TABLES", 10, 50)
ROWS = 60
WAYS: tuple[tuple[Mapping[str, str], JsonEncoding], ...] = (
    ({}, JsonEncoding(True, True)),
    (
        {"decimal.handling.mode": "string", "time.precision.mode": "connect", "bigint.unsigned.handling.mode": "precise"},
        JsonEncoding(False, False),
    ),
    (
        {
            "value.consistency": "unified",
            "time.precision.mode": "microseconds",
            "enable.time.adjuster": "false",
            "binary.handling.mode": "hex",
        },
        JsonEncoding(False, False, key_decimals_numeric=True, value_decimals_numeric=True),
    ),
    (
        {
            "decimal.handling.mode": "double",
            "time.precision.mode": "isostring",
            "column.mask.with.5.chars": r".*\.c1",
            "column.exclude.list": r".*\.c0",
        },
        JsonEncoding(False, False),
    ),
)
SOURCE, END = b'{"x":1,"row":', tail("c", 1)


@contextmanager
def written(mysql: MySqlAddress, chance: random.Random) -> Iterator[tuple[str, tuple[str, int], int, list[Generated]]]:
    """A database of generated tables whose rows were made and changed, where in the log that begins and ends, and the tables."""
    database = f"fused_{uuid.uuid4().hex[:8]}"
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {database}")
        try:
            start = end_of_log(cursor)
            made = [table for table, _ in tables(chance, TABLES)]
            for table in made:
                cursor.execute(table.statement)
                for first in range(0, ROWS, 20):
                    rows = ", ".join(table.row(chance, id_) for id_ in range(first, first + 20))
                    cursor.execute(f"INSERT IGNORE INTO {table.name} VALUES {rows}")
                column = chance.randrange(len(table.kinds))
                value = table.kinds[column].literal(chance)
                cursor.execute(f"UPDATE IGNORE {table.name} SET c{column} = {value} WHERE id % 7 = {chance.randrange(7)}")
                cursor.execute(f"UPDATE {table.name} SET id = id + 1000 WHERE id % 11 = {chance.randrange(11)}")
                cursor.execute(f"DELETE FROM {table.name} WHERE id % 13 = {chance.randrange(13)}")
            file, end = end_of_log(cursor)
            assert file == start[0], "the log was rotated in between"
            yield database, start, end, made
        finally:
            cursor.execute(f"DROP DATABASE {database}")


def end_of_log(cursor: Any) -> tuple[str, int]:
    cursor.execute("SHOW BINARY LOG STATUS")
    row = cursor.fetchone()
    return str(row[0]), int(row[1])


def settings(mysql: MySqlAddress) -> ConnectionSettings:
    return ConnectionSettings(mysql.host, mysql.port, mysql.user, Password(mysql.password))


def events(mysql: MySqlAddress, database: str, start: tuple[str, int], end: int, models: Tables) -> Iterator[tuple[TableMap, Rows]]:
    """Events with rows; the models follow the statements."""
    client = BinlogClient(settings(mysql), 987_656)
    maps: dict[int, TableMap] = {}
    try:
        client.dump_from(*start)
        reached = start[1]
        while reached < end:
            for header, body in client.read(10):
                reached = max(reached, header.end)
                if isinstance(body, Query) and body.schema == database and body.sql.startswith(b"CREATE TABLE"):
                    apply(body.sql.decode(), models, database)
                elif isinstance(body, TableMap) and body.schema == database:
                    maps[body.table_id] = body
                elif isinstance(body, Rows) and body.table_id in maps:
                    yield maps[body.table_id], body
    finally:
        client.close()


def factory(options: Mapping[str, str], encoding: JsonEncoding) -> TableFactory:
    more = {"schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "h:1"}
    base = {"database.hostname": "h", "database.user": "u", "database.server.id": "1", "topic.prefix": "p"}
    return TableFactory(parse_config({**base, **more, **options}, "mysql"), encoding, ())


def test_rows_read_and_written_at_once_are_what_the_careful_way_makes_of_them(mysql: MySqlAddress) -> None:
    """CONNECT_PY_FUSED_TABLES generated tables; CONNECT_PY_SEED makes the same again."""
    seed = int(os.environ.get("CONNECT_PY_SEED") or random.randrange(1 << 30))
    print(f"seed {seed}")
    models = Tables()
    with written(mysql, random.Random(seed)) as (database, start, end, made):
        found = list(events(mysql, database, start, end, models))
        at_once = images = snapshot_rows = 0
        for options, encoding in WAYS:
            captured = CapturedTables(factory(options, encoding), lambda _: True, models.tables)
            streams: dict[int, TableStream] = {}
            for map_, event in found:
                if map_.table_id not in streams:
                    table = captured.get(next(id_ for id_ in models.tables if id_.table == map_.table))
                    assert table is not None
                    streams[map_.table_id] = TableStream(table, map_)
                quick = compare_event(streams[map_.table_id], event)
                at_once += quick
                images += 1
            for id_ in models.tables:
                table = captured.get(id_)
                assert table is not None
                snapshot_rows += compare_snapshot(mysql, table)
        print(f"{len(found)} events and {snapshot_rows} rows of results, {at_once} of {images} events at once")
        # zero dates and texts that need a look are rare enough
        assert at_once > images // 3
        assert len(made) == len(models.tables)


def compare_event(stream: TableStream, event: Rows) -> bool:
    """Whether the event took the quick way."""
    encoder = stream.captured.encoder
    try:
        found_texts = stream.texts(event)
        careful = [encoder.image(texts) for texts in found_texts]
        # column by column, without the names that the columns of generated code share
        assert careful == [encoder.columnwise.encode(texts, snapshot=False) for texts in found_texts], stream.captured.id
    except ConnectError as error:
        # a required column's value has no form: neither way may give the event out
        with pytest.raises(type(error)):
            stream.encoded(event)
        return False
    what = f"{stream.captured.id} {event.kind}"
    assert stream.encoded(event) == careful, what
    fused = stream.fused_for(event)
    assert fused is not None
    if event.kind == "c":
        route = stream.captured.route
        wanted = [(route, key, encoder.value(None, row, b"%b%d}" % (SOURCE, n), END)) for n, (key, row) in enumerate(careful)]
        found = stream.records(event, SOURCE, b"}," + END)
        assert found is None or found == wanted, what
    return fused.images(event.body) is not None


def compare_snapshot(mysql: MySqlAddress, table: CapturedTable) -> int:
    """How many rows of the table were compared."""
    packets = PacketRows(table)
    connection = Connection(settings(mysql))
    count = 0
    try:
        columns = ", ".join(table.selected)
        result = connection.result(f"SELECT {columns} FROM {table.id.schema}.{table.id.table}", packets.characters)
        while True:
            rows, _ = result.packets(13, 1 << 24)
            if not rows:
                return count
            count += len(rows)
            texts = packets.texts(rows)
            try:
                wanted = table.encoder.text_rows(texts, table.route, SOURCE, END)
            except ConnectError as error:
                with pytest.raises(type(error)):
                    packets.records(rows, SOURCE, END)
                continue
            assert packets.records(rows, SOURCE, END) == wanted, table.id
            slow = [table.encoder.columnwise.encode(text, snapshot=True) for text in texts]
            assert [(key, table.encoder.value(None, row, SOURCE, END)) for key, row in slow] == [record[1:] for record in wanted], table.id
    finally:
        connection.close()
