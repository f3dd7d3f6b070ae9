"""The rest of an initial snapshot of MySQL that was interrupted.

The consistent snapshot S0 of the first attempt, and those of further ones, are gone. The log has every change since, from the stored
position on. So the next attempt

1. begins a new consistent snapshot S1 under the locks of `snapshot.locking.mode`, and notes the end H of the log: S1 holds the transactions
   before H and no other. The locks are released at once, whatever the mode: transactions keep the snapshot;
2. streams from the stored position up to H, and stops there between two transactions;
3. reads the remaining chunks, at S1, in the structures that the stream has at H;
4. streams on from H.

So everything that is sent of a row is in the order of its history; `connectors/postgres/snapshot/snapshot.py` shows why, case by case, and
where PostgreSQL's stream lacks a large value, MySQL's has it: rows of the log are whole (`binlog_row_image=FULL`). If a table is altered
between H and the first read of it, the server reports an error at S1, and the next attempt reaches that statement in the log. The offset
says "unfinished" from the first row to the last, also while step 2 streams, so that Debezium, which does not know our field, starts over
from it. An interruption of this attempt is handled in the same way.

Where S1 is not exactly H (`snapshot.locking.mode=none`, tables of engines without transactions), it is slightly later: changes between the
two follow rows that are newer, and lead to the same end. It is not earlier either: what is in the log before H is given time to show.

Owned by the task's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from connect_py.api import JsonEncoding
from connect_py.api.record import EncodedRow
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notifications import InitialEvents
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.initial.progress import SnapshotProgress
from connectors.engine.snapshot.initial.run import SnapshotSource
from connectors.engine.stored_offsets import INITIAL
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.position.gtid import covers, parse_transactions
from connectors.mysql.position.offset import BinlogPosition, EventPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTables
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.locks import SnapshotLocks, begin_consistent_snapshot, prepare_session
from connectors.mysql.snapshot.snapshot import SnapshotReaders, read_tables

log = logging.getLogger(__name__)


class ResumedSnapshot(SnapshotSource[MySqlOffset]):
    """The rest of the snapshot. Making it is step 1; the task streams up to `end`, calls `caught_up`, and reads on a session of its own.

    Args:
        connection: lent; holds the locks, and has nothing to do afterwards.
        expected: tables that are likely to be read.
        position: the stored one.

    Attributes:
        end: H.

    Raises:
        ConnectError: a lock or a position cannot be had, or readers cannot be started.
    """

    def __init__(
        self,
        connection: Connection,
        config: MySqlConfig,
        encoding: JsonEncoding,
        expected: Sequence[TableId],
        position: MySqlOffset,
        events: InitialEvents,
        metrics: SnapshotMetrics,
    ) -> None:
        self._config = config
        self._events = events
        self._metrics = metrics
        self._progress = SnapshotProgress(position.progress)
        self.offset = self.mark(position)
        self._own = queries.open_connection(config)
        self._readers: SnapshotReaders | None = None
        try:
            prepare_session(self._own, config)
            self._readers = SnapshotReaders(connection, config, encoding, expected, self._progress)
            self._begin_consistent_snapshot(connection)
        except BaseException:
            self.close()
            raise
        events.started()
        log.info(
            "The snapshot goes on where it was interrupted: changes up to %s:%d come first, then what is left of %s",
            self.end.file,
            self.end.pos,
            ", ".join(str(table) for table in expected if not self._progress.is_done(str(table))) or "nothing",
        )

    def _begin_consistent_snapshot(self, connection: Connection) -> None:
        assert self._readers is not None
        known = queries.all_tables(connection, with_system=not self._config.flag("table.ignore.builtin"))
        locks = SnapshotLocks(connection, self._config)
        locks.acquire([table for table in known if self._config.filters.is_captured(table)])
        try:
            status = queries.log_status(connection, self._config)
            locks.let_commits_end()
            begin_consistent_snapshot(self._own)
            self._readers.begin_consistent_snapshot()
        finally:
            locks.release()
        self.end = BinlogPosition(status.file, status.position)
        self._gtids = status.gtids

    def is_reached_by(self, position: MySqlOffset) -> bool:
        """Return whether the stream is there already, as far as offsets say."""
        if position.event or position.row:
            return False
        if position.gtids is not None and self._gtids is not None:
            return covers(parse_transactions(position.gtids), self._gtids)
        return position.gtids is None and BinlogPosition(position.file, position.pos) == self.end

    def mark(self, offset: MySqlOffset) -> MySqlOffset:
        """Return an offset of the stream before H: one that says that the snapshot did not end."""
        return replace(offset, snapshot=INITIAL, progress=self._progress.text)

    def caught_up(self, position: MySqlOffset, tables: CapturedTables) -> None:
        """Start to read what is left, with the stream at H. Raises ConnectError."""
        assert self._readers is not None
        # the history may remember a table that was renamed away
        present = set(queries.all_tables(self._own, with_system=not self._config.flag("table.ignore.builtin")))
        wanted = self._config.filters.snapshot_order(table for table in tables.names() if table in present)
        begin = EventPosition(self.end.file, self.end.pos)
        captured = self._config.filters.snapshot_names(tables.names())
        self.pipeline = read_tables(
            self, self._own, self._config, tables, wanted, captured, begin, self._progress, self._readers, self._events, self._metrics
        )
        self.offset = self.mark(position)

    @property
    def after(self) -> MySqlOffset:
        return self.offset

    def stored(self, progress: str | None) -> None:
        self.offset = replace(self.offset, progress=progress)

    def finish(self) -> list[EncodedRow]:
        self._own.execute("ROLLBACK")
        self.offset = replace(self.offset, snapshot=None, progress=None)
        return []

    def close(self) -> None:
        if self._readers is not None:
            self._readers.close()
        self._own.close()
