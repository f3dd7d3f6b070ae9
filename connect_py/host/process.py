"""Start and speak to a task's process from the worker (the protocol is in `connect_py.task.main`).

The process leads a process group of its own, so that Ctrl-C in a terminal reaches only the worker and a kill takes the task's children
(Spark's JVM) along. It dies by itself when the worker does, because its standard input ends.

Threads: the worker's own thread calls the methods; two daemon threads read the process's messages and its standard error and hand on
what they find. The last event of a process is always `Exited`.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from connect_py.log import levels
from connect_py.task import fork_server
from connect_py.task.fork_server import FORK_SERVER, ForkedProcess, ForkServer

log = logging.getLogger(__name__)

#: How many last lines of standard error a trace shows of a process that died without a word.
_LAST_LINES = 20

#: How long a process may take to end after it has closed its output, before it is killed. A JVM that Spark started ends meanwhile.
_ENDING_SECONDS = 30.0

#: How glibc handles memory: it reads this when the process starts; the user's own environment wins. By itself it gives the top of the heap
#: back after every batch, and the next one pays page faults; and it puts freed pieces of a record's headers aside and gathers them at each
#: larger piece, which every record's value is (mxfast): 0.25 us a row. Values up to 4 kB are kept at hand (tcache_max).
_MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_TOP_PAD_": str(8 << 20),
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.mxfast=0:glibc.malloc.tcache_max=4096",
}

#: What a task starts (Spark's Python workers) must not find modules in the working directory either.
_SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@dataclass(frozen=True)
class Exited:
    """The process is gone.

    Attributes:
        code: exit code, or the negative number of the signal that ended it.
        last_lines: the end of what it wrote to standard error.
    """

    code: int
    last_lines: Sequence[str]

    def describe(self) -> str:
        """Return how it ended, in words."""
        if self.code >= 0:
            return f"exit code {self.code}"
        try:
            return f"signal {signal.Signals(-self.code).name}"
        except ValueError:
            return f"signal {-self.code}"


#: A message of the task, or its end.
Event = Mapping[str, Any] | Exited


class Spawned(subprocess.Popen[bytes]):
    """A process with a Python of its own."""

    def release(self) -> None:
        """Nothing is left to give back: `wait` has done that."""


def spawn(command: Sequence[str]) -> Spawned:
    """Start a task's process, which waits for its ``start`` message. Raises OSError."""
    return Spawned(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """Return the environment of a task's process, or of the server that it is forked from."""
    return {**_MALLOC, **os.environ, **_SAFE_PATH}


class Launcher:
    """Starts task processes: forks them, or runs a command for each where that is not wanted or not possible. Any thread may use it.

    Args:
        command: the command line of a task's process, but for the task's name.
        forks: whether to fork them.
    """

    def __init__(self, command: Sequence[str], *, forks: bool = True) -> None:
        self._command = list(command)
        self._server = ForkServer(self._start_server) if forks and fork_server.is_supported() else None

    def begin(self) -> None:
        """Have everything imported by the time of the first launch."""
        if self._server is not None:
            try:
                self._server.begin()
            except OSError as error:
                log.warning("The process that tasks are forked from could not be started (%s): each task imports for itself", error)

    @property
    def server_pid(self) -> int | None:
        """The process that tasks are forked from; None while there is none."""
        return None if self._server is None else self._server.pid

    def launch(self, name: str) -> Spawned | ForkedProcess:
        """Start a process for the task of this name, which waits for its ``start`` message. Raises OSError."""
        if self._server is not None:
            try:
                return self._server.fork()
            except OSError as error:
                log.warning("The process of %s could not be forked (%s); it is started by itself", name, error)
        return spawn([*self._command, name])

    def run(
        self,
        name: str,
        start: Mapping[str, Any],
        on_event: Callable[[Event], None],
        forward: Callable[[str], None] | None = None,
        redact: Callable[[str], str] = lambda text: text,
    ) -> TaskProcess:
        """Start a process and send it its ``start`` message; the arguments are those of `TaskProcess`. Raises OSError."""
        return TaskProcess(lambda: self.launch(name), start, on_event, forward, redact)

    def close(self) -> None:
        """Fork no more; called when the tasks have ended."""
        if self._server is not None:
            self._server.close()

    def _start_server(self, control: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._command, FORK_SERVER], stdin=control, start_new_session=True, env=environment())


