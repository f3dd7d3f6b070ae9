"""A member of a Connect group: the only module that imports kafka-python (`WorkerCoordinator.java`, `AbstractCoordinator.java`).

librdkafka speaks the protocol type `consumer` alone, so this one client is another library's. Its coordinator finds the group's broker,
joins, sends heartbeats and leaves; a thread of its own (`_net.start`) runs the heartbeats. Private names of the library are used here and
nowhere else, its version is bounded, and a test says which names are missing.

Import this module late: it costs a third of a second.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import errors
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.heartbeat import Heartbeat
from kafka.metrics import Metrics
from kafka.metrics.stats import Total
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.admin.groups import DescribeGroupsRequest
from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from connect_py.api.group import GroupHandler, Joined
from connect_py.errors import ConfigError, RetriableError
from connect_py.kafka.security import security_settings
from connect_py.tls import private_file, read_pkcs12, verifying_context

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "connect"

#: A leader is sent what every member runs; the library's own bound is 1 MB.
_MAX_ANSWER_BYTES = 100 * 1024 * 1024

#: Heartbeats after a round: the next one is often asked for right away, and members that lose nothing learn of it by their heartbeats.
_QUICK_HEARTBEAT_MS = 250
_QUICK_SECONDS = 5.0

#: A broker that refuses credentials does so within milliseconds. An absent one may come.
_ATTEMPT_SECONDS = 2.0

#: How old the last answered heartbeat may be while this member waits for others, and how long one more may take.
_SHOW_LIFE_SECONDS = 1.0
_SHOW_LIFE_MS = 1000

#: How long one of several brokers is waited for.
_NODE_SECONDS = 1.0
#: `AclOperation.READ`, as answers have it (KIP-430).
_READ = 3

#: What does not pass by itself.
_REFUSED = (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError)
_FOR_GOOD = (
    errors.GroupAuthorizationFailedError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError,
    errors.GroupMaxSizeReachedError,
)


class KafkaGroupClient:
    """A `connect_py.api.group.GroupClient`.

    Args:
        properties: Java client properties of the worker.
        group: ``group.id``.
        session_ms: ``session.timeout.ms``.
        heartbeat_ms: ``heartbeat.interval.ms``.
        rebalance_ms: ``rebalance.timeout.ms``.
        clock: of `heard`.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str,
        *,
        session_ms: int,
        heartbeat_ms: int,
        rebalance_ms: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._settings = client_settings(properties)
        self._timings = {
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": heartbeat_ms,
            "max_poll_interval_ms": rebalance_ms,
            "retry_backoff_ms": int(properties.get("retry.backoff.ms", 100)),
            "request_timeout_ms": self._settings["request_timeout_ms"],
        }
        self._clock = clock
        self._client: Any = None
        self._coordinator: GroupCoordinator | None = None
        self._counts = Metrics()

    def connect(self, handler: GroupHandler, seconds: float) -> None:
        """Find the brokers. Raises ConfigError, RetriableError."""
        _quiet()
        deadline = time.monotonic() + seconds
        while True:
            counts = Metrics()
            client = KafkaNetClient(**self._settings, metrics=counts, metric_group_prefix="connect")
            _hear_last_words(client._manager)
            problems = _watch_connections(client._manager)
            client._net.start()
            try:
                client._manager.bootstrap(1000 * max(0.1, min(_ATTEMPT_SECONDS, deadline - time.monotonic())))
                break
            except errors.KafkaError as error:
                _close(client)
                for refusal in problems:
                    if isinstance(refusal, _REFUSED):
                        raise ConfigError(
                            f"The Kafka broker refuses this worker's credentials (security.protocol, sasl.*): {_text(refusal)}"
                        ) from error
                if time.monotonic() >= deadline:
                    servers = ",".join(self._settings["bootstrap_servers"])
                    raise RetriableError(f"No Kafka broker answered at {servers} within {seconds:g} s.") from error
            except BaseException:
                _close(client)
                raise
        del client._manager.get_connection  # the library's own again
        second = KafkaConnectionManager(client._net, **self._settings)
        _hear_last_words(second)
        self._client, self._counts = client, counts
        self._coordinator = GroupCoordinator(
            client,
            handler,
            self._clock,
            second,
            group_id=self._group,
            metrics=counts,
            api_version=client._manager.broker_version,
            **self._timings,
        )

    @property
    def needs_join(self) -> bool:
        """Whether there is a round to take part in."""
        return self._coordinator is not None and bool(self._coordinator.need_rejoin())

    @property
    def heard(self) -> float:
        """When the last answered heartbeat was sent; -inf while this is no member."""
        return float("-inf") if self._coordinator is None or not self._coordinator.is_member else self._coordinator.timed.heard

    def figures(self) -> Mapping[str, float]:
        """Return what rounds and heartbeats cost (`ConsumerCoordinatorMetrics.java`, `HeartbeatMetricsManager.java`)."""
        return {} if self._coordinator is None else self._coordinator.figures()

    def traffic(self) -> Mapping[str, Mapping[str, float]]:
        """Return what goes over the connections (`Selector.java`), by node; the text "" is all of them. Rates are over 30 to 60 s.

        Without heartbeats during rounds, which have connections of their own, and without logins: the library does not count these.
        """
        found: dict[str, dict[str, float]] = {}
        for name, metric in list(self._counts.metrics.items()):
            group, _, node = name.group.partition(".")
            # the first is about all nodes, and connections to servers whose number is not known yet are to nodes of these names
            if group == "connect-metrics" or (group == "connect-node-metrics" and not node.startswith("node-bootstrap")):
                found.setdefault(node, {})[name.name] = float(metric.value())
        return found

    def rejoin(self) -> None:
        """Have a round of the group."""
        if self._coordinator is not None:
            self._coordinator.request_rejoin()

    def serve(self) -> None:
        """Show that the member's thread lives."""
        assert self._coordinator is not None
        try:
            self._coordinator.poll_heartbeat()
        except errors.KafkaError as error:  # the next join begins new heartbeats
            log.warning("Heartbeats of the group %s ended: %s", self._group, _text(error))
            self._coordinator.request_rejoin()

    def join(self, seconds: float) -> Joined | None:
        """Take part in a round. Raises ConfigError, RetriableError."""
        assert self._coordinator is not None
        try:
            if not self._coordinator.ensure_active_group(timeout_ms=seconds * 1000):
                self._client._net.run(self._coordinator.show_life)
                return None
        except _FOR_GOOD as error:
            raise ConfigError(f"The Kafka broker does not let this worker into the group '{self._group}': {_text(error)}") from error
        except _REFUSED as error:
            raise ConfigError(f"The Kafka broker refuses this worker's credentials: {_text(error)}") from error
        except errors.UnknownError as error:
            raise RetriableError(
                f"The broker could not store the group '{self._group}' (UNKNOWN_SERVER_ERROR). A group is one record, with all that its "
                "workers have: where that is thousands of tasks, raise max.message.bytes of the topic __consumer_offsets."
            ) from error
        except errors.KafkaError as error:
            raise RetriableError(f"The group '{self._group}' could not be joined: {_text(error)}") from error
        return self._coordinator.take_joined()

    def dismiss(self, is_dead: Callable[[str, bytes], bool], seconds: float) -> Sequence[str]:
        """Have members leave whose processes are known to be dead. Raises RetriableError."""
        assert self._coordinator is not None
        try:
            return list(self._client._net.run(self._coordinator.dismiss, is_dead, seconds))
        except errors.KafkaError as error:
            raise RetriableError(f"The members of the group '{self._group}' could not be looked at: {_text(error)}") from error

    def join_twice_and_leave(self, reason: str, seconds: float) -> None:
        """See `GroupClient.join_twice_and_leave`. Raises RetriableError."""
        assert self._coordinator is not None
        try:
            self._client._net.run(self._coordinator.join_twice_and_leave, reason, seconds)
        except errors.KafkaError as error:
            raise RetriableError(f"The other workers did not join a round of the group '{self._group}': {_text(error)}") from error

    def leave(self, reason: str, seconds: float) -> None:
        """Leave the group."""
        if self._coordinator is not None:
            with contextlib.suppress(errors.KafkaError):
                self._coordinator.maybe_leave_group(reason, timeout_ms=seconds * 1000)

    def close(self) -> None:
        """Let the connections go."""
        if self._coordinator is not None:
            self._coordinator._close_heartbeat()
            with contextlib.suppress(errors.KafkaError, OSError, RuntimeError):
                self._client._net.run(self._coordinator._second.close)
        client, self._client, self._coordinator = self._client, None, None
        if client is not None:
            _close(client)


