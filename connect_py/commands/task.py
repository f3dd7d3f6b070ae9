"""A task's process; started by the worker, never by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_py.api.storage import OffsetWriter
from connect_py.runtime.spare_name import SPARE
from connect_py.runtime.task_main import main as task_main


def task(arguments: Sequence[str], _usage: str) -> int:
    """Run a task until its worker or its source ends it. Returns the exit code.

    A spare imports what tasks need while it waits for its task.
    """
    is_spare = arguments[:1] == [SPARE]
    if is_spare:
        _preload()
    return task_main(_offset_writer, is_spare=is_spare)


def _preload() -> None:
    import offsets.writer  # noqa: F401


def _offset_writer(worker: Mapping[str, str], connector: str, task: int) -> OffsetWriter:
    from offsets.writer import TaskOffsetWriter

    return TaskOffsetWriter(worker, connector, task)
