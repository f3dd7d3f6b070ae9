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
    """Return a host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
