"""What of the cluster's work is this worker's. The seam where group membership comes in (KIP-415): a later implementation follows the
Connect group; `SoleWorker` is a group of one, which leads and owns everything."""

from __future__ import annotations

from typing import Protocol


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


class SoleWorker:
    """A group of one. Its generation is 1, as a Java worker's first is."""

    generation = 1
    is_leader = True

    def owns_connector(self, connector: str) -> bool:
        """Always."""
        return True

    def owns_task(self, connector: str, task: int) -> bool:
        """Always."""
        return True
