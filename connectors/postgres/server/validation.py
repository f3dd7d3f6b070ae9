"""The connection test of a validation: a connection and its user's roles; neither wal_level nor tables are looked at."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect_py.errors import ConnectError
from connectors.postgres.config import CONNECT_TIMEOUT_SECONDS, ConnectionSettings, parse_config
from connectors.postgres.errors import ServerError
from connectors.postgres.server.catalog import MAY_REPLICATE_SQL
from connectors.postgres.server.connection import Connection

log = logging.getLogger(__name__)

#: Older servers have no pgoutput.
OLDEST_VERSION = 100000
#: Older ones cannot say which transactions a snapshot sees.
READ_ONLY_VERSION = 130000


_FAILED = "Error while validating connector config: "


def connection_problem(config: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the connection, as the text of an error on `database.hostname`; None when it works."""
    try:
        parsed = parse_config(config)
    except ConnectError as error:
        return f"{_FAILED}{error}"
    settings = parsed.connection
    if parsed.number("database.query.timeout.ms") < 0:
        return f"{_FAILED}Query timeout must be a value greater than or equals to 0."
    if not 0 < settings.port < 1 << 16:
        return f"{_FAILED}Unable to parse URL jdbc:postgresql://{settings.host}:{settings.port}/{settings.database}"
    seconds = parsed.seconds("connection.validation.timeout.ms")
    timed_out = f"Connection validation timed out after {parsed.number('connection.validation.timeout.ms')} ms"
    try:
        connection = Connection(
            settings,
            "Debezium Validate Connection",
            query_seconds=seconds,
            connect_seconds=min(seconds, CONNECT_TIMEOUT_SECONDS),
        )
    except ServerError as error:
        if "timeout expired" in error.message and seconds < CONNECT_TIMEOUT_SECONDS:
            return timed_out
        log.warning("Validation could not reach the database '%s' at %s:%d: %s", settings.database, settings.host, settings.port, error)
        return f"{_FAILED}{_driver_text(error, settings)}"
    try:
        if connection.server_version < OLDEST_VERSION:
            return f"{_FAILED}Cannot connect to a version of Postgres lower than {OLDEST_VERSION // 10000}"
        ((replication,),) = connection.query(f"SELECT {MAY_REPLICATE_SQL}")
        if replication != "t":
            log.warning("Postgres roles LOGIN and REPLICATION are not assigned to user: %s", settings.user)
        if parsed.flag("read.only") and connection.server_version < READ_ONLY_VERSION:
            return "Error during connection validation: io.debezium.DebeziumException: Read only is not supported for version minor to 13"
    except ServerError as error:
        if error.sqlstate == "57014":
            return timed_out
        return f"{_FAILED}{error.message}"
    finally:
        connection.close()
    return None


def _driver_text(error: ServerError, settings: ConnectionSettings) -> str:
    """Return pgjdbc's sentence, which Debezium shows, for what libpq found."""
    if error.message.startswith("FATAL:"):
        return error.message
    if "Connection refused" in error.message:
        return (
            f"Connection to {settings.host}:{settings.port} refused. Check that the hostname and port are correct and that the postmaster "
            "is accepting TCP/IP connections."
        )
    if "no password supplied" in error.message:
        if settings.password is not None:  # one that is empty, which libpq does not send
            return f'FATAL: password authentication failed for user "{settings.user}"'
        return "The server requested password-based authentication, but no password was provided by plugin null"
    return "The connection attempt failed."
