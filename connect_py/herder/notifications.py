"""What connectors' tasks have shown lately, for clients of this worker: the last notifications of each connector, in memory.

The herder's thread adds, threads of the REST server read.
"""

from __future__ import annotations

import collections
import itertools
import threading
import time
from collections.abc import Mapping
from typing import Any

#: Of each connector. A snapshot in chunks of 1024 rows shows its last million rows by them.
KEPT = 1000


class Notifications:
    """See the module. Notifications are numbered; numbers grow over a worker's restarts too, since they begin at the time of its start in
    microseconds, so that a client that asks for what follows a number never waits for a number that comes again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(time.time_ns() // 1000)
        self._kept: dict[str, collections.deque[dict[str, Any]]] = {}

    def add(self, connector: str, task: int, notification: Mapping[str, Any]) -> None:
        """Keep one, in place of the oldest."""
        with self._lock:
            kept = self._kept.setdefault(connector, collections.deque(maxlen=KEPT))
            kept.append({"sequence": next(self._numbers), "task": task, **notification})

    def of(self, connector: str, since: int | None, limit: int) -> list[dict[str, Any]]:
        """Those of a connector, oldest first: the first `limit` behind a number, or the last ones."""
        with self._lock:
            kept = list(self._kept.get(connector, ()))
        if since is None:
            return kept[-limit:] if limit else []
        return [each for each in kept if each["sequence"] > since][:limit]

    def forget(self, connector: str) -> None:
        """A connector is deleted."""
        with self._lock:
            self._kept.pop(connector, None)
