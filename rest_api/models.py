"""Answers: their JSON in the reference's order of fields (`runtime/rest/entities/*.java`, observed on Connect 4.3), and refusals, which all
are `{"error_code": status, "message": text}` (`ErrorMessage.java`, `ConnectExceptionMapper.java`).

Two kinds of refusals differ by a header only: what the reference's container refuses before a resource runs (404, 405, 406, 413, 415)
carries no content type; what a resource refuses is `application/json`.
"""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from connect_py.api.config import ConfigKey, ConfigType, ConfigValue, text_of
from connect_py.api.storage import Status
from connect_py.errors import ConfigError, ConnectError, RestError
from connect_py.herder.base import ConfigInfos, ConnectorInfo, ConnectorStatus, OffsetEntry, PluginInfo, TaskInfo
from connect_py.log.levels import LoggerLevel
from connect_py.log.redact import bounded, scrub

Json = dict[str, Any]


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Compact UTF-8 JSON with the reference's content type, which names no character set."""
    body = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, {**(headers or {}), "content-type": "application/json"})


def connector_info(info: ConnectorInfo) -> Json:
    """Return the JSON of ConnectorInfo.java."""
    tasks = [{"connector": info.name, "task": task} for task in info.tasks]
    return {"name": info.name, "config": dict(info.config), "tasks": tasks, "type": info.type}


def task_info(connector: str, info: TaskInfo) -> Json:
    """Return the JSON of TaskInfo.java."""
    return {"id": {"connector": connector, "task": info.task}, "config": dict(info.config)}


def state(status: Status) -> Json:
    """Return the JSON of ConnectorStateInfo.AbstractState: the version may be null, the trace is left out when there is none."""
    result: Json = {"state": status.state, "worker_id": status.worker_id, "version": status.version}
    if status.trace:
        result["trace"] = status.trace
    if status.restarts is not None:
        result["restarts"] = dict(status.restarts)
    return result


def task_state(task: int, status: Status) -> Json:
    """Return the JSON of ConnectorStateInfo.TaskState."""
    return {"id": task, **state(status)}


def connector_status(status: ConnectorStatus) -> Json:
    """Return the JSON of ConnectorStateInfo.java; tasks by number."""
    tasks = [
        task_state(task, one) | ({"snapshot": status.snapshots[task]} if task in status.snapshots else {})
        for task, one in sorted(status.tasks.items())
    ]
    return {"name": status.name, "connector": state(status.connector), "tasks": tasks, "type": status.type}


def offsets(entries: Sequence[OffsetEntry]) -> Json:
    """Return the JSON of ConnectorOffsets.java."""
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in entries]}


def plugin_info(info: PluginInfo) -> Json:
    """Return the JSON of PluginInfo.java: a plugin without a version shows none."""
    result: Json = {"class": info.class_name, "type": info.type}
    if info.version is not None:
        result["version"] = info.version
    return result


def config_key(key: ConfigKey) -> Json:
    """Return the JSON of ConfigKeyInfo.java."""
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.required,
        "default_value": text_of(key.default, key.type),
        "importance": key.importance.value,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
    }


def config_value(key: ConfigKey | None, value: ConfigValue) -> Json:
    """Return the JSON of ConfigValueInfo.java."""
    type_ = key.type if key is not None else ConfigType.STRING
    return {
        "name": value.name,
        "value": text_of(value.value, type_),
        "recommended_values": [text_of(each, type_) for each in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def config_infos(infos: ConfigInfos) -> Json:
    """Return the JSON of ConfigInfos.java."""
    pairs = [{"definition": config_key(k) if k is not None else None, "value": config_value(k, v)} for k, v in infos.configs]
    return {"name": infos.name, "error_count": infos.error_count, "groups": list(infos.groups), "configs": pairs}


def logger_level(level: LoggerLevel) -> Json:
    """Return the JSON of LoggerLevel.java."""
    return {"level": level.level, "last_modified": level.last_modified}


#: What a request gets that waits while the worker ends.
ENDING = "The worker is shutting down. What was asked for may have been done or not; ask again when a worker answers."


def error_response(status: int, message: str) -> Response:
    """Return the answer of a resource that refuses."""
    return json_response({"error_code": status, "message": message}, status)


def container_error(status: int, message: str | None = None) -> Response:
    """Return the answer of the container before any resource: no content type, and `HTTP 404 Not Found` where nothing better is known."""
    text = message or f"HTTP {status} {http.HTTPStatus(status).phrase}"
    return Response(orjson.dumps({"error_code": status, "message": text}), status)


def on_connect_error(request: Request, error: Exception) -> Response:
    """Return the answer to an error that this project raised on purpose: RestError knows its status, an invalid configuration is 400, the
    rest 500."""
    status = error.status if isinstance(error, RestError) else 400 if isinstance(error, ConfigError) else 500
    return error_response(status, bounded(scrub(str(error))))


CONNECT_ERRORS: type[Exception] = ConnectError
