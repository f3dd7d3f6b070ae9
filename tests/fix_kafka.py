"""The broker that tests use: `$KAFKA_BOOTSTRAP`, or one of our own for the session."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import free_port
from tests.waiting import eventually


@dataclass(frozen=True)
class Kafka:
    """Where the broker is, and what its topics hold.

    Attributes:
        asking: a client for `count` that stays, since tests ask many times a second: one of its own costs 10 ms of CPU and 50 ms each time.
    """

    bootstrap: str
    asking: Consumer | None = field(default=None, repr=False, compare=False)

    def read(self, topic: str) -> list[Message]:
        """All records that are in the topic now, partition by partition; none when the topic does not exist.

        It is a reader of its own, so that a test does not rest on the code that it tests.
        """
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "tests", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        )
        found: list[Message] = []
        try:
            for number in consumer.list_topics(topic, timeout=60).topics[topic].partitions:
                partition = TopicPartition(topic, number, OFFSET_BEGINNING)
                end = next_offset(consumer, partition)
                consumer.assign([partition])
                while end and consumer.position([partition])[0].offset < end:
                    found += [message for message in consumer.consume(10_000, 0.2) if message.error() is None]
        finally:
            consumer.close()
        return found

    def count(self, topic: str) -> int:
        """How many records have been written to the topic (of one partition or more); 0 when it does not exist."""
        consumer = self.asking or Consumer({"bootstrap.servers": self.bootstrap, "group.id": "tests"})
        try:
            numbers = consumer.list_topics(topic, timeout=60).topics[topic].partitions
            return sum(next_offset(consumer, TopicPartition(topic, number)) for number in numbers)
        finally:
            if consumer is not self.asking:
                consumer.close()


def set_topic(bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
    """Change settings of a topic; brokers learn of them a moment later."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def next_offset(consumer: Consumer, partition: TopicPartition) -> int:
    """Of a partition; one that was made a moment ago has no leader for a while."""
    found: list[int] = []

    def has_leader() -> bool:
        try:
            found.append(consumer.get_watermark_offsets(partition, timeout=60)[1])
        except KafkaException:
            return False
        return True

    eventually(has_leader, f"leader of {partition.topic}", 60)
    return found[-1]


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka broker; `.bootstrap` is its address. Topics are shared by all tests: use names of your own."""
    given = os.environ.get("KAFKA_BOOTSTRAP")
    if given:
        yield Kafka(given)
        return
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"), print)
    asking = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "tests"})
    yield Kafka(broker.bootstrap, asking)
    asking.close()
    broker.discard()


#: A second listener with logins, which may do nothing but what ACLs allow; who comes by the first may do everything.
_GUARDED = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},GUARDED://{address}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},GUARDED://{address}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config={module} required {logins};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class GuardedKafka:
    """A broker with ACLs (StandardAuthorizer).

    Attributes:
        bootstrap: of the listener on which everybody may do everything.
        guarded: of the listener with logins.
    """

    bootstrap: str
    guarded: str

    def login(self, user: str, prefix: str = "", password: str | None = None) -> dict[str, str]:
        """Java client properties of one of `USERS`, whose passwords are `PASSWORD-<user>`."""
        secret = f"{self.PASSWORD}-{user}" if password is None else password
        properties = {
            "bootstrap.servers": self.guarded,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN_LOGIN} required username="{user}" password="{secret}";',
        }
        return {prefix + name: value for name, value in properties.items()}

    USERS: ClassVar[Sequence[str]] = ("worker", "writer", "reader")
    PASSWORD: ClassVar[str] = "battery-staple"


@pytest.fixture(scope="session")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """A broker whose users need rights."""
    address = f"127.0.0.1:{free_port()}"
    logins = " ".join(f'user_{user}="{GuardedKafka.PASSWORD}-{user}"' for user in GuardedKafka.USERS)
    more = _GUARDED.format(address=address, module=_PLAIN_LOGIN, logins=logins)
    broker = KafkaBroker(tmp_path_factory.mktemp("guarded"), print, more)
    yield GuardedKafka(broker.bootstrap, address)
    broker.discard()


@pytest.fixture
def tag() -> str:
    """A word that no other test has, to be part of the names of topics, slots and connectors."""
    return "t" + uuid.uuid4().hex[:10]
