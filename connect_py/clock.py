"""Time, and the waits that depend on it, as an argument with a default: what reads a clock or waits for another thread can be run by a
simulation that owns both (`tests/sim`).

Where a function needs no more than the seconds, its argument is a ``clock: Callable[[], float]``, as elsewhere in this project.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Protocol


class Clock(Protocol):
    """Seconds, and waits for what other threads do. Any thread may use it."""

    def now(self) -> float:
        """Return monotonic seconds."""
        ...

    def wait(self, event: threading.Event, seconds: float | None = None) -> bool:
        """Wait for an event; None is for ever. Returns whether it is set."""
        ...

    def wait_for(self, changed: threading.Condition, is_so: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait, holding the condition's lock, until something is so; None is for ever. Returns whether it is."""
        ...


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float | None = None) -> bool:
        return event.wait(seconds)

    def wait_for(self, changed: threading.Condition, is_so: Callable[[], bool], seconds: float | None = None) -> bool:
        return changed.wait_for(is_so, seconds)


SYSTEM_CLOCK: Clock = SystemClock()


class Running(Protocol):
    """A thread that was started."""

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, no longer than so many seconds."""
        ...


class Threads(Clock, Protocol):
    """Threads, next to the time that they wait by."""

    def start(self, name: str, run: Callable[[], None]) -> Running:
        """Start a thread, which does not keep the process alive."""
        ...

    def pool(self, size: int, name: str) -> Executor:
        """Return a pool of up to `size` threads."""
        ...


class SystemThreads(SystemClock):
    """The machine's."""

    def start(self, name: str, run: Callable[[], None]) -> Running:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def pool(self, size: int, name: str) -> Executor:
        return ThreadPoolExecutor(size, name)


SYSTEM_THREADS: Threads = SystemThreads()
