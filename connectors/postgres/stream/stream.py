"""The stream of changes: pgoutput messages become encoded records, with the offset of the last one.

Owned by the task's thread: it reads the socket, decodes, encodes and answers the server's pings; there is no queue in between. The server
may discard only what the offsets topic holds (`acknowledge`), never what was merely read. Logical decoding messages
(`pg_logical_emit_message`) become records of the topic `<prefix>.message` (`LogicalDecodingMessageMonitor`).
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from struct import Struct

import psycopg

from connect_py.api import Route
from connect_py.api.record import EncodedRow, JsonEncoding
from connect_py.converters.json_schema import schema_to_json
from connect_py.converters.json_write import quote
from connect_py.data.schema import OPTIONAL_BYTES, OPTIONAL_INT64, OPTIONAL_STRING, STRING, struct
from connect_py.errors import DataError
from connect_py.wakeup import Wakeup
from connectors.engine.batches import MAX_BYTES, PendingRows
from connectors.engine.envelope import TRANSACTION_SCHEMA, KeyChangeRecords, tail
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.relational.tables import NameFilter
from connectors.postgres import pgoutput
from connectors.postgres.encode.source_info import SOURCE_SCHEMA, SourceBlock
from connectors.postgres.encode.table import KeyChange
from connectors.postgres.errors import ServerError
from connectors.postgres.pgoutput import LogicalMessage
from connectors.postgres.position.offset import PostgresOffset
from connectors.postgres.position.stream_position import COMMIT, EVENT_TYPES, Event, StreamPosition
from connectors.postgres.server.connection import Connection
from connectors.postgres.stream.feedback import Feedback, Silence
from connectors.postgres.stream.open_transactions import SegmentedMessages
from connectors.postgres.stream.tables import PostgresTaps, Resolver, StreamTables
from connectors.postgres.tables import CapturedTable

log = logging.getLogger(__name__)


#: What messages are counted as in their transaction. The reference shows a Java object there, whose number differs from run to run.
MESSAGE_COLLECTION = "io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$LogicalDecodingMessageId"
MESSAGE_KEY_SCHEMA = struct([("prefix", OPTIONAL_STRING)], name="io.debezium.connector.postgresql.MessageKey", version=1)


class MessageEncoder:
    """Makes records of messages.

    Args:
        prefix: `topic.prefix`.
        binary_mode: `binary.handling.mode`, which decides how the content looks.
        wanted: which prefixes are captured.
    """

    def __init__(self, version: str, prefix: str, database: str, binary_mode: str, wanted: NameFilter, encoding: JsonEncoding) -> None:
        content = OPTIONAL_BYTES if binary_mode == "bytes" else OPTIONAL_STRING
        message = struct([("prefix", OPTIONAL_STRING), ("content", content)], name="io.debezium.connector.postgresql.Message", version=1)
        value_schema = struct(
            [
                ("op", STRING),
                ("ts_ms", OPTIONAL_INT64),
                ("source", SOURCE_SCHEMA),
                ("transaction", TRANSACTION_SCHEMA),
                ("message", message),
            ],
            name="io.debezium.connector.postgresql.MessageValue",
            version=1,
        )
        self._route = Route(f"{prefix}.message", MESSAGE_KEY_SCHEMA, value_schema)
        self._block = SourceBlock(
            version=version, name=prefix, database=database, schema="", table="", nulls_as_defaults=encoding.nulls_as_defaults
        )
        self._binary_mode = binary_mode
        self._wanted = wanted
        self._key = _frame(schema_to_json(MESSAGE_KEY_SCHEMA)) if encoding.key_schemas else (b"", b"")
        self._value = _frame(schema_to_json(value_schema)) if encoding.value_schemas else (b"", b"")

    def is_wanted(self, message: LogicalMessage) -> bool:
        """Return whether its prefix is captured."""
        return self._wanted(message.prefix)

    def encode(
        self,
        message: LogicalMessage,
        *,
        lsn: int,
        xid: int | None,
        ts_us: int,
        last_commit: int | None,
        now_ns: int,
        block: bytes = b"null",
        xmin: int | None = None,
    ) -> EncodedRow:
        """Return a message's record; `block` is its transaction block, as JSON text."""
        prefix = quote(message.prefix).encode()
        source = self._block.transaction(ts_us, xid, last_commit, xmin=xmin)(lsn)
        payload = b'{"op":"m","ts_ms":%d,"source":%b,"transaction":%b,"message":{"prefix":%b,"content":"%b"}}' % (
            now_ns // 1_000_000,
            source,
            block,
            prefix,
            self._content(message.content),
        )
        return self._route, self._key[0] + b'{"prefix":' + prefix + b"}" + self._key[1], self._value[0] + payload + self._value[1]

    def _content(self, content: bytes) -> bytes:
        if self._binary_mode == "hex":
            return content.hex().encode()
        if self._binary_mode == "base64-url-safe":
            return base64.urlsafe_b64encode(content)
        return base64.b64encode(content)


