"""What the reference's container and JAX-RS runtime decide before a resource is called.

In this order: a path that cannot be read (400), an unknown path (404), a wrong method (405), a body that is no JSON (415), an answer that
the client would not take (406). OPTIONS is answered here, HEAD is served from GET. Paths go on in their encoded form, without a trailing
slash and without matrix parameters, so that a connector's name may hold anything, a slash too; `params.py` decodes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rest_api.errors import container_error

#: The order in which the reference lists methods (that of a Java hash set).
_METHODS = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH")
#: Paths that are this project's own and no JSON.
_PAGES = ("/docs", "/metrics")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class JaxRs:
    """The layer in front of the application.

    Args:
        app: what answers when nothing speaks against it.
        routes: the application's routes.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        found: dict[str, tuple[re.Pattern[str], set[str]]] = {}
        for route in routes:
            if isinstance(route, Route):
                found.setdefault(route.path, (route.path_regex, set()))[1].update(route.methods or ())
        self._resources = list(found.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._decide(scope)
        if scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        await (answer or self._app)(scope, receive, send)

    def _decide(self, scope: Scope) -> Response | None:
        """An answer, or None when the application shall give it; `scope` then has the path to match."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.decode("ascii", "replace").partition("?")[0]
        problem = _problem(path)
        if problem:
            return container_error(400, problem)
        path = re.sub(r";[^/]*", "", path)
        path = path[:-1] if path.endswith("/") and path != "/" else path
        methods = self._methods(path)
        if methods is None:
            return container_error(404)
        allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        if scope["method"] == "OPTIONS":
            names = [method for method in _METHODS if method in allowed]
            return Response(", ".join(names), headers={"content-type": "text/plain", "allow": ",".join(names)})
        if scope["method"] not in allowed:
            return container_error(405)
        headers = Headers(scope=scope)
        if not _is_json(headers):
            return container_error(415)
        if path not in _PAGES and not accepts_json(headers.getlist("accept")):
            return container_error(406)
        scope["path"] = path
        return None

    def _methods(self, path: str) -> set[str] | None:
        for pattern, methods in self._resources:
            if pattern.match(path):
                return methods
        return None


def _problem(path: str) -> str | None:
    if _BAD_ESCAPE.search(path):
        return "The path holds a % that does not begin an escape of two hexadecimal digits."
    try:
        text = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return "The path's escapes are not UTF-8."
    return "The path holds a null character." if "\0" in text else None


def _is_json(headers: Headers) -> bool:
    """A body needs the type application/json; without a body the type may be missing."""
    content_type = headers.get("content-type")
    if content_type is None:
        return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    return content_type.partition(";")[0].strip().lower() == "application/json"


def accepts_json(values: list[str]) -> bool:
    """Whether an Accept header allows application/json. No header, or an empty one, allows all."""
    ranges = [part.partition(";")[0].strip().lower() for value in values for part in value.split(",")]
    ranges = [each for each in ranges if each]
    return not ranges or any(each in ("*/*", "*", "application/*", "application/json") for each in ranges)


def _without_body(send: Send) -> Send:
    async def headers_only(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return headers_only
