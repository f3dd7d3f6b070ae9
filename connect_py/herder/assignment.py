"""Decide what of the cluster's work is this worker's, and take the work of another worker over.

`Assignment` is where group membership will come in (KIP-415): a later implementation follows the Connect group; `SoleWorker` is a group of
one, which leads and owns everything.

Until workers of a group share their work, the last one that started has all of it. `Takeover` reads in the statuses that another worker's
sources may be running, reports its connectors RUNNING, which notifies the other one, and starts its own sources after
``session.timeout.ms``. By then those of the other have ended: it has ended them on reading that report, or their leases were over
(`connect_py.task.lease`), which kill frozen ones. An orderly end reports UNASSIGNED, and a worker that comes back under the same address
is the same one, whose processes died with it: neither is waited for.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from connect_py.api.storage import StatusStore
from connect_py.api.task import MetricValue
from connect_py.task.lease import Leases, now

log = logging.getLogger(__name__)


class Assignment(Protocol):
    """Asked by the herder's thread whenever it decides what should run here."""

    @property
    def generation(self) -> int:
        """Generation of the group; written into statuses."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configurations."""
        ...

    def owns_connector(self, connector: str) -> bool: ...
    def owns_task(self, connector: str, task: int) -> bool: ...
    def lose_everything(self) -> None:
        """Another worker has the work now."""
        ...

    def rebalances(self) -> Mapping[str, MetricValue]:
        """Return figures of ``connect-worker-rebalance-metrics`` but for leader-name and connect-protocol; any thread may ask."""
        ...


class SoleWorker:
    """A group of one. Its generation is 1, as a Java worker's first is. It has everything, or nothing once it has lost it."""

    generation = 1

    def __init__(self) -> None:
        self._joined = time.monotonic()
        self.is_leader = True

    def owns_connector(self, connector: str) -> bool:
        """Until everything is lost."""
        return self.is_leader

    def owns_task(self, connector: str, task: int) -> bool:
        """Until everything is lost."""
        return self.is_leader

    def lose_everything(self) -> None:
        """Another worker has the work now, for as long as this one lives."""
        self.is_leader = False

    def rebalances(self) -> Mapping[str, MetricValue]:
        """Return one rebalance, at the start, which nothing had to wait for."""
        return {
            "epoch": self.generation,
            "completed-rebalances-total": 1,
            "rebalancing": False,
            "rebalance-max-time-ms": math.nan,
            "rebalance-avg-time-ms": math.nan,
            "time-since-last-rebalance-ms": int((time.monotonic() - self._joined) * 1000),
        }


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
        """Return whether this worker knows that its work is its own."""
        return self._leases is None or self._leases.is_sure
