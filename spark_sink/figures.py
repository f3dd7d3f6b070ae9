"""The sink's own figures, in addition to those that the runtime counts for every sink. The task's thread owns them.

A batch is counted once. A table's rows are counted while they are written: the statement that writes them looks at each of them anyway.
Spark reports what it has observed when the statement has ended, shortly after. Over Spark Connect the statement's text is all that reaches
the server, and nothing is reported. A frame may be observed only where it is used once: an earlier use (a look at its first row) would be
what is reported.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connect_py.api import MetricGroup, MetricValue, TopicPartition
from connect_py.api.task import NOTES_DOMAIN
from spark_sink.tables.base import Extent
from spark_sink.tables.watermark import PastCommit
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


#: Operations of Debezium's events, as the figures show them.
OPERATIONS = ("c", "r", "u", "d", "t")

_UNAVAILABLE = "unavailable"

#: Spark waits a tenth of a second at a time for what was observed, which another thread reports. A figure is not worth more.
_ATTEMPTS = 10


@dataclass(frozen=True)
class Counts:
    """What was counted of a table's part of a batch.

    Attributes:
        operations: events that were applied, by operation; those that the table had already, and bad ones, are none.
        keys: the number of their keys, each of which was written once; None where every event is a row.
        changes: of the schema, by their names in ``lakehouse.tables.include.schema.changes``.
        unavailable: values that the events, other than deletes, did not hold.
        puts: keys whose row is to be inserted or updated; None where whatever comes last in the log is.
    """

    operations: Mapping[str, int] = field(default_factory=dict)
    keys: int | None = None
    changes: Mapping[str, int] = field(default_factory=dict)
    unavailable: int = 0
    puts: int | None = None

    @property
    def events(self) -> int:
        """The number of events that were applied."""
        return sum(self.operations.values())

    @property
    def deduplicated(self) -> int:
        """The number of events that a later one of their key made superfluous."""
        return 0 if self.keys is None else max(0, self.events - self.operations.get("t", 0) - self.keys)


@dataclass(frozen=True)
class Counting:
    """What is being counted of one table's part of a batch.

    Attributes:
        events: of decoded events, as `observe_events` gave it, or its figures; None where Spark reports nothing.
        keys: of rows with one per key, as `observe_keys` gave it, or its figures.
        truncates: of the events, which are no rows of a frame unless every event is one.
        changes: as `Counts.changes`.
    """

    events: Observation | Mapping[str, int] | None = None
    keys: Observation | Mapping[str, int] | None = None
    truncates: int = 0
    changes: Mapping[str, int] = field(default_factory=dict)

    def changed(self, kind: str, columns: int = 1) -> Counting:
        """Count changes of the table's schema."""
        return replace(self, changes={**self.changes, kind: self.changes.get(kind, 0) + columns}) if columns else self

    def counts(self) -> Counts:
        """Return what was counted, after the table has committed."""
        events = _observed(self.events)
        keys = _observed(self.keys)
        operations = {name: found for name in OPERATIONS if (found := events.get(name, 0) + (self.truncates if name == "t" else 0))}
        unavailable, puts = events.get(_UNAVAILABLE, 0), keys.get("puts")
        return Counts(operations, keys.get("keys") if events else None, dict(self.changes), unavailable, puts)


def observe_events(frame: DataFrame, flags: Sequence[str]) -> tuple[DataFrame, Observation]:
    """Return a frame to use in place of one of decoded events. `flags`: its columns that say whether a value is unknown."""
    from pyspark.sql import functions as f

    counts = [f.expr(f"count_if(`$op` = '{name}')").alias(name) for name in OPERATIONS]
    if flags:
        counts.append(f.expr(" + ".join(f"count_if(`$op` <> 'd' AND {quote(name)})" for name in flags)).alias(_UNAVAILABLE))
    return _observing(frame, counts)


def observe_keys(frame: DataFrame, puts: str | None) -> tuple[DataFrame, Observation]:
    """Return a frame to use in place of one with one row per key; `puts` is SQL that is true for rows of `Counts.puts`."""
    from pyspark.sql import functions as f

    return _observing(frame, [f.expr("count(1)").alias("keys"), *([f.expr(f"count_if({puts})").alias("puts")] if puts else [])])


def _observing(frame: DataFrame, counts: Sequence[Column]) -> tuple[DataFrame, Observation]:
    from pyspark.sql import Observation

    observation = Observation()
    return frame.observe(observation, *counts), observation


