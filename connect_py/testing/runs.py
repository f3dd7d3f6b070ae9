"""Take connectors through their life without Kafka.

A source is validated, started, divided into tasks, polled, committed, stopped and started again. A sink is validated, started, given
partitions and records, committed and stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api import (
    EncodedBatch,
    JsonEncoding,
    RecordMetadata,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from connect_py.converters.json_read import has_decimals, parse_json, payload_reader
from connect_py.errors import RetriableError
from connect_py.testing.plugin_checks import check_plugin, check_source_record

#: As the runtime asks for batches that a transform is to see.
_ENCODING = JsonEncoding(key_schemas=False, value_schemas=False)

#: A poll waits about half a second; this is slow enough for a busy machine and short enough for a stop.
_POLL_SECONDS = 5.0


class SourceRun:
    """One source connector.

    Args:
        connector: its class.
        config: its properties, as a client would send them.
        max_tasks: ``tasks.max``.

    Attributes:
        connector: the running instance.
        tasks: the running tasks.
        offsets: what the offsets topic would hold, by source partition.

    Raises:
        AssertionError: the configuration has errors, or the tasks break a rule.
        ConnectError: as the connector raises it.

    Example:
        >>> with SourceRun(FileStreamSourceConnector, {"file": path, "topic": "lines"}) as run:
        ...     first = run.take(2)
        ...     run.restart()
        ...     assert run.take(1)[0].value == "the third line"
    """

    def __init__(self, connector: type[SourceConnector], config: Mapping[str, str], *, max_tasks: int = 1) -> None:
        check_plugin(connector)
        self.config = {"name": "run", "connector.class": connector.java_name, **config}
        errors = {value.name: value.errors for value in connector().validate(self.config) if value.errors}
        assert not errors, f"the configuration has errors: {errors}"
        self._max_tasks = max_tasks
        self._connector_class = connector
        self.offsets: list[tuple[SourcePartition, SourceOffset]] = []
        self.tasks: list[SourceTask] = []
        self.connector: SourceConnector = connector()
        self._waiting: list[SourceRecord] = []
        self._taken: list[SourceRecord] = []
        self._polled_by: dict[int, SourceTask] = {}
        self._written = 0
        self._start()

    def __enter__(self) -> SourceRun:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def take(self, count: int, *, seconds: float = 30.0) -> list[SourceRecord]:
        """Poll the tasks in turn until there are this many records; each is checked. What they gave beyond the number is not lost: it comes
        first in the next `take`.

        Raises:
            AssertionError: there are fewer records after `seconds`, or one breaks a rule.
        """
        deadline = time.monotonic() + seconds
        while len(self._waiting) < count:
            for task in self.tasks:
                self._waiting += self._poll(task)
            assert time.monotonic() < deadline, f"{len(self._waiting)} of {count} records after {seconds:.0f} s: {self._waiting}"
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._taken += taken
        return taken

    def idle(self, polls: int = 3) -> None:
        """Poll each task a few times; nothing may come. Raises AssertionError."""
        for task in self.tasks * polls:
            self._waiting += self._poll(task)
        assert not self._waiting, f"there are more records than expected: {self._waiting}"

    def commit(self) -> None:
        """Say that Kafka holds every record taken, and the offsets topic the offset of the last one of each source partition.

        The tasks are notified of both, by `SourceTask.commit_record` and `SourceTask.offsets_committed`.
        """
        newest = {tuple(sorted(r.source_partition.items())): (r.source_partition, r.source_offset) for r in self._taken}
        known = {tuple(sorted(partition.items())): (partition, offset) for partition, offset in self.offsets}
        self.offsets = list({**known, **newest}.values())
        for record in self._taken:
            task = self._polled_by.pop(id(record), None)
            if task is not None:
                self._written += 1
                task.commit_record(record, RecordMetadata(record.topic, record.partition or 0, self._written - 1, record.timestamp))
        self._taken.clear()
        for task in self.tasks:
            task.offsets_committed(list(newest.values()))

    def restart(self, *, commit: bool = True) -> None:
        """Stop everything and start it again from the committed offsets; without `commit`, as after a crash: what was taken since the last
        commit must come again."""
        if commit:
            self.commit()
        self.stop()
        self._start()

    def stop(self) -> None:
        """Stop the tasks, one of them inside a poll, and the connector. Raises AssertionError when a poll does not return."""
        for task in self.tasks:
            threading.Timer(0.05, task.stop).start()
            self._poll(task, after_stop=True)
            task.close()
        self.tasks = []
        self.connector.stop()

    def _start(self) -> None:
        self._waiting, self._taken, self.tasks, self._polled_by = [], [], [], {}
        self.connector = self._connector_class()
        self.connector.start(self.config)
        configs = self.connector.task_configs(self._max_tasks)
        assert len(configs) <= self._max_tasks, f"{len(configs)} tasks, though tasks.max is {self._max_tasks}"
        for number, config in enumerate(configs):
            texts = all(isinstance(part, str) for pair in config.items() for part in pair)
            assert texts, f"task configurations map str to str, because Kafka keeps them: {config}"
            task = self.connector.task_class()()
            assert isinstance(task, SourceTask), f"task_class() gave {type(task).__name__}, which is no SourceTask"
            task.start(dict(config), _SourceContext(number, self.offsets, config))
            self.tasks.append(task)

    def _poll(self, task: SourceTask, *, after_stop: bool = False) -> list[SourceRecord]:
        began = time.monotonic()
        try:
            found = task.poll()
        except RetriableError:
            found = None
        took = time.monotonic() - began
        assert took < _POLL_SECONDS, f"a poll took {took:.1f} s" + (" though the task was asked to stop" if after_stop else "")
        records = _decoded(found) if isinstance(found, EncodedBatch) else list(found or ())
        for record in records:
            check_source_record(record)
        if not isinstance(found, EncodedBatch):
            self._polled_by |= dict.fromkeys(map(id, records), task)
        return records


class _SourceContext:
    """`SourceTaskContext` over a list of offsets."""

    connector = "run"
    encoding = _ENCODING
    transactions = None

    def __init__(self, task: int, offsets: Sequence[tuple[SourcePartition, SourceOffset]], config: Mapping[str, str]) -> None:
        self.task = task
        self.config = config
        self._offsets = {tuple(sorted(partition.items())): offset for partition, offset in offsets}

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the committed offset of a source partition."""
        return self._offsets.get(tuple(sorted(partition.items())))

    def notify(self, notification: Mapping[str, Any]) -> None:
        """Ignore it."""


