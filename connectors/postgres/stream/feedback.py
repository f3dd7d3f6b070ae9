"""Status updates to the server and its keepalives (PostgreSQL's manual, "Streaming Replication Protocol")."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from connectors.postgres import pgoutput
from connectors.postgres.errors import ServerError
from connectors.postgres.position.stream_position import StreamPosition
from connectors.postgres.server.connection import Connection

log = logging.getLogger(__name__)


class Silence:
    """How long a server may say nothing before its connection counts as lost; outlives the streams of a task.

    A server answers a status that asks for a reply, unless it is in the middle of decoding a transaction of which it sends nothing, which
    can take minutes. A lost connection therefore doubles the time for the next ones, up to `MAX_SECONDS`, until there is a record again.

    Args:
        seconds: the limit at first; 0 is for ever.
    """

    MAX_SECONDS = 3600.0

    def __init__(self, seconds: float) -> None:
        self._first = self.seconds = seconds

    def lost(self) -> None:
        """Wait longer the next time."""
        self.seconds = min(self.seconds * 2, max(self.MAX_SECONDS, self._first))

    def reset(self) -> None:
        """Wait as long as at first."""
        self.seconds = self._first


class Feedback:
    """Answers the server in time. What it may discard is what was acknowledged, never what was merely read.

    Args:
        connection: a connection in COPY both ways.
        position: how far the stream is.
        seconds: how often the server receives a status.
        silence: how long it may say nothing; None is for ever.
        clock: monotonic seconds, for the silence.

    Attributes:
        seconds: how often the server receives a status.
        scanned_lsn: up to where the server says it has looked, outside of transactions; 0 before it says so.
    """

    def __init__(
        self,
        connection: Connection,
        position: StreamPosition,
        seconds: float,
        silence: Silence | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._silence = silence or Silence(0)
        self._clock = clock
        self._last_data_at = clock()
        self._asked_at: float | None = None
        self._connection = connection
        self._position = position
        self.seconds = seconds
        self.scanned_lsn = 0
        self._received = 0
        self._acknowledged = 0
        self._next = time.monotonic() + seconds

    @property
    def received(self) -> int:
        """Up to where the server's log was read."""
        return max(self._received, self._position.lsn, self._position.last_commit or 0)

    def acknowledge(self, lsn: int) -> None:
        """Confirm what precedes `lsn`, which the offsets topic holds. Never goes back. Raises ServerError."""
        if lsn > self._acknowledged:
            self._acknowledged = lsn
            self.send()

    def send(self, *, wants_reply: bool = False) -> None:
        """Send a standby status update. Raises ServerError."""
        self._next = time.monotonic() + self.seconds
        now_us = time.time_ns() // 1000
        status = pgoutput.encode_status(max(self.received, self._acknowledged), self._acknowledged, now_us, wants_reply=wants_reply)
        self._connection.put_copy_data(status)

    def on_data(self) -> None:
        """Note that the server has sent something since the last call."""
        self._last_data_at = self._clock()
        self._asked_at = None

    def on_idle(self) -> None:
        """Send what is due where the socket has nothing; ask a server that is silent for a reply.

        The time counts from the question, and only here, so that a task that was busy with something else does not take its own pause for
        silence.

        Raises:
            ServerError: there was no reply in time; the connection is lost.
        """
        now, allowed = self._clock(), self._silence.seconds
        if allowed and self._asked_at is None and now - self._last_data_at >= allowed / 3:
            self._asked_at = now
            self.send(wants_reply=True)
        elif self._asked_at is not None and now - self._asked_at >= allowed * 2 / 3:
            self._silence.lost()
            raise ServerError(
                "08006", f"the server has said nothing for {now - self._last_data_at:.0f} s, and does not answer a request to"
            )
        self.keep_alive()

    def progressed(self) -> None:
        """Note that there is a record."""
        self._silence.reset()

    def keep_alive(self) -> None:
        """Send a status when it is due. Raises ServerError."""
        if time.monotonic() >= self._next:
            self.send()

    def after_batch(self) -> None:
        """Remember how far the log was read, whatever becomes of the position; send a status when it is due. Raises ServerError."""
        self._received = self.received
        self.keep_alive()

    def answer(self, keepalive: bytes) -> None:
        """Read a keepalive, and answer it where the server asks for that. Raises ServerError."""
        end, wants_reply = pgoutput.decode_keepalive(keepalive)
        self._received = max(self._received, end)
        if not self._position.inside:
            self.scanned_lsn = end
        if wants_reply:
            self.send()

    def send_last_status(self) -> None:
        """Send a last status, when the server is there to receive it."""
        try:
            self.send()
        except ServerError as error:
            log.debug("The last status did not reach the server: %s", error)
