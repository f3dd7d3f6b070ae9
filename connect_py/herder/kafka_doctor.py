"""What the worker and one connector need of Kafka: reads the facts of the brokers and of topics, and has them checked.

It uses one admin client of its own, with a time limit of a few seconds, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_py.api import Connector, SinkConnector
from connect_py.api.config import ConfigType, parse_value
from connect_py.api.doctor import Diagnosis, Finding, Person
from connect_py.errors import ConfigError, RetriableError
from connect_py.kafka import checks
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.checks import TopicFacts
from connect_py.kafka.client import internal_properties
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
            return Diagnosis([_unreached(f"No Kafka broker answered at {self._servers}.")], unseen=[f"{at}: {error}"])
        findings = self._internal(self._admin)
        if self._connector is not None and issubclass(self._connector, SinkConnector):
            names = parse_value("topics", self._config.get("topics", ""), ConfigType.LIST)
            existing = self._admin.describe_topics(names)
            findings += checks.missing_sink_topics([name for name in names if name not in existing], self._servers)
        return Diagnosis(findings, looked_at=[f"{at}, brokers: {self._brokers}"])

    def _internal(self, admin: KafkaAdmin) -> list[Finding]:
        if "group.id" not in self._worker:  # a standalone worker has no topics of its own
            return []
        named = {role: self._worker.get(f"{role.prefix}topic", "").strip() for role in (checks.CONFIGS, checks.OFFSETS, checks.STATUSES)}
        facts = self._facts(admin, [name for name in named.values() if name])
        findings: list[Finding] = []
        for role, name in named.items():
            if name in facts:
                findings += checks.internal_topic_findings(role, name, facts[name], self._servers)
            elif name:
                text = self._worker.get(f"{role.prefix}replication.factor", "").strip() or "3"
                replication = int(text) if text.lstrip("-").isdigit() else -1
                findings += checks.missing_internal_topic_findings(role, name, replication, self._brokers)
        return findings

    def topics(self, names: Sequence[str]) -> Diagnosis:
        """Look at the topics that a source will write to. Raises RetriableError, ConfigError."""
        assert self._admin is not None
        facts = self._facts(self._admin, names)
        producer = {
            **{name.removeprefix("producer."): value for name, value in self._worker.items() if name.startswith("producer.")},
            **{
                name.removeprefix("producer.override."): value
                for name, value in self._config.items()
                if name.startswith("producer.override.")
            },
        }
        size = producer.get("max.request.size", "")
        largest = int(size) if size.isdigit() else checks.MAX_REQUEST_BYTES
        findings = [finding for name, topic in facts.items() for finding in checks.data_topic_findings(name, topic, self._servers, largest)]
        missing = [name for name in names if name not in facts]
        if missing:
            creates = self._worker.get("topic.creation.enable", "true").strip().lower() == "true"
            groups = topic_groups(self._config) if creates else []
            replication = (
                max((next(g for g in groups if g.matches(name)).replication_factor for name in missing), default=-1) if groups else None
            )
            answer = self._admin.broker_settings().get("auto.create.topics.enable")
            auto_creates = None if answer is None else answer.lower() == "true"
            findings += checks.missing_topic_findings(missing, self._brokers, replication=replication, auto_creates=auto_creates)
        return Diagnosis(findings, looked_at=[f"Topics of the connector: {len(facts)} exist, {len(missing)} do not"])

    def _facts(self, admin: KafkaAdmin, names: Sequence[str]) -> dict[str, TopicFacts]:
        layouts = admin.topic_layouts(names)
        settings = admin.settings_of_topics(list(layouts))
        return {name: TopicFacts(partitions, replicas, settings.get(name, {})) for name, (partitions, replicas) in layouts.items()}


def _unreached(text: str) -> Finding:
    return Finding(
        "kafka.connection",
        text,
        "The worker does not start, and tasks send nothing.",
        Person.YOU,
        advice="Check bootstrap.servers, and that the brokers run and security.protocol, sasl.* and ssl.* suit them.",
    )
