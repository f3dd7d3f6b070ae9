"""Fence the zombies of exactly-once sources before their successors start (`DistributedHerder.fenceZombieSourceTasks`, `ZombieFencing`).

Before a task of a source starts, nothing may be left of an earlier set of its connector's tasks that could still commit a transaction. The
leader makes sure of that once for each set: it fences the transactional ids of the set before, and notes the size of the new one on the
configuration topic. A task itself fences only the last producer of its own id.

Rounds run on threads of those who ask: one at a time for each connector, and those who come later wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from connect_py.api.storage import ClusterConfig, ConfigStore
from connect_py.errors import BadRequestError, ConflictError, ConnectError, NotFoundError, RestError

#: Reads of the configuration topic; ``worker.sync.timeout.ms``.
SYNC_SECONDS = 3.0


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
        self._rounds: dict[str, threading.Lock] = {}

    def fence(self, connector: str) -> None:
        """Run a round; returns once no task of an earlier set can commit.

        Raises:
            NotFoundError: there is no such connector.
            BadRequestError: it is a sink.
            ConflictError: it has got new tasks meanwhile.
            RestError: the configuration topic or Kafka's coordinator does not answer.
        """
        self._read()
        self._check(connector)
        with self._guard:
            running = self._rounds.setdefault(connector, threading.Lock())
        with running:
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