def _decoded(batch: EncodedBatch) -> list[SourceRecord]:
    def read(schema: Any, data: bytes | None) -> Any:
        return None if data is None else payload_reader(schema)(parse_json(data, exact=has_decimals(schema)))

    return [
        SourceRecord(
            batch.source_partition,
            batch.source_offset,
            route.topic,
            route.key_schema if key is not None else None,
            read(route.key_schema, key),
            route.value_schema if value is not None else None,
            read(route.value_schema, value),
        )
        for route, key, value in batch.rows
    ]


class SinkRun:
    """One task of a sink connector.

    Args:
        connector: its class.
        config: its properties, as a client would send them.
        partitions: what the task is to read; topic ``topic``, partition 0 by default.

    Attributes:
        committed: the offsets that `commit` would have committed to the consumer group.
        errant: (record, error) pairs that the task handed to the dead letter queue.

    Raises:
        AssertionError: the configuration has errors, or the task breaks a rule.
        ConnectError: as the connector raises it.
    """

    def __init__(
        self,
        connector: type[SinkConnector],
        config: Mapping[str, str],
        partitions: Sequence[TopicPartition] = (TopicPartition("topic", 0),),
    ) -> None:
        check_plugin(connector)
        self.config = {"name": "run", "connector.class": connector.java_name, **config}
        errors = {value.name: value.errors for value in connector().validate(self.config) if value.errors}
        assert not errors, f"the configuration has errors: {errors}"
        self.assignment = frozenset(partitions)
        self.committed: dict[TopicPartition, int] = {}
        self.errant: list[tuple[SinkRecord, Exception]] = []
        self._put: dict[TopicPartition, int] = {}
        self.connector = connector()
        self.connector.start(self.config)
        configs = self.connector.task_configs(1)
        assert len(configs) <= 1, f"{len(configs)} tasks, though tasks.max is 1"
        task = self.connector.task_class()()
        assert isinstance(task, SinkTask), f"task_class() gave {type(task).__name__}, which is no SinkTask"
        self.task = task
        self.task.start(dict(configs[0]), _SinkContext(self, configs[0]))
        self.task.open(sorted(self.assignment))
        self.task.put([])

    def __enter__(self) -> SinkRun:
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        if kind is None:
            self.stop()

    def put(self, *records: SinkRecord, seconds: float = 30.0) -> None:
        """Give records, and the same ones again as long as the task raises RetriableError.

        Raises:
            AssertionError: it still does after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.task.put(records)
                break
            except RetriableError as error:
                assert time.monotonic() < deadline, f"the records are still refused after {seconds:.0f} s: {error}"
                time.sleep(0.1)
        for record in records:
            self._put[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def commit(self) -> Mapping[TopicPartition, int]:
        """Have the task make durable what was put; gives what it says may be committed.

        Raises:
            AssertionError: it names a partition that it was not asked about, or an offset ahead of what was put.
        """
        allowed = dict(self.task.pre_commit(dict(self._put)))
        for partition, offset in allowed.items():
            assert partition in self._put, f"pre_commit names {partition}, of which nothing was put"
            assert offset <= self._put[partition], (
                f"pre_commit says {offset} of {partition}, ahead of what was put ({self._put[partition]})"
            )
        self.committed.update(allowed)
        return allowed

    def stop(self) -> None:
        """Commit a last time, take the partitions away, stop task and connector."""
        self.commit()
        self.task.close(sorted(self.assignment))
        self.task.stop()
        self.connector.stop()


class _SinkContext:
    """`SinkTaskContext` that notes what the task asks for."""

    connector = "run"
    task = 0

    def __init__(self, run: SinkRun, config: Mapping[str, str]) -> None:
        self._run = run
        self.config = config
        self.wants_commit = False
        self.seeks: dict[TopicPartition, int] = {}
        self.resting: set[TopicPartition] = set()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions of the run."""
        return self._run.assignment

    def request_commit(self) -> None:
        """Noted."""
        self.wants_commit = True

    def retry_after(self, seconds: float) -> None:
        """The run repeats at once."""

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Noted."""
        self.seeks.update(offsets)

    def pause(self, *partitions: TopicPartition) -> None:
        """Noted."""
        self.resting.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Noted."""
        self.resting.difference_update(partitions)

    @property
    def report_errant_record(self) -> Callable[[SinkRecord, Exception], None]:
        """Keeps the record in `SinkRun.errant`."""
        return lambda record, error: self._run.errant.append((record, error))
