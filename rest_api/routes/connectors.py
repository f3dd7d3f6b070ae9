"""Connectors: create, read, configure, delete, their life, their tasks, the topics they use (KIP-558) and their offsets (KIP-875)
(`ConnectorsResource.java`, `HerderRequestHandler.java`, `ConnectorOffsets.java`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from connect_py.api.storage import TargetState
from connect_py.errors import BadRequestError, NotFoundError
from connect_py.herder.base import ConnectorInfo, Herder, OffsetEntry
from rest_api import models
from rest_api.models import Json, json_response
from rest_api.openapi import CONFIG_BODY, CREATE_BODY, OFFSETS_BODY
from rest_api.request import Connector, Flag, RawBody, Task, config_map, first, is_true, java_trim, parse_config, parse_object
from rest_api.waiting import ThreadLimit

#: initial_state of KIP-980, by its texts.
_INITIAL_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}

#: Leaves room for the longest path below a connector in what `jaxrs.py` takes for a request's line.
_MAX_NAME = 4096


def connector_routes(herder: Herder, checks: ThreadLimit) -> APIRouter:
    """Return the routes of `/connectors` and what lies right below one. `checks` are the threads for what validates a configuration."""
    router = APIRouter(tags=["connectors"])
    views: dict[str, Callable[[str], Json]] = {
        "status": lambda name: models.connector_status(herder.connector_status(name)),
        "info": lambda name: models.connector_info(herder.connector_info(name)),
    }

    @router.get("/connectors", summary="Names of all connectors, or with `expand=info` and `expand=status` a map of what is asked")
    def connectors(request: Request, expand: Annotated[list[str] | None, Query()] = None) -> Response:
        names = herder.connectors()
        if "expand" not in request.query_params:
            return json_response(list(names))
        wanted = [view for view in dict.fromkeys(expand or ()) if view in views]
        return json_response({name: found for name in names if (found := _expanded(name, wanted)) is not None})

    def _expanded(name: str, wanted: list[str]) -> Json | None:
        try:
            return {view: views[view](name) for view in wanted}
        except NotFoundError:
            return None  # deleted meanwhile, or not yet reported by any worker: the reference leaves it out too

    @router.post("/connectors", summary="Create a connector", status_code=201, openapi_extra=CREATE_BODY)
    async def create(request: Request, body: RawBody) -> Response:
        def work() -> Response:
            name, config, state = _create_request(body)
            _put_name(name, config)
            _, info = herder.put_connector(name, config, may_replace=False, state=state)
            return _created(request, info)

        return await checks.run(work)

    @router.get("/connectors/{connector}", summary="A connector's configuration and tasks")
    def connector_info(connector: Connector) -> Response:
        return json_response(models.connector_info(herder.connector_info(connector)))

    @router.delete("/connectors/{connector}", summary="Delete a connector; its offsets stay", status_code=204)
    def delete(connector: Connector) -> Response:
        herder.delete_connector(connector)
        return Response(status_code=204)

    @router.get("/connectors/{connector}/config", summary="A connector's configuration")
    def config(connector: Connector) -> Response:
        return json_response(dict(herder.connector_info(connector).config))

    @router.put("/connectors/{connector}/config", summary="Create a connector or replace its configuration", openapi_extra=CONFIG_BODY)
    async def put_config(request: Request, connector: Connector, body: RawBody) -> Response:
        def work() -> Response:
            config = parse_config(body)
            _put_name(connector, config)
            created, info = herder.put_connector(connector, config, may_replace=True)
            return _created(request, info) if created else json_response(models.connector_info(info))

        return await checks.run(work)

    @router.patch("/connectors/{connector}/config", summary="Change some properties; null removes one (KIP-477)", openapi_extra=CONFIG_BODY)
    async def patch_config(connector: Connector, body: RawBody) -> Response:
        def work() -> Response:
            if body.strip() in (b"", b"null"):
                herder.connector_info(connector)  # the reference looks for the connector before it misses the changes
            return json_response(models.connector_info(herder.patch_connector(connector, parse_config(body))))

        return await checks.run(work)

    @router.get("/connectors/{connector}/status", summary="States of a connector and its tasks")
    def status(connector: Connector) -> Response:
        return json_response(models.connector_status(herder.connector_status(connector)))

    @router.post("/connectors/{connector}/restart", summary="Restart the connector, its tasks, or those that failed (KIP-745)")
    def restart(request: Request, connector: Connector, includeTasks: Flag = "false", onlyFailed: Flag = "false") -> Response:
        include_tasks = is_true(first(request, "includeTasks", includeTasks))
        only_failed = is_true(first(request, "onlyFailed", onlyFailed))
        if not include_tasks and not only_failed:
            herder.restart_connector(connector)
            return Response(status_code=204)
        status = herder.restart(connector, include_tasks=include_tasks, only_failed=only_failed)
        return json_response(models.connector_status(status), 202)

    def target_state(state: TargetState, status: int) -> Callable[[Connector], Response]:
        def change(connector: Connector) -> Response:
            herder.set_target_state(connector, state)
            return Response(status_code=status)

        return change

    router.put("/connectors/{connector}/pause", status_code=202, summary="Pause", name="pause")(target_state(TargetState.PAUSED, 202))
    router.put("/connectors/{connector}/resume", status_code=202, summary="Resume from paused or stopped", name="resume")(
        target_state(TargetState.STARTED, 202)
    )
    router.put("/connectors/{connector}/stop", status_code=204, summary="Stop, freeing all it holds (KIP-875)", name="stop")(
        target_state(TargetState.STOPPED, 204)
    )
    return router


def _create_request(body: bytes) -> tuple[str, dict[str, str | None], TargetState | None]:
    """Parse the body (`CreateConnectorRequest.java`): the name is trimmed, and empty when missing (validation then says what is wrong with
    it)."""
    parsed = parse_object(body, ("name", "config", "initial_state"))
    name: Any = parsed.get("name")
    if isinstance(name, list | dict):
        raise BadRequestError('"name" must be a text.')
    if parsed.get("config") is None:
        raise BadRequestError('The request\'s body has no "config": a JSON object of property names and values.')
    state: Any = parsed.get("initial_state")
    if state is not None and (not isinstance(state, str) or state.upper() not in _INITIAL_STATES):
        raise BadRequestError(f'"initial_state" must be one of {", ".join(_INITIAL_STATES)}; it is {state}.')
    config = config_map(parsed["config"], '"config"')
    return _name(name), config, None if state is None else _INITIAL_STATES[state.upper()]


def _name(given: Any) -> str:
    name = java_trim(("true" if given else "false") if isinstance(given, bool) else str(given or ""))
    if name in (".", ".."):
        raise BadRequestError(f"A connector cannot be called {name}: no path leads to it. Choose another name.")
    if len(quote(name)) > _MAX_NAME:
        raise BadRequestError(f"The connector's name is too long for its address: it may take {_MAX_NAME} characters, percent-encoded.")
    return name


def _put_name(name: str, config: dict[str, str | None]) -> None:
    """Complete the configuration with the connector's name. Raises BadRequestError when it has another."""
    given = config.get("name")
    if given is None:
        config["name"] = name
    elif given != name:
        raise BadRequestError(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")


def _created(request: Request, info: ConnectorInfo) -> Response:
    """Return 201 with the connector's address, absolute as in the reference's answers."""
    base = f"{request.url.scheme}://{request.url.netloc}"
    name = quote(info.name, safe="!$&'()*+,=:@")
    return json_response(models.connector_info(info), 201, {"location": f"{base}/connectors/{name}"})


def task_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/tasks`."""
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


def topic_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/topics`."""
    router = APIRouter(tags=["topics"])

    @router.get("/connectors/{connector}/topics", summary="Topics used since the connector was made or the list was reset")
    def topics(connector: Connector) -> Response:
        return json_response({connector: {"topics": list(herder.topics(connector))}})

    @router.put("/connectors/{connector}/topics/reset", summary="Empty that list", status_code=202)
    def reset(connector: Connector) -> Response:
        herder.reset_topics(connector)
        return Response(status_code=202)

    return router


def offset_routes(herder: Herder) -> APIRouter:
    """Return the routes of `/connectors/{connector}/offsets`."""
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
    """Parse the offsets to set. Raises BadRequestError."""
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
