"""`GET /` and `GET /health` (`RootResource.java`)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from connect_py.herder.base import Herder
from rest_api.models import json_response
from rest_api.rooms import probes

_HEALTH_STATUS = {"healthy": 200, "starting": 503}


def root_routes(herder: Herder) -> APIRouter:
    """The worker itself."""
    router = APIRouter(tags=["worker"])
    room = probes()

    @router.get("/", summary="The worker's version and its Kafka cluster")
    def root() -> Response:
        info = herder.server_info()
        return json_response({"version": info.version, "commit": info.commit, "kafka_cluster_id": info.kafka_cluster_id})

    @router.get("/health", summary="Whether the worker can handle requests (KIP-1017): 200, 503 while it starts, 500 when it is stuck")
    async def health() -> Response:
        found = await room.run(herder.health)
        return json_response({"status": found.status, "message": found.message}, _HEALTH_STATUS.get(found.status, 500))

    return router
