"""Ask the source's database for what only it knows of a history: the journal, and of which tables its log shows whole rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect_py.app.verify.history.journal import changes_of, changes_of_documents, journal_place, mysql_query, postgres_query
from connect_py.app.verify.history.records import Change
from connect_py.app.verify.source import Database, require_database
from connect_py.plugins.registry import Plugins


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """Which database a source connector reads, and its configuration as the connector parses it (`ParsedConfig`)."""

    database: Database
    config: Any


@dataclass(frozen=True, slots=True)
class Journal:
    """What was read.

    Attributes:
        changes: all lines.
        keys_only: captured tables whose log shows of a removed row its key alone; the other columns then hold defaults.
    """

    changes: Sequence[Change]
    keys_only: frozenset[str] = frozenset()


def parse_source(config: Mapping[str, str]) -> ParsedSource:
    """Parse the configuration of a source connector. Raises ConfigError."""
    match require_database(config, Plugins.discover()):
        case "postgres":
            from connectors.postgres.config import parse_config as parse_postgres

            return ParsedSource("postgres", parse_postgres(config))
        case "mongodb":
            from connectors.mongodb.config import parse_config as parse_mongo

            return ParsedSource("mongodb", parse_mongo(config))
        case kind:
            from connectors.mysql.config.config import parse_config as parse_mysql

            return ParsedSource(kind, parse_mysql(config, kind))


def read_journal(source: ParsedSource, journal: str, captured: Iterable[str]) -> Journal:
    """Return the journal.

    Args:
        journal: its name; without a schema it is in `public` in PostgreSQL, else in the database in which all captured tables are.
        captured: names of the captured tables.

    Raises:
        ConfigError: the journal's database is not known.
        DataError: a line is none.
        ConnectError: it cannot be read.
    """
    if source.database == "postgres":
        return _of_postgres(source.config, journal)
    databases = sorted({name.partition(".")[0] for name in captured})
    database, table = journal_place(journal, databases[0] if len(databases) == 1 else None)
    if source.database == "mongodb":
        return _of_mongodb(source.config, database, table)
    return _of_mysql(source.config, f"{database}.{table}", captured)


def _of_postgres(config: Any, journal: str) -> Journal:
    from connectors.postgres.errors import ServerError, translate
    from connectors.postgres.preparation import open_general

    session = open_general(config, lambda: False)
    try:
        changes = changes_of(session.query(postgres_query(journal)))
        names = session.query(
            "SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p') AND c.relreplident <> 'f'"
        )
    except ServerError as error:
        raise translate(error, f"Cannot read the journal {journal}", user=config.user, database=config.database) from None
    finally:
        session.close()
    return Journal(changes, frozenset(str(name) for (name,) in names))


def _of_mysql(config: Any, journal: str, captured: Iterable[str]) -> Journal:
    from connectors.mysql.server.queries import open_connection, variable

    connection = open_connection(config)
    try:
        changes = changes_of(
            [None if value is None else value.decode("utf-8", "replace") for value in row] for row in connection.query(mysql_query(journal))
        )
        is_whole = variable(connection, "binlog_row_image").upper() == "FULL"
    finally:
        connection.close()
    return Journal(changes, frozenset(() if is_whole else captured))


def _of_mongodb(config: Any, database: str, collection: str) -> Journal:
    from connectors.mongodb.server.connection import open_client, translated

    client = open_client(config)
    try:
        with translated(f"Cannot read the journal {database}.{collection}"):
            return Journal(changes_of_documents(client[database][collection].find().sort("_id")))
    finally:
        client.close()
