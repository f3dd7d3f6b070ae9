"""Be a member of the group of workers: join its rounds, give up what is revoked, settle on a configuration, keep the lease
(`WorkerCoordinator.java`, `WorkerGroupMember.java`, `DistributedHerder.java`: handleRebalanceCompleted, readConfigToEnd).

A thread of its own takes one turn after the other. In a round it stops what the leader revokes and waits for that, adds what is new, and
hands the result to the herder once this worker has read the configuration up to exactly the record that the leader saw. What other threads
ask is answered from one immutable `Share`.

The lease: what runs here may run until ``session.timeout.ms`` minus ``heartbeat.interval.ms`` after the last heartbeat was sent that the
group's coordinator has answered. A worker whose lease is over has lost everything: its tasks have ended by themselves
(`connect_py.task.lease`), and it joins again with nothing. The group gives its work away later than that. A worker that is alone in its
group keeps its lease while the coordinator is silent, so that its tasks wait for their broker: there is nobody to have the work. Only a
sleep ends that lease, or the coordinator's word.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from connect_py.api.group import GroupClient, Joined
from connect_py.api.storage import ClusterConfig
from connect_py.api.task import MetricValue
from connect_py.clock import SYSTEM_THREADS, Running, Threads
from connect_py.config.worker import GROUP_TIMINGS
from connect_py.errors import ConfigError, ConnectError, DataError, RetriableError
from connect_py.group.assignor import Assignor
from connect_py.group.merge import merge
from connect_py.group.protocol import (
    NO_ERROR,
    Allocation,
    GroupAssignment,
    GroupProtocol,
    Item,
    TaskId,
    WorkerDetails,
    WorkerState,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from connect_py.task.lease import now

log = logging.getLogger(__name__)

#: How long a turn lasts when nothing happens: so late the end of a lease is noticed. What the client learns ends a turn at once.
_TURN_SECONDS = 0.5

#: How long one call to the client waits for the other members of a round; the lease is looked at between two calls.
_JOIN_SECONDS = 0.5

#: An attempt to reach the brokers, and how often failures are spoken of.
_CONNECT_SECONDS, _RETRY_SECONDS, _LINE_SECONDS = 10.0, 1.0, 15.0

#: Behind an assignment that one of our leaders sends to one of our workers: "CP", a version and an empty text. Java's members get none.
_OURS = b"CP\x00\x01\x00\x00\x00\x00"

#: How long a leave, or a look at the members, waits for the coordinator.
_LEAVE_SECONDS, _DISMISS_SECONDS = 2.0, 5.0

#: Up to this ``scheduled.rebalance.max.delay.ms``, a round in which a Java leader may move other work for balance is not worth it.
_SHORT_DELAY_MS = 10_000

#: When a leader that has sent nothing that can be read is asked again. Each round concerns all members.
_UNREADABLE_SECONDS = 15.0

#: After so many rounds in a row without an agreement on a configuration, it is said: each may have met a change.
_ROUNDS_APART = 10

#: What it means that a group speaks less than this worker could.
_CONSEQUENCES = {
    GroupProtocol.EAGER: "All tasks of all workers stop in each rebalance, and requests between workers are not signed.",
    GroupProtocol.COMPATIBLE: "Requests between workers are not signed.",
}

#: DistributedHerder's BACKOFF_RETRIES: how often a worker that cannot read the configuration tries before it stops what it runs.
_UNSYNCED_RETRIES = 5

#: How long it stays away at least: a read that fails at once is not repeated without a pause.
_UNSYNCED_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class GroupTimings:
    """The worker's properties about the group, in milliseconds (`DistributedConfig.java`)."""

    session: int
    heartbeat: int
    rebalance: int
    sync: int
    unsync_backoff: int
    max_delay: int

    @property
    def lease_seconds(self) -> float:
        """How long what runs here may run on without a heartbeat: the session but for a heartbeat."""
        return max(self.session / 2, self.session - self.heartbeat) / 1000

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> GroupTimings:
        """Raises ConfigError: one is no number, or the heartbeat is not shorter than the session."""
        values = GROUP_TIMINGS.parse(properties)
        timings = cls(
            session=values["session.timeout.ms"],
            heartbeat=values["heartbeat.interval.ms"],
            rebalance=values["rebalance.timeout.ms"],
            sync=values["worker.sync.timeout.ms"],
            unsync_backoff=values["worker.unsync.backoff.ms"],
            max_delay=values["scheduled.rebalance.max.delay.ms"],
        )
        if timings.heartbeat >= timings.session:
            raise ConfigError(
                f"heartbeat.interval.ms ({timings.heartbeat}) must be less than session.timeout.ms ({timings.session}): a worker without a "
                "heartbeat for that long is out of the group."
            )
        return timings


