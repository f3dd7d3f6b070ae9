"""MySQL's part of the services around a stream (`connectors.engine.services`), the watermarks of its incremental snapshot, and the signal
that moves the stream. Owned by the task's thread.

Watermarks are rows of the signal table or, under `read.only=true`, positions of the log. Debezium compares sets of GTIDs, the transactions
that were executed while the chunk was read, and needs events to notice that they have passed. A transaction is visible shortly before it
counts as executed, which such sets miss. Here the high watermark is the position where the log ends after the chunk: every transaction that
the chunk can have seen was written to the log before it, and the server's heartbeats tell a stream that has caught up how far the log is.

The signal `set-binlog-position` has streaming resume at another position of the log (`SetBinlogPositionSignal.java`). Its data is
`{"binlog_filename": …, "binlog_position": …}` or `{"gtid_set": …}`, the transactions that count as read. Debezium only stores the position,
which counts after a restart unless a transaction comes before it; here it is checked and stored, and streaming resumes from it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError, ConnectError, DataError
from connectors.engine import services
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.actions import Action
from connectors.engine.signal.records import Signal
from connectors.engine.signal.taps import Taps
from connectors.engine.snapshot.incremental.contract import BusyError, LogPositions, SignalTable, SnapshotHooks, Watermarks
from connectors.mysql import errors
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import quote_name
from connectors.mysql.position.gtid import GtidSet, MariadbGtidSet, parse_transactions
from connectors.mysql.position.offset import MOVED_BY, BinlogPosition, MySqlOffset
from connectors.mysql.schema.captured import CapturedTables
from connectors.mysql.schema.schema import Schema
from connectors.mysql.schema.structure import StructureCheck
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.server.queries import GeneralSession
from connectors.mysql.snapshot.chunks import ChunkRow, MySqlChunks
from connectors.mysql.stream.stream import ChangeStream
from connectors.mysql.types.keys import text_literal

log = logging.getLogger(__name__)


MOVE_SIGNAL = "set-binlog-position"
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]+\.\d{6}", re.ASCII)
#: COM_BINLOG_DUMP has four bytes for it.
_LAST_POSITION = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Target:
    """The requested position: a file and a position in it, or the transactions before it."""

    file: str = ""
    position: int = 0
    gtids: str = ""


def parse_target(data: Mapping[str, Any]) -> Target:
    """Return the position that a signal's data names. Raises ConfigError, in Debezium's words."""
    file, position, gtids = (data.get(name) for name in ("binlog_filename", "binlog_position", "gtid_set"))
    names_place = bool(file) or position is not None
    if names_place and gtids:
        raise ConfigError("Cannot specify both binlog file/position and GTID set")
    if gtids:
        return Target(gtids=_checked_gtids(str(gtids)))
    if not names_place:
        raise ConfigError("Must specify either binlog file/position or GTID set")
    if not file:
        raise ConfigError("Binlog filename must be specified when position is provided")
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConfigError("Binlog position must be specified when filename is provided")
    if position < 0:
        raise ConfigError("Binlog position must be non-negative")
    if position > _LAST_POSITION:
        raise ConfigError(f"Binlog position must be at most {_LAST_POSITION}, which is all that a server can be asked for")
    if not _FILE_NAME.fullmatch(str(file)):
        raise ConfigError(f"Invalid binlog filename format: {file}")
    return Target(str(file), position)


def _checked_gtids(gtids: str) -> str:
    try:
        return str(parse_transactions(gtids))
    except DataError as error:
        raise ConfigError(f"Invalid GTID set format: {gtids}") from error


def offset_of_target(connection: Connection, config: MySqlConfig, target: Target, now: MySqlOffset) -> MySqlOffset:
    """Return the offset of a position from which reading can begin.

    Args:
        now: that of the last batch; the state of the services around the stream is kept.

    Raises:
        ConfigError: the server's log does not have the position, or cannot be read by it.
        ServerError: the server cannot be asked.
    """
    by_gtids = queries.has_gtids(connection, config) and not config.flag("gtid.ignore.on.recovery")
    if target.gtids and not by_gtids:
        raise ConfigError("The log is read by file and position here: name binlog_filename and binlog_position. Nothing was changed.")
    if target.gtids and isinstance(parse_transactions(target.gtids), MariadbGtidSet) != queries.is_mariadb(config):
        raise ConfigError(f"Invalid GTID set format: {target.gtids}")
    gtids = target.gtids or None
    if target.file:
        gtids = _gtids_at(connection, config, target, by_gtids=by_gtids)
    more = {name: value for name, value in now.more.items() if not name.startswith("transaction_")}
    found = replace(now, gtids=gtids, event=0, row=0, snapshot=None, progress=None, more=more)
    if target.file:
        found = replace(found, file=target.file, pos=target.position)
    if not queries.is_available(connection, config, found):
        raise ConfigError(
            f"The server's log does not have everything behind {target.gtids or target.file}: it has not come so far, or what follows was "
            "thrown away. Nothing was changed."
        )
    return found


def _gtids_at(connection: Connection, config: MySqlConfig, target: Target, *, by_gtids: bool) -> str | None:
    """Return the transactions before a position, where there are GTIDs."""
    sizes = {row[0]: int(row[1]) for row in connection.texts("SHOW BINARY LOGS")}
    if target.position > sizes.get(target.file, -1):
        raise ConfigError(f"The server's log has no position {target.position} in a file {target.file}. Nothing was changed.")
    if not by_gtids:
        return None
    if not queries.is_mariadb(config):
        raise ConfigError(
            "The log is read by GTIDs here, which a position does not tell: name gtid_set, the transactions that count as read "
            f"(SHOW BINLOG EVENTS IN '{target.file}' shows them). Nothing was changed."
        )
    return queries.gtids_at(connection, target.file, target.position)


def watermarks_of(
    config: MySqlConfig, general: Callable[[], Connection], received: Callable[[], BinlogPosition | None]
) -> Watermarks | None:
    """Return the watermarks that the configuration asks for; None without any.

    Args:
        general: returns the task's open session, which may be a new one after a reconnect.
        received: up to where the stream was read.
    """

    def log_end() -> BinlogPosition:
        status = queries.log_status(general(), config)
        return BinlogPosition(status.file, status.position)

    if config.read_only:
        return LogPositions(log_end, received)
    if config.signal_table is None:
        return None
    name = quote_name(config.signal_table.schema, config.signal_table.table)

    def write(statement: str) -> None:
        try:
            general().execute(statement)
        except LostConnectionError as error:
            if error.code != errors.LOCK_WAIT_TIMEOUT:
                raise
            # also when FLUSH TABLES WITH READ LOCK of a snapshot or a backup locks the whole server
            raise BusyError(f"the signal table {name} is locked by another session: {error.reason}") from None

    return SignalTable(write, name, text_literal, deletes=config.deletes_close_windows)


class MySqlServices(services.SourceServices[ChunkRow]):
    """The services around the stream of MySQL.

    Args:
        context: the task's.
        position: returns the position of the source.
        hooks: points for races, in tests.
        tuning: sizes and delays.

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
        tuning: Tuning = DEFAULT_TUNING,
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
        super().__init__(config, context, self._chunks, watermarks_of(config, self.general, self._received), hooks, tuning)
        self.taps = self.connect(Taps(), config, config.signal_table)

    def attach(self, stream: ChangeStream | None) -> None:
        """Use another stream; None when there is none."""
        self._stream = stream
        self._chunks.stream_begins()

    def await_streamed(self) -> None:
        """Wait until tables have all that the stream has shown. Raises BusyError when it takes long."""
        self._chunks.await_streamed()

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
        return {MOVE_SIGNAL: self._move}

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        if signal["type"] == MOVE_SIGNAL:
            parse_target(signal["data"])
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
        target = parse_target(signal.data)
        found = offset_of_target(self.general(), self._config, target, now)
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
