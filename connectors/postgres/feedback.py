"""What the server hears of a stream, and what it says of itself: status updates and keepalives (the protocol's "Streaming Replication")."""

from __future__ import annotations

import logging
import time

from connectors.postgres import pgoutput
from connectors.postgres.connection import Connection
from connectors.postgres.errors import ServerError
from connectors.postgres.place import StreamPlace

log = logging.getLogger(__name__)


class Feedback:
    """Answers the server in time. What it may discard is what was acknowledged, never what was merely read.

    Args:
        connection: in COPY both ways.
        place: how far the stream is.
        seconds: how often the server hears from us.

    Attributes:
        seconds: as given.
        looked_through: up to where the server says it has looked, outside of transactions; 0 before it says so.
    """

    def __init__(self, connection: Connection, place: StreamPlace, seconds: float) -> None:
        self._connection = connection
        self._place = place
        self.seconds = seconds
        self.looked_through = 0
        self._received = 0
        self._acknowledged = 0
        self._next = time.monotonic() + seconds

    @property
    def received(self) -> int:
        """Up to where the server's log was read."""
        return max(self._received, self._place.lsn, self._place.last_commit or 0)

    def acknowledge(self, lsn: int) -> None:
        """The offsets topic holds everything before `lsn`. Never goes back. Raises ServerError."""
        if lsn > self._acknowledged:
            self._acknowledged = lsn
            self.send()

    def send(self) -> None:
        """A standby status update. Raises ServerError."""
        self._next = time.monotonic() + self.seconds
        now_us = time.time_ns() // 1000
        self._connection.put_copy_data(pgoutput.encode_status(max(self.received, self._acknowledged), self._acknowledged, now_us))

    def keep_alive(self) -> None:
        """Send a status when it is due. Raises ServerError."""
        if time.monotonic() >= self._next:
            self.send()

    def after_batch(self) -> None:
        """Remember how far the log was read, whatever becomes of the place; send a status when it is due. Raises ServerError."""
        self._received = self.received
        self.keep_alive()

    def answer(self, keepalive: bytes) -> None:
        """Take a keepalive, and answer it where the server asks for that. Raises ServerError."""
        end, wants_reply = pgoutput.decode_keepalive(keepalive)
        self._received = max(self._received, end)
        if not self._place.inside:
            self.looked_through = end
        if wants_reply:
            self.send()

    def say_goodbye(self) -> None:
        """A last status, when the server is there to hear it."""
        try:
            self.send()
        except ServerError as error:
            log.debug("The last status did not reach the server: %s", error)
