"""A task's process; started by the worker, never by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_py.api.storage import OffsetWriter
from connect_py.runtime.task_main import main as task_main


def task(_arguments: Sequence[str], _usage: str) -> int:
    """Run a task until its worker or its source ends it. Returns the exit code."""
    return task_main(_offset_writer)


def _offset_writer(worker: Mapping[str, str], connector: str, task: int) -> OffsetWriter:
    from offsets.writer import TaskOffsetWriter

    return TaskOffsetWriter(worker, connector, task)
