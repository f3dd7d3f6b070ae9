"""`lakehouse.source.mode=stream`: Structured Streaming plans the batches and hands over each one's records; the task applies them.

The query's function runs in a thread that Spark's callbacks own. It only puts the batch into a queue and waits, so that the task's thread
applies it as it applies every batch, and only between two steps: a pause, a stop and a retry are the task's. Spark is notified that a batch
is complete when the next one is due, after the tables have committed and the group's offsets are reported; until then it sleeps.

The tables decide (`Trigger.next`). A batch's records below the task's positions are left out; a checkpoint that would miss records, or
repeat more than its last batch, is left for a new *generation* that begins at the positions. So a checkpoint that was deleted, or is older
than a table that was rolled back, costs nothing but reading.

Spark writes the end offsets of batch N to ``offsets/N`` before it runs the batch and ``commits/N`` after it, and the very first start to
``sources/0/0``. The sink reads these to learn a batch's range. Layout: ``<location>/<connector>/g<generation>``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import re
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition
from connect_py.errors import RetriableError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.plan.triggers import LoopTrigger, Pace, PendingBatch, Trigger
from spark_sink.read.ranges import Range, waiting_ranges
from spark_sink.read.reader import Reader
from spark_sink.tables.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: Offsets by topic partition.
Offsets = Mapping[TopicPartition, int]


class UnreadableError(Exception):
    """A checkpoint's file is not of the form that Spark 4.1 writes; the caller begins a new generation."""


@dataclass(frozen=True)
class CheckpointState:
    """Where a checkpoint stands.

    Attributes:
        start: where the next batch begins.
        planned: where it ends, if that has been decided already.
    """

    start: Offsets
    planned: Offsets | None


def agrees(state: CheckpointState, positions: Offsets) -> bool:
    """Return whether a query that resumes from a checkpoint misses nothing, and repeats nothing but its last batch.

    That one may have been applied, wholly or to some tables, before a kill; its applied part is left out then. A partition that the
    checkpoint does not know is read from its first record, so the positions must not be beyond that.
    """
    end = state.start if state.planned is None else state.planned
    return all(tp in positions for tp in end) and all(
        state.start.get(tp, 0) <= position <= end.get(tp, state.start.get(tp, 0)) for tp, position in positions.items()
    )


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse a file of ``offsets`` or ``sources/0``: a version, perhaps settings, and a line of the Kafka source's offsets.

    Raises:
        UnreadableError: it is neither.
    """
    lines = text.lstrip("\x00").strip().splitlines()
    if not lines or lines[0] != "v1" or len(lines) not in (2, 3):
        raise UnreadableError(f"not two or three lines of version 1: {text[:200]!r}")
    try:
        topics = json.loads(lines[-1])
        return {TopicPartition(topic, int(number)): int(offset) for topic, found in topics.items() for number, offset in found.items()}
    except (ValueError, AttributeError) as error:
        raise UnreadableError(f"{error}: {lines[-1][:200]!r}") from None


class Checkpoints:
    """The generations of one connector's checkpoint, on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, location: str, connector: str) -> None:
        jvm: Any = spark._jvm
        self._root = f"{location.rstrip('/')}/{connector}"
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        self._charset = jvm.java.nio.charset.StandardCharsets.UTF_8
        self._fs = self._path(self._root).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def newest(self) -> int:
        """Return the newest generation; 0 when there is none."""
        names = [re.fullmatch(r"g(\d+)", name) for name in self._names(self._root)]
        return max((int(name[1]) for name in names if name), default=0)

    def path(self, generation: int) -> str:
        """Return the directory of a generation."""
        return f"{self._root}/g{generation}"

    def state(self, generation: int) -> CheckpointState | None:
        """Return where a generation stands; None when its query has not begun.

        Raises:
            UnreadableError: it cannot be known.
        """
        planned, done = (max((int(name) for name in self._names(f"{self.path(generation)}/{of}") if name.isdigit()), default=-1)
                         for of in ("offsets", "commits"))  # fmt: skip
        if planned == -1:
            initial = self._text(f"{self.path(generation)}/sources/0/0")
            return None if initial is None else CheckpointState(parse_offsets(initial), None)
        if done == planned:
            return CheckpointState(self.end(generation, planned), None)
        return CheckpointState(self.start(generation, planned), self.end(generation, planned))

    def start(self, generation: int, batch: int) -> dict[TopicPartition, int]:
        """Return where a batch begins. Raises as `state`."""
        name = f"offsets/{batch - 1}" if batch else "sources/0/0"
        return self._offsets(f"{self.path(generation)}/{name}")

    def end(self, generation: int, batch: int) -> dict[TopicPartition, int]:
        """Return where a batch ends. Raises as `state`."""
        return self._offsets(f"{self.path(generation)}/offsets/{batch}")

    def remove_before(self, generation: int) -> None:
        """Remove older generations, which nothing will read again."""
        for name in self._names(self._root):
            if (found := re.fullmatch(r"g(\d+)", name)) and int(found[1]) < generation:
                self._fs.delete(self._path(f"{self._root}/{name}"), True)

    def _offsets(self, path: str) -> dict[TopicPartition, int]:
        text = self._text(path)
        if text is None:
            raise UnreadableError(f"{path} is missing")
        return parse_offsets(text)

    def _names(self, directory: str) -> list[str]:
        path = self._path(directory)
        return [status.getPath().getName() for status in self._fs.listStatus(path)] if self._fs.exists(path) else []

    def _text(self, name: str) -> str | None:
        path = self._path(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._io.toString(stream, self._charset))
        finally:
            stream.close()


