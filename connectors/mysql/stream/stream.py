"""The stream of changes: events of the binlog to encoded records, with the offset of the last one.

Owned by the task's thread: it reads the socket, decodes and encodes; there is no queue in between. A batch ends between two events, so its
offset says that all rows of its last event were given out. `state.py` holds the position and makes offsets; `rows.py` makes records of
rows.

The log refers to tables by numbers, which table maps announce before the rows that use them (`StreamTables`).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from connect_py.api.record import EncodedRow
from connect_py.errors import DataError, FatalTaskError
from connectors.engine.batches import MAX_BYTES, PendingRows
from connectors.engine.metadata_records import TransactionMonitor
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.taps import Taps
from connectors.mysql.binlog.codes import EventType, MalformedEventError
from connectors.mysql.binlog.events import (
    AnonymousGtid,
    Body,
    Gtid,
    Header,
    Heartbeat,
    Incident,
    MariadbGtid,
    PreviousGtids,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    TransactionPayload,
    Xid,
)
from connectors.mysql.binlog.table_map import TableMap
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.ddl.statement_text import Kind, kind_of
from connectors.mysql.figures import LogFigures
from connectors.mysql.position.gtid import GtidSet, Transactions
from connectors.mysql.position.offset import BinlogPosition, EventPosition, LoggedTransaction, MySqlOffset
from connectors.mysql.position.source_info import SourceBlock
from connectors.mysql.schema.captured import CapturedTable, CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import structure_at
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.stream.rows import RowRecords, TableStream
from connectors.mysql.stream.state import PendingOffset, StreamState

log = logging.getLogger(__name__)


class StreamTables:
    """The numbers of one dump.

    Args:
        offset: returns the stream's offset, for a structure that is looked up.
    """

    def __init__(self, config: MySqlConfig, schema: Schema, captured: CapturedTables, offset: Callable[[], MySqlOffset]) -> None:
        self._config = config
        self._schema = schema
        self._captured = captured
        self._offset = offset
        self._tables: dict[int, TableStream | None] = {}
        #: The last table map of each number: the same one again changes nothing.
        self._last_maps: dict[int, TableMap] = {}

    def get(self, number: int) -> TableStream | None:
        """Return the table of a number; None for one that is not captured."""
        return self._tables.get(number)

    def forget(self) -> None:
        """Forget the numbers: they now stand for other structures, or other tables."""
        self._tables.clear()
        self._last_maps.clear()

    def structure_changed(self, id_: TableId) -> None:
        """Use a table's new model, for rows of a number that is in use too."""
        captured = self._captured.get(id_)
        for number, table in list(self._tables.items()):
            if table is not None and table.captured.id == id_:
                self._tables[number] = None if captured is None else TableStream(captured, table.map)

    def announce(self, map_: TableMap) -> None:
        """Use a table map.

        Raises:
            FatalTaskError: the structure of a captured table is not known.
            MalformedEventError: its columns could not be read.
        """
        if self._last_maps.get(map_.table_id) is map_:
            return
        id_ = self._schema.tables.named(map_.schema, map_.table)
        self._tables[map_.table_id] = self._found(id_, map_) if self._config.filters.is_captured(id_) else None
        self._last_maps[map_.table_id] = map_

    def _found(self, id_: TableId, map_: TableMap) -> TableStream | None:
        captured = self._captured.get(id_)
        if captured is None:
            self._unknown(id_)
            return None
        known = self._tables.get(map_.table_id)
        if known is not None and known.captured is captured and known.map.columns == map_.columns:
            return known
        settled = self._settled(captured, map_)
        return TableStream(settled, map_)

    def _settled(self, captured: CapturedTable, map_: TableMap) -> CapturedTable:
        """Return the table, after its structure was looked up if statements do not say it."""
        id_ = captured.id
        if id_ in self._schema.unsure:
            why = f"A statement about {id_} could not be understood"
        elif map_.problem is None and captured.model.width != len(map_.columns):
            why = f"The log has {len(map_.columns)} columns of {id_}, and the schema history tells of {captured.model.width}"
        else:
            return captured
        table, statement = structure_at(self._config, id_, map_, why)
        self._schema.settle(table, statement, self._offset().dump())
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


