"""A source that counts, a sink that notes what it is given, and a way to have either fail (`VerifiableSourceConnector`, `MockConnector` of
Kafka's system tests). A plugin by itself: `tests.cluster` puts this file into a folder of ``plugin.path``.

A record's value is ``number incarnation worker milliseconds``: the task's next number, which start of the task wrote it, on which worker,
and when by the machine's clock.

With ``transaction.rows`` the source says itself where its transactions end: after this many numbers, and every third one is dropped.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect_py.api import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Connector,
    Importance,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
    TopicPartition,
)
from connect_py.data.schema import STRING
from connect_py.errors import FatalTaskError

log = logging.getLogger(__name__)

#: Names the worker in records; set in each worker's environment.
WORKER = "COUNTING_WORKER"

#: What fails, and while which file exists.
_FAILS = (
    ConfigKey("fails", ConfigType.STRING, "", Importance.LOW, "connector, task or task 1: what fails while a file exists."),
    ConfigKey("fails.while", ConfigType.STRING, "", Importance.LOW, "A file."),
)


def should_fail(config: Mapping[str, str], what: str) -> bool:
    return config.get("fails") == what and Path(config["fails.while"]).exists()


def is_dropped(number: int, rows: int) -> bool:
    """Whether the number is in a transaction that the source has dropped."""
    return (number - 1) // rows % 3 == 2


class _Failing:
    """Reports an error of the connector a moment after its start, as `MockConnector` does."""

    def begin(self, connector: Connector, config: Mapping[str, str]) -> None:
        if should_fail(config, "connector"):
            error = FatalTaskError("The connector fails since it was told to.")
            threading.Timer(0.2, connector.context.raise_error, [error]).start()


class CountingTask(SourceTask):
    """Counts up at a rate, from the committed number."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        self._config = config
        self._pause = 1 / float(config["rate"])
        self._topic = f"{config['topic']}-{context.task}"
        self._partition: SourcePartition = {"task": context.task}
        offset = context.offset(self._partition)
        self._number = int(offset["number"]) if offset else 0
        self._rows, self._transactions = int(config["transaction.rows"]), context.transactions
        log.info("Counting %s on from %d", self._topic, self._number)
        self._who = f"{uuid.uuid4().hex[:8]}-{os.getpid()} {os.environ.get(WORKER, '?')}"

    def poll(self) -> Sequence[SourceRecord] | None:
        if should_fail(self._config, "task") or should_fail(self._config, f"task {self._partition['task']}"):
            raise FatalTaskError("The task fails since it was told to.")
        if self._stopped.wait(self._pause):
            return None
        self._number += 1
        moment = time.time_ns() // 1_000_000
        value = f"{self._number} {self._who} {moment}"
        record = SourceRecord(
            self._partition, {"number": self._number}, self._topic, partition=0, value_schema=STRING, value=value, timestamp=moment
        )
        if self._transactions is not None and self._number % self._rows == 0:
            end = self._transactions.abort_transaction if is_dropped(self._number, self._rows) else self._transactions.commit_transaction
            end(record)
        return [record]

    def stop(self) -> None:
        self._stopped.set()


class CountingSource(SourceConnector):
    """As many tasks as ``tasks.max`` says, each with a topic of its own: ``topic``-0, ``topic``-1 and so on."""

    java_name = "tests.CountingSource"
    java_task_name = "tests.CountingTask"
    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            [
                ConfigKey("topic", ConfigType.STRING, REQUIRED, Importance.HIGH, "Beginning of the topics' names."),
                ConfigKey("rate", ConfigType.DOUBLE, 25, Importance.HIGH, "Records of a task in a second."),
                ConfigKey("transaction.rows", ConfigType.INT, 0, Importance.LOW, "Records of a transaction; 0 leaves it to the worker."),
                ConfigKey("tasks", ConfigType.INT, 0, Importance.LOW, "How many; 0 is tasks.max."),
                *_FAILS,
            ]
        )

    def start(self, config: Mapping[str, str]) -> None:
        self._config = {"rate": "25", "transaction.rows": "0", "tasks": "0", **config}
        _Failing().begin(self, config)

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        return config.get("transaction.rows", "0") != "0"

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(int(self._config["tasks"]) or max_tasks)]

    def task_class(self) -> type[SourceTask]:
        return CountingTask


class NotingTask(SinkTask):
    """Appends a line for each record to a file: topic, partition, offset, value."""

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        self._config = config
        self._file = open(config["notes"], "a", encoding="utf-8")  # noqa: SIM115  # held until stop

    def put(self, records: Sequence[SinkRecord]) -> None:
        if should_fail(self._config, "task"):
            raise FatalTaskError("The task fails since it was told to.")
        for record in records:
            self._file.write(f"{record.topic} {record.partition} {record.offset} {record.value}\n")
        self._file.flush()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._file.flush()
        return offsets

    def stop(self) -> None:
        self._file.close()


class NotingSink(SinkConnector):
    """As many tasks as ``tasks.max`` says."""

    java_name = "tests.NotingSink"
    java_task_name = "tests.NotingTask"
    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey("notes", ConfigType.STRING, REQUIRED, Importance.HIGH, "The file."), *_FAILS])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)
        _Failing().begin(self, config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def task_class(self) -> type[SinkTask]:
        return NotingTask
