"""Groups as large as they get: equal shares, no more moves than needed, few rounds, little time."""

import gc
import random
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from connect_py.group.assignor import Assignor
from connect_py.group.protocol import (
    Allocation,
    GroupProtocol,
    Item,
    TaskId,
    WorkerState,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from tests.rebalances import Group, OurLeaders, work
from tests.seeds import size

WORKERS, CONNECTORS, TASKS_EACH = size("LARGE_GROUP_WORKERS", 20, 50), size("LARGE_GROUP_CONNECTORS", 200, 1_000), 5

#: A revocation, its hand-over, a delay with its end, and a round of balance after each of them.
ROUNDS = 5


def large_group() -> Group:
    group = Group(OurLeaders(300_000))
    for number in range(WORKERS):
        group.join(f"w{number}")
    group.configured = {f"c{number:04}": TASKS_EACH for number in range(CONNECTORS)}
    settle(group)
    return group


def settle(group: Group) -> None:
    for _ in range(ROUNDS):
        group.rebalance()
        if not group.wants_another_round():
            return
    raise AssertionError(f"{ROUNDS} rounds were not enough")


def owner_of(group: Group) -> dict[Item, str]:
    assert all(len(owners) == 1 for owners in group.owners().values())
    return {item: owners[0] for item, owners in group.owners().items()}


def needed_moves(loads: Sequence[int], total: int, members: int) -> int:
    """Return how many items members have to give up at least, so that shares are equal."""
    minimum, extras = divmod(total, members)
    return sum(max(0, load - minimum) for load in loads) - min(extras, sum(load > minimum for load in loads))


def join(count: int) -> Callable[[Group], None]:
    def event(group: Group) -> None:
        for number in range(count):
            group.join(f"joined{number}")

    return event


def leave(count: int, back: int = 0) -> Callable[[Group], None]:
    def event(group: Group) -> None:
        followers = [member for member in group.members if member != group.leader]
        gone = [group.leave(member).worker for member in random.Random(7).sample(followers, count)]
        group.rebalance()
        for worker in gone[:back]:
            group.join(worker)

    return event


def drain(group: Group) -> None:
    for member in random.Random(8).sample([member for member in group.members if member != group.leader], 5):
        group.members[member].draining, group.members[member].running = True, Allocation()
    group.rebalance()
    for member, state in list(group.members.items()):
        if state.draining:
            group.leave(member)


def lose_leader(group: Group) -> None:
    group.leave(group.leader)


def add_connectors(group: Group) -> None:
    group.configured |= {f"new{number}": 7 for number in range(100)}


def remove_connectors(group: Group) -> None:
    for name in random.Random(9).sample(sorted(group.configured), 100):
        del group.configured[name]


EVENTS = {
    "one joins": join(1),
    "ten join": join(10),
    "one leaves": leave(1),
    "ten leave": leave(10),
    "ten leave and come back": leave(10, back=10),
    "ten leave and three come back": leave(10, back=3),
    "five drain": drain,
    "the leader is lost": lose_leader,
    "connectors are added": add_connectors,
    "connectors are removed": remove_connectors,
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_after_an_event_shares_are_equal_and_nothing_has_moved_without_need(event: Callable[[Group], None]) -> None:
    group = large_group()
    before = owner_of(group)
    event(group)
    settle(group)
    after = owner_of(group)
    everything = work(group.configured)
    assert after.keys() == set(everything)
    assert all(counts[-1] - counts[0] <= 1 for counts in group.counts())

    stayed = {item: owner for item, owner in before.items() if owner in group.members and item in after}
    moved = [item for item, owner in stayed.items() if after[item] != owner]
    loads: Mapping[bool, dict[str, int]] = {kind: dict.fromkeys(group.members, 0) for kind in (False, True)}
    for item, owner in stayed.items():
        loads[isinstance(item, TaskId)][owner] += 1
    for is_task, total in ((False, len(everything.connectors)), (True, len(everything.tasks))):
        needed = needed_moves(list(loads[is_task].values()), total, len(group.members))
        assert sum(isinstance(item, TaskId) is is_task for item in moved) <= needed

    group.rebalance()
    assert not group.wants_another_round()
    assert owner_of(group) == after


@pytest.mark.parametrize(("workers", "connectors", "limit_ms"), [(4, 200, 100), pytest.param(50, 1_000, 500, marks=pytest.mark.long)])
def test_a_round_of_the_leader_takes_little_of_its_cpu(workers: int, connectors: int, limit_ms: int) -> None:
    """From the bytes of the members' states to the bytes of their assignments; the broker's client waits meanwhile."""
    assignor = Assignor()
    configured = work({f"c{number}": TASKS_EACH for number in range(connectors)})
    names = [f"connect-10.0.0.{number}:8083-39f0f67c-aa66-4a54-95f8-f8d6d5e918d7" for number in range(workers)]
    running = dict.fromkeys(names, Allocation())
    slowest = 0.0
    for generation in range(1, 4):
        if generation == 3:
            running["connect-new"] = Allocation()
        joining = {
            member: encode_metadata(WorkerState("http://w/", 7, items), GroupProtocol.SESSIONED) for member, items in running.items()
        }
        gc.collect()  # of what other tests left; a collection of it is not the leader's
        began = time.process_time()
        sent = assignor.assign(
            {member: decode_metadata(data) for member, data in joining.items()},
            configured,
            leader=names[0],
            config_offset=7,
            generation=generation,
            completed_generation=generation - 1,
            protocol=GroupProtocol.SESSIONED,
            now_ms=generation,
        )
        for assignment in sent.values():
            encode_assignment(assignment, GroupProtocol.SESSIONED)
        slowest = max(slowest, time.process_time() - began)
        running = {member: Allocation.of([*running[member], *assignment.assigned]) for member, assignment in sent.items()}
    assert any(assignment.revoked for assignment in sent.values())
    assert slowest * 1000 <= limit_ms