class ChangeStream:
    """One dump of the log and the state of its decoding.

    Args:
        client: its dump has begun.
        stored: the offset from which it was started.
        gtids: what the dump skips; None for a dump that began at a file's position.
        with_gtids: whether the server's transactions have GTIDs and they are used.
        monitor: makes transaction metadata; None without it.
        pending: receives the records; the services around the stream put theirs there too.
        taps: the listeners to single tables.
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
        figures: LogFigures | None = None,
    ) -> None:
        self._client = client
        self._figures = figures or LogFigures()
        self._config = config
        self._schema = schema
        self._captured = tables
        self._with_gtids = with_gtids
        self._monitor = monitor
        self._metrics = metrics
        self._pending = pending
        self._taps = taps
        self._shows_query = config.flag("include.query")
        self._filters_rows = config.flag("gtid.source.filter.dml.events")
        self._queue: deque[tuple[Header, Body]] = deque()
        self._state = StreamState(stored, gtids)
        self._tables = StreamTables(config, schema, tables, lambda: self._state.pending_offset(self._state.events, 0).offset())
        self._records = RowRecords(config, self._state, headers, metrics, taps)
        self._resume: tuple[int, int] | None = (stored.event, stored.row) if stored.event or stored.row else None
        # another server may have transactions before the one that was read in part, which none had seen
        self._begun_by = stored.server_id
        self._is_begun = False
        self._foreign = False
        # where the event stands that names the transaction of a single statement
        self._alone: int | None = None
        self._last: PendingOffset | None = None
        self._until: BinlogPosition | None = None
        self.has_stopped = False

    def close(self) -> None:
        """End the dump."""
        self._client.close()

    @property
    def current_position(self) -> MySqlOffset | None:
        """The position of the source after the last event; None inside a transaction."""
        return self._state.current_position

    def position(self, *, last_thread: bool = False) -> EventPosition:
        """Return the last event's position, as `StreamState.position`."""
        return self._state.position(last_thread=last_thread)

    @property
    def offset(self) -> MySqlOffset:
        """The offset of the row that is being read; between rows, of the last row."""
        return self._state.offset

    @property
    def transaction(self) -> LoggedTransaction:
        """The transaction under way, or where the next one begins."""
        return self._state.transaction

    @property
    def received(self) -> BinlogPosition:
        """The position up to which the log was read."""
        return self._state.received

    @property
    def shown(self) -> GtidSet | None:
        """The transactions that were read so far, as `StreamState.shown`."""
        return self._state.shown

    def source(self) -> bytes:
        """Return the source block of the last event, for records that are not of rows."""
        event, config = self.position(), self._config
        table = self._taps.signal_table
        block = SourceBlock(
            config.connector, config.version, config.topic_prefix, table.schema if table else "", table.table if table else None
        )
        return block.render(
            self._state.ts_us,
            "false",
            event.file,
            event.pos,
            server_id=event.server_id,
            gtid=event.gtid,
            thread=event.thread,
            query=self._records.query,
        )

    def structure_changed(self, id_: TableId) -> None:
        """Use a table's new model."""
        self._tables.structure_changed(id_)
        if self._taps.watched == id_:
            self._taps.on_structure(self._schema.tables.tables.get(id_))

    def stop_at(self, until: BinlogPosition) -> None:
        """Read no further than a position between two transactions; `has_stopped` is then true."""
        self._until = until
        self._state.forget_end()

    def read(self, seconds: float) -> MySqlOffset | None:
        """Put the records of the next events to the pending ones, up to a batch's bounds; waits up to `seconds` for the first event.

        Returns:
            The offset of the last record; None without any.

        Raises:
            ServerError: the server ended the dump, or the connection broke.
            ConnectError: an event cannot be decoded, or a record cannot be made.
        """
        self._last = None
        self._read(time.monotonic() + seconds)
        return None if self._last is None else self._last.offset()

    def _read(self, deadline: float) -> None:
        rows, queue = self._pending.rows, self._queue
        size, most = 0, self._pending.batch_rows
        while True:
            while queue and len(rows) < most and size < MAX_BYTES:
                header, body = queue.popleft()
                before = len(rows)
                try:
                    self._event(header, body, rows)
                except MalformedEventError as error:
                    self._damaged(header, error)
                if len(rows) > before:
                    # their records are some times as large
                    size += header.length + sum(len(value) for _, _, value in rows[before::16] if value) * 16
                if self._until is not None and not self._state.inside and not self.received < self._until:
                    queue.clear()
                    self.has_stopped = True
                    return
            left = deadline - time.monotonic()
            if rows or left <= 0:
                return
            try:
                found = self._client.read(left)
            except MalformedEventError as error:
                at = f"{self._state.file}:{self._state.pos}"
                raise FatalTaskError(f"Error while deserializing a binlog event behind {at}: {error}") from error
            if not found:
                return
            queue.extend(found)

    # -- events ------------------------------------------------------------------------------------------------------------------------

    def _damaged(self, header: Header, error: MalformedEventError) -> None:
        """Handle an event that cannot be decoded: fail, or skip it, as ``event.processing.failure.handling.mode`` says."""
        text = f"Error while deserializing binlog event at offset {self._state.file}:{header.end - header.length}: {error}"
        mode = self._config.choice("event.processing.failure.handling.mode")
        if mode not in ("warn", "skip", "ignore"):
            raise FatalTaskError(text) from error
        log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s. The event is left out", text)
        self._figures.skipped += 1
        self._state.passed(header.end)

    def _event(self, header: Header, body: Body, rows: list[EncodedRow]) -> None:
        state = self._state
        if isinstance(body, Rotate):
            self._rotate(header, body)
            return
        if isinstance(body, Heartbeat):
            state.on_heartbeat(body.file, body.position or header.end)
            return
        if not header.timestamp:
            return
        state.on_header(header)
        gtid = body.of_server(header.server_id) if isinstance(body, MariadbGtid) else body
        if isinstance(gtid, Gtid):
            self._on_gtid(gtid)
        elif state.gtid is None or not state.gtid.commit_micros:
            state.ts_us = header.timestamp * 1_000_000
        if isinstance(body, Rows):
            self._on_rows(header, body, rows)
        elif isinstance(body, TableMap):
            self._tables.announce(body)
        elif isinstance(body, Query):
            self._on_query(header, body, rows)
        elif isinstance(body, Xid) or header.type == EventType.XA_PREPARE:
            self._commit(header, rows)
            return
        elif isinstance(body, MariadbGtid):
            self._alone = header.end - header.length if body.standalone else None
            if not body.standalone:
                self._begin(header, None, rows)
        elif isinstance(body, RowsQuery):
            if self._shows_query:
                self._records.query = body.text
        elif isinstance(body, PreviousGtids):
            self._on_previous_gtids(body)
        elif isinstance(body, AnonymousGtid):
            state.learn_gtids(None)  # a restart by names would miss it
        elif isinstance(body, Incident):
            log.error("The server reports an incident at %s:%d: %s", state.file, header.end, body.message)
        state.passed(header.end, counts=not isinstance(body, TransactionPayload))

    def _rotate(self, header: Header, body: Rotate) -> None:
        """Continue in another file. Real events are in the log; at a dump's start the server makes one up to send the file's name."""
        if body.file != self._state.file or header.timestamp:
            self._state.rotate(body.file, body.position)
        self._tables.forget()

    def _on_gtid(self, gtid: Gtid) -> None:
        if not self._with_gtids:
            return
        self._state.name(gtid)
        self._foreign = self._filters_rows and not self._config.gtid_sources(gtid.source.partition(":")[0])

    def _on_previous_gtids(self, body: PreviousGtids) -> None:
        """Let offsets name transactions again, where the server's ``gtid_mode`` has become ON since they were without names.

        A dump that began at a file's position has read, at the begin of the next file, all that this event names.
        """
        if not self._with_gtids or not self._state.misses_gtids:
            return
        try:
            read = GtidSet.decode(body.encoded)
        except DataError as error:
            raise MalformedEventError(str(error)) from error
        log.info("Offsets have GTIDs again from the begin of the file %s on", self._state.file)
        self._state.learn_gtids(read)

    def _begin(self, header: Header, thread: int | None, rows: list[EncodedRow], *, counted: bool = True) -> None:
        """Begin a transaction; `counted` says whether records show its boundaries."""
        state, records = self._state, self._records
        # MariaDB's event of a GTID has no thread, and begins a transaction that a statement of XA begins once more
        self._figures.malformed += thread is not None and state.inside
        state.begin(header.end - header.length, thread)
        self._is_begun = self._resume is not None and self._begun_by in (0, header.server_id)
        records.transaction = state.shown_gtid if state.shown_gtid is not None else f"file={state.file},pos={state.pos}"
        records.monitor = self._monitor if counted else None
        if records.monitor is not None:
            row = records.monitor.begin(records.transaction, records.transaction, state.ts_us // 1000)
            if row is not None:
                rows.append(row)
                self._last = state.pending_offset(0, 0)

    def _commit(self, header: Header, rows: list[EncodedRow]) -> None:
        state, records = self._state, self._records
        self._figures.malformed += not state.inside
        if records.monitor is not None:
            row = records.monitor.end(records.transaction, state.ts_us // 1000)
            # an offset that counts all events and no row is the one of this record
            if row is not None and not (self._is_begun and self._resume == (state.events, 0)):
                rows.append(row)
                self._last = state.pending_offset(state.events, 0)
            records.monitor = None
        state.commit(header.end)
        records.query = None
        if self._is_begun:
            self._resume, self._is_begun = None, False
        self._metrics.transactions += 1

    # -- statements --------------------------------------------------------------------------------------------------------------------

    def _on_query(self, header: Header, query: Query, rows: list[EncodedRow]) -> None:
        if query.sql == b"BEGIN":
            self._begin(header, query.thread_id, rows)
            return
        sql = query.text
        kind = kind_of(sql)
        if kind is Kind.BEGIN:
            self._begin(header, query.thread_id, rows)
        elif kind is Kind.XA_BEGIN:
            # prepared transactions have no boundaries among the records
            self._begin(header, None, rows, counted=False)
        elif kind is Kind.COMMIT or (kind is Kind.XA_END and self._state.inside):
            self._figures.rolled_back += "ROLLBACK" in sql[:20].upper()
            self._commit(header, rows)
        elif kind is Kind.ROWS:
            log.warning(
                "The log holds a statement in place of its rows, which are lost here: set binlog_format=ROW for every session: %s",
                sql[:200],
            )
        elif kind is Kind.DDL:
            self._ddl(header, query, sql, rows)

    def _ddl(self, header: Header, query: Query, sql: str, rows: list[EncodedRow]) -> None:
        state = self._state
        if not state.inside and header.end:
            state.pos = header.end
        pending = state.pending_offset(state.events if state.inside else 0, 0)
        if self._alone is not None:
            # Debezium counts MariaDB's event before a statement as a transaction's first
            pending = replace(pending, pos=self._alone, events=1)
        shown = {
            "server_id": state.server_id,
            "gtid": state.shown_gtid,
            "thread": state.thread,
            "query": self._records.query,
            "row": state.row,
        }
        source = (state.ts_us // 1000 * 1000, "false", state.file, header.end - header.length, shown)
        found, changes = self._schema.statement(sql, query.schema, pending.offset().dump(), source, sql_mode=query.sql_mode or 0)
        for change in changes:
            if change.kind == "TRUNCATE":
                self._truncate(header, change.id, rows)
            elif self._taps.watched is not None and self._taps.watched in (change.id, change.previous):
                self._taps.on_structure(self._schema.tables.tables.get(self._taps.watched))
        self._tables.forget()
        if found and not self._known_statement():
            rows += found
            self._last = pending
        self._alone = None
        if not state.inside:
            # a transaction of its own: the history holds it, a start need not read it again
            state.complete()
            state.end_name()
            if self._last is not None:
                self._last = state.pending_offset(0, 0)

    def _known_statement(self) -> bool:
        """Return whether a statement inside a transaction was given out before the start."""
        return self._is_begun and self._resume is not None and self._state.inside and self._state.events < self._resume[0]

    def _truncate(self, header: Header, id_: TableId, rows: list[EncodedRow]) -> None:
        if self._taps.watched == id_:
            self._taps.on_truncate()
        captured = self._captured.get(id_)
        row = None if captured is None else self._records.truncate(captured, header)
        if row is not None:
            rows.append(row)
            self._last = self._state.pending_offset(0, 0)

    # -- rows --------------------------------------------------------------------------------------------------------------------------

    def _on_rows(self, header: Header, event: Rows, rows: list[EncodedRow]) -> None:
        table = self._tables.get(event.table_id)
        if table is None or self._foreign:
            self._metrics.filtered += 1
            return
        state = self._state
        passed = 0
        if self._is_begun and self._resume is not None and state.inside:
            events, row = self._resume
            if state.events < events:
                return
            passed = row if state.events == events else 0
            self._resume = None
        before = len(rows)
        count = self._records.append_records(header, event, table, passed, rows)
        if count is None:
            return
        if len(rows) > before:
            self._last = state.pending_offset(state.events, count)
        state.row = max(count - 1, 0)
