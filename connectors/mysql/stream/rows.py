"""Events with rows to encoded records: whole events at once where no single row needs a look.

`TableStream` reads a captured table's row images as texts. An update's second image may hold only what changed (``binlog_row_image``), or
differences of JSON documents: the first image has the rest. What neither has stays `UNCHANGED`, which records show as
`unavailable.value.placeholder`, as null, or as the type's zero.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from connect_py.api.record import EncodedRow
from connect_py.errors import FatalTaskError
from connectors.engine.encode.columnwise import Encoded
from connectors.engine.encode.fused import FusedRows
from connectors.engine.encode.plan import Text
from connectors.engine.envelope import KeyChangeRecords, tail
from connectors.engine.metadata_records import TransactionMonitor
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.plugins.post_processors import Fill
from connectors.engine.signal.taps import Taps
from connectors.mysql.binlog.codes import MalformedEventError
from connectors.mysql.binlog.columns import Meaning, event_rows
from connectors.mysql.binlog.events import Header, Rows
from connectors.mysql.binlog.rows import RowImages
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.stream.state import StreamState


class TableStream:
    """A captured table that a number of the log stands for. One function is made for each set of columns that images hold.

    Raises:
        MalformedEventError: the map has columns of unknown types.
    """

    __slots__ = ("_fused", "_images", "captured", "map")

    def __init__(self, captured: CapturedTable, map_: TableMap) -> None:
        if map_.problem is not None:
            raise MalformedEventError(map_.problem)
        self.captured = captured
        self.map = map_
        self._fused: FusedRows | None = None
        self._images: RowImages | None = None

    # -- as records --------------------------------------------------------------------------------------------------------------------

    def records(self, event: Rows, head: bytes, close: bytes) -> list[EncodedRow] | None:
        """Return all rows of an insert as records.

        Args:
            head: the source block up to the row's number.
            close: what follows it in the payload.

        Returns:
            None where they have to be read row by row.
        """
        fused = self.fused_for(event)
        if fused is None:
            return None
        captured = self.captured
        return fused.records(event.body, captured.route, ',"source":' + head.decode(), captured.encoder.closed(close))

    def encoded(self, event: Rows) -> list[Encoded]:
        """Return keys and objects of all images: one a row, of updates before and after. Raises as `images`, and DataError."""
        fused = self.fused_for(event)
        if fused is not None:
            found = fused.images(event.body)
            if found is not None and (event.kind != "u" or not len(found) % 2):
                return found
        return [self.captured.encoder.image(texts) for texts in self.texts(event)]

    def texts(self, event: Rows) -> list[list[Text]]:
        """Return the texts of which `encoded` makes JSON, of the columns that events have."""
        images = [texts for pair in self.pairs(event) for texts in pair] if event.kind == "u" else self.images(event)
        indexes = self.captured.indexes
        if len(indexes) == self.captured.model.width:
            return images
        return [[texts[index] for index in indexes] for texts in images]

    def fused_for(self, event: Rows) -> FusedRows | None:
        """Return the function for rows that are whole; None where values are to be filled in."""
        captured = self.captured
        if event.partial or (captured.fill is not None and event.kind != "d"):
            return None
        if not self.map.is_whole(event.present) or not self.map.is_whole(event.present_after):
            return None
        if self._fused is None:
            rows = event_rows(self.map.columns, self._meanings(), captured.indexes, captured.encoder.wanted_forms)
            self._fused = captured.encoder.fused(rows, stream=True)
        return self._fused

    def current_versions(self, event: Rows) -> Sequence[tuple[Rows, int]]:
        """Return the event's current versions, as `RowImages.current_versions`; the event whole where the table has no others.

        Raises as `images`."""
        return self._read().current_versions(event) if self.captured.model.versioned else ((event, sys.maxsize),)

    # -- as texts ----------------------------------------------------------------------------------------------------------------------

    def images(self, event: Rows) -> list[list[Text]]:
        """Return rows of an insert or a delete.

        Raises:
            FatalTaskError: the model has another number of columns.
            MalformedEventError: the event holds no such rows.
        """
        images = self._read().images(event)
        if event.kind == "c" and self.captured.fill is not None:
            return [self._filled(texts, self.captured.fill) for texts in images]
        return images

    def pairs(self, event: Rows) -> list[tuple[list[Text], list[Text]]]:
        """Return rows of an update, before and after. Raises as `images`."""
        pairs = self._read().pairs(event)
        if self.captured.fill is not None:
            pairs = [(old, self._filled(new, self.captured.fill)) for old, new in pairs]
        return pairs

    def _filled(self, texts: list[Text], fill: Fill) -> list[Text]:
        """Return texts with what is read again from the table."""
        indexes = self.captured.indexes
        found = fill([texts[index] for index in indexes])
        if found is None:
            return texts
        filled = list(texts)
        for index, text in zip(indexes, found, strict=True):
            filled[index] = text
        return filled

    def _read(self) -> RowImages:
        if self._images is None:
            self._images = RowImages(self.map, self._meanings())
        return self._images

    def _meanings(self) -> tuple[Meaning, ...]:
        width = self.captured.model.width
        if width != len(self.map.columns):
            raise FatalTaskError(
                f"Error processing row in {self.captured.id}, internal schema size {width}, but row size "
                f"{len(self.map.columns)} , restart connector with schema recovery mode."
            )
        return self.captured.meanings


class RowRecords:
    """Makes the records of rows. Used by one stream.

    Args:
        headers: of all records.
        state: where the stream is.

    Attributes:
        query: the statement that made the rows, where it is shown.
        monitor: counts the transaction's rows and names it in their records; None without transaction metadata.
        transaction: what it calls the transaction under way.
    """

    def __init__(
        self, config: MySqlConfig, state: StreamState, headers: tuple[tuple[str, str], ...], metrics: StreamingMetrics, taps: Taps
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._taps = taps
        self._skipped = config.skipped
        self._tombstones = config.flag("tombstones.on.delete")
        self._moved = KeyChangeRecords(self._tombstones, headers)
        self.query: str | None = None
        self.monitor: TransactionMonitor | None = None
        self.transaction = ""

    def block(self, captured: CapturedTable, header: Header) -> tuple[bytes, bytes]:
        """Return the text of the source blocks of an event's rows before and after a row's number."""
        state = self._state
        return captured.block.event(
            state.ts_us,
            "false",
            state.file,
            header.end - header.length,
            server_id=state.server_id,
            gtid=state.shown_gtid,
            thread=state.thread,
            query=self.query,
        )

    def truncate(self, captured: CapturedTable, header: Header) -> EncodedRow | None:
        """Return the record of a truncate; None where they are left out."""
        if "t" in self._skipped:
            return None
        head, end = self.block(captured, header)
        return captured.keyless_route, None, captured.encoder.truncate(b"%b0%b" % (head, end), tail("t", time.time_ns()))

    def append_records(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int | None:
        """Append the records of an event's rows but for the first `passed`.

        Returns:
            How many rows it has; None where such events are left out.

        Raises:
            MalformedEventError: it holds no such rows.
            ConnectError: a row has no record.
        """
        count = 0
        for part, length in table.current_versions(event):
            found = self._append_records(header, part, table, min(max(passed - count, 0), length), rows)
            count += found or 0
        return count or None

    def _append_records(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int | None:
        if table.captured.id == self._taps.signal_table:
            self._signals(event, table, passed)
        if event.kind in self._skipped:
            return None
        kind = event.kind
        if kind == "u":
            count = self._updates(header, event, table, passed, rows)
        elif kind == "c" and self.monitor is None:
            count = self._inserts(header, event, table, passed, rows)
        else:
            count = self._single(header, event, table, passed, rows)
        new = count - passed
        self._metrics.events(new, created=new if kind == "c" else 0, updated=new if kind == "u" else 0, deleted=new if kind == "d" else 0)
        self._metrics.behind((time.time_ns() // 1000 - self._state.ts_us) // 1000)
        return count

    def _signals(self, event: Rows, table: TableStream, passed: int) -> None:
        """Pass on rows of the signal table as signals, before they are encoded as the ordinary rows that they are too."""
        if event.kind != "u":
            for texts in table.images(event)[passed:]:
                self._taps.signal_row(event.kind, *texts[:3])

    # -- inserts and deletes -----------------------------------------------------------------------------------------------------------

    def _inserts(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int:
        captured = table.captured
        head, end = self.block(captured, header)
        made = table.records(event, head, end + b"," + tail("c", time.time_ns()))
        if made is None:
            return self._single(header, event, table, passed, rows)
        count = len(made)
        new = made[passed:] if passed else made
        if self._taps.watched == captured.id:
            for _, key, _ in new:
                self._taps.on_event(key)
        rows += new
        return count

    def _single(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int:
        """Append the records of inserts and deletes row by row."""
        captured, kind = table.captured, event.kind
        value, route = captured.encoder.value, captured.route
        head, end = self.block(captured, header)
        now_ns = time.time_ns()
        closing = tail(kind, now_ns)
        monitor, name = self.monitor, str(captured.id)
        watched = self._taps.on_event if self._taps.watched == captured.id else None
        images = table.encoded(event)
        for row, (key, shown) in enumerate(images[passed:], passed):
            source = b"%b%d%b" % (head, row, end)
            if watched is not None:
                watched(key)
            if monitor is not None:
                closing = tail(kind, now_ns, monitor.event(name, self.transaction))
            if kind == "c":
                rows.append((route, key, value(None, shown, source, closing)))
            else:
                rows.append((route, key, value(shown, None, source, closing)))
                if self._tombstones:
                    rows.append((route, key, None))
        return len(images)

    # -- updates -----------------------------------------------------------------------------------------------------------------------

    def _updates(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int:
        captured = table.captured
        value, route, skips = captured.encoder.value, captured.route, captured.encoder.skip_unchanged
        head, end = self.block(captured, header)
        now_ns = time.time_ns()
        closing = tail("u", now_ns)
        monitor, name = self.monitor, str(captured.id)
        watched = self._taps.on_event if self._taps.watched == captured.id else None
        images = table.encoded(event)
        texts: list[list[Text]] | None = None
        for at in range(2 * passed, len(images), 2):
            (old_key, old_row), (key, new_row) = images[at], images[at + 1]
            if skips and old_row == new_row:
                self._metrics.filtered += 1
                continue
            source = b"%b%d%b" % (head, at >> 1, end)
            if old_key != key and old_key is not None and key is not None:
                if texts is None:
                    texts = table.texts(event)
                self._split(captured, (*images[at], texts[at]), (*images[at + 1], texts[at + 1]), source, now_ns, rows)
                if watched is not None:
                    self._watch_split(watched, old_key, key)
                continue
            if watched is not None:
                watched(key)
            if monitor is not None:
                closing = tail("u", now_ns, monitor.event(name, self.transaction))
            rows.append((route, key, value(old_row, new_row, source, closing)))
        return len(images) >> 1

    def _watch_split(self, watched: Callable[[bytes | None], None], old: bytes, new: bytes) -> None:
        # an operation that is skipped makes no event, so that the window's row stays
        if "d" not in self._skipped:
            watched(old)
        if "c" not in self._skipped:
            watched(new)

    def _split(
        self,
        captured: CapturedTable,
        old: tuple[bytes | None, bytes, list[Text]],
        new: tuple[bytes | None, bytes, list[Text]],
        source: bytes,
        now_ns: int,
        rows: list[EncodedRow],
    ) -> None:
        """Append the records of a changed key: the old row's delete and tombstone, then the new row."""
        encoder, route, monitor, name = captured.encoder, captured.route, self.monitor, str(captured.id)

        def close(op: str) -> bytes:
            return tail(op, now_ns) if monitor is None else tail(op, now_ns, monitor.event(name, self.transaction))

        (old_key, old_row, old_texts), (key, new_row, new_texts) = old, new
        if "d" not in self._skipped:
            self._moved.delete(rows, route, encoder.key_text(new_texts), old_key, encoder.value(old_row, None, source, close("d")))
        if "c" not in self._skipped:
            self._moved.create(rows, route, encoder.key_text(old_texts), key, encoder.value(None, new_row, source, close("c")))
