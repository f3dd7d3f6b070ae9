"""What a start does before the first row: it looks at the server, decides what to read, and creates publication and slot.

Whatever can be refused is checked before anything is created on the server. Nothing is kept here; the task owns what is returned. Where
the stored offset and the slot's own position differ, `offset.mismatch.strategy` says which of the two the start trusts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from connect_py.errors import FatalTaskError
from connectors.engine.relational.tables import TableId
from connectors.engine.snapshot.modes import StoredPosition
from connectors.postgres.checks import tables as checks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import PostgresOffset, format_lsn
from connectors.postgres.server import catalog
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, quote_literal
from connectors.postgres.slot import slot
from connectors.postgres.slot.publication import ensure_publication, options_sql, warn_of_hidden

log = logging.getLogger(__name__)


TRUST_OFFSET: Final = "trust_offset"
TRUST_SLOT: Final = "trust_slot"
TRUST_GREATER: Final = "trust_greater_lsn"
#: Privileges that the user lacks, and a function that PostgreSQL 10 lacks: the stream begins at the offset all the same
#: (`PostgresReplicationConnection.advanceReplicationSlot`).
_NOT_ADVANCED: Final = ("42501", "42883")


def settle(
    general: Connection, slot: str, confirmed_lsn: int, position: PostgresOffset, strategy: str, *, confirms: bool
) -> PostgresOffset:
    """Return the position to stream from.

    Args:
        confirmed_lsn: the slot's.
        position: what is stored, of a stream.
        strategy: one of the names above; any other trusts the offset and leaves the slot alone.
        confirms: whether we may move the slot (`lsn.flush.mode` other than manual).

    Raises:
        ServerError: the slot cannot be moved.
    """
    stored = position.start_lsn
    if strategy not in (TRUST_OFFSET, TRUST_SLOT, TRUST_GREATER) or stored == confirmed_lsn or not stored:
        return position
    is_earlier = stored < confirmed_lsn
    if is_earlier and strategy in (TRUST_SLOT, TRUST_GREATER):
        log.warning(
            "offset.mismatch.strategy=%s: the stored offset %s lies before the slot's position %s; changes between them are not read",
            strategy,
            format_lsn(stored),
            format_lsn(confirmed_lsn),
        )
        return replace(position, lsn=confirmed_lsn, lsn_proc=confirmed_lsn, lsn_commit=confirmed_lsn, message_type=None, events_processed=0)
    if is_earlier or strategy == TRUST_SLOT:
        return position
    if not confirms:
        log.warning("offset.mismatch.strategy=%s: the slot is left where it is, since lsn.flush.mode is manual", strategy)
        return position
    try:
        general.query(f"SELECT pg_replication_slot_advance({quote_literal(slot)}, {quote_literal(format_lsn(stored))})")
    except ServerError as error:
        if error.sqlstate not in _NOT_ADVANCED:
            raise
        log.warning(
            "offset.mismatch.strategy=%s: the slot '%s' stays where it is until the stream confirms the stored offset %s, which is read "
            "from: %s",
            strategy,
            slot,
            format_lsn(stored),
            error,
        )
        return position
    log.info("offset.mismatch.strategy=%s: the slot '%s' was advanced to the stored offset %s", strategy, slot, format_lsn(stored))
    return position


@dataclass(frozen=True, slots=True)
class Start:
    """What a start found and made.

    Attributes:
        server: the server's state before anything was created.
        tables: the captured ones.
        position: the stored one; None when there is none or the server has lost its log.
        to_read: tables of the snapshot to take, in order; None when none is taken.
        snapshot_lsn: where streaming continues after the snapshot; None when nothing follows it.
        exported: the consistent snapshot to read, when a slot was made; to be released once the reading transaction has begun.
        resumes_snapshot: whether the snapshot is the rest of one that was interrupted.
        published: what the publication held before this start, where it follows the filters.
    """

    server: ServerState
    tables: list[TableId]
    position: PostgresOffset | None
    to_read: list[TableId] | None
    snapshot_lsn: int | None
    exported: slot.ExportedSnapshot | None
    resumes_snapshot: bool = False
    published: frozenset[TableId] | None = None


def open_general(config: PostgresConfig, should_stop: Callable[[], bool]) -> Connection:
    """Return the connection for everything but the stream, after `database.initial.statements`.

    Raises:
        ConnectError: it cannot be opened.
        ServerError: an initial statement failed.
    """
    settings = config.connection
    try:
        seconds = config.seconds("database.query.timeout.ms")
        connection = Connection(settings, "Debezium General", should_stop=should_stop, query_seconds=seconds or None)
    except ServerError as error:
        what = f"Cannot connect to the database '{settings.database}' at {settings.host}:{settings.port}"
        raise translate(error, what, user=settings.user, database=settings.database) from None
    try:
        for statement in _initial_statements(config.raw.get("database.initial.statements", "")):
            connection.query(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(
    general: Connection,
    config: PostgresConfig,
    position: PostgresOffset | None,
    *,
    snapshot_begun: bool,
    is_stored: bool,
    should_stop: Callable[[], bool],
    report_seconds: tuple[float, float],
) -> Start:
    """Check the server, decide what to read, and create publication and slot.

    Args:
        position: the offset to continue from.
        snapshot_begun: whether this task has taken a snapshot since it was started; `always` asks for one, not for one a reconnection.
        is_stored: whether the offsets topic holds the position: the slot may be moved to no other.

    Raises:
        FatalTaskError: it cannot work as it is; with what to do.
        RetriableError: the slot is not free, or a connection failed.
        ServerError: the general connection failed.
        Stopped: a stop was asked for.
    """
    mode = config.snapshot_mode
    server = catalog.read_server_state(general, config.slot, config.publication)
    tables, unreadable = catalog.captured_tables(catalog.read_table_ids(general), config.filters.is_captured)
    _check_number(tables, config)
    if mode.streams:
        slot.check_server(server, config.user)
        slot.check_slot(server, config.slot, config.database)
    if _is_lost(position, server, config):
        position, reads = None, True
    else:
        reads = _reads_data(position, config, snapshot_begun=snapshot_begun)
    to_read = config.filters.snapshot_order(tables) if reads else None
    _check_readable(to_read or (), unreadable, config.user)
    if not mode.streams:
        return Start(server, tables, position, to_read, None, None)
    published = ensure_publication(
        general,
        server,
        name=config.publication,
        mode=config.publication_mode,
        tables=sorted(tables),
        options=options_sql(
            config.skipped - config.signal_operations if config.skipped_explicitly else None,
            via_partition_root=config.flag("publish.via.partition.root"),
        ),
        database=config.database,
        user=config.user,
    )
    warn_of_hidden(general, config.publication, config.signal_operations)
    exported: slot.ExportedSnapshot | None = None
    if server.slot is None:
        failover = config.flag("slot.failover") and server.version >= 170000 and not server.is_standby
        exported = slot.create_slot(
            config.connection, config.slot, failover=failover, observer=general, should_stop=should_stop, report_seconds=report_seconds
        )
    resumes_snapshot = reads and _can_resume(position, server)
    if server.slot is not None and reads and position is not None and (resumes_snapshot or not position.is_snapshot_unfinished):
        exported = slot.export_temporary_snapshot(
            config.connection, config.slot, observer=general, should_stop=should_stop, report_seconds=report_seconds
        )
    lsn = server.slot.confirmed_lsn if server.slot else None
    if is_stored and position is not None and not reads and lsn is not None and not position.is_snapshot_unfinished:
        position = settle(general, config.slot, lsn, position, config.offset_mismatch_strategy, confirms=config.confirms_positions)
    return Start(server, tables, position, to_read, exported.lsn if exported else lsn, exported, resumes_snapshot, published)


def _check_number(tables: Sequence[TableId], config: PostgresConfig) -> None:
    if not tables:
        log.warning("%s", checks.no_table(config.database).what)
    limit = config.number("guardrail.collections.max")
    if 0 < limit < len(tables):
        text = f"{len(tables)} tables are captured, more than guardrail.collections.max={limit} allows"
        if config.choice("guardrail.collections.limit.action") == "fail":
            raise FatalTaskError(text + ". Nothing was read. Narrow table.include.list or raise the limit")
        log.warning(text)


def _check_readable(tables: Sequence[TableId], unreadable: Sequence[TableId], user: str) -> None:
    for finding in checks.unreadable([table for table in tables if table in unreadable], user):
        left_out = "Or leave them out by table.exclude.list."
        raise FatalTaskError(finding.refusal("Nothing was sent and no slot was created.", f"{left_out} Then restart this task."))


def _stored(position: PostgresOffset | None) -> StoredPosition:
    if position is None:
        return StoredPosition.NONE
    return StoredPosition.UNFINISHED_SNAPSHOT if position.is_snapshot_unfinished else StoredPosition.STREAMING


def _reads_data(position: PostgresOffset | None, config: PostgresConfig, *, snapshot_begun: bool) -> bool:
    """Return whether this start reads the tables. Raises FatalTaskError when it would have to and may not."""
    stored = _stored(position)
    if snapshot_begun and stored is StoredPosition.STREAMING:
        return False
    return config.snapshot_mode.reads_data(stored)


def _can_resume(position: PostgresOffset | None, server: ServerState) -> bool:
    """Return whether what an interrupted snapshot left can be read alone: the slot must still give every change since then."""
    if position is None or not position.is_snapshot_unfinished or position.progress is None:
        return False
    confirmed = server.slot.confirmed_lsn if server.slot is not None else None
    if confirmed is None or confirmed > position.start_lsn:
        log.warning(
            "The snapshot that was interrupted at %s cannot go on and begins anew: the replication slot %s",
            format_lsn(position.start_lsn),
            "is gone" if confirmed is None else f"begins at {format_lsn(confirmed)}",
        )
        return False
    return True


def _is_lost(position: PostgresOffset | None, server: ServerState, config: PostgresConfig) -> bool:
    """Return whether the server can no longer stream from the stored position, so that a snapshot is needed instead.

    Raises:
        FatalTaskError: it cannot, and the mode does not allow a snapshot for that.
    """
    mode = config.snapshot_mode
    if position is None or position.is_snapshot_unfinished or not mode.streams:
        return False
    if config.choice("internal.log.position.check.enable", "true") == "false":
        return False
    if server.slot is not None and config.offset_mismatch_strategy in (TRUST_SLOT, TRUST_GREATER):
        return False
    at = format_lsn(position.start_lsn)
    if server.slot is None:
        why = f"the replication slot '{config.slot}' does not exist"
    elif position.lsn_proc is not None and (server.slot.restart_lsn or 0) > position.lsn_proc:
        why = f"the replication slot '{config.slot}' begins at {format_lsn(server.slot.restart_lsn or 0)}"
    else:
        return False
    if not mode.when_position_lost and not mode.when_finished:
        raise FatalTaskError(
            f"The connector is trying to read change stream starting at {at}, but this is no longer available on the server: {why}. "
            "Reconfigure the connector to use a snapshot mode when needed (snapshot.mode=when_needed), or delete the connector's offsets "
            "to begin anew."
        )
    log.warning("The stored position %s is no longer available (%s): a new snapshot is taken", at, why)
    return True


def _initial_statements(text: str) -> list[str]:
    """Split `database.initial.statements` at semicolons, two of which stand for one."""
    parts = text.replace(";;", "\0").split(";")
    return [part.replace("\0", ";").strip() for part in parts if part.strip()]
