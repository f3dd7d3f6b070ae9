"""MySQL's part of what goes on beside a stream; see `connectors.engine.beside`. Owned by the task's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.errors import ConfigError, ConnectError
from connectors.engine import beside
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.hooks import SnapshotHooks
from connectors.mysql.chunk_reader import ChunkRow, MySqlChunks
from connectors.mysql.config import MySqlConfig
from connectors.mysql.errors import ServerError
from connectors.mysql.general import GeneralSession
from connectors.mysql.gtid import GtidSet
from connectors.mysql.log_place import LogPlace
from connectors.mysql.offset import MySqlOffset
from connectors.mysql.schema import Schema
from connectors.mysql.streaming import ChangeStream
from connectors.mysql.structure_check import StructureCheck
from connectors.mysql.tables import CapturedTables
from connectors.mysql.taps import Taps
from connectors.mysql.watermarks import watermarks_of


class Beside(beside.Beside[ChunkRow]):
    """See the module.

    Args:
        context: the task's.
        position: where the source stands.
        hooks: places for races, in tests.

    Attributes:
        general: the session beside the stream.
        tables: captured tables in the stream's structures; set by the task whenever it connects, as `schema` is.
        check: compares structures.
        taps: what listens to the stream's tables.
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
        """The stream of now; None when there is none."""
        self._stream = stream
        self._chunks.stream_begins()

    def records(self, rows: list[ChunkRow]) -> list[EncodedRow]:
        """See `connectors.engine.beside.Beside`."""
        assert self._stream is not None and self.incremental is not None
        # the reference sends a table's first window where a transaction begins, and all that follow where one ends
        return self._chunks.records(rows, self._stream.position(last_thread=self.incremental.has_sent))

    def watch(self, collection: str | None) -> None:
        """See `connectors.engine.beside.Beside`."""
        self.taps.watched = None if collection is None else self._chunks.table(collection)

    def position(self) -> Mapping[str, Any]:
        """See `connectors.engine.beside.Beside`."""
        found = self._position()
        return found.dump() if found else {}

    def execute(self, statement: str) -> None:
        """See `connectors.engine.beside.Beside`."""
        self.general().execute(statement)

    def fatal_state(self, error: ConnectError) -> str | None:
        """See `connectors.engine.beside.Beside`: no such right, wrong syntax, no database chosen (`MySqlHeartbeatErrorHandler`)."""
        state = self.general().sql_state() if isinstance(error, ServerError) else ""
        return state if state in ("42000", "3D000") else None

    def change_structures(self, database: str, schema: str, ddl: str | None, changes: Sequence[Mapping[str, Any]]) -> None:
        """See `connectors.engine.beside.Beside`: the schema history keeps what it is told, from the stream's present place on."""
        if self._stream is None or self.schema is None:
            raise ConfigError("structures can be changed only while the log is followed")
        stream = self._stream
        rows, tables = self.schema.repair(database, schema, ddl, changes, stream.offset.dump(), stream.source())
        self.pending.extend(rows)
        for id_ in tables:
            stream.structure_changed(id_)

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _captured(self) -> CapturedTables:
        assert self.tables is not None
        return self.tables

    def _models(self) -> Sequence[TableId]:
        return [] if self.tables is None else self.tables.names()

    def _received(self) -> LogPlace | None:
        return self._stream.received if self._stream else None

    def _shown(self) -> GtidSet | None:
        return self._stream.shown if self._stream else None
