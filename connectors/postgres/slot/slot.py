"""The replication slot: look-up, creation with an exported snapshot, start of the stream, and what is asked of it while it is read.

Hand-over from snapshot to stream, so that nothing is lost:

- A slot that this start creates exports a snapshot that holds exactly the transactions committed before the slot's consistent point.
  Streaming from that point gives all later ones: no gap, no duplicate.
- When the slot exists already (a snapshot that did not end, a slot made by hand), the snapshot is a REPEATABLE READ transaction of its
  own, and streaming starts at the slot's *confirmed* position, which lies before it. Rows of an earlier attempt may be in Kafka, and the
  table may have lost some of them since: only the replay of every change since the confirmed position makes the topic equal to the table.
  Changes in between arrive twice and converge. Debezium starts at the "current" position that it reads outside of the snapshot, which
  skips those deletes, and any transaction between the two reads.
- `snapshot.mode=always` asks for a new beginning at every start: there a second, *temporary* slot is made for its consistent point and
  exported snapshot, and the lasting slot is read from that point. Without room for one more slot it is done as above.

A consistent point is one before which every transaction has ended, so CREATE_REPLICATION_SLOT waits for the numbered transactions that
run on the server, in any database, for as long as they take: `statement_timeout` does not count for replication commands (`snapbuild.c`,
SnapBuildFindSnapshot). `SlotWait` logs what the creation waits for.

`SlotXmin` is the oldest transaction that a slot keeps the catalog for, as records show it (`xmin.fetch.interval.ms`;
`PostgresStreamingChangeEventSource.getSlotXmin`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.batches import DEFAULT_TUNING
from connectors.postgres.checks import server as checks
from connectors.postgres.config import ConnectionSettings
from connectors.postgres.errors import ServerError, translate
from connectors.postgres.position.offset import format_lsn, parse_lsn
from connectors.postgres.server.catalog import ServerState
from connectors.postgres.server.connection import Connection, Row, Stopped, quote_literal, quote_name

log = logging.getLogger(__name__)


#: How many transactions a line names.
SHOWN = 3

#: A user without pg_read_all_stats sees other users' transactions, but neither their state nor their age.
RUNNING_SQL = (
    "SELECT pid::text, application_name, datname, state, extract(epoch FROM now() - xact_start)::bigint, age(backend_xid) AS behind "
    "FROM pg_stat_activity WHERE backend_xid IS NOT NULL UNION ALL "
    "SELECT NULL, gid, database, 'prepared', extract(epoch FROM now() - prepared)::bigint, age(transaction) FROM pg_prepared_xacts "
    "ORDER BY behind DESC"
)


class SlotWait:
    """Call it often while a slot is being created: it warns now and then. Owned by the task's thread.

    Args:
        observer: an ordinary connection that is not in use meanwhile.
        slot: the slot's name.
        report_seconds: until the first warning, and between two.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        observer: Connection,
        slot: str,
        report_seconds: tuple[float, float] = DEFAULT_TUNING.slot_report_seconds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._slot = slot
        self._clock = clock
        self._began = clock()
        first, self._report_seconds = report_seconds
        self._next = self._began + first

    def __call__(self) -> None:
        """Warn when it is time. Raises Stopped."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._report_seconds
        try:
            causes = describe_running(self._observer.query(RUNNING_SQL))
        except ServerError as error:
            causes = f"Which ones these are could not be asked ({error})."
        log.warning(
            "The replication slot '%s' is still being created, after %.0f s: the server waits until transactions that run now have "
            "ended. %s Nothing was read yet and nothing is lost; the work goes on when they end.",
            self._slot,
            now - self._began,
            causes,
        )


def describe_running(running: list[Row]) -> str:
    """Return sentences about running transactions, the oldest ones first, and how to end the oldest."""
    if not running:
        return (
            "None shows here; on a standby it is the primary that has to log its running ones: SELECT pg_log_standby_snapshot(); there "
            "(version 16 and later)."
        )
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    pid, name, *_ = running[0]
    end = f"SELECT pg_terminate_backend({pid});" if pid else f"ROLLBACK PREPARED '{name}'; or COMMIT PREPARED '{name}'; in its database"
    return f"The oldest: {', '.join(map(_describe_one, running[:SHOWN]))}{more}. Let them end, or end the first one: {end}"


def _describe_one(row: Row) -> str:
    pid, name, database, state, seconds, _ = row
    who = f"pid {pid} ({name or 'no application name'}" if pid else f"prepared transaction '{name}' ("
    what = [f"database {database}", "" if pid is None else state or "state hidden from this user", f"for {seconds} s" if seconds else ""]
    return f"{who}{', ' if pid else ''}{', '.join(filter(None, what))})"


#: Since when the plug-in sends what `pg_logical_emit_message` wrote, and transactions that are open.
MESSAGES_VERSION = SEGMENTS_VERSION = 140000
#: Between two looks at a slot that somebody still holds.
_HELD_PAUSE_SECONDS = 0.05
#: Options that say what the decoder has to understand, and those that other properties set (`PgOutputMessageDecoder.defaultOptions`).
_OURS = frozenset(("proto_version", "streaming", "binary", "two_phase", "messages", "publication_names"))


class SlotBusyError(RetriableError):
    """Another session reads or creates the slot: a predecessor that is going away, or a second connector."""


@dataclass(slots=True)
class ExportedSnapshot:
    """A consistent snapshot of the database, exported by a replication connection.

    Attributes:
        name: the name for SET TRANSACTION SNAPSHOT; valid until `connection` runs another command or closes.
        lsn: the consistent point: the snapshot holds every transaction that committed before it, and none after it.
        connection: the replication connection that keeps it.
    """

    name: str
    lsn: int
    connection: Connection

    def release(self) -> None:
        """Give it up; a temporary slot goes with the connection."""
        self.connection.close()


def check_server(state: ServerState, user: str) -> None:
    """Check what streaming needs; a missing piece would show only later.

    Raises:
        FatalTaskError: with the statements to run.
    """
    for finding in checks.server_findings(state, user):
        raise FatalTaskError(finding.refusal("Nothing was read and no slot was created.", "Then restart this task."))


def check_slot(state: ServerState, name: str, database: str) -> None:
    """Check that a slot of that name is ours: of this database and of pgoutput.

    Raises:
        FatalTaskError: it is another's, or the server has invalidated it.
        SlotBusyError: it is not ready.
    """
    for finding in checks.slot_findings(state, name, database):
        if finding.check == checks.SLOT_IN_CREATION:
            # A session that was killed while it created the slot continues until the transactions that ran then have ended. Streaming
            # will begin at a point that is not known yet: a snapshot taken now would leave a gap before it.
            raise SlotBusyError(finding.refusal("Nothing was read."))
        raise FatalTaskError(finding.refusal(""))


def create_slot(
    settings: ConnectionSettings,
    name: str,
    *,
    failover: bool = False,
    temporary: bool = False,
    observer: Connection,
    should_stop: Callable[[], bool],
    report_seconds: tuple[float, float] = DEFAULT_TUNING.slot_report_seconds,
) -> ExportedSnapshot:
    """Create a slot over the replication protocol; waits, with a warning now and then, for transactions that run now to end.

    Args:
        observer: an ordinary connection, over which the server is asked what it waits for.
        report_seconds: how long it waits before the first warning, and between two.

    Returns:
        The snapshot that the slot exports.

    Raises:
        FatalTaskError: the server refuses.
        RetriableError: the connection failed, or an administrator cancelled the wait.
        Stopped: a stop was requested; the server was asked to leave no slot.
    """
    connection = _replication_connection(settings, should_stop)
    kind = "TEMPORARY LOGICAL" if temporary else "LOGICAL"
    options = " (FAILOVER)" if failover else ""
    try:
        rows = connection.query(
            f"CREATE_REPLICATION_SLOT {quote_name(name)} {kind} pgoutput{options}", SlotWait(observer, name, report_seconds)
        )
    except ServerError as error:
        connection.close()
        raise _creation_error(error, name, settings) from None
    except Stopped:
        connection.cancel()
        connection.close()
        raise
    except BaseException:
        connection.close()
        raise
    _, consistent_point, snapshot, _ = rows[0]
    lsn = parse_lsn(str(consistent_point))
    log.info("Created %sslot '%s' at %s", "temporary " if temporary else "", name, consistent_point)
    return ExportedSnapshot(str(snapshot), lsn, connection)


def _replication_connection(settings: ConnectionSettings, should_stop: Callable[[], bool]) -> Connection:
    try:
        return Connection(settings, "Debezium Streaming", replication=True, should_stop=should_stop)
    except ServerError as error:
        raise translate(error, "Cannot open a replication connection", user=settings.user, database=settings.database) from None


def _creation_error(error: ServerError, name: str, settings: ConnectionSettings) -> ConnectError:
    if error.sqlstate == "42710":
        return RetriableError(
            "Creation of replication slot failed; when setting up multiple connectors for the same database host, please make sure to "
            f"use a distinct replication slot name for each: {error.message}"
        )
    return translate(error, f"Creation of replication slot '{name}' failed", user=settings.user, database=settings.database)


def export_temporary_snapshot(
    settings: ConnectionSettings,
    slot: str,
    *,
    observer: Connection,
    should_stop: Callable[[], bool],
    report_seconds: tuple[float, float] = DEFAULT_TUNING.slot_report_seconds,
) -> ExportedSnapshot | None:
    """Return the snapshot of a temporary slot, for a snapshot while the lasting slot exists; None when the server has no room for one.

    Args:
        observer, report_seconds: as in `create_slot`.

    Raises:
        RetriableError: the connection failed.
        Stopped: a stop was asked for.
    """
    name = f"{slot[:40]}_snapshot_{os.urandom(5).hex()}"
    try:
        return create_slot(settings, name, temporary=True, observer=observer, should_stop=should_stop, report_seconds=report_seconds)
    except FatalTaskError as error:
        log.warning(
            "No temporary slot for an exact hand-over (%s); the snapshot is taken beside the slot '%s' and changes since its confirmed "
            "position arrive again after it",
            error,
            slot,
        )
        return None


def start_replication(
    settings: ConnectionSettings,
    slot: str,
    lsn: int,
    publication: str,
    *,
    parameters: str = "",
    in_segments: bool = False,
    should_stop: Callable[[], bool],
) -> Connection:
    """Open a connection on which changes flow.

    Args:
        lsn: transactions that committed before it are not sent; 0, or anything before it, stands for the slot's confirmed position.
        parameters: more options of the plug-in, `name=value` joined by `;` (`slot.stream.params`).
        in_segments: whether large transactions are sent while they are open; the server must be of version 14 or later.

    Raises:
        FatalTaskError: the slot or its WAL is gone.
        RetriableError: the connection failed, or the slot is still in use.
        Stopped: a stop was asked for.
    """
    connection = _replication_connection(settings, should_stop)
    options = {"proto_version": "1", "publication_names": quote_name(publication)}
    if in_segments:
        options |= {"proto_version": "2", "streaming": "on"}
    if connection.server_version >= MESSAGES_VERSION:
        options["messages"] = "true"
    options |= _parse_parameters(parameters)
    # the grammar of replication commands knows no E'…'
    listed = ", ".join(f"{quote_name(name)} " + "'" + value.replace("'", "''") + "'" for name, value in options.items())
    try:
        connection.start_copy(f"START_REPLICATION SLOT {quote_name(slot)} LOGICAL {format_lsn(lsn)} ({listed})")
    except ServerError as error:
        connection.close()
        what = f"Failed to start replication stream at LSN{{{format_lsn(lsn)}}}"
        if error.sqlstate == "55006":
            raise SlotBusyError(
                f"{what}; when setting up multiple connectors for the same database host, please make sure to use a distinct replication "
                f"slot name for each: {error.message}. The slot keeps every change, so nothing is lost. If no other connector uses it, "
                f"end the session: SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{slot}';"
            ) from None
        raise translate(error, what, user=settings.user, database=settings.database) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _parse_parameters(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            log.warning("slot.stream.params: '%s' is not name=value and was left out", part)
            continue
        if name.strip() in _OURS:
            log.warning(
                "slot.stream.params: %s is for the connector to set and was left out; see large.transaction.streaming", name.strip()
            )
            continue
        found[name.strip()] = value.strip()
    return found


def drop_slot(connection: Connection, name: str, seconds: float) -> bool:
    """Drop the slot if it exists. The server's process that sent its log to us may hold it for a moment longer than our connection.

    Args:
        seconds: how long to wait for a session that holds it.

    Returns:
        Whether it is gone; else another session reads it.

    Raises:
        ServerError: the server cannot be asked, or refuses.
    """
    named, deadline = f"slot_name = {quote_literal(name)}", time.monotonic() + seconds
    while True:
        connection.query(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE {named} AND NOT active")
        if not connection.query(f"SELECT 1 FROM pg_replication_slots WHERE {named}"):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_HELD_PAUSE_SECONDS)


class SlotXmin:
    """Asks for the slot's `catalog_xmin` from time to time. Owned by the task's thread.

    Args:
        general: returns the task's open connection, which is replaced after a reconnect.
        seconds: how long an answer is good.
    """

    def __init__(self, general: Callable[[], Connection], slot: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._general = general
        self._sql = f"SELECT catalog_xmin FROM pg_replication_slots WHERE slot_name = {quote_literal(slot)}"
        self._seconds = seconds
        self._clock = clock
        self._known: int | None = None
        self._until = 0.0

    def __call__(self) -> int | None:
        """Return the number; None when the slot is gone. Raises ServerError."""
        now = self._clock()
        if self._known is None or now >= self._until:
            rows = self._general().query(self._sql)
            self._known = int(rows[0][0]) if rows and rows[0][0] is not None else None
            self._until = now + self._seconds
        return self._known