def count_events(operations: Iterable[str | None], unavailable: int) -> Mapping[str, int]:
    """Return what `observe_events` reports, of events that the driver holds."""
    return Counter(operation for operation in operations if operation in OPERATIONS) | {_UNAVAILABLE: unavailable}


def _observed(observation: Observation | Mapping[str, int] | None) -> Mapping[str, Any]:
    """Return what was observed; nothing when Spark does not report it, which must not hold up a task."""
    if observation is None:
        return {}
    if isinstance(observation, Mapping):
        return observation
    observed: Any = observation._jo
    if any(observed.getRowOrEmpty().isDefined() for _ in range(_ATTEMPTS)):
        return dict(observation.get)
    return {}


#: How many of the bad records a report shows, the last ones, and how many characters of what is said of each.
_KEPT_REJECTED, _NOTE_LENGTH = 20, 400

#: For how long a report has the commits of a table from before the task: more than one report, so that one may be lost.
_PAST_SECONDS = 60.0

#: Observations of the log that are kept per partition with a backlog; beyond that its age is reported too high, never too low.
_MAX_OBSERVATIONS = 600


@dataclass
class _Table:
    records: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    deduplicated: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    skipped: int = 0
    failures: int = 0
    conflicts: int = 0
    retries: int = 0
    has_failed: bool = False
    puts: int | None = None
    stale: int | None = None
    unavailable: int = 0
    extent: Extent | None = None
    seconds: float = 0.0
    last_seconds: float = 0.0
    maintained: int = 0
    maintenance_seconds: float = 0.0
    rejected: int = 0
    committed_at: float = 0.0
    past: Sequence[PastCommit] = ()
    past_until: float | None = None
    reads: set[TopicPartition] = field(default_factory=set)
    has_topics: bool = False
    applied: dict[TopicPartition, int] = field(default_factory=dict)


class Backlog:
    """A partition's records that are not applied.

    Each observation of the log: where it ended, when that was, and when the previous observation was, which had not seen these records;
    None where there was none, or the records were applied once and have been lost.
    """

    def __init__(self) -> None:
        self.looks: deque[tuple[int, float, float | None]] = deque()
        self.end = 0
        self.last: float | None = None

    def looked(self, end: int, now: float) -> None:
        if end <= self.end:
            return
        self.end, before = end, self.last
        if len(self.looks) == _MAX_OBSERVATIONS:
            _, now, before = self.looks.pop()
        self.looks.append((end, now, before))

    def set_back(self) -> None:
        """Note that records that were applied are to be applied again."""
        self.looks = deque((end, seen, None) for end, seen, _ in self.looks)
        self.last = None

    def applied(self, offset: int) -> None:
        while self.looks and self.looks[0][0] <= offset:
            self.looks.popleft()

    def since(self, offset: int) -> float | None:
        """Return when the record at an offset was first seen in the log; None when it is not there yet."""
        return next((seen for end, seen, _ in self.looks if end > offset), None)

    def complete(self, offset: int) -> float | None:
        """Return the time of the last observation that found nothing at or after an offset."""
        return next((before for end, _, before in self.looks if end > offset), self.last)


