"""Headers that the reference puts on answers: those of the worker's owner (`ResponseHeaders`), and those by which pages of other origins
may call (`Cors`).

`response.http.headers.config` holds rules `[set|add|setDate|addDate] Name:value`, separated by commas; a rule that itself has a comma is
put in double quotes (`RestServerConfig.java`, Jetty's HeaderFilter). A date is the given number of milliseconds after the answer.

`Cors` answers as Jetty's CrossOriginHandler. Starlette's CORSMiddleware cannot be made to: it answers a preflight itself, with `OK` or
a 400 where the origin is foreign, while here the resource answers (its list of methods, 404, 401) and headers are added; it adds four
safe-listed names to `Access-Control-Allow-Headers`, puts a blank after each comma, and says `*` where Jetty repeats the origin. All of
these would have to be overridden, which is nearly its whole code.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_py.errors import ConfigError
from rest_api.middleware import allowed_origin, origin_patterns

_ACTIONS = ("set", "add", "setDate", "addDate")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True)
class HeaderRule:
    """One header of every answer.

    Attributes:
        replace: whether a header of that name gives way.
        value: its text; None for a date.
        millis: of a date, after the answer.
    """

    name: str
    replace: bool
    value: str | None = None
    millis: int = 0


def parse_rules(text: str) -> tuple[HeaderRule, ...]:
    """Return the rules of `response.http.headers.config`.

    Raises:
        ConfigError: one has another form.
    """
    rows = csv.reader([text], skipinitialspace=True)
    return tuple(_rule(part.strip()) for row in rows for part in row if part.strip())


def _rule(text: str) -> HeaderRule:
    action, _, header = text.partition(" ")
    name, colon, value = (part.strip() for part in header.partition(":"))
    wrong = f"Invalid value {text} for configuration response.http.headers.config: "
    if action not in _ACTIONS:
        raise ConfigError(f"{wrong}a rule begins with one of {', '.join(_ACTIONS)}")
    if not colon or not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
        raise ConfigError(f"{wrong}a rule is an action, a header's name, a colon and a value")
    if not action.endswith("Date"):
        return HeaderRule(name, action == "set", value)
    if not re.fullmatch(r"-?\d+", value):
        raise ConfigError(f"{wrong}a date is a number of milliseconds from now")
    return HeaderRule(name, action == "setDate", None, int(value))


class ResponseHeaders:
    """Puts the headers on every answer."""

    def __init__(self, app: ASGIApp, rules: tuple[HeaderRule, ...]) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for rule in self._rules:
                    text = rule.value if rule.value is not None else formatdate(time.time() + rule.millis / 1000, usegmt=True)
                    if rule.replace:
                        headers[rule.name] = text
                    else:
                        headers.append(rule.name, text)
            await send(message)

        await self._app(scope, receive, with_headers)


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
        preflight = allowed and scope["method"] == "OPTIONS" and "access-control-request-method" in headers
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
