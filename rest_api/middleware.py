"""Layers around the application: the access log with its request ids and the answer to a defect (`AccessLog`), and which pages and host
names may change something (`Origins`).
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rest_api.listeners import Listener
from rest_api.models import error_response

_log = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:@/+=-]{1,128}")


class AccessLog:
    """Logs every request as one line: client, request, status, milliseconds, id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        status = 0
        started = time.monotonic()

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        except Exception:
            _log.exception("request %s (%s %s) failed by a defect of the worker", request_id, scope["method"], _target(scope))
            if status:
                raise  # the answer has begun; only a closed connection shows the client the failure
            text = f"The worker failed to handle this request by a defect of its own; its log has the details under {request_id}."
            await error_response(500, text)(scope, receive, tagged)
        finally:
            client = scope["client"][0] if scope.get("client") else "-"
            millis = (time.monotonic() - started) * 1000
            _log.info('%s "%s %s" %d %.0f ms %s', client, scope["method"], _target(scope), status, millis, request_id)


def _target(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    text = (raw.partition(b"?")[0] + (b"?" + query if query else b"")).decode("ascii", "replace")
    return re.sub(r"[^\x21-\x7e]", "?", text)


def origin_patterns(origins: Sequence[str]) -> list[re.Pattern[str]]:
    """Origins as the operator writes them, to be matched in full."""
    return [re.compile(re.escape(origin).replace(r"\*", ".*"), re.IGNORECASE) for origin in origins]


def allowed_origin(origin: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Return whether pages of this origin may call."""
    return bool(origin) and any(pattern.fullmatch(origin) for pattern in patterns)


ALLOWED_HOSTS = "rest.allowed.hosts"

#: An address of the loopback interface; a name may begin so, too.
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}")

_READING = ("GET", "HEAD", "OPTIONS")


class Origins:
    """Refuses changes that pages of foreign origins ask for (403), hosts that the operator did not list (400), and on loopback listeners
    hosts that are no names of this machine's loopback interface (421): a page whose name has been made to mean 127.0.0.1 (DNS rebinding)
    would be of the same origin as the worker.

    Args:
        hosts: values of `Host` without their port (`rest.allowed.hosts`); none means any.
        origins: of pages that may call (`access.control.allow.origin`).
        loopback: where the worker listens on the loopback interface only.
        own_host: a name that is no foreign one there (`rest.advertised.host.name`).
    """

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], origins: Sequence[str], loopback: Sequence[Listener] = (), own_host: str | None = None
    ) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._origins = origin_patterns(origins)
        self._loopback_ports = {listener.port for listener in loopback}
        self._loopback_names = {"localhost", "[::1]", *(_host_of(listener.host) for listener in loopback)}
        if own_host:
            self._loopback_names.add(_host_of(own_host))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope) if scope["type"] == "http" else None
        await (error_response(*problem) if problem else self._app)(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if self._hosts and _name(host) not in self._hosts:
            return 400, f"This worker is not called by this Host. Its operator lists the names in the worker's property {ALLOWED_HOSTS}."
        if not self._hosts and self._is_foreign(scope, _name(host)):
            return 421, (
                "This worker listens on this machine's loopback interface and is not called by this Host. Call it by localhost, or list "
                f"the name in the worker's property {ALLOWED_HOSTS}."
            )
        if scope["method"] in _READING or allowed_origin(origin or "", self._origins):
            return None
        is_foreign = origin is not None and _authority(origin) != host
        if not is_foreign and headers.get("sec-fetch-site", "").lower() != "cross-site":
            return None
        return 403, (
            "A page of another origin may not change anything here. The worker's operator allows origins in the worker's property "
            "access.control.allow.origin."
        )

    def _is_foreign(self, scope: Scope, name: str) -> bool:
        """Return whether a request to a loopback listener names another host; HTTP/1.0 may name none."""
        if not name or not self._loopback_ports or name in self._loopback_names or _LOOPBACK.fullmatch(name):
            return False
        port = (scope.get("server") or ("", None))[1]
        return port in self._loopback_ports or 0 in self._loopback_ports


def loopback_of(listeners: Sequence[Listener]) -> list[Listener]:
    """Return the listeners on the loopback interface; none where one of the others shares an unknown port with them."""
    found = [listener for listener in listeners if is_loopback(listener.host)]
    return found if len(found) == len(listeners) or all(listener.port for listener in found) else []


def is_loopback(host: str) -> bool:
    """Return whether a listener's host is an address or the name of the loopback interface."""
    name = host.strip("[]").lower()
    return name in ("localhost", "::1") or _LOOPBACK.fullmatch(name) is not None


def _host_of(host: str) -> str:
    """Return a host as a Host header has it."""
    return f"[{host.lower()}]" if ":" in host and not host.startswith("[") else host.lower()


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """Return a host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
