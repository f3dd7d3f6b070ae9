"""A process with one lakehouse task in it, which kills itself, or the JVM, at a chosen boundary of a batch. Run by `test_kill_lakehouse`.

What the task reports is kept in a file, which stands for the consumer group. Ends with 0 when the log is drained.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from connect_py.api.record import TopicPartition
from spark_sink.task import SparkLakehouseSinkTask
from tests.faults.lake_boundaries import Trap
from tests.fix_spark import Context


def kill(who: str) -> None:
    """At once, without a chance to clean up."""
    if who == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    from pyspark import SparkContext

    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)


def main() -> None:
    order = json.loads(sys.stdin.read())
    group = Path(order["group"])
    context = Context(order["bootstrap"])
    context.config = order["config"]
    if group.exists():
        context.group = {TopicPartition(topic, partition): offset for topic, partition, offset in json.loads(group.read_text())}
    task = SparkLakehouseSinkTask()
    task.start(order["config"], context)
    assert task.ready(600)
    trap = Trap(order["boundary"], order["countdown"], lambda: kill(order["who"]), order["delay"])
    trap.set_in(task)
    while (reached := task.step()) is not None:
        trap.passed("before the report")
        context.group.update(reached)
        group.write_text(json.dumps([[tp.topic, tp.partition, offset] for tp, offset in context.group.items()]))
        trap.passed("reported")
    task.close()


if __name__ == "__main__":
    main()
