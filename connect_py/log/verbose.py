"""Remember for which connectors more is logged for a while, and until when. Any thread may call.

A task is a process of its own, so its level can be another than the worker's, and other connectors' logs stay as they are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

#: Packages of this project whose loggers a task has; libraries (drivers, Spark) stay as they are: some log the values of rows.
PACKAGES = frozenset({"connect_py", "connectors", "offsets", "spark_sink"})


class VerboseConnectors:
    """Connectors whose tasks log DEBUG.

    Args:
        clock: monotonic seconds.
        wall_clock: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def begin(self, connector: str, seconds: float) -> None:
        """Log more for so long from now; 0 ends it."""
        with self._lock:
            if seconds > 0:
                self._until[connector] = self._clock() + seconds
            else:
                self._until.pop(connector, None)

    def until(self, connector: str) -> float | None:
        """Return when it ends, seconds since 1970; None where nothing more is logged."""
        left = self._left(connector)
        return None if left is None else self._wall_clock() + left

    def levels(self, connector: str, packages: Iterable[str] = PACKAGES) -> dict[str, int]:
        """Return the levels of a task's loggers by name, as numbers: DEBUG, or what the worker itself has for them (0: no level of their
        own)."""
        is_verbose = self._left(connector) is not None
        return {name: logging.DEBUG if is_verbose else logging.getLogger(name).level for name in sorted(packages)}

    def _left(self, connector: str) -> float | None:
        with self._lock:
            until = self._until.get(connector)
            if until is None:
                return None
            left = until - self._clock()
            if left <= 0:
                del self._until[connector]
            return left if left > 0 else None
