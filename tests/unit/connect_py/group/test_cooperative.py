"""Each rule of a cooperative round: who gets what, when, and what is taken from whom.

The situations are those of Kafka's `IncrementalCooperativeAssignorTest` and of its issues, by their numbers.
"""

import pytest

from connect_py.group.cooperative import Round
from connect_py.group.protocol import Allocation, GroupAssignment, TaskId
from tests.rebalances import Group, OurLeaders, work

NOTHING = Allocation()


def group_of(*workers: str, max_delay_ms: int = 300_000, **configured: int) -> Group:
    """Workers that have joined an empty group, with connectors and their numbers of tasks."""
    group = Group(OurLeaders(max_delay_ms))
    for worker in workers:
        group.join(worker)
    group.configured = configured
    return group


def settled(*workers: str, max_delay_ms: int = 300_000, **configured: int) -> Group:
    group = group_of(*workers, max_delay_ms=max_delay_ms, **configured)
    group.rebalance()
    assert not group.wants_another_round()
    return group


def member_of(group: Group, worker: str) -> str:
    return next(member for member, state in group.members.items() if state.worker == worker)


def sent_to(group: Group, worker: str) -> GroupAssignment:
    return group.sent[member_of(group, worker)]


def delay_ms(group: Group) -> int:
    (delay,) = {sent.delay_ms for sent in group.sent.values()}
    return delay


def last_round(group: Group) -> Round:
    leaders = group.leaders
    assert isinstance(leaders, OurLeaders)
    found = leaders.assignors[group.members[group.leader].worker].last_round
    assert found is not None
    return found


def is_quiet(group: Group) -> bool:
    """Return whether the last round moved nothing and asked for nothing."""
    return all((sent.assigned, sent.revoked, sent.delay_ms) == (NOTHING, NOTHING, 0) for sent in group.sent.values())


def test_a_worker_that_joins_gets_its_share_in_two_rounds() -> None:
    group = settled("w1", a=4, b=4)
    assert group.counts() == ([2], [8])
    group.join("w2")
    group.rebalance()
    assert sent_to(group, "w2") == GroupAssignment(0, member_of(group, "w1"), "http://w1/", 0)
    assert group.counts() == ([0, 1], [0, 4])
    group.rebalance()
    assert group.counts() == ([1, 1], [4, 4])
    assert sent_to(group, "w1").assigned == NOTHING
    group.rebalance()
    assert is_quiet(group)


def test_what_is_revoked_in_a_round_is_not_handed_out_in_it() -> None:
    """KAFKA-13764: but what is new is, and the shares count it."""
    group = settled("w1", a=4)
    group.join("w2")
    group.configured["b"] = 1
    group.rebalance()
    revoked = sent_to(group, "w1").revoked
    assert revoked.tasks == (TaskId("a", 0),)
    assert all(set(revoked).isdisjoint(sent.assigned) for sent in group.sent.values())
    assert sent_to(group, "w2").assigned == Allocation(("b",), (TaskId("b", 0),))


def test_workers_that_join_after_revocations_wait_longer_each_time() -> None:
    """KAFKA-12495."""
    group = settled("worker1", a=4, b=4, c=4)
    counts = []
    for number in range(2, 7):
        group.join(f"worker{number}")
        group.rebalance()
        counts.append((*group.counts(), delay_ms(group)))
        group.now_ms += delay_ms(group)
    assert counts == [
        ([0, 2], [0, 6], 0),
        ([0, 1, 2], [3, 3, 6], 40),
        ([0, 0, 1, 1], [0, 3, 3, 3], 0),
        ([0, 0, 1, 1, 1], [1, 2, 3, 3, 3], 1_600),
        ([0, 0, 0, 1, 1, 1], [0, 1, 2, 2, 2, 2], 0),
    ]
    group.rebalance()
    assert group.counts() == ([0, 0, 0, 1, 1, 1], [2] * 6)
    assert delay_ms(group) == 0


