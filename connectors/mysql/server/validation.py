"""The connection test of a validation: a login, and the statement that shows the end of the log. Tables are not checked."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from connect_py.errors import ConnectError
from connectors.mysql.config.config import MySqlConfig, parse_config
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.server import queries

log = logging.getLogger(__name__)


def connection_problem(config: Mapping[str, str | None], connector: str) -> str | None:
    """Return what is wrong with the connection, as the text of an error on `database.hostname`; None when it works."""
    try:
        parsed = parse_config(config, connector)
    except ConnectError:
        # problems that the connection test does not meet are reported by the task, as in Debezium
        return None
    if parsed.number("database.query.timeout.ms") < 0:
        return "Unable to connect: Illegal value for setQueryTimeout()."
    limit = parsed.seconds("connection.validation.timeout.ms")
    deadline = time.monotonic() + limit
    found = _try(_within(parsed, limit))
    return f"Connection validation timed out after {limit * 1000:.0f} ms" if time.monotonic() >= deadline else found


def _within(config: MySqlConfig, seconds: float) -> MySqlConfig:
    """Return the settings with a timeout in seconds for the login and for each statement."""
    settings = config.connection
    query = min(settings.query_timeout or seconds, seconds)
    return replace(config, connection=replace(settings, connect_timeout=min(settings.connect_timeout, seconds), query_timeout=query))


def _try(config: MySqlConfig) -> str | None:
    try:
        connection = queries.open_connection(config)
    except LostConnectionError as error:
        log.warning("Validation could not reach the server: %s", error)
        return "Error during connection validation: io.debezium.DebeziumException: Failed to establish connection with the database: "
    except ServerError as error:
        log.warning("Validation could not log in: %s", error)
        return f"Unable to connect: {error.reason}"
    try:
        queries.status_statement(connection, config)
    except ConnectError as error:
        return f"Error during connection validation: io.debezium.DebeziumException: {error}"
    finally:
        connection.close()
    return None
