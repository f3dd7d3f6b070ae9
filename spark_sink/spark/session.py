"""The Spark context of this process, shared by all lakehouse tasks in it, and each task's own session; or a session on a Connect server.

The context starts with the first task and stops with the last. State: `_shared`, guarded by `_lock`; nothing of the JVM is kept anywhere
else, so a task that starts after the JVM has died builds a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from connect_py.errors import ConfigError, FatalTaskError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.spark import archive, functions, jvm, remote
from spark_sink.spark.settings import context_settings, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A call fails at once when the JVM has been killed; the process's end may be seen a little later.
_SEEN_SECONDS = 2.0


@dataclass
class _Shared:
    jvm: jvm.Jvm
    settings: Mapping[str, str]
    users: int


_lock = threading.Lock()
_shared: _Shared | None = None


class TaskSession:
    """One task's session. `close` gives up its share of what carries it.

    Args:
        ended: answers why Spark cannot be used any more, or None; it may take so many seconds to find out.
    """

    def __init__(self, spark: SparkSession, release: Callable[[], None], ended: Callable[[float], str | None]) -> None:
        self._spark: SparkSession | None = spark
        self._release = release
        self._ended = ended

    @property
    def spark(self) -> SparkSession:
        """The session. Raises FatalTaskError after `close`."""
        if self._spark is None:
            raise FatalTaskError("The task's Spark session has been closed.")
        return self._spark

    def ended(self) -> str | None:
        """How Spark ended, in words; None while it lives. Costs nothing."""
        return self._ended(0.0)

    def ended_by(self, error: BaseException) -> str | None:
        """As `ended`, after a failure, whose cause that may be: looks more closely."""
        if remote.is_lost(error):
            return "the Spark Connect server does not know the session any more; it was restarted, or has closed it"
        return self._ended(_SEEN_SECONDS)

    def close(self) -> None:
        """Idempotent; the last one of a process stops Spark."""
        if self._spark is not None:
            self._spark = None
            self._release()


def open_session(config: SinkConfig, name: str, kafka: Mapping[str, str] = MappingProxyType({})) -> TaskSession:
    """A session for a task; starts Spark if this process has none yet, which takes some seconds.

    Args:
        name: shown as the application's name.
        kafka: the worker's settings of Kafka's client.

    Raises:
        ConfigError: Spark or Java is missing, or another task of this process runs with other settings of the context.
        RetriableError: the libraries could not be fetched, or the Spark Connect server does not answer.
        FatalTaskError: Spark does not start, or the server is not fit for the sink.
    """
    session = _connected(config) if config["spark.remote"] else _started(config, name, kafka)
    try:
        prepare(session.spark, config)
    except BaseException:
        session.close()
        raise
    return session


def prepare(spark: SparkSession, config: SinkConfig) -> None:
    """Make a new session one of a configuration's."""
    for key, value in session_settings(config).items():
        spark.conf.set(key, value)
    functions.register(spark, config)


def _connected(config: SinkConfig) -> TaskSession:
    spark = remote.connect(config)
    return TaskSession(spark, lambda: remote.close(spark), lambda _: None)


def _started(config: SinkConfig, name: str, kafka: Mapping[str, str]) -> TaskSession:
    global _shared
    wanted = context_settings(config, kafka)
    with _lock:
        if _shared is not None and (_shared.jvm.ended() or _shared.jvm.is_stopped()):
            _shared.jvm.stop()
            _shared = None
        if _shared is None:
            _shared = _Shared(jvm.start(archive.use(wanted), name), wanted, 0)
        elif _shared.settings != wanted:
            names = sorted(k for k in {*wanted, *_shared.settings} if wanted.get(k) != _shared.settings.get(k))
            raise ConfigError(
                f"Spark runs in this process already, for another connector, with other settings of {', '.join(names)}. "
                "Give both connectors the same ones, or run them in processes of their own (task.isolation=process)."
            )
        shared = _shared
        spark = shared.jvm.session.newSession()
        shared.users += 1
    return TaskSession(spark, lambda: _release(shared), lambda seconds: _ended(shared.jvm, seconds))


def _release(shared: _Shared) -> None:
    global _shared
    with _lock:
        shared.users -= 1
        if shared.users == 0 and shared is _shared:  # else the JVM died and another has taken its place
            shared.jvm.stop()
            _shared = None


def _ended(running: jvm.Jvm, seconds: float) -> str | None:
    if (how := running.ended()) is not None or not seconds:
        return how
    if not running.is_stopped():
        return None
    return running.ended(seconds) or "its context was stopped, by its cluster or by somebody else"


def parallelism(spark: SparkSession) -> int:
    """How many Spark tasks run at once, as far as it is known; asked anew because executors come and go."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except AttributeError:  # over Spark Connect
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 2)
