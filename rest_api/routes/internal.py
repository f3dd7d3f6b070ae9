"""What workers ask of each other (`InternalClusterResource.java`): a connector's new tasks, and the fencing of old ones.

Not for clients, and not in /openapi.json. The requests are signed with the cluster's session key (KIP-507).
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from connect_py.errors import BadRequestError
from connect_py.runtime.herder.base import Herder
from connect_py.runtime.herder.session_key import InternalSignature
from rest_api.body import RawBody, config_map, parse
from rest_api.params import Connector

#: `InternalRequestSignature.java`
_MAC, _ALGORITHM = "x-connect-authorization", "x-connect-request-signature-algorithm"


def routes(herder: Herder) -> APIRouter:
    """`POST /connectors/{connector}/tasks` and `PUT /connectors/{connector}/fence`."""
    router = APIRouter(include_in_schema=False)

    @router.post("/connectors/{connector}/tasks")
    def put_task_configs(request: Request, connector: Connector, body: RawBody) -> Response:
        parsed: Any = parse(body)
        if parsed is not None and not isinstance(parsed, list):
            raise BadRequestError("The request's body must be a JSON array of configurations.")
        configs = [config_map(each, "Each task's configuration") for each in parsed or ()]
        herder.put_task_configs(connector, configs, _signature(request, body))
        return Response(status_code=204)

    @router.put("/connectors/{connector}/fence")
    def fence(request: Request, connector: Connector, body: RawBody) -> Response:
        herder.fence_zombies(connector, _signature(request, body))
        return Response(status_code=204)

    return router


def _signature(request: Request, body: bytes) -> InternalSignature | None:
    return InternalSignature.of_headers(request.headers.get(_ALGORITHM), request.headers.get(_MAC), body)
