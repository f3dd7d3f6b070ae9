"""The doctor of MongoDB connectors: reads the facts of one deployment, and has them checked. It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api.doctor import Diagnosis
from connectors.engine.facts import LIMIT_SECONDS
from connectors.engine.topic_naming import DATABASE_STRATEGY, TopicNaming
from connectors.mongodb.addresses import masked
from connectors.mongodb.capture import split_namespace
from connectors.mongodb.checks import Facts, Rights, Wanted, all_findings, connection_finding
from connectors.mongodb.config import MongoConfig, parse_config
from connectors.mongodb.server.connection import (
    AUTHENTICATION_FAILED,
    UNAUTHORIZED,
    Client,
    LostConnectionError,
    ServerError,
    captured_namespaces,
    hello,
    open_client,
    translated,
)
from connectors.mongodb.stream.stream import ChangeStream

_LIMIT_MS = round(LIMIT_SECONDS * 1000)


def diagnose(config: Mapping[str, str]) -> Diagnosis:
    """Look at the deployment of a connector.

    Args:
        config: a configuration that can be parsed.

    Raises:
        ConfigError: the configuration cannot be used.
        LostConnectionError: the names of a mongodb+srv address cannot be found just now.
    """
    parsed = parse_config(config)
    at = masked(parsed.connection_string)
    wanted = _wanted(parsed)
    client = open_client(parsed, selection_ms=_LIMIT_MS)
    try:
        facts = read_facts(client, parsed)
    except ServerError as error:
        return Diagnosis([connection_finding(error, at)], unseen=[f"The deployment at {at}: {error.reason}"])
    finally:
        client.close()
    naming = TopicNaming.from_config({"topic.naming.strategy": DATABASE_STRATEGY, **parsed.raw}, "default")
    seen = f"MongoDB {'.'.join(map(str, facts.version))} at {at}, {len(facts.collections)} captured collections"
    topics = sorted(naming.data_topic(*place) for place in facts.collections)
    return Diagnosis(all_findings(facts, wanted), looked_at=[seen], topics=topics)


def _wanted(config: MongoConfig) -> Wanted:
    capture, mode = config.capture, config.snapshot_mode
    writes = config.signal_collection is not None and "source" in config.names("signal.enabled.channels")
    images = capture.options.get("fullDocument") == "whenAvailable" or "fullDocumentBeforeChange" in capture.options
    return Wanted(
        capture.database,
        capture.collection,
        streams=mode.streams,
        reads=mode.without_offset,
        signal=split_namespace(config.signal_collection) if writes and config.signal_collection else None,
        images=images and mode.streams,
    )


def read_facts(client: Client, config: MongoConfig) -> Facts:
    """Read everything that is checked. Raises ServerError."""
    answer = hello(client)
    with translated("The server does not say its version"):
        version = tuple(int(part) for part in client["admin"].command("buildInfo")["version"].split("-")[0].split("."))
    has_streams = "setName" in answer or answer.get("msg") == "isdbgrid"
    status = _status(client)
    users = status.get("authInfo", {}).get("authenticatedUsers", [])
    signal = config.signal_collection
    places = [split_namespace(name) for name in captured_namespaces(client, config) if name != signal]
    return Facts(
        version,
        has_streams,
        user=(users[0]["user"], users[0]["db"]) if users else None,
        rights=Rights.parse(status),
        collections=places,
        without_images=_without_images(client, places) if "whenAvailable" in config.capture.options.values() else (),
        stream_error=_stream_error(client, config) if has_streams and config.snapshot_mode.streams else None,
        **(_oplog(client) if "setName" in answer else {}),
    )


def _status(client: Client) -> dict[str, Any]:
    """Return what the server says of the user; nothing where it does not, as other makes of servers do."""
    try:
        with translated("The server does not say what the user may do"):
            return client["admin"].command("connectionStatus", showPrivileges=True)
    except LostConnectionError:
        raise
    except ServerError as error:
        if error.code in (UNAUTHORIZED, AUTHENTICATION_FAILED):
            raise
        return {}


def _without_images(client: Client, places: list[tuple[str, str]]) -> list[tuple[str, str]]:
    with translated("Cannot list the collections"):
        kept = {
            (database, entry["name"])
            for database in {database for database, _ in places}
            for entry in client[database].list_collections()
            if entry.get("options", {}).get("changeStreamPreAndPostImages", {}).get("enabled")
        }
    return [place for place in places if place not in kept]


def _oplog(client: Client) -> dict[str, Any]:
    """Return how far the oplog reaches back, where the user may look at it."""
    try:
        with translated("Cannot read the oplog"):
            oplog = client["local"]["oplog.rs"]
            first, last = (oplog.find_one({}, {"ts": 1}, sort=[("$natural", order)], max_time_ms=_LIMIT_MS) for order in (1, -1))
            size = client["local"].command("collStats", "oplog.rs")
    except LostConnectionError:
        raise
    except ServerError:
        return {}
    if first is None or last is None:
        return {}
    return {"oplog_seconds": last["ts"].time - first["ts"].time, "oplog_is_full": size.get("size", 0) >= 0.9 * size.get("maxSize", 1 << 62)}


def _stream_error(client: Client, config: MongoConfig) -> ServerError | None:
    """Open the change stream as the task does, and close it; return why that failed."""
    try:
        ChangeStream(client, config.capture, None, batch_size=1, wait_ms=1).close()
    except LostConnectionError:
        raise
    except ServerError as error:
        return error
    return None
