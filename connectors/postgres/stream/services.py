"""PostgreSQL's part of what goes on beside a stream; see `connectors.engine.services`. Owned by the task's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connectors.engine import services
from connectors.engine.relational.table import TableId
from connectors.engine.snapshot.incremental.contract import SnapshotHooks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset
from connectors.postgres.server.connection import Connection
from connectors.postgres.snapshot.chunks import ChunkRow, PostgresChunks
from connectors.postgres.stream.stream import ChangeStream
from connectors.postgres.stream.taps import Taps
from connectors.postgres.stream.watermarks import watermarks_of
from connectors.postgres.tables import CapturedTable, TableFactory

_LSN = Struct(">q")


class Beside(services.Beside[ChunkRow]):
    """See the module.

    Args:
        context: the task's.
        general: the general connection of now.
        position: where the source stands.
        hooks: places for races, in tests.

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
    ) -> None:
        self._general = general
        self._position = position
        self._stream: ChangeStream | None = None
        self._chunks = PostgresChunks(general, config, factory, while_waiting=self._keep_alive, streamed=self._streamed)
        super().__init__(config, context, self._chunks, watermarks_of(config, general, self._received), hooks)
        self.taps = Taps(
            signal_table=config.signal_table if "source" in config.names("signal.enabled.channels") else None,
            on_signal=self.signal,
            deletes_close=config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete",
            monitor=self.monitor,
            shown_transaction=self._shown_transaction,
            skipped=config.skipped,
        )
        if self.incremental is not None:
            self.taps.on_event = self.incremental.event
            self.taps.on_truncate = self.incremental.truncated

    def attach(self, stream: ChangeStream | None) -> None:
        """The stream of now; None when there is none."""
        self._stream = stream

    def structure_seen(self, table: CapturedTable) -> None:
        """The stream begins to use a structure of a table."""
        self.new_tables.seen(str(table.id))
        if self.incremental is not None and table.id == self._table_of(self.incremental.watched):
            self.incremental.structure_seen(table.structure)

    def records(self, rows: list[ChunkRow]) -> list[EncodedRow]:
        """See `Beside`."""
        assert self._stream is not None
        return self._chunks.rows(rows, *self._stream.place)

    def watch(self, collection: str | None) -> None:
        """See `Beside`."""
        watched = self._table_of(collection)
        if watched != self.taps.watched:
            self.taps.watched = watched
            if self._stream is not None:
                self._stream.tap()

    def position(self) -> Mapping[str, Any]:
        """See `Beside`."""
        found = self._position()
        return found.dump() if found else {}

    def execute(self, statement: str) -> None:
        """See `Beside`."""
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
