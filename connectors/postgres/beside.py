"""What goes on beside a PostgreSQL stream: signals, snapshots that they ask for, notifications, transaction metadata, heartbeats.

Owned by the task's thread. Everything here puts its records to `pending`, where the stream puts its own; `fields` is its part of the offset
of the batch that they become. After a failure the task hands the fields of its last batch to `restore`, so that state and records agree
again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from struct import Struct

from connect_py.api import JsonEncoding
from connect_py.errors import ConfigError, RetriableError
from connectors.engine.heartbeat import Heartbeat
from connectors.engine.notification.channels import Notifier
from connectors.engine.notification.events import IncrementalEvents, InitialEvents
from connectors.engine.pending import PendingRows
from connectors.engine.relational.table import TableId
from connectors.engine.signal.actions import BlockingRequest, standard_actions
from connectors.engine.signal.channels import FileChannel, InProcessChannel, SignalChannel, SignalInbox
from connectors.engine.signal.processor import SignalProcessor
from connectors.engine.snapshot.incremental import IncrementalSnapshot, SnapshotHooks, Watermarks
from connectors.engine.topic_naming import TopicNaming
from connectors.engine.transactions import TransactionMonitor
from connectors.postgres.chunk_reader import ChunkRow, PostgresChunks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connection import Connection
from connectors.postgres.errors import ServerError, class_of
from connectors.postgres.offset import PostgresOffset
from connectors.postgres.streaming import ChangeStream
from connectors.postgres.tables import CapturedTable, TableFactory
from connectors.postgres.taps import Taps
from connectors.postgres.watermarks import LogPositions, SignalTable

log = logging.getLogger(__name__)

_LSN = Struct(">q")
Fields = Mapping[str, bool | int | str | None]


class Beside:
    """See the module.

    Args:
        general: the general connection of now.
        connector: the connector's name, for signals from code of this process.
        position: where the source stands.
        hooks: places for races, in tests.

    Attributes:
        pending: records that wait for a batch.
        taps: what listens to the stream's tables.
        events: notifications of initial and blocking snapshots.
        blocking: blocking snapshots that were asked for.
    """

    def __init__(
        self,
        config: PostgresConfig,
        connector: str,
        encoding: JsonEncoding,
        factory: TableFactory,
        general: Callable[[], Connection],
        position: Callable[[], PostgresOffset | None],
        hooks: SnapshotHooks | None = None,
    ) -> None:
        self._config = config
        self._general = general
        self._stream: ChangeStream | None = None
        self.pending = PendingRows()
        naming = TopicNaming.from_config(config.raw)
        notifier = Notifier(
            config.names("notification.enabled.channels"), config.raw.get("notification.sink.topic.name"), encoding, self.pending.add
        )
        self.events = InitialEvents(config.topic_prefix, notifier)
        self.heartbeat = Heartbeat(config.seconds("heartbeat.interval.ms"), naming, encoding)
        self._monitor = TransactionMonitor(naming, encoding) if config.flag("provide.transaction.metadata") else None
        self._chunks = PostgresChunks(general, config, factory, while_waiting=self._keep_alive, streamed=self._streamed)
        self._positions: LogPositions | None = None
        self.incremental: IncrementalSnapshot[ChunkRow] | None = None
        watermarks = self._watermarks()
        if watermarks is not None:
            self.incremental = IncrementalSnapshot(
                self._chunks,
                watermarks,
                chunk_size=config.number("incremental.snapshot.chunk.size"),
                emit=self._emit,
                tell=IncrementalEvents(config.topic_prefix, notifier),
                watch=self._watch,
                hooks=hooks,
            )
        self.blocking: deque[BlockingRequest] = deque()
        at = lambda: found.dump() if (found := position()) else {}  # noqa: E731
        self._processor = SignalProcessor(standard_actions(self.incremental, self.blocking.append, at))
        channels = config.names("signal.enabled.channels")
        self._inbox = SignalInbox(self._channels(channels, connector), config.seconds("signal.poll.interval.ms"))
        self.taps = Taps(
            signal_table=config.signal_table if "source" in channels else None,
            on_signal=self._processor.process,
            deletes_close=config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete",
            monitor=self._monitor,
            shown_transaction=self._shown_transaction,
            skipped=config.skipped,
        )
        if self.incremental is not None:
            self.taps.on_event = self.incremental.event
            self.taps.on_truncate = self.incremental.truncated

    def _watermarks(self) -> Watermarks | None:
        config = self._config
        if config.choice("read.only") == "true":
            self._positions = LogPositions(self._general, self._window_opened, user=config.user, database=config.database)
            return self._positions
        if config.signal_table is None:
            return None
        deletes = config.choice("incremental.snapshot.watermarking.strategy") == "insert_delete"
        return SignalTable(self._general, config.signal_table, deletes=deletes, user=config.user, database=config.database)

    def _channels(self, names: list[str], connector: str) -> list[SignalChannel]:
        config = self._config
        found: list[SignalChannel] = [InProcessChannel(connector)]
        for name in names:
            if name == "file":
                found.append(FileChannel(Path(config.raw.get("signal.file") or "file-signals.txt")))
            elif name == "kafka":
                # the client is loaded only where it is wanted
                from connectors.engine.signal.kafka_channel import KafkaChannel

                found.append(KafkaChannel(config.raw, config.topic_prefix))
            elif name == "jmx":
                log.warning("signal.enabled.channels: there is no JMX here; use the channel kafka, file or source instead of jmx")
            elif name not in ("source", "in-process"):
                raise ConfigError(f"signal.enabled.channels: there is no channel '{name}'; choose of source, kafka, file, in-process")
        return found

    # -- the offset's part -------------------------------------------------------------------------------------------------------------

    def fields(self) -> Fields:
        """What the offset of a batch holds besides the position."""
        if self._monitor is None:
            return self.incremental.offset() if self.incremental else {}
        return {**self._monitor.offset(), **(self.incremental.offset() if self.incremental else {})}

    def restore(self, fields: Fields) -> None:
        """Go on from the fields of the last batch, or of the stored offset. Raises ConfigError: they cannot be read."""
        self.pending.take()
        if self._monitor is not None:
            self._monitor.restore(fields)
        if self.incremental is not None:
            self.incremental.restore(fields)
            if self.incremental.is_running:
                log.info("The incremental snapshot goes on: %s", ", ".join(self.incremental.collections))

    # -- around the stream's reads -----------------------------------------------------------------------------------------------------

    def attach(self, stream: ChangeStream | None) -> None:
        """The stream of now; None when there is none."""
        self._stream = stream

    def before_read(self) -> None:
        """Carry out signals, read the next chunk. Raises ServerError and ConnectError; nothing that was given out is lost by it."""
        self.take_signals()
        if self.incremental is not None:
            self.incremental.advance()

    def after_read(self, stream: ChangeStream) -> None:
        """Close a window that ends at a position of the log."""
        if self._positions is not None and self.incremental is not None:
            chunk = self._positions.passed(stream.received)
            if chunk:
                self.incremental.window_closed(chunk)

    def take_signals(self) -> None:
        """Carry out what the channels bring. Raises RetriableError: it is taken again."""
        while (record := self._inbox.poll()) is not None:
            self._processor.process(record)
            self._inbox.done()

    def structure_seen(self, table: CapturedTable) -> None:
        """The stream begins to use a structure of a table."""
        watched = self._table_of(self.incremental.watched) if self.incremental else None
        if self.incremental is not None and table.id == watched and table.structure != self._chunks.structure:
            self.incremental.structure_changed()

    def beat(self) -> bool:
        """Make a heartbeat when it is due, and run `heartbeat.action.query`. Returns whether there is one. Raises ServerError when the
        connection is gone."""
        if not self.heartbeat.is_due:
            return False
        self.pending.add(self.heartbeat.beat())
        query = self._config.raw.get("heartbeat.action.query")
        if query:
            try:
                self._general().query(query)
            except ServerError as error:
                if class_of(error.sqlstate) is RetriableError:
                    raise
                log.error("Could not execute heartbeat action query (heartbeat.action.query), streaming goes on: %s", error)
        return True

    def committed(self) -> None:
        """The offsets topic holds a batch's offset."""
        self._inbox.committed()

    def close(self) -> None:
        """Close the channels."""
        self._inbox.close()

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _emit(self, rows: list[ChunkRow]) -> None:
        assert self._stream is not None
        self.pending.extend(self._chunks.rows(rows, *self._stream.place))

    def _watch(self, name: str | None) -> None:
        watched = self._table_of(name)
        if watched != self.taps.watched:
            self.taps.watched = watched
            if self._stream is not None:
                self._stream.tap()

    def _window_opened(self, chunk: str) -> None:
        if self.incremental is not None:
            self.incremental.window_opened(chunk)

    def _keep_alive(self) -> None:
        if self._stream is not None:
            self._stream.keep_alive()

    def _streamed(self) -> frozenset[int]:
        return self._stream.recent_transactions() if self._stream else frozenset()

    def _shown_transaction(self, message: bytes) -> str:
        return f"{self._monitor.open if self._monitor else ''}:{_LSN.unpack_from(message, 1)[0]}"

    def _table_of(self, name: str | None) -> TableId | None:
        return None if name is None else self._chunks.table(name)
