"""Limit how long a source task runs without a message from its worker, so that no two processes read the same source for Kafka.

A task is a process of its own. It would run on when its worker hangs, and a worker that is frozen with all its tasks (SIGSTOP, a paused
container, a machine asleep) would send what it has in hand when it wakes, after newer changes that another worker has sent meanwhile. So a
worker of a group sends its source tasks a line every second or two: until when they may run. The kernel keeps that time, by a timer that
kills the task's process, frozen or not; nothing of it can be sent after that, nor any offset be stored. The times are of a clock that all
processes of a machine share and that counts a machine's sleep. The group gives a silent worker's work away when the lease is over, and not
before (`connect_py.group.membership`).

It costs nothing where rows go by: the timer is the kernel's, the line a message of forty bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from connect_py.clock import SYSTEM_THREADS, Threads

#: Lines sent in the time of one lease: some may be late.
_LINES_PER_LEASE = 5

#: Linux's number, for `timer_create`; other systems have other clocks and no such timer.
_CLOCK_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_SIGEV_SIGNAL, _TIMER_ABSTIME = 0, 1


def now() -> float:
    """Return seconds of the clock of leases."""
    return time.monotonic() if _CLOCK_BOOTTIME is None else time.clock_gettime(_CLOCK_BOOTTIME)


class Leased(Protocol):
    """What is sent lines: `connect_py.host.process.TaskProcess`."""

    @property
    def is_alive(self) -> bool: ...
    def send(self, message: Mapping[str, Any]) -> None: ...


class Leases:
    """The worker's side. A thread of its own, since the others may wait for Kafka.

    Args:
        seconds: that a task runs on without a word.
        until: until when this worker may let tasks run, by the clock; it may be over.
        threads: makes the thread.
        clock: of leases.
    """

    def __init__(
        self, seconds: float, until: Callable[[], float], *, threads: Threads = SYSTEM_THREADS, clock: Callable[[], float] = now
    ) -> None:
        self._threads, self._clock = threads, clock
        self._every = seconds / _LINES_PER_LEASE
        self._until = until
        self._lock = threading.Lock()
        self._processes: list[Leased] = []
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to send."""
        self._threads.start("leases", self._run)

    def stop(self) -> None:
        """Send nothing more; tasks that run end when their lease does."""
        self._ended.set()

    @property
    def is_sure(self) -> bool:
        """Whether the worker knows that its work is its own."""
        return not self._ended.is_set() and self._until() > self._clock()

    def add(self, process: Leased) -> None:
        """Keep a process running from now on."""
        with self._lock:
            self._processes.append(process)
        self._extend([process])

    def abandon(self) -> None:
        """Send nothing more to what runs now, also when this worker's work is its own again: that will be other work."""
        with self._lock:
            self._processes = []

    def _run(self) -> None:
        while not self._threads.wait(self._ended, self._every):
            with self._lock:
                self._processes = living = [process for process in self._processes if process.is_alive]
            self._extend(living)

    def _extend(self, processes: list[Leased]) -> None:
        if self.is_sure:
            until = self._until()
            for process in processes:
                process.send({"type": "lease", "until": until})


class LeaseTimer:
    """The task's side: ends the process, without another instruction of it, when the lease is over. Of the thread that reads messages."""

    def __init__(self) -> None:
        self._armed = threading.Event()
        self._set = _kernel_timer() or _alarm

    @property
    def is_armed(self) -> bool:
        """Whether the process has a lease, and will end with it."""
        return self._armed.is_set()

    def extend(self, until: float) -> None:
        """Let the process run until this time of `now`. What was over before the process had a lease at all is an old line."""
        if self._armed.is_set() or until > now():
            self._set(until)
            self._armed.set()

    def wait(self, seconds: float) -> None:
        """Wait for the first lease."""
        self._armed.wait(seconds)


class _Event(ctypes.Structure):
    """``struct sigevent``, 64 bytes."""

    _fields_ = (("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48))


class _Times(ctypes.Structure):
    """``struct itimerspec``: the interval, which stays zero, and the time."""

    _fields_ = (
        ("interval", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


def _kernel_timer() -> Callable[[float], None] | None:
    """Return a timer that sends SIGKILL, which a stopped process obeys, too; None where the system has none (`timer_create(2)`)."""
    if _CLOCK_BOOTTIME is None:
        return None
    timer = ctypes.c_void_p()
    for library in (None, "librt.so.1"):
        with contextlib.suppress(OSError, AttributeError):
            found = ctypes.CDLL(library)
            event = _Event(signal=signal.SIGKILL, notify=_SIGEV_SIGNAL)
            if found.timer_create(_CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(timer)) == 0:
                break
    else:
        return None

    def set_to(until: float) -> None:
        times = _Times(0, 0, int(until), int(until % 1 * 1e9))
        found.timer_settime(timer, _TIMER_ABSTIME, ctypes.byref(times), None)

    return set_to


def _alarm(until: float) -> None:
    """The timer of other systems: SIGALRM ends the process too, a stopped one as soon as it is continued."""
    signal.setitimer(signal.ITIMER_REAL, max(1e-6, until - now()))
