"""The worker itself: `/` and `/health` (`RootResource.java`), levels of loggers (KIP-495, KIP-976; `LoggingResource.java`), and what
Prometheus scrapes, which a Java worker offers by JMX and an exporter.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from starlette.responses import Response

from connect_py.errors import BadRequestError, NotFoundError, RestError
from connect_py.herder.base import Herder
from connect_py.log.levels import LEVELS
from connect_py.metrics.exposition import Names, render
from rest_api.config import RestConfig
from rest_api.models import json_response, logger_level
from rest_api.openapi import LEVEL_BODY
from rest_api.request import Logger, RawBody, java_trim, parse_config
from rest_api.waiting import probe_threads

_HEALTH_STATUS = {"healthy": 200, "starting": 503}


def root_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/` and `/health`."""
    router = APIRouter(tags=["worker"])
    room = probe_threads()

    @router.get("/", summary="The worker's version and its Kafka cluster")
    def root() -> Response:
        info = herder.server_info()
        return json_response({"version": info.version, "commit": info.commit, "kafka_cluster_id": info.kafka_cluster_id})

    @router.get("/health", summary="Whether the worker can handle requests (KIP-1017): 200, 503 while it starts, 500 when it is stuck")
    async def health() -> Response:
        found = await room.run(herder.health)
        return json_response({"status": found.status, "message": found.message}, _HEALTH_STATUS.get(found.status, 500))

    return router


def logger_routes(herder: Herder, config: RestConfig) -> APIRouter:
    """Return the routes of `/admin/loggers`."""
    router = APIRouter(tags=["admin"])

    @router.get("/admin/loggers", summary="Loggers with a level of their own, and root")
    def loggers() -> Response:
        return json_response({name: logger_level(level) for name, level in config.loggers.all().items()})

    @router.get("/admin/loggers/{logger}", summary="A logger's level")
    def level(logger: Logger) -> Response:
        found = config.loggers.level(logger)
        if found is None:
            raise NotFoundError(f"Logger {logger} not found.")
        return json_response(logger_level(found))

    @router.put("/admin/loggers/{logger}", summary="Set a level here, or with `scope=cluster` on every worker", openapi_extra=LEVEL_BODY)
    def set_level(logger: Logger, body: RawBody, scope: Annotated[str, Query()] = "worker") -> Response:
        wanted = parse_config(body).get("level")
        if wanted is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        level = java_trim(wanted).upper()
        if not level:
            raise RestError("Illegal null or empty Level name.", 500)
        if level not in LEVELS:
            raise NotFoundError(f"invalid log level '{wanted}'.")
        if scope.lower() == "cluster":
            herder.put_logger_level(logger, level)
            return Response(status_code=204)
        return json_response(config.loggers.set_level(logger, level))

    return router


_PROCESS = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)


def metrics_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/metrics`."""
    router = APIRouter(tags=["metrics"])
    room = probe_threads()

    @router.get("/metrics", summary="Figures of this worker, its connectors and tasks, in Prometheus' text format")
    async def metrics(accept: Annotated[str, Header()] = "", names: Annotated[str, Query()] = Names.KAFKA.value) -> Response:
        try:
            style = Names(names)
        except ValueError:
            raise BadRequestError(f"There are no names called {names}: use {' or '.join(each.value for each in Names)}.") from None
        body, content_type = await room.run(lambda: render(herder.metrics(), accept, style, _PROCESS))
        return Response(body, media_type=content_type)

    return router
