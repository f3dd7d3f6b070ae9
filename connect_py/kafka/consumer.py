"""Be a member of a consumer group, as a sink task needs one (`KafkaConsumer` in `runtime/WorkerSinkTask.java`).

Differences from the bare client that callers can rely on:

- A partition's position is known as soon as it is assigned: the committed offset, else what `auto.offset.reset` says.
- A topic of several that does not exist yet is read a second or two after it was made, as by Java's consumer (librdkafka would look for it
  again after `metadata.max.age.ms`, five minutes).
- `topics.regex` is a Java regex that must match a topic's whole name; the list of topics is read again every `metadata.max.age.ms`.
- A rebalance runs inside `poll`, on its thread; what the listener raises there is raised by that `poll`.

`ConsumedRecord` is a record as Kafka holds it, before any converter has seen it.

`GroupCommitter` commits offsets of a consumer group without being a member of it, for sinks whose engine reads Kafka by itself. The commit
is a "simple" one (generation -1, no member id), which the coordinator accepts while the group has no members (`GroupCoordinator`,
`OffsetCommit` of a standalone consumer). `log_consumer` is for those that read a log without any group.

One thread uses an instance of either.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _TopicPartition

from connect_py.api.record import TopicPartition
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, FatalTaskError, RetriableError, noted
from connect_py.kafka.client_log import ClientLog
from connect_py.kafka.client_statistics import statistics_config
from connect_py.kafka.producer import error_text
from connect_py.kafka.settings import ClientKind, is_topic_name, librdkafka_config, reset_seconds

log = logging.getLogger(__name__)


class ConsumedRecord(NamedTuple):
    """One record as Kafka holds it.

    Attributes:
        timestamp: epoch milliseconds, None when there is none.
        timestamp_type: ``CreateTime``, ``LogAppendTime`` or None.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def consumed_record(message: Message) -> ConsumedRecord:
    """Return a message of librdkafka's that is no error."""
    kind, timestamp = message.timestamp()
    has_time = kind != TIMESTAMP_NOT_AVAILABLE and timestamp >= 0
    return ConsumedRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if has_time else None,
        ("CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime") if has_time else None,
        message.key(),
        message.value(),
        message.headers() or (),
    )


#: What librdkafka may fetch ahead of the task; its own bound of 64 MiB is more than a task's whole memory budget.
_QUEUE_KBYTES = 16_384

#: How long a rebalance may take to look up positions: Java's `default.api.timeout.ms`.
_LOOK_UP_SECONDS = 60.0

#: How soon topics are looked for again while `topics.regex` matches none.
_NO_TOPIC_SECONDS = 5.0

#: How soon named topics are looked for again that do not exist, and how many of them at a time. Java's: retry.backoff.max.ms.
_MISSING_SECONDS = 1.0
_MISSING_TOPICS = 10

#: Kafka's own topics, which a pattern never matches (`org.apache.kafka.common.internals.Topic`).
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

#: What will not pass by itself; other errors the client mends, and they are worth a line.
_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
    }
)


