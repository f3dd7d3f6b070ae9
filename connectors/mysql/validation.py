"""The connection test of a validation (mysql.md §18): a login; neither the log nor tables are looked at."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect_py.errors import ConnectError
from connectors.mysql.config import parse_config
from connectors.mysql.connection import Connection
from connectors.mysql.errors import LostConnectionError, ServerError

log = logging.getLogger(__name__)


def connection_problem(config: Mapping[str, str | None], connector: str) -> str | None:
    """What is wrong with the connection, as the text of an error on `database.hostname`; None when it works."""
    try:
        parsed = parse_config(config, connector)
    except ConnectError:
        # what the connection does not need is for the task to say, as the reference has it
        return None
    try:
        connection = Connection(parsed.connection)
    except LostConnectionError as error:
        log.warning("Validation could not reach the server: %s", error)
        return "Error during connection validation: io.debezium.DebeziumException: Failed to establish connection with the database: "
    except ServerError as error:
        log.warning("Validation could not log in: %s", error)
        return f"Unable to connect: {error.reason}"
    connection.close()
    return None
