"""What the worker's properties say of its REST API (`RestServerConfig.java`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from connect_py.config.worker import CONFLICT_WAIT_MS
from connect_py.errors import ConfigError
from connect_py.group.peers import Peers
from connect_py.herder.base import REQUEST_TIMEOUT_SECONDS
from connect_py.log.levels import PROCESS, Loggers
from rest_api import basic_auth
from rest_api.basic_auth import BasicAuth
from rest_api.compat.headers import HeaderRule, parse_rules
from rest_api.listeners import Listener, client_context, listed, parse_listeners
from rest_api.middleware import ALLOWED_HOSTS

#: Far above any configuration (Kafka refuses records over 1 MiB by default) and any usual list of offsets; keeps one client from
#: filling the worker's memory.
MAX_BODY_BYTES = 16 * 1024 * 1024
#: Jetty's own choice when `access.control.allow.methods` is empty.
CORS_METHODS = ("GET", "POST", "HEAD")
#: A herder that waits for its thread answers by itself, with what the thread is busy with; it must have the first word.
_GRACE_SECONDS = 1.0
#: Jetty's idle timeout.
BODY_SECONDS = 30.0


@dataclass(frozen=True)
class RestConfig:
    """Settings of the REST API.

    Attributes:
        listeners: where the API is served.
        admin_listeners: where `/admin` is served: None means with the rest, none at all means nowhere.
        metrics_listeners: where `/metrics` is served (`metrics.listeners`): None means with the rest, none at all means nowhere.
        health_listeners: where `/health` is served to probes in addition (`health.listeners`), without a password.
        auth: who may call the main listeners; None means everybody.
        max_body_bytes: a longer request gets 413.
        body_seconds: after which a client that sends nothing of its request's body gets 408.
        request_seconds: after which a request gets a 500, regardless of what it waits for.
        loggers: what ``/admin/loggers`` shows and changes.
        header_rules: headers of every answer of the main listeners (`response.http.headers.config`).
        cors_origins: pages of these origins may call (`access.control.allow.origin`); ``*`` means all.
        cors_methods: what they may do (`access.control.allow.methods`).
        peers: sends requests to the other workers of the group.
        conflict_wait_seconds: how long a request waits for the end of a rebalance (`rest.conflict.wait.ms`).
        allowed_hosts: names by which clients may call (`rest.allowed.hosts`); none means any, but on loopback listeners.
        own_host: the worker's advertised name (`rest.advertised.host.name`).
        ui: the page of the worker (`rest.ui`): ``full``, ``read-only`` or ``off``.
    """

    listeners: tuple[Listener, ...] = ()
    admin_listeners: tuple[Listener, ...] | None = None
    metrics_listeners: tuple[Listener, ...] | None = None
    health_listeners: tuple[Listener, ...] = ()
    auth: BasicAuth | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    request_seconds: float = REQUEST_TIMEOUT_SECONDS + _GRACE_SECONDS
    header_rules: tuple[HeaderRule, ...] = ()
    cors_origins: tuple[str, ...] = ()
    cors_methods: tuple[str, ...] = CORS_METHODS
    allowed_hosts: tuple[str, ...] = ()
    ui: str = "full"
    own_host: str | None = None
    loggers: Loggers = PROCESS
    peers: Peers = field(default_factory=Peers)
    conflict_wait_seconds: float = CONFLICT_WAIT_MS / 1000

    @classmethod
    def from_worker(cls, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> RestConfig:
        """Return the settings in a worker's properties.

        Raises:
            ConfigError: one is not known, or a file that it names cannot be read.
        """
        advertised = properties.get("rest.advertised.listener")
        if advertised is not None and advertised.strip().lower() not in ("http", "https"):
            raise ConfigError(f"Invalid value {advertised} for configuration rest.advertised.listener: it must be http or https")
        admin, metrics = properties.get("admin.listeners"), properties.get("metrics.listeners")
        return cls(
            listeners=parse_listeners(listed(properties.get("listeners")) or ("http://:8083",), properties, "listeners.https."),
            admin_listeners=None if admin is None else parse_listeners(listed(admin), properties, "admin.listeners.https."),
            metrics_listeners=None if metrics is None else parse_listeners(listed(metrics), properties, "listeners.https."),
            health_listeners=parse_listeners(listed(properties.get("health.listeners")), properties, "listeners.https."),
            auth=basic_auth.from_worker(properties, environment),
            header_rules=parse_rules(properties.get("response.http.headers.config", "")),
            cors_origins=listed(properties.get("access.control.allow.origin")),
            allowed_hosts=listed(properties.get(ALLOWED_HOSTS)),
            ui=_ui(properties.get("rest.ui", "full")),
            own_host=properties.get("rest.advertised.host.name"),
            peers=Peers(client_context(properties)),
            conflict_wait_seconds=float(properties.get("rest.conflict.wait.ms", CONFLICT_WAIT_MS)) / 1000,
            cors_methods=_methods(properties.get("access.control.allow.methods")),
        )


def _ui(text: str) -> str:
    mode = text.strip().lower()
    if mode not in ("full", "read-only", "off"):
        raise ConfigError(f"Invalid value {text} for configuration rest.ui: it must be full, read-only or off")
    return mode


def _methods(text: str | None) -> tuple[str, ...]:
    methods = listed(text)
    wrong = [method for method in methods if not method.isascii() or not method.isalpha()]
    if wrong:
        raise ConfigError(f"Invalid value {text} for configuration access.control.allow.methods: {wrong[0]} is not a method of HTTP")
    return methods or CORS_METHODS
