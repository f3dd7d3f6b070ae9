"""The initial snapshot of PostgreSQL: one read-only REPEATABLE READ transaction, each table by COPY in text form (postgres.md §8).

Consistency. All tables are read at one moment, also when the slot existed before (Debezium then reads each table at a moment of its own).
The `lsn` of the offset is where streaming goes on and never lies after that moment; `slot.py` says which position it is. The offset says
"unfinished" until the last row: a task that dies takes the snapshot again, and its rows, sent twice, converge with the changes that are
replayed.

The transaction has no number (`txid`) of its own, since CREATE_REPLICATION_SLOT waits for every numbered transaction of the server to end:
a long snapshot would hold up every new slot. `txId` is the number of an empty transaction just before it; Debezium numbers the reading one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg

from connect_py.api.record import EncodedRow
from connectors.engine.envelope import tail
from connectors.engine.metrics import SnapshotMetrics
from connectors.engine.notification.events import InitialEvents
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.initial import InitialSnapshot
from connectors.engine.snapshot.markers import Marker
from connectors.postgres.catalog import read_tables
from connectors.postgres.connection import Connection, quote_literal, quote_name
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.lsn import format_lsn, parse_lsn
from connectors.postgres.offset import BLOCKING, PostgresOffset
from connectors.postgres.tables import CapturedTable, TableFactory

log = logging.getLogger(__name__)

#: A batch ends at whichever comes first; 4 MB keeps a task small when rows are large, 2,000 rows make the work around a batch negligible.
MAX_ROWS = 2000
MAX_BYTES = 4_000_000
#: How long one read waits for the server, so that a poll returns in time.
READ_WAIT_SECONDS = 0.25
#: A batch that has rows waits this long for more of them: a server that is slower than we are would else make many small ones.
FILL_WAIT_SECONDS = 0.02
PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What all rows of a snapshot share: its position, a transaction's number (see the module) and its start (µs since 1970). `last_commit`
    is the end of the last streamed transaction, for a snapshot that interrupts a stream."""

    lsn: int
    tx_id: int | None
    ts_us: int
    last_commit: int | None = None


