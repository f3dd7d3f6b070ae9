"""The application: every resource over one herder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from connect_py.runtime.herder.base import Herder
from rest_api import routes
from rest_api.access import AccessLog
from rest_api.config import RestConfig
from rest_api.docs_page import PAGE
from rest_api.errors import CONNECT_ERRORS, container_error, error_response, on_connect_error
from rest_api.jaxrs import JaxRs
from rest_api.openapi import ERRORS
from rest_api.response_headers import ResponseHeaders

#: A request may wait 90 s for its herder. Two hundred clients can wait at the same time (Jetty's default pool has as many threads) and
#: the next ones queue; threads are made only when they are needed.
WAITING_REQUESTS = 200


def create_app(herder: Herder, config: RestConfig | None = None) -> FastAPI:
    """Connect's REST API.

    Args:
        herder: answers; its methods are called from a pool of threads and may block.
        config: settings; the defaults are Connect's.
    """
    config = config or RestConfig()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = WAITING_REQUESTS
        yield

    app = FastAPI(
        title="Kafka Connect REST API",
        version="4.3.1",
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        default_response_class=Response,
        responses=ERRORS,
        lifespan=lifespan,
    )
    app.state.config = config
    routers = routes.all_of(herder, config)
    for router in routers:
        app.include_router(router)
    app.add_api_route("/docs", lambda: HTMLResponse(PAGE), include_in_schema=False)
    app.add_exception_handler(CONNECT_ERRORS, on_connect_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_middleware(JaxRs, routes=[route for owner in (app.router, *routers) for route in owner.routes])
    if config.cors_origins:
        app.add_middleware(CORSMiddleware, allow_origins=config.cors_origins, allow_methods=config.cors_methods, allow_headers=("*",))
    if config.header_rules:
        app.add_middleware(ResponseHeaders, rules=config.header_rules)
    app.add_middleware(AccessLog)
    return app


def _on_invalid(request: Request, error: Exception) -> Response:
    return error_response(400, "The request's parameters are not what this resource takes.")


def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return container_error(error.status_code)
