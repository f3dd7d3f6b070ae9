"""Producer, admin client and group commits against a real broker."""

from __future__ import annotations

import logging
import os
import re
import socket
import time

import pytest
from confluent_kafka import Consumer, KafkaError, Message

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError, RetriableError
from connect_py.kafka.admin import GroupNotEmptyError, KafkaAdmin
from connect_py.kafka.client import internal_properties, sink_consumer_properties, source_producer_properties
from connect_py.kafka.client_statistics import ClientStatistics
from connect_py.kafka.consumer import GroupCommitter
from connect_py.kafka.producer import Producer, RefusedRecordError, delivery_error
from connect_py.kafka.resting_producer import RestingProducer
from connect_py.log.traces import trace_of
from tests.canary import within
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = pytest.mark.services


@pytest.fixture
def properties(kafka: Kafka, tag: str) -> dict[str, str]:
    return {"bootstrap.servers": kafka.bootstrap, "group.id": tag}


@pytest.fixture
def admin(properties: dict[str, str]) -> KafkaAdmin:
    return KafkaAdmin(internal_properties(properties, "shared-admin"))


def thread_count() -> int:
    """How many threads this process has, those of librdkafka too."""
    return len(os.listdir("/proc/self/task"))


@pytest.fixture
def nowhere() -> str:
    """An address where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def test_what_waits_for_company_is_sent_when_it_is_asked_for(kafka: Kafka, properties: dict[str, str], tag: str) -> None:
    producer = Producer(source_producer_properties(properties, "c", 0), linger_ms=600_000)
    producer.produce(f"{tag}-now", b"first")
    assert producer.flush(30) == 0
    producer.produce(f"{tag}-now", b"second")
    deadline = time.monotonic() + 30
    while len(producer) and time.monotonic() < deadline:
        producer.send_now()
    assert not len(producer)
    assert [message.value() for message in kafka.read(f"{tag}-now")] == [b"first", b"second"]


def test_a_full_queue_of_many_partitions_empties_without_the_linger(kafka: Kafka, properties: dict[str, str], tag: str) -> None:
    small = {**source_producer_properties(properties, "c", 0), "buffer.memory": "2000000"}
    producer = Producer(small, linger_ms=600_000, room_seconds=600)
    for number in range(60):
        producer.produce(f"{tag}-full-{number % 3}", b"x" * 100_000)
    assert producer.close(30) == 0
    assert [kafka.count(f"{tag}-full-{number}") for number in range(3)] == [20, 20, 20]


def test_a_linger_of_the_users_is_kept(properties: dict[str, str]) -> None:
    assert Producer(source_producer_properties(properties, "c", 0)).holds_back
    assert not Producer(source_producer_properties(properties, "c", 0, {"producer.override.linger.ms": "5"})).holds_back
    assert not Producer(source_producer_properties({**properties, "producer.linger.ms": "5"}, "c", 0)).holds_back


def test_a_producer_whose_client_is_closed_at_rest_sends_on_with_another(kafka: Kafka, properties: dict[str, str], tag: str) -> None:
    figures = ClientStatistics()
    settings = source_producer_properties(properties, "c", 0)
    before = thread_count()
    producer = RestingProducer(lambda: Producer(settings, on_statistics=figures.take, only_errors=True), figures)
    assert thread_count() > before
    for number in range(3):
        producer.produce(f"{tag}-rest", b"%d" % number)
        assert not producer.release()
        assert producer.flush(30) == 0
        eventually(producer.release, "end of the client", 10)  # a broker of another test may be away
        eventually(lambda: thread_count() <= before, "end of the client's threads", 10)
        assert len(producer) == producer.poll() == 0
    producer.send(f"{tag}-rest", b"3", None, -1, None, None, 0, None)
    assert producer.close(30) == 0
    assert [message.value() for message in kafka.read(f"{tag}-rest")] == [b"0", b"1", b"2", b"3"]


def test_a_client_that_is_opened_while_no_broker_answers_keeps_the_record(properties: dict[str, str], nowhere: str) -> None:
    figures, brokers = ClientStatistics(), iter([properties, {"bootstrap.servers": nowhere}])

    def open_client() -> Producer:
        return Producer(source_producer_properties(next(brokers), "c", 0), on_statistics=figures.take, only_errors=True)

    producer = RestingProducer(open_client, figures)
    eventually(producer.release, "end of the first client")
    with within(5, "the record is kept, not sent"):
        producer.produce("t", b"1")
    assert len(producer) and not producer.release()
    assert producer.close(0.0)


def test_records_arrive_with_headers_time_and_in_order_in_a_topic_that_the_broker_creates(
    kafka: Kafka, properties: dict[str, str], tag: str
) -> None:
    producer = Producer(source_producer_properties(properties, "c", 0))
    delivered: list[KafkaError | None] = []

    def note(error: KafkaError | None, message: Message) -> None:
        delivered.append(error)

    for number in range(1000):
        producer.produce(f"{tag}-new", b"%d" % number, b"k", [("h", b"1"), ("h", None)], note, timestamp=1_700_000_000_000 + number)
    producer.produce(f"{tag}-new", None, b"k", on_delivery=note)
    assert len(producer) == 1001
    assert producer.close(30) == 0
    assert delivered == [None] * 1001
    found = kafka.read(f"{tag}-new")
    assert [message.value() for message in found] == [b"%d" % number for number in range(1000)] + [None]
    assert found[5].headers() == [("h", b"1"), ("h", None)]
    assert found[5].timestamp()[1] == 1_700_000_000_005


def test_while_the_queue_is_full_the_source_is_kept_alive_and_may_give_up(nowhere: str, tag: str) -> None:
    config = {"producer.override.buffer.memory": "100000", "producer.override.max.request.size": "5000"}
    producer = Producer(source_producer_properties({"bootstrap.servers": nowhere}, "c", 0, config))
    calls: list[float] = []

    def waiting() -> None:
        calls.append(time.monotonic())
        if len(calls) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        for _ in range(1000):
            producer.produce(tag, b"x" * 1000, while_waiting=waiting)
    assert 0.5 < calls[1] - calls[0] < 3
    left = len(producer)
    assert 50 < left < 150
    assert producer.close(0) == left
    assert len(producer) == 0, "close gives up what it could not send"


def test_a_record_that_is_too_large_names_topic_size_and_setting(properties: dict[str, str], tag: str) -> None:
    producer = Producer(source_producer_properties(properties, "c", 0, {"producer.override.max.request.size": "5000"}))
    told = "The message is 6087 bytes when serialized which is larger than 5000, which is the value of the max.request.size configuration."
    with pytest.raises(RefusedRecordError, match=rf"(?s)^{re.escape(told)}.*'{tag}'.*producer.override.max.request.size"):
        producer.produce(tag, b"x" * 6000, b"k")
    producer.close(1)


def test_a_record_that_the_broker_finds_too_large_is_reported_to_its_callback(
    properties: dict[str, str], admin: KafkaAdmin, tag: str
) -> None:
    admin.create_topic(tag, 1, 1, {"max.message.bytes": "2000"})
    producer = Producer(source_producer_properties(properties, "c", 0))
    errors: list[KafkaError | None] = []
    producer.produce(tag, b"x" * 6000, on_delivery=lambda error, message: errors.append(error))
    producer.close(30)
    assert errors[0] is not None
    assert "max.message.bytes" in trace_of(delivery_error(errors[0], tag, 6000))


def test_with_only_errors_a_producer_is_empty_when_all_is_delivered_and_calls_back_for_what_was_refused(
    kafka: Kafka, admin: KafkaAdmin, properties: dict[str, str], tag: str
) -> None:
    admin.create_topic(f"{tag}-small", 1, 1, {"max.message.bytes": "1000"})
    producer = Producer(source_producer_properties(properties, "c", 0), only_errors=True)
    refused: list[tuple[bytes | None, str]] = []
    deadline = time.monotonic() + 30
    for number in range(5):
        size = 5000 if number == 2 else 10
        producer.produce(
            f"{tag}-small", bytes(size), b"%d" % number, on_delivery=lambda error, sent: refused.append((sent.key(), error.name()))
        )
        assert len(producer)
        while len(producer) and time.monotonic() < deadline:  # by itself in its batch, which Kafka takes or refuses as a whole
            producer.poll(0.1)
    assert refused == [(b"2", "MSG_SIZE_TOO_LARGE")]
    assert [message.key() for message in kafka.read(f"{tag}-small")] == [b"0", b"1", b"3", b"4"]
    assert producer.close(30) == 0


def test_properties_that_cannot_be_used_are_refused_without_their_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    properties = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="s3cret";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "s3cret but no certificate",
    }
    for make in (Producer, KafkaAdmin):
        with pytest.raises(ConfigError) as caught:
            make(properties)
        assert "s3cret" not in str(caught.value)
    assert "s3cret" not in caplog.text


def test_an_admin_client_without_a_broker_says_so_in_time(nowhere: str) -> None:
    admin = KafkaAdmin({"bootstrap.servers": nowhere}, timeout=1.0)
    before = time.monotonic()
    with pytest.raises(RetriableError, match=nowhere):
        admin.cluster_id()
    with pytest.raises(RetriableError):
        admin.describe_topics(["t"])
    with pytest.raises(RetriableError):
        admin.group_offsets("g")
    assert time.monotonic() - before < 10


def test_topics_are_created_once_described_and_listed(admin: KafkaAdmin, tag: str) -> None:
    assert admin.create_topic(f"{tag}-a", 3, -1, {"retention.ms": "1000"})
    assert not admin.create_topic(f"{tag}-a", 3, -1)
    assert admin.describe_topics([f"{tag}-a", f"{tag}-none"]) == {f"{tag}-a": 3}
    assert f"{tag}-none" not in admin.topics(), "asking for a topic does not create it"
    assert f"{tag}-a" in admin.topics()
    assert admin.topic_settings(f"{tag}-a")["retention.ms"] == "1000"
    assert admin.topic_settings(f"{tag}-none") == {}
    assert admin.describe_topics([]) == {}
    assert len(admin.cluster_id()) > 10


def test_offsets_of_logs_are_found_by_names_and_by_a_java_regex(properties: dict[str, str], admin: KafkaAdmin, tag: str) -> None:
    for name in ("a.b", "a.c", "other"):
        admin.create_topic(f"{tag}.{name}", 2, 1)
    producer = Producer(source_producer_properties(properties, "c", 0))
    for number in range(3):
        producer.produce(f"{tag}.a.b", b"%d" % number, partition=1)
    producer.close(30)
    expected = {TopicPartition(f"{tag}.a.b", 0): (0, 0), TopicPartition(f"{tag}.a.b", 1): (0, 3)}
    assert admin.log_offsets([f"{tag}.a.b", f"{tag}.none"]) == expected
    both = {**expected, TopicPartition(f"{tag}.a.c", 0): (0, 0), TopicPartition(f"{tag}.a.c", 1): (0, 0)}
    assert admin.log_offsets(pattern=rf"(?<all>{tag}\.a\..)") == both
    assert admin.log_offsets(pattern="other") == {}, "a regex must match the whole name"
    with pytest.raises(ConfigError):
        admin.log_offsets(pattern="(")


def test_a_group_without_members_is_committed_listed_altered_and_deleted(properties: dict[str, str], admin: KafkaAdmin, tag: str) -> None:
    admin.create_topic(tag, 3, 1)
    p0, p1, p2 = (TopicPartition(tag, number) for number in range(3))
    committer = GroupCommitter(sink_consumer_properties(properties, tag, 0), f"connect-{tag}")
    assert admin.group_offsets(committer.group) == {}
    assert committer.committed([p0, p1]) == {}
    committer.commit({p0: 5, p1: 7})
    committer.commit({})
    committer.commit({p1: 8})
    assert committer.committed([p0, p1, p2]) == {p0: 5, p1: 8}
    assert admin.group_offsets(committer.group) == {p0: 5, p1: 8}
    admin.alter_group_offsets(committer.group, {p0: 3, p2: 1})
    assert admin.group_offsets(committer.group) == {p0: 3, p1: 8, p2: 1}
    admin.alter_group_offsets(committer.group, {p0: None, p1: 2})
    assert admin.group_offsets(committer.group) == {p1: 2, p2: 1}
    admin.delete_group(committer.group)
    admin.delete_group(committer.group)
    assert admin.group_offsets(committer.group) == {}
    committer.close()


def test_a_group_with_members_is_left_alone(kafka: Kafka, admin: KafkaAdmin, tag: str) -> None:
    admin.create_topic(tag, 1, 1)
    member = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": tag})
    member.subscribe([tag])
    deadline = time.monotonic() + 30
    while not member.assignment():
        assert time.monotonic() < deadline
        member.poll(0.1)
    with pytest.raises(GroupNotEmptyError, match="still has members"):
        admin.alter_group_offsets(tag, {TopicPartition(tag, 0): 1})
    with pytest.raises(GroupNotEmptyError):
        admin.delete_group(tag)
    member.close()
