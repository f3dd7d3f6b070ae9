"""A Kafka broker (KRaft, one node, broker and controller in one process) on a free port, with a data folder of its own."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from connect_py.app.services.jars import QUICK_START, Progress, kafka_jars, silent
from connect_py.app.services.process import Service, ServiceError, free_port, is_listening
from spark_sink.spark.jars import java

#: One node: every internal topic has one replica. No delay before a group's first rebalance, which would cost each consumer three seconds.
#: Records are kept whatever their age, since tests write some of past years: the broker's first check for records that are too old (by
#: default 30 s after its start) and the later ones come after a day. Topics keep Kafka's default retention, which recordings show.
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
log.initial.task.delay.ms=86400000
log.retention.check.interval.ms=86400000
"""

LOGGING = """rootLogger.level=INFO
rootLogger.appenderRefs=out
rootLogger.appenderRef.out.ref=STDOUT
appender.out.type=Console
appender.out.name=STDOUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
"""


class KafkaBroker:
    """A running broker.

    Attributes:
        bootstrap: `host:port` for clients.
        service: the process.
    """

    def __init__(self, folder: Path, progress: Progress = silent) -> None:
        """Format a data folder in `folder` and start the broker; returns when it accepts connections.

        Raises:
            ConfigError: no Java.
            RetriableError: the jars cannot be fetched.
            ServiceError: the broker does not start.
        """
        command = [java(), "-Xmx512m", *QUICK_START, "-cp", f"{kafka_jars(progress)}/*"]
        folder.mkdir(parents=True, exist_ok=True)
        port, controller = free_port(), free_port()
        properties, logging, data = folder / "kafka.properties", folder / "log4j2.properties", folder / "kafka-data"
        properties.write_text(PROPERTIES.format(port=port, controller=controller, data=data))
        logging.write_text(LOGGING)
        cluster = "K" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]  # a leading dash would be read as an option
        storage_tool = [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
        done = subprocess.run(storage_tool, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"Formatting the broker's storage failed: {(done.stderr or done.stdout)[-1500:]}")
        self.bootstrap = f"127.0.0.1:{port}"
        broker = [*command, f"-Dlog4j2.configurationFile={logging}", "kafka.Kafka", str(properties)]
        self.service = Service("the Kafka broker", broker, folder / "kafka.log")
        self.service.wait_ready(lambda: is_listening(port))

    def stop(self) -> None:
        """Stop the broker."""
        self.service.stop()
