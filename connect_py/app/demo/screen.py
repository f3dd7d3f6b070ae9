"""What the demo prints: numbered steps, results, small tables, a sign of life during long steps, and requests as a person would type them.

A terminal gets colours and a line that counts seconds; a file or a pipe gets plain lines, one every ten seconds. The command of a request
is printed, then run; without curl the same request goes through urllib.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from connect_py.errors import ConnectError

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

    @contextmanager
    def bar(self, text: str, total: int, begin: int = 0) -> Iterator[Callable[[int], None]]:
        """Show how far a step with a known end is: what is yielded takes the number that is done. The line vanishes at the end.

        Args:
            begin: the number that was done before.
        """
        began = shown = time.monotonic()
        if not self._is_terminal and begin < total:
            self.say(f"   … {text}: {begin:,} of {total:,}")

        def show(done: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown < (0.1 if self._is_terminal else QUIET_SECONDS) or done >= total:
                return
            shown = now
            line = f"{text}: {progress(done, total, now - began, begin)}"
            if self._is_terminal:
                print(f"\r   … {line}\033[K", end="", flush=True)
            else:
                self.say(f"   … {line}")

        try:
            yield show
        finally:
            if self._is_terminal:
                print("\r\033[K", end="", flush=True)

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


#: Characters of a bar.
BAR_WIDTH = 24


def progress(done: int, total: int, seconds: float, begin: int = 0) -> str:
    """Return a bar, the numbers, and when the end is to be expected at the rate since `begin` were done."""
    filled = BAR_WIDTH * done // total
    rate = (done - begin) / seconds if seconds > 0 else 0.0
    left = f", {(total - done) / rate:.0f} s left" if rate else ""
    return f"[{'█' * filled}{'·' * (BAR_WIDTH - filled)}] {done:,} of {total:,}, {rate:,.0f}/s{left}"


JSON_HEADER = "Content-Type: application/json"

#: Longer than the worker's own limit for a request (90 s).
TIMEOUT_SECONDS = 100


def command(method: str, url: str, body: Mapping[str, object] | None = None) -> list[str]:
    """Return the curl command of a request; its body is written over several lines to be read."""
    words = ["curl", "-s"] if method == "GET" else ["curl", "-s", "-X", method]
    if body is not None:
        words += ["-H", JSON_HEADER]
    words.append(url)
    if body is not None:
        words += ["-d", json.dumps(body, indent=2)]
    return words


def as_path(path: str | os.PathLike[str]) -> str:
    """Return a program's path as one types it: from this folder, when it is below it."""
    whole, here = os.path.abspath(path), os.path.join(os.getcwd(), "")
    return whole.removeprefix(here)


def as_typed(words: list[str]) -> str:
    """Return a command as text for a shell."""
    return shlex.join(words)


def send(screen: Screen, method: str, url: str, body: Mapping[str, object] | None = None, *, show: bool = True) -> Any:
    """Print a request as a curl command, send it, and give the answer's JSON (None when it has no content).

    Raises:
        ConnectError: no answer, or a status of 400 and more; with the answer's message.
    """
    words = command(method, url, body)
    if show:
        screen.code("$ " + as_typed(words))
    status, text = _by_curl(words) if shutil.which("curl") else _by_urllib(method, url, body)
    answer = _parsed(text)
    if status >= 400:
        message = answer.get("message", text) if isinstance(answer, dict) else text
        raise ConnectError(f"{method} {url} was answered with {status}: {message}")
    return answer


def _by_curl(words: list[str]) -> tuple[int, str]:
    done = subprocess.run([*words, "--max-time", str(TIMEOUT_SECONDS), "-w", "\n%{http_code}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConnectError(f"curl ended with status {done.returncode}: {done.stderr.strip() or 'no answer from the worker'}")
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text


def _by_urllib(method: str, url: str, body: Mapping[str, object] | None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        raise ConnectError(f"no answer from the worker at {url}: {error}") from error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text
