"""Topics that a connector has used (KIP-558; `ConnectorsResource.java`)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from connect_py.herder.base import Herder
from rest_api.models import json_response
from rest_api.params import Connector


def topic_routes(herder: Herder) -> APIRouter:
    """`/connectors/{connector}/topics`."""
    router = APIRouter(tags=["topics"])

    @router.get("/connectors/{connector}/topics", summary="Topics used since the connector was made or the list was reset")
    def topics(connector: Connector) -> Response:
        return json_response({connector: {"topics": list(herder.topics(connector))}})

    @router.put("/connectors/{connector}/topics/reset", summary="Empty that list", status_code=202)
    def reset(connector: Connector) -> Response:
        herder.reset_topics(connector)
        return Response(status_code=202)

    return router
