"""Which threads answer which requests.

Most requests wait in one pool (`gate.WAITING_REQUESTS`). A check of a configuration may wait for a server that says nothing; two hundred of
these must not keep a liveness probe from its answer, which would have the worker killed. So `/health` and `/metrics` have threads of their
own, and checks are few at a time; others queue without a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

#: Checks of configurations at the same time. Each may load a connector and open connections.
CHECKS = 20

#: Answers to probes and scrapes at the same time.
_PROBES = 4


class Room:
    """Some threads; made and used within an event loop.

    Args:
        threads: at the same time.
    """

    def __init__(self, threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Run something that may block, when a thread is free. Raises what it raises."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


def checks() -> Room:
    """For what checks a configuration."""
    return Room(CHECKS)


def probes() -> Room:
    """For what must answer however busy the worker is."""
    return Room(_PROBES)