def group_rights(
    properties: Mapping[str, str], groups: Sequence[str], ids: Sequence[str], seconds: float
) -> tuple[dict[str, bool | None], list[str]]:
    """Ask what a login may do with groups and transactional ids.

    Every broker is asked about every group: to ask where a group's coordinator is would create the topic of the groups on a cluster that
    never had one.

    Returns:
        By group whether it may be joined, None where nobody says; and the ids that may not be used, as far as brokers say without using
        them: those that may not be described.

    Raises:
        ConfigError: a property cannot be used.
        RetriableError: no broker answered.
    """
    _quiet()
    client = KafkaNetClient(**client_settings(properties))
    _hear_last_words(client._manager)
    manager, found, refused = client._manager, dict[str, bool | None].fromkeys(groups), list[str]()

    async def ask() -> None:
        deadline = time.monotonic() + seconds
        for node in sorted(broker.node_id for broker in manager.cluster.brokers()) if groups else ():
            request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=True, max_version=5)
            limit = 1000 * min(_NODE_SECONDS, max(0.0, deadline - time.monotonic()))
            try:
                answer = await manager.wait_for(manager.send(request, node_id=node), limit)
            except errors.KafkaError as error:  # one that is down says nothing of its groups
                log.debug("The broker %s was not asked about groups: %s", node, _text(error))
                continue
            for group in answer.groups:
                if errors.for_code(group.error_code) is errors.GroupAuthorizationFailedError:
                    found[group.group_id] = False
                elif not group.error_code and group.authorized_operations is not None:
                    found[group.group_id] = _READ in group.authorized_operations
        if ids:  # any broker looks at rights before it looks for the id
            request = DescribeTransactionsRequest(transactional_ids=list(ids))
            answer = await manager.wait_for(manager.send(request), 1000 * max(_NODE_SECONDS, deadline - time.monotonic()))
            denied = errors.TransactionalIdAuthorizationFailedError
            refused.extend(each.transactional_id for each in answer.transaction_states if errors.for_code(each.error_code) is denied)

    client._net.start()
    try:
        manager.bootstrap(1000 * seconds)
        client._net.run(ask)
    except errors.KafkaError as error:
        raise RetriableError(f"Could not ask what may be done with groups within {seconds:g} s: {_text(error)}") from error
    finally:
        _close(client)
    return found, refused


