"""Starting Spark beside the task's thread: it takes several seconds, in which the task must answer a pause and a stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError

from spark_sink.spark.session import TaskSession


class Opening:
    """A session that is being opened. The thread is a daemon's: a task that ends meanwhile takes the half-started JVM along.

    Args:
        open_session: opens it; called in a thread of its own.
    """

    def __init__(self, open_session: Callable[[], TaskSession]) -> None:
        self._open = open_session
        self._session: Future[TaskSession] = Future()
        self._began = time.monotonic()
        threading.Thread(target=self._run, name="lakehouse-spark-start", daemon=True).start()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def _run(self) -> None:
        try:
            self._session.set_result(self._open())
        except BaseException as error:  # noqa: BLE001  # the task's thread raises it
            self._session.set_exception(error)

    def result(self, seconds: float) -> TaskSession | None:
        """The session, or None when it is not there after so many seconds. Raises what opening it raised."""
        try:
            return self._session.result(seconds)
        except TimeoutError:
            if self._session.done():  # the error is the opening's own
                raise
            return None

    def abandon(self) -> None:
        """Nobody waits any more: the session is closed as soon as it is there."""
        self._session.add_done_callback(lambda done: done.result().close() if done.exception() is None else None)
