"""Where a sink task's failed records go: the log and the dead letter queue (`runtime/errors/ProcessingContext.java`).

The task's thread owns a `SinkErrors`.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.errors import FatalTaskError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.metrics.task import ErrorMetrics
from connect_py.task.errors.dead_letters import DeadLetterQueue, context_headers
from connect_py.task.errors.error_log import ErrorLog


class SinkErrors:
    """The error reporters of one sink task.

    Args:
        config: the connector's configuration.
        queue: None when the connector has no dead letter queue.
        metrics: where reports are counted.
    """

    def __init__(
        self, connector: str, task: int, config: Mapping[str, str], queue: DeadLetterQueue | None, metrics: ErrorMetrics | None = None
    ) -> None:
        self._connector = connector
        self._task = task
        self._queue = queue
        self._metrics = metrics or ErrorMetrics()
        self._log = ErrorLog(connector, task, config, self._metrics)
        #: the record that is under way; set before its conversion
        self.record: ConsumedRecord | None = None

    @property
    def is_reporting(self) -> bool:
        """Whether failed records go anywhere."""
        return self._log.is_enabled or self._queue is not None

    def report(self, stage: str, class_name: str, error: Exception) -> None:
        """Report the failure of `record`. Raises FatalTaskError when the dead letter queue cannot take it."""
        record = self.record
        self._log.write(stage, class_name, error, lambda: _shown(record))
        if self._queue is None or record is None:
            return
        place = record.topic, record.partition, record.offset
        self._metrics.dead_letter_requests += 1
        try:
            self._queue.send(record, lambda: context_headers(*place, self._connector, self._task, stage, class_name, error))
        except FatalTaskError:
            self._metrics.dead_letter_failures += 1
            raise

    def place(self) -> str:
        """Where the record under way is from, in words."""
        record = self.record
        return f"topic {record.topic}, partition {record.partition}, offset {record.offset}" if record is not None else "no record"

    def flush(self, deadline: float) -> None:
        """Wait for the dead letters. Raises FatalTaskError."""
        if self._queue is not None:
            self._queue.flush(deadline)


def _shown(record: ConsumedRecord | None) -> str:
    if record is None:
        return ""
    text = f", where consumed record is {{topic='{record.topic}', partition={record.partition}, offset={record.offset}"
    if record.timestamp_type is not None:
        text += f", timestamp={record.timestamp}, timestampType={record.timestamp_type}"
    return text + "}"
