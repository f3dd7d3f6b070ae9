"""Answers in the reference's order of fields (`runtime/rest/entities/*.java`, observed on Connect 4.3), and refusals, which all are
`{"error_code": status, "message": text}` (`ErrorMessage.java`, `ConnectExceptionMapper.java`).

FastAPI describes what is here and does not check it: `rest_api.request.ConnectRoute` writes an answer as it is, with orjson. To have
pydantic check and write it took three times as long for `GET /connectors?expand=status&expand=info`. What the herder has in the same
shape (`ServerInfo`, `Health`, `LoggerLevel`) is answered as it is.

Two kinds of refusals differ by a header only: what the reference's container refuses before a resource runs (404, 405, 406, 413, 415)
carries no content type; what a resource refuses is `application/json`.
"""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, cast

import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict  # before 3.12 pydantic takes no other

from connect_py.api import doctor, tables
from connect_py.api.config import ConfigKey, ConfigType, ConfigValue, text_of
from connect_py.api.storage import Status
from connect_py.errors import ConfigError, ConflictError, ConnectError, RestError
from connect_py.herder import base
from connect_py.log.redact import bounded, scrub

CONFIG_EXAMPLE = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "/data/lines.txt", "topic": "lines"}


def _shown(example: Any) -> Any:
    return Field(examples=[example])


def _one_of(*texts: str) -> Any:
    return Field(json_schema_extra={"enum": list(texts)})


_Connector = Annotated[str, _shown("lines")]
Config = Annotated[Mapping[str, str | None], _shown({**CONFIG_EXAMPLE, "name": "lines"})]
_Kind = Annotated[str, _one_of("source", "sink", "unknown")]


@dataclass
class TaskId:
    """A task of a connector."""

    connector: _Connector
    task: int


@dataclass
class ConnectorInfo:
    """A connector's configuration and tasks."""

    name: _Connector
    config: Config
    tasks: list[TaskId]
    type: _Kind

    @classmethod
    def of(cls, info: base.ConnectorInfo) -> ConnectorInfo:
        """Return the answer to what the herder says."""
        return cls(info.name, dict(info.config), [TaskId(info.name, task) for task in info.tasks], info.type)


@dataclass
class TaskInfo:
    """A task's configuration."""

    id: TaskId
    config: Config


class SnapshotTable(TypedDict):
    """How far the snapshot of a table is; what is not known is left out."""

    table: str
    state: Annotated[str, _one_of("PENDING", "RUNNING", "COMPLETED")]
    rows: int
    estimated_rows: NotRequired[int]
    rows_per_second: NotRequired[float]
    seconds_left: NotRequired[int]


class Snapshot(TypedDict):
    """How far a snapshot is that takes long."""

    state: Annotated[str, _one_of("RUNNING", "PAUSED", "COMPLETED")]
    rows: int
    estimated_rows: NotRequired[int]
    paused_reason: NotRequired[Annotated[str, Field(description="Why nothing is read for now")]]
    paused_seconds: NotRequired[int]
    tables: list[SnapshotTable]


class ConnectorState(TypedDict):
    """The state of a connector or task (`ConnectorStateInfo.java`)."""

    state: Annotated[str, _one_of("RUNNING", "UNASSIGNED", "PAUSED", "STOPPED", "FAILED", "RESTARTING")]
    worker_id: Annotated[str, _shown("10.0.0.5:8083")]
    version: Annotated[str | None, _shown("4.3.1")]
    trace: NotRequired[Annotated[str, Field(description="Why it failed; left out otherwise")]]
    restarts: NotRequired[Annotated[Mapping[str, Any], Field(description="What became of failures, where failed tasks are restarted")]]


class TaskState(ConnectorState):
    """The state of a task."""

    id: int
    snapshot: NotRequired[Annotated[Snapshot, Field(description="Of one that takes long; left out otherwise")]]


@dataclass
class ConnectorStatus:
    """States of a connector and its tasks, by number."""

    name: _Connector
    connector: ConnectorState
    tasks: list[TaskState]
    type: _Kind

    @classmethod
    def of(cls, status: base.ConnectorStatus) -> ConnectorStatus:
        """Return the answer to what the herder says."""
        tasks = [task_state(task, each, status.snapshots.get(task)) for task, each in sorted(status.tasks.items())]
        return cls(status.name, _state(status.connector), tasks, status.type)


def _state(status: Status) -> ConnectorState:
    shown: ConnectorState = {"state": status.state, "worker_id": status.worker_id, "version": status.version}
    if status.trace:
        shown["trace"] = status.trace
    if status.restarts is not None:
        shown["restarts"] = dict(status.restarts)
    return shown


