"""End a worker: its tasks within their time, then the last states, then the stores, also while Kafka does not answer."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor

from connect_py.api.storage import ConfigStore, OffsetStore, StatusStore
from connect_py.errors import ConnectError, RestError
from connect_py.herder.assignment import Assignment
from connect_py.herder.thread import HerderThread
from connect_py.host.connectors import ConnectorHost
from connect_py.host.tasks import TaskHost

log = logging.getLogger(__name__)

#: How long a worker that ends waits for Kafka to take the last states of connectors and tasks, which takes milliseconds when it answers at
#: all; the least when the tasks took all of their time. With the tasks' five seconds (the default) that is less than eight, and
#: orchestrators kill after ten.
_LAST_STATES_SECONDS = 5.0
_MIN_LAST_STATES_SECONDS = 1.5

#: How long a worker that ends lets the herder's thread finish what it is at, such as a write to Kafka.
_BUSY_SECONDS = 1.5

#: How long the ends of processes that were killed are awaited, so that they are reported.
_KILLED_SECONDS = 1.0


class ShutdownSequence:
    """Used once, from the thread that stops the worker.

    Args:
        thread: owns both hosts.
        seconds: that tasks have, ``task.shutdown.graceful.timeout.ms``.
    """

    def __init__(
        self,
        thread: HerderThread,
        connectors: ConnectorHost,
        tasks: TaskHost,
        *,
        configs: ConfigStore,
        statuses: StatusStore,
        offsets: OffsetStore,
        assignment: Assignment,
        seconds: float,
    ) -> None:
        self._thread = thread
        self._connectors = connectors
        self._tasks = tasks
        self._configs = configs
        self._statuses = statuses
        self._offsets = offsets
        self._assignment = assignment
        self._seconds = seconds
        self._deadline: float | None = None
        self._unblocking: threading.Thread | None = None
        self._has_closed_configs = False

    def begin(self) -> None:
        """Ask the tasks to end; returns at once, and does nothing the second time."""
        if self._deadline is None:
            self._deadline = deadline = time.monotonic() + self._seconds
            told = threading.Event()
            self._assignment.begin_end()

            def close() -> None:
                told.set()
                self._tasks.close(deadline)

            self._thread.post(close, "stopping tasks")
            self._unblocking = threading.Thread(target=self._unblock, args=(told,), name="unblock-herder", daemon=True)
            self._unblocking.start()

    def finish(self, pool: Executor) -> None:
        """Wait for the tasks, report them and the connectors UNASSIGNED, and close the pool and the stores."""
        if self._thread.is_alive:
            self.begin()
            assert self._deadline is not None
            self._stop_work(self._deadline)
            self._flush_statuses(self._deadline + _MIN_LAST_STATES_SECONDS - time.monotonic())
        self._assignment.end()
        pool.shutdown(wait=False, cancel_futures=True)
        if self._unblocking is not None:
            self._unblocking.join()
        stores: list[ConfigStore | StatusStore | OffsetStore] = [self._statuses, self._offsets]
        if not self._has_closed_configs:
            stores.append(self._configs)
        with ThreadPoolExecutor(len(stores), "close") as closing:  # in an outage each waits for a while
            list(closing.map(lambda store: store.stop(), stores))

    def _unblock(self, told: threading.Event) -> None:
        """A herder's thread that waits for Kafka cannot tell the tasks to end: have it give up, by closing what it writes to."""
        if not self._thread.is_alive or told.wait(_BUSY_SECONDS):
            return
        log.warning("The worker ends, and gives up what it waits for; Kafka may have taken it nevertheless. %s", self._thread.stage())
        self._has_closed_configs = True
        self._configs.stop()

    def _flush_statuses(self, seconds: float) -> None:
        """A worker that ends while Kafka is unavailable cannot report it, and has ended in order nevertheless."""
        try:
            self._statuses.flush(min(_LAST_STATES_SECONDS, max(_MIN_LAST_STATES_SECONDS, seconds)))
        except ConnectError as error:
            log.warning(
                "The last states could not be written: until a worker of the group starts again, they show what ran before. %s", error
            )

    def _stop_work(self, deadline: float) -> None:
        try:
            self._thread.call(self._connectors.close, 2 * _BUSY_SECONDS)
            self._await_tasks(deadline + 1.5)
            self._thread.call(self._tasks.kill_all, _BUSY_SECONDS)
            self._await_tasks(time.monotonic() + _KILLED_SECONDS)
        except RestError as error:
            log.warning("The worker ends without having told every task and connector; they end with it. %s", error)
        self._thread.stop(_BUSY_SECONDS)

    def _await_tasks(self, until: float) -> None:
        while not self._thread.call(lambda: self._tasks.is_closed, 2 * _BUSY_SECONDS) and time.monotonic() < until:
            time.sleep(0.02)
