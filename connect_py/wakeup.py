"""End another thread's wait for a socket, by a pipe that is waited for too."""

from __future__ import annotations

import contextlib
import os
import select
import threading


class Wakeup:
    """Ends the waits of one thread. `wake` is for any thread, the rest for the one that waits."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._closing = threading.Lock()
        self._is_open = True

    def wake(self) -> None:
        """End the present wait, or the next one; nothing after `close`."""
        with self._closing, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if self._is_open:
                os.write(self._writer, b"w")

    def wait_readable(self, socket: int, seconds: float) -> bool:
        """Wait for a socket to have something to read, for a `wake`, or for `seconds`. Returns whether to wait any longer:
        False after a `wake`, which counts for one wait."""
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        if not any(found == self._reader for found, _ in poll.poll(seconds * 1000)):
            return True
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 1024)
        return False

    def close(self) -> None:
        """Close the pipe."""
        with self._closing:
            if self._is_open:
                self._is_open = False
                os.close(self._reader)
                os.close(self._writer)
