"""Snapshots of MySQL: the initial one, of structures and rows at one position of the log, and those that signals ask for.

Consistency. Under a global read lock one transaction with a consistent view begins and the end of the log is read: rows and structures
are those of that position. The lock is released once the structures are read. If it is refused, the captured tables are locked instead;
because releasing them would end the transaction, another session then begins the consistent snapshot (`snapshot/locks.py`). The offset says
"unfinished" until the last row, and what is done so far; `resume.py` describes how the next attempt resumes.

Rows are read in chunks, by one connection or by several processes. Each process begins its own transaction while a lock keeps others from
writing (`SnapshotReaders`), so the processes are started before there is a lock. Without a lock (`snapshot.locking.mode=none`) their
snapshots differ slightly, and are later than the position that was noted before: changes in between come again as changes. A commit that is
in the log before that position may end a little later, and be in neither: where no GTIDs tell, it is given time.

Used by the task's thread; holds one batch of rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError, RetriableError
from connectors.engine.batches import MAX_ROWS
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.incremental.contract import BusyError
from connectors.engine.snapshot.initial.plan import NEVER_CUT, ChunkPlan, by_rows, whole_names
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkRows, SnapshotPipeline, SnapshotSource, in_order
from connectors.engine.snapshot.parallel.pool import ReaderPool, ReaderProcess, ReaderTable, begin_consistent_snapshot, start_readers
from connectors.engine.stored_offsets import BLOCKING, INITIAL
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.model import MyTable
from connectors.mysql.position.offset import EventPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTable, CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import Statement, StructureCheck, read_statements, recreate_statements
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.queries import GeneralSession
from connectors.mysql.snapshot import worker
from connectors.mysql.snapshot.chunks import TableCuts
from connectors.mysql.snapshot.locks import SnapshotLocks
from connectors.mysql.snapshot.rows import select_rows, snapshot_encoder, table_start_us

log = logging.getLogger(__name__)


class SnapshotReaders:
    """The processes that will read, where several are wanted and there is enough to read.

    Args:
        tables: that will be read.
        progress: what of them is done.

    Raises:
        ConnectError: they cannot be started, or cannot connect.
    """

    def __init__(
        self, connection: Connection, config: MySqlConfig, encoding: JsonEncoding, tables: Sequence[TableId], progress: SnapshotProgress
    ) -> None:
        self.readers: list[ReaderProcess] = []
        wanted = config.number("snapshot.max.threads")
        if wanted > 1:
            cuts = TableCuts(connection, _no_model, queries.row_estimates(connection, tables))
            wanted = min(wanted, _plan(config, tables, cuts, progress).count())
        if wanted > 1:
            self.readers = start_readers(worker.MODULE, worker.spec(config, encoding), wanted)
            log.info("The snapshot is read by %d processes", wanted)

    def begin_consistent_snapshot(self) -> None:
        """Have all of them begin a consistent snapshot. Raises ConnectError."""
        begin_consistent_snapshot(self.readers)

    def close(self) -> None:
        """Stop them."""
        for reader in self.readers:
            reader.close()
        self.readers = []


class TableReading:
    """Opens chunks of tables, for the task's connection and for reading processes.

    Args:
        connection: the task's, in the transaction that reads, or in addition to the readers that do.
        position: the position that source blocks show.
        statements: SELECTs that are read instead of tables, by the tables' names.
        estimates: rows by the server's statistics.
        is_blocking: whether a signal asked for the rows; `statements` are its own then.
    """

    def __init__(
        self,
        connection: Connection,
        tables: CapturedTables,
        position: EventPosition,
        statements: Mapping[str, str],
        estimates: Mapping[TableId, int],
        *,
        is_blocking: bool = False,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._position = position
        self._statements = statements
        self._is_blocking = is_blocking
        self._began: dict[TableId, int] = {}
        self.cuts = TableCuts(connection, self._model, estimates)

    def open(self, chunk: Chunk[TableId]) -> ChunkRows[bytes]:
        """Return the rows of a chunk, as the task's connection reads them, and their encoder. Raises ServerError."""
        table = self._captured(chunk.table)
        statement = self._statements.get(str(chunk.table))
        if statement is not None and self._is_blocking:
            # a signal's text stands in parentheses, which it must not close
            self._connection.parse(statement.rstrip().rstrip(";"))
        part = self.cuts.part(chunk.table, chunk.range)
        rows = select_rows(self._connection, table, part=part, statement=statement, changes_pass=not self._is_blocking)
        return rows, snapshot_encoder(table, self._position, self._start_us(chunk.table))

    def pool(self, readers: Sequence[ReaderProcess]) -> ReaderPool[TableId]:
        """Return what reads chunks by processes that have begun."""
        return ReaderPool(self._reader_table, self._describe, module=worker.MODULE, spec=dict, readers=readers)

    def _reader_table(self, chunk: Chunk[TableId]) -> ReaderTable:
        table = self._captured(chunk.table)
        encode = snapshot_encoder(table, self._position, self._start_us(chunk.table))
        return ReaderTable(table.route, encode, *table.encoder.heads)

    def _describe(self, chunk: Chunk[TableId]) -> dict[str, object]:
        table, statement = chunk.table, self._statements.get(str(chunk.table))
        return worker.describe(self._model(table), self.cuts.part(table, chunk.range), statement, self._position, self._start_us(table))

    def _start_us(self, table: TableId) -> int:
        return self._began.setdefault(table, table_start_us())

    def _captured(self, table: TableId) -> CapturedTable:
        found = self._tables.get(table)
        assert found is not None
        return found

    def _model(self, table: TableId) -> MyTable:
        return self._captured(table).model


