"""A compaction that the driver does: its rows are written next to the batches, and its commit stands between two.

Rows that a batch replaces meanwhile are rows of old files. In the new file they have the order that they had in the old ones, so it is
known where they are, and the commit that publishes the new file deletes them in it. It fails if a row has been deleted since its look at
the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from spark_sink.tables.direct import NotDirect
from spark_sink.tables.iceberg.branches import is_refused
from spark_sink.tables.iceberg.files import LiveFiles, Rewrite
from spark_sink.tables.iceberg.jvm import IcebergJvm, Rewritten, Written


class Followed(Protocol):
    """What a compaction asks of its table (`spark_sink.tables.iceberg.direct.DirectTable`)."""

    branch: str

    def at_rest(self) -> tuple[Any, Any, LiveFiles]: ...


class DirectCompaction:
    """A compaction of one table, whose head may move between its two parts."""

    def __init__(self, of: Followed, jvm: IcebergJvm, rewrites: Sequence[Rewrite], table: Any, snapshot: Any) -> None:
        self._of = of
        self._jvm = jvm
        self._rewrites = rewrites
        self._table = table
        self._snapshot = snapshot
        self._rewritten = Rewritten(Written(), ())

    def write(self) -> None:
        """Write the rows that are left in the snapshot that was the head."""
        if self._rewrites:
            self._rewritten = self._jvm.rewrite(self._table, self._snapshot, self._rewrites)

    def commit(self) -> tuple[int, int] | None:
        """Have new files in the place of the old ones, without rows that have been deleted since, and with fewer files of positions.

        Returns:
            The branch's newest snapshot but one, and the newest; the former is of somebody else if a commit has come in between. None if
            the table cannot be followed any more; it stays as it is.
        """
        new = self._rewritten.new
        try:
            table, snapshot, live = self._of.at_rest()
            if self._jvm.schema_id(table) != self._jvm.schema_id(self._table):
                raise NotDirect
            replaced = live.replaced(self._rewrites, self._new_files(table))
            self._jvm.commit_rewritten(table, self._of.branch, int(snapshot.snapshotId()), self._rewritten, replaced)
        except Exception as error:
            if isinstance(error, NotDirect) or is_refused(error):
                self._jvm.discard(self._table, new)
            if isinstance(error, NotDirect):
                return None
            raise
        table.refresh()
        after = table.snapshot(table.refs().get(self._of.branch).snapshotId())
        return int(after.parentId()), int(after.snapshotId())

    def _new_files(self, table: Any) -> Mapping[str, str]:
        """Return the new files' paths by their partitions. Raise NotDirect if they are not one of each, with the rows that it must have."""
        found = {str(self._jvm.partition_of(table, file)): file for file in self._rewritten.new.data}
        rows = {partition: int(file.recordCount()) for partition, file in found.items()}
        if len(found) < len(self._rewritten.new.data) or rows != {each.partition: each.rows for each in self._rewrites if each.rows}:
            raise NotDirect
        return {partition: str(file.location()) for partition, file in found.items()}
