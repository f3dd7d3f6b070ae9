"""Several tables of a batch at once: threads that write one table at a time each, with a session of Spark each.

Who commits, and up to which offsets, travels in settings of the session, so two tables must never be in one session's hands. A lane is a
thread and its session; the first has the task's own, so a connector whose batches are of one table needs no other. What works in a lane
gets the session from `Sessions.current`, and need not know of lanes. Over Spark Connect there is one lane: a batch is held by its session.

The task's thread owns `Lanes` and waits in `run`; a lane owns nothing but the table that it has in hand. A lane whose table takes too
long has its jobs cancelled. If even then it does not come back the task fails; what the lane may still commit is conditional on what it
had read, as every commit is, so a table that has been written since does not take it. What need not be waited for is done `Aside`.
"""

from __future__ import annotations

import functools
import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.spark.local import answer_at_once
from spark_sink.spark.session import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: A lane whose jobs have been cancelled ends within seconds, unless storage or a catalog holds it, or the machine is very busy.
GRACE_SECONDS = 60.0

#: A statement's next job may start after its others were cancelled, so they are cancelled again.
AGAIN_SECONDS = 1.0

T = TypeVar("T")


class Sessions:
    """A task's sessions: its own, and those of lanes, with the same settings.

    Attributes:
        current: stands for the session of whichever thread uses it: a lane's, else the task's own.
    """

    def __init__(self, own: SparkSession, config: SinkConfig) -> None:
        self._own = own
        self._config = config
        self._of_thread = threading.local()
        self.current = cast("SparkSession", _CurrentSession(self))

    def of_lane(self, number: int) -> SparkSession:
        """Return the session of a lane that writes tables; the first one has the task's own."""
        return self._own if number == 0 else self.another()

    def another(self) -> SparkSession:
        """Return a new session."""
        made = self._own.newSession()
        prepare(made, self._config)
        return made

    def use(self, spark: SparkSession) -> None:
        """Set this thread's session."""
        self._of_thread.spark = spark

    def of_thread(self) -> SparkSession:
        """Return the calling thread's session."""
        return cast("SparkSession", getattr(self._of_thread, "spark", self._own))


class _CurrentSession:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions.of_thread(), name)


@dataclass(frozen=True)
class Work(Generic[T]):
    """One table's part of a batch.

    Attributes:
        name: what is written, for people: ``table x from t-0 [5, 9)``.
        do: writes it.
    """

    name: str
    do: Callable[[], T]


class Lane(Protocol):
    """Does one work after the other, outside of the thread that hands them out."""

    def begin(self, work: Work[Any]) -> None:
        """Start a work; the lane, the result and the error, one of which is None, are put into the queue."""
        ...

    def cancel(self) -> None:
        """Make what is under way fail soon. What has been committed stays."""
        ...

    def end(self) -> None:
        """End the lane when it is idle."""
        ...


#: A lane that is idle again, what its work returned, what it raised.
Answer = tuple[Lane, Any, BaseException | None]


