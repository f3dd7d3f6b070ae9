"""What the sink asks of a table format. Iceberg is the first; Delta fits beside it.

Everything a format does goes through SQL in the session that it was given, so it also works where there is no JVM bridge. The task's
thread is the only caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from spark_sink.evolve import Evolution
from spark_sink.merge import Shape
from spark_sink.routing import TableName
from spark_sink.watermark import Watermark


@dataclass(frozen=True)
class TableState:
    """A table as it is now.

    Attributes:
        columns: types by column, in order, as Spark writes them.
        watermark: what this connector has applied to it.
    """

    columns: Mapping[str, str]
    watermark: Watermark


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


def changed_by(table: str, writer: Writer, epoch: int) -> ConnectError:
    """The error for a table that changed between the reading of its watermark and the commit; `epoch` is of the connector's newest one."""
    if epoch > writer.epoch:
        return FatalTaskError(
            f"Table {table} is written by a younger task of connector {writer.connector}. This one has been replaced and ends; "
            "nothing of its batch was written."
        )
    return RetriableError(f"Table {table} was changed by others while a batch was being written; nothing of it was written.")


class Tables(Protocol):
    """The tables of one catalog, for one connector."""

    def load(self, name: TableName) -> TableState | None:
        """The table, or None when it does not exist. The watermark is read from the table's own commits."""
        ...

    def create(self, name: TableName, columns: Mapping[str, str], required: frozenset[str], comments: Mapping[str, str]) -> TableState:
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

    def forget(self) -> None:
        """Read watermarks from the tables again: after a failure it is not known which commits happened."""
        ...