#: How long a step waits for a query that sees nothing where the log promises records: offsets of a transaction that is still open.
_IDLE_SECONDS = 2.0
_POLL_SECONDS = 0.2


class _NotApplied(Exception):
    """Ends the query without completing its batch."""

    def __init__(self) -> None:
        super().__init__("The sink's task has not applied this batch; it comes again.")


class _Received:
    """A batch that Spark waits for."""

    def __init__(self, records: DataFrame, number: int) -> None:
        self.records = records
        self.number = number
        self._answered = threading.Event()
        self._applied = False

    def answer(self, *, applied: bool) -> None:
        """Let Spark continue, or end the query."""
        self._applied = applied
        self._answered.set()

    def wait(self) -> None:
        """Wait until the batch is answered. Raise _NotApplied if it was not applied."""
        self._answered.wait()
        if not self._applied:
            raise _NotApplied


class _Run:
    """One run of the query: its callbacks, and those only, reach the task."""

    def __init__(self) -> None:
        self._received: queue.SimpleQueue[_Received] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()

    def receive(self, records: DataFrame, number: int) -> None:
        """Hand a batch to the task and wait for its answer; this is the query's function."""
        received = _Received(records, number)
        with self._lock:
            if self._closed:
                raise _NotApplied
            self._received.put(received)
        received.wait()

    def take(self, seconds: float) -> _Received | None:
        """Return the next batch, or None after the given time."""
        try:
            return self._received.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Refuse all further batches."""
        with self._lock:
            self._closed = True
        while (received := self.take(0)) is not None:
            received.answer(applied=False)


class StreamTrigger:
    """Batches that Structured Streaming plans. Needs a classic session: over Spark Connect the function would run on the server."""

    def __init__(self, spark: SparkSession, config: SinkConfig, reader: Reader, connector: str) -> None:
        self._spark = spark
        self._config = config
        self._reader = reader
        self._connector = connector
        self._checkpoints = Checkpoints(spark, config["checkpoint.location"], connector)
        self._pace = Pace(config)
        self._stopping = threading.Event()
        self._view = f"connect_py_{uuid.uuid4().hex}"
        self._run = _Run()
        self._query: StreamingQuery | None = None
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._generation = 0
        self._has_failed = False
        self._start: Mapping[TopicPartition, int] = {}
        self._held: _Received | None = None

    def next(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> PendingBatch | None:
        waiting = waiting_ranges(positions, log, fail_on_data_loss=self._config["fail-on-data-loss"])
        if not self._pace.due(sum(end - start for start, end in waiting.values())):
            return None
        self._release()
        # where Kafka has no longer what a position names, and that is accepted
        positions = {tp: waiting[tp][0] if tp in waiting else following for tp, (_, following) in log.items()}
        if self._query is not None and not self._query.isActive:
            why = self._query.exception()
            _log.warning("The streaming query of %s ended between two batches and starts again: %s", self._connector, why)
        if self._query is None or self._partitions != log.keys() or not self._query.isActive:
            self._open(positions)
        deadline = time.monotonic() + _IDLE_SECONDS
        while time.monotonic() < deadline and not self._stopping.is_set():
            if (received := self._run.take(_POLL_SECONDS)) is None:
                if self._is_busy():
                    deadline = time.monotonic() + _IDLE_SECONDS
            elif (pending := self._pending(received, positions)) is not None:
                self._pace.begin()
                return pending
        return None

    def _pending(self, received: _Received, positions: Mapping[TopicPartition, int]) -> PendingBatch | None:
        """Return what of a batch is still to be applied; None when nothing is, or when the checkpoint cannot be used."""
        self._held = received
        end = self._checkpoints.end(self._generation, received.number)
        start = {tp: self._start.get(tp, 0) for tp in end}  # Spark reads a partition that was added from its first record
        if any(start[tp] > positions[tp] for tp in end):  # records in between would be missed
            self.failed()
            self._open(positions)
            return None
        self._start = end
        ranges = {tp: (positions[tp], end[tp]) for tp in end if end[tp] > positions[tp]}
        if not ranges:
            self._release()
            return None
        received.records.createOrReplaceGlobalTempView(self._view)
        records = self._spark.table(f"global_temp.{self._view}")
        below = Watermark(positions).condition({tp: (start[tp], end[tp]) for tp in end})
        return PendingBatch(ranges, records if below is None else records.where(below))

    def _open(self, positions: Mapping[TopicPartition, int]) -> None:
        self.failed()
        generation, state = self._choose(positions)
        try:
            self._begin(generation, state, positions)
        except Exception:
            if state is None:
                raise
            _log.exception("Checkpoint generation %d of %s is of no use and a new one begins", generation, self._connector)
            self._begin(generation + 1, None, positions)
        self._has_failed = False
        self._checkpoints.remove_before(self._generation)

    def _begin(self, generation: int, state: CheckpointState | None, positions: Mapping[TopicPartition, int]) -> None:
        self._generation = generation
        self._start = positions if state is None else state.start
        self._partitions = frozenset(positions)
        self._run = _Run()
        self._query = (
            self._reader.stream(positions)
            .writeStream.foreachBatch(self._run.receive)
            .option("checkpointLocation", self._checkpoints.path(generation))
            .queryName(f"{self._connector}-g{generation}-{uuid.uuid4().hex[:8]}")
            .start()
        )

    def _choose(self, positions: Mapping[TopicPartition, int]) -> tuple[int, CheckpointState | None]:
        """Return the generation to resume with, and where it stands; None for a new one."""
        newest = self._checkpoints.newest()
        if newest == 0 or self._has_failed:
            return newest + 1, None
        try:
            state = self._checkpoints.state(newest)
        except Exception as error:  # noqa: BLE001  # storage reports damage in many ways, and a new one is as good
            _log.warning("Checkpoint generation %d of %s cannot be read and a new one begins: %s", newest, self._connector, error)
            return newest + 1, None
        if state is None or not agrees(state, positions):
            _log.info("Checkpoint generation %d of %s does not stand where the tables do; a new one begins there", newest, self._connector)
            return newest + 1, None
        return newest, state

    def _is_busy(self) -> bool:
        """Return whether the query has something to do before it would hand over a batch. Raise why it has ended, if it has."""
        if self._query is not None and self._query.isActive:
            return not str(self._query.status["message"]).startswith("Waiting for data")
        error = self._query.exception() if self._query is not None else None
        self._query, self._has_failed = None, True
        raise error or RetriableError("The streaming query ended by itself.")

    def _release(self) -> None:
        """Let Spark complete the held batch, which is applied and reported."""
        if self._held is not None:
            self._held.answer(applied=True)
            self._held = None
            self._spark.catalog.dropGlobalTempView(self._view)

    def after(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, Range]) -> Mapping[TopicPartition, Range] | None:
        # Spark plans the next batch when this one is complete.
        return None

    def failed(self, *, too_large: bool = False) -> None:
        # The query ends, and its checkpoint still has the batch as planned.
        self._run.close()
        if self._held is not None:
            self._held.answer(applied=False)
            self._held = None
            with contextlib.suppress(Exception):  # of a dead JVM
                self._spark.catalog.dropGlobalTempView(self._view)
        if self._query is not None:
            with contextlib.suppress(Exception):  # of a dead JVM
                self._query.stop()
            self._query = None

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self.failed()


def open_trigger(spark: SparkSession, config: SinkConfig, reader: Reader, connector: str) -> Trigger:
    """Return the trigger of the configuration's source mode."""
    return StreamTrigger(spark, config, reader, connector) if config["source.mode"] == "stream" else LoopTrigger(config)
