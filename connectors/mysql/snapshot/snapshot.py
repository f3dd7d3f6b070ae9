"""The initial snapshot of MySQL: structures and rows at one position of the log.

Consistency. Under a global read lock one transaction with a consistent view begins and the end of the log is read: rows and structures
are those of that position. The lock is released once the structures are read. If it is refused, the captured tables are locked instead;
because releasing them would end the transaction, another session then begins the consistent snapshot (`server/locks.py`). The offset says
"unfinished" until the last row, and what is done so far; `resume.py` describes how the next attempt resumes.

Rows are read in chunks, by one connection or by several processes. Each process begins its own transaction while a lock keeps others from
writing (`SnapshotReaders`), so the processes are started before there is a lock. Without a lock (`snapshot.locking.mode=none`) their
snapshots differ slightly, and are later than the position that was noted before: changes in between come again as changes.

Used by the task's thread; holds one batch of rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connectors.engine.batches import MAX_ROWS
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.plan import ChunkPlan, by_rows, chunk_rows
from connectors.engine.snapshot.initial.progress import Chunk, SnapshotProgress
from connectors.engine.snapshot.initial.run import ChunkedSnapshot, SnapshotReading, SnapshotRun
from connectors.engine.snapshot.parallel.pool import ParallelSnapshot, ReaderProcess, ReaderTable, begin_consistent_snapshot, start_readers
from connectors.engine.stored_offsets import INITIAL
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.model import MyTable
from connectors.mysql.position.offset import EventPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTable, CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import Statement, read_statements
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.locks import SnapshotLocks
from connectors.mysql.snapshot import worker
from connectors.mysql.snapshot.chunk_plan import TableCuts
from connectors.mysql.snapshot.rows import Encode, TableRows, snapshot_encoder, table_start_us

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


class SnapshotRows:
    """Rows in chunks; used by the task's thread.

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

    def __init__(
        self,
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
    ) -> None:
        self._connection = connection
        self._config = config
        self._tables = tables
        self._position = position
        self._readers = readers
        self._began: dict[TableId, int] = {}
        estimates = queries.row_estimates(connection, wanted)
        wanted = by_rows(wanted, estimates, config.choice("snapshot.tables.order.by.row.count"))
        self.names = [str(table) for table in wanted]
        self._cuts = TableCuts(connection, self._model, estimates)
        plan = _plan(config, wanted, self._cuts, progress)
        self._reading = SnapshotReading(
            self.names,
            captured,
            progress,
            events,
            metrics,
            estimates={str(table): estimates.get(table) for table in wanted},
            keeps_progress=config.snapshot_mode.streams,
            chunk_rows=chunk_rows(config.raw),
        )
        self._reading.run = self._several_readers(plan, progress) if readers.readers else self._one_reader(plan, progress)

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._reading.run.finished

    @property
    def progress_text(self) -> str | None:
        """For the offset."""
        return self._reading.progress_text

    @property
    def is_milestone(self) -> bool:
        """Whether the offset is worth storing at once."""
        return self._reading.is_milestone

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; none when none came in the time of a poll or the last was given out.

        Raises:
            RetriableError: the rest has to be read in another attempt.
            ServerError: reading failed.
        """
        return self._reading.next_rows()

    def completed(self) -> None:
        """Note that all is done that follows the rows."""
        self._reading.completed()

    def close(self) -> None:
        """Stop reading, wherever it is; the connection is the caller's."""
        self._reading.run.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _one_reader(self, plan: ChunkPlan[TableId], progress: SnapshotProgress) -> SnapshotRun:
        return ChunkedSnapshot(plan.chunks(), self._open, progress, self._reading.table_ended)

    def _several_readers(self, plan: ChunkPlan[TableId], progress: SnapshotProgress) -> SnapshotRun:
        return ParallelSnapshot(
            plan.chunks(),
            self._reader_table,
            self._describe,
            module=worker.MODULE,
            spec=dict,
            readers=self._readers.readers,
            progress=progress,
            table_ended=self._reading.table_ended,
            scanned=self._reading.scanned,
        )

    def _open(self, chunk: Chunk[TableId]) -> TableRows:
        name = str(chunk.table)
        self._reading.begin_table(name)
        return TableRows(
            self._connection,
            self._captured(chunk.table),
            self._encoder(chunk.table),
            part=self._cuts.part(chunk),
            statement=self._config.statements.get(name),
            scanned=lambda rows: self._reading.scanned(name, rows),
            changes_pass=True,
        )

    def _reader_table(self, chunk: Chunk[TableId]) -> ReaderTable:
        self._reading.begin_table(str(chunk.table))
        table = self._captured(chunk.table)
        return ReaderTable(table.route, self._encoder(chunk.table), *table.encoder.heads)

    def _describe(self, chunk: Chunk[TableId]) -> dict[str, object]:
        statement = self._config.statements.get(str(chunk.table))
        return worker.describe(self._model(chunk.table), self._cuts.part(chunk), statement, self._position, self._start_us(chunk.table))

    def _encoder(self, table: TableId) -> Encode:
        return snapshot_encoder(self._captured(table), self._position, self._start_us(table))

    def _start_us(self, table: TableId) -> int:
        return self._began.setdefault(table, table_start_us())

    def _captured(self, table: TableId) -> CapturedTable:
        found = self._tables.get(table)
        assert found is not None
        return found

    def _model(self, table: TableId) -> MyTable:
        return self._captured(table).model


