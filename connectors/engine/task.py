"""What the tasks of all databases share: a state machine that `poll` drives, on the runtime's one thread; its retries; headers of records.

    CONNECT ──> SNAPSHOT ──> STREAMING          any of them ──(passing failure)──> CONNECT, after a pause
        └───────────────────────^ └──> DONE     (modes that do not stream)
                    ^──(a signal)──┘

There is no thread and no queue between a socket and the producer, so memory is bounded by a batch and a slow Kafka slows reading. A
connector's task says what each state does; it keeps the offset of the last batch that was returned, and after a failure resumes from it,
exactly as a new process would from the stored one.
"""

from __future__ import annotations

import enum
import logging
import os
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from connect_py.api import EncodedBatch, MetricGroup, SourceOffset, SourcePartition, SourceTask, SourceTaskContext
from connect_py.api.facts import POSITION_GROUP
from connect_py.api.record import EncodedRow
from connect_py.clock import SYSTEM_CLOCK, Clock
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connect_py.wakeup import Wakeup
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.config import ParsedConfig
from connectors.engine.metrics import SnapshotMetrics, StreamingMetrics
from connectors.engine.plugins.post_processors import PostProcessors
from connectors.engine.services import Fields, SourceServices
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from connectors.engine.snapshot.initial.run import SnapshotSource

log = logging.getLogger(__name__)


def new_run_id() -> str:
    """Return a random UUID of version 7 (RFC 9562, section 5.7): one a start of a task, sorting by time."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | random & ((1 << 80) - 1)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def context_headers(logical_name: str, task: int, connector_name: str, run_id: str) -> tuple[tuple[str, str], ...]:
    """Return the four headers, in Debezium's order.

    Args:
        logical_name: `topic.prefix`.
        connector_name: the short name of the kind of connector, such as ``postgresql``.
    """
    return (
        ("__debezium.context.connectorLogicalName", logical_name),
        ("__debezium.context.taskId", str(task)),
        ("__debezium.context.connectorName", connector_name),
        ("__debezium.context.runId", run_id),
    )


#: A predecessor that was killed frees its slot within a fraction of a second, a restarting server answers within a few.
FIRST_PAUSE_SECONDS = 0.2


class Backoff:
    """Pauses that double from FIRST_PAUSE_SECONDS up to a longest one; only attempts after a longest pause count.

    Args:
        longest: in seconds.
        attempts: how many to make at the longest pause, -1 for any number, 0 for none at all.
        clock: monotonic seconds.
    """

    def __init__(self, longest: float, attempts: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._attempts = attempts
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Start over: the server answers again."""
        self._pause = min(FIRST_PAUSE_SECONDS, self._longest)
        self._counted = 0
        self._until = 0.0

    def next(self, error: Exception) -> float:
        """Plan the next attempt after a failure; returns the pause in seconds.

        Raises:
            FatalTaskError: there is none left; its text is the failure's.
        """
        if self._attempts == 0:
            raise FatalTaskError(f"{error} (no further attempt is allowed)") from error
        pause = self._pause
        if pause >= self._longest:
            self._counted += 1
            if 0 < self._attempts < self._counted:
                raise FatalTaskError(f"{error} (given up after {self._attempts} attempts {self._longest:g} s apart)") from error
        self._pause = min(pause * 2, self._longest)
        self._until = self._clock() + pause
        return pause

    def seconds_left(self) -> float:
        """Return the seconds until the next attempt is due; 0 when it is."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0


#: An outage that lasts is logged again after this time.
REPEAT_SECONDS = 300.0


class Outage:
    """Which failures of a series are worth a line in the log: the first of its kind, and one now and then.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._text = ""
        self._until = 0.0
        self._count = 0

    def is_news(self, text: str) -> bool:
        """Note a failure. Returns whether to log it."""
        self._count += 1
        if text == self._text and self._clock() < self._until:
            return False
        self._text, self._until = text, self._clock() + REPEAT_SECONDS
        return True

    def end(self) -> int:
        """Note the end of the outage. Returns how many failures there were."""
        count, self._count, self._text = self._count, 0, ""
        return count