class Lanes:
    """A task's lanes; each is made when it is first needed.

    Args:
        open_lane: makes the lane of a number; it puts its answers into the queue.
        max_lanes: how many tables are written at once.
        timeout_seconds: how long one table may take.
        grace_seconds: how long a lane that was cancelled may take to come back.
        again_seconds: after which its jobs are cancelled again.
    """

    def __init__(
        self,
        open_lane: Callable[[int, queue.SimpleQueue[Answer]], Lane],
        max_lanes: int,
        timeout_seconds: float,
        *,
        grace_seconds: float = GRACE_SECONDS,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        self._grace_seconds, self._again_seconds = grace_seconds, again_seconds
        self._open = open_lane
        self._max_lanes = max_lanes
        self._timeout_seconds = timeout_seconds
        self._lanes: list[Lane] = []
        self._made = 0
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    def several(self, works: int) -> bool:
        """Return whether this number of works is done by more than one lane."""
        return min(works, self._max_lanes) > 1

    def run(self, works: Sequence[Work[T]], done: Callable[[Work[T], T, float], None]) -> list[BaseException]:
        """Do all works, several at once. After one has failed none begins any more; those that are under way are waited for.

        Args:
            done: called by this thread for each work that succeeded, with its result and the seconds that it took.

        Returns:
            The errors, in the order in which they happened.
        """
        waiting, running, errors = deque(works), dict[Lane, _Turn[T]](), list[BaseException]()
        while running or (waiting and not errors):
            if waiting and not errors and len(running) < self._max_lanes:
                try:
                    lane = self._idle(running)
                except Exception as error:  # noqa: BLE001  # raised by the caller, when the others have ended
                    errors.append(error)
                else:
                    running[lane] = turn = _Turn(waiting.popleft(), self._timeout_seconds)
                    lane.begin(turn.work)
                continue
            wait = min(turn.check_at for turn in running.values()) - time.monotonic()
            try:
                lane, result, error_ = self._answers.get(timeout=max(0.0, wait))
            except queue.Empty:
                errors += self._cancel_late(running)
                continue
            if (turn_ := running.pop(lane, None)) is None:
                continue  # it was given up
            if error_ is None:
                done(turn_.work, result, time.monotonic() - turn_.began)
            else:
                errors.append(self._as_timeout(error_, turn_))
        return errors

    def _idle(self, running: Mapping[Lane, object]) -> Lane:
        """Return the first idle lane: a batch that needs only one lane always goes to the first, whose session has read it."""
        found = next((lane for lane in self._lanes if lane not in running), None)
        if found is None:
            found = self._open(self._made, self._answers)
            self._made += 1
            self._lanes.append(found)
        return found

    def _cancel_late(self, running: dict[Lane, _Turn[T]]) -> list[ConnectError]:
        """Cancel what takes too long, and give up lanes that do not come back."""
        now = time.monotonic()
        given_up: list[ConnectError] = []
        for lane, turn in list(running.items()):
            if now < turn.check_at:
                continue
            if now > turn.began + self._timeout_seconds + self._grace_seconds:
                del running[lane]
                self._lanes.remove(lane)
                given_up.append(
                    FatalTaskError(
                        f"{self._timeout(turn)} It did not end when its jobs were cancelled, so storage or the catalog hold it. The table "
                        "has all of this batch or nothing. Restart the task to go on."
                    )
                )
            else:
                turn.cancelled, turn.check_at = True, now + self._again_seconds
                lane.cancel()
        return given_up

    def _as_timeout(self, error: BaseException, turn: _Turn[T]) -> BaseException:
        if not turn.cancelled or not isinstance(error, Exception):
            return error
        late = RetriableError(f"{self._timeout(turn)} Its jobs were cancelled; the table has all of this batch or nothing.")
        late.__cause__ = error
        return late

    def _timeout(self, turn: _Turn[T]) -> str:
        bound = f"lakehouse.control.commit.timeout-ms={self._timeout_seconds * 1000:.0f}"
        return f"Writing {turn.work.name} timed out: it took longer than {bound}."

    def close(self) -> None:
        """Let lanes end when they are idle. Idempotent."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.end()


class Aside:
    """One work at a time, next to the batches, by a lane of its own, which is made when it is first needed.

    Args:
        open_lane: makes the lane, which puts its answers into the queue.
    """

    def __init__(self, open_lane: Callable[[queue.SimpleQueue[Answer]], Lane]) -> None:
        self._open = open_lane
        self._lane: Lane | None = None
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    def begin(self, work: Work[Any]) -> None:
        """Start a work; the one before it has ended. Raises what opening the lane raises."""
        if self._lane is None:
            self._lane = self._open(self._answers)
        self._lane.begin(work)

    def ended(self) -> tuple[Any, BaseException | None] | None:
        """Return result and error of a work, one of which is None, once after its end; None before."""
        try:
            _, result, error = self._answers.get_nowait()
        except queue.Empty:
            return None
        return result, error

    def close(self) -> None:
        """Cancel what is under way, and let the lane end. Idempotent."""
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.cancel()
            lane.end()


class OwnThreadLane:
    """A lane without a thread: what it begins has ended when `begin` returns."""

    def __init__(self, answers: queue.SimpleQueue[Answer]) -> None:
        self._answers = answers

    def begin(self, work: Work[Any]) -> None:
        self._answers.put((self, *_done(work)))

    def cancel(self) -> None:
        """Do nothing: nothing is under way."""

    def end(self) -> None:
        """Do nothing."""


def _done(work: Work[Any]) -> tuple[Any, BaseException | None]:
    try:
        return work.do(), None
    except BaseException as error:  # noqa: BLE001  # the task's thread raises it
        return None, error


class _Turn(Generic[T]):
    """A work that is under way; `check_at` is when it is cancelled, and again after that."""

    def __init__(self, work: Work[T], timeout_seconds: float) -> None:
        self.work = work
        self.began = time.monotonic()
        self.check_at = self.began + timeout_seconds
        self.cancelled = False


class SparkLane:
    """A thread with a session. It is a daemon's: what never ends must not keep a task's process.

    Args:
        name: of the thread, and of the pool in which Spark schedules its jobs.
        spark: its session.
    """

    def __init__(self, name: str, answers: queue.SimpleQueue[Answer], sessions: Sessions, spark: SparkSession, *, is_classic: bool) -> None:
        self._name = name
        self._answers = answers
        self._sessions = sessions
        self._spark = spark
        self._is_classic = is_classic
        self._group = f"connect-py-{uuid.uuid4().hex}"
        self._works: queue.SimpleQueue[Work[Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()
        _log.debug("Lane %s begins", name)

    def begin(self, work: Work[Any]) -> None:
        self._works.put(work)

    def cancel(self) -> None:
        # A dead JVM has nothing to cancel.
        try:
            if self._is_classic:
                self._spark.sparkContext.cancelJobGroup(self._group)
            else:
                self._spark.interruptAll()
        except Exception as error:  # noqa: BLE001  # the lane itself says what is wrong
            _log.debug("Jobs of lane %s cannot be cancelled: %s", self._name, error)

    def end(self) -> None:
        self._works.put(None)

    def _run(self) -> None:
        self._sessions.use(self._spark)
        answer_at_once(self._spark)
        while (work := self._works.get()) is not None:
            self._answers.put((self, *_done(Work(work.name, functools.partial(self._do, work)))))

    def _do(self, work: Work[T]) -> T:
        """Do a work. Its jobs can be cancelled together, and get their share of the cores next to those of a large table."""
        if self._is_classic:
            context = self._spark.sparkContext
            context.setLocalProperty("spark.scheduler.pool", self._name)
            context.setJobGroup(self._group, work.name)
        return work.do()
