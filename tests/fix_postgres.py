"""The PostgreSQL servers that tests use: `$PG_HOST`, `$PG_PORT`, `$PG_USER`, `$PG_PASSWORD`, or ones of our own for the session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_py.app.services.postgres import PostgresAddress, PostgresServer


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresAddress]:
    """A server with wal_level=logical and an administrator's login. `.create_database()` gives each test its own."""
    if os.environ.get("PG_HOST"):
        env = os.environ
        yield PostgresAddress(
            env["PG_HOST"], int(env.get("PG_PORT", "5432")), env.get("PG_USER", "postgres"), env.get("PG_PASSWORD", "postgres")
        )
        return
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_with_extensions(postgres: PostgresAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresAddress]:
    """A server that has PostgreSQL's own extensions (hstore, citext, …): the one of `postgres`, or one of an installed package."""
    with postgres.connect() as admin:
        if admin.execute("SELECT count(*) FROM pg_available_extensions WHERE name IN ('hstore', 'citext', 'ltree', 'isn')").fetchone() == (
            4,
        ):
            yield postgres
            return
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name))
    if not installed:
        pytest.skip("no PostgreSQL with the extensions hstore, citext, ltree and isn: install Debian's package postgresql")
    server = PostgresServer(tmp_path_factory.mktemp("postgres-extensions"), binaries=installed[-1].parent)
    yield server
    server.stop()


@pytest.fixture
def database(postgres: PostgresAddress) -> Iterator[str]:
    """The name of a new, empty database; dropped with its replication slots at the end."""
    name = postgres.create_database()
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def postgres_without_logical(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresAddress]:
    """A server with wal_level=replica, from which nothing can be decoded."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres-replica"), wal_level="replica")
    yield server
    server.stop()


#: Columns are read again from the table.
RESELECT = {
    "post.processors": "again",
    "post.processors.again.type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor",
}


def postgres_source(postgres: PostgresAddress, database: str, tag: str, **more: str) -> dict[str, str]:
    """A source connector's configuration; dots of further properties are written as underscores.

    Topics begin with `pg_<tag>`, slot and publication are `slot_<tag>` and `pub_<tag>`.
    """
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": postgres.host,
        "database.port": str(postgres.port),
        "database.user": postgres.user,
        "database.password": postgres.password,
        "database.dbname": database,
        "topic.prefix": f"pg_{tag}",
        "slot.name": f"slot_{tag}",
        "publication.name": f"pub_{tag}",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
