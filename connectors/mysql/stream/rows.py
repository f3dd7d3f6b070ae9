"""Events with rows to encoded records (mysql.md §7.4): whole events at once where nothing needs a look at single rows."""

from __future__ import annotations

import time
from collections.abc import Callable

from connect_py.api.record import EncodedRow
from connectors.engine.encode.texts import Text
from connectors.engine.envelope import tail
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.moved_rows import MovedRows
from connectors.engine.transactions import TransactionMonitor
from connectors.mysql.binlog.bodies import Header, Rows
from connectors.mysql.config import MySqlConfig
from connectors.mysql.schema.captured import CapturedTable
from connectors.mysql.stream.state import StreamState
from connectors.mysql.stream.table_stream import TableStream
from connectors.mysql.stream.taps import Taps


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
        self._moved = MovedRows(self._tombstones, headers)
        self.query: str | None = None
        self.monitor: TransactionMonitor | None = None
        self.transaction = ""

    def block(self, captured: CapturedTable, header: Header) -> tuple[bytes, bytes]:
        """What the source blocks of an event's rows say before and behind a row's number."""
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
        """The record of a truncate; None where they are left out."""
        if "t" in self._skipped:
            return None
        head, end = self.block(captured, header)
        return captured.keyless_route, None, captured.encoder.truncate(b"%b0%b" % (head, end), tail("t", time.time_ns()))

    def take(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int | None:
        """Append the records of an event's rows but for the first `passed`.

        Returns:
            How many rows it has; None where such events are left out.

        Raises:
            MalformedEventError: it holds no such rows.
            ConnectError: a row has no record.
        """
        if not table.captured.model.versioned:
            return self._take(header, event, table, passed, rows)
        count = 0
        for part, length in table.present_rows(event):
            found = self._take(header, part, table, min(max(passed - count, 0), length), rows)
            count += found or 0
        return count or None

    def _take(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int | None:
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
        """Take rows of the signal table for signals, before they are encoded as the ordinary rows that they are too."""
        if event.kind != "u":
            for texts in table.images(event)[passed:]:
                self._taps.row(event.kind, texts)

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
        """Inserts and deletes row by row."""
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
        """A changed key: the old row's delete and tombstone, then the new row."""
        encoder, route, monitor, name = captured.encoder, captured.route, self.monitor, str(captured.id)

        def close(op: str) -> bytes:
            return tail(op, now_ns) if monitor is None else tail(op, now_ns, monitor.event(name, self.transaction))

        (old_key, old_row, old_texts), (key, new_row, new_texts) = old, new
        if "d" not in self._skipped:
            self._moved.delete(rows, route, encoder.key_text(new_texts), old_key, encoder.value(old_row, None, source, close("d")))
        if "c" not in self._skipped:
            self._moved.create(rows, route, encoder.key_text(old_texts), key, encoder.value(None, new_row, source, close("c")))
