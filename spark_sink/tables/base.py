"""What the sink asks of a table format, Iceberg or Delta, and what both formats share.

Everything a format does goes through SQL in the session that it was given, so it also works without a JVM bridge. A table is used by one
thread at a time: the task's, or that of the lane that writes it.

A task must not continue with a table that a younger writer of its connector has written (another task, or a change of its offsets by REST),
nor with one that has lost rows which the task takes for written: a table rolled back, dropped or replaced under a running task. `Ledger`
keeps what one task knows of its tables and makes it give way or go back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from connect_py.api.record import TopicPartition
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from spark_sink.config.layout import Layout
from spark_sink.routing import TableName
from spark_sink.sql.evolve import Evolution
from spark_sink.sql.merge import Shape
from spark_sink.tables.upkeep import Activity, MaintenancePolicy
from spark_sink.tables.watermark import PastCommit, Watermark
from spark_sink.types.columns import literal, quote
from spark_sink.types.trees import Array, Map, Struct, Type, path_sql, type_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField

#: By which a statement finds its rows.
_VIEW = "connect_py_changes"


@dataclass(frozen=True)
class TableState:
    """A table's current state.

    Attributes:
        columns: types by column, in order, as Spark writes them, with names of fields quoted.
        watermark: what this connector has applied to it.
        required: columns that are NOT NULL.
    """

    columns: Mapping[str, str]
    watermark: Watermark
    required: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Writer:
    """The task that writes.

    Attributes:
        epoch: when the task started, milliseconds since 1970. Of two tasks of a connector that are alive at once the older one gives way;
            that no row is written twice does not rest on it.
    """

    connector: str
    task: int
    epoch: int


@dataclass(frozen=True)
class Compaction:
    """What is left of a table's compaction.

    Attributes:
        write: writes files that no state of the table has, also while others write the table.
        commit: makes them the table's, after that; nobody else of the task may write it.
    """

    write: Callable[[], None]
    commit: Callable[[], None]


@dataclass(frozen=True)
class Extent:
    """What a table consists of.

    Attributes:
        generation: how often this connector's offsets in it have been altered or reset.
        data_files: of its newest state.
        size_bytes: of these files.
        delete_files: in addition to them, where the format has such files.
        snapshots: states that are kept, where the format counts them.
        small_files: data files that a compaction would rewrite because of their size, where the format reports sizes.
        activity: of commits since the table was first loaded, this task's and others'.
    """

    generation: int
    data_files: int
    size_bytes: int
    delete_files: int | None = None
    snapshots: int | None = None
    small_files: int | None = None
    activity: Activity = field(default_factory=Activity)


class Conflict(RetriableError):
    """A table was changed by others while a batch was being written; nothing of it was written."""


class TableSetBack(RetriableError):
    """A table has lost rows that the task takes for written: it was rolled back, dropped or replaced while the task was running.

    Attributes:
        offsets: what it has instead, by topic partition; 0 where it has nothing.
    """

    def __init__(self, table: TableName, offsets: Mapping[TopicPartition, int]) -> None:
        shown = ", ".join(f"{tp.topic}-{tp.partition} at {offset}" for tp, offset in sorted(offsets.items()))
        super().__init__(f"Table {table} has been set back by others, to {shown}. What it lacks is read again from there.")
        self.offsets = offsets


class Tables(Protocol):
    """The tables of one catalog, for one connector."""

    def load(self, name: TableName, *, claim: bool = False) -> TableState | None:
        """Return the table, or None when it does not exist. The watermark is read from the table's own commits.

        Args:
            claim: take the table over from its last writer, as a task does once, when it starts.

        Raises:
            FatalTaskError: a younger task of the connector writes it, or its offsets were altered since this task started.
            TableSetBack: it has been set back; the next call returns what it has.
        """
        ...

    def past_commits(self, name: TableName) -> Sequence[PastCommit]:
        """Return the connector's last commits of a table when it was first loaded, the newest first; no query is made for it."""
        ...

    def create(
        self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str], layout: Layout
    ) -> TableState:
        """Create a table and its namespace. It has no watermark yet."""
        ...

    def evolve(self, name: TableName, evolution: Evolution) -> None:
        """Add nullable columns at the end and widen types, in commits of their own."""
        ...

    def needs_bounds(self, name: TableName, shape: Shape) -> bool:
        """Return whether `merge` of rows that Spark holds reads the whole table unless `shape.bounds` says where the keys can be."""
        ...

    def merge(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        """Upsert and delete rows and store the watermark, in one commit.

        Args:
            truncate: ``apply`` empties the table first, ``soft`` marks its rows as deleted first; readers never see the state between.

        Raises:
            RetriableError: the table has changed since it was loaded; nothing was written.
            FatalTaskError: a younger task of the connector changed it.
        """
        ...

    def append(self, name: TableName, rows: DataFrame, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        """Insert rows and store the watermark, in one commit. Raises as `merge`."""
        ...

    def empty(self, name: TableName, watermark: Watermark, *, soft: bool) -> None:
        """Remove all rows, or mark them as deleted, and store the watermark, in one commit. Raises as `merge`."""
        ...

    def note(self, name: TableName, watermark: Watermark) -> None:
        """Store that the table has everything up to a watermark, of which nothing had to be written. The table must have been loaded."""
        ...

    def alter(self, name: TableName, watermark: Watermark) -> None:
        """Replace the watermark, forward or back, and raise the generation. The table must have been loaded."""
        ...

    def rows(self, name: TableName) -> DataFrame:
        """Return what a table holds."""
        ...

    def written(self) -> dict[TableName, Watermark]:
        """Return all tables that hold a watermark of this connector."""
        ...

    def compact(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> Compaction | None:
        """Make few files of many. The watermark survives; the table must have been loaded, and nobody else of this task may write it.

        Args:
            thoroughly: do not leave files of several sizes where that saves work.

        Returns:
            What is left to do; None if nothing is.
        """
        ...

    def clean(self, name: TableName, policy: MaintenancePolicy, *, thoroughly: bool) -> None:
        """Remove what only old states of a table need, also while it is being written.

        Args:
            thoroughly: also files that nothing references, for which all of its files are listed.
        """
        ...

    def extent(self, name: TableName, target_file_size: int) -> Extent | None:
        """Return what a table that was loaded or written consists of; None when nothing is known of it.

        Args:
            target_file_size: of compaction, in bytes.
        """
        ...

    def forget(self) -> None:
        """Read watermarks from the tables again: after a failure it is not known which commits happened."""
        ...


class Ledger:
    """What one task knows: its identity, and the watermark up to which it has seen each table."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._reached: dict[TableName, Watermark] = {}

    def claim(self, epoch: int) -> None:
        """Become younger than a table's last writer, at a task's start, even if the clock of this machine is slow."""
        if epoch >= self.writer.epoch:
            self.writer = Writer(self.writer.connector, self.writer.task, epoch + 1)

    def found(self, name: TableName, watermark: Watermark, epoch: int) -> None:
        """Note that a table was read; `epoch` is of the task that wrote its watermark.

        Raises:
            FatalTaskError: that task is younger than this one.
            TableSetBack: the table has lost what this task knew to be in it.
        """
        if epoch > self.writer.epoch:
            raise task_replaced(str(name), self.writer)
        known = self._reached.get(name)
        if known is not None:
            lost = {tp: watermark.offsets.get(tp, 0) for tp, offset in known.offsets.items() if watermark.offsets.get(tp, 0) < offset}
            if lost:
                del self._reached[name]
                raise TableSetBack(name, lost)
        self._reached[name] = watermark

    def missing(self, name: TableName) -> None:
        """Note that a table does not exist. Raise TableSetBack if it did."""
        self.found(name, Watermark(), 0)
        del self._reached[name]

    def reached(self, name: TableName, watermark: Watermark) -> None:
        """Note that this task has committed."""
        self._reached[name] = watermark

    def changed_by(self, name: TableName, epoch: int) -> ConnectError:
        """Return the error for a table that changed between the reading of its watermark and the commit; `epoch` is its newest writer's."""
        if epoch > self.writer.epoch:
            return task_replaced(str(name), self.writer)
        return Conflict(f"Table {name} was changed by others while a batch was being written; nothing of it was written.")


def task_replaced(table: str, writer: Writer) -> FatalTaskError:
    """Return the error of a task that another one has replaced."""
    return FatalTaskError(
        f"Table {table} is written by a younger task of connector {writer.connector}, or its offsets were altered. This one has been "
        "replaced and ends; nothing of its batch was written."
    )


def state_of(fields: Sequence[StructField], watermark: Watermark) -> TableState:
    """Return a table's state from its schema in Spark."""
    columns = {field.name: type_text(_type_tree(field.dataType)) for field in fields}
    return TableState(columns, watermark, frozenset(field.name for field in fields if not field.nullable))


def _type_tree(type_: DataType) -> Type:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            return Struct({field.name: _type_tree(field.dataType) for field in type_.fields})
        case ArrayType():
            return Array(_type_tree(type_.elementType))
        case MapType():
            return Map(_type_tree(type_.keyType), _type_tree(type_.valueType))
        case _:
            return str(type_.simpleString())


def columns_sql(columns: Mapping[str, str], required: Collection[str], comments: Mapping[str, str]) -> str:
    """Return the columns of a CREATE TABLE."""
    return ", ".join(
        f"{quote(column)} {type_}"
        + (" NOT NULL" if column in required else "")
        + (f" COMMENT {literal(comments[column])}" if column in comments else "")
        for column, type_ in columns.items()
    )


def properties_sql(properties: Mapping[str, str]) -> str:
    """Return a table's properties as TBLPROPERTIES has them, with parentheses."""
    return f"({', '.join(f'{literal(key)} = {literal(value)}' for key, value in properties.items())})"


#: Of a MERGE in which all rows of one side and few of the other take part: one task joins them, in the job that writes what it finds.
NARROW = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


@contextlib.contextmanager
def viewed(rows: DataFrame) -> Iterator[str]:
    """Give rows the name by which a statement finds them; a session writes one table at a time."""
    rows.createOrReplaceTempView(_VIEW)
    try:
        yield _VIEW
    finally:
        rows.sparkSession.catalog.dropTempView(_VIEW)


def insert_nothing_sql(table: str) -> str:
    """Return a commit without rows, for what it carries."""
    return f"INSERT INTO {table} SELECT * FROM {table} LIMIT 0"


def evolution_sql(table: str, evolution: Evolution) -> Iterator[str]:
    """Yield statements that change a table, whose name is quoted already, one for each kind of change and column."""
    if evolution.added:
        columns = ", ".join(f"{path_sql(path)} {type_}" for path, type_ in evolution.added.items())
        yield f"ALTER TABLE {table} ADD COLUMNS ({columns})"
    for name in evolution.relaxed:
        yield f"ALTER TABLE {table} ALTER COLUMN {quote(name)} DROP NOT NULL"
    for path, type_ in evolution.widened.items():
        yield f"ALTER TABLE {table} ALTER COLUMN {path_sql(path)} TYPE {type_}"


def tables_of_catalog(spark: SparkSession, catalog: str) -> list[TableName]:
    """Return all tables of a catalog, of any format, without temporary views."""
    found: list[TableName] = []
    for namespace in [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {quote(catalog)}").collect()]:
        parts = tuple(namespace.split("."))
        for row in spark.sql(f"SHOW TABLES IN {'.'.join(quote(part) for part in (catalog, *parts))}").collect():
            if not row["isTemporary"]:
                found.append(TableName((*parts, row["tableName"])))
    return found
