"""What the worker's properties say of its REST API (`RestServerConfig.java`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.runtime.loggers import PROCESS, Loggers
from rest_api.response_headers import HeaderRule, parse_rules

#: Far above any configuration (Kafka refuses records over 1 MiB by default) and any usual list of offsets; keeps one client from
#: filling the worker's memory.
MAX_BODY_BYTES = 16 * 1024 * 1024
#: Jetty's own choice when `access.control.allow.methods` is empty.
CORS_METHODS = ("GET", "POST", "HEAD")


@dataclass(frozen=True)
class RestConfig:
    """Settings of the REST API.

    Attributes:
        listeners: such as ``http://:8083``; an empty host means every interface, port 0 any free port.
        admin_endpoints: False when ``admin.listeners`` is set to nothing: ``/admin`` is then 404.
        max_body_bytes: a longer request gets 413.
        loggers: what ``/admin/loggers`` shows and changes.
        header_rules: headers of every answer (`response.http.headers.config`).
        cors_origins: pages of these origins may call (`access.control.allow.origin`); ``*`` means all.
        cors_methods: what they may do (`access.control.allow.methods`).
    """

    listeners: tuple[str, ...] = ("http://:8083",)
    admin_endpoints: bool = True
    max_body_bytes: int = MAX_BODY_BYTES
    header_rules: tuple[HeaderRule, ...] = ()
    cors_origins: tuple[str, ...] = ()
    cors_methods: tuple[str, ...] = CORS_METHODS
    loggers: Loggers = PROCESS

    @classmethod
    def from_worker(cls, properties: Mapping[str, str]) -> RestConfig:
        """The settings in a worker's properties. Raises ConfigError."""
        return cls(
            listeners=_listed(properties.get("listeners")) or ("http://:8083",),
            admin_endpoints=properties.get("admin.listeners", "unset").strip() != "",
            header_rules=parse_rules(properties.get("response.http.headers.config", "")),
            cors_origins=_listed(properties.get("access.control.allow.origin")),
            cors_methods=_listed(properties.get("access.control.allow.methods")) or CORS_METHODS,
        )


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
