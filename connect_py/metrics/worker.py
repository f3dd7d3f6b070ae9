"""Count what a worker does, and keep the last report of each of its tasks.

After `runtime/WorkerMetricsGroup.java`, `ConnectWorkerMetricsRegistry` and `distributed/DistributedHerder.HerderMetrics`.

The herder's thread writes, the REST server's threads read; one lock. A scrape therefore never waits for the herder.

`snapshot_of` makes what a status shows of a source's snapshot from the figures that its task reports: an extension of ours, which clients
of Connect ignore.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connect_py.api.facts import POSITION_GROUP
from connect_py.api.task import NOTES_DOMAIN, MetricGroup, MetricValue
from connect_py.metrics.commits import TABLE_GROUP, TableCommits
from connect_py.metrics.facts import SourceFactsStore, TaskProgress
from connect_py.metrics.history import SINK_SERIES, SOURCE_SERIES, TaskHistory, TaskMeter, is_sink
from connect_py.metrics.verdict import Judgement, Observed

#: The group by which a task reports its snapshot. Its values: `running`, `paused`, and by table `rows`, `estimated-rows`,
#: `rows-per-second`, `seconds-left` and `done`; a table may be missing from all but `rows`.
GROUP = ("connect.py", "snapshot-progress")


#: The group by which a task says why its snapshot is paused (`reason`), and for how long (`seconds`).
PAUSE_GROUP = (NOTES_DOMAIN, "snapshot-pause")


def snapshot_of(groups: Sequence[MetricGroup]) -> dict[str, Any] | None:
    """``{"state", "rows", "estimated_rows", "paused_reason", "paused_seconds", "tables": [{"table", "state", "rows", "estimated_rows",
    "rows_per_second", "seconds_left"}]}``; None when no snapshot is reported. What is not known is left out."""
    found = next((group for group in groups if (group.domain, group.type) == GROUP), None)
    if found is None:
        return None
    rows, estimates = _map(found, "rows"), _map(found, "estimated-rows")
    state = "PAUSED" if found.values.get("paused") else "RUNNING" if found.values.get("running") else "COMPLETED"
    shown: dict[str, Any] = {"state": state, "rows": sum(rows.values())}
    if estimates.keys() == rows.keys():
        shown["estimated_rows"] = sum(estimates.values())
    shown["tables"] = [_table(found, name, rows[name]) for name in rows]
    pause = next((group.values for group in groups if (group.domain, group.type) == PAUSE_GROUP), None)
    if state == "PAUSED" and pause is not None:
        shown |= {"paused_reason": pause["reason"], "paused_seconds": pause["seconds"]}
    return shown


def _table(group: MetricGroup, name: str, rows: int | float) -> dict[str, Any]:
    shown: dict[str, Any] = {"table": name, "state": "COMPLETED" if _map(group, "done").get(name) else "PENDING", "rows": rows}
    if shown["state"] == "PENDING" and name in _map(group, "rows-per-second"):
        shown["state"] = "RUNNING"
    for figure in ("estimated-rows", "rows-per-second", "seconds-left"):
        if name in _map(group, figure):
            shown[figure.replace("-", "_")] = _map(group, figure)[name]
    return shown


def _map(group: MetricGroup, name: str) -> Mapping[str, int | float]:
    value = group.values.get(name)
    return value if isinstance(value, Mapping) else {}


_DOMAIN = "kafka.connect"

#: States in which a connector's tasks are counted.
_STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")

TaskId = tuple[str, int]

#: What a source says of its log is looked at every 10 s by default: a value stands for the slots of a history since the last look.
_FACTS_REACH = 8

#: How many states of a task are remembered.
_KEPT_EVENTS = 20

#: A history that nobody has written to for this long is of a task that is gone: as long as its longest ring.
_HISTORY_SECONDS = 86_400.0


class ConnectorKind(NamedTuple):
    """What a connector is; `type` is source, sink or unknown."""

    type: str
    class_name: str
    version: str


@dataclass(slots=True)
class _Starts:
    """Attempts to start something, and how they ended."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0

    def ended(self, succeeded: bool) -> None:
        self.attempts += 1
        if succeeded:
            self.successes += 1
        else:
            self.failures += 1

    def values(self, what: str) -> dict[str, MetricValue]:
        share = self.attempts or math.inf
        return {
            f"{what}-startup-attempts-total": self.attempts,
            f"{what}-startup-success-total": self.successes,
            f"{what}-startup-success-percentage": self.successes / share,
            f"{what}-startup-failure-total": self.failures,
            f"{what}-startup-failure-percentage": self.failures / share,
        }


