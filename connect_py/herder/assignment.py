"""Decide what of the cluster's work is this worker's.

`Assignment` is asked by the herder and by requests. A worker of a group has a `connect_py.group.membership.Membership`; `SoleWorker` is a
worker without a group, which leads and owns everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from connect_py.api.task import MetricValue
from connect_py.group.membership import Share, Work
from connect_py.group.protocol import NO_ERROR, Allocation, GroupAssignment, GroupProtocol, Item, TaskId


class Assignment(Protocol):
    """What this worker has of the group's work. Any thread may ask."""

    @property
    def generation(self) -> int:
        """Generation of the group; written into statuses."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configurations."""
        ...

    @property
    def leader_url(self) -> str | None:
        """Where the leader answers, ending with a slash; None before the first round."""
        ...

    @property
    def protocol(self) -> GroupProtocol:
        """What the group speaks: workers sign their requests to each other under `sessioned` only."""
        ...

    @property
    def lease_seconds(self) -> float | None:
        """How long what runs here may run on while the group cannot be shown that this worker lives; None for ever."""
        ...

    def owns_connector(self, connector: str) -> bool: ...
    def owns_task(self, connector: str, task: int) -> bool: ...
    def owner_url(self, item: Item) -> str | None:
        """Return where the worker answers that runs a connector or task; known to the leader, and between rounds only."""
        ...

    def await_settled(self, seconds: float) -> bool:
        """Wait until no round is due or under way; returns whether that is so."""
        ...

    def await_leader(self, seconds: float) -> bool:
        """Wait until this worker knows who leads; returns whether it does."""
        ...

    def lease_until(self) -> float:
        """Return until when what runs here may run, by `connect_py.task.lease.now`."""
        ...

    def rejoin(self) -> None:
        """The configuration calls for another division of the work."""
        ...

    def hold(self) -> None:
        """Take part in no round until `release`: something must stop first."""
        ...

    def release(self) -> None:
        """It has stopped; as `rejoin`."""
        ...

    def rebalances(self) -> Mapping[str, MetricValue]:
        """Return figures of ``connect-worker-rebalance-metrics``; none for a worker without a group."""
        ...

    def coordination(self) -> Mapping[str, MetricValue]:
        """Return figures of ``connect-coordinator-metrics``; none for a worker without a group."""
        ...

    def traffic(self) -> Mapping[str, Mapping[str, MetricValue]]:
        """Return figures of the group's client, as `connect_py.api.group.GroupClient.traffic`; none for a worker without a group."""
        ...

    def start(self, work: Work) -> None:
        """The worker starts, and reads its stores."""
        ...

    def allow_joining(self) -> None:
        """The stores have been read."""
        ...

    def begin_end(self) -> None:
        """The worker ends its tasks."""
        ...

    def end(self) -> None:
        """They have ended."""
        ...


class SoleWorker:
    """A worker without a group. Its generation is 1, as a Java worker's first is."""

    generation = 1
    is_leader = True
    leader_url = None
    protocol = GroupProtocol.SESSIONED
    lease_seconds = None

    def __init__(self) -> None:
        self._work: Work | None = None
        self._has_begun = False

    def owns_connector(self, connector: str) -> bool:
        """Everything is this worker's."""
        return True

    def owns_task(self, connector: str, task: int) -> bool:
        """Everything is this worker's."""
        return True

    def owner_url(self, item: Item) -> str | None:
        """There is no other worker."""
        return None

    def await_settled(self, seconds: float) -> bool:
        """There are no rounds."""
        return True

    def await_leader(self, seconds: float) -> bool:
        """This worker leads."""
        return True

    def lease_until(self) -> float:
        """Nobody else would run what runs here."""
        return math.inf

    def rejoin(self) -> None:
        """Run what is configured."""
        if self._work is None or not self._has_begun:
            return
        snapshot = self._work.snapshot()
        work = Allocation.of([*snapshot.connectors, *(TaskId(name, task) for name in snapshot.connectors for task in snapshot.tasks(name))])
        self._work.carry_out(
            Share(self.protocol, self.generation, config_offset=snapshot.offset, work=work),
            GroupAssignment(NO_ERROR, "", "", snapshot.offset, work),
        )

    def hold(self) -> None:
        """There are no rounds."""

    def release(self) -> None:
        """What had to stop has stopped."""
        self.rejoin()

    def rebalances(self) -> Mapping[str, MetricValue]:
        """None: there are no rounds."""
        return {}

    def coordination(self) -> Mapping[str, MetricValue]:
        """None: there is no coordinator."""
        return {}

    def traffic(self) -> Mapping[str, Mapping[str, MetricValue]]:
        """None: there is no client."""
        return {}

    def start(self, work: Work) -> None:
        """The worker starts."""
        self._work = work

    def allow_joining(self) -> None:
        """Run what is configured."""
        self._has_begun = True
        self.rejoin()

    def begin_end(self) -> None:
        """There is nobody to tell."""

    def end(self) -> None:
        """There is nobody to tell."""
