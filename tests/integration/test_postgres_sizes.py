"""What a snapshot knows of its tables' sizes before it reads them: its progress and the time left are made of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_py.app.services.postgres import PostgresAddress
from connectors.engine.relational.tables import TableId
from connectors.postgres.config import parse_config
from connectors.postgres.server.connection import Connection
from connectors.postgres.snapshot.chunks import read_sizes
from tests.fix_postgres import postgres_source

pytestmark = pytest.mark.services

ROWS = 100_000

#: No statistics come by themselves in the middle of a test.
BARE = "WITH (autovacuum_enabled = off)"


@pytest.fixture
def reader(postgres: PostgresAddress, database: str, tag: str) -> Iterator[Connection]:
    connection = Connection(parse_config(postgres_source(postgres, database, tag)).connection, "sizes")
    yield connection
    connection.close()


def test_rows_are_estimated_with_old_statistics_and_with_none(postgres: PostgresAddress, database: str, reader: Connection) -> None:
    with postgres.connect(database) as admin:
        admin.execute(f"CREATE TABLE narrow (id int PRIMARY KEY) {BARE}; INSERT INTO narrow SELECT generate_series(1, {ROWS})")
        admin.execute(
            f"CREATE TABLE wide (id int, t text) {BARE}; INSERT INTO wide SELECT g, repeat('x', 999) FROM generate_series(1, 5000) g"
        )
        admin.execute(f"CREATE TABLE grown (id int) {BARE}; INSERT INTO grown SELECT generate_series(1, 1000)")
        admin.execute(f"ANALYZE grown; INSERT INTO grown SELECT generate_series(1001, {ROWS})")
        admin.execute("CREATE TABLE parts (id int) PARTITION BY RANGE (id)")
        admin.execute(f"CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000000) {BARE}")
        admin.execute(f"INSERT INTO parts SELECT generate_series(1, {ROWS})")
        admin.execute("CREATE TABLE nothing (id int)")
        admin.execute("CREATE VIEW seen AS SELECT * FROM narrow")
    names = ("narrow", "wide", "grown", "parts", "nothing", "seen")
    found = {table.table: size for table, size in read_sizes(reader, [TableId("public", name) for name in names]).items()}
    for name, rows in (("narrow", ROWS), ("wide", 5000), ("grown", ROWS), ("parts", ROWS)):
        assert found[name].rows == pytest.approx(rows, rel=0.3), name
        assert found[name].is_known == (name == "grown")
    assert found["nothing"].rows == 0
    assert found["seen"].rows == 0


def test_a_table_that_the_user_may_not_read_is_guessed_and_ends_no_transaction(postgres: PostgresAddress, database: str, tag: str) -> None:
    with postgres.connect(database) as admin:
        admin.execute(f"CREATE TABLE narrow (id int) {BARE}; INSERT INTO narrow SELECT generate_series(1, {ROWS})")
        admin.execute(f"CREATE ROLE weak_{tag} LOGIN PASSWORD 'dP3x-planted'")
    config = {**postgres_source(postgres, database, tag), "database.user": f"weak_{tag}", "database.password": "dP3x-planted"}
    connection = Connection(parse_config(config).connection, "sizes")
    try:
        connection.query("BEGIN")
        size = read_sizes(connection, [TableId("public", "narrow")])[TableId("public", "narrow")]
        assert size.rows == size.octets // 100
        assert connection.query("SELECT 1")
    finally:
        connection.close()
        with postgres.connect() as admin:
            admin.execute(f"DROP ROLE weak_{tag}")
