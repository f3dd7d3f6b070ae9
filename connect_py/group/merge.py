"""Add an assignment to what a member runs."""

from __future__ import annotations

from connect_py.group.protocol import Allocation, GroupAssignment, GroupProtocol


def merge(running: Allocation, received: GroupAssignment, protocol: GroupProtocol) -> Allocation:
    """Return all that a member runs once it has carried out an assignment (`WorkerCoordinator.onJoinComplete`).

    Call it after what is revoked has been stopped. Failed assignments merge as well: nothing that runs stops because of them.

    Returns:
        What is new, then what was kept. Under `eager` what is assigned is everything.
    """
    if protocol is GroupProtocol.EAGER:
        return received.assigned
    revoked = frozenset(received.revoked)
    return Allocation.of([*received.assigned, *(item for item in running if item not in revoked)])
