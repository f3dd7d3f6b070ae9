"""A task's process that has been started before its task is known, so that a new task need not wait for Python and its imports.

Of the half second between a connector's creation and its first task's RUNNING, four fifths were the start of the process. The worker keeps
one process that has imported what every task needs and waits for its ``start`` message; a launch takes it, and the next one is made a
while later, when the task that was launched has had the processor for itself. A launch that finds none starts a process as ever.

Any thread may use a `SpareProcess`.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

#: How long after a launch the next spare is started, which takes 0.2 s of CPU.
_DELAY_SECONDS = 2.0


class SpareProcess:
    """At most one waiting process.

    Args:
        spawn: starts a process that waits for its ``start`` message.
        delay_seconds: between a launch, or `begin`, and the start of the next spare.
    """

    def __init__(self, spawn: Callable[[], subprocess.Popen[bytes]], delay_seconds: float = _DELAY_SECONDS) -> None:
        self._spawn = spawn
        self._delay = delay_seconds
        self._lock = threading.Lock()
        self._waiting: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def begin(self) -> None:
        """Have a spare started soon; does nothing when one is to come, or after `close`."""
        with self._lock:
            if self._timer is None and self._waiting is None and not self._is_closed:
                self._timer = threading.Timer(self._delay, self._make)
                self._timer.daemon = True
                self._timer.start()

    def take(self) -> subprocess.Popen[bytes] | None:
        """The waiting process, which is the caller's from now on; None when there is none."""
        with self._lock:
            taken, self._waiting = self._waiting, None
        self.begin()
        if taken is not None and taken.poll() is not None:  # the system may have ended it to get memory
            _discard(taken)
            return None
        return taken

    def close(self) -> None:
        """End the waiting process; no other follows."""
        with self._lock:
            self._is_closed = True
            taken, self._waiting = self._waiting, None
            if self._timer is not None:
                self._timer.cancel()
        if taken is not None:
            _discard(taken)

    def _make(self) -> None:
        """Runs on the timer's thread. A spare that cannot be started is none: the next launch tells of the reason, if it is still there."""
        made: subprocess.Popen[bytes] | None = None
        try:
            made = self._spawn()
        except Exception:
            log.debug("No spare process could be started", exc_info=True)
        with self._lock:
            self._timer = None
            if not self._is_closed:
                self._waiting, made = made, None
        if made is not None:
            _discard(made)


def _discard(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
