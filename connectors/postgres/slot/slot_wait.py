"""The line that says what the creation of a replication slot waits for.

A consistent point is one before which every transaction has ended, so CREATE_REPLICATION_SLOT waits for the numbered transactions that
run on the server, in whatever database, and for as long as they take: `statement_timeout` does not count for replication commands
(`snapbuild.c`, SnapBuildFindSnapshot).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from connectors.postgres.errors import ServerError
from connectors.postgres.server.connection import Connection, Row

log = logging.getLogger(__name__)

FIRST_REPORT_SECONDS = 5.0
REPORT_SECONDS = 30.0
#: How many transactions a line names.
SHOWN = 3

#: A user without pg_read_all_stats sees other users' transactions, but neither their state nor their age.
_RUNNING = (
    "SELECT pid::text, application_name, datname, state, extract(epoch FROM now() - xact_start)::bigint, age(backend_xid) AS behind "
    "FROM pg_stat_activity WHERE backend_xid IS NOT NULL UNION ALL "
    "SELECT NULL, gid, database, 'prepared', extract(epoch FROM now() - prepared)::bigint, age(transaction) FROM pg_prepared_xacts "
    "ORDER BY behind DESC"
)


class SlotWait:
    """Call it often while a slot is being created: it warns after FIRST_REPORT_SECONDS, then each REPORT_SECONDS. Owned by the task's
    thread.

    Args:
        observer: an ordinary connection that nobody uses meanwhile.
        slot: the slot's name.
        clock: monotonic seconds.
    """

    def __init__(self, observer: Connection, slot: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._observer = observer
        self._slot = slot
        self._clock = clock
        self._began = clock()
        self._next = self._began + FIRST_REPORT_SECONDS

    def __call__(self) -> None:
        """Warn when it is time. Raises Stopped."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + REPORT_SECONDS
        try:
            causes = describe(self._observer.query(_RUNNING))
        except ServerError as error:
            causes = f"Which ones these are could not be asked ({error})."
        log.warning(
            "The replication slot '%s' is still being created, after %.0f s: the server waits until transactions that run now have "
            "ended. %s Nothing was read yet and nothing is lost; the work goes on when they end.",
            self._slot,
            now - self._began,
            causes,
        )


def describe(running: list[Row]) -> str:
    """Sentences about running transactions, the oldest ones first, and how to end the oldest."""
    if not running:
        return (
            "None shows here; on a standby it is the primary that has to log its running ones: SELECT pg_log_standby_snapshot(); there "
            "(version 16 and later)."
        )
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    pid, name, *_ = running[0]
    end = f"SELECT pg_terminate_backend({pid});" if pid else f"ROLLBACK PREPARED '{name}'; or COMMIT PREPARED '{name}'; in its database"
    return f"The oldest: {', '.join(map(_describe, running[:SHOWN]))}{more}. Let them end, or end the first one: {end}"


def _describe(row: Row) -> str:
    pid, name, database, state, seconds, _ = row
    who = f"pid {pid} ({name or 'no application name'}" if pid else f"prepared transaction '{name}' ("
    what = [f"database {database}", "" if pid is None else state or "state hidden from this user", f"for {seconds} s" if seconds else ""]
    return f"{who}{', ' if pid else ''}{', '.join(filter(None, what))})"
