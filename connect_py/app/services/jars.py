"""Java for servers that live for minutes: the broker's jars, fetched once from Maven Central into the sink's cache, and JVM options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spark_sink.spark.jars import cached, resolve

#: The version whose Connect this project stands in for, and a logging backend for it.
KAFKA_JARS = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")

#: For JVMs that live for minutes: the first compiler alone, the smallest collector, classes from the JDK's archive. Measured on two busy
#: cores: the broker is ready in 3.5 s instead of 6 s, and the demo's Spark needs 21 s of CPU instead of 43 s.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")

#: Tells a person what happens during a long step; gets one line.
Progress = Callable[[str], None]


def silent(line: str) -> None:
    """Progress that nobody reads."""


def kafka_jars(progress: Progress = silent) -> Path:
    """A folder with the broker's jars; fetched when it is not there (44 MB, 40 s when this was written).

    Raises:
        ConfigError: no Java, or no pyspark, whose Ivy does the work.
        RetriableError: Maven Central does not answer; nothing was left behind.
    """
    folder = cached(KAFKA_JARS, "kafka")
    if not folder.is_dir():
        progress("fetching the Kafka broker from Maven Central (44 MB, once)")
        resolve(KAFKA_JARS, folder, transitive=True)
    return folder
