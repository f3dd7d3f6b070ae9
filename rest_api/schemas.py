"""Shapes of bodies and answers as JSON Schema, for /openapi.json (`runtime/rest/entities/*.java`). `models.py` writes the answers."""

from __future__ import annotations

from typing import Any

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
