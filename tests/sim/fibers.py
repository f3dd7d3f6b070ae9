"""Threads of simulated workers, of which one runs at a time (`connect_py.clock.Threads`).

Each is a thread of the machine, for the product's code blocks where it likes; but it runs only while it has the baton, from one wait to its
next. Whoever waits chooses who has the baton next, by the run's chance, and lets the world act first. A lock is never held over a wait, but
for the lock of a condition, which a wait gives up.

Time passes when everybody waits for it, and now and then while others have something to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from tests.sim.chance import Chance, Crash

#: Threads of the machine that wait for work of the next run.
_idle: list[_Carrier] = []


class _Carrier:
    """A thread of the machine, used again and again."""

    def __init__(self) -> None:
        self.baton = threading.Semaphore(0)
        self._run: Callable[[], None] = lambda: None
        threading.Thread(target=self._work, name="carrier", daemon=True).start()

    def give(self, run: Callable[[], None]) -> None:
        """Have something run, once it has the baton."""
        self._run = run

    def _work(self) -> None:
        while True:
            self.baton.acquire()
            self._run()


class Owner:
    """A process of the machine: its threads end with it.

    Attributes:
        is_alive: False after a kill.
        is_frozen: its threads do not run (SIGSTOP).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_frozen = False


class Fiber:
    """One thread.

    Attributes:
        is_ready: whether what it waits for is so.
        until: when its wait ends in any case.
    """

    def __init__(self, owner: Owner, name: str) -> None:
        self.owner = owner
        self.name = name
        self.is_ready: Callable[[], bool] = bool
        self.until = 0.0
        self.has_ended = False
        self.carrier = _idle.pop() if _idle else _Carrier()

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return not self.has_ended

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end; set when it is started."""


class Fibers:
    """All threads of a run.

    Args:
        act: lets the world do something; called before each choice.

    Attributes:
        seconds: the time.
        error: what ended the run before its time.
    """

    def __init__(self, chance: Chance, act: Callable[[], None], start: float = 1000.0) -> None:
        self.chance = chance
        self.seconds = start
        self.error: BaseException | None = None
        self._act = act
        self._fibers: list[Fiber] = []
        self._current: Fiber | None = None
        self._main = threading.Semaphore(0)
        self._is_over = False

    # -- for the simulation

    def run(self) -> None:
        """Run until `finish` is called. Raises what ended the run before its time."""
        self._pass_on(None)
        self._main.acquire()
        if self.error is not None:
            raise self.error

    def finish(self, error: BaseException | None = None) -> None:
        """End the run: every thread ends at its next wait."""
        self._is_over = True
        if self.error is None:
            self.error = error

    def start(self, owner: Owner, name: str, run: Callable[[], None]) -> Fiber:
        """Start a thread."""
        fiber = Fiber(owner, name)
        fiber.join = lambda timeout=None: self.wait(lambda: fiber.has_ended, timeout) and None  # type: ignore[method-assign]
        fiber.is_ready, fiber.until = (lambda: True), self.seconds

        def carried() -> None:
            self._current = fiber
            try:
                if owner.is_alive and not self._is_over:
                    run()
            except Crash:
                pass
            except BaseException as error:  # noqa: BLE001  # a violation, or a mistake of the simulation
                self.finish(error)
            fiber.has_ended = True
            self._fibers.remove(fiber)
            _idle.append(fiber.carrier)
            self._pass_on(None)

        fiber.carrier.give(carried)
        self._fibers.append(fiber)
        return fiber

    def wait(self, is_so: Callable[[], bool], seconds: float | None) -> bool:
        """Wait in the present thread. Raises Crash: its process was killed."""
        fiber = self._current
        assert fiber is not None
        if not fiber.owner.is_alive or self._is_over:
            raise Crash
        fiber.is_ready, fiber.until = is_so, self.seconds + (1e9 if seconds is None else max(0.0, seconds))
        self._pass_on(fiber)
        self._current = fiber
        if not fiber.owner.is_alive or self._is_over:
            raise Crash
        return is_so()

    # -- the baton

    def _pass_on(self, waiting: Fiber | None) -> None:
        """Choose who runs next, and let it; return when it is this one's turn."""
        chosen = self._choose()
        if chosen is waiting:
            if waiting is None:
                self._main.release()
            return
        (self._main if chosen is None else chosen.carrier.baton).release()
        if waiting is not None:
            waiting.carrier.baton.acquire()

    def _choose(self) -> Fiber | None:
        """Return None when nothing is left to run."""
        while True:
            if not self._is_over:
                self._current = None
                try:
                    self._act()
                except BaseException as error:  # noqa: BLE001  # a violation
                    self.finish(error)
            ending = [fiber for fiber in self._fibers if self._is_over or not fiber.owner.is_alive]
            if ending:
                return ending[0]
            if not self._fibers:
                if self._is_over:
                    return None
                continue
            now = self.seconds
            ready = [fiber for fiber in self._fibers if not fiber.owner.is_frozen and (now >= fiber.until or fiber.is_ready())]
            if ready:
                return ready[self.chance.below(len(ready))]
            awake = [fiber.until for fiber in self._fibers if not fiber.owner.is_frozen]
            self.seconds = min(self.seconds + 0.25, max(self.seconds + 0.001, min(awake, default=self.seconds + 0.25)))


class FiberThreads:
    """The threads and the time of one process (`connect_py.clock.Threads`)."""

    def __init__(self, fibers: Fibers, owner: Owner) -> None:
        self._fibers, self._owner = fibers, owner

    def now(self) -> float:
        """Return the seconds of the simulation."""
        return self._fibers.seconds

    def wait(self, event: threading.Event, seconds: float | None = None) -> bool:
        """Wait for an event."""
        return self._fibers.wait(event.is_set, seconds)

    def wait_for(self, changed: threading.Condition, is_so: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until something is so, without the condition's lock meanwhile."""
        changed.release()
        try:
            return self._fibers.wait(is_so, seconds)
        finally:
            changed.acquire()

    def start(self, name: str, run: Callable[[], None]) -> Fiber:
        """Start a thread."""
        return self._fibers.start(self._owner, name, run)

    def pool(self, size: int, name: str) -> Executor:
        """Return a pool."""
        return _Pool(self, size, name)


class _Pool(Executor):
    """A pool that starts a thread a job; no more than `size` at a time."""

    def __init__(self, threads: FiberThreads, size: int, name: str) -> None:
        self._threads, self._size, self._name = threads, size, name
        self._waiting: list[Callable[[], None]] = []
        self._count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have something done."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001  # it belongs to whoever asks for the result
                future.set_exception(error)

        self._waiting.append(work)
        if self._count < self._size:
            self._count += 1
            self._threads.start(self._name, self._run)
        return future

    def _run(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()
        self._count -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do no more."""
        if cancel_futures:
            self._waiting.clear()
