"""The initial snapshot of MySQL: structures and rows at one position of the log (mysql.md §6).

Consistency. Under a global read lock one transaction with a consistent view begins and the end of the log is read: rows and structures
are those of that position. The lock is let go once the structures are read. Where it is refused, the captured tables are locked in its
place, and until the last row, since letting them go would end the transaction. The offset says "unfinished" until the last row: a task that
dies takes the snapshot again, and its rows, sent twice, converge with the changes that follow.

Used by the task's thread; holds one batch of rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from connect_py.api.record import EncodedRow
from connect_py.errors import FatalTaskError
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.initial import InitialSnapshot
from connectors.engine.snapshot.order import by_rows
from connectors.mysql import error_codes, server
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connection import Connection, quote_name
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.offset import MySqlOffset
from connectors.mysql.place import StreamPlace
from connectors.mysql.schema import Schema
from connectors.mysql.structures import Statement, read_statements
from connectors.mysql.table_rows import MAX_ROWS, TableRows
from connectors.mysql.tables import CapturedTables

log = logging.getLogger(__name__)

_CONSISTENT = ("minimal", "minimal_percona", "minimal_percona_no_table_locks")
_LOCKS = {"minimal": "FLUSH TABLES WITH READ LOCK", "extended": "FLUSH TABLES WITH READ LOCK"}
_PERCONA_LOCK = "LOCK TABLES FOR BACKUP"


class MySqlSnapshot:
    """The running snapshot.

    Args:
        connection: open for it alone until it is finished.
        data: whether rows are read; structures always are.
        base: the stored position, which streaming goes on from (`snapshot.mode=recovery`); None takes the end of the log.

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
        self._metrics = metrics
        self._events = events
        self._base = base
        self._started = time.monotonic()
        self._rows: list[EncodedRow] = []
        self._delayed: list[TableId] = []
        self._table_locks = False
        self._mode = config.choice("snapshot.locking.mode", "minimal")
        events.started()
        self.finished = False
        only_captured = config.flag("schema.history.internal.store.only.captured.tables.ddl")
        known = server.all_tables(connection, with_system=not config.flag("table.ignore.builtin"))
        captured = [table for table in known if config.filters.is_captured(table)]
        wanted = captured if only_captured else known
        self._lock()
        if self._table_locks:
            self._lock_tables(captured)
        self.offset = self._position()
        if self._table_locks:
            self._delayed = [table for table in wanted if table not in set(captured)]
            wanted = captured
        statements = read_statements(connection, wanted, anew=True)
        if not self._table_locks and self._mode in _CONSISTENT:
            connection.execute("UNLOCK TABLES")
        self._tell(statements)
        chosen = config.filters.snapshot_order(captured) if data else []
        present = [table for table in chosen if schema.is_known(table)]
        estimates = server.row_estimates(connection, present)
        present = by_rows(present, estimates, config.choice("snapshot.tables.order.by.row.count"))
        self._tables = tables
        self._names = [str(table) for table in present]
        self._captured = [str(table) for table in captured]
        self._engine = InitialSnapshot(present, self._open)
        metrics.begin(len(present), {str(table): estimates.get(table) for table in present})
        log.info("Snapshot of %d tables at %s:%d: %s", len(present), self.offset.file, self.offset.pos, ", ".join(map(str, present)))

    @property
    def is_blocking(self) -> bool:
        """Whether it interrupts a stream."""
        return False

    @property
    def tells(self) -> bool:
        """Whether structures are left to be told of, before the first row."""
        return bool(self._rows)

    @property
    def after(self) -> MySqlOffset:
        """Where the source stands when it has ended."""
        return self.offset

    def next_rows(self) -> list[EncodedRow]:
        """The next records; none when the snapshot has ended.

        Raises:
            ServerError: reading failed; the snapshot begins again where the connection was lost.
        """
        if self._rows:
            # structures come before rows, in batches of their own
            rows, self._rows = self._rows[:MAX_ROWS], self._rows[MAX_ROWS:]
            return rows
        rows = self._engine.next_rows()
        self._metrics.events(len(rows))
        if self._engine.finished:
            rows += self._finish()
        return rows

    def _finish(self) -> list[EncodedRow]:
        if self._table_locks or self._mode == "extended":
            self._connection.execute("UNLOCK TABLES")
        self._connection.execute("ROLLBACK")
        if self._delayed:
            self._tell(read_statements(self._connection, self._delayed, anew=False))
        rows, self._rows = self._rows, []
        self.offset = self._base if self._base is not None else replace(self.offset, snapshot=None)
        self.finished = True
        self._metrics.end("completed")
        self._events.completed()
        log.info("Snapshot finished: %d rows in %.1f s", self._engine.rows_sent, time.monotonic() - self._started)
        return rows

    def _lock(self) -> None:
        """The global lock and the transaction (mysql.md §6.1, 3a to 3e)."""
        execute = self._connection.execute
        seconds = max(1, self._config.number("snapshot.lock.timeout.ms") // 1000)
        execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        execute(f"SET SESSION lock_wait_timeout = {seconds}")
        try:
            execute(f"SET SESSION innodb_lock_wait_timeout = {seconds}")
        except LostConnectionError:
            raise
        except ServerError as error:
            log.warning("%s", error)
        if self._mode == "none":
            execute("START TRANSACTION")
            return
        statement = _LOCKS.get(self._mode, _PERCONA_LOCK)
        try:
            execute(statement)
        except LostConnectionError:
            raise
        except ServerError as error:
            if self._mode == "minimal_percona_no_table_locks":
                raise FatalTaskError(
                    "Cannot perform two-phase schema snapshot because global read lock was not acquired and table locks are not allowed in "
                    "*_no_table_locks mode."
                ) from error
            log.info("The server refuses the global read lock, the captured tables are locked in its place: %s", error)
            self._table_locks = True
        # a lock of tables would be undone by a transaction's start
        execute("START TRANSACTION WITH CONSISTENT SNAPSHOT" if self._mode in _CONSISTENT else "START TRANSACTION")

    def _lock_tables(self, captured: Sequence[TableId]) -> None:
        """Locks in place of the global one (mysql.md §6.2)."""
        grants = [row[0].upper() for row in self._connection.texts("SHOW GRANTS FOR CURRENT_USER")]
        if not any("ALL" in grant or "LOCK TABLES" in grant or "FLUSH_TABLES" in grant for grant in grants):
            raise FatalTaskError(
                "User does not have the 'LOCK TABLES' privilege required to obtain a consistent snapshot by preventing concurrent writes "
                "to tables."
            )
        if not captured:
            return
        names = [quote_name(table.schema, table.table) for table in captured]
        try:
            self._connection.execute(f"FLUSH TABLES {', '.join(names)} WITH READ LOCK")
        except LostConnectionError:
            raise
        except ServerError as error:
            if error.code not in error_codes.DENIED:
                raise
            if self._config.choice("snapshot.locking.fallback", "flush") != "lock":
                log.error("Tables cannot be flushed and locked. Grant RELOAD or FLUSH_TABLES, or set snapshot.locking.fallback=lock")
                raise
            # for tables of InnoDB the lock does the same, without closing them first
            log.info("The server refuses to flush the tables, they are locked without that: %s", error)
            self._connection.execute(f"LOCK TABLES {', '.join(f'{name} READ' for name in names)}")

    def _position(self) -> MySqlOffset:
        now = int(time.time())
        if self._base is not None:
            return replace(self._base, ts_sec=now, server_id=0, snapshot="INITIAL", more={})
        status = server.log_status(self._connection, self._config)
        gtids = None if status.gtids is None else str(status.gtids)
        return MySqlOffset(status.file, status.position, gtids, now, snapshot="INITIAL")

    def _tell(self, statements: Sequence[Statement]) -> None:
        """Tell of structures as if they were made now."""
        with self._schema.together():
            for database, statement in statements:
                self._state(database, statement)

    def _state(self, database: str, statement: str) -> None:
        offset = self.offset
        source: tuple[int, str, str, int, dict[str, Any]] = (time.time_ns() // 1000, "true", offset.file, offset.pos, {})
        rows, _ = self._schema.statement(statement, database, offset.dump(), source)
        self._rows += rows

    def _open(self, table: TableId) -> TableRows:
        captured, name = self._tables.get(table), str(table)
        assert captured is not None
        self._events.in_progress(name, self._names)
        return TableRows(
            self._connection,
            captured,
            StreamPlace(self.offset.file, self.offset.pos),
            self._metrics,
            self._config.statements.get(name),
            lambda rows: self._events.scan_completed(name, self._captured, rows),
        )
