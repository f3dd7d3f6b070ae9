"""Iceberg tables. The watermark lies in the summary of the snapshot that holds the rows, as `kafka.connect.offsets.<connector>`.

A table property of the same name counts too, partition by partition the higher of both: maintenance copies the watermark there before it
compacts and expires snapshots. State: watermarks of tables that this task has read or written, dropped by `forget`.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from spark_sink.evolve import Evolution
from spark_sink.merge import Shape, append_sql, merge_sql
from spark_sink.routing import TableName
from spark_sink.tables.base import TableState
from spark_sink.types import literal, quote
from spark_sink.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."

#: Properties of tables that the sink creates; `lakehouse.tables.auto-create-props.*` wins.
_NEW_TABLE = {
    "format-version": "2",
    # A small batch rewrites no data files: deletes are noted beside them.
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    # A commit every few seconds leaves a metadata file each time.
    "write.metadata.delete-after-commit.enabled": "true",
}


class IcebergTables:
    """`spark_sink.tables.base.Tables` over a Spark catalog of Iceberg's."""

    def __init__(self, spark: SparkSession, catalog: str, connector: str, task: int, new_table_properties: Mapping[str, str]) -> None:
        self._spark = spark
        self._catalog = catalog
        self._connector = connector
        self._task = task
        self._properties = _NEW_TABLE | dict(new_table_properties)
        self._offsets_key = f"kafka.connect.offsets.{connector}"
        self._watermarks: dict[TableName, Watermark] = {}

    def load(self, name: TableName) -> TableState | None:
        """See `Tables.load`."""
        from pyspark.errors import AnalysisException

        try:
            fields = self._spark.table(self._quoted(name)).schema.fields
        except AnalysisException as error:
            if error.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
                self._watermarks.pop(name, None)
                return None
            raise
        if name not in self._watermarks:
            self._watermarks[name] = self._read_watermark(name)
        return TableState({field.name: field.dataType.simpleString() for field in fields}, self._watermarks[name])

    def _read_watermark(self, name: TableName) -> Watermark:
        table = self._quoted(name)
        snapshots = self._spark.sql(
            f"SELECT s.snapshot_id, s.parent_id, s.summary[{literal(self._offsets_key)}] offsets, r.snapshot_id IS NOT NULL head "
            f"FROM {table}.snapshots s LEFT JOIN {table}.refs r ON r.snapshot_id = s.snapshot_id AND r.name = 'main'"
        ).collect()
        by_id = {row["snapshot_id"]: row for row in snapshots}
        step = next((row for row in snapshots if row["head"]), None)
        while step is not None and step["offsets"] is None:
            step = by_id.get(step["parent_id"])
        committed = Watermark.parse(step["offsets"] if step is not None else None)
        properties = {row["key"]: row["value"] for row in self._spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
        return committed.advanced(Watermark.parse(properties.get(self._offsets_key)).offsets)

    def create(self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str]) -> TableState:
        """See `Tables.create`."""
        if name.parts[:-1]:
            namespace = ".".join(quote(part) for part in (self._catalog, *name.parts[:-1]))
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        lines = [
            f"{quote(column)} {type_}"
            + (" NOT NULL" if column in required else "")
            + (f" COMMENT {literal(comments[column])}" if column in comments else "")
            for column, type_ in columns.items()
        ]
        properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in self._properties.items())
        self._spark.sql(f"CREATE TABLE {self._quoted(name)} ({', '.join(lines)}) USING iceberg TBLPROPERTIES ({properties})")
        self._watermarks[name] = Watermark()
        return TableState(dict(columns), Watermark())

    def evolve(self, name: TableName, evolution: Evolution) -> None:
        """See `Tables.evolve`."""
        table = self._quoted(name)
        if evolution.added:
            columns = ", ".join(f"{quote(column)} {type_}" for column, type_ in evolution.added.items())
            self._spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
        for column, type_ in evolution.widened.items():
            self._spark.sql(f"ALTER TABLE {table} ALTER COLUMN {quote(column)} TYPE {type_}")

    def merge(self, name: TableName, view: str, shape: Shape, watermark: Watermark) -> None:
        """See `Tables.merge`."""
        self._commit(name, merge_sql(self._quoted(name), view, shape), watermark)

    def append(self, name: TableName, view: str, shape: Shape, watermark: Watermark) -> None:
        """See `Tables.append`."""
        self._commit(name, append_sql(self._quoted(name), view, list(shape.types)), watermark)

    def forget(self) -> None:
        """See `Tables.forget`."""
        self._watermarks.clear()

    def _commit(self, name: TableName, statement: str, watermark: Watermark) -> None:
        with self._identity(watermark):
            self._spark.sql(statement)
        self._watermarks[name] = watermark

    @contextlib.contextmanager
    def _identity(self, watermark: Watermark) -> Iterator[None]:
        """Settings by which the next commit of this session carries the watermark; removed again, lest another table's commit has them."""
        identity = {
            self._offsets_key: watermark.to_json(),
            "kafka.connect.commit-id": str(uuid.uuid4()),
            "kafka.connect.task-id": f"{self._connector}-{self._task}",
            "kafka.connect.generation": "0",
        }
        for key, value in identity.items():
            self._spark.conf.set(_SNAPSHOT_PROPERTY + key, value)
        try:
            yield
        finally:
            for key in identity:
                self._spark.conf.unset(_SNAPSHOT_PROPERTY + key)

    def _quoted(self, name: TableName) -> str:
        return ".".join(quote(part) for part in (self._catalog, *name.parts))
