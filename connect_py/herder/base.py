"""Define what the REST layer asks of a herder, and the values it gets (`runtime/Herder.java`, `runtime/rest/entities`).

Methods block and may be called from any thread; a herder does its own work on its own thread and answers within
`REQUEST_TIMEOUT_SECONDS` or raises RestError. A refusal is one of the RestError classes; ConfigError means an invalid configuration
(the REST layer answers 400); any other exception is a defect (500).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from connect_py.api.config import ConfigKey, ConfigValue
from connect_py.api.doctor import Diagnosis
from connect_py.api.storage import Status, TargetState
from connect_py.api.tables import SourceTables
from connect_py.api.task import MetricGroup
from connect_py.errors import ConflictError
from connect_py.herder.session_key import InternalSignature

#: ConnectResource's default request timeout (RestServer.java, DEFAULT_REST_REQUEST_TIMEOUT_MS).
REQUEST_TIMEOUT_SECONDS = 90.0


@dataclass(frozen=True)
class ConnectorInfo:
    """A connector as clients see it: raw configuration (placeholders unresolved), task numbers, source | sink | unknown."""

    name: str
    config: Mapping[str, str]
    tasks: Sequence[int]
    type: str


@dataclass(frozen=True)
class TaskInfo:
    """A task's raw configuration."""

    task: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class ConnectorStatus:
    """States of a connector and its tasks, by task number.

    Attributes:
        snapshots: how far snapshots are, of tasks that run here and have one under way (`connect_py.metrics.worker`).
    """

    name: str
    connector: Status
    tasks: Mapping[int, Status]
    type: str
    snapshots: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class PluginInfo:
    """A plugin: Java class name, sink | source | transformation | predicate | converter | header_converter, version or None."""

    class_name: str
    type: str
    version: str | None


@dataclass(frozen=True)
class ConfigInfos:
    """Result of a validation.

    Attributes:
        name: the connector class as it was submitted.
        error_count: as Connect counts.
        groups: in order.
        configs: (definition or None, value) pairs in Connect's order.
        warnings: what is no error and most likely a mistake, such as a name that nothing reads. Connect has no such thing.
    """

    name: str
    error_count: int
    groups: Sequence[str]
    configs: Sequence[tuple[ConfigKey | None, ConfigValue]]
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class ServerInfo:
    """Answer of GET /."""

    version: str
    commit: str
    kafka_cluster_id: str


@dataclass(frozen=True)
class Health:
    """Answer of GET /health (KIP-1017): healthy | starting | unhealthy."""

    status: str
    message: str


#: One entry of GET/PATCH offsets: (partition, offset or None), in the shape that clients see. A client may leave the partition out, too.
OffsetEntry = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]


class MisdirectedError(ConflictError):
    """Another worker of the group has to answer the request.

    Attributes:
        find: gives that worker's address, ending with a slash; None while it is not known. It may be another one the next time.
        who: what it is to the group, for messages.
    """

    def __init__(self, find: Callable[[], str | None], who: str) -> None:
        super().__init__("Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.")
        self.find = find
        self.who = who


class Page(Protocol):
    """What the page of the worker asks, in addition to what every client may.

    Everything but `put_config`, `doctor`, `list_tables` and a validation that connects is answered from the memory of this worker, and of
    the workers of its group whose tasks it is about; without a request to Kafka or a database. No answer holds a secret: ``[hidden]`` is in
    its place, and means the stored value where a client sends it back. Answers are JSON, in the shapes of docs/ui.md.
    """

    def state(self, since: int | None) -> Mapping[str, Any]:
        """Return all connectors, or with the `seq` of an earlier answer those that have changed since."""
        ...

    def connector(self, name: str) -> Mapping[str, Any]:
        """Return everything about one connector. Raises NotFoundError."""
        ...

    def history(self, name: str, seconds: int) -> Mapping[str, Any]:
        """Return what the connector's tasks measured, at least so many seconds back where that is kept."""
        ...

    def log(self, name: str, since: str) -> Mapping[str, Any]:
        """Return the last lines that the connector's tasks have logged, and what to ask for next.

        Args:
            since: `next` of an answer, for the lines after it; or a number, for lines that are younger.

        Raises:
            BadRequestError: it is neither.
        """
        ...

    def log_more(self, name: str, seconds: int) -> None:
        """Have a connector's tasks, on whichever worker, log DEBUG for so long; 0 ends it. Raises NotFoundError."""
        ...

    def config(self, name: str) -> Mapping[str, str]:
        """Return a connector's configuration, secrets hidden whatever the worker's properties say. Raises NotFoundError."""
        ...

    def put_config(self, name: str, config: Mapping[str, str | None], *, may_replace: bool) -> tuple[bool, Mapping[str, str]]:
        """Store a configuration; returns whether the connector is new, and what `config` shows. Raises as `Herder.put_connector`."""
        ...

    def validate(self, config: Mapping[str, str | None], *, connects: bool) -> ConfigInfos:
        """Check a configuration; without `connects` only the rules of its properties. Raises as `Herder.validate`."""
        ...

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        """Look at everything that a configuration needs. Raises as `Herder.doctor`."""
        ...

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        """Return the tables that a source could capture. Raises as `Herder.list_tables`."""
        ...

    def verify(self, name: str, tables: Sequence[str], *, topics: bool = False) -> None:
        """Begin to compare the lakehouse tables of a sink or a source with their sources; `verification` shows what comes of it.

        Args:
            tables: whole names; none means all.
            topics: whether the topics in between are compared with the source, too; they are read from their beginning.

        Raises:
            NotFoundError: no such connector.
            ConflictError: another comparison runs on this worker.
            RestError: 503, it cannot be begun.
        """
        ...

    def verification(self, name: str) -> Mapping[str, Any] | None:
        """Return the last comparison that `verify` has begun; None when there was none. Raises NotFoundError."""
        ...

    def cancel_verification(self, name: str) -> None:
        """End the comparison of a connector's tables, if one runs. Raises NotFoundError."""
        ...

    def worker(self) -> Mapping[str, Any]:
        """Return what this worker is, its properties, and the other workers of its group."""
        ...


