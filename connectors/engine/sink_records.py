"""What sinks share: a connector whose tasks all have its configuration, and where records go that cannot be written."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from connect_py.api import SinkConnector, SinkRecord, SinkTaskContext
from connect_py.errors import DataError

log = logging.getLogger(__name__)


class UniformSinkConnector(SinkConnector):
    """A sink connector with one configuration for all tasks, whose offsets are the consumer group's alone."""

    _config: Mapping[str, str]

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration; the tasks parse it, so that a mistake shows in their trace, as in the reference."""
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the same configuration for each task."""
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[tuple[str, int], int | None]) -> bool:
        """Accept any offsets: the consumer group holds all there is."""
        return True


class ErrantRecords:
    """Reports the records that a task cannot write. Used by the task's thread.

    Args:
        config: the task's configuration, with `errors.tolerance`.
        context: the task's context; its reporter, where there is one, decides what becomes of a record.
    """

    def __init__(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        self._context = context
        self._tolerates = config.get("errors.tolerance", "none").strip().lower() == "all"

    @property
    def are_accepted(self) -> bool:
        """Whether the task may continue without a record that cannot be written."""
        return self._tolerates or self._context.report_errant_record is not None

    def report(self, record: SinkRecord, error: DataError) -> None:
        """Report a record.

        Raises:
            DataError: the given error, where nothing tolerates it.
        """
        report = self._context.report_errant_record
        if report is not None:
            report(record, error)
        elif self._tolerates:
            log.warning("A record of %s, partition %d, offset %d, was skipped: %s", record.topic, record.partition, record.offset, error)
        else:
            raise error
