"""Random histories of a group of workers, without a broker: who joins and leaves, what is configured, whose assignment is lost.

The leader is an argument: ours (`connect_py.group.assignor`), or Java's (`tests/parity/record_rebalances.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from connect_py.group.assignor import Assignor
from connect_py.group.merge import merge
from connect_py.group.protocol import Allocation, GroupAssignment, GroupProtocol, Item, TaskId, WorkerDetails, WorkerState


def work(configured: Mapping[str, int]) -> Allocation:
    """All connectors with their tasks, by their number."""
    return Allocation(tuple(configured), tuple(TaskId(name, task) for name, count in configured.items() for task in range(count)))


@dataclass(frozen=True, slots=True)
class Request:
    """What a leader is asked in a round."""

    worker: str
    leader: str
    members: Mapping[str, WorkerState]
    configured: Mapping[str, int]
    generation: int
    completed: int
    now_ms: int


class Leaders(Protocol):
    """Every worker has an assignor of its own, for its whole life."""

    def __call__(self, request: Request) -> Mapping[str, GroupAssignment]: ...


class OurLeaders:
    """Workers of ours."""

    def __init__(self, max_delay_ms: int) -> None:
        self.max_delay_ms = max_delay_ms
        self.assignors: dict[str, Assignor] = {}

    def __call__(self, request: Request) -> Mapping[str, GroupAssignment]:
        return self.assignors.setdefault(request.worker, Assignor(self.max_delay_ms)).assign(
            request.members,
            work(request.configured),
            leader=request.leader,
            config_offset=0,
            generation=request.generation,
            completed_generation=request.completed,
            protocol=GroupProtocol.SESSIONED,
            now_ms=request.now_ms,
        )


@dataclass(slots=True)
class Member:
    """A worker's membership.

    Attributes:
        worker: its name, which lasts longer than its member id.
        running: everything that it runs.
        completed: generation of the last assignment that reached it.
        draining: it ends.
    """

    worker: str
    running: Allocation = field(default_factory=Allocation)
    completed: int = -1
    draining: bool = False


class Group:
    """What members do between the rounds that a leader computes.

    Args:
        leaders: compute the rounds.
    """

    def __init__(self, leaders: Leaders) -> None:
        self.leaders = leaders
        self.members: dict[str, Member] = {}
        self.configured: dict[str, int] = {}
        self.leader = ""
        self.generation = 0
        self.now_ms = 1_000_000
        self.sent: Mapping[str, GroupAssignment] = {}
        self._joined = 0

    def join(self, worker: str, claims: Allocation | None = None) -> str:
        """Let a worker join, and say that it runs what it claims; return its member id."""
        self._joined += 1
        member = f"{worker}-{self._joined:04}"
        self.members[member] = Member(worker, claims or Allocation())
        return member

    def leave(self, member: str) -> Member:
        return self.members.pop(member)

    def rebalance(self, unreached: Sequence[str] = ()) -> Mapping[str, GroupAssignment]:
        """Compute a round. Members that it does not reach stay as they are.

        Nothing may be assigned that still runs somewhere: members carry a round out in any order.
        """
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.generation += 1
        leader = self.members[self.leader]
        states = {
            member: WorkerState(f"http://{state.worker}/", 0, state.running, details=WorkerDetails(draining=state.draining))
            for member, state in self.members.items()
        }
        self.sent = self.leaders(
            Request(leader.worker, self.leader, states, dict(self.configured), self.generation, leader.completed, self.now_ms)
        )
        running = self.owners().keys()
        assert [item for sent in self.sent.values() for item in sent.assigned if item in running] == []
        for member, state in self.members.items():
            if member not in unreached:
                state.running = merge(state.running, self.sent[member], GroupProtocol.SESSIONED)
                state.completed = self.generation
        return self.sent

    def wants_another_round(self) -> bool:
        """Return whether members join again by themselves; set the clock to the time when they do."""
        if any(sent.revoked for sent in self.sent.values()):
            return True
        delay_ms = max(sent.delay_ms for sent in self.sent.values())
        self.now_ms += delay_ms + 5 if delay_ms else 0
        return delay_ms > 0

    def owners(self) -> dict[Item, list[str]]:
        owners: dict[Item, list[str]] = {}
        for member, state in self.members.items():
            for item in state.running:
                owners.setdefault(item, []).append(member)
        return owners

    def counts(self) -> tuple[list[int], list[int]]:
        """Return how many connectors and how many tasks each member runs, without those that drain."""
        staying = [state.running for state in self.members.values() if not state.draining]
        return sorted(len(running.connectors) for running in staying), sorted(len(running.tasks) for running in staying)


class Fate:
    """Lets things happen to a group.

    Args:
        seed: of what happens.
        zombies: whether members come back that claim what they ran before they were thrown out.
        returns: whether workers come back under their old names.
        drains: whether workers that leave say so first.
    """

    def __init__(self, group: Group, seed: int, *, zombies: bool = False, returns: bool = True, drains: bool = False) -> None:
        self._group, self._chance = group, random.Random(seed)
        self._zombies, self._returns, self._drains = zombies, returns, drains
        self._gone: list[Member] = []
        self._workers = self._connectors = 0
        for _ in range(self._chance.randint(1, 4)):
            self._join()
        for _ in range(self._chance.randint(0, 4)):
            self._configure()

    def strike(self) -> None:
        """Something happens, and a round follows."""
        group, chance = self._group, self._chance
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            chance.choices([self._join, self._leave, self._configure, self._unconfigure, self._wait], weights=[3, 3, 2, 1, 3])[0]()
        unreached: list[str] = []
        if chance.random() < 0.15:
            unreached = chance.sample(sorted(group.members), chance.randint(1, len(group.members)))
        group.rebalance(unreached)
        if chance.random() < 0.6:
            group.wants_another_round()

    def _join(self) -> None:
        group, chance = self._group, self._chance
        if len(group.members) == 6:
            return
        old = self._gone.pop(chance.randrange(len(self._gone))) if self._gone and chance.random() < 0.5 else None
        if old is not None and (self._returns or self._zombies):
            worker = old.worker if self._returns else self._new_worker()
            group.join(worker, old.running if self._zombies and chance.random() < 0.5 else None)
        else:
            group.join(self._new_worker())

    def _new_worker(self) -> str:
        self._workers += 1
        return f"w{self._workers * 7919 % 9973}"

    def _leave(self) -> None:
        group, chance = self._group, self._chance
        if len(group.members) < 2:
            return
        member = chance.choice(sorted(group.members))
        if member == group.leader and chance.random() < 0.7:  # whose memory is what there is to look at
            return
        if self._drains and chance.random() < 0.5 and not group.members[member].draining:
            group.members[member] = replace(group.members[member], draining=True, running=Allocation())
        else:
            self._gone.append(replace(group.leave(member), draining=False))

    def _configure(self) -> None:
        group, chance = self._group, self._chance
        if group.configured and chance.random() < 0.4:
            group.configured[chance.choice(sorted(group.configured))] = chance.randint(0, 5)
        elif len(group.configured) < 8:
            self._connectors += 1
            group.configured[f"c{self._connectors * 37 % 101}"] = chance.randint(0, 5)

    def _unconfigure(self) -> None:
        if self._group.configured:
            del self._group.configured[self._chance.choice(sorted(self._group.configured))]

    def _wait(self) -> None:
        self._group.now_ms += self._chance.choice([3, 60, 700, 2_000, 9_000, 70_000, 400_000])
