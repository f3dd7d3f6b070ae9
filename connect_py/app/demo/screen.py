"""What the demo prints: numbered steps, results, small tables, and a sign of life during long steps.

A terminal gets colours and a line that counts seconds; a file or a pipe gets plain lines, one every ten seconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

BOLD, DIM, GREEN, CYAN, RESET = "\033[1m", "\033[2m", "\033[32m", "\033[36m", "\033[0m"

#: Seconds between two signs of life where there is no terminal.
QUIET_SECONDS = 10.0


class Screen:
    """Prints for one person; all methods but the ticking of `working` belong to the main thread."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._has_colour = self._is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._steps = 0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._began

    def step(self, title: str) -> None:
        """Begin a numbered step."""
        self._steps += 1
        self.say("")
        self.say(self._in(BOLD, f"{self._steps}. {title}"))

    def say(self, text: str) -> None:
        """Print as it is."""
        print(text, flush=True)

    def done(self, text: str) -> None:
        """Print a result that was checked."""
        self.say(f"   {self._in(GREEN, '✓')} {text}")

    def note(self, text: str) -> None:
        """Print an aside."""
        self.say(self._in(DIM, f"   {text}"))

    def code(self, text: str) -> None:
        """Print what a person would type."""
        for line in text.splitlines():
            self.say(f"   {self._in(CYAN, line)}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows under their columns' names."""
        lines = [[str(name) for name in columns], *([("" if value is None else str(value)) for value in row] for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        for number, line in enumerate(lines):
            text = "  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip()
            self.say(f"     {self._in(DIM, text) if number == 0 else text}")

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show that a long step is under way, with its seconds; the line vanishes from a terminal at the end."""
        finished = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, finished), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            finished.set()
            ticker.join()

    def _tick(self, text: str, finished: threading.Event) -> None:
        began = time.monotonic()
        while not finished.wait(0.2 if self._is_terminal else QUIET_SECONDS):
            seconds = time.monotonic() - began
            if self._is_terminal:
                print(f"\r   … {text} ({seconds:.0f} s)", end="", flush=True)
            else:
                self.say(f"   … {text} ({seconds:.0f} s)")
        if self._is_terminal:
            print("\r\033[K", end="", flush=True)

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{RESET}" if self._has_colour else text
