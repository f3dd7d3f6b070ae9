"""A group's coordinator, and the clients by which workers are its members (`connect_py.api.group`): Kafka's classic protocol, a step at a
time. A round is over when all members have joined, or when the slow ones have been left out; the leader divides the work; the others get
their part when the leader has sent it. Heartbeats and their answers may be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from connect_py.api.group import GroupHandler, Joined
from connect_py.errors import RetriableError
from tests.sim.chance import Chance
from tests.sim.fibers import Fibers, FiberThreads, Owner

SESSION_SECONDS, HEARTBEAT_SECONDS, REBALANCE_SECONDS = 6.0, 2.0, 20.0


@dataclass(eq=False)
class Member:
    """What the coordinator knows of a member."""

    id: str
    client_id: str
    heard: float
    offers: Mapping[str, bytes] = field(default_factory=dict)
    has_joined: bool = False


class Coordinator:
    """The broker's part.

    Attributes:
        members: by id.
        generation: of the last round.
        is_silent: it answers nobody.
    """

    def __init__(self, fibers: Fibers) -> None:
        self._fibers = fibers
        self.members: dict[str, Member] = {}
        self.generation = 0
        self.is_silent = False
        self.leader = ""
        self.protocol = ""
        self.is_joining = False
        self.assignments: Mapping[str, bytes] | None = None
        self._began = 0.0
        self._numbers = 0

    def join(self, id_: str, client_id: str, offers: Sequence[tuple[str, bytes]]) -> str:
        """Take a JoinGroup request; returns the member's id."""
        member = self.members.get(id_)
        if member is None:
            self._numbers += 1
            member = Member(f"{client_id}-{self._numbers}", client_id, self._fibers.seconds)
            self.members[member.id] = member
        member.heard = self._fibers.seconds
        member.offers = dict(offers)
        self._begin_round()
        member.has_joined = True
        self._complete()
        return member.id

    def sync(self, id_: str, generation: int, assignments: Mapping[str, bytes]) -> None:
        """Take the leader's division of the work."""
        if id_ == self.leader and generation == self.generation and not self.is_joining:
            self.assignments = assignments

    def heartbeat(self, id_: str) -> str:
        """Take a heartbeat: ``unknown``, ``rebalance`` or nothing."""
        member = self.members.get(id_)
        if member is None:
            return "unknown"
        member.heard = self._fibers.seconds
        return "rebalance" if self.is_joining and not member.has_joined else ""

    def remove(self, id_: str) -> None:
        """A member leaves, or is thrown out."""
        if self.members.pop(id_, None) is not None:
            self._begin_round()
            self._complete()

    def watch(self) -> None:
        """Throw out who is silent for too long, or late for a round. A member that waits for a round is known by its connection."""
        now = self._fibers.seconds
        for member in list(self.members.values()):
            waits = self.is_joining and member.has_joined
            if not waits and now - member.heard > SESSION_SECONDS:
                self.remove(member.id)
        if self.is_joining and now - self._began > REBALANCE_SECONDS:
            for member in list(self.members.values()):
                if not member.has_joined:
                    del self.members[member.id]
            self._complete()

    def _begin_round(self) -> None:
        if not self.is_joining:
            self.is_joining = True
            self._began = self._fibers.seconds
            self.assignments = None
            for member in self.members.values():
                member.has_joined = False

    def _complete(self) -> None:
        members = self.members.values()
        if not self.is_joining or not all(member.has_joined for member in members):
            return
        self.is_joining = False
        self.generation += 1
        if not self.members:
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        common = set.intersection(*(set(member.offers) for member in members))
        self.protocol = next(name for name in self.members[self.leader].offers if name in common)


