"""A task's process; started by the worker, never by hand."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import confluent_kafka

from connect_py.api.storage import OffsetWriter
from connect_py.log import lines as line_logging
from connect_py.plugins.registry import Plugins
from connect_py.task.fork_server import FORK_SERVER, serve
from connect_py.task.main import OffsetTopic
from connect_py.task.main import main as task_main

#: What most tasks need. What only some need (registries, SQLAlchemy, Spark) takes long to import or much memory, and stays with them.
_PRELOADED = (
    "offsets.offset_store",
    "connect_py.kafka.admin",
    "connect_py.kafka.consumer",
    "connect_py.kafka.resting_producer",
    "connect_py.config.client_overrides",
    "connect_py.converters.json_converter",
    "connect_py.task.chain",
    "connect_py.task.sink",
    "connect_py.task.source",
    "connect_py.task.topics",
    "connectors.file.source",
    "connectors.mongodb.connector",
    "connectors.mongodb.task",
    "connectors.mysql.connector",
    "connectors.mysql.task",
    "connectors.postgres.connector",
    "connectors.postgres.task",
    "encodings.utf_16_be",
)


def task(arguments: Sequence[str]) -> int:
    """Run a task until its worker or its source ends it, or serve as the process that tasks are forked from. Returns the exit code."""
    is_server = arguments[:1] == [FORK_SERVER]
    if is_server:
        _warm_up()
        if not serve():
            return 0
    return task_main(_offset_writer, offset_topic=_offset_topic, compare=_compare, is_forked=is_server)


def _warm_up() -> None:
    """Do once what each task would do again, in memory of its own.

    A Kafka client without a broker has librdkafka and its OpenSSL begin, which is some 1.3 MB; its threads end with it, before the first
    fork. Python has an OpenSSL of its own, of 1.1 MB, which a connection to MySQL uses; both seed their random numbers again in a fork.
    Abstract classes remember which classes are not theirs; the first question about one touches all of their subclasses: 0.4 MB for a key
    of the offsets topic, 0.2 MB for a converter.
    """
    import ssl

    from connect_py.converters.json_converter import JsonConverter
    from connect_py.plugins.registry import kinds_of
    from offsets.keys import offset_key

    for name in _PRELOADED:
        importlib.import_module(name)
    line_logging.configure()
    confluent_kafka.Producer({"log_level": 0})
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    offset_key("", {})
    kinds_of(JsonConverter)


def _offset_writer(worker: Mapping[str, str], connector: str, task: int, config: Mapping[str, str]) -> OffsetWriter:
    from offsets.offset_store import TaskOffsetWriter

    return TaskOffsetWriter(worker, connector, task, config)


def _compare(
    start: Mapping[str, Any],
    plugins: Plugins,
    resolve: Callable[[Mapping[str, str]], Mapping[str, str]],
    report: Callable[[Mapping[str, Any]], None],
    describe: Callable[[Exception], str],
) -> None:
    from connect_py.app.verify.served import compare

    compare(start, plugins, resolve, report, describe)


def _offset_topic(worker: Mapping[str, str], connector: str, task: int, config: Mapping[str, str]) -> OffsetTopic:
    from offsets.cache import offset_records
    from offsets.offset_store import TaskOffsetWriter
    from offsets.own_topic import own_topic
    from offsets.topics import OFFSET_TOPIC

    own = own_topic(worker, config)
    copies = None if own is None else TaskOffsetWriter(worker, connector, task)
    return OffsetTopic(own or OFFSET_TOPIC.name(worker), functools.partial(offset_records, connector), copies)
