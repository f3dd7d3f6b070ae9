"""The boundaries of a lakehouse batch, and a trap that springs at one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from spark_sink.task import SparkLakehouseSinkTask

#: Where a batch can be cut off, in its order; those with an underscore are steps of a commit of Iceberg's.
BOUNDARIES = (
    "planned",
    "read",
    "loaded",
    "creating",
    "created",
    "writing",
    "before _publish",
    "after _publish",
    "after _keep",
    "committed",
    "before the report",
    "reported",
    "asked",
)


def of_format(format_: str) -> list[str]:
    """Those that a table format has."""
    return [name for name in BOUNDARIES if format_ == "iceberg" or "_" not in name]


class Trap:
    """Does something at the n-th passing of a boundary; at `writing` after a delay in seconds, so somewhere within the commit."""

    def __init__(self, boundary: str, countdown: int, spring: Callable[[], None], delay: float | None = None) -> None:
        self._boundary, self._countdown, self._spring, self._delay = boundary, countdown, spring, delay

    def passed(self, boundary: str) -> None:
        """A boundary is passed."""
        if boundary != self._boundary:
            return
        self._countdown -= 1
        if self._countdown == 0:
            if boundary == "writing" and self._delay is not None:
                threading.Timer(self._delay, self._spring).start()
            else:
                self._spring()

    def set_in(self, task: SparkLakehouseSinkTask) -> None:
        """Watch a started task; what comes after a step is passed by its caller."""
        tables: Any = task._tables
        self._around(task._driver, "next", "asked", "planned")
        self._around(task._reader, "read", None, "read")
        self._around(tables, "load", None, "loaded")
        self._around(tables, "create", "creating", "created")
        for name in ("merge", "append"):
            self._around(tables, name, "writing", "committed")
        for name in ("_publish", "_keep", "_drop"):  # what a commit of Iceberg's consists of
            if hasattr(tables, name):
                self._around(tables, name, f"before {name}", f"after {name}")

    def _around(self, owner: Any, name: str, before: str | None, after: str | None) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **more: Any) -> Any:
            if before:
                self.passed(before)
            answer = inner(*args, **more)
            if after:
                self.passed(after)
            return answer

        setattr(owner, name, wrapped)
