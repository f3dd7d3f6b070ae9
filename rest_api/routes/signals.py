"""Signals to a source and its notifications. Connect has neither (docs/signals.md)."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder
from connect_py.herder.signals import KEPT
from rest_api.models import json_response
from rest_api.openapi import SIGNAL_BODY
from rest_api.request import Connector, RawBody, first, parse_object

_FIELDS = ("id", "type", "data", "additional-data")
_SHOWN = 100


def signal_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/signals` and `/connectors/{connector}/notifications`."""
    router = APIRouter(tags=["signals"])

    @router.post(
        "/connectors/{connector}/signals",
        summary="Ask a running source for something, such as a snapshot; answered when its task has taken it",
        status_code=202,
        openapi_extra=SIGNAL_BODY,
    )
    def send(connector: Connector, body: RawBody) -> Response:
        signal = _signal(body)
        herder.send_signal(connector, signal)
        return json_response({"id": signal["id"]}, 202)

    @router.get("/connectors/{connector}/notifications", summary="What a source's snapshots have told lately, oldest first")
    def notifications(
        request: Request,
        connector: Connector,
        since: Annotated[str | None, Query(description="Only what follows this `sequence`")] = None,
        limit: Annotated[str, Query(description=f"At most so many, up to {KEPT}")] = str(_SHOWN),
    ) -> Response:
        after = _number("since", first(request, "since", since)) if since is not None else None
        most = min(KEPT, _number("limit", first(request, "limit", limit)))
        return json_response({"notifications": list(herder.notifications(connector, after, most))})

    return router


def _signal(body: bytes) -> dict[str, Any]:
    """Parse a signal. Raises BadRequestError."""
    found: dict[str, Any] = dict(parse_object(body, _FIELDS, numbers_as_text=False))
    if found.get("id") is None:
        found["id"] = str(uuid.uuid4())
    for name in ("id", "type"):
        if not isinstance(found.get(name), str) or not found[name].strip():
            raise BadRequestError(f'"{name}" must be a text that is not empty.')
    for name in ("data", "additional-data"):
        found[name] = {} if found.get(name) is None else found[name]
        if not isinstance(found[name], dict):
            raise BadRequestError(f'"{name}" must be a JSON object.')
    return found


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequestError(f'"{name}" must be a number, 0 or more.')
    return int(text)
