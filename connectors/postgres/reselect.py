"""Reads again what an event does not have: values that were stored out of line and not touched, and NULLs (`Reselect`).

The value is the table's of now, not of the event: another transaction may have changed it since. That later change has its own event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from connect_py.errors import FatalTaskError, RetriableError
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.encode.tuples import Text
from connectors.engine.relational.table import TableId
from connectors.engine.reselect import Fill, Reselect
from connectors.postgres.connection import Connection, quote_literal, quote_name
from connectors.postgres.errors import ServerError, class_of

log = logging.getLogger(__name__)


class Reselector:
    """Makes the functions that fill rows in. Owned by the task's thread.

    Args:
        general: the connection of now; it is asked while the stream waits.
    """

    def __init__(self, options: Reselect, general: Callable[[], Connection]) -> None:
        self._options = options
        self._general = general

    def filler(self, table: TableId, columns: Sequence[ColumnPlan], key: Sequence[str], event_key: Sequence[str]) -> Fill | None:
        """The function for the rows of a table; None where a row cannot be found again.

        Args:
            key: of the table; `event_key` that of records, without which nothing is read again.
        """
        places = {plan.name: place for place, plan in enumerate(columns)}
        wanted = event_key if self._options.by_event_key else key
        if not event_key or not wanted or any(name not in places for name in wanted):
            return None
        missing = self._options.missing(str(table), columns)
        name = f"{quote_name(table.schema)}.{quote_name(table.table)}"

        def fill(texts: Sequence[Text]) -> Sequence[Text] | None:
            gone = missing(texts)
            keys = [(column, texts[places[column]]) for column in wanted]
            if not gone or not all(isinstance(text, str) for _, text in keys):
                return None
            found = self._read(table, name, [columns[place].name for place in gone], [(column, str(text)) for column, text in keys])
            if found is None:
                return None
            filled = list(texts)
            for place, text in zip(gone, found, strict=True):
                filled[place] = text
            return filled

        return fill

    def _read(self, table: TableId, name: str, columns: list[str], key: list[tuple[str, str]]) -> Sequence[str | None] | None:
        condition = " AND ".join(f"{quote_name(column)} = {quote_literal(text)}" for column, text in key)
        shown = ", ".join(column for column, _ in key)
        try:
            rows = self._general().query(f"SELECT {', '.join(map(quote_name, columns))} FROM {name} WHERE {condition} LIMIT 2")
        except ServerError as error:
            if class_of(error.sqlstate) is RetriableError:
                raise
            self._failed(f"Failed to re-select columns for table {table} by its key ({shown}): {error}")
            return None
        if not rows:
            self._failed(f"Failed to find row in table {table} by its key ({shown}): it was deleted since")
            return None
        if len(rows) > 1:
            log.warning("Re-selection detected multiple rows for the same key in table %s, using first.", table)
        return rows[0]

    def _failed(self, text: str) -> None:
        if self._options.fails:
            raise FatalTaskError(f"{text}. reselect.error.handling.mode is fail; the event was not sent, and comes again after a restart")
        log.warning("%s. The event goes without the values", text)
