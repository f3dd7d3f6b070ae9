"""Answer the word of another worker that a connector or a task is gone, where this worker runs it.

A worker that was frozen or cut off may send, when it is back, that something of its old view is gone; by then another one may run it again,
and the status topic would show no state of it until it changes. Kafka Connect leaves it so. The same tombstone of what is really gone must
stand: what the configuration topic holds tells them apart.
"""

from __future__ import annotations

import logging
from concurrent.futures import Executor

from connect_py.api.storage import ConfigStore
from connect_py.errors import ConnectError
from connect_py.herder.fencing import SYNC_SECONDS
from connect_py.herder.thread import HerderThread
from connect_py.host.connectors import ConnectorHost
from connect_py.host.tasks import TaskHost

log = logging.getLogger(__name__)

#: How soon it is looked again when the configuration could not be read.
_RETRY_SECONDS = 1.0


class LateTombstones:
    """Looks after what this worker runs and another worker has forgotten. `look` may be called from any thread.

    Args:
        thread: owns `tasks` and `connectors`.
        pool: reads the configuration.
    """

    def __init__(self, thread: HerderThread, pool: Executor, configs: ConfigStore, tasks: TaskHost, connectors: ConnectorHost) -> None:
        self._thread, self._pool, self._configs, self._tasks, self._connectors = thread, pool, configs, tasks, connectors

    def look(self, connector: str, task: int | None) -> None:
        """Have a state reported again if the task, or the connector itself, is configured still, and this worker's."""
        self._thread.post(lambda: self._submit(connector, task), f"answering that {_named(connector, task)} is gone")

    def _submit(self, connector: str, task: int | None) -> None:
        self._pool.submit(self._read, connector, task)

    def _read(self, connector: str, task: int | None) -> None:
        """Runs on the pool. A connector is deleted, or loses tasks, on the configuration topic first; only then does a worker say that they
        are gone. So who reads the configuration to its end after the tombstone knows of it."""
        named = _named(connector, task)
        try:
            self._configs.refresh(SYNC_SECONDS)
        except ConnectError as error:
            log.warning("Whether %s is gone, as another worker says, is not known yet; tried again soon: %s", named, error)
            self._thread.post(lambda: self._thread.post_later(_RETRY_SECONDS, lambda: self.look(connector, task)))
            return
        self._thread.post(lambda: self._answer(connector, task), f"answering that {named} is gone")

    def _answer(self, connector: str, task: int | None) -> None:
        snapshot = self._configs.snapshot()
        if connector not in snapshot.connectors:
            return
        if task is None:  # its readers show no state of the tasks either
            self._connectors.say_again(connector)
        for number in snapshot.tasks(connector):
            if task in (None, number):
                self._tasks.say_again((connector, number))


def _named(connector: str, task: int | None) -> str:
    return f"connector {connector}" if task is None else f"task {connector}-{task}"
