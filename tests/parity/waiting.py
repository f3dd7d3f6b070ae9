"""The one place of the parity kit that sleeps: all waiting has a deadline and goes through `poll_until`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: How often a probe is asked, in seconds.
PROBE_INTERVAL_SECONDS = 0.2


def poll_until(
    probe: Callable[[], T],
    seconds: float,
    interval: float = PROBE_INTERVAL_SECONDS,
    pause: Callable[[float], object] = time.sleep,  # noqa: TID251
) -> T:
    """Ask until `probe` is true or the time is over; return its last answer.

    Args:
        pause: lets at most so many seconds pass between two questions.
    """
    deadline = time.monotonic() + seconds
    while not (found := probe()) and (left := deadline - time.monotonic()) > 0:
        pause(min(interval, left))
    return found


def quiet_period(seconds: float) -> None:
    """Let time pass where nothing that can be seen says that all has happened.

    Only for recordings without a known golden: the scenario's own number of seconds is then all there is.
    """
    poll_until(lambda: False, seconds, seconds)
