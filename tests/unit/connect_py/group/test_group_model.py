"""What holds in every history of a group: work has one owner, all of it has one in the end, in equal shares, and then nothing moves."""

import random

import pytest

from connect_py.group.protocol import Allocation
from tests.rebalances import Fate, Group, OurLeaders, work
from tests.seeds import seeds, size

#: Rounds after the last event until nothing moves any more.
SETTLED_WITHIN = 6


def settle(group: Group) -> int:
    """Compute rounds until members no longer ask for one; return how many there were."""
    for rounds in range(1, SETTLED_WITHIN + 1):
        group.rebalance()
        if not group.wants_another_round():
            return rounds
    raise AssertionError(f"{SETTLED_WITHIN} rounds were not enough")


def assert_one_owner_each(group: Group) -> None:
    assert [item for item, owners in group.owners().items() if len(owners) > 1] == []


def assert_shares_are_equal(group: Group) -> None:
    assert group.owners().keys() == set(work(group.configured))
    for counts in group.counts():
        assert counts[-1] - counts[0] <= 1


@pytest.mark.parametrize("drains", [False, True])
@pytest.mark.parametrize("max_delay_ms", [0, 1_000, 300_000])
@pytest.mark.parametrize("seed", seeds(size("REBALANCE_HISTORIES", 25, 1000)))
def test_every_history_ends_with_everything_owned_in_equal_shares(seed: int, max_delay_ms: int, drains: bool) -> None:
    group = Group(OurLeaders(max_delay_ms))
    fate = Fate(group, seed, drains=drains)
    for _ in range(12):
        fate.strike()
        assert_one_owner_each(group)
    for member, state in list(group.members.items()):
        if state.draining:
            group.leave(member)
    if not group.members:
        group.join("last")
    settle(group)
    assert_one_owner_each(group)
    assert_shares_are_equal(group)
    group.now_ms += random.Random(seed).randrange(1_000_000)
    for sent in group.rebalance().values():
        assert (sent.assigned, sent.revoked, sent.delay_ms) == (Allocation(), Allocation(), 0)
