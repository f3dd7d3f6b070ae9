"""The sink's task: plans ranges, has Spark read them, brings every table up to date, and then says how far it has got.

Tables decide what has been applied: each commit holds the next offsets, and rows below them are dropped before a write, so a batch that is
repeated, after a failure or a kill at any point, changes only the tables that had not committed it. The consumer group is a report that
follows the tables and never leads them. One thread, the runtime's, uses everything here; only a lane, which writes one table of a batch or
cleans one up, has a thread of its own (`spark_sink.spark.lanes`). `stop` only sets a flag.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition
from connect_py.api.task import BatchSinkContext, BatchSinkTask, MetricGroup
from connect_py.errors import FatalTaskError, RetriableError
from spark_sink import routing
from spark_sink.config import sink_config as configuration
from spark_sink.config.sink_config import SinkConfig
from spark_sink.errors import classify, is_of_size, spark_ended
from spark_sink.figures import SinkFigures
from spark_sink.maintenance import Maintenance
from spark_sink.plan.stream import open_trigger
from spark_sink.plan.triggers import Horizon, PendingBatch, Trigger
from spark_sink.read.converted import open_format
from spark_sink.read.ranges import Range, describe, start_position
from spark_sink.read.reader import HELD_RECORDS, Prefetch, Reader
from spark_sink.routing import TableName
from spark_sink.spark.lanes import AGAIN_SECONDS, Aside, Lanes, OwnThreadLane, Sessions, SparkLane
from spark_sink.spark.local import answer_at_once
from spark_sink.spark.session import SessionStartup, TaskSession, open_session
from spark_sink.tables.base import Tables, TableSetBack, Writer
from spark_sink.tables.open import open_tables
from spark_sink.tables.upkeep import StatsSchedule
from spark_sink.write.batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: How long a step waits for Spark to start before it lets the runtime handle a pause or a stop.
_START_POLL_SECONDS = 0.5

#: How often the log is looked at, and for how long after a batch it is looked at more often. A look costs some milliseconds.
_POLL_SECONDS, _BUSY_POLL_SECONDS, _BUSY_SECONDS = 1.0, 0.1, 10.0


class SparkLakehouseSinkTask(BatchSinkTask):
    """The sink's one task.

    Args:
        again_seconds: after which the jobs of a table that took too long are cancelled again.
        make_tables: opens the tables over the session that runs their statements; a test gives a session that shows them.
        clock: nanoseconds since 1970, from which a task's claim to its tables comes.
        stats: which table is queried next for the figures.
        held_records: how many records a batch has at most that the driver holds.
    """

    poll_interval_seconds = _POLL_SECONDS

    def __init__(
        self,
        again_seconds: float = AGAIN_SECONDS,
        *,
        make_tables: Callable[[SparkSession, SinkConfig, Writer], Tables] = open_tables,
        clock: Callable[[], int] = time.time_ns,
        stats: StatsSchedule | None = None,
        held_records: int = HELD_RECORDS,
    ) -> None:
        self._held_records = held_records
        self._make_tables = make_tables
        self._clock = clock
        self._again_seconds = again_seconds
        self._stopping = threading.Event()
        self._opening: SessionStartup | None = None
        self._session: TaskSession | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._trigger: Trigger | None = None
        self._prefetch: Prefetch | None = None
        self._failures = 0
        self._applied_at = 0
        self._claimed = False
        self._lanes: Lanes | None = None
        self._aside: Aside | None = None
        self._figures = SinkFigures()
        self._stats_schedule = stats or StatsSchedule()

    @property
    def spark(self) -> SparkSession:
        """The session of the thread that asks, once the task has one."""
        return self._spark

    def start(self, config: Mapping[str, str], context: BatchSinkContext) -> None:
        """Parse the configuration and begin to start Spark."""
        self._context = context
        self._config: SinkConfig = configuration.parse(config)
        self._epoch = self._clock() // 1_000_000
        self._horizon = Horizon(self._config)
        self._maintenance = Maintenance(self._config, context.connector, context.notify, self._figures)
        self._open()

    def _open(self) -> None:
        name = f"{self._context.connector}-{self._context.task}"
        self._opening = SessionStartup(lambda: open_session(self._config, name, self._context.kafka_options))
        self._figures.session_starts()

    def ready(self, seconds: float = 0.0) -> bool:
        """Return whether Spark runs and batches can be applied, waiting for at most the given time. Raise why it could not be started."""
        if self._opening is None:
            return self._session is not None
        try:
            session = self._opening.result(seconds)
        except Exception:
            self._opening = None
            raise
        if session is None:
            return False
        _log.info("Spark session of %s ready after %.1f s", self._context.connector, self._opening.seconds)
        self._opening = None
        try:
            self._equip(session.spark)
        except Exception as error:
            session.close()
            raised = classify(error, "preparing the session")
            if raised is error:
                raise
            raise raised from error
        self._session = session
        self._figures.session_started()
        return True

    def _equip(self, own: SparkSession) -> None:
        """Make all that works in the session, or in those of lanes."""
        context, config = self._context, self._config
        sessions = Sessions(own, config)
        self._spark = spark = sessions.current
        answer_at_once(spark)
        is_classic = config["spark.remote"] is None
        self._lanes = Lanes(
            lambda number, answers: SparkLane(
                f"lakehouse-table-{number}", answers, sessions, sessions.of_lane(number), is_classic=is_classic
            ),
            config["control.commit.threads"] if is_classic else 1,
            config["control.commit.timeout-ms"] / 1000,
            again_seconds=self._again_seconds,
        )
        self._aside = Aside(
            lambda answers: (
                SparkLane("lakehouse-clean-up", answers, sessions, sessions.another(), is_classic=True)
                if is_classic
                else OwnThreadLane(answers)
            )
        )
        format_ = open_format(context.conversion)
        self._reader = Reader(spark, self._config, context.kafka_options, format_, held_records=self._held_records, fetch=context.records)
        self._trigger = trigger = open_trigger(spark, self._config, self._reader, context.connector)
        self._prefetch = Prefetch(self._reader, functools.partial(answer_at_once, spark))
        if self._stopping.is_set():
            trigger.stop()
        self._tables: Tables = self._make_tables(spark, self._config, Writer(context.connector, context.task, self._epoch))
        self._batches = Batches(
            spark, self._config, context, self._reader, self._tables, self._lanes, self._figures, committed=self._committed
        )

    def step(self) -> Mapping[TopicPartition, int] | None:
        """Apply one batch to all of its tables; return offsets only when every one of them has committed."""
        if self._stopping.is_set() or not self._is_open() or self._trigger is None:
            return None
        trigger = self._trigger
        if (how := self._live_session().ended()) is not None:
            raise spark_ended(how, "waiting for records")
        log = self._context.log_offsets(self._config.topics, self._config.pattern)
        ranges: Mapping[TopicPartition, Range] = {}
        try:
            self._maintain()
            self._collect_stats()
            self._find_positions(log)
            self._maintenance.has_looked()
            self._figures.looked(self._positions, log)
            log = self._horizon.of(log, self._positions)
            pending = trigger.next({tp: self._positions[tp] for tp in log}, log)
            if pending is None:
                self.poll_interval_seconds = self._wait()
                return None
            ranges = pending.ranges
            self._apply(pending, log, trigger)
        except Exception as error:
            trigger.failed(too_large=is_of_size(error))
            if self._prefetch is not None:
                self._prefetch.drop()
            self._tables.forget()
            self._figures.failed()
            if isinstance(error, TableSetBack):
                self._set_back(error, log)
            raised = self._counted(error, f"reading {describe(ranges)}")
            if raised is error:
                raise
            raise raised from error
        self._failures, self._applied_at = 0, self._clock()
        done = {tp: end for tp, (_, end) in ranges.items()}
        self._positions.update(done)
        self._figures.looked(self._positions, log)
        return done

    def _wait(self) -> float:
        """Return how long to wait for records: not long after some have come, where they are not kept waiting by the interval."""
        is_busy = self._clock() - self._applied_at < _BUSY_SECONDS * 1e9
        return _BUSY_POLL_SECONDS if is_busy and self._config["control.commit.interval-ms"] < 1000 else _POLL_SECONDS

    def _committed(self, table: TableName) -> None:
        self._maintenance.committed(table)
        self._stats_schedule.committed(table)

    def _set_back(self, error: TableSetBack, log: Mapping[TopicPartition, Range]) -> None:
        """Read again what a table has lost."""
        for tp, offset in error.offsets.items():
            self._positions[tp] = max(min(offset, self._positions.get(tp, offset)), log[tp][0] if tp in log else 0)

    def _maintain(self) -> None:
        """Compact at most one table before a batch."""
        if self._stopping.is_set() or self._aside is None:
            return
        if (table := self._maintenance.run(self._tables, self._aside)) is not None:
            self._stats_schedule.committed(table)

    def _collect_stats(self) -> None:
        """Query at most one table between two batches. This is for the figures only, so failures are ignored."""
        if self._stopping.is_set() or (table := self._stats_schedule.due(began := time.monotonic())) is None:
            return
        try:
            if (extent := self._tables.extent(table, self._config["maintenance.target-file-size-bytes"])) is not None:
                self._figures.found(str(table), extent)
        except Exception as error:  # noqa: BLE001  # the next use of the table says what is wrong
            _log.debug("Table %s cannot be looked at: %s", table, error)
        self._stats_schedule.took(time.monotonic() - began, time.monotonic())

    def _counted(self, error: Exception, what: str) -> Exception:
        """Return the error to raise: a passing failure becomes a lasting one when it repeats."""
        raised = classify(error, what)
        if not isinstance(raised, RetriableError):
            return raised
        if (how := self._live_session().ended_by(error)) is not None:  # py4j says so in many ways, some of them without a reason
            return spark_ended(how, what)
        self._failures += 1
        if self._failures < self._config["control.commit.max-consecutive-failures"]:
            return raised
        return FatalTaskError(
            f"{raised} It was failure number {self._failures} in a row. What tables have committed stays; restart the task to go on."
        )

    def _is_open(self) -> bool:
        """Return whether Spark runs. A start that failed in passing counts as a failed batch and is tried again at the next step."""
        if self._session is None and self._opening is None:
            self._open()
        try:
            return self.ready(_START_POLL_SECONDS)
        except RetriableError as error:
            self._failures += 1
            if self._failures < self._config["control.commit.max-consecutive-failures"]:
                raise
            raise FatalTaskError(f"{error} It was failure number {self._failures} in a row. Restart the task to go on.") from error

    def _live_session(self) -> TaskSession:
        if self._session is None:
            raise FatalTaskError("The task has been closed.")
        return self._session

    # -- positions -----------------------------------------------------------------------------------------------------------------

    def _find_positions(self, log: Mapping[TopicPartition, Range]) -> None:
        """Find where to start in partitions that are new to this task: at the lower of what the table and the group say.

        A topic's table without a watermark of ours starts over, whatever the group says: it has been dropped or replaced, and what it
        already holds of the replayed rows is written again by key. A topic that does not name its table is left to the group.
        """
        new = [tp for tp in log if tp not in self._positions]
        if not new:
            return
        committed = self._context.committed()
        claim = not self._claimed
        for tp in new:
            fresh = log[tp][0 if self._config["starting-offsets"] == "earliest" else 1]
            group = committed.get(tp)
            applied: dict[TableName, int | None] = {}
            for table in routing.of_topic(tp.topic, self._config):
                self._figures.reads(str(table), [tp])
                self._maintenance.reads(table)
                state = self._tables.load(table, claim=claim)
                self._figures.past(str(table), self._tables.past_commits(table))
                applied[table] = None if state is None else state.watermark.offsets.get(tp)
            position = self._positions[tp] = start_position(group, applied.values(), fresh)
            for table, offset in applied.items():
                if group is not None and position < group and offset in (None, position):
                    _log.warning("Table %s has %s-%d only up to %s, behind the group's %d: reading again", table, *tp, offset, group)
                elif group is None and offset is not None:
                    _log.info("The group has no offset of %s-%d; table %s has it up to %d", *tp, table, offset)
        self._claimed = True

    # -- batches -------------------------------------------------------------------------------------------------------------------

    def _apply(self, pending: PendingBatch, log: Mapping[TopicPartition, Range], trigger: Trigger) -> None:
        began, ranges = time.monotonic(), pending.ranges
        batch = self._prefetch.take(ranges) if self._prefetch is not None else None
        batch = batch or self._reader.read(ranges, pending.records)
        read_seconds = time.monotonic() - began
        try:
            positions = self._positions | {tp: end for tp, (_, end) in ranges.items()}
            if self._prefetch is not None and (following := trigger.after({tp: positions[tp] for tp in log}, log)):
                self._prefetch.begin(following)
            tables = self._batches.apply(batch, lambda error: self._set_back(error, log))
            passed_over = sum(group.count for group in batch.groups if not group.tables)
            self._figures.batch(passed_over, time.monotonic() - began, read_seconds)
        finally:
            batch.close()
        rows = sum(group.count for group in batch.groups)
        _log.info("Applied %d records to %d tables in %.2f s: %s", rows, tables, time.monotonic() - began, describe(ranges))

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Take a signal ``compact`` (`Maintenance.take_signal`). Raises ConfigError: it is refused."""
        self._maintenance.take_signal(signal, done)

    def metrics(self) -> list[MetricGroup]:
        """Return records and commits by table, and how far the tables lag the log."""
        return self._figures.groups()

    def stop(self) -> None:
        """Request the end: the running batch ends normally, and the next step does nothing."""
        self._stopping.set()
        if self._trigger is not None:
            self._trigger.stop()

    def close(self) -> None:
        """Release this task's share of Spark."""
        if self._opening is not None:
            self._opening.abandon()
            self._opening = None
        if self._lanes is not None:
            self._lanes.close()
            self._lanes = None
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        if self._prefetch is not None:
            self._prefetch.close()
            self._prefetch = None
        if self._trigger is not None:
            self._trigger.close()
            self._trigger = None
        if self._session is not None:
            self._session.close()
            self._session = None
