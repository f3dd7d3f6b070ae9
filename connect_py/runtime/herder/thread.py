"""The one thread that owns a herder's state. Others post functions to it; it runs them one after the other."""

from __future__ import annotations

import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from connect_py.errors import RestError
from connect_py.runtime.herder.base import REQUEST_TIMEOUT_SECONDS

log = logging.getLogger(__name__)

T = TypeVar("T")


class HerderThread:
    """A queue of work and the thread that does it."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._run, name="herder", daemon=True)
        self._doing: tuple[str, float] | None = None

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it works."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Finish what is queued, then end."""
        self._queue.put(None)
        self._thread.join()

    def post(self, work: Callable[[], None]) -> None:
        """Have something done; any thread may call this."""
        self._queue.put(work)

    def post_later(self, seconds: float, work: Callable[[], None]) -> None:
        """Have something done after a while; called on this thread only."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), work))

    def call(self, work: Callable[[], T], timeout: float = REQUEST_TIMEOUT_SECONDS) -> T:
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

        self.post(run)
        try:
            return future.result(timeout)
        except FutureTimeoutError:
            future.cancel()
            raise RestError(f"Request timed out. {self.stage()}".strip(), 500) from None

    def stage(self) -> str:
        """What the thread has been doing for a noticeable time, as a sentence; empty when it is idle."""
        doing = self._doing
        if doing is None:
            return ""
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(doing[1]))
        return f"The worker is currently {doing[0]}, which began at {began}."

    def _run(self) -> None:
        while True:
            timeout = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            try:
                work = self._queue.get(timeout=timeout)
            except queue.Empty:
                work = heapq.heappop(self._later)[2]
            if work is None:
                return
            self._doing = "handling a request or a change of the configuration", time.time()
            try:
                work()
            except Exception:
                log.exception("A step of the herder failed; it goes on with the next one")
            self._doing = None
