"""The task of the PostgreSQL connector: the state machine of `engine/task.py`, with a state that resumes an interrupted snapshot.

    CONNECT ──────────────> SNAPSHOT ──> STREAMING
        └───> CATCH_UP ────────^

The slot is confirmed only in `offsets_committed`, with what the offsets topic holds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from connect_py.api import EncodedBatch, MetricGroup, SourceOffset, SourcePartition, SourceTaskContext
from connect_py.api.record import EncodedRow
from connect_py.errors import ConnectError, RetriableError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.relational.tables import TableId
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.incremental.contract import BusyError, SnapshotHooks
from connectors.engine.snapshot.initial.run import SnapshotSource
from connectors.engine.snapshot.modes import SnapshotMode
from connectors.engine.task import IDLE_SECONDS, REST_SECONDS, Backoff, DatabaseTask, State
from connectors.postgres.config import parse_config
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset, acknowledged_lsn, format_lsn
from connectors.postgres.preparation import open_general, prepare
from connectors.postgres.server import catalog
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, Stopped
from connectors.postgres.slot import slot
from connectors.postgres.snapshot.snapshot import PostgresSnapshot, SnapshotLifecycle
from connectors.postgres.stream.opening import StreamOpener
from connectors.postgres.stream.services import PostgresServices
from connectors.postgres.stream.stream import ChangeStream
from connectors.postgres.tables import Reselector, TableFactory

log = logging.getLogger(__name__)

CONNECTOR_NAME = "postgresql"
#: After this much log without a change of ours the offset follows it: a segment of PostgreSQL's log is twice as large. Less of it waits
#: this long: the server frees its log only up to a position that it noted before the one that is confirmed.
QUIET_BYTES, QUIET_SECONDS = 8_000_000, 20.0
#: How long a task that stops waits for the server to drop its slot.
DROP_SECONDS = 10.0
#: How long such a slot may still be held: as Debezium, which tries three times in as many seconds (`PostgresReplicationConnection`).
HELD_SECONDS = 3.0


class PostgresConnectorTask(DatabaseTask[PostgresServices, PostgresOffset]):
    """Snapshot, then stream, one database."""

    patience = IDLE_SECONDS
    rest_patience = REST_SECONDS
    stores_end = False

    def __init__(self, *, hooks: SnapshotHooks | None = None, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__(hooks=hooks, tuning=tuning)
        self._general: Connection | None = None
        self._stream: ChangeStream | None = None
        self._acknowledged = 0
        self._server: ServerState | None = None
        self._tables: list[TableId] = []
        self._quiet_until = 0.0
        self._was_connected = False
        self._snapshots: SnapshotLifecycle | None = None
        self._opener: StreamOpener | None = None

    # -- the contract ------------------------------------------------------------------------------------------------------------

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Take the configuration and the stored offset; the server is first asked in `poll`. Raises ConfigError."""
        self._config = parse_config(config)
        self._partition = {"server": self._config.topic_prefix}
        self._begin(self._config, context, CONNECTOR_NAME, "postgres")
        stored = context.offset(self._partition)
        self._position = PostgresOffset.load(stored) if stored else None
        reselect = self._config.reselect
        reselector = Reselector(reselect, self._general_connection, self._transaction) if reselect is not None else None
        self._factory = TableFactory(self._config, context.encoding, self._headers, reselector, self._tuning.snapshot_rows)
        services = PostgresServices(
            self._config, context, self._factory, self._general_connection, lambda: self._position, self._hooks, self._tuning
        )
        self.use_services(services)
        self._opener = StreamOpener(
            self._config,
            context.encoding,
            self._factory,
            services,
            self._streaming_metrics,
            general=self._general_connection,
            reopen_general=self._reopen_general,
            should_stop=self._stop.is_set,
            wakeup=self._interruptible(),
        )
        self._slot_backoff = Backoff(self._config.seconds("slot.retry.delay.ms"), self._config.number("slot.max.retries"))
        self._snapshots = SnapshotLifecycle(
            self._config,
            self._factory,
            events=services.events,
            metrics=self._snapshot_metrics,
            while_waiting=self._hold_stream,
            should_stop=self._stop.is_set,
        )
        if self._snapshot_is_due() or self._config.snapshot_mode.when_finished:
            self._not_before = time.monotonic() + self._config.seconds("snapshot.delay.ms")

    def keep_alive(self) -> None:
        """Keep the connection alive while Kafka takes nothing."""
        if self._stream is not None:
            try:
                self._stream.keep_alive()
            except ServerError as error:
                self._recover(translate(error, "The connection to the server failed while Kafka took no records"))

    def offsets_committed(self, offsets: Sequence[tuple[SourcePartition, SourceOffset]]) -> None:
        """Confirm to the server what the offsets topic holds, and no more."""
        for partition, offset in offsets:
            lsn = acknowledged_lsn(offset) if dict(partition) == self._partition else None
            if lsn is not None:
                self._acknowledged = max(self._acknowledged, lsn)
        super().offsets_committed(offsets)
        if self._stream is not None and self._config.confirms_positions:
            try:
                self._stream.acknowledge(self._acknowledged)
            except ServerError as error:
                # nothing is lost: the next stream starts at the position that was not confirmed, and confirms again
                log.warning("The server did not hear that it may discard up to %s: %s", format_lsn(self._acknowledged), error)

    def metrics(self) -> Sequence[MetricGroup]:
        """Return Debezium's two beans, and the lag of the slot."""
        slot_figures: dict[str, int] = {"acknowledged-lsn": self._acknowledged}
        if self._stream is not None:
            slot_figures |= {
                "received-lsn": self._stream.received,
                "unconfirmed-bytes": max(0, self._stream.received - self._acknowledged) if self._acknowledged else 0,
            }
            transactions, in_memory, in_files = self._stream.open_transactions
            slot_figures |= {
                "open-large-transactions": transactions,
                "open-large-transactions-bytes": in_memory + in_files,
                "open-large-transactions-file-bytes": in_files,
            }
        return [*super().metrics(), MetricGroup("connect.py", "postgres-slot", {"slot": self._config.slot}, slot_figures)]

    def _log_position(self) -> Mapping[str, int]:
        return {"position": self._stream.received} if self._stream is not None and self._stream.received else {}

    def close(self) -> None:
        """Leave the server as a good client does; drop the slot when `slot.drop.on.stop` asks for that."""
        if self._stream is not None:
            self._stream.close(send_status=True)
            self._stream = None
        if self._state is not State.CONNECT and self._stop.is_set() and self._config.flag("slot.drop.on.stop"):
            self._drop_slot()
        elif self._state is State.STREAMING and self._stop.is_set():
            log.info(
                "The replication slot '%s' stays on the server and keeps its log from here on, for the next start. If there is none, drop "
                "it: SELECT pg_drop_replication_slot('%s');",
                self._config.slot,
                self._config.slot,
            )
        super().close()

    # -- the state machine -------------------------------------------------------------------------------------------------------

    @property
    def _mode(self) -> SnapshotMode:
        return self._config.snapshot_mode

    def _pause(self) -> float:
        return max(super()._pause(), self._slot_backoff.seconds_left())

    def _step(self) -> EncodedBatch | None:
        try:
            return super()._step()
        except Stopped:
            return None
        except ServerError as error:
            raise translate(error, "The connection to the server failed", user=self._config.user, database=self._config.database) from None

    @property
    def _life(self) -> SnapshotLifecycle:
        assert self._snapshots is not None
        return self._snapshots

    def _general_connection(self) -> Connection:
        if self._general is None:
            self._general = open_general(self._config, self._stop.is_set)
        return self._general

    def _transaction(self) -> int | None:
        return None if self._stream is None else self._stream.transaction

    def _reopen_general(self) -> Connection:
        if self._general is not None:
            self._general.close()
        self._general = open_general(self._config, self._stop.is_set)
        return self._general

    @property
    def _running(self) -> PostgresSnapshot | None:
        return self._life.running

    def _resume_description(self) -> str:
        if self._position is None or self._position.is_snapshot_unfinished:
            return "the snapshot goes on" if self._position and self._position.progress else "the snapshot begins again"
        return f"reading goes on from {format_lsn(self._start_lsn())}"

    def _backoff_of(self, error: ConnectError) -> Backoff:
        return self._slot_backoff if isinstance(error, slot.SlotBusyError) else self._backoff

    def _recover(self, error: ConnectError) -> None:
        """Recover as `DatabaseTask` does; `keep_alive` comes here with lasting failures, too."""
        if not isinstance(error, RetriableError):
            raise error
        super()._recover(error)

    def _close_connections(self) -> None:
        if self._stream is not None:
            self._stream.close(send_status=False)
        if self._general is not None:
            self._general.close()
        if self._snapshots is not None:
            self._snapshots.end()
        self._stream = self._general = None
        if self._maybe_services is not None:
            self._maybe_services.attach(None)

    def _snapshot_is_due(self) -> bool:
        return self._position is None or self._position.is_snapshot_unfinished

    def _start_lsn(self) -> int:
        return self._position.start_lsn if self._position else 0

    def _connect(self) -> None:
        config = self._config
        stop = self._stop.is_set
        self._general = open_general(config, stop)
        start = prepare(
            self._general,
            config,
            self._position,
            snapshot_begun=self._life.has_begun,
            is_stored=not self._was_connected,
            should_stop=stop,
            report_seconds=self._tuning.slot_report_seconds,
        )
        self._was_connected = True
        self._server, self._tables, self._position = start.server, start.tables, start.position
        before = None if start.published is None else [str(table) for table in start.published]
        self._services.starts(from_start=start.position is None or start.to_read is not None, before=before)
        try:
            if start.to_read is None:
                if not self._life.has_begun:
                    self._snapshot_metrics.skipped()
                    self._services.events.skipped()
                self._state = self._after_snapshot()
                return
            self._position = self._life.begin(self._general, start).offset
            self._state = State.SNAPSHOT if self._life.catch_up_to is None else State.CATCH_UP
        finally:
            # a temporary slot may go, and a lasting one is free for the stream
            if start.exported is not None:
                start.exported.release()

    def _catch_up(self) -> EncodedBatch | None:
        """Stream up to the consistent snapshot in which the rest of the tables is read."""
        stream = self._open()
        stream.until = self._life.catch_up_to
        if stream.has_reached_end:
            stream.until = None
            self._position = self._life.caught_up(self._position or PostgresOffset(), stream.quiet)
            self._state = State.SNAPSHOT
            return None
        offset = stream.read(IDLE_SECONDS)
        self._services.after_read()
        return self._batch(offset)

    def _next_rows(self, snapshot: SnapshotSource[PostgresOffset]) -> list[EncodedRow]:
        self._hold_stream()
        try:
            return super()._next_rows(snapshot)
        except ServerError as error:
            what = f"Cannot read {snapshot.pipeline.current}"
            raise translate(error, what, user=self._config.user, database=self._config.database) from None

    def _hold_stream(self) -> None:
        """Answer the server's pings while the stream is not read."""
        if self._stream is not None:
            self._stream.keep_alive()

    def _end_snapshot(self, snapshot: PostgresSnapshot) -> None:
        self._position = snapshot.after
        self._life.end()
        self._state = self._after_snapshot()
        if self._stream is None:
            self._not_before = time.monotonic() + self._config.seconds("streaming.delay.ms")

    def _begin_blocking(self, request: BlockingRequest) -> None:
        """Interrupt streaming for a snapshot that a signal asked for; what cannot be done is logged."""
        try:
            self._services.await_streamed()
            self._tables = catalog.captured_tables(catalog.read_table_ids(self._general_connection()), self._config.filters.is_captured)[0]
            self._life.begin_blocking(self._general_connection(), request, self._position or PostgresOffset(), self._tables)
            self._state = State.SNAPSHOT
        except BusyError as error:
            log.info("The blocking snapshot '%s' waits: %s", request.signal, error)
            self._services.blocking.appendleft(request)
        except RetriableError:
            raise
        except ConnectError as error:
            log.error("The blocking snapshot '%s' cannot begin; streaming goes on. %s", request.signal, error)

    def _read_stream(self) -> EncodedBatch | None:
        services = self._services
        stream = self._open()
        services.before_read()
        if services.blocking:
            self._begin_blocking(services.blocking.popleft())
            return self._batch(None)
        offset = stream.read(services.poll_timeout(self._wait_seconds))
        services.after_read()
        if self._position is not None and services.beat() and stream.settled is not None:
            offset = stream.settled
        if offset is not None:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
        elif self._config.confirms_positions:
            offset = self._quiet_offset(stream)
        return self._batch(offset)

    def _open(self) -> ChangeStream:
        if self._stream is None:
            assert self._opener is not None and self._server is not None
            stream = self._stream = self._opener.open(self._server, self._tables, self._position or PostgresOffset())
            self._slot_backoff.reset()
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            if self._acknowledged and self._config.confirms_positions:
                stream.acknowledge(self._acknowledged)
            self._services.attach(stream)
        return self._stream

    def _quiet_offset(self, stream: ChangeStream) -> PostgresOffset | None:
        """Return an offset that lets the server discard its log although no captured table changes; None while that is not worth a record.

        The offset goes to the offsets topic like any other, and only then to the server: a start finds both at the same position.
        """
        found = stream.quiet
        # the first offset of all is worth nothing in bytes, so that it waits its time
        base = self._start_lsn() if self._position is not None else found.start_lsn - 1 if found is not None else 0
        passed = found.start_lsn - base if found is not None else 0
        now = time.monotonic()
        if passed <= 0 or self._services.pending.rows or (passed < QUIET_BYTES and now < self._quiet_until):
            return None
        self._quiet_until = now + QUIET_SECONDS
        return found

    def _batch(self, offset: PostgresOffset | None) -> EncodedBatch | None:
        """Return what waits, with the offset of the last event (None: as before), and the services' records."""
        fields = self._services.fields()
        rows = self._services.pending.take()
        before = self._position or PostgresOffset()
        if not rows and (offset is None or offset == before) and fields == before.more:
            return None
        self._reset_backoff()
        self._position = self._life.mark(replace(offset or before, more=fields))
        stored = self._position.dump()
        return EncodedBatch(rows, self._partition, stored, self._services.made(stored))

    def _drop_slot(self) -> None:
        try:
            connection = Connection(self._config.connection, "Debezium Drop Slot", query_seconds=DROP_SECONDS)
            try:
                if not slot.drop_slot(connection, self._config.slot, HELD_SECONDS):
                    log.error("The slot '%s' could not be dropped and keeps WAL on the server: another session reads it", self._config.slot)
            finally:
                connection.close()
        except ServerError as error:
            log.error("The slot '%s' could not be dropped and keeps WAL on the server: %s", self._config.slot, error)
