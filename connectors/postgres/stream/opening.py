"""How a PostgreSQL stream is opened, and how it learns what its tables look like. Used by the task's thread.

`replica.identity.autoset.values` names the replica identities that the connector sets when streaming starts.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence

from connect_py.api import JsonEncoding
from connect_py.wakeup import Wakeup
from connectors.engine.metrics import StreamingMetrics
from connectors.engine.relational.tables import Table, TableId, compile_java_regex
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError
from connectors.postgres.pgoutput import Relation
from connectors.postgres.position.offset import PostgresOffset, format_lsn
from connectors.postgres.server import catalog
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, quote_literal, quote_name
from connectors.postgres.slot import slot
from connectors.postgres.slot.slot import SlotXmin
from connectors.postgres.stream.feedback import Silence
from connectors.postgres.stream.open_transactions import SegmentedMessages
from connectors.postgres.stream.services import PostgresServices
from connectors.postgres.stream.stream import ChangeStream, MessageEncoder
from connectors.postgres.tables import CapturedTable, TableFactory, table_of_relation
from connectors.postgres.types.columns import PgColumn

log = logging.getLogger(__name__)


_IDENTITY_CODES = {"DEFAULT": "d", "FULL": "f", "NOTHING": "n"}


def parse_identities(text: str | None) -> list[tuple[re.Pattern[str], str]]:
    """Return (table regex, identity) of each entry of a text that validation has passed."""
    found = []
    for entry in (text or "").split(","):
        regex, colon, identity = entry.strip().rpartition(":")
        if colon:
            found.append((compile_java_regex(regex), identity.strip()))
    return found


def set_identities(connection: Connection, wanted: Sequence[tuple[re.Pattern[str], str]], tables: Sequence[TableId]) -> None:
    """Alter the tables whose identity differs. Failures are logged: the user may not own a table, and its changes still flow."""
    for table in tables:
        matching = [identity for regex, identity in wanted if regex.fullmatch(str(table))]
        if len(matching) > 1:
            log.error(
                "More than one entry of replica.identity.autoset.values matches the table %s; its replica identity was left alone", table
            )
        elif matching:
            try:
                _set(connection, table, matching[0])
            except ServerError as error:
                log.error("The replica identity of %s could not be set to %s: %s", table, matching[0], error)


def _set(connection: Connection, table: TableId, identity: str) -> None:
    rows = connection.query(
        "SELECT c.relreplident, (SELECT ic.relname FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid "
        "WHERE i.indrelid = c.oid AND i.indisreplident) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {quote_literal(table.schema)} AND c.relname = {quote_literal(table.table)}"
    )
    if not rows:
        return
    present, index = rows[0]
    kind, _, name = identity.partition(" ")
    name = name.strip()
    if kind.upper() == "INDEX":
        if present == "i" and index == name:
            return
        what = f"USING INDEX {quote_name(name)}"
    else:
        if present == _IDENTITY_CODES[kind.upper()]:
            return
        what = kind.upper()
    connection.query(f"ALTER TABLE {quote_name(table.schema)}.{quote_name(table.table)} REPLICA IDENTITY {what}")
    log.info("Replica identity of %s set to %s", table, identity)


#: How long the catalog is left to settle when a table changes in the stream. The server sends names and types only; what else a schema says
#: (nullable, defaults, key) is read from the present catalog. A migration changes a table several times within milliseconds: what is read
#: between two of its statements is a structure that no later row has, and one more version in a schema registry. Debezium, which looks at
#: the stream every 500 ms, rarely sees such a one.
SETTLING_SECONDS = 0.2


def is_changed(relation: Relation, before: Sequence[PgColumn]) -> bool:
    """Return whether the server sends a column that was not there before. One less may be a generated column, or
    one that the publication leaves out."""
    present = {(column.name, column.type_oid, column.modifier) for column in relation.columns}
    return not present <= {(column.name, column.type_oid, column.typmod) for column in before}


class StreamOpener:
    """Opens streams.

    Args:
        services: signals, incremental snapshots and the like.
        general: returns the task's open connection, which is replaced after a reconnect.
        reopen_general: opens it again, after the server closed it.
    """

    def __init__(
        self,
        config: PostgresConfig,
        encoding: JsonEncoding,
        factory: TableFactory,
        services: PostgresServices,
        metrics: StreamingMetrics,
        *,
        general: Callable[[], Connection],
        reopen_general: Callable[[], Connection],
        should_stop: Callable[[], bool],
        wakeup: Wakeup,
    ) -> None:
        self._config = config
        self._factory = factory
        self._services = services
        self._metrics = metrics
        self._general = general
        self._reopen_general = reopen_general
        self._should_stop = should_stop
        self._wakeup = wakeup
        self._silence = Silence(config.seconds("connection.silence.timeout.ms"))
        seconds = config.seconds("xmin.fetch.interval.ms")
        self._xmin: Callable[[], int | None] = SlotXmin(general, config.slot, seconds) if seconds > 0 else lambda: None
        self._messages = MessageEncoder(
            config.version, config.topic_prefix, config.database, config.choice("binary.handling.mode"), config.message_prefixes, encoding
        )

    def open(self, server: ServerState, tables: Sequence[TableId], position: PostgresOffset) -> ChangeStream:
        """Return a stream from a position.

        Raises:
            FatalTaskError, RetriableError, Stopped: as `slot.start_replication`.
            ServerError: the general connection failed.
        """
        config = self._config
        identities = parse_identities(config.raw.get("replica.identity.autoset.values"))
        if identities:
            set_identities(self._general(), identities, tables)
        in_segments = config.flag("large.transaction.streaming")
        if in_segments and server.version < slot.SEGMENTS_VERSION:
            log.warning("large.transaction.streaming: this server keeps large transactions itself, since it is older than version 14")
            in_segments = False
        connection = slot.start_replication(
            config.connection,
            config.slot,
            position.start_lsn,
            config.publication,
            parameters=config.raw.get("slot.stream.params", ""),
            in_segments=in_segments,
            should_stop=self._should_stop,
        )
        status = config.seconds("status.update.interval.ms")
        if server.wal_sender_timeout_ms:
            # a server with a short timeout must not give us up between two statuses
            status = min(status, server.wal_sender_timeout_ms / 3000)
        stream = ChangeStream(
            connection,
            position,
            self._resolve,
            messages=self._messages,
            skipped=config.skipped,
            tombstones=config.flag("tombstones.on.delete"),
            status_seconds=status,
            silence=self._silence,
            headers=self._factory.headers,
            pending=self._services.pending,
            taps=self._services.taps,
            on_structure=self._services.structure_seen,
            metrics=self._metrics,
            segments=self._segments(connection, server) if in_segments else None,
            xmin=self._xmin,
            on_failure=config.choice("event.processing.failure.handling.mode"),
            wakeup=self._wakeup,
        )
        self._metrics.connected = True
        log.info("Streaming from slot '%s' at %s", config.slot, format_lsn(position.start_lsn))
        return stream

    def _segments(self, connection: Connection, server: ServerState) -> SegmentedMessages:
        return SegmentedMessages(
            connection.pgconn.get_copy_data,
            memory_bytes=self._config.number("large.transaction.memory.bytes"),
            directory=self._config.raw.get("large.transaction.directory", "").strip() or None,
            sends_empty=server.version < 150000,
        )

    def _resolve(self, relation: Relation, known: CapturedTable | None) -> CapturedTable | None:
        """Return the captured table of a RELATION message, `known` itself when nothing changed, None when it is not captured."""
        id_ = TableId(relation.schema, relation.table)
        if not self._config.filters.is_captured(id_):
            return None
        before = self._factory.columns.get(id_)
        if before is not None and is_changed(relation, before):
            time.sleep(SETTLING_SECONDS)
        try:
            table = _structure(self._general(), relation, id_)
        except ServerError as error:
            if error.sqlstate[:2] not in ("08", "57"):
                raise
            # the idle connection was cut, by a firewall or an administrator
            table = _structure(self._reopen_general(), relation, id_)
        return self._factory.build(table, known, streamed=True)


def _structure(general: Connection, relation: Relation, id_: TableId) -> Table[PgColumn]:
    table = catalog.read_tables(general, [id_]).get(id_)
    present = {column.name: column.type_oid for column in table.columns} if table else {}
    changed = {column.type_oid for column in relation.columns if present.get(column.name) != column.type_oid}
    return table_of_relation(relation, table, catalog.read_types(general, changed))
