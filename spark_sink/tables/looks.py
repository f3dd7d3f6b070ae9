"""When tables are looked at for the figures that only they can tell (`spark_sink.tables.base.Extent`). Pure.

A look is a query or two, so with hundreds of tables one after each commit would take a good part of the time. Between two batches at most
one table is looked at, the one that has waited longest since a commit, and looks take a fiftieth of the time together.
"""

from __future__ import annotations

from spark_sink.routing import TableName

#: After a look the next one waits for so many times what it took.
_REST = 49


class Looks:
    """Tables that have changed since they were looked at."""

    def __init__(self) -> None:
        self._changed: dict[TableName, None] = {}
        self._next = 0.0

    def committed(self, table: TableName) -> None:
        """A table has changed."""
        self._changed.setdefault(table)

    def due(self, now: float) -> TableName | None:
        """The table whose turn it is; `now` in seconds."""
        if now < self._next or not self._changed:
            return None
        table = next(iter(self._changed))
        del self._changed[table]
        return table

    def took(self, seconds: float, now: float) -> None:
        """A look has ended."""
        self._next = now + _REST * seconds
