"""One worker takes the work of another: it waits until nothing of the other can be running, and the other, if it lives, gives up.

Until workers of a group share their work, the last one that started has all of it. It reads in the statuses that another worker's sources
may be running, reports its connectors RUNNING, which tells the other one so, and starts its own sources after ``session.timeout.ms``. By
then those of the other have ended: it has ended them on reading that report, or their leases were over (`connect_py.task.lease`),
which frozen ones are killed by. An orderly end reports UNASSIGNED, and a worker that comes back under the same address is the same one,
whose processes died with it: neither is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from connect_py.api.storage import StatusStore
from connect_py.task.lease import Leases, now

log = logging.getLogger(__name__)

#: How soon a worker that does not know whether its work is its own looks whether it does.
_UNSURE_SECONDS = 0.2

#: What a worker may report of what it runs; others are of what has ended.
_LIVING = frozenset({"RUNNING", "PAUSED", "RESTARTING"})


class Takeover:
    """What is held up on this worker, and for how long; of the herder's thread.

    Args:
        worker_id: of this worker.
        session_seconds: after which nothing of a worker that is silent can be running.
        leases: None for a worker that has no group.
    """

    def __init__(self, worker_id: str, session_seconds: float, leases: Leases | None) -> None:
        self._worker_id = worker_id
        self._session_seconds = session_seconds
        self._leases = leases
        self._until: dict[str, float] = {}

    def look(self, statuses: StatusStore, connectors: Iterable[str]) -> None:
        """Note which connectors another worker may be running."""
        if self._leases is None:
            return
        others: dict[str, str] = {}
        for name in connectors:
            for status in (statuses.connector(name), *statuses.tasks(name).values()):
                if status is not None and status.state in _LIVING and status.worker_id != self._worker_id:
                    others[name] = status.worker_id
        if others:
            log.warning(
                "The worker %s did not end in order, or is still running. Its sources start here in %.0f s (session.timeout.ms), when "
                "it can no longer write: %s",
                ", ".join(sorted(set(others.values()))),
                self._session_seconds,
                ", ".join(sorted(others)),
            )
        self._until = dict.fromkeys(others, now() + self._session_seconds)

    def held(self, connector: str) -> float:
        """For how many seconds the connector's sources must not be started."""
        if not self.is_sure():
            return _UNSURE_SECONDS
        return max(0.0, self._until.get(connector, 0.0) - now())

    def is_sure(self) -> bool:
        """Whether this worker knows that its work is its own."""
        return self._leases is None or self._leases.is_sure
