"""Tasks of a connector (`ConnectorsResource.java`)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from connect_py.herder.base import Herder
from rest_api import models
from rest_api.models import json_response
from rest_api.params import Connector, Task


def task_routes(herder: Herder) -> APIRouter:
    """`/connectors/{connector}/tasks`."""
    router = APIRouter(tags=["tasks"])

    @router.get("/connectors/{connector}/tasks", summary="Tasks with their configurations")
    def tasks(connector: Connector) -> Response:
        return json_response([models.task_info(connector, info) for info in herder.task_infos(connector)])

    @router.get("/connectors/{connector}/tasks/{task}/status", summary="A task's state")
    def status(connector: Connector, task: Task) -> Response:
        return json_response(models.task_state(task, herder.task_status(connector, task)))

    @router.post("/connectors/{connector}/tasks/{task}/restart", summary="Restart one task", status_code=204)
    def restart(connector: Connector, task: Task) -> Response:
        herder.restart_task(connector, task)
        return Response(status_code=204)

    return router
