"""What a leader sends to the members of its group, whatever the protocol."""

from connect_py.group.assignor import Assignor
from connect_py.group.protocol import Allocation, GroupAssignment, GroupProtocol, TaskId, WorkerState

EAGER, COMPATIBLE, SESSIONED = GroupProtocol

CONFIGURED = Allocation(("b", "a"), (TaskId("b", 0), TaskId("a", 1), TaskId("a", 0)))


def joining(*members: str, offset: int = 7) -> dict[str, WorkerState]:
    return {member: WorkerState(f"http://{member}/", offset) for member in members}


def assign(
    assignor: Assignor, members: dict[str, WorkerState], protocol: GroupProtocol = SESSIONED, config_offset: int = 7
) -> dict[str, GroupAssignment]:
    return assignor.assign(
        members, CONFIGURED, leader="m1", config_offset=config_offset, generation=1, completed_generation=-1, protocol=protocol, now_ms=0
    )


def test_eager_deals_connectors_then_tasks_in_turn_by_member_id() -> None:
    assigned = assign(Assignor(), joining("m2", "m1"), EAGER)
    assert assigned["m1"].assigned == Allocation(("a",), (TaskId("a", 0), TaskId("b", 0)))
    assert assigned["m2"].assigned == Allocation(("b",), (TaskId("a", 1),))


def test_eager_deals_everything_again_to_members_that_had_it() -> None:
    members = joining("m1", "m2")
    members["m2"] = WorkerState("http://m2/", 7, CONFIGURED)
    assert assign(Assignor(), members, EAGER) == assign(Assignor(), joining("m1", "m2"), EAGER)


def test_the_first_eager_round_after_another_protocols_gives_nothing_so_that_members_stop_what_others_get() -> None:
    assignor = Assignor()
    assign(assignor, joining("m1"))
    assert not assignor.holds_back
    held = assign(assignor, joining("m1", "m2"), EAGER)
    assert (assignor.holds_back, [bool(each.assigned) for each in held.values()]) == (True, [False, False])
    assert assign(assignor, joining("m1", "m2"), EAGER) == assign(Assignor(), joining("m1", "m2"), EAGER)
    assert not assignor.holds_back


def test_every_member_gets_an_assignment_also_the_one_that_gets_nothing() -> None:
    for protocol in GroupProtocol:
        assigned = assign(Assignor(), joining("m1", "m2", "m3", "m4", "m5", "m6"), protocol)
        assert assigned["m6"] == GroupAssignment(0, "m1", "http://m1/", 7)


def test_the_first_round_hands_connectors_and_tasks_out_apart_by_member_id() -> None:
    assigned = assign(Assignor(), joining("m2", "m1"))
    assert assigned["m1"].assigned == Allocation(("a",), (TaskId("a", 0), TaskId("b", 0)))
    assert assigned["m2"].assigned == Allocation(("b",), (TaskId("a", 1),))


def test_a_leader_that_is_behind_a_member_gives_nobody_anything() -> None:
    members = joining("m1", "m2", offset=7) | joining("m3", offset=9)
    for protocol in GroupProtocol:
        assignor = Assignor()
        assert assign(assignor, members, protocol) == {member: GroupAssignment(1, "m1", "http://m1/", 9) for member in ("m1", "m2", "m3")}
        assert assignor.owner_url("a") is None
        assert assignor.last_round is None


def test_a_leader_that_is_ahead_names_its_offset_and_the_others_catch_up() -> None:
    for protocol in GroupProtocol:
        sent = assign(Assignor(), joining("m1", "m2", offset=5), protocol, config_offset=8)
        assert {(assignment.error, assignment.config_offset) for assignment in sent.values()} == {(0, 8)}


def test_an_empty_configuration_topic_is_shared_out_as_offset_minus_one() -> None:
    sent = Assignor().assign(
        joining("m1", offset=-1),
        Allocation(),
        leader="m1",
        config_offset=-1,
        generation=1,
        completed_generation=-1,
        protocol=SESSIONED,
        now_ms=0,
    )
    assert sent == {"m1": GroupAssignment(0, "m1", "http://m1/", -1)}


def test_the_leader_knows_owners_between_rebalances_only() -> None:
    for protocol in GroupProtocol:
        assignor = Assignor()
        assert assignor.owner_url("a") is None
        assign(assignor, joining("m1", "m2"), protocol)
        assert assignor.owner_url("a") == "http://m1/"
        assert assignor.owner_url("b") == "http://m2/"
        assert assignor.owner_url(TaskId("a", 1)) == "http://m2/"
        assert assignor.owner_url(TaskId("a", 2)) is None
        assignor.forget_owners()
        assert assignor.owner_url("a") is None


def test_what_is_being_revoked_has_no_owner() -> None:
    assignor = Assignor()
    members = joining("m1", "m2")
    members["m1"] = WorkerState("http://m1/", 7, CONFIGURED)
    sent = assign(assignor, members)
    assert sent["m1"].revoked == Allocation(("b",), (TaskId("b", 0),))
    assert assignor.owner_url("b") is None
    assert assignor.owner_url(TaskId("b", 0)) is None
    assert assignor.owner_url("a") == "http://m1/"
