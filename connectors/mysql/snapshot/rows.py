"""The rows of a table, or of a part of it, in a snapshot: from the server's result to records with their markers.

Many rows are converted at a time, from the bytes that the server sent to those that Kafka gets (`PacketRows`). Used by the task's thread,
and by the processes that read in parallel.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from connect_py.api.record import EncodedRow
from connect_py.errors import DataError
from connectors.engine.batches import MAX_BYTES
from connectors.engine.encode.columnwise import Encoded
from connectors.engine.encode.fused import FusedRows
from connectors.engine.envelope import tail
from connectors.engine.snapshot.initial.run import Encode, Marker
from connectors.mysql.model import quote_name
from connectors.mysql.position.offset import EventPosition
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.text_rows import SPECIAL, MalformedRowError, TextRow, any_rows, rows_function, usual_rows
from connectors.mysql.snapshot.locks import retry_altered_table
from connectors.mysql.types.columns import is_text

#: Rows that are taken the careful way together when one of them is unusual.
_PIECE = 64


class PacketRows:
    """Makes records of the rows that a SELECT of a table's columns gives. Keeps nothing between calls but its functions.

    Args:
        passed_over: of each value that follows the table's columns in every row, and is in no record, whether it has characters.
    """

    def __init__(self, table: CapturedTable, passed_over: Sequence[bool] = ()) -> None:
        #: Of each column, whether its values are characters.
        self.characters = [is_text(table.model.columns[index]) for index in table.indexes]
        self._table = table
        self._passed_over = len(passed_over)
        self._read_rows = rows_function([*self.characters, *passed_over])
        self._ascii: FusedRows | None = None
        self._usual: FusedRows | None = None
        self._any: FusedRows | None = None

    def texts(self, rows: Sequence[bytes]) -> list[TextRow]:
        """Return the values of rows, one a column of events, and then those that records lack. Raises DataError: they are no such rows."""
        try:
            return self._read_rows(rows)
        except MalformedRowError as error:
            raise DataError(f"A row of {self._table.id} cannot be read: {error}") from None

    def records(self, rows: Sequence[bytes], source: bytes, tail: bytes) -> list[EncodedRow]:
        """Return records of a snapshot's rows.

        Args:
            source: the block that all of them share.
            tail: the payload's end.

        Raises:
            DataError: a row is none of the table, or a required column's value has no form.
        """
        table = self._table
        end = table.encoder.end(source, tail)
        found = self._together(rows, end)
        if found is not None:
            return found
        out: list[EncodedRow] = []
        for first in range(0, len(rows), _PIECE):
            piece = rows[first : first + _PIECE]
            found = self._together(piece, end) if len(piece) < len(rows) else None
            out += table.encoder.text_rows(self.texts(piece), table.route, source, tail) if found is None else found
        return out

    def images(self, rows: Sequence[bytes]) -> list[Encoded]:
        """Return keys and objects of a snapshot's rows. Raises DataError as `records`."""
        data = b"".join(rows)
        found = self._fused_for(data).images(data)
        if found is not None and len(found) == len(rows):
            return found
        image, width = self._table.encoder.image, len(self.characters)
        return [image(texts[:width], snapshot=True) for texts in self.texts(rows)]

    def _together(self, rows: Sequence[bytes], end: bytes) -> list[EncodedRow] | None:
        data = b"".join(rows)
        fused = self._fused_for(data)
        found = fused.records(data, self._table.route, "", end)
        return found if found is not None and len(found) == len(rows) else None

    def _fused_for(self, data: bytes) -> FusedRows:
        encoder, passed = self._table.encoder, self._passed_over
        if data.isascii():
            if self._ascii is None:
                self._ascii = encoder.fused(usual_rows([False] * len(self.characters), encoder.wanted_forms, passed), stream=False)
            return self._ascii
        if not any(mark in data for mark in SPECIAL):
            if self._usual is None:
                self._usual = encoder.fused(usual_rows(self.characters, encoder.wanted_forms, passed), stream=False)
            return self._usual
        if self._any is None:
            self._any = encoder.fused(any_rows(self.characters, encoder.wanted_forms, passed), stream=False)
        return self._any


def select_rows(
    connection: Connection, table: CapturedTable, *, part: str = "", statement: str | None = None, changes_pass: bool = False
) -> Iterator[list[bytes]]:
    """Yield raw rows of a table, or of a part of it, up to a batch's bounds.

    Args:
        part: SQL after the table's name that selects rows, with a leading space.
        statement: a SELECT that is read instead of the table.
        changes_pass: whether a table that has changed raises RetriableError; a statement of the user's is another matter.

    Raises:
        ServerError: the server refused, or it or the connection failed.
    """
    columns: Sequence[str] = table.selected
    source = quote_name(table.id.schema, table.id.table) + part
    if statement is not None:
        source = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        columns = _present_columns(table, connection.column_names(f"SELECT * FROM {source} LIMIT 0"))  # noqa: S608  # an override is the user's own
    names = ", ".join(columns)
    # the server says with the beginning of its answer whether it has the columns
    with retry_altered_table(table.id) if changes_pass and statement is None else nullcontext():
        result = connection.result(f"SELECT {names} FROM {source}", [False] * len(table.indexes))  # noqa: S608  # quoted names; an override is the user's own
    most = table.batch_rows
    while rows := result.packets(most, MAX_BYTES)[0]:
        yield rows
        del rows


def _present_columns(table: CapturedTable, present: Sequence[str]) -> list[str]:
    """Return what selects a table's columns from a statement's rows: NULL for those that the statement leaves out, as in Debezium
    (`JdbcConnection.rowToArray`)."""
    known = {name.lower() for name in present}
    names = [table.model.columns[index].name for index in table.indexes]
    return [shown if name.lower() in known else f"NULL AS {quote_name(name)}" for name, shown in zip(names, table.selected, strict=True)]


def table_start_us() -> int:
    """Return the time that rows show of a table whose reading begins now: Debezium's clock of a snapshot has whole seconds."""
    return int(time.time()) * 1_000_000


def snapshot_encoder(table: CapturedTable, position: EventPosition, ts_us: int) -> Encode[bytes]:
    """Return the function that makes records of a table's raw rows.

    Args:
        position: the position that source blocks show.
        ts_us: see `table_start_us`.
    """
    sources = {
        marker: table.block.render(
            ts_us, marker.value, position.file, position.pos, server_id=position.server_id, gtid=position.gtid, thread=position.thread
        )
        for marker in Marker
    }
    packets = PacketRows(table)
    return lambda rows, marker: packets.records(rows, sources[marker], tail("r", time.time_ns()))
