"""A herder without Kafka, processes or clocks: connectors are entries of a dictionary, and states change at once.

It follows the rules that the `Herder` protocol states and answers with Connect's texts, so that the REST layer can be driven by anything
from a unit test to a property test. One lock; any thread may call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api.config import ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance, between, non_empty_without_control_characters
from connect_py.api.doctor import Diagnosis, Finding, Person
from connect_py.api.storage import Status, TargetState
from connect_py.api.tables import SourceTable, SourceTables
from connect_py.api.task import MetricGroup
from connect_py.errors import AlreadyExistsError, BadRequestError, NotFoundError
from connect_py.herder import signals
from connect_py.herder.base import (
    ConfigInfos,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    OffsetEntry,
    Page,
    PluginInfo,
    ServerInfo,
    TaskInfo,
)
from connect_py.herder.secret_values import hidden, restored
from connect_py.herder.session_key import InternalSignature
from connect_py.herder.signals import Notifications
from connect_py.log.redact import HIDDEN, is_secret_name
from connect_py.metrics.worker import WorkerMetrics

WORKER_ID = "127.0.0.1:8083"
CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_STATES = {TargetState.STARTED: "RUNNING", TargetState.PAUSED: "PAUSED", TargetState.STOPPED: "STOPPED"}


def definition() -> ConfigDef:
    """Return properties of the one connector class that this herder knows."""
    return ConfigDef(
        (
            ConfigKey("name", importance=Importance.HIGH, group="Common", order=1, validator=non_empty_without_control_characters),
            ConfigKey("connector.class", importance=Importance.HIGH, group="Common", order=2),
            ConfigKey("tasks.max", ConfigType.INT, 1, Importance.HIGH, group="Common", order=3, validator=between(1)),
            ConfigKey("topic", importance=Importance.HIGH),
            ConfigKey("secret", ConfigType.PASSWORD, None),
        )
    )


@dataclass
class _Connector:
    config: Mapping[str, str]
    state: TargetState
    topics: list[str] = field(default_factory=list)
    offsets: list[OffsetEntry] = field(default_factory=list)


class _MemoryPage:
    """Implements `Page`; every list is whole, and has the number 1."""

    def __init__(self, herder: MemoryHerder) -> None:
        self._herder = herder

    def state(self, since: int | None) -> Mapping[str, Any]:
        found = {name: self.connector(name) for name in self._herder.connectors()}
        return {"seq": 1, "full": True, "worker": WORKER_ID, "connectors": found, "gone": []}

    def connector(self, name: str) -> Mapping[str, Any]:
        status = self._herder.connector_status(name)
        states = {task.state: 1 for task in status.tasks.values()}
        return {"name": name, "class": CLASS, "type": "source", "state": status.connector.state, "tasks": states}

    def history(self, name: str, seconds: int) -> Mapping[str, Any]:
        return {"tasks": {}, "began": 0}

    def log(self, name: str, since: str) -> Mapping[str, Any]:
        return {"lines": [], "next": "0"}

    def log_more(self, name: str, seconds: int) -> None:
        self._herder.connector_info(name)
        self._herder.logged_more.append((name, seconds))

    def config(self, name: str) -> Mapping[str, str]:
        return hidden(self._herder.connector_info(name).config, definition())

    def put_config(self, name: str, config: Mapping[str, str | None], *, may_replace: bool) -> tuple[bool, Mapping[str, str]]:
        stored = self._herder.connector_info(name).config if name in self._herder.connectors() else {}
        created, info = self._herder.put_connector(name, restored(config, stored), may_replace=may_replace)
        return created, hidden(info.config, definition())

    def validate(self, config: Mapping[str, str | None], *, connects: bool) -> ConfigInfos:
        return self._herder.validate(config)

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        return self._herder.doctor(config)

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        return self._herder.list_tables(config)

    def verify(self, name: str, tables: Sequence[str], *, topics: bool = False) -> None:
        self._herder.connector_info(name)
        self._herder.verifications[name] = {"state": "running", "tables": list(tables), "topics": topics, "results": [], "error": None}

    def verification(self, name: str) -> Mapping[str, Any] | None:
        self._herder.connector_info(name)
        return self._herder.verifications.get(name)

    def cancel_verification(self, name: str) -> None:
        self._herder.connector_info(name)
        if name in self._herder.verifications:
            self._herder.verifications[name]["state"] = "cancelled"

    def worker(self) -> Mapping[str, Any]:
        return {"version": "4.3.1", "worker": WORKER_ID, "cluster": "memory", "workers": {}, "properties": []}


class MemoryHerder:
    """Implements `Herder`."""

    def __init__(self) -> None:
        self._notifications = Notifications()
        self._lock = threading.RLock()
        self._connectors: dict[str, _Connector] = {}
        #: What `PUT /admin/loggers/{logger}?scope=cluster` asked for.
        self.logger_levels: list[tuple[str, str]] = []
        #: For which connectors the page has asked to log more, and for how many seconds.
        self.logged_more: list[tuple[str, int]] = []
        #: What the page has asked to compare, by connector; nothing ever ends.
        self.verifications: dict[str, dict[str, Any]] = {}
        #: What `GET /health` answers.
        self.condition = Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def server_info(self) -> ServerInfo:
        return ServerInfo("4.3.1", "unknown", "memory")

    def health(self) -> Health:
        return self.condition

    def connectors(self) -> Sequence[str]:
        with self._lock:
            return list(self._connectors)

    def _get(self, name: str, unknown: str) -> _Connector:
        with self._lock:
            found = self._connectors.get(name)
        if found is None:
            raise NotFoundError(unknown)
        return found

    def _tasks(self, found: _Connector) -> list[int]:
        return [] if found.state is TargetState.STOPPED else list(range(int(found.config.get("tasks.max", "1"))))

    def _info(self, name: str, found: _Connector) -> ConnectorInfo:
        return ConnectorInfo(name, found.config, self._tasks(found), "source")

    def connector_info(self, name: str) -> ConnectorInfo:
        return self._info(name, self._get(name, f"Connector {name} not found"))

    def connector_status(self, name: str) -> ConnectorStatus:
        found = self._get(name, f"No status found for connector {name}")
        status = Status(_STATES[found.state], WORKER_ID, version="4.3.1")
        return ConnectorStatus(name, status, dict.fromkeys(reversed(self._tasks(found)), status), "source")

    def task_status(self, name: str, task: int) -> Status:
        unknown = f"No status found for task {name}-{task}"
        found = self._get(name, unknown)
        if task not in self._tasks(found):
            raise NotFoundError(unknown)
        return Status(_STATES[found.state], WORKER_ID, version="4.3.1")

    def task_infos(self, name: str) -> Sequence[TaskInfo]:
        found = self._get(name, f"Connector {name} not found")
        return [TaskInfo(task, {**found.config, "task.class": "FileStreamSourceTask"}) for task in self._tasks(found)]

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        submitted = config.get("connector.class")
        if submitted is None:
            shown = ", ".join(f"{k}={HIDDEN if is_secret_name(k) else 'null' if v is None else v}" for k, v in config.items())
            raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
        if submitted not in (CLASS, "FileStreamSource", "FileStreamSourceConnector"):
            raise BadRequestError(f"No connector class matches {submitted}; known are: {CLASS}.")
        keys = definition()
        values: list[ConfigValue] = keys.validate(config)
        pairs = [(keys.keys[value.name], value) for value in values]
        return ConfigInfos(submitted, sum(len(value.errors) for value in values), keys.groups(), pairs)

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        infos = self.validate(config)
        errors = [(value.name, error) for _, value in infos.configs for error in value.errors]
        return Diagnosis([Finding("configuration", error, "", Person.YOU, advice=f"Correct {name}.") for name, error in errors])

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        self.validate(config)
        table = SourceTable("public.a", True, 7, "public\\.a", (0,))
        return SourceTables("table.include.list", ["public.*"], ["table.exclude.list"], [table])

    def _checked(self, config: Mapping[str, str | None]) -> dict[str, str]:
        infos = self.validate(config)
        errors = [error for _, value in infos.configs for error in value.errors]
        errors += [f"Null value can not be supplied as the configuration value of {name}." for name, v in config.items() if v is None]
        if errors:
            listed = "\n".join(errors)
            raise BadRequestError(
                f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{listed}\n"
                "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
            )
        return {name: value for name, value in config.items() if value is not None}

    def put_connector(
        self, name: str, config: Mapping[str, str | None], *, may_replace: bool, state: TargetState | None = None
    ) -> tuple[bool, ConnectorInfo]:
        checked = self._checked(config)
        with self._lock:
            old = self._connectors.get(name)
            if old is not None and not may_replace:
                raise AlreadyExistsError(f"Connector {name} already exists")
            kept = old or _Connector({}, state or TargetState.STARTED, [checked["topic"]])
            self._connectors[name] = replace(kept, config=checked)
            info = self._info(name, self._connectors[name])
        return old is None, info if old is not None else replace(info, tasks=[])

    def patch_connector(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        merged: dict[str, str | None] = {**self.connector_info(name).config, **patch}
        return self.put_connector(name, {k: v for k, v in merged.items() if v is not None}, may_replace=True)[1]

    def delete_connector(self, name: str) -> None:
        self._get(name, f"Connector {name} not found")
        with self._lock:
            self._connectors.pop(name, None)

    def set_target_state(self, name: str, state: TargetState) -> None:
        self._get(name, f"Unknown connector {name}").state = state

    def restart_connector(self, name: str) -> None:
        self._get(name, f"Unknown connector: {name}")

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        self._get(name, f"Unknown connector: {name}")
        status = self.connector_status(name)
        if only_failed:
            return status
        restarting = replace(status.connector, state="RESTARTING")
        return replace(status, connector=restarting, tasks=dict.fromkeys(status.tasks, restarting) if include_tasks else status.tasks)

    def restart_task(self, name: str, task: int) -> None:
        if task not in self._tasks(self._get(name, f"Unknown connector: {name}")):
            raise NotFoundError(f"Unknown task: {name}-{task}")

    def topics(self, name: str) -> Sequence[str]:
        found = self._connectors.get(name)
        return list(found.topics) if found else []

    def reset_topics(self, name: str) -> None:
        if name in self._connectors:
            self._connectors[name].topics.clear()

    def offsets(self, name: str) -> Sequence[OffsetEntry]:
        return list(self._get(name, f"Connector {name} not found").offsets)

    def send_signal(self, name: str, signal: Mapping[str, Any]) -> None:
        """Taken by a running connector, which answers at once. Raises NotFoundError, RestError 409."""
        found = self._get(name, f"Connector {name} not found")
        signals.require_started(name, found.state)
        self._notifications.add(
            name,
            0,
            {"id": signal["id"], "aggregate_type": "Signal", "type": signal["type"], "additional_data": {}, "timestamp": 0},
        )

    def notifications(self, name: str, since: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """Return what signals left. Raises NotFoundError."""
        self._get(name, f"Connector {name} not found")
        return self._notifications.of(name, since, limit)

    def _stopped(self, name: str) -> _Connector:
        found = self._get(name, f"Connector {name} not found")
        if found.state is not TargetState.STOPPED:
            raise BadRequestError(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
                f"connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )
        return found

    def alter_offsets(self, name: str, offsets: Sequence[OffsetEntry]) -> str:
        found = self._stopped(name)
        for partition, offset in offsets:
            found.offsets = [entry for entry in found.offsets if entry[0] != partition]
            if offset is not None:
                found.offsets.append((partition, offset))
        return "The offsets for this connector have been altered successfully"

    def reset_offsets(self, name: str) -> str:
        self._stopped(name).offsets.clear()
        return "The offsets for this connector have been reset successfully"

    def plugins(self) -> Sequence[PluginInfo]:
        return [
            PluginInfo(CLASS, "source", "4.3.1"),
            PluginInfo("org.apache.kafka.connect.json.JsonConverter", "converter", None),
        ]

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[ConfigKey]:
        if plugin not in (CLASS, "FileStreamSource", "FileStreamSourceConnector"):
            raise NotFoundError(f"Unknown plugin {plugin}.")
        return list(definition().keys.values())

    def metrics(self) -> Sequence[MetricGroup]:
        """Return the metrics of a worker that has just begun."""
        return WorkerMetrics().groups({}, "0", "memory:0")

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        raise BadRequestError("Internal request missing required signature")

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        raise BadRequestError("Internal request missing required signature")

    def page(self) -> Page:
        return _MemoryPage(self)

    def answer_worker(self, question: bytes, signature: InternalSignature | None) -> object:
        raise BadRequestError("Internal request missing required signature")

    def put_logger_level(self, namespace: str, level: str) -> None:
        self.logger_levels.append((namespace, level))