def _frame(schema: bytes) -> tuple[bytes, bytes]:
    return b'{"schema":' + schema + b',"payload":', b"}"


_LSN = Struct(">q")
#: After this many messages the clock is checked: otherwise changes that make no records would keep the task from everything else.
#: 1,024 of them cost a few milliseconds.
CLOCK_MESSAGES = 1024


class ChangeStream:
    """One replication connection and the state of its decoding.

    Args:
        connection: on which START_REPLICATION has been answered.
        stored: the offset from which the stream was started.
        resolve: looks up tables.
        messages: encodes logical messages, None to leave them out.
        skipped: operations of `skipped.operations`.
        tombstones: whether a delete is followed by a null value.
        status_seconds: how often the server receives a status.
        silence: how long the server may say nothing.
        headers: the context headers.
        metrics: where events are counted.
        pending: receives the rows; what others put there goes with them.
        taps: what listens to tables.
        on_structure: called with every captured table's structure as the stream begins to use it.
        xmin: the slot's, for `source.xmin`; asked at the begin of each transaction.
        on_failure: ``event.processing.failure.handling.mode``: what becomes of an event of which no record can be made.
        segments: between the connection and the stream where the server sends transactions that are open.
        wakeup: ends waits for the server.

    Attributes:
        until: the stream stops before the first transaction that committed here or later; None for no end.
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
        silence: Silence | None = None,
        headers: tuple[tuple[str, str], ...],
        pending: PendingRows,
        taps: PostgresTaps,
        on_structure: Callable[[CapturedTable], None] = lambda _: None,
        metrics: StreamingMetrics | None = None,
        segments: SegmentedMessages | None = None,
        xmin: Callable[[], int | None] = lambda: None,
        on_failure: str = "fail",
        wakeup: Wakeup | None = None,
    ) -> None:
        self._wakeup = wakeup
        self._pending = pending
        self._taps = taps
        self._on_failure = on_failure
        self._connection = connection
        self._segments = segments
        self._get = segments.get if segments is not None else connection.pgconn.get_copy_data
        self._messages = messages
        self._skipped = skipped
        self._tombstones = tombstones
        self._metrics = metrics or StreamingMetrics("postgres", "")
        self._tables = StreamTables(resolve, taps, on_structure)
        self._moved = KeyChangeRecords(tombstones, headers)
        self._position = StreamPosition(stored, xmin)
        self._feedback = Feedback(connection, self._position, status_seconds, silence)
        self.until: int | None = None
        self._beyond: bytes | None = None

    def acknowledge(self, lsn: int) -> None:
        """Confirm to the server what precedes `lsn`, which the offsets topic holds. Raises ServerError."""
        self._feedback.acknowledge(lsn)

    def keep_alive(self) -> None:
        """Send a status when it is due. Raises ServerError."""
        self._feedback.keep_alive()

    @property
    def received(self) -> int:
        """Up to where the server's log was read."""
        return self._feedback.received

    @property
    def transaction(self) -> int | None:
        """The id of the present or last transaction; None before the first, and after a message of none."""
        return self._position.xid

    @property
    def has_reached_end(self) -> bool:
        """Whether everything before `until` was read."""
        if self.until is None:
            return False
        return self._beyond is not None or (not self._position.inside and self._feedback.scanned_lsn >= self.until)

    def close(self, *, send_status: bool) -> None:
        """Close the connection, after a last status when the server is there to receive it."""
        if send_status:
            self._feedback.send_last_status()
        if self._segments is not None:
            self._segments.close()
        self._connection.close()

    def tap(self) -> None:
        """Apply a change of what listens to tables."""
        self._tables.tap()

    @property
    def settled(self) -> PostgresOffset | None:
        """Where the source stands after the last whole transaction; None inside of one, and before the first."""
        return self._position.settled

    @property
    def quiet(self) -> PostgresOffset | None:
        """Where the source stands although nothing of it changed; see `StreamPosition.quiet`."""
        return self._position.quiet(self._feedback.scanned_lsn)

    @property
    def position(self) -> tuple[int | None, int | None]:
        """The end of the last whole transaction, and the position of the last event."""
        return self._position.last_commit, self._position.lsn or self._position.last_commit

    @property
    def open_transactions(self) -> tuple[int, int, int]:
        """How many large ones are open, and their bytes here in memory and in files."""
        return self._segments.sizes if self._segments is not None else (0, 0, 0)

    def recent_transactions(self) -> frozenset[int]:
        """Return the numbers of the transactions that were shown last."""
        return self._position.recent_transactions()

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
        position, feedback = self._position, self._feedback
        last: Event | None = None
        deadline = time.monotonic() + seconds
        get = self._get
        unpack = _LSN.unpack_from
        tables = self._tables.known
        skip_inserts, skip_deletes = "c" in self._skipped, "d" in self._skipped
        append = rows.append
        updates = deletes = 0  # inserts are what is left, so that they cost nothing
        others = len(rows) - self._pending.from_services
        now_ns = time.time_ns()
        created, updated, deleted = tail("c", now_ns), tail("u", now_ns), tail("d", now_ns)
        if self._beyond is not None:
            if self.until is not None:
                return None
            message, self._beyond = self._beyond, None
            self._begin(pgoutput.decode_begin(message), unpack(message, 1)[0])
        messages = 0
        most = self._pending.batch_rows
        while size < MAX_BYTES and len(rows) < most:
            messages += 1
            if messages > CLOCK_MESSAGES:
                messages = 0
                feedback.on_data()
                feedback.keep_alive()
                if time.monotonic() >= deadline:
                    break
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
                    if messages > 1 or (self._segments is not None and self._segments.has_kept):
                        feedback.on_data()
                        if self._segments is not None:
                            self._segments.has_kept = False
                    messages = 0
                    feedback.on_idle()
                    left = deadline - time.monotonic()
                    if rows or left <= 0:
                        break
                    seconds = min(left, feedback.seconds)
                    if self._wakeup is None:
                        self._connection.wait_readable(seconds)
                    elif not self._wakeup.wait_readable(self._connection.socket, seconds):
                        break
                    continue
            message = bytes(data)
            if message[0] != 0x77:
                if message[0] == 0x6B:
                    feedback.answer(message)
                continue
            kind = message[25]
            if kind in EVENT_TYPES:
                lsn = unpack(message, 1)[0]
                if lsn == position.lsn:
                    position.events += 1
                else:
                    position.lsn = lsn
                    position.events = 1
                if position.skips_all or (position.skips_known and position.is_known(lsn)):
                    continue
                before = len(rows)
                try:
                    table = tables.get(message[26:30])
                    if table is not None and kind in _ROW_KINDS:
                        if table.transaction != position.number:
                            table.enter(position)
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
                                size += self._split(rows, table.route, table.split(message, 30, source, deleted, created))
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
                        elif self._taps.signal_table == table.captured.id:
                            table.delete(message, 30, source, deleted)
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
                    last = (lsn, position.events, kind, position.xid, position.commit_us, position.last_commit)
            elif kind == 0x42:
                begin = pgoutput.decode_begin(message)
                if self.until is not None and begin.final_lsn >= self.until:
                    self._beyond = message
                    break
                self._begin(begin, unpack(message, 1)[0])
            elif kind == COMMIT:
                if self._commit(pgoutput.decode_commit(message)):
                    last = position.end()
            elif kind == 0x52:
                self._tables.on_relation(message)
            elif kind == 0x4F:
                origin = pgoutput.decode_origin(message)
                position.origin = (origin.name, origin.lsn)
        feedback.after_batch()
        if last is None:
            return None
        feedback.progressed()
        seen = len(rows) - others - self._pending.from_services
        self._metrics.events(seen, created=seen - updates - deletes, updated=updates, deleted=deletes)
        lsn, _, _, xid, commit_us, _ = last
        self._metrics.behind((time.time_ns() // 1000 - commit_us) // 1000)
        self._metrics.position, self._metrics.last_transaction = {"lsn": lsn}, xid
        return position.offset(last)

    def _bad_event(self, error: DataError, lsn: int) -> None:
        """Handle an event of which no record can be made: it fails the task, or is left out, as the mode says."""
        if self._on_failure not in ("warn", "skip", "ignore"):
            raise error
        level = logging.WARNING if self._on_failure == "warn" else logging.DEBUG
        log.log(level, "Error while processing event at offset {lsn=%d, txId=%s}; it is left out: %s", lsn, self._position.xid, error)

    def _begin(self, begin: pgoutput.Begin, lsn: int) -> None:
        position = self._position
        position.begin(begin)
        if self._taps.monitor is not None and not position.skips_all:
            row = self._taps.monitor.begin(str(begin.xid), f"{begin.xid}:{lsn}", begin.commit_us // 1000)
            if row is not None:
                self._pending.add(row)

    def _commit(self, commit: pgoutput.Commit) -> bool:
        """End a transaction. Returns whether a record was made of it."""
        position = self._position
        is_news = position.commit(commit)
        self._metrics.transactions += 1
        if not is_news or self._taps.monitor is None:
            return False
        row = self._taps.monitor.end(f"{position.xid}:{position.last_commit}", commit.commit_us // 1000)
        if row is not None:
            self._pending.add(row)
        return row is not None

    def _split(self, rows: list[EncodedRow], route: Route, change: KeyChange) -> int:
        """Return a changed key. Returns the bytes added."""
        size = 0
        if "d" not in self._skipped:
            self._moved.delete(rows, route, change.new_key_text, change.old_key, change.delete_value)
            size += len(change.delete_value)
        if "c" not in self._skipped:
            self._moved.create(rows, route, change.old_key_text, change.new_key, change.create_value)
            size += len(change.create_value)
        return size

    def _truncate(self, rows: list[EncodedRow], message: bytes, lsn: int, now_ns: int) -> None:
        for oid in pgoutput.decode_truncate(message).relations:
            table = self._tables.known.get(oid.to_bytes(4, "big"))
            if table is not None:
                if table.captured.id == self._taps.watched:
                    self._taps.on_truncate()
                if "t" in self._skipped:
                    continue
                if table.transaction != self._position.number:
                    table.enter(self._position)
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
            self._position.outside(lsn, now_ns // 1000)
        if not self._messages.is_wanted(decoded):
            return
        block = b"null"
        if self._taps.monitor is not None and decoded.transactional:
            block = self._taps.monitor.event(MESSAGE_COLLECTION, self._taps.shown_transaction(message))
        position = self._position
        row = self._messages.encode(
            decoded,
            lsn=lsn,
            xid=position.xid,
            ts_us=position.commit_us,
            last_commit=position.last_commit,
            now_ns=now_ns,
            block=block,
            xmin=position.xmin,
        )
        rows.append(row)


_ROW_KINDS = frozenset((0x49, 0x55, 0x44))
