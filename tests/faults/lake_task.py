"""A process with lakehouse tasks in it, one after the other in one JVM, which lets its task die, dies, or kills the JVM at a chosen
boundary of a batch. Run by `test_kill_lakehouse`.

The first line of its input is the connector, every further one starts a task with a trap set in it, after a table's directory was removed
where the line names one: no earlier, since what a dead task had Spark do beside may still be under way when its death is told. Each answer
is a line too: that the trap has sprung, written before it does what it does, or that the log is drained. What tasks report is kept in a
file, which stands for the consumer group.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from connect_py.api.record import TopicPartition
from spark_sink.task import SparkLakehouseSinkTask
from tests.faults.lake_boundaries import Trap
from tests.fix_spark import Context


class Died(BaseException):
    """The task is dead. Nothing may clean up behind it."""


class _Grave:
    """In the place of a dead task's session: whatever would still be done there is not."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Died


def die(task: SparkLakehouseSinkTask) -> NoReturn:
    """As when the task's process is killed, but the JVM stays: a streaming query sees that nobody answers its callback."""
    whole: Any = task
    with contextlib.suppress(AttributeError):
        whole._trigger.failed()
    whole._spark = whole._tables._spark = whole._trigger._spark = _Grave()
    raise Died


def kill(who: str, task: SparkLakehouseSinkTask) -> None:
    """At once, without a chance to clean up."""
    print("sprung", flush=True)
    if who == "task":
        die(task)
    if who == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    from pyspark import SparkContext

    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)


def run(connector: dict[str, Any], order: dict[str, Any]) -> None:
    """A task's life. Raises Died, or what it fails with."""
    group = Path(connector["group"])
    context = Context(connector["bootstrap"])
    context.config = connector["config"]
    if group.exists():
        context.group = {TopicPartition(topic, partition): offset for topic, partition, offset in json.loads(group.read_text())}
    task = SparkLakehouseSinkTask()
    task.start(connector["config"], context)
    assert task.ready(600)
    if order["remove"] is not None:
        shutil.rmtree(order["remove"], ignore_errors=True)
    delay = None if order["who"] == "task" else order["delay"]
    trap = Trap(order["boundary"], order["countdown"], lambda: kill(order["who"], task), delay, order["table"])
    trap.set_in(task)
    while (reached := task.step()) is not None:
        trap.passed("before the report")
        context.group.update(reached)
        group.write_text(json.dumps([[tp.topic, tp.partition, offset] for tp, offset in context.group.items()]))
        trap.passed("reported")
    trap.disarm()
    task._session = None  # the JVM stays for the next one
    task.close()
    print("drained", flush=True)


def main() -> None:
    connector = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        with contextlib.suppress(Died):
            run(connector, json.loads(line))


if __name__ == "__main__":
    main()