def read_tables(
    source: SnapshotSource[MySqlOffset],
    connection: Connection,
    config: MySqlConfig,
    tables: CapturedTables,
    wanted: Sequence[TableId],
    captured: Sequence[str],
    position: EventPosition,
    progress: SnapshotProgress,
    readers: SnapshotReaders,
    events: InitialEvents,
    metrics: SnapshotMetrics,
) -> SnapshotPipeline[TableId, bytes]:
    """Return what reads the tables of an initial snapshot, or what is left of it.

    Args:
        connection: in the transaction that reads, or in addition to the readers that do.
        wanted: tables that are there, in the order of the configuration.
        captured: all that are captured, for notifications.
        position: the position that source blocks show.
        progress: of earlier attempts.

    Raises:
        ServerError: the server cannot be asked.
        FatalTaskError: the configuration is wrong.
    """
    estimates = queries.row_estimates(connection, wanted)
    wanted = by_rows(wanted, estimates, config.choice("snapshot.tables.order.by.row.count"))
    reading = TableReading(connection, tables, position, config.statements, estimates)
    plan = _plan(config, wanted, reading.cuts, progress)
    return SnapshotPipeline(
        source,
        reading.pool(readers.readers) if readers.readers else in_order(reading.open),
        plan.chunks(),
        names=[str(table) for table in wanted],
        captured=captured,
        progress=progress,
        events=events,
        metrics=metrics,
        estimates={str(table): estimates.get(table) for table in wanted},
        keeps_progress=config.snapshot_mode.streams,
        chunk_rows=plan.chunk_rows,
    )


def _plan(config: MySqlConfig, tables: Sequence[TableId], cuts: TableCuts, progress: SnapshotProgress) -> ChunkPlan[TableId]:
    return ChunkPlan.from_config(config, tables, cuts, progress, whole=whole_names(config, tables, config.statements))


def _no_model(table: TableId) -> MyTable:
    raise AssertionError(f"only the size of {table} is wanted")


