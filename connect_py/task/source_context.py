"""What a source task may ask of its loop (`WorkerSourceTaskContext.java`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.api import JsonEncoding, SourceOffset, SourcePartition
from connect_py.task.control import Report


class SourceContext:
    """`SourceTaskContext`: the offsets are those that the offsets topic held when the task was started."""

    def __init__(
        self,
        connector: str,
        task: int,
        encoding: JsonEncoding,
        offsets: Sequence[tuple[SourcePartition, SourceOffset]],
        report: Report = lambda message: None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.connector = connector
        self.task = task
        self.encoding = encoding
        self.config = config or {}
        self._report = report
        self._offsets = {tuple(sorted(partition.items())): offset for partition, offset in offsets}

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition, whatever the order of its keys."""
        return self._offsets.get(tuple(sorted(partition.items())))

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Hand a notification to the worker."""
        self._report({"type": "notification", "notification": dict(notification)})
