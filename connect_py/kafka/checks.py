"""What a worker and its connectors need of Kafka's topics, as functions from facts to findings. Pure: a worker's start uses them, too."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from connect_py.api.doctor import Finding, Person

#: A record may have this size by the producer's default (`ProducerConfig.MAX_REQUEST_SIZE_CONFIG`).
MAX_REQUEST_BYTES = 1_048_576
#: A topic that forgets rows sooner loses some of a snapshot before a consumer that had to stop for a while has read them.
SHORTEST_RETENTION_MS = 3_600_000
#: Topics that a sentence names.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic that exists.

    Attributes:
        replicas: of its partition with the fewest.
        settings: empty where they may not be read.
    """

    partitions: int
    replicas: int
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicRole:
    """One of a worker's own topics.

    Attributes:
        prefix: of the worker properties that describe it, `config.storage.` …
        purpose: what it holds, in messages.
        single: it must have exactly one partition.
    """

    prefix: str
    purpose: str
    single: bool = False


CONFIGS: Final = TopicRole("config.storage.", "connector configurations", single=True)
OFFSETS: Final = TopicRole("offset.storage.", "source connector offsets")
STATUSES: Final = TopicRole("status.storage.", "connector and task statuses")

CLEANUP_POLICY, PARTITIONS = "kafka.internal.cleanup_policy", "kafka.internal.partitions"
#: What a start refuses; the rest is for brokers to refuse, one day.
START_CHECKS: Final = frozenset({CLEANUP_POLICY, PARTITIONS})


def alter_topic(servers: str, topic: str, setting: str) -> str:
    """Return the command that sets a topic's setting."""
    return (
        f"kafka-configs.sh --bootstrap-server {shlex.quote(servers)} --alter --entity-type topics "
        f"--entity-name {shlex.quote(topic)} --add-config {shlex.quote(setting)}"
    )


def internal_topic_findings(role: TopicRole, name: str, topic: TopicFacts, servers: str) -> Iterator[Finding]:
    """Check that one of the worker's topics keeps everything; a start does, too."""
    policies = {part.strip().lower() for part in topic.settings.get("cleanup.policy", "").split(",")} - {""}
    setting = f"{role.prefix}topic"
    if policies and policies != {"compact"}:
        yield Finding(
            CLEANUP_POLICY,
            f"Topic '{name}' supplied via the '{setting}' property is required to have 'cleanup.policy=compact' to guarantee "
            f"consistency and durability of {role.purpose}, but found the topic currently has "
            f"'cleanup.policy={','.join(sorted(policies))}'.",
            f"Continuing would likely result in eventually losing {role.purpose} and problems restarting this Connect cluster in the "
            "future.",
            Person.KAFKA_ADMIN,
            statements=(alter_topic(servers, name, "cleanup.policy=compact"),),
            advice=f"Or change the '{setting}' property in the Connect worker configurations to use a topic with 'cleanup.policy=compact'.",
        )
    if role.single and topic.partitions > 1:
        yield Finding(
            PARTITIONS,
            f"Topic '{name}' supplied via the '{setting}' property is required to have a single partition in order to "
            f"guarantee consistency of {role.purpose}, but found {topic.partitions} partitions.",
            "The worker does not start.",
            Person.YOU,
            advice=f"Set {setting} to the name of another topic; the worker creates it as it has to be.",
        )
    yield from _insync(name, topic, servers)


def missing_internal_topic_findings(role: TopicRole, name: str, replication: int, brokers: int) -> Iterator[Finding]:
    """Check that a topic which the worker will create can be.

    Args:
        replication: as the worker's properties say; -1 is the broker's default.
        brokers: how many there are.
    """
    if replication > brokers:
        yield Finding(
            "kafka.internal.replication",
            f"The topic '{name}' for {role.purpose} does not exist and cannot be created with {replication} replicas. {_brokers(brokers)}.",
            "The worker does not start.",
            Person.YOU,
            advice=f"Set {role.prefix}replication.factor={brokers} in the worker's properties.",
        )