class MySqlSnapshot(SnapshotSource[MySqlOffset]):
    """The running initial snapshot. Where tables are locked, a session of its own reads in place of the lent one.

    Args:
        connection: lent; open for it alone until it is finished.
        data: whether rows are read; structures always are.
        base: the stored position from which streaming resumes (`snapshot.mode=recovery`); None for the end of the log.

    Raises:
        ServerError: a statement failed.
        FatalTaskError: a lock or a position cannot be had.
        DdlError: a structure cannot be understood.
    """

    def __init__(
        self,
        connection: Connection,
        config: MySqlConfig,
        encoding: JsonEncoding,
        schema: Schema,
        tables: CapturedTables,
        metrics: SnapshotMetrics,
        events: InitialEvents,
        *,
        data: bool,
        base: MySqlOffset | None = None,
    ) -> None:
        self._connection = connection
        self._config = config
        self._schema = schema
        self._base = base
        self._data = data
        self._schema_rows: list[EncodedRow] = []
        self._delayed: list[TableId] = []
        self._other: Connection | None = None
        events.started()
        only_captured = config.flag("schema.history.internal.store.only.captured.tables.ddl")
        known = queries.all_tables(connection, with_system=not config.flag("table.ignore.builtin"))
        captured = [table for table in known if config.filters.is_captured(table)]
        wanted = captured if only_captured else known
        if config.flag("schema.history.internal.store.only.captured.databases.ddl"):
            wanted = [table for table in wanted if config.filters.schemas(table.schema)]
        chosen = config.filters.snapshot_order(captured) if data else []
        progress = SnapshotProgress()
        self._readers = SnapshotReaders(connection, config, encoding, chosen, progress)
        try:
            self._locks = SnapshotLocks(connection, config)
            self._locks.acquire(captured)
            self.offset = self._position()
            if base is None:
                self._locks.let_commits_end()
            self._locks.begin()
            self._readers.begin_consistent_snapshot()
            if self._locks.with_tables:
                self._delayed = [table for table in wanted if table not in set(captured)]
                wanted = captured
            statements = read_statements(connection, wanted, recreate=True)
            self._locks.structures_read()
            self._other = self._locks.hand_over(captured)
            self._record_structures(statements, is_end=not data and not self._delayed)
            self.pipeline = read_tables(
                self,
                self._other or connection,
                config,
                tables,
                [table for table in chosen if schema.is_known(table)],
                config.filters.snapshot_names(captured),
                EventPosition(self.offset.file, self.offset.pos),
                progress,
                self._readers,
                events,
                metrics,
            )
        except BaseException:
            self.close()
            raise
        names = self.pipeline.names
        log.info("Snapshot of %d tables at %s:%d: %s", len(names), self.offset.file, self.offset.pos, ", ".join(names))

    @property
    def holds_global_lock(self) -> bool:
        """Whether the rows are read under the global lock, as with `snapshot.locking.mode=extended`."""
        return self._locks.holds_global_lock

    @property
    def has_schema_rows(self) -> bool:
        return bool(self._schema_rows)

    @property
    def after(self) -> MySqlOffset:
        return self.offset

    def before_rows(self) -> Iterator[list[EncodedRow]]:
        while self._schema_rows:
            rows, self._schema_rows = self._schema_rows[:MAX_ROWS], self._schema_rows[MAX_ROWS:]
            yield rows

    def stored(self, progress: str | None) -> None:
        self.offset = replace(self.offset, progress=progress)

    def finish(self) -> list[EncodedRow]:
        self._locks.rows_read()
        if self._delayed:
            self._record_structures(read_statements(self._connection, self._delayed, recreate=False), is_end=not self._data)
        rows, self._schema_rows = self._schema_rows, []
        self.offset = self._base if self._base is not None else replace(self.offset, snapshot=None, progress=None)
        return rows

    def close(self) -> None:
        self._readers.close()
        if self._other is not None:
            self._other.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _position(self) -> MySqlOffset:
        now = int(time.time())
        if self._base is not None:
            return replace(self._base, ts_sec=now, server_id=0, snapshot=INITIAL, more={})
        status = queries.log_status(self._connection, self._config)
        gtids = None if status.gtids is None else str(status.gtids)
        return MySqlOffset(status.file, status.position, gtids, now, snapshot=INITIAL)

    def _record_structures(self, statements: Sequence[Statement], *, is_end: bool) -> None:
        """Make records of structures as if they were created now. Where no rows follow, the last of them ends the snapshot
        (`MySqlSnapshotChangeEventSource.java`)."""
        with self._schema.batched_history_writes():
            for number, (database, statement) in enumerate(statements, 1):
                self._record_structure(database, statement, "last" if is_end and number == len(statements) else "true")

    def _record_structure(self, database: str, statement: str, marker: str) -> None:
        offset = self.offset
        source: tuple[int, str, str, int, dict[str, Any]] = (time.time_ns() // 1000, marker, offset.file, offset.pos, {})
        rows, _ = self._schema.statement(statement, database, offset.dump(), source)
        self._schema_rows += rows


class BlockingSnapshot(SnapshotSource[MySqlOffset]):
    """A running snapshot that a signal asked for, while the stream waits.

    The rows are those of one consistent snapshot, which is later than the position where the stream waits, so no lock is needed. Changes in
    between come again after the rows; a consumer that applies everything in order arrives at the table. Rows are sent in the stream's
    structures; these are sent to the schema change topic once more, as Debezium does.

    Args:
        general: lends its session until the snapshot is finished.
        wanted: the tables, in order.
        base: the position from which streaming resumes.
        position: the last event of the stream, which source blocks show.
        statements: SELECTs that are read instead of tables, by the tables' names.
        check: whether the stream has the tables' present structures.
        schema: makes their schema change records.

    Raises:
        BusyError: the stream has to reach a change of a table first.
        ConnectError: it cannot begin.
    """

    is_blocking = True

    def __init__(
        self,
        general: GeneralSession,
        tables: CapturedTables,
        wanted: Sequence[TableId],
        base: MySqlOffset,
        position: EventPosition,
        statements: Mapping[str, str],
        events: InitialEvents,
        metrics: SnapshotMetrics,
        check: StructureCheck,
        schema: Schema,
    ) -> None:
        self._general = general
        self._events = events
        self._base = base
        self.offset = replace(base, snapshot=BLOCKING)
        names = [str(table) for table in wanted]
        try:
            self._connection = connection = general()
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            for table in wanted:
                captured = tables.get(table)
                assert captured is not None
                check(connection, captured.model)
            source: tuple[int, str, str, int, dict[str, Any]] = (time.time_ns() // 1000, "true", base.file, base.pos, {})
            self._schema_rows = schema.reemit_schema(recreate_statements(connection, wanted), source) if schema.emits_schema_changes else []
        except RetriableError:
            raise
        except BusyError:
            general().execute("ROLLBACK")
            raise
        except ConnectError:
            self.rollback()
            raise
        reading = TableReading(connection, tables, position, statements, {}, is_blocking=True)
        self.pipeline = SnapshotPipeline(
            self,
            in_order(reading.open),
            map(Chunk, wanted),
            names=names,
            captured=names,
            progress=SnapshotProgress(),
            events=events,
            metrics=metrics,
            estimates={},
            keeps_progress=False,
            chunk_rows=NEVER_CUT,
        )
        log.info("Snapshot of %d tables: %s", len(wanted), ", ".join(names))

    @property
    def after(self) -> MySqlOffset:
        return self._base

    def before_rows(self) -> Iterator[list[EncodedRow]]:
        self._events.started()
        yield self._schema_rows

    def finish(self) -> list[EncodedRow]:
        self._connection.execute("COMMIT")
        return []

    def rollback(self) -> None:
        # the rows of a result may be left on it
        self._general.close()

    def close(self) -> None:
        """Do nothing: the session is the task's."""
