"""/openapi.json and the page /docs, drawn from it.

The document says what FastAPI cannot see of the API, because bodies are read and answers are written here: shapes of bodies and answers as
JSON Schema (`runtime/rest/entities/*.java`; `models.py` writes the answers), and one table, a line an operation: what a success looks like,
and which refusals there are. The page is a list that the browser draws; it loads nothing from elsewhere, and may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, Response

Shape = dict[str, Any]

CONFIG_EXAMPLE: Shape = {
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "file": "/data/lines.txt",
    "topic": "lines",
}
_STATE = {"state": "RUNNING", "worker_id": "10.0.0.5:8083", "version": "4.3.1"}
STATUS_EXAMPLE: Shape = {"name": "lines", "connector": _STATE, "tasks": [{"id": 0, **_STATE}], "type": "source"}

NOTIFICATIONS_EXAMPLE: Shape = {
    "notifications": [
        {
            "sequence": 1795244592289001,
            "task": 0,
            "id": "orders-again",
            "aggregate_type": "Incremental Snapshot",
            "type": "STARTED",
            "additional_data": {"connector_name": "dbserver1", "data_collections": "public.orders"},
            "timestamp": 1795244592289,
        }
    ]
}

#: What each status of a refusal means, and a message.
ERROR_EXAMPLES: dict[int, tuple[str, str]] = {
    400: ("The request is wrong, or the configuration is", "Connector configuration is invalid and contains the following 1 error(s): …"),
    401: ("No user, or a wrong password", "User cannot access the resource."),
    403: ("Switched off in the worker's properties, or a page of another origin asks for a change", "Topic tracking is disabled."),
    404: ("There is no such thing", "Connector lines not found"),
    406: ("The client takes no JSON", "HTTP 406 Not Acceptable"),
    408: ("The body did not come", "The request's body did not come: nothing of it for 30 s."),
    409: ("It exists, or the worker is between two states", "Connector lines already exists"),
    413: ("The body is too long", "The request's body is longer than 16777216 bytes, the most that this worker takes."),
    414: ("The address is too long", "HTTP 414 URI Too Long"),
    415: ("The body is no JSON", "HTTP 415 Unsupported Media Type"),
    429: ("Too many logins from this address have failed", "Too many logins from this address have failed. Try again in some seconds."),
    431: ("The headers are too long", "HTTP 431 Request Header Fields Too Large"),
    500: ("The worker failed, or took too long", "Request timed out. The worker is currently …"),
    503: ("No task runs that could take it; try again", "No task of connector shop runs on this worker just now (task 0 is RESTARTING). …"),
}

_TEXT: Shape = {"type": "string"}
_TEXT_OR_NULL: Shape = {"type": ["string", "null"]}
_NUMBER: Shape = {"type": "integer"}
_KIND: Shape = {"type": "string", "enum": ["source", "sink", "unknown"]}


def _object(optional: tuple[str, ...] = (), **properties: Shape) -> Shape:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(of: Shape) -> Shape:
    return {"type": "array", "items": of}


_STATE_FIELDS: dict[str, Shape] = {
    "state": {"type": "string", "enum": ["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING"]},
    "worker_id": _TEXT,
    "version": _TEXT_OR_NULL,
    "trace": {"type": "string", "description": "Why it failed; left out otherwise"},
}
_SNAPSHOT = _object(
    ("estimated_rows",),
    state={"type": "string", "enum": ["RUNNING", "COMPLETED"], "description": "Of a snapshot that takes long; left out otherwise"},
    rows=_NUMBER,
    estimated_rows=_NUMBER,
    tables=_list(
        _object(
            ("estimated_rows", "rows_per_second", "seconds_left"),
            table=_TEXT,
            state={"type": "string", "enum": ["PENDING", "RUNNING", "COMPLETED"]},
            rows=_NUMBER,
            estimated_rows=_NUMBER,
            rows_per_second={"type": "number"},
            seconds_left=_NUMBER,
        )
    ),
)
_TASK_ID = _object(connector=_TEXT, task=_NUMBER)
_MORE: dict[str, Shape] = {"additional-data": {"type": "object"}}
_CONFIG: Shape = {
    "type": "object",
    "description": "Properties; numbers and booleans are kept as their text.",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
_OFFSET = _object(partition={"type": ["object", "null"]}, offset={"type": ["object", "null"]})
_STATUS = _object(
    name=_TEXT, connector=_object(("trace",), **_STATE_FIELDS), tasks=_list({"$ref": "#/components/schemas/TaskState"}), type=_KIND
)
_INFO = _object(name=_TEXT, config={"type": "object", "additionalProperties": _TEXT}, tasks=_list(_TASK_ID), type=_KIND)
_KEY = _object(
    name=_TEXT,
    type={"type": "string", "enum": ["BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]},
    required={"type": "boolean"},
    default_value=_TEXT_OR_NULL,
    importance={"type": "string", "enum": ["HIGH", "MEDIUM", "LOW"]},
    documentation=_TEXT_OR_NULL,
    group=_TEXT_OR_NULL,
    order_in_group=_NUMBER,
    width={"type": "string", "enum": ["NONE", "SHORT", "MEDIUM", "LONG"]},
    display_name=_TEXT,
    dependents=_list(_TEXT),
)
_VALUE = _object(name=_TEXT, value=_TEXT_OR_NULL, recommended_values=_list(_TEXT_OR_NULL), errors=_list(_TEXT), visible={"type": "boolean"})

SCHEMAS: dict[str, Shape] = {
    "Error": _object(error_code=_NUMBER, message=_TEXT),
    "ServerInfo": _object(version=_TEXT, commit=_TEXT, kafka_cluster_id=_TEXT),
    "Health": _object(status={"type": "string", "enum": ["healthy", "starting", "unhealthy"]}, message=_TEXT),
    "Config": _CONFIG,
    "CreateConnector": {
        **_object(
            ("initial_state",),
            name={"type": "string", "minLength": 1, "description": "Blanks at its ends are taken away"},
            config={"$ref": "#/components/schemas/Config"},
            initial_state={"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"], "default": "RUNNING"},
        ),
        "additionalProperties": False,
    },
    "ConnectorInfo": _INFO,
    "ConnectorStatus": _STATUS,
    "Connectors": {
        "oneOf": [
            _list(_TEXT),
            {
                "type": "object",
                "description": "With `expand`: for each connector what was asked for",
                "additionalProperties": _object(
                    ("info", "status"),
                    info={"$ref": "#/components/schemas/ConnectorInfo"},
                    status={"$ref": "#/components/schemas/ConnectorStatus"},
                ),
            },
        ]
    },
    "TaskInfo": _object(id=_TASK_ID, config={"type": "object", "additionalProperties": _TEXT}),
    "TaskState": _object(("trace", "snapshot"), id=_NUMBER, snapshot=_SNAPSHOT, **_STATE_FIELDS),
    "Topics": {"type": "object", "additionalProperties": _object(topics=_list(_TEXT))},
    "Offsets": _object(offsets=_list(_OFFSET)),
    "AlterOffsets": _object(
        offsets={
            "type": "array",
            "minItems": 1,
            "items": {**_object(("partition", "offset"), **_OFFSET["properties"]), "additionalProperties": False},
        }
    ),
    "Message": _object(message=_TEXT),
    "Signal": {
        **_object(
            ("id", "data", "additional-data"),
            id={"type": "string", "minLength": 1, "description": "Notifications bear it; made up when left out"},
            type={"type": "string", "minLength": 1, "description": "Such as execute-snapshot"},
            data={"type": "object"},
            **_MORE,
        ),
        "additionalProperties": False,
    },
    "SignalTaken": _object(id=_TEXT),
    "Notifications": _object(
        notifications=_list(
            _object(
                sequence={"type": "integer", "description": "Grows from one notification to the next"},
                task=_NUMBER,
                id=_TEXT,
                aggregate_type=_TEXT,
                type=_TEXT,
                additional_data={"type": "object", "additionalProperties": _TEXT},
                timestamp={"type": "integer", "description": "Epoch milliseconds"},
            )
        )
    ),
    "Plugin": _object(
        ("version",),
        **{
            "class": _TEXT,
            "type": {"type": "string", "enum": ["sink", "source", "transformation", "predicate", "converter", "header_converter"]},
            "version": _TEXT,
        },
    ),
    "ConfigKey": _KEY,
    "ConfigInfos": _object(
        name=_TEXT,
        error_count=_NUMBER,
        groups=_list(_TEXT),
        configs=_list(_object(definition={"oneOf": [{"$ref": "#/components/schemas/ConfigKey"}, {"type": "null"}]}, value=_VALUE)),
    ),
    "LoggerLevel": _object(level=_TEXT, last_modified={"type": ["integer", "null"], "description": "Epoch milliseconds"}),
    "SetLevel": _object(level={"type": "string", "enum": ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"]}),
}


#: A path that cannot be read, a head that is too long, a client that may not call or wants no JSON, a page of a foreign origin, too many
#: failed logins, a request that took too long.
_ALWAYS = (400, 401, 403, 406, 414, 429, 431, 500)
_BODY = (408, 413, 415)


def _ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


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
    """What an operation answers: successes by status (None is an answer without a body), and statuses of refusals in addition to the
    common ones."""

    successes: dict[int, Shape | None]
    refusals: Sequence[int] = ()
    example: Any = None
    media_type: str = "application/json"


_INFO_EXAMPLE = {
    "name": "lines",
    "config": {**CONFIG_EXAMPLE, "name": "lines"},
    "tasks": [{"connector": "lines", "task": 0}],
    "type": "source",
}
_LEVEL = {"level": "INFO", "last_modified": None}
_CONNECTOR = "/connectors/{connector}"

_OPERATIONS: dict[tuple[str, str], _Operation] = {
    ("get", "/"): _Operation({200: _ref("ServerInfo")}, (), {"version": "4.3.1", "commit": "unknown", "kafka_cluster_id": "4L6g3nShT"}),
    ("get", "/health"): _Operation({200: _ref("Health"), 503: _ref("Health")}, (), {"status": "healthy", "message": "Worker has …"}),
    ("get", "/connectors"): _Operation({200: _ref("Connectors")}, (), ["lines"]),
    ("post", "/connectors"): _Operation({201: _ref("ConnectorInfo")}, (*_BODY, 409), _INFO_EXAMPLE),
    ("get", _CONNECTOR): _Operation({200: _ref("ConnectorInfo")}, (404, 409), _INFO_EXAMPLE),
    ("delete", _CONNECTOR): _Operation({204: None}, (404, 409)),
    ("get", f"{_CONNECTOR}/config"): _Operation({200: _ref("Config")}, (404, 409), CONFIG_EXAMPLE),
    ("put", f"{_CONNECTOR}/config"): _Operation({200: _ref("ConnectorInfo"), 201: _ref("ConnectorInfo")}, (*_BODY, 409), _INFO_EXAMPLE),
    ("patch", f"{_CONNECTOR}/config"): _Operation({200: _ref("ConnectorInfo")}, (*_BODY, 404, 409), _INFO_EXAMPLE),
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
    """Return the description of an application's routes.

    Args:
        with_passwords: whether the worker asks for basic authentication.
    """
    found: Shape = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
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


_DESCRIPTION = (
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


_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"


@cache
def _page() -> str:
    return files("rest_api").joinpath("docs.html").read_text(encoding="utf-8")


def docs_page() -> Response:
    """Return the page, with a policy that keeps it from loading or calling anything but this worker."""
    return HTMLResponse(_page(), headers={"content-security-policy": _POLICY})
