"""Clients of MongoDB: what the properties say of TLS, login and timeouts (mongodb.md §1.1). The only module that makes one."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from pymongo import MongoClient
from pymongo.errors import ConfigurationError, InvalidURI

from connect_py.errors import ConfigError
from connectors.engine.certificates import pem_file
from connectors.mongodb.config import MongoConfig
from connectors.mongodb.server.addresses import has_user, masked, options_of
from connectors.mongodb.server.errors import translated

log = logging.getLogger(__name__)

Client = MongoClient[dict[str, Any]]

#: The driver refuses to look more often.
SHORTEST_HEARTBEAT_MS = 500


def open_client(config: MongoConfig, *, selection_ms: int | None = None) -> Client:
    """A client; it connects when it is first used. The caller closes it.

    Args:
        selection_ms: in place of `mongodb.server.selection.timeout.ms`, where the connection string says nothing.

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
