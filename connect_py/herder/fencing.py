"""Fence the zombies of exactly-once sources before their successors start (`DistributedHerder.fenceZombieSourceTasks`, `ZombieFencing`).

Before a task of a source starts, nothing may be left of an earlier set of its connector's tasks that could still commit a transaction. The
leader makes sure of that once for each set: it fences the transactional ids of the set before, and notes the size of the new one on the
configuration topic. A task itself fences only the last producer of its own id.

A round runs on the thread of the first who asks. Those who ask for the same set meanwhile wait for it and share its outcome, a failure
too: a coordinator that does not answer costs the tasks of a connector one wait, and not one after the other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from connect_py.api.storage import ClusterConfig, ConfigStore
from connect_py.clock import SYSTEM_THREADS, Threads
from connect_py.errors import BadRequestError, ConflictError, ConnectError, NotFoundError, RestError, RetriableError

log = logging.getLogger(__name__)

#: Reads of the configuration topic; ``worker.sync.timeout.ms``.
SYNC_SECONDS = 3.0

#: How long a task's start waits for a leader that can be reached: a session of the usual length, a round, and some more. A request's time.
LEADER_SECONDS, _PAUSE_SECONDS = 90.0, 0.25

#: So many wrong signatures in a row, with reads of the key between them, are no matter of time. The leader may read a key that it has just
#: made a moment later than this worker does.
_WRONG_SIGNATURES = 4


def ask_leader(
    ask: Callable[[], None],
    is_wanted: Callable[[], bool],
    read_key: Callable[[], None],
    seconds: float = LEADER_SECONDS,
    threads: Threads = SYSTEM_THREADS,
) -> None:
    """Ask the leader until one answers: it may have died, and the group has no other one before its session is over. Kafka Connect fails
    the task there (`DistributedHerder.startTask`).

    A wrong signature passes where the leader's key is new. Where it is still wrong by the newest key, nothing is waited for.

    Args:
        ask: the request; may be repeated.
        is_wanted: whether the task is still this worker's.
        read_key: reads the configuration topic to its end, where the key is by which requests are signed. May raise ConnectError.

    Raises:
        ConnectError: the leader refuses, or none could be reached in time.
    """
    deadline, never, wrong = threads.now() + seconds, threading.Event(), 0
    while True:
        try:
            ask()
            return
        except ConnectError as error:
            status = error.status if isinstance(error, RestError) else None
            wrong = wrong + 1 if status == 403 else 0
            passes = isinstance(error, RetriableError) or status == 409 or 0 < wrong < _WRONG_SIGNATURES
            if not passes or not is_wanted() or threads.now() >= deadline:
                raise
            log.info("A task waits for the group's leader before it starts: %s", error)
        if wrong:
            try:
                read_key()
            except ConnectError as error:
                log.info("The key that signs requests of workers to each other could not be read: %s", error)
                wrong = 0
        threads.wait(never, _PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class _Round:
    """One that is under way, for a generation of a connector's tasks."""

    generation: int | None
    outcome: Future[None] = field(default_factory=Future)


class Fencing:
    """Runs the rounds of a worker that leads.

    Args:
        is_source: of a connector's configuration, whether it is a source.
        fence: fences the first so many tasks' transactional ids of a connector. Raises ConnectError.
        sync_seconds: how long the configuration topic may take to be read.
    """

    def __init__(
        self,
        configs: ConfigStore,
        is_source: Callable[[ClusterConfig, str], bool],
        fence: Callable[[str, Sequence[int]], None],
        sync_seconds: float = SYNC_SECONDS,
    ) -> None:
        self._configs = configs
        self._is_source = is_source
        self._fence = fence
        self._sync_seconds = sync_seconds
        self._guard = threading.Lock()
        self._rounds: dict[str, _Round] = {}

    def fence(self, connector: str) -> None:
        """Run a round, or take part in the one that is under way; returns once no task of an earlier set can commit.

        Raises:
            NotFoundError: there is no such connector.
            BadRequestError: it is a sink.
            ConflictError: it has got new tasks meanwhile.
            RestError: the configuration topic or Kafka's coordinator does not answer.
        """
        self._read()
        while True:
            snapshot = self._check(connector)
            asked = _Round(snapshot.task_generations.get(connector))
            with self._guard:
                running = self._rounds.setdefault(connector, asked)
            if running is asked:
                break
            if running.generation == asked.generation:
                running.outcome.result()
                return
            wait([running.outcome])  # of an earlier set
        try:
            self._run(connector)
        except BaseException as error:
            self._end(connector).set_exception(error)
            raise
        self._end(connector).set_result(None)

    def _run(self, connector: str) -> None:
        snapshot = self._check(connector)
        if connector in snapshot.fenced:
            return
        before, now = snapshot.task_count_records.get(connector), snapshot.task_counts.get(connector, 0)
        # from one task to one, the task's own start fences its predecessor
        if before and not (before == 1 and now == 1):
            try:
                self._fence(connector, range(before))
            except ConnectError as error:
                raise RestError(f"Failed to fence out zombie source tasks of connector {connector}: {error}", 500) from error
            self._read()
            if self._check(connector).task_generations.get(connector) != snapshot.task_generations.get(connector):
                raise ConflictError("Fencing failed because new task configurations were generated for the connector")
        self._configs.put_task_count_record(connector, now)

    def _end(self, connector: str) -> Future[None]:
        with self._guard:
            return self._rounds.pop(connector).outcome

    def _check(self, connector: str) -> ClusterConfig:
        snapshot = self._configs.snapshot()
        if connector not in snapshot.connectors:
            raise NotFoundError(f"Connector {connector} not found")
        if not self._is_source(snapshot, connector):
            raise BadRequestError(f"Connector {connector} is not a source connector")
        return snapshot

    def _read(self) -> None:
        try:
            self._configs.refresh(self._sync_seconds)
        except ConnectError as error:
            raise RestError("Failed to read to end of config topic before performing zombie fencing", 500) from error
