"""Sources that kill their task's process at a named point of its way (`kill -9`): a plugin by itself, which a test puts into a folder of
``plugin.path``, so that the product has nothing of it.

The connectors are the product's; only the task's class is another one. The points lie around public calls of the task, of the runtime that
drives it, and of the engine. The file that ``crash.file`` names has the next point and how many times it is passed before; it is renamed to
`….sprung` at the moment of the kill, so nothing happens twice, and the test knows that it has happened.
"""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from connect_py.api import EncodedBatch, SourceTask, SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.kafka.producer import Producer
from connect_py.kafka.transactions import TransactionalProducer
from connect_py.task.producing import FlushPolicy
from connectors.engine.notifications import InitialEvents
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.engine.snapshot.initial.run import SnapshotPipeline
from connectors.engine.task import State
from connectors.mongodb.connector import MongoDbConnector
from connectors.mongodb.task import MongoDbConnectorTask
from connectors.mysql.connector import MySqlConnector
from connectors.mysql.task import MySqlConnectorTask
from connectors.postgres.connector import PostgresConnector
from connectors.postgres.task import PostgresConnectorTask
from offsets.offset_store import TaskOffsetWriter
from offsets.schema_history import KafkaSchemaHistory

#: Of an initial snapshot, in the order in which they are passed.
OF_THE_SNAPSHOT = (
    "started",
    "nothing is read yet",
    "between two tables",
    "everything is read",
    "the snapshot is handed over",
)

#: Of every batch of the stream.
OF_THE_STREAM = (
    "rows are read",
    "half of a batch is in Kafka",
    "before a tombstone",
    "after a tombstone",
    "rows are handed over",
    "before the offset is written",
    "the offset is on its way",
    "before the source has the offset",
    "the source has the offset",
)

#: Of a chunk of an incremental snapshot (`SnapshotHooks`).
OF_A_CHUNK = ("before_low", "after_low", "before_chunk", "after_chunk", "before_high", "after_high")

#: Of a statement in MySQL's log.
OF_THE_HISTORY = ("before the history has a statement", "the history has a statement")

#: How long records that shall be in Kafka at a point may take, in seconds.
_SECONDS = 10.0


class Trap:
    """Kills this process at the n-th passing of a point.

    Args:
        file: says which.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._producers: list[Producer] = []

    def saw(self, producer: Producer) -> None:
        """A producer of the task's."""
        if producer not in self._producers:
            self._producers.append(producer)

    def passed(self, point: str, *, in_kafka: bool = False) -> None:
        """A point is passed.

        Args:
            in_kafka: whether what was handed over shall be in Kafka when the process dies.
        """
        try:
            wanted, _, left = self._file.read_text().rpartition(" ")
        except FileNotFoundError:
            return
        if wanted != point:
            return
        if int(left):
            self._file.write_text(f"{wanted} {int(left) - 1}")
            return
        if in_kafka:
            for producer in self._producers:
                producer.flush(_SECONDS)
        self._file.rename(self._file.with_suffix(".sprung"))
        os.kill(os.getpid(), signal.SIGKILL)

    def set_around(self, owner: type, name: str, before: str | None = None, after: str | None = None) -> None:
        """Have points before and after each call of a method."""
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **more: Any) -> Any:
            if before:
                self.passed(before)
            answer = inner(*args, **more)
            if after:
                self.passed(after)
            return answer

        setattr(owner, name, wrapped)

    def set(self) -> None:
        """In the runtime and in the engine, as they are in this process."""
        polled: Callable[..., int] = Producer.poll

        def poll(producer: Producer, *args: Any) -> int:
            self.saw(producer)
            return polled(producer, *args)

        owner: Any = Producer
        setattr(owner, "poll", poll)  # noqa: B010
        sent = FlushPolicy.sent

        def handed_over(policy: FlushPolicy, batch: Any) -> None:
            if batch.rows:
                self.passed("rows are handed over")
            sent(policy, batch)

        owner = FlushPolicy
        setattr(owner, "sent", handed_over)  # noqa: B010
        for writes, name in ((TaskOffsetWriter, "write"), (TransactionalProducer, "start_commit")):
            self.set_around(writes, name, "before the offset is written", "the offset is on its way")
        self.set_around(SnapshotPipeline, "next_rows", "nothing is read yet")
        self.set_around(InitialEvents, "scan_completed", None, "between two tables")
        self.set_around(InitialEvents, "completed", None, "everything is read")
        self.set_around(KafkaSchemaHistory, "append", *OF_THE_HISTORY)


class _Rows(list[EncodedRow]):
    """Rows of a batch, with points between them."""

    def __init__(self, rows: Any, trap: Trap) -> None:
        super().__init__(rows)
        self._trap = trap

    def __iter__(self) -> Iterator[EncodedRow]:
        for number, row in enumerate(super().__iter__()):
            if number and number == len(self) // 2:
                self._trap.passed("half of a batch is in Kafka", in_kafka=True)
            if number and row[2] is None:
                self._trap.passed("before a tombstone", in_kafka=True)
            yield row
            if row[2] is None:
                self._trap.passed("after a tombstone", in_kafka=True)


class _Hooks(SnapshotHooks):
    trap: Trap

    def reached(self, phase: str) -> None:
        """See `SnapshotHooks`."""
        self.trap.passed(phase)


class _Points:
    """Goes before a connector's task, and passes its points."""

    state: State

    def __init__(self) -> None:
        self._own_hooks = _Hooks()
        super().__init__(hooks=self._own_hooks)  # type: ignore[call-arg]  # of the task that comes next
        self._was_snapshot = self._has_ended_snapshot = False

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """See `SourceTask`."""
        self._trap = self._own_hooks.trap = Trap(Path(config["crash.file"]))
        self._trap.set()
        super().start(config, context)  # type: ignore[misc]
        self._trap.passed("started")

    def poll(self) -> EncodedBatch | None:
        """See `SourceTask`."""
        if self._has_ended_snapshot:
            self._has_ended_snapshot = False
            self._trap.passed("the snapshot is handed over", in_kafka=True)
        batch: EncodedBatch | None = super().poll()  # type: ignore[misc]
        self._has_ended_snapshot = self._was_snapshot and self.state is not State.SNAPSHOT
        self._was_snapshot = self.state is State.SNAPSHOT
        if batch is None or not batch.rows:
            return batch
        self._trap.passed("rows are read")
        return dataclasses.replace(batch, rows=_Rows(batch.rows, self._trap))

    def offsets_committed(self, offsets: Any) -> None:
        """See `SourceTask`."""
        self._trap.passed("before the source has the offset")
        super().offsets_committed(offsets)  # type: ignore[misc]
        self._trap.passed("the source has the offset")


class _PostgresTask(_Points, PostgresConnectorTask):
    pass


class _MySqlTask(_Points, MySqlConnectorTask):
    pass


class _MongoTask(_Points, MongoDbConnectorTask):
    pass


class CrashingPostgres(PostgresConnector):
    """See the module."""

    java_name: ClassVar[str] = "tests.CrashingPostgres"

    def task_class(self) -> type[SourceTask]:
        """See `SourceConnector`."""
        return _PostgresTask


class CrashingMySql(MySqlConnector):
    """See the module."""

    java_name: ClassVar[str] = "tests.CrashingMySql"

    def task_class(self) -> type[SourceTask]:
        """See `SourceConnector`."""
        return _MySqlTask


class CrashingMongo(MongoDbConnector):
    """See the module."""

    java_name: ClassVar[str] = "tests.CrashingMongo"

    def task_class(self) -> type[SourceTask]:
        """See `SourceConnector`."""
        return _MongoTask
