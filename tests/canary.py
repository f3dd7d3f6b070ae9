"""How long the machine kept processes waiting that wanted to run: what a test of times may forgive, and no more.

A process on each processor sleeps for 20 ms, works for a millisecond, and notes by how much both took longer. A task that writes every
40 ms is kept waiting by the same; a program that stands still by itself is not forgiven.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

from tests.waiting import eventually

#: A process of a canary says so first.
_SINGS = "it sings\n"

_BIRD = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print(sys.argv[2], end="", flush=True)
while True:
    began = time.time_ns()
    time.sleep(0.02)
    count = time.thread_time_ns() + 1_000_000
    while time.thread_time_ns() < count:
        pass
    ended = time.time_ns()
    late = ended - began - 21_000_000
    if late > 1_000_000:
        print(began // 1_000_000, ended // 1_000_000, late // 1_000_000, flush=True)
"""


#: A task works for longer than a canary does, on several threads, and waits for the broker's and the worker's processes. So does what takes
#: it over, or answers a request.
WAITS_OF_A_TASK = 2


def now_ms() -> int:
    """The clock of canaries, and of a counting source's records: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which one process was kept waiting, in milliseconds since 1970."""

    began: int
    ended: int
    late: int


class Canary:
    """Counts from entry, when each of its processes runs, to exit.

    Attributes:
        waits: of each processor; there after the end.
    """

    def __init__(self, waits: Sequence[Sequence[Wait]] = ()) -> None:
        self.waits = list(waits)
        self._birds: list[tuple[subprocess.Popen[bytes], TextIO]] = []

    def __enter__(self) -> Canary:
        for cpu in sorted(os.sched_getaffinity(0)):
            notes = tempfile.TemporaryFile("w+")
            self._birds.append((subprocess.Popen([sys.executable, "-I", "-c", _BIRD, str(cpu), _SINGS], stdout=notes), notes))
        try:
            eventually(lambda: all(os.fstat(notes.fileno()).st_size for _, notes in self._birds), "first words of the birds")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for bird, _notes in self._birds:
            bird.terminate()
        for bird, notes in self._birds:
            bird.wait(60)
            with notes:
                notes.seek(0)
                self.waits.append([Wait(*map(int, line.split())) for line in notes if line.endswith("\n") and line != _SINGS])
        self._birds = []

    @property
    def pids(self) -> list[int]:
        """Its processes."""
        return [bird.pid for bird, _ in self._birds]

    def withheld(self, since: int, until: int) -> int:
        """Milliseconds of a time for which a process on the busiest processor was kept waiting."""
        return max((sum(_parts(waits, since, until)) for waits in self.waits), default=0)


@contextmanager
def within(seconds: float, why: str) -> Iterator[None]:
    """Fail the test when what is inside takes longer, but for what the machine withheld meanwhile, as often as a task waits.

    Args:
        why: what is shown by it.
    """
    with Canary() as canary:
        began = now_ms()
        yield
        ended = now_ms()
    withheld = canary.withheld(began, ended)
    assert ended - began < 1000 * seconds + WAITS_OF_A_TASK * withheld, f"{why}: {ended - began} ms, {withheld} ms of them were withheld"


def _parts(waits: Sequence[Wait], since: int, until: int) -> Iterator[int]:
    """How much of each wait lies within a time: it may have been at any moment of its own, so as much as fits."""
    for wait in islice(waits, bisect_right(waits, since, key=lambda wait: wait.ended), None):
        if wait.began >= until:
            return
        yield min(wait.late, min(wait.ended, until) - max(wait.began, since))
