"""The boundaries of a lakehouse batch, and a trap that springs at one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from spark_sink.task import SparkLakehouseSinkTask

#: Where a batch can be cut off, in its order.
BOUNDARIES = (
    "planned",
    "read",
    "loaded",
    "creating",
    "created",
    "writing",
    "publishing",
    "published",
    "committed",
    "before the report",
    "reported",
    "asked",
)

#: Those of the whole batch; the others are passed once for each table.
OF_THE_BATCH = ("planned", "read", "before the report", "reported", "asked")

#: Those of a commit of Iceberg's, whose rows are written before it.
_OF_ICEBERG = ("publishing", "published")

#: Those that need a table which is not there.
OF_CREATION = ("creating", "created")


def of_format(format_: str) -> list[str]:
    """Those that a table format has."""
    return [name for name in BOUNDARIES if format_ == "iceberg" or name not in _OF_ICEBERG]


class Trap:
    """Does something at the n-th passing of a boundary; at `writing` after a delay in seconds, so somewhere within the commit.

    Args:
        table: only passings of this table count, where a boundary is a table's.
    """

    def __init__(
        self, boundary: str, countdown: int, spring: Callable[[], None], delay: float | None = None, table: str | None = None
    ) -> None:
        self._boundary, self._countdown, self._spring, self._delay = boundary, countdown, spring, delay
        self._table = None if boundary in OF_THE_BATCH else table
        self._timer: threading.Timer | None = None

    def passed(self, boundary: str, table: str | None = None) -> None:
        """A boundary is passed."""
        if boundary != self._boundary or (self._table is not None and table != self._table):
            return
        self._countdown -= 1
        if self._countdown == 0:
            if boundary == "writing" and self._delay is not None:
                self._timer = threading.Timer(self._delay, self._spring)
                self._timer.start()
            else:
                self._spring()

    def disarm(self) -> None:
        """What has not sprung yet does not any more."""
        self._countdown = 0
        if self._timer is not None:
            self._timer.cancel()

    def set_in(self, task: SparkLakehouseSinkTask) -> None:
        """Watch a started task; what comes after a step is passed by its caller."""
        tables: Any = task._tables
        self._around(task._trigger, "next", "asked", "planned")
        self._around(task._reader, "read", None, "read")
        self._around(tables, "load", None, "loaded")
        self._around(tables, "create", "creating", "created")
        for name in ("merge", "append"):
            self._around(tables, name, "writing", "committed")
        for name in ("publish", "commit"):  # of rows that a statement has written, and of others
            if hasattr(tables, "_branches"):
                self._around(tables._branches, name, *_OF_ICEBERG)

    def _around(self, owner: Any, name: str, before: str | None, after: str | None) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **more: Any) -> Any:
            table = str(args[0]).rpartition(".")[2] if args else None
            if before:
                self.passed(before, table)
            answer = inner(*args, **more)
            if after:
                self.passed(after, table)
            return answer

        setattr(owner, name, wrapped)
