"""What of the cluster's work is this worker's. The seam where group membership comes in (KIP-415): a later implementation follows the
Connect group; `SoleWorker` is a group of one, which leads and owns everything."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Protocol

from connect_py.api.metrics import MetricValue


class Assignment(Protocol):
    """Asked by the herder's thread whenever it decides what should run here."""

    @property
    def generation(self) -> int:
        """Of the group; written into statuses."""
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
        """Figures of ``connect-worker-rebalance-metrics`` but for leader-name and connect-protocol; any thread may ask."""
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
        """One, at the start, in which nobody had to wait."""
        return {
            "epoch": self.generation,
            "completed-rebalances-total": 1,
            "rebalancing": False,
            "rebalance-max-time-ms": math.nan,
            "rebalance-avg-time-ms": math.nan,
            "time-since-last-rebalance-ms": int((time.monotonic() - self._joined) * 1000),
        }
