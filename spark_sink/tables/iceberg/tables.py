"""Iceberg tables. The watermark lies in the summary of the snapshot that holds the rows, as `kafka.connect.offsets.<connector>`.

Batches are written without a statement, if this process has the JVM (`spark_sink.tables.iceberg.direct`).

A write is conditional: it goes to a branch that starts at the snapshot whose watermark was read, and the table's own branch (`main`,
unless another is configured) is fast-forwarded to it, which Iceberg refuses when that one has moved. So of two tasks that are alive at once
only one commits what follows a watermark, also in append mode, where Iceberg itself would let both. After that the watermark is copied
into a table property, which the user's compaction and expiry of snapshots leave alone, and only then the branch goes, which has kept the
snapshot from expiry until now.

State: head and watermark of tables that this task has read or written, dropped by `forget`.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connect_py.errors import ConnectError
from spark_sink.config.layout import Layout, partition_sql
from spark_sink.routing import TableName
from spark_sink.spark.local import having_settings
from spark_sink.sql.evolve import Evolution
from spark_sink.sql.merge import Shape, append_sql, merge_sql
from spark_sink.tables.base import (
    NARROW,
    Compaction,
    Extent,
    Ledger,
    TableState,
    Writer,
    columns_sql,
    evolution_sql,
    insert_nothing_sql,
    properties_sql,
    state_of,
    tables_of_catalog,
    viewed,
)
from spark_sink.tables.bounds import bounded
from spark_sink.tables.direct import NotDirect, may_merge
from spark_sink.tables.iceberg.branches import Branches, DirectBranches, is_refused, procedure_sql, quoted
from spark_sink.tables.iceberg.compaction import DirectCompaction
from spark_sink.tables.iceberg.direct import DirectTable
from spark_sink.tables.iceberg.expiry import expire_snapshots
from spark_sink.tables.upkeep import SUMMARY_KEYS, Activity, MaintenancePolicy, activity_of_snapshots, line_of
from spark_sink.tables.watermark import SNAPSHOTS_BEGUN, PastCommit, Stored, Watermark, newest_stored, past_commits
from spark_sink.types.columns import literal, quote
from spark_sink.types.trees import leaves, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."

#: Properties of tables that the sink creates; `lakehouse.tables.auto-create-props.*` wins.
_NEW_TABLE = {
    "format-version": "2",
    # A small batch rewrites no data files: deletes are noted next to them.
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    # By default each task notes deletes in a file for every data file that it meets, which for random keys are all that there are.
    "write.delete.granularity": "partition",
    # A commit every few seconds leaves a metadata file each time, and a manifest, which every MERGE opens; by default a hundred gather.
    "write.metadata.delete-after-commit.enabled": "true",
    "commit.manifest.min-count-to-merge": "10",
}


#: The first version of the format that has VARIANT.
_VARIANTS_SINCE = 3

#: Iceberg 1.12 reads by vectors, of any column, fail in a file with a VARIANT within a struct, array or map ("VectorizedVariantVisitor").
_WITHOUT_VECTORS = {"read.parquet.vectorization.enabled": "false"}

#: Smaller data files are compacted, as a part of the target (`SizeBasedFileRewritePlanner.MIN_FILE_SIZE_DEFAULT_RATIO`).
_SMALL = 0.75

#: Commits merge ten manifests into one (`_NEW_TABLE`), those of rows and those of deletes; compaction does it where there are more.
_MANY_MANIFESTS = 25

#: Events that are merged without a statement. Of 15,000 that takes a fifth less than the MERGE, of 100,000 some 6 % more: the tasks of the
#: MERGE find the replaced rows and write their positions in one go.
_MOST_DIRECTLY = 50_000

#: Branches on which a batch waits for its fast-forward; what a killed task has left is dropped by the next one.
_BRANCH = "connect_py_"


@dataclass(frozen=True)
class _Known:
    """A table as last read or written: the head of its branch (None while it has no snapshot) and what holds up to there."""

    head: int | None
    stored: Stored


@dataclass(frozen=True)
class _Commit:
    """A commit to be made.

    Attributes:
        branch: on which it waits.
        head: the snapshot on which it follows.
        summary: what its snapshot says of itself.
        properties: returns, for that snapshot, the table's properties that are stored with it.
    """

    branch: str
    head: int | None
    summary: Mapping[str, str]
    properties: Callable[[int], Mapping[str, str]]


class IcebergTables:
    """`spark_sink.tables.base.Tables` over a Spark catalog of Iceberg's."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str,
        writer: Writer,
        new_table_properties: Mapping[str, str],
        branches: Branches,
        branch_of: Callable[[TableName], str | None] = lambda _: None,
        direct: DirectBranches | None = None,
    ) -> None:
        """Arguments as of `open_tables`; `direct`: branches that can be written without statements, None if none can."""
        self._branches = branches
        self._direct_branches = direct
        self._direct: dict[TableName, DirectTable] = {}
        self._branch_of = branch_of
        self._spark = spark
        self._catalog = catalog
        self._ledger = Ledger(writer)
        self._connector = writer.connector
        self._properties = _NEW_TABLE | dict(new_table_properties)
        self._offsets_key = f"kafka.connect.offsets.{writer.connector}"
        self._generation_key = f"kafka.connect.generation.{writer.connector}"
        self._snapshot_key = f"kafka.connect.snapshot.{writer.connector}"
        self._waiting = _BRANCH + uuid.uuid5(uuid.NAMESPACE_URL, writer.connector).hex[:8] + "_"
        self._known: dict[TableName, _Known] = {}
        self._activity: dict[TableName, Activity] = {}
        self._past: dict[TableName, Sequence[PastCommit]] = {}
        self._counted: dict[TableName, frozenset[int]] = {}  # snapshots that are in it, or were there before

    def load(self, name: TableName, *, claim: bool = False) -> TableState | None:
        from pyspark.errors import AnalysisException

        if not claim and (state := self._unchanged(name)) is not None:
            return state
        try:
            fields = self._spark.table(self._quoted(name)).schema.fields
        except AnalysisException as error:
            if error.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
                self._known.pop(name, None)
                self._ledger.missing(name)
                return None
            raise
        head = self._head(name)
        known = self._known.get(name)
        if known is None or known.head != head:
            first = known is None
            known = self._read(name, head)
            if claim:
                self._ledger.claim(known.stored.epoch)
            self._ledger.found(name, known.stored.watermark, known.stored.epoch)
            self._known[name] = known
            if first:
                self._mend(name, known)
        return state_of(fields, known.stored.watermark)

    def _unchanged(self, name: TableName) -> TableState | None:
        """Return a table's state if it is known and nobody has written the table since, which is seen without a query."""
        if (known := self._known.get(name)) is None or (direct := self._directly(name)) is None or (found := direct.look()) is None:
            return None
        head, state = found
        return replace(state, watermark=known.stored.watermark) if head == known.head else None

    def _directly(self, name: TableName) -> DirectTable | None:
        """Return the way without a statement."""
        if self._direct_branches is None:
            return None
        if name not in self._direct:
            self._direct[name] = DirectTable(self._spark, self._catalog, name, self._head_of(name))
        return self._direct[name]

    def _head(self, name: TableName) -> int | None:
        return self._branches.head(name, self._head_of(name))

    def _read(self, name: TableName, head: int | None) -> _Known:
        table = self._quoted(name)
        snapshots = self._spark.sql(
            f"SELECT snapshot_id, parent_id, summary, unix_micros(committed_at) at FROM {table}.snapshots"
        ).collect()
        by_id = {row["snapshot_id"]: (row["parent_id"], row["summary"] or {}) for row in snapshots}
        self._counted.setdefault(name, frozenset(by_id))
        if name not in self._past:
            at = {row["snapshot_id"]: row["at"] / 1e6 for row in snapshots}
            line = line_of(head, {id_: parent for id_, (parent, _) in by_id.items()})
            self._past[name] = past_commits((at[id_], by_id[id_][1].get(self._offsets_key)) for id_ in line)
        properties = {row["key"]: row["value"] for row in self._spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
        return _Known(head, newest_stored(head, by_id, properties, self._connector))

    def _mend(self, name: TableName, known: _Known) -> None:
        """Repair a table after a kill: copy the snapshots' watermark into the property, then drop branches that wait for nothing."""
        if not known.stored.in_property and known.stored.watermark.offsets:
            self._keep(name, known)
        for branch in self._branches.names(name):
            if branch.startswith(self._waiting):
                self._branches.drop(name, branch)

    def past_commits(self, name: TableName) -> Sequence[PastCommit]:
        return self._past.get(name, ())

    def create(
        self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str], layout: Layout
    ) -> TableState:
        if name.parts[:-1]:
            namespace = ".".join(quote(part) for part in (self._catalog, *name.parts[:-1]))
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        defined = columns_sql(columns, required, comments)
        # Without partitions a MERGE gathers all new rows in one task by default, since they come from no file.
        spread = {"write.distribution-mode": "hash"} if layout.partitions else {"write.merge.distribution-mode": "none"}
        chosen = spread | self._properties
        if _has_variant(columns):
            chosen["format-version"] = str(max(_VARIANTS_SINCE, int(chosen["format-version"])))
        if _has_variant(columns, within=True):
            chosen = _WITHOUT_VECTORS | chosen
        parts = f"PARTITIONED BY ({', '.join(partition_sql(partition) for partition in layout.partitions)})" if layout.partitions else ""
        self._spark.sql(f"CREATE TABLE {self._quoted(name)} ({defined}) USING iceberg {parts} TBLPROPERTIES {properties_sql(chosen)}")
        if layout.cluster:
            order = ", ".join(quote(column) for column in layout.cluster)
            distributed = "DISTRIBUTED BY PARTITION LOCALLY " if parts else ""
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} WRITE {distributed}ORDERED BY {order}")
        self._known[name] = _Known(None, Stored(Watermark(), 0, None, in_property=True))
        self._counted[name] = frozenset()
        return TableState(dict(columns), Watermark())

    def evolve(self, name: TableName, evolution: Evolution) -> None:
        if _has_variant(evolution.added):
            rows = self._spark.sql(f"SHOW TBLPROPERTIES {self._quoted(name)}").collect()
            version = next((int(row["value"]) for row in rows if row["key"] == "format-version"), 1)
            if version < _VARIANTS_SINCE:
                self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES ('format-version' = '{_VARIANTS_SINCE}')")
        if _has_variant(evolution.added, within=True):
            self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES {properties_sql(_WITHOUT_VECTORS)}")
        for statement in evolution_sql(self._quoted(name), evolution):
            self._spark.sql(statement)
        if (direct := self._direct.get(name)) is not None:
            direct.changed()

    def needs_bounds(self, name: TableName, shape: Shape) -> bool:
        return not self._may_merge_directly(name, shape)

    def _may_merge_directly(self, name: TableName, shape: Shape) -> bool:
        return shape.count <= _MOST_DIRECTLY and self._directly(name) is not None and may_merge(self._spark, shape)

    def merge(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        if truncate is None and self._may_merge_directly(name, shape):
            if self._written_directly(name, False, rows, shape, watermark):
                return
            shape = bounded(rows, shape)
        with viewed(rows) as view, having_settings(self._spark, NARROW if shape.is_narrow else {}):
            source = f"(SELECT /*+ COALESCE(1) */ * FROM {view})" if shape.is_narrow else view
            self._commit(name, lambda table: [*_first(table, truncate), merge_sql(table, source, shape)], watermark)

    def append(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        if truncate is None and self._written_directly(name, True, rows, shape, watermark):
            return
        with viewed(rows) as view:
            self._commit(name, lambda table: [*_first(table, truncate), append_sql(table, view, list(shape.types))], watermark)

    def empty(self, name: TableName, watermark: Watermark, *, soft: bool) -> None:
        self._commit(name, lambda table: [*_first(table, "soft" if soft else "apply"), insert_nothing_sql(table)], watermark)

    def note(self, name: TableName, watermark: Watermark) -> None:
        known = self._known[name]
        self._known[name] = _Known(known.head, replace(known.stored, watermark=watermark))
        self._keep(name, self._known[name])
        self._ledger.reached(name, watermark)

    def alter(self, name: TableName, watermark: Watermark) -> None:
        self._commit(name, lambda table: [insert_nothing_sql(table)], watermark, raise_generation=True)

    def rows(self, name: TableName) -> DataFrame:
        version = "" if self._head(name) is None else f" VERSION AS OF {literal(self._head_of(name))}"
        return self._spark.sql(f"SELECT * FROM {self._quoted(name)}{version}")

    def _head_of(self, name: TableName) -> str:
        """Return the branch that holds a table's rows."""
        return self._branch_of(name) or "main"

    def written(self) -> dict[TableName, Watermark]:
        # Every commit copies the watermark into a property, so properties are enough.
        found: dict[TableName, Watermark] = {}
        for name in tables_of_catalog(self._spark, self._catalog):
            properties = self._spark.sql(f"SHOW TBLPROPERTIES {self._quoted(name)}").collect()
            text = next((row["value"] for row in properties if row["key"] == self._offsets_key), None)
            if text:
                found[name] = Watermark.parse(text)
        return found

    def compact(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> Compaction | None:
        if not thoroughly and (direct := self._directly(name)) is not None:
            with contextlib.suppress(NotDirect):
                begun = direct.compaction(policy.target_file_size)
                return None if begun is None else Compaction(begun.write, functools.partial(self._compacted, name, begun))
        files = f"'target-file-size-bytes', '{policy.target_file_size}', 'delete-file-threshold', '1'"
        self._call(name, "rewrite_data_files", f"options => map({files})")
        self._call(name, "rewrite_position_delete_files")
        if self._spark.sql(f"SELECT 1 FROM {self._quoted(name)}.manifests LIMIT {_MANY_MANIFESTS}").count() == _MANY_MANIFESTS:
            self._call(name, "rewrite_manifests")
        return None

    def _compacted(self, name: TableName, begun: DirectCompaction) -> None:
        """Commit a compaction, which holds no watermark; without another commit in between what is known still holds."""
        newest, known = begun.commit(), self._known.get(name)
        if newest is not None and known is not None and known.head == newest[0]:
            self._known[name] = replace(known, head=newest[1])

    def clean(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> None:
        # Every commit has copied the watermark into a property, so no snapshot is needed for it.
        now = time.time_ns() // 1_000_000
        before = now - policy.older_than_ms
        expire_snapshots(self._spark, self._catalog, name, before, policy.retain_last, policy.retain_at_most)
        if thoroughly:
            self._call(name, "remove_orphan_files", f"older_than => timestamp_millis({now - policy.orphans_older_than_ms})")

    def _call(self, name: TableName, procedure: str, *arguments: str) -> None:
        self._spark.sql(procedure_sql(self._catalog, name, procedure, *arguments)).collect()

    def extent(self, name: TableName, target_file_size: int) -> Extent | None:
        # The newest snapshot's summary has the sums of all.
        if (known := self._known.get(name)) is None:
            return None
        head = self._head(name)  # maintenance moves it without a batch
        names = ", ".join(map(literal, SUMMARY_KEYS))
        summary = f"IF(snapshot_id = {-1 if head is None else head}, summary, map_filter(summary, (k, v) -> k IN ({names}))) summary"
        rows = self._spark.sql(f"SELECT snapshot_id, parent_id, {summary} FROM {self._quoted(name)}.snapshots").collect()
        by_id: dict[int, tuple[int | None, Mapping[str, str]]] = {
            row["snapshot_id"]: (row["parent_id"], row["summary"] or {}) for row in rows
        }
        counted = self._counted.get(name, frozenset())
        new = activity_of_snapshots(head, by_id, counted, self._ledger.writer.epoch)
        activity = self._activity[name] = self._activity.get(name, Activity()) + new
        line = line_of(head, {id_: parent for id_, (parent, _) in by_id.items()})
        self._counted[name] = frozenset(id_ for id_ in (*counted, *line) if id_ in by_id)
        of_head = {} if head is None else by_id[head][1]
        files, size, deletes = (int(of_head.get(f"total-{what}", 0)) for what in ("data-files", "files-size", "delete-files"))
        small = 0 if head is None else self._small_files(name, head, int(target_file_size * _SMALL))
        return Extent(known.stored.generation, files, size, deletes, len(rows), small, activity)

    def _small_files(self, name: TableName, head: int, size: int) -> int:
        files = f"SELECT count(*) n FROM {self._quoted(name)}.files VERSION AS OF {head}"
        return int(self._spark.sql(f"{files} WHERE content = 0 AND file_size_in_bytes < {size}").collect()[0]["n"])

    def forget(self) -> None:
        self._known.clear()

    def _commit(
        self, name: TableName, statements: Callable[[str], Sequence[str]], watermark: Watermark, *, raise_generation: bool = False
    ) -> None:
        """Have statements write a branch, for which they get its name, and publish it."""

        def write(commit: _Commit) -> int:
            self._branches.create(name, commit.branch, commit.head)
            # of a table without rows the branch begins with whatever is there by now, which another task may have written
            if commit.head is None and (written := self._moved(name, None)) is not None:
                raise written
            with having_settings(self._spark, {_SNAPSHOT_PROPERTY + key: value for key, value in commit.summary.items()}):
                for statement in statements(f"{self._quoted(name)}.{quote('branch_' + commit.branch)}"):
                    self._spark.sql(statement)
            return self._branches.publish(name, self._head_of(name), commit.branch, commit.properties)

        commit = self._commit_by(name, write, watermark, raise_generation=raise_generation)
        self._branches.finish(name, commit.branch, self._kept(self._known[name]))

    def _written_directly(self, name: TableName, append: bool, rows: DataFrame, shape: Shape, watermark: Watermark) -> bool:
        """Write rows without a statement and publish them; return False if they are for one."""
        if (branches := self._direct_branches) is None or (direct := self._directly(name)) is None:
            return False
        try:
            batch = (direct.append if append else direct.merge)(rows, shape, self._known[name].head)
        except NotDirect:
            return False

        def write(commit: _Commit) -> int:
            def add(row_delta: Any) -> None:
                direct.add(row_delta, batch, commit.summary)

            try:
                return branches.commit(name, direct.branch, commit.head, commit.branch, add, commit.properties, direct.table)
            except Exception as error:
                if is_refused(error):
                    direct.discard(batch)
                raise

        self._commit_by(name, write, watermark)
        if (head := self._known[name].head) is not None:
            direct.committed(head, batch)
        return True

    def _commit_by(
        self, name: TableName, write: Callable[[_Commit], int], watermark: Watermark, *, raise_generation: bool = False
    ) -> _Commit:
        """Have a batch written and published by `write`, which returns the snapshot, and note what the table has then."""
        known = self._known[name]
        generation = known.stored.generation + raise_generation
        after = Stored(watermark, generation, known.head, in_property=True, epoch=self._ledger.writer.epoch)

        def properties(head: int) -> Mapping[str, str]:
            return self._kept(_Known(head, after))

        commit = _Commit(self._waiting + uuid.uuid4().hex[:12], known.head, self._identity(watermark, generation), properties)
        try:
            head = write(commit)
        except BaseException as error:
            del self._known[name]
            moved: ConnectError | None = None
            with contextlib.suppress(Exception):  # what failed is the error to show; the next load drops the branch
                moved = self._moved(name, known.head)
                self._branches.drop(name, commit.branch)
            if moved is not None and isinstance(error, Exception):
                raise moved from error
            raise
        self._known[name] = _Known(head, replace(after, snapshot=head))
        self._ledger.reached(name, watermark)
        return commit

    def _moved(self, name: TableName, head: int | None) -> ConnectError | None:
        """Return the error if the table is no longer at `head`: the task ends when a younger one of its connector changed it."""
        now = self._head(name)
        return None if now == head else self._ledger.changed_by(name, self._read(name, now).stored.epoch)

    def _keep(self, name: TableName, known: _Known) -> None:
        """Copy a watermark into properties, which nobody expires."""
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES {properties_sql(self._kept(known))}")

    def _kept(self, known: _Known) -> dict[str, str]:
        values = {self._offsets_key: known.stored.watermark.to_json(), self._generation_key: str(known.stored.generation)}
        if known.stored.watermark.snapshots:
            values[SNAPSHOTS_BEGUN + self._connector] = known.stored.watermark.snapshots_json()
        if known.head is not None:
            values[self._snapshot_key] = str(known.head)
        return values

    def _identity(self, watermark: Watermark, generation: int) -> dict[str, str]:
        """Return what a snapshot says of itself, with the watermark."""
        writer = self._ledger.writer
        identity = {
            self._offsets_key: watermark.to_json(),
            "kafka.connect.commit-id": str(uuid.uuid4()),
            "kafka.connect.task-id": f"{writer.connector}-{writer.task}",
            "kafka.connect.task-epoch": str(writer.epoch),
            "kafka.connect.generation": str(generation),
        }
        if watermark.snapshots:
            identity[SNAPSHOTS_BEGUN + self._connector] = watermark.snapshots_json()
        return identity

    def _quoted(self, name: TableName) -> str:
        return quoted(self._catalog, name)


def _has_variant(types: Mapping[tuple[str, ...], str] | Mapping[str, str], *, within: bool = False) -> bool:
    """Return whether a column is VARIANT or contains one; `within`: only whether one contains it."""
    found: Iterable[tuple[tuple[str, ...] | str, str]] = types.items()
    return any(
        "variant" in leaves(parse_type(type_)) and (not within or type_ != "variant" or (isinstance(path, tuple) and len(path) > 1))
        for path, type_ in found
    )


def _first(table: str, truncate: str | None) -> list[str]:
    match truncate:
        case "apply":
            return [f"DELETE FROM {table} WHERE true"]
        case "soft":
            return [f"UPDATE {table} SET {quote('__deleted')} = true WHERE NOT coalesce({quote('__deleted')}, false)"]
        case _:
            return []
