"""/openapi.json: when it is made, what FastAPI cannot see in a signature (which refusals there are), and the page /docs, drawn from it.

The page is a list that the browser draws; it loads nothing from elsewhere, and may not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, Response

from rest_api.models import Error

DESCRIPTION = (
    'Kafka Connect\'s REST API. Every refusal is {"error_code": status, "message": text}. Names in paths are percent-encoded. An '
    "answer 409 means that the same request may succeed a moment later, unless it says that a connector exists."
)

#: What each status of a refusal means.
_ERRORS: dict[int, str] = {
    400: "The request is wrong, or the configuration is",
    401: "No user, or a wrong password",
    403: "Switched off in the worker's properties, or a page of another origin asks for a change",
    404: "There is no such thing",
    406: "The client takes no JSON",
    408: "The body did not come",
    409: "It exists, or the worker is between two states",
    413: "The body is too long",
    414: "The address is too long",
    415: "The body is no JSON",
    429: "Too many logins from this address have failed",
    431: "The headers are too long",
    500: "The worker failed, or took too long",
    503: "No task runs that could take it; try again",
}

#: Refusals of resources that take a body.
BODY = (408, 413, 415)

Responses = dict[int | str, dict[str, Any]]

#: For `responses` of a route that may create a connector.
LOCATION = {"headers": {"Location": {"schema": {"type": "string"}, "description": "The connector's address"}}}


def refusals(*statuses: int) -> Responses:
    """Return refusals for `responses` of a route, in addition to those of every resource."""
    return {status: {"model": Error, "description": _ERRORS[status]} for status in statuses}


#: Refusals of every resource. With a default FastAPI does not say that parameters are refused with a 422.
ALWAYS: Responses = {
    **refusals(400, 403, 406, 414, 429, 431, 500),
    401: {"description": _ERRORS[401], "content": {"application/json": {"schema": {"type": "string"}}}},
    "default": {"model": Error, "description": "Any other refusal"},
}


class DescribedRoute(APIRoute):
    """A route that answers as its endpoint does, and whose answers FastAPI only describes: it does so when the document is asked for.

    The descriptions of all routes' answers take 0.25 s of CPU, a quarter of a worker's start.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **{**settings, "response_model": None, "responses": None})
        self.describe = partial(APIRoute, path, endpoint, **settings)


class Application(FastAPI):
    """Says in the document that a password is asked for, where one is; `compat/jaxrs.py` asks before a route is found."""

    def openapi(self) -> dict[str, Any]:
        """Return the document, which is made once."""
        if self.openapi_schema is None:
            routes = [route.describe() if isinstance(route, DescribedRoute) and route.include_in_schema else route for route in self.routes]
            document = get_openapi(title=self.title, version=self.version, description=self.description, routes=routes)
            if self.state.config.auth:
                document["components"]["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
                document["security"] = [{"basic": []}]
            self.openapi_schema = document
        return self.openapi_schema


_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"


@cache
def _page() -> str:
    return files("rest_api").joinpath("docs.html").read_text(encoding="utf-8")


def docs_page() -> Response:
    """Return the page, with a policy that keeps it from loading or calling anything but this worker."""
    return HTMLResponse(_page(), headers={"content-security-policy": _POLICY})