class CopyRows:
    """One table being read; `TableRows` of the snapshot engine.

    Args:
        statement: a SELECT that is read in the table's place; it must give the table's columns.
        on_end: told of the number of rows at the end.

    Raises:
        ServerError: from every method, when the server or the connection fails.
    """

    def __init__(
        self,
        connection: Connection,
        table: CapturedTable,
        moment: Moment,
        metrics: SnapshotMetrics | None = None,
        *,
        statement: str | None = None,
        on_end: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._table = table
        self._metrics = metrics or SnapshotMetrics("postgres", "")
        self._on_end = on_end
        self._count = 0
        m = moment
        self._sources: dict[Marker, bytes] = {
            marker: table.block.snapshot(marker.value, m.ts_us, m.tx_id, m.lsn, last_commit_lsn=m.last_commit)
            for marker in Marker
            if marker is not Marker.INCREMENTAL
        }
        columns = ", ".join(quote_name(plan.name) for plan in table.encoder.columns)
        name = f"{quote_name(table.id.schema)}.{quote_name(table.id.table)}"
        if statement is not None:
            name = f"({statement.rstrip().rstrip(';')}\n) AS chosen"
        self._done = False
        connection.start_copy(f"COPY (SELECT {columns} FROM {name}) TO STDOUT")

    def read(self) -> list[bytes] | None:
        """Up to MAX_ROWS or MAX_BYTES; fewer when the server is slower than we are."""
        if self._done:
            return None
        try:
            rows = self._read()
            self._count += len(rows or ())
            self._metrics.scanned(str(self._table.id), len(rows or ()))
            if self._done:
                self._metrics.table_done()
                self._on_end(self._count)
            return rows
        except psycopg.Error:
            raise self._connection.copy_failed() from None

    def _read(self) -> list[bytes] | None:
        get = self._connection.pgconn.get_copy_data
        rows: list[bytes] = []
        append = rows.append
        size = 0
        waited = False
        deadline = time.monotonic() + READ_WAIT_SECONDS
        while True:
            length, data = get(1)
            if length > 0:
                append(bytes(data))
                size += length
                if len(rows) >= MAX_ROWS or size > MAX_BYTES:
                    return rows
            elif length == 0:
                self._connection.consume_input()
                length, data = get(1)
                if length > 0:
                    append(bytes(data))
                    size += length
                elif length == 0:
                    if waited or time.monotonic() > deadline:
                        return rows
                    waited = not self._connection.wait_readable(FILL_WAIT_SECONDS if rows else READ_WAIT_SECONDS)
                else:
                    return self._end(rows)
            else:
                return self._end(rows)

    def _end(self, rows: list[bytes]) -> list[bytes] | None:
        self._done = True
        self._connection.end_copy()
        return rows or None

    def encode(self, rows: Sequence[bytes], marker: Marker) -> list[EncodedRow]:
        """Records of raw rows."""
        table = self._table
        return table.encoder.copy_rows(rows, table.route, self._sources[marker], tail("r", time.time_ns()))


class PostgresSnapshot:
    """The running snapshot; used by the task's thread only.

    Args:
        connection: an ordinary one; the snapshot's transaction lives on it.
        exported: name of an exported snapshot to import, None to take the transaction's own.
        lsn: where streaming goes on afterwards, at or before the snapshot's moment; None when nothing follows: the present position.
        tables: in order.
        captured: all that are captured, for notifications.
        events: takes notifications.
        statements: SELECTs by the names of the tables that they are read in place of.
        base: the streaming position that a blocking snapshot interrupts; None for an initial one.
        lock_timeout_ms: how long to wait for locks that keep the tables from being truncated or rewritten (`snapshot.locking.mode=shared`);
            None takes none but those of reading.
        metrics: where rows and tables are counted.

    Attributes:
        offset: where the source stands once all rows that were given out are in Kafka.
    """

    def __init__(
        self,
        connection: Connection,
        exported: str | None,
        lsn: int | None,
        tables: Sequence[TableId],
        factory: TableFactory,
        *,
        user: str,
        database: str,
        captured: Sequence[TableId] = (),
        events: InitialEvents | None = None,
        statements: Mapping[str, str] | None = None,
        base: PostgresOffset | None = None,
        lock_timeout_ms: int | None = None,
        metrics: SnapshotMetrics | None = None,
    ) -> None:
        self._captured = [str(table) for table in captured or tables]
        self._events = events or InitialEvents("", lambda _: None)
        self._statements = statements or {}
        self._base = base
        self._connection = connection
        self._factory = factory
        self._user = user
        self._database = database
        self._started = self._reported = time.monotonic()
        self._current = "the snapshot's transaction"
        self._metrics = metrics or SnapshotMetrics("postgres", "")
        self._events.started()
        try:
            self._moment = self._begin(exported, lsn, lock_sql(tables, lock_timeout_ms) if lock_timeout_ms is not None else "")
            if base is not None:
                self._moment = replace(self._moment, last_commit=base.lsn_commit)
            self._structures = read_tables(connection, tables)
        except ServerError as error:
            raise translate(error, "Cannot begin the snapshot", user=user, database=database) from None
        present = [table for table in tables if table in self._structures]
        self._engine = InitialSnapshot(present, self._open)
        self._metrics.begin(len(present))
        self._names = [str(table) for table in present]
        if base is not None:
            self.offset = replace(base, snapshot=BLOCKING, snapshot_completed=False, last_snapshot_record=False)
        else:
            self.offset = PostgresOffset(lsn=self._moment.lsn, tx_id=self._moment.tx_id, ts_us=self._moment.ts_us, snapshot="INITIAL")
        log.info("Snapshot of %d tables at %s: %s", len(present), format_lsn(self._moment.lsn), ", ".join(map(str, present)))

    def _begin(self, exported: str | None, position: int | None, lock: str) -> Moment:
        function = "pg_current_xact_id" if self._connection.server_version >= 130000 else "txid_current"
        ((tx_id,),) = self._connection.query(f"SELECT CASE WHEN NOT pg_is_in_recovery() THEN {function}()::text END")
        take = f"SET TRANSACTION SNAPSHOT {quote_literal(exported)};" if exported else ""
        ((ts_us, here),) = self._connection.query(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {take} {lock} "
            "SELECT (extract(epoch FROM current_timestamp) * 1000000)::bigint, "
            "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END"
        )
        return Moment(parse_lsn(str(here)) if position is None else position, int(tx_id) if tx_id else None, int(ts_us or 0))

    def _open(self, table: TableId) -> CopyRows:
        name = str(table)
        self._current = f"the table {name}"
        self._events.in_progress(name, self._names)
        return CopyRows(
            self._connection,
            self._factory.build(self._structures[table]),
            self._moment,
            self._metrics,
            statement=self._statements.get(name),
            on_end=lambda rows: self._events.scan_completed(name, self._captured, rows),
        )

    @property
    def is_blocking(self) -> bool:
        """Whether it interrupts a stream."""
        return self._base is not None

    @property
    def after(self) -> PostgresOffset:
        """Where the source stands once the snapshot has ended, in whatever way."""
        return self._base if self._base is not None else self.offset

    @property
    def finished(self) -> bool:
        """Whether the last row was given out."""
        return self._engine.finished

    def next_rows(self) -> list[EncodedRow]:
        """The next records; none when none came in the time of a poll or the snapshot has ended.

        Raises:
            ConnectError: the snapshot has to begin again (RetriableError), or cannot succeed (FatalTaskError).
            Stopped: a stop was asked for.
        """
        try:
            rows = self._engine.next_rows()
            self._metrics.events(len(rows))
            if self._engine.finished:
                self._connection.query("COMMIT")
        except ServerError as error:
            raise translate(error, f"Cannot read {self._current}", user=self._user, database=self._database) from None
        if self._engine.finished:
            self.offset = replace(self.offset, snapshot_completed=True, last_snapshot_record=True)
            self._metrics.end("completed")
            self._events.completed()
            seconds = time.monotonic() - self._started
            log.info("Snapshot finished: %d rows in %.1f s", self._engine.rows_sent, seconds)
        elif time.monotonic() - self._reported > PROGRESS_SECONDS:
            self._reported = time.monotonic()
            log.info("Snapshot: %d rows so far, now reading %s", self._engine.rows_sent, self._current)
        return rows


def lock_sql(tables: Sequence[TableId], timeout_ms: int) -> str:
    """Locks all tables for reading, until the transaction's end."""
    names = ", ".join(f"{quote_name(table.schema)}.{quote_name(table.table)}" for table in tables)
    return f"SET LOCAL lock_timeout = {timeout_ms}; LOCK TABLE {names} IN ACCESS SHARE MODE;" if names else ""
