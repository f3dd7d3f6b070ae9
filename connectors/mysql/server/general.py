"""The session beside the stream: for chunks, watermarks, statements of the user's, and blocking snapshots."""

from __future__ import annotations

import logging
import time

from connectors.mysql.config import MySqlConfig
from connectors.mysql.errors import LostConnectionError
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection
from connectors.mysql.snapshot.chunks import LOCK_WAIT_SECONDS

log = logging.getLogger(__name__)

#: A session that was idle so long is asked whether it still lives, before it is used.
IDLE_SECONDS = 20.0


class GeneralSession:
    """Opens the session when it is first wanted, and again when the server or a firewall cut it while it was idle. Used by the task's
    thread."""

    def __init__(self, config: MySqlConfig) -> None:
        self._config = config
        self._connection: Connection | None = None
        self._used = 0.0

    def __call__(self) -> Connection:
        """The session of now. Raises ServerError."""
        now = time.monotonic()
        if self._connection is not None and now - self._used > IDLE_SECONDS:
            try:
                self._connection.execute("DO 0")
            except LostConnectionError as error:
                log.debug("The idle session is gone: %s", error)
                self.close()
        if self._connection is None:
            self._connection = queries.open_connection(self._config)
            self._connection.execute(f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")
            # names come back in backticks, whatever the server's own mode is
            self._connection.execute("SET SESSION sql_mode = REPLACE(@@sql_mode, 'ANSI_QUOTES', '')")
        self._used = now
        return self._connection

    def close(self) -> None:
        """End the session; never fails."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
