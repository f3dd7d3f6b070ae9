"""How every status store answers: from the reports that it has read, behind a lock that any thread may take."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from connect_py.api.storage import Status
from offsets.status_cache import StatusCache


class StatusLookups:
    """The reading half of `StatusStore`, for any thread.

    Attributes:
        _cache: written by the store that inherits this, under `_lock`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache = StatusCache()

    def connectors(self) -> list[str]:
        """Connectors with a status."""
        with self._lock:
            return list(self._cache.connectors)

    def connector(self, name: str) -> Status | None:
        """A connector's last report."""
        with self._lock:
            return self._cache.connectors.get(name)

    def task(self, connector: str, task: int) -> Status | None:
        """A task's last report."""
        with self._lock:
            return self._cache.tasks.get(connector, {}).get(task)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Last reports of a connector's tasks, by number."""
        with self._lock:
            return dict(sorted(self._cache.tasks.get(connector, {}).items()))

    def topics(self, connector: str) -> Sequence[str]:
        """Topics that the connector has used since they were last reset."""
        with self._lock:
            return list(self._cache.topics.get(connector, ()))
