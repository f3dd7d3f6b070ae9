"""Random histories of 50 workers and 5,000 tasks: after each event shares are equal, few items have moved, and few rounds were needed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from connect_py.group.protocol import Item, TaskId
from tests.rebalances import Group, OurLeaders, work
from tests.seeds import seeds, size

WORKERS, CONNECTORS, TASKS_EACH = 50, 1_000, 5

#: A revocation, its hand-over, a delay with its end, and a round of balance after each of them.
ROUNDS = 5


def settle(group: Group) -> int:
    for rounds in range(1, ROUNDS + 1):
        group.rebalance()
        if not group.wants_another_round():
            return rounds
    raise AssertionError(f"{ROUNDS} rounds were not enough")


def owners(group: Group) -> dict[Item, str]:
    found = group.owners()
    assert all(len(members) == 1 for members in found.values())
    return {item: members[0] for item, members in found.items()}


def strike(group: Group, chance: random.Random, number: int) -> str:
    followers = [member for member in group.members if member != group.leader]
    event = chance.choice(["join", "leave", "leader leaves", "add", "remove", "resize"])
    if event == "join":
        for one in range(chance.randint(1, 5)):
            group.join(f"n{number}-{one}")
    elif event == "leave":
        for member in chance.sample(followers, chance.randint(1, 5)):
            group.leave(member)
    elif event == "leader leaves":
        group.leave(group.leader)
    elif event == "add":
        group.configured |= {f"x{number}-{one}": chance.randint(0, 9) for one in range(chance.randint(1, 50))}
    elif event == "remove":
        for name in chance.sample(sorted(group.configured), chance.randint(1, 50)):
            del group.configured[name]
    else:
        for name in chance.sample(sorted(group.configured), 20):
            group.configured[name] = chance.randint(0, 12)
    return event


def needed(stayed: Mapping[Item, str], group: Group, *, tasks: bool) -> int:
    """Return how many of the items whose owner is still there have to move at least, so that shares are equal."""
    loads = dict.fromkeys(group.members, 0)
    for item, owner in stayed.items():
        if isinstance(item, TaskId) is tasks:
            loads[owner] += 1
    everything = work(group.configured)
    minimum, extras = divmod(len(everything.tasks if tasks else everything.connectors), len(loads))
    return sum(max(0, load - minimum) for load in loads.values()) - min(extras, sum(load > minimum for load in loads.values()))


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(size("LARGE_HISTORIES", 1, 20)))
def test_in_a_history_of_a_large_group_nothing_moves_without_need(seed: int) -> None:
    chance = random.Random(seed)
    group = Group(OurLeaders(chance.choice([0, 300_000])))
    for number in range(WORKERS):
        group.join(f"w{number}")
    group.configured = {f"c{number:04}": TASKS_EACH for number in range(CONNECTORS)}
    settle(group)
    told: list[str] = []
    for number in range(12):
        before = owners(group)
        event = strike(group, chance, number)
        rounds = settle(group)
        after = owners(group)
        assert after.keys() == set(work(group.configured))
        assert all(counts[-1] - counts[0] <= 1 for counts in group.counts())
        stayed = {item: owner for item, owner in before.items() if owner in group.members and item in after}
        moved = [item for item, owner in stayed.items() if after[item] != owner]
        for tasks in (False, True):
            count = sum(isinstance(item, TaskId) is tasks for item in moved)
            assert count <= needed(stayed, group, tasks=tasks), (event, told)
        told.append(f"{event}: {rounds} rounds, {len(moved)} moved")
    print(told)
