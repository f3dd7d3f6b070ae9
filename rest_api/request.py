"""What a request brings: the parts of its path and query string, and its body as JSON.

`ConnectRoute` is the route of every resource. It reads a body whole and within limits, before FastAPI checks it by the model in the
signature (`bodies.py`): a client's mistake is a 400 with a sentence. The reference answers the same mistakes with a 500 and the text of its
JSON library. It runs on a thread what may block, and writes there what it answers, which FastAPI only describes (`models.py`).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import unquote

import anyio.to_thread
from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from connect_py.errors import BadRequestError, RestError
from rest_api.compat.jaxrs import FirstValues, boolean_of, integer_of
from rest_api.models import json_response
from rest_api.openapi import ALWAYS, DescribedRoute

#: Deeper than any body of Connect's, and far less than what would exhaust the parser.
_MAX_DEPTH = 100
#: A longer body is parsed on a thread, so that other requests get their answers meanwhile.
_SHORT_BYTES = 64 * 1024
NO_BODY = "The request has no body; JSON is needed."

Connector = Annotated[str, Path(description="The connector's name, percent-encoded"), AfterValidator(unquote)]
Task = Annotated[int, Path(description="The task's number, from 0"), BeforeValidator(integer_of)]
Plugin = Annotated[str, Path(description="A plugin's class name or alias"), AfterValidator(unquote)]
Logger = Annotated[str, Path(description="A logger's name"), AfterValidator(unquote)]
Flag = Annotated[bool, Query(description="`true` or anything else for false"), BeforeValidator(boolean_of)]


class ConnectRequest(Request):
    """A request whose body, if its resource takes one, was read and parsed by `ConnectRoute`.

    Attributes:
        sent: the body's bytes.
    """

    sent = b""
    _parsed: Any = None

    @functools.cached_property
    def query_params(self) -> FirstValues:
        """The query's parameters by JAX-RS's rule."""
        return FirstValues(self.scope["query_string"])

    async def body(self) -> bytes:
        """Return what was sent; nothing for blanks."""
        return self.sent.strip() and self.sent

    async def json(self) -> Any:
        """Return what was parsed."""
        return self._parsed

    async def take(self, *, required: bool, numbers_as_text: bool) -> None:
        """Read and parse the body. Raises RestError."""
        self.sent = await read_body(self, self.app.state.config.max_body_bytes, self.app.state.config.body_seconds)
        if self.sent.strip():
            read = functools.partial(parse, self.sent, numbers_as_text=numbers_as_text)
            self._parsed = read() if len(self.sent) <= _SHORT_BYTES else await anyio.to_thread.run_sync(read)
        elif required:
            raise BadRequestError(NO_BODY)


class ConnectRoute(DescribedRoute):
    """A resource with one method. A body's numbers become text, with their digits as they were sent: configurations are made of texts."""

    numbers_as_text = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        if inspect.signature(endpoint, eval_str=True).return_annotation is None:
            settings["response_class"] = Response  # neither a body nor a content type
        settings["responses"] = {**ALWAYS, **(settings.get("responses") or {})}
        super().__init__(path, _answering(endpoint, settings.get("status_code") or 200), **settings)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle, body = super().get_route_handler(), self.body_field

        async def answer(request: Request) -> Response:
            taken = ConnectRequest(request.scope, request.receive)
            if body is not None:
                await taken.take(required=body.field_info.is_required(), numbers_as_text=self.numbers_as_text)
            return await handle(taken)

        return answer


class NumbersRoute(ConnectRoute):
    """A resource whose body's numbers are numbers."""

    numbers_as_text = False


def _answering(endpoint: Callable[..., Any], status: int) -> Callable[..., Coroutine[Any, Any, Response]]:
    """Return an endpoint that runs on a thread, if it is no coroutine, and writes its answer."""

    is_coroutine = inspect.iscoroutinefunction(endpoint)

    def written(found: Any) -> Response:
        if isinstance(found, Response):
            return found
        return Response(status_code=status) if found is None else json_response(found, status)

    @functools.wraps(endpoint)
    async def run(**arguments: Any) -> Response:
        if is_coroutine:
            return written(await endpoint(**arguments))
        return await anyio.to_thread.run_sync(lambda: written(endpoint(**arguments)))

    return run


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """Read the body, of at most `limit` bytes, of which something comes at least every `seconds`. Raises RestError."""
    body = bytearray()
    chunks = request.stream().__aiter__()
    try:
        while True:
            async with asyncio.timeout(seconds):
                body += await anext(chunks)
            if len(body) > limit:
                raise RestError(f"The request's body is longer than {limit} bytes, the most that this worker takes.", 413)
    except StopAsyncIteration:
        pass
    except TimeoutError:
        raise RestError(f"The request's body did not come: nothing of it for {seconds:.0f} s.", 408) from None
    except ClientDisconnect:
        raise BadRequestError("The client went away before its request was complete.") from None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and (kind or body):  # none, or a range such as */*: the resource was found, its body cannot be read
        raise RestError("HTTP 415 Unsupported Media Type", 415)
    return bytes(body)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def parse(body: bytes, *, numbers_as_text: bool = True) -> Any:
    """Parse JSON. Raises BadRequestError. Numbers as text keep their digits: `1.50` stays "1.50", as the reference's String maps do."""
    if not body.strip():
        raise BadRequestError(NO_BODY)
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
