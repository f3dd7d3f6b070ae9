"""A process with one lakehouse task in it, which kills itself, or the JVM, at a chosen boundary of a batch. Run by `test_kill_lakehouse`.

What the task reports is kept in a file, which stands for the consumer group. Ends with 0 when the log is drained.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from connect_py.api.record import TopicPartition
from spark_sink.task import SparkLakehouseSinkTask
from tests.fix_spark import Context


def kill(who: str) -> None:
    """At once, without a chance to clean up."""
    if who == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    from pyspark import SparkContext

    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)  # type: ignore[union-attr]


class Trap:
    """Kills at the n-th passing of a boundary."""

    def __init__(self, boundary: str, who: str, countdown: int, delay: float) -> None:
        self._boundary, self._who, self._countdown, self._delay = boundary, who, countdown, delay

    def passed(self, boundary: str) -> None:
        if boundary != self._boundary:
            return
        self._countdown -= 1
        if self._countdown == 0:
            if boundary == "writing":  # somewhere within the commit
                threading.Timer(self._delay, kill, [self._who]).start()
            else:
                kill(self._who)

    def around(self, owner: Any, name: str, before: str | None, after: str | None) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **more: Any) -> Any:
            if before:
                self.passed(before)
            answer = inner(*args, **more)
            if after:
                self.passed(after)
            return answer

        setattr(owner, name, wrapped)


def main() -> None:
    order = json.loads(sys.stdin.read())
    group = Path(order["group"])
    context = Context(order["bootstrap"])
    if group.exists():
        context.group = {TopicPartition(topic, partition): offset for topic, partition, offset in json.loads(group.read_text())}
    task = SparkLakehouseSinkTask()
    task.start(order["config"], context)
    trap = Trap(**order["trap"])
    tables: Any = task._tables
    trap.around(task._driver, "next", "asked", "planned")
    trap.around(task._reader, "read", None, "read")
    trap.around(tables, "load", None, "loaded")
    trap.around(tables, "create", "creating", "created")
    for name in ("merge", "append"):
        trap.around(tables, name, "writing", "committed")
    for name in ("_publish", "_keep", "_drop"):  # what a commit of Iceberg's consists of
        if hasattr(tables, name):
            trap.around(tables, name, f"before {name}", f"after {name}")
    while (reached := task.step()) is not None:
        trap.passed("before the report")
        context.group.update(reached)
        group.write_text(json.dumps([[tp.topic, tp.partition, offset] for tp, offset in context.group.items()]))
        trap.passed("reported")
    task.close()


if __name__ == "__main__":
    main()
