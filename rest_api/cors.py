"""Pages of other origins (`access.control.allow.origin`, `access.control.allow.methods`; Jetty's CrossOriginHandler).

The answer to a preflight is that of the resource (OPTIONS, with the list of methods), with the headers that browsers look for added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: How long a browser may remember the answer to a preflight: Jetty's default.
_MAX_AGE_SECONDS = 60


class Cors:
    """Adds the headers.

    Args:
        origins: such as ``https://ui.example``; ``*`` is every origin, and within a host any part of it. Jetty takes regular expressions,
            in which the dot of a host name stands for any character: here it is a dot.
        methods: what those pages may do.
        headers: headers that those pages may send.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str], methods: Sequence[str], headers: Sequence[str]) -> None:
        self._app = app
        self._origins = origin_patterns(origins)
        self._methods = ",".join(methods)
        self._headers = ",".join(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        allowed = allowed_origin(origin, self._origins)
        preflight = allowed and is_preflight(scope["method"], headers)
        if preflight:
            scope["preflight"] = True

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                sent.add_vary_header("Origin")
                if allowed:
                    sent["access-control-allow-origin"] = origin
                if preflight:
                    sent["access-control-allow-methods"] = self._methods
                    sent["access-control-allow-headers"] = self._headers
                    sent["access-control-max-age"] = str(_MAX_AGE_SECONDS)
            await send(message)

        await self._app(scope, receive, with_headers)


def origin_patterns(origins: Sequence[str]) -> list[re.Pattern[str]]:
    """Origins as the operator writes them, to be matched in full."""
    return [re.compile(re.escape(origin).replace(r"\*", ".*"), re.IGNORECASE) for origin in origins]


def allowed_origin(origin: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Whether pages of this origin may call."""
    return bool(origin) and any(pattern.fullmatch(origin) for pattern in patterns)


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks if it may ask."""
    return method == "OPTIONS" and "access-control-request-method" in headers
