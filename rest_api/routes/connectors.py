"""Connectors: create, read, configure, delete, their life, their tasks, the topics they use (KIP-558) and their offsets (KIP-875)
(`ConnectorsResource.java`, `HerderRequestHandler.java`, `ConnectorOffsets.java`).
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from connect_py.api.storage import TargetState
from connect_py.errors import BadRequestError, NotFoundError
from connect_py.herder.base import ConnectorInfo, Herder
from rest_api import models
from rest_api.bodies import AlterOffsets, Changes, Config, CreateConnector, config_map
from rest_api.models import json_response
from rest_api.openapi import BODY, LOCATION, refusals
from rest_api.request import NO_BODY, Connector, ConnectRequest, ConnectRoute, Flag, NumbersRoute, Task
from rest_api.waiting import Threads


def connector_routes(herder: Herder, checks: Threads) -> APIRouter:
    """Return the routes of `/connectors`. `checks` are the threads for what validates a configuration."""
    router = APIRouter(tags=["connectors"], route_class=ConnectRoute)

    @router.get("/connectors", summary="Names of all connectors, or with `expand=info` and `expand=status` a map of what is asked")
    def connectors(expand: Annotated[list[str] | None, Query()] = None) -> models.Connectors:
        names = herder.connectors()
        if expand is None:
            return list(names)
        return {name: found for name in names if (found := _expanded(name, dict.fromkeys(expand))) is not None}

    def _expanded(name: str, wanted: dict[str, None]) -> models.Expanded | None:
        found: models.Expanded = {}
        try:
            for view in wanted:
                if view == "info":
                    found["info"] = models.ConnectorInfo.of(herder.connector_info(name))
                elif view == "status":
                    found["status"] = models.ConnectorStatus.of(herder.connector_status(name))
        except NotFoundError:
            return None  # deleted meanwhile, or not yet reported by any worker: the reference leaves it out too
        return found

    @router.post(
        "/connectors",
        summary="Create a connector",
        response_model=models.ConnectorInfo,
        status_code=201,
        responses={201: LOCATION, **refusals(*BODY, 409)},
    )
    @checks
    def create(request: Request, wanted: CreateConnector) -> Response:
        _put_name(wanted.name, wanted.config)
        _, info = herder.put_connector(wanted.name, wanted.config, may_replace=False, state=wanted.initial_state)
        return _created(request, info)

    return router


def one_connector_routes(herder: Herder, checks: Threads) -> APIRouter:
    """Return the routes of `/connectors/{connector}` and what lies right below it."""
    router = APIRouter(prefix="/connectors/{connector}", tags=["connectors"], route_class=ConnectRoute, responses=refusals(404, 409))

    @router.get("", summary="A connector's configuration and tasks")
    def connector_info(connector: Connector) -> models.ConnectorInfo:
        return models.ConnectorInfo.of(herder.connector_info(connector))

    @router.delete("", summary="Delete a connector; its offsets stay", status_code=204)
    def delete(connector: Connector) -> None:
        herder.delete_connector(connector)

    @router.get("/config", summary="A connector's configuration")
    def config(connector: Connector) -> models.Config:
        return dict(herder.connector_info(connector).config)

    @router.put(
        "/config",
        summary="Create a connector or replace its configuration",
        response_model=models.ConnectorInfo,
        responses={201: {"model": models.ConnectorInfo, "description": "Created", **LOCATION}, **refusals(*BODY, 409)},
    )
    @checks
    def put_config(request: Request, connector: Connector, config: Config) -> Response:
        _put_name(connector, config)
        created, info = herder.put_connector(connector, config, may_replace=True)
        return _created(request, info) if created else json_response(models.ConnectorInfo.of(info))

    @router.patch("/config", summary="Change some properties; null removes one (KIP-477)", responses=refusals(*BODY))
    @checks
    def patch_config(request: ConnectRequest, connector: Connector, changes: Changes = None) -> models.ConnectorInfo:
        if changes is None:
            herder.connector_info(connector)  # the reference looks for the connector before it misses the changes
            if not request.sent.strip():
                raise BadRequestError(NO_BODY)
        return models.ConnectorInfo.of(herder.patch_connector(connector, config_map(changes)))

    @router.get("/status", summary="States of a connector and its tasks")
    def status(connector: Connector) -> models.ConnectorStatus:
        return models.ConnectorStatus.of(herder.connector_status(connector))

    @router.post(
        "/restart",
        summary="Restart the connector, its tasks, or those that failed (KIP-745)",
        status_code=202,
        response_model=models.ConnectorStatus,
        responses={204: {"description": "Done"}},
    )
    def restart(connector: Connector, includeTasks: Flag = False, onlyFailed: Flag = False) -> Response | models.ConnectorStatus:
        if not includeTasks and not onlyFailed:
            herder.restart_connector(connector)
            return Response(status_code=204)
        return models.ConnectorStatus.of(herder.restart(connector, include_tasks=includeTasks, only_failed=onlyFailed))

    def target_state(name: str, state: TargetState, status: int, summary: str) -> None:
        @router.put(f"/{name}", name=name, summary=summary, status_code=status)
        def change(connector: Connector) -> None:
            herder.set_target_state(connector, state)

    target_state("pause", TargetState.PAUSED, 202, "Pause")
    target_state("resume", TargetState.STARTED, 202, "Resume from paused or stopped")
    target_state("stop", TargetState.STOPPED, 204, "Stop, freeing all it holds (KIP-875)")
    return router


def _put_name(name: str, config: dict[str, str | None]) -> None:
    """Complete the configuration with the connector's name. Raises BadRequestError when it has another."""
    given = config.get("name")
    if given is None:
        config["name"] = name
    elif given != name:
        raise BadRequestError(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")


def _created(request: Request, info: ConnectorInfo) -> Response:
    """Return 201 with the connector's address, absolute as in the reference's answers."""
    name = quote(info.name, safe="!$&'()*+,=:@")
    base = f"{request.url.scheme}://{request.url.netloc}"
    return json_response(models.ConnectorInfo.of(info), 201, {"location": f"{base}/connectors/{name}"})


def task_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/tasks`."""
    router = APIRouter(prefix="/connectors/{connector}/tasks", tags=["tasks"], route_class=ConnectRoute, responses=refusals(404, 409))

    @router.get("", summary="Tasks with their configurations")
    def tasks(connector: Connector) -> list[models.TaskInfo]:
        found = herder.task_infos(connector)
        return [models.TaskInfo(models.TaskId(connector, info.task), dict(info.config)) for info in found]

    @router.get("/{task}/status", summary="A task's state")
    def status(connector: Connector, task: Task) -> models.TaskState:
        return models.task_state(task, herder.task_status(connector, task))

    @router.post("/{task}/restart", summary="Restart one task", status_code=204)
    def restart(connector: Connector, task: Task) -> None:
        herder.restart_task(connector, task)

    return router


def topic_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/topics`."""
    router = APIRouter(prefix="/connectors/{connector}/topics", tags=["topics"], route_class=ConnectRoute, responses=refusals(403))

    @router.get("", summary="Topics used since the connector was made or the list was reset")
    def topics(connector: Connector) -> models.Topics:
        return {connector: {"topics": list(herder.topics(connector))}}

    @router.put("/reset", summary="Empty that list", status_code=202)
    def reset(connector: Connector) -> None:
        herder.reset_topics(connector)

    return router


def offset_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/offsets`."""
    router = APIRouter(prefix="/connectors/{connector}/offsets", tags=["offsets"], route_class=NumbersRoute, responses=refusals(404, 409))

    @router.get("", summary="Where the connector is: source offsets, or a sink's consumer group")
    def offsets(connector: Connector) -> models.Offsets:
        return models.Offsets([models.Offset(*entry) for entry in herder.offsets(connector)])

    @router.patch("", summary="Set offsets of a stopped connector; a null offset removes one", responses=refusals(*BODY))
    def alter(connector: Connector, wanted: AlterOffsets) -> models.Message:
        return {"message": herder.alter_offsets(connector, wanted.entries())}

    @router.delete("", summary="Forget all offsets of a stopped connector")
    def reset(connector: Connector) -> models.Message:
        return {"message": herder.reset_offsets(connector)}

    return router