class GroupCoordinator(BaseCoordinator):  # type: ignore[misc]  # the library has no types
    """The library's coordinator with Connect's protocol type. Its thread calls all but what `KafkaGroupClient` calls."""

    def __init__(
        self, client: Any, handler: GroupHandler, clock: Callable[[], float], second: Any, metrics: Metrics, **settings: Any
    ) -> None:
        self._figures = metrics
        super().__init__(client, metrics=metrics, metric_group_prefix="connect", **settings)
        for what in ("heartbeat", "join", "sync"):
            total = self._figures.metric_name(f"{what}-total", "connect-coordinator-metrics", "How many there were.")
            self._figures.sensor(f"{what}-latency").add(total, _Number())
        self.heartbeat = self.timed = _TimedHeartbeat(clock, **self.config)
        self._handler = handler
        self._clock = clock
        self._second = second
        self._second_coordinator: Any = None
        self._joined: Joined | None = None
        self._leader = ""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has not thrown this member out, as far as it has said."""
        return bool(self._generation.has_member_id()) and self.timed.heard > float("-inf")

    def figures(self) -> dict[str, float]:
        """See `GroupClient.figures`. The library counts; its time since the last heartbeat is by two different clocks."""
        found = {
            name.name: float(metric.value())
            for name, metric in list(self._figures.metrics.items())
            if name.group == "connect-coordinator-metrics"
        }
        return found | {"last-heartbeat-seconds-ago": time.monotonic() - self.timed.last_send}

    def take_joined(self) -> Joined | None:
        """Return the result of the last round, once."""
        joined, self._joined = self._joined, None
        return joined

    async def show_life(self) -> None:
        """Send a heartbeat while this member waits for the others of a round. A broker reads nothing more from a connection on which it
        owes the answer to a JoinGroup request, so it goes by another one."""
        if not self.is_member or self._clock() - self.timed.heard < _SHOW_LIFE_SECONDS:
            return
        try:
            sent = self._clock()
            node = await self._find_second_coordinator()
            answer = await self._second.wait_for(self._second.send(self._heartbeat(), node_id=node), _SHOW_LIFE_MS)
        except (errors.KafkaError, OSError) as error:
            log.debug("A heartbeat during a round was not answered: %s", _text(error))
            self._second_coordinator = None
            return
        if errors.for_code(answer.error_code) in (errors.NoError, errors.RebalanceInProgressError):
            self.timed.heard = max(self.timed.heard, sent)

    async def _find_second_coordinator(self) -> Any:
        if self._second_coordinator is None:
            await self._second.wait_for(self._second.bootstrap_async(_SHOW_LIFE_MS), _SHOW_LIFE_MS)
            request = FindCoordinatorRequest(key=self.group_id, key_type=0, coordinator_keys=[self.group_id])
            answer = await self._second.wait_for(self._second.send(request), _SHOW_LIFE_MS)
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code:
                raise errors.for_code(found.error_code)()
            self._second_coordinator = self._second.cluster.add_coordinator(found, CoordinatorType.GROUP, self.group_id)
            await self._second.wait_for(self._second.get_connection(self._second_coordinator).init_future, _SHOW_LIFE_MS)
        return self._second_coordinator

    async def join_group_async(self, timeout_ms: float | None = None) -> bool:
        """Take part in a round. One that has ended since the last call is taken as it is: the library begins another one in its place,
        for which all other members are waited for once more."""
        ended = self._ended_round()
        if ended is not None:
            self._join_task = self._manager.call_soon(_outcome, ended)
        return bool(await super().join_group_async(timeout_ms))

    def _ended_round(self) -> Any:
        """Return what came of a round that nobody has asked for yet; None where there is none."""
        return None if self._join_task is None or not self._join_task.is_done else self._join_task

    def reset_generation(self, *arguments: Any, **named: Any) -> None:
        """The coordinator knows this member, or its generation, no more."""
        if self._ended_round() is not None:
            self._join_task = None
        self.timed.heard = float("-inf")
        super().reset_generation(*arguments, **named)
        self._handler.stirred()

    def request_rejoin(self) -> None:
        """There is a round to take part in."""
        if self._ended_round() is not None:
            self._join_task = None
        super().request_rejoin()
        self._handler.stirred()

    async def dismiss(self, is_dead: Callable[[str, bytes], bool], seconds: float) -> list[str]:
        """See `GroupClient.dismiss`."""
        if not await self.ensure_coordinator_ready_async(timeout_ms=seconds * 1000):
            raise errors.CoordinatorNotAvailableError(self.group_id)
        request = DescribeGroupsRequest(groups=[self.group_id], include_authorized_operations=False, max_version=5)
        answer = await self._manager.wait_for(self._manager.send(request, node_id=self.coordinator_id), seconds * 1000)
        group = answer.groups[0]
        if group.error_code or group.protocol_type != PROTOCOL_TYPE:
            return []
        dead = [member.member_id for member in group.members if is_dead(member.client_id, _bytes(member.member_metadata))]
        for member_id in dead:
            leaving = self._leaving(member_id, "the worker was started again")
            await self._manager.wait_for(self._manager.send(leaving, node_id=self.coordinator_id), seconds * 1000)
        return dead

    async def join_twice_and_leave(self, reason: str, seconds: float) -> None:
        """See `GroupClient.join_twice_and_leave`. A broker reads a connection's next request when it has answered the one before, so a
        LeaveGroup request that is sent right after a JoinGroup request is read when the round has all its members: before its leader has
        divided the work. The others learn of the next round at once, by the answers to their SyncGroup requests."""
        deadline = time.monotonic() + seconds

        def left() -> float:
            return 1000 * max(0.0, deadline - time.monotonic())

        if not await self.ensure_coordinator_ready_async(timeout_ms=left()):
            raise errors.CoordinatorNotAvailableError(self.group_id)
        node = await self._find_second_coordinator()
        offers = self.group_protocols()
        new = await self._second.wait_for(self._second.send(self._joining("", offers), node_id=node), left())
        if errors.for_code(new.error_code) is not errors.MemberIdRequiredError:
            raise errors.for_code(new.error_code)()
        answers = self._join_and_leave(self._second, node, new.member_id, offers, reason, left())
        # a member that joins a settled group with what it had offered gets the old round again, and would leave before the new one
        while await self._is_settled(left()):
            if not left():
                raise errors.KafkaTimeoutError(self.group_id)
        answers += self._join_and_leave(self._manager, self.coordinator_id, self._generation.member_id, offers, reason, left())
        for answer in answers:
            error = errors.for_code((await self._manager.wait_for(answer, left())).error_code)
            if error is not errors.NoError:
                raise error()

    def _join_and_leave(
        self, manager: KafkaConnectionManager, node: Any, member: str, offers: Sequence[tuple[str, bytes]], reason: str, milliseconds: float
    ) -> list[Any]:
        requests = (self._joining(member, offers), self._leaving(member, reason))
        return [manager.send(request, node_id=node, request_timeout_ms=milliseconds) for request in requests]

    async def _is_settled(self, milliseconds: float) -> bool:
        """Return whether the group has no round. Raises KafkaError: this member is none of it."""
        answer = await self._manager.wait_for(self._manager.send(self._heartbeat(), node_id=self.coordinator_id), milliseconds)
        error = errors.for_code(answer.error_code)
        if error not in (errors.NoError, errors.RebalanceInProgressError):
            raise error()
        return error is errors.NoError

    def _heartbeat(self) -> HeartbeatRequest:
        generation = self._generation
        return HeartbeatRequest(
            group_id=self.group_id, generation_id=generation.generation_id, member_id=generation.member_id, group_instance_id=None
        )

    def _joining(self, member: str, offers: Sequence[tuple[str, bytes]]) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.config["session_timeout_ms"],
            rebalance_timeout_ms=self.config["max_poll_interval_ms"],
            member_id=member,
            group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocols=offers,
            max_version=7,
        )

    def _leaving(self, member: str, reason: str) -> LeaveGroupRequest:
        identity = LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=None, reason=reason)
        return LeaveGroupRequest(group_id=self.group_id, member_id=member, members=[identity])

    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return list(self._handler.offers())

    def _process_join_group_response(self, response: Any, send_time: float) -> Any:
        """The answer alone says who leads."""
        processed = super()._process_join_group_response(response, send_time)
        self._leader = response.leader
        return processed

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        offered = {member.member_id: _bytes(member.metadata) for member in members}
        return dict(self._handler.assign(leader_id, self._generation.generation_id, protocol, offered))

    async def _on_join_complete_async(self, generation: int, member_id: str, protocol: str, member_assignment_bytes: Any) -> None:
        """The lease of what runs begins with a heartbeat that was sent after the round."""
        self.timed.begin_quick()
        await self._do_heartbeat()
        self._joined = Joined(generation, member_id, protocol, _bytes(member_assignment_bytes), self._leader)


async def _outcome(ended: Any) -> Any:
    return await ended


class _Number(Total):  # type: ignore[misc]  # the library has no types
    """How often something was measured."""

    def record(self, config: Any, value: float, now: float) -> None:
        super().record(config, 1.0, now)


class _TimedHeartbeat(Heartbeat):  # type: ignore[misc]  # the library has no types
    """Remembers when the last answered heartbeat was sent, and sends them more often after a round."""

    def __init__(self, clock: Callable[[], float], **settings: Any) -> None:
        super().__init__(**settings)
        self._clock = clock
        self._sent = float("-inf")
        self._quick_until = float("-inf")
        self._usual_ms = self.config["heartbeat_interval_ms"]
        self.heard = float("-inf")

    def begin_quick(self) -> None:
        """A round is over."""
        self._quick_until = time.monotonic() + _QUICK_SECONDS
        self.config["heartbeat_interval_ms"] = min(self._usual_ms, _QUICK_HEARTBEAT_MS)

    def sent_heartbeat(self) -> None:
        self._sent = self._clock()
        if time.monotonic() > self._quick_until:
            self.config["heartbeat_interval_ms"] = self._usual_ms
        super().sent_heartbeat()

    def received_heartbeat(self) -> None:
        self.heard = max(self.heard, self._sent)
        super().received_heartbeat()


class _Forwarding(logging.Handler):
    """Shows the library's lines at DEBUG: what matters of them is raised, or said by the membership."""

    def emit(self, record: logging.LogRecord) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s", record.getMessage())


