"""How long to wait before the next attempt, and when to give up."""

from __future__ import annotations

import time
from collections.abc import Callable

from connect_py.errors import FatalTaskError

#: A predecessor that was killed frees its slot within a fraction of a second, a restarting server answers within a few.
FIRST_PAUSE_SECONDS = 0.2


class Backoff:
    """Pauses that double from FIRST_PAUSE_SECONDS up to a longest one; only attempts after a longest pause count.

    Args:
        longest: in seconds.
        attempts: how many to make at the longest pause, -1 for any number, 0 for none at all.
        clock: monotonic seconds.
    """

    def __init__(self, longest: float, attempts: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._attempts = attempts
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """All is well again."""
        self._pause = min(FIRST_PAUSE_SECONDS, self._longest)
        self._counted = 0
        self._until = 0.0

    def next(self, error: Exception) -> float:
        """Plan the next attempt after a failure; returns the pause in seconds.

        Raises:
            FatalTaskError: there is none left; its text is the failure's.
        """
        if self._attempts == 0:
            raise FatalTaskError(f"{error} (no further attempt is allowed)") from error
        pause = self._pause
        if pause >= self._longest:
            self._counted += 1
            if 0 < self._attempts < self._counted:
                raise FatalTaskError(f"{error} (given up after {self._attempts} attempts {self._longest:g} s apart)") from error
        self._pause = min(pause * 2, self._longest)
        self._until = self._clock() + pause
        return pause

    def seconds_left(self) -> float:
        """Until the next attempt is due; 0 when it is."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0


#: An outage that goes on says so again after this time.
REPEAT_SECONDS = 300.0


class Outage:
    """Which failures of a series are worth a line in the log: the first of its kind, and one now and then.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._text = ""
        self._until = 0.0
        self._count = 0

    def is_news(self, text: str) -> bool:
        """Note a failure. Returns whether to tell of it."""
        self._count += 1
        if text == self._text and self._clock() < self._until:
            return False
        self._text, self._until = text, self._clock() + REPEAT_SECONDS
        return True

    def end(self) -> int:
        """All is well again. Returns how many failures there were."""
        count, self._count, self._text = self._count, 0, ""
        return count
