"""HTTP/1.1 as uvicorn speaks it, with an end to patience: a client that opens a connection and does not complete a request's head within
`HEAD_SECONDS` is cut off (Jetty's idle timeout). uvicorn itself waits for ever, so that a few thousand silent clients would use up the
worker's file descriptors. A body that does not come is `body.py`'s matter, since its sender can still be answered."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Jetty's idle timeout.
HEAD_SECONDS = 30.0


class HttpProtocol(H11Protocol):
    """See the module."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as H11Protocol has it
        """A client is there; the clock runs."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """The clock stops when a request's head is complete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._cut_off)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _cut_off(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()
