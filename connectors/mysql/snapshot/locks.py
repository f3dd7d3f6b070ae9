"""The locks under which a snapshot's transactions begin (`snapshot.locking.mode`), and the consistent snapshot of a session: a transaction
that sees the database as it was when it began.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from connect_py.errors import FatalTaskError, RetriableError
from connectors.engine.relational.tables import TableId
from connectors.mysql import errors
from connectors.mysql.checks import LOCK_VARIABLES, Grants, Locking, backup_lock_unknown, locks_refused, missing_locks
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError, ServerError
from connectors.mysql.model import quote_name
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection, quote_literal

log = logging.getLogger(__name__)


#: A session that holds a lock or a consistent snapshot may have nothing to do for as long as the rows take.
_IDLE_SECONDS = 7 * 24 * 3600
#: Errors by which the server says that a table has changed.
_CHANGED = errors.GONE | {errors.UNKNOWN_COLUMN}


def prepare_session(connection: Connection, config: MySqlConfig) -> None:
    """Set how long a session waits for locks and may be idle, and what its transactions see. Raises ServerError."""
    seconds = max(1, config.number("snapshot.lock.timeout.ms") // 1000)
    connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute(f"SET SESSION lock_wait_timeout = {seconds}, wait_timeout = {_IDLE_SECONDS}")
    try:
        connection.execute(f"SET SESSION innodb_lock_wait_timeout = {seconds}")
    except LostConnectionError:
        raise
    except ServerError as error:
        log.warning("%s", error)


def begin_consistent_snapshot(connection: Connection) -> None:
    """Begin a transaction that sees the database as it is now. Raises ServerError."""
    connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")


@contextmanager
def retry_altered_table(table: TableId) -> Iterator[None]:
    """Have a table that was altered after the consistent snapshot began, before it was first read, read in another attempt.

    InnoDB says so of its own accord where the columns are still there (`ER_TABLE_DEF_CHANGED`, which passes).
    """
    try:
        yield
    except ServerError as error:
        if error.code not in _CHANGED or isinstance(error, RetriableError):
            raise
        raise RetriableError(f"Cannot read the table {table} as it was when the snapshot began; {error}") from error


_CONSISTENT = ("minimal", "minimal_percona", "minimal_percona_no_table_locks")
_LOCKS = {"minimal": "FLUSH TABLES WITH READ LOCK", "extended": "FLUSH TABLES WITH READ LOCK"}
_PERCONA_LOCK = "LOCK TABLES FOR BACKUP"
#: How long a commit may take to show after it is in the log.
_COMMIT_SECONDS = 1.0


def locking_of(config: MySqlConfig) -> Locking:
    """Return how a configuration locks."""
    return Locking(config.choice("snapshot.locking.mode", "minimal"), config.choice("snapshot.locking.fallback", "flush") != "lock")


class SnapshotLocks:
    """The locks of one session, in the order `acquire`, `begin`, `structures_read`, `hand_over`, `rows_read`. Every method raises
    ServerError.

    Attributes:
        with_tables: whether the captured tables are locked, since the server refused the global lock.
    """

    def __init__(self, connection: Connection, config: MySqlConfig) -> None:
        self._connection = connection
        self._config = config
        self._locking = locking_of(config)
        self._mode = self._locking.mode
        self._is_held = False
        self.with_tables = False

    @property
    def holds_global_lock(self) -> bool:
        """Whether nobody can write, to whatever table."""
        return self._is_held and not self.with_tables

    def let_commits_end(self) -> None:
        """Wait, once the position is known, until what is in the log before it shows in the tables, where no lock has kept others from
        committing: a commit is in the log before it has ended, and would be neither in the snapshot nor in the stream after it. GTIDs are
        of commits that have ended."""
        if not self.with_tables and self._mode not in _LOCKS and not queries.resumes_by_gtids(self._connection, self._config):
            time.sleep(_COMMIT_SECONDS)

    def acquire(self, captured: Sequence[TableId]) -> None:
        """Lock everything, or the captured tables where the global lock is refused.

        Raises:
            FatalTaskError: a right is missing, or the mode forbids the second.
        """
        prepare_session(self._connection, self._config)
        if self._mode == "none":
            return
        try:
            self._is_held = True
            self._connection.execute(_LOCKS.get(self._mode, _PERCONA_LOCK))
        except LostConnectionError:
            raise
        except ServerError as error:
            if not self._locking.may_lock_tables:
                raise FatalTaskError(
                    "Cannot perform two-phase schema snapshot because global read lock was not acquired and table locks are not allowed in "
                    f"*_no_table_locks mode. Nothing was read. {self._percona_remedy()}"
                ) from error
            log.info("The server refuses the global read lock, the captured tables are locked in its place: %s", error)
            self.with_tables = True
            self._lock_tables(captured, error)

    def begin(self) -> None:
        """Begin the transaction that reads, once the position is known: a lock that lets others commit (Percona's) or none must not let
        a change fall between the two. Locked tables do not change, and a transaction's start would release them."""
        if not self.with_tables:
            if self._mode in _CONSISTENT:
                begin_consistent_snapshot(self._connection)
            else:
                self._connection.execute("START TRANSACTION")

    def structures_read(self) -> None:
        """Release the lock where rows do not need it."""
        if not self.with_tables and self._mode in _CONSISTENT:
            self.release()

    def hand_over(self, captured: Sequence[TableId]) -> Connection | None:
        """Release tables that are locked instead of everything, once another session has begun the consistent snapshot.

        (Debezium keeps them until the last row was read. So do we with `extended`, and where a table has no transactions.)

        Returns:
            The session that reads instead of this one; None where this one does.
        """
        if not self.with_tables or self._mode not in _CONSISTENT or not _have_transactions(self._connection, captured):
            return None
        other = queries.open_connection(self._config)
        try:
            prepare_session(other, self._config)
            begin_consistent_snapshot(other)
            self.release()
        except BaseException:
            other.close()
            raise
        return other

    def rows_read(self) -> None:
        """Release what is still locked."""
        if self._is_held and (self.with_tables or self._mode == "extended"):
            self.release()
        self._connection.execute("ROLLBACK")

    def release(self) -> None:
        """Unlock: others read the rows, in consistent snapshots that have begun."""
        if self._is_held:
            self._connection.execute("UNLOCK TABLES")
        self._is_held = False

    def _lock_tables(self, captured: Sequence[TableId], refusal: ServerError) -> None:
        """Lock the captured tables instead of everything (`MySqlSnapshotLockProvider`).

        Raises:
            FatalTaskError: the user may not.
        """
        grants, right = self._grants(), self._right()
        # who has the right and is refused is so by the server, whatever is granted
        missing = missing_locks(grants, captured, self._locking, None if right is not None and grants.has(right) else right)
        if missing:
            refused = locks_refused(queries.current_account(self._connection), missing)
            raise FatalTaskError(refused.refusal("Nothing was read.")) from refusal
        if not captured:
            return
        names = [quote_name(table.schema, table.table) for table in captured]
        try:
            self._connection.execute(f"FLUSH TABLES {', '.join(names)} WITH READ LOCK")
        except LostConnectionError:
            raise
        except ServerError as error:
            if error.code not in errors.DENIED or self._locking.flushes:
                raise
            # for tables of InnoDB the lock does the same, without closing them first
            log.info("The server refuses to flush the tables, they are locked without that: %s", error)
            self._connection.execute(f"LOCK TABLES {', '.join(f'{name} READ' for name in names)}")

    def _grants(self) -> Grants:
        return Grants.parse([row[0] for row in self._connection.texts("SHOW GRANTS")])

    def _right(self) -> str | None:
        return self._locking.right(queries.global_variables(self._connection, LOCK_VARIABLES))

    def _percona_remedy(self) -> str:
        right = self._right()
        return backup_lock_unknown().remedy if right is None else f"Grant {right} on *.* to {queries.current_account(self._connection)}."


def _have_transactions(connection: Connection, tables: Sequence[TableId]) -> bool:
    """Return whether a transaction keeps its view of all the tables: whether they are InnoDB's."""
    engines = connection.texts(
        "SELECT table_schema, table_name, engine FROM information_schema.tables WHERE table_schema IN "  # noqa: S608  # quoted
        f"({', '.join(quote_literal(schema) for schema in sorted({table.schema for table in tables}) or [''])})"
    )
    found = {(schema, table): engine for schema, table, engine in engines}
    return all(found.get((table.schema, table.table)) == "InnoDB" for table in tables)
