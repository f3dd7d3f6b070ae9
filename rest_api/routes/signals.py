"""Signals to a connector and its notifications. Connect has neither (docs/signals.md)."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import BeforeValidator

from connect_py.errors import BadRequestError
from connect_py.herder.base import Herder
from connect_py.herder.signals import KEPT
from rest_api import models
from rest_api.bodies import Signal
from rest_api.openapi import BODY, refusals
from rest_api.request import Connector, NumbersRoute

_SHOWN = 100


def _number(name: str) -> BeforeValidator:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise BadRequestError(f'"{name}" must be a number, 0 or more.')
        return int(text)

    return BeforeValidator(parse)


Since = Annotated[int | None, Query(description="Only what follows this `sequence`"), _number("since")]
Limit = Annotated[int, Query(description=f"At most so many, up to {KEPT}"), _number("limit")]


def signal_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/signals` and `/connectors/{connector}/notifications`."""
    router = APIRouter(prefix="/connectors/{connector}", tags=["signals"], route_class=NumbersRoute, responses=refusals(404))

    @router.post(
        "/signals",
        summary="Ask a running connector for something, such as a snapshot; answered when its task has taken it",
        status_code=202,
        responses=refusals(*BODY, 409, 503),
    )
    def send(connector: Connector, signal: Signal) -> models.SignalTaken:
        herder.send_signal(connector, signal.model_dump(by_alias=True))
        return {"id": signal.id}

    @router.get("/notifications", summary="What a connector's tasks have told lately, such as of a snapshot, oldest first")
    def notifications(connector: Connector, since: Since = None, limit: Limit = _SHOWN) -> models.Notifications:
        found = herder.notifications(connector, since, min(KEPT, limit))
        return models.Notifications(cast(list[models.Notification], list(found)))

    return router
