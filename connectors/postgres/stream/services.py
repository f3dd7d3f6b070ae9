"""What PostgreSQL adds to the services of a source (signals, incremental snapshots, transaction metadata). Owned by the task's thread.

Watermarks of an incremental snapshot are rows of the signal table, or, with `read.only=true`, positions of the log. Debezium compares
transaction numbers of `pg_current_snapshot()` with those of the stream there, and needs traffic or heartbeats to advance. Here the high
watermark is the log's position after the chunk: every transaction that the chunk can have seen has committed before it, and the server
reports to a stream that has caught up how far it is, also when nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connectors.engine import services
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.incremental.contract import LogPositions, SignalTable, SnapshotHooks, Watermarks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset, parse_lsn
from connectors.postgres.server.connection import Connection, Row, quote_literal, quote_name
from connectors.postgres.snapshot.chunks import ChunkRow, PostgresChunks
from connectors.postgres.stream.stream import ChangeStream
from connectors.postgres.stream.tables import PostgresTaps
from connectors.postgres.tables import CapturedTable, TableFactory


def watermarks_of(config: PostgresConfig, general: Callable[[], Connection], received: Callable[[], int]) -> Watermarks | None:
    """Return the way that the configuration asks for; None without any.

    Args:
        general: returns the task's open connection, which is replaced after a reconnect.
        received: up to where the stream was read.
    """

    def ask(statement: str, what: str) -> list[Row]:
        try:
            return general().query(statement)
        except ServerError as error:
            raise translate(error, what, user=config.user, database=config.database) from None

    def log_end() -> int:
        return parse_lsn(str(ask(_LOG_END, "Cannot read the log's position")[0][0]))

    def write(statement: str) -> None:
        ask(statement, f"Cannot write to the signal table {config.signal_table}")

    if config.choice("read.only") == "true":
        return LogPositions(log_end, received)
    if config.signal_table is None:
        return None
    name = f"{quote_name(config.signal_table.schema)}.{quote_name(config.signal_table.table)}"
    return SignalTable(write, name, quote_literal, deletes=config.deletes_close_windows)


_LOG_END = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
_LSN = Struct(">q")


class PostgresServices(services.SourceServices[ChunkRow]):
    """The services of a PostgreSQL source.

    Args:
        context: the task's context.
        general: returns the task's open connection, which is replaced after a reconnect.
        position: returns where the source stands.
        hooks: where tests provoke races.
        tuning: sizes and delays.

    Attributes:
        taps: what listens to the stream's tables.
    """

    def __init__(
        self,
        config: PostgresConfig,
        context: SourceTaskContext,
        factory: TableFactory,
        general: Callable[[], Connection],
        position: Callable[[], PostgresOffset | None],
        hooks: SnapshotHooks | None = None,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._general = general
        self._position = position
        self._stream: ChangeStream | None = None
        self._chunks = PostgresChunks(general, config, factory, while_waiting=self._keep_alive, streamed=self._streamed)
        super().__init__(config, context, self._chunks, watermarks_of(config, general, self._received), hooks, tuning)
        taps = PostgresTaps(monitor=self.monitor, shown_transaction=self._shown_transaction, skipped=config.skipped)
        self.taps = self.connect(taps, config, config.signal_table)

    def attach(self, stream: ChangeStream | None) -> None:
        """Set the current stream; None when there is none."""
        self._stream = stream

    def structure_seen(self, table: CapturedTable) -> None:
        """Note that the stream begins to use a structure of a table."""
        self.new_tables.seen(str(table.id))
        if self.incremental is not None and table.id == self._table_of(self.incremental.watched):
            self.incremental.structure_seen(table.structure)

    def records(self, rows: list[ChunkRow]) -> list[EncodedRow]:
        assert self._stream is not None
        return self._chunks.rows(rows, *self._stream.position)

    def watch(self, collection: str | None) -> None:
        watched = self._table_of(collection)
        if watched != self.taps.watched:
            self.taps.watched = watched
            if self._stream is not None:
                self._stream.tap()

    def position(self) -> Mapping[str, Any]:
        found = self._position()
        return found.dump() if found else {}

    def await_streamed(self) -> None:
        """Wait until tables have all that the stream has shown. Raises BusyError when it takes long."""
        self._chunks.await_streamed(self._general())

    def execute(self, statement: str) -> None:
        try:
            self._general().query(statement)
        except ServerError as error:
            raise translate(error, "The server refused the statement") from None

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        if self._stream is not None:
            self._stream.keep_alive()

    def _streamed(self) -> frozenset[int]:
        return self._stream.recent_transactions() if self._stream else frozenset()

    def _received(self) -> int:
        return self._stream.received if self._stream else 0

    def _shown_transaction(self, message: bytes) -> str:
        return f"{self.monitor.open if self.monitor else ''}:{_LSN.unpack_from(message, 1)[0]}"

    def _table_of(self, name: str | None) -> TableId | None:
        return None if name is None else self._chunks.table(name)
