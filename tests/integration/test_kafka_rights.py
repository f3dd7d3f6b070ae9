"""What the doctor finds of rights on Kafka, on a broker with an authorizer: nothing is allowed, run the printed commands as its
administrator, see the findings gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from connect_py.api import Diagnosis, Finding, Person
from connect_py.herder.doctor.kafka_doctor import KafkaDoctor
from connect_py.kafka.acl import Login
from connect_py.kafka.group_client import group_rights
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector
from tests.fix_kafka import GuardedKafka, Kafka
from tests.integration.test_kafka_doctor import make
from tests.kafka_commands import run
from tests.waiting import eventually

pytestmark = [pytest.mark.services, pytest.mark.long]

CREATES = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}


def worker_of(kafka: GuardedKafka, tag: str, **more: str) -> dict[str, str]:
    """A worker's properties; its producers and consumers have logins of their own."""
    own = {f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")}
    own |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    own |= {name.replace("_", "."): value for name, value in more.items()}
    logins = kafka.login("worker") | kafka.login("writer", "producer.") | kafka.login("reader", "consumer.")
    return {"group.id": tag, **own, **logins}


def checks(findings: Sequence[Finding]) -> list[str]:
    return sorted(finding.check for finding in findings)


def topics_of(kafka: GuardedKafka) -> set[str]:
    return set(AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=60).topics)


def repair(kafka: GuardedKafka, diagnosis: Diagnosis) -> None:
    for finding in diagnosis.findings:
        assert finding.who is Person.KAFKA_ADMIN and finding.statements and finding.why and finding.role, finding
        for statement in finding.statements:
            run(statement, kafka.bootstrap)


def look(worker: Mapping[str, str], config: Mapping[str, str], topics: Sequence[str]) -> Diagnosis:
    """Everything about a source."""
    doctor = KafkaDoctor(worker, FileStreamSourceConnector, config)
    cluster, own = doctor.cluster(), doctor.topics(topics)
    assert [*cluster.unseen, *own.unseen] == []
    return Diagnosis([*cluster.findings, *own.findings])


def test_all_rights_of_a_worker_and_an_exactly_once_source_are_found_and_given(guarded_kafka: GuardedKafka, tag: str) -> None:
    worker = worker_of(guarded_kafka, tag, exactly_once_source_support="enabled")
    config = {"name": "lines", "tasks.max": "2", **CREATES}
    make(Kafka(guarded_kafka.bootstrap), f"{tag}-there")
    before = topics_of(guarded_kafka)
    found = look(worker, config, [f"{tag}-there", f"{tag}-missing"])
    assert [(finding.check, finding.what.partition(" (")[0]) for finding in found.findings] == [
        ("kafka.acl.topics", "User:worker"),  # its three topics
        ("kafka.acl.group", "User:worker"),
        ("kafka.acl.transactions", "User:worker"),  # as a leader
        ("kafka.acl.topics", "User:writer"),  # the data
        ("kafka.acl.topics", "User:writer"),  # the offsets, which are part of its transactions
        ("kafka.acl.transactions", "User:writer"),
        ("kafka.acl.topics", "User:worker"),  # to create the missing ones
        ("kafka.acl.transactions", "User:worker"),  # to fence the producers of before
    ]
    assert GuardedKafka.PASSWORD not in str(found)
    repair(guarded_kafka, found)
    eventually(lambda: look(worker, config, [f"{tag}-there", f"{tag}-missing"]).findings == [], "the rights")
    assert topics_of(guarded_kafka) == before, "the doctor creates nothing"


def test_single_rights_are_told_apart(guarded_kafka: GuardedKafka, tag: str) -> None:
    worker = worker_of(guarded_kafka, tag) | guarded_kafka.login("worker", "producer.")
    make(Kafka(guarded_kafka.bootstrap), f"{tag}-there")
    login = Login(("the producer",), "User:worker", guarded_kafka.bootstrap)
    own = (word for kind in ("config", "offset", "status") for word in ("--topic", f"{tag}-{kind}"))
    run(login.allow(["READ", "WRITE", "CREATE"], *own))
    run(login.allow(["READ"], "--group", tag, "--topic", f"{tag}-there"))
    doctor = KafkaDoctor(worker, FileStreamSourceConnector, {"name": "lines", **CREATES})
    eventually(lambda: doctor.cluster().findings == [], "the rights of the worker")
    (finding,) = doctor.topics([f"{tag}-there"]).findings
    assert finding.what == f"User:worker (the producer, the admin client) may not write to the topic '{tag}-there'."
    run(*finding.statements, servers=guarded_kafka.bootstrap)
    eventually(lambda: doctor.topics([f"{tag}-there"]).findings == [], "the right to write")
    run(login.allow(["WRITE"], "--topic", f"{tag}-new"))
    eventually(lambda: checks(doctor.topics([f"{tag}-new"]).findings) == ["kafka.acl.create"], "the right to describe")
    run(*doctor.topics([f"{tag}-new"]).findings[0].statements, servers=guarded_kafka.bootstrap)
    eventually(lambda: doctor.topics([f"{tag}-new"]).findings == [], "the right to create")


