"""Compute, as the leader of a group, what each of its members runs.

Called on the thread that answers the broker, between a JoinGroup answer and the SyncGroup request; owned by that thread. `owner_url` may be
called by any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.group.cooperative import CooperativeRounds, Round
from connect_py.group.eager import deal_everything
from connect_py.group.protocol import CONFIG_MISMATCH, NO_ERROR, Allocation, GroupAssignment, GroupProtocol, Item, WorkerState


class Assignor:
    """The leader's part of a member. A worker keeps it for its whole life; what it remembers counts only while it leads.

    Args:
        max_delay_ms: ``scheduled.rebalance.max.delay.ms``.

    Attributes:
        last_round: what the last cooperative round decided, for logs; None before the first, and after one that failed.
        holds_back: whether the last round gave nothing, so that all members stop what they run: the first round of `eager` after one of
            another protocol. The leader asks for the next.
    """

    def __init__(self, max_delay_ms: int = 300_000) -> None:
        self.rounds = CooperativeRounds(max_delay_ms)
        self.last_round: Round | None = None
        self.holds_back = False
        self._owners: Mapping[Item, str] = {}

    def assign(
        self,
        members: Mapping[str, WorkerState],
        configured: Allocation,
        *,
        leader: str,
        config_offset: int,
        generation: int,
        completed_generation: int,
        protocol: GroupProtocol,
        now_ms: int,
    ) -> dict[str, GroupAssignment]:
        """Compute one round.

        Args:
            members: by member id. Their order says who may keep one connector or task more than others; a Java leader's is by hash.
            configured: what should run. Take it from the snapshot that the leader joined with, or, when that is older than a member's,
                from the newest one.
            leader: member id of this worker.
            config_offset: of that snapshot.
            generation: of this round.
            completed_generation: of the last assignment that this worker received; -1 for none. When it is not that of the last round, what
                the leader remembers is not what the members were told.
            protocol: that the broker chose.
            now_ms: of a clock that is not set back.

        Returns:
            An assignment for every member. When a member has read more of the configuration topic than this worker, they all say
            `CONFIG_MISMATCH`, and this worker has to read it before it joins again.
        """
        newest = max(config_offset, *(state.config_offset for state in members.values()))
        error = NO_ERROR if config_offset >= newest else CONFIG_MISMATCH
        assigned: Mapping[str, Allocation] = {}
        revoked: Mapping[str, Allocation] = {}
        delay_ms = 0
        was_cooperative, self.holds_back = self.last_round is not None, False
        if error:
            self.last_round = None
        elif protocol is GroupProtocol.EAGER:
            self.last_round, self.holds_back = None, was_cooperative
            assigned = {} if self.holds_back else deal_everything(members, configured)
            self._own(members, assigned)
        else:
            self.last_round = found = self.rounds.compute(
                members, configured, generation=generation, completed_generation=completed_generation, now_ms=now_ms
            )
            assigned, revoked, delay_ms = found.assigned, found.revoked, self.rounds.memory.delay_ms
            self._own(members, found.owned)
        nothing = Allocation()
        return {
            member: GroupAssignment(
                error,
                leader,
                members[leader].url,
                newest,
                assigned.get(member, nothing),
                revoked.get(member, nothing),
                delay_ms,
            )
            for member in members
        }

    def owner_url(self, item: Item) -> str | None:
        """Return the address of the worker that was given a connector or task in the last round."""
        return self._owners.get(item)

    def forget_owners(self) -> None:
        """Called when a rebalance begins: until it is over no owner is known."""
        self._owners = {}

    def _own(self, members: Mapping[str, WorkerState], owned: Mapping[str, Allocation]) -> None:
        self._owners = {item: members[member].url for member, work in owned.items() for item in work}
