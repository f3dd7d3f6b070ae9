"""Which processes the demo kills: the task that reads the database, and Spark, by Linux's /proc."""

from __future__ import annotations

from pathlib import Path

from connect_py.app.services.process import child_pids
from connect_py.app.services.worker import Worker

#: How many rows change while processes are killed.
CHANGES = 10_000

#: Between two changes: all of them take a minute at least, so that each process is killed and back while rows change.
CHANGE_PAUSE_SECONDS = 0.005


def spark_processes(worker: Worker) -> list[int]:
    """Return the JVMs of the worker's tasks."""
    return [child for task in worker.children() for child in child_pids(task) if _is_java(child)]


def source_tasks(worker: Worker) -> list[int]:
    """Return the worker's tasks without a JVM; a sink has one from a second after its start on."""
    return [task for task in worker.children() if not any(map(_is_java, child_pids(task)))]


def _is_java(pid: int) -> bool:
    """Return False also for a process that has ended since it was listed."""
    try:
        return "java" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False