class Herder(Protocol):
    """Looks after connectors and tasks."""

    def server_info(self) -> ServerInfo: ...
    def health(self) -> Health: ...
    def connectors(self) -> Sequence[str]: ...
    def connector_info(self, name: str) -> ConnectorInfo:
        """Raises NotFoundError `Connector C not found`."""
        ...

    def connector_status(self, name: str) -> ConnectorStatus:
        """Raises NotFoundError `No status found for connector C`."""
        ...

    def task_status(self, name: str, task: int) -> Status:
        """Raises NotFoundError `No status found for task C-N`."""
        ...

    def task_infos(self, name: str) -> Sequence[TaskInfo]: ...
    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Check a connector configuration, against live servers too.

        Raises:
            BadRequestError: no connector.class; NotFound-like RestError for an unknown one.
        """
        ...

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        """Look at everything that a configuration needs: itself, its servers and Kafka (docs/doctor.md). Answers within 30 s, changes
        nothing; no text of the answer holds a secret.

        Raises:
            BadRequestError: no connector.class; NotFound-like RestError for an unknown one.
        """
        ...

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        """Return the tables that a source could capture, and which it does. Answers within 30 s, changes nothing; no text of the answer
        holds a secret.

        Raises:
            BadRequestError: no connector.class, one that has no tables, a wrong configuration, or a server that refuses; NotFound-like
                RestError for an unknown class.
            RestError: 504, the server has not answered in time.
        """
        ...

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        may_replace: bool,
        state: TargetState | None = None,
    ) -> tuple[bool, ConnectorInfo]:
        """Validate, then store a configuration. Returns (created, info).

        Raises:
            BadRequestError: invalid, with Connect's text that lists the errors.
            AlreadyExistsError: it exists and `may_replace` is false.
        """
        ...

    def patch_connector(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Overlay a configuration; a None removes the key (KIP-477)."""
        ...

    def delete_connector(self, name: str) -> None: ...
    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume (not waited for) or stop. Raises NotFoundError `Unknown connector C`."""
        ...

    def restart_connector(self, name: str) -> None:
        """Restart the connector instance alone and wait for it."""
        ...

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Ask for a restart (KIP-745); returns the status with RESTARTING shown for all that will be restarted."""
        ...

    def restart_task(self, name: str, task: int) -> None: ...
    def topics(self, name: str) -> Sequence[str]: ...
    def reset_topics(self, name: str) -> None: ...
    def offsets(self, name: str) -> Sequence[OffsetEntry]: ...
    def alter_offsets(self, name: str, offsets: Sequence[OffsetEntry]) -> str:
        """Returns the answer's message."""
        ...

    def reset_offsets(self, name: str) -> str:
        """Returns the answer's message."""
        ...

    def send_signal(self, name: str, signal: Mapping[str, Any]) -> None:
        """Hand a signal to the tasks of a connector (ours); returns when they have taken it.

        Args:
            signal: ``id``, ``type``, ``data``, ``additional-data``.

        Raises:
            NotFoundError: no such connector.
            BadRequestError: its tasks refuse the signal; the text says why.
            RestError: 409, it is paused or stopped; 503, no task runs just now, or it did not take the signal in time.
        """
        ...

    def notifications(self, name: str, since: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """Return what a connector's tasks have shown, oldest first (ours): the first `limit` after the number `since`, or the last ones.
        Raises NotFoundError."""
        ...

    def plugins(self) -> Sequence[PluginInfo]: ...
    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[ConfigKey]:
        """Return definitions of any plugin, by class name or alias, in a version or range of versions (KIP-891; None is whatever is there).
        Raises NotFoundError, BadRequestError."""
        ...

    def metrics(self) -> Sequence[MetricGroup]:
        """Return figures of this worker and of what runs on it; never waits for the herder's thread."""
        ...

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        """Store what another worker of the cluster has made of a connector: the configurations of its tasks.

        Args:
            configs: reads them, once the signature has been found to be right.

        Raises:
            RestError: the request is not signed by a worker of this cluster, or this worker takes no such requests.
            NotFoundError: no such connector.
        """
        ...

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        """Keep tasks of an earlier generation from writing, for another worker. Raises as `put_task_configs`."""
        ...

    def page(self) -> Page:
        """Return what the page of the worker asks."""
        ...

    def answer_worker(self, question: bytes, signature: InternalSignature | None) -> object:
        """Tell another worker what its page shows of the tasks that run here; JSON, None where nothing is known.

        Args:
            question: `connect_py.herder.other_workers`.

        Raises:
            RestError: the request is not signed by a worker of this group, or this worker has no group.
            BadRequestError: it is no question for this worker.
        """
        ...

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Have every worker of the cluster set a log level (KIP-976); not waited for. `level` is a key of `loggers.LEVELS`."""
        ...
