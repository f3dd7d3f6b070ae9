"""How large the next chunk of an incremental snapshot is, and when one that failed is read again. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

#: A chunk grows and shrinks at most to so many times its configured size, or that part of it: its rows are held in memory.
WIDEST = 32
#: By how much one chunk's size may differ from the next one's.
_STEP = 2.0

#: Seconds before each further attempt at a chunk that the server refuses. The first comes at once, with the structure as it is then: a
#: column may just have gone. Together they outlast a lock, a failover that lost a privilege, a statement timeout on a busy server.
PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)


class ChunkSize:
    """Rows of the next chunk.

    Args:
        rows: to begin with, and always when `seconds` is 0.
        seconds: how long a chunk should take to read (``incremental.snapshot.chunk.time.ms``); 0 for chunks of one size.

    Attributes:
        rows: of the next chunk.
    """

    def __init__(self, rows: int, seconds: float = 0.0) -> None:
        self.rows = rows
        self._seconds = seconds
        self._least, self._most = max(1, rows // WIDEST), rows * WIDEST

    def took(self, seconds: float, rows: int) -> None:
        """A chunk was read; one that came back with fewer rows than wanted says nothing about the time that many take."""
        if not self._seconds or rows < self.rows:
            return
        factor = min(_STEP, max(1 / _STEP, self._seconds / max(seconds, 1e-6)))
        self.rows = min(self._most, max(self._least, round(self.rows * factor)))


class Retries:
    """Attempts at a chunk.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._not_before = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether the next attempt is not due yet."""
        return self._failures > 0 and self._clock() < self._not_before

    def failed(self) -> bool:
        """An attempt failed. Returns whether there is another one; the count begins anew when there is none."""
        if self._failures >= len(PAUSES):
            self.reset()
            return False
        self._not_before = self._clock() + PAUSES[self._failures]
        self._failures += 1
        return True

    def reset(self) -> None:
        """All is well."""
        self._failures = 0
