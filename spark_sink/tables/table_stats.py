"""What commits have done to a table, from what each of them says of itself, and when tables are queried for it. Pure.

A query or two per table costs time, so with hundreds of tables one after each commit would take a good part of it. Between two batches at
most one table is queried, the one that has waited longest since a commit, and these queries take a fiftieth of the time together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

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


#: After a query the next one waits for its duration times this.
_REST_FACTOR = 49


class StatsSchedule:
    """Tables that have changed since they were last queried."""

    def __init__(self) -> None:
        self._changed: dict[TableName, None] = {}
        self._next = 0.0

    def committed(self, table: TableName) -> None:
        """Note that a table has changed."""
        self._changed.setdefault(table)

    def due(self, now: float) -> TableName | None:
        """Return the table whose turn it is; `now` in seconds."""
        if now < self._next or not self._changed:
            return None
        table = next(iter(self._changed))
        del self._changed[table]
        return table

    def took(self, seconds: float, now: float) -> None:
        """Note that a query took the given time."""
        self._next = now + _REST_FACTOR * seconds
