"""Bodies of requests: JSON, read whole, checked here, so that a client's mistake is a 400 with a sentence.

The reference answers the same mistakes with a 500 and the text of its JSON library (docs/design.md, decision 6).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from connect_py.errors import BadRequestError, RestError


async def _read(request: Request) -> bytes:
    limit: int = request.app.state.config.max_body_bytes
    chunks: AsyncIterator[bytes] = request.stream()
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise RestError(f"The request's body is longer than {limit} bytes, the most that this worker takes.", 413)
    return bytes(body)


RawBody = Annotated[bytes, Depends(_read)]


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _parse(body: bytes, *, numbers_as_text: bool) -> Any:
    """Raises BadRequestError. Numbers as text keep their digits: `1.50` stays "1.50", as the reference's String maps do."""
    if not body.strip():
        raise BadRequestError("The request has no body; JSON is needed.")
    try:
        text = body.decode()
        if numbers_as_text:
            parsed = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
        else:
            parsed = json.loads(text, parse_constant=_no_constant)
        if "\\u" in text:
            json.dumps(parsed, ensure_ascii=False).encode()  # half a surrogate pair has no UTF-8 form and could not be stored
    except RecursionError:
        raise BadRequestError("The request's body is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise BadRequestError(f"The request's body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except ValueError as error:
        raise BadRequestError(f"The request's body is not JSON in UTF-8: {error}.") from None
    return parsed


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


def parse_object(body: bytes, known: tuple[str, ...], *, numbers_as_text: bool = True) -> Mapping[str, Any]:
    """A JSON object with no other fields than the known ones. Raises BadRequestError."""
    parsed = _parse(body, numbers_as_text=numbers_as_text)
    if not isinstance(parsed, dict):
        raise BadRequestError(f"The request's body must be a JSON object; it is {_described(parsed)}.")
    for name in parsed:
        if name not in known:
            raise BadRequestError(f'Unrecognized field "{name}"; known fields are: {", ".join(known)}.')
    return parsed


def config_map(value: Any, what: str) -> dict[str, str | None]:
    """A flat configuration: texts and nulls; numbers and booleans become their text. Raises BadRequestError."""
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
    """A body that is a configuration. Raises BadRequestError."""
    return config_map(_parse(body, numbers_as_text=True), "The request's body")