def test_rights_of_a_sink_its_group_and_its_dead_letters(guarded_kafka: GuardedKafka, tag: str) -> None:
    worker = {
        name: value for name, value in worker_of(guarded_kafka, tag).items() if not name.startswith(("config.", "offset.", "status."))
    }
    config = {"name": f"sink-{tag}", "topics": f"{tag}-there", "errors.deadletterqueue.topic.name": f"{tag}-letters"}
    make(Kafka(guarded_kafka.bootstrap), f"{tag}-there")

    def sink() -> Diagnosis:
        return KafkaDoctor(worker, FileStreamSinkConnector, config).cluster()

    found = sink()
    assert checks(found.findings) == ["kafka.acl.group", "kafka.acl.group", *["kafka.acl.topics"] * 3]
    assert any(f"the group 'connect-sink-{tag}'" in finding.what for finding in found.findings)
    repair(guarded_kafka, found)
    eventually(lambda: sink().findings == [], "the rights")
    absent = KafkaDoctor(worker | guarded_kafka.login("reader", "consumer."), FileStreamSinkConnector, config | {"topics": f"{tag}-absent"})
    assert checks(absent.cluster().findings) == ["kafka.acl.topics"], "who may not look is not told that there is nothing"


@pytest.mark.parametrize(("prefix", "role"), [("", "the worker"), ("producer.", "the producer")])
def test_a_login_that_is_refused_is_called_so_and_the_password_is_not_shown(
    guarded_kafka: GuardedKafka, tag: str, prefix: str, role: str
) -> None:
    worker = {"bootstrap.servers": guarded_kafka.bootstrap} | guarded_kafka.login("writer", prefix, password="correct-horse")
    found = KafkaDoctor(worker, FileStreamSourceConnector, {"name": "lines"}, seconds=3)
    diagnosis = found.cluster()
    if prefix:
        assert diagnosis.findings == []
        diagnosis = found.topics([tag])
    (finding,) = [each for each in diagnosis.findings if each.check == "kafka.login"]
    assert diagnosis.code == 3 and finding.who is Person.YOU
    assert role in finding.what and "uthentication failed" in finding.what, finding
    assert "correct-horse" not in str(diagnosis)


def test_a_producer_whose_login_was_forgotten_is_found(guarded_kafka: GuardedKafka, tag: str) -> None:
    """A worker's own login does not count for its producers, as in Kafka Connect."""
    doctor = KafkaDoctor(guarded_kafka.login("worker"), FileStreamSourceConnector, {"name": "lines"}, seconds=2)
    assert doctor.cluster().code == 0
    (finding,) = [each for each in doctor.topics([tag]).findings if each.check == "kafka.login"]
    assert "the producer" in finding.what and "producer." in finding.advice


def test_who_may_only_describe_a_group_may_not_join_it(guarded_kafka: GuardedKafka, tag: str) -> None:
    use_a_group(guarded_kafka.bootstrap, tag)
    worker = guarded_kafka.login("worker") | guarded_kafka.login("reader", "consumer.")
    login = Login(("the consumer",), "User:reader", guarded_kafka.bootstrap)
    run(login.allow(["DESCRIBE"], "--group", f"connect-{tag}"))

    def sink() -> list[str]:
        return [finding.what for finding in KafkaDoctor(worker, FileStreamSinkConnector, {"name": tag}).cluster().findings]

    refusal = [f"User:reader (the consumer) may not join the group 'connect-{tag}'."]
    eventually(lambda: sink() == refusal, "the right to describe")
    rights = group_rights(guarded_kafka.login("reader"), [f"connect-{tag}", f"other-{tag}"], [], 5)
    assert rights == ({f"connect-{tag}": False, f"other-{tag}": False}, [])
    run(login.allow(["READ"], "--group", f"connect-{tag}"))
    eventually(lambda: sink() == [], "the right to join")
    everything = group_rights({"bootstrap.servers": guarded_kafka.bootstrap}, [f"connect-{tag}"], [], 5)
    assert everything == ({f"connect-{tag}": True}, [])


def use_a_group(bootstrap: str, tag: str) -> None:
    """Have the cluster begin to keep groups."""
    make(Kafka(bootstrap), tag)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": tag})
    try:
        place = TopicPartition(tag, 0, 0)
        eventually(lambda: commits(consumer, place), "coordinator of groups")
    finally:
        consumer.close()


def commits(consumer: Consumer, place: TopicPartition) -> bool:
    try:
        consumer.commit(offsets=[place], asynchronous=False)
    except KafkaException:
        return False
    return True


def test_who_may_do_everything_gets_no_finding(guarded_kafka: GuardedKafka, tag: str) -> None:
    own = {f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")}
    own |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    worker = {"bootstrap.servers": guarded_kafka.bootstrap, "group.id": tag, "exactly.once.source.support": "enabled", **own}
    assert look(worker, {"name": "lines", **CREATES}, [f"{tag}-new"]).findings == []
