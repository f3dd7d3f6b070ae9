"""The rows of a table, or of a part of it, in a snapshot: from the server's result to records with their markers.

Used by the task's thread, and by the processes that read beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from connect_py.api.record import EncodedRow
from connectors.engine.batches import MAX_BYTES, rows_together
from connectors.engine.envelope import tail
from connectors.engine.snapshot.initial.run import Marker
from connectors.mysql.position.place import StreamPlace
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.server.connection import Connection, quote_name
from connectors.mysql.server.moment import altered_tables_pass
from connectors.mysql.snapshot.packet_rows import PacketRows

#: Makes records of raw rows.
Encode = Callable[[Sequence[bytes], Marker], list[EncodedRow]]


class TableRows:
    """One table, or a part of it, being read; `TableRows` of the snapshot engine. Raises ServerError from every method.

    Args:
        encode: see `snapshot_encoder`.
        part: SQL behind the table's name that chooses rows, with a leading space.
        statement: a SELECT that is read in the table's place.
        scanned: told of the number of rows of each read.
        changes_pass: whether a table that is not what it was raises RetriableError; a statement of the user's is another matter.
    """

    def __init__(
        self,
        connection: Connection,
        table: CapturedTable,
        encode: Encode,
        *,
        part: str = "",
        statement: str | None = None,
        scanned: Callable[[int], None] = lambda _: None,
        changes_pass: bool = False,
    ) -> None:
        self.encode = encode
        self._scanned = scanned
        self._rows_together = rows_together(table.encoder.constant_bytes)
        names = ", ".join(table.selected)
        source = quote_name(table.id.schema, table.id.table) + part
        if statement is not None:
            source = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        # the server says with the beginning of its answer whether it has the columns
        with altered_tables_pass(table.id) if changes_pass and statement is None else nullcontext():
            self._result = connection.result(f"SELECT {names} FROM {source}", [False] * len(table.places))  # noqa: S608  # quoted names; an override is the user's own

    def read(self) -> list[bytes] | None:
        """Up to a batch's bounds; None after the last one."""
        rows, _ = self._result.packets(self._rows_together, MAX_BYTES)
        self._scanned(len(rows))
        return rows or None


def table_start_us() -> int:
    """The time that rows of a table show whose reading begins now: the reference's clock of a snapshot has whole seconds."""
    return int(time.time()) * 1_000_000


def snapshot_encoder(table: CapturedTable, place: StreamPlace, ts_us: int) -> Encode:
    """What makes records of a table's raw rows.

    Args:
        place: that source blocks show.
        ts_us: see `table_start_us`.
    """
    sources = {
        marker: table.block.render(
            ts_us, marker.value, place.file, place.pos, server_id=place.server_id, gtid=place.gtid, thread=place.thread
        )
        for marker in Marker
    }
    packets = PacketRows(table)
    return lambda rows, marker: packets.records(rows, sources[marker], tail("r", time.time_ns()))
