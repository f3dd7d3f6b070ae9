"""Rows of a table by COPY in text form, as the connection's transaction sees them.

Used by the task's thread, and by the reader processes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from connectors.engine.batches import MAX_BYTES
from connectors.engine.envelope import tail
from connectors.engine.snapshot.initial.run import Encode, Marker
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


def copy_rows(connection: Connection, table: CapturedTable, *, where: str = "", statement: str | None = None) -> Iterator[list[bytes]]:
    """Yield raw rows of a table, or of a part of it, up to a batch's bounds; fewer when the server is slower than we are, none when none
    came in the time of a poll.

    Args:
        where: a WHERE clause with a leading space.
        statement: a SELECT that is read instead of the table; a column that it leaves out is null.

    Raises:
        ServerError: the server refused, or it or the connection failed.
        Stopped: a stop was asked for before the first row.
    """
    names = [quote_name(plan.name) for plan in table.encoder.columns]
    name = f"{quote_name(table.id.schema)}.{quote_name(table.id.table)}"
    if statement is not None:
        name = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        present = set(connection.column_names(f"SELECT * FROM {name} LIMIT 0"))
        names = [shown if plan.name in present else f"NULL AS {shown}" for plan, shown in zip(table.encoder.columns, names, strict=True)]
    connection.start_copy(f"COPY (SELECT {', '.join(names)} FROM {name}{where}) TO STDOUT")
    most = table.batch_rows
    silent_seconds = 0.0
    has_ended = False
    while not has_ended:
        began = time.monotonic()
        try:
            rows, has_ended = _read_batch(connection, most)
            if has_ended:
                connection.end_copy()
        except psycopg.Error:
            raise connection.copy_failed() from None
        if rows:
            silent_seconds = 0.0
            yield rows
        elif not has_ended:
            silent_seconds += time.monotonic() - began
            connection.check_silence(silent_seconds)
            yield rows
        del rows


def _read_batch(connection: Connection, most: int) -> tuple[list[bytes], bool]:
    """Return up to `most` rows of a COPY, and whether they were the last ones."""
    get = connection.pgconn.get_copy_data
    rows: list[bytes] = []
    append = rows.append
    size = 0
    waited = False
    deadline = time.monotonic() + READ_WAIT_SECONDS
    while True:
        length, data = get(1)
        if length > 0:
            append(bytes(data))
            size += length
            if len(rows) >= most or size > MAX_BYTES:
                return rows, False
        elif length == 0:
            connection.consume_input()
            length, data = get(1)
            if length > 0:
                append(bytes(data))
                size += length
            elif length == 0:
                if waited or time.monotonic() > deadline:
                    return rows, False
                waited = not connection.wait_readable(FILL_WAIT_SECONDS if rows else READ_WAIT_SECONDS)
            else:
                return rows, True
        else:
            return rows, True


def snapshot_encoder(table: CapturedTable, snapshot: ConsistentSnapshot) -> Encode[bytes]:
    """Return the function that makes records of a table's raw rows, for a consistent snapshot."""
    m = snapshot
    sources: dict[Marker, bytes] = {
        marker: table.block.snapshot(marker.value, m.ts_us, m.tx_id, m.lsn, last_commit_lsn=m.last_commit)
        for marker in Marker
        if marker is not Marker.INCREMENTAL
    }
    encoder, route = table.encoder, table.route
    return lambda rows, marker: encoder.copy_rows(rows, route, sources[marker], tail("r", time.time_ns()))
