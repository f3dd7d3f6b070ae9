"""A snapshot of PostgreSQL: one read-only REPEATABLE READ transaction, each table by COPY in text form.

Consistency. All tables are read in one consistent snapshot, also when the slot existed before (Debezium then reads each table in one of
its own). The `lsn` of the offset is where streaming continues and never lies after that snapshot; `slot/slot.py` says which position it is.
The offset says "unfinished" until the last row, and which parts are done; `lifecycle.py` says how the next attempt resumes from there.

The transaction has no number (`txid`) of its own, since CREATE_REPLICATION_SLOT waits for every numbered transaction of the server to end:
a long snapshot would hold up every new slot. `txId` is the number of an empty transaction just before it; Debezium numbers the reading one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.chunks import KeyColumn, range_sql
from connectors.engine.snapshot.initial.plan import NEVER_CUT, ChunkPlan, chunk_rows
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkedSnapshot, SnapshotReading, SnapshotRun
from connectors.engine.snapshot.parallel.pool import ParallelSnapshot, ReaderTable
from connectors.engine.stored_offsets import BLOCKING, INITIAL
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset, format_lsn, parse_lsn
from connectors.postgres.server.catalog import read_tables
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.snapshot import worker
from connectors.postgres.snapshot.chunks import DIALECT, TableCuts, ordered, read_sizes
from connectors.postgres.snapshot.rows import ConsistentSnapshot, CopyRows, snapshot_encoder
from connectors.postgres.tables import TableFactory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """What is to be read, and when.

    Attributes:
        tables: the tables in the order of reading.
        captured: all that are captured, for notifications.
        exported: name of an exported snapshot to import, None for the transaction's own.
        lsn: where streaming continues afterwards, not after the snapshot; None when nothing follows: the present position.
        kind: INITIAL or BLOCKING.
        statements: SELECTs by the names of the tables that they replace.
        base: the streaming position that the snapshot interrupts, and from which streaming continues; None when it precedes all streaming.
        progress: what is done already; it is updated.
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
        events: receives notifications.
        metrics: where rows and tables are counted.
        while_waiting: called a few times a second while the server works on something else than rows.

    Attributes:
        offset: where the source stands once all rows that were given out are in Kafka.
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
        captured = [str(table) for table in request.captured or request.tables]
        events = events or InitialEvents("", lambda _: None)
        self._request = request
        progress = request.progress or SnapshotProgress()
        self._connection = connection
        self._config = config
        self._factory = factory
        chunk = chunk_rows(config.raw) if request.kind == INITIAL else NEVER_CUT
        events.started()
        try:
            self._consistent = self._begin(request)
            self._structures = read_tables(connection, request.tables)
            present = [table for table in request.tables if table in self._structures]
            sizes = read_sizes(connection, present)
            present = ordered(present, sizes, config.choice("snapshot.tables.order.by.row.count"))
        except ServerError as error:
            raise translate(error, "Cannot begin the snapshot", user=config.user, database=config.database) from None
        names = [str(table) for table in present]
        readers = 1 if request.kind == BLOCKING else config.number("snapshot.max.threads")
        plan = ChunkPlan(
            present,
            TableCuts(connection, self._structures, sizes, while_waiting),
            progress,
            whole=frozenset(names if readers > 1 and config.flag("legacy.snapshot.max.threads") else request.statements or ()),
            chunk_rows=chunk,
            readers=readers,
            chunks_each=config.number("snapshot.max.threads.multiplier"),
        )
        self._reading = SnapshotReading(
            names,
            captured,
            progress,
            events,
            metrics or SnapshotMetrics("postgres", ""),
            estimates={str(table): sizes[table].rows if table in sizes else None for table in present},
            keeps_progress=request.kind == INITIAL and config.snapshot_mode.streams,
            chunk_rows=chunk,
        )
        readers = min(readers, plan.count())
        self._reading.run = self._one_reader(plan, progress) if readers < 2 else self._several_readers(plan, progress, readers)
        if request.base is not None:
            self.offset = replace(request.base, snapshot=request.kind, snapshot_completed=False, last_snapshot_record=False)
        else:
            self.offset = PostgresOffset(
                lsn=self._consistent.lsn, tx_id=self._consistent.tx_id, ts_us=self._consistent.ts_us, snapshot=request.kind
            )
        self.offset = replace(self.offset, progress=self._reading.progress_text)
        log.info("Snapshot of %d tables at %s: %s", len(present), format_lsn(self._consistent.lsn), ", ".join(names))

    def interrupt(self, base: PostgresOffset) -> None:
        """Note, before the first row, that the stream has reached `base` and continues from there afterwards."""
        self._request = replace(self._request, base=base)
        self._consistent = replace(self._consistent, last_commit=base.lsn_commit)
        self.offset = replace(base, snapshot=self._request.kind, progress=self.offset.progress)

    def _begin(self, request: SnapshotRequest) -> ConsistentSnapshot:
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
        return ConsistentSnapshot(
            parse_lsn(str(here)) if request.lsn is None else request.lsn,
            int(tx_id) if tx_id else None,
            int(ts_us or 0),
            request.base.lsn_commit if request.base is not None else None,
        )

    def _one_reader(self, plan: ChunkPlan[TableId], progress: SnapshotProgress) -> SnapshotRun:
        return ChunkedSnapshot(plan.chunks(), self._open, progress, self._reading.table_ended)

    def _several_readers(self, plan: ChunkPlan[TableId], progress: SnapshotProgress, readers: int) -> SnapshotRun:
        ((exported,),) = self._connection.query("SELECT pg_export_snapshot()")
        log.info("The snapshot is read by %d processes", readers)
        return ParallelSnapshot(
            plan.chunks(),
            self._reader_table,
            lambda chunk: worker.describe(chunk.table, self._where(chunk), self._statement(chunk.table)),
            module=worker.MODULE,
            spec=lambda: worker.spec(self._config, self._factory.encoding, str(exported), self._consistent),
            readers=readers,
            progress=progress,
            table_ended=self._reading.table_ended,
            scanned=self._reading.scanned,
        )

    def _open(self, chunk: Chunk[TableId]) -> CopyRows:
        name = str(chunk.table)
        self._reading.begin_table(name)
        statement = self._statement(chunk.table)
        if statement is not None and self.is_blocking:
            # a signal's text stands in parentheses, which it must not close
            self._connection.parse(statement.rstrip().rstrip(";"))
        return CopyRows(
            self._connection,
            self._factory.build(self._structures[chunk.table]),
            self._consistent,
            where=self._where(chunk),
            statement=statement,
            scanned=lambda rows: self._reading.scanned(name, rows),
        )

    def _reader_table(self, chunk: Chunk[TableId]) -> ReaderTable:
        self._reading.begin_table(str(chunk.table))
        table = self._factory.build(self._structures[chunk.table])
        return ReaderTable(table.route, snapshot_encoder(table, self._consistent), *table.encoder.heads)

    def _where(self, chunk: Chunk[TableId]) -> str:
        table = self._structures[chunk.table]
        key = [KeyColumn(column.name, column.nullable) for name in table.key if (column := table.column(name)) is not None]
        return range_sql(key, chunk.range.after, chunk.range.until, DIALECT)

    def _statement(self, table: TableId) -> str | None:
        return (self._request.statements or {}).get(str(table))

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
        return self._reading.run.finished

    @property
    def is_milestone(self) -> bool:
        return self._reading.is_milestone

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; none when none came in the time of a poll or the snapshot has ended.

        Raises:
            ConnectError: the snapshot has to continue in another attempt (RetriableError), or cannot succeed (FatalTaskError).
            Stopped: a stop was asked for.
        """
        try:
            rows = self._reading.next_rows()
            if self.finished:
                self._connection.query("COMMIT")
        except ServerError as error:
            what = f"Cannot read {self._reading.current}"
            raise translate(error, what, user=self._config.user, database=self._config.database) from None
        if self.offset.progress != self._reading.progress_text:
            self.offset = replace(self.offset, progress=self._reading.progress_text)
        if self.finished:
            self.offset = replace(self.offset, snapshot_completed=True, last_snapshot_record=True, progress=None)
            self._reading.completed()
        return rows

    def close(self) -> None:
        """End the reading, wherever it is; the connection is the caller's."""
        self._reading.run.close()


def lock_sql(tables: Sequence[TableId], timeout_ms: int) -> str:
    """Return the statement that locks all tables for reading, until the transaction's end."""
    names = ", ".join(f"{quote_name(table.schema)}.{quote_name(table.table)}" for table in tables)
    return f"SET LOCAL lock_timeout = {timeout_ms}; LOCK TABLE {names} IN ACCESS SHARE MODE;" if names else ""
