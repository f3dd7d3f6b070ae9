"""Settings of Spark that a configuration needs: of the context, which all tasks of a process share, and of a task's own session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from spark_sink.config.sink_config import SinkConfig, kind_of
from spark_sink.spark import jars

#: Settings that a session can have of its own; all others belong to the context. Extensions are read once, when the context starts.
_SESSION_PREFIX = "spark.sql."
_CONTEXT_SQL = (
    "spark.sql.extensions",
    "spark.sql.warehouse.dir",
    "spark.sql.catalogImplementation",
    "spark.sql.codegen.cache.maxEntries",
    "spark.sql.ui.retainedExecutions",
)

#: Of both formats, always: a process may have tasks of both, and the context's extensions cannot be changed.
EXTENSIONS = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
}

#: A batch has some hundred thousand rows at most: Spark's default of 200 cuts it into crumbs. Small parts are joined again in any case.
_CLUSTER_PARTITIONS = "32"


#: What Kafka's Java client asks before it fetches a token or a key (CVE-2025-27817): addresses with commas between, none when empty.
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_NAMES_OF_ADDRESSES = ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url")
_JVM_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")

#: What Spark keeps of past work for its pages, which are off where a driver does the work itself: by default a thousand plans.
_WITHOUT_UI = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
}


#: What a driver that does the work itself holds: two batches' records, and what its tasks sort. Of its heap of 640 MB Spark takes 0.6 of
#: what is beyond 300, which is too little for two batches of 100,000: it wrote each record to a file by Java's serialization, and read it
#: again.
_FRACTION = "0.75"

#: Spark keeps the consumers of a query, each with the records that it has read ahead (500, and what a fetch has brought), for five minutes.
#: Each batch is a query of its own, so nobody asks for them again: in a backlog there were sixty, of three megabytes each.
_KEPT_CONSUMERS = {
    "spark.kafka.consumer.cache.timeout": "10s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}


def context_settings(config: SinkConfig, kafka: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the settings that all tasks of a process share.

    Args:
        kafka: the worker's settings of Kafka's client. Its addresses of tokens are the only ones from which the JVM may fetch them.
    """
    master = config["spark.master"]
    is_local = master.startswith("local")
    libraries = list(config["spark.jars"] or map(str, jars.resolve(jars.SINK_JARS, jars.cached(jars.SINK_JARS, "spark-sink"))))
    if is_local:
        libraries.append(str(jars.local_files()))
    settings = {
        "spark.master": master,
        "spark.jars": ",".join(libraries),
        "spark.sql.extensions": ",".join(EXTENSIONS.values()),
        "spark.ui.enabled": "false" if is_local else "true",
        "spark.ui.showConsoleProgress": "false",
        # A merge into a Delta table takes a hundred classes of generated code, and Spark keeps a hundred of all: every batch would make
        # them again, and the JVM would compile them again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Tables that are written at once share the cores: a small one does not wait for the jobs of a large one.
        "spark.scheduler.mode": "FAIR",
        **_KEPT_CONSUMERS,
    }
    if is_local:
        settings |= _WITHOUT_UI | {"spark.driver.host": "127.0.0.1", "spark.memory.fraction": _FRACTION}
    settings.update({k: v for k, v in config.spark_conf.items() if not of_session(k)})
    client = {**kafka, **config.kafka}  # the worker's policy has been applied to what connectors set
    addresses = ",".join(address for name in _NAMES_OF_ADDRESSES if (address := client.get(name)) and not re.search(r"[\s\"']", address))
    for name in _JVM_OPTIONS[: 1 if is_local else 2]:
        settings[name] = f"-D{_ALLOWED_URLS}={addresses} {settings.get(name, '')}".rstrip()
    return settings


def session_settings(config: SinkConfig, cores: int) -> dict[str, str]:
    """Return the settings of one task's session.

    The time zone and ANSI mode are not the user's to choose: conversions rely on them. Neither is the substitution of variables: Spark
    replaces ``${env:X}`` in a statement before it parses it, also within quotes, and records name columns and comments.

    Args:
        cores: of a Spark in the task's own process. A container may have fewer than its machine.
    """
    settings = {
        "spark.sql.shuffle.partitions": str(cores) if _is_local(config) else _CLUSTER_PARTITIONS,
        # A file a task of the write; two tiny batches a second must not each leave a file for every core.
        "spark.sql.adaptive.enabled": "true",
        # A batch is held for seconds: looking for a better encoding of its columns costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # A list of keys is a reference of the generated code then, and no part of it: that of a batch is that of the one before.
        "spark.sql.optimizer.inSetConversionThreshold": "1",
        "spark.sql.optimizer.inSetSwitchThreshold": "0",
        # Without kafka in it, which is read by Spark's first interface otherwise: each record becomes objects of Java's and rows again.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # What the parser learns from statements it keeps for good, 6 kB a state: after some hundred kinds of them a quarter of the heap.
        "spark.sql.parser.parserDfaCacheFlushThreshold": "10000",
        # The last event of each key is found by one sort, not by two with a shuffle between them; most keys are there once.
        "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
    }
    if config["source.mode"] == "stream":
        # A query that finds nothing new (offsets of an open transaction) looks a hundred times a second by default.
        settings["spark.sql.streaming.pollingDelay"] = "200ms"
        settings["spark.sql.streaming.stopTimeout"] = "5s"
    settings.update(_of_delta(config) if config["format"] == "delta" else _of_iceberg(config))
    settings.update({k: v for k, v in config.spark_conf.items() if of_session(k)})
    settings.update({"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true", "spark.sql.variable.substitute": "false"})
    return settings


def _of_iceberg(config: SinkConfig) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{config['catalog']}"
    # A cached table of another session has been seen to answer with the state before a commit.
    settings = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.cache-enabled": "false"}
    if kind_of(config.catalog) == "jdbc":
        # Spark looks for views of a table's name, which a catalog of the first version refuses
        settings[f"{catalog}.jdbc.schema-version"] = "V1"
    return settings | {f"{catalog}.{name}": value for name, value in config.catalog.items()}


def _of_delta(config: SinkConfig) -> dict[str, str]:
    # Tables by path go through spark_catalog, whatever catalog the user's are in.
    settings = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
    # Spark's own default, of 96 bits, is read as nanoseconds by others, in which years before 1677 and after 2262 overflow.
    settings["spark.sql.parquet.outputTimestampType"] = "TIMESTAMP_MICROS"
    if _is_local(config):
        # Delta reads a table's state by as many tasks as this; its default of 50 takes longer than a small batch.
        settings["spark.databricks.delta.snapshotPartitions"] = "2"
        settings["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = "8"
    catalog = f"spark.sql.catalog.{config['catalog']}"
    if config["catalog"] != "spark_catalog":
        settings[catalog] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    return settings | {(f"{catalog}.{name}" if name != "catalog-impl" else catalog): value for name, value in config.catalog.items()}


def _is_local(config: SinkConfig) -> bool:
    return config["spark.remote"] is None and config["spark.master"].startswith("local")


def of_session(key: str) -> bool:
    """Return whether a session can have a setting of its own."""
    return key.startswith(_SESSION_PREFIX) and key not in _CONTEXT_SQL