def task_state(task: int, status: Status, snapshot: Mapping[str, Any] | None = None) -> TaskState:
    """Return the answer to what the herder says of a task."""
    return cast(TaskState, {"id": task, **_state(status)} | ({} if snapshot is None else {"snapshot": snapshot}))


Topics = Annotated[dict[str, dict[str, Sequence[str]]], _shown({"lines": {"topics": ["lines"]}})]
Message = Annotated[dict[str, str], _shown({"message": "The offsets for this connector have been altered successfully"})]
SignalTaken = Annotated[dict[str, str], _shown({"id": "orders-again"})]


class Expanded(TypedDict, total=False):
    """What `expand` asks of a connector."""

    info: ConnectorInfo
    status: ConnectorStatus


#: Names, or with `expand` a map.
Connectors = Sequence[_Connector] | Mapping[str, Expanded]


@dataclass
class Offset:
    """Where a connector is: in a partition of its source, or in one of Kafka's."""

    partition: Annotated[Mapping[str, Any] | None, _shown({"filename": "/data/lines.txt"})]
    offset: Annotated[Mapping[str, Any] | None, _shown({"position": 8})]


@dataclass
class Offsets:
    """Offsets of a connector (`ConnectorOffsets.java`)."""

    offsets: list[Offset]


class Notification(TypedDict):
    """What a source's snapshot has told."""

    sequence: Annotated[int, Field(description="Grows from one notification to the next", examples=[1795244592289001])]
    task: int
    id: Annotated[str, _shown("orders-again")]
    aggregate_type: Annotated[str, _shown("Incremental Snapshot")]
    type: Annotated[str, _shown("STARTED")]
    additional_data: Annotated[dict[str, str], _shown({"connector_name": "dbserver1", "data_collections": "public.orders"})]
    timestamp: Annotated[int, Field(description="Epoch milliseconds", examples=[1795244592289])]


@dataclass
class Notifications:
    """Notifications, oldest first."""

    notifications: Sequence[Notification]


Plugin = TypedDict(
    "Plugin",
    {
        "class": Annotated[str, _shown("io.debezium.connector.postgresql.PostgresConnector")],
        "type": Annotated[str, _one_of("source", "sink", "transformation", "predicate", "converter", "header_converter")],
        "version": NotRequired[Annotated[str, _shown("3.6.1.Final")]],
    },
)


def plugin(info: base.PluginInfo) -> Plugin:
    """Return the answer of PluginInfo.java: a plugin without a version shows none."""
    shown: Plugin = {"class": info.class_name, "type": info.type}
    return shown if info.version is None else {**shown, "version": info.version}