class TaskProcess:
    """One process of one task.

    Args:
        launch: starts a process that waits for its ``start`` message.
        start: the ``start`` message.
        on_event: gets every message and at last an `Exited`; called from a thread of its own.
        forward: gets every line that the process writes to standard error.
        redact: takes secrets out of such a line: what a task's children print has not passed its own log.
    """

    def __init__(
        self,
        launch: Callable[[], Spawned | ForkedProcess],
        start: Mapping[str, Any],
        on_event: Callable[[Event], None],
        forward: Callable[[str], None] | None = None,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._on_event = on_event
        self._forward = forward or (lambda line: print(line, file=sys.stderr, flush=True))
        self._redact = redact
        self._last_lines: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._lock = threading.Lock()
        self._kill_timer: threading.Timer | None = None
        self._unfollow: Callable[[], None] = lambda: None
        first = orjson.dumps(start) + b"\n"  # what cannot be written must not leave a process without a task
        self._process = launch()
        self.pid = self._process.pid
        self._errors = threading.Thread(target=self._read_errors, name=f"stderr of {self.pid}", daemon=True)
        self._errors.start()
        threading.Thread(target=self._read_messages, name=f"messages of {self.pid}", daemon=True).start()
        self._write(first)
        self._follow_levels()

    def _follow_levels(self) -> None:
        """Hand on changes of log levels, until the process ends."""
        self._unfollow = levels.PROCESS.follow(lambda name, level: self.send({"type": "log_level", "logger": name, "level": level}))
        if self._process.returncode is not None:  # its end may have been noticed first
            self._unfollow()

    @property
    def is_alive(self) -> bool:
        """Whether its end has not been noticed yet."""
        return self._process.returncode is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; a process that is gone is reported by its `Exited`, not here."""
        self._write(orjson.dumps(message) + b"\n")

    def _write(self, data: bytes) -> None:
        with self._lock:
            try:
                assert self._process.stdin is not None
                while data:
                    data = data[self._process.stdin.write(data) :]  # an unbuffered pipe may take a part only
            except (BrokenPipeError, ValueError):
                pass

    def stop(self, timeout_seconds: float) -> None:
        """Ask the task to end; it is killed when it has not done so in time."""
        if self._kill_timer is None:
            self.send({"type": "stop", "timeout": timeout_seconds})
            # the task keeps to its deadline by itself; the kill is for one that hangs, and comes a little later
            self._kill_timer = threading.Timer(timeout_seconds + 0.5, self.kill)
            self._kill_timer.daemon = True
            self._kill_timer.start()

    def kill(self) -> None:
        """End the process and all it started, at once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses to signal a process that has just ended
                os.killpg(self.pid, signal.SIGKILL)

    def _read_messages(self) -> None:
        """Hand on every message, then the end. Whatever ends the reading ends the process too: without a reader nothing would notice how
        the task fares."""
        try:
            self._read_each_message()
        except Exception:
            log.exception("The messages of process %d cannot be read any longer: it is killed, and its task started again", self.pid)
            self.kill()
        finally:
            self._end()

    def _read_each_message(self) -> None:
        assert self._process.stdout is not None
        with os.fdopen(os.dup(self._process.stdout.fileno()), "rb") as messages:
            for line in messages:
                if not line.endswith(b"\n"):
                    return  # the process was killed while it wrote
                message = orjson.loads(line)
                if not isinstance(message, dict) or not isinstance(message.get("type"), str):
                    raise ValueError(f"This is no message: {line[:200]!r}")
                self._on_event(message)

    def _end(self) -> None:
        """Report the process's end as its last event. One that is alive, but no longer read, is killed."""
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        self._unfollow()
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        self._errors.join(0.5)  # a child of the task may hold the pipe open for longer
        with self._lock:
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                stream.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what the task started and did not end
        self._process.release()
        self._on_event(Exited(code, tuple(self._last_lines)))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with os.fdopen(os.dup(self._process.stderr.fileno()), "r", errors="replace") as lines:
            self._process.stderr.close()
            for line in lines:
                try:
                    text = self._redact(line.rstrip("\n"))
                    self._last_lines.append(text)
                    self._forward(text)
                except Exception:
                    # a pipe that is not read fills up, and then the task hangs in its next line
                    log.exception("A line that process %d wrote to standard error could not be shown", self.pid)