@pytest.mark.parametrize(("max_delay_ms", "delays"), [(300_000, [40, 1_600, 64_000, 300_000]), (1_000, [40, 1_000, 1_000]), (30, [30, 30])])
def test_revoking_rounds_in_a_row_are_put_off_by_powers_of_forty(max_delay_ms: int, delays: list[int]) -> None:
    group = settled("w0", max_delay_ms=max_delay_ms, **{f"c{number}": 1 for number in range(64)})
    seen = []
    for number in range(1, 2 * len(delays) + 1):
        group.join(f"w{number}")
        group.rebalance()
        if number % 2 == 0:
            seen.append(delay_ms(group))
            assert all(sent.revoked == NOTHING for sent in group.sent.values())
        group.now_ms += delay_ms(group)
    assert seen == delays


def test_with_a_maximum_of_zero_every_round_may_revoke() -> None:
    """KAFKA-12495."""
    group = settled("w1", max_delay_ms=0, a=6, b=6)
    for worker in ("w2", "w3", "w4"):
        group.join(worker)
        group.rebalance()
        assert delay_ms(group) == 0
        assert any(sent.revoked for sent in group.sent.values())
    group.rebalance()
    assert group.counts() == ([0, 0, 1, 1], [3] * 4)


def test_a_round_that_revokes_nothing_ends_the_row() -> None:
    group = settled("w1", a=8)
    for worker in ("w2", "w3"):
        group.join(worker)
        group.rebalance()
        group.rebalance()
        assert delay_ms(group) == 0
        group.rebalance()
        assert is_quiet(group)


def test_work_of_a_follower_that_left_is_kept_for_it_until_the_delay_is_over() -> None:
    group = settled("w1", "w2", a=4, b=4)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    assert delay_ms(group) == 300_000
    assert sent_to(group, "w1").assigned == NOTHING
    group.now_ms += 100_000
    group.rebalance()
    assert delay_ms(group) == 200_000
    group.now_ms += 200_000
    group.rebalance()
    assert group.counts() == ([2], [8])
    assert delay_ms(group) == 0


def test_joins_do_not_begin_a_delay_again_and_nothing_is_balanced_during_it() -> None:
    group = settled("w1", "w2", a=6)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    for passed, worker in enumerate(("w3", "w4"), 1):
        group.now_ms += 50_000
        group.join(worker)
        group.rebalance()
        assert delay_ms(group) == 300_000 - passed * 50_000
        assert all((sent.assigned, sent.revoked) == (NOTHING, NOTHING) for sent in group.sent.values())


def test_new_work_is_handed_out_during_a_delay() -> None:
    group = settled("w1", "w2", a=2)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    group.configured["b"] = 1
    group.rebalance()
    assert sent_to(group, "w1").assigned == Allocation(("b",), (TaskId("b", 0),))
    assert delay_ms(group) == 300_000


def test_a_worker_that_joins_within_the_delay_gets_all_the_lost_work_at_its_end() -> None:
    """It alone, even if others have less."""
    group = settled("w1", "w2", "w3", a=9)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    group.now_ms += 10_000
    group.join("other")
    group.rebalance()
    assert sent_to(group, "other").assigned == NOTHING
    group.now_ms += 290_000
    group.rebalance()
    assert len(sent_to(group, "other").assigned.tasks) == 3
    assert group.counts()[1] == [3, 3, 3]
    group.rebalance()
    assert is_quiet(group)


def test_candidates_share_the_lost_work_in_turn() -> None:
    """KAFKA-10413."""
    group = settled("w1", "w2", a=8)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    group.join("x1")
    group.join("x2")
    group.rebalance()
    group.now_ms += 300_000
    group.rebalance()
    assert [len(sent_to(group, worker).assigned.tasks) for worker in ("x1", "x2")] == [2, 2]


