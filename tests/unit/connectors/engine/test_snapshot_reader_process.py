"""A process that reads chunks of a snapshot ends with the thread that hears of its task."""

from __future__ import annotations

import subprocess
import sys

import pytest

from connectors.engine.snapshot.parallel import frames

SERVE = """
import threading
from connectors.engine.snapshot.parallel import worker

def connect(spec):
    threading.Event().wait()  # a server that does not answer

worker.serve(connect, bytes)
"""
BROKEN = """
import queue, threading
from connectors.engine.snapshot.parallel import worker

class Broken:
    def read(self, size):
        raise MemoryError

threading.Thread(target=worker._read_commands, args=(Broken(), queue.SimpleQueue())).start()
threading.Event().wait()
"""


def _exit_code(program: str, sent: bytes) -> int:
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    try:
        process.stdin.write(sent)
        process.stdin.close()
        return process.wait(60)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("sent", [frames.frame(frames.SPEC, b"{}"), frames.frame(frames.SPEC, b"{}")[:-1], b""])
def test_it_ends_when_its_task_is_gone_although_it_waits_for_a_server(sent: bytes) -> None:
    assert _exit_code(SERVE, sent) == 1


def test_it_ends_when_it_cannot_hear_its_task_any_more() -> None:
    assert _exit_code(BROKEN, b"") == 1
