"""The collections of a MongoDB deployment, for somebody who chooses from them (`SourceConnector.list_tables`). It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api.tables import SourceTables
from connectors.engine.facts import LIMIT_SECONDS
from connectors.engine.table_lists import Lists, described
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.config import parse_config
from connectors.mongodb.server.connection import all_namespaces, open_client
from connectors.mongodb.snapshot.chunks import read_counts

#: Each estimate is a request; more than these take longer than they are worth.
_MOST_COUNTED = 200


def list_tables(config: Mapping[str, str]) -> SourceTables:
    """Return every collection that `capture.scope` lets the connector watch. Raises ConnectError."""
    parsed = parse_config(config)
    namespaces = parsed.namespaces
    client = open_client(parsed, selection_ms=round(LIMIT_SECONDS * 1000))
    try:
        found = all_namespaces(client, parsed)
        rows = read_counts(client, found) if len(found) <= _MOST_COUNTED else {}
    finally:
        client.close()
    lists = Lists(
        "collection.include.list",
        namespaces.collections,
        "database",
        lambda name: namespaces.databases(split_namespace(name)[0]),
        namespaces.is_captured,
        frozenset(filter(None, [namespaces.forced])),
        literal=namespaces.literal,
    )
    return described(config, lists, found, rows)
