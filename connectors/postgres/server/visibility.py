"""Which transactions of the log do not show in the tables yet.

A transaction is in the log when its commit is flushed. It shows when its process has left the list of running ones, which may be much
later: the commit of a session with `synchronous_commit` waits in between for a standby (`synchronous_standby_names`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from connectors.postgres.server.connection import Connection

_PAUSE_SECONDS = 0.01


def await_visible(connection: Connection, xids: Collection[int], seconds: float, while_waiting: Callable[[], None] = lambda: None) -> bool:
    """Wait until a new statement sees these committed transactions, for a time at most. Returns whether it does. Raises ServerError.

    Args:
        xids: 32 bits each, as the log has them.
        while_waiting: called again and again.
    """
    deadline = time.monotonic() + seconds
    while unseen(str(connection.query("SELECT txid_current_snapshot()::text")[0][0]), xids):
        if time.monotonic() > deadline:
            return False
        while_waiting()
        time.sleep(_PAUSE_SECONDS)
    return True


def unseen(snapshot: str, xids: Iterable[int]) -> set[int]:
    """Return those of these transactions that a snapshot does not see (`txid_visible_in_snapshot`).

    Args:
        snapshot: ``xmin:xmax:running,…``. Its ids have 64 bits, and those from xmax on may run although they are not listed.
    """
    _, end, listed = snapshot.split(":")
    last, running = int(end), {int(each) % 2**32 for each in listed.split(",") if each}
    return {xid for xid in xids if xid in running or (xid - last) % 2**32 < 2**31}
