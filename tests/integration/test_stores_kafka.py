"""The stores on a real broker: bytes, partitions and order on the topics, what is refused, what is skipped."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect_py.api.storage import RestartRequest, Status, TargetState
from connect_py.errors import ConfigError, ConnectError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from offsets.config_store import KafkaConfigStore
from offsets.offset_store import KafkaOffsetStore, TaskOffsetWriter
from offsets.schema_history import KafkaSchemaHistory
from offsets.status_store import KafkaStatusStore
from tests.contract.test_config_store import Listener
from tests.fix_kafka import Kafka
from tests.waiting import wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def properties(kafka: Kafka, tag: str) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": tag,
        **{f"{kind}.storage.topic": f"{tag}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "5",
        "status.storage.partitions": "2",
        "offset.storage.segment.ms": "123456",
        "offset.storage.cleanup.policy": "delete",
    }


@pytest.fixture
def admin(properties: dict[str, str]) -> KafkaAdmin:
    return KafkaAdmin(internal_properties(properties, "shared-admin"))


def create(kafka: Kafka, topic: str, partitions: int, policy: str) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap})
    client.create_topics([NewTopic(topic, partitions, 1, config={"cleanup.policy": policy})])[topic].result(20)


def produce(kafka: Kafka, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    client = Producer({"bootstrap.servers": kafka.bootstrap})
    errors: list[object] = []
    for key, value in records:
        client.produce(topic, value, key, 0, on_delivery=lambda error, message: errors.append(error))
    client.flush(20)
    assert errors == [None] * len(records)


def pairs(kafka: Kafka, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(message.key(), message.value()) for message in kafka.read(topic)]


def test_missing_topics_are_created_compacted_with_their_settings(kafka: Kafka, properties: dict[str, str], admin: KafkaAdmin) -> None:
    config, offset, status = KafkaConfigStore(properties, admin), KafkaOffsetStore(properties, admin), KafkaStatusStore(properties, admin)
    config.start(Listener())
    offset.start()
    status.start()
    names = [properties[f"{kind}.storage.topic"] for kind in ("config", "offset", "status")]
    assert admin.describe_topics(names) == dict(zip(names, (1, 5, 2), strict=True))
    assert [admin.topic_settings(name)["cleanup.policy"] for name in names] == ["compact"] * 3
    assert admin.topic_settings(names[1])["segment.ms"] == "123456"
    for store in (config, offset, status):
        store.stop()


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_forgets_stops_the_start(kafka: Kafka, properties: dict[str, str], policy: str) -> None:
    create(kafka, properties["config.storage.topic"], 1, policy)
    with pytest.raises(ConfigError, match=r"supplied via the 'config.storage.topic' property is required to have 'cleanup.policy=compact'"):
        KafkaConfigStore(properties).start(Listener())


def test_a_config_topic_with_two_partitions_stops_the_start(kafka: Kafka, properties: dict[str, str]) -> None:
    create(kafka, properties["config.storage.topic"], 2, "compact")
    with pytest.raises(ConfigError, match=r"is required to have a single partition .* but found 2 partitions"):
        KafkaConfigStore(properties).start(Listener())


def test_a_store_without_a_topic_says_which_property_is_missing() -> None:
    with pytest.raises(ConfigError, match="Must specify topic for connector configuration"):
        KafkaConfigStore({"bootstrap.servers": "127.0.0.1:1"})


def test_configuration_records_stand_on_the_topic_in_connects_order(kafka: Kafka, properties: dict[str, str]) -> None:
    store = KafkaConfigStore(properties)
    store.start(Listener())
    store.put_connector("c", {"name": "c"}, TargetState.STOPPED)
    store.put_task_configs("c", [{"a": "0"}, {"a": "1"}])
    store.put_restart_request(RestartRequest("c"))
    store.put_task_count_record("c", 2)
    store.put_session_key("a2V5", "HmacSHA256", 17)
    store.remove_connector("c")
    store.stop()
    assert pairs(kafka, properties["config.storage.topic"]) == [
        (b"target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"connector-c", b'{"properties":{"name":"c"}}'),
        (b"task-c-0", b'{"properties":{"a":"0"}}'),
        (b"task-c-1", b'{"properties":{"a":"1"}}'),
        (b"commit-c", b'{"tasks":2}'),
        (b"restart-connector-c", b'{"include-tasks":false,"only-failed":false}'),
        (b"tasks-fencing-c", b'{"task-count":2}'),
        (b"session-key", b'{"key":"a2V5","algorithm":"HmacSHA256","creation-timestamp":17}'),
        (b"connector-c", None),
        (b"target-state-c", None),
    ]


def test_requests_of_the_past_are_not_repeated_at_start_and_bad_records_are_skipped(kafka: Kafka, properties: dict[str, str]) -> None:
    topic = properties["config.storage.topic"]
    create(kafka, topic, 1, "compact")
    produce(
        kafka,
        topic,
        (b"restart-connector-c", b'{"include-tasks":true,"only-failed":false}'),
        (b"logger-cluster-x", b'{"level":"debug"}'),
        (b"connector-c", b'{"properties":{"name":"c"}}'),
        (b"connector-c", b"not json"),
        (b"odd", b"{}"),
        (b"connector-d", b'{"properties":{"name":"d"}}'),
    )
    listener, store = Listener(), KafkaConfigStore(properties)
    store.start(listener)
    assert (sorted(store.snapshot().connectors), store.snapshot().offset, listener.heard) == (["c", "d"], 6, [])
    produce(kafka, topic, (b"connector-e", b'{"properties":{"name":"e"}}'))
    listener.wait("config", "e")
    store.stop()


def test_every_worker_of_a_cluster_hears_what_one_of_them_writes(properties: dict[str, str]) -> None:
    first, second, listener = KafkaConfigStore(properties), KafkaConfigStore(properties), Listener()
    first.start(Listener())
    second.start(listener)
    first.put_connector("c", {"name": "c"})
    listener.wait("config", "c")
    second.refresh(10)
    assert second.snapshot() == first.snapshot()
    first.stop()
    second.stop()


def test_records_lie_in_the_partitions_where_javas_producer_puts_them(kafka: Kafka, properties: dict[str, str]) -> None:
    """Keys and partitions of five and two as a worker of Kafka 4.3.1 was seen to write them."""
    status, offset = KafkaStatusStore(properties), KafkaOffsetStore(properties)
    status.start()
    offset.start()
    status.put_connector("eng-a-x1", Status("RUNNING", "w:1"))
    status.put_task("eng-a-x1", 0, Status("RUNNING", "w:1"))
    status.put_topic("eng-a-x1", 0, "eng_a_lines")
    status.flush(10)
    offset.put("eng-a-x1", [({"filename": "/data/source.txt"}, {"position": 2}), ({"filename": "/data/nothing \x01é"}, {"position": 7})])
    status.stop()
    offset.stop()
    assert {message.key(): message.partition() for message in kafka.read(properties["status.storage.topic"])} == {
        b"status-connector-eng-a-x1": 1,
        b"status-task-eng-a-x1-0": 0,
        b"status-topic-eng_a_lines:connector-eng-a-x1": 1,
    }
    assert {
        (message.key().decode(), message.value(), message.partition()) for message in kafka.read(properties["offset.storage.topic"])
    } == {
        ('["eng-a-x1",{"filename":"/data/source.txt"}]', b'{"position":2}', 1),
        ('["eng-a-x1",{"filename":"/data/nothing \\u0001é"}]', b'{"position":7}', 3),
    }


def test_malformed_offsets_are_skipped(kafka: Kafka, properties: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    topic = properties["offset.storage.topic"]
    create(kafka, topic, 1, "compact")
    produce(kafka, topic, (b"x", b"{}"), (b'["c",{}]', b"3"), (b'["c",null]', b"{}"), (b'["c",{"a":1}]', b'{"p":1}'))
    store = KafkaOffsetStore(properties)
    store.start()
    assert store.read("c", {}, 10) == [({"a": 1}, {"p": 1})]
    assert len(caplog.records) == 2
    store.stop()


def test_a_task_writes_where_its_worker_reads(properties: dict[str, str]) -> None:
    store, writer = KafkaOffsetStore(properties), None
    store.start()
    writer = TaskOffsetWriter(properties, "c", 0)
    finished: list[Exception | None] = []
    writer.write([({"server": "s"}, {"lsn": 1})], finished.append)
    writer.write([], finished.append)
    writer.close(10)
    assert (finished, store.read("c", {}, 10)) == ([None, None], [({"server": "s"}, {"lsn": 1})])
    store.stop()


def test_a_record_that_is_too_large_is_refused_with_a_text_that_says_so(properties: dict[str, str]) -> None:
    store = KafkaConfigStore(properties)
    store.start(Listener())
    with pytest.raises(ConnectError, match=r"Error writing connector configuration to Kafka: The request included a message larger than"):
        store.put_connector("c", {"name": "c", "x": "y" * 2_000_000})
    assert dict(store.snapshot().connectors) == {}
    store.stop()


def test_a_log_that_is_read_by_many_threads_gives_each_its_own_end(properties: dict[str, str], admin: KafkaAdmin, tag: str) -> None:
    topic, seen = f"{tag}-log", list[LogRecord]()
    admin.create_topic(topic, 3, 1)
    log = KafkaLog(topic, internal_properties(properties, "test"), admin, seen.append)
    log.start()
    failures: list[str] = []

    def write(number: int) -> None:
        for count in range(20):
            key = b"%d-%d" % (number, count)
            log.write([(key, b"x")], 20)
            if key not in [record.key for record in seen]:
                failures.append(key.decode())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.stop()
    assert (failures, len(seen)) == ([], 80)


def test_an_exception_of_the_reader_skips_the_record_and_not_the_rest(properties: dict[str, str], admin: KafkaAdmin, tag: str) -> None:
    topic, seen = f"{tag}-log", list[bytes | None]()

    def take(record: LogRecord) -> None:
        if record.key == b"bad":
            raise ValueError("no")
        seen.append(record.key)

    admin.create_topic(topic, 1, 1)
    log = KafkaLog(topic, internal_properties(properties, "test"), admin, take)
    log.start()
    log.write([(b"a", b"1"), (b"bad", b"2"), (b"b", b"3")], 20)
    log.stop()
    assert seen == [b"a", b"b"]


def test_a_callback_that_fails_does_not_end_the_reading(properties: dict[str, str], admin: KafkaAdmin, tag: str) -> None:
    topic, seen, called = f"{tag}-log", list[LogRecord](), threading.Event()

    def fail(error: ConnectError | None) -> None:
        called.set()
        raise ValueError("no")

    admin.create_topic(topic, 1, 1)
    log = KafkaLog(topic, internal_properties(properties, "test"), admin, seen.append)
    log.start()
    log.send(b"a", b"1", fail)
    assert called.wait(60)
    log.write([(b"b", b"2")], 20)
    log.stop()
    assert [record.key for record in seen] == [b"a", b"b"]


def test_a_worker_with_small_topics_reads_them_in_well_under_a_second(properties: dict[str, str], admin: KafkaAdmin) -> None:
    for count in range(2):
        stores = (KafkaConfigStore(properties, admin), KafkaOffsetStore(properties, admin), KafkaStatusStore(properties, admin))
        before = time.monotonic()
        stores[0].start(Listener())
        stores[1].start()
        stores[2].start()
        spent = time.monotonic() - before
        stores[0].put_connector(f"c{count}", {"name": "c"})
        stores[1].put("c", [({"n": number}, {"p": number}) for number in range(50)])
        for store in stores:
            store.stop()
    assert spent < 1.0


def test_a_schema_history_that_ends_in_the_marker_of_a_transaction_is_read(kafka: Kafka) -> None:
    """A transactional copy of a history ends in a control record, which has an offset and is no record."""
    history = KafkaSchemaHistory(f"history_{uuid.uuid4().hex[:8]}", {"bootstrap.servers": kafka.bootstrap}, read_seconds=5)
    history.create()
    assert list(history.read_values()) == []
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": history.topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(3):
        producer.produce(history.topic, str(number).encode(), partition=0)
    producer.commit_transaction(30)  # readers of committed records see them a moment later
    wait_until(lambda: [value for _, value in history.read_values()] == [b"0", b"1", b"2"], 60, "the history")
    history.close()