@dataclass(frozen=True, slots=True)
class Share:
    """What the group last gave this worker; before its first round, nothing.

    Attributes:
        generation: the round's number; 0 before the first.
        leader: the leader's member id.
        leader_url: where the leader answers, ending with a slash.
        config_offset: of the configuration that the leader saw.
        work: everything that this worker is to run.
        delay_ms: until the leader gives away what no worker runs.
        waiting: that work, with the address of the worker that is gone; known to a leader of ours.
    """

    protocol: GroupProtocol
    generation: int = 0
    member_id: str = ""
    leader: str = ""
    leader_url: str | None = None
    config_offset: int = -1
    work: Allocation = field(default_factory=Allocation)
    delay_ms: int = 0
    waiting: Mapping[Item, str] = field(default_factory=dict)

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads the group."""
        return bool(self.member_id) and self.member_id == self.leader


class Work(Protocol):
    """What runs on this worker; called on the membership's thread but for `snapshot`, which may be asked from any."""

    def snapshot(self) -> ClusterConfig:
        """Return the configuration as it has been read so far."""
        ...

    def refresh(self, seconds: float) -> None:
        """Read the configuration to its present end. Raises RetriableError."""
        ...

    def revoke(self, work: Allocation) -> threading.Event:
        """Stop connectors and tasks, and report them UNASSIGNED. The event is set when they have ended and Kafka holds their reports."""
        ...

    def carry_out(self, given: Share, received: GroupAssignment) -> None:
        """Start what is new; runs on the herder's thread later."""
        ...

    def abandon(self) -> threading.Event:
        """End everything at once, without a report: other workers may run it already. The event is set when it has ended."""
        ...


@dataclass(slots=True)
class _Rounds:
    """What rounds took so far, for figures."""

    clock: Callable[[], float]
    completed: int = 0
    failed: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    last: float = 0.0

    @property
    def seconds_ago(self) -> float:
        return self.clock() - self.last

    def note(self, seconds: float) -> None:
        self.completed += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
        self.last = self.clock()


