"""A source's metrics, as Debezium's beans have them (`pipeline/meters/{CommonEvent,Snapshot,Streaming}Meter.java`), and the progress of a
snapshot for each table, which `GET /connectors/{name}/status` shows. No I/O.

Everything is counted once a batch. There is no queue between reading and producing, so the queue's figures say that it is empty. Texts that
change with every event (LastEvent) are left out: a monitoring system would keep each as a series of its own.

Progress: the group's type and the names of its values are what the worker looks for when it answers with a status. The group is there
while a snapshot runs that is not over at once, and for a minute afterwards where it was a long one: most snapshots of small databases end
before anybody can ask, and the answers about them are Connect's own. Initial, blocking and incremental snapshots are reported alike, as by
Debezium; pauses of incremental ones do not count as time that a snapshot takes.

The task's thread owns these.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from connect_py.api import MetricGroup, MetricValue
from connect_py.api.task import NOTES_DOMAIN

#: A snapshot is worth telling of when it has lasted so long, and afterwards when it lasted so long.
SHOWN_AFTER_SECONDS, LONG_SECONDS = 5.0, 30.0
#: How long a snapshot that has ended is shown.
SHOWN_FOR_SECONDS = 60.0


@dataclass(slots=True)
class _Table:
    estimate: int | None
    rows: int = 0
    #: rows that an earlier attempt has read
    before: int = 0
    began: float | None = None
    ended: float | None = None

    def rate(self, now: float) -> float:
        seconds = (self.ended or now) - (self.began or now)
        return (self.rows - self.before) / seconds if seconds > 0 else 0.0


class SnapshotRates:
    """The progress of a snapshot, for each table."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tables: dict[str, _Table] = {}
        self._began: float | None = None
        self._ended: float | None = None
        self._paused: float | None = None
        self._reason = ""

    def begin(self, estimates: Mapping[str, int | None], done: Mapping[str, int], ended: Collection[str]) -> None:
        """Start a snapshot.

        Args:
            estimates: rows of all its tables; None where nothing is known.
            done: rows that an earlier attempt has read, of those tables of which it has.
            ended: tables of which it has read all.
        """
        self._began, self._ended, self._paused = self._clock(), None, None
        self._tables = {name: _Table(estimate, done.get(name, 0), done.get(name, 0)) for name, estimate in estimates.items()}
        for name in ended:
            self.table_ended(name)

    def estimated(self, table: str, rows: int | None) -> None:
        """Note about how many rows a table has, which joins the snapshot if it is new."""
        known = self._tables.setdefault(table, _Table(None))
        known.estimate = rows

    def paused(self, reason: str = "") -> None:
        """Note that nothing is read for now, and why."""
        self._paused, self._reason = self._clock(), reason

    def resumed(self) -> None:
        """Note that reading continues. The pause is taken out of all times, as if everything had begun later."""
        if self._paused is None:
            return
        pause, self._paused = self._clock() - self._paused, None
        if self._began is not None:
            self._began += pause
        for table in self._tables.values():
            if table.began is not None and table.ended is None:
                table.began += pause

    def scanned(self, table: str, rows: int) -> None:
        """Count further rows of a table that were read."""
        known = self._tables.setdefault(table, _Table(None))
        if known.began is None:
            known.began = self._clock()
        known.rows += rows

    def table_ended(self, table: str) -> None:
        """Note that a table was read to its end."""
        if table in self._tables:
            self._tables[table].ended = self._clock()

    @property
    def estimates(self) -> dict[str, int]:
        """About how many rows the tables have, where it is known."""
        return {name: max(table.estimate, table.rows) for name, table in self._tables.items() if table.estimate is not None}

    def end(self) -> None:
        """Note that the snapshot has ended, whether it was completed or not. One that was paused is paused no more."""
        self.resumed()
        if self._ended is None:
            self._ended = self._clock()

    def groups(self) -> list[MetricGroup]:
        """Return the progress, and why it is paused; nothing where it is of no interest."""
        now = self._clock() if self._paused is None else self._paused
        if self._began is None:
            return []
        lasted = (self._ended or now) - self._began
        is_short = lasted < (SHOWN_AFTER_SECONDS if self._ended is None else LONG_SECONDS) and self._paused is None
        if is_short or (self._ended or now) < now - SHOWN_FOR_SECONDS:
            return []
        tables = self._tables
        values: dict[str, MetricValue] = {
            "running": self._ended is None and self._paused is None,
            "paused": self._paused is not None,
            "rows": {name: table.rows for name, table in tables.items()},
            "estimated-rows": self.estimates,
            "rows-per-second": {name: round(table.rate(now), 1) for name, table in tables.items() if table.began is not None},
            "seconds-left": {name: left for name, table in tables.items() if (left := _seconds_left(table, now)) is not None},
            "done": {name: int(table.ended is not None) for name, table in tables.items()},
        }
        found = [MetricGroup("connect.py", "snapshot-progress", {}, values)]
        if self._paused is not None:
            pause: dict[str, MetricValue] = {"reason": self._reason, "seconds": int(self._clock() - self._paused)}
            found.append(MetricGroup(NOTES_DOMAIN, "snapshot-pause", {}, pause))
        return found


