"""Keep the last lines of each connector's log in memory, as its tasks wrote them, for clients of this worker.

Threads that read tasks' standard error add, threads of the REST server read. Secrets have been taken out of a line before it gets here.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable

#: Of each connector.
KEPT_LINES = 500

#: Characters that are kept of a line: a trace's line has some hundred, a JVM's may have any number. So 100 connectors stay below 100 MB
#: in the worst case.
_LINE_LENGTH = 2000


class RecentLines:
    """Numbers are the times at which lines came, in microseconds, each larger than the one before: they grow over a worker's restarts, and
    put the lines of several workers in order."""

    def __init__(self, kept: int = KEPT_LINES) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._last = 0
        self._lines: dict[str, collections.deque[tuple[int, int, str]]] = {}

    def keeper(self, connector: str, task: int, forward: Callable[[str], None]) -> Callable[[str], None]:
        """Return what keeps each line of a task and then forwards it."""

        def keep(line: str) -> None:
            with self._lock:
                lines = self._lines.setdefault(connector, collections.deque(maxlen=self._kept))
                self._last = max(self._last + 1, time.time_ns() // 1000)
                lines.append((self._last, task, line[:_LINE_LENGTH]))
            forward(line)

        return keep

    def of(self, connector: str, since: int = 0) -> list[tuple[int, int, str]]:
        """Return (number, task, line) of what is kept and has a larger number, oldest first."""
        with self._lock:
            return [line for line in self._lines.get(connector, ()) if line[0] > since]

    def forget(self, connector: str) -> None:
        """A connector is deleted."""
        with self._lock:
            self._lines.pop(connector, None)
