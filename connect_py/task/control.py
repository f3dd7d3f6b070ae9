"""Hold what a running task is asked to do and how it answers, and the contexts that plugins see of it.

`TaskControl` is the meeting point of two threads of a task's process: the reader of the worker's messages asks, the task's own thread
looks and waits. Everything else of a task belongs to the task's thread alone, also `SourceContext` (`WorkerSourceTaskContext.java`) and
`SinkContext` (`WorkerSinkTaskContext.java`), through which a task asks something of its loop.
"""

from __future__ import annotations

import functools
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from connect_py.api import JsonEncoding, SinkRecord, SourceOffset, SourcePartition, TopicPartition, TransactionContext
from connect_py.api.task import SignalTaker
from connect_py.clock import SYSTEM_CLOCK, Clock
from connect_py.errors import ConnectError, FatalTaskError

log = logging.getLogger(__name__)


#: Takes one message to the worker, such as ``{"type": "state", "state": "RUNNING"}``.
Report = Callable[[Mapping[str, Any]], None]


#: How often a task that waits for an answer looks whether it is to end.
_LOOK_SECONDS = 0.2


class TaskStopped(Exception):
    """The task was asked to end in the middle of a record; what Kafka or the sink does not hold is read again after the restart."""


class TaskControl:
    """Wishes of the worker.

    Args:
        paused: whether the task begins paused.
        clock: of the deadline, and of all waits.
    """

    def __init__(self, *, paused: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._paused = paused
        self._deadline: float | None = None
        self._forget_topics = False
        self._on_stop: list[Callable[[], None]] = []
        self._on_asked: list[Callable[[], None]] = []
        self._asked: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    @property
    def is_paused(self) -> bool:
        """Whether the task should rest."""
        return self._paused

    @property
    def is_stopping(self) -> bool:
        """Whether the task should end."""
        return self._deadline is not None

    @property
    def deadline(self) -> float:
        """By when, by the clock, the task must have ended; infinite while it was not asked to."""
        return float("inf") if self._deadline is None else self._deadline

    def stop(self, timeout_seconds: float) -> None:
        """Ask the task to end within a time; a second call changes nothing."""
        with self._changed:
            if self._deadline is not None:
                return
            self._deadline = self._clock.now() + timeout_seconds
            self._changed.notify_all()
            callbacks = list(self._on_stop)
        for callback in callbacks:
            _call(callback)

    def pause(self, paused: bool) -> None:
        """Ask the task to pause, or to resume."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()
        self._interrupt()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have something called when the task is asked to end: from the asking thread, or at once, from this one, when it was asked
        already. What it raises is logged."""
        with self._changed:
            is_late = self._deadline is not None
            self._on_stop.append(callback)
        if is_late:
            _call(callback)

    def on_asked(self, callback: Callable[[], None]) -> None:
        """Have something called, from the asking thread, when the task is asked for anything else than to end. What it raises is logged."""
        self._on_asked.append(callback)

    def _interrupt(self) -> None:
        for callback in list(self._on_asked):
            _call(callback)

    def forget_topics(self) -> None:
        """Ask for the topics in use to be reported again."""
        self._forget_topics = True

    def take_forget_topics(self) -> bool:
        """Return whether that was asked since the last call."""
        asked, self._forget_topics = self._forget_topics, False
        return asked

    def ask(self, message: Mapping[str, Any]) -> None:
        """Ask the task for something that it has to answer."""
        self._asked.put(message)
        self._interrupt()

    def take_asked(self) -> Mapping[str, Any] | None:
        """Return what was asked next; None when nothing was."""
        return None if self._asked.empty() else self._asked.get()

    def answer(self, message: Mapping[str, Any]) -> None:
        """Answer the task's question."""
        self._answers.put(message)

    def await_answer(self) -> Mapping[str, Any]:
        """Wait for the worker's answer to the task's last question.

        Raises:
            TaskStopped: the task is to end.
            FatalTaskError: the worker's answer is an error.
        """
        while not self.is_stopping:
            try:
                found = self._answers.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if found.get("error"):
                raise FatalTaskError(found["error"])
            return found
        raise TaskStopped

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until a stop; returns whether the task should end."""
        with self._changed:
            self._clock.wait_for(self._changed, lambda: self.is_stopping, seconds)
            return self.is_stopping

    def wait_while_paused(self, seconds: float) -> None:
        """Sleep, but no longer than until a resume or a stop."""
        with self._changed:
            self._clock.wait_for(self._changed, lambda: self.is_stopping or not self._paused, seconds)

    def wait_for_start(self, report: Report) -> bool:
        """Wait: a task that begins paused says so and is started when it is resumed. Returns whether to start it: False after a stop."""
        if self.is_paused:
            report({"type": "state", "state": "PAUSED"})
            while self.is_paused and not self.is_stopping:
                self.wait_while_paused(60.0)
        return not self.is_stopping


def _call(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        log.exception("The task could not be interrupted; it does what it is asked for when its current call returns")


def take_signals(control: TaskControl, task: SignalTaker, report: Report) -> None:
    """Hand to a task the signals that the worker has sent, and answer whether it takes them."""
    while (message := control.take_asked()) is not None:
        problem, id_ = None, message["id"]
        try:
            task.take_signal(message["signal"], functools.partial(report, {"type": "signal_done", "id": id_}))
        except ConnectError as error:
            problem = str(error)
        report({"type": "answer", "id": id_, "problem": problem})


class SourceContext:
    """`SourceTaskContext`: the offsets are those that the offsets topic held when the task was started."""

    def __init__(
        self,
        connector: str,
        task: int,
        encoding: JsonEncoding,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        report: Report = lambda message: None,
        config: Mapping[str, str] | None = None,
        transactions: TransactionContext | None = None,
    ) -> None:
        self.connector = connector
        self.task = task
        self.encoding = encoding
        self.transactions = transactions
        self.config = config or {}
        self._report = report
        self._offsets = {tuple(sorted(partition.items())): offset for partition, offset in offsets}

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the committed offset of a source partition, whatever the order of its keys."""
        return self._offsets.get(tuple(sorted(partition.items())))

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Hand a notification to the worker."""
        self._report({"type": "notification", "notification": dict(notification)})


class PausingConsumer(Protocol):
    """What a context needs of `connect_py.kafka.consumer.GroupConsumer`."""

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...
    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...
    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...


class SinkContext:
    """`SinkTaskContext`: notes what the task asks for; the loop looks at it between two calls of the task."""

    def __init__(self, connector: str, task: int, consumer: PausingConsumer, config: Mapping[str, str] | None = None) -> None:
        self.connector = connector
        self.task = task
        self.config = config or {}
        self._consumer = consumer
        self.wants_commit = False
        self.retry_seconds: float | None = None
        self.seeks: dict[TopicPartition, int] = {}
        self.resting: set[TopicPartition] = set()
        self.report_errant_record: Callable[[SinkRecord, Exception], None] | None = None
        #: Whether no partition is read for another reason, which the task cannot end (`WorkerSinkTaskContext.resume`).
        self.is_held: Callable[[], bool] = lambda: False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this task reads now."""
        return self._consumer.assignment

    def request_commit(self) -> None:
        """Ask for an offset commit soon."""
        self.wants_commit = True

    def retry_after(self, seconds: float) -> None:
        """Bound the wait before the same records come again."""
        self.retry_seconds = seconds

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets."""
        self.seeks.update(offsets)

    def pause(self, *partitions: TopicPartition) -> None:
        """Bring no records of these partitions."""
        if not self.is_held():
            self._consumer.pause(partitions)
        self.resting.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Bring records of these partitions again; while the connector is paused, once it is resumed."""
        if not self.is_held():
            self._consumer.resume(partitions)
        self.resting.difference_update(partitions)
