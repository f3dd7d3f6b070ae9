"""A captured table behind a number of the log: its rows' images as texts, completed where the log leaves values out.

An update's second image may hold only what changed (``binlog_row_image``), or differences of JSON documents: the first image has the rest.
What neither has stays `UNCHANGED`, which records show as `unavailable.value.placeholder`, as null, or as the type's zero.
"""

from __future__ import annotations

from connect_py.api.record import EncodedRow
from connect_py.errors import FatalTaskError
from connectors.engine.encode.fused_rows import FusedRows
from connectors.engine.encode.slow import Encoded
from connectors.engine.encode.texts import UNCHANGED, Text
from connectors.engine.plugins.reselect import Fill
from connectors.mysql.binlog.bodies import Rows
from connectors.mysql.binlog.columns import Meaning
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.fused import event_rows
from connectors.mysql.binlog.rows import (
    PartialReader,
    Reader,
    partial_row_reader,
    read_images,
    read_pairs,
    read_partial_pairs,
    row_reader,
)
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.stream.versions import present_rows


class TableStream:
    """See the module. One function is made for each set of columns that images hold.

    Raises:
        MalformedEventError: the map has columns of unknown types.
    """

    __slots__ = ("_fused", "_partial_readers", "_readers", "captured", "map")

    def __init__(self, captured: CapturedTable, map_: TableMap) -> None:
        if map_.problem is not None:
            raise MalformedEventError(map_.problem)
        self.captured = captured
        self.map = map_
        self._fused: FusedRows | None = None
        self._readers: dict[bytes, Reader] = {}
        self._partial_readers: dict[bytes, PartialReader] = {}

    # -- as records --------------------------------------------------------------------------------------------------------------------

    def records(self, event: Rows, head: bytes, close: bytes) -> list[EncodedRow] | None:
        """All rows of an insert as records.

        Args:
            head: the source block up to the row's number.
            close: what follows it in the payload.

        Returns:
            None where they have to be read row by row.
        """
        fused = self._fused_for(event)
        if fused is None:
            return None
        captured = self.captured
        return fused.records(event.body, captured.route, ',"source":' + head.decode(), captured.encoder.closed(close))

    def encoded(self, event: Rows) -> list[Encoded]:
        """Keys and objects of all images: one a row, of updates before and after. Raises as `images`, and DataError."""
        fused = self._fused_for(event)
        if fused is not None:
            found = fused.images(event.body)
            if found is not None and (event.kind != "u" or not len(found) % 2):
                return found
        return [self.captured.encoder.image(texts) for texts in self.texts(event)]

    def texts(self, event: Rows) -> list[list[Text]]:
        """The texts behind `encoded`, of the columns that events have."""
        images = [texts for pair in self.pairs(event) for texts in pair] if event.kind == "u" else self.images(event)
        places = self.captured.places
        if len(places) == self.captured.model.width:
            return images
        return [[texts[place] for place in places] for texts in images]

    def _fused_for(self, event: Rows) -> FusedRows | None:
        """The function for rows that are whole; None where values are to be filled in."""
        captured = self.captured
        if event.partial or (captured.fill is not None and event.kind != "d"):
            return None
        if not self._is_whole(event.present) or not self._is_whole(event.present_after):
            return None
        if self._fused is None:
            rows = event_rows(self.map.columns, self._meanings(), captured.places, captured.encoder.wanted_forms)
            self._fused = captured.encoder.fused(rows, stream=True)
        return self._fused

    def present_rows(self, event: Rows) -> list[tuple[Rows, int]]:
        """See `present_rows`. Raises as `images`."""
        return present_rows(event, self._reader(event.present), self._reader(event.present_after))

    # -- as texts ----------------------------------------------------------------------------------------------------------------------

    def images(self, event: Rows) -> list[list[Text]]:
        """Rows of an insert or a delete.

        Raises:
            FatalTaskError: the model has another number of columns.
            MalformedEventError: the event holds no such rows.
        """
        images = read_images(self._reader(event.present), event.body)
        if event.kind == "c" and self.captured.fill is not None:
            return [self._filled(texts, self.captured.fill) for texts in images]
        return images

    def pairs(self, event: Rows) -> list[tuple[list[Text], list[Text]]]:
        """Rows of an update, before and after. Raises as `images`."""
        before = self._reader(event.present)
        if event.partial:
            after = self._partial_readers.get(event.present_after)
            if after is None:
                after = self._partial_readers[event.present_after] = partial_row_reader(
                    self.map.columns, self._meanings(), event.present_after
                )
            pairs = read_partial_pairs(before, after, event.body)
        else:
            pairs = read_pairs(before, self._reader(event.present_after), event.body)
        if not self._is_whole(event.present_after):
            pairs = [(old, [was if text is UNCHANGED else text for was, text in zip(old, new, strict=True)]) for old, new in pairs]
        if self.captured.fill is not None:
            pairs = [(old, self._filled(new, self.captured.fill)) for old, new in pairs]
        return pairs

    def _filled(self, texts: list[Text], fill: Fill) -> list[Text]:
        """With what is read again from the table."""
        places = self.captured.places
        found = fill([texts[place] for place in places])
        if found is None:
            return texts
        filled = list(texts)
        for place, text in zip(places, found, strict=True):
            filled[place] = text
        return filled

    def _is_whole(self, present: bytes) -> bool:
        return int.from_bytes(present, "little").bit_count() >= len(self.map.columns)

    def _reader(self, present: bytes) -> Reader:
        found = self._readers.get(present)
        if found is None:
            found = self._readers[present] = row_reader(self.map.columns, self._meanings(), present)
        return found

    def _meanings(self) -> tuple[Meaning, ...]:
        width = self.captured.model.width
        if width != len(self.map.columns):
            raise FatalTaskError(
                f"Error processing row in {self.captured.id}, internal schema size {width}, but row size "
                f"{len(self.map.columns)} , restart connector with schema recovery mode."
            )
        return self.captured.meanings
