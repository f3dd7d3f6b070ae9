"""Reads again what an event does not have: values that were stored out of line and not touched, and NULLs (`Reselect`).

The value is the table's of now, not of the event: another transaction may have changed it since. That later change has its own event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect_py.errors import RetriableError
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.plugins.reselect import Fill, NotReadError, Reselect
from connectors.engine.relational.table import TableId
from connectors.postgres.errors import ServerError, class_of
from connectors.postgres.server.connection import Connection, quote_literal, quote_name


class Reselector:
    """Makes the functions that fill rows in. Owned by the task's thread.

    Args:
        general: the connection of now; it is asked while the stream waits.
    """

    def __init__(self, options: Reselect, general: Callable[[], Connection]) -> None:
        self._options = options
        self._general = general

    def filler(self, table: TableId, columns: Sequence[ColumnPlan], key: Sequence[str], event_key: Sequence[str]) -> Fill | None:
        """See `Reselect.filler`."""
        names = [quote_name(plan.name) for plan in columns]
        source = f"{quote_name(table.schema)}.{quote_name(table.table)}"

        def read(wanted: Sequence[int], key: Sequence[tuple[int, str]]) -> Sequence[Sequence[str | None]]:
            condition = " AND ".join(f"{names[place]} = {quote_literal(text)}" for place, text in key)
            try:
                return self._general().query(
                    f"SELECT {', '.join(names[place] for place in wanted)} FROM {source} WHERE {condition} LIMIT 2"
                )
            except ServerError as error:
                if class_of(error.sqlstate) is RetriableError:
                    raise
                raise NotReadError(str(error)) from error

        return self._options.filler(str(table), columns, key, event_key, read)
