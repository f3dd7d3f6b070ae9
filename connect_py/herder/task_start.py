"""The ``start`` message of a task's process: everything the process needs to know (`connect_py.task.main` reads it)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from connect_py.api import SourceConnector
from connect_py.api.storage import OffsetStore
from connect_py.config.connector import CONNECTOR_CLASS
from connect_py.config.worker import WorkerConfig
from connect_py.plugins.registry import Plugins

#: How long the committed offsets may take to be read.
OFFSETS_SECONDS = 90.0


def start_message(
    worker: WorkerConfig,
    plugins: Plugins,
    store: OffsetStore,
    *,
    connector: str,
    task: int,
    config: Mapping[str, str],
    task_config: Mapping[str, str],
    paused: bool,
    offsets_by_pipe: bool,
) -> dict[str, Any]:
    """Called when no process of the task is left, so the offsets that it reads are the last ones.

    Raises:
        BadRequestError: the connector's class is not installed.
        RetriableError: the offsets cannot be read just now.
    """
    found = plugins.connector(config.get(CONNECTOR_CLASS, ""))
    offsets: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if issubclass(found, SourceConnector):
        store.refresh(OFFSETS_SECONDS)
        offsets = [(dict(partition), dict(offset)) for partition, offset in store.of_connector(connector)]
    return {
        "type": "start",
        "connector": connector,
        "task": task,
        "class": found.java_name,
        "config": dict(config),
        "task_config": dict(task_config),
        "worker": dict(worker.raw),
        "plugins": plugins.references,
        "offsets": offsets,
        "offsets_by_pipe": offsets_by_pipe,
        "leased": issubclass(found, SourceConnector) and not offsets_by_pipe,
        "flush_interval": worker.flush_interval_seconds,
        "flush_timeout": worker.flush_timeout_seconds,
        "topic_creation": worker.topic_creation,
        "paused": paused,
        "log_level": logging.getLogger().level,
        "log_levels": _levels_of_loggers(),
    }


def _levels_of_loggers() -> dict[str, int]:
    """Loggers with a level of their own."""
    known = logging.getLogger().manager.loggerDict
    return {name: made.level for name, made in known.items() if isinstance(made, logging.Logger) and made.level}
