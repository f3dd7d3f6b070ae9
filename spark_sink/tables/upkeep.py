"""When a table is due for what is done between two batches, and what its commits have done to it. Pure; the task's thread asks.

*Maintenance* (compaction, clean-up): a table's turn comes after a number of its commits. It is postponed while the sink has more to catch
up with than `lakehouse.maintenance.max-lag`, and outside of the hours of `lakehouse.maintenance.window`. Its failure is logged and costs
nothing but the turn: no batch waits for it to succeed. `Tables.compact` and `Tables.clean` do it.

*Statistics*: a query or two per table costs time, so with hundreds of tables one after each commit would take a good part of it. Between
two batches at most one table is queried, the one that has waited longest since a commit, and these queries take a fiftieth of the time
together. `Tables.extent` makes them; what commits have done is read from what each of them says of itself.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spark_sink.config.sink_config import SinkConfig
from spark_sink.routing import TableName


@dataclass(frozen=True)
class Activity:
    """What some commits have done together.

    Attributes:
        files_added: data files.
        files_removed: data files that the table's newest state no longer has.
        rows_put: rows that MERGEs of one task's have inserted, or updated because the batch had their key.
    """

    files_added: int = 0
    files_removed: int = 0
    rows_put: int = 0

    def __add__(self, other: Activity) -> Activity:
        return Activity(self.files_added + other.files_added, self.files_removed + other.files_removed, self.rows_put + other.rows_put)


#: Keys of an Iceberg snapshot's summary (`SnapshotSummary.java`); Spark adds those of a MERGE (`MergeSummary`, since 4.1).
_ADDED, _REMOVED = "added-data-files", "deleted-data-files"
_MERGED = ("spark.merge-into.num-target-rows-inserted", "spark.merge-into.num-target-rows-matched-updated")
_EPOCH = "kafka.connect.task-epoch"
SUMMARY_KEYS = (_ADDED, _REMOVED, *_MERGED, _EPOCH)

#: Keys of a Delta commit's metrics (`DeltaOperations.scala`), which each operation has names of its own for.
_DELTA_ADDED = ("numTargetFilesAdded", "numAddedFiles", "numFiles", "numRestoredFiles")
_DELTA_REMOVED = ("numTargetFilesRemoved", "numRemovedFiles")
_DELTA_MERGED = ("numTargetRowsInserted", "numTargetRowsMatchedUpdated")


def line_of(head: int | None, parents: Mapping[int, int | None]) -> list[int]:
    """Return snapshots from the newest back to the first that is left."""
    line = [head] if head is not None and head in parents else []
    while line and (parent := parents[line[-1]]) is not None and parent in parents:
        line.append(parent)
    return line


def activity_of_snapshots(
    head: int | None, snapshots: Mapping[int, tuple[int | None, Mapping[str, str]]], seen: Collection[int], epoch: int
) -> Activity:
    """Return the activity of an Iceberg table's snapshots that its head descends from and that were not seen before.

    Args:
        snapshots: parent and summary by id.
        epoch: of the task whose MERGEs are counted.
    """
    summaries = [snapshots[id_][1] for id_ in line_of(head, {id_: parent for id_, (parent, _) in snapshots.items()}) if id_ not in seen]
    return sum((_activity_of_summary(summary, epoch) for summary in summaries), Activity())


def _activity_of_summary(summary: Mapping[str, str], epoch: int) -> Activity:
    put = _sum(_MERGED, summary) if summary.get(_EPOCH) == str(epoch) else 0
    return Activity(_sum((_ADDED,), summary), _sum((_REMOVED,), summary), put)


def activity_of_metrics(metrics: Mapping[str, str], *, is_ours: bool) -> Activity:
    """Return the activity of a Delta commit."""
    return Activity(_sum(_DELTA_ADDED, metrics), _sum(_DELTA_REMOVED, metrics), _sum(_DELTA_MERGED, metrics) if is_ours else 0)


def _sum(names: Collection[str], of: Mapping[str, str]) -> int:
    return sum(int(of.get(name) or 0) for name in names)


class Rest:
    """The time after a work in which there is none, so that works take no more than their part of the time.

    Args:
        factor: the rest lasts for the work's duration times this.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._until = -math.inf

    def took(self, seconds: float, now: float) -> None:
        """Note that a work took the given time, and has ended now."""
        self._until = now + self._factor * seconds

    def is_over(self, now: float) -> bool:
        """Return whether there may be work; `now` in seconds."""
        return now >= self._until


