"""The distributed herder: configurations from the config topic, made to run on this worker (`distributed/DistributedHerder.java`).

Everything that runs follows from the configuration topic: a request writes to it and returns; the topic's reader calls the listener
methods; they post to the herder's thread, which looks at the newest snapshot and starts or stops what differs. So a worker that comes
back after a crash, or takes over from Java, does the same as one that hears the news.

Threads: the herder's thread owns the hosts of connectors and tasks. Requests run on the threads of the REST server: reading and
validating need only the stores' snapshots; whatever changes something goes through the herder's thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from connect_py.api import ConfigKey, SinkConnector, SourceConnector
from connect_py.api.storage import ClusterConfig, ConfigStore, OffsetStore, RestartRequest, Status, StatusStore, TargetState
from connect_py.errors import AlreadyExistsError, BadRequestError, ConfigError, ConnectError, NotFoundError, RestError
from connect_py.runtime import logging as line_logging
from connect_py.runtime.config import WorkerConfig
from connect_py.runtime.connector_config import CONNECTOR_CLASS, NAME, TASK_CLASS, TOPICS, TOPICS_REGEX, sink_group
from connect_py.runtime.herder import offsets as offset_requests
from connect_py.runtime.herder import validation
from connect_py.runtime.herder.assignment import Assignment
from connect_py.runtime.herder.base import (
    REQUEST_TIMEOUT_SECONDS,
    ConfigInfos,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    OffsetEntry,
    PluginInfo,
    ServerInfo,
    TaskInfo,
)
from connect_py.runtime.herder.thread import HerderThread
from connect_py.runtime.hosted_connectors import ConnectorHost, TaskConfigs
from connect_py.runtime.hosted_tasks import TaskHost, TaskSpec
from connect_py.runtime.java_map import in_java_order
from connect_py.runtime.plugins import KINDS, Plugins, kinds_of
from connect_py.runtime.redact import redactor, secret_values
from connect_py.runtime.task_main import trace_of
from connect_py.runtime.task_process import Event, TaskProcess

log = logging.getLogger(__name__)

#: The release of Kafka Connect whose behaviour this worker has.
VERSION = "4.3.1"

_HEALTH_SECONDS = 10.0

#: DistributedHerder's START_STOP_THREAD_POOL_SIZE.
_POOL_SIZE = 8

#: The answer is 202, accepted: in Connect the reset shows once the status topic has been read back, and a GET sent right after the answer
#: still sees the topics. This is long enough for the same GET to see the same here.
_TOPICS_RESET_SECONDS = 0.1

#: Delays between attempts to publish task configurations: 250 ms doubling to 60 s.
_PUBLISH_RETRY_SECONDS = (0.25, 60.0)


class DistributedHerder:
    """See the module; the public methods are those of `connect_py.runtime.herder.base.Herder`.

    Args:
        admin: asked for offsets of sinks' groups.
        cluster_id: the Kafka cluster's id.
        worker_id: host:port by which statuses name this worker.
        task_command: the command line of a task's process.
        offsets_by_pipe: whether tasks hand their offsets to this worker instead of writing them to the offsets topic.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        plugins: Plugins,
        configs: ConfigStore,
        statuses: StatusStore,
        offsets: OffsetStore,
        admin: offset_requests.GroupAdmin,
        assignment: Assignment,
        *,
        worker_id: str,
        cluster_id: str,
        task_command: Sequence[str],
        offsets_by_pipe: bool = False,
    ) -> None:
        self._worker = worker
        self._plugins = plugins
        self._configs = configs
        self._statuses = statuses
        self._offsets = offsets
        self._admin = admin
        self._assignment = assignment
        self._worker_id = worker_id
        self._cluster_id = cluster_id
        self._task_command = list(task_command)
        self._offsets_by_pipe = offsets_by_pipe
        self._thread = HerderThread()
        self._pool = ThreadPoolExecutor(_POOL_SIZE, "start-stop")
        self._ready = threading.Event()
        self._incarnations = 0
        self._connectors = ConnectorHost(
            plugins,
            statuses,
            self._pool,
            post=self._thread.post,
            status=self._status,
            on_task_configs=self._publish_tasks,
            explain=self._explain,
        )
        self._tasks = TaskHost(
            statuses,
            self._pool,
            post=self._thread.post,
            post_later=self._thread.post_later,
            spawn=self._spawn,
            store_offsets=offsets.put,
            status=self._status,
            stop_timeout=worker.graceful_shutdown_seconds,
        )

    # -- life of the worker

    def start(self) -> None:
        """Read the stores to their ends and start everything that is configured.

        Raises:
            ConfigError: an internal topic is not as it must be.
            RetriableError: Kafka does not answer.
        """
        self._offsets.start()
        self._statuses.start()
        self._configs.start(self)
        self._thread.start()
        self._thread.post(self._start_everything)

    def stop(self) -> None:
        """Stop everything within ``task.shutdown.graceful.timeout.ms`` and report it UNASSIGNED."""
        deadline = time.monotonic() + self._worker.graceful_shutdown_seconds
        self._thread.call(lambda: self._tasks.close(deadline))
        while not self._thread.call(lambda: self._tasks.is_closed) and time.monotonic() < deadline + 1.5:
            time.sleep(0.02)
        self._thread.call(self._tasks.kill_all)
        self._thread.call(self._connectors.close)
        self._thread.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._statuses.flush(5.0)
        for store in (self._configs, self._statuses, self._offsets):
            store.stop()

    def _start_everything(self) -> None:
        snapshot = self._configs.snapshot()
        for name in snapshot.connectors:
            self._forget_surplus_tasks(name, snapshot)
            self._run_connector(name)
            self._run_tasks(name)
        if snapshot.connectors:
            log.info("Starting %d connector(s): %s", len(snapshot.connectors), ", ".join(sorted(snapshot.connectors)))
        self._ready.set()

    def _forget_surplus_tasks(self, name: str, snapshot: ClusterConfig) -> None:
        for number in set(self._statuses.tasks(name)) - set(snapshot.tasks(name)):
            self._statuses.delete_task(name, number)

    # -- what the configuration topic says (ConfigListener; called by the store's reader)

    def on_connector_config(self, connector: str) -> None:
        """A connector is new or has another configuration."""
        self._thread.post(lambda: self._start_connector(connector))

    def on_connector_removed(self, connector: str) -> None:
        """A connector is deleted."""
        self._thread.post(lambda: self._remove(connector))

    def on_task_configs(self, connector: str) -> None:
        """A connector has a new set of tasks."""
        self._thread.post(lambda: self._run_tasks(connector))

    def on_target_state(self, connector: str) -> None:
        """A connector should run, rest or stop."""
        self._thread.post(lambda: self._enter_target_state(connector))

    def on_restart_request(self, request: RestartRequest) -> None:
        """Someone asked for a restart (KIP-745)."""
        self._thread.post(lambda: self._restart(request))

    def on_logger_level(self, namespace: str, level: str) -> None:
        """Someone set a log level for all workers (KIP-976)."""
        name = "" if namespace.lower() == "root" else namespace
        logging.getLogger(name).setLevel(line_logging.level_number(level))

    # -- on the herder's thread

    def _start_connector(self, name: str) -> None:
        self._run_connector(name)

    def _run_connector(self, name: str, *, restarting: bool = False) -> Future[None] | None:
        snapshot = self._configs.snapshot()
        config = snapshot.connectors.get(name)
        if config is None or not self._assignment.owns_connector(name):
            return None
        return self._connectors.run(name, config, snapshot.target_state(name), restarting=restarting)

    def _remove(self, name: str) -> None:
        if name in self._configs.snapshot().connectors:
            return  # it has been created again; that record's event follows
        self._connectors.remove(name)
        self._tasks.want(name, {})
        self._tasks.pause(name, False)
        self._statuses.delete_connector(name)
        self._statuses.delete_topics(name)
        log.info("Connector %s is deleted", name)

    def _enter_target_state(self, name: str) -> None:
        snapshot = self._configs.snapshot()
        if name not in snapshot.connectors:
            return
        target = snapshot.target_state(name)
        self._tasks.pause(name, target is TargetState.PAUSED)
        self._connectors.set_target(name, target)

    def _run_tasks(self, name: str) -> None:
        """Have the connector's tasks run anew, with the newest set of configurations."""
        snapshot = self._configs.snapshot()
        self._tasks.pause(name, snapshot.target_state(name) is TargetState.PAUSED)
        numbers = [number for number in snapshot.tasks(name) if self._assignment.owns_task(name, number)]
        self._tasks.want(name, {number: self._spec(snapshot, name, number) for number in numbers})

    def _spec(self, snapshot: ClusterConfig, name: str, number: int) -> TaskSpec:
        config, task_config = snapshot.connectors.get(name, {}), snapshot.task_configs.get((name, number), {})
        self._incarnations += 1
        try:
            version = self._plugins.connector(config.get(CONNECTOR_CLASS, "")).version
        except ConnectError:
            version = None
        return TaskSpec(
            name, number, self._incarnations, version, lambda paused: self._start_message(name, number, config, task_config, paused)
        )

    def _start_message(
        self, name: str, number: int, config: Mapping[str, str], task_config: Mapping[str, str], paused: bool
    ) -> dict[str, Any]:
        """Runs on the pool, when no process of the task is left: reads the committed offsets."""
        connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))
        offsets: Sequence[Any] = ()
        if issubclass(connector, SourceConnector):
            self._offsets.refresh(REQUEST_TIMEOUT_SECONDS)
            offsets = [(dict(partition), dict(offset)) for partition, offset in self._offsets.of_connector(name)]
        levels = {n: logging.getLevelName(made.level) for n, made in _configured_loggers()}
        return {
            "type": "start",
            "connector": name,
            "task": number,
            "class": connector.java_name,
            "config": dict(config),
            "task_config": dict(task_config),
            "worker": dict(self._worker.raw),
            "plugins": self._plugins.references,
            "offsets": offsets,
            "offsets_by_pipe": self._offsets_by_pipe,
            "flush_interval": self._worker.flush_interval_seconds,
            "flush_timeout": self._worker.flush_timeout_seconds,
            "paused": paused,
            "log_level": logging.getLevelName(logging.getLogger().level),
            "log_levels": levels,
        }

    def _spawn(self, start: Mapping[str, Any], on_event: Callable[[Event], None]) -> TaskProcess:
        return TaskProcess([*self._task_command, f"{start['connector']}-{start['task']}"], start, on_event)

    def _publish_tasks(self, name: str, configs: TaskConfigs, attempt: int = 0) -> None:
        """Store a started connector's task configurations, unless they are what is stored already for the very same configuration."""
        snapshot = self._configs.snapshot()
        config = snapshot.connectors.get(name)
        if config is None or snapshot.target_state(name) is not TargetState.STARTED:
            return
        connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))
        wanted = [self._task_config(connector, config, made) for made in configs]
        stored = [snapshot.task_configs.get((name, number)) for number in snapshot.tasks(name)]
        if wanted == stored and dict(snapshot.applied.get(name, {})) == dict(config):
            return
        try:
            self._configs.put_task_configs(name, wanted)
        except ConnectError as error:
            delay = min(_PUBLISH_RETRY_SECONDS[1], _PUBLISH_RETRY_SECONDS[0] * 2**attempt)
            log.warning("Task configurations of %s could not be stored; tried again in %.2f s: %s", name, delay, error)
            self._thread.post_later(delay, lambda: self._publish_tasks(name, configs, attempt + 1))

    @staticmethod
    def _task_config(connector: Any, config: Mapping[str, str], made: Mapping[str, str]) -> dict[str, str]:
        """A task's configuration with what the worker adds (`Worker.connectorTaskConfigs`)."""
        full = {**made, TASK_CLASS: connector.java_task_name}
        if issubclass(connector, SinkConnector):
            full |= {key: config[key] for key in (TOPICS, TOPICS_REGEX) if config.get(key)}
        return in_java_order(full)

    def _restart(self, request: RestartRequest) -> None:
        name = request.connector
        connector, tasks = self._restart_plan(request)
        snapshot = self._configs.snapshot()
        if connector:
            self._run_connector(name, restarting=True)
        for number in tasks:
            if number in snapshot.tasks(name) and self._assignment.owns_task(name, number):
                self._tasks.restart(self._spec(snapshot, name, number))

    def _restart_plan(self, request: RestartRequest) -> tuple[bool, list[int]]:
        """Whether the connector, and which of its tasks, a request restarts (`runtime/RestartPlan.java`)."""
        connector = self._statuses.connector(request.connector)
        chosen = connector is not None and (not request.only_failed or connector.state == "FAILED")
        if not request.include_tasks:
            return chosen, []
        tasks = self._statuses.tasks(request.connector)
        return chosen, sorted(number for number, status in tasks.items() if not request.only_failed or status.state == "FAILED")

    def _status(self, state: str, trace: str | None, version: str | None) -> Status:
        return Status(state, self._worker_id, self._assignment.generation, trace, version)

    def _explain(self, error: Exception, config: Mapping[str, str]) -> str:
        try:
            definition = self._plugins.connector(config.get(CONNECTOR_CLASS, "")).config_def()
        except ConnectError:
            definition = None
        return redactor(secret_values(config, definition) | secret_values(self._worker.raw))(trace_of(error))

    # -- requests: reading

    def server_info(self) -> ServerInfo:
        """What GET / shows."""
        return ServerInfo(VERSION, "unknown", self._cluster_id)

    def health(self) -> Health:
        """Whether the herder's thread answers (KIP-1017)."""
        try:
            self._thread.call(lambda: None, _HEALTH_SECONDS)
        except RestError:
            stage = self._thread.stage()
            if not self._ready.is_set():
                return Health("starting", f"Worker is still starting up. {stage}".rstrip())
            return Health(
                "unhealthy", f"Worker was unable to handle this request and may be unable to handle other requests. {stage}".rstrip()
            )
        return Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def connectors(self) -> Sequence[str]:
        """Names of all connectors."""
        return list(self._configs.snapshot().connectors)

    def connector_info(self, name: str) -> ConnectorInfo:
        """A connector as clients see it. Raises NotFoundError."""
        return self._info(self._configs.snapshot(), name)

    def connector_status(self, name: str) -> ConnectorStatus:
        """Reported states. Raises NotFoundError."""
        connector = self._statuses.connector(name)
        if connector is None:
            raise NotFoundError(f"No status found for connector {name}")
        tasks = dict(sorted(self._statuses.tasks(name).items()))
        return ConnectorStatus(name, connector, tasks, self._type_of(self._configs.snapshot().connectors.get(name)))

    def task_status(self, name: str, task: int) -> Status:
        """A task's reported state. Raises NotFoundError."""
        status = self._statuses.task(name, task)
        if status is None:
            raise NotFoundError(f"No status found for task {name}-{task}")
        return status

    def task_infos(self, name: str) -> Sequence[TaskInfo]:
        """Raw task configurations. Raises NotFoundError."""
        snapshot = self._configs.snapshot()
        self._config_of(snapshot, name)
        return [TaskInfo(number, in_java_order(snapshot.task_configs.get((name, number), {}))) for number in snapshot.tasks(name)]

    def topics(self, name: str) -> Sequence[str]:
        """Topics in use. Raises RestError 403 when they are not tracked."""
        self._require_topic_tracking()
        return self._statuses.topics(name)

    def plugins(self) -> Sequence[PluginInfo]:
        """Everything that can be loaded, in Connect's order."""
        return [PluginInfo(name, kind, plugin.version) for kind in KINDS for name, plugin in self._plugins.of_kind(kind)]

    def plugin_config(self, plugin: str) -> Sequence[ConfigKey]:
        """Definitions of a plugin. Raises NotFoundError, BadRequestError."""
        try:
            found = self._plugins.find(plugin, *KINDS)
        except ConfigError as error:
            raise BadRequestError(str(error)) from error
        if found is None:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        return validation.plugin_keys(self._plugins, plugin, found)

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Check a configuration. Raises BadRequestError."""
        return validation.validate(self._plugins, self._worker.raw, config)

    # -- requests: changing

    def put_connector(
        self, name: str, config: Mapping[str, str | None], *, may_replace: bool, state: TargetState | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """Validate, then store. Raises BadRequestError, AlreadyExistsError."""
        given = config.get(NAME)
        if given is not None and given != name:
            raise BadRequestError(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
        full = {**config, NAME: name}
        validation.raise_if_invalid(self.validate(full))
        checked = {key: value for key, value in full.items() if value is not None}
        return self._thread.call(lambda: self._store_connector(name, checked, may_replace, state))

    def _store_connector(
        self, name: str, config: dict[str, str], may_replace: bool, state: TargetState | None
    ) -> tuple[bool, ConnectorInfo]:
        before = self._configs.snapshot()
        exists = name in before.connectors
        if exists and not may_replace:
            raise AlreadyExistsError(f"Connector {name} already exists")
        self._configs.put_connector(name, config, state)
        return not exists, ConnectorInfo(name, config, before.tasks(name) if exists else [], self._type_of(config))

    def patch_connector(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Overlay a configuration (KIP-477). Raises NotFoundError, BadRequestError."""
        stored = self._config_of(self._configs.snapshot(), name)
        merged = {key: value for key, value in {**stored, **patch}.items() if value is not None}
        validation.raise_if_invalid(self.validate(merged))
        return self._thread.call(lambda: self._store_connector(name, merged, True, None))[1]

    def delete_connector(self, name: str) -> None:
        """Remove a connector. Raises NotFoundError."""

        def work() -> None:
            self._config_of(self._configs.snapshot(), name)
            self._configs.remove_connector(name)

        self._thread.call(work)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Pause, resume or stop. Raises NotFoundError."""

        def work() -> None:
            if name not in self._configs.snapshot().connectors:
                raise NotFoundError(f"Unknown connector {name}")
            if state is TargetState.STOPPED:
                self._configs.put_task_configs(name, [])
            self._configs.put_target_state(name, state)

        self._thread.call(work)

    def restart_connector(self, name: str) -> None:
        """Restart the connector instance alone and wait for it. Raises NotFoundError, RestError."""

        def work() -> Future[None] | None:
            if name not in self._configs.snapshot().connectors:
                raise NotFoundError(f"Unknown connector: {name}")
            return self._run_connector(name)

        self._wait(self._thread.call(work))

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
            chosen, numbers = self._restart_plan(request)
            tasks = self._statuses.tasks(name)
            self._configs.put_restart_request(request)
            shown = {number: _restarting(status) if number in numbers else status for number, status in tasks.items()}
            kind = self._type_of(snapshot.connectors[name])
            return ConnectorStatus(name, _restarting(connector) if chosen else connector, shown, kind)

        return self._thread.call(work)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task. Raises NotFoundError."""

        def work() -> None:
            snapshot = self._configs.snapshot()
            if name not in snapshot.connectors:
                raise NotFoundError(f"Unknown connector: {name}")
            if task not in snapshot.tasks(name):
                raise NotFoundError(f"Unknown task: {name}-{task}")
            self._tasks.restart(self._spec(snapshot, name, task))

        self._thread.call(work)

    def reset_topics(self, name: str) -> None:
        """Forget the topics in use, soon; running tasks report theirs anew. Raises RestError 403 when that is not allowed."""
        self._require_topic_tracking()
        if not self._worker.topic_tracking_reset:
            raise RestError("Topic tracking reset is disabled.", 403)

        def work() -> None:
            self._statuses.delete_topics(name)
            self._tasks.forget_topics(name)

        self._thread.post(lambda: self._thread.post_later(_TOPICS_RESET_SECONDS, work))

    # -- requests: offsets

    def offsets(self, name: str) -> Sequence[OffsetEntry]:
        """Committed offsets. Raises NotFoundError."""
        config = self._config_of(self._configs.snapshot(), name)
        if self._type_of(config) == "sink":
            return offset_requests.sink_offsets(self._admin, sink_group(name, config))
        return offset_requests.source_offsets(self._offsets, name)

    def alter_offsets(self, name: str, offsets: Sequence[OffsetEntry]) -> str:
        """Set offsets of a stopped connector; returns the answer's message. Raises NotFoundError, BadRequestError, RestError."""
        config = self._stopped(name)
        connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))()
        if isinstance(connector, SinkConnector):
            return offset_requests.alter_sink(self._admin, sink_group(name, config), name, connector, config, offsets)
        assert isinstance(connector, SourceConnector)
        return offset_requests.alter_source(self._offsets, name, connector, config, offsets)

    def reset_offsets(self, name: str) -> str:
        """Remove offsets of a stopped connector; returns the answer's message. Raises as `alter_offsets`."""
        config = self._stopped(name)
        connector = self._plugins.connector(config.get(CONNECTOR_CLASS, ""))()
        if isinstance(connector, SinkConnector):
            return offset_requests.reset_sink(self._admin, sink_group(name, config), name, connector, config)
        assert isinstance(connector, SourceConnector)
        return offset_requests.reset_source(self._offsets, name, connector, config)

    def _stopped(self, name: str) -> Mapping[str, str]:
        """The configuration of a connector of which nothing runs any more; waits for tasks that are just ending."""
        snapshot = self._configs.snapshot()
        config = self._config_of(snapshot, name)
        if snapshot.target_state(name) is not TargetState.STOPPED or snapshot.tasks(name):
            raise BadRequestError(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
                f"connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )
        deadline = time.monotonic() + self._worker.graceful_shutdown_seconds + 1.0
        while self._thread.call(lambda: self._tasks.is_hosting(name)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return config

    # -- helpers

    def _config_of(self, snapshot: ClusterConfig, name: str) -> Mapping[str, str]:
        config = snapshot.connectors.get(name)
        if config is None:
            raise NotFoundError(f"Connector {name} not found")
        return config

    def _info(self, snapshot: ClusterConfig, name: str) -> ConnectorInfo:
        config = self._config_of(snapshot, name)
        return ConnectorInfo(name, in_java_order(config), snapshot.tasks(name), self._type_of(config))

    def _type_of(self, config: Mapping[str, str] | None) -> str:
        try:
            return kinds_of(self._plugins.connector((config or {}).get(CONNECTOR_CLASS, "")))[0]
        except RestError:
            return "unknown"

    def _require_topic_tracking(self) -> None:
        if not self._worker.topic_tracking:
            raise RestError("Topic tracking is disabled.", 403)

    def _wait(self, future: Future[None] | None) -> None:
        if future is None:
            return
        try:
            future.result(REQUEST_TIMEOUT_SECONDS)
        except FutureTimeoutError:
            raise RestError(f"Request timed out. {self._thread.stage()}".strip(), 500) from None
        except ConnectError as error:
            raise RestError(str(error), 500) from error


def _restarting(status: Status) -> Status:
    return Status("RESTARTING", status.worker_id, status.generation, status.trace, status.version)


def _configured_loggers() -> list[tuple[str, logging.Logger]]:
    """Loggers with a level of their own."""
    known = logging.getLogger().manager.loggerDict
    return [(name, made) for name, made in known.items() if isinstance(made, logging.Logger) and made.level]