@dataclass(slots=True)
class _Task:
    status: str = "unassigned"
    pid: int | None = None
    has_started: bool = False
    groups: Sequence[MetricGroup] = field(default_factory=list)
    progress: TaskProgress = field(default_factory=TaskProgress)
    meter: TaskMeter = field(default_factory=TaskMeter)
    latest: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """What this worker knows of a task that it runs.

    Attributes:
        status: running, paused, failed, unassigned or restarting.
        latest: the last value of each series of `connect_py.metrics.history`.
        groups: of the last report.
        process: memory and CPU time, as `task-process` of /metrics.
    """

    status: str
    latest: Mapping[str, float]
    groups: Sequence[MetricGroup]
    process: Mapping[str, MetricValue]


@dataclass(frozen=True, slots=True)
class ConnectorFigures:
    """What a list shows of a connector of this worker.

    Attributes:
        source: `SourceFactsStore.shown`.
        tasks: last values by task number.
        snapshot: of the task that reports one (`snapshot_of`).
        trend: records a second, of all tasks, over the last five minutes.
    """

    source: Mapping[str, Any]
    tasks: Mapping[int, Mapping[str, float]]
    snapshot: Mapping[str, Any] | None
    trend: Sequence[float]


class WorkerMetrics:
    """Counts of this worker, and the last reports of its tasks.

    Args:
        rebalances: figures of the group's rebalances (`connect-worker-rebalance-metrics`), asked for at each scrape.
        coordination: the same of `connect-coordinator-metrics`.
        runs_elsewhere: whether another worker has reported that it runs a task of a connector.
        traffic: the same of `connect-metrics`, under the name "", and of `connect-node-metrics` by node.
    """

    def __init__(
        self,
        rebalances: Callable[[], Mapping[str, MetricValue]] = dict,
        coordination: Callable[[], Mapping[str, MetricValue]] = dict,
        runs_elsewhere: Callable[[str], bool] = lambda connector: False,
        traffic: Callable[[], Mapping[str, Mapping[str, MetricValue]]] = dict,
    ) -> None:
        self.rebalances, self.coordination, self._runs_elsewhere, self.traffic = rebalances, coordination, runs_elsewhere, traffic
        self._lock = threading.Lock()
        self._began_ms = int(time.time() * 1000)
        self._connectors: dict[str, str] = {}
        self._tasks: dict[TaskId, _Task] = {}
        self._connector_starts, self._task_starts = _Starts(), _Starts()
        self._facts = SourceFactsStore()
        self._histories: dict[TaskId, TaskHistory] = {}
        self._events: dict[TaskId, deque[Mapping[str, Any]]] = {}
        self._commits: dict[TaskId, TableCommits] = {}

    # -- connectors

    def connector_state(self, name: str, state: str) -> None:
        """A connector of this worker is in a state: RUNNING, PAUSED …"""
        with self._lock:
            self._connectors[name] = state.lower()

    def connector_startup(self, succeeded: bool) -> None:
        """An attempt to start a connector ended."""
        with self._lock:
            self._connector_starts.ended(succeeded)

    def connector_gone(self, name: str) -> None:
        """A connector is no longer this worker's."""
        with self._lock:
            self._connectors.pop(name, None)

    # -- tasks

    def task_launched(self, task: TaskId, pid: int | None = None) -> None:
        """A process of the task begins; what its predecessor reported is void."""
        with self._lock:
            status = self._tasks[task].status if task in self._tasks else "unassigned"
            self._tasks[task] = _Task(status, pid)

    def task_state(self, task: TaskId, state: str, why: str = "") -> None:
        """A task is in a state. The first RUNNING or PAUSED of a process is its successful start, a FAILED before it a failed one."""
        with self._lock:
            known = self._tasks.setdefault(task, _Task())
            self._events.setdefault(task, deque(maxlen=_KEPT_EVENTS)).append({"at": time.time(), "state": state, "why": why})
            known.status = state.lower()
            if known.status in ("running", "paused", "failed") and not known.has_started:
                known.has_started = True
                self._task_starts.ended(known.status != "failed")
            if known.status in ("failed", "restarting"):
                known.groups, known.pid, known.progress = [], None, TaskProgress()
                known.meter, known.latest = TaskMeter(), {}

    def task_reported(self, task: TaskId, report: Mapping[str, Any]) -> None:
        """A task's process sent its figures."""
        where = {"connector": task[0], "task": str(task[1])}
        groups = [MetricGroup(domain, type_, _tags(domain, tags, where), values) for domain, type_, tags, values in report["groups"]]
        with self._lock:
            known = self._tasks.get(task)
            if known is None:
                return
            now = time.monotonic()
            known.progress.report(groups, now)
            # what is judged by, and changes with every event, is no series
            known.groups = [group for group in groups if (group.domain, group.type) != POSITION_GROUP]
            known.latest = known.meter.measure(groups, _process(known.pid), now)
            self._history(task, SINK_SERIES if is_sink(groups) else SOURCE_SERIES).note(time.time(), known.latest)
            if any(group.type == TABLE_GROUP for group in groups):
                self._commits.setdefault(task, TableCommits()).note(groups)

    def _history(self, task: TaskId, names: Sequence[str]) -> TaskHistory:
        found = self._histories.get(task)
        if found is None or found.names != tuple(names):
            oldest = time.time() - _HISTORY_SECONDS
            self._histories = {known: history for known, history in self._histories.items() if history.newest > oldest}
            found = self._histories[task] = TaskHistory(names)
        return found

    def snapshots(self, connector: str) -> dict[int, dict[str, Any]]:
        """Return what the tasks of a connector tell of their snapshots, by task number; only of those that tell something."""
        with self._lock:
            reported = {number: task.groups for (name, number), task in self._tasks.items() if name == connector}
        return {number: shown for number, groups in reported.items() if (shown := snapshot_of(groups)) is not None}

    def task_gone(self, task: TaskId) -> None:
        """The task's process has ended for good, or the task is another worker's."""
        with self._lock:
            self._tasks.pop(task, None)

    # -- what sources say of their logs, see `connect_py.metrics.facts`

    def facts_reported(self, connector: str, message: Mapping[str, Any], *, uses_offsets: bool) -> None:
        """The source of a connector has said how its log is."""
        with self._lock:
            self._facts.reported(connector, message, uses_offsets=uses_offsets)
            seen = self._judged(connector, self._connectors.get(connector, "unassigned"))[1]
            values: dict[str, float] = {}
            if seen.head is not None and seen.position is not None:
                values["distance"] = max(0, seen.head - seen.position)
            if seen.retained_bytes is not None:
                values["retained_bytes"] = seen.retained_bytes
            # a source with a log has one task
            self._history((connector, 0), SOURCE_SERIES).note(time.time(), values, _FACTS_REACH)

    def facts_failed(self, connector: str, error: str) -> None:
        """The source of a connector has not answered."""
        with self._lock:
            self._facts.failed(connector, error)

    def facts_gone(self, connector: str) -> None:
        """The source of a connector is no longer asked."""
        with self._lock:
            self._facts.gone(connector)

    def wants_offsets(self, connector: str) -> bool:
        """Return whether a connector's position is known by its stored offset only: no task of it reports one."""
        with self._lock:
            has_position = any(name == connector and task.progress.position.value is not None for (name, _), task in self._tasks.items())
            return not has_position and self._facts.uses_offsets(connector)

    def _judged(self, connector: str, state: str, own: Sequence[_Task] | None = None) -> tuple[Judgement, Observed]:
        tasks = [task for (name, _), task in self._tasks.items() if name == connector] if own is None else own
        progress = next((task.progress for task in tasks if task.progress.reported is not None), None)
        elsewhere = not tasks and self._runs_elsewhere(connector)
        return self._facts.judged(connector, state, [task.status for task in tasks], progress, runs_elsewhere=elsewhere)

    # -- reading

    def figures(self) -> dict[str, ConnectorFigures]:
        """Return what a list of connectors shows, by name, of all of which something runs here."""
        now = time.time()
        with self._lock:
            tasks: dict[str, dict[int, _Task]] = {name: {} for name in self._connectors}
            for (name, number), task in self._tasks.items():
                tasks.setdefault(name, {})[number] = task
            found = {}
            for name, own in tasks.items():
                # of a connector whose tasks alone are here, its own worker tells the state
                state = self._connectors.get(name, "running")
                source = self._facts.shown(name, *self._judged(name, state, list(own.values())))
                snapshots = [shown for task in own.values() if (shown := snapshot_of(task.groups)) is not None]
                latest = {number: task.latest for number, task in own.items()}
                trends = [history for number in own if (history := self._histories.get((name, number))) is not None]
                trend = [sum(at) for at in zip(*(each.trend(now) for each in trends), strict=True)]
                found[name] = ConnectorFigures(source, latest, snapshots[0] if snapshots else None, trend)
        return found

    def tasks(self, connector: str) -> dict[int, TaskFigures]:
        """Return what is known of the tasks of a connector that run here."""
        with self._lock:
            found = {number: task for (name, number), task in sorted(self._tasks.items()) if name == connector}
        return {number: TaskFigures(task.status, task.latest, task.groups, _process(task.pid)) for number, task in found.items()}

    def events(self, connector: str) -> dict[int, list[Mapping[str, Any]]]:
        """Return the last states of each task of a connector on this worker, the oldest first: ``at`` (seconds since 1970), ``state``, and
        ``why`` in a line or empty."""
        with self._lock:
            return {number: list(events) for (name, number), events in sorted(self._events.items()) if name == connector}

    def commits(self, connector: str) -> dict[str, list[Mapping[str, float]]]:
        """Return the last commits of each table that a sink's tasks write (`TableCommits`)."""
        with self._lock:
            found = [commits for (name, _), commits in self._commits.items() if name == connector]
            return {table: shown for commits in found for table, shown in commits.shown().items()}

    def history(self, connector: str, seconds: int) -> dict[int, dict[str, Any]]:
        """Return the series of each task of a connector, `TaskHistory.points`, also of one that does not run now."""
        now = time.time()
        with self._lock:
            found = {number: history for (name, number), history in sorted(self._histories.items()) if name == connector}
            for history in found.values():
                history.note(now, {})
            return {number: history.points(seconds) for number, history in found.items()}

    def forget(self, known: Iterable[str]) -> None:
        """Forget the histories of connectors that are none of these."""
        names = frozenset(known)
        with self._lock:
            self._histories = {task: history for task, history in self._histories.items() if task[0] in names}
            self._events = {task: events for task, events in self._events.items() if task[0] in names}
            self._commits = {task: commits for task, commits in self._commits.items() if task[0] in names}

    def groups(self, kinds: Mapping[str, ConnectorKind], version: str, worker_id: str) -> list[MetricGroup]:
        """Everything, as it stands now.

        Args:
            kinds: what the connectors are, by name.
            version: of the worker.
        """
        with self._lock:
            connectors, tasks = dict(self._connectors), dict(self._tasks)
            worker: dict[str, MetricValue] = {
                "connector-count": len(connectors),
                "task-count": len(tasks),
                **self._connector_starts.values("connector"),
                **self._task_starts.values("task"),
            }
            facts = {name: self._facts.groups(name, *self._judged(name, state)) for name, state in connectors.items()}
        found = [
            MetricGroup(
                _DOMAIN, "app-info", {"client-id": worker_id}, {"version": version, "commit-id": "unknown", "start-time-ms": self._began_ms}
            ),
            MetricGroup(_DOMAIN, "connect-worker-metrics", {}, worker),
        ]
        rebalances = self.rebalances()
        if rebalances:
            assigned = {"assigned-connectors": len(connectors), "assigned-tasks": len(tasks), **self.coordination()}
            found.append(MetricGroup(_DOMAIN, "connect-worker-rebalance-metrics", {}, rebalances))
            found.append(MetricGroup(_DOMAIN, "connect-coordinator-metrics", {"client-id": worker_id}, assigned))
        for node, values in self.traffic().items():
            type_, tags = ("connect-node-metrics", {"node-id": node}) if node else ("connect-metrics", {})
            found.append(MetricGroup(_DOMAIN, type_, {"client-id": worker_id, **tags}, values))
        for name, status in sorted(connectors.items()):
            found += _of_connector(name, status, kinds.get(name), [task for (owner, _), task in tasks.items() if owner == name])
            found += facts[name]
        for task_id, task in sorted(tasks.items()):
            found += _of_task(task_id, task)
        return found