def _brokers(count: int) -> str:
    return "There is 1 broker" if count == 1 else f"There are {count} brokers"


def _insync(name: str, topic: TopicFacts, servers: str) -> Iterator[Finding]:
    needed = topic.settings.get("min.insync.replicas", "")
    if needed.isdigit() and int(needed) > topic.replicas:
        yield Finding(
            "kafka.min_insync_replicas",
            f"The topic '{name}' has {topic.replicas} replicas, and min.insync.replicas={needed} asks for more.",
            "Brokers refuse every record.",
            Person.KAFKA_ADMIN,
            statements=(alter_topic(servers, name, f"min.insync.replicas={topic.replicas}"),),
        )


def data_topic_findings(name: str, topic: TopicFacts, servers: str, max_request: int) -> Iterator[Finding]:
    """Check a topic that a source writes its records to.

    Args:
        max_request: the producer's `max.request.size`.
    """
    yield from _insync(name, topic, servers)
    largest = topic.settings.get("max.message.bytes", "")
    if largest.isdigit() and int(largest) < max_request:
        yield Finding(
            "kafka.max_message_bytes",
            f"The topic '{name}' takes records of {largest} bytes at most (max.message.bytes); the producer sends up to {max_request}.",
            "The first larger row fails the task.",
            Person.KAFKA_ADMIN,
            statements=(alter_topic(servers, name, f"max.message.bytes={max(max_request, 1_048_588)}"),),
            severity="risk",
        )
    retention = topic.settings.get("retention.ms", "")
    if "delete" in topic.settings.get("cleanup.policy", "") and retention.isdigit() and int(retention) < SHORTEST_RETENTION_MS:
        yield Finding(
            "kafka.retention",
            f"The topic '{name}' forgets its records after {int(retention) // 1000} s (retention.ms).",
            "Rows of a snapshot are gone before a consumer that is stopped for a while has read them.",
            Person.KAFKA_ADMIN,
            statements=(alter_topic(servers, name, "retention.ms=604800000"),),
            severity="risk",
        )


def missing_topic_findings(
    missing: Sequence[str], brokers: int, *, replication: int | None, auto_creates: bool | None
) -> Iterator[Finding]:
    """Check that the topics of a source that do not exist will be created.

    Args:
        replication: with how many replicas the worker creates them; None when it creates none.
        auto_creates: whether brokers create what is missing; None when they do not say.
    """
    if not missing:
        return
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    listed = f"{', '.join(missing[:_SHOWN])}{more}"
    if replication is not None and replication > brokers:
        yield Finding(
            "kafka.topics.replication",
            f"{_brokers(brokers)}, and {replication} replicas are asked for of topics that do not exist: {listed}.",
            "The task fails with its first record.",
            Person.YOU,
            advice=f"Set topic.creation.default.replication.factor={brokers} in the connector's configuration.",
        )
    elif replication is None and auto_creates is False:
        yield Finding(
            "kafka.topics.missing",
            f"Nothing creates these topics, which do not exist: {listed}.",
            "The task fails with its first record: brokers have auto.create.topics.enable=false, and the connector no topic.creation.*.",
            Person.YOU,
            advice="Set topic.creation.default.replication.factor=-1 and topic.creation.default.partitions=-1 in the connector's "
            "configuration.",
        )


def missing_sink_topics(missing: Sequence[str], servers: str) -> Iterator[Finding]:
    """Check that the topics that a sink reads exist."""
    if missing:
        yield Finding(
            "kafka.topics.sink",
            f"The sink reads topics that do not exist: {', '.join(missing[:_SHOWN])}.",
            "It waits for them; a slip in a name looks the same.",
            Person.YOU,
            advice="Correct the property topics, or start the source that writes them.",
            severity="risk",
        )
