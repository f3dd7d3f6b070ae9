"""Spark Connect: a session on a server somewhere, over gRPC. There is no JVM here, no context, and so no setting of one.

The server must have been started with the formats' libraries and extensions; that is checked, because without them statements fail one by
one. pyspark is either a client or a driver, for a whole process: connectors of both kinds need processes of their own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from typing import TYPE_CHECKING

from connect_py.errors import ConfigError, FatalTaskError, RetriableError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.spark import jars
from spark_sink.spark.settings import EXTENSIONS, of_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What pyspark's client imports, by the name of its package.
_CLIENT = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}

#: What the server answers when it does not know a session (any more).
_SESSION_LOST = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_CHANGED", "INVALID_HANDLE.SESSION_NOT_FOUND", "NO_ACTIVE_SESSION")


def connect(config: SinkConfig) -> SparkSession:
    """A session of its own on the server of ``lakehouse.spark.remote``.

    Raises:
        ConfigError: the client's libraries are missing, this process has a Spark of its own, or settings are not a session's.
        RetriableError: the server does not answer.
        FatalTaskError: the server lacks the format's extensions.
    """
    jars.pyspark_home()
    missing = sorted(package for module, package in _CLIENT.items() if not _is_there(module))
    if missing:
        raise ConfigError(
            f"Spark Connect needs {', '.join(missing)}, which are not installed: install the extra with `pip install "
            "'connect-py-worker[spark-connect]'`."
        )
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
        raise RetriableError(f"The Spark Connect server at {place(url)} does not answer: {str(error).splitlines()[0][:500]}") from error
    wanted = EXTENSIONS[config["format"]]
    if wanted not in extensions:
        close(session)
        raise FatalTaskError(
            f"The Spark Connect server at {place(url)} lacks spark.sql.extensions={wanted}. Start it with that and the libraries of "
            f"{config['format']} and of Spark's Kafka source ({', '.join(jars.SINK_JARS)}), then restart the task."
        )
    return session


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def is_lost(error: BaseException) -> bool:
    """Whether a failure says that the server no longer knows the session."""
    return any(text in str(error) for text in _SESSION_LOST)


def close(session: SparkSession) -> None:
    """Release the session on the server, as far as it can still be reached."""
    with contextlib.suppress(Exception):
        session.stop()


def place(url: str) -> str:
    """A server's address without the parameters, which may hold a token."""
    return re.sub(r";.*$", "", url)