@dataclass
class SinkFigures:
    """Counts since the task's start.

    Attributes:
        clock: monotonic seconds.
        wall_clock: seconds since the epoch.
        lag: offsets that are in the log and not applied, as last observed.
    """

    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    lag: int = 0
    _batches: int = 0
    _passed_over: int = 0
    _failures: int = 0
    _rejected: int = 0
    _bad: deque[Mapping[str, MetricValue]] = field(default_factory=lambda: deque(maxlen=_KEPT_REJECTED))
    _seconds: float = 0.0
    _read_seconds: float = 0.0
    _tables: dict[str, _Table] = field(default_factory=dict)
    _session_began: float | None = None
    _positions: dict[TopicPartition, int] = field(default_factory=dict)
    _backlogs: dict[TopicPartition, Backlog] = field(default_factory=dict)

    def session_starts(self) -> None:
        """Note that Spark is being started."""
        self._session_began = None

    def session_started(self) -> None:
        """Note that Spark runs."""
        self._session_began = self.clock()

    def looked(self, positions: Mapping[TopicPartition, int], log: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Note what the log holds; `positions` are the next offsets to apply."""
        now, lag = self.clock(), 0
        for partition, (start, end) in log.items():
            position, before = positions.get(partition, start), self._positions.get(partition, 0)
            self._positions[partition] = position
            if (backlog := self._backlogs.get(partition)) is None:
                backlog = self._backlogs[partition] = Backlog()
            if position < before:
                backlog.set_back()
                for table in self._tables.values():
                    table.applied.pop(partition, None)
            if end > position:
                if not backlog.looks:
                    backlog.end = 0  # positions may have gone back
                lag += end - position
                backlog.looked(end, now)
            if backlog.looks:
                backlog.applied(position)
            backlog.last = now
        self.lag = lag

    def reads(self, table: str, partitions: Iterable[TopicPartition]) -> None:
        """Note that a table's records come from these partitions, as far as is known."""
        known = self._of(table)
        known.reads.update(partitions)
        known.has_topics = True

    def past(self, table: str, commits: Sequence[PastCommit]) -> None:
        """Note a table's last commits from before this task, when it is first loaded."""
        known = self._of(table)
        if known.past_until is None:
            known.past, known.past_until = commits, self.clock() + _PAST_SECONDS

    def applied(
        self,
        table: str,
        records: int,
        seconds: float,
        *,
        was_new: bool,
        counts: Counts | None = None,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Count a table's part of a batch; `was_new` is False when the table had it already. `ends` are the next offsets to apply to it."""
        known = self._of(table)
        known.retries += known.has_failed and was_new
        known.has_failed = False
        known.seconds += seconds
        known.last_seconds = seconds
        if ends:
            known.reads.update(ends)
            known.applied.update(ends)
        if was_new:
            known.batches += 1
            known.records += records if counts is None or not counts.operations else counts.events
            known.committed_at = self.wall_clock()
        else:
            known.skipped += 1
        if counts is not None:
            known.operations.update(counts.operations)
            known.deduplicated += counts.deduplicated
            known.unavailable += counts.unavailable
            known.puts = known.puts if counts.puts is None else (known.puts or 0) + counts.puts
            known.changes.update(counts.changes)

    def table_failed(self, table: str, *, by_conflict: bool = False) -> None:
        """Count a failure of a table's part of a batch; `by_conflict`: others changed the table meanwhile."""
        known = self._of(table)
        known.failures += 1
        known.retries += known.has_failed
        known.has_failed = True
        known.conflicts += by_conflict

    def found(self, table: str, extent: Extent) -> None:
        """Note what a table consists of."""
        known = self._of(table)
        known.extent = extent
        if known.puts is not None:
            known.stale = max(known.stale or 0, known.puts - extent.activity.rows_put)

    def batch(self, passed_over: int, seconds: float = 0.0, read_seconds: float = 0.0) -> None:
        """Count a batch that all of its tables have committed.

        Args:
            passed_over: records that belong to no table (heartbeats, tombstones, what routing leaves out).
            seconds: from its beginning to the last commit.
            read_seconds: of these, until it was known what is in it.
        """
        self._batches += 1
        self._passed_over += passed_over
        self._seconds += seconds
        self._read_seconds += read_seconds

    def maintained(self, table: str, seconds: float) -> None:
        """Count a table's compaction."""
        known = self._of(table)
        known.maintained += 1
        known.maintenance_seconds += seconds

    def rejected(self, problems: Mapping[tuple[TopicPartition, int], str], table: str | None = None) -> None:
        """Count bad records, of a table or before a table was found for them.

        Args:
            problems: why each is bad, by where it is.
        """
        self._rejected += len(problems)
        if table is not None:
            self._of(table).rejected += len(problems)
        for (partition, offset), why in list(problems.items())[-_KEPT_REJECTED:]:
            place = f"topic {partition.topic}, partition {partition.partition}, offset {offset}"
            about = {"table": table or "", "place": place, "reason": _reason(why), "message": why[:_NOTE_LENGTH]}
            self._bad.append({"at": int(self.wall_clock() * 1000), **about})

    def failed(self) -> None:
        """Count a failed batch, which is tried again or fails the task."""
        self._failures += 1

    def _of(self, table: str) -> _Table:
        return self._tables.setdefault(table, _Table())

    def _lag(self, table: _Table, now: float) -> tuple[int, int]:
        """Return one table's lag: offsets, and milliseconds since the first of them was seen."""
        offsets, since = 0, now
        for partition in table.reads:
            if (backlog := self._backlogs.get(partition)) is None or not backlog.looks:
                continue
            position = max(self._positions[partition], table.applied.get(partition, 0))
            if backlog.end > position:
                offsets += backlog.end - position
                since = min(since, backlog.since(position) or now)
        return offsets, int((now - since) * 1000)

    def _valid_through(self, table: _Table) -> float | None:
        """Return when the table last had everything that its partitions held; on the monotonic clock."""
        found = []
        for partition in table.reads if table.has_topics else self._backlogs:
            if (backlog := self._backlogs.get(partition)) is None:
                return None
            found.append(backlog.complete(max(self._positions[partition], table.applied.get(partition, 0))))
        known = [time_ for time_ in found if time_ is not None]
        return min(known) if known and len(known) == len(found) else None

    def groups(self) -> list[MetricGroup]:
        """Return the figures as they are now."""
        now = self.clock()
        lags = {name: self._lag(table, now) for name, table in self._tables.items()}
        seen = [backlog.since(self._positions[partition]) for partition, backlog in self._backlogs.items() if backlog.looks]
        oldest = min((since for since in seen if since is not None), default=now)
        values = {
            "batches-total": self._batches,
            "batch-seconds-total": self._seconds,
            "batch-read-seconds-total": self._read_seconds,
            "batch-failures-total": self._failures,
            "lag-offsets": self.lag,
            "lag-ms": int((now - oldest) * 1000),
            "records-passed-over-total": self._passed_over,
            "records-rejected-total": self._rejected,
            "spark-session-starting": int(self._session_began is None),
            "spark-session-uptime-seconds": 0 if self._session_began is None else int(now - self._session_began),
        }
        found = [MetricGroup("connect.py", "lakehouse-sink", {}, values)]
        for name, table in sorted(self._tables.items()):
            tags = {"table": name}
            found.append(MetricGroup("connect.py", "lakehouse-table", tags, _values(table, *lags[name])))
            if (complete := self._valid_through(table)) is not None:
                values = {"valid-through-timestamp-seconds": self.wall_clock() - (now - complete)}
                found.append(MetricGroup("connect.py", "lakehouse-table", tags, values))
            found += [
                MetricGroup("connect.py", "lakehouse-table", {**tags, "op": op}, {"records-applied-by-op-total": records})
                for op, records in sorted(table.operations.items())
            ]
            found += [
                MetricGroup("connect.py", "lakehouse-table", {**tags, "kind": kind}, {"schema-changes-total": changes})
                for kind, changes in sorted(table.changes.items())
            ]
        notes = [MetricGroup(NOTES_DOMAIN, "rejected-record", {"number": str(number)}, about) for number, about in enumerate(self._bad)]
        for name, table in self._tables.items():
            if table.past_until is None or now > table.past_until:
                table.past = ()
            for number, commit in enumerate(table.past):
                about = {"at": commit.at, **({} if commit.records is None else {"records": commit.records})}
                notes.append(MetricGroup(NOTES_DOMAIN, "lakehouse-commit", {"table": name, "number": str(number)}, about))
        return found + notes


#: How Spark's messages begin: with the condition's name.
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]")


def _reason(why: str) -> str:
    """Return why a record is bad, without the value that Spark's own messages name."""
    found = _CONDITION.match(why)
    return f"a value does not fit ({found[1]})" if found else re.split("['\"]", why)[0].strip(" :")[:_NOTE_LENGTH]


def _values(table: _Table, lag_offsets: int, lag_ms: int) -> dict[str, float]:
    return {
        **_of_extent(table.extent),
        **({} if table.stale is None else {"records-stale-total": table.stale}),
        "records-applied-total": table.records,
        "records-deduplicated-total": table.deduplicated,
        "unavailable-values-total": table.unavailable,
        "records-rejected-total": table.rejected,
        "lag-offsets": lag_offsets,
        "lag-ms": lag_ms,
        "commits-total": table.batches,
        "batches-skipped-already-committed-total": table.skipped,
        "failures-total": table.failures,
        "commit-conflicts-total": table.conflicts,
        "commit-retries-total": table.retries,
        "apply-seconds-total": table.seconds,
        "last-apply-seconds": table.last_seconds,
        "last-commit-timestamp-seconds": table.committed_at,
        "maintenance-total": table.maintained,
        "maintenance-seconds-total": table.maintenance_seconds,
    }


def _of_extent(extent: Extent | None) -> dict[str, float]:
    if extent is None:
        return {}
    found = {
        "generation": extent.generation,
        "data-files": extent.data_files,
        "size-bytes": extent.size_bytes,
        "delete-files": extent.delete_files,
        "snapshots": extent.snapshots,
        "small-files": extent.small_files,
        "files-added-total": extent.activity.files_added,
        "files-removed-total": extent.activity.files_removed,
    }
    return {name: value for name, value in found.items() if value is not None}
