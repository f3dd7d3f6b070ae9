"""Limit how long a source task runs without a message from its worker, so that no two processes read the same source for Kafka.

A task is a process of its own. It would run on when its worker hangs, and a worker that is frozen with all its tasks (SIGSTOP, a paused
container, a machine asleep) would send what it has in hand when it wakes, after newer changes that another worker has sent meanwhile. So a
worker of a group sends its source tasks a line every second or two: until when they may run. The kernel keeps that time, by a timer that
kills the task's process, frozen or not; nothing of it can be sent after that, nor any offset be stored. The times are of a clock that all
processes of a machine share and that counts a machine's sleep. The worker that takes over waits until the lease of the other is over.

It costs nothing where rows go by: the timer is the kernel's, the line a message of forty bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from connect_py.errors import ConfigError, ConnectError

log = logging.getLogger(__name__)

#: Lines sent in the time of one lease: some may be late.
_LINES_PER_LEASE = 5

#: A worker that did not run for the time of this many lines has slept.
_SLEPT_LINES = 2.5

#: How long a worker that has slept reads at a time to find out whether its work is still its own.
_CONFIRM_SECONDS = 10.0

#: Sources: Kafka's `DistributedConfig` (session.timeout.ms, heartbeat.interval.ms).
_DEFAULT_SESSION_MS, _DEFAULT_HEARTBEAT_MS = 10_000, 3_000

#: Linux's number, for `timer_create`; other systems have other clocks and no such timer.
_CLOCK_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_SIGEV_SIGNAL, _TIMER_ABSTIME = 0, 1


def now() -> float:
    """Return seconds of the clock of leases."""
    return time.monotonic() if _CLOCK_BOOTTIME is None else time.clock_gettime(_CLOCK_BOOTTIME)


def session_seconds(worker: Mapping[str, str]) -> float:
    """Return how long a silent worker keeps its work: ``session.timeout.ms``. Raises ConfigError."""
    return _milliseconds(worker, "session.timeout.ms", _DEFAULT_SESSION_MS) / 1000


def lease_seconds(worker: Mapping[str, str]) -> float:
    """Return how long a task runs on without a word: the session but for a heartbeat, ``heartbeat.interval.ms``. Raises ConfigError."""
    session = _milliseconds(worker, "session.timeout.ms", _DEFAULT_SESSION_MS)
    return max(session / 2, session - _milliseconds(worker, "heartbeat.interval.ms", _DEFAULT_HEARTBEAT_MS)) / 1000


def _milliseconds(worker: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(1, int(worker.get(name, default)))
    except ValueError:
        raise ConfigError(f"Invalid value {worker[name]} for configuration {name}: Not a number of type INT") from None


class Leased(Protocol):
    """What is sent lines: `connect_py.host.process.TaskProcess`."""

    @property
    def is_alive(self) -> bool: ...
    def send(self, message: Mapping[str, Any]) -> None: ...


class Leases:
    """The worker's side. A thread of its own, since the others may wait for Kafka.

    Args:
        seconds: that a task runs on without a word.
        confirm: called after the worker has slept, before it sends another line; returns once everything is known that others wrote
            meanwhile, which may `stop` the leases. Raises ConnectError where that cannot be known yet. Given the seconds it may take.
        clock: seconds of the clock of leases.
    """

    def __init__(self, seconds: float, confirm: Callable[[float], None], clock: Callable[[], float] = now) -> None:
        self._clock = clock
        self._seconds = seconds
        self._every = seconds / _LINES_PER_LEASE
        self._confirm = confirm
        self._lock = threading.Lock()
        self._processes: list[Leased] = []
        self._last = clock()
        self._has_slept = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._last = self._clock()
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; tasks that run end when their lease does."""
        self._ended.set()

    @property
    def is_sure(self) -> bool:
        """Whether the worker knows that its work is its own: it has not slept, or has looked since."""
        return not (self._has_slept or self._ended.is_set() or self._sleeps())

    def add(self, process: Leased) -> None:
        """Keep a process running from now on."""
        with self._lock:
            self._processes.append(process)
        if self.is_sure:
            self._extend([process])

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._has_slept = self._has_slept or self._sleeps()
            self._last = self._clock()
            if self._has_slept and not self._look():
                continue
            with self._lock:
                self._processes = living = [process for process in self._processes if process.is_alive]
            if not self._ended.is_set():
                self._extend(living)

    def _sleeps(self) -> bool:
        return self._clock() - self._last > _SLEPT_LINES * self._every

    def _look(self) -> bool:
        log.warning("This worker did not run for a while; it finds out whether its tasks are still its own.")
        try:
            self._confirm(_CONFIRM_SECONDS)
        except ConnectError as error:
            log.warning("Whether this worker's tasks are still its own is not known yet: %s", error)
            return False
        if self._sleeps():  # it took long, or there was another sleep
            self._last = self._clock()
            return False
        self._has_slept = False
        return True

    def _extend(self, processes: list[Leased]) -> None:
        until = self._clock() + self._seconds
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
