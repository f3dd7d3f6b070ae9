"""Blocking snapshots: rows of tables that a signal requested, while the stream waits.

The rows are those of one consistent snapshot, which is later than the position where the stream waits, so no lock is needed. Changes in
between come again after the rows; a consumer that applies everything in order arrives at the table. Rows are sent in the stream's
structures; these are sent to the schema change topic once more, as Debezium does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.progress import Chunk
from connectors.engine.snapshot.initial.run import ChunkedSnapshot, whole_tables
from connectors.engine.stored_offsets import BLOCKING
from connectors.mysql.position.offset import EventPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import StructureCheck, recreate_statements
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.rows import TableRows, snapshot_encoder, table_start_us

log = logging.getLogger(__name__)


class BlockingSnapshot:
    """The running snapshot; used by the task's thread only.

    Args:
        connection: open for it until it is finished.
        tables: in order.
        base: the position from which streaming resumes.
        position: the last event of the stream, which source blocks show.
        statements: SELECTs that are read instead of tables, by the tables' names.
        check: whether the stream has the tables' present structures.
        schema: makes their schema change records.

    Attributes:
        offset: where the source stands while it runs.
        after: and when it has ended, in whatever way.

    Raises:
        BusyError: the stream has to reach a change of a table first.
        ConnectError: it cannot begin.
    """

    def __init__(
        self,
        connection: Connection,
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
        self._connection = connection
        self._tables = tables
        self._position = position
        self._statements = statements
        self._events = events
        self._metrics = metrics
        self._names = [str(table) for table in wanted]
        self._started = time.monotonic()
        self.after = base
        self.offset = replace(base, snapshot=BLOCKING)
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        for table in wanted:
            captured = tables.get(table)
            assert captured is not None
            check(connection, captured.model)
        source: tuple[int, str, str, int, dict[str, Any]] = (time.time_ns() // 1000, "true", base.file, base.pos, {})
        self._schema_rows = schema.reemit_schema(recreate_statements(connection, wanted), source) if schema.emits_schema_changes else []
        self._engine: ChunkedSnapshot[TableId, bytes] = ChunkedSnapshot(whole_tables(wanted), self._open, table_ended=self._ended)
        self._counts: dict[str, int] = {}
        self._begun = False
        log.info("Snapshot of %d tables: %s", len(wanted), ", ".join(self._names))

    @property
    def is_blocking(self) -> bool:
        """Whether it interrupts a stream."""
        return True

    @property
    def is_milestone(self) -> bool:
        """Whether the offset is worth storing at once."""
        return False

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._engine.finished

    def next_rows(self) -> list[EncodedRow]:
        """Return the next records; none when the snapshot has ended. Raises ServerError."""
        if not self._begun:
            self._begun = True
            self._events.started()
            self._metrics.begin(len(self._names))
            return self._schema_rows
        rows = self._engine.next_rows()
        self._metrics.events(len(rows))
        if self._engine.finished:
            self._connection.execute("COMMIT")
            self._metrics.end("completed")
            self._events.completed()
            log.info("Snapshot finished: %d rows in %.1f s", self._engine.rows_sent, time.monotonic() - self._started)
        return rows

    def close(self) -> None:
        """End the reading, wherever it is; the connection is the caller's."""

    def _open(self, chunk: Chunk[TableId]) -> TableRows:
        captured, name = self._tables.get(chunk.table), str(chunk.table)
        assert captured is not None
        self._events.in_progress(name, self._names)
        self._counts[name] = 0
        statement = self._statements.get(name)
        if statement is not None:
            # a signal's text stands in parentheses, which it must not close
            self._connection.parse(statement.rstrip().rstrip(";"))
        return TableRows(
            self._connection,
            captured,
            snapshot_encoder(captured, self._position, table_start_us()),
            statement=statement,
            scanned=lambda rows: self._scanned(name, rows),
        )

    def _scanned(self, name: str, rows: int) -> None:
        self._counts[name] += rows
        self._metrics.scanned(name, rows)

    def _ended(self, name: str) -> None:
        self._metrics.table_done(name)
        self._events.scan_completed(name, self._names, self._counts[name])
