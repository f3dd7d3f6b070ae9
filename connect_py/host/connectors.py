"""Run the connector instances of this worker (`runtime/WorkerConnector.java`).

A connector checks its configuration and divides work; it moves no data, so it lives in the worker's process. Its code may be slow, so it
runs on a pool: each start is a job that makes an instance, starts it, asks it for its task configurations and posts the outcome to the
herder's thread. A job whose connector has been stopped, changed or deleted meanwhile finds its life ended and is dropped. A connector's
next instance starts when the last one's `stop` has returned, so that two never share what one may hold, such as a replication slot.

The herder's thread owns a `ConnectorHost` and calls all its methods.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from connect_py.api import Connector, SourceConnector, SourceOffset, SourcePartition
from connect_py.api.storage import Status, StatusStore, TargetState
from connect_py.clock import SYSTEM_CLOCK, Clock
from connect_py.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, max_tasks
from connect_py.config.worker import MAX_TASKS_OF_CONNECTOR, TASKS_OF_CONNECTOR
from connect_py.errors import ConnectError, FatalTaskError, noted
from connect_py.host.facts import FactsHost
from connect_py.log import lines as line_logging
from connect_py.log.traces import headline
from connect_py.metrics.worker import WorkerMetrics
from connect_py.plugins.registry import Plugins
from connect_py.task.topics import topic_groups

log = logging.getLogger(__name__)

TaskConfigs = list[dict[str, str]]


#: Worker.CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS: how long a connector waits for the end of its last instance.
CONNECTOR_STOP_SECONDS = 5.0

#: DistributedHerder's RECONFIGURE_CONNECTOR_TASKS_BACKOFF: seconds before tasks are asked for again that a connector could not say.
_DIVIDE_RETRY_SECONDS = (0.25, 60.0)


@dataclass(eq=False)
class _Hosted:
    """One life of a connector.

    Attributes:
        after: set when the connector's last life has ended, with its `stop`.
        gone: the same of this one.
        is_retired: another life has begun, or none will; written by the herder's thread.
        is_dividing: `task_configs` is being asked at the connector's request.
        divide_again: it must be asked once more.
    """

    config: Mapping[str, str]
    state: str = "UNASSIGNED"
    version: str | None = None
    instance: Connector | None = None
    reported: Status | None = None
    waiting: list[Future[None]] = field(default_factory=list)
    after: threading.Event | None = None
    gone: threading.Event = field(default_factory=threading.Event)
    is_retired: bool = False
    is_dividing: bool = False
    divide_again: bool = False


class ConnectorHost:
    """Runs the connector instances of this worker.

    Args:
        post: runs something on the herder's thread.
        post_later: the same after a number of seconds; called on the herder's thread.
        on_task_configs: receives, on the herder's thread, what tasks a started connector wants, with the configuration they were made of.
        explain: makes a trace of an error, without secrets of the given configuration.
        metrics: receives starts and states.
        resolve: replaces the variables of a connector's configuration; called on the pool. Raises ConfigError.
        read_offsets: gives what the offsets topic holds of a connector; called on connectors' threads. Raises RetriableError.
        open_offsets: makes sure, before a source starts, that the topic of its offsets can be used; called on the pool with the resolved
            configuration. Raises ConnectError.
        max_tasks_of_connector: the worker's ``tasks.max.per.connector``.
        facts: has the sources of hosted connectors asked for the state of their logs, in whatever state a connector is.
        stop_seconds: how long a connector waits for the end of its last instance.
        clock: of that wait.
    """

    def __init__(
        self,
        plugins: Plugins,
        statuses: StatusStore,
        pool: Executor,
        *,
        post: Callable[[Callable[[], None]], None],
        post_later: Callable[[float, Callable[[], None]], None],
        status: Callable[[str, str | None, str | None], Status],
        on_task_configs: Callable[[str, Mapping[str, str], TaskConfigs], None],
        explain: Callable[[Exception, Mapping[str, str]], str],
        metrics: WorkerMetrics | None = None,
        resolve: Callable[[str, Mapping[str, str]], Mapping[str, str]] = lambda _name, config: config,
        read_offsets: Callable[[str], Iterable[tuple[SourcePartition, SourceOffset]]] = lambda _name: (),
        open_offsets: Callable[[str, Mapping[str, str]], None] = lambda _name, _config: None,
        max_tasks_of_connector: int = MAX_TASKS_OF_CONNECTOR,
        facts: FactsHost | None = None,
        stop_seconds: float = CONNECTOR_STOP_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._plugins = plugins
        self._statuses = statuses
        self._pool = pool
        self._post = post
        self._post_later = post_later
        self._status = status
        self._on_task_configs = on_task_configs
        self._explain = explain
        self._metrics = metrics or WorkerMetrics()
        self._resolve = resolve
        self._read_offsets = read_offsets
        self._open_offsets = open_offsets
        self._max_tasks = max_tasks_of_connector
        self._facts = facts
        self._stop_seconds = stop_seconds
        self._hosted: dict[str, _Hosted] = {}
        self._ends: dict[str, threading.Event] = {}

    def run(self, name: str, config: Mapping[str, str], target: TargetState, *, restarting: bool = False) -> Future[None]:
        """Have a connector run with this configuration, in place of what ran under its name.

        Returns:
            Done when the connector is in its state; fails with what `start` raised.
        """
        previous = self._hosted.get(name)
        if previous is not None:
            self._retire(name, previous)
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
        if target is TargetState.STARTED and hosted.state in ("PAUSED", "STOPPED"):
            log.info("Connector %s is resumed", name)
        self._retire(name, hosted)
        self._enter(name, fresh, target)

    def remove(self, name: str) -> None:
        """The connector is deleted."""
        hosted = self._hosted.pop(name, None)
        self._forget(name)
        if hosted is not None:
            self._retire(name, hosted)
        self._ends = {key: end for key, end in self._ends.items() if key in self._hosted or not end.is_set()}

    def close(self) -> None:
        """The worker ends: every connector that did not fail becomes UNASSIGNED."""
        for name, hosted in self._hosted.items():
            self._retire(name, hosted)
            if hosted.state in ("RUNNING", "PAUSED", "RESTARTING"):
                self._report(name, hosted, "UNASSIGNED")
        self._hosted.clear()

    def give_up(self, name: str) -> None:
        """Another worker may be given the connector."""
        hosted = self._hosted.pop(name, None)
        if hosted is not None:
            self._retire(name, hosted)
            if hosted.state in ("RUNNING", "PAUSED", "RESTARTING", "STOPPED"):
                self._report(name, hosted, "UNASSIGNED")
        self._forget(name)

    def abandon(self) -> None:
        """Other workers may have the connectors: end their instances here, and report nothing."""
        for name, hosted in self._hosted.items():
            self._retire(name, hosted)
            self._forget(name)
        self._hosted.clear()

    def _forget(self, name: str) -> None:
        self._metrics.connector_gone(name)
        if self._facts is not None:
            self._facts.unwatch(name)

    def say_again(self, name: str) -> None:
        """Another worker has said that a configured connector is gone. If it is this worker's, say again how it is."""
        hosted = self._hosted.get(name)
        if hosted is None or hosted.reported is None or self._statuses.connector(name) is not None:
            return  # or there is a newer report
        log.info("Another worker's word that connector %s is gone came late; sending this worker's report again", name)
        self._statuses.put_connector(name, hosted.reported)

    def is_hosting(self, name: str) -> bool:
        """Return whether a connector is this worker's."""
        return name in self._hosted

    def has_ended(self, name: str) -> bool:
        """Return whether nothing of a connector that was given up is left."""
        end = self._ends.get(name)
        return name in self._hosted or end is None or end.is_set()

    def _enter(self, name: str, hosted: _Hosted, target: TargetState) -> None:
        hosted.after = self._ends.get(name)
        if self._facts is not None:
            self._facts.watch(name, hosted.config, target)
        if target is TargetState.STARTED:
            self._ends[name] = hosted.gone
            self._pool.submit(self._start, name, hosted)
            return
        self._report(name, hosted, target.value)
        self._settle(hosted, None)

    def _version_of(self, config: Mapping[str, str]) -> str | None:
        """Return None when the class is not installed."""
        try:
            return self._plugins.connector(config.get(CONNECTOR_CLASS, "")).version
        except ConnectError:
            return None

    def _start(self, name: str, hosted: _Hosted) -> None:
        """Make an instance, start it and ask it for its tasks; runs on the pool, after the `_stop` of the connector's last instance."""
        line_logging.context.set(f"{name}|worker")
        started: Connector | None = None
        try:
            if hosted.after is not None and not self._clock.wait(hosted.after, self._stop_seconds):
                log.error(
                    "The last instance of connector %s has not stopped within %g s, and may still use what it holds. The next one starts "
                    "nevertheless",
                    name,
                    self._stop_seconds,
                )
            if hosted.is_retired:
                hosted.gone.set()
                return
            made = self._plugins.connector(hosted.config.get(CONNECTOR_CLASS, ""))
            self._plugins.require_version(made.java_name, hosted.config.get(CONNECTOR_VERSION))
            instance = made()
            config = self._resolve(name, hosted.config)
            if issubclass(made, SourceConnector):
                topic_groups(config)  # as in Connect, these are not checked before the connector is accepted
                self._open_offsets(name, config)
            instance.initialize(_Context(name, self, hosted))
            instance.start(config)
            started = instance
            configs = instance.task_configs(self._tasks_to_ask_for(config))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a connector raises makes it FAILED, with a trace
            problem = _as_exception(error)
            self._stop(name, hosted, started)
            self._post(lambda: self._on_failed(name, hosted, problem))
            return
        self._post(lambda: self._on_started(name, hosted, started, config, configs))

    def _stop(self, name: str, hosted: _Hosted, instance: Connector | None) -> None:
        """Free an instance; its `stop` may be slow. Runs on the pool."""
        line_logging.context.set(f"{name}|worker")
        try:
            if instance is not None:
                instance.stop()
        except (Exception, SystemExit):
            log.exception("Connector %s could not be stopped in order, and may still hold what it used", name)
        finally:
            hosted.gone.set()

    def _tasks_to_ask_for(self, config: Mapping[str, str]) -> int:
        """One more than it may have: enough to see that it wants too many, and not a million in this process's memory."""
        return min(max_tasks(config), self._max_tasks + 1)

    def _on_started(self, name: str, hosted: _Hosted, instance: Connector, config: Mapping[str, str], configs: TaskConfigs) -> None:
        hosted.instance = instance
        if self._hosted.get(name) is not hosted:
            self._retire(name, hosted)
            return
        if hosted.state == "FAILED":  # it has raised an error meanwhile
            self._free(name, hosted)
            return
        refusal = self._too_many(name, config, len(configs))
        if refusal is not None:
            self._on_failed(name, hosted, refusal)
            return
        log.info("Connector %s runs with %d task(s)", name, len(configs))
        self._metrics.connector_startup(True)
        self._report(name, hosted, "RUNNING")
        self._on_task_configs(name, hosted.config, configs)
        self._settle(hosted, None)
        if hosted.divide_again:
            self._divide(name, hosted)

    def _too_many(self, name: str, config: Mapping[str, str], count: int) -> ConnectError | None:
        """Return why a connector may not have this number of tasks."""
        limit = max_tasks(config)
        if count > self._max_tasks:
            text = (
                f"The connector {name} wants more than {self._max_tasks} tasks, which is the most that a connector may have on this worker."
            )
            advice = (
                "No task was started or changed. Each is a process: lower tasks.max, or have the worker's operator raise "
                f"{TASKS_OF_CONNECTOR} (docs/configuration.md)."
            )
        elif count > limit and config.get("tasks.max.enforce", "true").strip().lower() != "false":
            text = (
                f"The connector {name} has generated {count} tasks, which is greater than {limit}, the maximum number of tasks it is "
                "configured to create."
            )
            advice = "Raise tasks.max, or let the connector make fewer; tasks.max.enforce=false lets it have them."
        else:
            return None
        refusal = FatalTaskError(text)
        refusal.java_name = "org.apache.kafka.connect.runtime.TooManyTasksException"
        return noted(refusal, advice)

    # -- what a connector asks for (`ConnectorContext`)

    def divide(self, name: str, hosted: _Hosted) -> None:
        """Ask a connector for its tasks once more; any thread may call this."""
        self._post(lambda: self._divide(name, hosted))

    def fail(self, name: str, hosted: _Hosted, error: Exception) -> None:
        """A connector has found an error outside of its methods; any thread may call this."""
        self._post(lambda: self._on_raised(name, hosted, error))

    def read_offsets(self, name: str) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        """Return what the offsets topic holds of a connector. Raises RetriableError."""
        return self._read_offsets(name)

    def _divide(self, name: str, hosted: _Hosted, attempt: int = 0) -> None:
        if self._hosted.get(name) is not hosted or hosted.state == "FAILED":
            return
        if hosted.instance is None or hosted.is_dividing:
            hosted.divide_again = True
            return
        hosted.divide_again, hosted.is_dividing = False, True
        self._pool.submit(self._ask_for_tasks, name, hosted, hosted.instance, attempt)

    def _ask_for_tasks(self, name: str, hosted: _Hosted, instance: Connector, attempt: int) -> None:
        """Runs on the pool."""
        line_logging.context.set(f"{name}|worker")
        try:
            config = self._resolve(name, hosted.config)
            configs = instance.task_configs(self._tasks_to_ask_for(config))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a connector may raise anything
            problem = _as_exception(error)
            self._post(lambda: self._on_not_divided(name, hosted, problem, attempt))
            return
        self._post(lambda: self._on_divided(name, hosted, config, configs))

    def _on_divided(self, name: str, hosted: _Hosted, config: Mapping[str, str], configs: TaskConfigs) -> None:
        hosted.is_dividing = False
        if self._hosted.get(name) is not hosted or hosted.state == "FAILED":
            return
        refusal = self._too_many(name, config, len(configs))
        if refusal is not None:
            self._on_failed(name, hosted, refusal)
            return
        self._on_task_configs(name, hosted.config, configs)
        if hosted.divide_again:
            self._divide(name, hosted)

    def _on_not_divided(self, name: str, hosted: _Hosted, error: Exception, attempt: int) -> None:
        """Leave the tasks that run alone, and ask again, as `DistributedHerder` does."""
        hosted.is_dividing = False
        if self._hosted.get(name) is not hosted:
            return
        delay = min(_DIVIDE_RETRY_SECONDS[1], _DIVIDE_RETRY_SECONDS[0] * 2 ** min(attempt, 10))
        trace = self._explain(error, hosted.config)
        log.error("Connector %s could not say what tasks it wants now; it is asked again in %g s: %s", name, delay, headline(trace))
        self._post_later(delay, lambda: self._divide(name, hosted, attempt + 1))

    def _on_raised(self, name: str, hosted: _Hosted, error: Exception) -> None:
        if self._hosted.get(name) is hosted and hosted.state != "FAILED":
            self._on_failed(name, hosted, error)

    def _on_failed(self, name: str, hosted: _Hosted, error: Exception) -> None:
        if self._hosted.get(name) is not hosted:
            return
        if hosted.state != "RUNNING":
            self._metrics.connector_startup(False)
        trace = self._explain(error, hosted.config)
        log.error("Connector %s failed: %s", name, headline(trace))
        self._report(name, hosted, "FAILED", trace)
        self._settle(hosted, error)
        self._free(name, hosted)

    def _report(self, name: str, hosted: _Hosted, state: str, trace: str | None = None) -> None:
        hosted.state = state
        hosted.reported = self._status(state, trace, hosted.version)
        self._metrics.connector_state(name, state)
        self._statuses.put_connector(name, hosted.reported)

    def _retire(self, name: str, hosted: _Hosted) -> None:
        """End one life of a connector."""
        hosted.is_retired = True
        self._settle(hosted, None)
        self._free(name, hosted)

    def _free(self, name: str, hosted: _Hosted) -> None:
        instance, hosted.instance = hosted.instance, None
        if instance is not None:
            self._pool.submit(self._stop, name, hosted, instance)

    @staticmethod
    def _settle(hosted: _Hosted, error: Exception | None) -> None:
        for future in hosted.waiting:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        hosted.waiting.clear()


class _Context:
    """`SourceConnectorContext`; after the end of the connector's life it asks for nothing any more."""

    def __init__(self, connector: str, host: ConnectorHost, hosted: _Hosted) -> None:
        self.connector = connector
        self._host = host
        self._hosted = hosted

    def request_task_reconfiguration(self) -> None:
        """Have `task_configs` asked again."""
        self._host.divide(self.connector, self._hosted)

    def raise_error(self, error: Exception) -> None:
        """Make the connector FAILED."""
        self._host.fail(self.connector, self._hosted, error)

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the committed offset of a source partition."""
        wanted = tuple(sorted(partition.items()))
        return next((found for stored, found in self._host.read_offsets(self.connector) if tuple(sorted(stored.items())) == wanted), None)


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else FatalTaskError(f"The connector asked to end the worker: {error!r}")
