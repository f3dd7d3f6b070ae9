"""The snapshots of a PostgreSQL task: the initial one, the rest of one that was interrupted, and those that signals ask for. Each is one
read-only REPEATABLE READ transaction, in which each table is read by COPY in text form.

Consistency. All tables are read in one consistent snapshot, also when the slot existed before (Debezium then reads each table in one of
its own). The `lsn` of the offset is where streaming continues and never lies after that snapshot; `slot/slot.py` says which position it is.
The offset says "unfinished" until the last row, and which parts are done.

The transaction has no number (`txid`) of its own, since CREATE_REPLICATION_SLOT waits for every numbered transaction of the server to end:
a long snapshot would hold up every new slot. `txId` is the number of an empty transaction just before it; Debezium numbers the reading one.

An initial snapshot that was interrupted resumes after its last finished chunk. Its exported snapshot S0 is gone by then; what is left is
read in a later snapshot S1. The rows read so far are of S0 (or of an earlier one), and the slot gives every change since. So the next
attempt

1. takes a snapshot S1 by a temporary slot, whose consistent point H is exact: S1 holds the transactions that committed before H, no other;
2. streams from the stored position up to H, and stops there between two transactions;
3. reads the chunks that are left, in S1;
4. streams on from H.

Why the result is right. Whatever is sent of a row is in the order of its history: rows of S0, then changes up to H, then rows of S1, which
is the state at H, then changes after H. No row ever follows a newer one, so nothing goes back in time, and what a topic holds at last
for a key is its last state:

- a key of a finished chunk has its row of S0 and every change after it;
- a key of a chunk that is left may have changes, and rows of an attempt that was cut off in the chunk, and has its row of S1 after them;
  one that was deleted before H has its delete in the stream, and no row in S1;
- a row that moved to another key before H is deleted and created in the stream, whatever chunks the two keys fall into, and one whose new
  key is left to read comes again in S1;
- a truncate is in the stream, before S1 or after it;
- of a table without a key, rows that were sent before are sent again, as after any interruption. It has no chunks.

One thing a stream cannot give: a large value that an update left as it was, unless the table's replica identity is FULL. It arrives with
S1 where the row's key is left to read; for a key in a finished chunk it was sent before; only a row that moved from a key that is left to
one that is finished lacks it.

The offset says "unfinished" from the first row to the last, through the streaming of step 2 too, so that Debezium, which does not know our
field, starts over from it. An interruption of the second attempt is no other case: the position is then at H or before it.

Without room for a temporary slot there is no H. Then S1 is a transaction's own snapshot, the chunks are read at once, and streaming
continues from the stored position: changes between the two follow rows that are newer, and lead to the same end, but a reader sees such a
row go back and come again. The same happens when an attempt starts over (`slot/slot.py`).

Owned by the task's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId, compile_java_regex
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.chunks import KeyColumn, range_sql
from connectors.engine.snapshot.initial.plan import ChunkPlan, whole_names
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkRows, SnapshotPipeline, SnapshotSource, in_order
from connectors.engine.snapshot.parallel.pool import ReaderPool, ReaderTable
from connectors.engine.stored_offsets import BLOCKING, INITIAL
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset, format_lsn, parse_lsn
from connectors.postgres.preparation import Start, open_general
from connectors.postgres.server.catalog import read_tables
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.snapshot import worker
from connectors.postgres.snapshot.chunks import DIALECT, TableCuts, ordered, read_sizes
from connectors.postgres.snapshot.rows import ConsistentSnapshot, copy_rows, snapshot_encoder
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
    statements: Mapping[str, str] = field(default_factory=dict)
    base: PostgresOffset | None = None
    progress: SnapshotProgress | None = None


class PostgresSnapshot(SnapshotSource[PostgresOffset]):
    """The running snapshot.

    Args:
        connection: on which the transaction lives; the task's, which lends it.
        is_own: whether it is the snapshot's instead, since the stream is read at the same time.
        events: receives notifications.
        metrics: where rows and tables are counted.
        while_waiting: called a few times a second while the server works on something else than rows.

    Raises:
        ConnectError: it cannot begin.
    """

    def __init__(
        self,
        connection: Connection,
        config: PostgresConfig,
        factory: TableFactory,
        request: SnapshotRequest,
        *,
        is_own: bool,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        while_waiting: Callable[[], None],
    ) -> None:
        self.is_blocking = request.kind == BLOCKING
        self._request = request
        self._connection = connection
        self._is_own = is_own
        self._config = config
        self._factory = factory
        self._pool: ReaderPool[TableId] | None = None
        try:
            self._start(events, metrics, while_waiting)
        except BaseException as error:
            if self.is_blocking and isinstance(error, ConnectError):
                with suppress(ServerError):
                    self.rollback()
            self.close()
            raise

    def _start(self, events: InitialEvents, metrics: SnapshotMetrics, while_waiting: Callable[[], None]) -> None:
        request, config, connection = self._request, self._config, self._connection
        progress = request.progress or SnapshotProgress()
        events.started()
        try:
            self._consistent = self._begin(request)
            self._structures = read_tables(connection, request.tables)
            present = [table for table in request.tables if table in self._structures]
            sizes = read_sizes(connection, present)
            present = ordered(present, sizes, config.choice("snapshot.tables.order.by.row.count"))
        except ServerError as error:
            raise translate(error, "Cannot begin the snapshot", user=config.user, database=config.database) from None
        plan = ChunkPlan.from_config(
            config,
            present,
            TableCuts(connection, self._structures, sizes, while_waiting),
            progress,
            whole=whole_names(config, present, request.statements),
            is_blocking=self.is_blocking,
        )
        if plan.readers > 1:
            self._pool = self._reader_pool(plan.readers)
        names = [str(table) for table in present]
        self.pipeline = SnapshotPipeline(
            self,
            self._pool or in_order(self._open),
            plan.chunks(),
            names=names,
            captured=[str(table) for table in request.captured or request.tables],
            progress=progress,
            events=events,
            metrics=metrics,
            estimates={str(table): sizes[table].rows if table in sizes else None for table in present},
            keeps_progress=not self.is_blocking and config.snapshot_mode.streams,
            chunk_rows=plan.chunk_rows,
        )
        if request.base is not None:
            self.offset = replace(request.base, snapshot=request.kind, snapshot_completed=False, last_snapshot_record=False)
        else:
            self.offset = PostgresOffset(
                lsn=self._consistent.lsn, tx_id=self._consistent.tx_id, ts_us=self._consistent.ts_us, snapshot=request.kind
            )
        self.offset = replace(self.offset, progress=self.pipeline.progress_text)
        log.info("Snapshot of %d tables at %s: %s", len(present), format_lsn(self._consistent.lsn), ", ".join(names))

    def interrupt(self, base: PostgresOffset) -> None:
        """Note, before the first row, that the stream has reached `base` and continues from there afterwards."""
        self._request = replace(self._request, base=base)
        self._consistent = replace(self._consistent, last_commit=base.lsn_commit)
        self.offset = replace(base, snapshot=self._request.kind, progress=self.offset.progress)

    @property
    def after(self) -> PostgresOffset:
        return self._request.base if self._request.base is not None else self.offset

    def stored(self, progress: str | None) -> None:
        self.offset = replace(self.offset, progress=progress)

    def finish(self) -> list[EncodedRow]:
        self._connection.query("COMMIT")
        self.offset = replace(self.offset, snapshot_completed=True, last_snapshot_record=True, progress=None)
        return []

    def rollback(self) -> None:
        self._connection.query("ROLLBACK")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._is_own:
            self._connection.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

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

    def _open(self, chunk: Chunk[TableId]) -> ChunkRows[bytes]:
        statement = self._statement(chunk.table)
        if statement is not None and self.is_blocking:
            # a signal's text stands in parentheses, which it must not close
            self._connection.parse(statement.rstrip().rstrip(";"))
        table = self._factory.build(self._structures[chunk.table])
        rows = copy_rows(self._connection, table, where=self._where(chunk), statement=statement)
        return rows, snapshot_encoder(table, self._consistent)

    def _reader_pool(self, readers: int) -> ReaderPool[TableId]:
        ((exported,),) = self._connection.query("SELECT pg_export_snapshot()")
        log.info("The snapshot is read by %d processes", readers)
        return ReaderPool(
            self._reader_table,
            lambda chunk: worker.describe(chunk.table, self._where(chunk), self._statement(chunk.table)),
            module=worker.MODULE,
            spec=lambda: worker.spec(self._config, self._factory.encoding, str(exported), self._consistent),
            readers=readers,
        )

    def _reader_table(self, chunk: Chunk[TableId]) -> ReaderTable:
        table = self._factory.build(self._structures[chunk.table])
        return ReaderTable(table.route, snapshot_encoder(table, self._consistent), *table.encoder.heads)

    def _where(self, chunk: Chunk[TableId]) -> str:
        table = self._structures[chunk.table]
        key = [KeyColumn(column.name, column.nullable) for name in table.key if (column := table.column(name)) is not None]
        return range_sql(key, chunk.range.after, chunk.range.until, DIALECT)

    def _statement(self, table: TableId) -> str | None:
        return self._request.statements.get(str(table))


def lock_sql(tables: Sequence[TableId], timeout_ms: int) -> str:
    """Return the statement that locks all tables for reading, until the transaction's end."""
    names = ", ".join(f"{quote_name(table.schema)}.{quote_name(table.table)}" for table in tables)
    return f"SET LOCAL lock_timeout = {timeout_ms}; LOCK TABLE {names} IN ACCESS SHARE MODE;" if names else ""


