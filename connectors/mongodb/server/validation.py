"""The connection test of a validation."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect_py.errors import ConnectError
from connectors.mongodb.addresses import options_of
from connectors.mongodb.config import connection_part, parse_config
from connectors.mongodb.server.connection import UNAUTHORIZED, ServerError, hello, open_client, translated

log = logging.getLogger(__name__)


#: What the reference's sink says of a server that cannot be reached (`MongoDbSinkConnectorConfig`).
UNREACHABLE = "Unable to connect to the server."
#: A validation is an HTTP request, whose client waits.
SINK_SECONDS = 15


def sink_problem(config: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the connection of a sink, as the text of an error on `mongodb.connection.string`; None when it works."""
    try:
        parsed = parse_config(connection_part({name: value for name, value in config.items() if value is not None}, "sink"))
        limit = min(SINK_SECONDS * 1000, parsed.number("mongodb.server.selection.timeout.ms"))
        client = open_client(parsed, selection_ms=limit)
    except ConnectError as error:
        return str(error)
    try:
        hello(client)
    except ServerError as error:
        log.warning("Validation could not use the server: %s", error)
        return UNREACHABLE
    finally:
        client.close()
    return None


def connection_problem(config: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the connection, as the text of an error on `mongodb.connection.string`; None when it works."""
    try:
        parsed = parse_config(config)
    except ConnectError:
        # what the connection does not need is for the task to say, as the reference has it
        return None
    limit = parsed.number("connection.validation.timeout.ms")
    try:
        client = open_client(parsed, selection_ms=min(limit, parsed.number("mongodb.server.selection.timeout.ms")))
    except ConnectError as error:
        return f"Unable to connect: {error}"
    try:
        found = hello(client)
        with translated("Unable to connect"):
            names = client.list_database_names()
    except ServerError as error:
        log.warning("Validation could not use the server: %s", error)
        if error.code == UNAUTHORIZED:
            return f"User doesn't have sufficient privileges: {error.reason}"
        if error.code:
            return f"Unable to connect: {error.reason}"
        return f"Unable to connect: Timed out while waiting for a server: {error.reason}"
    finally:
        client.close()
    if not names:
        return "User doesn't have rights to list databases. Please verify credentials and database permissions."
    if "setName" in found and "replicaset" not in options_of(parsed.connection_string):
        return "Replica set not specified in connection string for REPLICA_SET cluster."
    return None
