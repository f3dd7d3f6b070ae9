"""The Spark context of this process, shared by all lakehouse tasks in it, and each task's own session; or a session on a Connect server.

The context starts with the first task and stops with the last. State: `_shared`, guarded by `_lock`; nothing of the JVM is kept anywhere
else, so a task that starts after the JVM has died builds a new one. A start takes several seconds, in which the task must answer a pause
and a stop, so `SessionStartup` runs it in a thread of its own.

With Spark Connect the session is on a server, reached over gRPC: there is no JVM here, no context, and so no setting of one. The server
must have been started with the formats' libraries and extensions; that is checked, because without them statements fail one by one. pyspark
is either a client or a driver, for a whole process: connectors of both kinds need processes of their own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from connect_py.errors import ConfigError, FatalTaskError, RetriableError
from connect_py.extras import install_command
from spark_sink.config.sink_config import SinkConfig
from spark_sink.spark import archive, functions, jars, jvm
from spark_sink.spark.settings import EXTENSIONS, context_settings, of_session, session_settings

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
    """One task's session. `close` releases its share of the context.

    Args:
        ended: returns why Spark cannot be used any more, or None, and may take the given seconds to find out.
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
        """Return how Spark ended, in words; None while it lives. Costs nothing."""
        return self._ended(0.0)

    def ended_by(self, error: BaseException) -> str | None:
        """Return how Spark ended after a failure that this may have caused; waits a little to find out."""
        if is_session_lost(error):
            return "the Spark Connect server does not know the session any more; it was restarted, or has closed it"
        return self._ended(_SEEN_SECONDS)

    def close(self) -> None:
        """Release the session; the last one of a process stops Spark. Idempotent."""
        if self._spark is not None:
            self._spark = None
            self._release()


def open_session(config: SinkConfig, name: str, kafka: Mapping[str, str] = MappingProxyType({})) -> TaskSession:
    """Open a session for a task; start Spark if this process has none yet, which takes some seconds.

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
    """Give a new session the settings and functions of a configuration."""
    for key, value in session_settings(config, parallelism(spark)).items():
        spark.conf.set(key, value)
    functions.register(spark, config)


def _connected(config: SinkConfig) -> TaskSession:
    spark = connect_remote(config)
    return TaskSession(spark, lambda: close_remote(spark), lambda _: None)


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
    """Return how many Spark tasks run at once, as far as it is known; queried each time because executors come and go."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except AttributeError:  # over Spark Connect
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 2)


class SessionStartup:
    """A session that is being opened. The thread is a daemon's: a task that ends meanwhile takes the half-started JVM along.

    Args:
        open_session: opens it; called in a thread of its own.
    """

    def __init__(self, open_session: Callable[[], TaskSession]) -> None:
        self._open = open_session
        self._session: Future[TaskSession] = Future()
        self._began = time.monotonic()
        threading.Thread(target=self._run, name="lakehouse-spark-start", daemon=True).start()

    @property
    def seconds(self) -> float:
        """Seconds since the start began."""
        return time.monotonic() - self._began

    def _run(self) -> None:
        try:
            self._session.set_result(self._open())
        except BaseException as error:  # noqa: BLE001  # the task's thread raises it
            self._session.set_exception(error)

    def result(self, seconds: float) -> TaskSession | None:
        """Return the session, or None when it is not open after the given seconds. Raise what opening it raised."""
        try:
            return self._session.result(seconds)
        except TimeoutError:
            if self._session.done():  # the error is the opening's own
                raise
            return None

    def abandon(self) -> None:
        """Close the session as soon as it is open: it is no longer needed."""
        self._session.add_done_callback(lambda done: done.result().close() if done.exception() is None else None)


#: What pyspark's client imports, by the name of its package.
_CLIENT_PACKAGES = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}

#: What the server answers when it does not know a session (any more).
_SESSION_LOST = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_CHANGED", "INVALID_HANDLE.SESSION_NOT_FOUND", "NO_ACTIVE_SESSION")


def connect_remote(config: SinkConfig) -> SparkSession:
    """Open a session on the server of ``lakehouse.spark.remote``.

    Raises:
        ConfigError: the client's libraries are missing, this process has a Spark of its own, or settings are not a session's.
        RetriableError: the server does not answer.
        FatalTaskError: the server lacks the format's extensions.
    """
    jars.pyspark_home()
    missing = sorted(package for module, package in _CLIENT_PACKAGES.items() if not _is_installed(module))
    if missing:
        raise ConfigError(f"Spark Connect needs {', '.join(missing)}, which are not installed: {install_command('spark-connect')}")
    if others := sorted(name for name in config.spark_conf if not of_session(name)):
        raise ConfigError(
            f"{', '.join(others)} cannot be set over Spark Connect: they belong to the server. Start it with them and remove them here."
        )
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    url = config["spark.remote"].reveal()
    if SparkContext._active_spark_context is not None:
        raise ConfigError(
            "Another connector of this process runs Spark itself; one with lakehouse.spark.remote needs a process of its own."
        )
    try:
        session = SparkSession.builder.remote(url).create()
        extensions = session.conf.get("spark.sql.extensions", "") or ""
    except Exception as error:
        raise RetriableError(f"The Spark Connect server at {address(url)} does not answer: {str(error).splitlines()[0][:500]}") from error
    wanted = EXTENSIONS[config["format"]]
    if wanted not in extensions:
        close_remote(session)
        raise FatalTaskError(
            f"The Spark Connect server at {address(url)} lacks spark.sql.extensions={wanted}. Start it with that and the libraries of "
            f"{config['format']} and of Spark's Kafka source ({', '.join(jars.SINK_JARS)}), then restart the task."
        )
    return session


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def is_session_lost(error: BaseException) -> bool:
    """Return whether a failure says that the server no longer knows the session."""
    return any(text in str(error) for text in _SESSION_LOST)


def close_remote(session: SparkSession) -> None:
    """Release the session on the server, as far as it can still be reached."""
    with contextlib.suppress(Exception):
        session.stop()


def address(url: str) -> str:
    """Return a server's address without the parameters, which may hold a token."""
    return re.sub(r";.*$", "", url)
