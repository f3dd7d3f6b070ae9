"""The stream of changes: events of the binlog to encoded records, with the offset of the last one (mysql.md §7 to §9).

Owned by the task's thread: it reads the socket, decodes and encodes; there is no queue in between. A batch ends between two events, so its
offset says that all rows of its last event were given out.

Where a start goes on. `_Place` holds what offsets say: outside of a transaction the end of the last event and the transactions that were
read whole; inside of one its beginning, the transactions before it, and how many of its events were handled. A start inside a transaction
reads it from its beginning and passes over the rows of the events, and then the rows of one event, that the offset counts.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from connect_py.api import Route
from connect_py.api.record import EncodedRow, KeyText
from connect_py.errors import FatalTaskError
from connectors.engine.encode.tuples import Text
from connectors.engine.envelope import tail
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.pending import PendingRows
from connectors.engine.relational.table import TableId
from connectors.engine.transactions import TransactionMonitor
from connectors.mysql.binlog.codes import EventType
from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.events import Body, Header, Heartbeat, Incident, Query, Rotate, Rows, RowsQuery, TransactionPayload, Xid
from connectors.mysql.binlog.gtid_events import Gtid, MariadbGtid
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.binlog_client import BinlogClient
from connectors.mysql.config import MySqlConfig
from connectors.mysql.gtid import GtidSet, Transactions
from connectors.mysql.log_place import LogPlace
from connectors.mysql.offset import MySqlOffset
from connectors.mysql.place import StreamPlace
from connectors.mysql.schema import Schema
from connectors.mysql.source_info import SourceBlock
from connectors.mysql.statement_kinds import Kind, kind_of
from connectors.mysql.structure_source import structure_at
from connectors.mysql.table_stream import TableStream
from connectors.mysql.tables import CapturedTable, CapturedTables
from connectors.mysql.taps import Taps

log = logging.getLogger(__name__)

#: As in snapshot.py.
MAX_ROWS = 2_000
MAX_BYTES = 4_000_000


@dataclass(slots=True)
class _Place:
    """See the module.

    Attributes:
        file: of the log that is read now.
        pos: where a start reads from.
        gtids: transactions that were read whole; None where offsets have none.
        events: of the transaction under way that were handled, its BEGIN being the first.
    """

    file: str
    pos: int
    gtids: Transactions | None
    events: int = 0
    inside: bool = False


class ChangeStream:
    """One dump of the log and the state of its decoding.

    Args:
        client: whose dump has begun.
        stored: from where it was started.
        gtids: what the dump leaves out; None for a dump that began at a file's position.
        with_gtids: whether the server's transactions have GTIDs and they are looked at.
        monitor: makes transaction metadata; None without it.
        pending: takes the records; what goes on beside the stream puts its own there.
        taps: what listens to single tables.
    """

    def __init__(
        self,
        client: BinlogClient,
        config: MySqlConfig,
        stored: MySqlOffset,
        gtids: Transactions | None,
        schema: Schema,
        tables: CapturedTables,
        *,
        with_gtids: bool,
        headers: tuple[tuple[str, str], ...],
        monitor: TransactionMonitor | None,
        metrics: StreamingMetrics,
        pending: PendingRows,
        taps: Taps,
    ) -> None:
        self._client = client
        self._config = config
        self._schema = schema
        self._captured = tables
        self._with_gtids = with_gtids
        self._headers = headers
        self._monitor = monitor
        self._metrics = metrics
        self._pending = pending
        self._taps = taps
        self._skipped = config.skipped
        self._tombstones = config.flag("tombstones.on.delete")
        self._shows_query = config.flag("include.query")
        self._filters_rows = config.flag("gtid.source.filter.dml.events")
        self._queue: deque[tuple[Header, Body]] = deque()
        self._tables: dict[int, TableStream | None] = {}
        self._place = _Place(stored.file, stored.pos, gtids)
        self._began = gtids
        self._begin_of_event = self._end_of_event = stored.pos
        self._last_gtid: Gtid | None = None
        self._last_thread: int | None = None
        self._resume: tuple[int, int] | None = (stored.event, stored.row) if stored.event or stored.row else None
        self._gtid: Gtid | None = None
        self._foreign = False
        # where the event stands that names the transaction of a single statement
        self._alone: int | None = None
        self._thread: int | None = None
        self._query: str | None = None
        self._server_id = stored.server_id
        self._ts_us = (stored.ts_sec or 0) * 1_000_000
        self._tx_id = ""
        self._counted: TransactionMonitor | None = None
        # of the last event with rows; the reference shows it for statements too
        self._row = 0
        self._last: MySqlOffset | None = None
        self._until: LogPlace | None = None
        self.has_stopped = False

    def close(self) -> None:
        """End the dump."""
        self._client.close()

    @property
    def here(self) -> MySqlOffset | None:
        """Where the source stands behind the last event; None inside of a transaction."""
        return None if self._place.inside else self._offset(0, 0)

    def position(self, *, last_thread: bool = False) -> StreamPlace:
        """The last event, as source blocks show it.

        Args:
            last_thread: whether the thread of a transaction that has ended is still shown.
        """
        gtid = None if self._last_gtid is None else str(self._last_gtid)
        thread = self._last_thread if last_thread else self._thread
        return StreamPlace(self._place.file, self._begin_of_event, self._server_id, gtid, thread)

    @property
    def offset(self) -> MySqlOffset:
        """That of the row that is being read, or of the last one."""
        place = self._place
        return self._offset(place.events if place.inside else 0, self._row + 1 if place.inside else 0)

    def source(self) -> bytes:
        """The source block of the last event, for what is told beside rows."""
        place, config = self.position(), self._config
        table = self._taps.signal_table
        block = SourceBlock(
            config.connector, config.version, config.topic_prefix, table.schema if table else "", table.table if table else None
        )
        return block.render(
            self._ts_us, "false", place.file, place.pos, server_id=place.server_id, gtid=place.gtid, thread=place.thread, query=self._query
        )

    def structure_changed(self, id_: TableId) -> None:
        """A table's model is another one now, for rows behind a number of the log that is in use too."""
        captured = self._captured.get(id_)
        for number, table in list(self._tables.items()):
            if table is not None and table.captured.id == id_:
                self._tables[number] = None if captured is None else TableStream(captured, table.map)
        if self._taps.watched == id_:
            self._taps.on_structure(self._schema.tables.tables.get(id_))

    @property
    def received(self) -> LogPlace:
        """Up to where the log was read."""
        return LogPlace(self._place.file, self._end_of_event)

    @property
    def shown(self) -> GtidSet | None:
        """The transactions that were read so far, the one that is under way among them; None where they have no names."""
        found, began = self._place.gtids, self._began
        if not isinstance(found, GtidSet) or not isinstance(began, GtidSet):
            return None
        if self._gtid is not None:
            found = found.with_gtid(self._gtid.source, self._gtid.number)
        return found.minus(began)

    def stop_at(self, until: LogPlace) -> None:
        """Read no further than a place between two transactions; `has_stopped` is then true."""
        self._until = until
        # where a dump begins is known when the server has told: another one has other places
        self._end_of_event = 0

    def read(self, seconds: float) -> MySqlOffset | None:
        """Put the records of the next events to the pending ones, up to a batch's bounds; waits up to `seconds` for the first event.

        Returns:
            The offset of the last record; None without any.

        Raises:
            ServerError: the server ended the dump, or the connection broke.
            ConnectError: an event cannot be decoded, or a record cannot be made.
        """
        rows = self._pending.rows
        self._last = None
        deadline = time.monotonic() + seconds
        size = 0
        while True:
            while self._queue and len(rows) < MAX_ROWS and size < MAX_BYTES:
                header, body = self._queue.popleft()
                before = len(rows)
                try:
                    self._event(header, body, rows)
                except MalformedEventError as error:
                    self._damaged(header, error)
                if len(rows) > before:
                    size += sum(len(value) for _, _, value in rows[before:] if value)
                if self._until is not None and not self._place.inside and not self.received < self._until:
                    self._queue.clear()
                    self.has_stopped = True
                    return self._last
            left = deadline - time.monotonic()
            if rows or left <= 0:
                return self._last
            try:
                self._queue.extend(self._client.read(left))
            except MalformedEventError as error:
                at = f"{self._place.file}:{self._place.pos}"
                raise FatalTaskError(f"Error while deserializing a binlog event behind {at}: {error}") from error

    # -- events ------------------------------------------------------------------------------------------------------------------------

    def _event(self, header: Header, body: Body, rows: list[EncodedRow]) -> None:
        place = self._place
        if isinstance(body, Rotate):
            self._rotate(header, body)
            return
        if isinstance(body, Heartbeat):
            if body.file == place.file:
                self._end_of_event = max(self._end_of_event, body.position or header.end)
            return
        if not header.timestamp:
            return
        if header.end:
            self._begin_of_event, self._end_of_event = header.end - header.length, header.end
        self._server_id = header.server_id
        if isinstance(body, Gtid):
            self._on_gtid(body)
        elif self._gtid is None or not self._gtid.commit_micros:
            self._ts_us = header.timestamp * 1_000_000
        if isinstance(body, Rows):
            self._on_rows(header, body, rows)
        elif isinstance(body, TableMap):
            self._on_table_map(body)
        elif isinstance(body, Query):
            self._on_query(header, body, rows)
        elif isinstance(body, Xid) or header.type == EventType.XA_PREPARE:
            self._commit(header, rows)
            return
        elif isinstance(body, MariadbGtid):
            self._on_gtid(body.of_server(header.server_id))
            self._alone = header.end - header.length if body.standalone else None
            if not body.standalone:
                self._begin(header, None, rows)
        elif isinstance(body, RowsQuery):
            if self._shows_query:
                self._query = body.sql.decode("utf-8", "replace")
        elif isinstance(body, Incident):
            log.error("The server reports an incident at %s:%d: %s", place.file, header.end, body.message)
        if place.inside:
            if not isinstance(body, TransactionPayload):
                place.events += 1
        elif header.end:
            place.pos = header.end

    def _damaged(self, header: Header, error: MalformedEventError) -> None:
        """An event that cannot be decoded fails the task, or is left out, as ``event.processing.failure.handling.mode`` says."""
        text = f"Error while deserializing binlog event at offset {self._place.file}:{header.end - header.length}: {error}"
        mode = self._config.choice("event.processing.failure.handling.mode")
        if mode not in ("warn", "skip", "ignore"):
            raise FatalTaskError(text) from error
        log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s. The event is left out", text)
        if self._place.inside:
            self._place.events += 1
        elif header.end:
            self._place.pos = header.end

    def _rotate(self, header: Header, body: Rotate) -> None:
        """Real ones stand in the log; the server makes one up at a dump's start to tell the file's name."""
        if body.file != self._place.file or header.timestamp:
            self._place.file, self._place.pos = body.file, body.position
            self._begin_of_event = self._end_of_event = body.position
        self._tables.clear()

    def _on_gtid(self, gtid: Gtid) -> None:
        if not self._with_gtids:
            return
        self._complete_gtid()
        self._gtid = self._last_gtid = gtid
        self._foreign = self._filters_rows and not self._config.gtid_sources(gtid.source.partition(":")[0])
        if gtid.commit_micros:
            self._ts_us = gtid.commit_micros

    def _complete_gtid(self) -> None:
        if self._gtid is not None and self._place.gtids is not None:
            self._place.gtids = self._place.gtids.with_gtid(self._gtid.source, self._gtid.number)

    def _begin(self, header: Header, thread: int | None, rows: list[EncodedRow], *, counted: bool = True) -> None:
        """Args:
        counted: whether records show the transaction's boundaries.
        """
        place = self._place
        place.pos, place.events, place.inside = header.end - header.length, 0, True
        self._thread = self._last_thread = thread
        self._tx_id = str(self._gtid) if self._gtid is not None else f"file={place.file},pos={place.pos}"
        self._counted = self._monitor if counted else None
        if self._counted is not None:
            row = self._counted.begin(self._tx_id, self._tx_id, self._ts_us // 1000)
            if row is not None:
                rows.append(row)
                self._last = self._offset(0, 0)

    def _commit(self, header: Header, rows: list[EncodedRow]) -> None:
        place = self._place
        if self._counted is not None:
            row = self._counted.end(self._tx_id, self._ts_us // 1000)
            # an offset that counts all events and no row is the one of this record
            if row is not None and self._resume != (place.events, 0):
                rows.append(row)
                self._last = self._offset(place.events, 0)
            self._counted = None
        self._complete_gtid()
        place.pos, place.events, place.inside = header.end, 0, False
        self._thread = self._query = None
        self._resume = None
        self._metrics.transactions += 1
        self._gtid = None

    def _offset(self, events: int, row: int) -> MySqlOffset:
        place = self._place
        gtids = None if place.gtids is None else str(place.gtids)
        return MySqlOffset(place.file, place.pos, gtids, self._ts_us // 1_000_000, self._server_id, events, row)

    # -- statements --------------------------------------------------------------------------------------------------------------------

    def _on_query(self, header: Header, query: Query, rows: list[EncodedRow]) -> None:
        sql = query.sql.decode("utf-8", "replace")
        kind = kind_of(sql)
        if kind is Kind.BEGIN:
            self._begin(header, query.thread_id, rows)
        elif kind is Kind.XA_BEGIN:
            # prepared transactions have no boundaries among the records
            self._begin(header, None, rows, counted=False)
        elif kind is Kind.COMMIT or (kind is Kind.XA_END and self._place.inside):
            self._commit(header, rows)
        elif kind is Kind.ROWS:
            log.warning(
                "The log holds a statement in place of its rows, which are lost here: set binlog_format=ROW for every session: %s",
                sql[:200],
            )
        elif kind is Kind.DDL:
            self._ddl(header, query, sql, rows)

    def _ddl(self, header: Header, query: Query, sql: str, rows: list[EncodedRow]) -> None:
        place = self._place
        if not place.inside and header.end:
            place.pos = header.end
        offset = self._offset(place.events if place.inside else 0, 0)
        if self._alone is not None:
            # to the reference MariaDB's event before a statement is a transaction's first
            offset = replace(offset, pos=self._alone, event=1)
        shown = {"server_id": self._server_id, "gtid": self._shown_gtid, "thread": self._thread, "query": self._query, "row": self._row}
        source = (self._ts_us // 1000 * 1000, "false", place.file, header.end - header.length, shown)
        found, changes = self._schema.statement(sql, query.schema, offset.dump(), source, sql_mode=query.sql_mode or 0)
        for change in changes:
            if change.kind == "TRUNCATE":
                self._truncate(header, change.id, rows)
            elif self._taps.watched is not None and self._taps.watched in (change.id, change.previous):
                self._taps.on_structure(self._schema.tables.tables.get(self._taps.watched))
        # the tables' numbers now mean other structures
        self._tables.clear()
        if found and not self._known_statement():
            rows += found
            self._last = offset
        self._alone = None
        if not place.inside:
            # a transaction of its own: the history holds it, a start need not read it again
            self._complete_gtid()
            self._gtid = None
            if self._last is not None:
                self._last = self._offset(0, 0)

    def _known_statement(self) -> bool:
        """Whether a statement inside a transaction was given out before the start."""
        return self._resume is not None and self._place.inside and self._place.events < self._resume[0]

    def _truncate(self, header: Header, id_: TableId, rows: list[EncodedRow]) -> None:
        if self._taps.watched == id_:
            self._taps.on_truncate()
        captured = self._captured.get(id_)
        if captured is None or "t" in self._skipped:
            return
        head, end = self._block(captured, header)
        value = captured.encoder.truncate(b"%b0%b" % (head, end), tail("t", time.time_ns()))
        rows.append((captured.keyless_route, None, value))
        self._last = self._offset(0, 0)

    # -- rows --------------------------------------------------------------------------------------------------------------------------

    @property
    def _shown_gtid(self) -> str | None:
        return None if self._gtid is None else str(self._gtid)

    def _on_table_map(self, map_: TableMap) -> None:
        id_ = self._schema.tables.named(map_.schema, map_.table)
        if not self._config.filters.is_captured(id_):
            self._tables[map_.table_id] = None
            return
        captured = self._captured.get(id_)
        if captured is None:
            self._unknown(id_)
            self._tables[map_.table_id] = None
            return
        known = self._tables.get(map_.table_id)
        if known is None or known.captured is not captured or known.map.columns != map_.columns:
            self._tables[map_.table_id] = TableStream(self._settled(captured, map_), map_)

    def _settled(self, captured: CapturedTable, map_: TableMap) -> CapturedTable:
        """The table, after its structure was looked up if statements do not tell it."""
        id_ = captured.id
        if id_ in self._schema.unsure:
            why = f"A statement about {id_} could not be understood"
        elif map_.problem is None and len(captured.model.columns) != len(map_.columns):
            why = f"The log has {len(map_.columns)} columns of {id_}, and the schema history tells of {len(captured.model.columns)}"
        else:
            return captured
        table, statement = structure_at(self._config, id_, map_, why)
        self._schema.settle(table, statement, self._offset(self._place.events, 0).dump())
        found = self._captured.get(id_)
        assert found is not None
        return found

    def _unknown(self, id_: TableId) -> None:
        text = f"Encountered change event for table {id_} whose schema isn't known to this connector"
        mode = self._config.choice("inconsistent.schema.handling.mode", "fail")
        if mode == "fail":
            raise FatalTaskError(
                f"{text}. One possible cause is an incomplete database schema history topic. Take a new snapshot in this case, or restart "
                "with snapshot.mode=recovery"
            )
        if mode == "warn":
            log.warning("%s; the event is left out", text)

    def _block(self, captured: CapturedTable, header: Header) -> tuple[bytes, bytes]:
        return captured.block.event(
            self._ts_us,
            "false",
            self._place.file,
            header.end - header.length,
            server_id=self._server_id,
            gtid=self._shown_gtid,
            thread=self._thread,
            query=self._query,
        )

    def _on_rows(self, header: Header, event: Rows, rows: list[EncodedRow]) -> None:
        table = self._tables.get(event.table_id)
        if table is None or self._foreign:
            self._metrics.filtered += 1
            return
        passed = 0
        if self._resume is not None and self._place.inside:
            events, row = self._resume
            if self._place.events < events:
                return
            passed = row if self._place.events == events else 0
            self._resume = None
        signals = table.captured.id == self._taps.signal_table
        if event.kind in self._skipped:
            if signals:
                self._signals(event, table, passed)
            return
        before = len(rows)
        if signals:
            self._signals(event, table, passed)
        count = self._encode(header, event, table, passed, rows)
        if len(rows) > before:
            self._last = self._offset(self._place.events, count)
        self._row = max(count - 1, 0)
        new = count - passed
        self._metrics.events(
            new,
            created=new if event.kind == "c" else 0,
            updated=new if event.kind == "u" else 0,
            deleted=new if event.kind == "d" else 0,
        )
        self._metrics.behind((time.time_ns() // 1000 - self._ts_us) // 1000)

    def _signals(self, event: Rows, table: TableStream, passed: int) -> None:
        """Take rows of the signal table for signals, before they are encoded as the ordinary rows that they are too."""
        if event.kind != "u":
            for texts in table.images(event)[passed:]:
                self._taps.row(event.kind, texts)

    def _encode(self, header: Header, event: Rows, table: TableStream, passed: int, rows: list[EncodedRow]) -> int:
        """Rows of an event but for the first `passed`. Returns how many it has."""
        captured = table.captured
        image, value, route = captured.encoder.image, captured.encoder.value, captured.route
        chosen = self._chooser(captured)
        head, end = self._block(captured, header)
        now_ns = time.time_ns()
        closing = tail(event.kind, now_ns)
        monitor, name = self._counted, str(captured.id)
        watched = self._taps.on_event if self._taps.watched == captured.id else None
        if event.kind == "u":
            skips = captured.encoder.skip_unchanged
            pairs = table.pairs(event)
            for row, (old, new) in enumerate(pairs[passed:], passed):
                old, new = chosen(old), chosen(new)
                (old_key, old_row), (key, new_row) = image(old), image(new)
                if skips and old_row == new_row:
                    self._metrics.filtered += 1
                    continue
                source = b"%b%d%b" % (head, row, end)
                if old_key != key and old_key is not None and key is not None:
                    self._split(captured, (old_key, old_row, old), (key, new_row, new), source, now_ns, rows)
                    if watched is not None:
                        self._watch_split(watched, old_key, key)
                    continue
                if watched is not None:
                    watched(key)
                if monitor is not None:
                    closing = tail("u", now_ns, monitor.event(name, self._tx_id))
                rows.append((route, key, value(old_row, new_row, source, closing)))
            return len(pairs)
        images = table.images(event)
        for row, texts in enumerate(images[passed:], passed):
            key, shown = image(chosen(texts))
            source = b"%b%d%b" % (head, row, end)
            if watched is not None:
                watched(key)
            if monitor is not None:
                closing = tail(event.kind, now_ns, monitor.event(name, self._tx_id))
            if event.kind == "c":
                rows.append((route, key, value(None, shown, source, closing)))
            else:
                rows.append((route, key, value(shown, None, source, closing)))
                if self._tombstones:
                    rows.append((route, key, None))
        return len(images)

    def _watch_split(self, watched: Callable[[bytes | None], None], old: bytes, new: bytes) -> None:
        # an operation that is skipped makes no event, so that the window's row stays
        if "d" not in self._skipped:
            watched(old)
        if "c" not in self._skipped:
            watched(new)

    @staticmethod
    def _chooser(captured: CapturedTable) -> Callable[[list[Text]], list[Text]]:
        """Picks the columns that events have."""
        places = captured.places
        if len(places) == len(captured.model.columns):
            return lambda texts: texts
        return lambda texts: [texts[place] for place in places]

    def _split(
        self,
        captured: CapturedTable,
        old: tuple[bytes, bytes, list[Text]],
        new: tuple[bytes, bytes, list[Text]],
        source: bytes,
        now_ns: int,
        rows: list[EncodedRow],
    ) -> None:
        """A changed key: the old row's delete and tombstone, then the new row (mysql.md §7.4)."""
        encoder, route, monitor, name = captured.encoder, captured.route, self._counted, str(captured.id)

        def close(op: str) -> bytes:
            return tail(op, now_ns) if monitor is None else tail(op, now_ns, monitor.event(name, self._tx_id))

        (old_key, old_row, old_texts), (key, new_row, new_texts) = old, new
        if "d" not in self._skipped:
            headers = (("__debezium.newkey", KeyText(encoder.key_text(new_texts))), *self._headers)
            to = Route(route.topic, route.key_schema, route.value_schema, headers)
            rows.append((to, old_key, encoder.value(old_row, None, source, close("d"))))
            if self._tombstones:
                rows.append((to, old_key, None))
        if "c" not in self._skipped:
            headers = (("__debezium.oldkey", KeyText(encoder.key_text(old_texts))), *self._headers)
            to = Route(route.topic, route.key_schema, route.value_schema, headers)
            rows.append((to, key, encoder.value(None, new_row, source, close("c"))))
