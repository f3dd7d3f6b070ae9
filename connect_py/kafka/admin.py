"""Administer the cluster (`TopicAdmin.java`, `SinkUtils.java`): topics, offsets of logs, consumer groups.

Every method blocks up to the admin's timeout and may be called from any thread. `RetriableError` means that the cluster did not answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as _TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from connect_py.api.record import TopicPartition
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connect_py.kafka.producer import error_text, java_class
from connect_py.kafka.settings import ClientKind, librdkafka_config

T = TypeVar("T")

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_MOVING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
_DENIED = frozenset({KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})
_NOT_ALLOWED = _DENIED | {KafkaError.UNSUPPORTED_VERSION}
#: What a client says of a login that no broker takes, or of a broker that it does not trust.
_NO_LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED})


_NO_ANSWER = frozenset({KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TRANSPORT})

#: A partition created a moment ago, or one whose broker went, has a leader again after some tens of milliseconds to seconds.
LEADER_WAIT_SECONDS = 0.02
#: One attempt at a request that can be repeated. What a dying broker took is never answered, and a client that saw a group's coordinator
#: die was seen to wait for it after the broker was back, where a new client found it at once.
ATTEMPT_SECONDS = 5.0


def _operations(answer: Any) -> frozenset[str] | None:
    """Return the operations that an answer names; None where it names none: a login that gets an answer may describe at least."""
    return None if not answer.authorized_operations else frozenset(each.name for each in answer.authorized_operations)


class ReplicationError(RetriableError):
    """A topic was not created because there are fewer brokers than replicas: for good, or while brokers are still starting."""


class GroupNotEmptyError(ConnectError):
    """A consumer group still has members, so its offsets cannot be changed."""


class KafkaAdmin:
    """An admin client.

    Args:
        properties: Java admin properties, e.g. `client.internal_properties(worker, "shared-admin")`.
        timeout: seconds that one method may take.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], *, timeout: float = 30.0) -> None:
        self._timeout = timeout
        self._servers = properties.get("bootstrap.servers", "")
        config = librdkafka_config(properties, ClientKind.ADMIN)
        # what goes wrong is raised by the call that it concerns; librdkafka's own lines would only repeat it on stderr
        config["log_level"] = 2
        problems: list[KafkaError] = []  # of this list, so that nothing but this object keeps the client
        config["error_cb"] = problems.append
        self._problems = problems
        self._config = config
        try:
            self._client = AdminClient(config)
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"The admin client's properties cannot be used: {error_text(error)}") from error

    def close(self) -> None:
        """Let the connections go; the client is freed with this object."""
        del self._client

    # -- cluster and topics

    def cluster_id(self) -> str:
        """Return the cluster's id. Raises RetriableError when no broker answers."""

        def attempt(seconds: float) -> str:
            return str(self._client.describe_cluster(request_timeout=seconds).result(seconds + 1).cluster_id)

        return self._repeat("describe the cluster", attempt)

    def topics(self) -> list[str]:
        """Return names of all topics but Kafka's own (`__…`)."""
        return [name for name in self._all_topics() if not name.startswith("__")]

    def brokers(self) -> list[int]:
        """Return the numbers of the brokers. Raises RetriableError when none answers."""

        def attempt(seconds: float) -> list[int]:
            return sorted(node.id for node in self._client.describe_cluster(request_timeout=seconds).result(seconds + 1).nodes)

        return self._repeat("describe the cluster", attempt)

    def broker_settings(self) -> dict[str, str]:
        """Return the settings of one of the brokers; empty when they may not be read."""
        return self._settings(ConfigResource.Type.BROKER, [str(self.brokers()[0])]).popitem()[1]

    def describe_topics(self, names: Iterable[str]) -> dict[str, int]:
        """Number of partitions of those topics that exist."""
        return {name: partitions for name, (partitions, _) in self.topic_layouts(names).items()}

    def topic_layouts(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the number of partitions, and of the replicas of the partition with the fewest, of those topics that exist."""
        wanted = sorted(set(names))
        if not wanted:
            return {}

        def attempt(seconds: float) -> dict[str, tuple[int, int]]:
            found: dict[str, tuple[int, int]] = {}
            # DescribeTopics, not the client's own metadata request: that one would let the broker create what is missing
            for name, future in self._client.describe_topics(TopicCollection(wanted), request_timeout=seconds).items():
                try:
                    partitions = future.result(seconds + 1).partitions
                    found[name] = len(partitions), min((len(each.replicas) for each in partitions), default=0)
                except KafkaException as error:
                    if error.args[0].code() not in _MISSING:
                        raise
            return found

        return self._repeat(f"describe the topics {', '.join(wanted)}", attempt)

    def create_topic(self, name: str, partitions: int, replication_factor: int, settings: Mapping[str, str] | None = None) -> bool:
        """Create a topic; -1 leaves partitions or replication to the broker.

        Returns:
            False when it existed already, or when this principal may not create topics (an existing or auto-created one is then assumed).

        Raises:
            RetriableError: no answer in time.
            ReplicationError: fewer brokers than replicas at the moment.
            ConnectError: the broker refuses the settings.
        """
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=dict(settings or {}))
        future = self._client.create_topics([topic], operation_timeout=self._timeout, request_timeout=self._timeout)[name]
        try:
            future.result(self._timeout + 1)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS or code in _NOT_ALLOWED:
                return False
            if code in _NO_ANSWER:
                raise RetriableError(
                    f"Timed out while checking for or creating topic(s) '{name}'. This could indicate a connectivity issue, unavailable "
                    "topic partitions, or if this is your first use of the topic it may have taken too long to create."
                ) from error
            cause = ConnectError(error_text(error))
            cause.java_name = java_class(error.args[0])
            text = f"Unable to create topic(s) '{name}': {cause}"
            if code == KafkaError.INVALID_REPLICATION_FACTOR:
                # brokers that are still starting are not counted yet (TopicAdmin.createTopicsWithRetry)
                raise ReplicationError(text) from cause
            raise ConnectError(text) from cause
        return True

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics; one that does not exist is no error.

        Raises:
            ConnectError: a broker refuses, or there is no answer in time.
        """
        futures = self._client.delete_topics(list(names), operation_timeout=self._timeout, request_timeout=self._timeout)
        for name, future in futures.items():
            try:
                future.result(self._timeout + 1)
            except KafkaException as error:
                if error.args[0].code() not in _MISSING:
                    raise self._failure(f"delete the topic '{name}'", error) from error

    def topic_settings(self, name: str) -> dict[str, str]:
        """Return a topic's settings; empty when they may not be read or the topic doesn't exist."""
        return self.settings_of_topics([name])[name]

    def settings_of_topics(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the settings of topics; empty ones when they may not be read or the topic doesn't exist."""
        return self._settings(ConfigResource.Type.TOPIC, names)

    def _settings(self, kind: ConfigResource.Type, names: Sequence[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(kind, name) for name in names]
        if not resources:
            return {}

        def attempt(seconds: float) -> dict[str, dict[str, str]]:
            found: dict[str, dict[str, str]] = {}
            for resource, future in self._client.describe_configs(resources, request_timeout=seconds).items():
                try:
                    found[resource.name] = {key: entry.value for key, entry in future.result(seconds + 1).items()}
                except KafkaException as error:
                    if error.args[0].code() not in _NOT_ALLOWED | _MISSING:
                        raise
                    found[resource.name] = {}
            return found

        return self._repeat(f"read the settings of {kind.name.lower()} '{', '.join(names)}'", attempt)

    # -- what this login may do

    def refused_login(self) -> str | None:
        """Return why brokers did not take this login, or this client did not trust them; None when they did, or did not answer at all."""
        self._client.poll(0)
        return next((error.str() for error in reversed(self._problems) if error.code() in _NO_LOGIN), None)

    def allowed_on_topics(self, names: Iterable[str]) -> dict[str, frozenset[str] | None]:
        """Return what this login may do on topics, by the names of `AclOperation`; None where brokers do not say (before Kafka 2.3).

        A topic that may not even be described has an empty set, whether it exists or not; others that do not exist are left out.
        """
        wanted = sorted(set(names))
        if not wanted:
            return {}

        def attempt(seconds: float) -> dict[str, frozenset[str] | None]:
            found: dict[str, frozenset[str] | None] = {}
            asked = self._client.describe_topics(TopicCollection(wanted), include_authorized_operations=True, request_timeout=seconds)
            for name, future in asked.items():
                try:
                    found[name] = _operations(future.result(seconds + 1))
                except KafkaException as error:
                    if error.args[0].code() in _DENIED:
                        found[name] = frozenset()
                    elif error.args[0].code() not in _MISSING:
                        raise
            return found

        return self._repeat(f"ask what may be done on the topics {', '.join(wanted)}", attempt)

    def creation_refused(self, names: Sequence[str]) -> list[str]:
        """Return those topics that this login may not create. None is created: brokers only check the request."""
        if not names:
            return []

        def attempt(seconds: float) -> list[str]:
            topics = [NewTopic(name, num_partitions=-1, replication_factor=-1) for name in names]
            asked = self._client.create_topics(topics, operation_timeout=seconds, request_timeout=seconds, validate_only=True)
            refused = []
            for name, future in asked.items():
                try:
                    future.result(seconds + 1)
                except KafkaException as error:
                    if error.args[0].code() in _NO_ANSWER:
                        raise
                    if error.args[0].code() in _DENIED:
                        refused.append(name)
            return refused

        return self._repeat(f"ask whether topics may be created ({', '.join(names)})", attempt)

    # -- offsets of logs

    def log_offsets(self, topics: Sequence[str] = (), pattern: str | None = None) -> dict[TopicPartition, tuple[int, int]]:
        """Return first and next (last stable) offset of every partition of the topics, or of all topics that a Java regex matches in full.

        Topics that don't exist are left out.
        """
        counts = self.describe_topics(topics)
        if pattern:
            matches = compile_java_regex(pattern).fullmatch
            counts |= {name: count for name, count in self._all_topics().items() if not name.startswith("__") and matches(name)}
        partitions = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
        begin = self._list_offsets(partitions, OffsetSpec.earliest(), may_miss=True)
        end = self._list_offsets(partitions, OffsetSpec.latest(), committed=True, may_miss=True)
        return {partition: (begin[partition], end[partition]) for partition in partitions if partition in begin and partition in end}

    def begin_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return first offsets, of all of them. Raises RetriableError."""
        return self._list_offsets(partitions, OffsetSpec.earliest())

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = False) -> dict[TopicPartition, int]:
        """Return next offsets, of all of them; with `committed` those after the last record that no open transaction holds back.

        Raises:
            RetriableError: a partition's leader did not answer in time.
        """
        return self._list_offsets(partitions, OffsetSpec.latest(), committed=committed)

    def _list_offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, *, committed: bool = False, may_miss: bool = False
    ) -> dict[TopicPartition, int]:
        deadline = time.monotonic() + self._timeout
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: dict[TopicPartition, int] = {}
        left = list(partitions)

        def attempt(seconds: float) -> list[TopicPartition]:
            """Fill `found`; those whose leader is moving are left."""
            moving = []
            request = {_TopicPartition(topic, number): spec for topic, number in left}
            for place, future in self._client.list_offsets(request, isolation_level=level, request_timeout=seconds).items():
                partition = TopicPartition(place.topic, place.partition)
                try:
                    found[partition] = future.result(seconds + 1).offset
                except KafkaException as error:
                    code = error.args[0].code()
                    if may_miss and code in _MISSING:
                        continue
                    if code not in _MISSING | _MOVING or time.monotonic() > deadline:
                        raise
                    moving.append(partition)
            return moving

        while left:
            left = self._repeat(f"read the offsets of topic(s) {', '.join(sorted({topic for topic, _ in left}))}", attempt)
            if left:
                time.sleep(LEADER_WAIT_SECONDS)
                # the client keeps asking with the leader epoch that it remembers until it reads the metadata again
                self._all_topics()
        return found

    # -- consumer groups

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return committed offsets of a group; empty for an unknown one."""
        request = [ConsumerGroupTopicPartitions(group)]

        def attempt(seconds: float) -> dict[TopicPartition, int]:
            future = self._client.list_consumer_group_offsets(request, request_timeout=seconds)[group]
            try:
                places = future.result(seconds + 1).topic_partitions
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return {}
                raise
            return {TopicPartition(place.topic, place.partition): place.offset for place in places if place.offset >= 0}

        return self._repeat(f"read the offsets of consumer group '{group}'", attempt)

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set committed offsets of a group without members; None forgets a partition's.

        Raises:
            GroupNotEmptyError: the group still has members; nothing was changed.
        """
        forget = [partition for partition, offset in offsets.items() if offset is None]
        keep = {partition: offset for partition, offset in offsets.items() if offset is not None}
        if forget:
            keep = self._without(group, forget) | keep
        if not keep:
            return
        request = [ConsumerGroupTopicPartitions(group, [_TopicPartition(p.topic, p.partition, offset) for p, offset in keep.items()])]
        future = self._client.alter_consumer_group_offsets(request, request_timeout=self._timeout)[group]
        try:
            for place in future.result(self._timeout + 1).topic_partitions:
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as error:
            raise self._group_failure(f"alter the offsets of consumer group '{group}'", error) from error

    def delete_group(self, group: str) -> None:
        """Forget a consumer group and its offsets; a missing one is fine. Raises GroupNotEmptyError."""
        future = self._client.delete_consumer_groups([group], request_timeout=self._timeout)[group]
        try:
            future.result(self._timeout + 1)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise self._group_failure(f"delete consumer group '{group}'", error) from error

    def _without(self, group: str, forget: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Delete the group and give what must be written again: the binding has no call for single partitions (OffsetDelete).

        Between the two calls the group has no offsets; a sink that keeps its own next to its data isn't touched by a crash there.
        """
        rest = {partition: offset for partition, offset in self.group_offsets(group).items() if partition not in forget}
        self.delete_group(group)
        return rest

    # -- answers

    def _all_topics(self) -> dict[str, int]:
        try:
            found = self._client.list_topics(timeout=self._timeout).topics
        except KafkaException as error:
            raise self._failure("list the topics", error) from error
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _repeat(self, what: str, attempt: Callable[[float], T]) -> T:
        """Ask a question, by a new client when an old one got no answer, until the admin's time is over.

        Args:
            attempt: asks once, waiting this many seconds; what it raises besides a lack of an answer is the answer.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return attempt(min(ATTEMPT_SECONDS, max(deadline - time.monotonic(), LEADER_WAIT_SECONDS)))
            except (KafkaException, FutureTimeoutError) as error:
                silent = isinstance(error, FutureTimeoutError) or error.args[0].code() in _NO_ANSWER
                if not silent or time.monotonic() + LEADER_WAIT_SECONDS > deadline:
                    raise self._failure(what, error) from error
            self._client = AdminClient(self._config)

    def _failure(self, what: str, error: BaseException) -> ConnectError:
        return RetriableError(f"Could not {what} of {self._servers} within {self._timeout:g} s: {error_text(error)}")

    def _group_failure(self, what: str, error: KafkaException) -> ConnectError:
        if error.args[0].code() in (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID):
            return GroupNotEmptyError(f"Could not {what}: it still has members. Nothing was changed.")
        return self._failure(what, error)