#: How long rows of a snapshot wait until its position is stored. A task that dies before would begin another snapshot, and rows that were
#: deleted between the two would stay in the topics.
STORE_SECONDS, STORE_POLL_SECONDS = 10.0, 0.005

#: A poll that finds nothing returns after this, so that the runtime can see to commits and stops.
IDLE_SECONDS = 0.3
#: The same for a poll of a stream to which nothing happens for a while, and whose wait `interrupt` ends.
REST_SECONDS = 5.0


class State(enum.Enum):
    """The states of a task. CATCH_UP: streaming up to the position where what is left of a snapshot is read."""

    CONNECT = "connect"
    CATCH_UP = "catch up"
    SNAPSHOT = "snapshot"
    STREAMING = "streaming"
    DONE = "done"


class Mode(Protocol):
    """`snapshot.mode`, as far as it concerns all databases."""

    @property
    def name(self) -> str: ...

    @property
    def streams(self) -> bool: ...


class Position(Protocol):
    """An offset, as far as it concerns all databases."""

    @property
    def more(self) -> Fields: ...

    def dump(self) -> SourceOffset:
        """Return it as it is stored."""


#: A connector's offset.
P = TypeVar("P", bound=Position)


#: A connector's services.
S = TypeVar("S", bound=SourceServices[Any])