class SnapshotLifecycle:
    """Begins, resumes and ends the snapshots of a task.

    Args:
        events: receives notifications.
        metrics: where rows and tables are counted.
        while_waiting: called a few times a second while the server works.

    Attributes:
        running: the current snapshot; None when there is none. Before it is read, the stream may have to reach `catch_up_to`.
        has_begun: whether there was one since the task was started.
        catch_up_to: step 2: where the stream has to be before `running` is read; None when it is read now.
    """

    def __init__(
        self,
        config: PostgresConfig,
        factory: TableFactory,
        *,
        events: InitialEvents,
        metrics: SnapshotMetrics,
        while_waiting: Callable[[], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self._config = config
        self._factory = factory
        self._events = events
        self._metrics = metrics
        self._while_waiting = while_waiting
        self._should_stop = should_stop
        self.running: PostgresSnapshot | None = None
        self.has_begun = False
        self.catch_up_to: int | None = None

    def begin(self, general: Connection, start: Start) -> PostgresSnapshot:
        """Begin the snapshot that a start asks for. Raises ConnectError and ServerError."""
        position = start.position
        filters, tables = self._config.filters, start.to_read or []
        exported = start.exported
        progress = SnapshotProgress(position.progress if position is not None and start.resumes_snapshot else None)
        request = SnapshotRequest(
            tables,
            [*tables, *(table for table in start.tables if str(table) in filters.forced and filters.snapshot(str(table)))],
            exported.name if exported is not None else None,
            start.snapshot_lsn,
            statements=self._config.statements,
            progress=progress,
        )
        is_own = start.resumes_snapshot and position is not None
        if is_own and position is not None:
            # the stream is read at the same time
            general = open_general(self._config, self._should_stop)
            request = replace(request, base=streaming_part(position))
        self.running = self._start(general, request, is_own=is_own)
        self.has_begun = True
        if start.resumes_snapshot and exported is not None:
            self.catch_up_to = exported.lsn
            log.info(
                "The snapshot goes on where it was interrupted: changes up to %s come first, then what is left of %s",
                format_lsn(exported.lsn),
                ", ".join(str(table) for table in tables if not progress.is_done(str(table))) or "nothing",
            )
        return self.running

    def begin_blocking(self, general: Connection, request: BlockingRequest, base: PostgresOffset, captured: Sequence[TableId]) -> None:
        """Begin a snapshot that a signal asked for, while the stream waits. Raises ConnectError."""
        tables = self._config.filters.snapshot_order(captured, [compile_java_regex(name) for name in request.collections])
        if not tables:
            log.warning("The blocking snapshot '%s' matches no captured table: %s", request.signal, ", ".join(request.collections))
        wanted = SnapshotRequest(tables, lsn=base.lsn, kind=BLOCKING, statements=dict(request.statements), base=streaming_part(base))
        self.running = self._start(general, wanted)

    def _start(self, connection: Connection, request: SnapshotRequest, *, is_own: bool = False) -> PostgresSnapshot:
        return PostgresSnapshot(
            connection,
            self._config,
            self._factory,
            request,
            is_own=is_own,
            events=self._events,
            metrics=self._metrics,
            while_waiting=self._while_waiting,
        )

    def caught_up(self, position: PostgresOffset, quiet: PostgresOffset | None) -> PostgresOffset:
        """Begin step 3: the stream is where it has to be; what is left is read now.

        Args:
            position: the offset of the last batch.
            quiet: the stream's position, as far as it is known.

        Returns:
            The offset that holds from here.
        """
        assert self.running is not None
        self.catch_up_to = None
        if quiet is not None and quiet.start_lsn > position.start_lsn:
            position = replace(quiet, more=position.more)
        self.running.interrupt(streaming_part(position))
        return self.running.offset

    def mark(self, offset: PostgresOffset) -> PostgresOffset:
        """Return an offset of the stream; before the snapshot is read, one that says that it did not end."""
        if self.running is None or self.catch_up_to is None:
            return offset
        return replace(offset, snapshot=INITIAL, snapshot_completed=False, progress=self.running.offset.progress)

    def end(self) -> None:
        """Close the snapshot, in whatever way it ended."""
        if self.running is not None:
            self.running.close()
        self.running = self.catch_up_to = None


def streaming_part(offset: PostgresOffset) -> PostgresOffset:
    """Return an offset without what it says of a snapshot."""
    return replace(offset, snapshot=None, snapshot_completed=False, last_snapshot_record=False, progress=None)
