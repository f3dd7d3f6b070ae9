"""What the reference's container (Jetty) and JAX-RS runtime do before a resource is called, and how they read parameters.

`JaxRs` decides before a resource is called, in this order: a head that is too long (414, 431), a path that cannot be read (400), an unknown
path (404), a wrong method (405), a body that is no JSON (415), an answer that the client would not accept (406), a client that may not call
(401). OPTIONS is answered here, HEAD is served from GET. Paths are passed on in their encoded form, without a trailing slash and without
matrix parameters, so that a connector's name may hold anything, a slash too; `rest_api.request` decodes it.

Parameters follow Java's types: `boolean_of` is `Boolean.valueOf`, `integer_of` is `Integer.valueOf`, `trim` is `String.trim`, and a query
parameter that comes twice counts as it came first (`FirstValues`).
"""

from __future__ import annotations

import http
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_py.errors import NotFoundError
from rest_api.basic_auth import BasicAuth, Logins, is_internal
from rest_api.models import container_error, error_response

#: The order in which the reference lists methods (that of a Java hash set).
_METHODS = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH")
#: Paths that are this project's own and no JSON.
_PAGES = ("/docs", "/metrics", "/ui")
#: The maximum size that Jetty accepts for a request's line and headers.
_MAX_HEAD_BYTES = 8192
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_WEIGHT = re.compile(r";\s*q\s*=(?!\s*[01](\.\d*)?\s*($|[,;]))", re.IGNORECASE)
#: A connector's name may hold a slash, a backslash and a percent sign, which Jetty accepts from no client: what has been created can be
#: stopped.
_CONNECTOR_NAME = re.compile(r"(?:(?<=^/connectors/)|(?<=^/ui/api/connectors/))[^/;]+")
_OF_NAMES = re.compile(r"%2f|%5c|%25", re.IGNORECASE)
#: What Jetty refuses as ambiguous or suspicious.
_AMBIGUOUS = re.compile(r"%2f|%5c|%25|/(?:%2e|\.)*%2e(?:%2e|\.)*(?=[/;]|$)|/\.\.?;", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: RFC 7617; the reference sends none, so that browsers do not ask.
_CHALLENGE = 'Basic realm="Kafka Connect", charset="UTF-8"'


class JaxRs:
    """The layer in front of the application.

    Args:
        app: what answers when nothing speaks against it.
        routes: the application's routes.
        auth: who may call; None means everybody.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute], auth: BasicAuth | None = None) -> None:
        self._app = app
        self._logins = None if auth is None else Logins(auth)
        found: dict[str, tuple[re.Pattern[str], set[str]]] = {}
        for route in routes:
            if isinstance(route, Route):
                found.setdefault(route.path, (route.path_regex, set()))[1].update(route.methods or ())
        self._resources = list(found.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = await self._decide(scope)
        if scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        await (answer or self._app)(scope, receive, send)

    async def _decide(self, scope: Scope) -> Response | None:
        """Return an answer, or None when the application must answer; `scope` then has the path to match."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        if _two_lengths(scope):
            text = "The request has both Transfer-Encoding and Content-Length, which proxies read in different ways."
            answer = error_response(400, text)
            answer.headers["connection"] = "close"
            return answer
        too_long = _too_long(raw, scope)
        if too_long:
            return error_response(too_long, f"HTTP {too_long} {http.HTTPStatus(too_long).phrase}")
        path = raw.decode("ascii", "replace").partition("?")[0]
        problem = _problem(path)
        if problem:
            return error_response(400, problem)
        path = re.sub(r";[^/]*", "", path)
        path = path[:-1] if path.endswith("/") and path != "/" else path
        methods = self._methods(path)
        if methods is None:
            return container_error(404)
        allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        if scope["method"] not in allowed:
            return container_error(405)
        refusal = None if scope["method"] == "OPTIONS" else _refusal(path, Headers(scope=scope))
        if refusal is not None:
            return refusal
        verdict = await self._login(scope, path)
        if verdict == 429:
            text = "Too many logins from this address have failed. Try again in some seconds."
            answer = error_response(429, text)
            answer.headers["retry-after"] = "2"
            return answer
        if verdict != 200:
            content_type = "text/plain" if scope["method"] == "OPTIONS" else "application/json"
            headers = {"content-type": content_type, "www-authenticate": _CHALLENGE}
            return Response("User cannot access the resource.", 401, headers)
        if scope["method"] == "OPTIONS":
            names = [method for method in _METHODS if method in allowed]
            return Response(", ".join(names), headers={"content-type": "text/plain", "allow": ",".join(names)})
        scope["path"] = path
        return None

    async def _login(self, scope: Scope, path: str) -> int:
        """Browsers send no credentials when they ask if they may ask, and learn no more than the names of methods."""
        if self._logins is None or scope.get("preflight") or is_internal(scope["method"], path):
            return 200
        client = scope["client"][0] if scope.get("client") else ""
        return await self._logins.check(Headers(scope=scope).get("authorization"), client, f"{scope['method']} {path}")

    def _methods(self, path: str) -> set[str] | None:
        for pattern, methods in self._resources:
            if pattern.match(path):
                return methods
        return None


def _two_lengths(scope: Scope) -> bool:
    """Return whether a request gives two lengths (RFC 9112, section 6.3): an attempt at request smuggling, or a mistake."""
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names and b"content-length" in names


def _too_long(raw: bytes, scope: Scope) -> int | None:
    if len(raw) + len(scope.get("query_string", b"")) > _MAX_HEAD_BYTES:
        return 414
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > _MAX_HEAD_BYTES:
        return 431
    return None


def _problem(path: str) -> str | None:
    if _BAD_ESCAPE.search(path):
        return "The path holds a % that does not begin an escape of two hexadecimal digits."
    if "//" in path:
        return "The path holds an empty segment."
    if _AMBIGUOUS.search(_CONNECTOR_NAME.sub(lambda found: _OF_NAMES.sub("", found[0]) or "-", path)):
        return "The path holds an escape (of /, \\, % or a dot) by which it could mean another one."
    try:
        text = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return "The path's escapes are not UTF-8."
    return "The path holds a control character." if _CONTROL.search(text) else None


def _refusal(path: str, headers: Headers) -> Response | None:
    """Return the refusal of what the client sends or wants, when the resource does not have it."""
    content_type = headers.get("content-type")
    kind = "" if content_type is None else content_type.partition(";")[0].strip().lower()
    if content_type is not None and not re.fullmatch(r"[^\s/]+/[^\s/]+", kind):
        return error_response(400, "The header Content-Type is not a media type.")
    if kind not in ("", "application/json", "application/*", "*/*"):
        return container_error(415)
    accept = headers.getlist("accept")
    if not all(_is_accept(value) for value in accept):
        return error_response(400, "The header Accept is not a list of media types.")
    return None if path in _PAGES or path.startswith("/ui/") or accepts_json(accept) else container_error(406)


def _is_accept(value: str) -> bool:
    """Return whether an Accept header is blank, or holds something between its commas and only weights that are numbers."""
    return (not value.strip() or bool(value.strip(" ,"))) and not _BAD_WEIGHT.search(value)


def prefers_html(values: list[str]) -> bool:
    """Return whether an Accept header names text/html before application/json, as browsers do."""
    ranges = [part.partition(";")[0].strip().lower() for value in values for part in value.split(",")]
    named = [each for each in ranges if each in ("text/html", "application/json")]
    return bool(named) and named[0] == "text/html"


def accepts_json(values: list[str]) -> bool:
    """Return whether an Accept header allows application/json. No header, or an empty one, allows all."""
    ranges = [part.partition(";")[0].strip().lower() for value in values for part in value.split(",")]
    ranges = [each for each in ranges if each]
    return not ranges or any(each in ("*/*", "*", "application/*", "application/json") for each in ranges)


def _without_body(send: Send) -> Send:
    async def headers_only(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return headers_only


class FirstValues(QueryParams):
    """The query's parameters. JAX-RS takes the first value of a parameter that comes twice, Starlette the last one."""

    def __init__(self, query: bytes) -> None:
        super().__init__(query)
        self._dict = dict(reversed(self._list))


_INT = range(-(2**31), 2**31)
_TRIMMED = "".join(map(chr, range(0x21)))


def boolean_of(text: str) -> bool:
    """Return what Java's `Boolean.valueOf` does: only `true`, in any case, is true."""
    return text.lower() == "true"


def integer_of(text: str) -> int:
    """Return a number of a path. Raises NotFoundError for what is no `int`, since no resource has such a path."""
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or int(text) not in _INT:
        raise NotFoundError("HTTP 404 Not Found")
    return int(text)


def trim(text: str) -> str:
    """Strip as Java's `String.trim`, which removes control characters and blanks, and no other white space."""
    return text.strip(_TRIMMED)
