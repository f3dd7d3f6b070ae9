"""Batches go into an Iceberg table by Iceberg's own interface, in the JVM of this process, without a statement.

Spark plans each MERGE as if it were the first, reads the branch's manifests and starts jobs, for a few rows; and a large batch it decodes
twice. Here the driver follows the snapshots (`files`) and knows which data files can hold a key of the batch. The positions of the rows
with these keys are read from small files by this process (`file_keys`), and from others by a query. The rows are written by Iceberg's own
writer (`jvm`), a few by this process, those that Spark holds for both (`batch_rows`) by a job. A file of the positions of those that they
replace comes with them, and one version of the table's metadata publishes both (`branches`).

What is written is what a MERGE or an INSERT writes. Batches whose rows depend on those of the table, and tables of which more is to be
regarded, are left to the statement.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_sink.routing import TableName
from spark_sink.spark.local import select
from spark_sink.sql.merge import Shape
from spark_sink.tables.base import TableState
from spark_sink.tables.batch_rows import FewRows, ManyRows, Matches
from spark_sink.tables.compaction import is_small
from spark_sink.tables.direct import LOOKED_UP, MOST_FILES, Columns, NotDirect, RowsOfTable, look_up, rows_of
from spark_sink.tables.file_keys import FileKeys, KeyedFile, Unreadable
from spark_sink.tables.iceberg.compaction import DirectCompaction
from spark_sink.tables.iceberg.files import Changes, DeleteFile, LiveFiles, bounds_of, delete_file
from spark_sink.tables.iceberg.jvm import IcebergJvm, Written
from spark_sink.tables.iceberg.positions import COLUMNS as POSITIONS
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Snapshots that are read one by one; of more, all files are asked for.
_MOST_SNAPSHOTS = 20

#: Positions of deleted rows that are held for a table.
_MOST_DELETED = 100_000

#: Bytes and rows of files that a compaction writes again here.
_MOST_REWRITTEN, _MOST_ROWS_REWRITTEN = 64 << 20, 1_000_000

#: Partitions that a compaction writes, each into an open file.
_MOST_PARTITIONS = 50

#: Batches after which a table that had too many files is looked at again.
_REST = 100

#: Of a table whose rows may be replaced by position with nothing else to regard, and which has what a MERGE makes of it.
_REQUIRED_SETTINGS = {"write.merge.mode": "merge-on-read", "write.delete.granularity": "partition"}
_FORMATS = ("write.delete.format.default", "write.format.default")
_EXCLUDED_SETTINGS = ("write.wap.enabled", "encryption.key-id")
_FORMAT_VERSION = 2


@dataclass(frozen=True)
class Batch:
    """A batch whose rows are written, and which no snapshot has yet.

    Attributes:
        head: the snapshot on which it follows.
        written: the new files.
        summary: what a MERGE says of itself in its snapshot.
    """

    head: int | None
    written: Written
    summary: Mapping[str, str] = field(default_factory=dict)


class DirectTable:
    """One table, or one branch of it. It is used by one thread at a time.

    Attributes:
        branch: the branch that holds its rows.
    """

    def __init__(self, spark: SparkSession, catalog: str, name: TableName, branch: str) -> None:
        self._spark = spark
        self.branch = branch
        self._jvm = IcebergJvm(spark, catalog, name)
        self._table: Any = None  # as it was looked at last
        self._columns: Columns | None = None
        self._settings: tuple[str, bool] = ("", False)
        self._live: LiveFiles | None = None
        self._rest = 0
        self._keys = FileKeys(())
        self._positions = FileKeys(tuple(POSITIONS))
        self._rows = RowsOfTable(spark)

    def look(self) -> tuple[int | None, TableState] | None:
        """Return the branch's head and the table's state, without a watermark; None if the table cannot be looked at, or is not there."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            self._table = self._jvm.load()
            ref = self._table.refs().get(self.branch)
            columns = self._columns_of(self._table)
        except (Py4JError, PySparkException):  # a statement finds the same, and has an error that people know
            self._table = None
            return None
        return None if ref is None else int(ref.snapshotId()), TableState(columns.types, Watermark(), columns.required)

    def changed(self) -> None:
        """Note that the table is not what it was when it was looked at."""
        self._table = None

    def merge(self, rows: DataFrame, shape: Shape, head: int | None) -> Batch:
        """Write rows that replace those with their keys.

        Args:
            rows: with the columns of `shape` and `$op`, one of each key.
            shape: one that `may_merge`.
            head: the snapshot on which the batch is to follow; None in a table without one.

        Raises:
            NotDirect: the statement must do it.
        """
        table, snapshot = self._begin(shape, head)
        with rows_of(self._spark, rows, shape) as source:
            found = self._matches(table, snapshot, source, shape)
            if isinstance(source, FewRows):
                put = self._held(rows, shape, has_deletes=source.delete_count > 0) if source.put_count else None
                deleted: Mapping[str, Sequence[int]] = {path: sorted(positions) for path, positions in found.positions}
                written = self._jvm.write(table, snapshot, put, deleted) if put is not None or deleted else Written()
            else:
                deleted = self._jvm.sorted_positions(found.positions)
                written = self._written_by_job(table, source.puts(), shape, is_merge=True) if source.put_count else Written()
                written = self._jvm.with_deletes(table, snapshot, written, deleted)
        summary = {
            "copied": 0,
            "deleted": found.deleted,
            "updated": found.updated,
            "inserted": source.put_count - found.keys_updated,
            "matched-updated": found.updated,
            "matched-deleted": found.deleted,
            "not-matched-by-source-updated": 0,
            "not-matched-by-source-deleted": 0,
        }
        return Batch(head, written, {f"spark.merge-into.num-target-rows-{what}": str(count) for what, count in summary.items()})

    def append(self, rows: DataFrame, shape: Shape, head: int | None) -> Batch:
        """Write rows that replace none; otherwise as `merge`."""
        table, snapshot = self._begin(shape, head)
        if not shape.is_local:
            return Batch(head, self._written_by_job(table, rows, shape, is_merge=False))
        return Batch(head, self._jvm.write(table, snapshot, self._held(rows, shape, has_deletes=False), {}))

    def compaction(self, target: int) -> DirectCompaction | None:
        """Return what is to be done to write small files, and those with many deleted rows, again as one; None if nothing is.

        Args:
            target: the size of a compacted file, in bytes.

        Raises:
            NotDirect: the statement must do it: the table is not for batches without one, or there is more to write than the driver should.
        """
        table, snapshot, live = self.at_rest()
        if any(file.partition is None and is_small(file, target) for file in live.files.values()):
            raise NotDirect
        rewrites = live.to_rewrite(target)[:_MOST_PARTITIONS]
        files = [file for rewrite in rewrites for file in rewrite.files.values()]
        if sum(file.size for file in files) > _MOST_REWRITTEN or sum(file.rows or 0 for file in files) > _MOST_ROWS_REWRITTEN:
            raise NotDirect
        if not files and not live.replaced((), {}).deletes:
            return None
        return DirectCompaction(self, self._jvm, rewrites, table, snapshot)

    def at_rest(self) -> tuple[Any, Any, LiveFiles]:
        """Return the table, its head and the head's files, of which all deleted rows are known. Raises NotDirect."""
        self.look()
        table, keys, self._table = self._table, () if self._live is None else self._live.columns, None
        ref = None if table is None else table.refs().get(self.branch)
        if ref is None or not self._has_settings(table):
            raise NotDirect
        snapshot = table.snapshot(ref.snapshotId())
        live = self._follow(table, snapshot, keys)
        if live is None or not self._read_deleted(table, live):
            raise NotDirect
        return table, snapshot, live

    def committed(self, head: int, batch: Batch) -> None:
        """Note that a snapshot has a batch, the last that was written."""
        live, table, self._table = self._live, self._table, None
        if live is None or table is None or live.head != batch.head:
            return
        unread = list[Any]()
        for file, positions in zip(batch.written.deletes, batch.written.positions, strict=True):
            if positions is None:
                unread.append(file)
            else:
                live.read(str(file.location()), positions)
        data = self._jvm.data_files(table, batch.written.data, self._types(live.columns))
        live.follow(head, Changes(data, (), self._jvm.delete_files(unread), ()))

    @property
    def table(self) -> Any:
        """Iceberg's own table, as it was looked at last."""
        return self._table

    def discard(self, batch: Batch) -> None:
        """Remove the files of a batch that no snapshot will have."""
        self._jvm.discard(self._table, batch.written)

    def add(self, row_delta: Any, batch: Batch, summary: Mapping[str, str]) -> None:
        """Give a commit a batch, and what its snapshot says of itself."""
        self._jvm.add(row_delta, batch.written, {**batch.summary, **summary})

    # -- the table -----------------------------------------------------------------------------------------------------------------

    def _begin(self, shape: Shape, head: int | None) -> tuple[Any, Any]:
        """Return the table, and the snapshot that is its head; None of a table without one."""
        if self._table is None:
            self.look()
        table, columns = self._table, self._columns
        if table is None or columns is None:
            raise NotDirect
        snapshot = None if head is None else table.snapshot(head)
        fits = columns.is_plain and list(columns.types.items()) == list(shape.types.items())
        if not fits or not self._has_settings(table) or (snapshot is None and (head is not None or table.refs().size())):
            raise NotDirect
        return table, snapshot

    def _columns_of(self, table: Any) -> Columns:
        if self._columns is None or self._columns.of != self._jvm.schema_id(table):
            self._live = None  # a name may be another column's
            self._columns = self._jvm.columns(table)
        return self._columns

    def _has_settings(self, table: Any) -> bool:
        """Return whether the table is one that may be written here, and is written as here."""
        if (text := self._jvm.write_settings(table)) != self._settings[0]:
            properties = table.properties()
            fits = all(properties.get(name) == value for name, value in _REQUIRED_SETTINGS.items())
            excluded = any((properties.get(name) or "false") != "false" for name in _EXCLUDED_SETTINGS)
            format_ = next(filter(None, map(properties.get, _FORMATS)), "parquet")
            self._settings = (text, fits and not excluded and str(format_).lower() == "parquet")
        return self._settings[1] and self._jvm.format_version(table) == _FORMAT_VERSION

    # -- its rows ------------------------------------------------------------------------------------------------------------------

    def _held(self, rows: DataFrame, shape: Shape, *, has_deletes: bool) -> Any:
        return self._rows(rows, shape.types, () if self._columns is None else self._columns.required, has_deletes=has_deletes)

    def _written_by_job(self, table: Any, rows: DataFrame, shape: Shape, *, is_merge: bool) -> Written:
        return self._jvm.write_by_job(table, select(rows, map(quote, shape.types)), is_merge=is_merge)

    def _matches(self, table: Any, snapshot: Any, source: FewRows | ManyRows, shape: Shape) -> Matches:
        """Find the rows that have keys of the batch, in a snapshot."""
        if snapshot is None:
            self._live = self._of_no_snapshot(table, shape.keys)
            return Matches((), 0, 0, 0)
        live = self._follow(table, snapshot, shape.keys) if source.has_values else None
        if live is not None:
            if not (candidates := live.holding(source.values(), are_ends=source.are_ends)):
                return Matches((), 0, 0, 0)
            if isinstance(source, FewRows) and self._read_deleted(table, live):
                content = functools.partial(self._jvm.content, table)
                if (found := look_up(candidates, source, self._keys, content, live.deleted_rows)) is not None:
                    return found
        conditions = "".join(f" AND {bound}" for bound in source.bounds())
        columns = ", ".join((*map(quote, shape.keys), "_file `$path`", "_pos `$at`"))
        # Not AS OF the snapshot, whose columns may have had other names; that it is still the head is seen at the commit.
        branch = "" if self.branch == "main" else f".{quote('branch_' + self.branch)}"
        return source.matches(self._spark.sql(f"SELECT {columns} FROM {self._jvm.quoted}{branch} t WHERE true{conditions}"))

    def _follow(self, table: Any, snapshot: Any, keys: Sequence[str]) -> LiveFiles | None:
        """Return the files of a snapshot; None if there are too many."""
        live, self._live, head = self._live, None, int(snapshot.snapshotId())  # it is set again when all is read
        if live is None or live.columns != tuple(keys):
            live = self._of_no_snapshot(table, keys)
        if (new := _since(table, snapshot, live.head)) is None:
            if self._rest:
                self._rest -= 1
                return None
            if (live := self._all_files(table, head, keys)) is None:
                self._rest = _REST
                return None
        else:
            for each in new:
                live.follow(int(each.snapshotId()), self._jvm.changes(table, each, self._types(keys)))
        self._live = live
        return live

    def _of_no_snapshot(self, table: Any, keys: Sequence[str]) -> LiveFiles:
        self._keys = FileKeys(keys, self._jvm.ids(table, keys))
        return LiveFiles(keys)

    def _types(self, columns: Sequence[str]) -> Mapping[str, str]:
        return {} if self._columns is None else {name: self._columns.types[name] for name in columns}

    def _all_files(self, table: Any, head: int, keys: Sequence[str]) -> LiveFiles | None:
        """Ask for all files of a snapshot; return None if there are too many."""
        types = self._types(keys)
        bounds = [f"{end}_bounds[{id_}]" for id_ in self._jvm.ids(table, keys) for end in ("lower", "upper")]
        columns = ", ".join(("content", "file_format", "file_path", "record_count", "file_size_in_bytes", *bounds))
        found = self._spark.sql(f"SELECT {columns} FROM {self._jvm.quoted}.files VERSION AS OF {head} LIMIT {MOST_FILES + 1}").collect()
        if len(found) > MOST_FILES:
            return None
        partition = None if self._jvm.is_partitioned(table) else ""
        files: dict[str, KeyedFile] = {}
        deletes: list[DeleteFile] = []
        for content, format_, path, rows, size, *ends in found:
            if content:
                deletes.append(delete_file(path, rows, size, content, format_))
                continue
            of_keys = [None if end is None else bytes(end) for end in ends]
            pairs = zip(of_keys[::2], of_keys[1::2], strict=True)
            files[path] = KeyedFile(rows, size, bounds_of(dict(zip(keys, pairs, strict=True)), types), partition=partition)
        live = LiveFiles(keys)
        live.follow(head, Changes(files, (), deletes, ()))
        return live

    def _read_deleted(self, table: Any, live: LiveFiles) -> bool:
        """Read which rows are deleted, as far as it is not known; return False if that is for Spark."""
        unread = list(live.unread.values())
        if sum(file.rows for file in unread) + live.deleted_count > _MOST_DELETED or sum(file.size for file in unread) > LOOKED_UP:
            return False
        try:
            for file in unread:
                if not file.is_readable:
                    return False
                deleted: dict[str, list[int]] = {}
                for path, position in self._positions.rows(file.path, functools.partial(self._jvm.content, table, file.path)):
                    deleted.setdefault(str(path), []).append(int(position or 0))
                live.read(file.path, deleted)
        except Unreadable:
            return False
        return True


def _since(table: Any, snapshot: Any, known: int | None) -> Sequence[Any] | None:
    """Return the snapshots from the one after a known one to another, in this order; None if they are too many, or not one line."""
    found: list[Any] = []
    while snapshot is not None and int(snapshot.snapshotId()) != known:
        if len(found) == _MOST_SNAPSHOTS:
            return None
        found.append(snapshot)
        if (parent := snapshot.parentId()) is None:
            return found[::-1] if known is None else None
        snapshot = table.snapshot(int(parent))
    return None if snapshot is None else found[::-1]