def _quiet() -> None:
    library = logging.getLogger("kafka")
    if not any(isinstance(handler, _Forwarding) for handler in library.handlers):
        library.addHandler(_Forwarding())
        library.propagate = False


def _hear_last_words(manager: Any) -> None:
    """Have connections read what a broker has sent before it closed them: the library drops that where it finds both at once, as on a busy
    machine, and a broker that refuses a login seems absent."""
    build = manager._build_transport

    async def build_and_change(*arguments: Any, **named: Any) -> Any:
        transport = await build(*arguments, **named)
        transport._sock_recv = data_first(transport._sock_recv)
        return transport

    manager._build_transport = build_and_change


def data_first(receive: Callable[[], tuple[bytes, BaseException | None]]) -> Callable[[], tuple[bytes, BaseException | None]]:
    """Return a function that gives data and the end of a connection one after the other, where `receive` gives both at once."""
    ends: list[BaseException] = []

    def received() -> tuple[bytes, BaseException | None]:
        if ends:
            return b"", ends[0]
        data, end = receive()
        if data and end is not None:
            ends.append(end)
            return data, None
        return data, end

    return received


def _watch_connections(manager: Any) -> Sequence[BaseException]:
    """Return a list of what connections fail of: the library tries others until the time is over, and says only that it is."""
    problems: list[BaseException] = []
    get_connection = manager.get_connection

    def watched(*arguments: Any, **named: Any) -> Any:
        connection = get_connection(*arguments, **named)
        if not connection.init_future.is_done:
            connection.init_future.add_errback(problems.append)
        return connection

    manager.get_connection = watched
    return problems


