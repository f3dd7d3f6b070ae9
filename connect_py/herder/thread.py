"""Run the one thread that owns a herder's state. Others post functions to it; it runs them one after the other."""

from __future__ import annotations

import datetime
import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from connect_py.clock import SYSTEM_THREADS, Running, Threads
from connect_py.errors import RestError
from connect_py.herder.base import REQUEST_TIMEOUT_SECONDS

log = logging.getLogger(__name__)

T = TypeVar("T")


class HerderThread:
    """A queue of work and the thread that does it.

    Args:
        threads: makes the thread, and has the time.
    """

    def __init__(self, threads: Threads = SYSTEM_THREADS) -> None:
        self._threads = threads
        self._changed = threading.Condition()
        self._queue: deque[tuple[Callable[[], None], str] | None] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: Running | None = None
        self._doing: tuple[str, float] | None = None
        self._done: tuple[str, float, float] | None = None

    def start(self) -> None:
        """Begin to work."""
        self._thread = self._threads.start("herder", self._run)

    @property
    def is_alive(self) -> bool:
        """Whether it works."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> None:
        """Finish what is queued, then end; not waited for any longer than `timeout` seconds."""
        self._put(None)
        if self._thread is not None:
            self._thread.join(timeout)

    def post(self, work: Callable[[], None], doing: str = "applying a change of the configuration") -> None:
        """Have something done; any thread may call this. `doing` completes the sentence "The worker is currently …"."""
        self._put((work, doing))

    def _put(self, item: tuple[Callable[[], None], str] | None) -> None:
        with self._changed:
            self._queue.append(item)
            self._changed.notify()

    def post_later(self, seconds: float, work: Callable[[], None]) -> None:
        """Have something done after a while; called on this thread only."""
        heapq.heappush(self._later, (self._threads.now() + seconds, next(self._numbers), work))

    def call(self, work: Callable[[], T], timeout: float = REQUEST_TIMEOUT_SECONDS, *, doing: str = "handling a request") -> T:
        """Have something done and wait for its result.

        Raises:
            RestError: it did not happen in time; the text says what the thread is busy with.
            Exception: what `work` raised.
        """
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # it belongs to the caller
                future.set_exception(error)

        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        self.post(run, doing)
        if not self._threads.wait(done, timeout):
            future.cancel()
            raise RestError(f"Request timed out. {self.stage()}".strip(), 500)
        return future.result(0)

    def stage(self) -> str:
        """Return what the thread is doing, or did last, as Connect says it (`util/Stage.java`); empty before it has done anything."""
        doing, done = self._doing, self._done
        if doing is not None:
            return f"The worker is currently {doing[0]}, which began at {instant(doing[1])}."
        if done is not None:
            return (
                f"The last operation the worker completed was {done[0]}, which began at {instant(done[1])} and completed at "
                f"{instant(done[2])}."
            )
        return ""

    def _run(self) -> None:
        while True:
            timeout = max(0.0, self._later[0][0] - self._threads.now()) if self._later else None
            with self._changed:
                if self._threads.wait_for(self._changed, lambda: bool(self._queue), timeout):
                    item = self._queue.popleft()
                else:
                    item = heapq.heappop(self._later)[2], "trying again what could not be done before"
            if item is None:
                return
            work, doing = item
            began = time.time()
            self._doing = doing, began
            try:
                work()
            except Exception:
                log.exception("A step of the herder failed; it goes on with the next one")
            self._doing, self._done = None, (doing, began, time.time())


def instant(seconds: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC with milliseconds, as `Instant.toString` gives it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
