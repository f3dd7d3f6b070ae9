"""Share the work out so that what stays is not touched (`IncrementalCooperativeAssignor.java`; KIP-415).

A round takes what the members run and what is configured, and says what each starts and stops. Work moves in two rounds: the first takes
it from its member, the second, which that member asks for when it has stopped, gives it to another. Work that vanished with its member
waits for ``scheduled.rebalance.max.delay.ms``, in case the member comes back.

The counts are always those of a Java leader, and so are the owners where it does not leave them to chance: a Java worker that leads after
ours finds a balanced group. Three things are better:

- what runs without being configured is revoked, also when the leader has no memory of it; Java's runs on until the next round;
- a worker that says that it ends (`WorkerDetails.draining`) gets nothing more, and its work is handed out in the same round;
- a worker that joins under the address of one that is missing gets that one's work at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from connect_py.group.balance import deal, hand_out, surplus
from connect_py.group.protocol import Allocation, Item, TaskId, WorkerState

#: Rounds in a row that revoke for balance are put off by 40 ms, 1.6 s, 64 s and so on (KAFKA-12495).
_BACKOFF_FACTOR_MS = 40


@dataclass(slots=True)
class Memory:
    """What a leader remembers from round to round. A new leader knows nothing.

    Attributes:
        previous: what the group should be running, including what is lost.
        revoked: what the last round revoked.
        generation: of the last round.
        members: of the last round, with their addresses; without those that drained.
        owners: who last was to run what: member id and address. Lost work stays in it.
        candidates: members without work that were seen during a delay; they get the lost work at its end.
        scheduled_ms: when the delay ends; None when there is none.
        delay_ms: what the last round sent to the members.
        has_revoked: whether the last round revoked for balance.
        successive_revocations: number of rounds in a row that wanted to.
    """

    previous: frozenset[Item] = frozenset()
    revoked: frozenset[Item] = frozenset()
    generation: int = -1
    members: Mapping[str, str] = field(default_factory=dict)
    owners: dict[Item, tuple[str, str]] = field(default_factory=dict)
    candidates: list[str] = field(default_factory=list)
    scheduled_ms: int | None = None
    delay_ms: int = 0
    has_revoked: bool = False
    successive_revocations: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """What a round decided.

    Attributes:
        assigned: what each member starts.
        revoked: what each member stops.
        owned: what each member runs when it has done so.
        lost: work that vanished with its member, with the address of that member.
        waiting: the part of it that waits for its member, until `Memory.scheduled_ms`.
        created: work that nobody had.
        deleted: work that is no longer configured.
        duplicated: work that more than one member ran.
        joined: addresses of members that the last round did not have; empty for a leader's first round.
        left: addresses of members that the last round had; empty for a leader's first round.
        draining: addresses of members that end.
        delay_ms: after which all members join again; 0 for never.
    """

    assigned: Mapping[str, Allocation]
    revoked: Mapping[str, Allocation]
    owned: Mapping[str, Allocation]
    lost: Mapping[Item, str]
    waiting: frozenset[Item]
    created: frozenset[Item]
    deleted: frozenset[Item]
    duplicated: frozenset[Item]
    joined: Sequence[str]
    left: Sequence[str]
    draining: Sequence[str]
    delay_ms: int

    def summary(self) -> str:
        """Say in one line who came and went, what moves, and what waits for whom."""
        parts = [
            f"{text} {', '.join(addresses)}"
            for text, addresses in (("joined:", self.joined), ("left:", self.left), ("ending:", self.draining))
            if addresses
        ]
        started = {item for work in self.assigned.values() for item in work}
        stopped = {item for work in self.revoked.values() for item in work}
        for text, items in (
            ("started:", started),
            ("stopped:", stopped),
            ("of it not configured:", stopped & self.deleted),
            ("of it run twice:", stopped & self.duplicated),
        ):
            if items:
                parts.append(f"{text} {_count(Allocation.of(items))}")
        if self.waiting:
            owners = sorted({self.lost[item] or "an unknown worker" for item in self.waiting})
            parts.append(f"{_count(Allocation.of(self.waiting))} wait up to {self.delay_ms / 1000:g} s for {', '.join(owners)}")
        elif self.delay_ms:
            parts.append(f"balance waits for {self.delay_ms / 1000:g} s")
        return f"{len(self.assigned)} workers; {'; '.join(parts) or 'nothing moves'}"


@dataclass(frozen=True, slots=True)
class _Loads:
    """What each member runs next, in lists that grow and shrink during a round."""

    connectors: dict[str, list[str]]
    tasks: dict[str, list[TaskId]]

    @classmethod
    def of(cls, running: Mapping[str, Allocation], taken: Set[Item]) -> _Loads:
        return cls(
            {member: [item for item in work.connectors if item not in taken] for member, work in running.items()},
            {member: [item for item in work.tasks if item not in taken] for member, work in running.items()},
        )

    def idle(self) -> list[str]:
        return [member for member, items in self.connectors.items() if not items and not self.tasks[member]]

    def balance(self, configured: Allocation) -> dict[str, Allocation]:
        """Return what members have to give up, nothing while no one has anything."""
        if not configured or len(self.idle()) == len(self.connectors):
            return {}
        connectors = surplus(self.connectors, len(configured.connectors))
        tasks = surplus(self.tasks, len(configured.tasks))
        return {
            member: Allocation(tuple(connectors.get(member, ())), tuple(tasks.get(member, ())))
            for member in self.connectors
            if member in connectors or member in tasks
        }

    def give_up(self, excess: Mapping[str, Allocation]) -> None:
        """What is given up is at the front of the lists."""
        for member, work in excess.items():
            del self.connectors[member][: len(work.connectors)]
            del self.tasks[member][: len(work.tasks)]

    def hand_out(self, work: Allocation) -> None:
        hand_out(self.connectors, work.connectors)
        hand_out(self.tasks, work.tasks)

    def deal(self, receivers: list[str], work: Allocation) -> None:
        deal(self.connectors, receivers, work.connectors)
        deal(self.tasks, receivers, work.tasks)

    def of_member(self, member: str) -> Allocation:
        return Allocation(tuple(self.connectors.get(member, ())), tuple(self.tasks.get(member, ())))


class CooperativeRounds:
    """Computes the rounds of one leader.

    Args:
        max_delay_ms: ``scheduled.rebalance.max.delay.ms``; with 0 lost work moves at once.
    """

    def __init__(self, max_delay_ms: int) -> None:
        self._max_delay_ms = max_delay_ms
        self.memory = Memory()

    def compute(
        self, members: Mapping[str, WorkerState], configured: Allocation, *, generation: int, completed_generation: int, now_ms: int
    ) -> Round:
        """Compute a round; see `Assignor.assign` for the arguments."""
        memory = self.memory
        running = {member: state.allocation for member, state in members.items()}
        counts = Counter(item for work in running.values() for item in work)
        active, wanted = frozenset(counts), frozenset(configured)

        before: Mapping[str, str] = memory.members
        if memory.generation != completed_generation:  # the last round was not delivered
            memory.previous, before = frozenset(), {}
        if memory.revoked & active:  # it was delivered, and not carried out by all
            memory.previous = active
        deleted = (memory.previous | active) - wanted
        lost = memory.previous - active - deleted
        created = wanted - memory.previous - active
        duplicated = frozenset(item for item, count in counts.items() if count > 1)

        # A duplicate is revoked from all who run it: which of them is the right one is not known for sure.
        draining = {member for member, state in members.items() if state.details is not None and state.details.draining}
        taken = deleted | duplicated
        revoked = {member: [item for item in work if member in draining or item in taken] for member, work in running.items()}
        staying = {member: work for member, work in running.items() if member not in draining}
        loads = _Loads.of(staying, taken)

        returned = self._give_back(lost, members, loads)
        handed_over = {item for item in lost if item in memory.owners and memory.owners[item][0] in draining}
        absent = lost - returned - handed_over
        reassigned = self._handle_lost(absent, members, loads, now_ms)
        if memory.delay_ms:
            memory.has_revoked = False
        elif staying:
            for member, work in self._balance(loads, configured, now_ms).items():
                revoked[member] = [*revoked[member], *work]
        if staying:
            loads.hand_out(_sorted(created, reassigned | handed_over))

        addresses = {item: memory.owners[item][1] if item in memory.owners else "" for item in lost}
        owned = {member: loads.of_member(member) for member in members}
        self._remember(members, owned, draining, revoked=revoked, lost=lost, generation=generation)
        return Round(
            assigned={member: _without(owned[member], frozenset(running[member]) - deleted) for member in members},
            revoked={member: Allocation.of(revoked.get(member, ())) for member in members},
            owned=owned,
            lost=addresses,
            waiting=lost.difference(*owned.values()),
            created=created,
            deleted=deleted,
            duplicated=duplicated,
            joined=[state.url for member, state in members.items() if before and member not in before and member not in draining],
            left=[url for member, url in before.items() if member not in members],
            draining=[members[member].url for member in draining],
            delay_ms=memory.delay_ms,
        )

    def _give_back(self, lost: frozenset[Item], members: Mapping[str, WorkerState], loads: _Loads) -> frozenset[Item]:
        """Give lost work to the one worker that has joined under the address of its missing owner; return that work."""
        by_address = {url: member for url, member in _by_address(members).items() if member in loads.connectors}
        returned: dict[str, list[Item]] = {}
        for item in lost:
            owner, url = self.memory.owners.get(item, ("", ""))
            if owner not in members and url in by_address:
                returned.setdefault(by_address[url], []).append(item)
        for member, items in returned.items():
            loads.deal([member], _sorted(items))
        return frozenset(item for items in returned.values() for item in items)

    def _handle_lost(self, lost: frozenset[Item], members: Mapping[str, WorkerState], loads: _Loads, now_ms: int) -> frozenset[Item]:
        """Return the lost work that is handed out as if it were new."""
        memory, back = self.memory, _by_address(members)
        if not lost and not memory.has_revoked:
            self._end_delay()
            return frozenset()
        if memory.scheduled_ms is None and all(member in members or url in back for member, url in memory.members.items()):
            return lost  # everyone is here: someone missed an assignment (KAFKA-9848)
        if self._max_delay_ms == 0:
            return lost  # KAFKA-15693
        if memory.scheduled_ms is not None and now_ms >= memory.scheduled_ms:
            present = [member for member in memory.candidates if member in loads.connectors]
            loads.deal(present, _sorted(lost)) if present else None
            self._end_delay()
            memory.has_revoked = False
            return frozenset() if present else lost
        memory.candidates += [member for member in loads.idle() if member not in memory.candidates]
        memory.delay_ms = self._max_delay_ms
        if memory.scheduled_ms is not None:
            memory.delay_ms = min(memory.scheduled_ms - now_ms, self._max_delay_ms)
        memory.scheduled_ms = now_ms + memory.delay_ms
        return frozenset()

    def _end_delay(self) -> None:
        self.memory.candidates = []
        self.memory.scheduled_ms = None
        self.memory.delay_ms = 0

    def _balance(self, loads: _Loads, configured: Allocation, now_ms: int) -> Mapping[str, Allocation]:
        """Take from the loads what members have too much, and return it; or put that off, when the last round did so too."""
        memory = self.memory
        excess = loads.balance(configured)
        if not excess:
            if memory.has_revoked:
                memory.has_revoked, memory.successive_revocations = False, 0
            return {}
        if memory.has_revoked:
            memory.successive_revocations += 1
            memory.delay_ms = min(_BACKOFF_FACTOR_MS**memory.successive_revocations, self._max_delay_ms)
            if memory.delay_ms:
                memory.scheduled_ms = now_ms + memory.delay_ms
                return {}
        loads.give_up(excess)
        memory.has_revoked = True
        return excess

    def _remember(
        self,
        members: Mapping[str, WorkerState],
        owned: Mapping[str, Allocation],
        draining: Set[str],
        *,
        revoked: Mapping[str, Iterable[Item]],
        lost: frozenset[Item],
        generation: int,
    ) -> None:
        memory = self.memory
        memory.revoked = frozenset(item for work in revoked.values() for item in work)
        owners = {item: (member, members[member].url) for member, work in owned.items() for item in work}
        memory.previous = frozenset(owners) - memory.revoked | lost  # lost work stays until it is seen running
        memory.owners = {item: memory.owners[item] for item in lost if item in memory.owners} | owners
        memory.generation = generation
        memory.members = {member: state.url for member, state in members.items() if member not in draining}


def _by_address(members: Mapping[str, WorkerState]) -> dict[str, str]:
    """Return members by address, without addresses that several have: such workers were set up wrongly, and it says nothing."""
    counts = Counter(state.url for state in members.values())
    return {state.url: member for member, state in members.items() if counts[state.url] == 1}


def _sorted(*sets: Iterable[Item]) -> Allocation:
    """Put the items of each set in order; one set's come before the next one's."""
    parts = [Allocation.of(items) for items in sets]
    return Allocation(
        tuple(item for part in parts for item in sorted(part.connectors)), tuple(item for part in parts for item in sorted(part.tasks))
    )


def _count(work: Allocation) -> str:
    counts = (("connector", len(work.connectors)), ("task", len(work.tasks)))
    return " and ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts if count)


def _without(work: Allocation, taken: Set[Item]) -> Allocation:
    return Allocation.of(item for item in work if item not in taken)
