"""The Spark context of this process, shared by all lakehouse tasks in it, and each task's own session.

The context starts with the first task and stops with the last. State: `_shared`, guarded by `_lock`; nothing of the JVM is kept anywhere
else, so a task that starts after the JVM has died builds a new one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.errors import ConfigError, FatalTaskError
from spark_sink import jars
from spark_sink.config import SinkConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings that a session can have of its own; all others belong to the context. Extensions are read once, when the context starts.
_SESSION_PREFIX = "spark.sql."
_CONTEXT_SQL = ("spark.sql.extensions", "spark.sql.warehouse.dir", "spark.sql.catalogImplementation")

#: Of both formats, always: a process may have tasks of both, and the context's extensions cannot be changed.
_EXTENSIONS = ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions", "io.delta.sql.DeltaSparkSessionExtension")

#: How long a JVM may take to run its shutdown hooks (deleting its temporary files; a second or two).
_JVM_END_SECONDS = 15.0

#: For a driver that does the work itself: only the first of the JVM's two compilers. Measured on two cores, in CPU seconds: until the first
#: rows are in a table 18 instead of 30, a batch of a few rows 1.1 instead of 2.4, 200 000 rows from a cold start 48 instead of 61; once
#: warm 50 000 rows take 9.1 instead of 8.1. `-XX:TieredStopAtLevel=4` in the user's own options takes it back.
#: The code cache is by default 48 MB then, which two minutes of merges fill, and a JVM with a full one stops compiling.
_LOCAL_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601} %p spark %c{1}: %m%n
# What these say comes back as the statement's error.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.writes.name = org.apache.spark.sql.execution.datasources.v2
logger.writes.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
"""


@dataclass
class _Shared:
    session: SparkSession
    settings: Mapping[str, str]
    users: int


_lock = threading.Lock()
_shared: _Shared | None = None


class TaskSession:
    """One task's session. `close` gives up its share of the context."""

    def __init__(self, spark: SparkSession, shared: _Shared) -> None:
        self._spark: SparkSession | None = spark
        self._owner = shared

    @property
    def spark(self) -> SparkSession:
        """The session. Raises FatalTaskError after `close`."""
        if self._spark is None:
            raise FatalTaskError("The task's Spark session has been closed.")
        return self._spark

    @property
    def alive(self) -> bool:
        """Whether the JVM answers and its context runs."""
        return self._spark is not None and _alive(self._spark)

    def close(self) -> None:
        """Idempotent; the last one stops Spark."""
        global _shared
        with _lock:
            if self._spark is None:
                return
            self._spark = None
            self._owner.users -= 1
            if self._owner.users == 0 and self._owner is _shared:  # else the JVM died and another has taken its place
                _stop(_shared.session)
                _shared = None


def open_session(config: SinkConfig, name: str) -> TaskSession:
    """A session for a task; starts Spark if this process has none yet, which takes some seconds.

    Args:
        name: shown as the application's name.

    Raises:
        ConfigError: Spark or Java is missing, or another task of this process runs with other settings of the context.
        RetriableError: the libraries could not be fetched.
        FatalTaskError: Spark does not start.
    """
    global _shared
    wanted = context_settings(config)
    with _lock:
        if _shared is not None and not _alive(_shared.session):
            _stop(_shared.session)
            _shared = None
        if _shared is None:
            _shared = _Shared(_start(wanted, name), wanted, 0)
        elif _shared.settings != wanted:
            names = sorted(k for k in {*wanted, *_shared.settings} if wanted.get(k) != _shared.settings.get(k))
            raise ConfigError(
                f"Spark runs in this process already, for another connector, with other settings of {', '.join(names)}. "
                "Give both connectors the same ones, or run them in processes of their own (task.isolation=process)."
            )
        shared = _shared
        session = shared.session.newSession()
        shared.users += 1
    for key, value in session_settings(config).items():
        session.conf.set(key, value)
    return TaskSession(session, shared)


def parallelism(spark: SparkSession) -> int:
    """How many Spark tasks run at once, as far as it is known; asked anew because executors come and go."""
    return int(spark.sparkContext.defaultParallelism)