def _seconds_left(table: _Table, now: float) -> int | None:
    """Return None where it is not known: nothing was read yet, or more than the estimate."""
    if table.ended is not None:
        return 0
    rate = table.rate(now)
    if table.estimate is None or table.estimate <= table.rows or rate <= 0:
        return None
    return int((table.estimate - table.rows) / rate)


#: Batches whose lag the percentiles are taken from: the last few minutes of a busy stream.
_LAGS = 1024


class _Events:
    """What snapshot and stream have in common."""

    context = ""

    def __init__(self, plugin: str, server: str, queue_size: int, clock: Callable[[], float]) -> None:
        self._domain = f"debezium.{plugin}"
        self._tags = {"context": self.context, "server": server}
        self._queue_size = queue_size
        self._clock = clock
        self._last: float | None = None
        self.seen = self.created = self.updated = self.deleted = 0
        #: rows of tables that the filters leave out, as far as they reach the connector
        self.filtered = 0

    def events(self, seen: int, *, created: int = 0, updated: int = 0, deleted: int = 0) -> None:
        """Count a batch of events that was read."""
        self.seen += seen
        self.created += created
        self.updated += updated
        self.deleted += deleted
        self._last = self._clock()

    def _common(self) -> dict[str, MetricValue]:
        return {
            "MilliSecondsSinceLastEvent": -1 if self._last is None else int((self._clock() - self._last) * 1000),
            "TotalNumberOfEventsSeen": self.seen,
            "TotalNumberOfCreateEventsSeen": self.created,
            "TotalNumberOfUpdateEventsSeen": self.updated,
            "TotalNumberOfDeleteEventsSeen": self.deleted,
            "NumberOfEventsFiltered": self.filtered,
            # an event that cannot be read fails the task
            "NumberOfErroneousEvents": 0,
            "QueueTotalCapacity": self._queue_size,
            "QueueRemainingCapacity": self._queue_size,
            "MaxQueueSizeInBytes": 0,
            "CurrentQueueSizeInBytes": 0,
        }