def test_a_candidate_that_has_left_again_is_not_waited_for() -> None:
    group = settled("w1", "w2", a=8)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    group.join("x1")
    group.rebalance()
    group.leave(member_of(group, "x1"))
    group.rebalance()
    assert delay_ms(group) == 300_000
    group.now_ms += 300_000
    group.rebalance()
    assert group.counts() == ([1], [8])


def test_with_a_maximum_of_zero_lost_work_moves_at_once() -> None:
    """KAFKA-15693."""
    group = settled("w1", "w2", "w3", max_delay_ms=0, a=9)
    group.leave(member_of(group, "w2"))
    group.rebalance()
    assert delay_ms(group) == 0
    assert group.counts()[1] == [4, 5]


def test_a_new_leader_hands_the_old_ones_work_out_at_once() -> None:
    """KAFKA-8463."""
    group = settled("w1", "w2", a=4, b=4)
    group.leave(member_of(group, "w1"))
    group.rebalance()
    assert delay_ms(group) == 0
    assert group.counts() == ([2], [8])


def test_a_leader_that_comes_back_and_leads_again_does_not_believe_its_memory() -> None:
    group = settled("w1", "w2", a=4, b=4)
    group.leave(member_of(group, "w1"))
    group.rebalance()
    group.join("w1")
    group.rebalance()
    group.rebalance()
    group.leave(member_of(group, "w2"))
    group.configured["c"] = 1
    group.rebalance()
    assert group.leader == member_of(group, "w1")
    assert delay_ms(group) == 0
    assert group.counts() == ([3], [9])


def test_work_whose_assignment_was_lost_while_all_are_here_is_handed_out_again_at_once() -> None:
    """KAFKA-9848."""
    group = group_of("w1", "w2", a=4, b=4)
    group.rebalance(unreached=[member_of(group, "w2")])
    assert group.counts() == ([0, 1], [0, 4])
    group.rebalance()
    assert delay_ms(group) == 0
    assert group.counts() == ([1, 1], [4, 4])


def test_work_that_was_handed_out_again_is_remembered_until_it_is_seen_running() -> None:
    group = group_of("w1", "w2", a=4)
    for _ in range(3):
        group.rebalance(unreached=[member_of(group, "w2")])
        assert delay_ms(group) == 0
    group.rebalance()
    assert group.counts()[1] == [2, 2]


def test_a_round_that_did_not_reach_the_leader_itself_is_forgotten() -> None:
    """KAFKA-9184: what no one runs is new."""
    group = group_of("w1", "w2", a=4, b=4)
    group.rebalance(unreached=list(group.members))
    assert group.counts() == ([0, 0], [0, 0])
    group.rebalance()
    assert delay_ms(group) == 0
    assert group.counts() == ([1, 1], [4, 4])


def test_a_revocation_that_was_not_carried_out_is_made_again() -> None:
    group = settled("w1", "w2", a=8)
    group.join("w3")
    group.rebalance(unreached=[member_of(group, "w2")])
    assert sent_to(group, "w2").revoked.tasks == (TaskId("a", 1),)
    group.rebalance()
    assert delay_ms(group) == 40
    group.now_ms += 40
    group.rebalance()
    assert sent_to(group, "w2").revoked.tasks == (TaskId("a", 1),)
    group.rebalance()
    assert group.counts()[1] == [2, 3, 3]


def test_what_is_no_longer_configured_is_revoked_and_not_lost() -> None:
    group = settled("w1", "w2", a=4, b=4)
    del group.configured["b"]
    group.rebalance()
    assert delay_ms(group) == 0
    assert group.counts() == ([0, 1], [2, 2])
    assert sum(len(sent.revoked.tasks) for sent in group.sent.values()) == 4


def test_fewer_tasks_of_a_connector_are_revoked_alone() -> None:
    group = settled("w1", a=4)
    group.configured["a"] = 2
    group.rebalance()
    assert sent_to(group, "w1").revoked == Allocation((), (TaskId("a", 2), TaskId("a", 3)))


