"""The connector instances of this worker (`runtime/WorkerConnector.java`).

A connector checks its configuration and divides work; it moves no data, so it lives in the worker's process. Its code may be slow, so it
runs on a pool: each start is a job that makes an instance, starts it, asks it for its task configurations and posts the outcome to the
herder's thread. A job whose connector has been stopped, changed or deleted meanwhile finds its epoch outdated and is dropped.

The herder's thread owns a `ConnectorHost` and calls all its methods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from connect_py.api import Connector, SourceConnector
from connect_py.api.storage import Status, StatusStore, TargetState
from connect_py.errors import ConnectError, FatalTaskError, noted
from connect_py.runtime import logging as line_logging
from connect_py.runtime.connector_config import CONNECTOR_CLASS, CONNECTOR_VERSION, max_tasks
from connect_py.runtime.metrics.worker import WorkerMetrics
from connect_py.runtime.plugins import Plugins
from connect_py.runtime.topic_creation import topic_groups
from connect_py.runtime.traces import headline

log = logging.getLogger(__name__)

TaskConfigs = list[dict[str, str]]


@dataclass
class _Hosted:
    config: Mapping[str, str]
    state: str = "UNASSIGNED"
    version: str | None = None
    instance: Connector | None = None
    waiting: list[Future[None]] = field(default_factory=list)


class ConnectorHost:
    """See the module.

    Args:
        on_task_configs: hears, on the herder's thread, what tasks a started connector wants.
        explain: makes a trace of an error, without secrets of the given configuration.
        metrics: hears of starts and states.
        resolve: replaces the variables of a connector's configuration; called on the pool. Raises ConfigError.
    """

    def __init__(
        self,
        plugins: Plugins,
        statuses: StatusStore,
        pool: Executor,
        *,
        post: Callable[[Callable[[], None]], None],
        status: Callable[[str, str | None, str | None], Status],
        on_task_configs: Callable[[str, TaskConfigs], None],
        explain: Callable[[Exception, Mapping[str, str]], str],
        metrics: WorkerMetrics | None = None,
        resolve: Callable[[str, Mapping[str, str]], Mapping[str, str]] = lambda _name, config: config,
    ) -> None:
        self._plugins = plugins
        self._statuses = statuses
        self._pool = pool
        self._post = post
        self._status = status
        self._on_task_configs = on_task_configs
        self._explain = explain
        self._metrics = metrics or WorkerMetrics()
        self._resolve = resolve
        self._hosted: dict[str, _Hosted] = {}

    def run(self, name: str, config: Mapping[str, str], target: TargetState, *, restarting: bool = False) -> Future[None]:
        """Have a connector run with this configuration, in place of what ran under its name.

        Returns:
            Done when the connector is in its state; fails with what `start` raised.
        """
        previous = self._hosted.get(name)
        if previous is not None:
            self._retire(previous)
        hosted = self._hosted[name] = _Hosted(config, version=self._version_of(config))
        done: Future[None] = Future()
        hosted.waiting.append(done)
        if restarting:
            self._report(name, hosted, "RESTARTING")
        self._enter(name, hosted, target)
        return done

    def set_target(self, name: str, target: TargetState) -> None:
        """Pause, resume or stop a connector. One that has FAILED stays so, but for a stop."""
        hosted = self._hosted.get(name)
        if hosted is None or (hosted.state == "FAILED" and target is not TargetState.STOPPED):
            return
        fresh = self._hosted[name] = _Hosted(hosted.config, hosted.state, hosted.version)
        fresh.waiting, hosted.waiting = hosted.waiting, []
        self._retire(hosted)
        self._enter(name, fresh, target)

    def remove(self, name: str) -> None:
        """The connector is deleted."""
        hosted = self._hosted.pop(name, None)
        self._metrics.connector_gone(name)
        if hosted is not None:
            self._retire(hosted)

    def close(self) -> None:
        """The worker ends: every connector that did not fail becomes UNASSIGNED."""
        for name, hosted in self._hosted.items():
            self._retire(hosted)
            if hosted.state in ("RUNNING", "PAUSED", "RESTARTING"):
                self._report(name, hosted, "UNASSIGNED")
        self._hosted.clear()

    def _enter(self, name: str, hosted: _Hosted, target: TargetState) -> None:
        if target is TargetState.STARTED:
            self._pool.submit(self._start, name, hosted)
            return
        self._report(name, hosted, target.value)
        self._settle(hosted, None)

    def _version_of(self, config: Mapping[str, str]) -> str | None:
        """None when the class is not installed."""
        try:
            return self._plugins.connector(config.get(CONNECTOR_CLASS, "")).version
        except ConnectError:
            return None

    def _start(self, name: str, hosted: _Hosted) -> None:
        """Runs on the pool."""
        line_logging.context.set(f"{name}|worker")
        try:
            made = self._plugins.connector(hosted.config.get(CONNECTOR_CLASS, ""))
            self._plugins.require_version(made.java_name, hosted.config.get(CONNECTOR_VERSION))
            instance = made()
            config = self._resolve(name, hosted.config)
            if issubclass(made, SourceConnector):
                topic_groups(config)  # as in Connect, these are not checked before the connector is accepted
            instance.start(config)
            configs = instance.task_configs(max_tasks(config))
        except Exception as error:  # noqa: BLE001  # whatever a connector raises makes it FAILED, with a trace
            problem = error
            self._post(lambda: self._on_failed(name, hosted, problem))
            return
        self._post(lambda: self._on_started(name, hosted, instance, config, configs))

    def _on_started(self, name: str, hosted: _Hosted, instance: Connector, config: Mapping[str, str], configs: TaskConfigs) -> None:
        hosted.instance = instance
        if self._hosted.get(name) is not hosted:
            self._retire(hosted)
            return
        limit = max_tasks(config)
        if len(configs) > limit and config.get("tasks.max.enforce", "true").strip().lower() != "false":
            too_many = FatalTaskError(
                f"The connector {name} has generated {len(configs)} tasks, which is greater than {limit}, the maximum number of tasks it "
                "is configured to create."
            )
            too_many.java_name = "org.apache.kafka.connect.runtime.TooManyTasksException"
            advice = "Raise tasks.max, or let the connector make fewer; tasks.max.enforce=false lets it have them."
            self._on_failed(name, hosted, noted(too_many, advice))
            return
        log.info("Connector %s runs with %d task(s)", name, len(configs))
        self._metrics.connector_startup(True)
        self._report(name, hosted, "RUNNING")
        self._on_task_configs(name, configs)
        self._settle(hosted, None)

    def _on_failed(self, name: str, hosted: _Hosted, error: Exception) -> None:
        if self._hosted.get(name) is not hosted:
            return
        self._metrics.connector_startup(False)
        trace = self._explain(error, hosted.config)
        log.error("Connector %s failed: %s", name, headline(trace))
        self._report(name, hosted, "FAILED", trace)
        self._settle(hosted, error)

    def _report(self, name: str, hosted: _Hosted, state: str, trace: str | None = None) -> None:
        hosted.state = state
        self._metrics.connector_state(name, state)
        self._statuses.put_connector(name, self._status(state, trace, hosted.version))

    def _retire(self, hosted: _Hosted) -> None:
        """Free an instance; its `stop` may be slow."""
        self._settle(hosted, None)
        instance, hosted.instance = hosted.instance, None
        if instance is not None:
            self._pool.submit(instance.stop)

    @staticmethod
    def _settle(hosted: _Hosted, error: Exception | None) -> None:
        for future in hosted.waiting:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        hosted.waiting.clear()
