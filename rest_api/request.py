"""What a request brings: its body, and the parts of its path and query string by JAX-RS's rules.

Bodies are JSON, read whole and checked here, so that a client's mistake is a 400 with a sentence. The reference answers the same mistakes
with a 500 and the text of its JSON library. The functions for parameters are coroutines because others would wait for a thread.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request
from starlette.requests import ClientDisconnect

from connect_py.errors import BadRequestError, NotFoundError, RestError

#: Jetty's idle timeout: a client that has sent nothing of its body for so long is not waited for.
_IDLE_SECONDS = 30.0
#: Deeper than any body of Connect's, and far less than what would exhaust the parser.
_MAX_DEPTH = 100


async def _read(request: Request) -> bytes:
    return await read_body(request, request.app.state.config.max_body_bytes)


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body, of at most `limit` bytes. Raises RestError."""
    body = bytearray()
    chunks = request.stream().__aiter__()
    try:
        while True:
            async with asyncio.timeout(_IDLE_SECONDS):
                body += await anext(chunks)
            if len(body) > limit:
                raise RestError(f"The request's body is longer than {limit} bytes, the most that this worker takes.", 413)
    except StopAsyncIteration:
        pass
    except TimeoutError:
        raise RestError(f"The request's body did not come: nothing of it for {_IDLE_SECONDS:.0f} s.", 408) from None
    except ClientDisconnect:
        raise BadRequestError("The client went away before its request was complete.") from None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and (kind or body):  # none, or a range such as */*: the resource was found, its body cannot be read
        raise RestError("HTTP 415 Unsupported Media Type", 415)
    return bytes(body)


RawBody = Annotated[bytes, Depends(_read)]


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _parse(body: bytes, *, numbers_as_text: bool) -> Any:
    """Parse JSON. Raises BadRequestError. Numbers as text keep their digits: `1.50` stays "1.50", as the reference's String maps do."""
    if not body.strip():
        raise BadRequestError("The request has no body; JSON is needed.")
    try:
        text = body.decode("utf-8-sig")
        if numbers_as_text:
            parsed = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
        else:
            parsed = json.loads(text, parse_constant=_no_constant)
        if "\\u" in text:
            json.dumps(parsed, ensure_ascii=False).encode()  # half a surrogate pair has no UTF-8 form and could not be stored
        too_deep = _depth(parsed) > _MAX_DEPTH
    except RecursionError:
        too_deep = True
    except json.JSONDecodeError as error:
        raise BadRequestError(f"The request's body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except ValueError as error:
        raise BadRequestError(f"The request's body is not JSON in UTF-8: {error}.") from None
    if too_deep:
        raise BadRequestError(f"The request's body is nested more than {_MAX_DEPTH} levels deep.")
    return parsed


def _depth(value: Any) -> int:
    """Return how many arrays and objects lie in one another, counted no further than the limit."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= _MAX_DEPTH:
        level = [item for each in level if isinstance(each, list | dict) for item in (each.values() if isinstance(each, dict) else each)]
        depth += 1
    return depth


def _described(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text or number"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return "a number"


def parse(body: bytes) -> Any:
    """Any JSON, numbers as text. Raises BadRequestError."""
    return _parse(body, numbers_as_text=True)


def parse_object(body: bytes, known: tuple[str, ...], *, numbers_as_text: bool = True) -> Mapping[str, Any]:
    """Parse a JSON object with no other fields than the known ones. Raises BadRequestError."""
    parsed = _parse(body, numbers_as_text=numbers_as_text)
    if not isinstance(parsed, dict):
        raise BadRequestError(f"The request's body must be a JSON object; it is {_described(parsed)}.")
    for name in parsed:
        if name not in known:
            raise BadRequestError(f'Unrecognized field "{name}"; known fields are: {", ".join(known)}.')
    return parsed


def config_map(value: Any, what: str) -> dict[str, str | None]:
    """Check a flat configuration: texts and nulls; numbers and booleans become their text. Raises BadRequestError."""
    if not isinstance(value, dict):
        raise BadRequestError(f"{what} must be a JSON object of property names and values; it is {_described(value)}.")
    return {name: _config_value(name, item, what) for name, item in value.items()}


def _config_value(name: str, value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    raise BadRequestError(f'{what} holds {_described(value)} under "{name}"; a property\'s value is a text, a number or a boolean.')


def parse_config(body: bytes) -> dict[str, str | None]:
    """Parse a body that is a configuration. Raises BadRequestError."""
    return config_map(_parse(body, numbers_as_text=True), "The request's body")


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
    """Return what Java's `Boolean.valueOf` does."""
    return text.lower() == "true"


def first(request: Request, name: str, default: str) -> str:
    """Return the first value of a query parameter: JAX-RS takes it when a parameter comes twice, FastAPI the last one."""
    return next(iter(request.query_params.getlist(name)), default)


def java_trim(text: str) -> str:
    """Strip as Java's `String.trim`, which removes control characters and blanks, and no other white space."""
    return text.strip(_TRIMMED)
