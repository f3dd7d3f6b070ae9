"""Parts of paths and query strings, by JAX-RS's rules. These functions are coroutines because others would wait for a thread."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request

from connect_py.errors import NotFoundError

_INT = range(-(2**31), 2**31)
_TRIMMED = "".join(map(chr, range(0x21)))


def _decode(text: str) -> str:
    return unquote(text)  # the path is matched in its encoded form, so that a name may hold a slash


async def _connector(connector: Annotated[str, Path(description="The connector's name, percent-encoded")]) -> str:
    return _decode(connector)


async def _task(task: Annotated[str, Path(description="The task's number, from 0")]) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", task) or int(task) not in _INT:
        raise NotFoundError("HTTP 404 Not Found")
    return int(task)


async def _plugin(plugin: Annotated[str, Path(description="A plugin's class name or alias")]) -> str:
    return _decode(plugin)


async def _logger(logger: Annotated[str, Path(description="A logger's name")]) -> str:
    return _decode(logger)


Connector = Annotated[str, Depends(_connector)]
Task = Annotated[int, Depends(_task)]
Plugin = Annotated[str, Depends(_plugin)]
Logger = Annotated[str, Depends(_logger)]
#: `Boolean.valueOf`: only `true`, in any case, is true; see `is_true`.
Flag = Annotated[str, Query(description="`true` or anything else for false")]


def is_true(text: str) -> bool:
    """`Boolean.valueOf`."""
    return text.lower() == "true"


def first(request: Request, name: str, default: str) -> str:
    """The first value of a query parameter: JAX-RS takes it when a parameter comes twice, FastAPI the last one."""
    return next(iter(request.query_params.getlist(name)), default)


def java_trim(text: str) -> str:
    """`String.trim`: takes away control characters and blanks, and no other white space."""
    return text.strip(_TRIMMED)