def _plan(config: MySqlConfig, tables: Sequence[TableId], cuts: TableCuts, progress: SnapshotProgress) -> ChunkPlan[TableId]:
    readers = config.number("snapshot.max.threads")
    legacy = readers > 1 and config.flag("legacy.snapshot.max.threads")
    return ChunkPlan(
        tables,
        cuts,
        progress,
        whole=frozenset(map(str, tables) if legacy else config.statements),
        chunk_rows=chunk_rows(config.raw),
        readers=readers,
        chunks_each=config.number("snapshot.max.threads.multiplier"),
    )


def _no_model(table: TableId) -> MyTable:
    raise AssertionError(f"only the size of {table} is wanted")


class MySqlSnapshot:
    """The running snapshot.

    Args:
        connection: open for it alone until it is finished.
        data: whether rows are read; structures always are.
        base: the stored position from which streaming resumes (`snapshot.mode=recovery`); None for the end of the log.

    Attributes:
        offset: where the source stands once all rows that were given out are in Kafka.

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
        self.finished = False
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
            self._locks.begin()
            self._readers.begin_consistent_snapshot()
            if self._locks.with_tables:
                self._delayed = [table for table in wanted if table not in set(captured)]
                wanted = captured
            statements = read_statements(connection, wanted, recreate=True)
            self._locks.structures_read()
            self._other = self._locks.hand_over(captured)
            self._record_structures(statements, is_end=not data and not self._delayed)
            self._rows = SnapshotRows(
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
            self._readers.close()
            if self._other is not None:
                self._other.close()
            raise
        names = self._rows.names
        log.info("Snapshot of %d tables at %s:%d: %s", len(names), self.offset.file, self.offset.pos, ", ".join(names))

    @property
    def is_blocking(self) -> bool:
        """Whether it interrupts a stream."""
        return False

    @property
    def is_milestone(self) -> bool:
        """Whether the offset is worth storing at once."""
        return self._rows.is_milestone

    @property
    def has_schema_rows(self) -> bool:
        """Whether records of structures are left, which come before the first row."""
        return bool(self._schema_rows)

    @property
    def after(self) -> MySqlOffset:
        """Where the source stands when it has ended."""
        return self.offset

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; none when none came in the time of a poll, or the snapshot has ended.

        Raises:
            RetriableError: the rest is read by another attempt.
            ServerError: reading failed.
        """
        if self._schema_rows:
            # structures come before rows, in batches of their own
            rows, self._schema_rows = self._schema_rows[:MAX_ROWS], self._schema_rows[MAX_ROWS:]
            return rows
        rows = self._rows.next_rows()
        if self._rows.finished:
            rows += self._finish()
        elif self.offset.progress != self._rows.progress_text:
            self.offset = replace(self.offset, progress=self._rows.progress_text)
        return rows

    def close(self) -> None:
        """Stop reading, wherever it is; the connection is the caller's."""
        self._rows.close()
        if self._other is not None:
            self._other.close()

    def _finish(self) -> list[EncodedRow]:
        self._locks.rows_read()
        if self._other is not None:
            self._other.close()
        if self._delayed:
            self._record_structures(read_statements(self._connection, self._delayed, recreate=False), is_end=not self._data)
        rows, self._schema_rows = self._schema_rows, []
        self.offset = self._base if self._base is not None else replace(self.offset, snapshot=None, progress=None)
        self.finished = True
        self._rows.completed()
        return rows

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
