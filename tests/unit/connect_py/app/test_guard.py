"""What the guard of services ends when their owner is gone."""

from __future__ import annotations

import signal
import subprocess
import sys

from connect_py.app.services import guard


def test_a_process_that_got_the_number_of_an_earlier_one_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as other:
        began = guard.started_at(other.pid)
        assert not guard.send(other.pid, str(int(began) - 1), signal.SIGTERM)
        assert other.poll() is None
        assert guard.send(other.pid, began, signal.SIGTERM)
        assert other.wait(60) == -signal.SIGTERM
    assert not guard.send(other.pid, began, 0)


def test_what_was_not_forgotten_ends_with_the_owner() -> None:
    sleeper = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(sleeper, stdin=subprocess.PIPE) as kept, subprocess.Popen(sleeper, stdin=subprocess.PIPE) as forgotten:
        lines = f"+{kept.pid}\n+{forgotten.pid}\n-{forgotten.pid}\n"
        with subprocess.Popen([sys.executable, "-S", guard.__file__], stdin=subprocess.PIPE, text=True) as guarding:
            assert guarding.stdin is not None
            guarding.stdin.write(lines)
            guarding.stdin.close()
            assert kept.wait(60) == -signal.SIGTERM
        assert forgotten.poll() is None
        forgotten.terminate()
