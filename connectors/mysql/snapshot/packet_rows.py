"""Rows of a result to records: many at a time, from the bytes that the server sent to those that Kafka gets."""

from __future__ import annotations

from collections.abc import Sequence

from connect_py.api.record import EncodedRow
from connect_py.errors import DataError
from connectors.engine.encode.fused_rows import FusedRows
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.server.fused_text import any_rows, usual_rows
from connectors.mysql.server.text_rows import SPECIAL, MalformedRowError, TextRow, row_function
from connectors.mysql.types.values import is_text

#: Rows that are taken the careful way together when one of them is unusual.
_PIECE = 64


class PacketRows:
    """Makes records of the rows that a SELECT of a table's columns gives. Keeps nothing between calls but its functions."""

    def __init__(self, table: CapturedTable) -> None:
        #: Of each column, whether its values are characters.
        self.characters = [is_text(table.model.columns[place]) for place in table.places]
        self._table = table
        self._read_row = row_function(self.characters)
        self._ascii: FusedRows | None = None
        self._usual: FusedRows | None = None
        self._any: FusedRows | None = None

    def texts(self, row: bytes) -> TextRow:
        """A row's values, one a column of events. Raises DataError: it is no such row."""
        try:
            return self._read_row(row, row.decode("latin-1"))
        except (MalformedRowError, IndexError) as error:
            raise DataError(f"A row of {self._table.id} cannot be read: {error}") from None

    def records(self, rows: Sequence[bytes], source: bytes, tail: bytes) -> list[EncodedRow]:
        """Records of a snapshot's rows.

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
            out += table.encoder.text_rows(map(self.texts, piece), table.route, source, tail) if found is None else found
        return out

    def _together(self, rows: Sequence[bytes], end: bytes) -> list[EncodedRow] | None:
        data = b"".join(rows)
        fused = self._fused_for(data)
        found = fused.records(data, self._table.route, "", end)
        return found if found is not None and len(found) == len(rows) else None

    def _fused_for(self, data: bytes) -> FusedRows:
        encoder = self._table.encoder
        if data.isascii():
            if self._ascii is None:
                self._ascii = encoder.fused(usual_rows([False] * len(self.characters), encoder.wanted_forms), stream=False)
            return self._ascii
        if not any(mark in data for mark in SPECIAL):
            if self._usual is None:
                self._usual = encoder.fused(usual_rows(self.characters, encoder.wanted_forms), stream=False)
            return self._usual
        if self._any is None:
            self._any = encoder.fused(any_rows(self.characters, encoder.wanted_forms), stream=False)
        return self._any
