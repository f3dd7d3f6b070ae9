"""Bytes that workers of a group send each other: those of Java workers, and any others."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.errors import ConfigError, DataError
from connect_py.group.merge import merge
from connect_py.group.protocol import (
    Allocation,
    GroupAssignment,
    GroupProtocol,
    TaskId,
    WorkerDetails,
    WorkerState,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)

EAGER, COMPATIBLE, SESSIONED = GroupProtocol

#: Recorded from two Java workers 4.3.1 that listen on 18201 and 18202.
URL = "http://127.0.0.1:18201/"
MEMBER = "connect-127.0.0.1:18201-39f0f67c-aa66-4a54-95f8-f8d6d5e918d7"
URL_BYTES = "0017687474703a2f2f3132372e302e302e313a31383230312f"
MEMBER_BYTES = (
    "003c636f6e6e6563742d3132372e302e302e313a31383230312d33396630663637632d616136362d346135342d393566382d663864366435653931386437"
)
SRC = GroupAssignment(0, MEMBER, URL, 2, Allocation(("src",)))

RECORDED_STATES = {
    "sessioned, nothing running": (SESSIONED, WorkerState(URL, -1), "0002" + URL_BYTES + "ffffffffffffffff" + "ffffffff"),
    "compatible, nothing running": (COMPATIBLE, WorkerState(URL, -1), "0001" + URL_BYTES + "ffffffffffffffff" + "ffffffff"),
    "eager": (EAGER, WorkerState(URL, -1), "0000" + URL_BYTES + "ffffffffffffffff"),
    "sessioned, running a connector": (
        SESSIONED,
        WorkerState(URL, 4, Allocation(("src",)), SRC),
        f"0002{URL_BYTES}00000000000000040000007c"
        f"00020000{MEMBER_BYTES}{URL_BYTES}0000000000000002000000010003737263"
        "00000001ffffffff0000000000000000",
    ),
}
RECORDED_ASSIGNMENT = f"00020000{MEMBER_BYTES}{URL_BYTES}0000000000000002000000000000000000000000"


@pytest.mark.parametrize(("protocol", "state", "recorded"), RECORDED_STATES.values(), ids=RECORDED_STATES)
def test_a_state_has_the_bytes_of_a_java_worker(protocol: GroupProtocol, state: WorkerState, recorded: str) -> None:
    assert encode_metadata(state, protocol).hex() == recorded
    assert decode_metadata(bytes.fromhex(recorded)) == state


def test_an_assignment_of_nothing_new_has_the_bytes_of_a_java_leader() -> None:
    assignment = GroupAssignment(0, MEMBER, URL, 2)
    assert encode_assignment(assignment, SESSIONED).hex() == RECORDED_ASSIGNMENT
    assert decode_assignment(bytes.fromhex(RECORDED_ASSIGNMENT)) == assignment


def test_a_worker_lists_its_protocol_and_all_before_it_best_first() -> None:
    assert [str(name) for name in GroupProtocol.of_property(" Sessioned ").offered] == ["sessioned", "compatible", "default"]
    assert [str(name) for name in GroupProtocol.of_property("COMPATIBLE").offered] == ["compatible", "default"]
    assert [str(name) for name in GroupProtocol.of_property("eager").offered] == ["default"]
    assert [protocol.version for protocol in SESSIONED.offered] == [2, 1, 0]
    with pytest.raises(ConfigError, match="eager, compatible, sessioned"):
        GroupProtocol.of_property("default")


def test_the_state_of_each_protocol_has_its_version_inside_and_outside() -> None:
    state = WorkerState(URL, 4, Allocation(("src",)), SRC)
    for protocol in (COMPATIBLE, SESSIONED):
        data = encode_metadata(state, protocol)
        nested = data.index(bytes.fromhex(MEMBER_BYTES)) - 4
        assert data[:2] == data[nested : nested + 2] == struct.pack(">h", protocol.version)
    assert decode_metadata(encode_metadata(state, EAGER)) == WorkerState(URL, 4)


def test_work_without_an_assignment_is_wrapped_in_one_of_no_leader() -> None:
    """A second membership of a process claims work that nobody assigned to it."""
    work = Allocation(("src",), (TaskId("src", 0),))
    decoded = decode_metadata(encode_metadata(WorkerState(URL, 4, work), SESSIONED))
    assert decoded.allocation == work
    assert decoded.received == GroupAssignment(0, "", URL, 4, work)


def test_a_worker_that_has_lost_everything_claims_an_empty_assignment_as_java_does() -> None:
    state = WorkerState(URL, 4, Allocation(), GroupAssignment(0, MEMBER, URL, 2))
    assert decode_metadata(encode_metadata(state, SESSIONED)) == state


def test_connectors_come_before_the_tasks_and_those_with_tasks_only_behind() -> None:
    work = Allocation(("b", "a"), (TaskId("c", 1), TaskId("a", 1), TaskId("c", 0), TaskId("a", 0)))
    data = encode_assignment(GroupAssignment(0, "m", "u", 1, work), SESSIONED)
    listed = bytes.fromhex("00000003 000162 00000001 ffffffff 000161 00000003 ffffffff 00000001 00000000 000163 00000002 00000001 00000000")
    assert listed in data
    assert decode_assignment(data).assigned == Allocation(("b", "a"), (TaskId("a", 1), TaskId("a", 0), TaskId("c", 1), TaskId("c", 0)))


def test_details_travel_behind_the_state_where_java_does_not_look() -> None:
    details = WorkerDetails(draining=True, version="0.2", host="h1")
    state = WorkerState(URL, 4, Allocation(("src",)), SRC, details)
    data = encode_metadata(state, SESSIONED)
    assert data.startswith(bytes.fromhex(RECORDED_STATES["sessioned, running a connector"][2]))
    assert decode_metadata(data) == state
    assert decode_metadata(encode_metadata(WorkerState(URL, 4, details=WorkerDetails()), COMPATIBLE)).details == WorkerDetails()


def test_details_are_not_sent_to_eager_readers_who_would_read_an_allocation() -> None:
    assert encode_metadata(WorkerState(URL, -1, details=WorkerDetails(draining=True)), EAGER).hex() == RECORDED_STATES["eager"][2]


@pytest.mark.parametrize(
    "tail",
    [
        "00",
        "4350",
        "43500001",
        "4350000100000005",
        "435000010000000161",
        "43500001000000025b5d",
        "43500000000000027b7d",
        "0102030405060708090a0b",
    ],
)
def test_other_bytes_behind_a_state_are_ignored(tail: str) -> None:
    state = WorkerState(URL, 4, Allocation(("src",)), SRC)
    assert decode_metadata(encode_metadata(state, SESSIONED) + bytes.fromhex(tail)) == state


def test_details_of_a_later_version_are_read_as_far_as_they_are_known() -> None:
    tail = b'{"draining":true,"weight":3,"version":7}'
    data = encode_metadata(WorkerState(URL, 4), SESSIONED) + bytes.fromhex("43500009") + struct.pack(">i", len(tail)) + tail
    assert decode_metadata(data).details == WorkerDetails(draining=True)


def test_fields_that_are_missing_at_the_end_have_their_defaults() -> None:
    assignment = GroupAssignment(0, "m", "u", 7, Allocation(("a",)))
    data = encode_assignment(assignment, EAGER)
    assert decode_assignment(data) == assignment
    assert decode_assignment(data[:-15]) == GroupAssignment(0, "m", "u", 7)
    assert decode_metadata(encode_metadata(WorkerState("u", 3), SESSIONED)[:-4]) == WorkerState("u", 3)


def test_null_lists_are_empty_and_bytes_behind_an_assignment_are_ignored() -> None:
    head = encode_assignment(GroupAssignment(1, "m", "u", 7), EAGER)[:-4]
    assert decode_assignment(head + struct.pack(">iii", -1, -1, 250) + b"more") == GroupAssignment(1, "m", "u", 7, delay_ms=250)


def test_later_versions_are_read_by_the_layout_that_is_known() -> None:
    data = encode_assignment(SRC, SESSIONED)
    assert decode_assignment(struct.pack(">h", 9) + data[2:]) == SRC
    with pytest.raises(DataError, match="Unsupported subscription version: -1"):
        decode_assignment(struct.pack(">h", -1) + data[2:])


HEAD = encode_assignment(GroupAssignment(0, "m", "u", 7), EAGER)[:-4]
MALFORMED = {
    "empty": (b"", "0 bytes .* not an assignment: the field version needs 2 bytes at 0"),
    "cut in a text": (HEAD[:5], "leader needs 2 bytes at 4"),
    "a negative length": (HEAD[:4] + b"\xff\xff", "leader has a length of -1"),
    "no UTF-8": (HEAD[:4] + b"\x00\x01\xff", "leader is not UTF-8"),
    "a long list": (HEAD + b"\x7f\xff\xff\xff", "assignment has 2147483647 entries"),
    "a connector without a list": (HEAD + struct.pack(">i", 1) + b"\x00\x01a" + struct.pack(">i", -1), "a connector with -1 tasks"),
    "a long list of tasks": (HEAD + struct.pack(">i", 1) + b"\x00\x01a" + struct.pack(">i", 9), "assignment has 9 entries"),
    "half a delay": (HEAD + bytes(8) + b"\x00\x00", "delay needs 4 bytes"),
}


@pytest.mark.parametrize(("data", "says"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_bytes_are_refused_with_the_field_that_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        decode_assignment(data)


def test_what_does_not_fit_the_format_is_refused() -> None:
    with pytest.raises(DataError, match="32768 bytes is too long"):
        encode_metadata(WorkerState("u" * 32768, 0), EAGER)
    with pytest.raises(DataError, match="does not fit its field of 4 bytes"):
        encode_assignment(GroupAssignment(0, "m", "u", 0, delay_ms=2**31), SESSIONED)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TASKS = st.builds(TaskId, NAMES, st.integers(0, 2**31 - 1))
ALLOCATIONS = st.builds(
    lambda connectors, tasks: Allocation(tuple(connectors), tuple(tasks)),
    st.lists(NAMES, unique=True, max_size=5),
    st.lists(TASKS, unique=True, max_size=8),
)
ASSIGNMENTS = st.builds(
    GroupAssignment,
    error=st.integers(0, 1),
    leader=NAMES,
    leader_url=NAMES,
    config_offset=st.integers(-1, 2**63 - 1),
    assigned=ALLOCATIONS,
    revoked=ALLOCATIONS,
    delay_ms=st.integers(0, 2**31 - 1),
)


def same_work(one: Allocation, other: Allocation) -> bool:
    """Tasks are grouped by connectors on the wire."""
    return one.connectors == other.connectors and sorted(one.tasks) == sorted(other.tasks)


@given(ASSIGNMENTS, st.sampled_from([COMPATIBLE, SESSIONED]))
def test_assignments_come_back_as_they_were(assignment: GroupAssignment, protocol: GroupProtocol) -> None:
    data = encode_assignment(assignment, protocol)
    decoded = decode_assignment(data)
    assert same_work(decoded.assigned, assignment.assigned)
    assert same_work(decoded.revoked, assignment.revoked)
    assert (decoded.error, decoded.leader, decoded.leader_url) == (assignment.error, assignment.leader, assignment.leader_url)
    assert (decoded.config_offset, decoded.delay_ms) == (assignment.config_offset, assignment.delay_ms)
    assert encode_assignment(decoded, protocol) == data


@given(
    st.builds(
        WorkerState,
        NAMES,
        st.integers(-1, 2**63 - 1),
        ALLOCATIONS,
        st.none() | ASSIGNMENTS,
        st.none() | st.builds(WorkerDetails, st.booleans(), NAMES, NAMES),
    ),
    st.sampled_from([COMPATIBLE, SESSIONED]),
)
def test_states_come_back_as_they_were(state: WorkerState, protocol: GroupProtocol) -> None:
    data = encode_metadata(state, protocol)
    decoded = decode_metadata(data)
    assert (decoded.url, decoded.config_offset, decoded.details) == (state.url, state.config_offset, state.details)
    assert same_work(decoded.allocation, state.allocation)
    assert encode_metadata(decoded, protocol) == data


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: encode_metadata(WorkerState(URL, 4), SESSIONED)[:-4] + tail))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_metadata, decode_assignment):
        try:
            decode(data)
        except DataError as error:
            assert "protocol" in str(error) or "version" in str(error)


def test_a_member_runs_what_is_new_and_what_it_keeps_in_that_order() -> None:
    running = Allocation(("a", "b"), (TaskId("a", 0), TaskId("b", 0)))
    received = GroupAssignment(0, "m", "u", 1, Allocation(("c",), (TaskId("c", 0), TaskId("a", 0))), Allocation(("a",), (TaskId("b", 0),)))
    assert merge(running, received, SESSIONED) == Allocation(("c", "b"), (TaskId("c", 0), TaskId("a", 0)))
    assert merge(running, received, EAGER) == received.assigned


def test_a_failed_assignment_leaves_what_runs() -> None:
    running = Allocation(("a",), (TaskId("a", 0),))
    assert merge(running, GroupAssignment(1, "m", "u", 9), COMPATIBLE) == running
