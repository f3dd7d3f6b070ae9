"""Batches go into a Delta table by Delta's own interface, in the JVM of this process, without a statement.

A MERGE is ten jobs of Spark's: it reads the state of the log, decodes and joins the batch twice, and joins the log once more for
statistics. Here the driver follows the log (`files`) and knows which files can hold a key of the batch. The positions of the rows
with these keys are found by a job, or without one in small files (`file_keys`); another job writes the new rows, and one commit marks the
old ones as deleted (`jvm`). The rows of a large batch are decoded once, and Spark holds them for both jobs (`batch_rows`).

Of rows that replace none there is nothing to look for. What is written is what a MERGE or an INSERT writes. `OptimisticTransaction` checks
and commits it, with the conflicts of a statement that has read the whole table, or none of it (`ConflictChecker`). Batches whose rows
depend on those of the table, and tables of which more is to be regarded, are left to the statement.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spark_sink.spark.local import having_settings, select
from spark_sink.sql.merge import Shape
from spark_sink.tables.batch_rows import FewRows, ManyRows, Matches, Positions
from spark_sink.tables.delta.files import DataFile, LiveFiles
from spark_sink.tables.delta.jvm import DeltaJvm, Transaction
from spark_sink.tables.direct import MOST_FILES, WITHOUT_ADAPTIVE, Columns, NotDirect, RowsOfTable, look_up, rows_of
from spark_sink.tables.file_keys import FileKeys
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Files that a key may be in. Delta is handed them one by one.
_MOST_CANDIDATES = 1_000

#: Commits of others that are read one by one; of more, the whole state is read.
_MOST_COMMITS = 100

#: Of a few rows: to make a class for each plan, and for the statistics of each file, takes longer than the rows.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

#: Rows that are handed over to a writer one by one; more take a job less time.
_MOST_HERE = 200

#: Intervals of checkpoints after which a commit does not leave one to others.
_LATEST = 2

#: Bytes of files that one task reads.
_FOR_ONE_TASK = 16 << 20


class DirectTable:
    """One table, at a path. It is used by one thread at a time.

    Attributes:
        postpones_checkpoints: whether commits leave them to `checkpoint`, as somebody calls it from time to time.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.postpones_checkpoints = False
        self._spark: Any = spark
        self._delta = DeltaJvm(spark, path)
        self._files: LiveFiles | None = None
        self._not_before = 0  # a version
        self._is_new = False
        self._keys = FileKeys(())
        self._columns: Columns | None = None
        self._rows = RowsOfTable(spark)

    def created(self) -> None:
        """Note that the table is new, so that its log can be read from the first commit."""
        self._files, self._is_new = None, True

    def version(self) -> int:
        """Return the table's newest version, for which its log is listed; -1 if there is no table."""
        return self._delta.version()

    def merge(self, rows: DataFrame, shape: Shape, transaction: Transaction) -> int | None:
        """Replace the table's rows that have the keys of rows by these, or by nothing where these are deletes, in one commit.

        Args:
            rows: with the columns of `shape` and `$op`, one of each key.
            shape: one that `may_merge`.

        Returns:
            The version of the commit; None if another one has the transaction's version already, so that nothing was written.

        Raises:
            NotDirect: the statement must do it.
        """
        if (begun := self._begin(shape, transaction)) is None:
            return None
        under_way, files = begun
        under_way.readWholeTable()
        with rows_of(self._spark, rows, shape) as source:
            held, found = self._matches(under_way.snapshot(), files, source, shape)
            added = self._written(under_way, files, rows, shape, source)[0] if source.put_count else []
        replaced = self._delta.delete(held)
        metrics = {
            "operationNumSourceRows": source.put_count + source.delete_count,
            "numTargetRowsInserted": source.put_count - found.keys_updated,
            "numTargetRowsUpdated": found.updated,
            "numTargetRowsMatchedUpdated": found.updated,
            "numTargetRowsDeleted": found.deleted,
            "numTargetRowsMatchedDeleted": found.deleted,
            "numTargetRowsCopied": 0,
            "numTargetFilesAdded": len(added),
            "numTargetFilesRemoved": replaced.whole_files,
        }
        return self._delta.commit_merge(under_way, [*added, *replaced.actions], transaction, metrics)

    def append(self, rows: DataFrame, shape: Shape, transaction: Transaction) -> int | None:
        """Add rows, in one commit.

        Args:
            rows: with the columns of `shape`.

        Returns:
            As `merge`.

        Raises:
            NotDirect: the statement must do it.
        """
        if (begun := self._begin(shape, transaction)) is None:
            return None
        under_way, files = begun
        added, count = self._written(under_way, files, rows, shape, None)
        size = sum(int(file.size()) for file in added)
        metrics = {} if count is None else {"numFiles": len(added), "numOutputRows": count, "numOutputBytes": size}
        return self._delta.commit_append(under_way, added, transaction, metrics)

    def _written(
        self, under_way: Any, files: LiveFiles, rows: DataFrame, shape: Shape, source: FewRows | ManyRows | None
    ) -> tuple[list[Any], int | None]:
        """Write rows to new files, those that are not deletes if a `source` knows of any.

        Returns:
            The actions, and how many rows there are if that was no job, which Delta counts by itself.
        """
        columns = self._columns_of(files.schema)
        if shape.is_local and files.has_plain_writes and columns.is_plain:
            with contextlib.suppress(NotDirect):
                has_deletes = source is not None and source.delete_count > 0
                held = self._rows(rows, columns.types, columns.required, has_deletes=has_deletes)
                if 0 < (count := int(held.size())) <= _MOST_HERE:
                    with having_settings(self._spark, _INTERPRETED):
                        return [self._delta.write_held(under_way, held)], count
        put = select(rows if source is None else source.puts(), map(quote, columns.types))
        with having_settings(self._spark, _INTERPRETED if shape.is_local else {}):
            return self._delta.write(under_way, put.coalesce(1) if shape.is_local else put), None

    def _begin(self, shape: Shape, transaction: Transaction) -> tuple[Any, LiveFiles] | None:
        """Return a transaction of Delta's, and the files of the version that it begins with.

        None if another commit has the application's version already. Raises NotDirect.
        """
        under_way = self._delta.begin()
        # Delta's own look at an application's version reads the whole state of the log; that the commit depends on it is all that is noted.
        under_way.readTxn().addOne(transaction.application)
        files = self._follow(under_way.snapshot(), shape.keys)
        self._postpone_checkpoint(under_way, files)
        if not files.is_simple or self._columns_of(files.schema).types != dict(shape.types):
            raise NotDirect
        return None if files.transactions.get(transaction.application, -1) >= transaction.version else (under_way, files)

    def compact(self, target: int, *, thoroughly: bool = False) -> int | None:
        """Write small files, and files with many deleted rows, again, as one of each partition, in one commit.

        Args:
            target: the size of a compacted file, in bytes.
            thoroughly: as of `to_rewrite`.

        Returns:
            The version of the commit; None if there is nothing to compact.

        Raises:
            NotDirect: the statement must do it: nothing has been merged here yet, or there is more to write than one task should.
        """
        if self._files is None:
            raise NotDirect
        under_way = self._delta.begin()
        files = self._follow(under_way.snapshot(), self._files.columns)
        self._postpone_checkpoint(under_way, files)
        chosen = list(files.to_compact(target, thoroughly=thoroughly).values())
        size = sum(file.size for file in chosen)
        if not files.is_simple or files.is_clustered or size > min(target, _FOR_ONE_TASK) or len(chosen) > _MOST_CANDIDATES:
            raise NotDirect
        if not chosen:
            return None
        with having_settings(self._spark, WITHOUT_ADAPTIVE):
            added = self._delta.write(under_way, self._delta.read(under_way.snapshot(), chosen).coalesce(1))
        metrics = {
            **_sizes([int(file.size()) for file in added]),
            "numRemovedFiles": len(chosen),
            "numRemovedBytes": size,
            "numDeletionVectorsRemoved": sum(file.deleted > 0 for file in chosen),
        }
        return self._delta.commit_compaction(under_way, added, chosen, metrics)

    def _postpone_checkpoint(self, under_way: Any, files: LiveFiles) -> None:
        """Have no commit wait for a checkpoint that `checkpoint` makes soon, unless the last one is too long ago."""
        version, interval = files.version + 1, files.checkpoint_interval
        if not self.postpones_checkpoints or version % interval:
            return
        if version < self._delta.checkpoint_of(under_way.snapshot()) + _LATEST * interval:
            self._delta.without_checkpoint(under_way)

    def checkpoint(self) -> None:
        """Write a checkpoint if the table's interval has passed since the last one; other threads may use the table meanwhile."""
        self._delta.checkpoint()

    def _follow(self, snapshot: Any, keys: Sequence[str]) -> LiveFiles:
        version, files = int(snapshot.version()), self._files
        if version < self._not_before:
            raise NotDirect
        self._files = None  # until all of them are read
        if files is None and self._is_new and (first := self._delta.actions(0)) is not None:
            files, self._keys = LiveFiles(keys, 0, first), FileKeys(keys)
        self._is_new = False
        if (
            files is None
            or files.columns != tuple(keys)
            or not (self._catch_up(files, version) and files.table == snapshot.metadata().id())
        ):
            if (actions := self._delta.state(snapshot, MOST_FILES)) is None:
                self._not_before = version + _MOST_COMMITS
                raise NotDirect
            files, self._keys = LiveFiles(keys, version, actions), FileKeys(keys)
        self._files = files
        return files

    def _catch_up(self, files: LiveFiles, version: int) -> bool:
        """Read the commits up to a version. Return False if that cannot be done, or takes longer than to read the whole state."""
        if not 0 <= version - files.version <= _MOST_COMMITS:
            return False
        for number in range(files.version + 1, version + 1):
            if (actions := self._delta.actions(number)) is None:
                return False
            files.follow(actions)
        return True

    def _columns_of(self, schema: str) -> Columns:
        if self._columns is None or self._columns.of != schema:
            self._columns = Columns.of_json(schema, schema)
        return self._columns

    def _matches(
        self, snapshot: Any, files: LiveFiles, source: FewRows | ManyRows, shape: Shape
    ) -> tuple[Sequence[tuple[DataFile, Positions]], Matches]:
        """Find the rows that have keys of the batch, in which files."""
        candidates = files.holding(source.values(), are_ends=source.are_ends)
        if not candidates:
            return [], Matches((), 0, 0, 0)
        by_name = {_name(path): file for path, file in candidates.items()}
        if len(by_name) < len(candidates) or len(candidates) > _MOST_CANDIDATES:
            raise NotDirect
        matches = None
        if isinstance(source, FewRows) and source.has_values:
            content, deleted = self._delta.content, self._delta.deleted_rows
            matches = look_up(
                candidates, source, self._keys, lambda path: content(candidates[path]), lambda path: deleted(candidates[path])
            )
        if matches is None:
            frame = self._delta.read(snapshot, candidates.values()).alias("t")
            for condition in source.bounds():
                frame = frame.where(condition)
            frame = frame.selectExpr(*map(quote, shape.keys), "_metadata.file_path `$path`", "_metadata.row_index `$at`")
            is_small = sum(file.size for file in candidates.values()) <= _FOR_ONE_TASK
            matches = source.matches(frame.coalesce(1) if is_small else frame)
        held = [(by_name[_name(path)], positions) for path, positions in matches.positions]
        if any(file.rows is None for file, _ in held):  # what a file with deleted rows must say
            raise NotDirect
        return held, matches


def _sizes(of: Sequence[int]) -> dict[str, int]:
    """Return what a commit says of the files that it adds (`FileSizeStatsWithHistogram`)."""
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    known = sorted(of)
    quartiles = {name: known[min(quarter * len(known) // 4, len(known) - 1)] for quarter, name in enumerate(names)} if known else {}
    return {"numAddedFiles": len(known), "numAddedBytes": sum(known), **quartiles}


def _name(path: str) -> str:
    return urllib.parse.unquote(path.rsplit("/", 1)[-1])
