"""Answer clients' requests from the stores, or write them there (`distributed/DistributedHerder.java`).

Threads: requests run on the threads of the REST server. Reading and validating need only the stores' snapshots; whatever changes
something goes through the herder's thread, which has the rest (`connect_py.herder.applier`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from connect_py.api import ConfigKey, SinkConnector, SourceConnector
from connect_py.api.doctor import Diagnosis
from connect_py.api.storage import OWN_OFFSETS_TOPIC, ClusterConfig, RestartRequest, Status, TargetState
from connect_py.api.tables import SourceTables
from connect_py.api.task import MetricGroup
from connect_py.config.client_overrides import require_allowed
from connect_py.config.connector import CONNECTOR_CLASS, NAME, secrets_of, sink_group
from connect_py.data.java_map import in_java_order
from connect_py.errors import AlreadyExistsError, BadRequestError, ConfigError, ConflictError, ConnectError, NotFoundError, RestError
from connect_py.group.protocol import Item, TaskId
from connect_py.herder import offsets as offset_requests
from connect_py.herder import signals, validation
from connect_py.herder.applier import Applier
from connect_py.herder.base import (
    REQUEST_TIMEOUT_SECONDS,
    ConfigInfos,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    MisdirectedError,
    OffsetEntry,
    PluginInfo,
    ServerInfo,
    TaskInfo,
)
from connect_py.herder.doctor.diagnose import diagnose
from connect_py.herder.doctor.list_tables import list_tables
from connect_py.herder.other_workers import OtherWorkers
from connect_py.herder.page import VERSION, PageRequests
from connect_py.herder.secret_values import restored, without_secrets
from connect_py.herder.session_key import SessionKeySettings
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import ClientKind, ExactlyOnceSupport, connector_admin_properties, internal_properties
from connect_py.log import lines as line_logging
from connect_py.metrics.worker import ConnectorKind
from connect_py.plugins.registry import KINDS, kinds_of

log = logging.getLogger(__name__)

T = TypeVar("T")

_HEALTH_SECONDS = 10.0

#: How long the status topic may take to forget topics.
_TOPICS_RESET_SECONDS = 30.0


class ClientRequests:
    """What both herders answer: `connect_py.herder.base.Herder` but for the requests of other workers.

    Args:
        applier: runs what the requests write; it is started and stopped with this.
        modify_seconds: how long a change of offsets waits for tasks that are ending; by default as long as they may take, and a second.
    """

    def __init__(self, applier: Applier, *, modify_seconds: float | None = None) -> None:
        self._applier = applier
        self._modify_seconds = applier.worker.graceful_shutdown_seconds + 1.0 if modify_seconds is None else modify_seconds
        self._worker, self._plugins = applier.worker, applier.plugins
        self._configs, self._statuses, self._offsets, self._admin = applier.configs, applier.statuses, applier.offsets, applier.admin
        self._thread, self._tasks = applier.thread, applier.tasks
        self._variables, self._metrics, self._notifications = applier.variables, applier.metrics, applier.notifications
        self._assignment = applier.assignment
        self._modifying: set[str] = set()
        self._others = OtherWorkers(applier)
        self._page = PageRequests(applier, self.put_connector, self.doctor, self.list_tables, self._others)

    # -- life of the worker

    def start(self) -> None:
        """Start what is configured. Raises as `Applier.start`, and ConfigError for an ``inter.worker`` property."""
        SessionKeySettings.parse(self._worker.raw)
        self._applier.start()

    def begin_stop(self) -> None:
        """Ask the tasks to end; requests are answered until `stop`."""
        self._applier.begin_stop()

    def stop(self) -> None:
        """Stop everything and report it UNASSIGNED. Called after a failed `start`, too."""
        self._others.close()
        self._applier.stop()

    # -- requests: reading

    def server_info(self) -> ServerInfo:
        """Return what GET / shows."""
        return ServerInfo(VERSION, "unknown", self._applier.cluster_id)

    def health(self) -> Health:
        """Return whether the herder's thread answers (KIP-1017)."""
        try:
            self._thread.call(lambda: None, _HEALTH_SECONDS, doing="answering a health check")
        except RestError:
            stage = self._thread.stage()
            if not self._applier.ready.is_set():
                return Health("starting", f"Worker is still starting up. {stage}".rstrip())
            return Health(
                "unhealthy", f"Worker was unable to handle this request and may be unable to handle other requests. {stage}".rstrip()
            )
        return Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def metrics(self) -> Sequence[MetricGroup]:
        """Return what ``/metrics`` shows."""
        configs = self._configs.snapshot().connectors
        kinds = {name: self._kind_of(config) for name, config in configs.items()}
        return self._metrics.groups(kinds, VERSION, self._applier.worker_id)

    def _kind_of(self, config: Mapping[str, str]) -> ConnectorKind:
        name = config.get(CONNECTOR_CLASS, "unknown")
        try:
            found = self._plugins.connector(name)
        except ConnectError:
            return ConnectorKind("unknown", name, "unknown")
        return ConnectorKind(kinds_of(found)[0], found.java_name, found.version)

    def connectors(self) -> Sequence[str]:
        """Return names of all connectors."""
        return list(self._configs.snapshot().connectors)

    def connector_info(self, name: str) -> ConnectorInfo:
        """Return a connector as clients see it. Raises NotFoundError."""
        return self._info(self._configs.snapshot(), name)

    def connector_status(self, name: str) -> ConnectorStatus:
        """Return reported states. Raises NotFoundError."""
        connector = self._statuses.connector(name)
        if connector is None:
            raise NotFoundError(f"No status found for connector {name}")
        tasks = dict(sorted(self._statuses.tasks(name).items()))
        kind = self._type_of(self._configs.snapshot().connectors.get(name))
        return ConnectorStatus(name, connector, tasks, kind, self._metrics.snapshots(name))

    def task_status(self, name: str, task: int) -> Status:
        """Return a task's reported state. Raises NotFoundError."""
        status = self._statuses.task(name, task)
        if status is None:
            raise NotFoundError(f"No status found for task {name}-{task}")
        return status

    def task_infos(self, name: str) -> Sequence[TaskInfo]:
        """Return raw task configurations. Raises NotFoundError."""
        snapshot = self._configs.snapshot()
        owner = self._config_of(snapshot, name)
        configs = {number: snapshot.task_configs.get((name, number), {}) for number in snapshot.tasks(name)}
        return [TaskInfo(number, in_java_order(self._shown(config, owner))) for number, config in configs.items()]

    def topics(self, name: str) -> Sequence[str]:
        """Return topics in use. Raises RestError 403 when they are not tracked."""
        self._require_topic_tracking()
        return self._statuses.topics(name)

    def plugins(self) -> Sequence[PluginInfo]:
        """Return everything that can be loaded, in Connect's order."""
        return [PluginInfo(name, kind, plugin.version) for kind in KINDS for name, plugin in self._plugins.of_kind(kind)]

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Have every worker set a log level (KIP-976)."""
        self._configs.put_logger_level(namespace, level)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[ConfigKey]:
        """Return definitions of a plugin. Raises NotFoundError, BadRequestError."""
        try:
            name = self._plugins.resolve(plugin)
            if name is None:
                raise NotFoundError(f"Unknown plugin {plugin}.")
            found = self._plugins.load(name)
            if not kinds_of(found):
                raise BadRequestError(
                    f"Invalid plugin class {plugin}. Valid types are sink, source, converter, header_converter, transformation, predicate."
                )
            self._plugins.require_version(name, version)
        except ConfigError as error:
            raise BadRequestError(str(error)) from error
        return validation.plugin_keys(self._plugins, plugin, found)

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Check a configuration. Raises BadRequestError."""
        return self._validated(self._meant(config.get(NAME) or "", config))

    def _validated(self, config: Mapping[str, str | None]) -> ConfigInfos:
        with line_logging.scope(config.get(NAME) or "", "validate"), line_logging.hiding(secrets_of(self._plugins, config)):
            return validation.validate(self._plugins, self._worker.raw, config, self._variables)

    def doctor(self, config: Mapping[str, str | None]) -> Diagnosis:
        """Look at everything that a configuration needs. Raises BadRequestError."""
        name = config.get(NAME) or ""
        meant = self._meant(name, config)
        snapshot = self._configs.snapshot()
        is_running = name in snapshot.connectors and snapshot.target_state(name) is not TargetState.STOPPED
        with line_logging.scope(name, "doctor"), line_logging.hiding(secrets_of(self._plugins, meant)):
            return diagnose(self._plugins, self._worker.raw, meant, self._variables, is_running=is_running)

    def list_tables(self, config: Mapping[str, str | None]) -> SourceTables:
        """Return the tables that a source could capture. Raises as `Herder.list_tables`."""
        name = config.get(NAME) or ""
        meant = self._meant(name, config)
        with line_logging.scope(name, "tables"), line_logging.hiding(secrets_of(self._plugins, meant)):
            return list_tables(self._plugins, self._worker.raw, meant, self._variables)

    # -- the page of the worker

    def page(self) -> PageRequests:
        """Return what the page of the worker asks."""
        return self._page

    # -- which worker answers

    def _require_leader(self) -> None:
        """Raise MisdirectedError on other workers than the leader."""
        if not self._assignment.is_leader:
            raise MisdirectedError(lambda: self._assignment.leader_url, "the leader")

    def _at_leader(self, work: Callable[[], T], doing: str) -> T:
        """Do something on the herder's thread of the leader. Raises MisdirectedError."""
        self._assignment.await_leader(self._worker.conflict_wait_seconds)

        def guarded() -> T:
            self._require_leader()
            return work()

        return self._thread.call(guarded, doing=doing)

    def _require_settled(self) -> None:
        """Wait for the end of a rebalance, and raise ConflictError when it takes long."""
        if not self._assignment.await_settled(self._worker.conflict_wait_seconds):
            raise ConflictError(
                "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
            )

    def _misdirected(self, item: Item) -> MisdirectedError:
        """The leader knows who runs what, the others know the leader."""
        if self._assignment.is_leader:
            return MisdirectedError(lambda: self._assignment.owner_url(item), "the worker that runs it")
        return MisdirectedError(lambda: self._assignment.leader_url, "the leader")

    # -- requests: changing

    def put_connector(
        self, name: str, config: Mapping[str, str | None], *, may_replace: bool, state: TargetState | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """Validate, then store. Raises BadRequestError, AlreadyExistsError."""
        given = config.get(NAME)
        if given is not None and given != name:
            raise BadRequestError(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
        full = self._meant(name, {**config, NAME: name})
        validation.raise_if_invalid(self._validated(full))
        checked = {key: value for key, value in full.items() if value is not None}
        return self._at_leader(
            lambda: self._store_connector(name, checked, may_replace, state), f"writing the configuration of connector {name}"
        )

    def _store_connector(
        self, name: str, config: dict[str, str], may_replace: bool, state: TargetState | None
    ) -> tuple[bool, ConnectorInfo]:
        before = self._configs.snapshot()
        exists = name in before.connectors
        if exists and not may_replace:
            raise AlreadyExistsError(f"Connector {name} already exists")
        if state is None and exists and dict(before.connectors[name]) == config:
            # Connect writes it again, behind the tasks that were made of it. Once compaction has taken the first record, these tasks are to
            # the next worker those of a connector that was deleted, and nobody makes them again (KAFKA-17719). The effect is this one.
            self._configs.put_restart_request(RestartRequest(name))
        else:
            self._configs.put_connector(name, config, state)
        return not exists, ConnectorInfo(name, self._shown(config), before.tasks(name) if exists else [], self._type_of(config))

    def patch_connector(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Overlay a configuration (KIP-477). Raises NotFoundError, BadRequestError."""
        self._assignment.await_leader(self._worker.conflict_wait_seconds)
        self._require_leader()
        stored = self._config_of(self._configs.snapshot(), name)
        merged = {key: value for key, value in {**stored, **self._meant(name, patch, partial=True)}.items() if value is not None}
        validation.raise_if_invalid(self._validated(merged))
        return self._at_leader(lambda: self._store_connector(name, merged, True, None), f"writing the configuration of connector {name}")[1]

    def delete_connector(self, name: str) -> None:
        """Remove a connector. Raises NotFoundError."""

        def work() -> None:
            self._config_of(self._configs.snapshot(), name)
            self._require_unmodified(name)
            self._configs.remove_connector(name)

        self._at_leader(work, f"removing connector {name}")

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop. Raises NotFoundError."""

        def work() -> None:
            if name not in self._configs.snapshot().connectors:
                raise NotFoundError(f"Unknown connector {name}")
            if state is not TargetState.STOPPED:
                self._require_unmodified(name)
            if state is TargetState.STOPPED:
                self._configs.put_task_configs(name, [])
            self._configs.put_target_state(name, state)

        doing = f"writing the target state of connector {name}"
        if state is TargetState.STOPPED:
            self._at_leader(work, doing)
        else:
            self._thread.call(work, doing=doing)

    def restart_connector(self, name: str) -> None:
        """Restart the connector instance alone and wait for it. Raises NotFoundError, RestError."""

        def work() -> Future[None] | None:
            if name not in self._configs.snapshot().connectors:
                raise NotFoundError(f"Unknown connector: {name}")
            if not self._assignment.owns_connector(name):
                raise self._misdirected(name)
            return self._applier.run_connector(name)

        self._require_settled()
        self._wait(self._thread.call(work, doing=f"restarting connector {name}"), name)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Ask for a restart (KIP-745). Raises NotFoundError."""
        request = RestartRequest(name, include_tasks, only_failed)

        def work() -> ConnectorStatus:
            snapshot = self._configs.snapshot()
            if name not in snapshot.connectors:
                raise NotFoundError(f"Unknown connector: {name}")
            connector = self._statuses.connector(name)
            if connector is None:
                raise NotFoundError(f"Status for connector {name} not found")
            chosen, numbers = self._applier.restart_plan(request)
            tasks = self._statuses.tasks(name)
            self._configs.put_restart_request(request)
            shown = {number: _restarting(status) if number in numbers else status for number, status in tasks.items()}
            kind = self._type_of(snapshot.connectors[name])
            return ConnectorStatus(name, _restarting(connector) if chosen else connector, shown, kind)

        self._require_settled()
        return self._at_leader(work, f"restarting connector {name}")

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task. Raises NotFoundError, and ConflictError: it ran once, and no worker runs it now."""

        def work() -> None:
            snapshot = self._configs.snapshot()
            if name not in snapshot.connectors:
                raise NotFoundError(f"Unknown connector: {name}")
            if task not in snapshot.tasks(name) and 0 <= task < snapshot.max_tasks.get(name, 0):
                # the reference asks the task's owner, and finds none
                raise ConflictError(
                    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
                )
            if task not in snapshot.tasks(name):
                raise NotFoundError(f"Unknown task: {name}-{task}")
            if not self._assignment.owns_task(name, task):
                raise self._misdirected(TaskId(name, task))
            self._tasks.restart(self._applier.spec(snapshot, name, task))

        self._require_settled()
        self._thread.call(work, doing=f"restarting task {name}-{task}")

    def reset_topics(self, name: str) -> None:
        """Forget the topics in use, which shows when this returns; running tasks report theirs again with their next record.

        Connect returns before: there, a request that follows may still see the topics.

        Raises:
            RestError: 403, that is not allowed.
            RetriableError: Kafka did not take it in time; it follows when it can.
        """
        self._require_topic_tracking()
        if not self._worker.topic_tracking_reset:
            raise RestError("Topic tracking reset is disabled.", 403)
        self._statuses.delete_topics(name)
        self._statuses.flush(_TOPICS_RESET_SECONDS)
        self._statuses.refresh(_TOPICS_RESET_SECONDS)
        self._thread.call(lambda: self._tasks.forget_topics(name), doing=f"resetting the topics of connector {name}")

    # -- requests: signals and notifications

    def send_signal(self, name: str, signal: Mapping[str, Any]) -> None:
        """Hand a signal to a connector's tasks. Raises NotFoundError, BadRequestError, RestError."""
        snapshot = self._configs.snapshot()
        self._config_of(snapshot, name)
        signals.require_started(name, snapshot.target_state(name))
        self._require_own_tasks(snapshot, name)
        answers = self._thread.call(lambda: self._tasks.signal(name, signal), doing=f"handing a signal to connector {name}")
        signals.await_answers(name, answers, {number: status.state for number, status in self._statuses.tasks(name).items()})

    def notifications(self, name: str, since: int | None, limit: int) -> Sequence[Mapping[str, Any]]:
        """Return what a connector's tasks have shown lately. Raises NotFoundError."""
        snapshot = self._configs.snapshot()
        self._config_of(snapshot, name)
        self._require_own_tasks(snapshot, name)
        return self._notifications.of(name, since, limit)

    def _require_own_tasks(self, snapshot: ClusterConfig, name: str) -> None:
        """Raise MisdirectedError where other workers have all tasks of a connector."""
        tasks = [TaskId(name, number) for number in snapshot.tasks(name)]
        if tasks and not any(self._assignment.owns_task(*task) for task in tasks):
            self._assignment.await_settled(self._worker.conflict_wait_seconds)
            if not any(self._assignment.owns_task(*task) for task in tasks):
                raise self._misdirected(tasks[0])

    # -- requests: offsets

    def offsets(self, name: str) -> Sequence[OffsetEntry]:
        """Return committed offsets. Raises NotFoundError."""
        config = self._config_of(self._configs.snapshot(), name)
        if self._type_of(config) == "sink":
            config = self._resolved(config)
            with self._group_admin(name, config) as admin:
                return offset_requests.sink_offsets(admin, sink_group(name, config))
        if OWN_OFFSETS_TOPIC in config:
            config = self._resolved(config)
        return offset_requests.source_offsets(self._offsets, name, config)

    def alter_offsets(self, name: str, offsets: Sequence[OffsetEntry]) -> str:
        """Set offsets of a stopped connector; returns the answer's message.

        Raises:
            NotFoundError: there is no such connector.
            BadRequestError: it is not stopped, or an entry is malformed.
            ConflictError: its tasks have not ended yet, or another request changes its offsets.
            RestError: the connector refuses them.
        """
        with self._offsets_to_modify(name) as config:
            connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))()
            if isinstance(connector, SinkConnector):
                with self._group_admin(name, config) as admin:
                    return offset_requests.alter_sink(admin, sink_group(name, config), name, connector, config, offsets)
            assert isinstance(connector, SourceConnector)
            self._fence(name)
            return offset_requests.alter_source(self._offsets, name, connector, config, offsets)

    def reset_offsets(self, name: str) -> str:
        """Remove offsets of a stopped connector; returns the answer's message. Raises as `alter_offsets`."""
        with self._offsets_to_modify(name) as config:
            connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))()
            if isinstance(connector, SinkConnector):
                with self._group_admin(name, config) as admin:
                    return offset_requests.reset_sink(admin, sink_group(name, config), name, connector, config)
            assert isinstance(connector, SourceConnector)
            self._fence(name)
            return offset_requests.reset_source(self._offsets, name, connector, config)

    @contextlib.contextmanager
    def _group_admin(self, name: str, config: Mapping[str, str]) -> Iterator[offset_requests.GroupAdmin]:
        """Give the client that is asked about a sink's group: one of its own where connectors' admin clients have other settings than the
        worker's, such as another cluster (`Worker.sinkConnectorOffsets`). Raises ConfigError."""
        worker = self._worker.raw
        own = {**connector_admin_properties(worker, name, 0, config), "client.id": f"connector-worker-adminclient-{name}"}
        if own == {**internal_properties(worker, "shared-admin"), "client.id": own["client.id"]}:
            yield self._admin
            return
        require_allowed(worker, config, [ClientKind.ADMIN])
        made = KafkaAdmin(own)
        try:
            yield made
        finally:
            made.close()

    def _fence(self, name: str) -> None:
        """Make sure that no task that was thought dead stores offsets after this. Raises RestError."""
        if self._worker.exactly_once is not ExactlyOnceSupport.ENABLED:
            return
        try:
            self._applier.fencing.fence(name)
        except ConnectError as error:
            log.warning("The tasks of %s could not be fenced: %s", name, error)
            raise RestError("Failed to perform zombie fencing for source connector prior to modifying offsets", 500) from error

    @contextlib.contextmanager
    def _offsets_to_modify(self, name: str) -> Iterator[Mapping[str, str]]:
        """Give the resolved configuration of a connector of which nothing runs, nor will run before the context ends; wait for tasks that
        are ending. The herder's thread looks and sets the mark, so that no request comes in between."""
        self._require_settled()
        deadline = time.monotonic() + self._modify_seconds
        doing = f"preparing to modify the offsets of connector {name}"
        while (config := self._thread.call(lambda: self._begin_to_modify(name), doing=doing)) is None:
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"The offsets of connector {name} were not modified, because its tasks have not stopped within "
                    f"{self._modify_seconds:g} s. Please retry."
                )
            time.sleep(0.05)
        try:
            yield self._resolved(config)
        finally:
            self._thread.post(lambda: self._modifying.discard(name), f"ending a change of the offsets of connector {name}")

    def _begin_to_modify(self, name: str) -> Mapping[str, str] | None:
        """Return the configuration, when the offsets may be modified from now on; None while tasks are ending. On the herder's thread."""
        self._require_leader()
        snapshot = self._configs.snapshot()
        config = self._config_of(snapshot, name)
        if snapshot.target_state(name) is not TargetState.STOPPED or snapshot.tasks(name):
            raise BadRequestError(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
                f"connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )
        self._require_unmodified(name)
        if self._tasks.is_hosting(name):
            return None
        self._modifying.add(name)
        return config

    def _require_unmodified(self, name: str) -> None:
        """Raise ConflictError while a request modifies the connector's offsets. On the herder's thread."""
        if name in self._modifying:
            raise ConflictError(f"Another request modifies the offsets of connector {name} just now. Nothing was changed. Please retry.")

    # -- helpers

    def _config_of(self, snapshot: ClusterConfig, name: str) -> Mapping[str, str]:
        config = snapshot.connectors.get(name)
        if config is None:
            raise NotFoundError(f"Connector {name} not found")
        return config

    def _resolved(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return a configuration with the values of its variables. Raises BadRequestError."""
        try:
            return self._variables.resolve(config, owner=config.get(NAME)).values
        except ConfigError as error:
            raise BadRequestError(str(error)) from error

    def _info(self, snapshot: ClusterConfig, name: str) -> ConnectorInfo:
        config = self._config_of(snapshot, name)
        return ConnectorInfo(name, in_java_order(self._shown(config)), snapshot.tasks(name), self._type_of(config))

    def _shown(self, config: Mapping[str, str], owner: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return a connector's configuration, or that of a task of the owner, as clients may see it."""
        if not self._worker.redact_secrets:
            return dict(config)
        return without_secrets(self._plugins, config, owner)

    def _meant(self, name: str, config: Mapping[str, str | None], *, partial: bool = False) -> dict[str, str | None]:
        """Return what a client that sees hidden secrets sends. Raises BadRequestError."""
        if not self._worker.redact_secrets:
            return dict(config)
        return restored(config, self._configs.snapshot().connectors.get(name, {}), partial=partial)

    def _type_of(self, config: Mapping[str, str] | None) -> str:
        try:
            return kinds_of(self._plugins.connector((config or {}).get(CONNECTOR_CLASS, "")))[0]
        except RestError:
            return "unknown"

    def _require_topic_tracking(self) -> None:
        if not self._worker.topic_tracking:
            raise RestError("Topic tracking is disabled.", 403)

    def _wait(self, future: Future[None] | None, name: str) -> None:
        """Wait for a connector's start. The status has what it raised, of whatever class."""
        if future is None:
            return
        try:
            future.result(REQUEST_TIMEOUT_SECONDS)
        except FutureTimeoutError:
            raise RestError(f"Request timed out. {self._thread.stage()}".strip(), 500) from None
        except Exception as error:
            raise RestError(f"Failed to start connector: {name}", 500) from error


def _restarting(status: Status) -> Status:
    return Status("RESTARTING", status.worker_id, status.generation, status.trace, status.version)
