"""`connect-py top` in a terminal of 80 × 24 cells, against a real worker: what it shows, what its keys do, how it leaves the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.cli import main
from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.services]

#: A machine whose cores are busy is slow.
SECONDS = 60


class Terminal:
    """A command in a pseudo-terminal; what it draws is kept, and its last whole frame can be read."""

    def __init__(self, *arguments: str) -> None:
        self._screen, self._own = pty.openpty()
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self._own)
        self.drawn = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "connect_py.app.cli", *arguments],
            stdin=self._own,
            stdout=self._own,
            stderr=self._own,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C reaches whom the terminal belongs to
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self.drawn += os.read(self._screen, 65_536)
            except OSError:  # the terminal is closed
                return

    @property
    def screen(self) -> str:
        """The last whole frame, without colours."""
        frames = re.findall(r"\x1b\[H((?:(?!\x1b\[H).)*)\x1b\[J", self.drawn.decode(errors="replace"), re.DOTALL)
        return re.sub(r"\x1b\[[0-9;]*[mK]", "", frames[-1]).replace("\r", "") if frames else ""

    def press(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def wait_for(self, text: str) -> str:
        eventually(lambda: re.search(text, self.screen), lambda: f"no {text!r} in:\n{self.screen}", SECONDS)
        return self.screen

    def left(self) -> int:
        """Wait for the end, and return the exit code; the terminal is as it was before."""
        code = self.process.wait(SECONDS)
        assert termios.tcgetattr(self._own) == self.before
        eventually(lambda: b"\x1b[?25h\x1b[?1049l" in self.drawn, "screen given back", SECONDS)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._own)
        os.close(self._screen)


@pytest.fixture(scope="module")
def site(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("top")
    worker = Worker(folder / "worker", kafka.bootstrap)
    (folder / "lines.txt").write_text("one\ntwo\n")
    worker.create("lines", {"connector.class": "FileStreamSource", "file": str(folder / "lines.txt"), "topic": "top-lines"})
    broken = {"connector.class": "FileStreamSink", "file": str(folder / "none" / "copy.txt"), "topics": "top-lines"}
    worker.request("POST", "/connectors", {"name": "broken", "config": broken})
    worker.wait_for("lines", "RUNNING")
    worker.wait_for("broken", "FAILED")
    yield worker
    for name in worker.request("GET", "/connectors"):
        worker.delete(name)
    worker.stop()


@pytest.fixture
def terminal(site: Worker) -> Iterator[Terminal]:
    opened = Terminal("top", "--worker", site.url, "--every", "0.5")
    yield opened
    opened.close()


def test_the_list_fits_the_terminal_and_its_keys_change_connectors(site: Worker, terminal: Terminal) -> None:
    shown = terminal.wait_for(r"> broken +failed")
    lines = shown.splitlines()
    assert len(lines) == 24 and max(map(len, lines)) <= 80
    assert "2 connectors: 1 failed or stalled, 1 fine" in lines[0]
    assert "Couldn't find or create file" in shown
    terminal.press("\x1b[B")
    terminal.wait_for(r"> lines +running +1/1")
    terminal.press("p")
    terminal.wait_for(r"> lines +paused")
    site.wait_for("lines", "PAUSED")
    terminal.press("r")
    terminal.wait_for(r"> lines +running +1/1")
    terminal.press("s")
    terminal.wait_for(r"Stop lines\?")
    terminal.press("n")
    terminal.wait_for("lines was left as it is")
    terminal.press("sy")
    terminal.wait_for(r"> lines +stopped +0/0")
    assert site.status("lines")["connector"]["state"] == "STOPPED"
    terminal.press("r")
    terminal.wait_for(r"> lines +running +1/1")
    terminal.press("/brok\r")
    assert "lines" not in terminal.wait_for("Only what contains 'brok'")
    terminal.press("\r")
    assert "No such file or directory. Nothing was read." in terminal.wait_for(r"Task 0: failed on 127\.0\.0\.1")
    terminal.press("R")
    terminal.wait_for("broken: the restart is requested")
    site.wait_for("broken", "FAILED")
    terminal.press("\x1b")
    terminal.wait_for("Enter more")
    terminal.press("q")
    assert terminal.left() == 0


@pytest.mark.parametrize(("way", "code"), [("\x03", 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_whatever_ends_it_the_terminal_is_whole(terminal: Terminal, way: Any, code: int) -> None:
    terminal.wait_for(r"> broken +failed")
    if isinstance(way, str):
        terminal.press(way)
    else:
        os.kill(terminal.process.pid, way)
    assert terminal.left() == code


def test_a_worker_that_goes_is_named_and_q_still_leaves(kafka: Kafka, tmp_path: Path) -> None:
    worker = Worker(tmp_path, kafka.bootstrap)
    terminal = Terminal("top", "--worker", worker.url, "--every", "0.5")
    try:
        terminal.wait_for("There is no connector yet")
        worker.stop()
        terminal.wait_for("does not answer")
        terminal.press("q")
        assert terminal.left() == 0
    finally:
        terminal.close()


def test_once_prints_one_frame_for_scripts(site: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--worker", site.url]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["NAME", "STATE", "TASKS", "RECORDS", "5", "MINUTES", "BEHIND"]
    assert lines[2].split()[:3] == ["broken", "failed", "0/1"]
    assert lines[-1].split()[:3] == ["lines", "running", "1/1"]
    assert not any("\x1b" in line for line in lines) and max(map(len, lines)) <= 80
    assert main(["top", "--worker", site.url]) == 1
    assert "needs a terminal" in capsys.readouterr().err
