"""The application: every resource over one herder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources.abc import Traversable

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from connect_py.herder.base import Herder, MisdirectedError
from rest_api.compat.headers import Cors, ResponseHeaders
from rest_api.compat.jaxrs import JaxRs
from rest_api.config import RestConfig
from rest_api.forwarding import Sent, on_misdirected
from rest_api.middleware import AccessLog, Origins, loopback_of
from rest_api.models import CONNECT_ERRORS, container_error, error_response, on_connect_error
from rest_api.openapi import DESCRIPTION, Application, docs_page
from rest_api.routes import all_routes
from rest_api.routes.page import SITE
from rest_api.routes.worker import health_routes, logger_routes, metrics_routes
from rest_api.waiting import Deadline


def create_app(herder: Herder, config: RestConfig | None = None, site: Traversable = SITE) -> FastAPI:
    """Return the application with Connect's REST API.

    Args:
        herder: answers; its methods are called from a pool of threads and may block.
        config: settings; the defaults are Connect's.
        site: the built documentation, which /ui/docs/ serves.
    """
    config = config or RestConfig()
    routers = all_routes(herder, config, site)
    app = _application(herder, config, routers, pages=True)
    app.add_middleware(JaxRs, routes=[route for owner in (app.router, *routers) for route in owner.routes], auth=config.auth)
    loopback = loopback_of(config.listeners)
    app.add_middleware(Origins, hosts=config.allowed_hosts, origins=config.cors_origins, loopback=loopback, own_host=config.own_host)
    if config.cors_origins:
        headers = ("Content-Type", "Authorization") if config.auth else ("Content-Type",)
        app.add_middleware(Cors, origins=config.cors_origins, methods=config.cors_methods, headers=headers)
    if config.header_rules:
        app.add_middleware(ResponseHeaders, rules=config.header_rules)
    app.add_middleware(AccessLog)
    return app


def create_admin_app(herder: Herder, config: RestConfig) -> FastAPI:
    """Return the application that admin listeners serve: `/admin` and nothing else, without authentication and additional headers, as the
    reference does."""
    routers = [logger_routes(herder, config)]
    app = _application(herder, config, routers, pages=False)
    app.add_middleware(JaxRs, routes=[route for owner in routers for route in owner.routes])
    app.add_middleware(Origins, hosts=config.allowed_hosts, origins=config.cors_origins)
    app.add_middleware(AccessLog)
    return app


def create_metrics_app(herder: Herder, config: RestConfig) -> FastAPI:
    """Return the application that metrics listeners serve: `/metrics` and nothing else, without authentication."""
    routers = [metrics_routes(herder)]
    app = _application(herder, config, routers, pages=False)
    app.add_middleware(JaxRs, routes=[route for owner in routers for route in owner.routes])
    app.add_middleware(AccessLog)
    return app


def create_health_app(herder: Herder, config: RestConfig) -> FastAPI:
    """Return the application that health listeners serve: `/health` and nothing else, without authentication. Probes ask every few seconds,
    so their requests are not logged."""
    routers = [health_routes(herder)]
    app = _application(herder, config, routers, pages=False)
    app.add_middleware(JaxRs, routes=[route for owner in routers for route in owner.routes])
    return app


def _application(herder: Herder, config: RestConfig, routers: Sequence[APIRouter], *, pages: bool) -> FastAPI:
    app = Application(
        title="Kafka Connect REST API",
        description=DESCRIPTION,
        version="4.3.1",
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.config = config
    for router in routers:
        # FastAPI would look a resource up twice in each included router that comes before its own
        app.router.routes.extend(router.routes)
    if pages:
        # no coroutine, so that a thread makes the document
        app.add_route("/openapi.json", lambda request: JSONResponse(app.openapi()), include_in_schema=False)
        app.add_api_route("/docs", docs_page, include_in_schema=False)
    app.add_exception_handler(CONNECT_ERRORS, on_connect_error)
    app.add_exception_handler(MisdirectedError, on_misdirected(herder, config.peers, config.conflict_wait_seconds))
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_middleware(Sent)
    app.add_middleware(Deadline, seconds=config.request_seconds)
    return app


def _on_invalid(request: Request, error: Exception) -> Response:
    return error_response(400, "The request's parameters are not what this resource takes.")


def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return container_error(error.status_code)
