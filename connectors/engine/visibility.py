"""When a transaction of the log shows in the database's tables."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

#: How long a transaction that the log has may take until other sessions see it; one that waits for a replica may take long.
_VISIBLE_SECONDS = 10.0


class Visibility:
    """Waits until other sessions of the database see a transaction, before the first row of it is read again.

    A log has a transaction before its commit has ended: MySQL's log thread and PostgreSQL's WAL sender read what is flushed, and the commit
    may still wait for a replica (semi-synchronous and synchronous replication). A row read in between is the one from before the
    transaction, or none.

    Args:
        await_shown: waits for so many seconds at most; returns whether other sessions see the transaction. Raises ConnectError.
    """

    def __init__(self, await_shown: Callable[[Any, float], bool]) -> None:
        self._await_shown = await_shown
        self._seen: Any = None

    def wait_for(self, transaction: object) -> None:
        """Return when a transaction is seen, or does not show in time."""
        if transaction == self._seen:
            return
        if not self._await_shown(transaction, _VISIBLE_SECONDS):
            log.warning(
                "Transaction %s is in the log, and other sessions have not seen it for %.0f s: does its commit wait for a replica that "
                "is gone? Values that its rows lack are read from the table as it is",
                transaction,
                _VISIBLE_SECONDS,
            )
        self._seen = transaction
