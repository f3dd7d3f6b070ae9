"""A Kafka cluster of three brokers, of which a test may kill, end and start two.

Node 1 is the controller too, and stays. Every topic has replicas on two nodes at least, so that the coordinator of a group moves when its
broker goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, TopicMetadata

from connect_py.app.services.kafka import LOGGING, archive_options, broker_java, format_storage, kafka_jars, new_id
from connect_py.app.services.process import Service, free_port, is_listening
from tests.waiting import wait_until

_PROPERTIES = """process.roles={roles}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
default.replication.factor=3
min.insync.replicas=1
offsets.topic.replication.factor=3
offsets.topic.num.partitions=6
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=true
leader.imbalance.check.interval.seconds=3
leader.imbalance.per.broker.percentage=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
"""

NODES = (1, 2, 3)


class Brokers:
    """Three running brokers.

    Attributes:
        bootstrap: of all of them.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        jars = kafka_jars()
        self._java = [*broker_java(jars, "384m"), *archive_options(jars)]
        self._ports = {node: free_port() for node in NODES}
        self._services: dict[int, Service] = {}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        controller = free_port()
        (folder / "log4j2.properties").write_text(LOGGING)
        cluster = new_id()
        for node, port in self._ports.items():
            listeners = f"PLAINTEXT://127.0.0.1:{port}" + (f",CONTROLLER://127.0.0.1:{controller}" if node == 1 else "")
            data = folder / f"data-{node}"
            text = _PROPERTIES.format(
                roles="broker,controller" if node == 1 else "broker",
                node=node,
                controller=controller,
                listeners=listeners,
                port=port,
                data=data,
            )
            self._file(node).write_text(text)
            format_storage(jars, self._file(node), data, cluster, node)
        for node in NODES:
            self.start(node, wait=False)
        for node in NODES:
            self._await(node)

    def _file(self, node: int) -> Path:
        return self._folder / f"broker-{node}.properties"

    def start(self, node: int, *, wait: bool = True) -> None:
        """Start a broker, with the data that it has."""
        command = [*self._java, f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties", "kafka.Kafka", str(self._file(node))]
        self._services[node] = Service(f"broker {node}", command, self._folder / f"broker-{node}.log")
        if wait:
            self._await(node)

    def _await(self, node: int) -> None:
        self._services[node].wait_ready(lambda: is_listening(self._ports[node]))

    def kill(self, node: int) -> None:
        """SIGKILL."""
        self._services[node].kill()

    def end(self, node: int) -> None:
        """SIGTERM: what the broker leads moves first."""
        self._services[node].stop(seconds=60)

    def coordinator(self, group: str) -> int | None:
        """Return the node that coordinates a group (`GroupMetadataManager.partitionFor`); None while there is none."""
        hashed = 0
        for char in group:
            hashed = (31 * hashed + ord(char)) & 0xFFFFFFFF
        try:
            known = self._topics()["__consumer_offsets"]
        except (KafkaException, KeyError):
            return None
        leader = known.partitions[(hashed & 0x7FFFFFFF) % len(known.partitions)].leader
        return int(leader) if leader in NODES else None

    def _topics(self) -> Mapping[str, TopicMetadata]:
        found: Mapping[str, TopicMetadata] = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=60).topics
        return found

    def group_of(self, name: str, nodes: Sequence[int]) -> str:
        """Return a group's id that begins with the name and whose coordinator is one of these nodes."""
        # whoever asks for a coordinator has the topic made; a broker that has just become one may not know it yet
        asking = Consumer({"bootstrap.servers": self.bootstrap, "group.id": name})

        def is_answered() -> bool:
            try:
                asking.committed([TopicPartition(name, 0)], timeout=60)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                    raise
                return False
            return True

        try:
            wait_until(is_answered, 60, "an answer of the group's coordinator")
        finally:
            asking.close()
        wait_until(lambda: self.coordinator(name) is not None, 60, "a coordinator")
        return next(group for number in range(1_000) if self.coordinator(group := f"{name}-{number}") in nodes)

    def in_sync(self, topics: Sequence[str]) -> bool:
        """Whether all nodes have all of these topics."""
        try:
            known = self._topics()
        except KafkaException:
            return False
        return all(
            len(partition.isrs) == len(NODES) for topic in topics if topic in known for partition in known[topic].partitions.values()
        )

    def close(self) -> None:
        """End all of them."""
        for node in reversed(NODES):
            self._services[node].kill()
