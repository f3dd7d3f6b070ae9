"""Chunk conditions as SQL: against Debezium's texts, and against sorting in Python by running them in SQLite."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.engine.snapshot.chunks import ChunkQuery, Key, KeyColumn, SqlDialect, order_sql, where_sql


def quoted(name: str) -> str:
    return f'"{name}"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


POSTGRES = SqlDialect(quoted, literal, row_values=True, nulls_last=True)
NULLS_LAST = SqlDialect(quoted, literal, row_values=False, nulls_last=True)
NULLS_FIRST = SqlDialect(quoted, literal, row_values=False, nulls_last=False)
A, B = KeyColumn("a"), KeyColumn("b")


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        (ChunkQuery([A], limit=7), ' ORDER BY "a" LIMIT 7'),
        (ChunkQuery([A, B], descending=True, condition="x"), ' WHERE (x) ORDER BY "a" DESC, "b" DESC LIMIT 1'),
        (ChunkQuery([A], ("1",), ("9",)), ' WHERE "a" > \'1\' AND "a" <= \'9\' ORDER BY "a" LIMIT 1'),
        (
            ChunkQuery([A, B], ("1", "x"), ("9", "z"), "c OR d"),
            ' WHERE ROW("a", "b") > ROW(\'1\', \'x\') AND ROW("a", "b") <= ROW(\'9\', \'z\') AND (c OR d) ORDER BY "a", "b" LIMIT 1',
        ),
    ],
)
def test_sql_is_what_debezium_asks_postgresql(query: ChunkQuery, sql: str) -> None:
    assert where_sql(query, POSTGRES) + order_sql(query, POSTGRES) == sql


VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "'"]))
KEYS = st.tuples(VALUES, VALUES)


@given(st.sets(KEYS, max_size=20), KEYS, KEYS, st.sampled_from([NULLS_LAST, NULLS_FIRST, POSTGRES]))
def test_a_chunk_holds_exactly_the_keys_between_its_bounds(rows: set[Key], one: Key, two: Key, dialect: SqlDialect) -> None:
    def place(key: Key) -> list[tuple[bool, str]]:
        return [((part is None) == dialect.nulls_last, part or "") for part in key]

    after, until = sorted([one, two], key=place)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (a text, b text)")
    database.executemany("INSERT INTO t VALUES (?, ?)", sorted(rows, key=place))
    query = ChunkQuery([KeyColumn("a", True), KeyColumn("b", True)], after, until, limit=100)
    found = database.execute(f"SELECT a, b FROM t{where_sql(query, dialect)}").fetchall()
    database.close()
    assert sorted(found, key=place) == [key for key in sorted(rows, key=place) if place(after) < place(key) <= place(until)]
