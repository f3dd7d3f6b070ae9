"""What the membership of a Connect group asks of a Kafka client (`WorkerCoordinator.java`, `AbstractCoordinator.java`).

The client speaks the broker's classic group protocol with the protocol type `connect`, and knows nothing of what the bytes mean that the
members exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Joined:
    """What a member gets from a round of the group.

    Attributes:
        generation: the round's number.
        member_id: of this member, made by the broker.
        protocol: which of the offered protocols the group speaks.
        assignment: from the leader.
        leader: the member that leads, for messages.
    """

    generation: int
    member_id: str
    protocol: str
    assignment: bytes
    leader: str = ""


class GroupHandler(Protocol):
    """What a client asks during a round. Called on the client's own thread, which must not be held up: it sends the heartbeats."""

    def stirred(self) -> None:
        """`GroupClient.needs_join` may have become true; called on any thread."""
        ...

    def offers(self) -> Sequence[tuple[str, bytes]]:
        """Return the protocols that this member speaks, best first, each with what the leader must know of it."""
        ...

    def assign(self, leader: str, generation: int, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Divide the work as the group's leader.

        Args:
            leader: this member's id.
            members: what each member offered, by id.

        Returns:
            An assignment for every member.
        """
        ...


class GroupClient(Protocol):
    """One member of one group. Used by one thread but for `rejoin`, `needs_join` and `heard`."""

    def connect(self, handler: GroupHandler, seconds: float) -> None:
        """Find the brokers.

        Raises:
            ConfigError: they refuse the credentials, or a client property cannot be used.
            RetriableError: none answers within `seconds`; may be called again.
        """
        ...

    @property
    def needs_join(self) -> bool:
        """Whether there is a round to take part in: the first one, one that was asked for, or one that others began."""
        ...

    @property
    def heard(self) -> float:
        """When the last heartbeat was sent that the group's coordinator has answered, by the clock that the client was given; -inf while
        this is no member."""
        ...

    def figures(self) -> Mapping[str, float]:
        """Return what rounds and heartbeats cost, by the names of ``connect-coordinator-metrics``; any thread may ask."""
        ...

    def traffic(self) -> Mapping[str, Mapping[str, float]]:
        """Return what goes over the connections: by the names of ``connect-metrics`` for the key "", and by those of
        ``connect-node-metrics`` for each node; any thread may ask."""
        ...

    def rejoin(self) -> None:
        """Have a round of the group; any thread may ask."""
        ...

    def serve(self) -> None:
        """Show that the member's thread lives; a member that does not for ``rebalance.timeout.ms`` leaves the group by itself."""
        ...

    def join(self, seconds: float) -> Joined | None:
        """Take part in a round.

        Returns:
            None when it is not over within `seconds`; call it again.

        Raises:
            ConfigError: the broker refuses this member for good, such as for want of a right.
            RetriableError: the broker cannot have it just now.
        """
        ...

    def dismiss(self, is_dead: Callable[[str, bytes], bool], seconds: float) -> Sequence[str]:
        """Have members leave whose processes are known to be dead, so that nobody waits for the end of their sessions.

        Args:
            is_dead: given a member's client id and what it offered.

        Returns:
            Ids of those that left.

        Raises:
            RetriableError: the coordinator does not answer.
        """
        ...

    def join_twice_and_leave(self, reason: str, seconds: float) -> None:
        """Take part in a round as two members with the same offers, and leave as both when all members have joined it: most likely before
        its leader has sent what it decided, so that the round fails and the next one follows at once. Nothing but `leave` and `close` may
        be called afterwards.

        Raises:
            RetriableError: not all members have joined within `seconds`.
        """
        ...

    def leave(self, reason: str, seconds: float) -> None:
        """Leave the group; the next `join` is a new member's. A coordinator that does not answer is not waited for any longer."""
        ...

    def close(self) -> None:
        """Let the connections go."""
        ...