class SnapshotMetrics(_Events):
    """A snapshot's progress."""

    context = "snapshot"

    def __init__(self, plugin: str, server: str, queue_size: int = 8192, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(plugin, server, queue_size, clock)
        self._rows: dict[str, int] = {}
        self._tables = self._tables_left = 0
        self._state = ""
        self._began = self._ended = 0.0
        self._pause_began, self._pauses = 0.0, 0.0
        self._rates = SnapshotRates(clock)

    def begin(
        self,
        tables: int,
        estimates: Mapping[str, int | None] | None = None,
        done: Mapping[str, int] | None = None,
        ended: Collection[str] = (),
    ) -> None:
        """Start a snapshot; `estimates`, `done` and `ended` are those of `SnapshotRates.begin`."""
        self._rows = dict(done or {})
        self._tables = self._tables_left = tables
        self._state, self._began = "running", self._clock()
        self._pauses = 0.0
        self._rates.begin(estimates or {}, done or {}, ended)

    def begin_incremental(self, tables: Sequence[str], *, again: bool = False) -> None:
        """Start an incremental snapshot. Rows of other tables stay, and its own when it is resumed (`again`) after an interruption."""
        before = self._rows
        self.begin(len(tables), dict.fromkeys(tables), {name: before.get(name, 0) for name in tables if again})
        self._rows = {**before, **dict.fromkeys(tables, 0), **self._rows}

    def added(self, tables: Sequence[str]) -> None:
        """Add tables to the incremental snapshot that runs."""
        self._tables += len(tables)
        self._tables_left += len(tables)
        for name in tables:
            self._rates.estimated(name, None)

    def estimated(self, table: str, rows: int | None) -> None:
        """Note about how many rows a table has; None where nothing is known."""
        self._rates.estimated(table, rows)

    def paused(self, reason: str = "") -> None:
        """Note that no chunk of an incremental snapshot is read for now, and why."""
        if self._state == "running":
            self._state, self._pause_began = "paused", self._clock()
            self._rates.paused(reason)

    def resumed(self) -> None:
        """Note that chunks are read again."""
        if self._state == "paused":
            self._state = "running"
            self._pauses += self._clock() - self._pause_began
            self._rates.resumed()

    def scanned(self, table: str, rows: int) -> None:
        """Count further rows of a table that were read."""
        self._rows[table] = self._rows.get(table, 0) + rows
        self._rates.scanned(table, rows)

    def table_done(self, table: str = "") -> None:
        """Note that a table was read to its end."""
        self._tables_left = max(0, self._tables_left - 1)
        self._rates.table_ended(table)

    def end(self, state: str) -> None:
        """Note that the snapshot is `completed` or `aborted`."""
        self.resumed()
        self._state, self._ended = state, self._clock()
        self._rates.end()
        if state == "completed":
            self._tables_left = 0

    def skipped(self) -> None:
        """Note that there is no initial snapshot to take; an incremental one that resumes is what the bean is about."""
        if not self._state:
            self._state, self._ended = "skipped", self._clock()

    def interrupted(self) -> None:
        """Note that everything is closed, and with it a snapshot that has not ended."""
        if self._state in ("running", "paused"):
            self.end("aborted")

    @property
    def estimates(self) -> Mapping[str, int]:
        """About how many rows the snapshot's tables have, where it is known."""
        return self._rates.estimates

    def groups(self) -> list[MetricGroup]:
        """Return the bean, and the snapshot's progress where that is of interest."""
        return [self.group(), *self._rates.groups()]

    def group(self) -> MetricGroup:
        """Return the current values."""
        paused = self._state == "paused"
        seconds = (self._clock() if paused or self._state == "running" else self._ended) - self._began if self._began else 0.0
        pauses = self._pauses + (self._clock() - self._pause_began if paused else 0.0)
        values: dict[str, MetricValue] = {
            **self._common(),
            "TotalTableCount": self._tables,
            "RemainingTableCount": self._tables_left,
            "SnapshotRunning": self._state == "running",
            "SnapshotPaused": paused,
            "SnapshotCompleted": self._state == "completed",
            "SnapshotAborted": self._state == "aborted",
            "SnapshotSkipped": self._state == "skipped",
            "SnapshotDurationInSeconds": int(seconds),
            "SnapshotPausedDurationInSeconds": int(pauses),
            "RowsScanned": dict(self._rows),
        }
        return MetricGroup(self._domain, "connector-metrics", self._tags, values)


class StreamingMetrics(_Events):
    """How the stream of changes goes.

    Attributes:
        connected: whether the stream is open.
        transactions: commits that were read.
        position: of the last event, by the source's own names.
        last_transaction: its number, where it has one.
        skipped: events that are no news, -1 where the connector does not look.
    """

    context = "streaming"

    def __init__(self, plugin: str, server: str, queue_size: int = 8192, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(plugin, server, queue_size, clock)
        self.connected = False
        self.transactions = 0
        self.position: dict[str, int] = {}
        self.last_transaction: int | None = None
        self.skipped = -1
        self._lag_ms = -1
        self._lags: deque[int] = deque(maxlen=_LAGS)

    def behind(self, lag_ms: int) -> None:
        """Note the age of the last event of a batch when it was read."""
        self._lag_ms = max(0, lag_ms)
        self._lags.append(self._lag_ms)

    def group(self) -> MetricGroup:
        """Return the current values."""
        lags = sorted(self._lags)
        values: dict[str, MetricValue] = {
            **self._common(),
            "Connected": self.connected,
            "MilliSecondsBehindSource": self._lag_ms,
            "MilliSecondsBehindSourceMinValue": lags[0] if lags else -1,
            "MilliSecondsBehindSourceMaxValue": lags[-1] if lags else -1,
            "MilliSecondsBehindSourceAverageValue": sum(lags) / len(lags) if lags else -1,
            **{f"MilliSecondsBehindSourceP{percent}": _percentile(lags, percent) for percent in (50, 95, 99)},
            "NumberOfCommittedTransactions": self.transactions,
            "NumberOfUnchangedEventsSkipped": self.skipped,
            "SourceEventPosition": dict(self.position),
        }
        if self.last_transaction is not None:
            values["LastTransactionId"] = self.last_transaction
        return MetricGroup(self._domain, "connector-metrics", self._tags, values)


def _percentile(ordered: list[int], percent: int) -> int:
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else -1
