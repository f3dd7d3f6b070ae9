"""MySQL's part of the services around a stream (`connectors.engine.services`), and the watermarks of its incremental snapshot. Owned by the
task's thread.

Watermarks are rows of the signal table or, under `read.only=true`, positions of the log. Debezium compares sets of GTIDs, the transactions
that were executed while the chunk was read, and needs events to notice that they have passed. A transaction is visible shortly before it
counts as executed, which such sets miss. Here the high watermark is the position where the log ends after the chunk: every transaction that
the chunk can have seen was written to the log before it, and the server's heartbeats tell a stream that has caught up how far the log is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError, ConnectError
from connectors.engine import services
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.actions import Action
from connectors.engine.signal.records import Signal
from connectors.engine.snapshot.incremental.contract import SnapshotHooks, Watermarks, WrittenWatermarks
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.errors import ServerError
from connectors.mysql.model import quote_name
from connectors.mysql.position.gtid import GtidSet
from connectors.mysql.position.offset import MOVED_BY, BinlogPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import StructureCheck
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.queries import GeneralSession
from connectors.mysql.snapshot.chunks import ChunkRow, MySqlChunks
from connectors.mysql.stream import move_signal
from connectors.mysql.stream.rows import Taps
from connectors.mysql.stream.stream import ChangeStream
from connectors.mysql.types.keys import text_literal

log = logging.getLogger(__name__)


def watermarks_of(
    config: MySqlConfig, general: Callable[[], Connection], received: Callable[[], BinlogPosition | None]
) -> Watermarks | None:
    """Return the watermarks that the configuration asks for; None without any.

    Args:
        general: returns the task's open session, which may be a new one after a reconnect.
        received: up to where the stream was read.
    """
    if config.read_only:
        return LogPositions(config, general, received)
    if config.signal_table is None:
        return None
    table = SignalTable(general, config.signal_table)
    deletes = config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete"
    return WrittenWatermarks(table.insert, table.delete if deletes else None)


class SignalTable:
    """Writes to the signal table, each time in a transaction of its own. Raises ConnectError."""

    def __init__(self, general: Callable[[], Connection], table: TableId) -> None:
        self._general = general
        self._name = quote_name(table.schema, table.table)

    def insert(self, id_: str, type_: str, data: str) -> None:
        """Insert a row."""
        values = ", ".join(text_literal(value) for value in (id_, type_, data))
        self._general().execute(f"INSERT INTO {self._name} VALUES ({values})")  # noqa: S608  # literals without quotes of ours

    def delete(self, id_: str) -> None:
        """Delete a row."""
        self._general().execute(f"DELETE FROM {self._name} WHERE id = {text_literal(id_)}")  # noqa: S608  # as above


class LogPositions(Watermarks):
    """Watermarks that are positions of the log (`read.only=true`)."""

    open_at_once = True

    def __init__(self, config: MySqlConfig, general: Callable[[], Connection], received: Callable[[], BinlogPosition | None]) -> None:
        self._config = config
        self._general = general
        self._received = received
        self._chunk = ""
        self._end: BinlogPosition | None = None

    def low(self, chunk: str) -> None:
        self._chunk, self._end = chunk, None

    def high(self, chunk: str) -> None:
        status = queries.log_status(self._general(), self._config)
        self._end = BinlogPosition(status.file, status.position)

    def passed(self) -> str:
        received = self._received()
        if self._end is None or received is None or received < self._end:
            return ""
        chunk, self._chunk, self._end = self._chunk, "", None
        return chunk


class MySqlServices(services.SourceServices[ChunkRow]):
    """The services around the stream of MySQL.

    Args:
        context: the task's.
        position: returns the position of the source.
        hooks: points for races, in tests.

    Attributes:
        general: the session for everything outside the stream.
        tables: captured tables in the stream's structures; set by the task whenever it connects, as `schema` is.
        check: compares structures.
        taps: what listens to the stream's tables.
        moves_to: where reading resumes when the batch is made; set by a signal, and reset by the task.
    """

    def __init__(
        self,
        config: MySqlConfig,
        context: SourceTaskContext,
        position: Callable[[], MySqlOffset | None],
        hooks: SnapshotHooks | None = None,
    ) -> None:
        self._position = position
        self._stream: ChangeStream | None = None
        self.tables: CapturedTables | None = None
        self.schema: Schema | None = None
        self.general = GeneralSession(config)
        self.check = StructureCheck(config, self._received)
        self._config = config
        self.moves_to: MySqlOffset | None = None
        self._moved_by: str | None = None
        self._chunks = MySqlChunks(self.general, config, self._captured, self._models, self.check, self._shown)
        super().__init__(config, context, self._chunks, watermarks_of(config, self.general, self._received), hooks)
        self.taps = Taps(
            signal_table=config.signal_table if "source" in config.names("signal.enabled.channels") else None,
            on_signal=self.signal,
            deletes_close=config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete",
        )
        if self.incremental is not None:
            self.taps.on_event = self.incremental.event
            self.taps.on_truncate = self.incremental.truncated
            self.taps.on_structure = self.incremental.structure_seen

    def attach(self, stream: ChangeStream | None) -> None:
        """Use another stream; None when there is none."""
        self._stream = stream
        self._chunks.stream_begins()

    def records(self, rows: list[ChunkRow]) -> list[EncodedRow]:
        assert self._stream is not None and self.incremental is not None
        # Debezium sends a table's first window where a transaction begins, and all that follow where one ends
        return self._chunks.records(rows, self._stream.position(last_thread=self.incremental.has_sent))

    def watch(self, collection: str | None) -> None:
        self.taps.watched = None if collection is None else self._chunks.table(collection)

    def position(self) -> Mapping[str, Any]:
        found = self._position()
        return found.dump() if found else {}

    def execute(self, statement: str) -> None:
        self.general().execute(statement)

    def fatal_state(self, error: ConnectError) -> str | None:
        # a missing right, wrong syntax, no database chosen (`MySqlHeartbeatErrorHandler`)
        state = self.general().sql_state() if isinstance(error, ServerError) else ""
        return state if state in ("42000", "3D000") else None

    def change_structures(self, database: str, schema: str, ddl: str | None, changes: Sequence[Mapping[str, Any]]) -> None:
        # the schema history keeps the structures, from the stream's current position on
        if self._stream is None or self.schema is None:
            raise ConfigError("structures can be changed only while the log is followed")
        stream = self._stream
        rows, tables = self.schema.repair(database, schema, ddl, changes, stream.offset.dump(), stream.source())
        self.pending.extend(rows)
        for id_ in tables:
            stream.structure_changed(id_)

    def actions(self) -> Mapping[str, Action]:
        return {move_signal.NAME: self._move}

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        if signal["type"] == move_signal.NAME:
            move_signal.target_of(signal["data"])
        super().take_signal(signal, done)

    @property
    def interrupts(self) -> bool:
        return super().interrupts or self.moves_to is not None

    def fields(self) -> services.Fields:
        return super().fields() if self._moved_by is None else {**super().fields(), MOVED_BY: self._moved_by}

    def restore(self, fields: services.Fields) -> None:
        super().restore(fields)
        moved_by = fields.get(MOVED_BY)
        self._moved_by = None if moved_by is None else str(moved_by)

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _move(self, signal: Signal) -> None:
        """Carry out `set-binlog-position`. A signal that came by the log is read again where reading goes back; its id shows that then."""
        by_log = signal.channel == "source"
        if by_log and signal.id == self._moved_by:
            log.info("The signal '%s' was carried out when it was read first", signal.id)
            return
        now = self._position()
        if self._stream is None or now is None:
            raise ConfigError("The place can be set only while the log is followed. Nothing was changed.")
        if self.incremental is not None and self.incremental.is_running:
            raise ConfigError("An incremental snapshot is running, which the log has to show: stop it, or wait. Nothing was changed.")
        target = move_signal.target_of(signal.data)
        found = move_signal.offset_at(self.general(), self._config, target, now)
        if by_log:
            self._moved_by = signal.id
            found = replace(found, more={**found.more, MOVED_BY: signal.id})
        self.moves_to = found
        log.warning("The signal '%s' sets the place in the log: reading goes on from %s", signal.id, found.dump())

    def _captured(self) -> CapturedTables:
        assert self.tables is not None
        return self.tables

    def _models(self) -> Sequence[TableId]:
        return [] if self.tables is None else self.tables.names()

    def _received(self) -> BinlogPosition | None:
        return self._stream.received if self._stream else None

    def _shown(self) -> GtidSet | None:
        return self._stream.shown if self._stream else None
