"""Questions to the server that are asked now and then: what it is, which collections there are (mongodb.md §6.1, §7)."""

from __future__ import annotations

from typing import Any

from connectors.mongodb.config import MongoConfig
from connectors.mongodb.namespaces import SYSTEM_DATABASES, split_namespace
from connectors.mongodb.server.connection import Client
from connectors.mongodb.server.errors import translated


def hello(client: Client, database: str = "admin") -> dict[str, Any]:
    """What the server says of itself. Raises ServerError."""
    with translated("Unable to connect"):
        return client[database].command("hello")


def captured_namespaces(client: Client, config: MongoConfig) -> list[str]:
    """Every captured collection that exists now, in the order of a snapshot: by the collections' names. Views are none.

    Raises:
        ServerError: the names cannot be listed.
    """
    capture = config.capture
    with translated("Cannot list the collections"):
        if capture.collection is not None and capture.database is not None:
            found = [f"{capture.database}.{capture.collection}"]
        else:
            names = [capture.database] if capture.database is not None else client.list_database_names()
            found = [
                f"{database}.{entry['name']}"
                for database in names
                if database not in SYSTEM_DATABASES
                for entry in client[database].list_collections()
                if entry.get("type", "collection") == "collection" and not entry["name"].startswith("system.")
            ]
    return sorted((name for name in found if config.namespaces.is_captured(name)), key=lambda name: (split_namespace(name)[1], name))
