"""The journal's triggers note what was committed, whichever statement changed it, and nothing that was rolled back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from connect_py.app.services.mysql import MySqlAddress
from connect_py.app.services.postgres import PostgresAddress
from connect_py.app.verify.history.journal import (
    JOURNAL,
    Journalled,
    changes_of,
    digest_of,
    key_text,
    mysql_query,
    mysql_statements,
    postgres_query,
    postgres_statements,
)
from connect_py.app.verify.history.records import Change

pytestmark = [pytest.mark.services, pytest.mark.long]

#: Statements that both servers know; {upsert} is theirs.
WORK = (
    "INSERT INTO {item} (id, part, note) VALUES (1, 'b', 'é'), (2, 'a', NULL)",
    "INSERT INTO {item} (id, part, note) VALUES (1, 'a', 'more') {upsert}",
    "UPDATE {item} SET note = 'x' WHERE part = 'a'",
    "DELETE FROM {item} WHERE id = 2",
    "INSERT INTO {item} (id, part, note) VALUES (2, 'a', 'again')",
    "UPDATE {item} SET id = 9 WHERE id = 2",
    "UPDATE {item} SET part = 'A' WHERE id = 9",
)
WANTED = [
    ("1|a", 1, "c"),  # was there before
    *[("1|b", 1, "c"), ("2|a", 1, "c")],
    ("1|a", 2, "u"),
    *[("1|a", 3, "u"), ("2|a", 2, "u")],
    ("2|a", 3, "d"),
    ("2|a", 4, "c"),
    *[("2|a", 5, "d"), ("9|a", 1, "c")],
    *[("9|a", 2, "d"), ("9|A", 1, "c")],  # MySQL's column takes both for equal
]


def seen(changes: Iterable[Change]) -> list[tuple[str | None, int, str]]:
    return [(change.key and change.key.replace("\x1f", "|"), change.sequence, str(change.op)) for change in changes]


def assert_right(changes: list[Change], rows: Iterable[Sequence[Any]]) -> None:
    # which row of a statement comes first is the server's choice
    assert sorted(seen(changes)) == sorted(WANTED)
    for key in {change.key for change in changes}:
        numbers = [change.sequence for change in changes if change.key == key]
        assert numbers == sorted(numbers), key
    last = {change.key: (change.sequence, change.digest) for change in changes}
    assert {key_text((id_, part)): (version, digest_of((id_, note))) for id_, part, version, note in rows}.items() <= last.items()


def test_triggers_of_postgresql(postgres: PostgresAddress, database: str) -> None:
    item = Journalled("public", "item", ["id", "part"], "version", ["id", "note"])
    with postgres.connect(database) as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE item (id int, part text, version bigint NOT NULL DEFAULT 1, note text, PRIMARY KEY (id, part))")
        connection.execute("INSERT INTO item (id, part, note) VALUES (1, 'a', 'first')")
        for statement in postgres_statements(item):
            connection.execute(statement)
        for work in WORK:
            connection.execute(work.format(item="item", upsert="ON CONFLICT (id, part) DO UPDATE SET note = excluded.note"))
        with connection.transaction(force_rollback=True):
            connection.execute("UPDATE item SET note = 'never'")
        changes = changes_of(connection.execute(postgres_query()).fetchall())
        assert_right(changes, connection.execute("SELECT id, part, version, note FROM item").fetchall())
        assert len({change.transaction for change in changes}) == 1 + len(WORK)
        connection.execute("TRUNCATE item")
        assert seen(changes_of(connection.execute(postgres_query()).fetchall()))[-1] == (None, 0, "t")


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_triggers_of_mysql(request: pytest.FixtureRequest, server: str) -> None:
    address: MySqlAddress = request.getfixturevalue(server)
    name = f"journal_{uuid.uuid4().hex[:8]}"
    item = Journalled(name, "item", ["id", "part"], "version", ["id", "note"])
    with address.connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute(f"CREATE DATABASE {name}")
        table = "(id INT, part VARCHAR(9), version BIGINT NOT NULL DEFAULT 1, note VARCHAR(20), PRIMARY KEY (id, part)) CHARSET utf8mb4"
        cursor.execute(f"CREATE TABLE {name}.item {table}")
        cursor.execute(f"INSERT INTO {name}.item (id, part, note) VALUES (1, 'a', 'first')")
        for statement in mysql_statements(item):
            cursor.execute(statement)
        for work in WORK:
            cursor.execute(work.format(item=f"{name}.item", upsert="ON DUPLICATE KEY UPDATE note = VALUES(note)"))
        connection.begin()
        cursor.execute(f"UPDATE {name}.item SET note = 'never'")
        connection.rollback()
        cursor.execute(mysql_query(f"{name}.{JOURNAL}"))
        changes = changes_of(cursor.fetchall())
        cursor.execute(f"SELECT id, part, version, note FROM {name}.item")
        assert_right(changes, list(cursor.fetchall()))
        cursor.execute(f"DROP DATABASE {name}")
