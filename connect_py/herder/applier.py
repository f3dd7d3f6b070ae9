"""Apply the configuration topic: make what it says run on this worker (`distributed/DistributedHerder.java`).

Everything that runs follows from the configuration topic and from what the group gives this worker: a request writes to the topic and
returns; the topic's reader calls the listener methods; they post to the herder's thread, which looks at the newest snapshot and starts or
stops what differs. A new connector, a deleted one and a new set of tasks call for a round of the group: what runs of them ends at once, and
what is this worker's after the round is started. So a worker that comes back after a crash, or takes over from Java, does the same as one
that reads a change. The herder's thread owns the hosts of connectors and tasks.

`start_message` makes the ``start`` message of a task's process: everything that the process needs to know (`connect_py.task.main` reads
it).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from connect_py.api import SinkConnector, SourceConnector, SourceOffset, SourcePartition
from connect_py.api.storage import (
    OWN_OFFSETS_TOPIC,
    ClusterConfig,
    ConfigStore,
    OffsetStore,
    RestartRequest,
    Status,
    StatusStore,
    TargetState,
)
from connect_py.clock import SYSTEM_THREADS, Threads
from connect_py.config.connector import CONNECTOR_CLASS, NAME, TASK_CLASS, TOPICS, TOPICS_REGEX, secrets_of
from connect_py.config.restart_policy import RestartPolicy
from connect_py.config.worker import WorkerConfig
from connect_py.data.java_map import in_java_order
from connect_py.errors import ConfigError, ConnectError, RestError
from connect_py.group.membership import Share
from connect_py.group.peers import Peers, address_of
from connect_py.group.protocol import Allocation, GroupAssignment, GroupProtocol, TaskId
from connect_py.herder import session_key
from connect_py.herder.assignment import Assignment
from connect_py.herder.fencing import SYNC_SECONDS, Fencing, ask_leader
from connect_py.herder.late_tombstones import LateTombstones
from connect_py.herder.offsets import GroupAdmin
from connect_py.herder.session_key import SessionKeySettings
from connect_py.herder.shutdown import ShutdownSequence
from connect_py.herder.signals import Notifications
from connect_py.herder.thread import HerderThread, instant
from connect_py.host.connectors import CONNECTOR_STOP_SECONDS, ConnectorHost, TaskConfigs
from connect_py.host.facts import FACTS_PROCESS, FactsHost
from connect_py.host.process import Event, Launcher, TaskProcess
from connect_py.host.tasks import TaskHost, TaskSpec
from connect_py.host.verifications import VERIFICATION_PROCESS, Verifications
from connect_py.kafka.client import ExactlyOnceSupport
from connect_py.kafka.transactions import fence_tasks
from connect_py.log import levels
from connect_py.log import lines as line_logging
from connect_py.log.recent import RecentLines
from connect_py.log.redact import PROVIDED, readable, redactor, scrub, secret_values
from connect_py.log.traces import trace_of
from connect_py.log.verbose import PACKAGES, VerboseConnectors
from connect_py.metrics.worker import WorkerMetrics
from connect_py.plugins.registry import Plugins, kinds_of
from connect_py.providers.resolver import Reloads, Resolver, with_variables_kept
from connect_py.task.lease import Leases, now

log = logging.getLogger(__name__)


#: How long the committed offsets may take to be read.
OFFSETS_SECONDS = 90.0


def start_message(
    worker: WorkerConfig,
    plugins: Plugins,
    read_offsets: Callable[[], Iterable[tuple[SourcePartition, SourceOffset]]],
    *,
    connector: str,
    task: int,
    config: Mapping[str, str],
    task_config: Mapping[str, str],
    paused: bool,
    offsets_by_pipe: bool,
) -> dict[str, Any]:
    """Called when no process of the task is left, so the offsets that it reads are the last ones.

    Raises:
        BadRequestError: the connector's class is not installed.
        RetriableError: the offsets cannot be read just now.
    """
    found = plugins.connector(config.get(CONNECTOR_CLASS, ""))
    offsets: list[tuple[dict[str, Any], dict[str, Any]]] = []
    is_source = issubclass(found, SourceConnector)
    exactly_once = is_source and worker.exactly_once is ExactlyOnceSupport.ENABLED and not offsets_by_pipe
    if is_source and not exactly_once:
        offsets = [(dict(partition), dict(offset)) for partition, offset in read_offsets()]
    return {
        "type": "start",
        "connector": connector,
        "task": task,
        "class": found.java_name,
        "config": dict(config),
        "task_config": dict(task_config),
        "worker": dict(worker.raw),
        "plugins": plugins.references,
        "offsets": offsets,
        "offsets_by_pipe": offsets_by_pipe,
        "leased": is_source and not offsets_by_pipe,
        "exactly_once": exactly_once,
        "flush_interval": worker.flush_interval_seconds,
        "flush_timeout": worker.flush_timeout_seconds,
        "topic_creation": worker.topic_creation,
        "paused": paused,
        "log_level": logging.getLogger().level,
        "log_levels": _levels_of_loggers(),
    }


def _levels_of_loggers() -> dict[str, int]:
    """Return loggers with a level of their own."""
    known = logging.getLogger().manager.loggerDict
    return {name: made.level for name, made in known.items() if isinstance(made, logging.Logger) and made.level}


#: DistributedHerder's START_STOP_THREAD_POOL_SIZE.
_POOL_SIZE = 8

#: A process that is being launched misses what is sent to it, and is there after so long.
_LAUNCH_SECONDS = 5.0

#: Characters of a line of a task: its own events are bounded, and those of its children are not.
_MAX_LINE = 200_000

#: What a worker that is gone may have reported last of what it ran.
_LIVING = frozenset({"RUNNING", "PAUSED", "RESTARTING", "STOPPED"})

#: How soon it is looked whether what was told to stop has ended.
_ENDED_SECONDS = 0.01

#: How long the last reports of revoked work hold the group's round up while Kafka is unavailable.
_LAST_REPORTS_SECONDS = 5.0

#: Attempts within a minute, for which Connect does not complain of a signature: the key may just have been replaced.
_ROTATING_ATTEMPTS = 8

#: How long the offsets may take that tell how far a stopped connector is behind.
_FACTS_OFFSETS_SECONDS = 5.0

#: Delays between attempts to publish task configurations: 250 ms doubling to 60 s.
_PUBLISH_RETRY_SECONDS = (0.25, 60.0)


@dataclass(eq=False, slots=True)
class _Publication:
    """The newest task configurations that a connector has made on this worker; the herder's thread owns it.

    Attributes:
        made_of: the connector's configuration of which they were made.
        attempts: how often they were to be stored.
        is_with_leader: they are on their way to the leader.
    """

    made_of: Mapping[str, str]
    configs: TaskConfigs
    attempts: int = 0
    is_with_leader: bool = False

    @property
    def delay(self) -> float:
        """Seconds before it is looked again whether they are stored."""
        first, longest = _PUBLISH_RETRY_SECONDS
        return min(longest, first * 2.0 ** min(max(self.attempts - 1, 0), 20))


class Applier:
    """Makes what the configuration topic says run on this worker. What a request writes is written elsewhere, and followed here.

    Args:
        admin: asked for offsets of sinks' groups.
        cluster_id: the Kafka cluster's id.
        worker_id: host:port by which statuses name this worker.
        task_command: the command line of a task's process.
        peers: sends requests to other workers.
        connector_stop_seconds: how long a connector may take to stop before nobody waits for it any longer.
        offsets_by_pipe: whether tasks hand their offsets to this worker instead of writing them to the offsets topic.
        thread: does all the work; a new one by default.
        threads: makes the others, and has the time.
        launcher: starts task processes; by default those of `task_command`.
        lease_clock: of leases.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        plugins: Plugins,
        configs: ConfigStore,
        statuses: StatusStore,
        offsets: OffsetStore,
        admin: GroupAdmin,
        assignment: Assignment,
        *,
        worker_id: str,
        cluster_id: str,
        task_command: Sequence[str],
        offsets_by_pipe: bool = False,
        thread: HerderThread | None = None,
        peers: Peers | None = None,
        connector_stop_seconds: float = CONNECTOR_STOP_SECONDS,
        threads: Threads = SYSTEM_THREADS,
        launcher: Launcher | None = None,
        lease_clock: Callable[[], float] = now,
    ) -> None:
        self.worker = worker
        self.plugins = plugins
        self.configs = configs
        self.statuses = statuses
        self.offsets = offsets
        self.admin = admin
        self.assignment = assignment
        self.worker_id = worker_id
        self.cluster_id = cluster_id
        self._offsets_by_pipe = offsets_by_pipe
        self._connector_stop_seconds = connector_stop_seconds
        self._clock = threads
        self._launcher = launcher or Launcher(task_command, forks=worker.has_fork_server)
        self.thread = thread or HerderThread(threads)
        self._pool = threads.pool(_POOL_SIZE, "start-stop")
        self.ready = threading.Event()
        self._to_leader = threads.pool(1, "to-leader")
        self.peers = peers or Peers()
        self._incarnations = 0
        self._publications: dict[str, _Publication] = {}
        self.metrics = WorkerMetrics(assignment.rebalances, assignment.coordination, self._runs_elsewhere, assignment.traffic)
        self.notifications = Notifications()
        self.recent_lines = RecentLines()
        self._verbose = VerboseConnectors()
        self.variables = Resolver.from_worker(worker.raw, plugins.load)
        self._reloads = Reloads(self.variables, self.thread, self._reload)
        self._leases: Leases | None = None
        if assignment.lease_seconds is not None:
            self._leases = Leases(assignment.lease_seconds, assignment.lease_until, threads=threads, clock=lease_clock)
        self._known: frozenset[str] = frozenset()
        self._followers: list[Callable[[], None]] = []
        self._abandons_asked = self._abandons_done = self._abandoned_generation = 0
        self._facts = FactsHost(
            plugins, self.metrics, spawn=self._spawn_facts, read_offsets=self._offsets_soon, is_off=worker.facts_seconds <= 0
        )
        self.verifications = Verifications(self._spawn_verification)
        self._connectors = ConnectorHost(
            plugins,
            statuses,
            self._pool,
            post=self.thread.post,
            post_later=self.thread.post_later,
            status=self._status,
            on_task_configs=self._publish_tasks,
            explain=self._explain,
            metrics=self.metrics,
            resolve=self._reloads.resolve,
            read_offsets=self._read_offsets,
            open_offsets=self._open_offsets,
            max_tasks_of_connector=worker.max_tasks_of_connector,
            facts=self._facts,
            stop_seconds=connector_stop_seconds,
            clock=threads,
        )
        self.tasks = TaskHost(
            statuses,
            self._pool,
            post=self.thread.post,
            post_later=self.thread.post_later,
            spawn=self._spawn,
            store_offsets=offsets.put,
            status=self._status,
            stop_timeout=worker.graceful_shutdown_seconds,
            max_tasks_of_connector=worker.max_tasks_of_connector,
            max_tasks=worker.max_tasks,
            metrics=self.metrics,
            notified=lambda task_id, notification: self.notifications.add(*task_id, notification),
            is_sure=lambda: not self._has_lost and (self._leases is None or self._leases.is_sure),
            is_configured=lambda name: name in self.configs.snapshot().connectors,
            ask=self._answer_task,
            tracks_topics=worker.topic_tracking,
            clock=threads.now,
        )
        self.fencing = Fencing(configs, self._is_source, self._fence)
        self._shutdown = ShutdownSequence(
            self.thread,
            self._connectors,
            self.tasks,
            configs=configs,
            statuses=statuses,
            offsets=offsets,
            assignment=assignment,
            seconds=worker.graceful_shutdown_seconds,
        )

    # -- life of the worker

    def start(self) -> None:
        """Read the stores to their ends and start everything that is configured.

        Raises:
            ConfigError: an internal topic is not as it must be.
            RetriableError: Kafka does not answer.
        """
        log.info("%sHerder starting", self._log_prefix)
        self._launcher.begin()
        self.assignment.start(self)
        self.offsets.start()
        self.statuses.start()
        self.statuses.on_topics_reset(self._on_topics_reset)
        self.statuses.on_forgotten(LateTombstones(self.thread, self._pool, self.configs, self.tasks, self._connectors).look)
        self.configs.start(self)
        if self._leases is not None:
            self._leases.start()
        self.thread.start()
        log.info("%sHerder started", self._log_prefix)
        self.assignment.allow_joining()

    def begin_stop(self) -> None:
        """Ask the tasks to end within ``task.shutdown.graceful.timeout.ms``. Requests are answered until `stop`, which waits for them."""
        self._shutdown.begin()

    def stop(self) -> None:
        """Stop everything within ``task.shutdown.graceful.timeout.ms`` and report it UNASSIGNED. Called after a failed `start`, too."""
        self._facts.close()
        self.verifications.close()
        self._shutdown.finish(self._pool)
        self._launcher.close()
        self._to_leader.shutdown(wait=False, cancel_futures=True)
        if self._leases is not None:
            self._leases.stop()
        self.variables.close()

    # -- what the group gives this worker (Work; called by the membership)

    def snapshot(self) -> ClusterConfig:
        """Return the configuration as it has been read so far."""
        return self.configs.snapshot()

    def refresh(self, seconds: float) -> None:
        """Read the configuration to its present end. Raises RetriableError."""
        self.configs.refresh(seconds)

    def revoke(self, work: Allocation) -> threading.Event:
        """Stop connectors and tasks, and report them UNASSIGNED; the event is set when that is done."""
        done = threading.Event()
        self.thread.post(lambda: self._give_up(work, done), "stopping connectors and tasks that were revoked")
        return done

    def carry_out(self, given: Share, received: GroupAssignment) -> None:
        """Start what is new of this worker's share."""
        self.thread.post(lambda: self._carry_out(given, received), "starting connectors and tasks after a rebalance")

    def abandon(self) -> threading.Event:
        """End everything without a report: other workers may run it already. The event is set when it has ended."""
        self._abandoned_generation = self.assignment.generation
        self._abandons_asked += 1
        if self._leases is not None:
            self._leases.abandon()
        done = threading.Event()
        self.thread.post(lambda: self._abandon(done), "ending what other workers may run")
        return done

    def after_rounds(self, follower: Callable[[], None]) -> None:
        """Have something called, on the herder's thread, after each round."""
        self._followers.append(follower)

    def _give_up(self, work: Allocation, done: threading.Event) -> None:
        log.info("%sGiving up %s", self._log_prefix, _listed(work))
        for name in work.connectors:
            self._publications.pop(name, None)
            self._connectors.give_up(name)
        self.tasks.give_up(work.tasks)
        self._when_ended(work, lambda: self._flush_and(done))

    def _flush_and(self, done: threading.Event) -> None:
        """Other workers report what they start after these last reports of ours."""

        def work() -> None:
            try:
                self.statuses.flush(_LAST_REPORTS_SECONDS)
            except ConnectError as error:
                log.warning("The states of what was revoked could not be written yet: %s", error)
            done.set()

        self._pool.submit(work)

    def _when_ended(self, work: Allocation, then: Callable[[], None], deadline: float | None = None) -> None:
        """Tasks end, if need be by a signal. A connector that does not, since its code does not return, holds nobody up for long: the
        group would wait with it (`Worker.awaitStopConnector`)."""
        until = self._clock.now() + self._connector_stop_seconds if deadline is None else deadline
        stuck = [name for name in work.connectors if not self._connectors.has_ended(name)]
        if not self.tasks.have_ended(work.tasks) or (stuck and self._clock.now() < until):
            self.thread.post_later(_ENDED_SECONDS, lambda: self._when_ended(work, then, until))
            return
        for name in stuck:
            log.error(
                "Connector %s has not stopped within %g s, and may still use what it holds. The group goes on without it; what it holds "
                "is free once this worker is restarted",
                name,
                self._connector_stop_seconds,
            )
        then()

    def _abandon(self, done: threading.Event) -> None:
        self._publications.clear()
        ending = Allocation((), tuple(TaskId(*task) for task in self.tasks.abandon()))
        self._connectors.abandon()
        self._abandons_done += 1
        self._when_ended(ending, done.set)

    def _carry_out(self, given: Share, received: GroupAssignment) -> None:
        snapshot = self.configs.snapshot()
        if given.generation != self.assignment.generation:
            return  # another round is over
        if snapshot.offset != given.config_offset:
            self.assignment.rejoin()  # more has been read since
            return
        if self.worker.group_id is not None:
            log.info("%sJoined group at %s", self._log_prefix, _described(given, received))
        self._known = frozenset(snapshot.connectors)
        if self.assignment.is_leader:
            self._forget_statuses(snapshot)
            self._report_lost(given)
            for name in snapshot.connectors:
                self._empty_stopped(name)
        log.info("%sStarting connectors and tasks using config offset %d", self._log_prefix, snapshot.offset)
        new = [name for name in given.work.connectors if name in self._known and not self._connectors.is_hosting(name)]
        for name in given.work.connectors:
            if name in new:
                self.run_connector(name)
            else:
                self._keep_published(name)
        for name in dict.fromkeys(task.connector for task in given.work.tasks):
            wanted, known = self.tasks.specs(name), snapshot.tasks(name)
            numbers = [task.task for task in given.work.tasks if task.connector == name and task.task in known and task.task not in wanted]
            if numbers:
                self._pause_or_resume(name, snapshot.target_state(name))
                self.tasks.add([self.spec(snapshot, name, number) for number in numbers])
        log.info("%sFinished starting connectors and tasks", self._log_prefix)
        if new:
            log.info("Starting %d connector(s): %s", len(new), ", ".join(sorted(new)))
        self.ready.set()
        for follower in self._followers:
            follower()

    def _report_lost(self, given: Share) -> None:
        """Say of work that waits for a worker that is gone that nobody runs it; under Connect it shows RUNNING until it is given away."""
        for item, url in given.waiting.items():
            known = self.statuses.task(*item) if isinstance(item, TaskId) else self.statuses.connector(item)
            if known is None or known.state not in _LIVING or known.worker_id != address_of(url):
                continue
            seconds, noticed = given.delay_ms / 1000, time.time()
            trace = (
                f"The worker {known.worker_id} is gone. The group has been without it since {instant(noticed)}. "
                f"Its work goes to another one at {instant(noticed + seconds)}, which is {seconds:g} s later, unless it comes back.\n"
            )
            status = Status("UNASSIGNED", known.worker_id, given.generation, trace, known.version)
            if isinstance(item, TaskId):
                self.statuses.put_task(*item, status, safe=True)
            else:
                self.statuses.put_connector(item, status, safe=True)

    def _forget_statuses(self, snapshot: ClusterConfig) -> None:
        """The leader forgets what is no longer configured (`DistributedHerder.updateDeletedConnectorStatus`)."""
        for name in self.statuses.connectors():
            if name not in snapshot.connectors:
                self.statuses.delete_connector(name)
        for name in snapshot.connectors:
            for number in set(self.statuses.tasks(name)) - set(snapshot.tasks(name)):
                if self.tasks.have_ended([(name, number)]):
                    self.statuses.delete_task(name, number)

    @property
    def _log_prefix(self) -> str:
        """What begins the lines for which scripts wait (`DistributedHerder`'s LogContext)."""
        if self.worker.group_id is None:
            return ""
        client = self.worker.raw.get("client.id") or f"connect-{self.worker_id}"
        return f"[Worker clientId={client}, groupId={self.worker.group_id}] "

    # -- what the configuration topic says (ConfigListener; called by the store's reader)

    def on_connector_config(self, connector: str) -> None:
        """A connector is new or has another configuration."""
        self.thread.post(lambda: self._start_connector(connector))

    def on_connector_removed(self, connector: str) -> None:
        """A connector is deleted."""
        self.assignment.hold()
        self.thread.post(lambda: self._remove(connector))

    def on_task_configs(self, connector: str) -> None:
        """A connector has a new set of tasks."""
        self.assignment.hold()
        self.thread.post(lambda: self._stop_tasks(connector))

    def on_target_state(self, connector: str) -> None:
        """A connector should run, rest or stop."""
        self.thread.post(lambda: self._enter_target_state(connector))

    def on_restart_request(self, request: RestartRequest) -> None:
        """Someone asked for a restart (KIP-745)."""
        self.thread.post(lambda: self._restart(request))

    def on_logger_level(self, namespace: str, level: str) -> None:
        """Someone set a log level for all workers (KIP-976)."""
        if level.upper() in levels.LEVELS:
            levels.PROCESS.set_level(namespace, level)
        else:
            log.warning("The log level %s for %s, asked for by another worker, is not known here and changes nothing", level, namespace)

    def log_more(self, connector: str, seconds: float) -> None:
        """Have a connector's tasks on this worker log DEBUG for so long, also those that begin meanwhile; 0 ends it. Any thread."""
        self._verbose.begin(connector, seconds)

        def send() -> None:
            self._send_levels(connector)
            for later in {_LAUNCH_SECONDS, seconds, seconds + _LAUNCH_SECONDS} if seconds > 0 else {_LAUNCH_SECONDS}:
                self.thread.post_later(later, lambda: self._send_levels(connector))

        self.thread.post(send, f"changing the log level of connector {connector}")

    def logs_more_until(self, connector: str) -> float | None:
        """Return until when `log_more` has an effect, seconds since 1970; None where it has none."""
        return self._verbose.until(connector)

    def _send_levels(self, connector: str) -> None:
        for logger, level in self._verbose.levels(connector, self._packages_of(connector)).items():
            self.tasks.tell(connector, {"type": "log_level", "logger": logger, "level": level})

    def _packages_of(self, connector: str) -> frozenset[str]:
        """Return the packages whose loggers a connector's tasks have: this project's, and the one that its plugin is in."""
        config = self.configs.snapshot().connectors.get(connector, {})
        try:
            return PACKAGES | {self.plugins.connector(config.get(CONNECTOR_CLASS, "")).__module__.partition(".")[0]}
        except ConnectError:
            return PACKAGES

    def _on_topics_reset(self, connector: str) -> None:
        """Some worker has forgotten a connector's topics: tasks that run here report theirs again (called by the status store's reader)."""
        self.thread.post(lambda: self.tasks.forget_topics(connector), f"resetting the topics of connector {connector}")

    # -- on the herder's thread

    def _start_connector(self, name: str) -> None:
        # A restart may have started it here before what the round gave was carried out, and the next round starts only what does not run.
        if name in self._known or self._connectors.is_hosting(name):
            self.run_connector(name)
        if name not in self._known:
            self.assignment.rejoin()

    def run_connector(self, name: str, *, restarting: bool = False) -> Future[None] | None:
        snapshot = self.configs.snapshot()
        config = snapshot.connectors.get(name)
        if config is None or not self.assignment.owns_connector(name):
            return None
        self._secrets_of(name, config)
        return self._connectors.run(name, config, snapshot.target_state(name), restarting=restarting)

    def _remove(self, name: str) -> None:
        if name in self.configs.snapshot().connectors:
            self.assignment.release()
            return  # it has been created again; that record's event follows
        for known in (line_logging.SECRETS, PROVIDED):
            known.forget(name)
        self._known -= {name}
        self._publications.pop(name, None)
        self._connectors.remove(name)
        ending = Allocation((name,), tuple(TaskId(name, number) for number in self.tasks.specs(name)))
        self.tasks.set_tasks(name, {})
        self.tasks.pause(name, False)
        if self.assignment.is_leader:
            self.statuses.delete_connector(name)
            self.statuses.delete_topics(name)
        self.notifications.forget(name)
        self.recent_lines.forget(name)
        self._verbose.begin(name, 0)
        self.metrics.forget(self.configs.snapshot().connectors)
        log.info("Connector %s is deleted", name)
        self._when_ended(ending, self.assignment.release)

    def _enter_target_state(self, name: str) -> None:
        snapshot = self.configs.snapshot()
        if name not in snapshot.connectors:
            return
        target = snapshot.target_state(name)
        self._pause_or_resume(name, target)
        self._connectors.set_target(name, target)
        self._empty_stopped(name)
        if target is not TargetState.STARTED:  # of a resume its owner says so
            log.info("Connector %s is %s", name, target.value.lower())

    def _pause_or_resume(self, name: str, target: TargetState) -> None:
        if target is not TargetState.STOPPED:  # a resume on the way to the stop would let a paused task read on
            self.tasks.pause(name, target is TargetState.PAUSED)

    def _stop_tasks(self, name: str) -> None:
        """A connector has other tasks: the old ones end before any of the new ones starts, on whichever worker."""
        configured = self.configs.snapshot().tasks(name)
        running = [TaskId(name, number) for number in self.tasks.specs(name)]
        self.tasks.delete([task for task in running if task.task not in configured])
        self.tasks.suspend([task for task in running if task.task in configured])
        self._when_ended(Allocation((), tuple(running)), self.assignment.release)
        self._empty_stopped(name)
        self._keep_published(name)

    def _empty_stopped(self, name: str) -> None:
        """A stopped connector has no tasks. They may come back by an owner that had not read of the stop yet, where two workers led for a
        moment."""
        snapshot = self.configs.snapshot()
        if not self.assignment.is_leader or snapshot.target_state(name) is not TargetState.STOPPED or not snapshot.tasks(name):
            return
        log.warning("Connector %s is stopped, and %d task(s) were stored after that; they are removed", name, len(snapshot.tasks(name)))
        try:
            self.configs.put_task_configs(name, [])
        except ConnectError as error:
            log.warning("The tasks of the stopped connector %s could not be removed, which the next rebalance tries again: %s", name, error)

    def spec(self, snapshot: ClusterConfig, name: str, number: int) -> TaskSpec:
        config, task_config = snapshot.connectors.get(name, {}), snapshot.task_configs.get((name, number), {})
        self._incarnations += 1
        try:
            made = self.plugins.connector(config.get(CONNECTOR_CLASS, ""))
            version, is_source = made.version, issubclass(made, SourceConnector)
        except ConnectError:
            version, is_source = None, False

        def start(paused: bool) -> dict[str, Any]:
            message = start_message(
                self.worker,
                self.plugins,
                lambda: self._stored_offsets(name, config),
                connector=name,
                task=number,
                config=config,
                task_config=task_config,
                paused=paused,
                offsets_by_pipe=self._offsets_by_pipe,
            )
            if self._verbose.until(name) is not None:
                message["log_levels"] |= self._verbose.levels(name, self._packages_of(name))
            return message

        try:
            policy = RestartPolicy.of(self.worker.raw, config)
        except ConfigError as error:  # written by another worker, which did not look at it
            log.warning("Failed tasks of %s are not restarted: %s", name, error)
            policy = RestartPolicy()
        return TaskSpec(name, number, self._incarnations, version, start, policy, is_source)

    def _spawn(self, start: Mapping[str, Any], on_event: Callable[[Event], None]) -> TaskProcess:
        name, task = start["connector"], f"{start['connector']}-{start['task']}"
        redact = redactor(self._secrets_of(name, start["config"]) | self._secrets_of(name, start["task_config"]))
        process = self._launcher.run(
            task,
            start,
            on_event,
            forward=self.recent_lines.keeper(name, start["task"], line_logging.forwarder(f"{start['connector']}|task-{start['task']}")),
            redact=lambda text: readable(scrub(PROVIDED(redact(text))), _MAX_LINE),
        )
        if start.get("leased") and self._leases is not None and not self._has_lost:
            self._leases.add(process)
        return process

    def _spawn_facts(self, on_event: Callable[[Event], None]) -> TaskProcess:
        """Start the process that asks sources for the state of their logs. Raises OSError."""
        start = {"type": "facts", "connector": "connect-py", "task": "source-facts", "interval": self.worker.facts_seconds}
        return self._spawn_helper(FACTS_PROCESS, "facts", start, on_event)

    def _spawn_verification(self, start: Mapping[str, Any], on_event: Callable[[Event], None]) -> TaskProcess:
        """Start the process that compares lakehouse tables with their sources. Raises OSError."""
        return self._spawn_helper(VERIFICATION_PROCESS, "verification", {**start, "type": "verification", "task": "verification"}, on_event)

    def _spawn_helper(self, name: str, context: str, start: Mapping[str, Any], on_event: Callable[[Event], None]) -> TaskProcess:
        """Start a process of this worker's that is no task's; `context` begins its lines in the log. Raises OSError."""
        common = {
            "config": {},
            "paused": False,
            "worker": dict(self.worker.raw),
            "plugins": self.plugins.references,
            "log_level": logging.getLogger().level,
            "log_levels": _levels_of_loggers(),
        }
        return self._launcher.run(
            name,
            {**common, **start},
            on_event,
            forward=line_logging.forwarder(context),
            redact=lambda text: readable(scrub(PROVIDED(text)), _MAX_LINE),
        )

    def _offsets_soon(self, name: str) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        config = self.configs.snapshot().connectors.get(name, {})
        values = self.variables.resolve(config).values if OWN_OFFSETS_TOPIC in config else config
        return self.offsets.read(name, values, _FACTS_OFFSETS_SECONDS)

    def _answer_task(self, question: str, task_id: tuple[str, int]) -> Mapping[str, Any]:
        """What an exactly-once task asks before it reads; on the pool. Raises ConnectError."""
        name = task_id[0]
        if question == "admit":
            self.configs.refresh(OFFSETS_SECONDS)
            return {"offsets": [(dict(partition), dict(offset)) for partition, offset in self._read_offsets(name)]}
        ask_leader(lambda: self._have_fenced(name), lambda: self.assignment.owns_task(*task_id), lambda: self.configs.refresh(SYNC_SECONDS))
        return {}

    def _have_fenced(self, name: str) -> None:
        if self.assignment.is_leader:
            self.fencing.fence(name)
        else:
            self.peers.fence(self.assignment.leader_url, name, self.sign)

    def _is_source(self, snapshot: ClusterConfig, name: str) -> bool:
        try:
            return "source" in kinds_of(self.plugins.connector(snapshot.connectors[name].get(CONNECTOR_CLASS, "")))
        except ConnectError:
            return False

    def _fence(self, name: str, tasks: Iterable[int]) -> None:
        config = self.variables.resolve(self.configs.snapshot().connectors.get(name, {})).values
        fence_tasks(self.worker.raw, name, tasks, config)

    def _read_offsets(self, name: str) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        return self._stored_offsets(name, self.configs.snapshot().connectors.get(name, {}))

    def _open_offsets(self, name: str, config: Mapping[str, str]) -> None:
        """Create and read a source's own offsets topic, as `WorkerConnector.initialize` does; the worker's own is open already."""
        if config.get(OWN_OFFSETS_TOPIC, "").strip():
            self.offsets.read(name, config, OFFSETS_SECONDS)

    def _stored_offsets(self, name: str, config: Mapping[str, str]) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        if OWN_OFFSETS_TOPIC in config:
            config = self.variables.resolve(config).values
        return self.offsets.read(name, config, OFFSETS_SECONDS)

    def _publish_tasks(self, name: str, made_of: Mapping[str, str], configs: TaskConfigs) -> None:
        """Store a started connector's task configurations in place of what is still being stored of it."""
        publication = self._publications[name] = _Publication(made_of, configs)
        self._publish(name, publication)

    def _publish(self, name: str, publication: _Publication) -> None:
        """Store task configurations, unless they are what is stored already, and will be after compaction, for the very same configuration,
        or are outdated: newer ones follow, or the connector has been changed, stopped or deleted meanwhile."""
        if self._publications.get(name) is not publication or publication.is_with_leader:
            return
        snapshot = self.configs.snapshot()
        config = snapshot.connectors.get(name)
        if config is None or dict(config) != dict(publication.made_of) or snapshot.target_state(name) is not TargetState.STARTED:
            return
        connector = self.plugins.connector(config.get(CONNECTOR_CLASS, ""))
        wanted = [self._task_config(connector, config, made) for made in publication.configs]
        stored = [snapshot.task_configs.get((name, number)) for number in snapshot.tasks(name)]
        is_of_this = dict(snapshot.applied.get(name, {})) == dict(config) and name not in snapshot.unfinished
        if wanted == stored and is_of_this:
            return
        publication.attempts += 1

        def again(error: ConnectError) -> None:
            publication.is_with_leader = False
            delay = publication.delay
            is_rotating = isinstance(error, RestError) and error.status == 403 and publication.attempts <= _ROTATING_ATTEMPTS
            level = logging.INFO if is_rotating else logging.WARNING
            log.log(level, "Task configurations of %s could not be stored; tried again in %.2f s: %s", name, delay, error)
            self._publish_later(name, publication)

        if self.assignment.is_leader:
            try:
                self.configs.put_task_configs(name, wanted)
            except ConnectError as error:
                again(error)
        else:
            publication.is_with_leader = True
            self._to_leader.submit(self._hand_to_leader, name, publication, wanted, again)

    def _publish_later(self, name: str, publication: _Publication) -> None:
        self.thread.post_later(publication.delay, lambda: self._publish(name, publication))

    def _keep_published(self, name: str) -> None:
        """A set of tasks has been stored, or another worker leads: look, a little later, whether the newest set that the connector has made
        here is stored, and store it again if it is not. A leader that was cut off, or the worker that had the connector before, may store
        an older set late, and one that dies may leave half a set; no record would ever replace these. The delay grows with each time, so
        that two workers that have the connector for a moment do not store theirs in turns."""
        publication = self._publications.get(name)
        if publication is not None:
            self._publish_later(name, publication)

    def _hand_to_leader(
        self, name: str, publication: _Publication, wanted: Sequence[Mapping[str, str]], again: Callable[[ConnectError], None]
    ) -> None:
        """Runs on a thread of its own: one request at a time, as `DistributedHerder.forwardRequestExecutor`. While this one waited for its
        turn, newer task configurations may have followed, or another worker has been given the connector."""
        if self._publications.get(name) is not publication:
            return
        try:
            self.peers.put_task_configs(self.assignment.leader_url, name, wanted, self.sign)
        except ConnectError as error:
            problem = error
            self.thread.post(lambda: again(problem), "storing task configurations")
            return
        except Exception as error:
            log.exception("Task configurations of %s could not be sent to the leader", name)
            other = ConnectError(str(error))
            self.thread.post(lambda: again(other), "storing task configurations")
            return
        with contextlib.suppress(ConnectError):  # so that what has been stored is known when it is looked at
            self.configs.refresh(SYNC_SECONDS)

        def stored() -> None:
            publication.is_with_leader = False
            self._keep_published(name)

        self.thread.post(stored, "storing task configurations")

    def _runs_elsewhere(self, name: str) -> bool:
        return any(status.state == "RUNNING" and status.worker_id != self.worker_id for status in self.statuses.tasks(name).values())

    def sign(self, body: bytes) -> Mapping[str, str]:
        """Return the headers that sign a request to another worker; none where the group does not sign, or has no key yet."""
        if self.assignment.protocol is not GroupProtocol.SESSIONED:
            return {}
        return session_key.sign(body, self.configs.snapshot().session_key, SessionKeySettings.parse(self.worker.raw))

    @staticmethod
    def _task_config(connector: Any, config: Mapping[str, str], made: Mapping[str, str]) -> dict[str, str]:
        """Return a task's configuration with what the worker adds (`Worker.connectorTaskConfigs`)."""
        known = {name: value for name, value in made.items() if value is not None}  # as the topic keeps them
        full = {**known, TASK_CLASS: connector.java_task_name}
        if issubclass(connector, SinkConnector):
            full |= {key: config[key] for key in (TOPICS, TOPICS_REGEX) if config.get(key)}
        return in_java_order(with_variables_kept(full, config))

    def _restart(self, request: RestartRequest) -> None:
        name = request.connector
        connector, tasks = self.restart_plan(request)
        snapshot = self.configs.snapshot()
        if connector:
            self.run_connector(name, restarting=True)
        for number in tasks:
            if number in snapshot.tasks(name) and self.assignment.owns_task(name, number):
                self.tasks.restart(self.spec(snapshot, name, number))

    def _reload(self, name: str, config: Mapping[str, str]) -> None:
        """Values of a connector's configuration have had their time: start it and its tasks with new ones, if it still is this one."""
        snapshot = self.configs.snapshot()
        if snapshot.connectors.get(name) == config and snapshot.target_state(name) is TargetState.STARTED:
            log.info("Restarting connector %s, because values from a config provider have expired", name)
            self._restart(RestartRequest(name, include_tasks=True, only_failed=False))

    def restart_plan(self, request: RestartRequest) -> tuple[bool, list[int]]:
        """Return whether the connector, and which of its tasks, a request restarts (`runtime/RestartPlan.java`)."""
        connector = self.statuses.connector(request.connector)
        chosen = connector is not None and (not request.only_failed or connector.state == "FAILED")
        if not request.include_tasks:
            return chosen, []
        tasks = self.statuses.tasks(request.connector)
        return chosen, sorted(number for number, status in tasks.items() if not request.only_failed or status.state == "FAILED")

    @property
    def _has_lost(self) -> bool:
        """Whether a lease is over and that is not carried out yet; this worker may be in a later round already."""
        return self._abandons_done != self._abandons_asked

    def _status(self, state: str, trace: str | None, version: str | None) -> Status:
        generation = self._abandoned_generation if self._has_lost else self.assignment.generation
        return Status(state, self.worker_id, generation, trace, version)

    def _explain(self, error: Exception, config: Mapping[str, str]) -> str:
        return readable(scrub(PROVIDED(redactor(self._secrets_of(config.get(NAME, ""), config))(trace_of(error)))))

    def _secrets_of(self, name: str, config: Mapping[str, str | None]) -> set[str]:
        """Secrets of a stored configuration and of the worker's; the log of this process hides them until the connector is deleted."""
        found = secrets_of(self.plugins, config)
        line_logging.SECRETS.learn(found, name)
        return found | secret_values(self.worker.raw)


def _listed(work: Allocation) -> str:
    names = [*work.connectors, *(f"{task.connector}-{task.task}" for task in work.tasks)]
    return ", ".join(names) or "nothing"


def _described(given: Share, received: GroupAssignment) -> str:
    """As the reference says it (`ExtendedAssignment.toString`): scripts wait for its beginning, people look for their connectors in it."""

    def connectors(work: Allocation) -> str:
        return ", ".join(work.connectors)

    def tasks(work: Allocation) -> str:
        return ", ".join(f"{task.connector}-{task.task}" for task in work.tasks)

    return (
        f"generation {given.generation} with protocol version {given.protocol.version} and got assignment: Assignment{{"
        f"error={received.error}, leader='{received.leader}', leaderUrl='{received.leader_url}', offset={received.config_offset}, "
        f"connectorIds=[{connectors(received.assigned)}], taskIds=[{tasks(received.assigned)}], "
        f"revokedConnectorIds=[{connectors(received.revoked)}], revokedTaskIds=[{tasks(received.revoked)}], "
        f"delay={received.delay_ms}}} with rebalance delay: {received.delay_ms}"
    )
