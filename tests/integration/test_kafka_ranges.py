"""Ranges of the log, read by one client again and again, and topics that are followed: what comes back, and when nothing does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api.record import TopicPartition
from connect_py.errors import ConfigError
from connect_py.kafka.range_reader import RangeReader
from connect_py.kafka.topic_reader import TopicReader
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services

LARGE = 1_000_000


@pytest.fixture
def topics(kafka: Kafka, tag: str) -> list[str]:
    names = [f"{tag}-a", f"{tag}-b"]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        future.result(20)
    return names


@pytest.fixture
def reader(kafka: Kafka) -> Iterator[RangeReader]:
    of_a_member = {"group.id": "connect-x", "group.instance.id": "one", "group.protocol": "consumer"}
    made = RangeReader({"bootstrap.servers": kafka.bootstrap, **of_a_member})
    yield made
    made.close()


def produce(kafka: Kafka, topic: str, *values: bytes | None, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, value in enumerate(values):
        headers: list[tuple[str, str | bytes | None]] = [("n", str(number).encode())] if number % 2 else []
        producer.produce(topic, value, b"k%d" % number, partition, headers=headers)
    assert producer.flush(20) == 0


def in_transaction(kafka: Kafka, topic: str, *values: bytes, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, None, 0)
    assert producer.flush(20) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(20)


def values(reader: RangeReader, ranges: dict[TopicPartition, tuple[int, int]], max_bytes: int = LARGE) -> list[bytes | None] | None:
    records = reader.read(ranges, max_bytes)
    return None if records is None else [record.value for record in records]


def test_ranges_are_read_as_they_are_again_and_again(kafka: Kafka, topics: list[str], reader: RangeReader) -> None:
    a, other, b = TopicPartition(topics[0], 0), TopicPartition(topics[0], 1), TopicPartition(topics[1], 0)
    produce(kafka, a.topic, *[b"a%d" % number for number in range(9)])
    produce(kafka, a.topic, b"o0", b"o1", partition=1)
    produce(kafka, b.topic, b"b0", None, b"b2")
    found = reader.read({a: (2, 5), other: (0, 2), b: (1, 3)}, LARGE)
    assert found is not None
    by_partition = {tp: [record for record in found if (record.topic, record.partition) == tp] for tp in (a, other, b)}
    assert [(record.offset, record.value) for record in by_partition[a]] == [(2, b"a2"), (3, b"a3"), (4, b"a4")], "not what follows"
    assert [record.value for record in by_partition[other]] == [b"o0", b"o1"]
    assert [(record.key, record.value) for record in by_partition[b]] == [(b"k1", None), (b"k2", b"b2")]
    assert [list(record.headers) for record in by_partition[b]] == [[("n", b"1")], []]
    assert all(record.timestamp_type == "CreateTime" and record.timestamp for record in found)
    assert values(reader, {a: (8, 9)}) == [b"a8"], "by the end of the partition"
    assert values(reader, {a: (0, 1)}) == [b"a0"], "back again"
    produce(kafka, a.topic, b"a9")
    assert values(reader, {a: (9, 10)}) == [b"a9"]


@pytest.mark.parametrize("commit", [True, False])
def test_a_range_ends_with_a_transaction_and_an_aborted_one_has_no_records(
    kafka: Kafka, topics: list[str], reader: RangeReader, *, commit: bool
) -> None:
    a = TopicPartition(topics[0], 0)
    in_transaction(kafka, a.topic, b"a0", b"a1", commit=commit)
    expected = [b"a0", b"a1"] if commit else []
    assert values(reader, {a: (0, 3)}) == expected, "the third offset is the transaction's own mark"
    produce(kafka, a.topic, b"a3")
    assert values(reader, {a: (0, 3)}) == expected, "a record behind the range says so, too"


def test_what_is_too_large_or_not_there_is_left_to_others(kafka: Kafka, topics: list[str], reader: RangeReader) -> None:
    a = TopicPartition(topics[0], 0)
    produce(kafka, a.topic, b"x" * 500, b"y" * 500)
    assert values(reader, {a: (0, 2)}, 999) is None
    assert values(reader, {a: (0, 2)}, 1004) == [b"x" * 500, b"y" * 500]
    assert reader.read({a: (0, 3)}, LARGE, seconds=0.5) is None, "more than there is"
    assert reader.read({a: (7, 9)}, LARGE) is None, "an offset that the log does not have"
    assert reader.read({TopicPartition(topics[0], 5): (0, 1)}, LARGE, seconds=0.5) is None, "no such partition"
    assert values(reader, {a: (1, 2)}) == [b"y" * 500], "and none of it is remembered"


def test_a_reader_that_was_closed_reads_no_more(kafka: Kafka, topics: list[str], reader: RangeReader) -> None:
    produce(kafka, topics[0], b"a0")
    ranges = {TopicPartition(topics[0], 0): (0, 1)}
    assert values(reader, ranges) == [b"a0"]
    reader.close()
    reader.close()
    assert values(reader, ranges) is None


def test_a_property_that_cannot_be_used_is_named() -> None:
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        RangeReader({"bootstrap.servers": "localhost:1", "isolation.level": "nonsense"}).read({TopicPartition("t", 0): (0, 1)}, LARGE)


def test_who_follows_a_topic_sees_no_record_of_an_aborted_transaction_unless_it_is_wanted(kafka: Kafka, topics: list[str]) -> None:
    in_transaction(kafka, topics[0], b"a0", commit=False)
    in_transaction(kafka, topics[0], b"a2", commit=True)
    for level, expected in (({}, [b"a2"]), ({"isolation.level": "read_uncommitted"}, [b"a0", b"a2"])):
        follower = TopicReader({"bootstrap.servers": kafka.bootstrap, **level})
        follower.add([topics[0]])
        assert [record.value for records in follower.read_to_end() for record in records] == expected
        follower.close()
