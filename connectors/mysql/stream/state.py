"""Where the stream is in the log and in the current transaction, as offsets and source blocks show it. No I/O.

Outside a transaction an offset holds the end of the last event and the transactions that were read completely; inside one, the
transaction's beginning, the transactions before it, and the number of its handled events. A start inside a transaction reads it from its
beginning and skips the rows of as many events, and then as many rows of one event, as the offset counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.binlog.events import Gtid, Header
from connectors.mysql.position.gtid import GtidSet, Transactions
from connectors.mysql.position.offset import BinlogPosition, EventPosition, LoggedTransaction, MySqlOffset


@dataclass(slots=True)
class PendingOffset:
    """An offset whose text is not made yet: a row's, of which only that of a batch's last is wanted."""

    file: str
    pos: int
    gtids: Transactions | None
    ts_sec: int
    server_id: int
    events: int
    row: int

    def offset(self) -> MySqlOffset:
        """Return the offset."""
        gtids = None if self.gtids is None else str(self.gtids)
        return MySqlOffset(self.file, self.pos, gtids, self.ts_sec, self.server_id, self.events, self.row)


class StreamState:
    """The state of a stream.

    Args:
        stored: from where the stream was started.
        gtids: what the dump leaves out; None where it began at a file's position.

    Attributes:
        file: of the log that is read now.
        pos: where a start reads from.
        events: of the transaction under way that were handled, its BEGIN being the first.
        inside: whether a transaction is under way.
        gtid: of the transaction under way.
        shown_gtid: the same as a text.
        thread: that made the transaction under way.
        ts_us: when the last event happened, microseconds since 1970.
        row: of the last event with rows; Debezium shows it for statements too.
    """

    def __init__(self, stored: MySqlOffset, gtids: Transactions | None) -> None:
        self.file, self.pos = stored.file, stored.pos
        self.events = 0
        self.inside = False
        self.gtid: Gtid | None = None
        self.shown_gtid: str | None = None
        self.thread: int | None = None
        self.server_id = stored.server_id
        self.ts_us = (stored.ts_sec or 0) * 1_000_000
        self.row = 0
        self._gtids = self._began = gtids
        self._begin_of_event = self._end_of_event = stored.pos
        self._last_gtid: Gtid | None = None
        self._last_thread: int | None = None

    # -- what is said of it ------------------------------------------------------------------------------------------------------------

    def pending_offset(self, events: int, row: int) -> PendingOffset:
        """Return the current position as an offset, with the given numbers of handled events and of handled rows of the next event."""
        return PendingOffset(self.file, self.pos, self._gtids, self.ts_us // 1_000_000, self.server_id, events, row)

    @property
    def current_position(self) -> MySqlOffset | None:
        """The position after the last event; None inside a transaction."""
        return None if self.inside else self.pending_offset(0, 0).offset()

    @property
    def offset(self) -> MySqlOffset:
        """The offset of the row that is being read; between rows, of the last row."""
        return self.pending_offset(self.events if self.inside else 0, self.row + 1 if self.inside else 0).offset()

    def position(self, *, last_thread: bool = False) -> EventPosition:
        """Return the last event, as source blocks show it.

        Args:
            last_thread: whether the thread of a transaction that has ended is still shown.
        """
        gtid = None if self._last_gtid is None else str(self._last_gtid)
        return EventPosition(self.file, self._begin_of_event, self.server_id, gtid, self._last_thread if last_thread else self.thread)

    @property
    def transaction(self) -> LoggedTransaction:
        """The transaction under way, or where the next one begins."""
        gtid = self.shown_gtid if self.gtid is not None and self.gtid.mark == ":" else None
        return LoggedTransaction(gtid, self.file, self.pos, self.ts_us // 1_000_000)

    @property
    def received(self) -> BinlogPosition:
        """The position up to which the log was read."""
        return BinlogPosition(self.file, self._end_of_event)

    @property
    def shown(self) -> GtidSet | None:
        """The transactions that were read so far, the current one included; None where they have no names."""
        found, began = self._gtids, self._began
        if not isinstance(found, GtidSet) or not isinstance(began, GtidSet):
            return None
        if self.gtid is not None:
            found = found.with_gtid(self.gtid.source, self.gtid.number)
        return found.minus(began)

    # -- what happens to it ------------------------------------------------------------------------------------------------------------

    def on_header(self, header: Header) -> None:
        """Note the next event of the log."""
        if header.end:
            self._begin_of_event, self._end_of_event = header.end - header.length, header.end
        self.server_id = header.server_id

    def on_heartbeat(self, file: str, position: int) -> None:
        """Note that everything before this position was read."""
        if file == self.file:
            self._end_of_event = max(self._end_of_event, position)

    def rotate(self, file: str, position: int) -> None:
        """Continue in another file of the log."""
        self.file, self.pos = file, position
        self._begin_of_event = self._end_of_event = position

    def forget_end(self) -> None:
        """Forget the end of the log: a new dump's begin is known when the server has sent it."""
        self._end_of_event = 0

    @property
    def misses_gtids(self) -> bool:
        """Whether offsets have no transactions' names."""
        return self._gtids is None

    def learn_gtids(self, read: GtidSet | None) -> None:
        """Name in offsets, from here on, what was read; None for no longer. Of no effect where the dump itself began by such names."""
        if self._began is None:
            self._gtids = read

    def name(self, gtid: Gtid) -> None:
        """Set the next transaction's name."""
        self.complete()
        self.gtid = self._last_gtid = gtid
        self.shown_gtid = str(gtid)
        if gtid.commit_micros:
            self.ts_us = gtid.commit_micros

    def complete(self) -> None:
        """Count the current transaction as read."""
        if self.gtid is not None and self._gtids is not None:
            self._gtids = self._gtids.with_gtid(self.gtid.source, self.gtid.number)

    def end_name(self) -> None:
        """Forget the transaction's name: none is under way."""
        self.gtid = self.shown_gtid = None

    def begin(self, pos: int, thread: int | None) -> None:
        """Begin a transaction at a position."""
        self.pos, self.events, self.inside = pos, 0, True
        self.thread = self._last_thread = thread

    def commit(self, end: int) -> None:
        """End a transaction at a position."""
        self.complete()
        self.pos, self.events, self.inside = end, 0, False
        self.thread = None
        self.end_name()

    def passed(self, end: int, *, counts: bool = True) -> None:
        """Note that an event was handled; 0 for one that is not in the log. Events that hold others do not count in a transaction."""
        if self.inside:
            self.events += counts
        elif end:
            self.pos = end
