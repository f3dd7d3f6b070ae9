"""One worker's membership over a broker's part that a test plays: rounds, revocations, offsets that differ, delays, the lease, the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_py.api.group import GroupHandler, Joined
from connect_py.api.storage import ClusterConfig
from connect_py.errors import ConfigError, RetriableError
from connect_py.group.assignor import Assignor
from connect_py.group.membership import GroupTimings, Membership, Share
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
)
from connect_py.task.lease import now
from tests.waiting import eventually, let_time_pass

SESSIONED = GroupProtocol.SESSIONED
TIMINGS = GroupTimings.parse({"scheduled.rebalance.max.delay.ms": "60000"})


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return now() + self.ahead


class Broker:
    """The broker and the other members: gives what the test puts, and notes what the member does."""

    def __init__(self) -> None:
        self.joined: list[Joined] = []
        self.offered: list[WorkerState] = []
        self.left: list[str] = []
        self.refusal: Exception | None = None
        self.predecessors: list[tuple[str, str, bytes]] = []
        self.heard_ago: float | None = 0.0
        self.last_heard = 0.0
        self.is_closed = False
        self.has_sent_join = False
        self._handler: GroupHandler | None = None
        self._wants = threading.Event()
        self._wants.set()

    def connect(self, handler: GroupHandler, seconds: float) -> None:
        self._handler = handler

    @property
    def handler(self) -> GroupHandler:
        assert self._handler is not None
        return self._handler

    @property
    def needs_join(self) -> bool:
        return self._wants.is_set()

    @property
    def heard(self) -> float:
        return self.last_heard if self.heard_ago is None else now() - self.heard_ago

    @property
    def has_handler(self) -> bool:
        return self._handler is not None

    def rejoin(self) -> None:
        self._wants.set()
        if self._handler is not None:
            self._handler.stirred()

    def figures(self) -> Mapping[str, float]:
        return {"heartbeat-total": 3.0}

    def traffic(self) -> Mapping[str, Mapping[str, float]]:
        return {"": {"incoming-byte-rate": 5.0}}

    def serve(self) -> None:
        pass

    def join(self, seconds: float) -> Joined | None:
        if self.refusal is not None:
            raise self.refusal
        if not self.joined:
            threading.Event().wait(0.01)
            return None
        self._wants.clear()
        if self.has_sent_join:
            self.has_sent_join = False
            return self.joined.pop(0)
        self.offered.append(decode_metadata(dict(self.handler.offers())["sessioned"]))
        return self.joined.pop(0)

    def dismiss(self, is_dead: Callable[[str, bytes], bool], seconds: float) -> Sequence[str]:
        return [member for member, client, offered in self.predecessors if is_dead(client, offered)]

    def join_twice_and_leave(self, reason: str, seconds: float) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.offered.append(decode_metadata(dict(self.handler.offers())["sessioned"]))
        self.left.append(f"twice: {reason}")

    def leave(self, reason: str, seconds: float) -> None:
        self.left.append(reason)
        self._wants.set()

    def close(self) -> None:
        self.is_closed = True

    def give(self, generation: int, assignment: GroupAssignment, behind: bytes = b"") -> None:
        self.send(generation, encode_assignment(assignment, SESSIONED) + behind)

    def send(self, generation: int, assignment: bytes) -> None:
        self.joined.append(Joined(generation, "me", "sessioned", assignment, "you"))
        self.rejoin()


class Herder:
    """Notes what it is given to run, and lets the test say when something has stopped."""

    def __init__(self) -> None:
        self.config = ClusterConfig(offset=5)
        self.newest = 5
        self.can_read = True
        self.carried_out: list[Share] = []
        self.revoked: list[Allocation] = []
        self.has_stopped = threading.Event()
        self.abandoned = 0
        self.reading: Callable[[], None] = lambda: None
        self.callers: set[str] = set()  # threads, but for those that ask for a snapshot

    def snapshot(self) -> ClusterConfig:
        return self.config

    def refresh(self, seconds: float) -> None:
        self.callers.add(threading.current_thread().name)
        if not self.can_read:
            raise RetriableError("Kafka does not answer.")
        self.config = ClusterConfig(offset=self.newest)
        self.reading()

    def revoke(self, work: Allocation) -> threading.Event:
        self.callers.add(threading.current_thread().name)
        self.revoked.append(work)
        return self.has_stopped

    def carry_out(self, given: Share, received: GroupAssignment) -> None:
        self.callers.add(threading.current_thread().name)
        self.carried_out.append(given)

    def abandon(self) -> threading.Event:
        self.callers.add(threading.current_thread().name)
        self.abandoned += 1
        return self.has_stopped


class Member:
    def __init__(self, timings: GroupTimings = TIMINGS, *, hands_over: bool = True, unreadable_seconds: float = 15.0) -> None:
        self.broker, self.herder, self.clock = Broker(), Herder(), Clock()
        self.membership = Membership(
            lambda: self.broker,
            Assignor(timings.max_delay),
            url="http://me:1/",
            preferred=SESSIONED,
            timings=timings,
            client_id="connect-me:1",
            details=WorkerDetails(version="1"),
            hands_over=hands_over,
            unreadable_seconds=unreadable_seconds,
            clock=self.clock,
        )

    def start(self) -> None:
        self.membership.start(self.herder)
        self.membership.allow_joining()

    def runs(self, *items: str | TaskId) -> None:
        """Wait until the herder was given this and nothing else."""
        wanted = set(items)
        eventually(
            lambda: self.herder.carried_out and set(self.herder.carried_out[-1].work) == wanted,
            lambda: f"{wanted}; last: {self.herder.carried_out[-1:]}",
        )


@pytest.fixture
def member() -> Iterator[Member]:
    made = Member()
    yield made
    made.broker.refusal = RetriableError("the test is over")  # nobody waits for work to be handed over
    made.membership.end()


def assigned(*items: str | TaskId, **more: object) -> GroupAssignment:
    values: dict[str, object] = {"error": 0, "leader": "you", "leader_url": "http://you:1/", "config_offset": 5, **more}
    return GroupAssignment(assigned=Allocation.of(items), **values)  # type: ignore[arg-type]


C0, C1 = TaskId("c", 0), TaskId("c", 1)


def test_nothing_is_joined_before_the_stores_have_been_read(member: Member) -> None:
    member.broker.give(1, assigned("c"))
    member.membership.start(member.herder)
    let_time_pass(0.1, "it would have joined")
    assert member.broker.offered == [] and member.membership.leader_url is None
    assert not member.membership.await_leader(0.01)
    member.membership.allow_joining()
    member.runs("c")
    assert member.membership.await_leader(1) and member.membership.leader_url == "http://you:1/"


def test_what_is_assigned_is_added_to_what_runs_and_offered_in_the_next_round(member: Member) -> None:
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    assert (member.membership.generation, member.membership.is_leader) == (1, False)
    member.broker.give(2, assigned(C0, C1))
    member.runs("c", C0, C1)
    assert member.membership.owns_connector("c") and member.membership.owns_task("c", 1) and not member.membership.owns_task("c", 2)
    member.broker.give(3, assigned())
    eventually(lambda: len(member.broker.offered) == 3, "third round")
    first, second, third = member.broker.offered
    assert (first.allocation, first.received) == (Allocation(), None), "nothing runs: no allocation"
    assert second.allocation == Allocation(("c",))
    assert set(third.allocation) == {"c", C0, C1}
    assert (third.url, third.config_offset, third.details) == ("http://me:1/", 5, WorkerDetails(version="1"))


def test_what_is_revoked_has_stopped_before_the_next_round_which_follows_at_once(member: Member) -> None:
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    member.broker.give(2, assigned(revoked=Allocation((), (C0,))))
    eventually(lambda: member.herder.revoked == [Allocation((), (C0,))], "revocation")
    assert member.membership.generation == 1, "states that are reported now are of the old generation"
    assert not member.membership.owns_task("c", 0)
    member.broker.give(3, assigned())
    let_time_pass(0.1, "a round could begin")
    assert len(member.broker.offered) == 2
    member.herder.has_stopped.set()
    eventually(lambda: len(member.broker.offered) == 3, "next round")
    assert set(member.broker.offered[2].allocation) == {"c"}
    member.runs("c")


def test_nothing_is_started_before_the_same_configuration_has_been_read(member: Member) -> None:
    member.herder.newest = 6
    member.broker.give(1, assigned("c", config_offset=7))
    member.broker.give(2, assigned(C0, config_offset=6))
    member.start()
    member.runs("c", C0)
    assert [share.generation for share in member.herder.carried_out] == [2], "more than the leader had read is as bad as less"
    assert member.broker.offered[1].config_offset == 6
    assert set(member.broker.offered[1].allocation) == {"c"}, "it was given all the same"


def test_workers_that_never_agree_on_a_configuration_are_named(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1, 11):
        member.broker.give(number, assigned("c", config_offset=4))
    member.start()
    eventually(lambda: "do not see the same configuration topic" in caplog.text, "the error")
    assert "this worker's ends at offset 5, and that of http://you:1/ at 4" in caplog.text
    assert member.herder.carried_out == []


def test_a_group_that_speaks_less_than_its_worker_is_warned_of(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member.broker.joined.append(Joined(1, "me", "compatible", encode_assignment(assigned("c"), GroupProtocol.COMPATIBLE)))
    member.start()
    member.runs("c")
    member.broker.joined.append(Joined(2, "me", "compatible", encode_assignment(assigned(), GroupProtocol.COMPATIBLE)))
    member.broker.rejoin()
    eventually(lambda: member.membership.generation == 2, "another round")
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and "connect.protocol=compatible. Requests between workers are not signed" in warned[0]


def test_an_assignment_that_failed_stops_nothing_and_calls_for_another_round(member: Member) -> None:
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    member.broker.give(2, assigned(error=1, config_offset=5))
    member.broker.give(3, assigned())
    eventually(lambda: len(member.broker.offered) == 3, "another round")
    eventually(lambda: member.herder.carried_out[-1].generation == 3, "an assignment")
    assert member.herder.revoked == [] and [share.generation for share in member.herder.carried_out] == [1, 3]


def test_a_worker_that_cannot_read_the_configuration_leaves_and_comes_back_later(member: Member) -> None:
    member = Member(GroupTimings.parse({"scheduled.rebalance.max.delay.ms": "2000"}))
    member.herder.can_read = False
    member.broker.give(1, assigned("c", config_offset=7))
    member.start()
    eventually(lambda: member.broker.left[:1] == ["taking too long to read the log"], "leave")
    assert member.herder.carried_out == []
    member.herder.can_read, member.herder.newest = True, 7
    member.broker.give(2, assigned("c", config_offset=7))
    member.runs("c")
    member.membership.end()


def test_a_delay_ends_with_a_round_that_every_member_asks_for(member: Member) -> None:
    member.broker.give(1, assigned("c", delay_ms=200))
    member.start()
    member.runs("c")
    assert not member.broker.needs_join
    member.broker.give(2, assigned())
    eventually(lambda: len(member.broker.offered) == 2, "the round after the delay")


def test_a_round_waits_for_what_must_stop_first(member: Member) -> None:
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    assert member.membership.await_settled(1)
    member.membership.hold()
    assert not member.membership.await_settled(0.01)
    member.broker.give(2, assigned())
    let_time_pass(0.1, "a round could begin")
    assert len(member.broker.offered) == 1
    member.membership.release()
    eventually(lambda: len(member.broker.offered) == 2, "the round")
    assert member.membership.await_settled(5)


def test_a_worker_that_comes_back_waits_for_what_must_stop_by_what_it_reads_first(member: Member) -> None:
    """It could not read the configuration, and reads a new set of tasks before it joins again."""
    member = Member(GroupTimings.parse({"scheduled.rebalance.max.delay.ms": "2000"}))
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    member.herder.can_read = False
    member.broker.give(2, assigned(config_offset=7))
    eventually(lambda: member.broker.left != [], "leave")
    member.herder.newest, member.herder.reading = 7, member.membership.hold
    member.herder.can_read = True
    member.broker.give(3, assigned(config_offset=7))
    eventually(lambda: member.herder.config.offset == 7, "the newest configuration")
    let_time_pass(0.1, "it could have joined")
    assert len(member.broker.offered) == 2
    member.herder.reading = lambda: None
    member.membership.release()
    eventually(lambda: len(member.broker.offered) == 3, "the round")
    member.membership.end()


def test_a_worker_whose_lease_is_over_loses_everything_and_joins_with_nothing(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    assert now() + 6 < member.membership.lease_until() <= now() + 7
    member.broker.heard_ago = 8.0
    eventually(lambda: member.herder.abandoned == 1, "the loss")
    assert not member.membership.owns_connector("c")
    member.broker.heard_ago = 0.0
    member.broker.give(2, assigned(C1))
    member.runs(C1)
    assert (member.broker.offered[1].allocation, member.broker.offered[1].received) == (Allocation(), None)
    assert "has not been able to show the group that it lives" in caplog.text and member.herder.abandoned == 1


def test_a_worker_alone_in_its_group_keeps_its_work_while_the_broker_is_silent_unless_it_slept(member: Member) -> None:
    member.herder.config = ClusterConfig(offset=5, connectors={"c": {}})
    member.start()
    eventually(lambda: member.broker.has_handler, "connection")
    sent = member.broker.handler.assign("me", 1, "sessioned", {"me": dict(member.broker.handler.offers())["sessioned"]})
    member.broker.joined.append(Joined(1, "me", "sessioned", sent["me"]))
    member.runs("c")
    member.broker.last_heard = member.clock()
    member.broker.heard_ago = None
    let_time_pass(1.0, "the broker says nothing")
    assert member.membership.lease_until() > member.broker.last_heard + 7.2 and member.herder.abandoned == 0
    member.clock.ahead += 60  # the machine was asleep
    eventually(lambda: member.herder.abandoned == 1, "the loss")
    assert not member.broker.needs_join, "what ran by this worker's own word ends before it says that it runs nothing"
    member.herder.has_stopped.set()
    eventually(lambda: member.broker.needs_join, "another round")


def test_a_leader_computes_the_assignments_of_all_and_knows_the_owners(member: Member) -> None:
    member.herder.config = ClusterConfig(offset=5, connectors={"a": {}, "b": {}}, task_counts={"a": 1, "b": 0})
    member.broker.give(1, assigned("a", TaskId("a", 0), leader="me", leader_url="http://me:1/"))
    member.start()
    member.runs("a", TaskId("a", 0))
    mine = dict(member.broker.handler.offers())["sessioned"]
    java = bytes.fromhex("0002000e687474703a2f2f6a6176613a312fffffffffffffffffffffffff")
    sent: Mapping[str, bytes] = member.broker.handler.assign("me", 2, "sessioned", {"me": mine, "java": java})
    given = {name: decode_assignment(data) for name, data in sent.items()}
    assert (given["me"].assigned, given["java"].assigned) == (Allocation(), Allocation(("b",)))
    assert {assignment.config_offset for assignment in given.values()} == {5}
    assert encode_assignment(given["java"], SESSIONED) == sent["java"], "not a byte more than Java's own"
    assert len(sent["me"]) > len(encode_assignment(given["me"], SESSIONED)), "one of ours learns that its leader is"
    eventually(lambda: member.membership.is_leader, "leadership")
    eventually(lambda: member.membership.owner_url("b") == "http://java:1/", "owner")


@pytest.mark.parametrize("offered", [b"", b"\xff\xff", b"\x00\x02\x7f\xff", b"no worker at all"])
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_a_member_that_says_nothing_that_can_be_read_gets_nothing_and_holds_nobody_up(
    member: Member, caplog: pytest.LogCaptureFixture, protocol: GroupProtocol, offered: bytes
) -> None:
    member.herder.config = ClusterConfig(offset=5, connectors={"a": {}, "b": {}})
    member.start()
    eventually(lambda: member.broker.has_handler, "connection")
    mine = dict(member.broker.handler.offers())[str(protocol)]
    sent = member.broker.handler.assign("me", 1, str(protocol), {"me": mine, "rogue-1": offered})
    given = {name: decode_assignment(data) for name, data in sent.items()}
    assert given["me"].assigned == Allocation(("a", "b"))
    assert given["rogue-1"] == GroupAssignment(0, "me", "http://me:1/", 5)
    assert "The member rogue-1 of the group has sent a state that cannot be read" in caplog.text


@pytest.mark.parametrize("assignment", [b"", b"\x00\x02\x00\x00\x00", b"\xff" * 40, b"no assignment at all"])
def test_an_assignment_that_cannot_be_read_stops_nothing_and_names_its_leader(
    member: Member, caplog: pytest.LogCaptureFixture, assignment: bytes
) -> None:
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    member.broker.send(2, assignment)
    eventually(lambda: "The group's leader, the member you, has sent an assignment that cannot be read" in caplog.text, "the error")
    assert member.herder.revoked == [] and member.herder.abandoned == 0 and member.membership.owns_connector("c")
    assert not member.membership.await_settled(0.01), "requests wait for a leader that can be understood"
    member.broker.give(3, assigned(C0))
    member.runs("c", C0)
    assert "turn of the group's membership failed" not in caplog.text


def test_a_leader_that_cannot_be_understood_is_asked_again(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member = Member(unreadable_seconds=0.05)
    member.broker.send(1, b"")
    member.start()
    eventually(lambda: "has sent an assignment that cannot be read" in caplog.text, "the error")
    eventually(lambda: member.broker.needs_join, "another round")
    member.broker.give(2, assigned("c"))
    member.runs("c")
    member.membership.end()


def test_leadership_is_kept_while_a_round_is_under_way(member: Member) -> None:
    """Requests for the leader are answered meanwhile; only the next round's result says that another one leads."""
    member.broker.give(1, assigned("c", leader="me", leader_url="http://me:1/"))
    member.start()
    eventually(lambda: member.membership.is_leader and member.membership.await_settled(0), "leadership")
    member.broker.rejoin()
    eventually(lambda: not member.membership.await_settled(0), "a round")
    let_time_pass(0.1, "the other members have not joined yet")
    assert (member.membership.is_leader, member.membership.leader_url) == (True, "http://me:1/")
    assert member.membership.owner_url("c") is None, "owners are known between rounds only"
    member.broker.give(2, assigned())
    eventually(lambda: member.membership.leader_url == "http://you:1/", "the next leader")
    assert not member.membership.is_leader


