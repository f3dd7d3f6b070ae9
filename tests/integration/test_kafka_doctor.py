"""What the doctor finds of Kafka's topics, on a real broker: plant a fault, see it, run the printed command, see it gone."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api import Diagnosis
from connect_py.errors import ConfigError
from connect_py.herder.doctor.kafka_doctor import KafkaDoctor
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.checks import TopicFacts, data_topic_findings, missing_topic_findings
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector
from offsets.topics import OFFSET_TOPIC
from tests.fix_kafka import Kafka
from tests.kafka_commands import run

pytestmark = pytest.mark.services


def checks(diagnosis: Diagnosis) -> list[str]:
    return [finding.check for finding in diagnosis.findings]


def make(kafka: Kafka, name: str, partitions: int = 1, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(30)


def test_faults_of_a_connectors_topics_are_mended_by_the_printed_commands(kafka: Kafka, tag: str) -> None:
    topics = [f"{tag}.small", f"{tag}.short", f"{tag}.few"]
    make(kafka, topics[0], max_message_bytes="1000")
    make(kafka, topics[1], retention_ms="60000")
    make(kafka, topics[2], min_insync_replicas="2")

    def look() -> Diagnosis:
        doctor = KafkaDoctor({"bootstrap.servers": kafka.bootstrap}, FileStreamSourceConnector, {})
        assert doctor.cluster().findings == []
        return doctor.topics(topics)

    found = look()
    assert sorted(checks(found)) == ["kafka.max_message_bytes", "kafka.min_insync_replicas", "kafka.retention"]
    for finding in found.findings:
        run(*finding.statements)
    assert look().findings == []


def test_a_workers_topics_are_judged_as_its_start_judges_them(kafka: Kafka, tag: str) -> None:
    worker = {"bootstrap.servers": kafka.bootstrap, "group.id": tag, "offset.storage.topic": f"{tag}-offsets"}
    worker |= {"config.storage.topic": f"{tag}-configs", "config.storage.replication.factor": "1"}
    make(kafka, f"{tag}-offsets", cleanup_policy="delete")
    make(kafka, f"{tag}-configs", partitions=2, cleanup_policy="compact")
    found = KafkaDoctor(worker).cluster()
    assert checks(found) == ["kafka.internal.partitions", "kafka.internal.cleanup_policy"]
    with pytest.raises(ConfigError, match=r"required to have 'cleanup\.policy=compact'") as refused:
        OFFSET_TOPIC.ensure(worker, KafkaAdmin({"bootstrap.servers": kafka.bootstrap}))
    assert found.findings[1].statements[0] in str(refused.value)
    run(*found.findings[1].statements)
    assert checks(KafkaDoctor(worker).cluster()) == ["kafka.internal.partitions"]


def test_topics_that_a_sink_reads_and_nobody_writes_are_found(kafka: Kafka, tag: str) -> None:
    make(kafka, tag)
    doctor = KafkaDoctor({"bootstrap.servers": kafka.bootstrap}, FileStreamSinkConnector, {"topics": f"{tag}, {tag}-nothing"})
    found = doctor.cluster()
    assert checks(found) == ["kafka.topics.sink"] and f"{tag}-nothing" in found.findings[0].what


def test_topics_that_cannot_be_created_are_found(kafka: Kafka, tag: str) -> None:
    more = {"topic.creation.default.replication.factor": "3", "topic.creation.default.partitions": "1"}
    doctor = KafkaDoctor({"bootstrap.servers": kafka.bootstrap}, FileStreamSourceConnector, more)
    doctor.cluster()
    assert checks(doctor.topics([tag])) == ["kafka.topics.replication"]
    none = list(missing_topic_findings(["t"], 1, replication=None, auto_creates=False))
    assert [finding.check for finding in none] == ["kafka.topics.missing"]
    assert list(missing_topic_findings(["t"], 1, replication=None, auto_creates=None)) == []


def test_a_larger_producer_needs_larger_topics() -> None:
    usual = TopicFacts(1, 1, {"max.message.bytes": "1048588", "cleanup.policy": "delete", "retention.ms": "604800000"})
    assert list(data_topic_findings("t", usual, "b", 1_048_576)) == []
    (finding,) = data_topic_findings("t", usual, "b", 5_000_000)
    assert finding.statements[0].endswith("--add-config max.message.bytes=5000000")
