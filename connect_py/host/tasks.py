"""Run the task processes of this worker: compare what should run with what runs, and make the second the first.

Every task has a target state (`TaskSpec`, or none) and at most one process. `TaskHost` compares the two after each event: a process whose
target is gone or replaced is asked to stop; when it has ended, and only then, the next one starts, so two processes never write one task's
offsets.

A process that dies without a word (kill -9, out of memory, a crash in a C library) is restarted after 0.5, 1, 2, 4, 8, 8 … seconds;
its task shows RESTARTING meanwhile. Java's worker has no counterpart, because its tasks are threads: there the same event takes the
whole worker along, and a supervisor restarts that. When it has died eleven times, each time within ten seconds of its start, the task is
FAILED with a trace that says how the process ended, what it last wrote, and what to do. A task that *reports* a failure is FAILED at once
and stays so, as in Connect, unless its `RestartPolicy` says otherwise.

`TaskSignals` keeps signals on their way to task processes: what was asked, what was answered, and what a restarted task must be given
again.

The herder's thread owns a `TaskHost` and calls all its methods. Launches run on a pool (they read the offsets topic); processes report
from threads of their own; both only `post` to the herder's thread.
"""

from __future__ import annotations

import datetime
import enum
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

from connect_py.api.storage import Status, StatusStore
from connect_py.config.restart_policy import RestartPolicy, Restarts
from connect_py.config.worker import MAX_TASKS_OF_CONNECTOR, MAX_TASKS_OF_WORKER, TASKS_OF_CONNECTOR, TASKS_OF_WORKER
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connect_py.host.process import Event, Exited, TaskProcess
from connect_py.log.traces import headline
from connect_py.metrics.worker import WorkerMetrics

log = logging.getLogger(__name__)


TaskId = tuple[str, int]

#: What a task's process is sent: ``{"type": "signal", "id": …, "signal": …}``.
Message = Mapping[str, Any]


class TaskSignals:
    """Owned by the herder's thread, as `TaskHost` is."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[TaskId, dict[int, Mapping[str, Any]]] = {}
        self._asked: dict[TaskId, dict[int, Future[str | None]]] = {}

    def ask(self, task_id: TaskId, signal: Mapping[str, Any]) -> tuple[Message, Future[str | None]]:
        """Ask a running task to take a signal.

        Returns:
            The message, and what the task will say of it: None when it has taken it, or why it has not. It raises RetriableError when the
            process ends before.
        """
        number = next(self._numbers)
        answer = self._asked.setdefault(task_id, {})[number] = Future()
        self._open.setdefault(task_id, {})[number] = signal
        return _message(number, signal), answer

    def again(self, task_id: TaskId) -> Iterable[Message]:
        """Return what a process that was just started is given: signals that are not done."""
        return [_message(number, signal) for number, signal in self._open.get(task_id, {}).items()]

    def answered(self, task_id: TaskId, number: int, problem: str | None) -> None:
        """A task says whether it has taken a signal."""
        answer = self._asked.get(task_id, {}).pop(number, None)
        if answer is not None:
            answer.set_result(problem)
        if problem is not None:
            self.done(task_id, number)
            if answer is None:
                log.warning("Task %s-%d was started again and refuses a signal that it had taken: %s", *task_id, problem)

    def done(self, task_id: TaskId, number: int) -> None:
        """A signal needs not be given again."""
        self._open.get(task_id, {}).pop(number, None)

    def ended(self, task_id: TaskId) -> None:
        """A task's process has ended: what it had not taken is the asker's to ask again."""
        for number, answer in self._asked.pop(task_id, {}).items():
            self.done(task_id, number)
            answer.set_exception(RetriableError(f"Task {task_id[0]}-{task_id[1]} ended before it had taken it."))

    def gone(self, task_id: TaskId) -> None:
        """A task will not be started again."""
        if self._open.pop(task_id, None):
            log.warning("Task %s-%d is gone, and with it signals that were not carried out", *task_id)


def _message(number: int, signal: Mapping[str, Any]) -> Message:
    return {"type": "signal", "id": number, "signal": signal}


#: Seconds before each new start of a process that died without a word.
RESTART_DELAYS = (0.5, 1.0, 2.0, 4.0, *[8.0] * 6)

#: How soon a failed task's process is looked at again that has not ended yet.
_ENDING_SECONDS = 0.2

#: How soon a worker that does not know whether its work is its own looks whether it does.
_UNSURE_SECONDS = 0.2

#: A process that ran for this long is healthy: its next death starts the delays over.
_HEALTHY_SECONDS = 10.0


@dataclass(frozen=True)
class TaskSpec:
    """A task that should run.

    Attributes:
        incarnation: grows whenever the task is to be restarted, even with the same configuration.
        start: makes the ``start`` message; reads the committed offsets, so it is called when the task's last process is gone.
        policy: whether the task is started again when it reports a failure.
        is_source: whether it reads a source, so that no two processes may run it at once, on whichever worker.
    """

    connector: str
    task: int
    incarnation: int
    version: str | None
    start: Callable[[bool], Mapping[str, Any]]
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    is_source: bool = False


class _Phase(enum.Enum):
    LAUNCHING = "LAUNCHING"
    ALIVE = "ALIVE"
    STOPPING = "STOPPING"
    BACKING_OFF = "BACKING_OFF"
    ENDED = "ENDED"


class _Parting(enum.Enum):
    """What a task's status becomes when it has ended and is not wanted any more."""

    DELETED = "DELETED"
    UNASSIGNED = "UNASSIGNED"
    SILENT = "SILENT"


