"""Clients of MongoDB: how one is made, what it asks the server now and then, and the driver's errors as ours.

This is the only module that makes a client: the properties say what TLS, login and timeouts it has. Of an error the class is the decision:
a retriable one makes the task connect again and continue from its last position, a fatal one ends it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymongo.errors as driver
from bson import json_util
from bson.errors import BSONError
from bson.timestamp import Timestamp
from pymongo import MongoClient, ReadPreference
from pymongo.client_session import ClientSession
from pymongo.errors import ConfigurationError, InvalidURI

from connect_py.errors import ConfigError, ConnectError, FatalTaskError, RetriableError
from connect_py.tls import pem_file
from connectors.mongodb.addresses import has_user, masked, options_of
from connectors.mongodb.capture import SYSTEM_DATABASES, split_namespace
from connectors.mongodb.config import MongoConfig

log = logging.getLogger(__name__)


UNAUTHORIZED, AUTHENTICATION_FAILED = 13, 18
#: The position to continue from is gone, or its token is not of this server: InvalidResumeToken, ChangeStreamFatalError,
#: ChangeStreamHistoryLost, CappedPositionLost; FailedToParse is what a token of another kind of server gives.
LOST_POSITION: Final = frozenset({260, 280, 286, 136, 9})
#: BSONObjectTooLarge, and its twin inside of aggregations.
TOO_LARGE: Final = frozenset({10334, 17280, 5159})
#: What passes by itself: a server that steps down, shuts down or is interrupted, a lost cursor, a time limit.
PASSING: Final = frozenset(
    {6, 7, 43, 50, 63, 89, 91, 112, 133, 134, 150, 189, 234, 237, 262, 9001, 10058, 10107, 11600, 11602, 13388, 13435, 13436, 50915}
)


class ServerError(ConnectError):
    """The server refused. `code` is its number, 0 where the driver failed; `reason` its own text."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or message


class LostConnectionError(ServerError, RetriableError):
    """The connection broke, or no server can be used just now: worth another attempt."""


class LostPositionError(ServerError):
    """The server's log no longer holds the position from which the connector must continue."""


class TooLargeError(ServerError, FatalTaskError):
    """A change event is larger than the 16 MB of a BSON document."""


def server_error(error: Exception, what: str) -> ServerError:
    """Return the error to raise for one of the driver's."""
    code, text = _code_and_text(error)
    message = f"{what}: {text}"
    if isinstance(error, driver.OperationFailure):
        labels = error.has_error_label("NonResumableChangeStreamError")
        if code in TOO_LARGE or "BSONObjectTooLarge" in text:
            return TooLargeError(
                f"{message}. A change event is larger than 16 MB. Nothing behind it was read. Set cursor.oversize.handling.mode=split "
                "(MongoDB 6.0.9 and newer) or skip with a threshold",
                code,
                text,
            )
        if code in LOST_POSITION or (labels and code not in PASSING):
            return LostPositionError(message, code, text)
        if code in PASSING or error.has_error_label("ResumableChangeStreamError"):
            return LostConnectionError(message, code, text)
        return ServerError(message, code, text)
    if isinstance(error, (driver.ConnectionFailure, driver.WTimeoutError, driver.WaitQueueTimeoutError, OSError)):
        return LostConnectionError(message, code, text)
    return ServerError(message, code, text)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise the driver's errors as ours; `what` says what was tried."""
    try:
        yield
    except (driver.PyMongoError, BSONError, OSError) as error:
        raise server_error(error, what) from error


#: What the driver raises where an answer lacks what it takes for granted.
_NO_ANSWER = (KeyError, TypeError, AttributeError, ValueError, IndexError)


@contextmanager
def answered(what: str) -> Iterator[None]:
    """As `translated`, around calls of the driver alone: also for what is no answer at all. Raises ServerError."""
    with translated(what):
        try:
            yield
        except _NO_ANSWER as error:
            reason = f"the server's answer is not as MongoDB documents it ({type(error).__name__}: {error})"
            message = f"{what}: {reason}"
            raise ServerError(message, 0, reason) from error


def _code_and_text(error: Exception) -> tuple[int, str]:
    if isinstance(error, driver.OperationFailure):
        details = error.details or {}
        name = details.get("codeName")
        text = str(details.get("errmsg") or error).rstrip(".")
        return error.code or 0, f"Command failed with error {error.code or 0}{f' ({name})' if name else ''}: '{text}'"
    # the driver adds its view of the whole cluster
    return 0, (str(error) or type(error).__name__).partition(", Timeout:")[0]


Client = MongoClient[dict[str, Any]]

#: The driver refuses to look more often.
SHORTEST_HEARTBEAT_MS = 500


