"""Levels of loggers (KIP-495, KIP-976; `LoggingResource.java`)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from connect_py.errors import BadRequestError, NotFoundError, RestError
from connect_py.herder.base import Herder
from connect_py.log.levels import LEVELS
from rest_api.body import RawBody, parse_config
from rest_api.config import RestConfig
from rest_api.models import json_response, logger_level
from rest_api.openapi import LEVEL_BODY
from rest_api.params import Logger, java_trim


def logger_routes(herder: Herder, config: RestConfig) -> APIRouter:
    """`/admin/loggers`."""
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
