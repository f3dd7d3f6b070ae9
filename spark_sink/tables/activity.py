"""What commits have done to a table, from what each of them says of itself. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Activity:
    """Of some commits together.

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
OF_SUMMARIES = (_ADDED, _REMOVED, *_MERGED, _EPOCH)

#: Keys of a Delta commit's metrics (`DeltaOperations.scala`), which each operation has names of its own for.
_DELTA_ADDED = ("numTargetFilesAdded", "numAddedFiles", "numFiles", "numRestoredFiles")
_DELTA_REMOVED = ("numTargetFilesRemoved", "numRemovedFiles")
_DELTA_MERGED = ("numTargetRowsInserted", "numTargetRowsMatchedUpdated")


def line_of(head: int | None, parents: Mapping[int, int | None]) -> list[int]:
    """Snapshots from the newest back to the first that is left."""
    line = [head] if head is not None and head in parents else []
    while line and (parent := parents[line[-1]]) is not None and parent in parents:
        line.append(parent)
    return line


def of_snapshots(
    head: int | None, snapshots: Mapping[int, tuple[int | None, Mapping[str, str]]], seen: Collection[int], epoch: int
) -> Activity:
    """Of an Iceberg table's snapshots that its head comes from and that were not seen before.

    Args:
        snapshots: parent and summary by id.
        epoch: of the task whose MERGEs are counted.
    """
    summaries = [snapshots[id_][1] for id_ in line_of(head, {id_: parent for id_, (parent, _) in snapshots.items()}) if id_ not in seen]
    return sum((_of_summary(summary, epoch) for summary in summaries), Activity())


def _of_summary(summary: Mapping[str, str], epoch: int) -> Activity:
    put = _sum(_MERGED, summary) if summary.get(_EPOCH) == str(epoch) else 0
    return Activity(_sum((_ADDED,), summary), _sum((_REMOVED,), summary), put)


def of_metrics(metrics: Mapping[str, str], *, is_ours: bool) -> Activity:
    """Of a Delta commit."""
    return Activity(_sum(_DELTA_ADDED, metrics), _sum(_DELTA_REMOVED, metrics), _sum(_DELTA_MERGED, metrics) if is_ours else 0)


def _sum(names: Collection[str], of: Mapping[str, str]) -> int:
    return sum(int(of.get(name) or 0) for name in names)