class Membership:
    """One worker's membership.

    Args:
        make_client: called on the membership's thread, since the client's library is slow to import.
        assignor: computes the rounds while this worker leads.
        url: of this worker's REST API, as other workers reach it, ending with a slash.
        preferred: the best protocol that this worker speaks.
        details: what our workers learn of this one in addition.
        hands_over: whether a worker that ends has its work given to others at once (`drain.mode`).
        unreadable_seconds: when a leader is asked again whose assignment cannot be read.
        clock: of leases.
        threads: makes the thread, and has the time of everything else.
    """

    def __init__(
        self,
        make_client: Callable[[], GroupClient],
        assignor: Assignor,
        *,
        url: str,
        preferred: GroupProtocol,
        timings: GroupTimings,
        client_id: str,
        details: WorkerDetails | None = None,
        hands_over: bool = True,
        unreadable_seconds: float = _UNREADABLE_SECONDS,
        clock: Callable[[], float] = now,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._threads = threads
        self._make_client, self._assignor = make_client, assignor
        self._url, self._preferred, self._timings = url, preferred, timings
        self._client_id, self._details, self._hands_over = client_id, details, hands_over
        self._unreadable_seconds, self._clock = unreadable_seconds, clock
        self._client: GroupClient | None = None
        self._work: Work | None = None
        self._thread: Running | None = None
        self._wake = threading.Event()
        self._may_join, self._is_closing, self._is_ending = threading.Event(), False, threading.Event()
        self._changed = threading.Condition()
        # under _changed
        self._share = Share(preferred)
        self._is_settled = False
        self._holds = 0
        # of the membership's thread
        self._allocation = Allocation()
        self._received: GroupAssignment | None = None
        self._leader_is_ours = False
        self._is_alone = False
        self._last_turn = self._slept = -math.inf
        self._due: float | None = None
        self._retry_at = -math.inf
        self._must_read = False
        self._unsynced = self._rounds_apart = 0
        self._next_line = -math.inf
        self._began_round: float | None = None
        # of the client's thread
        self._offered: ClusterConfig | None = None
        self._claimed = Allocation()
        self._revokes = False
        self._members = 0
        self._ahead: list[str] = []
        self._waiting: Mapping[Item, str] = {}
        self._summary = ""
        self._rounds, self._began = _Rounds(threads.now), threads.now()

    # -- asked by other threads

    @property
    def generation(self) -> int:
        """Generation of the group; written into statuses."""
        return self._share.generation

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configurations; as of the last round, also while another one is under way."""
        return self._share.is_leader

    @property
    def leader_url(self) -> str | None:
        """Where the leader answers; None before the first round."""
        return self._share.leader_url

    @property
    def protocol(self) -> GroupProtocol:
        """What the group speaks."""
        return self._share.protocol

    @property
    def lease_seconds(self) -> float:
        """How long what runs here may run on without a heartbeat."""
        return self._timings.lease_seconds

    def owns_connector(self, connector: str) -> bool:
        """Whether the group gave it to this worker."""
        return connector in self._share.work.connectors

    def owns_task(self, connector: str, task: int) -> bool:
        """Whether the group gave it to this worker."""
        return TaskId(connector, task) in self._share.work.tasks

    def owner_url(self, item: Item) -> str | None:
        """Return where the owner of a connector or task answers. Known to the leader, and between rounds only."""
        return self._assignor.owner_url(item) if self.is_leader and self._is_settled else None

    def await_settled(self, seconds: float) -> bool:
        """Wait until no round is due or under way; returns whether that is so."""
        with self._changed:
            return self._threads.wait_for(self._changed, lambda: self._is_settled, seconds)

    def await_leader(self, seconds: float) -> bool:
        """Wait until this worker knows who leads; returns whether it does."""
        with self._changed:
            return self._threads.wait_for(self._changed, lambda: self._share.leader_url is not None, seconds)

    def lease_until(self) -> float:
        """Until when what runs here may run, by the clock of leases."""
        if self._client is None:
            return -math.inf
        heard = self._client.heard
        if self._is_alone and heard > self._slept:
            heard = max(heard, self._last_turn)
        return heard + self._timings.lease_seconds

    def rejoin(self) -> None:
        """Have a round of the group."""
        self._unsettle()
        if self._client is not None:
            self._client.rejoin()
        self._wake.set()

    def hold(self) -> None:
        """Join no round until `release`: something must stop before this worker may say that it knows the newest configuration."""
        with self._changed:
            self._holds += 1
            self._is_settled = False

    def release(self) -> None:
        """What `hold` was for has stopped; the group is asked for a round."""
        with self._changed:
            self._holds -= 1
        self.rejoin()

    def rebalances(self) -> Mapping[str, MetricValue]:
        """Return figures of ``connect-worker-rebalance-metrics``."""
        rounds = self._rounds
        return {
            "leader-name": self.leader_url or "",
            "connect-protocol": self.protocol.name,
            "epoch": self.generation,
            "completed-rebalances-total": rounds.completed,
            "rebalancing": not self._is_settled,
            "rebalance-max-time-ms": rounds.longest * 1000 if rounds.completed else math.nan,
            "rebalance-avg-time-ms": rounds.seconds / rounds.completed * 1000 if rounds.completed else math.nan,
            "time-since-last-rebalance-ms": int(rounds.seconds_ago * 1000) if rounds.completed else math.inf,
        }

    def coordination(self) -> Mapping[str, MetricValue]:
        """Return figures of ``connect-coordinator-metrics``."""
        rounds = self._rounds
        per_hour = 3600 / max(1.0, self._threads.now() - self._began)
        return {
            **({} if self._client is None else self._client.figures()),
            "rebalance-total": rounds.completed,
            "rebalance-rate-per-hour": rounds.completed * per_hour,
            "rebalance-latency-total": rounds.seconds * 1000,
            "rebalance-latency-avg": rounds.seconds / rounds.completed * 1000 if rounds.completed else math.nan,
            "rebalance-latency-max": rounds.longest * 1000 if rounds.completed else math.nan,
            "failed-rebalance-total": rounds.failed,
            "failed-rebalance-rate-per-hour": rounds.failed * per_hour,
            "last-rebalance-seconds-ago": int(rounds.seconds_ago) if rounds.completed else -1,
        }

    def traffic(self) -> Mapping[str, Mapping[str, MetricValue]]:
        """Return figures of ``connect-metrics``, and of ``connect-node-metrics`` by node."""
        return {} if self._client is None else self._client.traffic()

    # -- life

    def start(self, work: Work) -> None:
        """Begin to look for the brokers."""
        self._work = work
        self._thread = self._threads.start("membership", self._run)

    def allow_joining(self) -> None:
        """The stores have been read: join the group."""
        self._may_join.set()
        self._wake.set()

    def begin_end(self) -> None:
        """The worker ends: take part in no more rounds, but stay a member while its tasks end."""
        self._is_closing = True

    def end(self) -> None:
        """Leave the group, and wait until that is done."""
        self._is_closing = True
        self._is_ending.set()
        self._may_join.set()
        self._wake.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(self.leave_seconds + _LEAVE_SECONDS)

    # -- turns

    def _run(self) -> None:
        try:
            if self._connect():
                while not self._is_ending.is_set():
                    try:
                        self._turn()
                    except Exception:
                        log.exception("A turn of the group's membership failed; it goes on with the next one")
                        self._threads.wait(self._is_ending, _RETRY_SECONDS)
        finally:
            if self._client is not None:
                self._hand_over()
                self._client.leave("the worker is shutting down", _LEAVE_SECONDS)
                self._client.close()

    def _hand_over(self) -> None:
        """Have the leader give this worker's work, which has ended, to the others at once, and not after a delay as if it were lost. A
        leader that is leaving does not need to: its successor knows of no earlier owner."""
        if not self._hands_over or not self._allocation or self._share.is_leader:
            return
        deadline = self._threads.now() + self.leave_seconds - _LEAVE_SECONDS
        try:
            if self._leader_is_ours:
                self._drain(deadline)
            elif self._share.protocol is not GroupProtocol.EAGER and self._timings.max_delay > _SHORT_DELAY_MS:
                self._claim_twice(deadline)
        except ConnectError as error:
            log.warning("This worker's work could not be handed over, and waits for scheduled.rebalance.max.delay.ms: %s", error)

    def _drain(self, deadline: float) -> None:
        """A leader of ours understands a worker that says that it ends."""
        assert self._client is not None
        self._allocation, self._received = Allocation(), None
        self._details = replace(self._details or WorkerDetails(), draining=True)
        self._client.rejoin()
        while self._threads.now() < deadline and self._client.join(_JOIN_SECONDS) is None:
            self._client.serve()

    def _claim_twice(self, deadline: float) -> None:
        """What a Java leader does not see any more in the round after one that failed is new for it, and given away at once. Where it was
        so quick that the round did not fail, it has revoked what two members run from both of them, and then that is new
        (`IncrementalCooperativeAssignor.java`: previousAssignment). Raises RetriableError."""
        assert self._client is not None
        self._client.join_twice_and_leave("the worker is shutting down", deadline - self._threads.now())
        log.info("Handed over to the others, as work that two members ran: %d connectors and tasks", len([*self._allocation]))

    @property
    def leave_seconds(self) -> float:
        """How long leaving may take: until all members have heard, by their heartbeats, that there is a round."""
        return self._timings.heartbeat / 1000 + 1.5 + _LEAVE_SECONDS

    def _connect(self) -> bool:
        """Returns False when the worker ended before."""
        assert self._work is not None
        client = self._make_client()
        self._threads.wait(self._may_join)
        while not self._is_ending.is_set():
            try:
                client.connect(self, _CONNECT_SECONDS)
                self._client = client
                self._dismiss_predecessor()
                return True
            except ConfigError as error:
                self._say(logging.ERROR, "This worker is not in its group, and runs nothing: %s", error)
            except RetriableError as error:
                self._say(logging.WARNING, "This worker is not yet in its group: %s", error)
            self._threads.wait(self._is_ending, _RETRY_SECONDS)
        return False

    def _dismiss_predecessor(self) -> None:
        """A worker that was killed and has been started again under the same address: its tasks died with it, so nobody needs to wait for
        the end of its session."""
        assert self._client is not None

        def is_predecessor(client_id: str, offered: bytes) -> bool:
            try:
                return decode_metadata(offered).url == self._url
            except DataError:  # not shown while a round is under way
                return client_id == self._client_id and client_id.startswith("connect-")

        try:
            gone = self._client.dismiss(is_predecessor, _DISMISS_SECONDS)
        except RetriableError as error:
            log.warning("Whether an earlier process of this worker is still in the group is not known: %s", error)
            return
        if gone:
            log.info("An earlier process of this worker was still in the group, and has been taken out: %s", ", ".join(gone))

    def _turn(self) -> None:
        assert self._client is not None
        self._client.serve()
        self._note_turn()
        current = self._threads.now()
        if self._allocation and self._clock() > self.lease_until():
            self._lose()
        if self._due is not None and current >= self._due:
            self._due = None
            self.rejoin()
        if self._client.needs_join:
            self._unsettle()
            if not self._holds and not self._is_closing and current >= self._retry_at:
                self._join()
                return
        until = [at - current for at in (self._due, self._retry_at) if at is not None and at > current]
        self._threads.wait(self._wake, min([self._turn_seconds, *until]))
        self._wake.clear()

    @property
    def _turn_seconds(self) -> float:
        """A sleep is known by a turn that takes longer than a good part of a lease."""
        return min(_TURN_SECONDS, self._timings.lease_seconds / 5)

    def _note_turn(self) -> None:
        """Note that this worker has not slept, or that it has: what it knew before does not count then."""
        current = self._clock()
        if current - self._last_turn > self._timings.lease_seconds / 2:
            self._slept = current
        self._last_turn = current

    def _join(self) -> None:
        assert self._client is not None and self._work is not None
        if self._began_round is None:
            self._began_round = self._threads.now()
        if self._must_read and (not self._read() or self._holds):  # something of what was read must stop first
            return
        if self._share.protocol is GroupProtocol.EAGER and self._allocation:
            self._stop(self._allocation)
            self._allocation, self._received = Allocation(), None
        try:
            joined = self._client.join(_JOIN_SECONDS)
        except (ConfigError, RetriableError) as error:
            is_final = isinstance(error, ConfigError)
            self._say(logging.ERROR if is_final else logging.WARNING, "This worker is not in its group: %s" if is_final else "%s", error)
            self._rounds.failed += 1
            self._retry_at = self._threads.now() + _RETRY_SECONDS
        else:
            if joined is not None:
                self._take(joined)

    def _take(self, joined: Joined) -> None:
        """Carry out what the leader has decided."""
        assert self._work is not None
        protocol = GroupProtocol(joined.protocol)
        try:
            received = decode_assignment(joined.assignment)
        except DataError as error:
            self._refuse(joined, error)
            return
        if received.leader == joined.member_id and self._summary:
            log.info("Rebalance %d of the group, led by this worker: %s", joined.generation, self._summary)
        if received.revoked:
            self._stop(received.revoked)
        if protocol is GroupProtocol.EAGER and self._allocation:  # the round before was none of `eager`, which has everything stop first
            self._stop(self._allocation)
            self._allocation = Allocation()
        self._is_alone = received.leader == joined.member_id and self._members == 1
        self._leader_is_ours = joined.assignment.endswith(_OURS)
        has_lost = not frozenset(self._claimed) <= frozenset(self._allocation).union(received.revoked)
        self._allocation, self._received = merge(self._allocation, received, protocol), received
        given = Share(
            protocol,
            joined.generation,
            joined.member_id,
            received.leader,
            received.leader_url,
            received.config_offset,
            self._allocation,
            received.delay_ms,
            self._waiting if received.leader == joined.member_id else {},
        )
        self._due = self._threads.now() + received.delay_ms / 1000 if received.delay_ms > 0 else None
        if protocol is not self._share.protocol and protocol is not self._preferred:
            log.warning(
                "The group speaks the protocol %s, since at least one of its workers has connect.protocol=%s. %s",
                protocol.name.lower(),
                protocol.name.lower(),
                _CONSEQUENCES[protocol],
            )
        with self._changed:
            running = frozenset(self._share.work)
            self._share = replace(given, work=Allocation.of(item for item in self._allocation if item in running))
            self._changed.notify_all()
        # the client forgets what was asked of it during a round: a lease that ended after this worker had said what it runs
        if has_lost or not self._is_in_step(given, received):
            self.rejoin()
            return
        with self._changed:
            if self._holds:
                return  # what this worker has read since makes another round due; it starts nothing before
            self._share = given
            self._is_settled = not received.revoked and not (given.is_leader and self._revokes)
            self._changed.notify_all()
        self._completed()
        self._work.carry_out(given, received)
        if received.revoked or (given.is_leader and self._assignor.holds_back):
            self.rejoin()

    def _refuse(self, joined: Joined, error: DataError) -> None:
        """What the leader wants is not known. As after a round that failed, nothing stops."""
        self._rounds.failed += 1
        log.error(
            "The group's leader, the member %s, has sent an assignment that cannot be read. This worker keeps what it runs, starts "
            "nothing, and asks for another assignment in %g s. Only Connect workers may be members of the group: %s",
            joined.leader,
            self._unreadable_seconds,
            error,
        )
        self._due = self._threads.now() + self._unreadable_seconds

    def _completed(self) -> None:
        self._unsynced = 0
        ended = self._threads.now()
        self._rounds.note(ended - (ended if self._began_round is None else self._began_round))
        self._began_round = None

    def _is_in_step(self, given: Share, received: GroupAssignment) -> bool:
        """Whether this worker has read the configuration exactly as far as the leader had; it reads on when it has not."""
        assert self._work is not None
        offset = self._work.snapshot().offset
        failed = received.error != NO_ERROR
        if ((failed and given.is_leader) or offset < received.config_offset) and not self._read():
            return False
        offset = self._work.snapshot().offset
        if not failed and offset == received.config_offset:
            self._rounds_apart = 0
            return True
        self._say_apart(offset, given)
        return False

    def _say_apart(self, offset: int, given: Share) -> None:
        """Name workers that cannot come to an agreement: most likely they have other topics, or another cluster."""
        self._rounds_apart += 1
        if self._rounds_apart < _ROUNDS_APART:
            return
        who = ", ".join(self._ahead) if given.is_leader else given.leader_url
        self._say(
            logging.ERROR,
            "The group's workers do not see the same configuration topic: this worker's ends at offset %d, and that of %s at %d. Nothing "
            "new is started until they agree. Workers of one group.id must have the same bootstrap.servers and config.storage.topic.",
            offset,
            who,
            given.config_offset,
        )
        self._retry_at = self._threads.now() + _RETRY_SECONDS

    def _read(self) -> bool:
        """Read the configuration to its end. A worker that cannot within ``worker.sync.timeout.ms`` leaves the group for a while."""
        assert self._work is not None and self._client is not None
        try:
            self._work.refresh(self._timings.sync / 1000)
        except ConnectError as error:
            self._must_read = True
            seconds = self._unsynced_seconds()
            log.warning("The configuration could not be read, so this worker leaves the group for %.1f s: %s", seconds, error)
            self._client.leave("taking too long to read the log", _LEAVE_SECONDS)
            self._retry_at = self._threads.now() + seconds
            return False
        self._must_read = False
        return True

    def _unsynced_seconds(self) -> float:
        """How long to stay away, after one more failure to read (`DistributedHerder.backoff`, KAFKA-9849)."""
        if self._share.protocol is GroupProtocol.EAGER:
            return self._timings.unsync_backoff / 1000
        if self._unsynced >= _UNSYNCED_RETRIES:
            self._unsynced = 0
            if self._allocation:
                self._stop(self._allocation)
                self._forget()
        self._unsynced += 1
        # Kafka Connect does not wait at all where nothing delays rebalances
        return max(_UNSYNCED_SECONDS, self._timings.max_delay / 10_000 / (_UNSYNCED_RETRIES + 1 - self._unsynced))

    def _stop(self, work: Allocation) -> None:
        """Have work stopped and wait for that."""
        assert self._work is not None
        with self._changed:
            stopping = frozenset(work)
            self._share = replace(self._share, work=Allocation.of(item for item in self._share.work if item not in stopping))
        self._await(self._work.revoke(work))

    def _await(self, ended: threading.Event) -> None:
        """Wait until work has ended. Heartbeats continue meanwhile."""
        assert self._client is not None
        while not self._threads.wait(ended, self._turn_seconds) and not self._is_ending.is_set():
            self._client.serve()
            self._note_turn()

    def _lose(self) -> None:
        """The lease is over."""
        assert self._work is not None
        log.error(
            "This worker has not been able to show the group that it lives for %.1f s. Its sources have ended, its other tasks end now, "
            "and it joins the group again with nothing; other workers may run its work already.",
            self._timings.lease_seconds,
        )
        ended = self._work.abandon()
        self._forget()
        if self._is_alone:  # by its own word what runs here may run a little longer, without a heartbeat
            self._await(ended)
        self.rejoin()

    def _forget(self) -> None:
        self._allocation, self._received = Allocation(), None
        with self._changed:
            self._share = replace(self._share, work=Allocation())

    def _unsettle(self) -> None:
        with self._changed:
            self._is_settled = False

    def _say(self, level: int, text: str, *values: object) -> None:
        """Log what repeats every second now and then."""
        if self._threads.now() >= self._next_line:
            self._next_line = self._threads.now() + _LINE_SECONDS
            log.log(level, text, *values)

    # -- GroupHandler: on the client's thread

    def stirred(self) -> None:
        """Take the next turn now."""
        self._wake.set()

    def offers(self) -> Sequence[tuple[str, bytes]]:
        """Return this worker's state in every protocol that it speaks, all of one moment."""
        assert self._work is not None
        self._assignor.forget_owners()
        self._offered = snapshot = self._work.snapshot()
        self._claimed = self._allocation
        state = WorkerState(self._url, snapshot.offset, self._allocation, self._received, self._details)
        return [(str(protocol), encode_metadata(state, protocol)) for protocol in self._preferred.offered]

    def assign(self, leader: str, generation: int, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Divide the work."""
        assert self._work is not None and self._offered is not None
        spoken = GroupProtocol(protocol)
        states = _readable(members)
        snapshot = self._offered
        if snapshot.offset < max(state.config_offset for state in states.values()):
            snapshot = self._work.snapshot()
        self._ahead = [state.url for state in states.values() if state.config_offset > snapshot.offset]
        configured = Allocation.of(
            [*snapshot.connectors, *(TaskId(name, task) for name in snapshot.connectors for task in snapshot.tasks(name))]
        )
        assignments = self._assignor.assign(
            states,
            configured,
            leader=leader,
            config_offset=snapshot.offset,
            generation=generation,
            completed_generation=self._share.generation or -1,
            protocol=spoken,
            now_ms=int(self._threads.now() * 1000),
        )
        self._members = len(members)
        found = self._assignor.last_round if spoken is not GroupProtocol.EAGER else None
        self._waiting = {item: found.lost[item] for item in found.waiting} if found is not None else {}
        self._summary = found.summary() if found is not None else ""
        # those who stop something ask for another round
        self._revokes = self._assignor.holds_back or any(each.revoked for each in assignments.values())
        nothing = encode_assignment(replace(assignments[leader], assigned=Allocation(), revoked=Allocation()), spoken)
        return dict.fromkeys(members, nothing) | {
            member: encode_assignment(assignment, spoken) + (_OURS if states[member].details is not None else b"")
            for member, assignment in assignments.items()
        }


def _readable(members: Mapping[str, bytes]) -> dict[str, WorkerState]:
    """Return what members have said, without those that have said nothing that can be read. Kafka Connect's leaders fail there, and with
    them each round of the group; here such a member gets no work, and is gone for the others."""
    states: dict[str, WorkerState] = {}
    for member, offered in members.items():
        try:
            states[member] = decode_metadata(offered)
        except DataError as error:
            log.warning(
                "The member %s of the group has sent a state that cannot be read. It gets no work, and what it ran goes to the others as "
                "if it had left. Only Connect workers may be members of the group: %s",
                member,
                error,
            )
    return states
