"""HTTP/1.1 as uvicorn speaks it, with an end to patience: a client that opens a connection and does not complete a request's head within
`HEAD_SECONDS` is cut off (Jetty's idle timeout). uvicorn itself waits for ever, so that a few thousand silent clients would use up the
worker's file descriptors. A body that does not come is `body.py`'s matter, since its sender can still be answered.

And with less patience for heads: h11 takes lines that end with a bare LF and lines that continue the one before (obsolete folding), which a
proxy in front of the worker may read in another way. Both are a 400 here, as Jetty's compliance RFC7230 has it for folding."""

from __future__ import annotations

import asyncio
import re

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Jetty's idle timeout.
HEAD_SECONDS = 30.0


#: A line end that is not CR LF, or a line that continues the one before.
_LOOSE = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]")


class _StrictBuffer(ReceiveBuffer):
    """What h11 reads heads from (a private class of h11's; pyproject.toml has the bound, and a test looks for its method)."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head, once it is complete. Raises RemoteProtocolError."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None and _LOOSE.search(before, 0, len(before) - len(self)):
            raise h11.RemoteProtocolError("a line of the head ends or begins as none may")
        return lines


class HttpProtocol(H11Protocol):
    """See the module."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as H11Protocol has it
        """A client is there; the clock runs."""
        super().connection_made(transport)
        self.conn._receive_buffer = _StrictBuffer()
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