def open_client(config: MongoConfig, *, selection_ms: int | None = None) -> Client:
    """Return a client; it connects when it is first used. The caller closes it.

    Args:
        selection_ms: replaces `mongodb.server.selection.timeout.ms`, where the connection string says nothing.

    Raises:
        ConfigError: the driver refuses an option.
        LostConnectionError: the names of a mongodb+srv address cannot be found just now.
    """
    string = config.connection_string
    given = options_of(string)
    options: dict[str, Any] = {"appname": f"connect-py {config.topic_prefix}"[:128]}
    if not has_user(string) and config.raw.get("mongodb.user"):
        options |= {
            "username": config.raw["mongodb.user"],
            "password": config.password,
            "authSource": config.raw["mongodb.authsource"] or "admin",
        }
    options |= {
        "connectTimeoutMS": config.number("mongodb.connect.timeout.ms"),
        "socketTimeoutMS": config.number("mongodb.socket.timeout.ms"),
        "serverSelectionTimeoutMS": selection_ms or config.number("mongodb.server.selection.timeout.ms"),
        "heartbeatFrequencyMS": max(SHORTEST_HEARTBEAT_MS, config.number("mongodb.heartbeat.frequency.ms")),
    }
    if config.flag("mongodb.ssl.enabled"):
        options["tls"] = True
        options["tlsAllowInvalidHostnames"] = config.flag("mongodb.ssl.invalid.hostname.allowed")
        for kind, option in (("truststore", "tlsCAFile"), ("keystore", "tlsCertificateKeyFile")):
            path = config.raw.get(f"mongodb.ssl.{kind}")
            if path:
                options[option] = pem_file(path, config.raw.get(f"mongodb.ssl.{kind}.password"))
    log.info("Connecting to %s", masked(string))
    kept = {name: value for name, value in options.items() if name.lower() not in given and not (name == "tls" and "ssl" in given)}
    try:
        # options of other drivers are no reason to stop; the driver warns of each
        with warnings.catch_warnings(), translated("The address of MongoDB cannot be used"):
            warnings.simplefilter("ignore")
            return MongoClient(string, **kept)
    except (ConfigurationError, InvalidURI, ValueError, TypeError) as error:
        raise ConfigError(f"mongodb.connection.string or another mongodb.* property cannot be used: {error}") from None


def hello(client: Client, database: str = "admin") -> dict[str, Any]:
    """Return what the server says of itself. Raises ServerError."""
    with answered("Unable to connect"):
        return client[database].command("hello")


@contextmanager
def session_at(client: Client, time: tuple[int, int] | None) -> Iterator[ClientSession]:
    """Yield a session in which a member that is asked waits until it has what the deployment had at a time.

    The change stream of one member may be ahead of another one, which a connection string with `readPreference` may choose for the next
    read. The primary alone has everything that any stream shows: where only it is asked, nobody needs to wait.

    Args:
        time: seconds and increment of a cluster time that the client has seen; None for any time.
    """
    waits = time is not None and _asks_others(client)
    with client.start_session(causal_consistency=waits) as session:
        if waits and time is not None:
            session.advance_operation_time(Timestamp(*time))
        yield session


def cluster_time(client: Client) -> str | None:
    """Return the newest cluster time that a client has seen, for `adopt_cluster_time`; None where only the primary is asked.

    Raises:
        ServerError: the server cannot be asked.
    """
    if not _asks_others(client):
        return None
    with translated("Cannot read the server's time"), client.start_session() as session:
        client.admin.command("ping", read_preference=client.read_preference, session=session)
        return None if session.cluster_time is None else json_util.dumps(session.cluster_time)


def adopt_cluster_time(client: Client, text: str | None) -> None:
    """Let a new client know what another one has seen: a member refuses to wait for a time of which neither it nor the client has heard.

    Raises:
        ServerError: the server cannot be asked.
    """
    if text is None:
        return
    with translated("Cannot tell the server the time"), client.start_session() as session:
        session.advance_cluster_time(json_util.loads(text))
        client.admin.command("ping", read_preference=client.read_preference, session=session)


def _asks_others(client: Client) -> bool:
    return client.read_preference != ReadPreference.PRIMARY


def captured_namespaces(client: Client, config: MongoConfig) -> list[str]:
    """Return every captured collection that exists now, in the order of a snapshot: by the collections' names. Views are none.

    Raises:
        ServerError: the names cannot be listed.
    """
    found = (name for name in all_namespaces(client, config) if config.namespaces.is_captured(name))
    return sorted(found, key=lambda name: (split_namespace(name)[1], name))


def all_namespaces(client: Client, config: MongoConfig) -> list[str]:
    """Return every collection of the users' that exists now within `capture.scope`, whatever lists say. Raises ServerError."""
    capture = config.capture
    with translated("Cannot list the collections"):
        if capture.collection is not None and capture.database is not None:
            return [f"{capture.database}.{capture.collection}"]
        names = [capture.database] if capture.database is not None else client.list_database_names()
        return [
            f"{database}.{entry['name']}"
            for database in names
            if database not in SYSTEM_DATABASES
            for entry in client[database].list_collections()
            if entry.get("type", "collection") == "collection" and not entry["name"].startswith("system.")
        ]