class SimGroupClient:
    """One member. `progress` is a step of the client's own thread.

    Attributes:
        is_alone: whether nobody else was in the last round.
    """

    def __init__(
        self, coordinator: Coordinator, fibers: Fibers, threads: FiberThreads, owner: Owner, chance: Chance, client_id: str
    ) -> None:
        self._coordinator, self._fibers, self._threads, self._owner = coordinator, fibers, threads, owner
        self._chance, self._client_id = chance, client_id
        self._handler: GroupHandler | None = None
        self._id = ""
        self._heard = -math.inf
        self._next_heartbeat = 0.0
        self._stage = ""
        self._generation = self._joined_after = 0
        self.is_alone = False
        self._wants = True
        self._result: Joined | None = None

    # -- GroupClient

    def connect(self, handler: GroupHandler, seconds: float) -> None:
        """Find the brokers."""
        if self._coordinator.is_silent:
            self._fibers.wait(lambda: not self._coordinator.is_silent, seconds)
            raise RetriableError("No Kafka broker answers.")
        self._handler = handler

    @property
    def needs_join(self) -> bool:
        """Whether there is a round to take part in."""
        return self._wants

    @property
    def heard(self) -> float:
        """When the last answered heartbeat was sent."""
        return self._heard

    def figures(self) -> Mapping[str, float]:
        """Nothing is counted."""
        return {}

    def traffic(self) -> Mapping[str, Mapping[str, float]]:
        """Nothing is counted."""
        return {}

    def rejoin(self) -> None:
        """Have a round."""
        self._wants = True
        if self._stage in ("", "done"):
            self._stage = ""
        if self._handler is not None:
            self._handler.stirred()

    def serve(self) -> None:
        """The member's thread lives."""

    def join(self, seconds: float) -> Joined | None:
        """Take part in a round."""
        if self._stage in ("", "done"):
            self._stage = "wants"
            self._result = None
            self.begins()
        self._fibers.wait(lambda: self._stage == "done", seconds)
        if self._stage != "done":
            return None
        result, self._result = self._result, None
        self._stage = ""
        self._wants = False
        return result

    def dismiss(self, is_dead: Callable[[str, bytes], bool], seconds: float) -> Sequence[str]:
        """Have members leave whose processes are dead."""
        if self._coordinator.is_silent:
            raise RetriableError("The coordinator does not answer.")
        members = list(self._coordinator.members.values())
        dead = [member.id for member in members if is_dead(member.client_id, next(iter(member.offers.values()), b""))]
        for id_ in dead:
            self._coordinator.remove(id_)
        return dead

    def join_twice_and_leave(self, reason: str, seconds: float) -> None:
        """No leader is a Java worker here."""
        raise RetriableError("not simulated")

    def leave(self, reason: str, seconds: float) -> None:
        """Leave the group."""
        if not self._coordinator.is_silent:
            self._coordinator.remove(self._id)
        self._forget()

    def close(self) -> None:
        """Let the connections go."""
        self._handler = None

    # -- the client's thread

    def progress(self) -> None:
        """Take one step."""
        if self._handler is None or not self._owner.is_alive or self._owner.is_frozen or self._coordinator.is_silent:
            return
        if self._fibers.seconds >= self._next_heartbeat and self._id:
            self._beat()
        stage = self._stage
        if stage == "wants":
            self._joined_after = self._coordinator.generation
            self._id = self._coordinator.join(self._id, self._client_id, self._handler.offers())
            self._stage = "joining"
        elif stage == "joining" and self._id not in self._coordinator.members:
            self._forget()
        elif stage == "joining" and self._coordinator.is_joining and self._coordinator.generation > self._joined_after:
            self._stage = "wants"  # that round is over, and the next one has begun: the coordinator takes no division of the work
        elif stage == "joining" and not self._coordinator.is_joining:
            self._generation = self._coordinator.generation
            if self._coordinator.leader == self._id:
                members = {member.id: member.offers[self._coordinator.protocol] for member in self._coordinator.members.values()}
                found = self._handler.assign(self._id, self._generation, self._coordinator.protocol, members)
                self._coordinator.sync(self._id, self._generation, found)
            self._stage = "syncing"
        elif stage == "syncing":
            self._sync()

    def _sync(self) -> None:
        coordinator = self._coordinator
        if self._id not in coordinator.members:
            self._forget()
        elif coordinator.is_joining or coordinator.generation != self._generation:
            self._stage = "wants"
        elif coordinator.assignments is not None:
            assert self._handler is not None
            sent = self._fibers.seconds
            coordinator.heartbeat(self._id)
            self._heard = sent
            self.is_alone = len(coordinator.members) == 1
            self._result = Joined(self._generation, self._id, coordinator.protocol, coordinator.assignments.get(self._id, b""))
            self._stage = "done"
            self._handler.stirred()

    def _beat(self) -> None:
        self._next_heartbeat = self._fibers.seconds + HEARTBEAT_SECONDS
        if self.loses():
            return
        sent, answer = self._fibers.seconds, self._coordinator.heartbeat(self._id)
        if self.loses():
            return
        assert self._handler is not None
        if answer == "unknown":
            self._forget()
            self._handler.stirred()
            return
        self._heard = sent
        if answer and self._stage == "":
            self._wants = True
            self._handler.stirred()

    def _forget(self) -> None:
        self._id, self._heard, self._stage, self._wants = "", -math.inf, "", True

    #: Called when the member asks for a round.
    begins: Callable[[], None] = staticmethod(lambda: None)

    #: Whether the next request or answer is lost.
    loses: Callable[[], bool] = staticmethod(lambda: False)
