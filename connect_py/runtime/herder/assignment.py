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
    def rebalances(self) -> Mapping[str, MetricValue]:
        """Figures of ``connect-worker-rebalance-metrics`` but for leader-name and connect-protocol; any thread may ask."""
        ...


class SoleWorker:
    """A group of one. Its generation is 1, as a Java worker's first is."""

    generation = 1
    is_leader = True

    def __init__(self) -> None:
        self._joined = time.monotonic()

    def owns_connector(self, connector: str) -> bool:
        """Always."""
        return True

    def owns_task(self, connector: str, task: int) -> bool:
        """Always."""
        return True

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