@dataclass
class ConfigKeyInfo:
    """A property of a plugin (`ConfigKeyInfo.java`)."""

    name: Annotated[str, _shown("tasks.max")]
    type: Annotated[str, _one_of("INT", "BOOLEAN", "STRING", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")]
    required: bool
    default_value: Annotated[str | None, _shown("1")]
    importance: Annotated[str, _one_of("HIGH", "MEDIUM", "LOW")]
    documentation: str | None
    group: str | None
    order_in_group: int
    width: Annotated[str, _one_of("NONE", "SHORT", "MEDIUM", "LONG")]
    display_name: Annotated[str, _shown("Tasks max")]
    dependents: Sequence[str]

    @classmethod
    def of(cls, key: ConfigKey) -> ConfigKeyInfo:
        """Return the answer to a definition."""
        return cls(
            key.name, key.type.value, key.required, text_of(key.default, key.type), key.importance.value, key.documentation, key.group,
            key.order, key.width.value, key.display_name or key.name, list(key.dependents),
        )  # fmt: skip


@dataclass
class ConfigValueInfo:
    """A property's value and what is wrong with it (`ConfigValueInfo.java`)."""

    name: Annotated[str, _shown("tasks.max")]
    value: Annotated[str | None, _shown("1")]
    recommended_values: list[str | None]
    errors: list[str]
    visible: bool

    @classmethod
    def of(cls, key: ConfigKey | None, value: ConfigValue) -> ConfigValueInfo:
        """Return the answer to a checked value."""
        kind = key.type if key is not None else ConfigType.STRING
        recommended = [text_of(each, kind) for each in value.recommended_values]
        return cls(value.name, text_of(value.value, kind), recommended, list(value.errors), value.visible)


@dataclass
class ConfigInfo:
    """A property, and its value."""

    definition: ConfigKeyInfo | None
    value: ConfigValueInfo


@dataclass
class ConfigInfos:
    """A checked configuration (`ConfigInfos.java`)."""

    name: Annotated[str, _shown("FileStreamSource")]
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]

    @classmethod
    def of(cls, infos: base.ConfigInfos) -> ConfigInfos:
        """Return the answer to what the herder says."""
        configs = [
            ConfigInfo(None if key is None else ConfigKeyInfo.of(key), ConfigValueInfo.of(key, value)) for key, value in infos.configs
        ]
        return cls(infos.name, infos.error_count, list(infos.groups), configs)


class Finding(TypedDict):
    """One thing that is wrong, and who can mend it by what."""

    check: Annotated[str, _shown("postgres.replication")]
    severity: Annotated[str, _one_of("problem", "risk")]
    what: Annotated[str, _shown("The user 'app' has not the privilege REPLICATION, which a replication slot needs.")]
    why: Annotated[str, _shown("Without it no change is read.")]
    who: Annotated[str, _one_of("dba", "kafka-admin", "you")]
    role: Annotated[str, _shown("a superuser")]
    statements: Annotated[list[str], _shown(['ALTER ROLE "app" WITH REPLICATION;'])]
    advice: Annotated[str, _shown("Then restart the server.")]


class Diagnosis(TypedDict):
    """What is wrong with a configuration and its servers."""

    code: Annotated[int, Field(description="0 nothing was found, 1 something was, 3 not everything could be looked at")]
    findings: list[Finding]
    looked_at: Annotated[list[str], _shown(["PostgreSQL 17.2 at db:5432, database shop, 12 captured tables"])]
    unseen: Annotated[list[str], Field(description="What could not be looked at, and why")]


def diagnosis(found: doctor.Diagnosis) -> Diagnosis:
    """Return the answer to what a doctor says; `connect-py doctor --json` prints the same."""
    return {
        "code": found.code,
        "findings": [
            {
                "check": each.check,
                "severity": each.severity,
                "what": each.what,
                "why": each.why,
                "who": each.who.value,
                "role": each.role,
                "statements": list(each.statements),
                "advice": each.advice,
            }
            for each in found.findings
        ],
        "looked_at": list(found.looked_at),
        "unseen": list(found.unseen),
    }


class SourceTable(TypedDict):
    """A table, or a collection, that a source could capture."""

    name: Annotated[str, _shown("public.orders")]
    captured: bool
    rows: Annotated[int | None, Field(description="What the server estimates")]
    entry: Annotated[str | None, Field(description="What the list must have to mean this table and no other")]
    matched_by: Annotated[list[int], Field(description="Which of `entries` mean it")]
    fixed_by: Annotated[str | None, Field(description="The property because of which the list does not decide about it")]


class SourceTables(TypedDict):
    """What a source could capture."""

    property: Annotated[str, _one_of("table.include.list", "collection.include.list")]
    entries: Annotated[list[str], Field(description="The list as the configuration has it")]
    replaces: Annotated[list[str], Field(description="Properties of the configuration that cannot stand next to the list")]
    tables: list[SourceTable]
    left_out: Annotated[int, Field(description="Tables beyond the 5000 that are shown")]


def source_tables(found: tables.SourceTables) -> SourceTables:
    """Return the answer to what a source could capture."""
    return {
        "property": found.property,
        "entries": list(found.entries),
        "replaces": list(found.replaces),
        "tables": [
            {
                "name": each.name,
                "captured": each.captured,
                "rows": each.rows,
                "entry": each.entry or None,
                "matched_by": list(each.matched_by),
                "fixed_by": each.fixed_by or None,
            }
            for each in found.tables
        ],
        "left_out": found.left_out,
    }


@dataclass
class Error:
    """A refusal."""

    error_code: int
    message: str


#: What a request gets that waits while the worker ends.
ENDING = "The worker is shutting down. What was asked for may have been done or not; ask again when a worker answers."


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Compact UTF-8 JSON with the reference's content type, which names no character set."""
    return Response(orjson.dumps(content), status, {**(headers or {}), "content-type": "application/json"})


#: Of a refusal of a moment: the same request may succeed after a second.
RETRY_AFTER = {"retry-after": "1"}


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer of a resource that refuses."""
    return json_response(Error(status, message), status, headers)


def container_error(status: int) -> Response:
    """Return the answer of the container before any resource, `HTTP 404 Not Found` for one: no content type."""
    return Response(orjson.dumps(Error(status, f"HTTP {status} {http.HTTPStatus(status).phrase}")), status)


def on_connect_error(request: Request, error: Exception) -> Response:
    """Return the answer to an error that this project raised on purpose: RestError knows its status, an invalid configuration is 400, the
    rest 500."""
    status = error.status if isinstance(error, RestError) else 400 if isinstance(error, ConfigError) else 500
    return error_response(status, bounded(scrub(str(error))), RETRY_AFTER if isinstance(error, ConflictError) else None)


CONNECT_ERRORS: type[Exception] = ConnectError
