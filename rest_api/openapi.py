"""/openapi.json: what FastAPI cannot see of the API, because bodies are read and answers are written here.

One table, a line an operation: what a success looks like, and which refusals there are. `schemas.py` has the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from rest_api.schemas import CONFIG_EXAMPLE, ERROR_EXAMPLES, NOTIFICATIONS_EXAMPLE, SCHEMAS, STATUS_EXAMPLE, Shape

#: A path that cannot be read, a head that is too long, a client that may not call or wants no JSON, a page of a foreign origin, too many
#: failed logins, a request that took too long.
_ALWAYS = (400, 401, 403, 406, 414, 429, 431, 500)
_BODY = (408, 413, 415)


def _ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Shape) -> Shape:
    return {"type": "array", "items": of}


def _body(schema: Shape, example: Any) -> Shape:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}}


#: For `openapi_extra` of the routes that take a body.
CONFIG_BODY = _body(_ref("Config"), CONFIG_EXAMPLE)
CREATE_BODY = _body(_ref("CreateConnector"), {"name": "lines", "config": CONFIG_EXAMPLE, "initial_state": "RUNNING"})
OFFSETS_BODY = _body(_ref("AlterOffsets"), {"offsets": [{"partition": {"filename": "/data/lines.txt"}, "offset": {"position": 8}}]})
SIGNAL_BODY = _body(
    _ref("Signal"),
    {"id": "orders-again", "type": "execute-snapshot", "data": {"data-collections": ["public.orders"], "type": "incremental"}},
)
LEVEL_BODY = _body(_ref("SetLevel"), {"level": "DEBUG"})


@dataclass(frozen=True)
class _Operation:
    """What an operation answers: successes by status (None is an answer without a body), and statuses of refusals besides the common."""

    successes: dict[int, Shape | None]
    refusals: Sequence[int] = ()
    example: Any = None
    media_type: str = "application/json"


_INFO = {"name": "lines", "config": {**CONFIG_EXAMPLE, "name": "lines"}, "tasks": [{"connector": "lines", "task": 0}], "type": "source"}
_LEVEL = {"level": "INFO", "last_modified": None}
_CONNECTOR = "/connectors/{connector}"

_OPERATIONS: dict[tuple[str, str], _Operation] = {
    ("get", "/"): _Operation({200: _ref("ServerInfo")}, (), {"version": "4.3.1", "commit": "unknown", "kafka_cluster_id": "4L6g3nShT"}),
    ("get", "/health"): _Operation({200: _ref("Health"), 503: _ref("Health")}, (), {"status": "healthy", "message": "Worker has …"}),
    ("get", "/connectors"): _Operation({200: _ref("Connectors")}, (), ["lines"]),
    ("post", "/connectors"): _Operation({201: _ref("ConnectorInfo")}, (*_BODY, 409), _INFO),
    ("get", _CONNECTOR): _Operation({200: _ref("ConnectorInfo")}, (404, 409), _INFO),
    ("delete", _CONNECTOR): _Operation({204: None}, (404, 409)),
    ("get", f"{_CONNECTOR}/config"): _Operation({200: _ref("Config")}, (404, 409), CONFIG_EXAMPLE),
    ("put", f"{_CONNECTOR}/config"): _Operation({200: _ref("ConnectorInfo"), 201: _ref("ConnectorInfo")}, (*_BODY, 409), _INFO),
    ("patch", f"{_CONNECTOR}/config"): _Operation({200: _ref("ConnectorInfo")}, (*_BODY, 404, 409), _INFO),
    ("get", f"{_CONNECTOR}/status"): _Operation({200: _ref("ConnectorStatus")}, (404,), STATUS_EXAMPLE),
    ("post", f"{_CONNECTOR}/restart"): _Operation({202: _ref("ConnectorStatus"), 204: None}, (404, 409), STATUS_EXAMPLE),
    ("put", f"{_CONNECTOR}/pause"): _Operation({202: None}, (404, 409)),
    ("put", f"{_CONNECTOR}/resume"): _Operation({202: None}, (404, 409)),
    ("put", f"{_CONNECTOR}/stop"): _Operation({204: None}, (404, 409)),
    ("get", f"{_CONNECTOR}/tasks"): _Operation(
        {200: _list(_ref("TaskInfo"))}, (404, 409), [{"id": {"connector": "lines", "task": 0}, "config": CONFIG_EXAMPLE}]
    ),
    ("get", f"{_CONNECTOR}/tasks/{{task}}/status"): _Operation({200: _ref("TaskState")}, (404,), STATUS_EXAMPLE["tasks"][0]),
    ("post", f"{_CONNECTOR}/tasks/{{task}}/restart"): _Operation({204: None}, (404, 409)),
    ("get", f"{_CONNECTOR}/topics"): _Operation({200: _ref("Topics")}, (403,), {"lines": {"topics": ["lines"]}}),
    ("put", f"{_CONNECTOR}/topics/reset"): _Operation({202: None}, (403,)),
    ("get", f"{_CONNECTOR}/offsets"): _Operation(
        {200: _ref("Offsets")},
        (404,),
        {"offsets": [{"partition": {"filename": "/data/lines.txt"}, "offset": {"position": 8}}]},
    ),
    ("patch", f"{_CONNECTOR}/offsets"): _Operation(
        {200: _ref("Message")}, (*_BODY, 404, 409), {"message": "The offsets for this connector have been altered successfully"}
    ),
    ("delete", f"{_CONNECTOR}/offsets"): _Operation(
        {200: _ref("Message")}, (404, 409), {"message": "The offsets for this connector have been reset successfully"}
    ),
    ("post", f"{_CONNECTOR}/signals"): _Operation({202: _ref("SignalTaken")}, (*_BODY, 404, 409, 503), {"id": "orders-again"}),
    ("get", f"{_CONNECTOR}/notifications"): _Operation({200: _ref("Notifications")}, (404,), NOTIFICATIONS_EXAMPLE),
    ("get", "/connector-plugins"): _Operation(
        {200: _list(_ref("Plugin"))},
        (),
        [{"class": "io.debezium.connector.postgresql.PostgresConnector", "type": "source", "version": "3.6.1.Final"}],
    ),
    ("get", "/connector-plugins/{plugin}/config"): _Operation({200: _list(_ref("ConfigKey"))}, (404,)),
    ("put", "/connector-plugins/{plugin}/config/validate"): _Operation({200: _ref("ConfigInfos")}, (*_BODY, 404)),
    ("get", "/metrics"): _Operation({200: {"type": "string"}}, (), "# HELP …", "text/plain"),
    ("get", "/admin/loggers"): _Operation({200: {"type": "object", "additionalProperties": _ref("LoggerLevel")}}, (), {"root": _LEVEL}),
    ("get", "/admin/loggers/{logger}"): _Operation({200: _ref("LoggerLevel")}, (404,), _LEVEL),
    ("put", "/admin/loggers/{logger}"): _Operation({200: _list({"type": "string"}), 204: None}, (*_BODY, 404), ["io.debezium"]),
}


def describe(app: FastAPI, *, with_passwords: bool) -> Shape:
    """The description of an application's routes.

    Args:
        with_passwords: whether the worker asks for basic authentication.
    """
    found: Shape = get_openapi(title=app.title, version=app.version, description=_TEXT, routes=app.routes)
    components = found.setdefault("components", {})
    components["schemas"] = SCHEMAS
    components["responses"] = {f"Error{status}": _refusal(status) for status in sorted(ERROR_EXAMPLES)}
    for path, operations in found["paths"].items():
        for method, shown in operations.items():
            operation = _OPERATIONS.get((method, path))
            if operation is not None:
                shown["responses"] = _responses(operation)
    if with_passwords:
        components["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
        found["security"] = [{"basic": []}]
    return found


_TEXT = (
    'Kafka Connect\'s REST API. Every refusal is {"error_code": status, "message": text}. Names in paths are percent-encoded. An '
    "answer 409 means that the same request may succeed a moment later, unless it says that a connector exists."
)


def _responses(operation: _Operation) -> Shape:
    found: Shape = {}
    for status, schema in operation.successes.items():
        found[str(status)] = {"description": _DESCRIPTIONS[status]}
        if schema is not None:
            content: Shape = {"schema": schema}
            if operation.example is not None:
                content["example"] = operation.example
            found[str(status)]["content"] = {operation.media_type: content}
        if status == 201:
            found["201"]["headers"] = {"Location": {"schema": {"type": "string"}, "description": "The connector's address"}}
    for status in sorted({*_ALWAYS, *operation.refusals} - operation.successes.keys()):
        found[str(status)] = {"$ref": f"#/components/responses/Error{status}"}
    return found


_DESCRIPTIONS = {200: "Done", 201: "Created", 202: "Accepted: it is done soon", 204: "Done", 503: "The worker is starting"}


def _refusal(status: int) -> Shape:
    why, text = ERROR_EXAMPLES[status]
    content: Shape = {"application/json": {"schema": _ref("Error"), "example": {"error_code": status, "message": text}}}
    if status == 401:
        content = {"application/json": {"schema": {"type": "string"}, "example": text}}
    return {"description": why, "content": content}