def _close(client: Any) -> None:
    with contextlib.suppress(errors.KafkaError, OSError, RuntimeError):
        client._net.run(client._manager.close)
    with contextlib.suppress(errors.KafkaError, OSError, RuntimeError):
        client._net.stop(timeout_ms=1000)
        client._net.close()


def _bytes(found: Any) -> bytes:
    return b"" if found is None else bytes(found)


def _text(error: BaseException) -> str:
    found = str(error).strip()
    return found or type(error).__name__


def client_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return kafka-python's settings of a connection, given Java's client properties.

    Raises:
        ConfigError: one of them cannot be used.
    """
    found: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in properties.get("bootstrap.servers", "localhost:9092").split(",")],
        "client_id": properties.get("client.id", "connect"),
        "receive_message_max_bytes": _MAX_ANSWER_BYTES,
    }
    numbers = (
        ("request.timeout.ms", 40_000),
        ("reconnect.backoff.ms", 50),
        ("reconnect.backoff.max.ms", 1_000),
        ("connections.max.idle.ms", 540_000),
        ("metadata.max.age.ms", 300_000),
    )
    for name, default in numbers:
        try:
            found[name.replace(".", "_")] = int(properties.get(name, default))
        except ValueError:
            raise ConfigError(f"Invalid value {properties[name]} for configuration {name}: Not a number of type INT") from None
    return found | _security(properties)


def _security(properties: Mapping[str, str]) -> dict[str, Any]:
    settings = security_settings(properties)
    protocol = str(settings["security.protocol"])
    found: dict[str, Any] = {"security_protocol": protocol}
    if protocol.endswith("SSL"):
        found["ssl_context"] = tls_context(settings)
        found["ssl_check_hostname"] = found["ssl_context"].check_hostname
    if protocol.startswith("SASL"):
        found["sasl_mechanism"] = settings["sasl.mechanism"]
        match settings["sasl.mechanism"]:
            case "GSSAPI":
                found["sasl_kerberos_service_name"] = settings["sasl.kerberos.service.name"]
            case "OAUTHBEARER":
                found["sasl_oauth_token_provider"] = _Tokens(settings)
            case _:
                found |= {"sasl_plain_username": settings["sasl.username"], "sasl_plain_password": settings["sasl.password"]}
    return found


def tls_context(settings: Mapping[str, object]) -> ssl.SSLContext:
    """Return the TLS of a connection to a broker, given librdkafka's settings (`security_settings`). Raises ConfigError."""
    context = verifying_context()
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    try:
        if "ssl.ca.pem" in settings:
            context = _trusting(context, cadata=str(settings["ssl.ca.pem"]).replace("\\n", "\n"))
        elif "ssl.ca.location" in settings:
            context = _trusting(context, cafile=str(settings["ssl.ca.location"]))
        password = str(settings["ssl.key.password"]) if "ssl.key.password" in settings else None
        if "ssl.keystore.location" in settings:
            store = read_pkcs12(Path(str(settings["ssl.keystore.location"])).read_bytes(), str(settings["ssl.keystore.password"]))
            _load_key(context, store.key.decode(), (store.certificate + store.others).decode(), None)
        elif "ssl.key.pem" in settings:
            _load_key(context, str(settings["ssl.key.pem"]), str(settings["ssl.certificate.pem"]), password)
        elif "ssl.key.location" in settings:
            context.load_cert_chain(str(settings["ssl.certificate.location"]), str(settings["ssl.key.location"]), password or _no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"A certificate or key of ssl.* cannot be used: {error}") from None
    return context