#: Of queries.
_REST_FACTOR = 49


class StatsSchedule:
    """Tables that have changed since they were last queried."""

    def __init__(self) -> None:
        self._changed: dict[TableName, None] = {}
        self._rest = Rest(_REST_FACTOR)

    def committed(self, table: TableName) -> None:
        """Note that a table has changed."""
        self._changed.setdefault(table)

    def due(self, now: float) -> TableName | None:
        """Return the table whose turn it is; `now` in seconds."""
        if not self._changed or not self._rest.is_over(now):
            return None
        table = next(iter(self._changed))
        del self._changed[table]
        return table

    def took(self, seconds: float, now: float) -> None:
        """Note that a query took the given time."""
        self._rest.took(seconds, now)


@dataclass(frozen=True)
class MaintenancePolicy:
    """What maintenance does; ages in milliseconds, sizes in bytes.

    Attributes:
        retain_at_most: snapshots that stay at most, however young; None for any number.
    """

    target_file_size: int
    older_than_ms: int
    retain_last: int
    retain_at_most: int | None
    orphans_older_than_ms: int
    vacuum_hours: int

    @classmethod
    def of(cls, config: SinkConfig) -> MaintenancePolicy:
        """Read the policy of a configuration."""
        return cls(
            config["maintenance.target-file-size-bytes"],
            config["maintenance.expire-snapshots.older-than-ms"],
            config["maintenance.expire-snapshots.retain-last"],
            _most_snapshots(config["maintenance.expire-snapshots.retain-at-most"], config["control.commit.interval-ms"]),
            config["maintenance.remove-orphan-files.older-than-ms"],
            config["maintenance.vacuum.retain-hours"],
        )


#: A commit a minute leaves 7,200 snapshots in five days, whose list takes 1.4 s of a batch. Tables with shorter intervals keep fewer.
_MOST_SNAPSHOTS, _OFTEN_MS = 2000, 60_000


def _most_snapshots(chosen: int | None, interval_ms: int) -> int | None:
    return _MOST_SNAPSHOTS if chosen is None and interval_ms < _OFTEN_MS else chosen


class MaintenanceSchedule:
    """Commits of each table since its last turn."""

    def __init__(self, config: SinkConfig) -> None:
        self._every = config["maintenance.compact.every-commits"] if config["maintenance.enabled"] else None
        self._max_lag = config["maintenance.max-lag"]
        self._window = window(config["maintenance.window"])
        self._commits: Counter[TableName] = Counter()

    def committed(self, table: TableName) -> None:
        """Count a commit of a table."""
        self._commits[table] += 1

    def due(self, lag: int, now: datetime.datetime) -> TableName | None:
        """Return the table whose turn it is, if any, and restart its count. `now` in UTC."""
        if self._every is None or lag > self._max_lag or not self._window[0] <= _minutes(now, self._window) < self._window[1]:
            return None
        table, commits = max(self._commits.items(), key=lambda item: item[1], default=(None, 0))
        if table is None or commits < self._every:
            return None
        del self._commits[table]
        return table


def window(text: str | None) -> tuple[int, int]:
    """Parse ``HH:MM-HH:MM`` into minutes since midnight; a window that passes midnight ends beyond 24 hours.

    Raises:
        ValueError: the text is not of that form.
    """
    if not text:
        return 0, 24 * 60
    begin, _, end = text.partition("-")
    times = [datetime.time.fromisoformat(part.strip()) for part in (begin, end)]
    first, last = (time.hour * 60 + time.minute for time in times)
    return first, last if last > first else last + 24 * 60


def _minutes(now: datetime.datetime, between: tuple[int, int]) -> int:
    minutes = now.hour * 60 + now.minute
    return minutes if minutes >= between[0] else minutes + 24 * 60