def context_settings(config: SinkConfig) -> dict[str, str]:
    """Settings that all tasks of a process share."""
    master = config["spark.master"]
    libraries = config["spark.jars"] or [str(jar) for jar in jars.resolve(jars.SINK_JARS, jars.cached(jars.SINK_JARS, "spark-sink"))]
    settings = {
        "spark.master": master,
        "spark.jars": ",".join(libraries),
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.ui.enabled": "false" if master.startswith("local") else "true",
        "spark.ui.showConsoleProgress": "false",
        # Every table has its own catalog: this one would put a directory into whatever the process's working directory is.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "connect-py-spark-warehouse"),
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
    settings.update({k: v for k, v in config.spark_conf.items() if not _of_session(k)})
    return settings


def session_settings(config: SinkConfig) -> dict[str, str]:
    """Settings of one task's session. The time zone and ANSI mode are not the user's to choose: conversions rely on them."""
    settings = {
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        # A file a task of the write; two tiny batches a second must not each leave a file for every core.
        "spark.sql.adaptive.enabled": "true",
        # A batch is held for seconds: looking for a better encoding of its columns costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }
    settings.update(_of_delta(config) if config["format"] == "delta" else _of_iceberg(config))
    settings.update({k: v for k, v in config.spark_conf.items() if _of_session(k)})
    settings.update({"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"})
    return settings


def _of_iceberg(config: SinkConfig) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{config['catalog']}"
    # A cached table of another session has been seen to answer with the state before a commit.
    settings = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.cache-enabled": "false"}
    return settings | {f"{catalog}.{name}": value for name, value in config.catalog.items()}


def _of_delta(config: SinkConfig) -> dict[str, str]:
    # Tables by path go through spark_catalog, whatever catalog the user's are in.
    settings = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
    if config["spark.master"].startswith("local"):
        # Delta reads a table's state by as many tasks as this; its default of 50 takes longer than a small batch.
        settings["spark.databricks.delta.snapshotPartitions"] = "2"
        settings["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = "8"
    catalog = f"spark.sql.catalog.{config['catalog']}"
    if config["catalog"] != "spark_catalog":
        settings[catalog] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    return settings | {(f"{catalog}.{name}" if name != "catalog-impl" else catalog): value for name, value in config.catalog.items()}


def _of_session(key: str) -> bool:
    return key.startswith(_SESSION_PREFIX) and key not in _CONTEXT_SQL


def _start(settings: Mapping[str, str], name: str) -> SparkSession:
    jars.java()
    jars.pyspark_home()
    from pyspark.sql import SparkSession

    logging = Path(tempfile.mkdtemp(prefix="connect-py-spark-")) / "log4j2.properties"
    logging.write_text(_LOGGING)
    options = [f"-Dlog4j2.configurationFile={logging}"]
    options += [_LOCAL_JVM_OPTIONS] if settings["spark.master"].startswith("local") else []
    options += [settings.get("spark.driver.extraJavaOptions", "")]
    builder = SparkSession.builder.appName(name).config("spark.driver.extraJavaOptions", " ".join(options).rstrip())
    for key, value in settings.items():
        if key != "spark.driver.extraJavaOptions":
            builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise FatalTaskError(f"Spark did not start ({settings['spark.master']}): {error}") from error


def _alive(session: SparkSession) -> bool:
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except Exception:  # noqa: BLE001  # py4j raises many kinds when the JVM is gone
        return False


def _stop(session: SparkSession) -> None:
    """Stop the context and end the JVM, so that the next start gets a new one."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    with contextlib.suppress(Exception):  # of a dead JVM
        session.stop()
    SparkContext._active_spark_context = None
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        if process := getattr(gateway, "proc", None):
            _end(process)
        SparkContext._gateway = None
        SparkContext._jvm = None


def _end(process: subprocess.Popen[bytes]) -> None:
    """The gateway's server ends with its input; one that does not is killed, because it holds ports and memory."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_JVM_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
