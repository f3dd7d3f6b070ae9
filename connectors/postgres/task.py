"""The task of the PostgreSQL connector: a state machine that `poll` drives, on the runtime's one thread.

    CONNECT ──> SNAPSHOT ──> STREAMING          any of them ──(passing failure)──> CONNECT, after a pause
        └───────────────────────^ └──> DONE     (modes that do not stream)

There is no thread and no queue between the socket and the producer, so memory is bounded by a batch and a slow Kafka slows reading.
`position` is the offset of the last batch that was given out; after a failure the task goes on from it, exactly as a new process would
from the stored one. The slot is confirmed only in `offsets_committed`, with what the offsets topic holds.
"""

from __future__ import annotations

import enum
import logging
import threading
from collections.abc import Mapping, Sequence

from connect_py.api import EncodedBatch, SourceOffset, SourcePartition, SourceTask, SourceTaskContext
from connect_py.errors import FatalTaskError, RetriableError
from connectors.engine.headers import context_headers, new_run_id
from connectors.engine.relational.table import Table, TableId
from connectors.engine.snapshot.modes import StoredPosition
from connectors.postgres import catalog, identity, slot
from connectors.postgres.config import parse_config
from connectors.postgres.connection import Connection, Stopped, quote_name
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.lsn import format_lsn
from connectors.postgres.messages import MessageEncoder
from connectors.postgres.offset import PostgresOffset, acknowledged_lsn
from connectors.postgres.pgoutput import Relation
from connectors.postgres.publication import ensure_publication, options_sql
from connectors.postgres.retry import Backoff
from connectors.postgres.snapshot import PostgresSnapshot
from connectors.postgres.streaming import ChangeStream
from connectors.postgres.tables import CapturedTable, TableFactory, table_of_relation
from connectors.postgres.values import PgColumn

log = logging.getLogger(__name__)

#: A poll that finds nothing returns after this, so that the runtime can see to commits and stops.
IDLE_SECONDS = 0.3
CONNECTOR_NAME = "postgresql"


class State(enum.Enum):
    """See the module."""

    CONNECT = "connect"
    SNAPSHOT = "snapshot"
    STREAMING = "streaming"
    DONE = "done"


