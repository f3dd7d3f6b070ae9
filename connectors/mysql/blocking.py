"""Snapshots of rows at a moment behind the place where streaming goes on: a blocking one, of tables that a signal asked for, while the
stream waits (debezium-common §12); and an initial one that was interrupted and is taken again.

Rows are those of one moment, which lies behind the place where the stream waits; so no lock is needed. What changed in between comes again
behind the rows, and whoever applies it in order arrives at the table. Rows go out in the structures that the stream has; nothing is told of
structures, as in the reference.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.initial import InitialSnapshot
from connectors.mysql.connection import Connection
from connectors.mysql.offset import BLOCKING, MySqlOffset
from connectors.mysql.place import StreamPlace
from connectors.mysql.structure_check import StructureCheck
from connectors.mysql.table_rows import TableRows
from connectors.mysql.tables import CapturedTables

log = logging.getLogger(__name__)


class BlockingSnapshot:
    """The running snapshot; used by the task's thread only.

    Args:
        connection: open for it until it is finished.
        tables: in order.
        base: the position that streaming goes on from.
        place: the last event of the stream, which source blocks show.
        statements: SELECTs by the names of the tables that they are read in place of.
        check: whether the stream has the tables' present structures.

    Attributes:
        offset: where the source stands while it runs.
        after: and when it has ended, in whatever way.

    Raises:
        BusyError: the stream has to come to a change of a table first.
        ConnectError: it cannot begin.
    """

    def __init__(
        self,
        connection: Connection,
        tables: CapturedTables,
        wanted: Sequence[TableId],
        base: MySqlOffset,
        place: StreamPlace,
        statements: Mapping[str, str],
        events: InitialEvents,
        metrics: SnapshotMetrics,
        check: StructureCheck,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._place = place
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
        self._engine = InitialSnapshot(wanted, self._open)
        self._begun = False
        log.info("Snapshot of %d tables: %s", len(wanted), ", ".join(self._names))

    @property
    def is_blocking(self) -> bool:
        """Whether it interrupts a stream."""
        return True

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._engine.finished

    def next_rows(self) -> list[EncodedRow]:
        """The next records; none when the snapshot has ended. Raises ServerError."""
        if not self._begun:
            self._begun = True
            self._events.started()
            self._metrics.begin(len(self._names))
        rows = self._engine.next_rows()
        self._metrics.events(len(rows))
        if self._engine.finished:
            self._connection.execute("COMMIT")
            self._metrics.end("completed")
            self._events.completed()
            log.info("Snapshot finished: %d rows in %.1f s", self._engine.rows_sent, time.monotonic() - self._started)
        return rows

    def _open(self, table: TableId) -> TableRows:
        captured, name = self._tables.get(table), str(table)
        assert captured is not None
        self._events.in_progress(name, self._names)
        return TableRows(
            self._connection,
            captured,
            self._place,
            self._metrics,
            self._statements.get(name),
            lambda rows: self._events.scan_completed(name, self._names, rows),
        )


class RetakenSnapshot(BlockingSnapshot):
    """An initial snapshot that was interrupted: rows are read anew, and streaming goes on from where it began the first time.

    What was deleted between the two moments is so known to whoever was given rows of the first one. The reference streams from the second
    moment, and such rows stay for ever.

    Args:
        base: the stored position, of the first attempt.
    """

    def __init__(
        self,
        connection: Connection,
        tables: CapturedTables,
        wanted: Sequence[TableId],
        base: MySqlOffset,
        statements: Mapping[str, str],
        events: InitialEvents,
        metrics: SnapshotMetrics,
        check: StructureCheck,
    ) -> None:
        place = StreamPlace(base.file, base.pos)
        super().__init__(connection, tables, wanted, replace(base, snapshot=None), place, statements, events, metrics, check)
        self.offset = base

    @property
    def is_blocking(self) -> bool:
        """See `BlockingSnapshot`."""
        return False

    def next_rows(self) -> list[EncodedRow]:
        """See `BlockingSnapshot`."""
        rows = super().next_rows()
        if self.finished:
            self.offset = self.after
        return rows
