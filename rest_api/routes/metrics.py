"""What Prometheus scrapes. A Java worker offers the same by JMX and an exporter beside it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from starlette.responses import Response

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder
from connect_py.metrics.exposition import Names, render
from rest_api.rooms import probes

_PROCESS = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)


def metrics_routes(herder: Herder) -> APIRouter:
    """`/metrics`."""
    router = APIRouter(tags=["metrics"])
    room = probes()

    @router.get("/metrics", summary="Figures of this worker, its connectors and tasks, in Prometheus' text format")
    async def metrics(accept: Annotated[str, Header()] = "", names: Annotated[str, Query()] = Names.KAFKA.value) -> Response:
        try:
            style = Names(names)
        except ValueError:
            raise BadRequestError(f"There are no names called {names}: use {' or '.join(each.value for each in Names)}.") from None
        body, content_type = await room.run(lambda: render(herder.metrics(), accept, style, _PROCESS))
        return Response(body, media_type=content_type)

    return router
