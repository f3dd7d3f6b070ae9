"""Offsets of a connector: read, alter, reset (KIP-875; `ConnectorsResource.java`, `ConnectorOffsets.java`)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder, OffsetEntry
from rest_api import models
from rest_api.body import RawBody, parse_object
from rest_api.models import json_response
from rest_api.openapi import OFFSETS_BODY
from rest_api.params import Connector


def offset_routes(herder: Herder) -> APIRouter:
    """`/connectors/{connector}/offsets`."""
    router = APIRouter(tags=["offsets"])

    @router.get("/connectors/{connector}/offsets", summary="Where the connector is: source offsets, or a sink's consumer group")
    def offsets(connector: Connector) -> Response:
        return json_response(models.offsets(herder.offsets(connector)))

    @router.patch(
        "/connectors/{connector}/offsets",
        summary="Set offsets of a stopped connector; a null offset removes one",
        openapi_extra=OFFSETS_BODY,
    )
    def alter(connector: Connector, body: RawBody) -> Response:
        return json_response({"message": herder.alter_offsets(connector, _entries(body))})

    @router.delete("/connectors/{connector}/offsets", summary="Forget all offsets of a stopped connector")
    def reset(connector: Connector) -> Response:
        return json_response({"message": herder.reset_offsets(connector)})

    return router


def _entries(body: bytes) -> list[OffsetEntry]:
    """Raises BadRequestError."""
    entries: Any = parse_object(body, ("offsets",), numbers_as_text=False).get("offsets")
    if not entries:
        raise BadRequestError("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list):
        raise BadRequestError('"offsets" must be a JSON array of objects with "partition" and "offset".')
    return [_entry(entry) for entry in entries]


def _entry(entry: Any) -> OffsetEntry:
    if not isinstance(entry, dict) or not entry.keys() <= {"partition", "offset"}:
        raise BadRequestError('Each of "offsets" must be a JSON object with "partition" and "offset", and nothing else.')
    partition, offset = entry.get("partition"), entry.get("offset")
    for name, part in (("partition", partition), ("offset", offset)):
        if part is not None and not isinstance(part, dict):
            raise BadRequestError(f'"{name}" must be a JSON object or null.')
    return partition, offset
