"""The rows of one table in a snapshot: from the server's result to records with their markers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from connect_py.api.record import EncodedRow
from connectors.engine.envelope import tail
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.snapshot.markers import Marker
from connectors.mysql.connection import Connection, quote_name
from connectors.mysql.place import StreamPlace
from connectors.mysql.tables import CapturedTable
from connectors.mysql.text_rows import TextRow
from connectors.mysql.values import is_text

#: A batch ends at whichever comes first (see the PostgreSQL connector's).
MAX_ROWS = 2_000
MAX_BYTES = 4_000_000


class TableRows:
    """One table being read; `TableRows` of the snapshot engine. Raises ServerError from every method.

    Args:
        place: that source blocks show.
        statement: a SELECT that is read in the table's place.
        on_end: told of the number of rows at the end.
    """

    def __init__(
        self,
        connection: Connection,
        table: CapturedTable,
        place: StreamPlace,
        metrics: SnapshotMetrics,
        statement: str | None = None,
        on_end: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._on_end = on_end
        self._count = 0
        columns = [table.model.columns[column] for column in table.places]
        self._sources = _sources(table, place)
        names = ", ".join(table.selected)
        source = quote_name(table.id.schema, table.id.table)
        if statement is not None:
            source = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        characters = [is_text(column) for column in columns]
        self._result = connection.result(f"SELECT {names} FROM {source}", characters)  # noqa: S608  # quoted names; an override is the user's own

    def read(self) -> list[TextRow] | None:
        """Up to MAX_ROWS or MAX_BYTES; None after the last one."""
        rows, _ = self._result.read(MAX_ROWS, MAX_BYTES)
        self._metrics.scanned(str(self._table.id), len(rows))
        self._count += len(rows)
        if not rows:
            self._metrics.table_done(str(self._table.id))
            self._on_end(self._count)
            return None
        return rows

    def encode(self, rows: Sequence[TextRow], marker: Marker) -> list[EncodedRow]:
        """Rows as records. Raises DataError."""
        table = self._table
        return table.encoder.text_rows(rows, table.route, self._sources[marker], tail("r", time.time_ns()))


def _sources(table: CapturedTable, place: StreamPlace) -> Mapping[Marker, bytes]:
    # the reference's clock of a snapshot has whole seconds
    ts_us = int(time.time()) * 1_000_000
    return {
        marker: table.block.render(
            ts_us, marker.value, place.file, place.pos, server_id=place.server_id, gtid=place.gtid, thread=place.thread
        )
        for marker in Marker
    }
