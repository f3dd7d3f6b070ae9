"""What workers ask of each other (`InternalClusterResource.java`): a connector's new tasks, and the fencing of old ones.

Not for clients, and not in /openapi.json. The requests are signed with the cluster's session key (KIP-507), and no password is
needed here. So a body without a signature is read only as far as a client's mistake is long, and a signed one is parsed once its
signature has been found to be right.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder
from connect_py.herder.session_key import InternalSignature
from rest_api.bodies import config_map
from rest_api.config import RestConfig
from rest_api.request import Connector, ConnectRoute, parse, read_body

#: `InternalRequestSignature.java`
_MAC, _ALGORITHM = "x-connect-authorization", "x-connect-request-signature-algorithm"

#: Enough to show a client what it did wrong.
_MAX_UNSIGNED_BYTES = 64 * 1024


def internal_routes(herder: Herder) -> APIRouter:
    """Return the routes of `POST /connectors/{connector}/tasks` and `PUT /connectors/{connector}/fence`."""
    router = APIRouter(include_in_schema=False, route_class=ConnectRoute)

    @router.post("/connectors/{connector}/tasks", status_code=204)
    def put_task_configs(request: Request, connector: Connector, body: SignedBody) -> None:
        signature = signature_of(request, body)
        if signature is None:
            configs = _task_configs(body)  # the reference finds mistakes in a body before it misses the signature
            herder.put_task_configs(connector, lambda: configs, None)
        else:
            herder.put_task_configs(connector, lambda: _task_configs(body), signature)

    @router.put("/connectors/{connector}/fence", status_code=204)
    def fence(request: Request, connector: Connector, body: SignedBody) -> None:
        herder.fence_zombies(connector, signature_of(request, body))

    return router


async def _read_signed(request: Request) -> bytes:
    is_signed = _MAC in request.headers and _ALGORITHM in request.headers
    config: RestConfig = request.app.state.config
    limit = config.max_body_bytes
    return await read_body(request, limit if is_signed else min(limit, _MAX_UNSIGNED_BYTES), config.body_seconds)


SignedBody = Annotated[bytes, Depends(_read_signed)]


def _task_configs(body: bytes) -> list[dict[str, str | None]]:
    """Parse configurations of tasks. Raises BadRequestError."""
    parsed: Any = parse(body)
    if parsed is not None and not isinstance(parsed, list):
        raise BadRequestError("The request's body must be a JSON array of configurations.")
    return [config_map(each, "Each task's configuration") for each in parsed or ()]


def signature_of(request: Request, body: bytes) -> InternalSignature | None:
    """Return what a request is signed with. Raises BadRequestError: it is no base64."""
    return InternalSignature.of_headers(request.headers.get(_ALGORITHM), request.headers.get(_MAC), body)
