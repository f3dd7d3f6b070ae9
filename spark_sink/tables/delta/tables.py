"""Delta tables. The watermark lies in the user metadata of the commit that holds the rows (`spark_sink.tables.watermark`).

Small batches are written without a statement, if this process has the JVM (`spark_sink.tables.delta.direct`).

A write is conditional: it carries the transaction identifier `lh:<connector>` with the sequence that follows the one that was read. Of two
tasks that read the same sequence Delta lets one commit; the other's statement fails if both were under way, and is passed over without a
word if the first had ended. A MERGE that was passed over answers no row of counts; after other statements the history is asked whether the
commit is ours, which costs a job.

One statement is one commit: what follows a truncate in a batch is merged by the statement that empties the table.

State: version, sequence and watermark of tables that this task has read or written, dropped by `forget`.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_sink.config.layout import Layout, partition_sql
from spark_sink.routing import TableName
from spark_sink.spark.local import having_settings
from spark_sink.sql.evolve import Evolution
from spark_sink.sql.merge import Shape, append_sql, merge_sql, overwrite_sql
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
from spark_sink.tables.delta.direct import DirectTable
from spark_sink.tables.delta.jvm import Transaction, has_known_delta
from spark_sink.tables.direct import NotDirect, may_merge
from spark_sink.tables.upkeep import Activity, MaintenancePolicy, activity_of_metrics
from spark_sink.tables.watermark import (
    SNAPSHOTS_BEGUN,
    Applied,
    Commit,
    PastCommit,
    Watermark,
    metadata_json,
    newest_commit,
    parse_metadata,
    past_commits,
)
from spark_sink.types.columns import quote
from spark_sink.types.trees import leaves, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_LARGEST_FILE = "spark.databricks.delta.optimize.maxFileSize"

#: Properties of tables that the sink creates; `lakehouse.tables.auto-create-props.*` wins. Deletes are noted next to the data files.
_NEW_TABLE = {"delta.enableDeletionVectors": "true"}

#: Of tables that can be written without a statement. A checkpoint takes as long as several small batches, and by default every tenth commit
#: waits for one; statements, which read all that follows the last one, need them as often.
_NEW_DIRECT_TABLE = {"delta.checkpointInterval": "100"}

#: Delta turns this into a table feature that readers must know, so a table gets it with the first column that needs it.
_WIDENING = "delta.enableTypeWidening"

#: Types that a table has only with a feature of its protocol (PROTOCOL.md, "Valid Feature Names in Table Features"): CREATE TABLE adds
#: it by itself, and ALTER TABLE … ADD COLUMNS refuses the column without.
_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}

_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")

#: How many commits are looked at first: the newest is nearly always ours.
_HISTORY = 20

#: Delta drops commits' metadata after `delta.logRetentionDuration` (30 days). A watermark older than this is copied into a table property.
_KEEP_AFTER = datetime.timedelta(days=1)

#: What is asked of each commit.
_OF_COMMITS = ("version", "unix_micros(timestamp) time", "operation", "operationParameters p", "userMetadata")

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

#: Writes what the table gets, with a commit's identifier, and returns the commit's version and time; None if it was passed over.
_Write = Callable[[Applied, str], tuple[int, datetime.datetime] | None]


@dataclass(frozen=True)
class _Known:
    """A table as last read or written, and what holds up to there.

    Attributes:
        version: the newest that was read, or one that the table had when it was written: if it has a higher one it is read again.
        columns: its columns and their types; those that are required.
    """

    version: int
    applied: Applied
    columns: Mapping[str, str] | None = None
    required: frozenset[str] = frozenset()


class DeltaTables:
    """`spark_sink.tables.base.Tables` over Delta, in a Spark catalog or under a root directory."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str,
        root: str | None,
        writer: Writer,
        new_table_properties: Mapping[str, str],
        *,
        by_statements: bool = False,
    ) -> None:
        self._spark = spark
        self._catalog = catalog
        self._root = root.rstrip("/") if root else None
        self._ledger = Ledger(writer)
        self._connector = writer.connector
        self._application = f"lh:{writer.connector}"
        self._known: dict[TableName, _Known] = {}
        self._activity: dict[TableName, Activity] = {}
        self._past: dict[TableName, Sequence[PastCommit]] = {}
        self._counted: dict[TableName, int] = {}  # the newest version that is in it, or was there before
        self._has_direct = root is not None and not by_statements and has_known_delta(spark)
        self._properties = _NEW_TABLE | (_NEW_DIRECT_TABLE if self._has_direct else {}) | dict(new_table_properties)
        self._direct: dict[TableName, DirectTable] = {}

    def load(self, name: TableName, *, claim: bool = False) -> TableState | None:
        from pyspark.errors import AnalysisException

        if not claim and (state := self._unchanged(name)) is not None:
            return state
        try:
            fields = self._spark.table(self._quoted(name)).schema.fields
        except AnalysisException as error:
            if error.getCondition() in _NOT_THERE:
                self._known.pop(name, None)
                self._ledger.missing(name)
                return None
            raise
        known = self._known.get(name)
        if known is None or self._has_version(name, known.version + 1):
            first = known is None
            known = self._read(name)
            if claim:
                self._ledger.claim(known.applied.epoch)
            self._ledger.found(name, known.applied.watermark, known.applied.epoch)
            self._known[name] = known
            if first:
                self._counted.setdefault(name, known.version)
                self._keep(name, known)
        state = state_of(fields, known.applied.watermark)
        if name in self._known:
            self._known[name] = replace(self._known[name], columns=state.columns, required=state.required)
        return state

    def _unchanged(self, name: TableName) -> TableState | None:
        """Return a table's state if it is known and nobody has written the table since, which is seen without a query."""
        known = self._known.get(name)
        if known is None or known.columns is None or (direct := self._directly(name)) is None or direct.version() != known.version:
            return None
        return TableState(known.columns, known.applied.watermark, known.required)

    def _directly(self, name: TableName) -> DirectTable | None:
        """Return the way without a statement, to a table at a path; of a catalog's table the catalog says where it is, and who may."""
        if not self._has_direct:
            return None
        if name not in self._direct:
            self._direct[name] = DirectTable(self._spark, self._path(name))
        return self._direct[name]

    def _has_version(self, name: TableName, version: int) -> bool:
        """Return whether a version exists, which costs a listing and no job (`VERSION AS OF` is checked when a query is analysed)."""
        from pyspark.errors import AnalysisException

        try:
            self._spark.sql(f"SELECT 1 FROM {self._quoted(name)} VERSION AS OF {version}")
        except AnalysisException as error:
            if error.getCondition() == "DELTA_VERSION_NOT_FOUND":
                return False
            raise
        return True

    def _read(self, name: TableName) -> _Known:
        properties = {row["key"]: row["value"] for row in self._spark.sql(f"SHOW TBLPROPERTIES {self._quoted(name)}").collect()}
        commits = self._history(name, _HISTORY)
        if name not in self._past:
            key = f"kafka.connect.offsets.{self._connector}"
            stored = ((commit.time.timestamp(), commit.metadata.get(key)) for commit in commits)
            self._past[name] = past_commits((at, None if offsets is None else json.dumps(offsets)) for at, offsets in stored)
        applied, of_commit = newest_commit(commits, properties, self._connector)
        if not of_commit and len(commits) == _HISTORY:
            commits = self._history(name, None)
            applied, _ = newest_commit(commits, properties, self._connector)
        return _Known(commits[0].version, applied)

    def _history(self, name: TableName, limit: int | None) -> list[Commit]:
        rows = self._shown(name, limit).selectExpr(*_OF_COMMITS).collect()
        found: list[Commit] = []
        for row in rows:
            time, restored = _EPOCH + datetime.timedelta(microseconds=row["time"]), None
            if row["operation"] == "RESTORE":
                version, time_text = row["p"].get("version"), row["p"].get("timestamp")
                restored = int(version) if version is not None else datetime.datetime.fromisoformat(time_text).replace(tzinfo=datetime.UTC)
            replaces = row["operation"].startswith(("CREATE OR REPLACE TABLE", "REPLACE TABLE"))
            found.append(Commit(row["version"], time, parse_metadata(row["userMetadata"]), restored, replaces))
        return found

    def _shown(self, name: TableName, limit: int | None) -> DataFrame:
        return self._spark.sql(f"DESCRIBE HISTORY {self._quoted(name)}" + (f" LIMIT {limit}" if limit else ""))

    def past_commits(self, name: TableName) -> Sequence[PastCommit]:
        return self._past.get(name, ())

    def create(
        self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str], layout: Layout
    ) -> TableState:
        if self._root is None and name.parts[:-1]:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {'.'.join(quote(part) for part in (self._catalog, *name.parts[:-1]))}")
        using = f"USING delta {_laid_out(layout)} TBLPROPERTIES {properties_sql(self._properties)}"
        self._spark.sql(f"CREATE TABLE {self._quoted(name)} ({columns_sql(columns, required, comments)}) {using}")
        self._known[name] = _Known(0, Applied(Watermark()))
        self._counted[name] = 0
        if (direct := self._directly(name)) is not None:
            direct.created()
        return TableState(dict(columns), Watermark())

    def evolve(self, name: TableName, evolution: Evolution) -> None:
        table = self._quoted(name)
        added = set().union(*(leaves(parse_type(type_)) for type_ in evolution.added.values()))
        properties = {f"delta.feature.{feature}": "supported" for type_, feature in _FEATURES.items() if type_ in added}
        properties |= {_WIDENING: "true"} if evolution.widened else {}
        if properties:
            self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES {properties_sql(properties)}")
        for statement in evolution_sql(table, evolution):
            self._spark.sql(statement)

    def needs_bounds(self, name: TableName, shape: Shape) -> bool:
        return self._directly_merged(name, shape) is None

    def _directly_merged(self, name: TableName, shape: Shape) -> DirectTable | None:
        """Return the way without a statement for rows of a shape."""
        direct = self._directly(name)
        return direct if direct is not None and may_merge(self._spark, shape) else None

    def merge(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        if truncate is None and (direct := self._directly_merged(name, shape)) is not None:
            try:
                self._commit_by(name, self._written_directly(lambda transaction: direct.merge(rows, shape, transaction)), watermark)
                return
            except NotDirect:
                shape = bounded(rows, shape)
        # Delta puts a source aside before it reads it twice, since it might not be the same the second time.
        settings = ({_MATERIALIZE: "none"} if shape.is_local else {}) | (NARROW if shape.is_narrow else {})
        with viewed(rows) as view, having_settings(self._spark, settings):
            self._commit(name, lambda table: merge_sql(table, view, shape, truncate), watermark)

    def append(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        if truncate is None and (direct := self._directly(name)) is not None:
            with contextlib.suppress(NotDirect):
                self._commit_by(name, self._written_directly(lambda transaction: direct.append(rows, shape, transaction)), watermark)
                return
        columns = list(shape.types)

        def statement(table: str, view: str) -> str:
            if truncate is None:
                return append_sql(table, view, columns)
            stored = self._spark.table(table).columns if truncate == "soft" else []
            return overwrite_sql(table, view, columns, stored)

        with viewed(rows) as view:
            self._commit(name, lambda table: statement(table, view), watermark)

    def empty(self, name: TableName, watermark: Watermark, *, soft: bool) -> None:
        self._commit(name, lambda table: _on_all_rows(table, soft=soft), watermark)

    def note(self, name: TableName, watermark: Watermark) -> None:
        self._commit(name, insert_nothing_sql, watermark)

    def alter(self, name: TableName, watermark: Watermark) -> None:
        self._commit(name, insert_nothing_sql, watermark, raise_generation=True)

    def compact(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> Compaction | None:
        self._keep(name, self._known[name])
        with contextlib.suppress(NotDirect):
            if (direct := self._directly(name)) is not None:
                direct.postpones_checkpoints = True  # maintenance cleans up, too
                self._compacted(name, direct.compact(policy.target_file_size, thoroughly=thoroughly))
                return None
        with having_settings(self._spark, {_LARGEST_FILE: str(policy.target_file_size)}):
            self._spark.sql(f"OPTIMIZE {self._quoted(name)}").collect()
        return None

    def _compacted(self, name: TableName, version: int | None) -> None:
        """Note a commit that holds no watermark; without another one in between what is known still holds."""
        if (known := self._known.get(name)) is not None and version == known.version + 1:
            self._known[name] = replace(known, version=version)

    def clean(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> None:
        if (direct := self._directly(name)) is not None:
            direct.checkpoint()
        if thoroughly:
            self._spark.sql(f"VACUUM {self._quoted(name)} RETAIN {policy.vacuum_hours} HOURS").collect()

    def extent(self, name: TableName, target_file_size: int) -> Extent | None:
        # Delta reports no sizes of single files.
        if (known := self._known.get(name)) is None:
            return None
        self._count(name, known)
        row = self._spark.sql(f"DESCRIBE DETAIL {self._quoted(name)}").select("numFiles", "sizeInBytes").collect()[0]
        return Extent(known.applied.generation, row["numFiles"] or 0, row["sizeInBytes"] or 0, activity=self._activity[name])

    def _count(self, name: TableName, known: _Known) -> None:
        """Add commits that have not been counted yet, however many they are."""
        counted = self._counted.get(name, known.version)
        limit = known.version - counted + _HISTORY
        while True:
            rows = self._shown(name, limit).select("version", "operationMetrics", "userMetadata").collect()
            if len(rows) < limit or rows[-1]["version"] <= counted + 1:
                break
            limit *= 2
        epoch = self._ledger.writer.epoch
        new = [
            activity_of_metrics(
                row["operationMetrics"] or {}, is_ours=parse_metadata(row["userMetadata"]).get("kafka.connect.task-epoch") == epoch
            )
            for row in rows
            if row["version"] > counted
        ]
        self._activity[name] = sum(new, self._activity.get(name, Activity()))
        self._counted[name] = max(counted, rows[0]["version"])

    def forget(self) -> None:
        self._known.clear()

    def rows(self, name: TableName) -> DataFrame:
        return self._spark.table(self._quoted(name))

    def written(self) -> dict[TableName, Watermark]:
        found = {name: self._read(name).applied.watermark for name in self._names()}
        return {name: watermark for name, watermark in found.items() if watermark.offsets}

    def _names(self) -> Sequence[TableName]:
        if self._root is None:
            return tables_of_catalog(self._spark, self._catalog)
        return _under(self._spark, self._root)

    def _commit(self, name: TableName, statement: Callable[[str], str], watermark: Watermark, *, raise_generation: bool = False) -> None:
        self._commit_by(name, self._execute(name, statement), watermark, raise_generation=raise_generation)

    def _commit_by(self, name: TableName, write: _Write, watermark: Watermark, *, raise_generation: bool = False) -> None:
        known = self._known[name]
        before = known.applied
        after = Applied(watermark, before.sequence + 1, before.generation + raise_generation, self._ledger.writer.epoch)
        commit_id = str(uuid.uuid4())
        try:
            with having_settings(self._spark, self._identity(after, commit_id)):
                ours = write(after, commit_id)
            if ours is None:
                raise self._ledger.changed_by(name, self._read(name).applied.epoch)
        except NotDirect:
            raise
        except BaseException as error:
            del self._known[name]
            moved: Applied | None = None
            with contextlib.suppress(Exception):  # what failed is the error to show
                moved = self._read(name).applied
            if moved is not None and moved.epoch > self._ledger.writer.epoch and isinstance(error, Exception):
                raise self._ledger.changed_by(name, moved.epoch) from error
            raise
        version, time = ours
        self._known[name] = replace(known, version=version, applied=replace(after, time=time))
        self._ledger.reached(name, watermark)

    def _execute(self, name: TableName, statement: Callable[[str], str]) -> _Write:
        """Return a write by a statement, which is made of the table's name."""

        def write(_: Applied, commit_id: str) -> tuple[int, datetime.datetime] | None:
            answer = self._spark.sql(statement(self._quoted(name))).collect()
            is_counted = any("num_affected_rows" in row for row in answer)
            return (self._known[name].version + 1, datetime.datetime.now(datetime.UTC)) if is_counted else self._commit_of(name, commit_id)

        return write

    def _written_directly(self, commit: Callable[[Transaction], int | None]) -> _Write:
        """Return a write without a statement, which returns the version; None if another commit has the transaction's."""

        def write(after: Applied, _: str) -> tuple[int, datetime.datetime] | None:
            version = commit(Transaction(self._application, after.sequence))
            return None if version is None else (version, datetime.datetime.now(datetime.UTC))

        return write

    def _commit_of(self, name: TableName, commit_id: str) -> tuple[int, datetime.datetime] | None:
        """Return version and time of a commit that has just been made, or None; others may have followed it."""
        for limit in (1, _HISTORY):
            for commit in self._history(name, limit):
                if commit.metadata.get("kafka.connect.commit-id") == commit_id:
                    return commit.version, commit.time
        return None

    def _keep(self, name: TableName, known: _Known) -> None:
        """Copy a watermark that is getting old into the table's properties, which Delta keeps for good."""
        applied = known.applied
        if applied.time is None or datetime.datetime.now(datetime.UTC) - applied.time < _KEEP_AFTER:
            return
        values = {
            f"kafka.connect.offsets.{self._connector}": applied.watermark.to_json(),
            f"kafka.connect.sequence.{self._connector}": str(applied.sequence),
            f"kafka.connect.generation.{self._connector}": str(applied.generation),
        }
        if applied.watermark.snapshots:
            values[SNAPSHOTS_BEGUN + self._connector] = applied.watermark.snapshots_json()
        self._spark.sql(f"ALTER TABLE {self._quoted(name)} SET TBLPROPERTIES {properties_sql(values)}")

    def _identity(self, applied: Applied, commit_id: str) -> dict[str, str]:
        """Return the settings that mark a commit as the connector's."""
        writer = self._ledger.writer
        more = {"kafka.connect.commit-id": commit_id, "kafka.connect.task-id": f"{writer.connector}-{writer.task}"}
        return {
            _APP_ID: self._application,
            _VERSION: str(applied.sequence),
            _METADATA: metadata_json(writer.connector, applied, more),
        }

    def _path(self, name: TableName) -> str:
        return "/".join((self._root or "", *name.parts))

    def _quoted(self, name: TableName) -> str:
        if self._root is not None:
            return "delta." + quote(self._path(name))
        return ".".join(quote(part) for part in (self._catalog, *name.parts))


def _laid_out(layout: Layout) -> str:
    if layout.cluster:
        return f"CLUSTER BY ({', '.join(quote(column) for column in layout.cluster)})"
    return f"PARTITIONED BY ({', '.join(partition_sql(partition) for partition in layout.partitions)})" if layout.partitions else ""


def _on_all_rows(table: str, *, soft: bool) -> str:
    """Return a MERGE of all rows, because a DELETE or UPDATE that finds no row commits nothing."""
    deleted = f"t.{quote('__deleted')}"
    change = f"AND NOT coalesce({deleted}, false) THEN UPDATE SET {deleted} = true" if soft else "THEN DELETE"
    return f"MERGE INTO {table} t USING (SELECT 1 one WHERE false) s ON false WHEN NOT MATCHED BY SOURCE {change}"


def _under(spark: SparkSession, root: str) -> list[TableName]:
    """Return the tables below a directory, up to four levels deep, by the names of their logs' files, which are not read."""
    from pyspark.errors import AnalysisException

    found: set[TableName] = set()
    for depth in range(1, 5):
        pattern = "/".join((root, *"*" * depth, "_delta_log", "*.json"))
        try:
            paths = spark.read.format("binaryFile").load(pattern).selectExpr("regexp_extract(path, '^(.*)/_delta_log/', 1) p").distinct()
            found |= {TableName(tuple(row["p"].rsplit("/", depth)[1:])) for row in paths.collect()}
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
    return sorted(found)
