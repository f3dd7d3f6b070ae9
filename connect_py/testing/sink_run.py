"""A sink connector's life without Kafka: validated, started, given partitions and records, committed, stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from connect_py.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from connect_py.errors import RetriableError
from connect_py.testing.plugin_checks import check_plugin


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
        self.task.start(dict(configs[0]), _Context(self, configs[0]))
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


class _Context:
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