def test_a_new_leader_stops_what_is_not_configured_though_it_never_knew_it() -> None:
    group = settled("w1", "w2", a=2, b=2)
    group.leave(member_of(group, "w1"))
    del group.configured["b"]
    group.rebalance()
    assert group.owners().keys() == set(work({"a": 2}))


def test_duplicates_are_revoked_from_all_and_handed_out_in_the_next_round() -> None:
    """KAFKA-9841: a worker that was cut off comes back with what it ran."""
    group = settled("w1", "w2", a=4)
    old = group.leave(member_of(group, "w2"))
    group.rebalance()
    group.now_ms += 300_000
    group.rebalance()
    group.join("w2", claims=old.running)
    group.rebalance()
    assert set(sent_to(group, "w1").revoked) >= set(old.running)
    assert sent_to(group, "w2").revoked == old.running
    group.rebalance()
    assert group.owners().keys() == set(work(group.configured))
    assert all(len(owners) == 1 for owners in group.owners().values())


def test_duplicates_that_are_deleted_are_revoked_once() -> None:
    group = settled("w1", "w2", a=2, b=2)
    claims = Allocation(("b",), (TaskId("b", 0), TaskId("b", 1)))
    group.join("w3", claims=claims)
    del group.configured["b"]
    group.rebalance()
    assert set(sent_to(group, "w3").revoked) == set(claims)
    assert all(len(sent.revoked.tasks) == len(set(sent.revoked.tasks)) for sent in group.sent.values())
    assert group.owners().keys() == set(work({"a": 2}))


def test_a_whole_delay_begins_when_an_idle_member_leaves_right_after_a_revoking_round() -> None:
    """Nothing is lost, and what was revoked is handed out all the same; balance alone waits."""
    group = settled("w1", a=4)
    group.join("w2")
    group.rebalance()
    group.leave(member_of(group, "w2"))
    group.rebalance()
    assert delay_ms(group) == 300_000
    assert group.counts() == ([1], [4])


def test_connectors_and_tasks_are_balanced_apart() -> None:
    group = settled("w1", "w2", "w3", a=1, b=1, c=0, d=0)
    assert group.counts() == ([1, 1, 2], [0, 1, 1])


def test_a_worker_that_comes_back_under_its_address_gets_its_work_at_once() -> None:
    group = settled("w1", "w2", "w3", a=9, b=3)
    old = group.leave(member_of(group, "w2"))
    group.rebalance()
    assert delay_ms(group) == 300_000
    group.now_ms += 5_000
    group.join("w2")
    group.rebalance()
    assert set(sent_to(group, "w2").assigned) == set(old.running)
    assert delay_ms(group) == 0
    assert all(sent.revoked == NOTHING for sent in group.sent.values())


def test_a_worker_that_comes_back_before_it_was_missed_gets_its_work_at_once() -> None:
    group = settled("w1", "w2", a=4)
    old = group.leave(member_of(group, "w2"))
    group.join("w2")
    group.rebalance()
    assert set(sent_to(group, "w2").assigned) == set(old.running)
    assert delay_ms(group) == 0


def test_the_work_of_others_that_are_missing_still_waits() -> None:
    group = settled("w1", "w2", "w3", a=9)
    lost = group.leave(member_of(group, "w3"))
    back = group.leave(member_of(group, "w2"))
    group.join("w2")
    group.rebalance()
    assert set(sent_to(group, "w2").assigned) == set(back.running)
    assert delay_ms(group) == 300_000
    found = last_round(group)
    assert found.waiting == set(lost.running)
    assert {found.lost[item] for item in found.waiting} == {"http://w3/"}


