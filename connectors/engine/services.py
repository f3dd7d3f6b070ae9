"""The services around a source's stream: signals, the snapshots that they ask for, notifications, transaction metadata, heartbeats.

A connector subclasses `SourceServices` and provides what only it knows:

- `reader`: chunks of a collection by key, in the database's own order (`ChunkReader`);
- `watermarks`: how a chunk's position in its log is marked (`Watermarks`); None when it is not configured for
  incremental snapshots;
- `records`: records of a chunk's rows, with the source block of the position of the stream when they are sent;
- `watch`: whose events the stream has to show to `incremental.event` and `incremental.truncated`;
- `position`: the current position of the source, for the signal `log`;
- `execute`: runs a statement of the user's;
- `change_structures`, if it remembers structures.

Its stream calls `signal` for every row of the signal table, before it reads on (a chunk is read there and then, so that the order of
everything is Debezium's), `incremental.structure_seen` when the watched collection changes, and adds its rows to `pending`.

Its task calls `starts` when it has connected, passes on `take_signal`, calls `before_read` and `after_read` around each read of the stream,
takes from `blocking` what was asked for, puts `fields` into the offset of every batch and shows that offset to `made`, reports what is
`committed`, and calls `restore` with the fields of its last batch after a failure, so that state and records agree again.

Owned by the task's thread.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from connect_py.api import SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.clock import SYSTEM_CLOCK, Clock
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connectors.engine.batches import DEFAULT_TUNING, PendingRows, Tuning
from connectors.engine.config import ParsedConfig
from connectors.engine.metadata_records import Heartbeat, TransactionMonitor
from connectors.engine.notifications import IncrementalEvents, InitialEvents, Notifier, open_notification_channels
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.actions import Action, BlockingRequest, SignalProcessor, require_snapshot, require_stop, standard_actions
from connectors.engine.signal.channels import SignalInbox, accepts_rest, open_channels
from connectors.engine.signal.records import SignalRecord
from connectors.engine.signal.taps import Taps
from connectors.engine.snapshot.incremental.contract import ChunkReader, SnapshotHooks, Watermarks
from connectors.engine.snapshot.incremental.machine import IncrementalSnapshot
from connectors.engine.snapshot.new_tables import NewTables
from connectors.engine.topic_naming import TopicNaming

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T", bound=Taps)
#: How long a read of the stream waits while a window ends at a position, and at least otherwise; see `SourceServices.poll_timeout`.
POSITION_SECONDS, LEAST_SECONDS = 0.01, 0.3
#: Stands for a signal's id in notifications about tables that are new.
NEW_TABLES = "snapshot.new.tables"

Fields = Mapping[str, bool | int | str | None]


class SourceServices(ABC, Generic[R]):
    """Base of a connector's services.

    Args:
        context: the task's.
        reader: reads chunks of a collection.
        watermarks: marks a chunk's position in the log; None when the connector is not configured for incremental snapshots.
        hooks: points for races, in tests.
        tuning: sizes and delays.
        clock: of heartbeats, of the polls of signals and of chunks.
        machine: makes the incremental snapshot.

    Attributes:
        pending: records that wait for a batch.
        events: notifications of initial and blocking snapshots.
        blocking: blocking snapshots that were asked for.
        monitor: transaction metadata; None without them.
        incremental: None when the connector is not configured for incremental snapshots.
        new_tables: tables that begin to be captured; the stream calls its `seen`.
        signal: carries out a signal of the signal table; may add to `pending`. Raises RetriableError.
    """

    def __init__(
        self,
        config: ParsedConfig,
        context: SourceTaskContext,
        reader: ChunkReader[R],
        watermarks: Watermarks | None,
        hooks: SnapshotHooks | None = None,
        tuning: Tuning = DEFAULT_TUNING,
        *,
        clock: Clock = SYSTEM_CLOCK,
        machine: type[IncrementalSnapshot[R]] = IncrementalSnapshot,
    ) -> None:
        self._query = config.raw.get("heartbeat.action.query")
        self.pending = PendingRows(tuning.batch_rows)
        naming = TopicNaming.from_config(config.raw)
        encoding = context.encoding
        notifier = Notifier(open_notification_channels(config, context, self.pending.add))
        self.events = InitialEvents(config.topic_prefix, notifier)
        self.heartbeat = Heartbeat(config.seconds("heartbeat.interval.ms"), naming, encoding, clock.now)
        self.monitor = TransactionMonitor(naming, encoding) if config.flag("provide.transaction.metadata") else None
        self.incremental: IncrementalSnapshot[R] | None = None
        if watermarks is not None:
            self.incremental = machine(
                reader,
                watermarks,
                chunk_size=config.number("incremental.snapshot.chunk.size"),
                chunk_seconds=int(config.raw.get("incremental.snapshot.chunk.time.ms", "0")) / 1000,
                emit=lambda rows: self.pending.extend(self.records(rows)),
                tell=IncrementalEvents(config.topic_prefix, notifier),
                watch=self.watch,
                hooks=hooks,
                clock=clock.now,
                pauses=tuning.chunk_pauses,
            )
        signal_table = config.raw.get("signal.data.collection", "").replace('"', "").strip()
        ignored = (signal_table, ".".join(signal_table.split(".")[-2:]))
        self.new_tables = NewTables(is_on=config.choice("snapshot.new.tables") == "incremental", ignored=ignored)
        self._reader = reader
        self._start: tuple[bool, Collection[str] | None] | None = None
        self.blocking: deque[BlockingRequest] = deque()
        self._takes_conditions = config.choice("signal.conditions.enabled", "true") != "false"
        actions = standard_actions(
            self.incremental, self.blocking.append, self.position, self.change_structures, takes_conditions=self._takes_conditions
        )
        self._processor = SignalProcessor({**actions, **self.actions()})
        self.signal: Callable[[SignalRecord], None] = self._processor.process
        self._takes_rest = accepts_rest(config)
        self._inbox = SignalInbox(open_channels(config, context.connector), config.seconds("signal.poll.interval.ms"), clock.now)

    # -- what a connector gives --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def records(self, rows: list[R]) -> list[EncodedRow]:
        """Return records of rows that go out at the stream's current position."""

    @abstractmethod
    def watch(self, collection: str | None) -> None:
        """Show the events of this collection, as signals name it, to `incremental` from now on; None for no collection."""

    @abstractmethod
    def position(self) -> Mapping[str, Any]:
        """Return the offset of the last batch; empty before the first."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement of the user's. Raises ConnectError; RetriableError when the connection is gone."""

    def change_structures(self, database: str, schema: str, ddl: str | None, changes: Sequence[Mapping[str, Any]]) -> None:
        """Carry out the signal `schema-changes`, which repairs a connector's memory of structures (its schema history). A connector that
        reads structures from the server each time has none to repair. Raises ConnectError."""
        log.info("The signal schema-changes needs no work here: structures are read from the server and its stream")

    def actions(self) -> Mapping[str, Action]:
        """Return the signals that only this connector knows, by their types."""
        return {}

    @property
    def interrupts(self) -> bool:
        """Whether a signal waits for the stream to be interrupted."""
        return bool(self.blocking)

    def connect(self, taps: T, config: ParsedConfig, signal_table: TableId | None) -> T:
        """Return listeners to a stream's tables, once they pass on what the services carry out."""
        taps.signal_table = signal_table if "source" in config.names("signal.enabled.channels") else None
        taps.on_signal = self.signal
        taps.deletes_close = config.deletes_close_windows
        if self.incremental is not None:
            taps.on_event = self.incremental.event
            taps.on_truncate = self.incremental.truncated
            taps.on_structure = self.incremental.structure_seen
        return taps

    # -- the offset's part -------------------------------------------------------------------------------------------------------------

    def fields(self) -> Fields:
        """Return what the offset of a batch holds in addition to the position."""
        if self.incremental is None:
            return self.monitor.offset() if self.monitor else {}
        return {**(self.monitor.offset() if self.monitor else {}), **self.incremental.offset(), **self.new_tables.fields()}

    def restore(self, fields: Fields) -> None:
        """Resume from the fields of the last batch, or of the stored offset. Raises ConfigError: they cannot be read."""
        self.pending.take()
        self._inbox.resumed()
        if self.monitor is not None:
            self.monitor.restore(fields)
        if self.incremental is not None:
            self.incremental.restore(fields)
            self.new_tables.restore(fields)
            if self.incremental.is_running:
                log.info("The incremental snapshot goes on: %s", ", ".join(self.incremental.collections))

    # -- around the stream's reads -----------------------------------------------------------------------------------------------------

    def starts(self, *, from_start: bool, before: Collection[str] | None = None) -> None:
        """Note that the task has connected; the arguments are those of `NewTables.captures`."""
        self._start = (from_start, before) if self.incremental is not None and self.new_tables.is_on else None

    def before_read(self) -> None:
        """Carry out signals, read the next chunk. Raises ConnectError and the connector's own passing errors; nothing that was sent is
        lost by it."""
        self.take_signals()
        if self.incremental is not None:
            if self._start is not None:
                from_start, before = self._start
                self.new_tables.captures(self._reader.names(), from_start=from_start, before=before)
                self._start = None
            if self.new_tables.due:
                self._read_new_tables(self.incremental)
            self.incremental.advance()

    def _read_new_tables(self, incremental: IncrementalSnapshot[R]) -> None:
        names = list(self.new_tables.due)
        log.info("Captured for the first time, and read while streaming goes on: %s", ", ".join(names))
        # before anything is sent, so that one offset has both
        self.new_tables.queued()
        incremental.begin(NEW_TABLES, [f"\\Q{name}\\E" for name in names])

    def poll_timeout(self, idle: float) -> float:
        """Return how long a read of the stream may wait for something to happen, in seconds, where it may otherwise wait for `idle`: not
        long while a window ends at a position, since no event shows that the stream passes it; and not far beyond a heartbeat or a poll of
        the channels of signals."""
        if self.incremental is not None and self.incremental.awaits_position:
            return min(idle, POSITION_SECONDS)
        return min(idle, max(min(self.heartbeat.seconds_left, self._inbox.seconds_left), LEAST_SECONDS))

    def after_read(self) -> None:
        """Close a window that ends at a position of the log."""
        if self.incremental is not None:
            self.incremental.stream_read()

    def take_signals(self) -> None:
        """Carry out what the channels bring. Raises RetriableError: it is taken again."""
        while (record := self._inbox.poll()) is not None:
            before, waiting = self.fields(), len(self.blocking)
            self.signal(record)
            has_effect = bool(self.pending.rows) or self.interrupts or self.fields() != before
            self._inbox.done(has_effect=has_effect, outlasts_failures=len(self.blocking) != waiting)

    def take_signal(self, signal: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Take a signal that came by REST; `done` is called when its effect is stored. Raises ConfigError: it is refused."""
        if not self._takes_rest:
            raise ConfigError("This connector takes no signals by REST: add 'rest' to its property signal.enabled.channels.")
        record = SignalRecord(signal["id"], signal["type"], json.dumps(signal["data"]), "rest", signal["additional-data"])
        self._processor.require(record)
        if record.type == "execute-snapshot":
            require_snapshot(signal["data"], has_incremental=self.incremental is not None, takes_conditions=self._takes_conditions)
        elif record.type == "stop-snapshot":
            require_stop(signal["data"])
        self._inbox.put(record, done)

    def beat(self) -> bool:
        """Make a heartbeat when it is due, and run `heartbeat.action.query`. Returns whether there is one. Raises RetriableError when the
        connection is gone."""
        if not self.heartbeat.is_due:
            return False
        self.pending.add(self.heartbeat.beat())
        if self._query:
            try:
                self.execute(self._query)
            except RetriableError:
                raise
            except ConnectError as error:
                if state := self.fatal_state(error):
                    raise ConnectError(
                        f"Could not execute heartbeat action query (Error: {state}). Correct heartbeat.action.query: {error}"
                    ) from error
                log.error("Could not execute heartbeat action query (heartbeat.action.query), streaming goes on: %s", error)
        return True

    def fatal_state(self, error: ConnectError) -> str | None:
        """Return the SQLSTATE of an error of `heartbeat.action.query` that a retry would meet again, for which the task ends."""
        return None

    def made(self, offset: Mapping[str, Any]) -> bool:
        """Note a batch of the stream that was made, by its offset. Returns whether it is a milestone (`EncodedBatch.is_milestone`): the
        first one with what a signal brought about."""
        return self._inbox.made(offset)

    def committed(self, offsets: Iterable[Mapping[str, Any]]) -> None:
        """Note the offsets that the offsets topic holds."""
        for offset in offsets:
            self._inbox.committed(offset)

    def close(self) -> None:
        """Close the channels."""
        self._inbox.close()
