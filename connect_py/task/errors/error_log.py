"""The log's side of ``errors.*``: one entry for each record that fails (`runtime/errors/LogReporter.java`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from connect_py.api.config import ConfigType, parse_value
from connect_py.log.traces import trace_of
from connect_py.metrics.task import ErrorMetrics

log = logging.getLogger(__name__)


class ErrorLog:
    """What ``errors.log.enable`` and ``errors.log.include.messages`` ask for.

    Args:
        config: the connector's configuration.
        metrics: where entries are counted.
    """

    def __init__(self, connector: str, task: int, config: Mapping[str, str], metrics: ErrorMetrics) -> None:
        self.is_enabled = flag(config, "errors.log.enable")
        self._shows_records = flag(config, "errors.log.include.messages")
        self._task = f"{connector}-{task}"
        self._metrics = metrics

    def write(self, stage: str, class_name: str, error: Exception, record: Callable[[], str]) -> None:
        """Log a failure, if that is asked for.

        Args:
            record: tells of the record, with the words that lead to it; it may hold the record's values, and is asked only where the
                configuration allows that.
        """
        if not self.is_enabled:
            return
        self._metrics.logged += 1
        shown = record() if self._shows_records else ""
        log.error(
            "Error encountered in task %s. Executing stage '%s' with class '%s'%s.\n%s",
            self._task,
            stage,
            class_name,
            shown,
            trace_of(error).rstrip(),
        )


def flag(config: Mapping[str, str], name: str) -> bool:
    """A property that is on or off, off by default."""
    return bool(parse_value(name, config.get(name, "false"), ConfigType.BOOLEAN))