@dataclass
class _Hosted:
    spec: TaskSpec
    phase: _Phase
    process: TaskProcess | None = None
    paused: bool = False
    failed: bool = False
    stopped: bool = False
    is_abandoned: bool = False
    deaths: int = 0
    launched: float = 0.0
    began_to_run: float = 0.0
    restarts: Restarts = field(default_factory=lambda: Restarts(RestartPolicy()))
    reported: Status | None = None


class TaskHost:
    """Runs the task processes of this worker.

    Args:
        post: runs something on the herder's thread.
        post_later: the same, after this many seconds.
        spawn: starts a process, given its ``start`` message and where its events go.
        store_offsets: keeps offsets that a task reports by its pipe (standalone).
        status: builds a `Status` of this worker.
        max_tasks_of_connector: the worker's ``tasks.max.per.connector``.
        max_tasks: the worker's ``tasks.max.per.worker``.
        metrics: is notified of starts and states, and receives what the tasks report.
        notified: gets what a connector's task shows to clients.
        is_sure: whether this worker knows that its work is its own; while it does not, no source is started, and what dies is not reported.
        ask: answers what an exactly-once task asks before it reads: ``fence``, then ``admit`` (`connect_py.task.main`). On the pool; raises
            ConnectError.
        restart_delays: seconds before each new start of a process that died without a word; after so many deaths in a row it has failed.
        clock: monotonic seconds; those of the deadline of `close`.
    """

    def __init__(
        self,
        statuses: StatusStore,
        pool: Executor,
        *,
        post: Callable[[Callable[[], None]], None],
        post_later: Callable[[float, Callable[[], None]], None],
        spawn: Callable[[Mapping[str, Any], Callable[[Event], None]], TaskProcess],
        store_offsets: Callable[[str, Sequence[Any]], None],
        status: Callable[[str, str | None, str | None], Status],
        stop_timeout: float,
        max_tasks_of_connector: int = MAX_TASKS_OF_CONNECTOR,
        max_tasks: int = MAX_TASKS_OF_WORKER,
        metrics: WorkerMetrics | None = None,
        notified: Callable[[TaskId, Mapping[str, Any]], None] = lambda task_id, notification: None,
        is_sure: Callable[[], bool] = lambda: True,
        is_configured: Callable[[str], bool] = lambda connector: True,
        ask: Callable[[str, TaskId], Mapping[str, Any]] = lambda question, task_id: {},
        restart_delays: Sequence[float] = RESTART_DELAYS,
        tracks_topics: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._tracks_topics = tracks_topics
        self._ask = ask
        self._statuses = statuses
        self._pool = pool
        self._post = post
        self._post_later = post_later
        self._spawn = spawn
        self._store_offsets = store_offsets
        self._status = status
        self._stop_timeout = stop_timeout
        self._max_tasks_of_connector = max_tasks_of_connector
        self._max_tasks = max_tasks
        self._metrics = metrics or WorkerMetrics()
        self._notified = notified
        self._is_sure = is_sure
        self._is_configured = is_configured
        self._restart_delays = restart_delays
        self._partings: dict[TaskId, _Parting] = {}
        self._signals = TaskSignals()
        self._wanted: dict[TaskId, TaskSpec] = {}
        self._paused: set[str] = set()
        self._hosted: dict[TaskId, _Hosted] = {}
        self._closing: float | None = None

    # -- target states

    def set_tasks(self, connector: str, specs: Mapping[int, TaskSpec]) -> None:
        """These and no other tasks of a connector should run."""
        self.delete([key for key in self._wanted if key[0] == connector and key[1] not in specs])
        self.add(specs.values())
        for task_id in [key for key in self._hosted if key[0] == connector]:
            self._reconcile(task_id)

    def add(self, specs: Iterable[TaskSpec]) -> None:
        """These tasks should run, too."""
        for spec in specs:
            task_id = spec.connector, spec.task
            self._wanted[task_id] = spec
            self._partings.pop(task_id, None)
            self._reconcile(task_id)

    def delete(self, task_ids: Iterable[TaskId]) -> None:
        """End tasks that are no longer configured, and forget their states."""
        self._part(task_ids, _Parting.DELETED)

    def give_up(self, task_ids: Iterable[TaskId]) -> None:
        """End tasks that other workers may be given, and report those that ran UNASSIGNED."""
        self._part(task_ids, _Parting.UNASSIGNED)

    def suspend(self, task_ids: Iterable[TaskId]) -> None:
        """End tasks that will be started again, here or elsewhere, and report nothing."""
        self._part(task_ids, _Parting.SILENT)

    def _part(self, task_ids: Iterable[TaskId], parting: _Parting) -> None:
        for task_id in list(task_ids):
            self._wanted.pop(task_id, None)
            if task_id in self._hosted:
                self._partings[task_id] = parting
                self._reconcile(task_id)
            elif parting is _Parting.DELETED:
                self._statuses.delete_task(*task_id)

    def pause(self, connector: str, paused: bool) -> None:
        """Pause or resume all tasks of a connector."""
        (self._paused.add if paused else self._paused.discard)(connector)
        for task_id in [key for key in self._hosted if key[0] == connector]:
            self._reconcile(task_id)

    def restart(self, spec: TaskSpec) -> None:
        """Restart one task; it shows RESTARTING until it runs."""
        task_id = spec.connector, spec.task
        self._wanted[task_id] = spec
        self._report(task_id, "RESTARTING", None, spec.version, "on request")
        self._reconcile(task_id)

    def say_again(self, task_id: TaskId) -> None:
        """Another worker has said that a configured task is gone. If it is this worker's, say again how it is."""
        hosted = self._hosted.get(task_id)
        if hosted is None or hosted.reported is None or task_id not in self._wanted or self._closing is not None:
            return
        if self._statuses.task(*task_id) is not None:
            return  # there is a newer report
        if not self._is_sure():
            self._post_later(_UNSURE_SECONDS, lambda: self.say_again(task_id))
            return
        log.info("Another worker's word that task %s-%d is gone came late; sending this worker's report again", *task_id)
        self._statuses.put_task(*task_id, hosted.reported)

    def forget_topics(self, connector: str) -> None:
        """Have the tasks of a connector report their topics again."""
        self.tell(connector, {"type": "forget_topics"})

    def tell(self, connector: str, message: Message) -> None:
        """Send a message to the tasks of a connector that have a process."""
        for task_id, hosted in self._hosted.items():
            if task_id[0] == connector and hosted.process is not None:
                hosted.process.send(message)

    def signal(self, connector: str, signal: Mapping[str, Any]) -> list[Future[str | None]]:
        """Hand a signal to every task of a connector that runs. A task that is started again before it says that the signal is done is
        given it again.

        Returns:
            What each says of it, see `TaskSignals.ask`. Empty when no task runs.
        """
        answers: list[Future[str | None]] = []
        for task_id, hosted in self._hosted.items():
            if task_id[0] == connector and hosted.phase is _Phase.ALIVE and not hosted.failed and hosted.process is not None:
                message, answer = self._signals.ask(task_id, signal)
                answers.append(answer)
                hosted.process.send(message)
        return answers

    def specs(self, connector: str) -> dict[int, TaskSpec]:
        """Return the wanted tasks of a connector."""
        return {number: spec for (name, number), spec in self._wanted.items() if name == connector}

    def is_hosting(self, connector: str) -> bool:
        """Return whether a process of the connector is alive or about to be."""
        return any(name == connector and hosted.phase is not _Phase.ENDED for (name, _), hosted in self._hosted.items())

    def have_ended(self, task_ids: Iterable[TaskId]) -> bool:
        """Return whether no process of these tasks is alive or about to be."""
        return all(task_id not in self._hosted or self._hosted[task_id].phase is _Phase.ENDED for task_id in task_ids)

    def close(self, deadline: float) -> None:
        """Ask every process to end by `deadline`; `is_closed` says when they have."""
        self._closing = deadline
        for task_id in list(self._hosted):
            self._reconcile(task_id)

    @property
    def is_closed(self) -> bool:
        """After `close`: whether no process is left."""
        return all(hosted.phase is _Phase.ENDED for hosted in self._hosted.values())

    def kill_all(self) -> None:
        """End all processes at once."""
        for hosted in self._hosted.values():
            if hosted.process is not None:
                hosted.process.kill()

    def abandon(self) -> list[TaskId]:
        """Other workers may have the tasks: end them and report nothing. Sources end at once: none stores an offset after the other's.
        Returns the tasks."""
        self._wanted.clear()
        ending = list(self._hosted)
        for task_id in ending:
            self._hosted[task_id].is_abandoned = True
            self._reconcile(task_id)
        return ending

    # -- making it so

    def _reconcile(self, task_id: TaskId) -> None:
        hosted = self._hosted.get(task_id)
        wanted = None if self._closing is not None else self._wanted.get(task_id)
        if hosted is None:
            if wanted is not None:
                self._launch(task_id, wanted, Restarts(wanted.policy))
            return
        if wanted is not None and wanted.incarnation == hosted.spec.incarnation:
            self._pause_or_resume(task_id, hosted)
            return
        match hosted.phase:
            case _Phase.ALIVE:
                assert hosted.process is not None
                hosted.phase = _Phase.STOPPING
                if hosted.is_abandoned and hosted.spec.is_source:
                    hosted.process.kill()
                    return
                left = self._stop_timeout if self._closing is None else max(0.1, self._closing - self._clock())
                hosted.process.stop(left)
            case _Phase.ENDED:
                self._finished(task_id, hosted, ran=False)
            case _Phase.BACKING_OFF:
                self._finished(task_id, hosted, ran=True)
            case _Phase.STOPPING if hosted.is_abandoned and hosted.spec.is_source:
                assert hosted.process is not None
                hosted.process.kill()
            case _Phase.LAUNCHING | _Phase.STOPPING:
                pass  # an event will follow

    def _pause_or_resume(self, task_id: TaskId, hosted: _Hosted) -> None:
        paused = task_id[0] in self._paused
        if hosted.phase is _Phase.ALIVE and paused != hosted.paused:
            assert hosted.process is not None
            hosted.paused = paused
            hosted.process.send({"type": "pause" if paused else "resume"})

    def _launch(self, task_id: TaskId, spec: TaskSpec, restarts: Restarts, deaths: int = 0) -> None:
        paused = task_id[0] in self._paused
        hosted = self._hosted[task_id] = _Hosted(spec, _Phase.LAUNCHING, paused=paused, deaths=deaths, restarts=restarts)
        refusal = self._too_many(task_id)
        if refusal is not None:
            self._fail(task_id, hosted, refusal)
            return
        if spec.is_source and not self._is_sure():
            hosted.phase = _Phase.BACKING_OFF
            self._post_later(_UNSURE_SECONDS, lambda: self._launch_again(task_id, hosted, deaths))
            return

        def work() -> None:
            try:
                process = self._spawn(spec.start(paused), lambda event: self._post(lambda: self._on_event(task_id, hosted, event)))
            except Exception as error:  # noqa: BLE001  # a worker without memory or processes to spare; reported as the task's failure
                problem = error
                self._post(lambda: self._on_launch_failed(task_id, hosted, problem))
            else:
                self._post(lambda: self._on_launched(task_id, hosted, process))

        self._pool.submit(work)

    def _too_many(self, task_id: TaskId) -> str | None:
        """Return why a task must not have a process; it is among the hosted ones already."""
        if task_id[1] >= self._max_tasks_of_connector:
            name, limit, what = TASKS_OF_CONNECTOR, self._max_tasks_of_connector, "a connector may have"
        elif sum(hosted.phase is not _Phase.ENDED for hosted in self._hosted.values()) > self._max_tasks:
            name, limit, what = TASKS_OF_WORKER, self._max_tasks, "this worker runs"
        else:
            return None
        return (
            f"Task {task_id[0]}-{task_id[1]} was not started: {what} at most {limit} tasks, because each is a process. Nothing was read or "
            f"written. Stop other connectors or lower tasks.max, then restart the task; or have the worker's operator raise {name}.\n"
        )

    def _on_launched(self, task_id: TaskId, hosted: _Hosted, process: TaskProcess) -> None:
        hosted.process = process
        hosted.launched = self._clock()
        self._metrics.task_launched(task_id, process.pid)
        if hosted.phase is _Phase.LAUNCHING:  # its end may have been noticed first
            hosted.phase = _Phase.ALIVE
        log.debug("Task %s-%d runs as process %d", *task_id, process.pid)
        for message in self._signals.again(task_id):
            process.send(message)
        self._reconcile(task_id)

    def _on_launch_failed(self, task_id: TaskId, hosted: _Hosted, error: Exception) -> None:
        wanted = None if self._closing is not None else self._wanted.get(task_id)
        if wanted is None or wanted.incarnation != hosted.spec.incarnation:  # deleted, changed or stopped during the launch
            self._finished(task_id, hosted, ran=True)
            return
        if isinstance(error, ConnectError) and not isinstance(error, ConfigError) and hosted.deaths < len(self._restart_delays):
            log.warning("Task %s-%d could not be started and is tried again: %s", *task_id, error)
            self._back_off(task_id, hosted, f"its process could not be started: {error}")
            return
        self._fail(task_id, hosted, f"The task's process could not be started: {error}\n")

    def _on_event(self, task_id: TaskId, hosted: _Hosted, event: Event) -> None:
        if isinstance(event, Exited):
            self._on_exit(task_id, hosted, event)
            return
        match event["type"]:
            case "state":
                hosted.began_to_run = hosted.began_to_run or self._clock()
                if hosted.phase in (_Phase.ALIVE, _Phase.LAUNCHING):
                    self._report(task_id, event["state"], None, hosted.spec.version)
            case "failed":
                hosted.failed = True
                if hosted.phase is not _Phase.STOPPING:
                    self._fail(task_id, hosted, event["trace"], ended=False)
            case "stopped":
                hosted.stopped = True
            case "topic":
                # what an ending task still writes counts: who reads on resumes after it, and may never write there
                if self._tracks_topics and self._is_configured(task_id[0]) and not hosted.is_abandoned:
                    self._statuses.put_topic(*task_id, event["topic"])
            case "metrics":
                self._metrics.task_reported(task_id, event)
            case "notification":
                self._notified(task_id, event["notification"])
            case "answer":
                self._signals.answered(task_id, event["id"], event["problem"])
            case "signal_done":
                self._signals.done(task_id, event["id"])
            case "fence" | "admit":
                self._pool.submit(self._find_answer, task_id, hosted, event["type"])
            case "offsets":
                self._pool.submit(self._keep_offsets, task_id[0], hosted, event)

    def _keep_offsets(self, connector: str, hosted: _Hosted, event: Mapping[str, Any]) -> None:
        problem = None
        try:
            self._store_offsets(connector, event["offsets"])
        except Exception as error:
            # without an answer the task would wait for it, and commit nothing any more
            if not isinstance(error, (ConnectError, OSError)):
                log.exception("The offsets of %s could not be stored; they are stored with the next commit", connector)
            problem = str(error) or type(error).__name__
        if hosted.process is not None:
            hosted.process.send({"type": "offsets_written", "id": event["id"], "error": problem})

    def _find_answer(self, task_id: TaskId, hosted: _Hosted, question: str) -> None:
        """Runs on the pool."""
        try:
            answer = self._ask(question, task_id)
        except Exception as error:
            if not isinstance(error, ConnectError):
                log.exception("Task %s-%d cannot be given what it asks for", *task_id)
            answer = {"error": str(error) or type(error).__name__}
        self._post(lambda: self._send_answer(task_id, hosted, {**answer, "type": "answered"}))

    def _send_answer(self, task_id: TaskId, hosted: _Hosted, answer: Mapping[str, Any]) -> None:
        """To a task that is still this worker's, and of the newest configuration; another one is being stopped, and gets none."""
        wanted = self._wanted.get(task_id)
        if self._hosted.get(task_id) is not hosted or wanted is None or wanted.incarnation != hosted.spec.incarnation:
            return
        if hosted.phase is _Phase.LAUNCHING:
            self._post_later(_ENDING_SECONDS / 10, lambda: self._send_answer(task_id, hosted, answer))
        elif hosted.process is not None:
            hosted.process.send(answer)

    def _on_exit(self, task_id: TaskId, hosted: _Hosted, end: Exited) -> None:
        was_stopping = hosted.phase is _Phase.STOPPING
        hosted.phase = _Phase.ENDED
        self._signals.ended(task_id)
        if was_stopping:
            self._finished(task_id, hosted, ran=True)
            return
        if not hosted.failed and not hosted.stopped:  # else it had its last word
            self._on_death(task_id, hosted, end)
        self._reconcile(task_id)

    def _on_death(self, task_id: TaskId, hosted: _Hosted, end: Exited) -> None:
        if hosted.launched and self._clock() - hosted.launched > _HEALTHY_SECONDS:
            hosted.deaths = 0
        if hosted.deaths < len(self._restart_delays):
            log.warning("The process of task %s-%d died (%s); it is started again", *task_id, end.describe())
            self._back_off(task_id, hosted, f"its process died ({end.describe()})")
            return
        said = "\n".join(f"    {line}" for line in end.last_lines) or "    (nothing)"
        self._fail(
            task_id,
            hosted,
            f"The task's process died ({end.describe()}) {hosted.deaths + 1} times in a row without reporting a reason. What Kafka holds "
            "is safe, and offsets stand at the last commit. SIGKILL often means that the machine ran out of memory: look at the system's "
            f"log, then restart the task (POST /connectors/{task_id[0]}/tasks/{task_id[1]}/restart).\nIt last wrote:\n{said}\n",
        )

    def _back_off(self, task_id: TaskId, hosted: _Hosted, why: str) -> None:
        hosted.phase = _Phase.BACKING_OFF
        delay = self._restart_delays[hosted.deaths]
        if self._is_sure():
            self._report(task_id, "RESTARTING", None, hosted.spec.version, why)
        self._post_later(delay, lambda: self._launch_again(task_id, hosted, hosted.deaths + 1))

    def _launch_again(self, task_id: TaskId, hosted: _Hosted, deaths: int) -> None:
        """A delay is over. The task may have been changed or deleted meanwhile."""
        if self._hosted.get(task_id) is hosted and hosted.phase is _Phase.BACKING_OFF and self._closing is None:
            self._launch(task_id, hosted.spec, hosted.restarts, deaths)

    def _fail(self, task_id: TaskId, hosted: _Hosted, trace: str, *, ended: bool = True) -> None:
        if ended:
            hosted.phase = _Phase.ENDED
        hosted.failed = True
        ran = self._clock() - hosted.began_to_run if hosted.began_to_run else 0.0
        delay = hosted.restarts.failed(headline(trace), ran, datetime.datetime.now(datetime.UTC))
        self._report(task_id, "FAILED", trace, hosted.spec.version)
        if delay is not None:
            log.warning("Task %s-%d failed and is restarted in %.1f s (restart %d)", *task_id, delay, hosted.restarts.attempts)
            self._post_later(delay, lambda: self._restart_failed(task_id, hosted))

    def _restart_failed(self, task_id: TaskId, hosted: _Hosted) -> None:
        """A failed task's delay is over. It may have been restarted, changed or deleted meanwhile; its process may still be ending."""
        if self._hosted.get(task_id) is not hosted or self._closing is not None:
            return
        if hosted.phase is not _Phase.ENDED:
            self._post_later(_ENDING_SECONDS, lambda: self._restart_failed(task_id, hosted))
            return
        hosted.restarts.begun()
        self._report(task_id, "RESTARTING", None, hosted.spec.version, "by task.restart.policy")
        self._launch(task_id, hosted.spec, hosted.restarts)

    def _report(self, task_id: TaskId, state: str, trace: str | None, version: str | None, why: str = "") -> None:
        hosted = self._hosted.get(task_id)
        if hosted is not None and hosted.is_abandoned:
            return
        self._metrics.task_state(task_id, state, headline(trace) if trace else why)
        status = self._status(state, trace, version)
        if hosted is not None:
            status = hosted.reported = replace(status, restarts=hosted.restarts.report())
        self._statuses.put_task(*task_id, status)

    def _finished(self, task_id: TaskId, hosted: _Hosted, *, ran: bool) -> None:
        """A process that should no longer run has ended: say so, and start its successor. A task that had failed stays FAILED when the
        worker ends."""
        if self._closing is not None:
            hosted.phase = _Phase.ENDED
            if ran and not hosted.failed:
                self._report(task_id, "UNASSIGNED", None, hosted.spec.version)
            return
        if task_id not in self._wanted and not hosted.is_abandoned:
            parting = self._partings.pop(task_id, _Parting.DELETED)
            if parting is _Parting.DELETED:
                self._statuses.delete_task(*task_id)
            elif parting is _Parting.UNASSIGNED and not hosted.failed:
                self._report(task_id, "UNASSIGNED", None, hosted.spec.version)
            if parting is not _Parting.SILENT:
                self._signals.gone(task_id)
        del self._hosted[task_id]
        self._metrics.task_gone(task_id)
        self._reconcile(task_id)