class DatabaseTask(SourceTask, Generic[S, P]):
    """Snapshot, then stream, one database.

    Args:
        hooks: called around an incremental snapshot's watermarks, for tests that put races there.
        tuning: sizes and delays.
        clock: of retries, delays and waits.

    Attributes:
        passing: failures after which a new start is tried; all others end the task.
        stores_end: whether the end of an initial snapshot is stored although no row came with it.
    """

    passing: ClassVar[tuple[type[ConnectError], ...]] = (RetriableError,)
    stores_end: ClassVar[bool] = True

    _backoff: Backoff

    def __init__(self, *, hooks: SnapshotHooks | None = None, tuning: Tuning = DEFAULT_TUNING, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._hooks = hooks
        self._tuning = tuning
        self._stop = threading.Event()
        self._wakeup: Wakeup | None = None
        self._state = State.CONNECT
        self._not_before = 0.0
        self._must_store = False
        self._rows_wait_until = 0.0
        self._awaited: SourceOffset = {}
        self._outage = Outage(clock.now)
        self._maybe_services: S | None = None
        self._partition: dict[str, str] = {}
        self._position: P | None = None
        self._processors: PostProcessors | None = None
        self._headers: tuple[tuple[str, str], ...] = ()
        # until `start` knows the names: a start that is refused is closed too
        self._snapshot_metrics = SnapshotMetrics("", "", clock=clock.now)
        self._streaming_metrics = StreamingMetrics("", "", clock=clock.now)

    # -- the contract ------------------------------------------------------------------------------------------------------------------

    def poll(self) -> EncodedBatch | None:
        """Return the next batch; see `SourceTask.poll`."""
        if self._stop.is_set():
            return None
        pause = max(self._pause(), self._not_before - self._clock.now())
        if pause > 0:
            self._clock.wait(self._stop, min(pause, IDLE_SECONDS))
            return None
        try:
            batch = self._step()
            return batch if batch is None or self._processors is None else self._processors.apply(batch)
        except self.passing as error:
            self._recover(error)
        return None

    def stop(self) -> None:
        """Make `poll` return soon."""
        self._stop.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End a wait for the stream."""
        wakeup = self._wakeup
        if wakeup is not None:
            wakeup.wake()

    def _interruptible(self) -> Wakeup:
        """Return what ends waits for the stream, for a connector whose `rest_patience` is `REST_SECONDS`."""
        self._wakeup = self._wakeup or Wakeup()
        return self._wakeup

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Take a signal that came by REST; see `SourceTask.take_signal`. Raises ConfigError."""
        self._services.take_signal(signal, done)

    def offsets_committed(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None:
        """Acknowledge the signals whose effects the offsets topic holds, and let rows go that waited for their snapshot's position."""
        if any(offset == self._awaited for _, offset in offsets):
            self._rows_wait_until = 0.0
        if self._maybe_services is not None:
            self._maybe_services.committed(offset for _, offset in offsets)

    def metrics(self) -> Sequence[MetricGroup]:
        """Return Debezium's beans, the progress of a snapshot, and what was read of the log."""
        read = self._log_position()
        position = [MetricGroup(*POSITION_GROUP, {}, read)] if read else []
        return [*self._snapshot_metrics.groups(), self._streaming_metrics.group(), *position]

    def _log_position(self) -> Mapping[str, int]:
        """Return what was read of the source's log, as the values of `POSITION_GROUP`; empty while nothing is."""
        return {}

    def close(self) -> None:
        """Release every connection; also after a start that refused its configuration."""
        self._disconnect()
        if self._wakeup is not None:
            self._wakeup.close()
        if self._maybe_services is not None:
            self._maybe_services.close()
        if self._processors is not None:
            self._processors.close()

    # -- what it does now ----------------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What the next `poll` does."""
        return self._state

    @property
    def position(self) -> P | None:
        """The offset of the last batch, from which a new start resumes; None while there is nothing to resume."""
        return self._position

    @property
    def is_streaming(self) -> bool:
        """Whether the stream of changes is open, beyond the position where an interrupted snapshot resumes."""
        return self._state is State.STREAMING and self._streaming_metrics.connected

    @property
    def incremental(self) -> IncrementalSnapshot[Any] | None:
        """The incremental snapshot; None where the configuration has none, and before `start`."""
        return None if self._maybe_services is None else self._maybe_services.incremental

    def disconnect(self) -> None:
        """Close every connection without a word to the server, as a failure would; the next `poll` starts over from `position`."""
        self._disconnect()
        if self._maybe_services is not None:
            self._maybe_services.restore(self._position.more if self._position else {})
        self._state = State.CONNECT

    # -- what a connector gives --------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _mode(self) -> Mode:
        """`snapshot.mode`."""

    @abstractmethod
    def _connect(self) -> None:
        """Leave CONNECT. Raises ConnectError."""

    @abstractmethod
    def _end_snapshot(self, snapshot: Any) -> None:
        """Continue after a snapshot that has finished, or that was blocking and failed."""

    @abstractmethod
    def _read_stream(self) -> EncodedBatch | None:
        """Return the next batch of the stream."""

    def _catch_up(self) -> EncodedBatch | None:
        """Return the next batch on the way to the position where a snapshot resumes."""
        raise NotImplementedError

    @abstractmethod
    def _begin_blocking(self, request: BlockingRequest) -> None:
        """Interrupt streaming for a snapshot that a signal asked for; what cannot be done is logged."""

    @abstractmethod
    def _batch(self, offset: Any) -> EncodedBatch | None:
        """Return a batch of what waits, with the offset of the last event (None: as before) and the fields of the services."""

    @property
    @abstractmethod
    def _running(self) -> SnapshotSource[P] | None:
        """The snapshot that is under way."""

    @abstractmethod
    def _resume_description(self) -> str:
        """Return what a start does with the current position, for people."""

    @abstractmethod
    def _close_connections(self) -> None: ...

    # -- the state machine -------------------------------------------------------------------------------------------------------------

    def _begin(self, config: ParsedConfig, context: SourceTaskContext, connector: str, bean: str) -> None:
        """Make metrics, headers, post-processors and retries, by what all connectors call them.

        Args:
            connector: as headers call it.
            bean: as metrics call it.
        """
        queue = config.number("max.queue.size")
        self._snapshot_metrics = SnapshotMetrics(bean, config.topic_prefix, queue, self._clock.now)
        self._streaming_metrics = StreamingMetrics(bean, config.topic_prefix, queue, self._clock.now)
        if config.flag("extended.headers.enabled"):
            self._headers = context_headers(config.topic_prefix, context.task, connector, new_run_id())
        self._processors = PostProcessors.make(config.raw, context.encoding)
        pause, attempts = config.seconds("retriable.restart.connector.wait.ms"), config.number("errors.max.retries")
        self._backoff = Backoff(pause, attempts, self._clock.now)

    def use_services(self, services: S) -> None:
        """Carry these services out, from the stored offset on; a connector's `start` calls it."""
        self._maybe_services = services
        if services.incremental is not None:
            services.incremental.progress = self._snapshot_metrics
        services.restore(self._position.more if self._position else {})

    @property
    def _services(self) -> S:
        assert self._maybe_services is not None
        return self._maybe_services

    @property
    def _wait_seconds(self) -> float:
        """How long a poll may wait for something new, in seconds."""
        return IDLE_SECONDS if self.patience is None else self.patience

    def _pause(self) -> float:
        """Return the seconds before the next attempt."""
        return self._backoff.seconds_left()

    def _step(self) -> EncodedBatch | None:
        if self._state is State.CONNECT:
            self._connect()
        match self._state:
            case State.CATCH_UP:
                return self._catch_up()
            case State.SNAPSHOT:
                return self._read_snapshot()
            case State.STREAMING:
                return self._read_stream()
        self._services.take_signals()
        if self._services.blocking:
            self._begin_blocking(self._services.blocking.popleft())
        else:
            self._clock.wait(self._stop, IDLE_SECONDS)
        return self._batch(None)

    def _read_snapshot(self) -> EncodedBatch | None:
        """Return the next batch of a snapshot."""
        snapshot = self._running
        assert snapshot is not None
        if self._must_store and not snapshot.has_schema_rows:
            return self._store_first(snapshot.offset)
        if self._clock.now() < self._rows_wait_until:
            self._clock.wait(self._stop, STORE_POLL_SECONDS)
            return None
        try:
            rows = self._next_rows(snapshot)
        except RetriableError:
            raise
        except ConnectError as error:
            if not snapshot.is_blocking:
                raise
            log.error("The blocking snapshot failed; streaming goes on. %s", error)
            snapshot.rollback()
            self._services.events.aborted()
            snapshot.close()
            self._end_snapshot(snapshot)
            return self._batch(None)
        self._reset_backoff()
        offset = self._position = snapshot.offset
        finished, is_milestone = snapshot.pipeline.finished, snapshot.pipeline.is_milestone
        if finished and self._services.heartbeat.is_enabled:
            self._services.pending.add(self._services.heartbeat.beat())
        rows = self._services.pending.take() + rows
        ends = finished and not snapshot.is_blocking and self.stores_end
        batch = EncodedBatch(rows, self._partition, offset.dump(), is_milestone) if rows or ends else None
        if finished:
            snapshot.close()
            self._end_snapshot(snapshot)
        return batch

    def _store_first(self, offset: P) -> EncodedBatch | None:
        """Return a batch without rows of the snapshot that has its position stored. The rows come when it is, or after `STORE_SECONDS`."""
        self._must_store, self._rows_wait_until = False, self._clock.now() + STORE_SECONDS
        self._awaited = offset.dump()
        return EncodedBatch(self._services.pending.take(), self._partition, self._awaited, is_milestone=True)

    def _next_rows(self, snapshot: SnapshotSource[P]) -> list[EncodedRow]:
        """Return the next records of a snapshot. Raises ConnectError."""
        return snapshot.pipeline.next_rows()

    def _after_snapshot(self) -> State:
        if self._mode.streams:
            return State.STREAMING
        log.info("snapshot.mode=%s: the work is done, changes are not followed", self._mode.name)
        return State.DONE

    def _reset_backoff(self) -> None:
        self._backoff.reset()
        attempts = self._outage.end()
        if attempts:
            log.info("The server answers again, after %d attempts", attempts)

    def _backoff_of(self, error: ConnectError) -> Backoff:
        """Return what decides about the attempt after a failure."""
        return self._backoff

    def _disconnect(self) -> None:
        self._close_connections()
        self._streaming_metrics.connected = False
        self._snapshot_metrics.interrupted()

    def _recover(self, error: ConnectError) -> None:
        """Close everything and plan the next attempt. Raises FatalTaskError, or the error itself, when there must be none."""
        interrupted = self._running
        if interrupted is not None and interrupted.is_blocking:
            self._position = interrupted.after
            log.error("The blocking snapshot was interrupted and is not taken again; to have it, send the signal anew. %s", error)
        self.disconnect()
        if interrupted is not None:
            self._services.events.aborted()
        pause = self._backoff_of(error).next(error)
        level = logging.WARNING if self._outage.is_news(str(error)) else logging.DEBUG
        log.log(level, "%s. Trying again in %.1f s; %s, nothing is lost", error, pause, self._resume_description())
