"""What the sink asks of a table format: Iceberg or Delta.

Everything a format does goes through SQL in the session that it was given, so it also works where there is no JVM bridge. The task's
thread is the only caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from connect_py.api.record import TopicPartition
from connect_py.errors import RetriableError
from spark_sink.config.layout import Layout
from spark_sink.routing import TableName
from spark_sink.sql.evolve import Evolution
from spark_sink.sql.merge import Shape
from spark_sink.tables.activity import Activity
from spark_sink.tables.maintenance import Policy
from spark_sink.tables.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TableState:
    """A table as it is now.

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
    """Who writes.

    Attributes:
        epoch: when the task started, milliseconds since 1970. Of two tasks of a connector that are alive at once the older one gives way;
            that no row is written twice does not rest on it.
    """

    connector: str
    task: int
    epoch: int


@dataclass(frozen=True)
class Extent:
    """What a table consists of.

    Attributes:
        generation: how often this connector's offsets in it have been altered or reset.
        data_files: of its newest state.
        size_bytes: of these files.
        delete_files: beside them, where the format has such.
        snapshots: states that are kept, where the format counts them.
        small_files: data files that a compaction would take because of their size, where the format tells sizes.
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


class Behind(RetriableError):
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
        """The table, or None when it does not exist. The watermark is read from the table's own commits.

        Args:
            claim: take the table over from whoever wrote it last, as a task does once, when it starts.

        Raises:
            FatalTaskError: a younger task of the connector writes it, or its offsets were altered since this task started.
            Behind: it has been set back; the next call answers with what it has.
        """
        ...

    def create(
        self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str], layout: Layout
    ) -> TableState:
        """Create a table and its namespace. It has no watermark yet."""
        ...

    def evolve(self, name: TableName, evolution: Evolution) -> None:
        """Add nullable columns at the end and widen types, in commits of their own."""
        ...

    def merge(self, name: TableName, view: str, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        """Upsert and delete the rows of a view and store the watermark, in one commit.

        Args:
            truncate: ``apply`` empties the table first, ``soft`` marks its rows as deleted first; readers never see the state between.

        Raises:
            RetriableError: the table has changed since it was loaded; nothing was written.
            FatalTaskError: a younger task of the connector changed it.
        """
        ...

    def append(self, name: TableName, view: str, shape: Shape, watermark: Watermark, truncate: str | None = None) -> None:
        """Insert the rows of a view and store the watermark, in one commit. Raises as `merge`."""
        ...

    def empty(self, name: TableName, watermark: Watermark, *, soft: bool) -> None:
        """Remove all rows, or mark them as deleted, and store the watermark, in one commit. Raises as `merge`."""
        ...

    def note(self, name: TableName, watermark: Watermark) -> None:
        """Remember that the table has everything up to a watermark, of which nothing had to be written. The table must have been loaded."""
        ...

    def alter(self, name: TableName, watermark: Watermark) -> None:
        """Replace the watermark, forward or back, and raise the generation. The table must have been loaded."""
        ...

    def rows(self, name: TableName) -> DataFrame:
        """What a table holds."""
        ...

    def written(self) -> dict[TableName, Watermark]:
        """All tables that hold a watermark of this connector."""
        ...

    def maintain(self, name: TableName, policy: Policy) -> None:
        """Compact a table and remove what nothing refers to any more. The watermark survives; the table must have been loaded."""
        ...

    def extent(self, name: TableName, target_file_size: int) -> Extent | None:
        """What a table that was loaded or written consists of; None when nothing is known of it.

        Args:
            target_file_size: of compaction, in bytes.
        """
        ...

    def forget(self) -> None:
        """Read watermarks from the tables again: after a failure it is not known which commits happened."""
        ...
