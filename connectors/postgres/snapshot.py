"""A snapshot of PostgreSQL: one read-only REPEATABLE READ transaction, each table by COPY in text form (postgres.md §8).

Consistency. All tables are read at one moment, also when the slot existed before (Debezium then reads each table at a moment of its own).
The `lsn` of the offset is where streaming goes on and never lies after that moment; `slot.py` says which position it is. The offset says
"unfinished" until the last row, and what is done so far; `snapshot_life.py` says how the next attempt goes on from there.

The transaction has no number (`txid`) of its own, since CREATE_REPLICATION_SLOT waits for every numbered transaction of the server to end:
a long snapshot would hold up every new slot. `txId` is the number of an empty transaction just before it; Debezium numbers the reading one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect_py.api.record import EncodedRow
from connect_py.errors import FatalTaskError
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.chunks import KeyColumn, range_sql
from connectors.engine.snapshot.initial import ChunkedSnapshot, SnapshotRun
from connectors.engine.snapshot.parallel import ParallelSnapshot, ReaderTable
from connectors.engine.snapshot.progress import Chunk, SnapshotProgress
from connectors.postgres import snapshot_reader
from connectors.postgres.catalog import read_tables
from connectors.postgres.chunk_plan import CHUNK_ROWS, ChunkPlan, ordered, read_sizes
from connectors.postgres.chunk_reader import DIALECT
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connection import Connection, quote_literal, quote_name
from connectors.postgres.copy_rows import CopyRows, Moment, snapshot_encoder
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.lsn import format_lsn, parse_lsn
from connectors.postgres.offset import BLOCKING, INITIAL, PostgresOffset
from connectors.postgres.tables import TableFactory

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """What is to be read, and when.

    Attributes:
        tables: in order.
        captured: all that are captured, for notifications.
        exported: name of an exported snapshot to import, None to take the transaction's own moment.
        lsn: where streaming goes on afterwards, at or before the snapshot's moment; None when nothing follows: the present position.
        kind: INITIAL or BLOCKING.
        statements: SELECTs by the names of the tables that they are read in place of.
        base: the streaming position that the snapshot interrupts, and at which streaming goes on; None when it comes before all streaming.
        progress: what is done already; is told of more.
    """

    tables: Sequence[TableId]
    captured: Sequence[TableId] = ()
    exported: str | None = None
    lsn: int | None = None
    kind: str = INITIAL
    statements: Mapping[str, str] | None = None
    base: PostgresOffset | None = None
    progress: SnapshotProgress | None = None


class PostgresSnapshot:
    """The running snapshot; used by the task's thread only.

    Args:
        connection: an ordinary one; the snapshot's transaction lives on it.
        events: takes notifications.
        metrics: where rows and tables are counted.
        while_waiting: called some times a second while the server works on something else than rows.

    Attributes:
        offset: where the source stands once all rows that were given out are in Kafka.
        is_milestone: whether the last rows that were given out ended a chunk, and so much was read since the last time.
    """

    def __init__(
        self,
        connection: Connection,
        config: PostgresConfig,
        factory: TableFactory,
        request: SnapshotRequest,
        *,
        events: InitialEvents | None = None,
        metrics: SnapshotMetrics | None = None,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self._captured = [str(table) for table in request.captured or request.tables]
        self._events = events or InitialEvents("", lambda _: None)
        self._request = request
        self._progress = request.progress or SnapshotProgress()
        self._connection = connection
        self._config = config
        self._factory = factory
        self._started = self._reported = time.monotonic()
        self._current = "the snapshot's transaction"
        self._metrics = metrics or SnapshotMetrics("postgres", "")
        self._counts: dict[str, int] = {}
        self._chunk_rows = chunk_rows(config, request)
        self._stored_rows = 0
        self.is_milestone = False
        self._events.started()
        try:
            self._moment = self._begin(request)
            self._structures = read_tables(connection, request.tables)
            present = [table for table in request.tables if table in self._structures]
            sizes = read_sizes(connection, present)
            present = ordered(present, sizes, config.choice("snapshot.tables.order.by.row.count"))
        except ServerError as error:
            raise translate(error, "Cannot begin the snapshot", user=config.user, database=config.database) from None
        self._names = [str(table) for table in present]
        readers = 1 if request.kind == BLOCKING else config.number("snapshot.max.threads")
        plan = ChunkPlan(
            connection,
            {table: self._structures[table] for table in present},
            sizes,
            self._progress,
            whole=frozenset(self._names if readers > 1 and config.flag("legacy.snapshot.max.threads") else request.statements or ()),
            chunk_rows=self._chunk_rows,
            readers=readers,
            chunks_each=config.number("snapshot.max.threads.multiplier"),
            while_waiting=while_waiting,
        )
        self._run = self._one_reader(plan) if min(readers, plan.count()) < 2 else self._several_readers(plan, min(readers, plan.count()))
        done = {name: rows for name in self._names if (rows := self._progress.rows(name))}
        estimates = {str(table): sizes[table].rows if table in sizes else None for table in present}
        ended = [name for name in self._names if self._progress.is_done(name)]
        self._metrics.begin(len(present) - len(ended), estimates, done, ended)
        if request.base is not None:
            self.offset = replace(request.base, snapshot=request.kind, snapshot_completed=False, last_snapshot_record=False)
        else:
            self.offset = PostgresOffset(lsn=self._moment.lsn, tx_id=self._moment.tx_id, ts_us=self._moment.ts_us, snapshot=request.kind)
        self._note_progress()
        log.info("Snapshot of %d tables at %s: %s", len(present), format_lsn(self._moment.lsn), ", ".join(self._names))

    def interrupt(self, base: PostgresOffset) -> None:
        """Before the first row: the stream has gone on to `base`, and goes on from there afterwards."""
        self._request = replace(self._request, base=base)
        self._moment = replace(self._moment, last_commit=base.lsn_commit)
        self.offset = replace(base, snapshot=self._request.kind, progress=self.offset.progress)

    def _begin(self, request: SnapshotRequest) -> Moment:
        function = "pg_current_xact_id" if self._connection.server_version >= 130000 else "txid_current"
        ((tx_id,),) = self._connection.query(f"SELECT CASE WHEN NOT pg_is_in_recovery() THEN {function}()::text END")
        take = f"SET TRANSACTION SNAPSHOT {quote_literal(request.exported)};" if request.exported else ""
        lock = ""
        if self._config.choice("snapshot.locking.mode") == "shared":
            lock = lock_sql(request.tables, self._config.number("snapshot.lock.timeout.ms"))
        ((ts_us, here),) = self._connection.query(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {take} {lock} "
            "SELECT (extract(epoch FROM current_timestamp) * 1000000)::bigint, "
            "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END"
        )
        return Moment(
            parse_lsn(str(here)) if request.lsn is None else request.lsn,
            int(tx_id) if tx_id else None,
            int(ts_us or 0),
            request.base.lsn_commit if request.base is not None else None,
        )

    def _one_reader(self, plan: ChunkPlan) -> SnapshotRun:
        return ChunkedSnapshot(plan.chunks(), self._open, self._progress, self._table_ended)

    def _several_readers(self, plan: ChunkPlan, readers: int) -> SnapshotRun:
        ((exported,),) = self._connection.query("SELECT pg_export_snapshot()")
        log.info("The snapshot is read by %d processes", readers)
        return ParallelSnapshot(
            plan.chunks(),
            self._reader_table,
            lambda chunk: snapshot_reader.describe(chunk.table, self._where(chunk), self._statement(chunk.table)),
            module=snapshot_reader.MODULE,
            spec=lambda: snapshot_reader.spec(self._config, self._factory.encoding, str(exported), self._moment),
            readers=readers,
            progress=self._progress,
            table_ended=self._table_ended,
            scanned=self._scanned,
        )

    def _open(self, chunk: Chunk[TableId]) -> CopyRows:
        name = str(chunk.table)
        self._begin_table(name)
        return CopyRows(
            self._connection,
            self._factory.build(self._structures[chunk.table]),
            self._moment,
            where=self._where(chunk),
            statement=self._statement(chunk.table),
            scanned=lambda rows: self._scanned(name, rows),
        )

    def _reader_table(self, chunk: Chunk[TableId]) -> ReaderTable:
        self._begin_table(str(chunk.table))
        table = self._factory.build(self._structures[chunk.table])
        return ReaderTable(table.route, snapshot_encoder(table, self._moment), *table.encoder.heads)

    def _begin_table(self, name: str) -> None:
        self._current = f"the table {name}"
        if name not in self._counts:
            self._counts[name] = self._progress.rows(name)
            self._events.in_progress(name, self._names)

    def _where(self, chunk: Chunk[TableId]) -> str:
        table = self._structures[chunk.table]
        key = [KeyColumn(column.name, column.nullable) for name in table.key if (column := table.column(name)) is not None]
        return range_sql(key, chunk.range.after, chunk.range.until, DIALECT)

    def _statement(self, table: TableId) -> str | None:
        return (self._request.statements or {}).get(str(table))

    def _scanned(self, table: str, rows: int) -> None:
        self._counts[table] += rows
        self._metrics.scanned(table, rows)

    def _table_ended(self, table: str) -> None:
        self._metrics.table_done(table)
        self._events.scan_completed(table, self._captured, self._counts[table])

    @property
    def is_blocking(self) -> bool:
        """Whether a signal asked for it."""
        return self._request.kind == BLOCKING

    @property
    def after(self) -> PostgresOffset:
        """Where the source stands once the snapshot has ended, in whatever way."""
        return self._request.base if self._request.base is not None else self.offset

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._run.finished

    def next_rows(self) -> list[EncodedRow]:
        """The next records; none when none came in the time of a poll or the snapshot has ended.

        Raises:
            ConnectError: the snapshot has to go on in another attempt (RetriableError), or cannot succeed (FatalTaskError).
            Stopped: a stop was asked for.
        """
        try:
            rows = self._run.next_rows()
            self._metrics.events(len(rows))
            if self._run.finished:
                self._connection.query("COMMIT")
        except ServerError as error:
            raise translate(error, f"Cannot read {self._current}", user=self._config.user, database=self._config.database) from None
        self._note_progress()
        if self._run.finished:
            self.offset = replace(self.offset, snapshot_completed=True, last_snapshot_record=True, progress=None)
            self._metrics.end("completed")
            self._events.completed()
            seconds = time.monotonic() - self._started
            log.info("Snapshot finished: %d rows in %.1f s", self._run.rows_sent, seconds)
        elif time.monotonic() - self._reported > PROGRESS_SECONDS:
            self._reported = time.monotonic()
            log.info("Snapshot: %d rows so far, now reading %s", self._run.rows_sent, self._current)
        return rows

    def close(self) -> None:
        """End the reading, wherever it is; the connection is the caller's."""
        self._run.close()

    def _note_progress(self) -> None:
        # without a stream behind it, chunks of several moments would never become one state
        if not self.is_blocking and self._config.snapshot_mode.streams:
            text = self._progress.text
            self.is_milestone = text != self.offset.progress and self._run.rows_sent - self._stored_rows >= self._chunk_rows // 2
            if text != self.offset.progress:
                self.offset = replace(self.offset, progress=text)
            if self.is_milestone:
                self._stored_rows = self._run.rows_sent


def chunk_rows(config: PostgresConfig, request: SnapshotRequest) -> int:
    """Rows of a chunk; a blocking snapshot is not taken again, so that nothing is gained by cutting tables."""
    if request.kind == BLOCKING:
        return 1 << 62
    text = config.raw.get("internal.snapshot.chunk.rows", "").strip()
    if text and not (text.isdecimal() and int(text)):
        raise FatalTaskError(f"internal.snapshot.chunk.rows is '{text}', not a number of rows. Nothing was read")
    return int(text or CHUNK_ROWS)


def lock_sql(tables: Sequence[TableId], timeout_ms: int) -> str:
    """Locks all tables for reading, until the transaction's end."""
    names = ", ".join(f"{quote_name(table.schema)}.{quote_name(table.table)}" for table in tables)
    return f"SET LOCAL lock_timeout = {timeout_ms}; LOCK TABLE {names} IN ACCESS SHARE MODE;" if names else ""
