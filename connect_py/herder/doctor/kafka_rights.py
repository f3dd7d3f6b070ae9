"""What the logins of a worker and of a connector's tasks may do on Kafka: collects what each needs, asks brokers, and has it checked.

A worker, its producers, its consumers and its admin clients may each have a login of their own (`producer.sasl.*`,
`consumer.override.sasl.*` …). Those that share one are asked together. Nothing is changed: what would create a topic is asked with
`validateOnly`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from connect_py.api.config import ConfigType, parse_value
from connect_py.api.doctor import Diagnosis, Finding
from connect_py.api.storage import OWN_OFFSETS_TOPIC
from connect_py.config.connector import max_tasks
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connect_py.kafka import acl
from connect_py.kafka.acl import Login, TopicNeed
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import (
    ExactlyOnceSupport,
    connector_admin_properties,
    dead_letter_admin_properties,
    dead_letter_producer_properties,
    internal_properties,
    sink_consumer_properties,
    source_producer_properties,
    transactional_id,
)
from connect_py.task.dead_letters import dead_letter_topic
from connect_py.task.topics import topic_groups

#: A connector's tasks have ids of one form, so that some of them show what is allowed.
_MOST_IDS = 4
_LOGIN = ("security.", "sasl.", "ssl.")
_NO_START = "The worker does not start."
_NO_TASK = "The task fails with its first record."
_NO_SINK = "The sink's task fails at its start."
_NO_LETTER = "A record that is skipped leaves no dead letter; the task fails in its place."


@dataclass
class _Asked:
    """What is asked for one login."""

    properties: Mapping[str, str]
    roles: list[str] = field(default_factory=list)
    topics: dict[str, TopicNeed] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    ids: dict[str, tuple[Sequence[str], str]] = field(default_factory=dict)


class KafkaRights:
    """The needs of some logins; `diagnosis` asks.

    Args:
        seconds: what one request may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._logins: dict[tuple[tuple[str, str], ...], _Asked] = {}
        self._found: dict[str, Login] = {}

    def of_worker(self, worker: Mapping[str, str], topics: Sequence[str]) -> None:
        """Add what a worker of a group needs.

        Args:
            topics: its own ones.
        """
        asked = self._of("the worker", internal_properties(worker, "doctor"))
        for topic in topics:
            _add(asked, topic, TopicNeed((acl.READ, acl.WRITE), _NO_START, creates=True))
        group = worker["group.id"].strip()
        asked.groups[group] = _NO_START
        if _support(worker).has_transactional_leader:
            leader = f"connect-cluster-{group}"
            asked.ids[leader] = ([leader], "A worker that leads its group cannot write configurations.")

    def of_sink(self, worker: Mapping[str, str], name: str, config: Mapping[str, str]) -> None:
        """Add what the tasks of a sink need, but for topics that a pattern names."""
        properties = sink_consumer_properties(worker, name, 0, config)
        asked = self._of("the consumer", properties)
        for topic in parse_value("topics", config.get("topics", ""), ConfigType.LIST):
            _add(asked, topic, TopicNeed((acl.READ,), _NO_SINK))
        asked.groups[properties["group.id"]] = _NO_SINK
        self._of_dead_letters(worker, name, config)

    def of_source(self, worker: Mapping[str, str], name: str, config: Mapping[str, str], topics: Sequence[str]) -> None:
        """Add what the tasks of a source need.

        Args:
            topics: those that it writes to.
        """
        producer = self._of("the producer", source_producer_properties(worker, name, 0, config))
        by_admin = worker.get("topic.creation.enable", "true").strip().lower() == "true" and bool(topic_groups(config))
        for topic in topics:
            # without topic.creation.* a producer's first question has the broker create what is missing
            _add(producer, topic, TopicNeed((acl.WRITE,), _NO_TASK, creates=not by_admin))
        if by_admin:
            admin = self._of("the admin client", connector_admin_properties(worker, name, 0, config))
            for topic in topics:
                _add(admin, topic, TopicNeed((acl.DESCRIBE,), _NO_TASK, creates=True))
        self._of_dead_letters(worker, name, config)
        exactly_once = _support(worker) is ExactlyOnceSupport.ENABLED
        offsets = config.get(OWN_OFFSETS_TOPIC, "").strip() or (worker.get("offset.storage.topic", "").strip() if exactly_once else "")
        if offsets:
            _add(producer, offsets, TopicNeed((acl.WRITE,), "The task cannot keep its offsets."))
        if exactly_once:
            ids = [transactional_id(worker, name, number) for number in range(min(max_tasks(config), _MOST_IDS))]
            for asked in (producer, self._of("the admin client", connector_admin_properties(worker, name, 0, config))):
                asked.ids[ids[0][:-1]] = (ids, "With exactly.once.source.support=enabled the task does not start.")

    def _of_dead_letters(self, worker: Mapping[str, str], name: str, config: Mapping[str, str]) -> None:
        if topic := dead_letter_topic(config):
            producer = self._of("the producer of dead letters", dead_letter_producer_properties(worker, name, 0, config))
            _add(producer, topic, TopicNeed((acl.WRITE,), _NO_LETTER))
            admin = self._of("the admin client", dead_letter_admin_properties(worker, name, 0, config))
            _add(admin, topic, TopicNeed((acl.DESCRIBE,), _NO_LETTER, creates=True))

    def _of(self, role: str, properties: Mapping[str, str]) -> _Asked:
        login = {key: value for key, value in properties.items() if key == "bootstrap.servers" or key.startswith(_LOGIN)}
        asked = self._logins.setdefault(tuple(sorted(login.items())), _Asked(login))
        if role not in asked.roles:
            asked.roles.append(role)
        return asked

    def diagnosis(self) -> Diagnosis:
        """Ask, and return what is missing."""
        findings: list[Finding] = []
        unseen: list[str] = []
        for asked in self._logins.values():
            servers = asked.properties["bootstrap.servers"]
            at = f"What {' and '.join(asked.roles)} may do on Kafka at {servers}"
            try:
                admin = KafkaAdmin({**asked.properties, "client.id": "connect-doctor"}, timeout=self._seconds)
            except ConfigError as error:
                findings.append(acl.login_finding(asked.roles, servers, str(error)))
                unseen.append(f"{at}: {error}")
                continue
            try:
                topics, uncreatable = self._of_topics(asked, admin)
            except RetriableError as error:
                reason = admin.refused_login() or f"no broker answered it within {self._seconds:g} s"
                findings.append(acl.login_finding(asked.roles, servers, reason))
                unseen.append(f"{at}: {error}")
                continue
            finally:
                admin.close()
            groups, refused_ids, failure = self._of_groups(asked)
            if failure is not None:
                unseen.append(f"{at}: {failure}")
            name = acl.principal(asked.properties)
            login = Login(tuple(asked.roles), name, servers, topics, groups, uncreatable, refused_ids)
            self._found |= dict.fromkeys(asked.roles, login)
            findings += _findings(login, asked)
        return Diagnosis(findings, unseen=unseen)

    def missing_topics(self, role: str, names: Sequence[str]) -> list[str]:
        """Return the topics of which a role's login has been told that they do not exist."""
        return [name for name in names if role in self._found and name not in self._found[role].topics]

    def _of_topics(self, asked: _Asked, admin: KafkaAdmin) -> tuple[dict[str, frozenset[str] | None], frozenset[str]]:
        """Return what may be done on topics, and those that may not be created. Raises RetriableError."""
        admin.brokers()  # a login that needs no topic has to be taken as well
        topics = admin.allowed_on_topics(asked.topics)
        unknown = [topic for topic, need in asked.topics.items() if need.creates and topics.get(topic, frozenset()) == frozenset()]
        return topics, frozenset(admin.creation_refused(unknown))

    def _of_groups(self, asked: _Asked) -> tuple[Mapping[str, bool | None], frozenset[str], ConnectError | None]:
        """Return whether groups may be joined, the transactional ids that may not be used, and why that could not be asked."""
        if not asked.ids and not asked.groups:
            return {}, frozenset(), None
        from connect_py.kafka.group_client import group_rights  # which takes a third of a second to import

        ids = [id_ for ids, _ in asked.ids.values() for id_ in ids]
        try:
            groups, refused = group_rights(asked.properties, list(asked.groups), ids, self._seconds)
        except (ConfigError, RetriableError) as error:
            return {}, frozenset(), error
        return groups, frozenset(refused), None


def _add(asked: _Asked, topic: str, need: TopicNeed) -> None:
    known = asked.topics.get(topic)
    asked.topics[topic] = need if known is None else known.joined(need)


def _findings(login: Login, asked: _Asked) -> Iterator[Finding]:
    yield from acl.topic_findings(login, asked.topics)
    for group, why in asked.groups.items():
        yield from acl.group_findings(login, group, why)
    for prefix, (ids, why) in asked.ids.items():
        yield from acl.transaction_findings(login, ids, prefix, why)


def _support(worker: Mapping[str, str]) -> ExactlyOnceSupport:
    try:
        return ExactlyOnceSupport.of(worker)
    except ConfigError:  # which is a finding of its own
        return ExactlyOnceSupport.DISABLED
