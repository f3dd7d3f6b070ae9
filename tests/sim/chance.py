"""What every simulation decides by: one seed. The same seed makes the same decisions, so a run that fails is run again by its number."""

from __future__ import annotations

import itertools
import random
import threading
from bisect import bisect
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

T = TypeVar("T")


class Violation(AssertionError):
    """The product broke a rule."""


class Crash(BaseException):
    """The simulated process was killed: whatever it still does reaches nobody."""


class Chance:
    """The decisions of one run, and the story of what happened.

    Args:
        seed: makes the decisions.
        spared: numbers of faults that are left out; `shrunk` finds a failing run with few of them.

    Attributes:
        faults: how many faults were decided so far.
        story: what happened, in order; `told` makes it a text.
    """

    def __init__(self, seed: int, spared: Collection[int] = frozenset()) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.faults = 0
        self.story: list[tuple[object, ...]] = []
        self._spared = spared
        self._draw = self.random.random

    def below(self, count: int) -> int:
        """Return a whole number below `count`."""
        return int(self._draw() * count)

    def happens(self, probability: float) -> bool:
        """Return whether something with this probability happens."""
        return self._draw() < probability

    def pick(self, things: Sequence[T]) -> T:
        """Return one of them."""
        return things[int(self._draw() * len(things))]

    def fault(self) -> bool:
        """Note that a fault is about to happen. Returns whether it does: it may be spared."""
        self.faults += 1
        return self.faults not in self._spared

    def note(self, *what: object) -> None:
        """Add a line to the story: a text, perhaps with places for the values that follow."""
        self.story.append(what)

    def told(self) -> list[str]:
        """Return the story, a line each."""
        return [str(text) % values if values else str(text) for text, *rest in self.story for values in [tuple(rest)]]


class Weighted:
    """Things that are drawn as often as they weigh.

    Args:
        weights: by what is drawn.
    """

    def __init__(self, weights: Sequence[tuple[Callable[[], None], float]]) -> None:
        chosen = [(what, weight) for what, weight in weights if weight > 0]
        self._things = [what for what, _ in chosen]
        self._sums = list(itertools.accumulate(weight for _, weight in chosen))

    def draw(self, chance: Chance) -> Callable[[], None]:
        """Return one of them."""
        return self._things[bisect(self._sums, chance.random.random() * self._sums[-1])]


def shrunk(fails: Callable[[frozenset[int]], str | None], faults: int) -> frozenset[int]:
    """Return faults that a failing run does not need: without them it still fails in the same way.

    Args:
        fails: runs with these faults spared, and returns the first words of the violation; None when there is none.
        faults: how many the whole run has.
    """
    wanted = fails(frozenset())
    spared: frozenset[int] = frozenset()
    size = max(1, faults // 2)
    while True:
        for start in range(1, faults + 1, size):
            more = spared | frozenset(range(start, min(faults + 1, start + size)))
            if more != spared and fails(more) == wanted:
                spared = more
        if size == 1:
            return spared
        size //= 2


class SimClock:
    """Time that passes when the simulation says so (`connect_py.clock.Clock`).

    Args:
        step: lets the rest of the world act; called before each wait.
    """

    def __init__(self, step: Callable[[], None], start: float = 1000.0) -> None:
        self.seconds = start
        self._step = step

    def now(self) -> float:
        """Return the seconds of the simulation."""
        return self.seconds

    def wait(self, event: threading.Event, seconds: float | None = None) -> bool:
        """Wait for an event."""
        return self.until(event.is_set, seconds)

    def wait_for(self, changed: threading.Condition, is_so: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until something is so."""
        return self.until(is_so, seconds)

    def until(self, is_so: Callable[[], bool], seconds: float | None) -> bool:
        """Let time pass until something is so, at most so many seconds."""
        end = self.seconds + (3600.0 if seconds is None else seconds)
        while not is_so():
            left = end - self.seconds
            if left <= 0:
                return False
            self.seconds += min(left, 0.05)
            self._step()
        return True
