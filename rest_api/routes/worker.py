"""The worker itself: `/` and `/health` (`RootResource.java`), levels of loggers (KIP-495, KIP-976; `LoggingResource.java`), and what
Prometheus scrapes, which a Java worker offers by JMX and an exporter.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from starlette.responses import PlainTextResponse, Response

from connect_py.errors import BadRequestError, NotFoundError, RestError
from connect_py.herder.base import Health, Herder, ServerInfo
from connect_py.log.levels import LEVELS, LoggerLevel
from connect_py.metrics.exposition import Names, render
from rest_api.bodies import SetLevel
from rest_api.compat.jaxrs import prefers_html, trim
from rest_api.config import RestConfig
from rest_api.models import json_response
from rest_api.openapi import BODY, refusals
from rest_api.request import ConnectRoute, Logger
from rest_api.waiting import probe_threads

_HEALTH_STATUS = {"healthy": 200, "starting": 503}


def root_routes(herder: Herder, *, has_page: bool) -> APIRouter:
    """Return the route of `/`. With a page, it leads browsers there."""
    router = APIRouter(tags=["worker"], route_class=ConnectRoute)

    @router.get("/", summary="The worker's version and its Kafka cluster", response_model=ServerInfo)
    def root(request: Request) -> Response:
        if has_page and prefers_html(request.headers.getlist("accept")):
            return Response(status_code=302, headers={"location": "ui/", "vary": "Accept"})
        return json_response(herder.server_info())

    return router


def health_routes(herder: Herder) -> APIRouter:
    """Return the route of `/health`."""
    router = APIRouter(tags=["worker"], route_class=ConnectRoute)

    @router.get(
        "/health",
        summary="Whether the worker can handle requests (KIP-1017): 200, 503 while it starts, 500 when it is stuck",
        response_model=Health,
        responses={status: {"model": Health, "description": why} for status, why in ((500, "It is stuck"), (503, "It is starting"))},
    )
    @probe_threads()
    def health() -> Response:
        found = herder.health()
        return json_response(found, _HEALTH_STATUS.get(found.status, 500))

    return router


def logger_routes(herder: Herder, config: RestConfig) -> APIRouter:
    """Return the routes of `/admin/loggers`."""
    router = APIRouter(tags=["admin"], route_class=ConnectRoute)

    @router.get("/admin/loggers", summary="Loggers with a level of their own, and root")
    def loggers() -> dict[str, LoggerLevel]:
        return config.loggers.all()

    @router.get("/admin/loggers/{logger}", summary="A logger's level", responses=refusals(404))
    def level(logger: Logger) -> LoggerLevel:
        found = config.loggers.level(logger)
        if found is None:
            raise NotFoundError(f"Logger {logger} not found.")
        return found

    @router.put(
        "/admin/loggers/{logger}",
        summary="Set a level here, or with `scope=cluster` on every worker",
        response_model=list[str],
        responses={204: {"description": "Done"}, **refusals(*BODY, 404)},
    )
    def set_level(logger: Logger, wanted: SetLevel, scope: Annotated[str, Query()] = "worker") -> Response | list[str]:
        given = wanted.get("level")
        if given is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        level = trim(given).upper()
        if not level:
            raise RestError("Illegal null or empty Level name.", 500)
        if level not in LEVELS:
            raise NotFoundError(f"invalid log level '{given}'.")
        if scope.lower() == "cluster":
            herder.put_logger_level(logger, level)
            return Response(status_code=204)
        return config.loggers.set_level(logger, level)

    return router


_PROCESS = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)


def metrics_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/metrics`."""
    router = APIRouter(tags=["metrics"], route_class=ConnectRoute)

    @router.get(
        "/metrics",
        summary="Figures of this worker, its connectors and tasks, in Prometheus' text format",
        response_class=PlainTextResponse,
    )
    @probe_threads()
    def metrics(accept: Annotated[str, Header()] = "", names: Annotated[str, Query()] = Names.KAFKA.value) -> Response:
        try:
            style = Names(names)
        except ValueError:
            raise BadRequestError(f"There are no names called {names}: use {' or '.join(each.value for each in Names)}.") from None
        body, content_type = render(herder.metrics(), accept, style, _PROCESS)
        return Response(body, media_type=content_type)

    return router
