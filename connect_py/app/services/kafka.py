"""Start a Kafka broker (KRaft, one node, broker and controller in one process) on a free port, with a data folder of its own.

The broker's jars are fetched once from Maven Central into the sink's cache. `QUICK_START` has the JVM options of servers that live for
minutes. Who starts many brokers makes an archive of their classes first: `make_archive`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path

from connect_py.app.services.process import Service, ServiceError, free_port, is_listening
from spark_sink.spark.jars import cache_directory, cached, java, resolve

#: The version whose Connect this project stands in for, and a logging backend for it.
KAFKA_JARS = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")

#: For JVMs that live for minutes: the first compiler alone, the smallest collector, classes from the JDK's archive. Measured on two busy
#: cores: the broker is ready in 3.5 s instead of 6 s, and the demo's Spark needs 21 s of CPU instead of 43 s.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")

#: Tells a person what happens during a long step; gets one line.
Progress = Callable[[str], None]


def silent(line: str) -> None:
    """Report no progress."""


def kafka_jars(progress: Progress = silent) -> Path:
    """Return a folder with the broker's jars; fetched when it is not there (44 MB, 40 s when this was written).

    Raises:
        ConfigError: no Java, or no pyspark, whose Ivy does the work.
        RetriableError: Maven Central does not answer; nothing was kept.
    """
    folder = cached(KAFKA_JARS, "kafka")
    if not folder.is_dir():
        progress("fetching the Kafka broker from Maven Central (44 MB, once)")
        resolve(KAFKA_JARS, folder, transitive=True)
    return folder


def archive(jars: Path) -> Path:
    """Return the path of the archive of a broker's classes, for this Java and these jars."""
    of = "\n".join((os.path.realpath(java()), str(jars)))
    return cache_directory() / "archives" / f"kafka-{hashlib.sha256(of.encode()).hexdigest()[:12]}.jsa"


def make_archive() -> None:
    """Make the archive of a broker's classes, unless it is there: a broker starts, and writes it when it stops (6 s of CPU).

    A broker with an archive starts in 0.9 s instead of 1.6 s, and takes 2.0 s of CPU instead of 3.1 s.

    Raises:
        ConfigError, RetriableError, ServiceError: see `KafkaBroker`.
    """
    target = archive(kafka_jars())
    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as scratch:
        fresh = Path(scratch) / target.name
        KafkaBroker(Path(scratch), options=(f"-XX:ArchiveClassesAtExit={fresh}", _SILENT)).stop()
        if fresh.is_file():
            fresh.replace(target)


#: Where the storage tool writes the features' levels (Kafka's `BootstrapDirectory`).
_CHECKPOINT = "bootstrap.checkpoint"

#: The JVM must not report an archive that it cannot use: that only costs the time it would save.
_SILENT = "-Xlog:cds*=off"


def broker_java(jars: Path, heap: str = "512m") -> list[str]:
    """Return the command of a broker's JVM up to its main class, for a quick start; `archive_options` may follow.

    Args:
        jars: what `kafka_jars` returned.
        heap: the most that it may take.
    """
    # an archive is for one class path, in its order
    return [java(), f"-Xmx{heap}", *QUICK_START, "-cp", os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))]


def archive_options(jars: Path) -> tuple[str, ...]:
    """Return the JVM options by which a broker uses the archive of its classes; none where there is no archive."""
    made = archive(jars)
    return (f"-XX:SharedArchiveFile={made}", _SILENT) if made.is_file() else ()


def new_id() -> str:
    """Return a random id as Kafka's are: a UUID in base64."""
    return "K" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]  # a leading dash would be read as an option


def format_storage(jars: Path, properties: Path, data: Path, cluster: str, node: int = 1) -> None:
    """Make a new folder a broker's storage, as `kafka-storage.sh format` does.

    That tool runs the first time. Of what it writes, the file with the levels of the cluster's features is the same for all that these
    jars format, and is kept; the other one holds ids.

    Args:
        jars: what `kafka_jars` returned.
        properties: the broker's, with its static voters.
        data: its `log.dirs`, one folder.
        cluster: the cluster's id.
        node: its `node.id`.

    Raises:
        ServiceError: the tool has failed.
    """
    kept = archive(jars).with_suffix(".checkpoint")
    if not kept.is_file() or data.exists():
        tool = [*broker_java(jars), *archive_options(jars), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"Formatting the broker's storage failed: {(done.stderr or done.stdout)[-1500:]}")
        with contextlib.suppress(OSError):  # it is then made again
            kept.parent.mkdir(parents=True, exist_ok=True)
            fresh = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(data / _CHECKPOINT, fresh)
            fresh.replace(kept)
        return
    data.mkdir(parents=True)
    shutil.copyfile(kept, data / _CHECKPOINT)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={new_id()}\n")


#: One node: every internal topic has one replica. No delay before a group's first rebalance, which would cost each consumer three seconds.
#: Records are kept whatever their age, since tests write some of past years: the broker's first check for records that are too old (by
#: default 30 s after its start) and the later ones come after a day. Topics keep Kafka's default retention, which recordings show.
#: Small index files: each partition has two, and those of 10 MB take half of the broker's system time in the parity tests. No records that
#: say nothing: the controller would write and flush two a second, half of what a broker at rest costs.
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
group.min.session.timeout.ms=1000
auto.create.topics.enable=true
log.initial.task.delay.ms=86400000
log.retention.check.interval.ms=86400000
log.index.size.max.bytes=65536
metadata.max.idle.interval.ms=0
num.io.threads=4
num.network.threads=2
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

    def __init__(self, folder: Path, progress: Progress = silent, more: str = "", options: Sequence[str] | None = None) -> None:
        """Format a data folder in `folder` and start the broker; returns when it accepts connections.

        Args:
            folder: for its data and its log.
            progress: receives a line at each long step.
            more: lines of properties with the fields of `PROPERTIES`, which count in place of those there.
            options: further ones of the broker's JVM; None: those that let it use the archive of its classes, where there is one.

        Raises:
            ConfigError: no Java.
            RetriableError: the jars cannot be fetched.
            ServiceError: the broker does not start.
        """
        jars = kafka_jars(progress)
        folder.mkdir(parents=True, exist_ok=True)
        port, controller = free_port(), free_port()
        properties, logging, data = folder / "kafka.properties", folder / "log4j2.properties", folder / "kafka-data"
        properties.write_text((PROPERTIES + more).format(port=port, controller=controller, data=data))
        logging.write_text(LOGGING)
        format_storage(jars, properties, data, new_id())
        self.bootstrap = f"127.0.0.1:{port}"
        more_options = archive_options(jars) if options is None else options
        broker = [*broker_java(jars), *more_options, f"-Dlog4j2.configurationFile={logging}", "kafka.Kafka", str(properties)]
        self.service = Service("the Kafka broker", broker, folder / "kafka.log")
        self.service.wait_ready(lambda: is_listening(port))

    def stop(self) -> None:
        """Stop the broker."""
        self.service.stop()

    def discard(self) -> None:
        """End the broker at once, for good: an orderly end takes 0.2 s of CPU and more, for data that go with their folder."""
        self.service.kill()
