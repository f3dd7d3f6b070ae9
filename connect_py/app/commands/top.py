"""`top`: connectors in a terminal, the worst first, with keys that pause, resume, stop and restart them.

It asks what the page of the worker asks, and the REST API for what a key changes.

Threads: the terminal's (this command's), which draws and reads keys, and one that owns the client and sends all requests, so that a worker
that does not answer does not keep anybody from leaving. They share two queues; a pipe wakes the terminal's.
"""

from __future__ import annotations

import argparse
import os
import queue
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.top import TopView, Wish, keys_of
from connect_py.app.commands.command import OK, WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of, say, shows_colour
from connect_py.errors import ConfigError, ConnectError, NotFoundError

#: Characters of a line where the output is no terminal.
_WIDTH = 80

#: The clock of the screen shows seconds.
_TICK_SECONDS = 1.0

_ENTER, _LEAVE = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="print one frame, without keys; for scripts")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="ask the worker every 2 s, or so often")
    add_worker_options(parser, has_json=False)


def _top(chosen: argparse.Namespace) -> int:
    if chosen.every <= 0:
        raise ConfigError("--every needs a number of seconds above 0")
    if not chosen.once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("top needs a terminal; --once prints one frame")
    client = client_of(chosen)
    view = TopView(client.url.partition("://")[2])
    view.update(client.page_state())
    if chosen.once:
        width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
        say(view.frame(width, None, clock=time.strftime("%H:%M:%S"), colour=shows_colour()))
        return WRONG if view.has_failures else OK
    with _terminal() as wake:
        _follow(view, _Requests(client, chosen.every, wake), wake)
    return OK


# -- requests ------------------------------------------------------------------------------------------------------------------------


class _Requests(threading.Thread):
    """Owns the client. Answers are functions that the terminal's thread applies to its view."""

    def __init__(self, client: ConnectClient, every: float, wake: _Wake) -> None:
        super().__init__(name="top-requests", daemon=True)
        self._client, self._every, self._wake = client, every, wake
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Callable[[TopView], None]] = queue.SimpleQueue()
        self._since: int | None = None
        self._open = ""

    def ask(self, wish: Wish) -> None:
        """Have something done: a verb of `Wish`, or ``look`` at a connector, or at none."""
        self._wishes.put(wish)

    def run(self) -> None:
        """Ask for the state again and again, and do what is wished in between."""
        while True:
            try:
                wish: Wish | None = self._wishes.get(timeout=self._every)
            except queue.Empty:
                wish = None
            try:
                if wish is not None:
                    self._do(wish)
                self._look()
            except ConnectError as error:
                self._tell(_setter("problem", str(error)))

    def _look(self) -> None:
        state = self._client.page_state(self._since)
        self._since = state["seq"]
        self._tell(lambda view: view.update(state))
        name = self._open
        if name:
            try:
                detail = self._client.page_connector(name)
            except NotFoundError:  # it is deleted, which the state says as well
                return
            self._tell(lambda view: _show_detail(view, name, detail))

    def _do(self, wish: Wish) -> None:
        if wish.verb == "look":
            self._open = wish.name
            return
        try:
            if wish.verb == "restart":
                status = self._client.status(wish.name)
                failed = "FAILED" in (status["connector"]["state"], *(task["state"] for task in status["tasks"]))
                self._client.restart(wish.name, tasks=True, only_failed=failed)
            else:
                self._client.set_state(wish.name, wish.verb)
            self._tell(_setter("message", f"{wish.name}: {_DONE[wish.verb]}."))
        except ConnectError as error:
            self._tell(_setter("message", f"{wish.name} was left as it is: {error}"))

    def _tell(self, answer: Callable[[TopView], None]) -> None:
        self.answers.put(answer)
        self._wake.up()


_DONE = {"pause": "the pause is requested", "resume": "it resumes", "stop": "the stop is requested", "restart": "the restart is requested"}


def _setter(name: str, value: str) -> Callable[[TopView], None]:
    return lambda view: setattr(view, name, value)


def _show_detail(view: TopView, name: str, detail: Any) -> None:
    if view.is_open and view.selected == name:
        view.detail = detail


# -- the terminal --------------------------------------------------------------------------------------------------------------------


def _follow(view: TopView, requests: _Requests, wake: _Wake) -> None:
    """Draw and read keys, until somebody leaves."""
    requests.start()
    looked_at = ""
    while True:
        _draw(view)
        ready, _, _ = select.select([sys.stdin.fileno(), wake.reader], [], [], _TICK_SECONDS)
        if wake.reader in ready:
            wake.clear()
        while not requests.answers.empty():
            requests.answers.get()(view)
        if sys.stdin.fileno() in ready:
            typed = os.read(sys.stdin.fileno(), 1024)
            if not typed:  # the terminal is gone
                return
            for key in keys_of(typed):
                wish = view.press(key)
                if wish is not None and wish.verb == "quit":
                    return
                if wish is not None:
                    requests.ask(wish)
        now = view.selected if view.is_open else ""
        if now != looked_at:
            looked_at = now
            requests.ask(Wish("look", now))


def _draw(view: TopView) -> None:
    size = shutil.get_terminal_size((_WIDTH, 24))
    lines = view.frame(size.columns, size.lines, clock=time.strftime("%H:%M:%S"), colour=shows_colour())
    text = "\033[H" + "\r\n".join(f"{line}\033[K" for line in lines) + "\033[J"
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding, "replace"))
    sys.stdout.flush()


class _Wake:
    """A pipe that ends a wait for keys; what is written into it means nothing more."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)

    def up(self) -> None:
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:  # it is full, and so wakes anyway
            return

    def clear(self) -> None:
        os.read(self.reader, 65_536)


@contextmanager
def _terminal() -> Iterator[_Wake]:
    """Take the screen and single keys; whatever ends this, the terminal is given back as it was."""
    import termios
    import tty

    wake, fd = _Wake(), sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGWINCH, signal.SIGTERM)}
    try:
        tty.setcbreak(fd)
        now = termios.tcgetattr(fd)
        now[6][termios.VSUSP] = b"\0"  # a shell would get the terminal without its echo
        termios.tcsetattr(fd, termios.TCSADRAIN, now)
        signal.signal(signal.SIGWINCH, lambda *_: wake.up())
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        print(_ENTER, end="", flush=True)
        yield wake
    finally:
        print(_LEAVE, end="", flush=True)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


COMMANDS = (
    Command(
        "top",
        "Look",
        "connectors in your terminal, the worst first, with keys to pause, resume, stop and restart them",
        _options,
        _top,
        about=(
            "Shows what the worker's page shows: verdicts, rates, how far behind, snapshots, and the statement to run for what failed. "
            "It needs this project's worker; status --watch works with every worker."
        ),
        examples=("top", "top --worker https://connect.example:8443 --user ops", "top --once"),
        exits={3: "with --once: a connector or task is FAILED"},
    ),
)
