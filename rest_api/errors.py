"""Refusals as answers: `{"error_code": status, "message": text}` for every one (`ErrorMessage.java`, `ConnectExceptionMapper.java`).

Two kinds differ by a header only: what the reference's container refuses before a resource runs (404, 405, 406, 413, 415) carries no
content type; what a resource refuses is `application/json`.
"""

from __future__ import annotations

import http

import orjson
from starlette.requests import Request
from starlette.responses import Response

from connect_py.errors import ConfigError, ConnectError, RestError
from connect_py.log.redact import bounded, scrub
from rest_api.models import json_response

#: What a request gets that waits while the worker ends.
ENDING = "The worker is shutting down. What was asked for may have been done or not; ask again when a worker answers."


def error_response(status: int, message: str) -> Response:
    """The answer of a resource that refuses."""
    return json_response({"error_code": status, "message": message}, status)


def container_error(status: int, message: str | None = None) -> Response:
    """The answer of the container before any resource: no content type, and `HTTP 404 Not Found` where nothing better is known."""
    text = message or f"HTTP {status} {http.HTTPStatus(status).phrase}"
    return Response(orjson.dumps({"error_code": status, "message": text}), status)


def on_connect_error(request: Request, error: Exception) -> Response:
    """An error that this project raised on purpose: RestError knows its status, an invalid configuration is 400, the rest 500."""
    status = error.status if isinstance(error, RestError) else 400 if isinstance(error, ConfigError) else 500
    return error_response(status, bounded(scrub(str(error))))


CONNECT_ERRORS: type[Exception] = ConnectError