def test_an_address_that_two_workers_share_says_nothing() -> None:
    group = settled("w1", "w2", a=4)
    group.leave(member_of(group, "w2"))
    group.join("w2")
    group.join("w2")
    group.rebalance()
    assert delay_ms(group) == 300_000


def test_a_worker_that_drains_hands_its_work_over_in_one_round_without_a_delay() -> None:
    group = settled("w1", "w2", "w3", a=9, b=3)
    drained = group.members[member_of(group, "w2")]
    drained.running, drained.draining = NOTHING, True
    group.rebalance()
    assert delay_ms(group) == 0
    assert sent_to(group, "w2").assigned == NOTHING
    assert all(sent.revoked == NOTHING for sent in group.sent.values())
    assert group.counts() == ([1, 1], [6, 6])
    group.leave(member_of(group, "w2"))
    group.rebalance()
    assert is_quiet(group)


def test_work_that_two_members_of_a_worker_claim_goes_to_the_others_when_both_have_left() -> None:
    """So a worker that ends gets past the delay of a Java leader, which computes the same."""
    group = settled("w1", "w2", "w3", a=9, b=3)
    first = member_of(group, "w2")
    claimed = group.members[first].running
    second = group.join("w2", claimed)
    group.rebalance()
    assert set(group.sent[first].revoked) == set(group.sent[second].revoked) == set(claimed)
    group.leave(first)
    group.leave(second)
    group.rebalance()
    assert group.counts() == ([1, 1], [6, 6]), "at once, whatever delay balance may wait for"


def test_a_worker_that_drains_while_it_runs_is_taken_everything_first() -> None:
    group = settled("w1", "w2", a=4)
    group.members[member_of(group, "w2")].draining = True
    group.rebalance()
    assert set(sent_to(group, "w2").revoked) >= {TaskId("a", 1), TaskId("a", 3)}
    group.rebalance()
    assert group.counts() == ([1], [4])


@pytest.mark.parametrize("drains", [True, False])
def test_a_drain_or_a_quick_return_after_a_revoking_round_begins_no_delay(drains: bool) -> None:
    group = settled("w1", "w2", a=8)
    group.join("w3")
    group.rebalance()
    assert any(sent.revoked for sent in group.sent.values())
    state = group.members[member_of(group, "w2")]
    if drains:
        state.running, state.draining = NOTHING, True
    else:
        group.leave(member_of(group, "w2"))
        group.join("w2")
    group.rebalance()
    assert delay_ms(group) == 0
    assert sum(group.counts()[1]) == 8


def test_when_all_drain_no_one_gets_anything() -> None:
    group = settled("w1", "w2", a=4)
    for state in group.members.values():
        state.running, state.draining = NOTHING, True
    group.rebalance()
    assert all(sent.assigned == NOTHING for sent in group.sent.values())
    group.leave(group.leader)
    group.leave(next(iter(group.members)))
    group.join("w3")
    group.rebalance()
    assert group.counts() == ([1], [4])


def test_a_round_says_who_came_and_went_what_moves_and_what_waits_for_whom() -> None:
    group = group_of("w1", "w2", max_delay_ms=8_000, a=2, b=2)
    said = []

    def note() -> None:
        group.rebalance()
        said.append(last_round(group).summary())

    note()
    group.join("w3")
    note()
    note()
    note()
    group.leave(member_of(group, "w2"))
    del group.configured["a"]
    note()
    group.now_ms += 8_000
    group.members[member_of(group, "w3")].draining = True
    note()
    assert said == [
        "2 workers; started: 2 connectors and 4 tasks",
        "3 workers; joined: http://w3/; stopped: 1 task",
        "3 workers; started: 1 task",
        "3 workers; nothing moves",
        "2 workers; left: http://w2/; stopped: 1 connector and 2 tasks; of it not configured: 1 connector and 2 tasks; "
        "1 connector and 1 task wait up to 8 s for http://w2/",
        "2 workers; ending: http://w3/; started: 1 connector and 1 task",
    ]