def _tags(domain: str, tags: Mapping[str, str], where: Mapping[str, str]) -> dict[str, str]:
    """The client of a task is known by its id; everything else is identified by connector and task."""
    return dict(tags) if domain in ("kafka.producer", "kafka.consumer") else {**tags, **where}


def _of_connector(name: str, status: str, kind: ConnectorKind | None, tasks: Sequence[_Task]) -> list[MetricGroup]:
    tags = {"connector": name}
    about = kind or ConnectorKind("unknown", "unknown", "unknown")
    values = {
        "connector-type": about.type,
        "connector-class": about.class_name,
        "connector-version": about.version,
        "status": status,
    }
    groups = [MetricGroup(_DOMAIN, "connector-metrics", tags, values)]
    if tasks:
        counts = {f"connector-{state}-task-count": sum(task.status == state for task in tasks) for state in _STATES}
        groups.append(MetricGroup(_DOMAIN, "connect-worker-metrics", tags, {"connector-total-task-count": len(tasks), **counts}))
    return groups


def _of_task(task_id: TaskId, task: _Task) -> list[MetricGroup]:
    tags = {"connector": task_id[0], "task": str(task_id[1])}
    shown = [group for group in task.groups if group.domain != NOTES_DOMAIN]
    groups = [MetricGroup(_DOMAIN, "connector-task-metrics", tags, {"status": task.status}), *shown]
    process = _process(task.pid)
    if process:
        groups.append(MetricGroup("connect.py", "task-process", tags, process))
    return groups


def _process(pid: int | None) -> dict[str, MetricValue]:
    """Memory and CPU time of a process, where the system says (Linux)."""
    if pid is None:
        return {}
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the command's name stands in parentheses and may hold blanks
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return {}
    return {"resident-memory-bytes": int(fields[21]) * _PAGE_BYTES, "cpu-seconds-total": (int(fields[11]) + int(fields[12])) / _TICKS}
