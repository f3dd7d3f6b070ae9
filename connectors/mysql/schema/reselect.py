"""Reads again what an event does not have: columns that the log leaves out (``binlog_row_image``), and NULLs (`Reselect`).

The value is the table's of now, not of the event: another transaction may have changed it since. That later change has its own event. JSON
and FLOAT have the text that a snapshot shows, as in the reference; a TIMESTAMP has all of its digits, as in other events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect_py.errors import DataError
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.encode.texts import Text
from connectors.engine.plugins.reselect import Fill, NotReadError, Reselect
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import MyColumn, MyTable
from connectors.mysql.server.connection import Connection, quote_name
from connectors.mysql.types.keys import chunk_key
from connectors.mysql.types.values import is_text


class Reselector:
    """Makes the functions that fill rows in. Owned by the task's thread.

    Args:
        general: the session of now; it is asked while the stream waits.
    """

    def __init__(self, options: Reselect, general: Callable[[], Connection]) -> None:
        self._options = options
        self._general = general

    def filler(
        self, model: MyTable, places: Sequence[int], plans: Sequence[ColumnPlan], selected: Sequence[str], key: Sequence[str]
    ) -> Fill | None:
        """See `Reselect.filler`.

        Args:
            places: of the columns that events have among the model's, which `plans` and `selected`, their expressions, are parallel to.
            key: of records.
        """
        columns = [model.columns[place] for place in places]
        source = quote_name(model.id.schema, model.id.table)

        def read(wanted: Sequence[int], key: Sequence[tuple[int, str]]) -> Sequence[Sequence[Text]]:
            try:
                condition = " AND ".join(_equal(columns[place], text) for place, text in key)
                rows = self._general().query(
                    f"SELECT {', '.join(selected[place] for place in wanted)} FROM {source} WHERE {condition} LIMIT 2"  # noqa: S608  # quoted
                )
            except LostConnectionError:
                raise
            except (ServerError, DataError) as error:
                raise NotReadError(str(error)) from error
            codecs = ["utf-8" if is_text(columns[place]) else "latin-1" for place in wanted]
            return [[None if value is None else value.decode(codec) for value, codec in zip(row, codecs, strict=True)] for row in rows]

        return self._options.filler(str(model.id), plans, model.key, key, read)


def _equal(column: MyColumn, text: str) -> str:
    """A condition that holds for the rows with this value. Raises DataError: the type cannot be compared."""
    if column.base_type == "BIT":
        return f"{quote_name(column.name)} = {int.from_bytes(text.encode('latin-1'), 'big')}"
    found = chunk_key(column)
    if found is None:
        raise DataError(f"a column of the type {column.type_name} cannot be compared")
    if found.shown.startswith("HEX("):
        # the log leaves zeros at the end of BINARY out
        size = (column.length or 1) if column.base_type == "BINARY" else 0
        text = text.encode("latin-1").ljust(size, bytes(1)).hex()
    return f"{found.compared} = {found.literal(text)}"
