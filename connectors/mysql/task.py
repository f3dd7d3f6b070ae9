"""The tasks of the MySQL and MariaDB connectors: what the states of `engine/task.py` do. Each start builds the tables' models from the
history."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from connect_py.api import EncodedBatch, MetricGroup, SourceTaskContext
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.batches import DEFAULT_TUNING, Tuning
from connectors.engine.relational.tables import compile_java_regex
from connectors.engine.signal.actions import BlockingRequest
from connectors.engine.snapshot.incremental.contract import BusyError, SnapshotHooks
from connectors.engine.task import IDLE_SECONDS, REST_SECONDS, DatabaseTask, State
from connectors.mysql.checks import gtid_mode_off
from connectors.mysql.config.config import MySqlMode, parse_config
from connectors.mysql.ddl.statements import Parser, apply
from connectors.mysql.errors import PurgedPositionError
from connectors.mysql.figures import HistoryFigures, LogFigures, bean
from connectors.mysql.model import Tables
from connectors.mysql.position.offset import EventPosition, LoggedTransaction, MySqlOffset
from connectors.mysql.position.source_info import block_schema
from connectors.mysql.preparation import prepare
from connectors.mysql.schema.captured import CapturedTables, Reselector, TableFactory
from connectors.mysql.schema.changes_topic import SchemaChangeRecords
from connectors.mysql.schema.schema import Schema
from connectors.mysql.server import queries
from connectors.mysql.server.binlog_client import BinlogClient
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.resume import ResumedSnapshot
from connectors.mysql.snapshot.snapshot import BlockingSnapshot, MySqlSnapshot
from connectors.mysql.stream.services import MySqlServices
from connectors.mysql.stream.stream import ChangeStream
from offsets.schema_history import KafkaSchemaHistory

log = logging.getLogger(__name__)


class MySqlConnectorTask(DatabaseTask[MySqlServices, MySqlOffset]):
    """Snapshot, then stream, one server.

    Args:
        parser: reads the statements of the log and of the history.

    Attributes:
        connector: as records call it.
    """

    patience = IDLE_SECONDS
    rest_patience = REST_SECONDS
    connector: ClassVar[str] = "mysql"
    #: A lost position is also how the server sends a replica away whose id another one uses: a new start looks whether it is really gone.
    passing: ClassVar[tuple[type[ConnectError], ...]] = (RetriableError, PurgedPositionError)

    def __init__(self, *, hooks: SnapshotHooks | None = None, tuning: Tuning = DEFAULT_TUNING, parser: Parser = apply) -> None:
        super().__init__(hooks=hooks, tuning=tuning)
        self._parser = parser
        self._connection: Connection | None = None
        self._history: KafkaSchemaHistory | None = None
        self._schema: Schema | None = None
        self._tables: CapturedTables | None = None
        self._snapshot: MySqlSnapshot | ResumedSnapshot | BlockingSnapshot | None = None
        self._stream: ChangeStream | None = None
        self._snapshot_done = False
        self._log_figures, self._history_figures = LogFigures(), HistoryFigures()

    # -- the contract ------------------------------------------------------------------------------------------------------------------

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Parse the configuration and the stored offset; the server is first asked in `poll`. Raises ConfigError."""
        self._config = parse_config(config, self.connector)
        parsed = self._config
        self._partition = {"server": parsed.topic_prefix}
        self._begin(parsed, context, parsed.connector, parsed.connector)
        stored = context.offset(self._partition)
        self._position = MySqlOffset.load(stored) if stored else None
        reselector = None
        if parsed.reselect is not None:
            reselector = Reselector(parsed.reselect, lambda: self._services.general(), self._transaction)
        self._encoding = context.encoding
        self._factory = TableFactory(parsed, context.encoding, self._headers, reselector, self._tuning.snapshot_rows)
        self._records = None
        if parsed.flag("include.schema.changes"):
            self._records = SchemaChangeRecords(
                parsed.topic_prefix, parsed.connector, block_schema(parsed.connector), context.encoding, self._headers
            )
        self.use_services(MySqlServices(parsed, context, lambda: self._position, self._hooks, self._tuning))
        if self._snapshot_is_due():
            self._not_before = time.monotonic() + parsed.seconds("snapshot.delay.ms")

    def _transaction(self) -> LoggedTransaction | None:
        return None if self._stream is None else self._stream.transaction

    def metrics(self) -> Sequence[MetricGroup]:
        """Return what all connectors show, and the attributes that Debezium's MySQL beans add."""
        read = self._stream.received.pos if self._stream is not None else None
        locks = isinstance(self._snapshot, MySqlSnapshot) and self._snapshot.holds_global_lock
        connector, server = self._config.connector, self._config.topic_prefix
        return [
            *super().metrics(),
            bean(connector, server, "streaming", self._log_figures.values(read or None)),
            bean(connector, server, "snapshot", {"HoldingGlobalLock": locks}),
            bean(connector, server, "schema-history", self._history_figures.values()),
        ]

    @property
    def structures(self) -> Tables:
        """The structures of tables where the stream is; none before the server was asked."""
        return Tables() if self._schema is None else self._schema.tables

    # -- the state machine -------------------------------------------------------------------------------------------------------------

    @property
    def _mode(self) -> MySqlMode:
        return self._config.snapshot_mode

    @property
    def _running(self) -> MySqlSnapshot | ResumedSnapshot | BlockingSnapshot | None:
        return self._snapshot

    def _resume_description(self) -> str:
        if self._position is None or self._position.is_snapshot_unfinished:
            return "the snapshot goes on" if self._position else "the snapshot begins again"
        return f"reading goes on from {self._position.dump()}"

    def _log_position(self) -> Mapping[str, int]:
        read = self._stream.received if self._stream is not None else None
        return {"segment": read.number, "position": read.pos} if read is not None and read.pos else {}

    def _close_connections(self) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._connection is not None:
            self._connection.close()
        if self._snapshot is not None:
            self._snapshot.close()
        if self._history is not None:
            self._history.close()
        self._stream = self._connection = self._history = self._snapshot = None
        if self._maybe_services is not None:
            self._maybe_services.attach(None)
            self._maybe_services.general.close()

    def _snapshot_is_due(self) -> bool:
        return self._position is None or self._position.is_snapshot_unfinished

    def _connect(self) -> None:
        config = self._config
        self._connection = queries.open_connection(config)
        self._history = KafkaSchemaHistory(config.history_topic, config.history_client)
        self._schema = Schema(
            config,
            self._history,
            self._partition,
            self._records,
            lower_case_table_names=queries.lower_case_table_names(self._connection),
            parser=self._parser,
            figures=self._history_figures,
        )
        start = prepare(self._connection, config, self._position, self._history, snapshot_done=self._snapshot_done)
        if self._position is None and not start.schema:
            self._position = start.position
        if not start.schema and self._position is not None:
            # a stored position is after all structures of its snapshot, whatever is left of the rows
            count = self._schema.recover(replace(self._position, snapshot=None))
            log.info("The structures of %d tables were read from %d records of the history", len(self._schema.tables.tables), count)
        self._services.starts(from_start=start.schema or self._position is None)
        self._services.schema = self._schema
        self._tables = self._services.tables = CapturedTables(
            self._factory,
            config.filters.is_captured,
            self._schema.tables.tables,
            on_first_use=lambda id_: self._services.new_tables.seen(str(id_)),
        )
        if start.data and not start.schema and start.position is not None:
            self._snapshot = ResumedSnapshot(
                self._connection,
                config,
                self._encoding,
                config.filters.snapshot_order(self._tables.names()),
                start.position,
                self._services.events,
                self._snapshot_metrics,
            )
            self._state = State.CATCH_UP
            return
        if not start.schema and not start.data:
            if not self._snapshot_done:
                self._snapshot_metrics.skipped()
                self._services.events.skipped()
            self._snapshot_done = True
            self._state = self._after_snapshot()
            return
        self._snapshot = MySqlSnapshot(
            self._connection,
            config,
            self._encoding,
            self._schema,
            self._tables,
            self._snapshot_metrics,
            self._services.events,
            data=start.data,
            base=start.position if start.schema else None,
        )
        self._position = self._snapshot.offset
        self._must_store = start.data and config.snapshot_mode.streams
        self._state = State.SNAPSHOT

    def _catch_up(self) -> EncodedBatch | None:
        """Stream up to the position at which the rest of a snapshot is read."""
        rest, position, side = self._snapshot, self._position, self._services
        assert isinstance(rest, ResumedSnapshot) and position is not None and self._tables is not None
        if self._stream is None and not rest.is_reached_by(position):
            self._stream = self._open_stream()
            self._stream.stop_at(rest.end)
            side.attach(self._stream)
        if self._stream is not None and not self._stream.has_stopped:
            offset = self._stream.read(IDLE_SECONDS)
            side.after_read()
            return self._batch(offset)
        if self._stream is not None:
            here = self._stream.current_position
            assert here is not None
            position = replace(here, more=position.more)
            # the server would not wait for a stream that is not read; a new one resumes from here
            self._close_stream(position)
        rest.caught_up(position, self._tables)
        self._position = rest.offset
        self._state = State.SNAPSHOT
        return None

    def _recover(self, error: ConnectError) -> None:
        self._log_figures.disconnects += self._stream is not None
        super()._recover(error)

    def _close_stream(self, position: MySqlOffset) -> None:
        assert self._stream is not None
        self._stream.close()
        self._stream = None
        self._services.attach(None)
        self._services.restore(position.more)

    def _end_snapshot(self, snapshot: MySqlSnapshot | ResumedSnapshot | BlockingSnapshot) -> None:
        if snapshot.is_blocking:
            self._position = snapshot.after
        else:
            self._position = snapshot.offset
            self._snapshot_done = True
            self._not_before = time.monotonic() + self._config.seconds("streaming.delay.ms")
        self._snapshot = None
        self._state = self._after_snapshot()

    def _begin_blocking(self, request: BlockingRequest) -> None:
        """Interrupt streaming for a snapshot that a signal asked for; what cannot be done is logged."""
        side, position, tables = self._services, self._position, self._tables
        assert position is not None and tables is not None and self._schema is not None
        event = EventPosition(position.file, position.pos) if self._stream is None else self._stream.position(last_thread=True)
        try:
            patterns = [compile_java_regex(name) for name in request.collections]
            wanted = self._config.filters.snapshot_order(tables.names(), patterns)
            if not wanted:
                log.warning("The blocking snapshot '%s' matches no captured table: %s", request.signal, ", ".join(request.collections))
            side.await_streamed()
            self._snapshot = BlockingSnapshot(
                side.general,
                tables,
                wanted,
                position,
                event,
                dict(request.statements),
                side.events,
                self._snapshot_metrics,
                side.check,
                self._schema,
            )
        except RetriableError:
            raise
        except BusyError as error:
            log.info("The blocking snapshot '%s' waits: %s", request.signal, error)
            side.blocking.appendleft(request)
            return
        except ConnectError as error:
            log.error("The blocking snapshot '%s' cannot begin; streaming goes on. %s", request.signal, error)
            return
        # the server would not wait for a stream that is not read; a new one resumes from the last batch
        if self._stream is not None:
            self._close_stream(position)
        self._state = State.SNAPSHOT

    def _read_stream(self) -> EncodedBatch | None:
        side, stream = self._services, self._stream
        if stream is None:
            stream = self._stream = self._open_stream()
            side.attach(stream)
        side.before_read()
        if side.blocking and not side.pending.rows:
            self._begin_blocking(side.blocking.popleft())
            if self._state is State.SNAPSHOT:
                return self._batch(None)
        offset = stream.read(side.poll_timeout(self._wait_seconds))
        side.after_read()
        here = stream.current_position if side.heartbeat.is_due else None
        if here is not None and side.beat():
            offset = here
        return self._batch(offset) if side.moves_to is None else self._moved(side.moves_to)

    def _moved(self, target: MySqlOffset) -> EncodedBatch:
        """Return what waits, with the position at which a signal has reading resume: a new start follows, which reads the structures as
        they were."""
        side = self._services
        side.moves_to = None
        stored = target.dump()
        batch = EncodedBatch(side.pending.take(), self._partition, stored, is_milestone=True)
        side.made(stored)
        self._position = target
        self.disconnect()
        return batch

    def _batch(self, offset: MySqlOffset | None) -> EncodedBatch | None:
        """Return what waits, with the offset of the last event (None: as before) and the state of the services around the stream."""
        self._reset_backoff()
        fields = self._services.fields()
        rows = self._services.pending.take()
        before = self._position
        if before is None or (not rows and fields == before.more):
            return None
        self._position = replace(offset or before, more=fields)
        if isinstance(self._snapshot, ResumedSnapshot):
            self._position = self._snapshot.mark(self._position)
        stored = self._position.dump()
        return EncodedBatch(rows, self._partition, stored, self._services.made(stored))

    def _open_stream(self) -> ChangeStream:
        config, position = self._config, self._position
        assert self._schema is not None and self._tables is not None and position is not None
        if self._connection is None:
            # a blocking snapshot has ended
            self._connection = queries.open_connection(config)
        has_gtids = self._log_figures.has_gtids = queries.has_gtids(self._connection, config)
        with_gtids = has_gtids and not config.flag("gtid.ignore.on.recovery")
        gtids = queries.gtids_to_skip(self._connection, config, position)
        if config.read_only and not with_gtids:
            raise FatalTaskError(gtid_mode_off().refusal(""))
        # the session has nothing more to do, and an idle one would be cut some day; the history is written seldom from here on
        self._connection.close()
        self._connection = None
        if self._history is not None:
            self._history.close()
        client = BinlogClient(
            config.connection,
            config.server_id,
            mariadb=queries.is_mariadb(config),
            annotated=config.flag("include.query"),
            timeouts=config.log_timeouts,
            heartbeats=config.heartbeats,
            wakeup=self._interruptible(),
        )
        try:
            client.dump(gtids, position.file, position.pos)
        except BaseException:
            client.close()
            raise
        log.info("Streaming from %s", position.dump())
        self._streaming_metrics.connected = True
        return ChangeStream(
            client,
            config,
            position,
            gtids,
            self._schema,
            self._tables,
            with_gtids=with_gtids,
            headers=self._factory.headers,
            monitor=self._services.monitor,
            metrics=self._streaming_metrics,
            pending=self._services.pending,
            taps=self._services.taps,
            figures=self._log_figures,
        )


class MariaDbConnectorTask(MySqlConnectorTask):
    """The same for MariaDB."""

    connector: ClassVar[str] = "mariadb"
