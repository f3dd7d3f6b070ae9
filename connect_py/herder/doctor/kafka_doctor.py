"""What the worker and one connector need of Kafka: reads the facts of the brokers and of topics, and has them checked.

It uses one admin client of its own, with a time limit of a few seconds, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_py.api import Connector, SinkConnector
from connect_py.api.config import ConfigType, parse_value
from connect_py.api.doctor import Diagnosis, Finding, Person
from connect_py.errors import ConfigError, RetriableError
from connect_py.herder.doctor.kafka_rights import KafkaRights
from connect_py.kafka import acl, checks
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.checks import TopicFacts
from connect_py.kafka.client import internal_properties, source_producer_properties
from connect_py.task.topics import topic_groups

#: What one request may take.
LIMIT_SECONDS = 5.0


class KafkaDoctor:
    """Looks at one worker's Kafka. `cluster` comes before `topics`.

    Args:
        worker: the worker's properties.
        connector: the connector's class; None for the worker alone.
        config: the connector's configuration.
        seconds: what one request may take.
    """

    def __init__(
        self,
        worker: Mapping[str, str],
        connector: type[Connector] | None = None,
        config: Mapping[str, str] | None = None,
        *,
        seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._worker = worker
        self._connector = connector
        self._config = config or {}
        self._seconds = seconds
        self._servers = worker.get("bootstrap.servers", "localhost:9092")
        self._brokers = 0
        self._admin: KafkaAdmin | None = None

    def cluster(self) -> Diagnosis:
        """Look at the brokers, at the worker's own topics, and at those that a sink reads. Raises RetriableError."""
        at = f"Kafka at {self._servers}"
        try:
            self._admin = KafkaAdmin(internal_properties(self._worker, "doctor"), timeout=self._seconds)
            self._brokers = len(self._admin.brokers())
        except ConfigError as error:
            return Diagnosis([_unreached(str(error))], unseen=[f"{at}: {error}"])
        except RetriableError as error:
            reason = self._admin.refused_login() if self._admin is not None else None
            finding = _unreached(f"No Kafka broker answered at {self._servers}.")
            if reason is not None:
                finding = acl.login_finding(["the worker"], self._servers, reason)
            return Diagnosis([finding], unseen=[f"{at}: {reason or error}"])
        rights, own = KafkaRights(self._seconds), self._own_topics()
        if "group.id" in self._worker:
            rights.of_worker(self._worker, list(own.values()))
        is_sink = self._connector is not None and issubclass(self._connector, SinkConnector)
        if is_sink:
            rights.of_sink(self._worker, self._name, self._config)
        allowed = rights.diagnosis()
        findings = [*self._internal(self._admin, own), *allowed.findings]
        if is_sink:
            names = parse_value("topics", self._config.get("topics", ""), ConfigType.LIST)
            findings += checks.missing_sink_topics(rights.missing_topics("the consumer", names), self._servers)
        return Diagnosis(findings, looked_at=[f"{at}, brokers: {self._brokers}"], unseen=allowed.unseen)

    @property
    def _name(self) -> str:
        return self._config.get("name", "")

    def _own_topics(self) -> dict[checks.TopicRole, str]:
        if "group.id" not in self._worker:  # a standalone worker has no topics of its own
            return {}
        named = {role: self._worker.get(f"{role.prefix}topic", "").strip() for role in (checks.CONFIGS, checks.OFFSETS, checks.STATUSES)}
        return {role: name for role, name in named.items() if name}

    def _internal(self, admin: KafkaAdmin, named: Mapping[checks.TopicRole, str]) -> list[Finding]:
        facts, missing = self._facts(admin, list(named.values()))
        findings: list[Finding] = []
        for role, name in named.items():
            if name in facts:
                findings += checks.internal_topic_findings(role, name, facts[name], self._servers)
            elif name in missing:
                text = self._worker.get(f"{role.prefix}replication.factor", "").strip() or "3"
                replication = int(text) if text.lstrip("-").isdigit() else -1
                findings += checks.missing_internal_topic_findings(role, name, replication, self._brokers)
        return findings

    def topics(self, names: Sequence[str]) -> Diagnosis:
        """Look at the topics that a source will write to. Raises RetriableError, ConfigError."""
        assert self._admin is not None
        rights = KafkaRights(self._seconds)
        rights.of_source(self._worker, self._name, self._config, names)
        allowed = rights.diagnosis()
        facts, missing = self._facts(self._admin, names)
        producer = source_producer_properties(self._worker, self._name, 0, self._config)
        size = producer.get("max.request.size", "")
        largest = int(size) if size.isdigit() else checks.MAX_REQUEST_BYTES
        findings = [finding for name, topic in facts.items() for finding in checks.data_topic_findings(name, topic, self._servers, largest)]
        if missing:
            creates = self._worker.get("topic.creation.enable", "true").strip().lower() == "true"
            groups = topic_groups(self._config) if creates else []
            replication = (
                max((next(g for g in groups if g.matches(name)).replication_factor for name in missing), default=-1) if groups else None
            )
            answer = self._admin.broker_settings().get("auto.create.topics.enable")
            auto_creates = None if answer is None else answer.lower() == "true"
            findings += checks.missing_topic_findings(missing, self._brokers, replication=replication, auto_creates=auto_creates)
        seen = [f"Topics of the connector: {len(facts)} exist, {len(missing)} do not"]
        return Diagnosis([*findings, *allowed.findings], looked_at=seen, unseen=allowed.unseen)

    def _facts(self, admin: KafkaAdmin, names: Sequence[str]) -> tuple[dict[str, TopicFacts], list[str]]:
        """Return the facts of topics, and those that do not exist. What the worker may not see is in neither."""
        allowed = admin.allowed_on_topics(names)
        layouts = admin.topic_layouts([name for name, operations in allowed.items() if operations != frozenset()])
        settings = admin.settings_of_topics(list(layouts))
        facts = {name: TopicFacts(partitions, replicas, settings.get(name, {})) for name, (partitions, replicas) in layouts.items()}
        return facts, [name for name in names if name not in allowed]


def _unreached(text: str) -> Finding:
    return Finding(
        "kafka.connection",
        text,
        "The worker does not start, and tasks send nothing.",
        Person.YOU,
        advice="Check bootstrap.servers, and that the brokers run and security.protocol, sasl.* and ssl.* suit them.",
    )