def test_the_clients_thread_waits_for_nothing_that_the_herder_does(member: Member) -> None:
    """It sends the heartbeats: a worker that was late with them would lose what it runs."""
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    member.broker.give(2, assigned(revoked=Allocation.of([C0])))
    eventually(lambda: member.herder.revoked, "the revocation, whose end the membership's thread waits for")
    with ThreadPoolExecutor(1, "client") as client:
        handler = member.broker.handler

        def round_of_the_client() -> Mapping[str, bytes]:
            handler.stirred()
            return handler.assign("me", 3, "sessioned", {"me": dict(handler.offers())["sessioned"]})

        assert {*client.submit(round_of_the_client).result(5)} == {"me"}
    assert not member.herder.has_stopped.is_set()
    member.herder.has_stopped.set()
    eventually(lambda: member.membership.await_settled(0) or member.broker.needs_join, "the end of the revocation")
    assert not any(thread.startswith("client") for thread in member.herder.callers)


def test_a_worker_takes_the_place_of_its_own_dead_process(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    dead = bytes.fromhex("0002000c") + b"http://me:1/" + bytes.fromhex("ffffffffffffffffffffffff")
    member.broker.predecessors = [("old", "connect-me:1", dead), ("other", "x", b""), ("joining", "connect-me:1", b"")]
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    assert "has been taken out: old, joining" in caplog.text


def test_refusals_are_said_and_do_not_end_the_worker(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    member.broker.refusal = ConfigError("The Kafka broker does not let this worker in.")
    member.start()
    eventually(lambda: "does not let this worker in" in caplog.text, "line")
    member.broker.refusal = None
    member.broker.give(1, assigned("c"))
    member.runs("c")


def test_a_worker_that_ends_hands_its_work_over_to_a_leader_of_ours_and_leaves(member: Member) -> None:
    member.broker.give(1, assigned("c"), b"CP\x00\x01\x00\x00\x00\x00")
    member.start()
    member.runs("c")
    member.membership.begin_end()
    member.broker.rejoin()
    let_time_pass(0.1, "a round could begin")
    assert len(member.broker.offered) == 1, "what ends takes part in no round"
    member.broker.give(2, assigned())
    member.membership.end()
    assert member.broker.left == ["the worker is shutting down"] and member.broker.is_closed
    last = member.broker.offered[-1]
    assert (last.allocation, last.details) == (Allocation(), WorkerDetails(draining=True, version="1"))


def test_a_worker_that_ends_claims_its_work_twice_before_a_java_leader_and_leaves_twice(
    member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    member.membership.end()
    assert set(member.broker.offered[-1].allocation) == {"c", C0}
    assert member.broker.left[0] == "twice: the worker is shutting down" and member.broker.is_closed
    assert "Handed over to the others" in caplog.text
    assert member.herder.revoked == [], "everything has ended before"


def test_a_worker_that_cannot_hand_its_work_over_in_time_leaves(caplog: pytest.LogCaptureFixture) -> None:
    member = Member(GroupTimings.parse({"heartbeat.interval.ms": "10", "scheduled.rebalance.max.delay.ms": "60000"}))
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    member.broker.refusal = RetriableError("The other workers did not join a round.")
    member.membership.end()
    assert member.broker.left == ["the worker is shutting down"] and member.broker.is_closed
    assert "could not be handed over" in caplog.text


@pytest.mark.parametrize(("hands_over", "delay"), [(False, "60000"), (True, "8000")])
def test_a_worker_that_ends_only_leaves_a_java_leader_where_its_work_may_wait(hands_over: bool, delay: str) -> None:
    member = Member(GroupTimings.parse({"scheduled.rebalance.max.delay.ms": delay}), hands_over=hands_over)
    member.broker.give(1, assigned("c"))
    member.start()
    member.runs("c")
    member.membership.end()
    assert len(member.broker.offered) == 1 and member.broker.left == ["the worker is shutting down"]


def test_the_properties_of_the_group_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"heartbeat.interval.ms \(3000\) must be less than session.timeout.ms \(3000\)"):
        GroupTimings.parse({"session.timeout.ms": "3000"})
    with pytest.raises(ConfigError, match="Not a number"):
        GroupTimings.parse({"rebalance.timeout.ms": "soon"})
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        GroupTimings.parse({"worker.sync.timeout.ms": "0"})


def test_a_lease_is_the_session_but_for_a_heartbeat() -> None:
    assert GroupTimings.parse({}).lease_seconds == 7
    assert GroupTimings.parse({"session.timeout.ms": "3000", "heartbeat.interval.ms": "1000"}).lease_seconds == 2
    assert GroupTimings.parse({"session.timeout.ms": "3500"}).lease_seconds == 1.75


def test_a_lease_that_ends_in_a_round_calls_for_another_round(member: Member) -> None:
    """The leader divides the work by what each said when the round began. A worker that has lost its work since must say so."""
    member.broker.give(1, assigned("c", C0))
    member.start()
    member.runs("c", C0)
    member.broker.rejoin()
    claims = decode_metadata(dict(member.broker.handler.offers())["sessioned"])
    assert set(claims.allocation) == {"c", C0}
    member.broker.has_sent_join = True
    member.clock.ahead = 100.0
    eventually(lambda: member.herder.abandoned == 1, "the end of the lease")
    member.broker.heard_ago = -100.0
    member.broker.give(2, assigned())
    eventually(lambda: not member.broker.joined and member.broker.needs_join, "another round")
    member.broker.give(3, assigned("c", C0))
    member.runs("c", C0)
    assert not member.broker.offered[-1].allocation
