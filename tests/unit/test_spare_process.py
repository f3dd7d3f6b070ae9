"""The process that waits for the next task."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.commands.worker import _TASK_COMMAND
from connect_py.runtime.spare_name import SPARE
from connect_py.runtime.spare_process import SpareProcess
from connect_py.runtime.task_process import Exited, TaskProcess, spawn
from tests.waiting import eventually

WAITS = [sys.executable, "-c", "import sys; print(sys.stdin.readline(), end='', flush=True); sys.stdin.read()", SPARE]


class Made:
    def __init__(self, command: list[str]) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.command = command
        self.spare = SpareProcess(self._spawn, delay_seconds=0.0)

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.processes.append(spawn(self.command))
        return self.processes[-1]

    def await_spare(self, count: int) -> subprocess.Popen[bytes]:
        eventually(lambda: len(self.processes) == count and self.spare._waiting, f"spare {count}", 10, 0.01)
        return self.processes[-1]


@pytest.fixture
def make() -> Iterator[Callable[..., Made]]:
    made: list[Made] = []

    def making(command: list[str] = WAITS) -> Made:
        made.append(Made(command))
        return made[-1]

    yield making
    for each in made:
        each.spare.close()
        assert all(process.wait(10) is not None for process in each.processes), "a process is left"


def test_a_task_takes_the_spare_and_another_one_follows(make: Callable[..., Made]) -> None:
    made = make()
    assert made.spare.take() is None, "none is there yet, but one is to come"
    first = made.await_spare(1)
    events: list[Any] = []
    task = TaskProcess(["/no/such/program"], {"type": "state"}, events.append, spare=made.spare.take())
    assert task.pid == first.pid
    eventually(lambda: events == [{"type": "state"}], lambda: f"{events}", 10, 0.01)
    assert made.await_spare(2).pid != first.pid
    task.kill()
    eventually(lambda: isinstance(events[-1], Exited), "end", 10, 0.01)


def test_a_spare_that_has_died_is_given_to_no_task(make: Callable[..., Made]) -> None:
    made = make()
    made.spare.begin()
    dead = made.await_spare(1)
    dead.kill()
    dead.wait()
    assert made.spare.take() is None
    made.await_spare(2)


def test_a_spare_that_cannot_be_started_is_none(make: Callable[..., Made]) -> None:
    made = make(["/no/such/program"])
    made.spare.begin()
    eventually(lambda: made.spare._timer is None, "end of the attempt", 10, 0.01)
    assert made.spare.take() is None
    made.command = WAITS
    eventually(lambda: made.spare._timer is None, "end of the attempt", 10, 0.01)
    made.spare.begin()
    made.await_spare(1)


def test_no_spare_is_left_when_the_worker_ends(make: Callable[..., Made]) -> None:
    made = make()
    made.spare.begin()
    waiting = made.await_spare(1)
    made.spare.close()
    assert waiting.poll() is not None
    made.spare.begin()
    assert (made.spare.take(), made.spare._timer) == (None, None)


def test_a_spare_ends_when_its_worker_dies() -> None:
    process = spawn([*_TASK_COMMAND, SPARE])
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 1
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_a_spare_that_has_a_task_shows_the_tasks_name() -> None:
    program = "from connect_py.runtime.spare_name import show_name; show_name('orders-ü-0'); print(open('/proc/self/cmdline').read())"
    out = subprocess.run([sys.executable, "-c", program, SPARE, "last"], capture_output=True, check=True).stdout.decode()
    assert [part for part in out.strip().split("\0") if part][-2:] == ["orders-ü-0", "last"]


def test_a_spare_has_imported_what_a_task_needs_before_it_knows_its_task() -> None:
    process = spawn([*_TASK_COMMAND, SPARE])
    try:
        maps = Path(f"/proc/{process.pid}/maps")
        eventually(lambda: "cimpl" in maps.read_text(), "Kafka's client in a spare", 20)
    finally:
        process.kill()
        process.communicate()