class PostgresConnectorTask(SourceTask):
    """Snapshot, then stream, one database."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._state = State.CONNECT
        self._general: Connection | None = None
        self._exported: slot.ExportedSnapshot | None = None
        self._snapshot: PostgresSnapshot | None = None
        self._stream: ChangeStream | None = None
        self._position: PostgresOffset | None = None
        self._acknowledged = 0
        self._server: catalog.ServerState | None = None
        self._tables: list[TableId] = []
        self._started_snapshot = False

    # -- the contract ------------------------------------------------------------------------------------------------------------

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Take the configuration and the stored offset; the server is first asked in `poll`. Raises ConfigError."""
        self._config = parse_config(config)
        self._context = context
        self._partition = {"server": self._config.topic_prefix}
        stored = context.offset(self._partition)
        self._position = PostgresOffset.load(stored) if stored else None
        headers: tuple[tuple[str, str], ...] = ()
        if self._config.flag("extended.headers.enabled"):
            headers = context_headers(self._config.topic_prefix, context.task, CONNECTOR_NAME, new_run_id())
        self._factory = TableFactory(self._config, context.encoding, headers)
        self._messages = MessageEncoder(
            self._config.version,
            self._config.topic_prefix,
            self._config.database,
            self._config.raw["binary.handling.mode"].strip().lower(),
            self._config.message_prefixes,
            context.encoding,
        )
        self._backoff = Backoff(self._config.seconds("retriable.restart.connector.wait.ms"), self._config.number("errors.max.retries"))
        self._slot_backoff = Backoff(self._config.seconds("slot.retry.delay.ms"), self._config.number("slot.max.retries"))

    def poll(self) -> EncodedBatch | None:
        """The next batch; see `SourceTask.poll`."""
        if self._stop.is_set():
            return None
        pause = max(self._backoff.seconds_left(), self._slot_backoff.seconds_left())
        if pause > 0:
            self._stop.wait(min(pause, IDLE_SECONDS))
            return None
        try:
            return self._step()
        except Stopped:
            return None
        except ServerError as error:
            self._recover(translate(error, "The connection to the server failed", user=self._config.user, database=self._config.database))
        except RetriableError as error:
            self._recover(error)
        return None

    def stop(self) -> None:
        """Make `poll` return soon."""
        self._stop.set()

    def keep_alive(self) -> None:
        """Tell the server that we live, while Kafka takes nothing."""
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
        if self._stream is not None and self._config.confirms_positions:
            try:
                self._stream.acknowledge(self._acknowledged)
            except ServerError as error:
                # nothing is lost: the next stream starts at the position that was not confirmed, and confirms again
                log.warning("The server did not hear that it may discard up to %s: %s", format_lsn(self._acknowledged), error)

    def close(self) -> None:
        """Leave the server as a good client does; drop the slot when `slot.drop.on.stop` asks for that."""
        if self._stream is not None:
            self._stream.close(say_goodbye=True)
            self._stream = None
        if self._state is not State.CONNECT and self._stop.is_set() and self._config.flag("slot.drop.on.stop"):
            self._drop_slot()
        self._close_connections()

    # -- the state machine -------------------------------------------------------------------------------------------------------

    def _step(self) -> EncodedBatch | None:
        if self._state is State.CONNECT:
            self._connect()
        if self._state is State.SNAPSHOT:
            return self._read_snapshot()
        if self._state is State.STREAMING:
            return self._read_stream()
        self._stop.wait(IDLE_SECONDS)
        return None

    def _recover(self, error: Exception) -> None:
        """Close everything and plan the next attempt. Raises FatalTaskError when there shall be none."""
        if isinstance(error, FatalTaskError) or not isinstance(error, RetriableError):
            raise error
        self._close_connections()
        self._state = State.CONNECT
        backoff = self._slot_backoff if isinstance(error, slot.SlotBusyError) else self._backoff
        pause = backoff.next(error)
        at = "the snapshot begins again" if self._snapshot_is_due() else f"reading goes on from {format_lsn(self._start_lsn())}"
        log.warning("%s. Trying again in %.1f s; %s, nothing is lost", error, pause, at)

    def _close_connections(self) -> None:
        if self._stream is not None:
            self._stream.close(say_goodbye=False)
        if self._exported is not None:
            self._exported.release()
        if self._general is not None:
            self._general.close()
        self._stream = self._exported = self._general = self._snapshot = None

    def _snapshot_is_due(self) -> bool:
        return self._position is None or self._position.is_snapshot_unfinished

    def _start_lsn(self) -> int:
        return self._position.start_lsn if self._position else 0

    def _connect(self) -> None:
        config = self._config
        mode = config.snapshot_mode
        self._general = self._open_general()
        server = self._server = catalog.read_server_state(self._general, config.slot, config.publication)
        self._tables, unreadable = catalog.captured_tables(catalog.read_table_ids(self._general), config.filters.is_captured)
        self._check_tables(self._tables)
        if mode.streams:
            slot.check_server(server, config.user)
            slot.check_slot(server, config.slot, config.database)
        reads = self._decide_snapshot(server)
        wanted: list[TableId] = []
        if reads:
            wanted = [table for table in config.filters.snapshot_order(self._tables) if self._check_readable(table, unreadable)]
        exported: str | None = None
        lsn: int | None = None
        if mode.streams:
            self._prepare_publication(server, self._tables)
            exported, lsn = self._prepare_slot(server, reads)
        if reads:
            self._snapshot = PostgresSnapshot(
                self._general, exported, lsn, wanted, self._factory, user=config.user, database=config.database
            )
            self._started_snapshot = True
            self._position = self._snapshot.offset
            self._state = State.SNAPSHOT
        else:
            self._state = self._after_snapshot()
        self._release_exported()

    def _open_general(self) -> Connection:
        config = self._config
        try:
            connection = Connection(config.connection, "Debezium General", should_stop=self._stop.is_set)
        except ServerError as error:
            what = f"Cannot connect to the database '{config.database}' at {config.connection.host}:{config.connection.port}"
            raise translate(error, what, user=config.user, database=config.database) from None
        for statement in _initial_statements(config.raw.get("database.initial.statements", "")):
            connection.query(statement)
        return connection

    def _check_tables(self, tables: Sequence[TableId]) -> None:
        config = self._config
        if not tables:
            log.warning(
                "No table of the database '%s' matches the filters (schema.*.list, table.*.list): nothing is captured until one does. "
                "Names are matched "
                "whole, as schema.table",
                config.database,
            )
        limit = config.number("guardrail.collections.max")
        if 0 < limit < len(tables):
            text = f"{len(tables)} tables are captured, more than guardrail.collections.max={limit} allows"
            if config.raw["guardrail.collections.limit.action"].strip().lower() == "fail":
                raise FatalTaskError(text + ". Nothing was read. Narrow table.include.list or raise the limit")
            log.warning(text)

    def _check_readable(self, table: TableId, unreadable: Sequence[TableId]) -> bool:
        if table in unreadable:
            user = quote_name(self._config.user)
            raise FatalTaskError(
                f"The user '{self._config.user}' may not read the table '{table}', which the snapshot needs (SQLSTATE 42501). Nothing "
                "was sent and no slot "
                f"was created. Run as the table's owner: GRANT USAGE ON SCHEMA {quote_name(table.schema)} TO {user}; "
                f"GRANT SELECT ON {quote_name(table.schema)}.{quote_name(table.table)} TO {user}; or leave the table out by "
                "table.exclude.list."
            )
        return True

    def _decide_snapshot(self, server: catalog.ServerState) -> bool:
        """Whether this start reads the tables (postgres.md §8.1). Raises FatalTaskError when neither that nor streaming is possible."""
        mode = self._config.snapshot_mode
        position = self._position
        stored = StoredPosition.NONE
        if position is not None:
            stored = StoredPosition.UNFINISHED_SNAPSHOT if position.is_snapshot_unfinished else StoredPosition.STREAMING
        if self._started_snapshot and stored is StoredPosition.STREAMING:
            return False  # a failure while streaming; `always` means every start of the task
        if position is not None and stored is StoredPosition.STREAMING and mode.streams and not self._is_available(position, server):
            if not mode.when_position_lost and not mode.when_finished:
                raise FatalTaskError(
                    f"The connector is trying to read change stream starting at {format_lsn(position.start_lsn)}, but this is no "
                    "longer available on the "
                    f"server: {_why_unavailable(server, self._config.slot)}. Reconfigure the connector to use a snapshot mode when needed "
                    "(snapshot.mode=when_needed), or delete the connector's offsets to begin anew."
                )
            log.warning("The stored position %s is no longer available: a new snapshot is taken", format_lsn(position.start_lsn))
            self._position = None
            return True
        return mode.reads_data(stored)

    def _is_available(self, position: PostgresOffset, server: catalog.ServerState) -> bool:
        if self._config.raw.get("internal.log.position.check.enable", "true").strip().lower() == "false":
            return True
        if server.slot is None:
            return False
        return position.lsn_proc is None or server.slot.restart_lsn is None or server.slot.restart_lsn <= position.lsn_proc

    def _prepare_publication(self, server: catalog.ServerState, tables: Sequence[TableId]) -> None:
        config = self._config
        assert self._general is not None
        skipped = config.skipped if config.skipped_explicitly else None
        ensure_publication(
            self._general,
            server,
            name=config.publication,
            mode=config.publication_mode,
            tables=sorted(tables),
            options=options_sql(skipped, via_partition_root=config.flag("publish.via.partition.root")),
            database=config.database,
            user=config.user,
        )

    def _prepare_slot(self, server: catalog.ServerState, reads: bool) -> tuple[str | None, int | None]:
        """Create the slot when it is missing.

        Returns:
            For a snapshot, the name of the exported snapshot to import and where streaming goes on after it; see `slot.py`.
        """
        config = self._config
        if server.slot is None:
            failover = config.flag("slot.failover") and server.version >= 170000 and not server.is_standby
            self._exported = slot.create_slot(config.connection, config.slot, failover=failover, should_stop=self._stop.is_set)
        elif reads and self._position is not None and not self._position.is_snapshot_unfinished:
            self._exported = slot.export_snapshot_beside(config.connection, config.slot, should_stop=self._stop.is_set)
        if self._exported is not None:
            return self._exported.name, self._exported.lsn
        return None, (server.slot.confirmed_lsn or server.slot.restart_lsn or 0) if server.slot else None

    def _release_exported(self) -> None:
        """A temporary slot may go, and a lasting one is free for the stream."""
        if self._exported is not None:
            self._exported.release()
            self._exported = None

    def _read_snapshot(self) -> EncodedBatch | None:
        assert self._snapshot is not None
        rows = self._snapshot.next_rows()
        self._backoff.reset()
        self._position = self._snapshot.offset
        if self._snapshot.finished:
            self._snapshot = None
            self._state = self._after_snapshot()
        return EncodedBatch(rows, self._partition, self._position.dump()) if rows else None

    def _after_snapshot(self) -> State:
        if self._config.snapshot_mode.streams:
            return State.STREAMING
        log.info("snapshot.mode=%s: the work is done, changes are not followed", self._config.snapshot_mode.name)
        return State.DONE

    def _read_stream(self) -> EncodedBatch | None:
        if self._stream is None:
            self._stream = self._open_stream()
        found = self._stream.read(IDLE_SECONDS)
        if found is None:
            return None
        self._backoff.reset()
        rows, self._position = found
        return EncodedBatch(rows, self._partition, self._position.dump())

    def _open_stream(self) -> ChangeStream:
        config = self._config
        server = self._server
        assert self._general is not None and server is not None
        identities = identity.parse_identities(config.raw.get("replica.identity.autoset.values"))
        if identities:
            identity.set_identities(self._general, identities, self._tables)
        connection = slot.start_replication(
            config.connection,
            config.slot,
            self._start_lsn(),
            config.publication,
            parameters=config.raw.get("slot.stream.params", ""),
            should_stop=self._stop.is_set,
        )
        self._slot_backoff.reset()
        status = config.seconds("status.update.interval.ms")
        if server.wal_sender_timeout_ms:
            # a server with a short timeout must not give us up between two statuses
            status = min(status, server.wal_sender_timeout_ms / 3000)
        stream = ChangeStream(
            connection,
            self._position or PostgresOffset(),
            self._resolve,
            messages=self._messages,
            skipped=config.skipped,
            tombstones=config.flag("tombstones.on.delete"),
            status_seconds=status,
            headers=self._factory.headers,
        )
        if self._acknowledged and config.confirms_positions:
            stream.acknowledge(self._acknowledged)
        log.info("Streaming from slot '%s' at %s", config.slot, format_lsn(self._start_lsn()))
        return stream

    def _resolve(self, relation: Relation, known: CapturedTable | None) -> CapturedTable | None:
        """The captured table of a RELATION message, `known` itself when nothing changed, None when it is not captured."""
        id_ = TableId(relation.schema, relation.table)
        if not self._config.filters.is_captured(id_):
            return None
        try:
            table = self._structure(relation, id_)
        except ServerError as error:
            if error.sqlstate[:2] not in ("08", "57"):
                raise
            # the idle connection was cut, by a firewall or an administrator
            assert self._general is not None
            self._general.close()
            self._general = self._open_general()
            table = self._structure(relation, id_)
        return self._factory.build(table, known)

    def _structure(self, relation: Relation, id_: TableId) -> Table[PgColumn]:
        assert self._general is not None
        table = catalog.read_tables(self._general, [id_]).get(id_)
        present = {column.name: column.type_oid for column in table.columns} if table else {}
        changed = {column.type_oid for column in relation.columns if present.get(column.name) != column.type_oid}
        return table_of_relation(relation, table, catalog.read_types(self._general, changed))

    def _drop_slot(self) -> None:
        try:
            connection = Connection(self._config.connection, "Debezium Drop Slot")
            slot.drop_slot(connection, self._config.slot)
            connection.close()
        except ServerError as error:
            log.error("The slot '%s' could not be dropped and keeps WAL on the server: %s", self._config.slot, error)


def _initial_statements(text: str) -> list[str]:
    """`database.initial.statements`: split at semicolons, two of which stand for one."""
    parts = text.replace(";;", "\0").split(";")
    return [part.replace("\0", ";").strip() for part in parts if part.strip()]


def _why_unavailable(server: catalog.ServerState, name: str) -> str:
    if server.slot is None:
        return f"the replication slot '{name}' does not exist"
    return f"the replication slot '{name}' begins at {format_lsn(server.slot.restart_lsn or 0)}"