class RebalanceListener(Protocol):
    """Called inside `GroupConsumer.poll`."""

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Partitions came, to be read from these offsets."""
        ...

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions are about to go; their offsets can still be committed."""
        ...

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions are gone; another member may be reading them already."""
        ...


class GroupConsumer:
    """A member of a consumer group.

    Args:
        properties: Java consumer properties, `client.sink_consumer_properties`.
        topics: names to read.
        pattern: a Java regex instead of names.
        on_statistics: given librdkafka's statistics every few seconds, by `poll`.

    Raises:
        ConfigError: a property or the pattern cannot be used.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        topics: Sequence[str] = (),
        pattern: str | None = None,
        *,
        on_statistics: Callable[[str], None] | None = None,
    ) -> None:
        config: dict[str, Any] = librdkafka_config(properties, ClientKind.CONSUMER) | statistics_config(on_statistics)
        self._group = config.get("group.id", "")
        self._batch_size = _positive(properties, "max.poll.records", 500)
        self._topics = list(topics)
        self._matches = compile_java_regex(pattern).fullmatch if pattern else None
        self._look_seconds = _positive(properties, "metadata.max.age.ms", 300_000) / 1000
        self._next_look = float("inf")
        self._missing: deque[str] = deque()
        self._is_cooperative = (
            config.get("partition.assignment.strategy") == "cooperative-sticky" or config.get("group.protocol") == "consumer"
        )
        self._starts_at_end = config.get("auto.offset.reset") in ("latest", "end", "largest")
        self._may_reset = config.get("auto.offset.reset") != "error"
        self._starts_before = reset_seconds(properties.get("auto.offset.reset") or "")
        # the caller commits, and only what its task confirmed
        config |= {"enable.auto.commit": False, "enable.auto.offset.store": False, "on_commit": self._committed}
        # Java's default: a topic that does not exist yet is created where the broker allows it
        config.setdefault("allow.auto.create.topics", True)
        config.setdefault("queued.max.messages.kbytes", _QUEUE_KBYTES)
        if config.get("group.protocol") == "consumer":
            for name in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
                config.pop(name, None)
        try:
            self._client = Consumer(config, logger=ClientLog())
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"The consumer's properties cannot be used: {error_text(error)}") from error
        self._listener: RebalanceListener | None = None
        self._failure: BaseException | None = None
        self._commits: list[tuple[dict[TopicPartition, int], Callable[[Exception | None], None]]] = []
        self._assigned: set[TopicPartition] = set()
        self._complained: set[str] = set()

    # -- membership

    def subscribe(self, listener: RebalanceListener) -> None:
        """Join the group, at the next `poll`.

        Raises:
            RetriableError: the client does not take it.
            FatalTaskError: a name can be none of a topic; the broker would only say that there is no such topic.
        """
        invalid = [name for name in self._topics if self._matches is None and not is_topic_name(name)]
        if invalid:
            error = FatalTaskError(f"Invalid topics: [{', '.join(invalid)}]")
            error.java_name = "org.apache.kafka.common.errors.InvalidTopicException"
            raise noted(error, "A topic's name is made of letters, digits, '.', '_' and '-', 249 at most. Nothing was read.")
        self._listener = listener
        if self._matches is not None:
            self._topics = []
            self._look_for_topics()
        else:
            self._subscribe()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member reads now."""
        return frozenset(self._assigned)

    def close(self) -> None:
        """Leave the group; the listener is not called any more."""
        self._listener = None
        self._client.close()

    # -- reading

    def poll(self, timeout_seconds: float) -> list[ConsumedRecord]:
        """Return records that are there, at most ``max.poll.records``; waits for the first one. Rebalances and answers to commits run here.

        Raises:
            FatalTaskError: the group or a topic cannot be read.
            BaseException: what the listener raised.
        """
        if time.monotonic() >= self._next_look:
            self._look_for_missing() if self._matches is None else self._look_for_topics()
        messages: list[Message] = []
        try:
            first = self._client.poll(timeout_seconds)
            if first is not None:
                messages = [first, *self._client.consume(self._batch_size - 1, 0)] if self._batch_size > 1 else [first]
        except KafkaException as error:
            self._check(error.args[0])
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        records = []
        for message in messages:
            problem = message.error()
            if problem is not None:
                self._note_missing(problem, message.topic())
                self._check(problem)
            elif (message.topic(), message.partition()) in self._assigned:  # a rebalance may have taken it meanwhile
                records.append(consumed_record(message))
        return records

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch nothing of these for now; reading resumes where the last `poll` ended."""
        self._client.pause(_places(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`."""
        self._client.resume(_places(partitions))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read an assigned partition from this offset on. Raises RetriableError."""
        try:
            self._client.seek(_TopicPartition(partition.topic, partition.partition, offset))
        except KafkaException as error:
            raise RetriableError(
                f"Partition {partition.topic}-{partition.partition} could not be set back to {offset}: {error_text(error)}"
            ) from error

    # -- committing

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store next offsets; returns when the coordinator has them. Raises RetriableError."""
        try:
            for place in self._client.commit(offsets=_places(offsets, offsets), asynchronous=False) or ():
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as error:
            raise self._not_committed(error_text(error)) from error

    def commit_async(self, offsets: Mapping[TopicPartition, int], done: Callable[[Exception | None], None]) -> None:
        """Begin to store next offsets; `done` is called by a later `poll`, with None or the failure."""
        self._commits.append((dict(offsets), done))
        try:
            self._client.commit(offsets=_places(offsets, offsets), asynchronous=True)
        except KafkaException as error:
            self._commits.pop()
            done(self._not_committed(error_text(error)))

    def _committed(self, error: KafkaError | None, places: Sequence[Any]) -> None:
        """An answer to a commit. It names its offsets, so the answer to a commit given up earlier is not taken for another's."""
        answered = {TopicPartition(place.topic, place.partition): place.offset for place in places}
        problem = error or next((place.error for place in places if place.error is not None), None)
        for number, (offsets, done) in enumerate(self._commits):
            if offsets == answered:
                del self._commits[: number + 1]
                done(None if problem is None else self._not_committed(problem.str()))
                return

    def _not_committed(self, reason: str) -> RetriableError:
        return RetriableError(f"Offsets of consumer group '{self._group}' could not be committed: {reason}")

    # -- topics and rebalances

    def _subscribe(self) -> None:
        try:
            self._client.subscribe(self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        except KafkaException as error:
            raise RetriableError(f"Topics {', '.join(self._topics)} could not be subscribed to: {error_text(error)}") from error

    def _look_for_topics(self) -> None:
        assert self._matches is not None
        try:
            names = self._client.list_topics(timeout=10).topics
        except KafkaException as error:
            log.warning("The list of topics could not be read and is asked for again: %s", error_text(error))
            self._next_look = time.monotonic() + _NO_TOPIC_SECONDS
            return
        found = sorted(name for name in names if name not in _INTERNAL_TOPICS and self._matches(name))
        if found and found != self._topics:
            self._topics = found
            self._subscribe()
        elif not found and self._topics:
            self._topics = []
            self._client.unsubscribe()
        self._next_look = time.monotonic() + (self._look_seconds if found else min(_NO_TOPIC_SECONDS, self._look_seconds))

    def _note_missing(self, problem: KafkaError, topic: str | None) -> None:
        if problem.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and topic in self._topics and topic not in self._missing:
            self._missing.append(topic)
            self._next_look = min(self._next_look, time.monotonic() + _MISSING_SECONDS)

    def _look_for_missing(self) -> None:
        """Ask for topics that did not exist. Only a list of all topics makes librdkafka look at what it has subscribed to."""
        before = len(self._missing)
        try:
            for _ in range(min(before, _MISSING_TOPICS)):
                name = self._missing.popleft()
                if not self._client.list_topics(name, timeout=10).topics[name].partitions:
                    self._missing.append(name)
            if len(self._missing) < before:
                self._client.list_topics(timeout=10)
        except KafkaException as error:
            self._missing.append(name)
            log.warning("Whether topics exist now could not be found out and is asked again: %s", error_text(error))
        self._next_look = time.monotonic() + _MISSING_SECONDS if self._missing else float("inf")

    def _on_assign(self, _client: Consumer, places: Sequence[Any]) -> None:
        def work(listener: RebalanceListener) -> None:
            partitions = [TopicPartition(place.topic, place.partition) for place in places]
            positions = self._positions(partitions)
            assign = self._client.incremental_assign if self._is_cooperative else self._client.assign
            assign(_places(partitions, positions))
            self._assigned.update(partitions)
            listener.on_assigned(positions)

        self._rebalance(work)

    def _on_revoke(self, _client: Consumer, places: Sequence[Any]) -> None:
        self._take_away(places, lambda listener, partitions: listener.on_revoked(partitions))

    def _on_lost(self, _client: Consumer, places: Sequence[Any]) -> None:
        self._take_away(places, lambda listener, partitions: listener.on_lost(partitions))

    def _take_away(self, places: Sequence[Any], tell: Callable[[RebalanceListener, list[TopicPartition]], None]) -> None:
        partitions = [TopicPartition(place.topic, place.partition) for place in places]
        try:
            self._rebalance(lambda listener: tell(listener, partitions))
        finally:
            self._assigned.difference_update(partitions)

    def _rebalance(self, work: Callable[[RebalanceListener], None]) -> None:
        """The binding would drop the messages of a poll in which a callback raises: keep the failure until the poll is over."""
        if self._listener is None:
            return
        try:
            work(self._listener)
        except BaseException as error:  # noqa: BLE001
            self._failure = self._failure or error

    def _positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        found: dict[TopicPartition, int] = {}
        try:
            for place in self._client.committed(_places(partitions), timeout=_LOOK_UP_SECONDS):
                if place.error is not None:
                    raise KafkaException(place.error)
                partition = TopicPartition(place.topic, place.partition)
                if place.offset >= 0:
                    found[partition] = place.offset
                elif self._may_reset:
                    found[partition] = self._first_position(place)
                else:
                    raise FatalTaskError(
                        f"Undefined offset with no reset policy for partition {place.topic}-{place.partition}: consumer group "
                        f"'{self._group}' has committed none and auto.offset.reset is none. Nothing was read."
                    )
        except KafkaException as error:
            raise RetriableError(f"Positions of consumer group '{self._group}' could not be read: {error_text(error)}") from error
        return found

    def _first_position(self, place: Any) -> int:
        """Return where to begin where the group has committed nothing. Raises KafkaException."""
        low, high = self._client.get_watermark_offsets(place, timeout=_LOOK_UP_SECONDS)
        if self._starts_before is None:
            return int(high if self._starts_at_end else low)
        moment = max(0, int((time.time() - self._starts_before) * 1000))
        (found,) = self._client.offsets_for_times([_TopicPartition(place.topic, place.partition, moment)], timeout=_LOOK_UP_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        return int(found.offset if found.offset >= 0 else high)

    def _check(self, error: KafkaError) -> None:
        """Raise for what will not pass by itself; mention the rest once."""
        code = error.code()
        if error.fatal() or code in _REFUSED:
            raise FatalTaskError(
                f"Consumer group '{self._group}' cannot read its topics: {error.str()} ({error.name()}). Offsets stand at the last commit."
            )
        if error.name() not in self._complained:
            self._complained.add(error.name())
            log.warning("Reading as consumer group '%s' is held up: %s (%s)", self._group, error.str(), error.name())


def _positive(properties: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(1, int(properties.get(name, default)))
    except ValueError:
        raise ConfigError(f"Invalid value {properties[name]} for configuration {name}: Not a number of type INT") from None


def _places(partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int] | None = None) -> list[Any]:
    if offsets is None:
        return [_TopicPartition(topic, number) for topic, number in partitions]
    return [_TopicPartition(topic, number, offsets[TopicPartition(topic, number)]) for topic, number in partitions]


#: A member's settings, which a client that never joins its group must not carry.
_OF_MEMBERS = ("group.instance.id", "group.protocol", "group.remote.assignor")


def lone_consumer(properties: Mapping[str, str], settings: Mapping[str, Any], logger: ClientLog | None = None) -> Consumer:
    """Return a client that joins no group: its user commits, or assigns partitions.

    Args:
        properties: Java consumer properties.
        settings: librdkafka's own, which win over them; with ``group.id``, for which it asks in any case.

    Raises:
        ConfigError: a property that cannot be used.
    """
    config = librdkafka_config(properties, ClientKind.CONSUMER) | {"enable.auto.commit": False, **settings}
    for name in _OF_MEMBERS:
        config.pop(name, None)
    try:
        return Consumer(config) if logger is None else Consumer(config, logger=logger)
    except (KafkaException, ValueError) as error:
        raise ConfigError(f"The consumer's properties cannot be used: {error_text(error)}") from error


def log_consumer(properties: Mapping[str, str], settings: Mapping[str, Any]) -> Consumer:
    """Return a lone consumer that reads committed records, unless the properties say otherwise, and says where partitions end.

    Raises as `lone_consumer`.
    """
    reading = {
        "group.id": "connect-py-reader",
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,  # also behind records that are not given out, as those of commits
        "isolation.level": properties.get("isolation.level", "read_committed"),
    }
    return lone_consumer(properties, {**reading, **settings}, ClientLog())


#: What the client mends by itself.
_PASSING = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE})


def is_passing(error: KafkaError) -> bool:
    """Return whether a reader need only wait: the client mends what is wrong."""
    return error.code() in _PASSING or error.retriable()


class GroupCommitter:
    """Commits and reads a group's offsets.

    Args:
        properties: Java consumer properties, `client.sink_consumer_properties`.
        group: the consumer group.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self.group = group
        # this client is never polled, so librdkafka's lines would pile up in its queue; what goes wrong is raised by the call
        self._client = lone_consumer(properties, {"group.id": group, "log_level": 2})

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store next offsets; returns when the coordinator has them. Raises RetriableError."""
        if not offsets:
            return
        places = [_TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        try:
            results = self._client.commit(offsets=places, asynchronous=False)
            for place in results:
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as error:
            raise RetriableError(f"Offsets of consumer group '{self.group}' could not be committed: {error_text(error)}") from error

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = 30.0) -> dict[TopicPartition, int]:
        """Return committed offsets of those partitions that have one. Raises RetriableError."""
        if not partitions:
            return {}
        try:
            places = self._client.committed([_TopicPartition(topic, number) for topic, number in partitions], timeout=timeout)
        except KafkaException as error:
            raise RetriableError(f"Offsets of consumer group '{self.group}' could not be read: {error_text(error)}") from error
        return {TopicPartition(place.topic, place.partition): place.offset for place in places if place.offset >= 0}

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()
