"""Rows of a table by COPY in text form, as the connection's transaction sees them.

Used by the task's thread, and by the reader processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg

from connect_py.api.record import EncodedRow
from connectors.engine.batches import MAX_BYTES, rows_per_batch
from connectors.engine.envelope import tail
from connectors.engine.snapshot.initial.run import Marker
from connectors.postgres.server.connection import Connection, quote_name
from connectors.postgres.tables import CapturedTable

#: How long one read waits for the server, so that a poll returns in time.
READ_WAIT_SECONDS = 0.25
#: A batch that has rows waits this long for more of them: a server that is slower than we are would else make many small ones.
FILL_WAIT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ConsistentSnapshot:
    """What all rows of a snapshot share.

    Attributes:
        lsn: the position from which streaming continues.
        tx_id: the number of an empty transaction just before it (`snapshot.py`).
        ts_us: when it began, in microseconds since 1970.
        last_commit: the end of the last streamed transaction, for a snapshot that interrupts a stream.
    """

    lsn: int
    tx_id: int | None
    ts_us: int
    last_commit: int | None = None


class CopyRows:
    """One table, or a part of it, being read; `TableRows` of the snapshot engine.

    Args:
        where: a WHERE clause with a leading space.
        statement: a SELECT that is read instead of the table; it must give the table's columns.
        scanned: called with the number of rows of each read.

    Raises:
        ServerError: from every method, when the server or the connection fails.
    """

    def __init__(
        self,
        connection: Connection,
        table: CapturedTable,
        snapshot: ConsistentSnapshot,
        *,
        where: str = "",
        statement: str | None = None,
        scanned: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._table = table
        self._scanned = scanned
        self._rows_together = rows_per_batch(table.encoder.constant_bytes)
        self._encode = snapshot_encoder(table, snapshot)
        columns = ", ".join(quote_name(plan.name) for plan in table.encoder.columns)
        name = f"{quote_name(table.id.schema)}.{quote_name(table.id.table)}"
        if statement is not None:
            name = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        self._done = False
        self._silent_seconds = 0.0
        connection.start_copy(f"COPY (SELECT {columns} FROM {name}{where}) TO STDOUT")

    def read(self) -> list[bytes] | None:
        """Read rows up to a batch's bounds; fewer when the server is slower than we are."""
        if self._done:
            return None
        try:
            rows = self._read()
        except psycopg.Error:
            raise self._connection.copy_failed() from None
        self._scanned(len(rows or ()))
        return rows

    def _read(self) -> list[bytes] | None:
        get = self._connection.pgconn.get_copy_data
        rows: list[bytes] = []
        append = rows.append
        size = 0
        most = self._rows_together
        waited = False
        began = time.monotonic()
        deadline = began + READ_WAIT_SECONDS
        while True:
            length, data = get(1)
            if length > 0:
                append(bytes(data))
                size += length
                if len(rows) >= most or size > MAX_BYTES:
                    self._silent_seconds = 0.0
                    return rows
            elif length == 0:
                self._connection.consume_input()
                length, data = get(1)
                if length > 0:
                    append(bytes(data))
                    size += length
                elif length == 0:
                    if waited or time.monotonic() > deadline:
                        self._silent_seconds = 0.0 if rows else self._silent_seconds + time.monotonic() - began
                        self._connection.check_silence(self._silent_seconds)
                        return rows
                    waited = not self._connection.wait_readable(FILL_WAIT_SECONDS if rows else READ_WAIT_SECONDS)
                else:
                    return self._end(rows)
            else:
                return self._end(rows)

    def _end(self, rows: list[bytes]) -> list[bytes] | None:
        self._done = True
        self._connection.end_copy()
        return rows or None

    def encode(self, rows: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        """Return the records of raw rows."""
        return self._encode(rows, marker)


def snapshot_encoder(table: CapturedTable, snapshot: ConsistentSnapshot) -> Callable[[Sequence[bytes], Marker], list[EncodedRow]]:
    """Return the function that makes records of a table's raw rows, for a consistent snapshot."""
    m = snapshot
    sources: dict[Marker, bytes] = {
        marker: table.block.snapshot(marker.value, m.ts_us, m.tx_id, m.lsn, last_commit_lsn=m.last_commit)
        for marker in Marker
        if marker is not Marker.INCREMENTAL
    }
    encoder, route = table.encoder, table.route
    return lambda rows, marker: encoder.copy_rows(rows, route, sources[marker], tail("r", time.time_ns()))
