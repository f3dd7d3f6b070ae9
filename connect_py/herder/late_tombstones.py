"""Answer the word of another worker that a task is gone, where this worker runs it.

A worker that was frozen or cut off may send, when it is back, that a task of its old view is gone; by then another one may run the task
again, and the status topic would show no state of it until it changes. Kafka Connect leaves it so. The same tombstone of a task that is
really gone must stand: what the configuration topic holds tells them apart.
"""

from __future__ import annotations

import logging
from concurrent.futures import Executor

from connect_py.api.storage import ConfigStore
from connect_py.errors import ConnectError
from connect_py.herder.fencing import SYNC_SECONDS
from connect_py.herder.thread import HerderThread
from connect_py.host.tasks import TaskHost

log = logging.getLogger(__name__)

#: How soon it is looked again when the configuration could not be read.
_RETRY_SECONDS = 1.0


class LateTombstones:
    """Looks after tasks of this worker whose state another worker has forgotten. `look` may be called from any thread.

    Args:
        thread: owns `tasks`.
        pool: reads the configuration.
    """

    def __init__(self, thread: HerderThread, pool: Executor, configs: ConfigStore, tasks: TaskHost) -> None:
        self._thread, self._pool, self._configs, self._tasks = thread, pool, configs, tasks

    def look(self, connector: str, task: int) -> None:
        """Have a task's state reported again if the task is configured still, and this worker's."""

        def work() -> None:
            self._pool.submit(self._read, connector, task)

        self._thread.post(work, f"answering that task {connector}-{task} is gone")

    def _read(self, connector: str, task: int) -> None:
        """Runs on the pool. A connector is deleted, or loses tasks, on the configuration topic first; only then does a worker say that the
        tasks are gone. So who reads the configuration to its end after the tombstone knows of it."""
        try:
            self._configs.refresh(SYNC_SECONDS)
        except ConnectError as error:
            log.warning(
                "Whether task %s-%d is gone, as another worker says, is not known yet; tried again soon: %s", connector, task, error
            )
            self._thread.post(lambda: self._thread.post_later(_RETRY_SECONDS, lambda: self.look(connector, task)))
            return
        self._thread.post(lambda: self._answer(connector, task), f"answering that task {connector}-{task} is gone")

    def _answer(self, connector: str, task: int) -> None:
        snapshot = self._configs.snapshot()
        if connector in snapshot.connectors and task in snapshot.tasks(connector):
            self._tasks.say_again((connector, task))
