"""Headers that the worker's owner wants on every answer: `response.http.headers.config`.

It holds rules `[set|add|setDate|addDate] Name:value`, separated by commas; a rule that itself has a comma is put in double quotes
(`RestServerConfig.java`, Jetty's HeaderFilter). A date is the given number of milliseconds after the answer.
"""

from __future__ import annotations

import csv
import re
import time
from dataclasses import dataclass
from email.utils import formatdate

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_py.errors import ConfigError

_ACTIONS = ("set", "add", "setDate", "addDate")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


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
    """The rules of `response.http.headers.config`.

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
    if not colon or not _NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
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
