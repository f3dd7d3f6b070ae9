"""The stream of changes: pgoutput messages to encoded records, with the offset of the last one (postgres.md §9 to §13).

Owned by the task's thread: it reads the socket, decodes, encodes and answers the server's pings; there is no queue in between. What the
server may discard is only what the offsets topic holds (`acknowledge`), never what was merely read.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from struct import Struct

import psycopg

from connect_py.api import Route
from connect_py.api.record import EncodedRow, KeyText
from connect_py.errors import DataError
from connectors.engine.encode.table import KeyChange
from connectors.engine.envelope import tail
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.pending import PendingRows
from connectors.postgres import pgoutput
from connectors.postgres.connection import Connection
from connectors.postgres.errors import ServerError
from connectors.postgres.messages import COLLECTION, MessageEncoder
from connectors.postgres.offset import PostgresOffset
from connectors.postgres.open_transactions import SegmentedMessages
from connectors.postgres.resume import ResumePoint
from connectors.postgres.tables import CapturedTable
from connectors.postgres.taps import Taps

log = logging.getLogger(__name__)

#: As in snapshot.py.
MAX_ROWS = 2000
MAX_BYTES = 4_000_000

_LSN = Struct(">q")
_TYPES = {0x49: "INSERT", 0x55: "UPDATE", 0x44: "DELETE", 0x54: "TRUNCATE", 0x4D: "MESSAGE"}
_COMMIT = 0x43
_OFFSET_TYPES = {**_TYPES, _COMMIT: "COMMIT"}
#: How many of the latest transactions are remembered for a chunk's reader, which must not read a moment before one of them.
RECENT_TRANSACTIONS = 4096


class TableStream:
    """A captured table in the stream, with its source block of the present transaction. `Taps` sets its functions."""

    __slots__ = ("captured", "delete", "insert", "relation", "route", "source", "split", "transaction", "update")

    insert: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes]]
    update: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes, bytes | None]]
    delete: Callable[[bytes, int, bytes, bytes], tuple[bytes | None, bytes]]
    split: Callable[[bytes, int, bytes, bytes, bytes], KeyChange]

    def __init__(self, captured: CapturedTable, relation: pgoutput.Relation) -> None:
        self.captured = captured
        self.relation = relation
        self.route = captured.route
        self.transaction = -1
        self.source: Callable[[int], bytes] = lambda _: b""


#: Finds the captured table of a RELATION message, None for one that is not captured. Raises ConnectError.
Resolver = Callable[[pgoutput.Relation, CapturedTable | None], CapturedTable | None]


class ChangeStream:
    """One replication connection and the state of its decoding.

    Args:
        connection: on which START_REPLICATION has been answered.
        stored: from where the stream was started.
        resolve: looks up tables.
        messages: encodes logical messages, None to leave them out.
        skipped: operations of `skipped.operations`.
        tombstones: whether a delete is followed by a null value.
        status_seconds: how often the server hears from us.
        headers: the context headers.
        metrics: where events are counted.
        pending: takes the rows; what others put there goes with them.
        taps: what listens to tables.
        on_structure: told of every captured table's structure as the stream begins to use it.
        xmin: the slot's, for `source.xmin`; asked at the begin of each transaction.
        on_failure: ``event.processing.failure.handling.mode``: what becomes of an event of which no record can be made.
        segments: between the connection and the stream where the server sends transactions that are open.

    Attributes:
        until: the stream stops before the first transaction that committed here or later; None lets it go on.
    """

    def __init__(
        self,
        connection: Connection,
        stored: PostgresOffset,
        resolve: Resolver,
        *,
        messages: MessageEncoder | None,
        skipped: frozenset[str],
        tombstones: bool,
        status_seconds: float,
        headers: tuple[tuple[str, str], ...],
        pending: PendingRows,
        taps: Taps,
        on_structure: Callable[[CapturedTable], None] = lambda _: None,
        metrics: StreamingMetrics | None = None,
        segments: SegmentedMessages | None = None,
        xmin: Callable[[], int | None] = lambda: None,
        on_failure: str = "fail",
    ) -> None:
        self._pending = pending
        self._taps = taps
        self._on_structure = on_structure
        self._read_xmin = xmin
        self._xmin: int | None = None
        self._on_failure = on_failure
        self._recent: deque[int] = deque(maxlen=RECENT_TRANSACTIONS)
        self._settled: tuple[int, int | None, int] | None = None
        self._connection = connection
        self._segments = segments
        self._get = segments.get if segments is not None else connection.pgconn.get_copy_data
        self._resolve = resolve
        self._messages = messages
        self._skipped = skipped
        self._tombstones = tombstones
        self._status_seconds = status_seconds
        self._headers = headers
        self._metrics = metrics or StreamingMetrics("postgres", "")
        self._tables: dict[bytes, TableStream | None] = {}
        self._resume: ResumePoint | None = ResumePoint(stored)
        self._skip_all = False
        self._skip_known = False
        # the present transaction
        self._transaction = 0
        self._xid: int | None = None
        self._commit_us = 0
        self._origin: tuple[str, int] | None = None
        self._last_commit = stored.lsn_commit
        self._lsn = 0
        self._events = 0
        self._inside = False
        self.until: int | None = None
        self._beyond: bytes | None = None
        # what the server hears, and what it says
        self._looked_through = 0
        self._received = 0
        self._acknowledged = 0
        self._next_status = time.monotonic() + status_seconds

    def acknowledge(self, lsn: int) -> None:
        """The offsets topic holds everything before `lsn`: tell the server with the next status. Never goes back."""
        if lsn > self._acknowledged:
            self._acknowledged = lsn
            self.send_status()

    @property
    def received(self) -> int:
        """Up to where the server's log was read."""
        return max(self._received, self._lsn, self._last_commit or 0)

    @property
    def has_reached_end(self) -> bool:
        """Whether everything before `until` was read."""
        return self.until is not None and (self._beyond is not None or (not self._inside and self._looked_through >= self.until))

    def send_status(self) -> None:
        """A standby status update. Raises ServerError."""
        self._next_status = time.monotonic() + self._status_seconds
        now_us = time.time_ns() // 1000
        message = pgoutput.encode_status(max(self.received, self._acknowledged), self._acknowledged, now_us)
        self._connection.put_copy_data(message)

    def keep_alive(self) -> None:
        """Send a status when it is due. Raises ServerError."""
        if time.monotonic() >= self._next_status:
            self.send_status()

    def close(self, *, say_goodbye: bool) -> None:
        """Close the connection, after a last status when the server is there to hear it."""
        if say_goodbye:
            try:
                self.send_status()
            except ServerError as error:
                log.debug("The last status did not reach the server: %s", error)
        if self._segments is not None:
            self._segments.close()
        self._connection.close()

    def tap(self) -> None:
        """What listens to tables has changed."""
        for table in self._tables.values():
            if table is not None:
                self._taps.apply(table.captured.id, table.captured.encoder, len(table.relation.columns), table)

    @property
    def settled(self) -> PostgresOffset | None:
        """Where the source stands behind the last whole transaction; None inside of one, and before the first."""
        if self._settled is None:
            return None
        end, xid, commit_us = self._settled
        return PostgresOffset(
            lsn=end, tx_id=xid, ts_us=commit_us, lsn_proc=end, lsn_commit=end, message_type=_OFFSET_TYPES[_COMMIT], xmin=self._xmin
        )

    @property
    def quiet(self) -> PostgresOffset | None:
        """Where the source stands although nothing of it changed: behind what the server says it has looked through. None inside of a
        transaction, and before the server said anything.

        The server sends transactions in the order of their commits: what committed before this place was sent before the server named it.
        """
        end = max(self._looked_through, self._settled[0] if self._settled else 0)
        if self._inside or not end:
            return None
        return PostgresOffset(
            lsn=end,
            tx_id=self._xid,
            ts_us=self._commit_us or time.time_ns() // 1000,
            lsn_proc=end,
            lsn_commit=end,
            message_type=_OFFSET_TYPES[_COMMIT],
            xmin=self._xmin,
        )

    @property
    def place(self) -> tuple[int | None, int | None]:
        """The end of the last whole transaction, and the position of the last event."""
        return self._last_commit, self._lsn or self._last_commit

    @property
    def open_transactions(self) -> tuple[int, int, int]:
        """How many large ones are open, and their bytes here in memory and in files."""
        return self._segments.sizes if self._segments is not None else (0, 0, 0)

    def recent_transactions(self) -> frozenset[int]:
        """Numbers of the transactions that were shown last."""
        return frozenset(self._recent)

    def read(self, seconds: float) -> PostgresOffset | None:
        """Put records of what the server sends to the pending ones, up to a batch's bounds; waits up to `seconds` for the first one.

        Returns:
            The offset of the last record's event; a batch ends between two events. None when no event made a record.

        Raises:
            ServerError: the connection or the server failed; open a new stream from the last offset.
            ConnectError: a record cannot be made.
        """
        try:
            return self._read(seconds)
        except psycopg.Error:
            raise self._connection.copy_failed() from None

    def _read(self, seconds: float) -> PostgresOffset | None:
        rows = self._pending.rows
        size = 0
        last: tuple[int, int, int, int | None, int, int | None] | None = None
        deadline = time.monotonic() + seconds
        get = self._get
        unpack = _LSN.unpack_from
        tables = self._tables
        skip_inserts, skip_deletes = "c" in self._skipped, "d" in self._skipped
        append = rows.append
        updates = deletes = 0  # inserts are what is left, so that they cost nothing
        others = len(rows) - self._pending.beside
        now_ns = time.time_ns()
        created, updated, deleted = tail("c", now_ns), tail("u", now_ns), tail("d", now_ns)
        if self._beyond is not None:
            if self.until is not None:
                return None
            message, self._beyond = self._beyond, None
            self._begin(pgoutput.decode_begin(message), unpack(message, 1)[0])
        while size < MAX_BYTES and len(rows) < MAX_ROWS:
            length, data = get(1)
            if length <= 0:
                if length < 0:
                    self._connection.end_copy()
                    raise ServerError("08006", "the server ended the stream")
                self._connection.consume_input()
                length, data = get(1)
                now_ns = time.time_ns()
                created, updated, deleted = tail("c", now_ns), tail("u", now_ns), tail("d", now_ns)
                if length <= 0:
                    if length < 0:
                        continue
                    self.keep_alive()
                    left = deadline - time.monotonic()
                    if rows or left <= 0:
                        break
                    self._connection.wait_readable(min(left, self._status_seconds))
                    continue
            message = bytes(data)
            if message[0] != 0x77:
                if message[0] == 0x6B:
                    self._answer(message)
                continue
            kind = message[25]
            if kind in _TYPES:
                lsn = unpack(message, 1)[0]
                if lsn == self._lsn:
                    self._events += 1
                else:
                    self._lsn = lsn
                    self._events = 1
                if self._skip_all or (self._skip_known and self._is_known(lsn)):
                    continue
                before = len(rows)
                try:
                    table = tables.get(message[26:30])
                    if table is not None and kind in _ROW_KINDS:
                        if table.transaction != self._transaction:
                            self._enter(table)
                        source = table.source(lsn)
                        if kind == 0x49:
                            if not skip_inserts:
                                key, value = table.insert(message, 30, source, created)
                                append((table.route, key, value))
                                size += len(value)
                            elif self._taps.signal_table == table.captured.id:
                                table.insert(message, 30, source, created)
                        elif kind == 0x55:
                            key, value, old_key = table.update(message, 30, source, updated)
                            if value:
                                if "u" not in self._skipped:
                                    append((table.route, key, value))
                                    size += len(value)
                                    updates += 1
                            elif old_key is None:
                                self._metrics.filtered += 1  # nothing of it changed
                            else:
                                size += self._split(rows, table, message, source, deleted, created)
                                others += len(rows) - before
                                self._metrics.events(2, created=1, deleted=1)
                        elif not skip_deletes:
                            key, value = table.delete(message, 30, source, deleted)
                            append((table.route, key, value))
                            if self._tombstones:
                                append((table.route, key, None))
                                others += 1
                            size += len(value)
                            deletes += 1
                    elif kind == 0x54:
                        self._truncate(rows, message, lsn, now_ns)
                        others += len(rows) - before
                        self._metrics.seen += len(rows) - before
                    elif kind == 0x4D:
                        self._message(rows, message, lsn, now_ns)
                        others += len(rows) - before
                        self._metrics.seen += len(rows) - before
                    else:
                        self._metrics.filtered += 1
                except DataError as error:
                    del rows[before:]
                    self._bad_event(error, lsn)
                if len(rows) > before:
                    last = (lsn, self._events, kind, self._xid, self._commit_us, self._last_commit)
            elif kind == 0x42:
                begin = pgoutput.decode_begin(message)
                if self.until is not None and begin.final_lsn >= self.until:
                    self._beyond = message
                    break
                self._begin(begin, unpack(message, 1)[0])
            elif kind == _COMMIT:
                if self._commit(pgoutput.decode_commit(message)):
                    last = (self._last_commit or 0, 0, _COMMIT, self._xid, self._commit_us, self._last_commit)
            elif kind == 0x52:
                self._on_relation(message)
            elif kind == 0x4F:
                origin = pgoutput.decode_origin(message)
                self._origin = (origin.name, origin.lsn)
        self._received = self.received
        if time.monotonic() >= self._next_status:
            self.send_status()
        if last is None:
            return None
        lsn, events, kind, xid, commit_us, last_commit = last
        seen = len(rows) - others - self._pending.beside
        self._metrics.events(seen, created=seen - updates - deletes, updated=updates, deleted=deletes)
        self._metrics.behind((time.time_ns() // 1000 - commit_us) // 1000)
        self._metrics.position, self._metrics.last_transaction = {"lsn": lsn}, xid
        return PostgresOffset(
            lsn=lsn,
            tx_id=xid,
            ts_us=commit_us,
            lsn_proc=lsn,
            lsn_commit=last_commit,
            message_type=_OFFSET_TYPES[kind],
            events_processed=events,
            xmin=self._xmin,
        )

    def _bad_event(self, error: DataError, lsn: int) -> None:
        """An event of which no record can be made: it fails the task, or is left out, as the mode says."""
        if self._on_failure not in ("warn", "skip", "ignore"):
            raise error
        level = logging.WARNING if self._on_failure == "warn" else logging.DEBUG
        log.log(level, "Error while processing event at offset {lsn=%d, txId=%s}; it is left out: %s", lsn, self._xid, error)

    def _begin(self, begin: pgoutput.Begin, lsn: int) -> None:
        self._transaction += 1
        self._inside = True
        self._recent.append(begin.xid)
        self._settled = None
        self._xid = begin.xid
        self._commit_us = begin.commit_us
        self._xmin = self._read_xmin()
        self._origin = None
        self._lsn = self._events = 0
        if self._resume is not None:
            self._skip_all = self._resume.is_transaction_known(begin.final_lsn)
            if not self._skip_all:
                self._skip_known = self._resume.is_partly_known(begin.xid)
                if not self._skip_known:
                    self._resume = None
        if self._taps.monitor is not None and not self._skip_all:
            row = self._taps.monitor.begin(str(begin.xid), f"{begin.xid}:{lsn}", begin.commit_us // 1000)
            if row is not None:
                self._pending.add(row)

    def _commit(self, commit: pgoutput.Commit) -> bool:
        """Returns whether a record was made of it."""
        if self._resume is not None and not self._skip_all:
            self._resume = None
        known = self._skip_all
        self._inside = self._skip_all = self._skip_known = False
        self._metrics.transactions += 1
        end = self._last_commit = max(commit.end_lsn, self._last_commit or 0)
        if known:
            return False
        self._settled = (end, self._xid, self._commit_us)
        if self._taps.monitor is None:
            return False
        row = self._taps.monitor.end(f"{self._xid}:{end}", commit.commit_us // 1000)
        if row is not None:
            self._pending.add(row)
        return row is not None

    def _is_known(self, lsn: int) -> bool:
        if self._resume is not None and self._resume.is_event_known(lsn, self._events):
            return True
        self._skip_known = False
        self._resume = None
        return False

    def _enter(self, table: TableStream) -> None:
        """Give a table the source block of the present transaction."""
        name, lsn = self._origin or (None, None)
        table.source = table.captured.block.transaction(self._commit_us, self._xid, self._last_commit, name, lsn, xmin=self._xmin)
        table.transaction = self._transaction

    def _split(self, rows: list[EncodedRow], table: TableStream, message: bytes, source: bytes, deleted: bytes, created: bytes) -> int:
        """A changed key: the old row's delete and tombstone, then the new row (postgres.md §12.3). Returns the bytes added."""
        change = table.split(message, 30, source, deleted, created)
        route = table.route
        size = 0
        if "d" not in self._skipped:
            headers = (("__debezium.newkey", KeyText(change.new_key_text)), *self._headers)
            to = Route(route.topic, route.key_schema, route.value_schema, headers)
            rows.append((to, change.old_key, change.delete_value))
            if self._tombstones:
                rows.append((to, change.old_key, None))
            size += len(change.delete_value)
        if "c" not in self._skipped:
            headers = (("__debezium.oldkey", KeyText(change.old_key_text)), *self._headers)
            to = Route(route.topic, route.key_schema, route.value_schema, headers)
            rows.append((to, change.new_key, change.create_value))
            size += len(change.create_value)
        return size

    def _truncate(self, rows: list[EncodedRow], message: bytes, lsn: int, now_ns: int) -> None:
        for oid in pgoutput.decode_truncate(message).relations:
            table = self._tables.get(oid.to_bytes(4, "big"))
            if table is not None:
                if table.captured.id == self._taps.watched:
                    self._taps.on_truncate()
                if "t" in self._skipped:
                    continue
                if table.transaction != self._transaction:
                    self._enter(table)
                block = b"null"
                if self._taps.monitor is not None:
                    block = self._taps.monitor.event(str(table.captured.id), self._taps.shown_transaction(message))
                value = table.captured.encoder.truncate(table.source(lsn), tail("t", now_ns, block))
                rows.append((table.captured.keyless_route, None, value))

    def _message(self, rows: list[EncodedRow], message: bytes, lsn: int, now_ns: int) -> None:
        if self._messages is None:
            return
        decoded = pgoutput.decode_message(message)
        if not decoded.transactional:
            self._xid, self._commit_us, self._xmin = None, now_ns // 1000, self._read_xmin()
            # outside of any transaction: its own position is complete at once
            self._last_commit = max(lsn, self._last_commit or 0)
        if not self._messages.is_wanted(decoded):
            return
        block = b"null"
        if self._taps.monitor is not None and decoded.transactional:
            block = self._taps.monitor.event(COLLECTION, self._taps.shown_transaction(message))
        last_commit = self._last_commit
        row = self._messages.encode(
            decoded, lsn=lsn, xid=self._xid, ts_us=self._commit_us, last_commit=last_commit, now_ns=now_ns, block=block, xmin=self._xmin
        )
        rows.append(row)

    def _on_relation(self, message: bytes) -> None:
        relation = pgoutput.decode_relation(message)
        key = message[26:30]
        known = self._tables.get(key)
        captured = self._resolve(relation, known.captured if known else None)
        if captured is None:
            self._tables[key] = None
        elif known is None or known.captured is not captured:
            table = self._tables[key] = TableStream(captured, relation)
            self._taps.apply(captured.id, captured.encoder, len(relation.columns), table)
            self._on_structure(captured)

    def _answer(self, message: bytes) -> None:
        end, wants_reply = pgoutput.decode_keepalive(message)
        self._received = max(self._received, end)
        if not self._inside:
            self._looked_through = end
        if wants_reply:
            self.send_status()


_ROW_KINDS = frozenset((0x49, 0x55, 0x44))
