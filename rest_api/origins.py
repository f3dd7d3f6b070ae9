"""Which pages and which names of this worker may change something.

A browser sends a page's request to any address that the page names, without asking, as long as the request is a plain one: a POST without
a body restarts connectors. It says in `Origin` whose page that is. And a page may have its own host name resolved to this worker's address
(DNS rebinding), which then stands in `Host`. Kafka Connect looks at neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rest_api.cors import allowed_origin, origin_patterns
from rest_api.errors import error_response

ALLOWED_HOSTS = "rest.allowed.hosts"

_READING = ("GET", "HEAD", "OPTIONS")


class Origins:
    """Refuses changes that pages of foreign origins ask for (403), and hosts that the operator did not list (400).

    Args:
        hosts: values of `Host` without their port (`rest.allowed.hosts`); none means any.
        origins: of pages that may call (`access.control.allow.origin`).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._origins = origin_patterns(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope) if scope["type"] == "http" else None
        await (error_response(*problem) if problem else self._app)(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if self._hosts and _name(host) not in self._hosts:
            return 400, f"This worker is not called by this Host. Its operator lists the names in the worker's property {ALLOWED_HOSTS}."
        if origin is None or scope["method"] in _READING or _authority(origin) == host or allowed_origin(origin, self._origins):
            return None
        return 403, (
            "A page of another origin may not change anything here. The worker's operator allows origins in the worker's property "
            "access.control.allow.origin."
        )


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