def _trusting(context: ssl.SSLContext, **where: str) -> ssl.SSLContext:
    """Trust these certificates and no others."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = context.check_hostname
    made.load_verify_locations(**where)
    return made


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted; set ssl.key.password")


def _load_key(context: ssl.SSLContext, key: str, certificates: str, password: str | None) -> None:
    """Load texts, which OpenSSL reads from files only."""
    file = private_file(f"{key}\n{certificates}\n".replace("\\n", "\n").encode())
    try:
        context.load_cert_chain(file, None, password or _no_password)
    finally:
        file.unlink()


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Tokens of OAUTHBEARER: fetched with client id and secret (RFC 6749, section 4.4), or Kafka's unsecured ones for tests."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__()
        self._settings = settings

    def token(self) -> str:
        """Return a token. Called on the client's thread when a connection is made, which waits for the endpoint."""
        endpoint = self._settings.get("sasl.oauthbearer.token.endpoint.url")
        return _unsecured_token(str(self._settings["sasl.oauthbearer.config"])) if endpoint is None else self._fetch(str(endpoint))

    def _fetch(self, endpoint: str) -> str:
        import base64
        import json
        import urllib.parse
        import urllib.request

        trusted = self._settings.get("https.ca.location")
        context = verifying_context(None if trusted is None else str(trusted))
        client = f"{self._settings.get('sasl.oauthbearer.client.id', '')}:{self._settings.get('sasl.oauthbearer.client.secret', '')}"
        form = {"grant_type": "client_credentials"}
        if "sasl.oauthbearer.scope" in self._settings:
            form["scope"] = str(self._settings["sasl.oauthbearer.scope"])
        headers = {"Authorization": "Basic " + base64.b64encode(client.encode()).decode()}
        request = urllib.request.Request(endpoint, urllib.parse.urlencode(form).encode(), headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
            return str(json.load(answer)["access_token"])


def _unsecured_token(config: str) -> str:
    """Return a JWT without a signature (`OAuthBearerUnsecuredLoginCallbackHandler.java`), given ``principal=…``."""
    import base64
    import json

    def part(content: Mapping[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now = time.time()
    claims = {"sub": config.removeprefix("principal="), "iat": now, "exp": now + 3600}
    return f"{part({'alg': 'none'})}.{part(claims)}."
